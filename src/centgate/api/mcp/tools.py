"""MCP tools built from catalogue entries, and an MCP server that serves them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
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

from centgate import __version__
from centgate.client.catalog import ServiceDetail
from centgate.envelope import PROVIDER_SCHEMA, success_schema
from centgate.json_schema import without_field_rules

Context = ServerRequestContext[Any, Any]
ToolLister = Callable[[Context, PaginatedRequestParams | None], Awaitable[ListToolsResult]]
ToolCaller = Callable[[Context, CallToolRequestParams], Awaitable[CallToolResult]]

RECEIPT_KEY = "x402/payment-response"
REQUEST_ID_KEY = "centgate/request-id"
REPLAYED_KEY = "centgate/replayed"
"""Keys in a result's `_meta`: x402's receipt, the request ID, and whether the answer is a replay."""
TOOL_LIST_CACHE = CacheHint(ttl_ms=60_000, scope="public")
"""Cache lifetime of the tool list: the same as the catalogue's `max-age` over HTTP."""
_COMBINATORS = ("allOf", "anyOf", "oneOf")


def create_server(
    *,
    instructions: str,
    on_list: ToolLister,
    on_call: ToolCaller,
    input_schema: Callable[[str], dict[str, Any] | None] | None = None,
) -> Server[Any]:
    """Create an MCP server that offers only tools, in every protocol version the SDK supports."""
    return Server(
        "centgate",
        version=__version__,
        title="Centgate",
        instructions=instructions,
        cache_hints={"tools/list": TOOL_LIST_CACHE, "server/discover": TOOL_LIST_CACHE},
        get_tool_input_schema=input_schema,
        on_list_tools=on_list,
        on_call_tool=on_call,
    )


def build_tool(entry: ServiceDetail) -> Tool:
    """Build the tool of a service; its name is the slug."""
    return Tool(
        name=entry.slug,
        title=entry.title,
        description=_tool_description(entry),
        input_schema=_flatten_root(without_field_rules(entry.input_schema)),
        output_schema=_result_schema(entry),
        annotations=ToolAnnotations(
            title=entry.title,
            read_only_hint=True,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=True,
        ),
    )


def build_tool_list(entries: Iterable[ServiceDetail]) -> ListToolsResult:
    """Build the result of `tools/list`, in catalogue order."""
    return ListToolsResult(tools=[build_tool(entry) for entry in entries])


def build_result(body: bytes, *, is_error: bool, meta: dict[str, Any]) -> CallToolResult:
    """Build a tool result from JSON, both as text and as structured content."""
    return CallToolResult(
        content=[TextContent(type="text", text=body.decode())],
        structured_content=orjson.loads(body),
        is_error=is_error,
        _meta=meta,
    )


def _tool_description(entry: ServiceDetail) -> str:
    """Return a tool's description for models: purpose, limits, price, cost of failure, age of answers."""
    parts = [
        entry.summary,
        entry.description if entry.description != entry.summary else "",
        *entry.guardrails,
        f"Price: {entry.price}. {entry.pricing_note}",
        _describe_freshness(entry.cache_seconds),
        ""
        if entry.available
        else "Its sources are not configured on this deployment: calls are refused and not charged.",
    ]
    return " ".join(part for part in parts if part)


def _describe_freshness(seconds: int) -> str:
    if seconds == 0:
        return "Answers are not cached."
    minutes = max(1, seconds // 60)
    return f"An answer may be up to {minutes} minute{'s' if minutes > 1 else ''} old."


def _flatten_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an equivalent schema without `allOf`, `anyOf` and `oneOf` at its root.

    Model providers refuse the whole request if a tool's schema has one of these there; `then` after an
    `if` that holds for every object means the same.
    """
    combined = {word: schema[word] for word in _COMBINATORS if word in schema}
    if not combined:
        return schema
    rest = {word: rule for word, rule in schema.items() if word not in combined}
    return {**rest, "if": {"type": "object"}, "then": combined}


def _result_schema(entry: ServiceDetail) -> dict[str, Any]:
    """Return the JSON Schema of a call's result: the whole envelope, or an error.

    Official clients validate errors against this schema too, and drop payment terms that it does not admit.
    The `$defs` of `data` are moved to the root.
    """
    data = {word: rule for word, rule in entry.output_schema.items() if word not in ("$schema", "$defs")}
    schema = success_schema(entry.slug, data, PROVIDER_SCHEMA)
    success = {"description": "An answer.", "required": schema.pop("required")}
    failure = {"description": "isError: x402's PaymentRequired, or the error.", "required": ["error"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "anyOf": [success, failure],
        "$defs": entry.output_schema.get("$defs", {}),
    }
