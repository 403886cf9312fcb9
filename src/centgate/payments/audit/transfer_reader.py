"""Reader of transfers by authorization (EIP-3009) to an address, at a rate that nodes accept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from cachetools import TTLCache
from msgspec import Struct

from centgate.payments.audit.audit_queries import Recipient
from centgate.payments.chain.chain_client import ChainClient
from centgate.payments.chain.payment_node import SPAN, ChainUnreachable
from centgate.payments.payment_key import PaymentKey

T = TypeVar("T")

SHORTEST_SPAN = 125
"""Minimum blocks of a span; longer ones that nodes refuse are halved."""
PUBLIC_PAUSE = 1.0
"""Seconds between two spans on public nodes."""
OWN_PAUSE = 0.02
CONCURRENT_RECEIPTS = 4
TRIES = 3
CACHE_TTL = 26 * 3600
CACHE_SIZE = 4096


class FoundTransfer(Struct, frozen=True):
    """A transfer by authorization to the seller's address."""

    key: PaymentKey
    amount: int
    transaction: str
    block: int


class TransferReader:
    """Reads transfers span by span; complete, final spans are cached."""

    def __init__(self, span: int = SPAN) -> None:
        self.span = span
        self._cache = TTLCache[tuple[Recipient, int], list[FoundTransfer]](CACHE_SIZE, CACHE_TTL)

    async def read_span(
        self, chain: ChainClient, recipient: Recipient, first: int, last: int, *, final: int
    ) -> list[FoundTransfer]:
        """Return the transfers to a recipient in blocks of one span, oldest first.

        Blocks up to `final` do not change any more. Raises ChainUnreachable.
        """
        span_start = first - first % self.span
        span_end = span_start + self.span - 1
        if span_end > final:
            return await self._read_span(chain, recipient, first, last)
        if (recipient, span_start) not in self._cache:
            self._cache[recipient, span_start] = await self._read_span(chain, recipient, span_start, span_end)
        return [each for each in self._cache[recipient, span_start] if first <= each.block <= last]

    async def _read_span(
        self, chain: ChainClient, recipient: Recipient, first: int, last: int
    ) -> list[FoundTransfer]:
        transactions = await self._find_transactions(chain, recipient, first, last)
        transfers: list[FoundTransfer] = []
        for start in range(0, len(transactions), CONCURRENT_RECEIPTS):
            batch = transactions[start : start + CONCURRENT_RECEIPTS]
            results = await asyncio.gather(*(_read_transaction(chain, recipient, *each) for each in batch))
            transfers += [each for transaction_transfers in results for each in transaction_transfers]
            await asyncio.sleep(pause_seconds(chain) / CONCURRENT_RECEIPTS)
        return transfers

    async def _find_transactions(
        self, chain: ChainClient, recipient: Recipient, first: int, last: int
    ) -> list[tuple[int, str]]:
        """Return the transactions that paid a recipient; halves the range if nodes refuse it."""
        await asyncio.sleep(pause_seconds(chain))
        try:
            return list(await chain.find_transactions_to(recipient.asset, recipient.pay_to, first, last))
        except ChainUnreachable:
            if last - first < SHORTEST_SPAN:
                raise
        middle = (first + last) // 2
        earlier = await self._find_transactions(chain, recipient, first, middle)
        return earlier + await self._find_transactions(chain, recipient, middle + 1, last)


def pause_seconds(chain: ChainClient) -> float:
    """Return the seconds between two calls."""
    return PUBLIC_PAUSE if chain.is_public else OWN_PAUSE


async def call_with_retry(chain: ChainClient, question: Callable[[], Awaitable[T]]) -> T:
    """Call with a few retries, since nodes have rate limits. Raises ChainUnreachable."""
    for attempt in range(1, TRIES):
        try:
            return await question()
        except ChainUnreachable:
            await asyncio.sleep(attempt * 2 * pause_seconds(chain))
    return await question()


async def _read_transaction(
    chain: ChainClient, recipient: Recipient, block: int, transaction: str
) -> list[FoundTransfer]:
    transfers = await call_with_retry(
        chain, partial(chain.read_authorized_transfers, transaction, recipient.asset)
    )
    return [
        FoundTransfer(
            PaymentKey(recipient.network, recipient.asset, each.payer, each.nonce),
            each.amount,
            transaction,
            block,
        )
        for each in transfers
        if each.pay_to == recipient.pay_to
    ]
