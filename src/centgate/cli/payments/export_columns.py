"""Columns of exports and their meanings: CSV columns and JSON members have the same names.

Times are ISO 8601 in UTC; a missing value is an empty cell, or null in JSON.
"""

from __future__ import annotations

from collections.abc import Mapping

from centgate.payments.reports.totals_group import TotalsGroup

PAYMENT_COLUMNS: Mapping[str, str] = {
    "time": "when the payment was presented",
    "service": "the service it was presented for",
    "route": "that service's path",
    "state": "settling, settled, delivered, refused or unused (never sent to the facilitator)",
    "standing": "open, redeemable, refundable, refunded, or empty",
    "price": "in dollars, with all decimals",
    "amount": "the same in the token's base units",
    "asset": "the token's address",
    "network": "CAIP-2: Base is eip155:8453",
    "payer": "address of the payer, in lower case",
    "transaction": "the settlement's transaction; a possible one while the payment is settling",
    "status": "HTTP status of the delivered answer",
    "requestId": "request id of the delivered answer",
    "facilitator": "the facilitator that has it, or may have it: its origin, and a digest of its path",
    "openCause": "why it is still open: no_node, no_answer (of the nodes) or not_final; or empty",
    "settledAt": "when the settlement was confirmed",
    "deliveredAt": "when the answer was delivered",
    "redeemableUntil": "until when an undelivered answer can be fetched",
    "reason": "why it was refused, or not sent to the facilitator",
    "refundTransaction": "transaction of the refund",
    "refundedAt": "when the refund was entered",
    "payTo": "address of the payee",
    "nonce": "the payment's nonce; unique together with network, asset and payer",
    "testNetwork": "true for a test network, whose dollars have no value",
}
"""Columns of a payment."""
_GROUP_MEANINGS: Mapping[TotalsGroup, str] = {
    "payer": "address of the payer, in lower case; null in totals",
    "service": "the service; null in totals",
    "day": "the UTC day on which the payments were presented; null in totals",
}
REFUND_COLUMNS: Mapping[str, str] = {**PAYMENT_COLUMNS, "ageSeconds": "seconds since the settlement"}
"""Columns of a payment that is to be refunded."""
DAILY_COLUMNS: Mapping[str, str] = {
    "day": "the UTC day on which the payments were presented; null in totals",
    "network": "CAIP-2: Base is eip155:8453",
    "asset": "the token's address",
    "payments": "number of payments: settling + refused + unused + settled",
    "settling": "outcome not known yet",
    "refused": "no money moved",
    "unused": "never sent to the facilitator; removed after their authorizations expire",
    "settled": "charged: delivered + redeemable + refundable + refunded",
    "delivered": "answer delivered",
    "late": "delivered a minute or more after the settlement; included in delivered",
    "redeemable": "answer not delivered, can still be fetched",
    "refundable": "answer can no longer be fetched, not refunded",
    "refunded": "refunded",
    "amount": "settled amount in base units",
    "dollars": "the same in dollars, with all decimals",
    "testNetwork": "true for a test network, whose dollars have no value",
}
"""Columns of a day, network and token."""


def totals_columns(by: TotalsGroup) -> Mapping[str, str]:
    """Return the columns of `payments totals` with their meanings."""
    figures = {name: meaning for name, meaning in DAILY_COLUMNS.items() if name != "day"}
    return {**({by: _GROUP_MEANINGS[by]} if by in _GROUP_MEANINGS else {}), **figures}
