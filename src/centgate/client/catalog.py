"""What an API says of itself: its services, its terms, whether it works. Read over HTTP, without paying."""

from __future__ import annotations

from time import monotonic
from typing import Any

import httpx2
import orjson
from pydantic import ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from centgate.client.reading import Foreign

SECONDS = 15.0
"""How long one free request may take."""
LARGEST = 4 * 2**20
"""Bytes of an answer that are read."""


class CatalogUnread(Exception):
    """The API could not be reached, or does not answer as a Centgate does; the message says which."""


class _Said(Foreign):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True, extra="ignore")


class Provider(_Said):
    """A source of a service."""

    name: str
    label: str = ""
    role: str = ""
    """`primary`, `secondary`, `enrichment`, `fallback`, or what a newer server says."""
    docs_url: str = ""


class Posture(_Said):
    """How a service is paid."""

    protocol: str = "x402"
    network: str = ""
    enforced: bool = True
    dev_mode: bool = False


class Source(_Said):
    """Whether a source is set up on this deployment, and what its terms of use say."""

    name: str
    configured: bool = True
    terms: str = ""


class Listed(_Said):
    """A service as `GET /services` lists it. Another server may leave out what is not needed to call it."""

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
    providers: tuple[Provider, ...] = ()
    payment: Posture = Posture()


class Entry(Listed):
    """A service as `GET /services/<slug>` tells it."""

    input_schema: dict[str, Any] = Field(default_factory=dict)
    output_schema: dict[str, Any] = Field(default_factory=dict)
    output_example: dict[str, Any] = Field(default_factory=dict)
    cache_seconds: int = 0
    sources: tuple[Source, ...] = ()

    @property
    def leads(self) -> tuple[Provider, ...]:
        """The sources that can answer alone."""
        return (
            tuple(each for each in self.providers if each.role in ("primary", "fallback")) or self.providers
        )

    @property
    def available(self) -> bool:
        """Whether a source that can answer alone is set up; what is not said is taken for set up."""
        configured = {source.name: source.configured for source in self.sources}
        return any(configured.get(each.name, True) for each in self.leads)


class Requirements(_Said):
    """x402's PaymentRequirements: whom to pay how much of what."""

    scheme: str
    network: str
    asset: str
    amount: str
    pay_to: str
    max_timeout_seconds: int
    extra: dict[str, Any]


class Product(_Said):
    """One line of `/.well-known/x402`: a route and what it asks for."""

    slug: str
    endpoint: str
    method: str
    accepts: tuple[Requirements, ...]


class Health(_Said):
    """What `GET /health` says."""

    status: str
    db: str
    time: str


def get_json(http: httpx2.Client, path: str, *, expect: tuple[int, ...] = (200,)) -> Any:
    """The JSON at a free path; CatalogUnread when there is none."""
    try:
        with http.stream("GET", path, timeout=SECONDS) as response:
            if response.status_code not in expect:
                raise CatalogUnread(f"{response.url} answers {response.status_code}")
            content = _whole(response)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise CatalogUnread(f"{http.base_url} cannot be reached: {error or type(error).__name__}") from error
    try:
        return orjson.loads(content)  # refuses what is nested without an end
    except ValueError as error:
        raise CatalogUnread(f"{response.url} does not answer with JSON: is a Centgate there?") from error


def _whole(response: httpx2.Response) -> bytes:
    """The body, which is neither endless nor dripping."""
    until, content = monotonic() + SECONDS, bytearray()
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > LARGEST:
            raise CatalogUnread(f"{response.url} answers with more than {LARGEST // 2**20} MiB")
        if monotonic() > until:
            raise CatalogUnread(f"{response.url} takes longer than {SECONDS:.0f} seconds to answer")
    return bytes(content)


def listed(http: httpx2.Client) -> tuple[Listed, ...]:
    """Every service of an API, in its order."""
    return read_listed(get_json(http, "/services"), str(http.base_url))


def read_listed(content: Any, api: str) -> tuple[Listed, ...]:
    """The services in what `GET /services` of an API answers."""
    try:
        return tuple(Listed.model_validate(each) for each in content["services"])
    except (ValidationError, KeyError, TypeError) as error:
        raise CatalogUnread(f"{api} has no catalogue as a Centgate has: {_first(error)}") from error


def entry(http: httpx2.Client, slug: str) -> Entry:
    """One service of an API, whole."""
    return read_entry(get_json(http, f"/services/{slug}"), str(http.base_url), slug)


def read_entry(content: Any, api: str, slug: str) -> Entry:
    """The service in what `GET /services/<slug>` of an API answers."""
    try:
        return Entry.model_validate(content)
    except ValidationError as error:
        raise CatalogUnread(f"{api} describes {slug} in another way: {_first(error)}") from error


def read_products(content: Any, api: str) -> tuple[Product, ...]:
    """What each route asks for, from `/.well-known/x402`; they accept nothing where no payments are taken."""
    try:
        return tuple(Product.model_validate(each) for each in content["products"])
    except (ValidationError, KeyError, TypeError) as error:
        raise CatalogUnread(f"{api} tells its terms in another way: {_first(error)}") from error


def health(http: httpx2.Client) -> Health:
    """Whether the API works, as it says itself."""
    try:
        return Health.model_validate(get_json(http, "/health", expect=(200, 503)))
    except ValidationError as error:
        raise CatalogUnread(f"{http.base_url} tells its health in another way: {_first(error)}") from error


def _first(error: Exception) -> str:
    """The first thing that is wrong, in words."""
    if isinstance(error, ValidationError):
        found = error.errors()[0]
        return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"
    return f"{type(error).__name__} {error}"
