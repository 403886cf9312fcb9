"""What a wallet holds, asked of an Ethereum node."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import httpx2
import orjson

from centgate.client.errors import Drift, Unreachable
from centgate.client.event_loop import EventLoopThread
from centgate.client.exchange import Broken, Send, Way, ask, async_http
from centgate.dollars import USDC, Asset

BALANCE_OF = "0x70a08231"
"""The first four bytes of `balanceOf(address)`, as ERC-20 has it."""
LONGEST = 66
"""Characters of a word of 32 bytes in hex."""
SECONDS = 10.0
"""For one request, all of it."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Dollars of a wallet on a network."""

    network: str
    usd: Decimal


def read_balance(rpc: str, address: str) -> Balance:
    """The USDC of an address on the node's own network.

    Raises Unreachable when the node does not answer, Drift when it is none or on a network without USDC.
    """
    loop = EventLoopThread(partial(async_http, "", "none", None))
    try:
        return loop.go(_read(rpc, address))
    except httpx2.InvalidURL as error:
        raise Unreachable(f"the node {rpc} cannot be asked: {error}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise Drift(f"{rpc} does not answer as an Ethereum node does") from error
    finally:
        loop.close()


def _read(rpc: str, address: str) -> Way[Balance]:
    network = f"eip155:{int((yield from _asked(rpc, 'eth_chainId', [])), 16)}"
    token = _token(network)
    call = {"to": token.address, "data": BALANCE_OF + address[2:].lower().rjust(64, "0")}
    held = int((yield from _asked(rpc, "eth_call", [call, "latest"])), 16)
    return Balance(network, Decimal(held) / 10**token.decimals)


def _token(network: str) -> Asset:
    if network not in USDC:
        raise Drift(f"the node is on {network}, where this client knows no USDC: it knows {', '.join(USDC)}")
    return USDC[network]


def _asked(rpc: str, method: str, params: list[Any]) -> Way[str]:
    """The result of a JSON-RPC call, a string of hex."""
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    came = yield from ask(Send("POST", rpc, body, {"Content-Type": "application/json"}, SECONDS, SECONDS))
    if isinstance(came, Broken):
        raise Unreachable(f"the node {rpc} {came.sentence}")
    if came.status != 200:
        raise Drift(f"{rpc} answers {came.status}: is an Ethereum node there?")
    result = orjson.loads(came.body)["result"]
    if len(result) > LONGEST:
        raise ValueError("no number of 256 bits")
    return result
