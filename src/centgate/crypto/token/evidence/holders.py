"""Evidence about the holders of a token: their shares of the supply, in percent. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from centgate.chains import is_burn_address
from centgate.crypto.token.evidence.ownership import OwnershipEvidence
from centgate.crypto.token.liquidity_shares import free_percent
from centgate.crypto.token.security import Holder, TokenFlags

_POOL_OR_EXCHANGE = re.compile(
    r"swap|pool|\b(lp|amm|cex|htx|okx|okex)\b|curve|balancer|aerodrome|velodrome|exchange|binance|coinbase"
    r"|kraken|kucoin|bybit|bitget|bitfinex|gate\.?io|huobi|mexc|crypto\.com|upbit|bithumb|bitstamp|gemini"
    r"|\b(un)?lock|\bvest"
)
"""Tags of holders that are not counted as potential sellers: pools, exchanges, lockers and vesting."""


class HolderEvidence(Struct, frozen=True, dict=True):
    """Evidence about the holders that the contract analysis lists."""

    now: datetime
    flags: TokenFlags
    """Of the contract analysis, completed by the bytecode."""
    pool_addresses: frozenset[str]
    """Pools by the exchange indexes and the chain."""
    ownership: OwnershipEvidence

    @cached_property
    def owner_percent(self) -> float | None:
        """The owner's share; None without an owner, for a burn address, or if only the chain shows it."""
        owner = self.ownership.address
        if not owner or is_burn_address(owner) or self.ownership.is_unlisted:
            return None
        return self.flags.owner_percent

    @cached_property
    def creator_percent(self) -> float | None:
        """The creator's share; None for a burn address."""
        creator = self.flags.creator_address
        return None if creator and is_burn_address(creator) else self.flags.creator_percent

    @cached_property
    def top_percent(self) -> float | None:
        """Share of the largest holders that are wallets and could sell; None if unreadable."""
        shares = self._list_free_shares(lambda each: not each.contract)
        return None if shares is None else round(min(sum(shares), 100), 4)

    @cached_property
    def largest_percent(self) -> float | None:
        """Share of the largest holder that could sell, contract or wallet; None if unreadable."""
        shares = self._list_free_shares(lambda _: True)
        return None if shares is None else max(shares, default=0)

    def _list_free_shares(self, counts: Callable[[Holder], bool]) -> list[float] | None:
        """Return what holders that could sell can move now, in percent of the supply; None if unreadable."""
        rows = [replace(row, percent=free_percent(row, self.now)) for row in self.flags.holders or ()]
        return _list_shares(rows, lambda each: counts(each) and not self._is_passive(each))

    def _is_passive(self, holder: Holder) -> bool:
        """True for pools, lockers, burn addresses and exchanges, which do not hold for themselves."""
        pools = {pool.pair for pool in self.flags.pools or ()}
        return (
            (holder.locked is True and not holder.percent)
            or is_burn_address(holder.address)
            or holder.address in self.pool_addresses
            or holder.address in pools
            or bool(holder.tag and _POOL_OR_EXCHANGE.search(holder.tag.lower()))
        )


def _list_shares(holders: Iterable[Holder], counts: Callable[[Holder], bool]) -> list[float] | None:
    """Return the shares in percent of the holders for which `counts` is true; None if they are unreadable.

    Several rows of one holder are one share.
    """
    rows = list(holders)
    matching = [row for row in rows if counts(row)]
    totals: dict[str, float] = {}
    for row in matching:
        if row.percent is not None:
            totals[row.address] = totals.get(row.address, 0) + row.percent
    shares = list(totals.values())
    is_unreadable = not shares and any(row.percent is None for row in matching)
    return None if is_unreadable or all(row.percent is None for row in rows) else shares
