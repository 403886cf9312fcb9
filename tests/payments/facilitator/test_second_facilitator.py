"""The second facilitator gets only payments that surely never reached the first."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import (
    ApiFactory,
    Buyer,
    encode_header,
    pay,
    payment_note,
    sign_payload,
    sign_payment,
    with_identifier,
)
from facilitators import Reply, StubFacilitator, build_settings, refuse_with, reply_with
from sdk_facilitators import open_python_facilitator
from seeded_journals import open_journal_store, prune_rows, read_row, record_open_payment
from sign_ins import get_signed
from starlette.responses import Response
from test_kill import kill_on_settle, pay_until_answered, run_server

from centgate.circuit_breaker import CircuitBreaker
from centgate.devchain.devnet import DevChain
from centgate.payments.audit.refunds import Refund, record_refund
from centgate.payments.payment_key import PaymentKey
from centgate.payments.reconciler import reconcile_all
from centgate.settings import Settings

NOWHERE = "http://127.0.0.1:9"
RATE_LIMIT = reply_with(429, {"error": "too many requests"})
ANSWERED = {
    "503": reply_with(503, "<html>"),
    "500": reply_with(500, {"detail": "no"}),
    "502": reply_with(502, ""),
    "400": reply_with(400, {}),
    "307": reply_with(307, "", Location="http://127.0.0.1:9/settle"),
    "401": reply_with(401, {}),
    "403": reply_with(403, {}),
    "404": reply_with(404, {}),
    "413": reply_with(413, {}),
    "429 with a success": reply_with(429, {"success": True, "transaction": "0x" + "1" * 64, "network": "x"}),
    "429 with a refusal": reply_with(429, {"success": False, "errorReason": "insufficient_funds"}),
    "429 with a pending settlement": reply_with(429, {"success": False, "errorReason": "settlement_pending"}),
    "429 with a transaction": reply_with(429, {"transaction": "0x" + "1" * 64}),
    "429 with a transaction inside": reply_with(429, {"error": {"transaction": "0x" + "1" * 64}}),
    "429 with a hash in its text": reply_with(429, {"error": "limit; sent as 0x" + "1" * 64}),
    "429 of another form": reply_with(429, {"success": "true"}),
    "success of another payment": reply_with(
        200, {"success": True, "transaction": "0x" + "1" * 64, "network": "eip155:1"}
    ),
    "refusal": refuse_with("insufficient_funds"),
}
"""Responses of the first facilitator after which the second is not called."""
QUICK_CASES = ("503", "401", "429 with a pending settlement", "429 with a transaction")


@pytest.fixture
def second(facilitators: Callable[[], StubFacilitator]) -> StubFacilitator:
    """The second facilitator; `facilitator` is the first."""
    return facilitators()


@pytest.fixture
def two_facilitator_settings(settings: Settings, second: StubFacilitator) -> Settings:
    """A deployment with two facilitators and no node."""
    return with_second(settings, second.url)


def with_second(settings: Settings, url: str, *, first: str | None = None) -> Settings:
    changes = {"facilitator_fallback_url": url, "facilitator_url": first or settings.facilitator_url}
    return settings.model_copy(update=changes)


@pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.extended)], indirect=True
)
async def test_rate_limited_payment_is_settled_by_second(
    api: ApiFactory,
    tmp_path: Path,
    database_url: str,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    settings = with_second(build_settings(tmp_path, facilitator.url, database_url=database_url), second.url)
    client, facilitator.usually = api(settings), RATE_LIMIT
    payload = sign_payload(client, buyer)

    response = pay(client, encode_header(payload))
    again = pay(client, encode_header(payload))

    row = await read_row(settings, payload)
    assert (response.status_code, again.content) == (200, response.content)
    assert (facilitator.settle_calls, second.settle_calls, second.moved.total()) == (1, 1, 1)
    assert (row["state"], row["facilitator"]) == ("delivered", settings.facilitators[1].name)
    assert [(event["event"], event["reason"]) for event in row["events"]] == [
        ("fallback", "the facilitator rejected the request with status 429")
    ]


def test_unreachable_first_is_replaced_by_second(
    api: ApiFactory, settings: Settings, second: StubFacilitator, buyer: Buyer
) -> None:
    client = api(with_second(settings, second.url, first=NOWHERE))

    response = pay(client, sign_payment(client, buyer))

    assert (response.status_code, second.moved.total()) == (200, 1)


def test_failed_tls_handshake_leads_to_second(
    api: ApiFactory, settings: Settings, second: StubFacilitator, buyer: Buyer
) -> None:
    with serve_bytes(b"") as url:
        client = api(with_second(settings, second.url, first=url.replace("http:", "https:")))

        response = pay(client, sign_payment(client, buyer))

    assert (response.status_code, second.moved.total()) == (200, 1)


def test_journal_names_second_before_it_is_called(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    tmp_path: Path,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    on_disk: list[Any] = []

    async def read_then_settle(body: dict[str, Any]) -> Response:
        on_disk.extend(read_from_disk(tmp_path))
        return await second.settle(body)

    client, facilitator.usually, second.usually = api(two_facilitator_settings), RATE_LIMIT, read_then_settle

    pay(client, sign_payment(client, buyer))

    assert on_disk == [("settling", two_facilitator_settings.facilitators[1].name)]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK_CASES else pytest.mark.extended) for name in ANSWERED],
)
def test_answered_payment_never_goes_to_second(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
    name: str,
) -> None:
    client, facilitator.usually = api(two_facilitator_settings), ANSWERED[name]
    payment = sign_payment(client, buyer)

    first = pay(client, payment)
    facilitator.usually = RATE_LIMIT  # a false claim that the request never arrived
    later = pay(client, payment)

    assert {first.status_code, later.status_code} <= {402, 502, 504}
    assert (facilitator.settle_calls, second.settle_calls) == (2, 0)


@pytest.mark.parametrize(
    "content",
    [b"", b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 9\r\n\r\nhalf", b"HTTP/1.1 429"],
    ids=["closed", "reset in the body", "reset in the head"],
)
def test_broken_response_never_leads_to_second(
    api: ApiFactory, settings: Settings, second: StubFacilitator, buyer: Buyer, content: bytes
) -> None:
    with serve_bytes(content) as url:
        client = api(with_second(settings, second.url, first=url))

        response = pay(client, sign_payment(client, buyer))

    assert (payment_note(response)["state"], second.settle_calls) == ("in_flight", 0)


async def test_silent_first_keeps_its_payment(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    hasty = two_facilitator_settings.model_copy(update={"facilitator_timeout": 0.3})
    client, facilitator.usually = api(hasty), facilitator.reply_slowly(5)
    payload = sign_payload(client, buyer)

    response = pay(client, encode_header(payload))
    results = await reconcile_all(with_second(hasty, second.url, first=facilitator.url))

    row = await read_row(two_facilitator_settings, payload)
    assert payment_note(response)["state"] == "in_flight"
    assert [each.state_after for each in results] in (["settling"], [])  # none if the server had it
    assert (row["facilitator"], second.settle_calls) == (two_facilitator_settings.facilitators[0].name, 0)


async def test_open_payment_at_second_goes_to_second_again(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    facilitator.next, second.next = [RATE_LIMIT], [second.move_then_reply(reply_with(502, ""))]
    client = api(two_facilitator_settings)
    payment = sign_payment(client, buyer)

    first = pay(client, payment)
    later = pay(client, payment)

    assert (payment_note(first)["state"], later.status_code) == ("in_flight", 200)
    assert (facilitator.settle_calls, second.settle_calls, second.moved.total()) == (1, 2, 1)


async def test_payment_refused_by_both_limits_is_unused(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    facilitator.next, second.next = [RATE_LIMIT], [RATE_LIMIT]
    client = api(two_facilitator_settings)
    payload = sign_payload(client, buyer)

    unsent = pay(client, encode_header(payload))
    row = await read_row(two_facilitator_settings, payload)
    settled = pay(client, encode_header(payload))

    assert (payment_note(unsent)["state"], row["facilitator"]) == ("unused", None)
    assert (settled.status_code, facilitator.moved.total(), second.moved.total()) == (200, 1, 0)


async def test_refused_payment_stays_with_its_facilitator(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    facilitator.next = [refuse_with("kyt_risk_detected"), RATE_LIMIT]
    client = api(two_facilitator_settings)
    payload = sign_payload(client, buyer)

    states = [payment_note(pay(client, encode_header(payload)))["state"] for _ in range(2)]
    row = await read_row(two_facilitator_settings, payload)

    assert (states, second.settle_calls) == (["refused", "unused"], 0)
    assert row["facilitator"] == two_facilitator_settings.facilitators[0].name


@pytest.mark.parametrize(
    ("first_url", "state"), [(None, "in_flight"), (NOWHERE, "refused")], ids=["rate-limit", "no-connection"]
)
def test_refusal_by_second_counts_only_if_first_was_unreachable(
    api: ApiFactory,
    settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
    first_url: str | None,
    state: str,
) -> None:
    facilitator.next = [RATE_LIMIT]
    second.next = [refuse_with("invalid_exact_evm_payload_signature")]
    client = api(with_second(settings, second.url, first=first_url or facilitator.url))

    response = pay(client, sign_payment(client, buyer))

    assert (payment_note(response)["state"], second.settle_calls) == (state, 1)


def test_refusal_is_no_evidence_after_both_answered_429(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    facilitator.next, second.next = [RATE_LIMIT, refuse_with("insufficient_funds")], [RATE_LIMIT]
    client = api(two_facilitator_settings)
    payment = sign_payment(client, buyer)

    states = [payment_note(pay(client, payment))["state"] for _ in range(2)]

    assert (states, facilitator.settle_calls, second.settle_calls) == (["unused", "in_flight"], 2, 1)


def test_refusal_by_second_is_no_evidence_after_its_429(
    api: ApiFactory, settings: Settings, second: StubFacilitator, buyer: Buyer
) -> None:
    second.next = [RATE_LIMIT, refuse_with("insufficient_funds")]
    client = api(with_second(settings, second.url, first=NOWHERE))
    payment = sign_payment(client, buyer)

    states = [payment_note(pay(client, payment))["state"] for _ in range(2)]

    assert (states, second.settle_calls) == (["unused", "in_flight"], 2)


@pytest.mark.extended
def test_expired_maybe_sent_payment_is_looked_up_on_chain(
    api: ApiFactory,
    chain_settings: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    second: StubFacilitator,
) -> None:
    sent: list[dict[str, Any]] = []
    facilitator.next, second.next = [keep_and_limit(sent)], [RATE_LIMIT]
    client = api(with_second(chain_settings, second.url, first=facilitator.url))
    payment = encode_header(sign_payload(client, Buyer(3), seconds=12))

    unsent = pay(client, payment)
    mined = httpx.post(devchain.facilitator_url + "/settle", json=sent[0], timeout=30)
    time.sleep(13)  # until the authorization has expired
    later = pay(client, payment)

    assert mined.json()["success"]
    assert payment_note(unsent)["state"] == "unused"
    assert later.status_code == 200


@pytest.mark.extended
def test_expired_maybe_sent_payment_buys_nothing_else(
    api: ApiFactory, two_facilitator_settings: Settings, facilitator: StubFacilitator, second: StubFacilitator
) -> None:
    facilitator.next, second.next = [RATE_LIMIT], [RATE_LIMIT]
    client = api(two_facilitator_settings)
    payment = encode_header(sign_payload(client, Buyer(4), seconds=12))

    pay(client, payment)
    time.sleep(13)
    other = pay(client, payment, body={"url": "https://example.com"})
    same = pay(client, payment)

    assert other.json()["error"]["details"]["reason"] == "payment_already_used"
    assert (payment_note(same)["state"], facilitator.settle_calls) == ("in_flight", 1)


@pytest.mark.parametrize(("replies", "step"), [([RATE_LIMIT], "wait"), ([reply_with(401, {})], "pay_again")])
def test_wallet_is_not_advised_to_repay_maybe_sent_payment(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    replies: list[Any],
    step: str,
) -> None:
    facilitator.next, second.next = [*replies], [RATE_LIMIT]
    client = api(two_facilitator_settings)

    pay(client, sign_payment(client, Buyer(4)))
    [payment] = get_signed(client, number=4).json()["payments"]

    assert (payment["state"], payment["next"], payment["retry"]) == ("unused", step, "same_payment")


@pytest.mark.parametrize(
    "changes", [{"payers_denied": (Buyer(4).address,)}, {"price": Decimal("0.02")}], ids=["denied", "price"]
)
def test_buyer_of_maybe_sent_payment_is_not_told_it_is_unused_after_change(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    changes: dict[str, Any],
) -> None:
    """Its transfer may still come: who signs another one would pay twice."""
    facilitator.next, second.next = [RATE_LIMIT], [RATE_LIMIT]
    client = api(two_facilitator_settings)
    payment = sign_payment(client, Buyer(4))
    pay(client, payment)

    again = pay(api(two_facilitator_settings.model_copy(update=changes)), payment)

    note = payment_note(again)
    assert (again.status_code, note["state"], note["retry"]) == (502, "in_flight", "same_payment")
    assert (again.json()["error"]["provider"], note["charged"]) == ("facilitator", False)
    assert int(again.headers["Retry-After"]) > 10
    assert (facilitator.settle_calls, second.settle_calls) == (1, 1)


def test_fresh_signature_does_not_replace_maybe_sent_payment_of_its_key(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
) -> None:
    facilitator.next, second.next = [RATE_LIMIT], [RATE_LIMIT]
    client, name = api(two_facilitator_settings), "one-order-of-the-buyer"
    first = with_identifier(sign_payload(client, Buyer(4)), name)
    pay(client, first)

    fresh = pay(client, with_identifier(sign_payload(client, Buyer(4)), name))
    same = pay(client, first)

    note = payment_note(fresh)
    assert (fresh.status_code, note["state"], note["retry"]) == (502, "in_flight", "same_payment")
    assert same.status_code == 200, same.text
    assert facilitator.moved.total() + second.moved.total() == 1


@pytest.mark.extended
async def test_refunded_maybe_sent_payment_buys_nothing(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
) -> None:
    """Its money was received all the same, and paid back; the chain would show that it was received."""
    facilitator.next, second.next = [RATE_LIMIT], [RATE_LIMIT]
    client = api(two_facilitator_settings)
    payload = sign_payload(client, Buyer(4), seconds=12)
    pay(client, encode_header(payload))
    row = await read_row(two_facilitator_settings, payload)
    key = PaymentKey(row["network"], row["asset"], row["payer"], row["nonce"])
    refund = Refund("0x" + "ab" * 32, time.time())
    async with open_journal_store(two_facilitator_settings) as store:
        assert await record_refund(store, key, refund, redeem_cutoff=0.0, was_received=True)
    await asyncio.sleep(13)

    again = pay(client, encode_header(payload))
    [shown] = get_signed(client, number=4).json()["payments"]

    assert again.status_code == 402, again.text
    assert (await read_row(two_facilitator_settings, payload))["state"] == "unused"
    assert (shown["next"], shown["refund"]["transaction"]) == ("pay_again", refund.transaction)
    assert (payment_note(again)["retry"], shown["retry"]) == ("new_payment", "new_payment")


async def test_expired_maybe_sent_payment_is_kept_for_audit(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    facilitator.next, second.next = [RATE_LIMIT], [RATE_LIMIT]
    client = api(two_facilitator_settings)
    payload = sign_payload(client, buyer)

    pay(client, encode_header(payload))
    pruned = await prune_rows(two_facilitator_settings, "unused", ended=True)

    assert (pruned, (await read_row(two_facilitator_settings, payload))["presentations"]) == (0, 3)


async def test_payment_stays_with_first_if_second_is_unreachable(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    facilitator.next = [RATE_LIMIT, refuse_with("kyt_risk_detected")]
    client = api(with_second(settings, NOWHERE))
    payload = sign_payload(client, buyer)

    unsent = pay(client, encode_header(payload))
    row = await read_row(settings, payload)
    refused = pay(client, encode_header(payload))

    assert payment_note(unsent)["state"] == "unused"
    assert (row["facilitator"], row["presentations"]) == (settings.facilitators[0].name, 1)
    assert payment_note(refused)["state"] == "refused"


def test_refusal_is_no_evidence_after_429_of_replaced_facilitator(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, second: StubFacilitator, buyer: Buyer
) -> None:
    facilitator.usually = RATE_LIMIT
    second.usually = refuse_with("insufficient_funds")
    early = api(settings)
    payment = sign_payment(early, buyer)

    unsent = pay(early, payment)
    early.close()
    replaced = api(settings.model_copy(update={"facilitator_url": second.url}))
    later = pay(replaced, payment)

    assert [payment_note(each)["state"] for each in (unsent, later)] == ["unused", "in_flight"]


def test_refusal_by_only_facilitator_counts_after_its_429(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    facilitator.next = [RATE_LIMIT, refuse_with("insufficient_funds")]
    client = api(settings)
    payment = sign_payment(client, buyer)

    assert [payment_note(pay(client, payment))["state"] for _ in range(2)] == ["unused", "refused"]


@pytest.mark.extended
def test_refusal_by_second_waits_while_first_may_be_mined(
    api: ApiFactory,
    chain_settings: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    sent: list[dict[str, Any]] = []
    facilitator.next = [keep_and_limit(sent)]
    second.usually = refuse_with("insufficient_funds")
    client = api(with_second(chain_settings, second.url, first=facilitator.url))
    payment = sign_payment(client, buyer)

    first = pay(client, payment)
    mined = httpx.post(devchain.facilitator_url + "/settle", json=sent[0], timeout=30)
    later = pay(client, payment)

    assert mined.json()["success"]
    assert payment_note(first)["state"] == "in_flight"
    assert later.status_code == 200


# -- crashes -----------------------------------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.parametrize("moved", [False, True], ids=["before-the-money-moved", "after-the-money-moved"])
def test_server_that_dies_at_second_redeems_there(
    tmp_path: Path,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
    *,
    moved: bool,
) -> None:
    journal, fallback = tmp_path / "journal.db", {"CENTGATE_FACILITATOR_FALLBACK_URL": second.url}
    facilitator.next = [RATE_LIMIT]
    with run_server(journal, facilitator, **fallback) as (process, client):
        payment = sign_payment(client, buyer)
        second.next = [kill_on_settle(process.kill, second if moved else None)]
        with pytest.raises(httpx.TransportError):
            pay(client, payment)

    with run_server(journal, facilitator, **fallback) as (_, client):
        first = pay_until_answered(client, payment)
        again = pay(client, payment)

    assert again.content == first.content
    assert (facilitator.settle_calls, facilitator.moved.total(), second.moved.total()) == (1, 0, 1)


async def test_crash_between_write_and_call_leads_to_second(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    api(two_facilitator_settings).get("/health")
    payload = await record_open_payment(two_facilitator_settings, buyer)
    await write_facilitator(two_facilitator_settings, two_facilitator_settings.facilitators[1].name)

    response = pay(api(two_facilitator_settings), encode_header(payload))

    assert (response.status_code, facilitator.settle_calls, second.moved.total()) == (200, 0, 1)


async def test_failing_journal_keeps_payment_from_second(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    tmp_path: Path,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    facilitator.usually = RATE_LIMIT
    client = api(two_facilitator_settings)
    payment = sign_payment(client, buyer)
    execute(
        tmp_path,
        "CREATE TRIGGER full BEFORE UPDATE OF facilitator ON payments BEGIN SELECT RAISE(ABORT, 'full'); END",
    )

    failed = pay(client, payment)
    calls = second.settle_calls
    execute(tmp_path, "DROP TRIGGER full")
    facilitator.usually = facilitator.settle
    settled = pay(client, payment)

    assert payment_note(failed)["retry"] == "same_payment"
    assert (calls, settled.status_code) == (0, 200)
    assert (facilitator.moved.total(), second.settle_calls) == (1, 0)


# -- changed settings, replicas ----------------------------------------------------------------------------


async def test_payment_of_removed_facilitator_is_not_presented(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    payload = await record_open_payment(two_facilitator_settings, buyer)
    await write_facilitator(two_facilitator_settings, two_facilitator_settings.facilitators[1].name)
    removed = two_facilitator_settings.model_copy(update={"facilitator_fallback_url": None})
    swapped = with_second(two_facilitator_settings, facilitator.url, first=second.url)

    response = pay(api(removed), encode_header(payload))
    calls = facilitator.settle_calls, second.settle_calls
    settled = pay(api(swapped), encode_header(payload))

    error = response.json()["error"]
    assert (payment_note(response)["state"], calls) == ("in_flight", (0, 0))
    assert "at a facilitator that this server does not use any more" in error["message"]
    assert two_facilitator_settings.facilitators[1].name not in response.text
    assert (settled.status_code, facilitator.settle_calls, second.moved.total()) == (200, 0, 1)


async def test_reconciliation_names_removed_facilitator(
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    """The operator has to know where the payment is; a buyer is not told."""
    await record_open_payment(two_facilitator_settings, buyer)
    name = two_facilitator_settings.facilitators[1].name
    await write_facilitator(two_facilitator_settings, name)
    removed = two_facilitator_settings.model_copy(update={"facilitator_fallback_url": None})

    [result] = await reconcile_all(removed)

    assert (result.state_after, facilitator.settle_calls, second.settle_calls) == ("settling", 0, 0)
    assert result.reason
    assert f"it was presented to {name}, which is not a facilitator here any more" in result.reason
    assert "name it in CENTGATE_FACILITATOR_FALLBACK_URL, or let a node decide" in result.reason


async def test_payment_from_before_column_belongs_to_first(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    payload = await record_open_payment(two_facilitator_settings, buyer)
    facilitator.usually = RATE_LIMIT  # for the buyer, and for the reconciler of the server

    open_still = pay(api(two_facilitator_settings), encode_header(payload))
    facilitator.usually = facilitator.settle
    settled = pay(api(two_facilitator_settings), encode_header(payload))

    assert (payment_note(open_still)["state"], settled.status_code) == ("in_flight", 200)
    assert (facilitator.settle_calls > 1, second.settle_calls) == (True, 0)


def test_replicas_with_one_and_two_facilitators_settle_once(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
) -> None:
    facilitator.next, second.next = [RATE_LIMIT], [second.move_then_reply(reply_with(502, ""))]
    one = api(two_facilitator_settings.model_copy(update={"facilitator_fallback_url": None}))
    other = api(two_facilitator_settings)
    payment = sign_payment(other, buyer)

    states = [payment_note(pay(each, payment))["state"] for each in (other, one)]
    settled = pay(other, payment)

    assert (states, settled.status_code) == (["in_flight", "in_flight"], 200)
    assert (facilitator.settle_calls, second.settle_calls, second.moved.total()) == (1, 2, 1)


# -- circuit breaker, concurrency --------------------------------------------------------------------------


def test_first_is_not_called_while_its_circuit_is_open(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CircuitBreaker, "PAUSE_SECONDS", 3600.0)
    facilitator.usually, limit = RATE_LIMIT, CircuitBreaker.FAILURE_LIMIT
    client = api(two_facilitator_settings)

    statuses = {
        pay(client, sign_payment(client, Buyer(number % 10))).status_code for number in range(limit + 5)
    }

    assert (statuses, facilitator.settle_calls, second.moved.total()) == ({200}, limit, limit + 5)


def test_first_is_tried_again_after_pause(
    api: ApiFactory,
    two_facilitator_settings: Settings,
    facilitator: StubFacilitator,
    second: StubFacilitator,
    buyer: Buyer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CircuitBreaker, "FAILURE_LIMIT", 1)
    monkeypatch.setattr(CircuitBreaker, "PAUSE_SECONDS", 0.0)
    facilitator.next = [RATE_LIMIT]
    client = api(two_facilitator_settings)

    statuses = [pay(client, sign_payment(client, buyer)).status_code for _ in range(3)]

    assert statuses == [200] * 3
    assert (facilitator.moved.total(), second.moved.total()) == (2, 1)


@pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.extended)], indirect=True
)
def test_concurrent_requests_are_settled_once_by_one_of_two(
    api: ApiFactory, tmp_path: Path, database_url: str, facilitator: StubFacilitator, second: StubFacilitator
) -> None:
    settings = with_second(build_settings(tmp_path, facilitator.url, database_url=database_url), second.url)
    facilitator.usually = limit_every_second(facilitator)
    clients = [api(settings), api(settings)]
    payments = [sign_payment(clients[0], Buyer(number)) for number in range(10)]
    requests = [(client, payment) for payment in payments for client in clients for _ in range(3)]

    with ThreadPoolExecutor(20) as pool:
        responses = list(pool.map(pay, *zip(*requests, strict=True)))

    assert {response.status_code for response in responses} == {200}
    assert len({response.content for response in responses}) == len(payments)
    assert not facilitator.moved.keys() & second.moved.keys()
    assert sorted([*facilitator.moved.values(), *second.moved.values()]) == [1] * len(payments)
    assert second.moved


# -- real facilitators -------------------------------------------------------------------------------------


@pytest.mark.extended
def test_two_real_facilitators_charge_once(
    api: ApiFactory, chain_settings: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    with open_python_facilitator(devchain) as url:
        client = api(with_second(chain_settings, url, first=NOWHERE))
        before = devchain.token_balance(buyer.address)

        response = pay(client, sign_payment(client, buyer))

    assert response.status_code == 200, response.text
    assert before - devchain.token_balance(buyer.address) == 10_000


@pytest.mark.extended
def test_payment_silently_settled_by_first_is_found_on_chain(
    api: ApiFactory, chain_settings: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    facilitator.usually = settle_then_fail(devchain)
    with open_python_facilitator(devchain) as url:
        client = api(with_second(chain_settings, url, first=facilitator.url))
        before, payment = devchain.token_balance(buyer.address), sign_payment(client, buyer)

        first = pay(client, payment)
        later = pay(client, payment)

    assert (payment_note(first)["state"], later.status_code) == ("in_flight", 200)
    assert before - devchain.token_balance(buyer.address) == 10_000
    assert facilitator.settle_calls == 1


# -- helpers -----------------------------------------------------------------------------------------------


def limit_every_second(facilitator: StubFacilitator) -> Reply:
    """Return a reply that refuses every second request because of a rate limit."""
    turns: Iterator[bool] = iter([number % 2 == 0 for number in range(1000)])

    async def reply(body: dict[str, Any]) -> Response:
        await asyncio.sleep(0.05)
        return await (facilitator.settle(body) if next(turns) else RATE_LIMIT(body))

    return reply


def keep_and_limit(sent: list[dict[str, Any]]) -> Reply:
    """Return a reply that refuses because of a rate limit, and appends the request to `sent`."""

    async def reply(body: dict[str, Any]) -> Response:
        sent.append(body)
        return await RATE_LIMIT(body)

    return reply


def settle_then_fail(devchain: DevChain) -> Reply:
    """Return a reply that settles by the chain's facilitator and reports an error."""

    async def reply(body: dict[str, Any]) -> Response:
        async with httpx.AsyncClient(timeout=30) as client:
            await client.post(devchain.facilitator_url + "/settle", json=body)
        return Response("<html>", 503)

    return reply


@contextmanager
def serve_bytes(content: bytes) -> Generator[str]:
    """Serve a server that answers every connection with these bytes, and closes it; yields its URL."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        threading.Thread(target=partial(_answer_connections, listening, content), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def _answer_connections(listening: socket.socket, content: bytes) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            connection.recv(65536)
            connection.sendall(content)


def read_from_disk(folder: Path) -> list[Any]:
    """Return state and facilitator of all payments in a folder's journal."""
    with closing(sqlite3.connect(folder / "journal.db", timeout=30)) as journal:
        return journal.execute("SELECT state, facilitator FROM payments").fetchall()


def execute(folder: Path, statement: str) -> None:
    """Execute a statement on a folder's journal."""
    with closing(sqlite3.connect(folder / "journal.db", timeout=30)) as journal, journal:
        journal.execute(statement)


async def write_facilitator(settings: Settings, name: str) -> None:
    """Set the facilitator of a journal's payments, as a server that died left it."""
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    await asyncio.to_thread(execute, path.parent, f"UPDATE payments SET facilitator = '{name}'")
