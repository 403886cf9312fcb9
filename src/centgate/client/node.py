"""Questions to the wallet owner's own Ethereum node: the balance, and whether a payment was used."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from centgate import jsonrpc
from centgate.client.base_url import show_origin
from centgate.client.errors import Drift, Unreachable
from centgate.client.ledger import Ledger, LedgerRecord, LockedLedger
from centgate.client.payment import Payment
from centgate.client.transport import Transport, TransportError
from centgate.signing.assets import USDC, Asset
from centgate.signing.evm import encode_word

MAX_WORD_LENGTH = 66
"""Characters of a 32-byte word in hex."""
NODE_TIMEOUT = 10.0
"""Total timeout of one request."""
BALANCE_OF_SELECTOR = "0x70a08231"
"""Selector of ERC-20's `balanceOf(address)`."""
AUTHORIZATION_STATE_SELECTOR = "0xe94a0102"
"""Selector of EIP-3009's `authorizationState(address,bytes32)`."""
EXPIRY_MARGIN = 600
"""Seconds to wait after the end of a window, by the local clock and the chain's, since clocks differ."""

_INVALID_URL = "the node's URL is invalid; a valid one is https://node.example/path"


@dataclass(frozen=True, slots=True)
class Balance:
    """Dollar tokens of a wallet, as a node shows it at its latest block."""

    usd: Decimal
    network: str
    """CAIP-2."""
    address: str
    asset: str
    """Address of the token."""


@dataclass(frozen=True, slots=True)
class NonceStates:
    """Expired payments by the state of their nonces on a node: unused or used."""

    unused: tuple[Payment, ...] = ()
    used: tuple[Payment, ...] = ()


class Node:
    """Client of the wallet owner's Ethereum node."""

    def __init__(self, rpc: str) -> None:
        self.rpc = rpc
        self.name = f"the node {show_origin(rpc)}".rstrip()
        """Name for messages: the rest of its URL may hold a key."""
        self._transport = Transport(connect_timeout=NODE_TIMEOUT)

    async def call(self, method: str, params: list[Any]) -> Any:
        """Send a JSON-RPC call and return its result."""
        body = jsonrpc.encode_request(method, params)
        try:
            response = await self._transport.send(self.rpc, body, timeout=NODE_TIMEOUT)
        except TransportError as error:
            raise Unreachable(f"{self.name} {error}") from error
        if response.status != 200:
            raise Drift(f"{self.name} returned {response.status}. Is this the URL of an Ethereum node?")
        return jsonrpc.decode_result(response.body)

    async def read_network(self) -> str:
        """Return the node's network (CAIP-2)."""
        return f"eip155:{parse_number(await self.call('eth_chainId', []))}"

    async def read_balance(self, address: str, assets: Mapping[str, Asset]) -> Balance:
        """Return what an address has of the USDC on the node's network, or of the token in `assets` there."""
        network = await self.read_network()
        token = assets.get(network) or _usdc_of(network)
        call = {"to": token.address, "data": BALANCE_OF_SELECTOR + encode_word(address)}
        base_units = parse_number(await self.call("eth_call", [call, "latest"]))
        return Balance(Decimal(base_units) / 10**token.decimals, network, address, token.address)

    async def read_nonces(self, payments: Sequence[Payment]) -> NonceStates:
        """Return which payments were used, at the node's safe block, which no reorganisation replaces.

        Payments of other networks, and those whose window that block has not reached, are in neither part.
        """
        network = await self.read_network()
        block: Any = await self.call("eth_getBlockByNumber", ["safe", False])
        number, timestamp = str(block["number"]), parse_number(block["timestamp"])
        unused: list[Payment] = []
        used: list[Payment] = []
        for payment in payments:
            if payment.network == network and timestamp >= payment.valid_before + EXPIRY_MARGIN:
                (used if await self._is_used(payment, number) else unused).append(payment)
        return NonceStates(tuple(unused), tuple(used))

    async def _is_used(self, payment: Payment, block: str) -> bool:
        data = AUTHORIZATION_STATE_SELECTOR + encode_word(payment.payer) + encode_word(payment.nonce)
        state = str(await self.call("eth_call", [{"to": payment.asset, "data": data}, block]))
        if parse_number(state) not in (0, 1) or len(state) != len("0x") + 64:
            raise Drift(f"{self.name} returned no valid state of the nonce {payment.nonce}")
        return bool(parse_number(state))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


@asynccontextmanager
async def open_node(rpc: str) -> AsyncGenerator[Node]:
    """Open a client of a node.

    Raises Unreachable if the node does not respond, Drift if its response is not that of a node.
    """
    from httpx2 import InvalidURL  # as slow to import as everything else together

    if not show_origin(rpc):
        raise Unreachable(_INVALID_URL)
    node = Node(rpc)
    try:
        yield node
    except InvalidURL:
        # its message may repeat a part of the URL
        raise Unreachable(_INVALID_URL) from None
    except (ValueError, TypeError, KeyError) as error:
        raise Drift(f"{node.name} does not respond like an Ethereum node") from error
    finally:
        await node.aclose()


async def release_unused_payments(ledger: Ledger, payer: str, rpc: str) -> NonceStates:
    """Ask a node about expired payments, and stop counting those whose nonces it shows unused.

    Only this returns an amount to a cap: what an API says of a payment does not.
    """
    with await ledger.async_entry() as entry:
        expired = _find_expired(entry, payer)
    async with open_node(rpc) as node:
        states = await node.read_nonces(expired)
    with await ledger.async_entry() as entry:
        for payment in states.unused:
            why = "its window has ended, and the wallet owner's node shows its nonce unused in a safe block"
            entry.write_record("unused", payment, "not_moved", why=why)
    return states


def _find_expired(entry: LockedLedger, payer: str) -> list[Payment]:
    """Return the payments that count although they have expired, unless a receipt says that they moved."""
    counted = entry.counted_nonces(payer)
    latest_end = time.time() - EXPIRY_MARGIN
    return [
        each.payment
        for each in latest_records(entry.records())
        if each.payment.nonce in counted and each.money != "moved" and each.payment.valid_before < latest_end
    ]


def latest_records(records: Sequence[LedgerRecord]) -> list[LedgerRecord]:
    """Return the latest record of each payment, in signing order."""
    return list({record.payment.nonce: record for record in records}.values())


def parse_number(word: str) -> int:
    """Parse a number of at most 256 bits in hex. Raises ValueError."""
    if len(word) > MAX_WORD_LENGTH:
        raise ValueError("the number has more than 256 bits")
    return int(word, 16)


def _usdc_of(network: str) -> Asset:
    if network not in USDC:
        raise Drift(
            f"the node is on {network}, for which this client has no USDC; supported: {', '.join(USDC)}, "
            "and those of CENTGATE_ALLOWED_ASSETS"
        )
    return USDC[network]
