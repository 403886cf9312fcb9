"""Exceptions of the client. Each carries the known state of the payment in `money`.

BuyerError
├── AddressRefused         the API URL is invalid, or a public host without TLS
├── InvalidInput           the body is not what the service takes; `issues` lists every problem
├── UnsupportedOptions     an option that the price does not cover; `options` names each
├── NotFound               the API has no such service
├── NoWallet               there is no key to sign with
├── NoNode                 there is no node to ask about the wallet
├── WalletUnreadable       the key file is missing, malformed, or readable by others
├── LedgerUnwritable       a payment could not be recorded, so nothing was signed
├── CapExceeded            the price is above a cap of this client
├── TermsRefused           the API requires terms that this client does not sign
├── Unavailable            this deployment does not serve it, or accepts no payments
├── PaymentRefused         the API refused the payment; `reason` is x402's
│   └── InsufficientBalance    the wallet's balance is too low
├── NoData                 the providers have no data: a valid answer, and charged
├── ServiceFailed          the service failed; a payment it accepted stays valid for a later call
├── Unresolved             the payment's outcome is unknown; `payment` can be sent again
├── Unreachable            the API does not respond, and nothing was signed
└── Drift                  the response does not match this client's protocol version
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from centgate.client.payment import Payment, Receipt

Money = Literal["not_moved", "reported_not_moved", "moved", "unknown"]
"""`not_moved`: verified by this client, because nothing was signed or the wallet owner's node shows it.

`reported_not_moved`: a payment was sent, and the API reports that no money moved. An API can lie.
"""


@dataclass(frozen=True, slots=True)
class InputIssue:
    """Problem in a request body; `path` is dotted (`urls.0`), empty for the whole body."""

    path: str
    message: str


class BuyerError(Exception):
    """Base class: a call that returned no data. The text includes the next step."""

    def __init__(self, sentence: str, *, money: Money = "not_moved", request_id: str | None = None) -> None:
        super().__init__(sentence)
        self.money: Money = money
        self.request_id = request_id

    def __reduce__(self) -> Any:
        """Pickle without calling __init__: subclasses differ in arguments, and pool workers raise them."""
        return _restore, (type(self), self.args), self.__dict__


def _restore(kind: type[BuyerError], args: tuple[Any, ...]) -> BuyerError:
    return kind.__new__(kind, *args)


class AddressRefused(BuyerError):
    """The API URL is not allowed; nothing was sent. `Allowed.plain_http` lists public hosts without TLS."""


class InvalidInput(BuyerError):
    """Invalid request body; `issues` holds every problem found."""

    def __init__(self, sentence: str, issues: Sequence[InputIssue], *, request_id: str | None = None) -> None:
        super().__init__(sentence, request_id=request_id)
        self.issues = tuple(issues)


class UnsupportedOptions(BuyerError):
    """Unsupported options; `options` names each of them."""

    def __init__(self, sentence: str, options: Sequence[str], *, request_id: str | None = None) -> None:
        super().__init__(sentence, request_id=request_id)
        self.options = tuple(options)


class NotFound(BuyerError):
    """No such service at this API."""


class NoWallet(BuyerError):
    """The call requires a payment and there is no key: pass a `Wallet` to the client."""


class NoNode(BuyerError):
    """The question is for an Ethereum node of the wallet's owner, and none is set."""


class WalletUnreadable(BuyerError):
    """The configured key could not be read."""


class LedgerUnwritable(BuyerError):
    """The ledger cannot be written. An unrecorded payment could be made twice, so nothing is signed."""


class CapExceeded(BuyerError):
    """The price exceeds the client's cap per call or its total cap (`Caps`)."""


class TermsRefused(BuyerError):
    """The client does not sign the API's terms; `objections` lists the reasons.

    `Allowed` permits other networks, assets and hosts; the client's `payee` fixes the payee.
    """

    def __init__(
        self, sentence: str, objections: Sequence[str] = (), *, request_id: str | None = None
    ) -> None:
        super().__init__(sentence, request_id=request_id)
        self.objections = tuple(objections) or (sentence,)


class Unavailable(BuyerError):
    """This deployment does not serve the request; another deployment may."""


class PaymentRefused(BuyerError):
    """The payment was refused or is already used: see `money`. `reason` is x402's."""

    def __init__(
        self, sentence: str, reason: str | None, *, money: Money, request_id: str | None = None
    ) -> None:
        super().__init__(sentence, money=money, request_id=request_id)
        self.reason = reason


class InsufficientBalance(PaymentRefused):
    """The wallet's balance is below the price."""


class NoData(BuyerError):
    """The providers answered and have no data. This is a final answer, and it was charged."""

    def __init__(
        self, sentence: str, receipt: Receipt | None, *, money: Money, request_id: str | None = None
    ) -> None:
        super().__init__(sentence, money=money, request_id=request_id)
        self.receipt = receipt


class ServiceFailed(BuyerError):
    """The service failed; `code` and `provider` are the API's.

    `retry` is `same_payment` if repeating the call reuses the existing payment.
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
    """A payment was sent and no answer was received.

    Repeating the call sends `payment` again, never a second one.
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
    """The API does not respond."""


class Drift(BuyerError):
    """The server's response does not match this client's protocol version."""
