"""Payments in the console: search, filters, one payment with its history, refunds, reconciling."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from urllib.parse import quote, urlencode

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from centgate.console.console import Console
from centgate.console.pages import parse_period, redirect, render
from centgate.console.sessions import ConsoleSession
from centgate.payments import reconciler
from centgate.payments.audit.refund_check import RefundRecorder, describe_recorded_refund, find_hash_problem
from centgate.payments.journal.descriptions import (
    ViewSettings,
    describe_next_step,
    describe_owed,
    describe_refund,
    list_events,
    payment_reference,
    status_label,
)
from centgate.payments.journal.queries import find_answer, find_events
from centgate.payments.journal.read_model import (
    FILTER_STATES,
    PaymentFilter,
    PaymentRecord,
    decode_cursor,
    encode_cursor,
    find_by_reference,
    list_newest,
)

PAGE_ROWS = 50
"""Payments per page."""
MAX_INPUT = 200
"""Maximum characters of a search text."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_FILTERS = ("q", "state", "service", "since", "until")
REFUND_STATES = frozenset({"refundable", "refused", "unused"})
"""States for which the page has a form for a refund; of the last two only if the chain shows the money."""


class PaymentRow(Struct, frozen=True):
    """A payment in a list."""

    record: PaymentRecord
    status: str
    path: str
    """Path of its page."""


class PaymentDetails(Struct, frozen=True):
    """A payment on its own page."""

    record: PaymentRecord
    status: str
    reference: str
    path: str
    events: Sequence[tuple[float, str]]
    owed: str
    next_step: str
    answer: str | None
    """Description of the stored answer, None if none is stored."""
    refund_hint: str
    can_be_refunded: bool


def payment_path(record: PaymentRecord) -> str:
    """Return the path of a payment's page."""
    return f"/payments/{quote(payment_reference(record), safe=':')}"


async def show_payments(console: Console, request: Request, session: ConsoleSession) -> Response:
    """Show a page of the newest payments that match the filters."""
    view = await console.open_view()
    inputs = {name: request.query_params.get(name, "").strip()[:MAX_INPUT] for name in _FILTERS}
    problem, records, next_path = None, list[PaymentRecord](), None
    try:
        records, cursor = await _find_payments(console, view, inputs, request.query_params.get("after"))
        next_path = _list_path(inputs, after=cursor) if cursor else None
    except ValueError as error:
        problem = str(error)
    return render(
        console,
        request,
        session,
        "payments.html.j2",
        status=400 if problem else 200,
        refreshes=not any(inputs.values()) and "after" not in request.query_params,
        inputs=inputs,
        ignores_filters=_is_reference(inputs["q"]) and any(inputs[name] for name in _FILTERS if name != "q"),
        states=FILTER_STATES,
        services=sorted(console.routes),
        rows=[PaymentRow(each, status_label(each, view), payment_path(each)) for each in records],
        next_path=next_path,
        is_first="after" not in request.query_params,
        first_path=_list_path(inputs),
        problem=problem,
    )


async def show_payment(console: Console, request: Request, session: ConsoleSession) -> Response:
    """Show the payments with a reference; usually it is one."""
    return await _render_payment(console, request, session, request.path_params["reference"])


async def enter_refund(
    console: Console, request: Request, session: ConsoleSession, form: Mapping[str, str]
) -> Response:
    """Record a refund that the operator paid from a wallet; the console moves no money."""
    reference = request.path_params["reference"]
    view = await console.open_view()
    found = [
        each
        for each in await _find_reference(console, reference)
        if (each.key.network, each.key.asset) == (form.get("network"), form.get("asset"))
    ]
    if len(found) != 1:
        return await _render_payment(console, request, session, reference)
    record, transaction = found[0], form.get("transaction", "").strip()
    if problem := find_hash_problem(transaction):
        return await _render_payment(console, request, session, reference, f"The transaction {problem}.")
    unchecked = form.get("unchecked") == "yes"
    recorder = RefundRecorder(console.settings, console.store, view)
    refused = await recorder.enter_refund(record, transaction, unchecked=unchecked)
    result = refused.message if refused else describe_recorded_refund(transaction, unchecked=unchecked)
    await console.record_action("refund", request, result, subject=payment_reference(record))
    if refused:
        reason = refused.message.removesuffix(".")
        hint = ". Tick the box to record it without this check" if refused.can_be_unchecked else ""
        return await _render_payment(
            console, request, session, reference, f"Nothing was recorded: {reason}{hint}."
        )
    session.notice = f"The refund in {transaction} was recorded."
    return redirect(payment_path(record))


async def reconcile_now(
    console: Console, request: Request, session: ConsoleSession, _form: Mapping[str, str]
) -> Response:
    """Look up the outcome of every open payment once, now."""
    async with console.reconcile_lock:
        result = reconciler.describe_results(await reconciler.reconcile_all(console.settings))
    await console.record_action("reconcile", request, result)
    session.notify(result)
    return redirect("/payments?state=open")


async def _find_payments(
    console: Console, view: ViewSettings, inputs: Mapping[str, str], after: str | None
) -> tuple[list[PaymentRecord], str | None]:
    """Return the payments of a page, and the cursor of the next one. Raises ValueError for bad inputs."""
    payment_filter = _parse_filter(inputs, view.now)
    if _is_reference(inputs["q"]):
        return await _find_reference(console, inputs["q"]), None
    place = decode_cursor(after) if after else None
    unit = partial(list_newest, payment_filter, view.redemption_cutoff, limit=PAGE_ROWS + 1, after=place)
    records = await console.read(unit)
    has_more = len(records) > PAGE_ROWS
    return records[:PAGE_ROWS], encode_cursor(records[PAGE_ROWS - 1].sort_key) if has_more else None


def _is_reference(text: str) -> bool:
    """Return True for the text of a search for one payment, and not for all of a payer."""
    return bool(text) and not _ADDRESS.fullmatch(text)


def _parse_filter(inputs: Mapping[str, str], now: float) -> PaymentFilter:
    """Parse the inputs of the filter's form. Raises ValueError."""
    if inputs["state"] and inputs["state"] not in FILTER_STATES:
        raise ValueError(f"{inputs['state']!r} is not a state of payments")
    return replace(
        parse_period(inputs, now),
        state=inputs["state"] or None,
        service=inputs["service"] or None,
        payer=inputs["q"].lower() or None,
    )


def _list_path(inputs: Mapping[str, str], after: str | None = None) -> str:
    query = {name: value for name, value in {**inputs, "after": after}.items() if value}
    return "/payments" + (f"?{urlencode(query)}" if query else "")


async def _find_reference(console: Console, reference: str) -> list[PaymentRecord]:
    return await console.read(partial(find_by_reference, reference[:MAX_INPUT]))


async def _render_payment(
    console: Console,
    request: Request,
    session: ConsoleSession,
    reference: str,
    problem: str | None = None,
) -> Response:
    view = await console.open_view()
    records = await _find_reference(console, reference)
    if not records:
        detail = "No payment has this reference."
        return render(
            console, request, session, "failed.html.j2", status=404, title="Not found", detail=detail
        )
    payments = [await _read_details(console, view, each) for each in records]
    return render(
        console,
        request,
        session,
        "payment.html.j2",
        status=409 if problem else 200,
        refreshes=request.method == "GET" and any(each.status in ("settling", "open") for each in payments),
        payments=payments,
        problem=problem,
    )


async def _read_details(console: Console, view: ViewSettings, record: PaymentRecord) -> PaymentDetails:
    answer = await console.read(partial(find_answer, record.key))
    history = await console.read(partial(find_events, record.key))
    status = status_label(record, view)
    return PaymentDetails(
        record=record,
        status=status,
        reference=payment_reference(record),
        path=payment_path(record),
        events=list_events(record, history),
        owed=describe_owed(record, view),
        next_step=describe_next_step(record, view),
        answer=f"HTTP {answer['status']}, {len(answer['body'])} bytes" if answer else None,
        refund_hint=describe_refund(record),
        can_be_refunded=status in REFUND_STATES and not record.refund,
    )
