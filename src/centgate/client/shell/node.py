"""Questions to an Ethereum node of the wallet's owner, over JSON-RPC."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

import httpx2
import orjson

from centgate.client.errors import Drift, Unreachable
from centgate.client.event_loop import EventLoopThread
from centgate.client.exchange import Broken, Send, Way, ask, async_http

LONGEST = 66
"""Characters of a word of 32 bytes in hex."""
SECONDS = 10.0
"""For one request, all of it."""

T = TypeVar("T")


def run_at_node(rpc: str, way: Way[T]) -> T:
    """Carry out questions to a node, and return what they come to.

    Raises Unreachable when the node does not answer, Drift when it answers as no node does.
    """
    loop = EventLoopThread(partial(async_http, "", "none", None))
    try:
        return loop.go(way)
    except httpx2.InvalidURL as error:
        raise Unreachable(f"the node {rpc} cannot be asked: {error}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise Drift(f"{rpc} does not answer as an Ethereum node does") from error
    finally:
        loop.close()


def call_node(rpc: str, method: str, params: list[Any]) -> Way[Any]:
    """Send a JSON-RPC call, and return its result."""
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    came = yield from ask(Send("POST", rpc, body, {"Content-Type": "application/json"}, SECONDS, SECONDS))
    if isinstance(came, Broken):
        raise Unreachable(f"the node {rpc} {came.sentence}")
    if came.status != 200:
        raise Drift(f"{rpc} answers {came.status}: is an Ethereum node there?")
    return orjson.loads(came.body)["result"]


def parse_number(word: str) -> int:
    """Parse a number of at most 256 bits in hex; ValueError when it is none."""
    if len(word) > LONGEST:
        raise ValueError("no number of 256 bits")
    return int(word, 16)


def read_network(rpc: str) -> Way[str]:
    """Return the network (CAIP-2) that the node is on."""
    return f"eip155:{parse_number((yield from call_node(rpc, 'eth_chainId', [])))}"
