"""What can go wrong for a buyer, as a tree; each error says what is known of the money.

BuyerError
├── AddressRefused         the API's address is none, or is called without TLS over public networks
├── InvalidInput           the body is not what the service takes; `issues` lists every problem
├── UnsupportedOptions     a mode that one cent does not pay for; `options` names each
├── NotFound               the API has no such service
├── NoWallet               there is nothing to sign with
├── WalletUnreadable       the key file is absent, malformed, or others can read it
├── LedgerUnwritable       what is signed could not be remembered, so nothing was signed
├── CapExceeded            the price is above a cap of this client
├── TermsRefused           the API asks for what this client does not sign
├── Unavailable            this deployment does not serve it, or takes no payments
├── PaymentRefused         the API did not take the payment; `reason` in x402's words
│   └── InsufficientBalance    the wallet holds too little
├── NoData                 the sources know nothing of it: an answer, and charged
├── ServiceFailed          the service failed; a payment it took is good for a later call
├── Unresolved             whether the payment moved is not known; `payment` can be sent again
├── Unreachable            the API does not answer, and nothing was signed
└── Drift                  what answers does not answer as a Centgate does
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from centgate.client.answers import Receipt
    from centgate.client.payment import Payment

Money = Literal["not_moved", "reported_not_moved", "moved", "unknown"]
"""`not_moved`: known by this client itself, since nothing was signed, or by a node of the wallet's owner.

`reported_not_moved`: a payment was sent, and the API says that no money moved. An API can lie.
"""


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem of a request body; `path` is dotted (`urls.0`), empty for the whole body."""

    path: str
    message: str


class BuyerError(Exception):
    """A call that gave no data. Its text is a sentence that says what to do next."""

    def __init__(self, sentence: str, *, money: Money = "not_moved", request_id: str | None = None) -> None:
        super().__init__(sentence)
        self.money: Money = money
        self.request_id = request_id

    def __reduce__(self) -> Any:
        """Pickled without calling __init__, so that a pool's worker can raise it whatever it takes."""
        return _remade, (type(self), self.args), self.__dict__


def _remade(kind: type[BuyerError], told: tuple[Any, ...]) -> BuyerError:
    return kind.__new__(kind, *told)


class AddressRefused(BuyerError):
    """Nothing was sent there. `Allowed.plain_http` names public hosts that are called without TLS."""


class InvalidInput(BuyerError):
    """Carries every problem found, not just the first."""

    def __init__(self, sentence: str, issues: Sequence[Issue], *, request_id: str | None = None) -> None:
        super().__init__(sentence, request_id=request_id)
        self.issues = tuple(issues)


class UnsupportedOptions(BuyerError):
    """Names each option, so that it can be dropped."""

    def __init__(self, sentence: str, options: Sequence[str], *, request_id: str | None = None) -> None:
        super().__init__(sentence, request_id=request_id)
        self.options = tuple(options)


class NotFound(BuyerError):
    """No such service at this API."""


class NoWallet(BuyerError):
    """The call has to be paid, and there is no key to sign with: a client is given a `Wallet`."""


class WalletUnreadable(BuyerError):
    """The key could not be taken from where it is said to be."""


class LedgerUnwritable(BuyerError):
    """A payment that is not written down could be made twice, so none is made."""


class CapExceeded(BuyerError):
    """The price is above what this client may spend on one call, or in all: its `Caps`."""


class TermsRefused(BuyerError):
    """The API asks for something this client does not sign; `objections` says each reason.

    What is signed beyond the ordinary, `Allowed` says, and who is paid, a client's `payee`.
    """

    def __init__(
        self, sentence: str, objections: Sequence[str] = (), *, request_id: str | None = None
    ) -> None:
        super().__init__(sentence, request_id=request_id)
        self.objections = tuple(objections) or (sentence,)


class Unavailable(BuyerError):
    """This deployment does not serve it; another may."""


class PaymentRefused(BuyerError):
    """The payment was not taken, or is used up: `money` says which. `reason` is in x402's vocabulary."""

    def __init__(
        self, sentence: str, reason: str | None, *, money: Money, request_id: str | None = None
    ) -> None:
        super().__init__(sentence, money=money, request_id=request_id)
        self.reason = reason


class InsufficientBalance(PaymentRefused):
    """The wallet holds less than the price."""


class NoData(BuyerError):
    """The sources answered and know nothing of it. That is an answer: it was charged, and stays the same."""

    def __init__(
        self, sentence: str, receipt: Receipt | None, *, money: Money, request_id: str | None = None
    ) -> None:
        super().__init__(sentence, money=money, request_id=request_id)
        self.receipt = receipt


class ServiceFailed(BuyerError):
    """The service failed: `code` and `provider` as the API names them.

    `retry` says how to go on: `same_payment` where the same call, made again, sends what was paid already.
    """

    def __init__(
        self,
        sentence: str,
        code: str,
        provider: str | None,
        *,
        retry: Literal["same_payment", "new_payment", "none"] | None = None,
        money: Money = "not_moved",
        request_id: str | None = None,
    ) -> None:
        super().__init__(sentence, money=money, request_id=request_id)
        self.code = code
        self.provider = provider
        self.retry = retry


class Unresolved(BuyerError):
    """A payment was sent and no answer came.

    The same call sends `payment` again, never a second one.
    """

    def __init__(
        self,
        sentence: str,
        payment: Payment,
        *,
        money: Money = "unknown",
        request_id: str | None = None,
    ) -> None:
        super().__init__(sentence, money=money, request_id=request_id)
        self.payment = payment


class Unreachable(BuyerError):
    """The API could not be asked."""


class Drift(BuyerError):
    """What answers is no Centgate, or one of another version."""
