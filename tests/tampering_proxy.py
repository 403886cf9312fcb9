"""Proxy in front of a real node: forwards requests, or returns other responses instead."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any, cast

from fake_upstreams import FakeUpstreams, RecordedRequest

Interceptor = Callable[[dict[str, Any]], tuple[int, Any] | None]
"""Returns a response instead of the node's; None forwards the request."""


def forward_to_node(url: str, body: Any) -> Any:
    """Return the real node's response."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as response:
        return json.load(response)


def start_proxy(
    upstreams: FakeUpstreams, name: str, url: str, change: Interceptor = lambda _request: None
) -> str:
    """Start a proxy that forwards each request to a real node unless `change` answers it; return its URL."""

    def answer(request: RecordedRequest) -> tuple[int, Any]:
        requests = cast(list[Any], request.body if isinstance(request.body, list) else [request.body])
        changed = next((said for each in requests if (said := change(each))), None)
        return changed or (200, forward_to_node(url, cast(Any, request.body)))

    upstreams.set_response_function(name, "/", answer, method="POST")
    return upstreams.url_of(name)


def rpc_error(code: int, message: str, **more: Any) -> dict[str, Any]:
    """Return a JSON-RPC error."""
    return {"jsonrpc": "2.0", "id": 0, "error": {"code": code, "message": message, **more}}


def block_span(request: dict[str, Any]) -> int:
    """Return the number of blocks in a request for logs."""
    query = request["params"][0]
    return int(query["toBlock"], 16) - int(query["fromBlock"], 16) + 1


def limit_log_range(to: int, message: str, code: int = -32000, status: int = 200, **more: Any) -> Interceptor:
    """Return a change that refuses log requests for too many blocks."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_getLogs" and block_span(request) > to:
            return status, rpc_error(code, message, **more)
        return None

    return change
