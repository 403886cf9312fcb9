"""Reading of transfers by authorization (EIP-3009) to an address from a chain, at a pace that nodes bear."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from cachetools import TTLCache

from centgate.payments.audit_queries import Recipient
from centgate.payments.authorization import PaymentKey
from centgate.payments.onchain import SPAN, Chain, ChainUnreachable

T = TypeVar("T")

SHORTEST_SPAN = 125
"""Blocks down to which a span is halved that nodes do not answer for."""
PUBLIC_PAUSE = 1.0
"""Seconds between two spans where public nodes are asked."""
OWN_PAUSE = 0.02
RECEIPTS_AT_ONCE = 4
TRIES = 3
REMEMBER_SECONDS = 26 * 3600
REMEMBERED_SPANS = 4096


@dataclass(frozen=True, slots=True)
class FoundTransfer:
    """A transfer by authorization to one of our addresses."""

    key: PaymentKey
    amount: int
    transaction: str
    block: int


class TransferReader:
    """Reads transfers span by span; whole spans that cannot change any more are read once."""

    def __init__(self, span: int = SPAN) -> None:
        self.span = span
        self._known = TTLCache[tuple[Recipient, int], list[FoundTransfer]](REMEMBERED_SPANS, REMEMBER_SECONDS)

    async def read(
        self, chain: Chain, recipient: Recipient, first: int, last: int, *, final: int
    ) -> list[FoundTransfer]:
        """Return the transfers to a recipient in blocks of one span, oldest first.

        Blocks up to `final` do not change any more. Raises ChainUnreachable.
        """
        start = first - first % self.span
        end = start + self.span - 1
        if end > final:
            return await self._read(chain, recipient, first, last)
        if (recipient, start) not in self._known:
            self._known[recipient, start] = await self._read(chain, recipient, start, end)
        return [each for each in self._known[recipient, start] if first <= each.block <= last]

    async def _read(self, chain: Chain, recipient: Recipient, first: int, last: int) -> list[FoundTransfer]:
        transactions = await self._transactions(chain, recipient, first, last)
        transfers: list[FoundTransfer] = []
        for start in range(0, len(transactions), RECEIPTS_AT_ONCE):
            some = transactions[start : start + RECEIPTS_AT_ONCE]
            read = await asyncio.gather(*(_read_transaction(chain, recipient, *each) for each in some))
            transfers += [each for one in read for each in one]
            await asyncio.sleep(pause(chain) / RECEIPTS_AT_ONCE)
        return transfers

    async def _transactions(
        self, chain: Chain, recipient: Recipient, first: int, last: int
    ) -> list[tuple[int, str]]:
        """Return the transactions that moved money to a recipient; a node may refuse so many blocks."""
        await asyncio.sleep(pause(chain))
        try:
            return list(await chain.transactions_to(recipient.asset, recipient.pay_to, first, last))
        except ChainUnreachable:
            if last - first < SHORTEST_SPAN:
                raise
        middle = (first + last) // 2
        earlier = await self._transactions(chain, recipient, first, middle)
        return earlier + await self._transactions(chain, recipient, middle + 1, last)


def pause(chain: Chain) -> float:
    """Return the seconds between two questions."""
    return PUBLIC_PAUSE if chain.is_public else OWN_PAUSE


async def retried(chain: Chain, question: Callable[[], Awaitable[T]]) -> T:
    """Ask a few times, since nodes refuse what comes too fast. Raises ChainUnreachable."""
    for tried in range(1, TRIES):
        try:
            return await question()
        except ChainUnreachable:
            await asyncio.sleep(tried * 2 * pause(chain))
    return await question()


async def _read_transaction(
    chain: Chain, recipient: Recipient, block: int, transaction: str
) -> list[FoundTransfer]:
    found = await retried(chain, partial(chain.authorized_transfers, transaction, recipient.asset))
    return [
        FoundTransfer(
            PaymentKey(recipient.network, recipient.asset, each.payer, each.nonce),
            each.amount,
            transaction,
            block,
        )
        for each in found
        if each.pay_to == recipient.pay_to
    ]
