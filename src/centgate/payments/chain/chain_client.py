"""Client of a payment network: asks several nodes, and returns what as many as the quorum agree on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

import aiohttp
from cachetools import TTLCache

from centgate.payments.chain import onchain_status, transfer_events
from centgate.payments.chain.nodes import NodeSet, select_nodes
from centgate.payments.chain.onchain_status import (
    OnchainPayment,
    OnchainStatus,
    PaymentQuery,
    TransactionStatus,
)
from centgate.payments.chain.payment_node import ChainUnreachable, PaymentNode
from centgate.payments.chain.quorum import Quorum, query_node
from centgate.payments.chain.transfer_events import AuthorizedTransfer
from centgate.payments.payment_key import PaymentKey
from centgate.settings import Settings
from centgate.signing.assets import parse_chain_id

TIMEOUT = 5.0
"""Total time limit for the nodes in seconds while a buyer waits."""
BACKGROUND_TIMEOUT = 60.0
"""Total time limit in seconds for background work: an old payment may take many calls."""
BLOCK_REFRESH = 0.25
"""Seconds for which a block number counts as the newest: how long before its claim a transfer may be."""
BLOCK_WAIT = 1.0
"""Maximum seconds that a payment waits for the newest block number."""
BLOCK_RETRY = 5.0
"""Seconds to the next read after one that a node did not answer, so that few payments wait for it."""
MAX_BLOCK = 2**53
"""Block numbers from this value on are rejected as invalid."""
BLOCK_MAX_AGE = 600.0
"""Maximum age in seconds of a block number that cannot be refreshed."""
CODE_TTL = 4 * 3600
NO_CODE_TTL = 60
"""Cache TTLs in seconds for code, and for no code, at an address: a wallet may be deployed at any time."""
CODE_CACHE_SIZE = 10_000


class ChainClients:
    """Chain clients by network, created on first use."""

    def __init__(self, session: aiohttp.ClientSession, settings: Settings) -> None:
        self._session = session
        self._settings = settings
        self._chains: dict[str, ChainClient | None] = {}

    def for_network(self, network: str) -> ChainClient | None:
        """Return the client of a network (CAIP-2), None if there is no node for it."""
        if network not in self._chains:
            nodes = select_nodes(self._settings, network)
            self._chains[network] = ChainClient(self._session, nodes) if nodes.urls else None
        return self._chains[network]


class ChainClient:
    """Client of one network over several nodes; as many nodes as the quorum must agree."""

    def __init__(self, session: aiohttp.ClientSession, nodes: NodeSet) -> None:
        chain_id = parse_chain_id(nodes.network)
        self._quorum = Quorum([PaymentNode(session, url, chain_id) for url in nodes.urls], nodes.quorum)
        self.is_public = nodes.origin == "public"
        self._code = TTLCache[str, bool](CODE_CACHE_SIZE, CODE_TTL)
        self._no_code = TTLCache[str, bool](CODE_CACHE_SIZE, NO_CODE_TTL)
        self._block: int | None = None
        self._block_at = self._refreshed_at = -BLOCK_MAX_AGE
        """Monotonic times at which the read of the known block number, and the last read, began."""
        self._answered: asyncio.Future[None] | None = None
        """Ends when the last read knows a number, or can know none."""
        self._reads: set[asyncio.Task[None]] = set()

    async def has_code(self, address: str) -> bool:
        """Return True if there is code at the address, its own or delegated. Raises ChainUnreachable."""
        if address in self._code:
            return True
        if address in self._no_code:
            return False
        has_code = await self._quorum.query(lambda node: node.has_code(address), TIMEOUT)
        (self._code if has_code else self._no_code)[address] = has_code
        return has_code

    async def accepts_signature(self, wallet: str, digest: bytes, signature: bytes) -> bool:
        """Return True if a contract says that a signature of a digest is its own (ERC-1271).

        Raises ChainUnreachable.
        """
        return await self._quorum.query(
            lambda node: node.accepts_signature(wallet, digest, signature), TIMEOUT
        )

    async def read_payment_status(self, query: PaymentQuery, *, max_wait: float = TIMEOUT) -> OnchainStatus:
        """Return the status of a payment.

        Raises ChainUnreachable, with `spent_unsafe` among its answers for each node on which the nonce is
        used for an unknown purpose.
        """
        used: list[OnchainStatus] = []
        try:
            return await self._quorum.query(
                lambda node: onchain_status.read_payment_status(node, query, used), max_wait
            )
        except ChainUnreachable as error:
            raise ChainUnreachable(str(error), (*error.answers, *used)) from error

    async def read_transaction_status(self, transaction: str, key: PaymentKey) -> TransactionStatus:
        """Return the status of a transaction of a payment by its hash. Raises ChainUnreachable."""
        return await self._quorum.query(
            lambda node: onchain_status.read_transaction_status(node, transaction, key), TIMEOUT
        )

    async def read_received_amount(
        self, transaction: str, asset: str, recipient: str
    ) -> int | Literal["reverted", "unknown"]:
        """Return the amount of a token that a transaction moved to an address; `unknown` without a receipt.

        Transfers from the address to itself do not count.

        Raises ChainUnreachable.
        """
        return await self._quorum.query(
            lambda node: transfer_events.read_received_amount(node, transaction, asset, recipient), TIMEOUT
        )

    async def find_payment(self, query: PaymentQuery, last: int) -> OnchainPayment | None:
        """Return the payment if it reached `pay_to` after the claim and up to a block, None if it did not.

        Raises ChainUnreachable.
        """
        return await self._quorum.query(
            lambda node: onchain_status.find_payment(node, query, last), BACKGROUND_TIMEOUT
        )

    async def find_transactions_to(
        self, asset: str, pay_to: str, first: int, last: int
    ) -> tuple[tuple[int, str], ...]:
        """Return block and hash of each transaction that moved a token to an address, in order.

        Raises ChainUnreachable.
        """
        return await self._quorum.query(
            lambda node: transfer_events.find_transactions_to(node, asset, pay_to, first, last),
            BACKGROUND_TIMEOUT,
        )

    async def read_authorized_transfers(self, transaction: str, asset: str) -> tuple[AuthorizedTransfer, ...]:
        """Return the transfers by authorization in a transaction. Raises ChainUnreachable."""
        return await self._quorum.query(
            lambda node: transfer_events.read_authorized_transfers(node, transaction, asset), TIMEOUT
        )

    async def read_safe_block(self) -> int:
        """Return the newest safe block number that a quorum of nodes has reached.

        Raises ChainUnreachable.
        """
        calls = (_read_number(PaymentNode.read_safe_block_number, node) for node in self._quorum.nodes)
        number = self._highest_reached(await asyncio.gather(*calls))
        if number is None:
            raise ChainUnreachable("too few nodes respond")
        return number

    async def find_first_block_since(self, earliest: float, latest: int) -> int:
        """Return the first block up to `latest` that is not older than a time, else the one after `latest`.

        Raises ChainUnreachable.
        """
        return await self._quorum.query(
            lambda node: node.find_first_block_since(earliest, latest), BACKGROUND_TIMEOUT
        )

    async def read_block_time(self, number: int) -> int:
        """Return the time of a block in seconds since 1970. Raises ChainUnreachable."""
        return await self._quorum.query(lambda node: node.read_block_time(number), TIMEOUT)

    async def read_decimals(self, token: str) -> int:
        """Return the decimals of a token. Raises ChainUnreachable."""
        return await self._quorum.query(lambda node: node.read_decimals(token), TIMEOUT)

    async def find_newest_block(self) -> int | None:
        """Return the newest known block number, None if unknown; it waits at most a second for the nodes."""
        now = time.monotonic()
        if now - self._block_at >= BLOCK_REFRESH:
            has_last = self._block_at == self._refreshed_at
            if self._answered is None or has_last or now - self._refreshed_at >= BLOCK_RETRY:
                self._answered = self._start_read(now)
            if not self._answered.done():
                seconds = max(0.0, BLOCK_WAIT - (now - self._refreshed_at))
                await asyncio.wait([self._answered], timeout=seconds)
        return self._block if time.monotonic() - self._block_at < BLOCK_MAX_AGE else None

    def _start_read(self, now: float) -> asyncio.Future[None]:
        """Start a read of the newest block number; return the future that ends when a quorum answered."""
        self._refreshed_at = now
        answered = asyncio.get_running_loop().create_future()
        read = asyncio.create_task(self._read_block(now, answered))
        self._reads.add(read)
        read.add_done_callback(self._reads.discard)
        read.add_done_callback(lambda _: answered.done() or answered.set_result(None))
        return answered

    async def _read_block(self, started_at: float, answered: asyncio.Future[None]) -> None:
        """Read the newest block number: the highest that a quorum of nodes has reached."""
        calls = [_read_number(PaymentNode.read_newest_block_number, node) for node in self._quorum.nodes]
        numbers: list[int | None] = []
        for answer in asyncio.as_completed(calls):
            numbers.append(await answer)
            # a node that hangs blocks nothing: a quorum of the others is enough
            number = self._highest_reached(numbers)
            if number is not None and started_at >= self._block_at:  # a later read may have ended before
                self._block, self._block_at = number, started_at
            if number is not None and not answered.done():
                answered.set_result(None)

    def _highest_reached(self, numbers: Iterable[int | None]) -> int | None:
        """Return the highest block that a quorum of nodes has reached, by the numbers that they gave."""
        valid = sorted((each for each in numbers if each is not None and 0 <= each < MAX_BLOCK), reverse=True)
        return valid[self._quorum.size - 1] if len(valid) >= self._quorum.size else None


async def _read_number(question: Callable[[PaymentNode], Awaitable[int]], node: PaymentNode) -> int | None:
    """Return the number that a node answers, None if it does not answer."""
    try:
        return await query_node(question, node)
    except ChainUnreachable:
        return None
