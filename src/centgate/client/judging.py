"""What the reply to a paid request means: for the answer, for the money, and for what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from centgate.client.answers import (
    Answer,
    Failure,
    NotJson,
    OtherShape,
    read_answer,
    read_failure,
    read_receipt,
)
from centgate.client.errors import (
    BuyerError,
    Drift,
    InsufficientBalance,
    Money,
    NoData,
    PaymentRefused,
    ServiceFailed,
    Unavailable,
    Unresolved,
)
from centgate.client.exchange import Broken, Reply
from centgate.client.payment import Payment

EXPIRED = "invalid_exact_evm_payload_authorization_valid_before"
"""x402's reason for a payment whose window has ended."""
TOO_POOR = frozenset({"insufficient_funds", "invalid_exact_evm_insufficient_balance"})
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may be answered."""

Ending = Literal["delivered", "refused", "unresolved"]


@dataclass(frozen=True, slots=True)
class Judged:
    """What a reply comes to.

    `ending` is what the ledger is told: after `delivered` and `refused` the payment is not sent again.
    """

    outcome: Answer | BuyerError
    ending: Ending
    again: bool = False
    """Whether the same payment is worth sending again now."""
    after: float = 0
    """Seconds the API asks to wait before that."""
    doubtful: bool = True
    """Whether the API may have taken the payment."""


def judge(came: Reply | Broken, payment: Payment, *, doubtful: bool) -> Judged:
    """What came of sending a payment.

    `doubtful` when it was sent before and may have been taken then. Nothing is taken for certain that the API
    does not say: without `details.payment` the money is where nobody knows.
    """
    if isinstance(came, Broken):
        return _broken(came, payment)
    if came.status == 200:
        return _answered(came, payment)
    if 300 <= came.status < 400:
        return _open(payment, "the API answered with a redirect, which a payment does not follow", came)
    failure = read_failure(came)
    if came.status == 404 and failure.code == "no_data" and (failure.note is None or failure.note.charged):
        return _no_data(came, failure, payment)
    if failure.note is not None:
        return _noted(came, failure, payment, doubtful=doubtful)
    said = f"the API answered with {came.status}"
    said += f" {failure.code}: {failure.message}" if failure.code else ", without a word on the payment"
    if came.status in TRANSIENT:
        return _again(payment, said, came, failure)
    return _open(payment, said, came, failure)


def _broken(broken: Broken, payment: Payment) -> Judged:
    if broken.why == "too_large":
        return _open(payment, f"the API {broken.sentence}")
    return Judged(_unresolved(payment, f"the API {broken.sentence}"), "unresolved", again=True)


def _answered(reply: Reply, payment: Payment) -> Judged:
    try:
        return Judged(read_answer(reply, payment), "delivered")
    except NotJson as error:
        return _again(payment, f"the API's answer cannot be read: {error}", reply)
    except OtherShape as error:
        drift = Drift(
            f"the API's answer is not a Centgate's, or one of another version: {error}. The payment is kept: "
            "the same call sends it again",
            money=_money(reply, payment),
        )
        return Judged(drift, "unresolved")


def _no_data(reply: Reply, failure: Failure, payment: Payment) -> Judged:
    receipt, _ = read_receipt(reply, payment)
    charged = receipt is not None or (failure.note is not None and failure.note.charged)
    paid = "paid for" if charged else f"whether the ${payment.usd} moved is not known"
    error = NoData(
        f"nothing is known of it, the API says: {failure.message}. This is an answer, and {paid}: do not ask "
        "again",
        receipt,
        money="moved" if charged else "unknown",
        request_id=failure.request_id,
    )
    return Judged(error, "delivered")


def _noted(reply: Reply, failure: Failure, payment: Payment, *, doubtful: bool) -> Judged:
    """An error that says what became of the payment."""
    note = failure.note
    assert note is not None
    untaken = not note.charged and (note.state == "refused" or _surely_unused(failure, doubtful=doubtful))
    if note.retry == "same_payment":
        return _owed(reply, failure, payment, untaken=untaken)
    if note.charged:
        used = f"the API says that the payment is used up: {failure.message}. Nothing more can be had for it"
        refusal = PaymentRefused(used, failure.reason, money="moved", request_id=failure.request_id)
        return Judged(refusal, "refused")
    if not untaken:
        return _open(
            payment, f"the API refused a payment that it may have taken: {failure.message}", reply, failure
        )
    if failure.code == "provider_unconfigured":
        gone = (
            f"the API does not serve it, and says that nothing was charged: {failure.message}. Another "
            "deployment may serve it"
        )
        # not refused for good: should the source be set up in time, the same payment buys the answer
        return Judged(
            Unavailable(gone, money="reported_not_moved", request_id=failure.request_id),
            "unresolved",
            doubtful=False,
        )
    return Judged(_refusal(failure, payment), "refused", doubtful=False)


def _surely_unused(failure: Failure, *, doubtful: bool) -> bool:
    """Whether `unused` is to be believed.

    An API says so of what does not fit its terms without looking whether it took it earlier, when the terms
    may have been others; of what has expired, and of what it cannot serve, it looks first.
    """
    note = failure.note
    if note is None or note.state != "unused":
        return False
    return not doubtful or failure.reason == EXPIRED or failure.code == "provider_unconfigured"


def _owed(reply: Reply, failure: Failure, payment: Payment, *, untaken: bool) -> Judged:
    """An error after which the same payment is good: settled and not delivered, or not yet decided."""
    note = failure.note
    assert note is not None
    if not note.charged and not untaken:
        return _again(payment, f"the API says: {failure.message} ({failure.code})", reply, failure)
    kept = "The API says that no money moved; the same call sends the same payment again"
    if note.charged:
        kept = (
            "It is paid for: the same call, made again within a day, sends the same payment and costs no more"
        )
    error = ServiceFailed(
        f"the API says: {failure.message} ({failure.code}). {kept}",
        failure.code or "",
        failure.provider,
        retry=note.retry,
        money="moved" if note.charged else "reported_not_moved",
        request_id=failure.request_id,
    )
    return Judged(
        error, "unresolved", again=True, after=retry_after(reply), doubtful=note.charged or not untaken
    )


def _refusal(failure: Failure, payment: Payment) -> PaymentRefused:
    kind = PaymentRefused
    sentence = f"the API refused the payment, and says that no money moved: {failure.message}"
    if failure.reason in TOO_POOR:
        kind = InsufficientBalance
        sentence = (
            f"the API says that the wallet {payment.payer} holds less than ${payment.usd} in USDC on "
            f"{payment.network}, and that no money moved: send it some and call again"
        )
    elif failure.reason == EXPIRED:
        sentence += ". Look whether this machine's clock is right, and call again"
    return kind(sentence, failure.reason, money="reported_not_moved", request_id=failure.request_id)


def _again(payment: Payment, why: str, reply: Reply, failure: Failure | None = None) -> Judged:
    error = _unresolved(payment, why, reply, failure)
    return Judged(error, "unresolved", again=True, after=retry_after(reply))


def _open(payment: Payment, why: str, reply: Reply | None = None, failure: Failure | None = None) -> Judged:
    return Judged(_unresolved(payment, why, reply, failure), "unresolved")


def _unresolved(
    payment: Payment, why: str, reply: Reply | None = None, failure: Failure | None = None
) -> Unresolved:
    money = _money(reply, payment) if reply else "unknown"
    known = (
        "the payment moved and its answer has not come"
        if money == "moved"
        else (f"whether the payment of ${payment.usd} moved is not known")
    )
    return Unresolved(
        f"{known}: {why}. Make the same call again within a day: it sends the same payment, never a "
        "second one",
        payment,
        money=money,
        request_id=failure.request_id if failure else None,
    )


def _money(reply: Reply, payment: Payment) -> Money:
    """Where the money is, by the receipt alone."""
    receipt, _ = read_receipt(reply, payment)
    return "moved" if receipt else "unknown"


def retry_after(reply: Reply) -> float:
    """Seconds that a reply asks to wait; 0 when it does not say, or not in seconds."""
    value = reply.headers.get("retry-after", "")
    return float(value) if value.isascii() and value.isdigit() and len(value) < 7 else 0.0
