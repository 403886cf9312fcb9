"""Values of claims: the attempt to claim a payment, the claim, and the answer that it ends with."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from centgate.payments.authorization import Payment
from centgate.payments.database.tables import RowState
from centgate.payments.payment_key import PaymentKey
from centgate.payments.worker_id import Worker


class StoredAnswer(Struct, frozen=True):
    """A delivered answer, replayed byte for byte when the request is repeated."""

    status: int
    body: bytes
    request_id: str
    receipt: str
    transaction: str | None = None
    """The transaction of its settlement."""
    settled_at: float | None = None
    """Time of the settlement in seconds since 1970; None if it is not known."""
    replayed: bool = False


class RequestBinding(Struct, frozen=True):
    """The request that a payment is claimed for: service, and digest of method, path and canonical body."""

    service: str
    digest: str


class FacilitatorChoice(Struct, frozen=True):
    """The configured facilitators by name, and the one for a payment that none of them may have."""

    names: tuple[str, ...]
    """The first facilitator's first."""
    preferred: str


class PendingSettlement(Struct, eq=False):
    """A settlement that is being written, or will be at the latest before a response is sent."""

    write: asyncio.Task[None] | None = None


class Claim(Struct):
    """The exclusive right to process one payment, held by this process until the `async with` ends."""

    key: PaymentKey
    worker: Worker
    """Worker with a name that is unique to this claim."""
    state: RowState
    outcome_unknown: bool
    """True if an earlier attempt has an unknown outcome: the row was `settling`, also after a crash."""
    presented_at: float
    """Time of the payment's first submission, in seconds since 1970."""
    valid_before: int
    """End of the authorization, in seconds since 1970."""
    service: str
    amount: int
    """In the token's base units."""
    pay_to: str
    resubmission_json: str | None
    """`Payment.resubmission_json` of its first submission, while its outcome is unknown."""
    claim_block: int | None = None
    """Newest block number known at the payment's first submission."""
    presentations: int = 1
    """Number of submissions after which a transaction may have been sent, including the present one.

    Those that were interrupted count, as do those that a facilitator of two answered with status 429.
    """
    facilitator: str | None = None
    """Name of the facilitator that may have it; None for the first."""
    may_change_facilitator: bool = False
    """True if no facilitator has seen it, so that another one may get it if this one was not reached."""
    transaction: str | None = None
    settled_at: float | None = None
    """Time of the settlement, None if it is not settled; unknown for some old rows."""
    pending_settlement: PendingSettlement | None = None
    """The settlement while it is not known to be in the journal."""
    attempts: int = 0
    """Number of attempts to reconcile it without its buyer."""
    answer: StoredAnswer | None = None


class ClaimedElsewhere(Struct, frozen=True):
    """Another worker is processing the payment."""


class ClaimAttempt(Struct, frozen=True, kw_only=True):
    """One attempt to claim a payment for a request."""

    payment: Payment
    binding: RequestBinding
    worker: Worker
    """Unique to this claim, so that a write whose confirmation was lost is recognised as its own."""
    now: float
    redeem_cutoff: float
    """Payments settled before this time can no longer be redeemed, in seconds since 1970."""
    claim_block: int | None
    """Newest block number known at this attempt."""
    waiting_since: float | None
    """Time at which it began to wait for another process; None if it did not wait."""
    possibly_claimed: set[PaymentKey]
    """Payments that may have been claimed; each is added before the claim is tried."""
    facilitators: FacilitatorChoice | None = None
    """None leaves it to the first facilitator."""
