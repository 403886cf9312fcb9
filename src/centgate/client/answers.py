"""What a Centgate answers: the envelope of data, the envelope of errors, and the receipt of a payment."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, cast

import orjson
from pydantic import ConfigDict, Field, ValidationError

from centgate.client.errors import Money
from centgate.client.exchange import Reply
from centgate.client.payment import Payment
from centgate.client.reading import Foreign, from_base64
from centgate.receipts.checking import carries_receipt, examine

Retry = Literal["same_payment", "new_payment", "none"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a payment came to: the transaction on the chain, and who paid how much."""

    transaction: str
    payer: str
    network: str
    amount: Decimal
    """US dollars."""
    replayed: bool
    """Whether the API gave the answer before and gave it again, for nothing."""
    signer: str | None = None
    """Who signed that it was paid and answered (x402's `offer-receipt`), where all that is signed agrees."""
    header: str = field(default="", repr=False)
    """PAYMENT-RESPONSE as it came: what to keep, and what `centgate receipt verify` reads."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a service."""

    data: dict[str, Any]
    request_id: str
    cached: bool
    providers: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...]
    receipt: Receipt | None
    envelope: dict[str, Any]
    """The whole body."""
    money: Money
    """`moved` by the receipt; `unknown` where a payment was sent and no receipt came."""
    notes: tuple[str, ...] = ()
    """What this client noticed."""
    body: bytes = field(default=b"", repr=False)
    """The same, byte for byte: what a signed receipt is for."""


class _Read(Foreign):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


_Word = Annotated[str, Field(max_length=200)]
"""What goes into sentences and into the ledger."""


class _Cache(_Read):
    hit: bool


class _Envelope(_Read):
    request_id: _Word = Field(alias="requestId")
    cache: _Cache
    providers: list[dict[str, Any]]
    warnings: list[str]
    data: dict[str, Any]


class Note(_Read):
    """`details.payment` of an error: what it says of the money."""

    state: Literal["unused", "in_flight", "settled", "delivered", "refused"]
    charged: bool
    retry: Retry
    transaction: str | None = None


class _Told(_Read):
    code: _Word
    message: str
    provider: _Word | None = None
    details: dict[str, Any] = Field(default_factory=dict[str, Any])


class _Failed(_Read):
    error: _Told
    request_id: _Word | None = Field(default=None, alias="requestId")


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as the API tells it; `code` is None where it is not told as a Centgate does."""

    status: int
    code: str | None
    message: str
    provider: str | None
    details: dict[str, Any]
    note: Note | None
    request_id: str | None

    @property
    def reason(self) -> str | None:
        """Why a payment was not taken, in x402's vocabulary."""
        reason = self.details.get("reason")
        return reason if isinstance(reason, str) else None


class NotJson(ValueError):
    """The body cannot be read: cut, or altered on the way."""


class OtherShape(ValueError):
    """The body is JSON, and not a Centgate's."""


def read_answer(reply: Reply, payment: Payment | None) -> Answer:
    """The answer in a 200; NotJson or OtherShape when there is none."""
    envelope = _json(reply)
    try:
        read = _Envelope.model_validate(envelope)
    except ValidationError as error:
        found = error.errors()[0]
        raise OtherShape(f"{'.'.join(map(str, found['loc'])) or 'the body'}: {found['msg']}") from None
    receipt, note = read_receipt(reply, payment)
    return Answer(
        data=read.data,
        request_id=read.request_id,
        cached=read.cache.hit,
        providers=tuple(read.providers),
        warnings=tuple(read.warnings),
        receipt=receipt,
        envelope=envelope,
        money="moved" if receipt else "unknown" if payment else "not_moved",
        notes=(note,) if note else (),
        body=reply.body,
    )


def read_receipt(reply: Reply, payment: Payment | None) -> tuple[Receipt | None, str | None]:
    """The receipt in PAYMENT-RESPONSE, or a sentence that says why there is none."""
    header = reply.headers.get("payment-response")
    if payment is None:
        return None, "the API answered without asking for a payment"
    if header is None:
        return None, "the API gave no receipt (PAYMENT-RESPONSE)"
    try:
        said = orjson.loads(from_base64(header))
        settled = _Settled.model_validate(said)
    except ValueError:
        return None, "the API's receipt (PAYMENT-RESPONSE) cannot be read"
    if not settled.success or not settled.transaction:
        return None, "the API's receipt (PAYMENT-RESPONSE) says that the payment was not settled"
    if (
        settled.network != payment.network
        or (settled.payer or payment.payer).lower() != payment.payer.lower()
    ):
        return None, "the API's receipt (PAYMENT-RESPONSE) is of another payment"
    signer, note = _signed(said, reply, payment)
    replayed = reply.headers.get("idempotent-replayed") == "true"
    return Receipt(
        settled.transaction, payment.payer, payment.network, payment.usd, replayed, signer, header
    ), note


def _signed(said: dict[str, Any], reply: Reply, payment: Payment) -> tuple[str | None, str | None]:
    """Who signed a receipt, or a sentence that says why it proves nothing; neither where there is none."""
    if not carries_receipt(said):
        return None, None
    verdict = examine(said, body=reply.body)
    why = next(iter(verdict.failures), None)
    # it may be paid by its public address and called by another: the path is what both have
    if not why and not str((verdict.payload or {})["resourceUrl"]).endswith(payment.path):
        why = "the receipt is for another service"
    return (None, f"the API's signed receipt proves nothing: {why}") if why else (verdict.signer, None)


class _Settled(_Read):
    success: bool
    transaction: _Word = ""
    network: str = ""
    payer: str | None = None


def read_failure(reply: Reply) -> Failure:
    """What any other status says, as far as it can be understood."""
    try:
        read = _Failed.model_validate(_json(reply))
    except ValueError:
        return Failure(reply.status, None, f"HTTP {reply.status}", None, {}, None, None)
    told = read.error
    return Failure(
        reply.status,
        told.code,
        "".join(each if each.isprintable() else " " for each in told.message[:500]),
        told.provider,
        told.details,
        _note(told.details),
        read.request_id,
    )


def _note(details: dict[str, Any]) -> Note | None:
    try:
        return Note.model_validate(details["payment"])
    except (KeyError, ValidationError):
        return None


def _json(reply: Reply) -> dict[str, Any]:
    if reply.headers.get("content-encoding", "identity").lower() != "identity":
        raise NotJson("it is compressed, which was not asked for")
    try:
        content = orjson.loads(reply.body)
    except ValueError:
        raise NotJson("it is not JSON") from None
    if not isinstance(content, dict):
        raise OtherShape("it is not a JSON object")
    return cast(dict[str, Any], content)
