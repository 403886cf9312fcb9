"""Shares of a pair's liquidity: burned, locked until a date, or free to be taken out. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from centgate.chains import is_burn_address
from centgate.crypto.token.lockers import Locker
from centgate.crypto.token.security import Holder, TokenLock

FEW_HANDS = 3
"""Hands that may belong to one person."""


class LiquidityLock(Struct, frozen=True):
    """Share of the liquidity that cannot be taken out before a date."""

    address: str
    """Holder of the shares: a locker, or a burn address. Lower case."""
    locker: str | None
    """Name of the locker; None for a burn address or an unknown one."""
    percent: float
    unlocks_at: datetime | None
    """None if it is burned, or if no source tells the date."""
    burned: bool = False


class LiquidityHand(Struct, frozen=True):
    """Share of the liquidity that one address can take out at any time: of an ended lock, or of none."""

    address: str
    percent: float
    contract: bool | None
    lock_ended_at: datetime | None = None
    """Time at which its lock ended; None if there was none."""


class LiquidityShares(Struct, frozen=True, dict=True):
    """Holders of a pair's liquidity, as far as they are listed. Percent of all shares."""

    locks: tuple[LiquidityLock, ...]
    hands: tuple[LiquidityHand, ...]
    """The largest first."""
    lists_hands: bool = True
    """False if only lockers and burn addresses were looked for."""
    doubtful_percent: float = 0
    """Percent in locks whose end cannot be read: neither locked nor free."""
    refuted_percent: float = 0
    """Percent that a source calls locked though it is in wallets: it is free."""

    @cached_property
    def locked_percent(self) -> float:
        return _sum_capped(lock.percent for lock in self.locks)

    @cached_property
    def undated_percent(self) -> float:
        """The locked share that is not burned, and of which no source tells until when it is locked."""
        return _sum_capped(lock.percent for lock in self.locks if not (lock.burned or lock.unlocks_at))

    @cached_property
    def unlocked_percent(self) -> float:
        return _sum_capped(hand.percent for hand in self.hands)

    @cached_property
    def listed_percent(self) -> float:
        """The share whose holders are listed."""
        return min(self.locked_percent + self.unlocked_percent + self.doubtful_percent, 100)

    @cached_property
    def few_hands_percent(self) -> float:
        """The largest hands together."""
        totals = sorted((*self._sum_by_address(contract=True), *self._sum_by_address(contract=False)))
        return _sum_capped(totals[-FEW_HANDS:])

    @cached_property
    def wallets_percent(self) -> float:
        """The share of all wallets, and of what may be one."""
        return _sum_capped(self._sum_by_address(contract=False))

    def largest_percent(self, *, contract: bool) -> float:
        """Return the largest hand's share among contracts, or among wallets and what may be one."""
        return max(self._sum_by_address(contract=contract), default=0)

    def _sum_by_address(self, *, contract: bool) -> Iterable[float]:
        """Return the shares of each address, which may be free of several locks."""
        totals: dict[str, float] = {}
        for hand in self.hands:
            if bool(hand.contract) == contract:
                totals[hand.address] = totals.get(hand.address, 0) + hand.percent
        return totals.values()

    def percent_of(self, addresses: Iterable[str | None]) -> float:
        """Return what these addresses together can take out."""
        own = {address for address in addresses if address}
        return _sum_capped(hand.percent for hand in self.hands if hand.address in own)

    def ending_percent(self, now: datetime, within: timedelta) -> float:
        """Return the locked share that is free again within this time."""
        return _sum_capped(
            lock.percent for lock in self.locks if lock.unlocks_at and lock.unlocks_at <= now + within
        )


def split_liquidity(
    holders: Sequence[Holder] | None, now: datetime, *, lockers: Mapping[str, Locker]
) -> LiquidityShares | None:
    """Return who holds the liquidity; None if no share is readable.

    A lock that has ended is no lock, and where locks are listed, what they do not cover is free. A verified
    locker's shares are locked even if the source does not say, a wallet's without a listed lock are not.
    """
    rows = [row for row in holders or () if row.percent is not None]
    if not rows:
        return None
    parts = [part for row in rows for part in _split_holder(row, now, lockers.get(row.address))]
    hands = [part for part in parts if isinstance(part, LiquidityHand)]
    return LiquidityShares(
        tuple(part for part in parts if isinstance(part, LiquidityLock)),
        tuple(sorted(hands, key=lambda hand: -hand.percent)),
        doubtful_percent=_sum_capped(part.percent for part in parts if isinstance(part, _DoubtfulShare)),
        refuted_percent=_sum_capped(
            row.percent or 0 for row in rows if is_lock_refuted(row, lockers.get(row.address))
        ),
    )


def is_lock_refuted(holder: Holder, locker: Locker | None) -> bool:
    """True if a wallet is called locked and no lock is listed: only code can keep its holding there."""
    is_claimed = holder.locked is True and not holder.locks
    return is_claimed and holder.contract is False and locker is None and not is_burn_address(holder.address)


def free_percent(holder: Holder, now: datetime) -> float | None:
    """Return the percentage that a holder can move now: what no lock in force holds; None if unreadable.

    A locker without listed locks has locked all. Locks whose end is unreadable count as in force.
    """
    if not holder.locked or holder.percent is None:
        return holder.percent
    if not holder.locks:
        return 0.0
    in_force = sum(lock.percent for lock in holder.locks if not lock.has_ended(now))
    return max(round(holder.percent - in_force, 6), 0.0)


class _DoubtfulShare(Struct, frozen=True):
    """Share of the liquidity in a lock whose end cannot be read."""

    percent: float


def _split_holder(
    holder: Holder, now: datetime, locker: Locker | None
) -> Iterator[LiquidityLock | LiquidityHand | _DoubtfulShare]:
    address, percent = holder.address, holder.percent or 0.0
    if is_burn_address(address):
        yield LiquidityLock(address, None, percent, None, burned=True)
        return
    is_known_locker = locker is not None and locker.is_verified and holder.locked is None
    if not (holder.locked or is_known_locker) or is_lock_refuted(holder, locker):
        yield LiquidityHand(address, percent, holder.contract)
        return
    name = locker.name if locker else holder.tag
    if not holder.locks:
        yield LiquidityLock(address, name, percent, None)
        return
    locks = _fit_locks(holder.locks, percent, now)
    for lock in locks:
        if lock.end_unreadable:
            yield _DoubtfulShare(lock.percent)
        elif lock.has_ended(now):
            yield LiquidityHand(address, lock.percent, holder.contract, lock.unlocks_at)
        else:
            yield LiquidityLock(address, name, lock.percent, lock.unlocks_at)
    rest = round(percent - sum(lock.percent for lock in locks), 6)
    if rest > 0:
        yield LiquidityHand(address, rest, holder.contract)


def _fit_locks(locks: Sequence[TokenLock], percent: float, now: datetime) -> list[TokenLock]:
    """Return the locks with no more than their holder has; what is missing was withdrawn from ended ones."""
    fitted: list[TokenLock] = []
    for has_ended in (False, True):
        group = [lock for lock in locks if lock.has_ended(now) is has_ended]
        left = max(percent - sum(lock.percent for lock in fitted), 0.0)
        scale = min(left / (sum(lock.percent for lock in group) or 1.0), 1.0)
        fitted += [replace(lock, percent=round(lock.percent * scale, 6)) for lock in group]
    return [lock for lock in fitted if lock.percent > 0]


def _sum_capped(shares: Iterable[float]) -> float:
    return round(min(sum(shares), 100), 4)
