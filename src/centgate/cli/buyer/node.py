"""JSON-RPC requests to the wallet owner's Ethereum node."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

import httpx2

from centgate import jsonrpc
from centgate.client.errors import Drift, Unreachable
from centgate.client.event_loop import EventLoopThread
from centgate.client.transport import Broken, Send, Way, ask, create_http_client

MAX_WORD_LENGTH = 66
"""Characters of a 32-byte word in hex."""
NODE_TIMEOUT = 10.0
"""Total timeout of one request."""

T = TypeVar("T")


def run_node_operation(rpc: str, way: Way[T]) -> T:
    """Run an operation of requests to a node and return its result.

    Raises Unreachable if the node does not respond, Drift if its response is not that of a node.
    """
    loop = EventLoopThread(partial(create_http_client, "", "none", None))
    try:
        return loop.go(way)
    except httpx2.InvalidURL as error:
        raise Unreachable(f"the node URL {rpc} is invalid: {error}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise Drift(f"{rpc} does not respond like an Ethereum node") from error
    finally:
        loop.close()


def call_node(rpc: str, method: str, params: list[Any]) -> Way[Any]:
    """Send a JSON-RPC call and return its result."""
    body = jsonrpc.encode_request(method, params)
    reply = yield from ask(
        Send("POST", rpc, body, {"Content-Type": "application/json"}, NODE_TIMEOUT, NODE_TIMEOUT)
    )
    if isinstance(reply, Broken):
        raise Unreachable(f"the node {rpc} {reply.sentence}")
    if reply.status != 200:
        raise Drift(f"{rpc} returned {reply.status}. Is this the URL of an Ethereum node?")
    return jsonrpc.decode_result(reply.body)


def parse_number(word: str) -> int:
    """Parse a number of at most 256 bits in hex. Raises ValueError."""
    if len(word) > MAX_WORD_LENGTH:
        raise ValueError("the number has more than 256 bits")
    return int(word, 16)


def read_network(rpc: str) -> Way[str]:
    """Return the node's network (CAIP-2)."""
    return f"eip155:{parse_number((yield from call_node(rpc, 'eth_chainId', [])))}"
