"""Unpaid metadata of an API: its services, payment terms and health, read over HTTP."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import Field, ValidationError

from centgate.client.wire_model import ApiModel

if TYPE_CHECKING:
    import httpx2

REQUEST_TIMEOUT = 15.0
"""Timeout of one unpaid request."""
MAX_RESPONSE_BYTES = 4 * 2**20
"""Maximum bytes of a response."""


class CatalogUnavailable(Exception):
    """The API is unreachable or returned unexpected content; the message says which."""


class ServiceProvider(ApiModel):
    """Provider of a service."""

    name: str
    label: str = ""
    role: str = ""
    """`primary`, `secondary`, `enrichment`, `fallback`, or a value of a newer server."""
    docs_url: str = ""


class AcceptedPayment(ApiModel):
    """Token that a service is paid in: its network, address, payee, and EIP-712 name and version."""

    network: str
    asset: str = ""
    pay_to: str = ""
    name: str = ""
    version: str = ""


class PaymentPosture(ApiModel):
    """Payment settings of a service."""

    protocol: str = "x402"
    network: str = ""
    """The first network of `accepts`."""
    accepts: tuple[AcceptedPayment, ...] = ()
    """The tokens that are accepted, in the operator's order."""
    enforced: bool = True
    dev_mode: bool = False


class ProviderState(ApiModel):
    """Configuration state of a provider on this deployment, and its terms of use."""

    name: str
    configured: bool = True
    terms: str = ""


class ServiceSummary(ApiModel):
    """Service as listed by `GET /services`. Fields that are not needed to call it may be absent."""

    slug: str
    path: str
    title: str = ""
    summary: str = ""
    description: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    method: str = "POST"
    price: str = ""
    price_usd: float = 0.0
    pricing_note: str = ""
    input_example: dict[str, Any] = Field(default_factory=dict)
    output_fields: tuple[str, ...] = ()
    guardrails: tuple[str, ...] = ()
    providers: tuple[ServiceProvider, ...] = ()
    payment: PaymentPosture = PaymentPosture()


class ServiceDetail(ServiceSummary):
    """Service as returned by `GET /services/<slug>`."""

    input_schema: dict[str, Any] = Field(default_factory=dict)
    output_schema: dict[str, Any] = Field(default_factory=dict)
    output_example: dict[str, Any] = Field(default_factory=dict)
    cache_seconds: int = 0
    sources: tuple[ProviderState, ...] = ()

    @property
    def leads(self) -> tuple[ServiceProvider, ...]:
        """Providers that can answer alone."""
        return (
            tuple(each for each in self.providers if each.role in ("primary", "fallback")) or self.providers
        )

    @property
    def available(self) -> bool:
        """True if a provider that can answer alone is configured; a missing state counts as configured.

        A service that lists no providers needs none.
        """
        configured = {source.name: source.configured for source in self.sources}
        return not self.leads or any(configured.get(each.name, True) for each in self.leads)


class ListedRequirements(ApiModel):
    """x402's PaymentRequirements: payee, amount and asset."""

    scheme: str
    network: str
    asset: str
    amount: str
    pay_to: str
    max_timeout_seconds: int
    extra: dict[str, Any]


class PaidRoute(ApiModel):
    """Entry of `/.well-known/x402`: a route and its payment requirements."""

    slug: str
    endpoint: str
    method: str
    accepts: tuple[ListedRequirements, ...]


class Health(ApiModel):
    """Response of `GET /health`."""

    status: str
    db: str
    time: str


def fetch_json(http: httpx2.Client, path: str, *, expect: tuple[int, ...] = (200,)) -> Any:
    """Fetch the JSON at an unpaid path. Raises CatalogUnavailable."""
    import httpx2  # imported late: a client that buys does not need it here

    try:
        with http.stream("GET", path, timeout=REQUEST_TIMEOUT) as response:
            if response.status_code not in expect:
                raise CatalogUnavailable(f"{response.url} answers {response.status_code}")
            content = _read_body(response)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise CatalogUnavailable(
            f"{http.base_url} cannot be reached: {error or type(error).__name__}"
        ) from error
    try:
        return orjson.loads(content)  # limits the nesting depth
    except ValueError as error:
        raise CatalogUnavailable(
            f"{response.url} did not return JSON. Is this a Centgate API URL?"
        ) from error


def _read_body(response: httpx2.Response) -> bytes:
    """Read the body within the limits of size and time."""
    deadline, content = monotonic() + REQUEST_TIMEOUT, bytearray()
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > MAX_RESPONSE_BYTES:
            raise CatalogUnavailable(
                f"{response.url} answers with more than {MAX_RESPONSE_BYTES // 2**20} MiB"
            )
        if monotonic() > deadline:
            raise CatalogUnavailable(
                f"{response.url} takes longer than {REQUEST_TIMEOUT:.0f} seconds to answer"
            )
    return bytes(content)


def fetch_services(http: httpx2.Client) -> tuple[ServiceSummary, ...]:
    """Fetch every service of an API, in catalogue order."""
    return parse_services(fetch_json(http, "/services"), str(http.base_url))


def parse_services(content: Any, api: str) -> tuple[ServiceSummary, ...]:
    """Parse the services in a response of `GET /services`."""
    try:
        return tuple(ServiceSummary.model_validate(each) for each in content["services"])
    except (ValidationError, KeyError, TypeError) as error:
        raise CatalogUnavailable(f"{api} has no Centgate catalogue: {_first_problem(error)}") from error


def fetch_service(http: httpx2.Client, slug: str) -> ServiceDetail:
    """Fetch one service of an API with its schemas."""
    return parse_service(fetch_json(http, f"/services/{slug}"), str(http.base_url), slug)


def parse_service(content: Any, api: str, slug: str) -> ServiceDetail:
    """Parse the service in a response of `GET /services/<slug>`."""
    try:
        return ServiceDetail.model_validate(content)
    except ValidationError as error:
        raise CatalogUnavailable(
            f"{api} describes {slug} in an unknown format: {_first_problem(error)}"
        ) from error


def parse_paid_routes(content: Any, api: str) -> tuple[PaidRoute, ...]:
    """Parse the requirements per route from `/.well-known/x402`; `accepts` is empty if payments are off."""
    try:
        return tuple(PaidRoute.model_validate(each) for each in content["products"])
    except (ValidationError, KeyError, TypeError) as error:
        raise CatalogUnavailable(
            f"{api} returns its terms in an unknown format: {_first_problem(error)}"
        ) from error


def fetch_health(http: httpx2.Client) -> Health:
    """Fetch the health of an API."""
    try:
        return Health.model_validate(fetch_json(http, "/health", expect=(200, 503)))
    except ValidationError as error:
        raise CatalogUnavailable(
            f"{http.base_url} returns its health in an unknown format: {_first_problem(error)}"
        ) from error


def _first_problem(error: Exception) -> str:
    """Describe the first problem."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(error).__name__} {error}"
