"""Free routes on which a wallet that signs in sees its own payments, and redeems what it has not received.

`GET /payments`, and `GET` and `POST /payments/{transaction}`. Nothing here is cached, and a request without a
valid sign-in says nothing about any payment.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import orjson
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from centgate.api.http_requests import get_runtime, json_response, read_header, read_request_body
from centgate.client.policy import DEFAULT_LIMIT
from centgate.client.wallet_payments import (
    MAX_LIMIT,
    PAYMENTS_PATH,
    AnsweredPayment,
    NextStep,
    PaymentRefund,
    WalletPayment,
    WalletPaymentPage,
)
from centgate.client_limits import Admission
from centgate.errors import InvalidRequest, Issue, NotFound, SignInRequired
from centgate.payments.claim_values import StoredAnswer
from centgate.payments.gate import PaymentHeaders
from centgate.payments.journal.claims import build_note
from centgate.payments.journal.read_model import PaymentRecord, encode_cursor
from centgate.payments.payment_key import PaymentKey
from centgate.payments.wallet.sign_in import SignedIn, SignInRefused
from centgate.payments.wallet.wallet_payments import (
    OwnAnswer,
    OwnPayment,
    PagePlace,
    decode_place,
    find_own_payments,
    list_own_payments,
    read_answers,
)
from centgate.pipeline import PaidCall, redeem
from centgate.runtime import Runtime
from centgate.signing.assets import is_test_network
from centgate.timestamps import format_unix_time

SIGN_IN_HEADER = "SIGN-IN-WITH-X"
PRIVATE_HEADERS = {"Cache-Control": "no-store", "Vary": SIGN_IN_HEADER}
"""Headers of every response that depends on who has signed in."""

_REFERENCE = re.compile(r"[A-Za-z0-9_.~-]{1,200}")
"""Transactions and nonces; other ids of a facilitator cannot be written into a path, but nonces can."""


def wallet_payment_routes() -> list[Route]:
    """Return the routes. HEAD is not among the methods: it would use up a sign-in and show nothing."""
    routes = [
        Route(PAYMENTS_PATH, _list_payments, methods=["GET"]),
        Route(PAYMENTS_PATH + "/{reference}", _handle_payment, methods=["GET", "POST"]),
    ]
    for route in routes:
        if route.methods:
            route.methods.discard("HEAD")
    return routes


async def _list_payments(request: Request) -> Response:
    """Return a page of the wallet's payments, newest first."""
    if SIGN_IN_HEADER not in request.headers:
        raise await _challenge(request)
    limit, after = _read_limit(request), _read_cursor(request)  # before the sign-in is used up
    wallet = await _require_sign_in(request)
    runtime = get_runtime(request)
    found = await runtime.reader.read(partial(list_own_payments, wallet, limit=limit + 1, after=after))
    view = await _open_view(runtime, wallet)
    page = WalletPaymentPage(
        payments=tuple(view.describe(each) for each in found[:limit]),
        cursor=encode_cursor(found[limit - 1].place) if len(found) > limit else None,
    )
    return _private_response(200, page.model_dump_json(by_alias=True).encode())


async def _handle_payment(request: Request) -> Response:
    """Show the wallet's payments in a transaction with their answers, or redeem one of them."""
    reference: str = request.path_params["reference"]
    if not _REFERENCE.fullmatch(reference):
        raise _unknown_payment()
    wallet = await _require_sign_in(request)
    runtime = get_runtime(request)
    found = await runtime.reader.read(partial(find_own_payments, wallet, reference))
    if not found:
        raise _unknown_payment()
    if request.method == "POST":
        return await _redeem_payment(request, runtime, found)
    own_answers = await runtime.reader.read(partial(read_answers, found))
    view = await _open_view(runtime, wallet)
    content = {"payments": [view.describe_with_answer(each, own_answers) for each in found]}
    return _private_response(200, orjson.dumps(content))


def answer_headers(answer: StoredAnswer) -> dict[str, str]:
    """Return the headers of a paid answer besides those of its caching."""
    headers = {"PAYMENT-RESPONSE": answer.receipt, "X-Request-Id": answer.request_id}
    return {**headers, "Idempotent-Replayed": "true"} if answer.replayed else headers


async def _redeem_payment(request: Request, runtime: Runtime, found: Sequence[OwnPayment]) -> Response:
    """Return the answer that one of these payments bought: the stored one, or one that is made now."""
    notes: dict[str, Any] = request.state.notes
    admission: Admission = request.state.admission
    slug = notes["service"] = found[0].record.service
    no_payment = PaymentHeaders()
    async with admission.limit_request(slug, no_payment, runtime.gate, runtime.journal):
        call = PaidCall(
            request_id=notes["request_id"],
            body=await read_request_body(request),
            headers=no_payment,
            admission=admission,
        )
        answer = await redeem(runtime, found, call)
    notes["replayed"] = answer.replayed
    return _private_response(answer.status, answer.body, answer_headers(answer))


async def _require_sign_in(request: Request) -> SignedIn:
    """Return the wallet that signed in for this path. Raises SignInRequired, with a new challenge."""
    runtime = get_runtime(request)
    path, header = request.scope["path"], read_header(request, SIGN_IN_HEADER.lower())
    if header is None:
        raise await _challenge(request)
    admission: Admission = request.state.admission
    try:
        return await runtime.sign_in.verify(
            header,
            path,
            request.state.notes["request_id"],
            on_node_query=admission.count_node_query,
        )
    except SignInRefused as refused:
        raise await runtime.sign_in.challenge(path, refused) from refused


async def _challenge(request: Request) -> SignInRequired:
    runtime = get_runtime(request)
    return await runtime.sign_in.challenge(request.scope["path"])


class _View(Struct, frozen=True):
    """Parts of the responses besides the payments."""

    base_url: str
    retention: float
    """Seconds for which an answer is stored, and for which a settled payment can be redeemed."""
    now: float
    """The database's time, in seconds since 1970."""
    payable: Collection[str]
    """Slugs of the services that accept a new payment of this wallet."""
    uses_test_network: bool
    """True if payments here are test money, which is not accepted for real money, nor the reverse."""

    def describe(self, own: OwnPayment) -> WalletPayment:
        """Return a payment as the response shows it."""
        record = own.record
        next_step = self._next_step(own)
        is_charged = record.state in ("settled", "delivered")
        is_used = bool(record.refund) or (is_charged and next_step not in _SAME_PAYMENT_STEPS)
        note = build_note(record.state, record.transaction, is_used=is_used)
        is_unsellable = next_step not in _UNSOLD_STEPS and record.service not in self.payable
        return WalletPayment(
            transaction=record.transaction,
            network=record.key.network,
            asset=record.key.asset,
            nonce=record.key.nonce,
            amount=str(record.amount),
            pay_to=record.pay_to,
            service=record.service,
            state=note.state,
            charged=note.charged,
            retry="none" if is_unsellable else note.retry,
            next=next_step,
            reason=record.reason if record.state == "refused" else None,
            created_at=format_unix_time(record.created_at),
            settled_at=format_unix_time(record.settled_at) if record.settled_at is not None else None,
            delivered_at=format_unix_time(record.delivered_at) if record.delivered_at is not None else None,
            redeemable_until=format_unix_time(record.updated_at + self.retention) if note.charged else None,
            has_answer=own.has_answer,
            url=f"{self.base_url}{PAYMENTS_PATH}/{_reference_of(record)}",
            refund=PaymentRefund(transaction=record.refund, at=format_unix_time(record.refunded_at or 0.0))
            if record.refund
            else None,
        )

    def describe_with_answer(
        self, own: OwnPayment, own_answers: dict[PaymentKey, OwnAnswer]
    ) -> dict[str, Any]:
        """Return a payment with its answer, whose body is copied byte for byte."""
        answer = own_answers.get(own.record.key)
        members = AnsweredPayment(**dict(self.describe(own)), answer=None).model_dump(by_alias=True)
        if answer is not None:
            members["answer"] = {
                "status": answer.status,
                "requestId": answer.request_id,
                "paymentResponse": answer.receipt,
                "body": orjson.Fragment(answer.body),
            }
        return members

    def _next_step(self, own: OwnPayment) -> NextStep:
        """Return what the wallet's owner can do about a payment."""
        match own.record.state:
            case "settling":
                return "wait"
            case "refused" | "unused":
                if own.may_be_sent and not own.record.refund:
                    return "wait"
                return "pay_again" if own.record.service in self.payable else "none"
            case "delivered":
                return "read_answer" if own.has_answer else "none"
            case "settled":
                is_accepted = is_test_network(own.record.key.network) == self.uses_test_network
                steps: dict[str | None, NextStep] = {"redeemable": "redeem", "refundable": "await_refund"}
                step = steps.get(own.record.follow_up_status(self.now - self.retention), "none")
                return "none" if step == "redeem" and not is_accepted else step


_SAME_PAYMENT_STEPS = ("read_answer", "redeem")
"""Steps in which the same payment, sent with the same request, gets the answer as well."""
_UNSOLD_STEPS = (*_SAME_PAYMENT_STEPS, "wait")
"""Steps in which nothing new is sold: they are open to a wallet that is not sold to any more."""


async def _open_view(runtime: Runtime, wallet: SignedIn) -> _View:
    settings, now = runtime.settings, await runtime.journal.now()
    payable = () if runtime.gate.find_payer_refusal(wallet.address) else runtime.gate.terms.keys()
    uses_test_network = is_test_network(settings.payment_networks[0])
    return _View(settings.base_url, settings.redeem_hours * 3600, now, payable, uses_test_network)


def _reference_of(record: PaymentRecord) -> str:
    """Return what names a payment in a path: its transaction, or its nonce if that cannot."""
    transaction = record.transaction or ""
    return transaction if _REFERENCE.fullmatch(transaction) else record.key.nonce


def _read_limit(request: Request) -> int:
    text = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if not re.fullmatch(r"[0-9]{1,3}", text, re.ASCII) or not 1 <= int(text) <= MAX_LIMIT:
        raise InvalidRequest([Issue("limit", f"must be a number from 1 to {MAX_LIMIT}")])
    return int(text)


def _read_cursor(request: Request) -> PagePlace | None:
    cursor = request.query_params.get("cursor")
    try:
        return None if cursor is None else decode_place(cursor)
    except ValueError as error:
        raise InvalidRequest([Issue("cursor", "must be the cursor of the previous page")]) from error


def _unknown_payment() -> NotFound:
    return NotFound("this wallet has no payment in such a transaction; GET /payments lists its payments")


def _private_response(status: int, body: bytes, headers: dict[str, str] | None = None) -> Response:
    return json_response(status, body, PRIVATE_HEADERS | (headers or {}))
