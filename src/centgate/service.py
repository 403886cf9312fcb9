"""The `Service` class, and the decorator that declares one.

A service is an async function: its first parameter is the request, the others are the providers it uses,
its return type is the response's `data`, its docstring is the description. `@service(...)` adds the other
metadata and returns a frozen `Service`, the source of the HTTP API, the MCP server and the website.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar, get_args, get_type_hints

import orjson

from centgate.chains import admit_development_chain
from centgate.envelope import Answered
from centgate.errors import ProviderUnconfigured, UnsupportedOptions
from centgate.outage import Outage
from centgate.provider import About, Provider, Record, Role, RoleName
from centgate.schema import Beyond, Data, Request, json_schema
from centgate.upstream import Breaker

R = TypeVar("R", bound=Request)
D = TypeVar("D", bound=Data)
Category = Literal["crypto-context", "web-context"]

PRICE = Decimal("0.01")
"""US dollars per call: one price for every service."""
_FALLBACK_REASONS: Mapping[str | None, str] = {
    "no_data": "has no data about it",
    "skipped": "was skipped, since it does not support the request",
}
"""Reasons for a fallback in warnings, by the status of the primary."""


@dataclass(frozen=True, slots=True)
class Source:
    """A provider of a service with its declared role."""

    provider: type[Provider]
    declared: Role

    @property
    def about(self) -> About:
        """Metadata of the provider."""
        return self.provider.about

    @property
    def leg(self) -> bool:
        """True if it is one of several alternatives."""
        return self.declared.name == "leg"

    @property
    def leads(self) -> bool:
        """True if this provider alone can answer a request."""
        return self.declared.name in ("primary", "fallback", "leg")

    def role(self, lead: Source | None) -> RoleName:
        """Return its role if `lead` is the first of the alternatives."""
        if self.declared.name == "leg":
            return "primary" if self is lead else "fallback"
        return self.declared.name


@dataclass(frozen=True)
class Service(Generic[R, D]):
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
    fresh_for: timedelta
    example: R
    sample: D
    beyond: Beyond
    request: type[R]
    data: type[D]
    sources: tuple[Source, ...]
    answer: Callable[..., Awaitable[D]]

    @property
    def price(self) -> Decimal:
        """US dollars per call."""
        return PRICE

    @cached_property
    def input_example(self) -> dict[str, Any]:
        """A valid request body."""
        return self.example.model_dump(mode="json", by_alias=True, exclude_unset=True)

    @cached_property
    def output_example(self) -> dict[str, Any]:
        """A sample of `data`."""
        return self.sample.model_dump(mode="json", by_alias=True)

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """JSON Schema of `data`."""
        return json_schema(self.data, "serialization")

    def input_schema(self, development_chain: int | None) -> dict[str, Any]:
        """Return the JSON Schema of the request body, as this deployment validates it."""
        schema = json_schema(self.request, "validation")
        if development_chain is not None:
            admit_development_chain(schema, development_chain)
        return schema

    def among(self, providers: Mapping[str, Provider], pinned: str | None) -> Mapping[str, Provider]:
        """Select this service's providers by name, disabling those replaced by a pinned one."""
        own = {source.about.name: providers[source.about.name] for source in self.sources}
        if pinned is None:
            return own
        leads = {source.about.name for source in self.sources if source.leads}
        return {name: each.off() if name in leads - {pinned} else each for name, each in own.items()}

    def roles(self, providers: Mapping[str, Provider]) -> list[tuple[About, RoleName]]:
        """Return the providers with their roles on this deployment; configured alternatives come first."""
        ordered = sorted(
            self.sources, key=lambda source: source.leg and not providers[source.about.name].configured
        )
        lead = next((source for source in ordered if source.leg), None)
        return [(source.about, source.role(lead)) for source in ordered]

    def require_honoured(self, request: R, providers: Mapping[str, Provider]) -> None:
        """Raise `UnsupportedOptions` if no configured provider supports all options of the request."""
        asked = request.canonical
        able = (providers[source.about.name] for source in self.sources if source.leads)
        lacks = [lead.cannot(asked) for lead in able if lead.configured and lead.covers(request.on)]
        if lacks and all(lacks):
            options = sorted({name for lack in lacks for name in lack})
            fields = [name for name in self.input_schema(None)["properties"] if name not in options]
            raise UnsupportedOptions(options, fields, "not supported by the providers of this deployment")

    def require_configured(self, request: R, providers: Mapping[str, Provider]) -> None:
        """Raise `ProviderUnconfigured` if no provider that can answer alone is configured for the request."""
        leads = [source.about for source in self.sources if source.leads]
        able = (providers[about.name] for about in leads)
        if not any(lead.configured and lead.covers(request.on) for lead in able):
            names = " or ".join(about.name for about in leads)
            where = f" on chain {request.on}" if request.on else ""
            raise ProviderUnconfigured(
                leads[0].name, f"{self.slug}{where} needs {names}, not configured on this deployment"
            )

    def outage(self, request: R, providers: Mapping[str, Provider]) -> Outage | None:
        """Return the outage of every provider that could answer, or None while one is not known to be down.

        Reads circuit breakers in memory. A fallback used only if no other provider is configured is ignored
        while there is one, since it does not replace a failed provider.
        """
        leads = [(source, providers[source.about.name]) for source in self.sources if source.leads]
        open_breakers = {provider: _find_open_breakers(provider, request) for _, provider in leads}
        if not any(open_breakers.values()):
            return None
        able = [
            (source, provider)
            for source, provider in leads
            if provider.configured and provider.covers(request.on) and not provider.cannot(request.canonical)
        ]
        sources = [provider for source, provider in able if source.declared.replaces_failed]
        sources = sources or [provider for _, provider in able]
        if not sources or not all(open_breakers[provider] for provider in sources):
            return None
        return Outage(sources, [breaker for provider in sources for breaker in open_breakers[provider]])

    async def ask(self, request: R, providers: Mapping[str, Provider]) -> Answered:
        """Run the service for one request; return its data and the status of each provider."""
        record, asked = Record.begun(), request.canonical
        bound = [_bind_provider(providers[source.about.name], asked, record) for source in self.sources]
        data: Data = await self.answer(request, *bound)
        content = orjson.dumps(data.model_dump(mode="json", by_alias=True))
        roles = self.roles(providers)
        self._warn_of_fallback(roles, record)
        sources = [_provider_entry(about, role, providers[about.name], record) for about, role in roles]
        return Answered(content, sources, record.warnings, provisional=record.provisional)

    def _warn_of_fallback(self, roles: list[tuple[About, RoleName]], record: Record) -> None:
        """Add a warning if an alternative answered instead of the primary."""
        legs = [about for about, _ in roles if any(each.leg and each.about is about for each in self.sources)]
        statuses = [record.providers.get(about.name, {}).get("status") for about in legs]
        if "ok" in statuses[1:] and statuses[0] != "ok":
            fallback, why = (
                legs[statuses.index("ok")].label,
                _FALLBACK_REASONS.get(statuses[0], "gave no answer"),
            )
            record.warn(f"a fallback source was used: {fallback} instead of {legs[0].label}, which {why}")


def _bind_provider(provider: Provider, asked: Mapping[str, Any], record: Record) -> Provider:
    """Bind a provider to one request; it is skipped if it does not support an option."""
    lacks = provider.cannot(asked)
    return provider.on(record, f"does not support {', '.join(lacks)}" if lacks else None)


def _provider_entry(about: About, role: RoleName, provider: Provider, record: Record) -> dict[str, Any]:
    """Return the entry of one provider in `providers`: its status, or why it was skipped."""
    idle = {"name": about.name, "status": "skipped" if provider.configured else "unconfigured"}
    return {**record.providers.get(about.name, idle), "role": role}


AnyService = Service[Any, Any]


def service(
    *,
    order: int,
    title: str,
    category: Category,
    tags: tuple[str, ...],
    guardrails: tuple[str, ...],
    example: R,
    sample: D,
    path: str | None = None,
    fresh_for: timedelta = timedelta(0),
    beyond: Beyond | None = None,
) -> Callable[[Callable[..., Awaitable[D]]], Service[R, D]]:
    """Declare a service.

    `order` is the position in the catalogue; `sample` is the `data` returned for `example`; `fresh_for` is
    the cache TTL; `path` defaults to `/services/<slug>`.
    """

    def declare(answer: Callable[..., Awaitable[D]]) -> Service[R, D]:
        slug = answer.__name__.replace("_", "-")
        summary, _, rest = inspect.cleandoc(answer.__doc__ or "").partition("\n\n")
        hints = get_type_hints(answer, include_extras=True)
        data = hints.pop("return")
        request, *providers = hints.values()
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
            fresh_for=fresh_for,
            example=example,
            sample=sample,
            beyond=beyond or Beyond(),
            request=request,
            data=data,
            sources=tuple(_parse_source(hint) for hint in providers),
            answer=answer,
        )

    return declare


def _parse_source(hint: Any) -> Source:
    """Convert a provider parameter such as `Primary[GoPlus]` to the source that it declares."""
    provider, role = get_args(hint)
    if not isinstance(role, Role):
        raise TypeError(f"{hint} is not a provider with a role")
    return Source(provider, role)


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _find_open_breakers(provider: Provider, request: Request) -> list[Breaker]:
    """Return the circuit breakers of a provider's upstreams for a request if all are open, else []."""
    breakers = [each.breaker for each in provider.upstreams_for(request.on, request.canonical)]
    return breakers if all(breaker.is_open for breaker in breakers) else []
