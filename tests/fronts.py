"""What stands between us and a real node: it passes requests on, or says something else in their place."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any, cast

from standins import Asked, StandIns

Change = Callable[[dict[str, Any]], tuple[int, Any] | None]
"""What a stand-in says to a request in the node's place; None lets the node answer."""


def forward(url: str, body: Any) -> Any:
    """The real node's answer."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as response:
        return json.load(response)


def in_front(upstreams: StandIns, name: str, url: str, change: Change = lambda _request: None) -> str:
    """A stand-in that passes each request on to a real node, except what `change` answers. Its address."""

    def answer(asked: Asked) -> tuple[int, Any]:
        requests = cast(list[Any], asked.body if isinstance(asked.body, list) else [asked.body])
        changed = next((said for each in requests if (said := change(each))), None)
        return changed or (200, forward(url, cast(Any, asked.body)))

    upstreams.answers(name, "/", answer, method="POST")
    return upstreams.at(name)


def refusal(code: int, message: str, **more: Any) -> dict[str, Any]:
    """An error as nodes put it."""
    return {"jsonrpc": "2.0", "id": 0, "error": {"code": code, "message": message, **more}}


def span_of(request: dict[str, Any]) -> int:
    """The blocks that a request for logs asks for."""
    query = request["params"][0]
    return int(query["toBlock"], 16) - int(query["fromBlock"], 16) + 1


def limited(to: int, message: str, code: int = -32000, status: int = 200, **more: Any) -> Change:
    """Refuses the logs of more than so many blocks."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_getLogs" and span_of(request) > to:
            return status, refusal(code, message, **more)
        return None

    return change
