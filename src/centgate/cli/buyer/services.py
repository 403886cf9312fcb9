"""Render the services of an API: all in a table, or one with its input and output fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from centgate.cli.buyer.arguments import describe_field, describe_limits
from centgate.cli.terminal import escape_controls
from centgate.client import Centgate
from centgate.client.catalog import ServiceDetail
from centgate.json_schema import Schema, parse_schema

MAX_CONCURRENT_REQUESTS = 8
"""Maximum concurrent requests for services."""


def fetch_service_details(client: Centgate, slugs: Iterable[str]) -> list[ServiceDetail]:
    """Fetch these services with their schemas, in this order."""
    with ThreadPoolExecutor(MAX_CONCURRENT_REQUESTS) as threads:
        return list(threads.map(client.service, slugs))


def service_json(service: ServiceDetail) -> dict[str, Any]:
    """Return a service as JSON, with `available`: whether it can be bought there."""
    is_available = service.available and service.payment.enforced
    return {**service.model_dump(mode="json", by_alias=True), "available": is_available}


def render_services(services: list[ServiceDetail]) -> RenderableType:
    """Render a row per service: price, availability and summary."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    table.add_column("service", no_wrap=True)
    table.add_column("price", no_wrap=True)
    table.add_column("sold here", no_wrap=True)
    table.add_column("what it tells", overflow="fold")
    for each in services:
        table.add_row(
            escape_controls(each.slug),
            escape_controls(each.price),
            _availability(each),
            escape_controls(each.summary),
        )
    return table


def render_service(service: ServiceDetail) -> RenderableType:
    """Render all details of one service."""
    return Group(
        Text.assemble(
            (escape_controls(service.title), "bold"),
            f"  {escape_controls(service.price)} a call, sold here: ",
            _availability(service),
        ),
        Text(escape_controls(service.summary)),
        *([Text(escape_controls(service.description))] if service.description != service.summary else []),
        *_section("takes", _fields_table(_input_rows(parse_schema(service.input_schema)))),
        *_section("gives", _fields_table(_output_rows(parse_schema(service.output_schema)))),
        *_section("sources", _providers_table(service)),
        *_section("bounds", _bullet_list(service.guardrails)),
        Text("\nexample", style="cyan"),
    )


def _availability(service: ServiceDetail) -> Text:
    """Render the availability of a service."""
    if not service.payment.enforced:
        return Text("no, takes no payments", style="yellow")
    return Text("yes", style="green") if service.available else Text("no, not set up", style="yellow")


def _section(title: str, content: RenderableType) -> Iterator[RenderableType]:
    yield Text(f"\n{title}", style="cyan")
    yield Padding(content, (0, 0, 0, 2), expand=False)


def _bullet_list(lines: Iterable[str]) -> RenderableType:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column()
    table.add_column(overflow="fold")
    for each in lines:
        table.add_row("-", escape_controls(each))
    return table


def _fields_table(rows: Iterable[tuple[str, str, str]]) -> RenderableType:
    """Render the fields of an object: name, label and description."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*map(escape_controls, row))
    return table


def _input_rows(schema: Schema) -> Iterator[tuple[str, str, str]]:
    for name, field in schema.properties.items():
        yield name, "needed" if name in schema.required else "optional", describe_field(field)


def _output_rows(schema: Schema) -> Iterator[tuple[str, str, str]]:
    for name, field in schema.properties.items():
        first = next(field.non_null.iterate_alternatives())
        values = describe_limits(field) if field.enum else ""
        description = "; ".join(part for part in (field.description.rstrip("."), values) if part)
        yield name, first.type or "object", description


def _providers_table(service: ServiceDetail) -> RenderableType:
    """Render the providers of a service with their role and configuration state."""
    configured = {source.name: source.configured for source in service.sources}
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(style="dim")
    table.add_column(style="yellow")
    for each in service.providers:
        missing = "" if configured.get(each.name, True) else "not set up here"
        table.add_row(escape_controls(each.label), escape_controls(each.role), missing)
    return table
