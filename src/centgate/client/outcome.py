"""Classify the response to a paid request: the answer, the payment's state, and whether to retry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
from centgate.client.payment import Payment
from centgate.client.responses import (
    Answer,
    ErrorResponse,
    NotJson,
    UnexpectedShape,
    parse_answer,
    parse_error,
    parse_receipt,
)
from centgate.client.transport import HttpResponse, TransportError
from centgate.signing.assets import describe_token

EXPIRED_REASON = "invalid_exact_evm_payload_authorization_valid_before"
"""x402's reason for a payment whose validity window has ended."""
PAYER_REFUSED_REASON = "invalid_exact_evm_payload_authorization_from_address_kyt"
"""x402's reason for a payer that the API refuses by policy."""
CHECKED_REASONS = frozenset({EXPIRED_REASON, PAYER_REFUSED_REASON})
"""Reasons for which an API looks the payment up before it reports that it is unused."""
LOW_BALANCE_REASONS = frozenset({"insufficient_funds", "invalid_exact_evm_insufficient_balance"})
TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP statuses after which the same request may succeed."""

LedgerOutcome = Literal["delivered", "refused", "unanswered", "unresolved"]


@dataclass(frozen=True, slots=True)
class PaymentOutcome:
    """Classified response.

    `ledger_event` is the event for the ledger: only after `unresolved` the payment is sent again.
    """

    result: Answer | BuyerError
    ledger_event: LedgerOutcome
    should_retry: bool = False
    """True if the same payment should be sent again now."""
    retry_delay: float = 0
    """Seconds to wait before that, from Retry-After."""
    maybe_accepted: bool = True
    """True if the API may have accepted the payment."""


def classify_outcome(response: HttpResponse, payment: Payment, *, maybe_accepted: bool) -> PaymentOutcome:
    """Classify the response to a payment.

    `maybe_accepted` means that the payment was sent before and may have been accepted then. Without
    `details.payment` the payment's state is unknown: nothing is assumed that the API does not report.
    """
    if response.status == 200:
        return _classify_answer(response, payment)
    if 300 <= response.status < 400:
        return _leave_open(payment, "the API redirected, and payments do not follow redirects", response)
    failure = parse_error(response)
    if (
        response.status == 404
        and failure.code == "no_data"
        and (failure.note is None or failure.note.charged)
    ):
        return _classify_no_data(response, failure, payment)
    if failure.note is not None:
        return _classify_error(response, failure, payment, doubtful=maybe_accepted)
    problem = f"the API returned {response.status}"
    problem += f" {failure.code}: {failure.message}" if failure.code else " without the payment's state"
    if response.status in TRANSIENT_STATUSES:
        return _retry(payment, problem, response, failure)
    return _leave_open(payment, problem, response, failure)


def classify_failure(error: TransportError, payment: Payment) -> PaymentOutcome:
    """Classify a payment that was sent without receiving a complete response."""
    if error.reason == "too_large":
        return _leave_open(payment, f"the API {error}")
    return PaymentOutcome(_unresolved_error(payment, f"the API {error}"), "unresolved", should_retry=True)


def _classify_answer(response: HttpResponse, payment: Payment) -> PaymentOutcome:
    try:
        return PaymentOutcome(parse_answer(response, payment), "delivered")
    except NotJson as error:
        return _retry(payment, f"the API's answer cannot be read: {error}", response)
    except UnexpectedShape as error:
        drift = Drift(
            f"the API's answer does not match this client's protocol version: {error}. The payment stays "
            "open: the same call sends it again",
            money=_money_by_receipt(response, payment),
        )
        return PaymentOutcome(drift, "unresolved")


def _classify_no_data(response: HttpResponse, failure: ErrorResponse, payment: Payment) -> PaymentOutcome:
    receipt, _ = parse_receipt(response, payment)
    charged = receipt is not None or (failure.note is not None and failure.note.charged)
    payment_state = "it was charged" if charged else f"it is unknown whether the ${payment.usd} moved"
    error = NoData(
        f"the API has no data: {failure.message}. This is a final answer, and {payment_state}: do not repeat "
        "the call",
        receipt,
        money="moved" if charged else "unknown",
        request_id=failure.request_id,
    )
    return PaymentOutcome(error, "delivered")


def _classify_error(
    response: HttpResponse, failure: ErrorResponse, payment: Payment, *, doubtful: bool
) -> PaymentOutcome:
    """Classify an error that reports the payment's state."""
    note = failure.note
    assert note is not None
    unused = not note.charged and (
        note.state == "refused" or _is_certainly_unused(failure, doubtful=doubtful)
    )
    if note.retry == "same_payment":
        return _classify_retryable(response, failure, payment, unused=unused)
    if note.charged:
        message = (
            f"the API reports that the payment is already used: {failure.message}. It buys nothing more; the "
            "next call signs another payment"
        )
        refusal = PaymentRefused(message, failure.reason, money="moved", request_id=failure.request_id)
        return PaymentOutcome(refusal, "unanswered")
    if not unused:
        return _leave_open(
            payment,
            f"the API refused a payment that it may have accepted: {failure.message}",
            response,
            failure,
        )
    if failure.code == "provider_unconfigured":
        message = (
            f"the API does not serve it, and reports that nothing was charged: {failure.message}. Another "
            "deployment may serve it"
        )
        # not final: if the provider is configured in time, the same payment buys the answer
        return PaymentOutcome(
            Unavailable(message, money="reported_not_moved", request_id=failure.request_id),
            "unresolved",
            maybe_accepted=False,
        )
    return PaymentOutcome(_payment_refused(failure, payment), "refused", maybe_accepted=False)


def _is_certainly_unused(failure: ErrorResponse, *, doubtful: bool) -> bool:
    """Return True if the reported state `unused` is reliable.

    For a payment that does not match its terms, an API reports `unused` without checking whether it accepted
    the payment earlier, under other terms. For an expired payment, for a payer that it refuses, and for a
    service it cannot serve, it checks first.
    """
    note = failure.note
    if note is None or note.state != "unused":
        return False
    is_checked = failure.reason in CHECKED_REASONS or failure.code == "provider_unconfigured"
    return not doubtful or is_checked


def _classify_retryable(
    response: HttpResponse, failure: ErrorResponse, payment: Payment, *, unused: bool
) -> PaymentOutcome:
    """Classify an error after which the payment stays valid: settled but undelivered, or undecided."""
    note = failure.note
    assert note is not None
    if not note.charged and not unused:
        return _retry(payment, f"the API reports: {failure.message} ({failure.code})", response, failure)
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
    return PaymentOutcome(
        error,
        "unresolved",
        should_retry=True,
        retry_delay=parse_retry_after(response),
        maybe_accepted=note.charged or not unused,
    )


def _payment_refused(failure: ErrorResponse, payment: Payment) -> PaymentRefused:
    error_type = PaymentRefused
    sentence = f"the API refused the payment, and reports that no money moved: {failure.message}"
    if failure.reason in LOW_BALANCE_REASONS:
        error_type = InsufficientBalance
        token = describe_token(payment.network, payment.asset)
        sentence = (
            f"the API reports that the wallet {payment.payer} holds less than ${payment.usd} in {token} on "
            f"{payment.network}, and that no money moved: send {token} to it and call again"
        )
    elif failure.reason == EXPIRED_REASON:
        sentence += ". Check this machine's clock, and call again"
    return error_type(sentence, failure.reason, money="reported_not_moved", request_id=failure.request_id)


def _retry(
    payment: Payment, why: str, response: HttpResponse, failure: ErrorResponse | None = None
) -> PaymentOutcome:
    error = _unresolved_error(payment, why, response, failure)
    return PaymentOutcome(error, "unresolved", should_retry=True, retry_delay=parse_retry_after(response))


def _leave_open(
    payment: Payment, why: str, response: HttpResponse | None = None, failure: ErrorResponse | None = None
) -> PaymentOutcome:
    return PaymentOutcome(_unresolved_error(payment, why, response, failure), "unresolved")


def _unresolved_error(
    payment: Payment, why: str, response: HttpResponse | None = None, failure: ErrorResponse | None = None
) -> Unresolved:
    money = _money_by_receipt(response, payment) if response else "unknown"
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


def _money_by_receipt(response: HttpResponse, payment: Payment) -> Money:
    """Return the payment's state according to the receipt only."""
    receipt, _ = parse_receipt(response, payment)
    return "moved" if receipt else "unknown"


def parse_retry_after(response: HttpResponse) -> float:
    """Parse Retry-After in seconds; 0 if it is missing or not a number."""
    value = response.headers.get("retry-after", "")
    return float(value) if value.isascii() and value.isdigit() and len(value) < 7 else 0.0
