"""Explanations of the payment states and retry values in errors."""

from __future__ import annotations

from collections.abc import Mapping

from centgate.errors import PaymentState, Retry

PAYMENT_STATES: Mapping[PaymentState, tuple[str, str]] = {
    "unused": ("The payment was not used.", "Follow `retry`: the payment may still be valid."),
    "in_flight": (
        "It is not known yet whether the money moved.",
        "Wait for `Retry-After`, then send the same payment.",
    ),
    "settled": (
        "The money moved, but no answer was delivered yet.",
        "Send the same payment with the same request.",
    ),
    "delivered": (
        "The money moved, and the answer was delivered.",
        "Use the answer. A new request needs a new payment.",
    ),
    "refused": (
        "The payment was refused; no money was paid for this request.",
        "Fix the problem given in `reason`, then sign a new payment.",
    ),
}
"""Meaning of each payment state, and what to do."""
RETRY_MEANINGS: Mapping[Retry, str] = {
    "same_payment": "Send the same request with the same payment.",
    "new_payment": "Sign a new payment, if you still want the answer.",
    "none": "Do not send it again: the result will not change.",
}
