"""Parse GoPlus's approval index, which has one row for each token.

https://docs.gopluslabs.io/reference/token-approval-security-api
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any, cast

from centgate.chains import from_chain_seconds
from centgate.coercion import as_address, as_clean_name, as_decimals, as_flag
from centgate.crypto.approvals.reported import (
    UNLIMITED_ALLOWANCE,
    ReportedApproval,
    ReportedApprovals,
    ReportedSpender,
    ReportedToken,
)
from centgate.sanitize import clean_line

_MAX_LABELS = 10
"""Labels of misconduct read of a token or a spender."""


def parse_goplus_approvals(chain_id: int, rows: list[Any], *, partial: bool) -> ReportedApprovals:
    """Parse the rows of the index; `partial` says that GoPlus is still collecting.

    Unreadable rows are left out and counted; of several for one token and spender the latest counts.
    """
    latest: dict[tuple[str, str], ReportedApproval] = {}
    tokens: set[str] = set()
    unreadable = 0
    for row in rows:
        token = _parse_token(row)
        entries: Any = row.get("approved_list") if token else None
        if not token or not isinstance(entries, list):
            unreadable += 1
            continue
        tokens.add(token.address)
        for entry in cast(list[Any], entries):
            approval = _parse_approval(chain_id, token, entry)
            if approval is None:
                unreadable += 1
            elif (approval.changed_at or 0) >= _change_time(latest.get(approval.pair)):
                latest[approval.pair] = approval
    return ReportedApprovals(tuple(latest.values()), len(tokens), partial, unreadable)


def _change_time(approval: ReportedApproval | None) -> int:
    return (approval.changed_at or 0) if approval else 0


def _parse_token(row: Any) -> ReportedToken | None:
    if not isinstance(row, dict):
        return None
    fields = cast(dict[str, Any], row)
    token = as_address(fields.get("token_address"))
    if token is None:
        return None
    decimals = as_decimals(fields.get("decimals"))
    return ReportedToken(
        address=token,
        symbol=as_clean_name(fields.get("token_symbol")),
        decimals=decimals,
        # the index may be old: its zero would tell that nothing can be taken
        balance=_parse_base_units(_as_text(fields.get("balance")), decimals) or None,
        malicious=as_flag(fields.get("malicious_address")),
        misconduct=_parse_labels(fields.get("malicious_behavior")),
    )


def _parse_approval(chain_id: int, token: ReportedToken, entry: Any) -> ReportedApproval | None:
    if not isinstance(entry, dict):
        return None
    fields = cast(dict[str, Any], entry)
    spender = as_address(fields.get("approved_contract"))
    if spender is None:
        return None
    text = _as_text(fields.get("approved_amount"))
    return ReportedApproval(
        token=token,
        spender=_parse_spender(chain_id, spender, fields.get("address_info")),
        source="goplus",
        amount=_parse_base_units(text, token.decimals),
        amount_text=text,
        unlimited=(text or "").casefold() == "unlimited",
        changed_at=_parse_time(fields.get("approved_time"), chain_id),
    )


def _parse_spender(chain_id: int, spender: str, info: Any) -> ReportedSpender:
    fields: Mapping[str, Any] = cast(dict[str, Any], info) if isinstance(info, dict) else {}
    return ReportedSpender(
        address=spender,
        name=as_clean_name(fields.get("contract_name")),
        project=as_clean_name(fields.get("tag")),
        is_contract=as_flag(fields.get("is_contract")),
        source_verified=as_flag(fields.get("is_open_source")),
        trusted=as_flag(fields.get("trust_list")),
        is_doubtful=as_flag(fields.get("doubt_list")),
        misconduct=_parse_labels(fields.get("malicious_behavior")),
        deployed_at=_parse_time(fields.get("deployed_time"), chain_id),
    )


def _as_text(figure: Any) -> str | None:
    return clean_line(str(figure), 100) if isinstance(figure, str | int | float) else None


def _parse_base_units(scaled: str | None, decimals: int | None) -> int | None:
    """Parse an amount in plain or exponent form, exactly; None for words and impossible allowances.

    An exponent form is rounded, so that the largest allowance can come out a little above itself.
    """
    try:
        figure = Decimal(scaled or "")
    except InvalidOperation:
        return None
    if not figure:
        return 0
    if decimals is None or not figure.is_finite() or figure < 0 or figure.adjusted() + decimals > 80:
        return None
    with localcontext(prec=400):
        units = int(figure.scaleb(decimals))
    return min(units, UNLIMITED_ALLOWANCE) if units < 2 * UNLIMITED_ALLOWANCE else None


def _parse_labels(value: Any) -> tuple[str, ...]:
    values: Iterable[Any] = cast(list[Any], value) if isinstance(value, list) else [value]
    labels = (clean_line(each, 40) for each in values if isinstance(each, str))
    return tuple(label for label in labels if label)[:_MAX_LABELS]


def _parse_time(value: Any, chain_id: int) -> int | None:
    """Parse a time in seconds since 1970; None for 0, which means unknown, and for impossible times."""
    time = from_chain_seconds(value, chain_id)
    return int(time.timestamp()) if time else None
