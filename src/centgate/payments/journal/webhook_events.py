"""Events that webhooks report to operators: their ids, and their bodies as JSON.

An id is computed from the payment and the type, so that a receiver sees one id per event, however often the
event is written or sent.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Literal

import orjson
from msgspec import Struct

from centgate.payments.journal.descriptions import format_dollars
from centgate.payments.payment_key import PaymentKey
from centgate.payments.time_format import format_iso
from centgate.settings import Settings
from centgate.signing.assets import is_test_network

PAYLOAD_VERSION = 1
"""Version of the body; it changes if a member is removed or gets another meaning, not if one is added."""

EventType = Literal["payment.delivered", "payment.refunded", "payment.stuck"]
EventState = Literal["delivered", "refunded", "settling"]


class EventPayment(Struct, frozen=True):
    """Payment of an event, as receivers see it: nothing secret, and no part of the answer."""

    key: PaymentKey
    state: EventState
    service: str
    amount: int
    """In the token's base units."""
    pay_to: str
    presented_at: float
    """Time of its submission, in seconds since 1970."""
    transaction: str | None
    """The transaction that settled it; while it is settling, one that may have."""
    request_id: str | None = None
    status: int | None = None
    """HTTP status of the delivered answer."""
    refund: str | None = None
    """The transaction that refunded it."""
    refund_checked: bool | None = None
    """True if the chain showed that refund, False if its operator recorded it without this check."""


class EventBuilder(Struct, frozen=True):
    """Builds the events of a deployment."""

    server: str
    """Its public URL."""

    def build_row(self, event_type: EventType, payment: EventPayment, occurred_at: float) -> dict[str, Any]:
        """Return the columns of `webhook_events` for a new event of a payment, which is due at once.

        `occurred_at` is in seconds since 1970.
        """
        return {
            "event": _event_id(event_type, payment),
            "type": event_type,
            "payload": self._encode_body(event_type, occurred_at, _payment_members(payment)).decode(),
            "presented_at": payment.presented_at,
            "occurred_at": occurred_at,
            "next_at": occurred_at,
        }

    def build_ping(self, occurred_at: float) -> bytes:
        """Build the body of a test, which concerns no payment."""
        return self._encode_body("ping", occurred_at, {})

    def _encode_body(
        self, event_type: EventType | Literal["ping"], occurred_at: float, data: dict[str, Any]
    ) -> bytes:
        body = {
            "type": event_type,
            "version": PAYLOAD_VERSION,
            "timestamp": format_iso(occurred_at),
            "server": self.server,
            "data": data,
        }
        return orjson.dumps(body)


def create_event_builder(settings: Settings) -> EventBuilder | None:
    """Return the builder of a deployment's events; None if it has no receiver, so that none are written."""
    return EventBuilder(settings.base_url) if settings.webhook_url else None


def _payment_members(payment: EventPayment) -> dict[str, Any]:
    key = payment.key
    return {
        "network": key.network,
        "testNetwork": is_test_network(key.network),
        "asset": key.asset,
        "payer": key.payer,
        "nonce": key.nonce,
        "payTo": payment.pay_to,
        "amount": str(payment.amount),
        "amountDecimal": format_dollars(payment.amount),
        "service": payment.service,
        "state": payment.state,
        "presentedAt": format_iso(payment.presented_at),
        "transaction": payment.transaction,
        "requestId": payment.request_id,
        "status": payment.status,
        "refundTransaction": payment.refund,
        "refundChecked": payment.refund_checked,
    }


def _event_id(event_type: EventType, payment: EventPayment) -> str:
    """Return the id of an event.

    A payment that was refused, and is stuck once more after it was presented again, is a new event.
    """
    key = payment.key
    parts = [event_type, key.network, key.asset, key.payer, key.nonce]
    if event_type == "payment.stuck":
        parts.append(repr(payment.presented_at))
    return "evt_" + sha256("\n".join(parts).encode()).hexdigest()[:32]
