"""Classify the response to a paid request: the answer, the payment's state, and whether to retry."""

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
"""x402's reason for a payment whose validity window has ended."""
TOO_POOR = frozenset({"insufficient_funds", "invalid_exact_evm_insufficient_balance"})
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP statuses after which the same request may succeed."""

Ending = Literal["delivered", "refused", "unresolved"]


@dataclass(frozen=True, slots=True)
class Judged:
    """Classified response.

    `ending` is the event for the ledger: after `delivered` and `refused` the payment is not sent again.
    """

    outcome: Answer | BuyerError
    ending: Ending
    again: bool = False
    """True if the same payment should be sent again now."""
    after: float = 0
    """Seconds to wait before that, from Retry-After."""
    doubtful: bool = True
    """True if the API may have accepted the payment."""


def judge(came: Reply | Broken, payment: Payment, *, doubtful: bool) -> Judged:
    """Classify the result of sending a payment.

    `doubtful` means that the payment was sent before and may have been accepted then. Without
    `details.payment` the payment's state is unknown: nothing is assumed that the API does not report.
    """
    if isinstance(came, Broken):
        return _classify_failure(came, payment)
    if came.status == 200:
        return _classify_answer(came, payment)
    if 300 <= came.status < 400:
        return _leave_open(payment, "the API redirected, and payments do not follow redirects", came)
    failure = read_failure(came)
    if came.status == 404 and failure.code == "no_data" and (failure.note is None or failure.note.charged):
        return _classify_no_data(came, failure, payment)
    if failure.note is not None:
        return _classify_error(came, failure, payment, doubtful=doubtful)
    problem = f"the API returned {came.status}"
    problem += f" {failure.code}: {failure.message}" if failure.code else " without the payment's state"
    if came.status in TRANSIENT:
        return _retry(payment, problem, came, failure)
    return _leave_open(payment, problem, came, failure)


def _classify_failure(broken: Broken, payment: Payment) -> Judged:
    if broken.why == "too_large":
        return _leave_open(payment, f"the API {broken.sentence}")
    return Judged(_unresolved_error(payment, f"the API {broken.sentence}"), "unresolved", again=True)


def _classify_answer(reply: Reply, payment: Payment) -> Judged:
    try:
        return Judged(read_answer(reply, payment), "delivered")
    except NotJson as error:
        return _retry(payment, f"the API's answer cannot be read: {error}", reply)
    except OtherShape as error:
        drift = Drift(
            f"the API's answer does not match this client's protocol version: {error}. The payment stays "
            "open: the same call sends it again",
            money=_money_by_receipt(reply, payment),
        )
        return Judged(drift, "unresolved")


def _classify_no_data(reply: Reply, failure: Failure, payment: Payment) -> Judged:
    receipt, _ = read_receipt(reply, payment)
    charged = receipt is not None or (failure.note is not None and failure.note.charged)
    payment_state = "it was charged" if charged else f"it is unknown whether the ${payment.usd} moved"
    error = NoData(
        f"the API has no data: {failure.message}. This is a final answer, and {payment_state}: do not repeat "
        "the call",
        receipt,
        money="moved" if charged else "unknown",
        request_id=failure.request_id,
    )
    return Judged(error, "delivered")


def _classify_error(reply: Reply, failure: Failure, payment: Payment, *, doubtful: bool) -> Judged:
    """Classify an error that reports the payment's state."""
    note = failure.note
    assert note is not None
    unused = not note.charged and (
        note.state == "refused" or _is_certainly_unused(failure, doubtful=doubtful)
    )
    if note.retry == "same_payment":
        return _classify_retryable(reply, failure, payment, unused=unused)
    if note.charged:
        message = f"the API reports that the payment is already used: {failure.message}. It buys nothing more"
        refusal = PaymentRefused(message, failure.reason, money="moved", request_id=failure.request_id)
        return Judged(refusal, "refused")
    if not unused:
        return _leave_open(
            payment, f"the API refused a payment that it may have accepted: {failure.message}", reply, failure
        )
    if failure.code == "provider_unconfigured":
        message = (
            f"the API does not serve it, and reports that nothing was charged: {failure.message}. Another "
            "deployment may serve it"
        )
        # not final: if the provider is configured in time, the same payment buys the answer
        return Judged(
            Unavailable(message, money="reported_not_moved", request_id=failure.request_id),
            "unresolved",
            doubtful=False,
        )
    return Judged(_payment_refused(failure, payment), "refused", doubtful=False)


def _is_certainly_unused(failure: Failure, *, doubtful: bool) -> bool:
    """Return True if the reported state `unused` is reliable.

    For a payment that does not match its terms, an API reports `unused` without checking whether it accepted
    the payment earlier, under other terms. For an expired payment, and for a service it cannot serve, it
    checks first.
    """
    note = failure.note
    if note is None or note.state != "unused":
        return False
    return not doubtful or failure.reason == EXPIRED or failure.code == "provider_unconfigured"


def _classify_retryable(reply: Reply, failure: Failure, payment: Payment, *, unused: bool) -> Judged:
    """Classify an error after which the payment stays valid: settled but undelivered, or undecided."""
    note = failure.note
    assert note is not None
    if not note.charged and not unused:
        return _retry(payment, f"the API reports: {failure.message} ({failure.code})", reply, failure)
    next_step = "The API reports that no money moved; the same call sends the same payment again"
    if note.charged:
        next_step = (
            "It is already paid: repeat the same call within a day; it sends the same payment for free"
        )
    error = ServiceFailed(
        f"the API reports: {failure.message} ({failure.code}). {next_step}",
        failure.code or "",
        failure.provider,
        retry=note.retry,
        money="moved" if note.charged else "reported_not_moved",
        request_id=failure.request_id,
    )
    return Judged(
        error, "unresolved", again=True, after=retry_after(reply), doubtful=note.charged or not unused
    )


def _payment_refused(failure: Failure, payment: Payment) -> PaymentRefused:
    error_type = PaymentRefused
    sentence = f"the API refused the payment, and reports that no money moved: {failure.message}"
    if failure.reason in TOO_POOR:
        error_type = InsufficientBalance
        sentence = (
            f"the API reports that the wallet {payment.payer} holds less than ${payment.usd} in USDC on "
            f"{payment.network}, and that no money moved: send USDC to it and call again"
        )
    elif failure.reason == EXPIRED:
        sentence += ". Check this machine's clock, and call again"
    return error_type(sentence, failure.reason, money="reported_not_moved", request_id=failure.request_id)


def _retry(payment: Payment, why: str, reply: Reply, failure: Failure | None = None) -> Judged:
    error = _unresolved_error(payment, why, reply, failure)
    return Judged(error, "unresolved", again=True, after=retry_after(reply))


def _leave_open(
    payment: Payment, why: str, reply: Reply | None = None, failure: Failure | None = None
) -> Judged:
    return Judged(_unresolved_error(payment, why, reply, failure), "unresolved")


def _unresolved_error(
    payment: Payment, why: str, reply: Reply | None = None, failure: Failure | None = None
) -> Unresolved:
    money = _money_by_receipt(reply, payment) if reply else "unknown"
    state = (
        "the payment moved but its answer was not received"
        if money == "moved"
        else (f"it is unknown whether the payment of ${payment.usd} moved")
    )
    return Unresolved(
        f"{state}: {why}. Make the same call again within a day: it sends the same payment, never a "
        "second one",
        payment,
        money=money,
        request_id=failure.request_id if failure else None,
    )


def _money_by_receipt(reply: Reply, payment: Payment) -> Money:
    """Return the payment's state according to the receipt only."""
    receipt, _ = read_receipt(reply, payment)
    return "moved" if receipt else "unknown"


def retry_after(reply: Reply) -> float:
    """Parse Retry-After in seconds; 0 if it is missing or not a number."""
    value = reply.headers.get("retry-after", "")
    return float(value) if value.isascii() and value.isdigit() and len(value) < 7 else 0.0
