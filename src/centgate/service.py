"""What a service is, and the decorator that declares one.

A service is an async function: its first parameter is the request, the others are the providers it consults,
its return type is the answer's `data`, its docstring is the description. `@service(...)` adds what a function
cannot say of itself and yields a frozen `Service`, from which every face is made.
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
"""US dollars a call: one price for every service."""
_WANTING: Mapping[str | None, str] = {
    "no_data": "knows nothing of it",
    "skipped": "was not asked, since it cannot honour the request",
}
"""Why another stands in, by the status of the one that should have answered."""


@dataclass(frozen=True, slots=True)
class Source:
    """A provider of a service, in the role that its declaration gives it."""

    provider: type[Provider]
    declared: Role

    @property
    def about(self) -> About:
        """Who the provider is."""
        return self.provider.about

    @property
    def leg(self) -> bool:
        """Whether it is one of several that stand in for one another."""
        return self.declared.name == "leg"

    @property
    def leads(self) -> bool:
        """Whether the service can be answered with this provider alone."""
        return self.declared.name in ("primary", "fallback", "leg")

    def role(self, lead: Source | None) -> RoleName:
        """Its role where `lead` is the first of the legs."""
        if self.declared.name == "leg":
            return "primary" if self is lead else "fallback"
        return self.declared.name


@dataclass(frozen=True)
class Service(Generic[R, D]):
    """Everything there is to know of one service."""

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
        """US dollars a call."""
        return PRICE

    @cached_property
    def input_example(self) -> dict[str, Any]:
        """A request body that works."""
        return self.example.model_dump(mode="json", by_alias=True, exclude_unset=True)

    @cached_property
    def output_example(self) -> dict[str, Any]:
        """What `data` looks like."""
        return self.sample.model_dump(mode="json", by_alias=True)

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """JSON Schema of `data`."""
        return json_schema(self.data, "serialization")

    def input_schema(self, development_chain: int | None) -> dict[str, Any]:
        """JSON Schema of the request body, as this deployment validates it."""
        schema = json_schema(self.request, "validation")
        if development_chain is not None:
            admit_development_chain(schema, development_chain)
        return schema

    def among(self, providers: Mapping[str, Provider], pinned: str | None) -> Mapping[str, Provider]:
        """Its providers by name; those that lead are off where the operator has pinned another."""
        own = {source.about.name: providers[source.about.name] for source in self.sources}
        if pinned is None:
            return own
        leads = {source.about.name for source in self.sources if source.leads}
        return {name: each.off() if name in leads - {pinned} else each for name, each in own.items()}

    def roles(self, providers: Mapping[str, Provider]) -> list[tuple[About, RoleName]]:
        """Who is asked in which role on this deployment: of the legs, those that are set up come first."""
        ordered = sorted(
            self.sources, key=lambda source: source.leg and not providers[source.about.name].configured
        )
        lead = next((source for source in ordered if source.leg), None)
        return [(source.about, source.role(lead)) for source in ordered]

    def require_honoured(self, request: R, providers: Mapping[str, Provider]) -> None:
        """Raise `UnsupportedOptions` when no source that is set up can honour all options of the request."""
        asked = request.canonical
        able = (providers[source.about.name] for source in self.sources if source.leads)
        lacks = [lead.cannot(asked) for lead in able if lead.configured and lead.covers(request.on)]
        if lacks and all(lacks):
            options = sorted({name for lack in lacks for name in lack})
            fields = [name for name in self.input_schema(None)["properties"] if name not in options]
            raise UnsupportedOptions(options, fields, "beyond what the sources of this deployment can do")

    def require_configured(self, request: R, providers: Mapping[str, Provider]) -> None:
        """Raise `ProviderUnconfigured` unless a source that leads can be asked."""
        leads = [source.about for source in self.sources if source.leads]
        able = (providers[about.name] for about in leads)
        if not any(lead.configured and lead.covers(request.on) for lead in able):
            names = " or ".join(about.name for about in leads)
            where = f" on chain {request.on}" if request.on else ""
            raise ProviderUnconfigured(
                leads[0].name, f"{self.slug}{where} needs {names}, which this deployment has not set up"
            )

    def outage(self, request: R, providers: Mapping[str, Provider]) -> Outage | None:
        """Return the outage of every source that could answer, or None while one is not known to be down.

        Looks at circuit breakers in memory. A source that stands in where there is no other does not count
        while there is one, since it does not replace a source that failed.
        """
        leads = [(source, providers[source.about.name]) for source in self.sources if source.leads]
        open_breakers = {provider: _open_breakers(provider, request) for _, provider in leads}
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
        """Run the service for one request: its data, and what its sources did."""
        record, asked = Record.begun(), request.canonical
        bound = [_bound(providers[source.about.name], asked, record) for source in self.sources]
        data: Data = await self.answer(request, *bound)
        content = orjson.dumps(data.model_dump(mode="json", by_alias=True))
        roles = self.roles(providers)
        self._tell_stand_in(roles, record)
        sources = [_did(about, role, providers[about.name], record) for about, role in roles]
        return Answered(content, sources, record.warnings, provisional=record.provisional)

    def _tell_stand_in(self, roles: list[tuple[About, RoleName]], record: Record) -> None:
        """Warn when another leg than the primary answered."""
        legs = [about for about, _ in roles if any(each.leg and each.about is about for each in self.sources)]
        said = [record.providers.get(about.name, {}).get("status") for about in legs]
        if "ok" in said[1:] and said[0] != "ok":
            stands_in, why = legs[said.index("ok")].label, _WANTING.get(said[0], "gave no answer")
            record.warn(f"a fallback source was used: {stands_in} stands in for {legs[0].label}, which {why}")


def _bound(provider: Provider, asked: Mapping[str, Any], record: Record) -> Provider:
    """A provider for one request, which it does not take part in when an option is beyond it."""
    lacks = provider.cannot(asked)
    return provider.on(record, f"cannot honour {', '.join(lacks)}" if lacks else None)


def _did(about: About, role: RoleName, provider: Provider, record: Record) -> dict[str, Any]:
    """What one source did, or why it was not asked."""
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

    `order` is its place in the catalogue; `sample` what `data` looks like for `example`; `fresh_for` how long
    an answer may be served from the cache; `path` is `/services/<slug>` unless given.
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
            summary=_one_line(summary),
            description=_one_line(rest) or _one_line(summary),
            category=category,
            tags=tags,
            guardrails=guardrails,
            fresh_for=fresh_for,
            example=example,
            sample=sample,
            beyond=beyond or Beyond(),
            request=request,
            data=data,
            sources=tuple(_source(hint) for hint in providers),
            answer=answer,
        )

    return declare


def _source(hint: Any) -> Source:
    """A provider parameter, `Primary[GoPlus]` and the like, as the source it declares."""
    provider, role = get_args(hint)
    if not isinstance(role, Role):
        raise TypeError(f"{hint} is no provider in a role")
    return Source(provider, role)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _open_breakers(provider: Provider, request: Request) -> list[Breaker]:
    """Return the circuit breakers of a provider's upstreams for a request if all are open, else none."""
    breakers = [each.breaker for each in provider.upstreams_for(request.on, request.canonical)]
    return breakers if all(breaker.is_open for breaker in breakers) else []
