"""What a wallet holds, asked of an Ethereum node."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from centgate.client.errors import Drift
from centgate.client.exchange import Way
from centgate.client.shell.node import call_node, parse_number, read_network, run_at_node
from centgate.dollars import USDC, Asset

BALANCE_OF = "0x70a08231"
"""The first four bytes of `balanceOf(address)`, as ERC-20 has it."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Dollars of a wallet on a network."""

    network: str
    usd: Decimal


def read_balance(rpc: str, address: str) -> Balance:
    """The USDC of an address on the node's own network.

    Raises Unreachable when the node does not answer, Drift when it is none or on a network without USDC.
    """
    return run_at_node(rpc, _read(rpc, address))


def _read(rpc: str, address: str) -> Way[Balance]:
    network = yield from read_network(rpc)
    token = _token(network)
    call = {"to": token.address, "data": BALANCE_OF + address[2:].lower().rjust(64, "0")}
    held = parse_number((yield from call_node(rpc, "eth_call", [call, "latest"])))
    return Balance(network, Decimal(held) / 10**token.decimals)


def _token(network: str) -> Asset:
    if network not in USDC:
        raise Drift(f"the node is on {network}, where this client knows no USDC: it knows {', '.join(USDC)}")
    return USDC[network]
