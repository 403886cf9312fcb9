"""The payments of a wallet as the API knows them: the responses of `GET /payments` and its pages."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from centgate.client.responses import Retry
from centgate.client.wire_model import ApiModel, Timestamp

PAYMENTS_PATH = "/payments"
MAX_LIMIT = 100
"""Maximum number of payments on a page."""

NextStep = Literal["read_answer", "redeem", "wait", "pay_again", "await_refund", "none"]
"""What the wallet's owner can do about a payment."""

_Text = Annotated[str, Field(max_length=400)]
_BaseUnits = Annotated[str, Field(pattern=r"^[0-9]{1,78}$")]
"""At most 78 digits, as the largest number of 256 bits."""


class PaymentRefund(ApiModel):
    """Transfer by which the operator paid a payment back."""

    transaction: _Text = Field(description="The transaction that paid it back.")
    at: Timestamp = Field(description="When the operator recorded it.")


class WalletPayment(ApiModel):
    """One payment of the wallet."""

    transaction: _Text | None = Field(
        description="The transaction that settled it; while its outcome is unknown, one that may have."
    )
    network: _Text = Field(description="The network, as CAIP-2.")
    asset: _Text = Field(description="The token's contract.")
    nonce: _Text = Field(description="The payment's nonce; it can be used in place of the transaction.")
    amount: _BaseUnits = Field(description="In the token's base units.")
    pay_to: _Text = Field(description="Who was paid.")
    service: _Text = Field(description="Slug of the service that was paid for.")
    state: Literal["unused", "in_flight", "settled", "delivered", "refused"] = Field(
        description="As in `details.payment` of an error."
    )
    charged: bool = Field(description="Whether money moved.")
    retry: Retry = Field(description="Which payment to send for the same request, if it is sent again.")
    next: NextStep = Field(
        description="read_answer: GET `url` has the answer; redeem: POST the same body to `url` for the "
        "answer that is owed; wait: the outcome is not known yet; pay_again: no money moved; await_refund: "
        "the operator owes the money back; none: nothing is owed or stored any more, or no money moved and "
        "the API accepts no new payment of this wallet for the service."
    )
    reason: _Text | None = Field(description="Why it was refused, as an x402 reason.")
    created_at: Timestamp = Field(description="When it was submitted.")
    settled_at: Timestamp | None = Field(description="When it was settled.")
    delivered_at: Timestamp | None = Field(description="When its answer was stored.")
    redeemable_until: Timestamp | None = Field(
        description="Until when the answer can be read or redeemed; null if no money moved."
    )
    has_answer: bool = Field(description="Whether its answer is stored.")
    url: _Text = Field(description="Where the payment is shown with its answer, and redeemed.")
    refund: PaymentRefund | None = Field(description="How it was paid back, if it was.")


class WalletPaymentPage(ApiModel):
    """Payments of the wallet, newest first."""

    payments: Annotated[tuple[WalletPayment, ...], Field(max_length=MAX_LIMIT)]
    cursor: _Text | None = Field(description="Send it as `cursor` for the next page; null on the last one.")


class StoredResponse(ApiModel):
    """A delivered answer, as it was sent."""

    status: int = Field(description="Its HTTP status: 200, or 404 for `no_data`.")
    request_id: _Text = Field(description="Its `X-Request-Id`.")
    payment_response: Annotated[str, Field(max_length=16384)] = Field(
        description="Its header `PAYMENT-RESPONSE`: the receipt."
    )
    body: dict[str, Any] = Field(description="Its body.")


class AnsweredPayment(WalletPayment):
    """One payment of the wallet, with its answer."""

    answer: StoredResponse | None = Field(
        description="The stored answer; null if there is none, or if the other answers are too large: "
        "`url` has it then."
    )


class TransactionPayments(ApiModel):
    """All payments of the wallet in one transaction."""

    payments: tuple[AnsweredPayment, ...]
