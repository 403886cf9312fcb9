"""Payments that a wallet that has signed in can see: its own, and nothing of other wallets.

Every statement first selects the payer in the index `payments_payer`, so that it cannot tell another wallet's
payment from one that does not exist. A payment that moved no money is shown only if the payer's own key
signed it. Strangers can present payments in a wallet's name, with bytes that might be a contract's signature,
and these are refused.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct
from sqlalchemy import Column, Float, Integer, String, and_, bindparam, func, or_, tuple_
from sqlalchemy.sql.elements import literal_column

from centgate.payments.database.sql import NO_OFFSET, BoundStatement, ResultRow, UnitOfWork, compile_statement
from centgate.payments.database.tables import RowState, answers, payments
from centgate.payments.journal.queries import find_answer, may_be_sent
from centgate.payments.journal.read_model import ALL_PAYMENTS, PaymentRecord, parse_record, read_cursor
from centgate.payments.payment_key import PaymentKey
from centgate.payments.wallet.sign_in import SignedIn

MAX_IN_TRANSACTION = 1000
"""Maximum number of a wallet's payments in one transaction that are listed."""
MAX_ANSWER_BYTES = 4 << 20
"""Total size of the answers in one response, beyond which they are left out; the first is always there."""

PagePlace = tuple[float, str, str, str]
"""Place of a payment in the order of a wallet's payments: time of submission, network, asset, nonce."""


class OwnPayment(Struct, frozen=True):
    """A payment of the wallet that has signed in."""

    record: PaymentRecord
    binding: str
    """Digest of the request that it was made for."""
    has_answer: bool
    may_be_sent: bool
    """True if a facilitator may have sent a payment that is `unused`."""

    @property
    def place(self) -> PagePlace:
        """Its place in the order of the wallet's payments."""
        key = self.record.key
        return self.record.created_at, key.network, key.asset, key.nonce


class OwnAnswer(Struct, frozen=True):
    """A stored answer, byte for byte."""

    status: int
    request_id: str
    receipt: str
    body: bytes


def decode_place(cursor: str) -> PagePlace:
    """Decode the cursor of the previous page. Raises ValueError if it is not one."""
    try:
        at, network, asset, nonce = read_cursor(cursor)
        if isinstance(at, float) and _KEY_TEXT.fullmatch(f"{network} {asset} {nonce}"):
            return at, network, asset, nonce
    except (ValueError, TypeError):
        pass
    raise ValueError("not a cursor of this list")


def list_own_payments(
    wallet: SignedIn, *, limit: int, after: PagePlace | None = None
) -> UnitOfWork[list[OwnPayment]]:
    """Return the newest payments of a wallet, or the next ones after a place."""
    at, network, asset, nonce = after or (_FAR_FUTURE, "", "", "")
    place = {"past_created_at": at, "past_network": network, "past_asset": asset, "past_nonce": nonce}
    rows = yield BoundStatement(_PAGE, {**_owner_parameters(wallet), **place, "limit": limit})
    return [_parse_row(row) for row in rows]


def find_own_payments(wallet: SignedIn, reference: str) -> UnitOfWork[list[OwnPayment]]:
    """Return the wallet's payments in a transaction, or the one with this nonce; newest first."""
    parameters = {**_owner_parameters(wallet), "reference": reference.lower()}
    return [_parse_row(row) for row in (yield BoundStatement(_BY_REFERENCE, parameters))]


def read_answers(own_payments: list[OwnPayment]) -> UnitOfWork[dict[PaymentKey, OwnAnswer]]:
    """Return the stored answers of payments, up to a total size."""
    found: dict[PaymentKey, OwnAnswer] = {}
    size = 0
    for each in own_payments:
        row = (yield from find_answer(each.record.key)) if each.has_answer else None
        if row is None:
            continue
        size += len(row["body"])
        if found and size > MAX_ANSWER_BYTES:
            break
        found[each.record.key] = OwnAnswer(
            row["status"], row["request_id"], row["receipt"], bytes(row["body"])
        )
    return found


def _owner_parameters(wallet: SignedIn) -> dict[str, Any]:
    return {"of_payer": wallet.address, "of_network": wallet.network or _ANY_NETWORK}


def _parse_row(row: ResultRow) -> OwnPayment:
    return OwnPayment(parse_record(row), row["binding"], bool(row["has_answer"]), may_be_sent(row))


_FAR_FUTURE = 2.0**53
_KEY_TEXT = re.compile(r"eip155:[0-9]{1,20} 0x[0-9a-f]{40} 0x[0-9a-f]{64}")
_ANY_NETWORK = ""
_UNCHARGED: tuple[RowState, ...] = ("refused", "unused")
_ORDER: tuple[Column[Any], ...] = (
    payments.c.created_at,
    payments.c.network,
    payments.c.asset,
    payments.c.nonce,
)
_START_TIME = bindparam("past_created_at", type_=Float)
_OF_NETWORK = bindparam("of_network", type_=String)
_OWN = (
    ALL_PAYMENTS.add_columns(
        payments.c.binding, payments.c.presentations, answers.c.payment.is_not(None).label("has_answer")
    )
    .outerjoin_from(payments, answers, answers.c.payment == payments.c.id)
    .where(
        payments.c.payer == bindparam("of_payer"),
        or_(literal_column(f"'{_ANY_NETWORK}'") == _OF_NETWORK, payments.c.network == _OF_NETWORK),
        or_(
            payments.c.signer_known == literal_column("1"),
            and_(*(payments.c.state != literal_column(f"'{state}'") for state in _UNCHARGED)),
        ),
    )
)
_PAGE = compile_statement(
    # the time is also compared by itself: SQLite cannot find the start in the index by the tuple comparison
    _OWN.where(
        payments.c.created_at <= _START_TIME,
        tuple_(*_ORDER)
        < tuple_(_START_TIME, *(bindparam(f"past_{each.name}", type_=each.type) for each in _ORDER[1:])),
    )
    .order_by(*(each.desc() for each in _ORDER))
    .limit(bindparam("limit", type_=Integer))
    .offset(NO_OFFSET)
)
_BY_REFERENCE = compile_statement(
    _OWN.where(
        or_(
            func.lower(payments.c.transaction) == bindparam("reference"),
            payments.c.nonce == bindparam("reference"),
        )
    )
    .order_by(*(each.desc() for each in _ORDER))
    .limit(literal_column(str(MAX_IN_TRANSACTION)))
    .offset(NO_OFFSET)
)
