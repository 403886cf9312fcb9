"""Parse API responses: the data envelope, the error envelope, and the payment receipt."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal, cast

import orjson
from pydantic import Field, ValidationError

from centgate.client.errors import Money
from centgate.client.payment import Payment, Receipt
from centgate.client.transport import HttpResponse
from centgate.client.wire_model import StrictModel, decode_base64
from centgate.signing.receipts.verify import has_receipt, verify_receipt

Retry = Literal["same_payment", "new_payment", "none"]


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
    """`moved` if there is a receipt; `unknown` if a payment was sent and no receipt came back."""
    notes: tuple[str, ...] = ()
    """Observations of this client, such as a missing receipt."""
    body: bytes = field(default=b"", repr=False)
    """The body, byte for byte: a signed receipt covers its hash."""

    def to_dict(self) -> dict[str, Any]:
        """Return the whole body as JSON values, with the `receipt`, the state of the `money` and `notes`."""
        receipt = asdict(self.receipt) | {"amount": str(self.receipt.amount)} if self.receipt else None
        return {**self.envelope, "receipt": receipt, "money": self.money, "notes": list(self.notes)}


_ShortText = Annotated[str, Field(max_length=200)]
"""Text that is copied into messages and into the ledger."""


class _CacheState(StrictModel):
    hit: bool


class _Envelope(StrictModel):
    request_id: _ShortText = Field(alias="requestId")
    cache: _CacheState
    providers: list[dict[str, Any]]
    warnings: list[str]
    data: dict[str, Any]


class PaymentNote(StrictModel):
    """`details.payment` of an error: the payment's state."""

    state: Literal["unused", "in_flight", "settled", "delivered", "refused"]
    charged: bool
    retry: Retry
    transaction: str | None = None


class _ErrorBody(StrictModel):
    code: _ShortText
    message: str
    provider: _ShortText | None = None
    details: dict[str, Any] = Field(default_factory=dict[str, Any])


class _ErrorEnvelope(StrictModel):
    error: _ErrorBody
    request_id: _ShortText | None = Field(default=None, alias="requestId")


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """Error response; `code` is None if the body is not a Centgate error envelope."""

    status: int
    code: str | None
    message: str
    provider: str | None
    details: dict[str, Any]
    note: PaymentNote | None
    request_id: str | None

    @property
    def reason(self) -> str | None:
        """The x402 reason why the payment was refused; None if the API gives none."""
        reason = self.details.get("reason")
        return reason if isinstance(reason, str) else None


class NotJson(ValueError):
    """The body is not readable JSON: truncated, or changed in transit."""


class UnexpectedShape(ValueError):
    """The body is JSON but not a Centgate envelope."""


def parse_answer(response: HttpResponse, payment: Payment | None) -> Answer:
    """Parse a 200 response. Raises NotJson or UnexpectedShape."""
    envelope = _parse_json(response)
    try:
        parsed = _Envelope.model_validate(envelope)
    except ValidationError as error:
        first = error.errors()[0]
        raise UnexpectedShape(f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}") from None
    receipt, receipt_problem = parse_receipt(response, payment)
    return Answer(
        data=parsed.data,
        request_id=parsed.request_id,
        cached=parsed.cache.hit,
        providers=tuple(parsed.providers),
        warnings=tuple(parsed.warnings),
        receipt=receipt,
        envelope=envelope,
        money="moved" if receipt else "unknown" if payment else "not_moved",
        notes=(receipt_problem,) if receipt_problem else (),
        body=response.body,
    )


def parse_receipt(response: HttpResponse, payment: Payment | None) -> tuple[Receipt | None, str | None]:
    """Parse the receipt in PAYMENT-RESPONSE. Returns (receipt, None), or (None or receipt, problem)."""
    header = response.headers.get("payment-response")
    if payment is None:
        return None, "the API answered without requiring a payment"
    if header is None:
        return None, "the API sent no receipt (PAYMENT-RESPONSE)"
    try:
        settlement_json = orjson.loads(decode_base64(header))
        settlement = _SettlementHeader.model_validate(settlement_json)
    except ValueError:
        return None, "the API's receipt (PAYMENT-RESPONSE) cannot be read"
    if not settlement.success or not settlement.transaction:
        return None, "the API's receipt (PAYMENT-RESPONSE) says that the payment was not settled"
    if (
        settlement.network != payment.network
        or (settlement.payer or payment.payer).lower() != payment.payer.lower()
    ):
        return None, "the API's receipt (PAYMENT-RESPONSE) belongs to another payment"
    signer, signature_problem = _verify_signed_receipt(settlement_json, response, payment)
    replayed = response.headers.get("idempotent-replayed") == "true"
    return Receipt(
        settlement.transaction, payment.payer, payment.network, payment.usd, replayed, signer, header
    ), signature_problem


def _verify_signed_receipt(
    settlement_json: dict[str, Any], response: HttpResponse, payment: Payment
) -> tuple[str | None, str | None]:
    """Verify a signed receipt. Returns (signer, None), (None, problem), or (None, None) if it is unsigned."""
    if not has_receipt(settlement_json):
        return None, None
    verdict = verify_receipt(settlement_json, body=response.body)
    problem = next(iter(verdict.failures), None)
    # the API may be paid under its public URL and called by another: only the path is common to both
    if not problem and not str((verdict.payload or {})["resourceUrl"]).endswith(payment.path):
        problem = "the receipt is for another service"
    return (
        (None, f"the API's signed receipt proves nothing: {problem}") if problem else (verdict.signer, None)
    )


class _SettlementHeader(StrictModel):
    success: bool
    transaction: _ShortText = ""
    network: str = ""
    payer: str | None = None


def parse_error(response: HttpResponse) -> ErrorResponse:
    """Parse an error response; an unreadable body gives an ErrorResponse without a code."""
    try:
        envelope = _ErrorEnvelope.model_validate(_parse_json(response))
    except ValueError:
        return ErrorResponse(response.status, None, f"HTTP {response.status}", None, {}, None, None)
    error = envelope.error
    return ErrorResponse(
        response.status,
        error.code,
        "".join(char if char.isprintable() else " " for char in error.message[:500]),
        error.provider,
        error.details,
        _parse_note(error.details),
        envelope.request_id,
    )


def _parse_note(details: dict[str, Any]) -> PaymentNote | None:
    try:
        return PaymentNote.model_validate(details["payment"])
    except (KeyError, ValidationError):
        return None


def _parse_json(response: HttpResponse) -> dict[str, Any]:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise NotJson("it is compressed, although no compression was requested")
    try:
        content = orjson.loads(response.body)
    except ValueError:
        raise NotJson("it is not JSON") from None
    if not isinstance(content, dict):
        raise UnexpectedShape("it is not a JSON object")
    return cast(dict[str, Any], content)
