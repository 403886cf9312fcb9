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
from centgate.errors import ProviderUnconfigured
from centgate.provider import Provider, Record, Role, RoleName
from centgate.schema import Beyond, Data, Request, json_schema

R = TypeVar("R", bound=Request)
D = TypeVar("D", bound=Data)
Category = Literal["crypto-context", "web-context"]

PRICE = Decimal("0.01")
"""US dollars a call: one price for every service."""


@dataclass(frozen=True, slots=True)
class Source:
    """A provider of a service, in its role."""

    provider: type[Provider]
    role: RoleName


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

    def require_configured(self, request: R, providers: Mapping[str, Provider]) -> None:
        """Raise `ProviderUnconfigured` unless the primary, or a fallback in its place, can be asked."""
        leads = [source.provider.about for source in self.sources if source.role in ("primary", "fallback")]
        able = (providers[about.name] for about in leads)
        if not any(lead.configured and lead.covers(request.on) for lead in able):
            names = " or ".join(about.name for about in leads)
            where = f" on chain {request.on}" if request.on else ""
            raise ProviderUnconfigured(
                leads[0].name, f"{self.slug}{where} needs {names}, which this deployment has not set up"
            )

    async def ask(self, request: R, providers: Mapping[str, Provider]) -> Answered:
        """Run the service for one request: its data, and what its sources did."""
        record = Record.begun()
        bound = [providers[source.provider.about.name].on(record) for source in self.sources]
        data: Data = await self.answer(request, *bound)
        content = orjson.dumps(data.model_dump(mode="json", by_alias=True))
        sources = [self._did(source, providers, record) for source in self.sources]
        return Answered(content, sources, record.warnings, provisional=record.provisional)

    def _did(self, source: Source, providers: Mapping[str, Provider], record: Record) -> dict[str, Any]:
        """What one source did, or why it was not asked."""
        name = source.provider.about.name
        idle = {"name": name, "status": "skipped" if providers[name].configured else "unconfigured"}
        return {**record.providers.get(name, idle), "role": source.role}


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
    return Source(provider, role.name)


def _one_line(text: str) -> str:
    return " ".join(text.split())
