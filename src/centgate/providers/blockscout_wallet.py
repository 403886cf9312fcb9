"""Parse a wallet's balances and transfers from Blockscout, in the fields of old servers and new."""

from __future__ import annotations

from typing import Any

from centgate.chains import from_chain_seconds, parse_chain_time
from centgate.coercion import (
    as_address,
    as_base_units,
    as_block_number,
    as_decimals,
    as_hash,
    as_object,
    as_price,
    as_text,
)
from centgate.crypto.wallet.wallets import (
    Holding,
    Token,
    Transfer,
)

JsonObject = dict[str, Any]

_SENDING_TYPES = ("call", "create", "create2", "selfdestruct")


def is_of_fungible(row: JsonObject) -> bool:
    """True unless a row is of a token of another kind than ERC-20, which old servers list too."""
    return as_object(row.get("token")).get("type") in (None, "ERC-20")


def is_failed(row: JsonObject) -> bool:
    """True if a row of `/addresses/{a}/transactions` is of a transaction that failed."""
    return row.get("status") == "error" or row.get("result") not in (None, "", "success")


def parse_holding(row: JsonObject) -> Holding | None:
    """Parse a row of `/addresses/{a}/tokens`, whose balance may be 0; None if it cannot be read."""
    token, amount = _parse_token(row.get("token")), as_base_units(row.get("value"))
    return None if token is None or amount is None else Holding(token, amount)


def parse_token_transfer(row: JsonObject, chain_id: int) -> Transfer | None:
    """Parse a row of `/addresses/{a}/token-transfers`; None if it cannot be read."""
    token, total = _parse_token(row.get("token")), as_object(row.get("total"))
    if token is None:
        return None
    token_decimals = as_decimals(total.get("decimals"))
    token = token.fill_missing(Token(token.address, decimals=token_decimals))
    return _parse_transfer(row, token, total.get("value"), chain_id)


def parse_native_transfer(row: JsonObject, chain_id: int) -> Transfer | None:
    """Parse a row of `/addresses/{a}/transactions`; None if it cannot be read."""
    return _parse_transfer(row, None, row.get("value"), chain_id)


def moves_coins(row: JsonObject) -> bool:
    """True if a row of `/addresses/{a}/internal-transactions` is of coins that a contract sent.

    A delegated call repeats the value of the call around it. The first call or creation is the transaction
    itself, which is listed apart.
    """
    is_transaction = row.get("index") == 0 and row.get("type") != "selfdestruct"
    is_done = row.get("success") is True and not row.get("error")
    is_sent = row.get("type") in _SENDING_TYPES and as_base_units(row.get("value")) != 0
    return is_sent and is_done and not is_transaction


def parse_internal_transaction(row: JsonObject, chain_id: int) -> Transfer | None:
    """Parse a row of `/addresses/{a}/internal-transactions`; None if it cannot be read.

    A contract that another one created is the recipient of the coins that it got.
    """
    recipient = row.get("to") or row.get("created_contract")
    return _parse_transfer({**row, "to": recipient}, None, row.get("value"), chain_id)


def parse_listed_transaction(row: JsonObject, chain_id: int) -> Transfer:
    """Parse a row of `/api?module=account&action=txlist`. Raises ValueError if it cannot be read."""
    transaction, sender, amount = as_hash(row["hash"]), as_address(row["from"]), as_base_units(row["value"])
    if transaction is None or sender is None or amount is None:
        raise ValueError("no transaction")
    return Transfer(
        transaction=transaction,
        sender=sender,
        recipient=as_address(row["to"]),
        token=None,
        amount=amount,
        block=as_block_number(row["blockNumber"]),
        at=from_chain_seconds(row["timeStamp"], chain_id),
    )


def _parse_transfer(row: JsonObject, token: Token | None, amount: Any, chain_id: int) -> Transfer | None:
    transaction = as_hash(row.get("transaction_hash") or row.get("tx_hash") or row.get("hash"))
    sender = _party_address(row.get("from"))
    recipient = _party_address(row.get("to"))
    if transaction is None or sender is None or (token and recipient is None):
        return None
    block, index = row.get("block_number") or row.get("block"), row.get("log_index") or row.get("position")
    return Transfer(
        transaction=transaction,
        sender=sender,
        recipient=recipient,
        token=token,
        amount=as_base_units(amount),
        block=as_block_number(block),
        at=parse_chain_time(row.get("timestamp"), chain_id),
        position=as_base_units(index) or 0,
    )


def _parse_token(value: Any) -> Token | None:
    row = as_object(value)
    token = as_address(row.get("address_hash")) or as_address(row.get("address"))
    if token is None:
        return None
    return Token(
        token,
        symbol=as_text(row.get("symbol")),
        name=as_text(row.get("name")),
        decimals=as_decimals(row.get("decimals")),
        price_usd=as_price(row.get("exchange_rate")),
        accusation=_scam_label(row),
    )


def _scam_label(row: JsonObject) -> str | None:
    if row.get("reputation") == "scam":
        return "reputation: scam"
    return "is_scam: true" if row.get("is_scam") is True else None


def _party_address(value: Any) -> str | None:
    return as_address(as_object(value).get("hash"))
