"""What can go wrong, as a tree.

CentgateError
├── Refused                    the caller's turn: nothing was charged for this request
│   ├── InvalidRequest         the body is missing, malformed or outside the schema
│   ├── UnsupportedOptions     a mode that one cent does not pay for
│   ├── NotFound               no such route or service
│   ├── MethodNotAllowed       the route exists, the method does not
│   ├── PaymentRequired        no payment, or one that cannot be accepted
│   ├── PaymentConflict        an idempotency key that stands for another request
│   ├── RateLimited            too much unpaid or refused work from one address or payer
│   └── PaymentNotConfigured   this deployment takes no payments
├── NoData                     a definitive empty answer: delivered and charged like any other
├── ProviderFailure            one upstream, named
│   ├── ProviderUnconfigured   it has no key, no address or no adapter here
│   ├── ProviderError          it answered wrongly, or could not be reached
│   │   ├── AnswerTooLong      it answered with more than is read
│   │   ├── PageUnread         the page it was to read cannot be read: the page's fault or the site's
│   │   └── ProviderRefused    it will not answer this deployment: a bad key, a plan that lacks it, a block
│   ├── ProviderTimeout        it did not answer in time
│   └── ProviderRateLimited    it asks us to slow down
└── InternalError              ours

Codes are those of the contract; which HTTP status each has is `envelope.STATUS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from centgate.facts.web import UnreadReason

PaymentState = Literal["unused", "in_flight", "settled", "delivered", "refused"]
Retry = Literal["same_payment", "new_payment", "none"]


@dataclass(frozen=True, slots=True)
class PaymentNote:
    """What an error says of the buyer's money: `details.payment`."""

    state: PaymentState
    charged: bool
    retry: Retry
    transaction: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The members of `details.payment`; `transaction` only when there is one."""
        note: dict[str, Any] = {"state": self.state, "charged": self.charged, "retry": self.retry}
        if self.transaction:
            note["transaction"] = self.transaction
        return note


UNUSED = PaymentNote("unused", charged=False, retry="new_payment")
"""The payment presented was not taken, and signing another may help."""
UNTOUCHED = PaymentNote("unused", charged=False, retry="same_payment")
"""The payment presented was not taken, and is as good as before."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem of a request body; `path` is dotted (`urls.0`), empty for the whole body."""

    path: str
    message: str


class CentgateError(Exception):
    """Something the caller is told in the error envelope."""

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

    def again(self) -> Self:
        """The same error for another caller: what is said of a payment is written on each one's own."""
        twin = type(self).__new__(type(self), *self.args)
        twin.__dict__.update(self.__dict__)
        return twin


class Refused(CentgateError):
    """The caller's turn."""


class InvalidRequest(Refused):
    """Carries every problem found, not just the first."""

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
    """Names each option, so that an agent can drop it and ask again."""

    code = "unsupported_options"

    def __init__(
        self, options: Sequence[str], supported: Sequence[str], why: str = "not offered at one cent a call"
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
    """402 with fresh terms; `reason` is in x402's vocabulary, absent when no payment came."""

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
        """x402's SettleResponse of a settlement that the facilitator refused, for `PAYMENT-RESPONSE`."""


class PaymentConflict(Refused):
    code = "payment_conflict"


class RateLimited(Refused):
    """Nothing was tried: the same request can be sent again when `retry_after` seconds have passed."""

    code = "rate_limited"

    def __init__(self, message: str, *, retry_after: int, payment: PaymentNote | None = None) -> None:
        again = f"send the request again in {retry_after} s"
        super().__init__(f"{message}: {again}", payment=payment, retry_after=retry_after)


class PaymentNotConfigured(Refused):
    code = "payment_not_configured"


class NoData(CentgateError):
    """The sources answered and know nothing: final, so delivered and charged."""

    code = "no_data"


class ProviderFailure(CentgateError):
    """One upstream, named by `provider`."""

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
    """Asking for less may help."""


class PageUnread(ProviderError):
    """The page that was asked for could not be read; `details.reason` says why in one word.

    A page that is late is a provider that is late.
    """

    def __init__(self, provider: str, reason: UnreadReason, message: str) -> None:
        super().__init__(provider, message)
        self.reason: UnreadReason = reason
        self.details["reason"] = reason
        if reason == "timeout":
            self.code = ProviderTimeout.code


class ProviderRefused(ProviderError):
    """Asking again will not help; somebody must look at the key or the plan."""


class ProviderTimeout(ProviderFailure):
    code = "provider_timeout"


class ProviderRateLimited(ProviderFailure):
    code = "provider_rate_limited"


class InternalError(CentgateError):
    code = "internal_error"
