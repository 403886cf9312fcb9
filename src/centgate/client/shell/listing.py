"""The services of an API, for a terminal: all in a table, or one with all that it takes and gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from centgate.client import Centgate
from centgate.client.catalog import Entry
from centgate.client.shell.arguments import bounds, meaning
from centgate.client.shell.printing import plain

AT_ONCE = 8
"""Services that are read at the same time."""


def read_services(client: Centgate, slugs: Iterable[str]) -> list[Entry]:
    """These services, whole, in this order."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(client.service, slugs))


def entry_json(service: Entry) -> dict[str, Any]:
    """A service as the API tells it, and whether it can be bought there."""
    sold = service.available and service.payment.enforced
    return {**service.model_dump(mode="json", by_alias=True), "available": sold}


def services_table(services: list[Entry]) -> RenderableType:
    """A line for each service: what it costs, whether it can be bought here, what it tells."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    table.add_column("service", no_wrap=True)
    table.add_column("price", no_wrap=True)
    table.add_column("sold here", no_wrap=True)
    table.add_column("what it tells", overflow="fold")
    for each in services:
        table.add_row(plain(each.slug), plain(each.price), _sold(each), plain(each.summary))
    return table


def service_page(service: Entry) -> RenderableType:
    """Everything about one service."""
    return Group(
        Text.assemble(
            (plain(service.title), "bold"), f"  {plain(service.price)} a call, sold here: ", _sold(service)
        ),
        Text(plain(service.summary)),
        *([Text(plain(service.description))] if service.description != service.summary else []),
        *_section("takes", _fields(service.input_schema, _needed(service.input_schema))),
        *_section("gives", _fields(service.output_schema, {})),
        *_section("sources", _sources(service)),
        *_section("bounds", _bullets(service.guardrails)),
        Text("\nexample", style="cyan"),
    )


def _sold(service: Entry) -> Text:
    """Whether it can be bought here."""
    if not service.payment.enforced:
        return Text("no, takes no payments", style="yellow")
    return Text("yes", style="green") if service.available else Text("no, not set up", style="yellow")


def _section(title: str, content: RenderableType) -> Iterator[RenderableType]:
    yield Text(f"\n{title}", style="cyan")
    yield Padding(content, (0, 0, 0, 2), expand=False)


def _bullets(lines: Iterable[str]) -> RenderableType:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column()
    table.add_column(overflow="fold")
    for each in lines:
        table.add_row("-", plain(each))
    return table


def _fields(schema: Mapping[str, Any], needed: Mapping[str, str]) -> RenderableType:
    """The members of an object, with what each means."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    properties: dict[str, Any] = schema.get("properties", {})
    for name, field in properties.items():
        known = cast(dict[str, Any], field) if isinstance(field, dict) else {}
        table.add_row(
            plain(name), needed.get(name, _kind(known)), plain(meaning(known) if needed else _said(known))
        )
    return table


def _said(schema: Mapping[str, Any]) -> str:
    """What a member of an answer means, and its words where it has some."""
    parts = [str(schema.get("description", "")).rstrip("."), bounds(schema) if "enum" in schema else ""]
    return "; ".join(part for part in parts if part)


def _needed(schema: Mapping[str, Any]) -> dict[str, str]:
    """Of each input whether it has to be given."""
    required = schema.get("required", ())
    return {name: "needed" if name in required else "optional" for name in schema.get("properties", {})}


def _kind(schema: Mapping[str, Any]) -> str:
    """The JSON type of a member, in one word."""
    branches = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    first: Mapping[str, Any] = branches[0] if branches else schema
    return plain(first.get("type", "object"))


def _sources(service: Entry) -> RenderableType:
    """Who is asked, in which role, and whether this deployment has set it up."""
    configured = {source.name: source.configured for source in service.sources}
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(style="dim")
    table.add_column(style="yellow")
    for each in service.providers:
        missing = "" if configured.get(each.name, True) else "not set up here"
        table.add_row(plain(each.label), plain(each.role), missing)
    return table
