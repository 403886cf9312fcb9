"""The `Service` class, and the decorator that declares one.

A service is an async function: its first parameter is the request, the others are the providers it uses,
its return type is the response's `data`, its docstring is the description. `@service(...)` adds the other
metadata and returns a frozen `Service`, the source of the HTTP API, the MCP server and the website.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar, get_args, get_type_hints

import orjson
from msgspec import Struct

from centgate.chains import allow_development_chain
from centgate.circuit_breaker import CircuitBreaker
from centgate.envelope import RoleName, ServiceResult
from centgate.errors import ProviderUnconfigured, UnsupportedOptions
from centgate.outage import Congestion, Outage
from centgate.prices import DEFAULT_PRICE
from centgate.provider import Provider, ProviderInfo, ProviderRole, RequestTrace, describe_fallback
from centgate.schema import Data, RefusedOptions, Request, StrictRequest, json_schema

R = TypeVar("R", bound=Request)
D = TypeVar("D", bound=Data)
Category = Literal["crypto-context", "web-context"]

_FALLBACK_REASONS: Mapping[str | None, str] = {
    "no_data": "has no data about it",
    "skipped": "was skipped, since it does not support the request",
}
"""Reasons for a fallback in warnings, by the status of the primary."""


class ServiceSource(Struct, frozen=True):
    """A provider of a service with its declared role."""

    provider: type[Provider]
    declared_role: ProviderRole

    @property
    def info(self) -> ProviderInfo:
        """Metadata of the provider."""
        return self.provider.info

    @property
    def can_answer_alone(self) -> bool:
        """True if this provider alone can answer a request."""
        return self.declared_role.name in ("primary", "fallback")


class Service(Struct, Generic[R, D], frozen=True, dict=True):
    """Declaration of one service."""

    slug: str
    path: str
    order: int
    title: str
    summary: str
    description: str
    category: Category
    tags: tuple[str, ...]
    guardrails: tuple[str, ...]
    cache_ttl: timedelta
    example_request: R
    example_data: D
    refused_options: RefusedOptions
    request: type[R]
    data: type[D]
    sources: tuple[ServiceSource, ...]
    fixed_roles: bool
    handler: Callable[..., Awaitable[D]]

    @cached_property
    def leads(self) -> tuple[ServiceSource, ...]:
        """Sources that can answer alone, in the order in which they are queried."""
        return tuple(source for source in self.sources if source.can_answer_alone)

    @cached_property
    def _has_queue(self) -> bool:
        """True if a provider that can answer alone has a queue: its class estimates the wait."""
        return any(source.provider.estimate_wait is not Provider.estimate_wait for source in self.leads)

    @property
    def price(self) -> Decimal:
        """US dollars per call, unless the operator sets another price: `Settings.price_of`."""
        return DEFAULT_PRICE

    @cached_property
    def input_example(self) -> dict[str, Any]:
        """A valid request body."""
        return self.example_request.model_dump(mode="json", by_alias=True, exclude_unset=True)

    @cached_property
    def output_example(self) -> dict[str, Any]:
        """A sample of `data`."""
        return self.example_data.model_dump(mode="json", by_alias=True)

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """JSON Schema of `data`."""
        return json_schema(self.data, "serialization")

    @cached_property
    def _request_schema(self) -> dict[str, Any]:
        return json_schema(self.request, "validation")

    def input_schema(self, development_chain: int | None) -> dict[str, Any]:
        """Return the JSON Schema of the request body, as this deployment validates it."""
        schema = deepcopy(self._request_schema)
        if development_chain is not None:
            allow_development_chain(schema, development_chain)
        return schema

    def select_providers(
        self, providers: Mapping[str, Provider], pinned: str | None
    ) -> Mapping[str, Provider]:
        """Select this service's providers by name, disabling those replaced by a pinned one."""
        own = {source.info.name: providers[source.info.name] for source in self.sources}
        if pinned is None:
            return own
        replaced = {source.info.name for source in self.leads} - {pinned}
        return {name: each.copy_disabled() if name in replaced else each for name, each in own.items()}

    def provider_roles(self, providers: Mapping[str, Provider]) -> list[tuple[ProviderInfo, RoleName]]:
        """Return the providers with their roles on this deployment; those that can answer alone come first.

        Unless the roles are fixed, unconfigured sources leave their places to the next ones.
        """
        leads = list(self.leads)
        if not self.fixed_roles:
            leads.sort(key=lambda source: not providers[source.info.name].is_configured)
        helpers = [source for source in self.sources if not source.can_answer_alone]
        roles: list[RoleName] = [source.declared_role.name for source in (*self.leads, *helpers)]
        return list(zip([source.info for source in (*leads, *helpers)], roles, strict=True))

    def require_supported_options(self, request: R, providers: Mapping[str, Provider]) -> None:
        """Raise `UnsupportedOptions` if no configured provider supports all options of the request."""
        asked = request.canonical
        lacks = [
            lead.unsupported_options(asked)
            for lead in self._list_leads(providers)
            if lead.is_available(request.target_chain_id)
        ]
        if lacks and all(lacks):
            options = sorted({name for lack in lacks for name in lack})
            fields = [name for name in self.input_schema(None)["properties"] if name not in options]
            raise UnsupportedOptions(options, fields, "not supported by the providers of this deployment")

    def require_configured(self, request: R, providers: Mapping[str, Provider]) -> None:
        """Raise `ProviderUnconfigured` if no provider that can answer alone is configured for the request."""
        leads = self._list_leads(providers)
        if not any(lead.is_available(request.target_chain_id) for lead in leads):
            names = " or ".join(lead.info.name for lead in leads)
            where = f" on chain {request.target_chain_id}" if request.target_chain_id else ""
            raise ProviderUnconfigured(
                leads[0].info.name, f"{self.slug}{where} needs {names}, not configured on this deployment"
            )

    def find_outage(self, request: R, providers: Mapping[str, Provider]) -> Outage | None:
        """Return the outage of every provider that could answer, or None while one is not known to be down.

        Reads circuit breakers in memory. A fallback used only if no other provider is configured is ignored
        while there is one, since it does not replace a failed provider.
        """
        leads = self._list_leads(providers)
        open_breakers = {provider: _find_open_breakers(provider, request) for provider in leads}
        if not any(open_breakers.values()):
            return None
        sources = self._find_able(request, providers)
        if not sources or not all(open_breakers[provider] for provider in sources):
            return None
        return Outage(sources, [breaker for provider in sources for breaker in open_breakers[provider]])

    def find_congestion(self, request: R, providers: Mapping[str, Provider]) -> Congestion | None:
        """Return the congestion of the providers that could answer; None while one has room for the request.

        One has none if its queue is too long, or if its rate limit would refuse a call. Providers whose
        circuit breaker is open do not count.
        """
        if not any(_estimate_wait(lead, request) for lead in self._list_leads(providers)):
            return None
        waits = [
            Congestion(source, _estimate_wait(source, request))
            for source in self._iter_reachable(request, providers)
        ]
        if not waits or not all(each.is_too_long for each in waits):
            return None
        return min(waits, key=lambda each: each.seconds)

    def is_announced(self, request: R, providers: Mapping[str, Provider]) -> bool:
        """Return True if `announce_request` counts this request at a provider."""
        first = self._find_first(request, providers)
        return first is not None and first.announces_requests

    def announce_request(self, request: R, providers: Mapping[str, Provider]) -> AbstractContextManager[None]:
        """Count a request in the estimates of the provider that will be asked first, before it is settled."""
        first = self._find_first(request, providers)
        return first.announce_request(request.canonical) if first else nullcontext()

    def reserve_place(self, request: R, providers: Mapping[str, Provider]) -> AbstractContextManager[None]:
        """Count a request that is being run in the estimates of the provider that will be asked first."""
        first = self._find_first(request, providers)
        return first.reserve_place(request.canonical) if first else nullcontext()

    def _find_first(self, request: R, providers: Mapping[str, Provider]) -> Provider | None:
        """Return the provider that will be asked first; None if all are down, or none has a queue."""
        return next(self._iter_reachable(request, providers), None) if self._has_queue else None

    def _iter_reachable(self, request: R, providers: Mapping[str, Provider]) -> Iterator[Provider]:
        """Yield the providers that could answer a request and whose circuit breakers are closed."""
        able = self._find_able(request, providers)
        return (each for each in able if not _find_open_breakers(each, request))

    def _list_leads(self, providers: Mapping[str, Provider]) -> list[Provider]:
        """Return this deployment's providers that can answer alone, in the order of `leads`."""
        return [providers[source.info.name] for source in self.leads]

    def _find_able(self, request: R, providers: Mapping[str, Provider]) -> list[Provider]:
        """Return the configured providers that could answer a request, the primary first."""
        able = [
            (source, provider)
            for source in self.leads
            if (provider := providers[source.info.name]).is_available(request.target_chain_id)
            and not provider.unsupported_options(request.canonical)
        ]
        sources = [provider for source, provider in able if source.declared_role.replaces_failed]
        return sources or [provider for _, provider in able]

    async def run(self, request: R, providers: Mapping[str, Provider]) -> ServiceResult:
        """Run the service for one request; return its data and the status of each provider."""
        trace = RequestTrace.start()
        bound = [_bind_provider(providers[source.info.name], request, trace) for source in self.sources]
        data: Data = await self.handler(request, *bound)
        content = orjson.dumps(data.model_dump(mode="json", by_alias=True))
        roles = self.provider_roles(providers)
        self._warn_of_fallback(roles, trace)
        sources = [_provider_entry(info, role, providers[info.name], trace) for info, role in roles]
        return ServiceResult(content, sources, trace.warnings, is_provisional=trace.is_provisional)

    def _warn_of_fallback(self, roles: list[tuple[ProviderInfo, RoleName]], trace: RequestTrace) -> None:
        """Add a warning if a fallback answered instead of the primary. With fixed roles the function does."""
        leads = [info for info, _ in roles[: len(self.leads)]]
        statuses = [trace.status_of(info.name) for info in leads]
        if not self.fixed_roles and statuses[0] != "ok" and "ok" in statuses:
            why = _FALLBACK_REASONS.get(statuses[0], "gave no answer")
            trace.add_warning(describe_fallback(leads[statuses.index("ok")].label, leads[0], why))


def _bind_provider(provider: Provider, request: Request, trace: RequestTrace) -> Provider:
    """Bind a provider to one request; it is skipped if it does not support the chain or an option."""
    if not provider.supports_chain(request.target_chain_id):
        return provider.bind(trace, f"does not cover chain {request.target_chain_id}")
    lacks = provider.unsupported_options(request.canonical)
    return provider.bind(trace, f"does not support {', '.join(lacks)}" if lacks else None)


def _provider_entry(
    info: ProviderInfo, role: RoleName, provider: Provider, trace: RequestTrace
) -> dict[str, Any]:
    """Return the entry of one provider in `providers`: its status, or why it was skipped."""
    idle = {"name": info.name, "status": "skipped" if provider.is_configured else "unconfigured"}
    return {**trace.providers.get(info.name, idle), "role": role}


AnyService = Service[Any, Any]


def service(
    *,
    order: int,
    title: str,
    category: Category,
    tags: tuple[str, ...],
    guardrails: tuple[str, ...],
    input_example: R,
    output_example: D,
    path: str | None = None,
    cache_ttl: timedelta = timedelta(0),
    refused_options: RefusedOptions | None = None,
    fixed_roles: bool = False,
) -> Callable[[Callable[..., Awaitable[D]]], Service[R, D]]:
    """Declare a service.

    `order` is the position in the catalogue; `output_example` is the `data` returned for `input_example`;
    `path` defaults to `/services/<slug>`. The first configured source that can answer alone is the primary,
    and the others are its fallbacks. `fixed_roles` keeps the roles of the signature instead, for sources that
    know different facts; the function itself then warns of a fallback.
    """

    def declare(answer: Callable[..., Awaitable[D]]) -> Service[R, D]:
        slug = answer.__name__.replace("_", "-")
        summary, _, rest = inspect.cleandoc(answer.__doc__ or "").partition("\n\n")
        hints = get_type_hints(answer, include_extras=True)
        data = hints.pop("return")
        request, *providers = hints.values()
        if issubclass(request, StrictRequest) != (category == "web-context"):
            raise TypeError(f"{slug}: web-context takes a StrictRequest, crypto-context another Request")
        return Service(
            slug=slug,
            path=path or f"/services/{slug}",
            order=order,
            title=title,
            summary=_join_lines(summary),
            description=_join_lines(rest) or _join_lines(summary),
            category=category,
            tags=tags,
            guardrails=guardrails,
            cache_ttl=cache_ttl,
            example_request=input_example,
            example_data=output_example,
            refused_options=refused_options or RefusedOptions(),
            request=request,
            data=data,
            sources=tuple(_parse_source(hint) for hint in providers),
            fixed_roles=fixed_roles,
            handler=answer,
        )

    return declare


def _parse_source(hint: Any) -> ServiceSource:
    """Convert a provider parameter such as `Primary[GoPlus]` to the source that it declares."""
    provider, role = get_args(hint)
    if not isinstance(role, ProviderRole):
        raise TypeError(f"{hint} is not a provider with a role")
    return ServiceSource(provider, role)


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _estimate_wait(provider: Provider, request: Request) -> float:
    """Return the seconds until a provider has room for a request, in its queue and by its rate limit."""
    options = request.canonical
    upstreams = provider.upstreams_for(request.target_chain_id, options)
    allowed = min((each.seconds_until_allowed for each in upstreams), default=0.0)
    return max(allowed, provider.estimate_wait(options))


def _find_open_breakers(provider: Provider, request: Request) -> list[CircuitBreaker]:
    """Return the circuit breakers of a provider's upstreams for a request if all are open, else []."""
    breakers = [each.breaker for each in provider.upstreams_for(request.target_chain_id, request.canonical)]
    return breakers if all(breaker.is_open for breaker in breakers) else []
