"""Parse GoPlus's token security API.

https://docs.gopluslabs.io/reference/response-details
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from centgate.coercion import (
    as_address,
    as_amount,
    as_clean_name,
    as_count,
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
_MAX_HOLDERS, _MAX_POOLS, _MAX_LOCKS = 10, 100, 20
"""Rows read of a list of holders, as many as are documented, of a list of pairs, and of a holder's locks."""
_ROUNDING = 1e-6
"""A share that exceeds the whole by this little is the whole."""


def parse_token_security(row: dict[str, Any], *, partial: bool) -> TokenFlags:
    """Parse one token's object in `result`; `partial` says that the analysis is not finished."""
    raw = _scalars(row)
    fields = _FieldReader(row, raw)
    flags: dict[str, Any] = {ours: _parse_flag(raw.get(theirs)) for ours, theirs in GOPLUS_FIELDS.items()}
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
        pools=_parse_pools(row.get("dex")),
        note=raw.get("note") or raw.get("other_potential_risks") or None,
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


def _parse_flag(value: str | None) -> bool | None:
    """Parse a flag: "1" or "0", or a count. None for anything else."""
    figure = as_number(value)
    return None if figure is None or figure < 0 else figure > 0


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
        rows = self._row.get(field)
        if not isinstance(rows, list):
            return None
        parsed = [self._holder(field, row) for row in _objects(rows)[:_MAX_HOLDERS]]
        return tuple(holder for holder in parsed if holder)

    def _holder(self, field: str, row: dict[str, Any]) -> Holder | None:
        holder = as_address(row.get("address"))
        if holder is None:
            self.unreadable.append(f"{field}.address")
            return None
        percent = self._percent(f"{field}.percent", row.get("percent"))
        return Holder(
            address=holder,
            tag=as_clean_name(row.get("tag")),
            contract=_parse_flag(row.get("is_contract")),
            locked=_parse_flag(row.get("is_locked", row.get("locked"))),
            percent=percent,
            locks=_parse_locks(row, percent),
        )


def _parse_locks(row: dict[str, Any], percent: float | None) -> tuple[TokenLock, ...]:
    """Parse a holder's locks, with `percent` of all tokens; () without any, or if the amounts are unreadable.

    The amounts are in whole tokens, as the balance is.
    """
    details = _objects(row.get("locked_detail"))[:_MAX_LOCKS]
    amounts = [as_amount(detail.get("amount")) for detail in details]
    known = [amount for amount in amounts if amount is not None]
    total = max(as_amount(row.get("balance")) or 0.0, sum(known))
    if percent is None or total <= 0 or len(known) < len(details):
        return ()
    return tuple(
        TokenLock(round(percent * amount / total, 6), _parse_time(detail.get("end_time")))
        for amount, detail in zip(known, details, strict=True)
    )


def _parse_time(value: Any) -> datetime | None:
    """Parse the end of a lock: ISO 8601, or seconds since 1970."""
    return parse_iso_time(value) or from_unix_seconds(value)


def _parse_pools(rows: Any) -> tuple[DexPool, ...] | None:
    if not isinstance(rows, list):
        return None
    return tuple(
        DexPool(pair, as_clean_name(row.get("name")), as_usd(row.get("liquidity")))
        for row in _objects(rows)[:_MAX_POOLS]
        if (pair := as_pool_id(row.get("pair")))
    )


def _objects(rows: Any) -> list[dict[str, Any]]:
    return [cast(dict[str, Any], row) for row in as_list(rows) if isinstance(row, dict)]
