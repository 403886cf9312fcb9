"""A service as an MCP tool, told from its catalogue entry, and a server of such tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from importlib.metadata import version
from typing import Any

import orjson
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from centgate.client.catalog import Entry
from centgate.envelope import PROVIDER_SCHEMA, success_schema

Context = ServerRequestContext[Any, Any]
Lister = Callable[[Context, PaginatedRequestParams | None], Awaitable[ListToolsResult]]
Caller = Callable[[Context, CallToolRequestParams], Awaitable[CallToolResult]]

RECEIPT = "x402/payment-response"
REQUEST_ID = "centgate/request-id"
REPLAYED = "centgate/replayed"
"""Where a result's `_meta` has x402's receipt, the request's id, and whether the answer was given before."""
FRESH = CacheHint(ttl_ms=60_000, scope="public")
"""How long a client may keep the list of tools: as long as the catalogue says over HTTP."""
_COMBINING = ("allOf", "anyOf", "oneOf")


def server_of(
    *,
    instructions: str,
    on_list: Lister,
    on_call: Caller,
    input_schema: Callable[[str], dict[str, Any] | None] | None = None,
) -> Server[Any]:
    """An MCP server that offers tools and nothing else, in every version of the protocol the SDK speaks."""
    return Server(
        "centgate",
        version=version("centgate"),
        title="Centgate",
        instructions=instructions,
        cache_hints={"tools/list": FRESH, "server/discover": FRESH},
        get_tool_input_schema=input_schema,
        on_list_tools=on_list,
        on_call_tool=on_call,
    )


def tool_of(entry: Entry) -> Tool:
    """A service as a tool, under its slug."""
    return Tool(
        name=entry.slug,
        title=entry.title,
        description=_description(entry),
        input_schema=_plain_root(entry.input_schema),
        output_schema=_result_schema(entry),
        annotations=ToolAnnotations(
            title=entry.title,
            read_only_hint=True,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=True,
        ),
    )


def tools_of(entries: Iterable[Entry]) -> ListToolsResult:
    """The answer to `tools/list`, in the catalogue's order."""
    return ListToolsResult(tools=[tool_of(entry) for entry in entries])


def result_of(body: bytes, *, is_error: bool, meta: dict[str, Any]) -> CallToolResult:
    """JSON as a tool's result: as text, and structured."""
    return CallToolResult(
        content=[TextContent(type="text", text=body.decode())],
        structured_content=orjson.loads(body),
        is_error=is_error,
        _meta=meta,
    )


def _description(entry: Entry) -> str:
    """What a model is told: purpose, limits, price, what failing costs, how old an answer may be."""
    parts = [
        entry.summary,
        entry.description if entry.description != entry.summary else "",
        *entry.guardrails,
        f"Price: {entry.price}. {entry.pricing_note}",
        _freshness(entry.cache_seconds),
        ""
        if entry.available
        else "Its sources are not set up on this deployment: a call is refused, uncharged.",
    ]
    return " ".join(part for part in parts if part)


def _freshness(seconds: int) -> str:
    if seconds == 0:
        return "Every answer is made when it is asked for."
    minutes = max(1, seconds // 60)
    return f"An answer may be up to {minutes} minute{'s' if minutes > 1 else ''} old."


def _plain_root(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema with nothing combined at its root.

    Model providers refuse a tool, and with it the whole request, whose schema has `allOf`, `anyOf` or `oneOf`
    there; `if` nothing `then` these says the same.
    """
    combined = {word: schema[word] for word in _COMBINING if word in schema}
    if not combined:
        return schema
    rest = {word: rule for word, rule in schema.items() if word not in combined}
    return {**rest, "if": {}, "then": combined}


def _result_schema(entry: Entry) -> dict[str, Any]:
    """JSON Schema of what a call gives: the whole envelope, or an error.

    Official clients hold errors against this schema too, and would not hand on the terms of a payment that it
    does not admit. What `data` defines inside is defined at the root.
    """
    data = {word: rule for word, rule in entry.output_schema.items() if word not in ("$schema", "$defs")}
    schema = success_schema(entry.slug, data, PROVIDER_SCHEMA)
    complete = {"description": "An answer.", "required": schema.pop("required")}
    failed = {"description": "isError: x402's PaymentRequired, or what went wrong.", "required": ["error"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "anyOf": [complete, failed],
        "$defs": entry.output_schema.get("$defs", {}),
    }
