"""A wallet's balances and transfers as Blockscout writes them, in the fields of old servers and new."""

from __future__ import annotations

from typing import Any, cast

from centgate.facts.wallets import Holding, Movement, Token, block_number, transaction_hash
from centgate.readings import address, base_units, decimals, moment, price, text

Row = dict[str, Any]


def items(page: Any) -> list[Row]:
    """The rows of a page; TypeError when there are some and none can be read."""
    rows = cast(list[Any], page["items"])
    found = [_object(row) for row in rows if isinstance(row, dict)]
    if rows and not found:
        raise TypeError("rows that are no objects")
    return found


def holding(row: Row) -> Holding | None:
    """A row of `/addresses/{a}/tokens`; None for what is no token of EIP-20, and for nothing of one."""
    token, amount = _token(row.get("token")), base_units(row.get("value"))
    return Holding(token, amount) if token and amount else None


def token_movement(row: Row) -> Movement | None:
    """A row of `/addresses/{a}/token-transfers`; None for one that cannot be read."""
    token, total = _token(row.get("token")), _object(row.get("total"))
    if token is None:
        return None
    token_decimals = decimals(total.get("decimals"))
    return _movement(row, token.completed(Token(token.address, decimals=token_decimals)), total.get("value"))


def coin_movement(row: Row) -> Movement | None:
    """A row of `/addresses/{a}/transactions`; None for one that failed, and for one that cannot be read."""
    failed = row.get("status") == "error" or row.get("result") not in (None, "", "success")
    return None if failed else _movement(row, None, row.get("value"))


def _movement(row: Row, token: Token | None, amount: Any) -> Movement | None:
    transaction = transaction_hash(row.get("transaction_hash") or row.get("tx_hash") or row.get("hash"))
    sender = _party(row.get("from"))
    if transaction is None or sender is None:
        return None
    block, place = row.get("block_number") or row.get("block"), row.get("log_index") or row.get("position")
    return Movement(
        transaction=transaction,
        sender=sender,
        recipient=_party(row.get("to")),
        token=token,
        amount=base_units(amount),
        block=block_number(block),
        at=moment(row.get("timestamp")),
        place=base_units(place) or 0,
    )


def _token(value: Any) -> Token | None:
    row = _object(value)
    where = address(row.get("address_hash")) or address(row.get("address"))
    if where is None or row.get("type") not in (None, "ERC-20"):
        return None
    return Token(
        where,
        symbol=text(row.get("symbol")),
        name=text(row.get("name")),
        decimals=decimals(row.get("decimals")),
        price_usd=price(row.get("exchange_rate")),
        accused=_accusation(row),
    )


def _accusation(row: Row) -> str | None:
    if row.get("reputation") == "scam":
        return "reputation: scam"
    return "is_scam: true" if row.get("is_scam") is True else None


def _party(value: Any) -> str | None:
    return address(_object(value).get("hash"))


def _object(value: Any) -> Row:
    return cast(Row, value) if isinstance(value, dict) else {}
