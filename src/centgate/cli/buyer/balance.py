"""USDC balance of a wallet, read from an Ethereum node."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from centgate.cli.buyer.node import call_node, parse_number, read_network, run_node_operation
from centgate.client.errors import Drift
from centgate.client.transport import Way
from centgate.signing.assets import USDC, Asset
from centgate.signing.evm import encode_word

BALANCE_OF_SELECTOR = "0x70a08231"
"""Selector of ERC-20's `balanceOf(address)`."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Balance of a wallet on a network, in US dollars."""

    network: str
    usd: Decimal


def read_balance(rpc: str, address: str) -> Balance:
    """Read the USDC balance of an address on the node's network.

    Raises Unreachable if the node does not respond, Drift if it is not a node or its network has no USDC.
    """
    return run_node_operation(rpc, _query_balance(rpc, address))


def _query_balance(rpc: str, address: str) -> Way[Balance]:
    network = yield from read_network(rpc)
    token = _usdc_of(network)
    call = {"to": token.address, "data": BALANCE_OF_SELECTOR + encode_word(address)}
    base_units = parse_number((yield from call_node(rpc, "eth_call", [call, "latest"])))
    return Balance(network, Decimal(base_units) / 10**token.decimals)


def _usdc_of(network: str) -> Asset:
    if network not in USDC:
        raise Drift(
            f"the node is on {network}, for which this client has no USDC; supported: {', '.join(USDC)}"
        )
    return USDC[network]
