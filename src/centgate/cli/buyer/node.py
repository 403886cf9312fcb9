"""JSON-RPC requests to the wallet owner's Ethereum node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import anyio
import httpx2

from centgate import jsonrpc
from centgate.client.errors import Drift, Unreachable
from centgate.client.transport import Transport, TransportError

MAX_WORD_LENGTH = 66
"""Characters of a 32-byte word in hex."""
NODE_TIMEOUT = 10.0
"""Total timeout of one request."""

T = TypeVar("T")


class Node:
    """Client of the wallet owner's Ethereum node."""

    def __init__(self, rpc: str) -> None:
        self.rpc = rpc
        self._transport = Transport(connect_timeout=NODE_TIMEOUT)

    async def call(self, method: str, params: list[Any]) -> Any:
        """Send a JSON-RPC call and return its result."""
        body = jsonrpc.encode_request(method, params)
        try:
            response = await self._transport.send(self.rpc, body, timeout=NODE_TIMEOUT)
        except TransportError as error:
            raise Unreachable(f"the node {self.rpc} {error}") from error
        if response.status != 200:
            raise Drift(f"{self.rpc} returned {response.status}. Is this the URL of an Ethereum node?")
        return jsonrpc.decode_result(response.body)

    async def read_network(self) -> str:
        """Return the node's network (CAIP-2)."""
        return f"eip155:{parse_number(await self.call('eth_chainId', []))}"

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


def query_node(rpc: str, operation: Callable[[Node], Awaitable[T]]) -> T:
    """Run an operation of requests to a node and return its result.

    Raises Unreachable if the node does not respond, Drift if its response is not that of a node.
    """
    try:
        return anyio.run(_query, rpc, operation)
    except httpx2.InvalidURL as error:
        raise Unreachable(f"the node URL {rpc} is invalid: {error}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise Drift(f"{rpc} does not respond like an Ethereum node") from error


def parse_number(word: str) -> int:
    """Parse a number of at most 256 bits in hex. Raises ValueError."""
    if len(word) > MAX_WORD_LENGTH:
        raise ValueError("the number has more than 256 bits")
    return int(word, 16)


async def _query(rpc: str, operation: Callable[[Node], Awaitable[T]]) -> T:
    async with aclosing(Node(rpc)) as node:
        return await operation(node)
