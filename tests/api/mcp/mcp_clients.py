"""MCP helpers: the official client in each protocol version, and raw messages."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import httpx
from buyer import Buyer, encode_header
from mcp import Client
from mcp_types import CallToolResult

MODES = {"2026-07-28": "auto", "2025-11-25": "legacy"}
"""The two supported protocol versions, each with the client mode that selects it."""
PAYMENT, RECEIPT = "x402/payment", "x402/payment-response"
TOKEN = "0x" + "a1" * 20
POOL, PAIR = "pool-snapshot", {"chain": "base", "tokenAddress": TOKEN}
"""A request for which the API of the fixture `no_data_client` has no data."""
ConnectClient = Callable[[httpx.Client], Client]
Payload = dict[str, Any]


def payload_of(result: CallToolResult, buyer: Buyer, **changes: Any) -> Payload:
    """Build a payment for the terms of an unpaid call; `changes` as in `Buyer.payload`."""
    return buyer.payload(encode_header(result.structured_content), now=int(time.time()), **changes)


async def call_with_payment(
    client: Client, slug: str, arguments: dict[str, Any], payment: Any
) -> CallToolResult:
    """Call a tool with a payment."""
    return await client.call_tool(slug, arguments, meta={PAYMENT: payment})  # pyright: ignore[reportArgumentType]


def result_text(result: CallToolResult) -> str:
    """Return the text of a result."""
    (block,) = result.content
    assert block.type == "text"
    return block.text


def result_meta(result: CallToolResult) -> dict[str, Any]:
    """Return the `_meta` of a result."""
    assert result.meta is not None
    return dict(result.meta)


def structured_content(result: CallToolResult) -> dict[str, Any]:
    """Return the structured content of a result."""
    content: dict[str, Any] | None = result.structured_content
    assert content is not None
    return content


def build_request(method: str, *, version: str = "2026-07-28", **params: Any) -> dict[str, Any]:
    """Build a complete request of a protocol version."""
    envelope: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": envelope}}


def post_message(client: httpx.Client, message: Any, **headers: str) -> httpx.Response:
    """Post a raw message: objects as JSON, strings unchanged."""
    content = message if isinstance(message, str) else json.dumps(message)
    usual = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post("/mcp", content=content, headers=usual | named)
