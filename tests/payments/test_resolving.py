"""Reconciliation of open payments without their buyer, by one process at a time."""

from __future__ import annotations

import secrets
import signal
import sqlite3
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import ApiFactory, Buyer, pay, payment_note, sign_payment
from buyer import encode_header as header
from chain_actions import cancel_authorization, pay_other_recipient, settle_then_reply
from facilitators import StubFacilitator, build_settings, refuse_with, reply_with
from seeded_journals import PATIENCE, encode_terms, read_row, record_open_payment, wait_for_row
from served_api import run_api_process

from centgate.devchain.devnet import DevChain
from centgate.devchain.rpc_client import call_rpc
from centgate.payments.reconciler import reconcile_all
from centgate.settings import Settings

HASH = "0x" + "ab" * 32
DAY = 86400


@pytest.fixture
def deployment(tmp_path: Path, facilitator: StubFacilitator, database_url: str) -> Settings:
    """A deployment with a journal on each kind of database."""
    return build_settings(tmp_path, facilitator.url, database_url=database_url)


@pytest.fixture
def stubbed(chain_settings: Settings, facilitator: StubFacilitator) -> Settings:
    """A deployment on the development chain with a scripted facilitator."""
    return chain_settings.model_copy(update={"facilitator_url": facilitator.url})


@pytest.fixture
def delayed_reply(facilitator: StubFacilitator) -> Generator[tuple[threading.Event, threading.Event]]:
    """Hold back the facilitator's next reply: an event for its arrival, and one that releases it."""
    arrived, release = threading.Event(), threading.Event()
    facilitator.next.append(facilitator.reply_when_released(arrived, release))
    yield arrived, release
    release.set()


def get_nonce(payload: dict[str, Any]) -> str:
    return payload["payload"]["authorization"]["nonce"]


def is_settled(row: dict[str, Any]) -> bool:
    return row["state"] == "settled"


def execute_sqlite(settings: Settings, statement: str, *values: str) -> None:
    """Execute a statement on a SQLite journal, beside the server."""
    with closing(sqlite3.connect(settings.database_url.removeprefix("sqlite:///"))) as journal, journal:
        journal.execute(statement, values)


def wait_for_call(arrived: threading.Event) -> None:
    """Wait until the facilitator was called."""
    assert arrived.wait(PATIENCE)


@pytest.mark.extended
async def test_open_payment_is_settled_then_redeemed_by_buyer(
    api: ApiFactory, deployment: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payload = await record_open_payment(deployment, buyer)
    client = api(deployment)

    row = await wait_for_row(deployment, payload, lambda row: is_settled(row) and row["owner"] is None)
    served, again = (pay(client, header(payload)) for _ in range(2))

    assert row["signed"] is None
    assert (served.status_code, again.content) == (200, served.content)
    assert facilitator.settle_calls == 1


async def test_reconciler_submits_signed_payment(
    deployment: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payload = await record_open_payment(deployment, buyer)

    await reconcile_all(deployment)

    assert facilitator.body["paymentPayload"]["payload"] == payload["payload"]
    assert facilitator.body["paymentPayload"]["accepted"] == payload["accepted"]
    assert facilitator.body["paymentRequirements"] == payload["accepted"]


@pytest.mark.extended
async def test_two_replicas_submit_each_payment_once(
    settings: Settings, postgres_url: str, facilitator: StubFacilitator
) -> None:
    deployment = settings.model_copy(update={"database_url": postgres_url})
    payloads = [await record_open_payment(deployment, Buyer(number % 10)) for number in range(12)]

    with run_api_process(deployment), run_api_process(deployment):
        for payload in payloads:
            await wait_for_row(deployment, payload, is_settled)

    assert facilitator.settle_calls == len(payloads)
    assert set(facilitator.moved.values()) == {1}


@pytest.mark.extended
async def test_leadership_moves_when_leader_is_killed(
    settings: Settings, postgres_url: str, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    deployment = settings.model_copy(update={"database_url": postgres_url})
    facilitator.usually = reply_with(500, "")
    payload = await record_open_payment(deployment, buyer)
    with run_api_process(deployment) as on_duty:
        await wait_for_row(deployment, payload, lambda row: row["attempts"] > 0)
        with run_api_process(deployment):
            on_duty.kill()
            facilitator.usually = facilitator.settle

            row = await wait_for_row(deployment, payload, is_settled)

    assert row["transaction"] == get_nonce(payload)


async def test_buyer_waits_for_running_reconciliation(
    api: ApiFactory,
    settings: Settings,
    facilitator: StubFacilitator,
    buyer: Buyer,
    delayed_reply: tuple[threading.Event, threading.Event],
) -> None:
    payload = await record_open_payment(settings, buyer)
    client = api(settings)
    arrived, release = delayed_reply
    wait_for_call(arrived)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(pay, client, header(payload))
        other = pay(client, sign_payment(client, Buyer(1)))
        assert not waiting.done()
        release.set()

    assert (waiting.result().status_code, other.status_code) == (200, 200)
    assert facilitator.moved[buyer.address.lower(), get_nonce(payload)] == 1
    assert facilitator.settle_calls == 2


@pytest.mark.extended
async def test_retries_have_growing_intervals(
    settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payload = await record_open_payment(settings, buyer)
    facilitator.usually = reply_with(500, "")
    pauses: list[float] = []

    for attempt in range(1, 10):
        now = time.time()
        await reconcile_all(settings)
        row = await read_row(settings, payload)
        pauses.append(row["retry_at"] - now)
        assert row["attempts"] == attempt

    assert 8 <= pauses[0] < 16
    assert pauses[1] > pauses[0]
    assert 400 < pauses[-1] < 800


async def test_payment_is_not_retried_before_its_time(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    facilitator.usually = reply_with(500, "")
    early, late = await record_open_payment(settings, buyer), await record_open_payment(settings, Buyer(1))
    await reconcile_all(settings)
    facilitator.usually = facilitator.settle
    calls = facilitator.settle_calls
    third = await record_open_payment(settings, Buyer(2))

    api(settings)
    await wait_for_row(settings, third, is_settled)

    assert facilitator.settle_calls == calls + 1
    assert [(await read_row(settings, each))["state"] for each in (early, late)] == ["settling"] * 2


@pytest.mark.extended
async def test_silent_facilitator_blocks_neither_requests_nor_shutdown(
    settings: Settings,
    facilitator: StubFacilitator,
    buyer: Buyer,
    delayed_reply: tuple[threading.Event, threading.Event],
) -> None:
    payload = await record_open_payment(settings, buyer)
    with run_api_process(settings) as process:
        wait_for_call(delayed_reply[0])

        async with httpx.AsyncClient() as client:
            healthy = await client.get(process.url + "/health")
        began = time.monotonic()
        ended = process.stop()

    assert healthy.status_code == 200
    assert ended in (0, -signal.SIGTERM)
    assert time.monotonic() - began < 15
    row = await read_row(settings, payload)
    assert (row["state"], row["owner"]) == ("settling", None)


async def test_unreadable_payment_does_not_block_others(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator
) -> None:
    spoilt = [await record_open_payment(settings, Buyer(number % 10), ago=600) for number in range(25)]
    good = await record_open_payment(settings, Buyer(9))
    execute_sqlite(settings, "UPDATE payments SET signed = '{}' WHERE nonce <> ?", get_nonce(good))

    api(settings)
    await wait_for_row(settings, good, is_settled)

    row = await read_row(settings, spoilt[0])
    assert (row["state"], row["attempts"]) == ("settling", 1)
    assert facilitator.settle_calls == 1


async def test_payment_of_dead_process_is_taken_over(
    settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payload = await record_open_payment(settings, buyer)
    execute_sqlite(settings, "UPDATE payments SET owner = 'elsewhere:1/2/3/upkeep'")

    (resolution,) = await reconcile_all(settings)

    assert (resolution.state_before, resolution.state_after) == ("settling", "settled")
    assert (await read_row(settings, payload))["owner"] is None


async def test_payment_of_running_process_is_left_to_it(
    settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    await record_open_payment(settings, buyer)
    execute_sqlite(settings, "UPDATE payments SET owner = 'elsewhere:1/2/3/upkeep'")
    execute_sqlite(settings, "INSERT INTO workers VALUES ('elsewhere:1/2/3', ?)", str(time.time() + 2))

    assert await reconcile_all(settings) == []
    assert facilitator.settle_calls == 0


# the facilitator's reply to a resubmission without a node, and the state that follows
REPLIES = {
    "success": (None, "settled"),
    "nonce used": (refuse_with("invalid_exact_evm_nonce_already_used"), "settling"),
    "expired": (refuse_with("invalid_exact_evm_payload_authorization_valid_before"), "settling"),
    "no balance": (refuse_with("insufficient_funds"), "settling"),
    "pending": (
        reply_with(
            200, {"success": False, "errorReason": "settlement_pending", "transaction": HASH, "network": ""}
        ),
        "settling",
    ),
    "nonsense": (reply_with(502, "<html>"), "settling"),
}


@pytest.mark.extended
@pytest.mark.parametrize(("reply", "after"), REPLIES.values(), ids=REPLIES.keys())
async def test_without_node_facilitators_reply_counts(
    settings: Settings, facilitator: StubFacilitator, buyer: Buyer, reply: Any, after: str
) -> None:
    payload = await record_open_payment(settings, buyer)
    facilitator.usually = reply or facilitator.settle

    (resolution,) = await reconcile_all(settings)

    row = await read_row(settings, payload)
    assert (resolution.state_before, resolution.state_after, row["state"]) == ("settling", after, after)
    assert (resolution.reason is None) == (after == "settled")
    assert resolution.key.nonce == get_nonce(payload)


async def test_payment_on_chain_is_settled_and_served(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    paid = sign_payment(client, buyer)
    facilitator.next.append(settle_then_reply(devchain, reply_with(502, "")))
    assert pay(client, paid).status_code == 502

    (resolution,) = await reconcile_all(stubbed)

    assert resolution.state_after == "settled"
    assert call_rpc(devchain.rpc_url, "eth_getTransactionReceipt", resolution.transaction)["status"] == "0x1"
    assert facilitator.settle_calls == 1
    assert pay(client, paid).status_code == 200


async def test_expired_unused_payment_asks_for_new_payment(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payload = await record_open_payment(stubbed, buyer, ago=3600)
    cancel_authorization(
        devchain, Buyer(8), get_nonce(await record_open_payment(stubbed, Buyer(8), ago=3600))
    )  # a block after its end

    found = {each.key.payer: each for each in await reconcile_all(stubbed)}
    again = pay(api(stubbed), header(payload))

    expired = found[buyer.address.lower()]
    assert (expired.state_after, expired.reason) == (
        "refused",
        "invalid_exact_evm_payload_authorization_valid_before",
    )
    assert found[Buyer(8).address.lower()].reason == "invalid_transaction_state"
    assert again.status_code == 402
    assert payment_note(again) == {"state": "refused", "charged": False, "retry": "new_payment"}
    assert facilitator.settle_calls == 0


async def test_nonce_spent_elsewhere_is_refused(
    stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payload = await record_open_payment(stubbed, buyer)
    pay_other_recipient(devchain, encode_terms(stubbed), buyer, get_nonce(payload))

    (resolution,) = await reconcile_all(stubbed)

    assert (resolution.state_after, resolution.reason) == ("refused", "invalid_transaction_state")
    assert facilitator.settle_calls == 0


async def test_payment_of_another_network_is_not_looked_up_here(
    stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    before = stubbed.model_copy(update={"network": "eip155:8453", "providers": {}})
    payload = await record_open_payment(before, buyer, ago=DAY)
    facilitator.usually = refuse_with("insufficient_funds")

    (resolution,) = await reconcile_all(stubbed)

    assert resolution.state_after == "settling"
    assert facilitator.body["paymentRequirements"] == payload["accepted"]


async def test_reconciler_runs_with_payments_disabled(
    stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    await record_open_payment(stubbed, buyer, ago=3600)
    cancel_authorization(devchain, Buyer(8), "0x" + secrets.token_hex(32))
    closed = stubbed.model_copy(update={"pay_to": None})

    (resolution,) = await reconcile_all(closed)

    assert resolution.state_after == "refused"


@pytest.mark.extended
async def test_reconciler_resumes_after_journal_failure(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payload = await record_open_payment(settings, buyer)
    execute_sqlite(settings, "ALTER TABLE duties RENAME TO gone")
    assert api(settings).get("/health").status_code == 200
    assert (await read_row(settings, payload))["state"] == "settling"
    execute_sqlite(settings, "ALTER TABLE gone RENAME TO duties")

    await wait_for_row(settings, payload, is_settled)

    assert facilitator.settle_calls == 1
