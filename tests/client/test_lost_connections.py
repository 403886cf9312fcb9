"""Lost connections after a payment was sent: the same bytes are sent again, never another payment."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from typing import Any

import anyio
import anyio.to_thread
import pytest
from hostile import (
    DATA,
    PATH,
    SLUG,
    Fault,
    HostileApi,
    PlannedResponse,
    ReceivedRequest,
    Reply,
    answer_body,
    build_offer,
    error_response,
    payment_required,
    payment_response,
    service_entry,
)
from shopping import OpenClient

from centgate.cli.buyer.render import receipts_json
from centgate.client.async_client import AsyncCentgate
from centgate.client.errors import (
    BuyerError,
    Drift,
    NoData,
    PaymentRefused,
    ServiceFailed,
    Unavailable,
    Unresolved,
)
from centgate.client.ledger import Ledger
from centgate.client.policy import Patience
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS

pytestmark = pytest.mark.extended

EXPIRED = "invalid_exact_evm_payload_authorization_valid_before"


def build_note(state: str, *, charged: bool, retry: str) -> dict[str, Any]:
    return {"state": state, "charged": charged, "retry": retry}


def accept_payment(response: PlannedResponse) -> PlannedResponse:
    """Return the same response, which also accepts the payment."""
    return PlannedResponse(
        response.status, response.body, response.headers, response.fault, accepts_payment=True
    )


def fail_connection(fault: Fault) -> Reply:
    def reply(request: ReceivedRequest) -> PlannedResponse:
        return PlannedResponse(
            200, answer_body(), {"PAYMENT-RESPONSE": payment_response(request)}, fault, accepts_payment=True
        )

    return reply


PASSING: dict[str, Reply] = {
    "no response": fail_connection("no_response"),
    "headers cut": fail_connection("cut_headers"),
    "body cut": fail_connection("cut_body"),
    "connection reset": fail_connection("reset"),
    "500 of a proxy": accept_payment(PlannedResponse(500, b"<html>")),
    "502 in flight": accept_payment(
        error_response(
            502, "provider_error", note=build_note("in_flight", charged=False, retry="same_payment")
        )
    ),
    "504 in flight": accept_payment(
        error_response(
            504, "provider_timeout", note=build_note("in_flight", charged=False, retry="same_payment")
        )
    ),
    "503 without a word": accept_payment(PlannedResponse(503, b"")),
    "429 settled": accept_payment(
        error_response(
            429, "provider_rate_limited", note=build_note("settled", charged=True, retry="same_payment")
        )
    ),
    "429 unused": error_response(
        429, "rate_limited", note=build_note("unused", charged=False, retry="same_payment")
    ),
    "500 unused": error_response(
        500, "internal_error", note=build_note("unused", charged=False, retry="same_payment")
    ),
    "502 before the facilitator": error_response(
        502,
        "provider_error",
        note=build_note("unused", charged=False, retry="same_payment"),
        provider="facilitator",
        after=0,
    ),
    "504 before the facilitator": error_response(
        504,
        "provider_timeout",
        note=build_note("unused", charged=False, retry="same_payment"),
        provider="facilitator",
        after=0,
    ),
    "429 rate limited": error_response(429, "rate_limited", after=0),
    "429 rate limited, unused": error_response(
        429, "rate_limited", note=build_note("unused", charged=False, retry="same_payment"), after=0
    ),
    "200 that is html": accept_payment(PlannedResponse(200, b"<html>")),
    "200 that is empty": accept_payment(PlannedResponse(200, b"")),
    "200 that is compressed": accept_payment(
        PlannedResponse(200, answer_body(), {"Content-Encoding": "gzip"})
    ),
}


@pytest.mark.parametrize("reply", PASSING.values(), ids=PASSING)
async def test_same_payment_is_sent_again(shop: OpenClient, hostile: HostileApi, reply: Reply) -> None:
    hostile.paid = [reply, reply]
    ledger = Ledger()

    answer = await shop(hostile.url, ledger=ledger).call(SLUG, {"b": 1, "a": "ü"})

    assert (answer.data, answer.money) == (DATA, "moved")
    assert (len(hostile.payments), len(set(hostile.payments))) == (3, 1)
    assert len({asked.body for asked in hostile.requests if asked.payment}) == 1
    assert [record.event for record in ledger.records()] == ["signed", "delivered"]


@pytest.mark.parametrize("reply", PASSING.values(), ids=PASSING)
async def test_next_call_continues_after_last_retry(
    shop: OpenClient, hostile: HostileApi, reply: Reply
) -> None:
    hostile.paid = [reply] * 4
    ledger = Ledger()

    with pytest.raises((Unresolved, ServiceFailed)) as error:
        await shop(hostile.url, ledger=ledger).call(SLUG, {"a": 1, "b": 2})
    answer = await shop(hostile.url, ledger=ledger).call(SLUG, {"b": 2, "a": 1})

    assert (answer.data, len(hostile.payments), len(set(hostile.payments))) == (DATA, 5, 1)
    assert len([asked for asked in hostile.requests if asked.method == "POST"]) == 6
    assert error.value.money != "not_moved"
    assert [record.event for record in ledger.records()] == ["signed", "unresolved", "delivered"]


async def test_moved_service_gets_no_second_payment(shop: OpenClient, hostile: HostileApi) -> None:
    ledger = Ledger()
    hostile.paid = [fail_connection("no_response")] * 4
    with pytest.raises(Unresolved):
        await shop(hostile.url, ledger=ledger).call(SLUG, {})
    hostile.service_response = PlannedResponse(200, service_entry(path="/moved"))

    await shop(hostile.url, ledger=ledger).call(SLUG, {})

    assert len(set(hostile.payments)) == len(hostile.accepted_nonces) == 1
    assert hostile.requests[-1].path == PATH


async def test_unreached_facilitator_is_waited_for(shop: OpenClient, hostile: HostileApi) -> None:
    unused = build_note("unused", charged=False, retry="same_payment")
    hostile.paid = [error_response(502, "provider_error", note=unused, provider="facilitator", after=1)]
    messages: list[str] = []

    answer = await shop(hostile.url, watch=messages.append).call(SLUG, {})

    assert (answer.money, len(set(hostile.payments))) == ("moved", 1)
    assert "sending the same payment again in 1.0 s" in messages[-1]


async def test_unreachable_facilitator_leaves_one_open_payment(shop: OpenClient, hostile: HostileApi) -> None:
    unused = build_note("unused", charged=False, retry="same_payment")
    hostile.paid = [error_response(502, "provider_error", note=unused, provider="facilitator", after=3600)]
    ledger = Ledger()

    with pytest.raises(ServiceFailed, match="The API reports that no money moved") as error:
        await shop(hostile.url, ledger=ledger).call(SLUG, {})
    await shop(hostile.url, ledger=ledger).call(SLUG, {})

    assert (error.value.provider, error.value.retry) == ("facilitator", "same_payment")
    assert (error.value.money, len(set(hostile.payments))) == ("reported_not_moved", 1)


async def test_rate_limit_before_payment_is_retried(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.unpaid = [error_response(429, "rate_limited", after=0)]

    answer = await shop(hostile.url).call(SLUG, {})

    assert (answer.money, len(hostile.payments)) == ("moved", 1)


async def test_lasting_rate_limit_is_reported_without_signing(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.unpaid = [error_response(429, "rate_limited", after=60)]

    with pytest.raises(ServiceFailed, match=r"rate_limited.*Nothing was signed") as error:
        await shop(hostile.url).call(SLUG, {})

    assert (error.value.money, hostile.payments) == ("not_moved", [])


async def test_another_body_is_another_payment(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.paid = [PlannedResponse(500, b"")] * 4
    client = shop(hostile.url)

    with pytest.raises(Unresolved):
        await client.call(SLUG, {"a": 1})
    await client.call(SLUG, {"a": 2})

    assert len(set(hostile.payments)) == 2


async def test_open_payment_can_move_to_another_client(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.paid = [PlannedResponse(500, b"")] * 4
    with pytest.raises(Unresolved) as error:
        await shop(hostile.url).call(SLUG, {"a": 1})
    payment = error.value.payment

    answer = await shop(hostile.url, wallet=None).call(SLUG, {"a": 1}, payment=payment)

    assert answer.money == "moved"
    assert len(set(hostile.payments)) == 1
    assert payment.header not in repr(payment)


async def test_payment_is_not_sent_with_another_request(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.paid = [PlannedResponse(500, b"")] * 4
    with pytest.raises(Unresolved) as error:
        await shop(hostile.url).call(SLUG, {"a": 1})

    with pytest.raises(ValueError, match="signed for another request"):
        await shop(hostile.url).call(SLUG, {"a": 2}, payment=error.value.payment)

    assert len(hostile.payments) == 4


ENDING: dict[str, tuple[PlannedResponse, type[BuyerError], str]] = {
    "a fresh 402": (accept_payment(payment_required(build_offer("http://127.0.0.1"))), Unresolved, "unknown"),
    "a 402 that says used": (
        accept_payment(
            error_response(
                402, "payment_required", note=build_note("delivered", charged=True, retry="new_payment")
            )
        ),
        PaymentRefused,
        "moved",
    ),
    "a 402 that says refused": (
        error_response(
            402, "payment_required", note=build_note("refused", charged=False, retry="new_payment")
        ),
        PaymentRefused,
        "reported_not_moved",
    ),
    "a 402 that says in flight": (
        accept_payment(
            error_response(402, "payment_required", note=build_note("in_flight", charged=False, retry="none"))
        ),
        Unresolved,
        "unknown",
    ),
    "a redirect": (
        accept_payment(PlannedResponse(307, b"", {"Location": "http://127.0.0.1:9/"})),
        Unresolved,
        "unknown",
    ),
    "a 400": (accept_payment(error_response(400, "validation_error")), Unresolved, "unknown"),
    "a 404 of a route": (accept_payment(error_response(404, "not_found")), Unresolved, "unknown"),
    "a 201": (accept_payment(PlannedResponse(201, answer_body())), Unresolved, "unknown"),
    "no data": (
        accept_payment(
            error_response(404, "no_data", note=build_note("delivered", charged=True, retry="none"))
        ),
        NoData,
        "moved",
    ),
    "no data without a word": (accept_payment(error_response(404, "no_data")), NoData, "unknown"),
    "no source": (
        error_response(503, "provider_unconfigured", note=build_note("unused", charged=False, retry="none")),
        Unavailable,
        "reported_not_moved",
    ),
    "another shape": (accept_payment(PlannedResponse(200, {"data": 5})), Drift, "unknown"),
    "a list": (accept_payment(PlannedResponse(200, [])), Drift, "unknown"),
    "too much": (accept_payment(PlannedResponse(200, b" " * (9 * 1024 * 1024))), Unresolved, "unknown"),
}


@pytest.mark.parametrize(("response", "kind", "money"), ENDING.values(), ids=ENDING)
async def test_permanent_error_is_not_retried(
    shop: OpenClient, hostile: HostileApi, response: PlannedResponse, kind: type[BuyerError], money: str
) -> None:
    hostile.paid = [response]

    with pytest.raises(kind) as error:
        await shop(hostile.url).call(SLUG, {})

    assert (type(error.value), error.value.money) == (kind, money)
    assert len(hostile.payments) == 1


async def test_unexpected_answer_with_receipt_is_paid(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.paid = [
        lambda request: PlannedResponse(
            200, {}, {"PAYMENT-RESPONSE": payment_response(request)}, accepts_payment=True
        )
    ]

    with pytest.raises(Drift) as error:
        await shop(hostile.url).call(SLUG, {})

    assert error.value.money == "moved"


async def test_redirect_is_not_followed(shop: OpenClient, hostile: HostileApi) -> None:
    with_place = {"Location": hostile.url + PATH + "/elsewhere"}
    hostile.unpaid, hostile.paid = (
        [PlannedResponse(308, b"", with_place)],
        [PlannedResponse(307, b"", with_place)],
    )
    client = shop(hostile.url)

    with pytest.raises(Drift, match="redirects to"):
        await client.call(SLUG, {})
    with pytest.raises(Unresolved, match="redirect"):
        await client.call(SLUG, {})

    assert {asked.path for asked in hostile.requests if asked.method == "POST"} == {PATH}


async def test_unreadable_receipt_loses_no_answer(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.paid = [
        PlannedResponse(200, answer_body(), accepts_payment=True),
        PlannedResponse(200, answer_body(), {"PAYMENT-RESPONSE": "%%%"}, accepts_payment=True),
        lambda request: PlannedResponse(
            200,
            answer_body(),
            {"PAYMENT-RESPONSE": payment_response(request, success=False)},
            accepts_payment=True,
        ),
        lambda request: PlannedResponse(
            200,
            answer_body(),
            {"PAYMENT-RESPONSE": payment_response(request, payer=PATH)},
            accepts_payment=True,
        ),
    ]
    client = shop(hostile.url)

    answers = [await client.call(SLUG, {"n": number}) for number in range(4)]

    assert [answer.data for answer in answers] == [DATA] * 4
    assert [answer.receipt for answer in answers] == [None] * 4
    assert [answer.money for answer in answers] == ["unknown"] * 4
    assert len({answer.notes for answer in answers}) == 4


async def test_too_long_retry_after_is_not_waited_for(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.paid = [PlannedResponse(503, b"", {"Retry-After": "3600"})]

    with pytest.raises(Unresolved):
        await shop(hostile.url).call(SLUG, {})

    assert len(hostile.payments) == 1


async def test_retry_after_is_honoured(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.paid = [PlannedResponse(503, b"", {"Retry-After": "1"})]
    messages: list[str] = []

    await shop(hostile.url, watch=messages.append).call(SLUG, {})

    assert "in 1.0 s" in messages[-1]


async def test_unpaid_request_honours_rate_limit(shop: OpenClient, hostile: HostileApi) -> None:
    limited = error_response(429, "rate_limited")
    hostile.unpaid = [PlannedResponse(429, limited.body, {"Retry-After": "1"})]
    started = time.monotonic()

    answer = await shop(hostile.url, patience=Patience(longest_pause=2)).call(SLUG, {})

    assert (answer.data, len(hostile.payments)) == (DATA, 1)
    assert time.monotonic() - started >= 1


async def test_hanging_server_times_out(shop: OpenClient, hostile: HostileApi) -> None:
    release = threading.Event()

    def hang(request: ReceivedRequest) -> PlannedResponse:
        release.wait(30)
        return hostile.deliver(request)

    hostile.paid = [hang]
    patience = Patience(deadline=0.5, attempts=1, answer=0.3)
    try:
        with pytest.raises(Unresolved, match=r"did not respond within 0\.3 s"):
            await shop(hostile.url, patience=patience).call(SLUG, {})
    finally:
        release.set()


# connections of a loop that has ended can only be collected
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_client_serves_several_event_loops(hostile: HostileApi) -> None:
    client = AsyncCentgate(hostile.url, Wallet.from_key(BUYER_ACCOUNTS[0].private_key), ledger=Ledger())

    answers = [asyncio.run(client.call(SLUG, {"number": number})) for number in range(3)]

    del client
    gc.collect()

    assert [each.data for each in answers] == [DATA] * 3
    assert len(hostile.payments) == 3


async def test_cancelled_call_leaves_sent_payment_open(hostile: HostileApi) -> None:
    arrived, release = threading.Event(), threading.Event()

    def hold(request: ReceivedRequest) -> PlannedResponse:
        arrived.set()
        release.wait(30)
        return hostile.deliver(request)

    hostile.paid = [hold]
    ledger = Ledger()
    wallet = Wallet.from_key(BUYER_ACCOUNTS[0].private_key)
    async with (
        AsyncCentgate(hostile.url, wallet, ledger=ledger) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(client.call, SLUG, dict[str, Any]())
        assert await anyio.to_thread.run_sync(arrived.wait, 30)
        tasks.cancel_scope.cancel()
    release.set()
    assert [(record.event, record.money) for record in ledger.records()] == [("signed", "unknown")]

    async with AsyncCentgate(hostile.url, wallet, ledger=ledger) as client:
        answer = await client.call(SLUG, {})

    assert answer.money == "moved"
    assert (len(hostile.payments), len(set(hostile.payments))) == (2, 1)
    assert [record.event for record in ledger.records()] == ["signed", "delivered"]


CHUNKED = b"HTTP/1.1 200 Said\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "drips",
    [
        (b"HTTP/1.1 200 Said\r\n", b"X-More: 1\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (CHUNKED + b"5;", b"more"),
        (CHUNKED + b"2\r\n{}\r\n", b"1\r\n \r\n"),
        (CHUNKED + b"2\r\n{}\r\n0\r\n", b"X-More: 1\r\n"),
    ],
    ids=["headers", "interim responses", "chunk extension", "data", "trailers"],
)
async def test_endless_response_times_out(
    shop: OpenClient, hostile: HostileApi, drips: tuple[bytes, bytes]
) -> None:
    hostile.paid = [PlannedResponse(drip=drips)]
    patience = Patience(deadline=0.5, attempts=1, answer=0.3)

    with pytest.raises(Unresolved, match="did not respond within"):
        await shop(hostile.url, patience=patience).call(SLUG, {})


async def test_unused_note_is_not_believed_after_acceptance(shop: OpenClient, hostile: HostileApi) -> None:
    changed = error_response(
        402,
        "payment_required",
        reason="invalid_payment_requirements",
        note=build_note("unused", charged=False, retry="new_payment"),
    )
    hostile.paid = [accept_payment(PlannedResponse(500, b"")), changed]

    with pytest.raises(Unresolved, match="may have accepted") as error:
        await shop(hostile.url).call(SLUG, {})

    assert error.value.money == "unknown"


async def test_expired_payment_is_not_replaced_in_its_window(shop: OpenClient, hostile: HostileApi) -> None:
    response = error_response(
        402, "payment_required", reason=EXPIRED, note=build_note("unused", charged=False, retry="new_payment")
    )
    hostile.paid = [response]

    with pytest.raises(PaymentRefused, match="clock") as error:
        await shop(hostile.url).call(SLUG, {})

    assert (error.value.money, len(set(hostile.payments))) == ("reported_not_moved", 1)


async def test_payment_unsent_in_its_window_is_replaced_once(
    shop: OpenClient, hostile: HostileApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    response = error_response(
        402, "payment_required", reason=EXPIRED, note=build_note("unused", charged=False, retry="new_payment")
    )
    hostile.paid = [*[PlannedResponse(500, b"")] * 4, response]
    ledger, now = Ledger(), time.time()
    with pytest.raises(Unresolved):
        await shop(hostile.url, ledger=ledger).call(SLUG, {})

    monkeypatch.setattr(time, "time", lambda: now + 3600)
    answer = await shop(hostile.url, ledger=ledger).call(SLUG, {})

    assert answer.money == "moved"
    assert [len(set(hostile.payments)), len(hostile.payments)] == [2, 6]
    events = [record.event for record in ledger.records()]
    assert events == ["signed", "unresolved", "refused", "signed", "delivered"]


async def test_payment_sent_in_its_window_is_not_replaced_in_call(
    shop: OpenClient, hostile: HostileApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()

    def sit_on_it(request: ReceivedRequest) -> PlannedResponse:
        monkeypatch.setattr(time, "time", lambda: now + 3600)
        return accept_payment(
            error_response(
                402,
                "payment_required",
                reason=EXPIRED,
                note=build_note("unused", charged=False, retry="new_payment"),
            )
        )

    hostile.paid = [sit_on_it]

    with pytest.raises(PaymentRefused):
        await shop(hostile.url).call(SLUG, {})

    assert len(set(hostile.payments)) == 1


async def test_retry_policy_may_have_thousand_attempts(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.paid = [PlannedResponse(500, b"")] * 1100

    answer = await shop(hostile.url, patience=Patience(attempts=1200, pause=0.0)).call(SLUG, {})

    assert (answer.money, len(set(hostile.payments))) == ("moved", 1)


async def test_payment_is_dead_one_day_after_window(
    shop: OpenClient, hostile: HostileApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile.paid = [PlannedResponse(500, b"")] * 4
    ledger, now = Ledger(), time.time()
    with pytest.raises(Unresolved):
        await shop(hostile.url, ledger=ledger).call(SLUG, {})

    monkeypatch.setattr(time, "time", lambda: now + 24 * 3600 + 61)
    await shop(hostile.url, ledger=ledger).call(SLUG, {})

    assert len(set(hostile.payments)) == 2


async def test_unpaid_answer_is_accepted_with_note(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.unpaid = [PlannedResponse(200, answer_body())]

    answer = await shop(hostile.url, wallet=None).call(SLUG, {})

    assert (answer.data, answer.money, answer.receipt) == (DATA, "not_moved", None)
    assert answer.notes == ("the API answered without requiring a payment",)


@pytest.mark.parametrize(
    "reply",
    [
        PlannedResponse(500, b""),
        PlannedResponse(200, b"<html>"),
        PlannedResponse(200, b"[]"),
        PlannedResponse(418, b"tea"),
        PlannedResponse(200, b" " * 9_000_000),
    ],
    ids=["500", "html", "list", "418", "too much"],
)
async def test_other_server_is_reported_before_signing(
    shop: OpenClient, hostile: HostileApi, reply: PlannedResponse
) -> None:
    hostile.unpaid = [reply, reply]

    with pytest.raises(Drift) as error:
        await shop(hostile.url).call(SLUG, {})

    assert (error.value.money, hostile.payments) == ("not_moved", [])


async def test_failing_unpaid_service_costs_nothing(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.unpaid = [error_response(500, "internal_error")] * 2

    with pytest.raises(ServiceFailed, match="internal_error") as error:
        await shop(hostile.url).call(SLUG, {})

    assert (error.value.money, error.value.code) == ("not_moved", "internal_error")


async def test_body_is_sent_in_canonical_form(shop: OpenClient, hostile: HostileApi) -> None:
    await shop(hostile.url).call(SLUG, {"b": [1, {"d": 1, "c": 2}], "a": "ü"})

    assert {asked.body for asked in hostile.requests if asked.method == "POST"} == {
        json.dumps({"a": "ü", "b": [1, {"c": 2, "d": 1}]}, ensure_ascii=False, separators=(",", ":")).encode()
    }


async def test_charged_payment_that_buys_nothing_is_unanswered_in_ledger(
    shop: OpenClient, hostile: HostileApi
) -> None:
    hostile.paid = [ENDING["a 402 that says used"][0]]
    ledger = Ledger()
    with pytest.raises(PaymentRefused):
        await shop(hostile.url, ledger=ledger).call(SLUG, {})

    last = ledger.records()[-1]

    assert (last.event, last.money) == ("unanswered", "moved")
    assert receipts_json(ledger.records())[0]["state"] == "unanswered"


async def test_receipt_names_service_whatever_its_path(shop: OpenClient, hostile: HostileApi) -> None:
    ledger = Ledger()
    await shop(hostile.url, ledger=ledger).call(SLUG, {})
    record = ledger.records()[-1]
    moved = record.payment.model_copy(update={"path": "/v2/facts"})
    older = record.payment.model_copy(update={"service": ""})

    slugs = [
        receipts_json([record.model_copy(update={"payment": payment})])[0]["service"]
        for payment in (moved, older)
    ]

    assert slugs == [SLUG, SLUG]
