"""Receipts of the Machine Payments Protocol: the header `Payment-Receipt`."""

from __future__ import annotations

from centgate.payments.claim_values import StoredAnswer
from centgate.payments.mpp.base64url import encode_json
from centgate.payments.mpp.challenge import METHOD
from centgate.timestamps import format_unix_time


def encode_payment_receipt(answer: StoredAnswer) -> str | None:
    """Encode the receipt of a delivered answer; None if the time of its settlement is not known.

    Everything in it is stored, so that a replay has the same receipt.
    """
    if answer.transaction is None or answer.settled_at is None:
        return None
    return encode_json(
        {
            "method": METHOD,
            "reference": answer.transaction,
            "status": "success",
            "timestamp": format_unix_time(int(answer.settled_at)),
        }
    )
