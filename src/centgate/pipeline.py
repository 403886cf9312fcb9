"""The way of a paid request, top to bottom.

Read, demand, configured?, available?, claim, settle, produce, deliver.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

import orjson
import structlog

from centgate import envelope
from centgate.body import read
from centgate.client_limits import Admission
from centgate.envelope import Answered
from centgate.errors import (
    UNTOUCHED,
    CentgateError,
    InternalError,
    NoData,
    PaymentNote,
    ProviderUnconfigured,
)
from centgate.payments.authorization import Payment
from centgate.payments.claiming import Order, StoredAnswer
from centgate.payments.gate import receipt_header
from centgate.runtime import Runtime
from centgate.schema import Request
from centgate.service import AnyService


@dataclass(frozen=True, slots=True)
class Call:
    """A request to a paid route, as it came."""

    request_id: str
    body: bytes
    content_type: str
    signature: str | None
    """`PAYMENT-SIGNATURE`, if it came."""
    admission: Admission
    """Its token of the limits on free work."""
    idempotency_key: str | None = None
    """`Idempotency-Key`, if it came."""


async def serve(runtime: Runtime, service: AnyService, call: Call) -> StoredAnswer:
    """Answer one paid request.

    Everything that costs nothing comes first; from the claim on the work goes on even if the buyer hangs up.
    Raises CentgateError for whatever is not an answer; what it says of the money is `error.payment`.
    """
    if not call.body and call.signature is None:
        raise runtime.gate.asking(service.slug)  # this is how directories look for the terms
    query = read(service, call.body, call.content_type, runtime.admitted)  # 400
    service.require_honoured(query, runtime.providers[service.slug])  # 400
    payment = await runtime.gate.demand(service.slug, call.signature, key=call.idempotency_key)  # 402
    await require_configured(runtime, service, query, payment)  # 503
    order = Order(service.slug, binding(service, query))
    await call.admission.present(payment, order.binding, runtime.journal)  # 429
    await require_available(runtime, service, query, payment, order)  # 502
    work = partial(fulfil, runtime, service, query, payment, order, call)
    return await runtime.flights.join(payment, order, work)


async def fulfil(
    runtime: Runtime, service: AnyService, query: Request, payment: Payment, order: Order, call: Call
) -> StoredAnswer:
    """Claim the payment, settle it unless it is settled, run the service, and deliver its answer for good."""
    newest_block = await runtime.gate.newest_block(payment)
    async with runtime.journal.claim(payment, order, claim_block=newest_block) as claim:
        if claim.answer:
            return claim.answer
        _fault(runtime, "claimed")
        redeeming = claim.state == "settled"
        settled = runtime.gate.settle(payment, claim)  # 402, 502, 504
        settlement = await call.admission.count_settlement(settled, payment, claim)
        _fault(runtime, "settled")
        transaction = settlement["transaction"]
        produced = produce(runtime, service, query, order, call.request_id, transaction)
        status, body = await produced  # 404, 429, 502, 504
        _fault(runtime, "produced")
        receipt = receipt_header(payment.terms.delivered(settlement, body))
        answer = StoredAnswer(status, body, call.request_id, receipt)
        await runtime.journal.delivered(claim, answer)
        _fault(runtime, "delivered")
        if redeeming:
            runtime.meter.redeemed(service.slug)
        return answer


async def produce(
    runtime: Runtime, service: AnyService, query: Request, order: Order, request_id: str, transaction: str
) -> tuple[int, bytes]:
    """Run the service, or take its answer from the cache: status and body. "Nothing known" is an answer too.

    Whatever else goes wrong is raised with the word that the payment is settled and can be sent again.
    """
    owed = PaymentNote("settled", charged=True, retry="same_payment", transaction=transaction)
    work = partial(service.ask, query, runtime.providers[service.slug])
    try:
        answered, hit = await _fresh(runtime, service, order.binding, work)
        return 200, envelope.success(service.slug, request_id, answered, hit=hit)
    except NoData as empty:
        empty.payment = PaymentNote("delivered", charged=True, retry="none", transaction=transaction)
        return envelope.status_of(empty), envelope.failure(empty, request_id)
    except CentgateError as error:
        error.payment = owed
        raise
    except Exception as error:
        # the one place besides the door that catches everything: the buyer has paid and must hear of it
        structlog.get_logger().exception("a service failed", service=service.slug, request_id=request_id)
        raise InternalError(f"{service.slug} failed unexpectedly", payment=owed) from error


async def _fresh(
    runtime: Runtime, service: AnyService, name: str, work: Callable[[], Awaitable[Answered]]
) -> tuple[Answered, bool]:
    """An answer, and whether it was kept from before, under the name of its request."""
    hit = False
    try:
        answered, hit = await runtime.answers.get(name, service.fresh_for, work)
        return answered, hit
    finally:
        if service.fresh_for:
            place = "shared" if runtime.shared and runtime.shared.up else "local"
            runtime.meter.looked_up(service.slug, place, hit=hit)


async def require_configured(runtime: Runtime, service: AnyService, query: Request, payment: Payment) -> None:
    """Refuse, uncharged, what cannot be answered here; an answer bought before is still given."""
    try:
        service.require_configured(query, runtime.providers[service.slug])
    except ProviderUnconfigured as error:
        known = await runtime.journal.note(payment)
        if known and known.state == "delivered":
            return
        error.payment = known or PaymentNote("unused", charged=False, retry="none")
        raise


async def require_available(
    runtime: Runtime, service: AnyService, query: Request, payment: Payment, order: Order
) -> None:
    """Refuse a new payment, uncharged, while every source that could answer is known to be down.

    A payment that is known already goes on, as does a request that has a fresh answer in the cache. Once a
    trial is due, one request goes on as the trial.
    """
    outage = service.outage(query, runtime.providers[service.slug])
    if outage is None or payment.unfit:
        return
    known = await runtime.journal.note(payment)
    if known and known.state not in ("refused", "unused"):
        return
    if await runtime.answers.has(order.binding, service.fresh_for):
        return
    # from here on nothing else runs before the flight begins, so that a copy of the trial joins it
    if runtime.flights.is_under_way(payment, order) or outage.admit_trial():
        return
    raise outage.error(UNTOUCHED)


def binding(service: AnyService, query: Request) -> str:
    """A digest of what a payment is for: method, path and the request in its one spelling."""
    canonical: Any = orjson.dumps(query.canonical, option=orjson.OPT_SORT_KEYS)
    return sha256(b"POST " + service.path.encode() + b"\n" + canonical).hexdigest()


def _fault(runtime: Runtime, step: str) -> None:
    """Die here when a test on a development chain says so: proof that a crash loses nothing."""
    if runtime.settings.fault == step and runtime.settings.development_chain is not None:
        os.kill(os.getpid(), signal.SIGKILL)
