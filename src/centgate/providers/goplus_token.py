"""Parse GoPlus's token security API.

https://docs.gopluslabs.io/reference/response-details
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from msgspec.structs import replace

from centgate.coercion import (
    as_address,
    as_amount,
    as_clean_name,
    as_count,
    as_flag,
    as_list,
    as_number,
    as_pool_id,
    as_usd,
    from_unix_seconds,
    parse_iso_time,
)
from centgate.crypto.token.security import GOPLUS_FIELDS, DexPool, Holder, TokenFlags, TokenLock
from centgate.sanitize import clean_line

_NESTED_FLAGS = {"fake_token": "value", "is_in_cex": "listed"}
"""Flags that are objects; older answers have the value of this member in place of the object."""
_COUNT = "honeypot_with_same_creator"
"""The one flag that is a count in some answers."""
_MAX_HOLDERS, _MAX_POOLS, _MAX_LOCKS = 10, 100, 200
"""Rows read of a list of holders, as many as are documented, of a list of pairs, and of a holder's locks."""
_ROUNDING = 1e-6
"""A share that exceeds the whole by this little is the whole."""


def parse_token_security(row: dict[str, Any], *, partial: bool) -> TokenFlags:
    """Parse one token's object in `result`; `partial` says that the analysis is not finished."""
    raw = _scalars(row)
    fields = _FieldReader(row, raw)
    flags: dict[str, Any] = {ours: _read_flag(raw, theirs) for ours, theirs in GOPLUS_FIELDS.items()}
    return TokenFlags(
        **flags,
        buy_tax=fields.percent("buy_tax"),
        sell_tax=fields.percent("sell_tax"),
        transfer_tax=fields.percent("transfer_tax"),
        owner_address=fields.address("owner_address"),
        owner_percent=fields.percent("owner_percent"),
        creator_address=fields.address("creator_address") or None,
        creator_percent=fields.percent("creator_percent"),
        # a count of 0 means that the holders were not counted
        holder_count=as_count(raw.get("holder_count")) or None,
        holders=fields.holders("holders"),
        lp_holders=fields.holders("lp_holders"),
        pools=fields.pools("dex"),
        name=as_clean_name(raw.get("token_name")),
        symbol=as_clean_name(raw.get("token_symbol")),
        supply=as_amount(raw.get("total_supply")),
        note=_join_notes(raw.get("note"), raw.get("other_potential_risks")),
        raw=raw,
        unreadable=tuple(dict.fromkeys(fields.unreadable)),
        partial=partial,
    )


def _scalars(row: dict[str, Any]) -> dict[str, str]:
    """Return texts and numbers as text, also those one level down (`is_in_cex.listed`), without nulls."""
    values: dict[str, str] = {}
    for key, value in row.items():
        members = (
            cast(dict[str, Any], value) if isinstance(value, dict) else {_NESTED_FLAGS.get(key, ""): value}
        )
        for member, scalar in members.items():
            if isinstance(scalar, str | int | float):
                as_text = str(int(scalar)) if isinstance(scalar, bool) else str(scalar)
                values[f"{key}.{member}" if member else key] = clean_line(as_text, 200) or ""
    return values


def _join_notes(*notes: str | None) -> str | None:
    """Join the source's notes, without repetitions; None if there is none."""
    return " | ".join(dict.fromkeys(note for note in notes if note)) or None


def _read_flag(raw: Mapping[str, str], field: str) -> bool | None:
    if field == _COUNT:
        count = as_count(raw.get(field))
        return None if count is None else count > 0
    return as_flag(raw.get(field))


def _parse_share(value: Any) -> float | None:
    """Convert a fraction of 1 to percent; None if it is out of range."""
    figure = as_number(value)
    if figure is None or not -_ROUNDING <= figure <= 1 + _ROUNDING:
        return None
    return round(min(max(figure, 0.0), 1.0) * 100, 6)


class _FieldReader:
    """Reader of shares and addresses that collects the names of fields with impossible values."""

    def __init__(self, row: Mapping[str, Any], raw: dict[str, str]) -> None:
        self._row, self._raw = row, raw
        self.unreadable: list[str] = []

    def percent(self, field: str) -> float | None:
        return self._percent(field, self._raw.get(field))

    def _percent(self, field: str, value: Any) -> float | None:
        percent = _parse_share(value)
        if percent is None and value not in (None, ""):
            self.unreadable.append(field)
        return percent

    def address(self, field: str) -> str | None:
        """Parse an address. Return "" if the source reports no address; drop a malformed value from `raw`."""
        value = self._row.get(field)
        if value is None or value == "":
            return value
        parsed = as_address(value)
        if parsed is None:
            self.unreadable.append(field)
            self._raw.pop(field, None)
        return parsed

    def holders(self, field: str) -> tuple[Holder, ...] | None:
        """Parse a list of holders; None without a list. Rows without an address are left out."""
        rows = self._rows(field)
        if rows is None:
            return None
        parsed = [self._holder(field, row) for row in rows[:_MAX_HOLDERS]]
        return tuple(holder for holder in parsed if holder)

    def pools(self, field: str) -> tuple[DexPool, ...] | None:
        """Parse a list of pairs; None without a list. Rows without a pair are left out."""
        rows = self._rows(field)
        if rows is None:
            return None
        parsed = [_parse_pool(row) for row in rows[:_MAX_POOLS]]
        if None in parsed:
            self.unreadable.append(f"{field}[]")
        return tuple(pool for pool in parsed if pool)

    def _rows(self, field: str) -> list[dict[str, Any]] | None:
        """Return the objects in a list; None without a list."""
        listed = self._row.get(field)
        if not isinstance(listed, list):
            return None
        rows = _objects(listed)
        if len(rows) < len(cast(list[Any], listed)):
            self.unreadable.append(f"{field}[]")
        return rows

    def _holder(self, field: str, row: dict[str, Any]) -> Holder | None:
        holder = as_address(row.get("address"))
        if holder is None:
            self.unreadable.append(f"{field}.address")
            return None
        share = row.get("percent")
        percent = self._percent(f"{field}.percent", share)
        if share in (None, ""):  # what it holds is missing in every sum
            self.unreadable.append(f"{field}[]")
        is_locked = as_flag(row.get("is_locked", row.get("locked")))
        locks = () if percent is None else _parse_locks(row, percent)
        if is_locked and any(lock.end_unreadable for lock in locks):
            self.unreadable.append(f"{field}.locked_detail")
        return Holder(
            address=holder,
            tag=as_clean_name(row.get("tag")),
            contract=as_flag(row.get("is_contract")),
            locked=is_locked,
            percent=percent,
            locks=locks,
        )


def _parse_locks(row: dict[str, Any], percent: float) -> tuple[TokenLock, ...]:
    """Parse a holder's locks, with `percent` of all tokens; () if the source lists none.

    If their amounts are unreadable, the latest end holds for the whole.
    """
    listed = row.get("locked_detail")
    rows = [cast(Any, listed)] if isinstance(listed, dict) else as_list(listed)
    details = _objects(rows)
    if not details or len(details) < len(rows):  # a lock that cannot be read may be of any part
        return (TokenLock(percent, None, end_unreadable=True),) if listed else ()
    read = details[:_MAX_LOCKS]
    locks = [_parse_end(detail.get("end_time")) for detail in read]
    shares = _parse_lock_shares(read, as_amount(row.get("balance")) or 0.0)
    if len(details) > len(read):
        locks.append(_UNREADABLE_LOCK)
        shares = None if shares is None else [*shares, max(1 - sum(shares), 0.0)]
    if shares is None:
        return (replace(_find_last(locks), percent=percent),)
    return tuple(
        replace(lock, percent=round(percent * share, 6))
        for lock, share in zip(locks, shares, strict=True)
        if share > 0
    )


def _parse_lock_shares(details: Sequence[Mapping[str, Any]], balance: float) -> list[float] | None:
    """Return each lock's share of a balance, as a fraction of 1; None if the amounts are unreadable.

    The amounts are in whole tokens, as the balance is. Together they may be more than it: locks that have
    ended are listed also after a withdrawal.
    """
    amounts = [as_amount(detail.get("amount")) for detail in details]
    known = [amount for amount in amounts if amount is not None]
    total = balance or sum(known)
    if len(known) < len(amounts) or not any(known) or not math.isfinite(sum(known)):
        return None
    return [min(amount / total, 1.0) for amount in known]


_UNREADABLE_LOCK = TokenLock(0, None, end_unreadable=True)


def _parse_end(value: Any) -> TokenLock:
    """Parse the end of a lock whose amount is not known yet."""
    if value is None or value == "":
        return TokenLock(0, None)
    end = _parse_time(value)
    return TokenLock(0, end) if end else _UNREADABLE_LOCK


def _find_last(locks: Sequence[TokenLock]) -> TokenLock:
    """Return the lock that ends last of those that name an end; one that is unreadable may be it."""
    named = [lock for lock in locks if lock.unlocks_at or lock.end_unreadable]
    long_ago = datetime.min.replace(tzinfo=UTC)
    return max(named or locks, key=lambda lock: (lock.end_unreadable, lock.unlocks_at or long_ago))


def _parse_time(value: Any) -> datetime | None:
    """Parse the end of a lock: ISO 8601, UTC if it names no zone, or seconds or milliseconds since 1970."""
    figure = as_number(value)
    if figure is not None:
        return from_unix_seconds(figure) or from_unix_seconds(figure / 1000)
    if not isinstance(value, str):
        return None
    return parse_iso_time(value) or parse_iso_time(f"{value}Z") or parse_iso_time(f"{value}T00:00:00Z")


def _parse_pool(row: dict[str, Any]) -> DexPool | None:
    pair = as_pool_id(row.get("pair"))
    if pair is None:
        return None
    return DexPool(pair, as_clean_name(row.get("name")), as_usd(row.get("liquidity")))


def _objects(rows: Any) -> list[dict[str, Any]]:
    return [cast(dict[str, Any], row) for row in as_list(rows) if isinstance(row, dict)]
