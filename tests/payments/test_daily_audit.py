"""The audit of the last day, and what an operator hears of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
import pytest
from audits import mine_block, newer_block, record_false_delivery, settle_on_chain, sign_unsubmitted
from buyer import Buyer
from cli.doctor.doctor_fixtures import run_check
from fake_upstreams import FakeUpstreams
from journal_rows import insert_rows
from seeded_journals import PATIENCE, open_journal_store
from tampering_proxy import start_proxy

from centgate.catalog import all_services
from centgate.devchain.devnet import DevChain
from centgate.metrics.unfinished_payments import UnfinishedPaymentsCollector
from centgate.payments import audit_queries
from centgate.payments.alerts import Alerts
from centgate.payments.audit_queries import AuditPosition, record_results
from centgate.payments.background import build_background_work
from centgate.payments.daily_audit import DailyAudit
from centgate.payments.facilitators import open_facilitators
from centgate.payments.journal import Journal
from centgate.payments.webhook_sender import WebhookSender
from centgate.settings import ProviderSettings, Settings
from centgate.signing.evm import to_checksum_address

HOUR = 3600.0


@pytest.fixture
def audited(chain_settings: Settings, database_url: str, upstreams: FakeUpstreams) -> Settings:
    """A deployment on the development chain with a recipient of its own, whose alerts are taken."""
    upstreams.set_response("hook", "/", "ok", method="POST")
    return chain_settings.model_copy(
        update={
            "database_url": database_url,
            "pay_to": to_checksum_address(f"0x{time.time_ns():040x}"),
            "alert_webhook": upstreams.url_of("hook") + "/",
        }
    )


def with_node(settings: Settings, url: str) -> Settings:
    return settings.model_copy(update={"providers": {"rpc_84532": ProviderSettings(url=url)}})


async def run(settings: Settings) -> Mapping[str, int] | None:
    """Return the findings of a server's audit."""
    async with aiohttp.ClientSession() as session, open_journal_store(settings) as store:
        return await DailyAudit(settings, store, session).run()


async def positions(settings: Settings) -> list[AuditPosition]:
    async with open_journal_store(settings) as store:
        return await store.read(audit_queries.list_positions)


@pytest.mark.extended
async def test_audit_counts_both_directions(audited: Settings, devchain: DevChain, buyer: Buyer) -> None:
    settle_on_chain(devchain, sign_unsubmitted(audited, buyer))
    await record_false_delivery(audited, buyer)
    mine_block(devchain)

    counts = await run(audited)

    (position,) = await positions(audited)
    assert counts == position.findings == {"unknown": 1, "not_on_chain": 1}
    assert abs((position.completed_at or 0) - time.time()) < 60


@pytest.mark.extended
async def test_audit_of_another_process_just_now_counts(
    audited: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    settle_on_chain(devchain, sign_unsubmitted(audited, buyer))
    await run(audited)
    blind = with_node(audited, "http://127.0.0.1:9")

    assert await run(blind) == {"unknown": 1}


async def test_audit_without_an_answering_node_is_not_complete(audited: Settings, devchain: DevChain) -> None:
    assert await run(with_node(audited, "http://127.0.0.1:9")) is None
    assert await positions(audited) == []


@pytest.mark.extended
async def test_audit_goes_on_where_it_was_interrupted(
    audited: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    mine_block(devchain)
    front = with_node(audited, start_proxy(upstreams, "node", devchain.rpc_url, newer_block(devchain)) + "/")
    await run(front)
    (position,) = await positions(audited)
    async with open_journal_store(audited) as store:
        await store.run(partial(record_results, {}))  # it was long ago
    settle_on_chain(devchain, sign_unsubmitted(audited, buyer))
    mine_block(devchain)

    counts = await run(front)

    (after,) = await positions(audited)
    assert counts == {"unknown": 1}
    assert (after.block or 0) > (position.block or 0)


@asynccontextmanager
async def upkeep_of(settings: Settings) -> AsyncGenerator[None]:
    """A server's upkeep, which audits at once."""
    async with aiohttp.ClientSession() as session, open_journal_store(settings) as store:
        journal = Journal(store, keep_seconds=HOUR)
        alerts = Alerts(settings, journal.for_component("alerts"), session)
        facilitators = open_facilitators(settings)
        upkeep = build_background_work(
            settings,
            all_services(),
            journal,
            facilitators,
            session,
            store=store,
            alerts=alerts,
            webhooks=WebhookSender(settings, journal.for_component("webhooks"), store, session),
            first_audit=(0, 0),
        )
        upkeep.start()
        try:
            yield
        finally:
            await upkeep.stop()
            facilitators.close()


@pytest.mark.extended
async def test_findings_are_one_alert(
    audited: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    for _ in range(2):
        settle_on_chain(devchain, sign_unsubmitted(audited, buyer))
    deadline = time.monotonic() + PATIENCE

    async with upkeep_of(audited):
        while not upstreams.requests_of("hook"):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)

    (alert,) = (call.body for call in upstreams.requests_of("hook"))
    assert (alert["kind"], alert["state"], alert["count"]) == ("audit_findings", "raised", 2)
    assert "2 paid on the chain, and not by a payment" in alert["message"]


async def test_alert_is_over_when_an_audit_finds_nothing(audited: Settings, upstreams: FakeUpstreams) -> None:
    async with aiohttp.ClientSession() as session, open_journal_store(audited) as store:
        alerts = Alerts(audited, Journal(store, keep_seconds=HOUR), session)
        for counts in ({"refused": 1}, {"refused": 1}, {}, {}):
            alerts.record_audit(counts)
            await alerts.report_audit_findings()

    assert [call.body["state"] for call in upstreams.requests_of("hook")] == ["raised", "over"]


@pytest.mark.extended
async def test_findings_are_in_the_metrics(audited: Settings, devchain: DevChain, buyer: Buyer) -> None:
    settle_on_chain(devchain, sign_unsubmitted(audited, buyer))
    await run(audited)
    async with open_journal_store(audited) as store:
        metrics = UnfinishedPaymentsCollector(store, keep_seconds=HOUR)
        await metrics.refresh()

    samples = {
        (sample.name, sample.labels.get("kind")): sample.value
        for family in metrics.collect()
        for sample in family.samples
    }

    assert samples["centgate_audit_findings", "unknown"] == 1
    assert samples["centgate_audit_findings", "refused"] == 0
    assert abs(samples["centgate_audit_completed_timestamp_seconds", None] - time.time()) < 60


@pytest.mark.extended
async def test_doctor_warns_of_findings(audited: Settings, devchain: DevChain, buyer: Buyer) -> None:
    settle_on_chain(devchain, sign_unsubmitted(audited, buyer))
    before = await run_check(audited, "audit")
    await run(audited)

    after = await run_check(audited, "audit")

    assert (before.status, after.status) == ("skipped", "warning")
    assert "1 paid on the chain, and not by a payment of" in after.what
    assert "must share a journal" in (after.mend or "")


async def test_doctor_warns_of_an_audit_that_is_overdue(audited: Settings) -> None:
    done = {"completed_at": time.time() - 4 * HOUR, "findings": "{}"}
    row = {"network": "eip155:84532", "asset": "0x1", "pay_to": "0x2", "position": 1, "position_at": 1.0}
    await insert_rows(audited.database_url, audits=[row | done])

    told = await run_check(audited, "audit")

    assert (told.status, "4h 0m ago" in told.what) == ("warning", True), told


@pytest.mark.extended
async def test_doctor_is_content_with_a_clean_audit(audited: Settings, devchain: DevChain) -> None:
    await run(audited)

    assert (await run_check(audited, "audit")).status == "ok"
