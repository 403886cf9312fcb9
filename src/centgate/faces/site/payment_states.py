"""What an error says of the buyer's money, in words."""

from __future__ import annotations

from collections.abc import Mapping

from centgate.errors import PaymentState, Retry

STATES: Mapping[PaymentState, tuple[str, str]] = {
    "unused": ("The payment was not taken.", "What `retry` says: it may be as good as before."),
    "in_flight": (
        "Whether money moved is not known yet.",
        "Wait for `Retry-After`, then send the same payment.",
    ),
    "settled": ("Money moved, and an answer is owed.", "Send the same payment with the same request."),
    "delivered": (
        "Money moved, and an answer was delivered.",
        "Take the answer, or pay anew for a new question.",
    ),
    "refused": (
        "The facilitator refused it for certain; nothing moved.",
        "Mend what `reason` says, then sign anew.",
    ),
}
"""What each state of a payment means, and what to do."""
RETRIES: Mapping[Retry, str] = {
    "same_payment": "Send the same request with the same payment.",
    "new_payment": "Sign a new payment, if you still want the answer.",
    "none": "Sending it again does not help.",
}
