"""Payments that stay open because no node answers are counted and shown."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import ApiFactory, Buyer, encode_header, pay, payment_note, sign_payload
from facilitators import StubFacilitator, build_settings, refuse_with
from fake_upstreams import FakeUpstreams
from payments_shell import run_payments_command
from seeded_journals import open_journal_store, read_row, record_open_payment
from tampering_proxy import start_proxy
from test_kill import run_server

from centgate.cli.doctor.check import run_checks
from centgate.cli.doctor.context import open_context
from centgate.cli.doctor.registry import select_checks
from centgate.devchain.devnet import DevChain
from centgate.findings import Finding
from centgate.metrics.unfinished_payments import UnfinishedPaymentsCollector
from centgate.payments.journal.queries import count_checked_payments
from centgate.payments.reconciler import reconcile_all
from centgate.settings import ProviderSettings, Settings

USED = refuse_with("invalid_exact_evm_nonce_already_used")
NAMED_HASH = "0x" + "ab" * 32
SILENT_NODE = {"rpc_84532": ProviderSettings(url="http://127.0.0.1:9")}


async def count(settings: Settings) -> dict[str, int]:
    """Return the number of checked payments by cause."""
    async with open_journal_store(settings) as store:
        checked = await store.read(count_checked_payments)
    return {str(cause): number for cause, number in checked.by_cause.items()}


@pytest.mark.parametrize(
    ("providers", "cause"), [({}, "no_node"), (SILENT_NODE, "no_answer")], ids=["no node", "silent node"]
)
async def test_open_payment_is_counted_with_its_cause(
    settings: Settings,
    facilitator: StubFacilitator,
    buyer: Buyer,
    providers: dict[str, ProviderSettings],
    cause: str,
) -> None:
    payload = await record_open_payment(settings, buyer)
    facilitator.usually = USED
    lonely = settings.model_copy(update={"providers": providers})

    await reconcile_all(lonely)

    row = await read_row(settings, payload)
    assert (row["state"], row["open_cause"]) == ("settling", cause)
    assert (await count(settings))[cause] == 1


async def test_silence_about_named_transaction_is_no_answer(
    chain_settings: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    buyer: Buyer,
) -> None:
    def hide_receipts(request: dict[str, Any]) -> tuple[int, Any] | None:
        return (503, None) if request["method"] == "eth_getTransactionReceipt" else None

    node = start_proxy(upstreams, "node", devchain.rpc_url, hide_receipts) + "/"
    settings = chain_settings.model_copy(
        update={"facilitator_url": facilitator.url, "providers": {"rpc_84532": ProviderSettings(url=node)}}
    )
    payload = await record_open_payment(settings, buyer)
    execute(settings, f"UPDATE payments SET [transaction] = '{NAMED_HASH}'")

    await reconcile_all(settings)

    assert (await read_row(settings, payload))["open_cause"] == "no_answer"
    assert facilitator.settle_calls == 0


async def test_crash_after_settlement_leaves_visible_open_payment(
    tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    settings = build_settings(tmp_path, facilitator.url)
    with run_server(tmp_path / "journal.db", facilitator, CENTGATE_FAULT="settled") as (process, client):
        payload = sign_payload(client, buyer)
        with pytest.raises(httpx.TransportError):
            pay(client, encode_header(payload))
        process.wait(20)
    assert (await read_row(settings, payload))["state"] == "settling"
    execute(settings, "DELETE FROM workers")  # as after its lease
    facilitator.usually = USED  # the reply of an SDK's facilitator for a payment that it has settled

    assert [each.state_after for each in await reconcile_all(settings)] == ["settling"]

    nonce = payload["payload"]["authorization"]["nonce"]
    result = await asyncio.to_thread(run_payments_command, "show", nonce, url=settings.database_url)
    finding = await check_open_payments(settings)
    assert await read_metric(settings, "no_node") == 1
    assert "No node of its network is configured" in " ".join(result.stdout.split())
    assert (finding.status, "1 payment is open because no node answers" in finding.what) == ("warning", True)
    assert facilitator.moved.total() == 1


async def test_resolved_payment_is_not_counted_any_more(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payload = await record_open_payment(settings, buyer)
    facilitator.next = [USED]
    await reconcile_all(settings)
    before = await count(settings)

    response = pay(api(settings), encode_header(payload))  # a server reconciles in the background too

    assert (before["no_node"], response.status_code) == (1, 200)
    assert await count(settings) == {"no_node": 0, "no_answer": 0, "not_final": 0}


async def test_payment_of_removed_facilitator_is_found_by_doctor(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payload = await record_open_payment(settings, buyer)
    execute(settings, "UPDATE payments SET facilitator = 'https://old.example'")
    await reconcile_all(settings)

    finding = await check_open_payments(settings)

    assert payment_note(pay(api(settings), encode_header(payload)))["state"] == "in_flight"
    assert (finding.status, facilitator.settle_calls) == ("warning", 0)
    assert "1 payment is at https://old.example, which is not a facilitator here any more" in finding.what


async def check_open_payments(settings: Settings) -> Finding:
    """Run the doctor's check."""
    async with open_context(settings) as deployment:
        (result,) = await run_checks(deployment, select_checks(["open-payments"]))
    return result.finding


async def read_metric(settings: Settings, cause: str) -> float:
    """Return the published number of open payments with a cause."""
    async with open_journal_store(settings) as store:
        collector = UnfinishedPaymentsCollector(store, keep_seconds=3600)
        await collector.refresh()
        return next(
            sample.value
            for family in collector.collect()
            for sample in family.samples
            if sample.name == "centgate_payments_open_after_check" and sample.labels == {"cause": cause}
        )


def execute(settings: Settings, statement: str) -> None:
    path = settings.database_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, timeout=30)) as journal, journal:
        journal.execute(statement)
