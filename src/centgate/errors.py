"""The tree of exceptions.

CentgateError
├── Refused                    the client's error: nothing was charged for this request
│   ├── InvalidRequest         the body is missing, malformed or outside the schema
│   ├── UnsupportedOptions     options that the price does not include
│   ├── NotFound               no such route or service
│   ├── MethodNotAllowed       the route exists, the method does not
│   ├── PaymentRequired        no payment, or one that cannot be accepted
│   ├── SignInRequired         a wallet has to show that it is the payer
│   ├── PaymentConflict        an idempotency key that belongs to another request
│   ├── RateLimited            too much unpaid or refused work from one address or payer
│   └── PaymentNotConfigured   this deployment takes no payments
├── NoData                     a definitive empty answer: delivered and charged like any other
├── ProviderFailure            a failure of one upstream, named by `provider`
│   ├── ProviderUnconfigured   it has no key, no address or no adapter here
│   ├── ProviderError          it returned an invalid response, or could not be reached
│   │   ├── AnswerTooLong      its response exceeds the maximum size
│   │   ├── PageUnread         the requested page cannot be read: a fault of the page or the site
│   │   └── ProviderRefused    it rejects this deployment: an invalid key, a plan that lacks it, a block
│   ├── ProviderTimeout        it did not answer in time
│   └── ProviderRateLimited    its rate limit is reached
└── InternalError              a fault of this server

The codes are part of the API contract; `envelope.ERROR_SPECS` has their HTTP statuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

PaymentState = Literal["unused", "in_flight", "settled", "delivered", "refused"]
Retry = Literal["same_payment", "new_payment", "none"]
UnreadReason = Literal[
    "not_found",
    "blocked",
    "robots",
    "blocked_address",
    "dns",
    "tls",
    "unreachable",
    "timeout",
    "unsupported",
    "too_large",
    "failed",
]
"""Reasons why a page could not be read."""


@dataclass(frozen=True, slots=True)
class PaymentNote:
    """State of the buyer's payment in an error: `details.payment`."""

    state: PaymentState
    charged: bool
    """True only if the money has certainly moved; a payment `in_flight` may still be charged."""
    retry: Retry
    transaction: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the members of `details.payment`; `transaction` only if there is one."""
        note: dict[str, Any] = {"state": self.state, "charged": self.charged, "retry": self.retry}
        if self.transaction:
            note["transaction"] = self.transaction
        return note


UNCHARGED_SIGN_NEW = PaymentNote("unused", charged=False, retry="new_payment")
"""The payment was not charged; signing a new one may help."""
UNCHARGED_RESEND = PaymentNote("unused", charged=False, retry="same_payment")
"""The payment was not charged and can be sent again."""
UNKNOWN_RESEND = PaymentNote("in_flight", charged=False, retry="same_payment")
"""It is not known yet what became of the payment; sent again, it gets what it has paid for."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem of a request body; `path` is dotted (`urls.0`), empty for the whole body."""

    path: str
    message: str


class CentgateError(Exception):
    """Base of all errors that are returned to the client in the error envelope."""

    code: str

    def __init__(
        self,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        payment: PaymentNote | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or {}
        self.payment = payment
        self.retry_after = retry_after
        self.provider: str | None = None

    def copy_for_caller(self) -> Self:
        """Return a copy for another caller, since the payment state is set on each caller's own error."""
        twin = type(self).__new__(type(self), *self.args)
        twin.__dict__.update(self.__dict__)
        return twin


class Refused(CentgateError):
    """Base of errors that the client has to resolve; nothing was charged."""


class InvalidRequest(Refused):
    """Lists all problems of a request, not just the first."""

    code = "validation_error"

    def __init__(self, issues: Sequence[Issue]) -> None:
        first = issues[0]
        more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
        where = f"{first.path}: " if first.path else ""
        super().__init__(
            f"{where}{first.message}{more}",
            details={"issues": [{"path": issue.path, "message": issue.message} for issue in issues]},
        )


class UnsupportedOptions(Refused):
    """Lists the unsupported options, so that an agent can remove them and retry."""

    code = "unsupported_options"

    def __init__(
        self,
        options: Sequence[str],
        supported: Sequence[str],
        why: str = "not included in the price of a call",
    ) -> None:
        super().__init__(
            f"{why}: {', '.join(options)}; refused, never downgraded",
            details={"options": list(options), "supported": list(supported)},
        )


class NotFound(Refused):
    code = "not_found"


class MethodNotAllowed(Refused):
    code = "method_not_allowed"

    def __init__(self, method: str, allowed: Sequence[str]) -> None:
        super().__init__(f"method {method} is not allowed here; allowed: {', '.join(allowed)}")
        self.allowed = tuple(allowed)


class PaymentRequired(Refused):
    """402 with current terms; `reason` is an x402 error code, absent if no payment was sent."""

    code = "payment_required"

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        payment: PaymentNote | None = None,
        settlement: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message, details={"reason": reason} if reason else None, payment=payment)
        self.reason = reason
        self.settlement = settlement
        """x402's SettleResponse of a refused settlement, for the `PAYMENT-RESPONSE` header."""


class SignInRequired(Refused):
    """402 of a free route that shows a wallet what it paid: a challenge to sign instead of terms to pay.

    `offer` is x402's PaymentRequired without `accepts`; `reason` says why a signature was refused.
    """

    code = "payment_required"

    def __init__(self, message: str, offer: Mapping[str, Any], *, reason: str | None) -> None:
        details = {"accepts": offer["accepts"], "extensions": offer["extensions"]}
        super().__init__(message, details=details | ({"reason": reason} if reason else {}))
        self.offer = offer


class PaymentConflict(Refused):
    code = "payment_conflict"


class RateLimited(Refused):
    """The request was not processed; it can be sent again after `retry_after` seconds."""

    code = "rate_limited"

    def __init__(self, message: str, *, retry_after: int, payment: PaymentNote | None = None) -> None:
        again = f"send the request again in {retry_after} s"
        super().__init__(f"{message}: {again}", payment=payment, retry_after=retry_after)


class PaymentNotConfigured(Refused):
    code = "payment_not_configured"


class NoData(CentgateError):
    """The sources responded and have no data: a final answer, so it is delivered and charged."""

    code = "no_data"


class ProviderFailure(CentgateError):
    """Base of failures of one upstream, named by `provider`."""

    def __init__(
        self,
        provider: str,
        message: str,
        *,
        payment: PaymentNote | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message, payment=payment, retry_after=retry_after)
        self.provider = provider


class ProviderUnconfigured(ProviderFailure):
    code = "provider_unconfigured"


class ProviderError(ProviderFailure):
    code = "provider_error"


class AnswerTooLong(ProviderError):
    """The upstream's response exceeds the maximum size; requesting less may help."""


class PageUnread(ProviderError):
    """The requested page could not be read; `details.reason` has the reason as one word.

    A page that times out has the code of a provider timeout.
    """

    def __init__(self, provider: str, reason: UnreadReason, message: str) -> None:
        super().__init__(provider, message)
        self.reason: UnreadReason = reason
        self.is_temporary = False
        """True if the reason may be gone soon: too many requests, or a robots.txt that was not read."""
        self.details["reason"] = reason
        if reason == "timeout":
            self.code = ProviderTimeout.code


class ProviderRefused(ProviderError):
    """The upstream rejects this deployment; do not retry, the operator must check the key or the plan."""


class ProviderTimeout(ProviderFailure):
    code = "provider_timeout"


class ProviderRateLimited(ProviderFailure):
    code = "provider_rate_limited"


class InternalError(CentgateError):
    code = "internal_error"


def unexpected_error() -> InternalError:
    """Return the error for an exception that nothing expected; only the log has its details."""
    return InternalError("unexpected server error; report the requestId")
