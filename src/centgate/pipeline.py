"""Processing of a paid request, top to bottom.

Read, verify, require configured, require available, claim, settle, run the service, deliver.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from functools import partial
from hashlib import sha256
from typing import Any

import orjson
import structlog
from msgspec import Struct

from centgate import envelope
from centgate.client_limits import Admission
from centgate.envelope import ServiceResult
from centgate.errors import (
    UNCHARGED_RESEND,
    CentgateError,
    InternalError,
    InvalidRequest,
    Issue,
    NoData,
    NotFound,
    PaymentNote,
    PaymentRequired,
    ProviderUnconfigured,
    UnsupportedOptions,
)
from centgate.payments.authorization import SIGNATURE_REASON, Payment
from centgate.payments.claim_values import Claim, RequestBinding, StoredAnswer
from centgate.payments.gate import PaymentHeaders
from centgate.payments.journal.claims import build_note
from centgate.payments.singleflight import interruption_error
from centgate.payments.terms import encode_header
from centgate.payments.wallet.redemption import build_redeemed_payment
from centgate.payments.wallet.wallet_payments import OwnPayment
from centgate.request_body import RequestBody, is_probe, parse_request
from centgate.runtime import Runtime
from centgate.sandbox import WORK_KEYS
from centgate.schema import Request
from centgate.service import AnyService
from centgate.web.fetch.host_limiter import SENDER


class PaidCall(Struct, frozen=True):
    """A request to a paid route, not parsed yet."""

    request_id: str
    body: RequestBody
    headers: PaymentHeaders
    admission: Admission
    """Its token of the limits on unpaid requests."""


class PaidRequest(Struct, frozen=True):
    """A valid request, and a payment that may be accepted for it."""

    service: AnyService
    request: Request
    """The validated body."""
    payment: Payment
    binding: RequestBinding
    call: PaidCall


async def serve(runtime: Runtime, service: AnyService, call: PaidCall) -> StoredAnswer:
    """Process one paid request and return its stored answer.

    All checks that cost nothing come first; from the claim on, work continues even if the buyer disconnects.
    Raises CentgateError if there is no answer; `error.payment` is the state of the payment.
    """
    if runtime.gate.terms:
        _require_single_payment(call.headers)  # 400
    if not call.headers.has_payment and is_probe(call.body.content):
        raise _challenge_probe(runtime, service)  # 402
    request = parse_request(service, call.body, runtime.validation_context)  # 400
    service.require_supported_options(request, runtime.providers[service.slug])  # 400
    payment = await _verify_payment(runtime, service, call)  # 402
    try:
        return await _serve_paid(runtime, _bind_payment(service, request, payment, call))
    except CentgateError as error:
        runtime.gate.correct_advice(error, payment.key.payer)
        raise


async def redeem(runtime: Runtime, own_payments: Sequence[OwnPayment], call: PaidCall) -> StoredAnswer:
    """Return the answer that one of a signed-in wallet's payments bought; the body must be the same as then.

    A stored answer is repeated; one that is owed is made now. Nothing is settled. Raises InvalidRequest if
    none of the payments was made for this request, NotFound if there is nothing left to redeem, and what
    `serve` raises after the payment is verified.
    """
    try:
        service, request, own = _find_bought_request(runtime, own_payments, call)
        service.require_supported_options(request, runtime.providers[service.slug])
        payment = build_redeemed_payment(own, runtime.gate.earlier_terms[service.slug])
        return await _serve_paid(runtime, _bind_payment(service, request, payment, call))
    except CentgateError as error:
        runtime.gate.correct_advice(error, own_payments[0].record.key.payer)
        if isinstance(error, PaymentRequired):  # a buyer is not asked to pay twice
            raise NotFound(error.message, payment=error.payment) from error
        raise


def _find_bought_request(
    runtime: Runtime, own_payments: Sequence[OwnPayment], call: PaidCall
) -> tuple[AnyService, Request, OwnPayment]:
    """Return the payment that was made for the request in a body, with its service and the request."""
    services = {service.slug: service for service in runtime.catalog}
    charged = [each for each in own_payments if each.record.state in ("settled", "delivered")]
    # of two payments for one request the owed one is redeemed; the stored answer of the other can be read
    charged.sort(key=lambda each: (bool(each.record.refund), each.record.state == "delivered"))
    if not charged:
        record = own_payments[0].record
        note = build_note(record.state, record.transaction, is_used=bool(record.refund))
        raise NotFound("the payment is not settled, so that nothing can be redeemed", payment=note)
    problem: CentgateError = InvalidRequest(
        [Issue("", "no payment of this wallet in the transaction was made for this request")]
    )
    for each in charged:
        service = services.get(each.record.service)
        if service is None:
            continue
        try:
            request = parse_request(service, call.body, runtime.validation_context)
        except (InvalidRequest, UnsupportedOptions) as error:
            problem = error
            continue
        if request_digest(service, request) == each.binding:
            return service, request, each
    raise problem


def _bind_payment(service: AnyService, request: Request, payment: Payment, call: PaidCall) -> PaidRequest:
    """Bind a payment to the request that it is presented for."""
    binding = RequestBinding(service.slug, request_digest(service, request))
    return PaidRequest(service, request, payment, binding, call)


async def _serve_paid(runtime: Runtime, paid: PaidRequest) -> StoredAnswer:
    """Return the answer to a paid request."""
    payment, binding = paid.payment, paid.binding
    await require_configured(runtime, paid)  # 503
    await paid.call.admission.check_payment(payment, binding.digest, runtime.journal)  # 429
    WORK_KEYS.set((f"payer:{payment.key.payer}",))
    SENDER.set(paid.call.admission.client)
    providers = runtime.providers[paid.service.slug]
    is_announced = paid.service.is_announced(paid.request, providers) and not await _has_answer(runtime, paid)
    await require_available(runtime, paid)  # 429, 502
    # no await between the estimate and the announcement, or a burst would be admitted in whole
    announced = paid.service.announce_request(paid.request, providers) if is_announced else nullcontext()
    with announced:
        return await runtime.single_flight.run(payment, binding, partial(fulfil, runtime, paid))


def _require_single_payment(headers: PaymentHeaders) -> None:
    """Raise InvalidRequest if there is a payment in each of the two headers.

    Not 402, at which clients sign once more: neither of the two payments is used.
    """
    if headers.signature is not None and headers.credential is not None:
        message = "PAYMENT-SIGNATURE and Authorization: Payment were both sent: send only one payment"
        raise InvalidRequest([Issue("", message)])


async def _verify_payment(runtime: Runtime, service: AnyService, call: PaidCall) -> Payment:
    """Return the payment of a call, verified without settling it; count a signature that is not the payer's.

    A node may have been asked for a contract at the payer's address, as for a sign-in.
    """
    try:
        return await runtime.gate.verify(service.slug, call.headers)
    except PaymentRequired as error:
        if error.reason == SIGNATURE_REASON:
            call.admission.count_node_query()
        raise


def _challenge_probe(runtime: Runtime, service: AnyService) -> CentgateError:
    """Return the 402 error for a probe, with what a real body needs as `details.issues`."""
    error = runtime.gate.challenge(service.slug)
    try:
        parse_request(service, RequestBody(b"{}"), runtime.validation_context)
    except InvalidRequest as invalid:
        error.details["issues"] = invalid.details["issues"]
    return error


async def fulfil(runtime: Runtime, paid: PaidRequest) -> StoredAnswer:
    """Claim the payment and fulfil the claim.

    An unexpected exception, and the end of the server, become InternalError with the payment's state.
    """
    payment, call = paid.payment, paid.call
    block = await runtime.gate.find_newest_block(payment)
    choice = runtime.gate.choose_facilitator()
    async with runtime.journal.claim(payment, paid.binding, claim_block=block, facilitators=choice) as claim:
        if claim.answer:
            return claim.answer
        try:
            return await _fulfil_claim(runtime, paid, claim)
        except CentgateError:
            raise
        except asyncio.CancelledError:
            raise interruption_error(build_note(claim.state, claim.transaction)) from None
        except Exception as error:  # the buyer may have paid, and needs a response that says so
            slug = paid.service.slug
            structlog.get_logger().exception("a service failed", service=slug, request_id=call.request_id)
            note = build_note(claim.state, claim.transaction)
            raise InternalError(f"{slug} failed unexpectedly", payment=note) from error


async def _fulfil_claim(runtime: Runtime, paid: PaidRequest, claim: Claim) -> StoredAnswer:
    """Settle a claimed payment unless it is settled, run the service, and store its answer durably."""
    payment, call = paid.payment, paid.call
    _crash_for_test(runtime, "claimed")
    is_redeemed = claim.state == "settled"
    call.admission.count_rerun(claim)  # 429
    settling = runtime.gate.settle(payment, claim)
    settlement = await call.admission.count_settlement(payment, claim, settling)  # 402, 502, 504
    _crash_for_test(runtime, "settled")
    status, body = await run_service(runtime, paid, settlement["transaction"])  # 404, 429, 502, 504
    _crash_for_test(runtime, "produced")
    receipt = encode_header(payment.terms.route.settle_response(settlement, body))
    answer = StoredAnswer(status, body, call.request_id, receipt, claim.transaction, claim.settled_at)
    await runtime.journal.record_delivered(claim, answer)
    _crash_for_test(runtime, "delivered")
    if is_redeemed:
        runtime.meter.record_redemption(paid.service.slug)
    return answer


async def run_service(runtime: Runtime, paid: PaidRequest, transaction: str) -> tuple[int, bytes]:
    """Run the service, or take its result from the cache; return status and body.

    NoData is an answer too. Every other CentgateError is raised with `error.payment`: settled, can be sent
    again.
    """
    service, request_id = paid.service, paid.call.request_id
    work = partial(_run_measured, runtime, service, paid.request)
    try:
        result, hit = await _get_or_compute_result(runtime, service, paid.binding.digest, work)
        return 200, envelope.render_success(service.slug, request_id, result, hit=hit)
    except NoData as no_data:
        no_data.payment = PaymentNote("delivered", charged=True, retry="none", transaction=transaction)
        return envelope.http_status(no_data), envelope.render_error(no_data, request_id)
    except CentgateError as error:
        error.payment = PaymentNote("settled", charged=True, retry="same_payment", transaction=transaction)
        raise


async def _run_measured(runtime: Runtime, service: AnyService, request: Request) -> ServiceResult:
    """Run the service and count the outcome for the public status; cached answers are not counted.

    The request has a place in its provider's queue while it runs. Before it is settled it has none, or
    payments without money could keep others out.
    """
    started, providers = time.monotonic(), runtime.providers[service.slug]
    try:
        with service.reserve_place(request, providers):
            result = await service.run(request, providers)
    except Exception as error:
        runtime.status.record_error(service.slug, error, time.monotonic() - started)
        raise
    runtime.status.record_answer(service.slug, time.monotonic() - started)
    return result


async def _get_or_compute_result(
    runtime: Runtime, service: AnyService, name: str, work: Callable[[], Awaitable[ServiceResult]]
) -> tuple[ServiceResult, bool]:
    """Return a result from the cache or from `work`, and True if it came from the cache."""
    hit = False
    try:
        result, hit = await runtime.response_cache.get_or_compute(name, service.cache_ttl, work)
        return result, hit
    finally:
        if service.cache_ttl:
            place = "shared" if runtime.shared and runtime.shared.is_up else "local"
            runtime.meter.record_cache_lookup(service.slug, place, hit=hit)


async def require_configured(runtime: Runtime, paid: PaidRequest) -> None:
    """Raise ProviderUnconfigured, uncharged, if no provider is configured; stored answers are still sent."""
    try:
        paid.service.require_configured(paid.request, runtime.providers[paid.service.slug])
    except ProviderUnconfigured as error:
        known = await runtime.journal.find_note(paid.payment)
        if known and known.state == "delivered":
            return
        error.payment = known or PaymentNote("unused", charged=False, retry="none")
        raise


async def require_available(runtime: Runtime, paid: PaidRequest) -> None:
    """Refuse a new payment, uncharged, while every provider that could answer is down or too busy.

    A payment that the journal knows proceeds, as does a request with a fresh answer in the cache, and one
    that shares the call of an equal request although the sources take no more. Once a trial is due, one
    request proceeds as the trial.
    """
    service, payment = paid.service, paid.payment
    providers = runtime.providers[service.slug]
    outage = service.find_outage(paid.request, providers)
    refusal = outage or service.find_congestion(paid.request, providers)
    if refusal is None or payment.rejection:
        return
    known = await runtime.journal.find_note(payment)
    if known and known.state not in ("refused", "unused"):
        return
    if await _has_answer(runtime, paid):
        return
    if outage is None and runtime.response_cache.is_computing(paid.binding.digest):
        return
    # no await between here and the start of the work, so that a duplicate of the trial joins it
    is_processing = runtime.single_flight.is_processing(payment, paid.binding)
    if is_processing or (outage and outage.reserve_due_trials()):
        return
    if outage:
        runtime.status.record_refusal(service.slug)
    raise refusal.to_error(UNCHARGED_RESEND)


async def _has_answer(runtime: Runtime, paid: PaidRequest) -> bool:
    """Return True if a fresh answer is cached, so that no provider is asked."""
    return await runtime.response_cache.has_fresh(paid.binding.digest, paid.service.cache_ttl)


def request_digest(service: AnyService, request: Request) -> str:
    """Return the digest that binds a payment to a request: SHA-256 of method, path and canonical request."""
    canonical: Any = orjson.dumps(request.canonical, option=orjson.OPT_SORT_KEYS)
    return sha256(b"POST " + service.path.encode() + b"\n" + canonical).hexdigest()


def _crash_for_test(runtime: Runtime, step: str) -> None:
    """Kill the process at this step if a test on a development chain asks for it."""
    if runtime.settings.fault == step and runtime.settings.development_chain is not None:
        os.kill(os.getpid(), signal.SIGKILL)
