"""What each column of an export says: of CSV by its name, of JSON as a member.

Times are ISO 8601 in UTC; where there is nothing, a cell is empty and a member is null.
"""

from __future__ import annotations

from collections.abc import Mapping

COLUMNS: Mapping[str, str] = {
    "time": "when the payment was presented",
    "service": "what it was presented for",
    "route": "that service's path",
    "state": "settling, settled, delivered, refused or unused (never sent to the facilitator)",
    "standing": "open, redeemable, refundable, refunded, or nothing",
    "price": "dollars, with all decimals",
    "amount": "the same in the token's base units",
    "asset": "the token's address",
    "network": "CAIP-2: Base is eip155:8453",
    "payer": "who paid, in lower case",
    "transaction": "where it settled; while it is settling, where it may have",
    "status": "HTTP's, of the answer that was delivered",
    "requestId": "of the answer that was delivered",
    "settledAt": "when the money was known to be taken",
    "deliveredAt": "when the answer was delivered",
    "redeemableUntil": "until when an answer that is owed can be fetched",
    "reason": "why it was refused, or not sent",
    "refundTransaction": "what paid it back",
    "refundedAt": "when that was entered",
    "payTo": "who was paid",
    "nonce": "the payment's own number; it identifies it together with network, asset and payer",
    "testNetwork": "true for a test network, whose dollars are worth nothing",
}
"""Of a payment."""
OWED: Mapping[str, str] = {**COLUMNS, "ageSeconds": "how long ago it was settled"}
"""Of a payment that is to be paid back."""
DAILY: Mapping[str, str] = {
    "day": "the UTC day on which the payments were presented; null in totals",
    "network": "CAIP-2: Base is eip155:8453",
    "asset": "the token's address",
    "payments": "how many there were: settling + refused + unused + settled",
    "settling": "not known yet what became of them",
    "refused": "no money moved",
    "unused": "never sent to the facilitator; removed when their authorizations have ended",
    "settled": "money was taken: delivered + redeemable + refundable + refunded",
    "delivered": "their answers were delivered",
    "late": "of those, the ones delivered a minute or more after they were settled",
    "redeemable": "their answers can still be fetched",
    "refundable": "too late for that, and not paid back",
    "refunded": "paid back",
    "amount": "that was settled, in base units",
    "dollars": "the same in dollars, with all decimals",
    "testNetwork": "true for a test network, whose dollars are worth nothing",
}
"""Of a day, network and token."""
