"""The daily audit in the background, and its alerts, metrics and doctor check."""

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
from centgate.payments.audit import audit_queries
from centgate.payments.audit.audit_queries import AuditPosition, record_results
from centgate.payments.audit.daily_audit import DailyAudit
from centgate.payments.background import build_background_work
from centgate.payments.facilitator.facilitators import open_facilitators
from centgate.payments.journal.journal import Journal
from centgate.payments.notifications.alerts import Alerts
from centgate.payments.notifications.webhook_sender import WebhookSender
from centgate.settings import ProviderSettings, Settings
from centgate.signing.evm import to_checksum_address

HOUR = 3600.0


@pytest.fixture
def audited_settings(chain_settings: Settings, database_url: str, upstreams: FakeUpstreams) -> Settings:
    """A deployment on the development chain with its own recipient, whose alerts are accepted."""
    upstreams.set_response("hook", "/", "ok", method="POST")
    return chain_settings.model_copy(
        update={
            "database_url": database_url,
            "pay_to": to_checksum_address(f"0x{time.time_ns():040x}"),
            "alert_webhook": upstreams.url_of("hook") + "/",
        }
    )


def set_node(settings: Settings, url: str) -> Settings:
    return settings.model_copy(update={"providers": {"rpc_84532": ProviderSettings(url=url)}})


async def run_daily_audit(settings: Settings) -> Mapping[str, int] | None:
    """Run a server's audit and return its findings."""
    async with aiohttp.ClientSession() as session, open_journal_store(settings) as store:
        return await DailyAudit(settings, store, session).run()


async def read_positions(settings: Settings) -> list[AuditPosition]:
    async with open_journal_store(settings) as store:
        return await store.read(audit_queries.list_positions)


@pytest.mark.extended
async def test_audit_counts_both_directions(
    audited_settings: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    settle_on_chain(devchain, sign_unsubmitted(audited_settings, buyer))
    await record_false_delivery(audited_settings, buyer)
    mine_block(devchain)

    counts = await run_daily_audit(audited_settings)

    (position,) = await read_positions(audited_settings)
    assert counts == position.findings == {"unknown": 1, "not_on_chain": 1}
    assert abs((position.completed_at or 0) - time.time()) < 60


@pytest.mark.extended
async def test_recent_audit_of_another_process_counts(
    audited_settings: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    settle_on_chain(devchain, sign_unsubmitted(audited_settings, buyer))
    await run_daily_audit(audited_settings)
    blind = set_node(audited_settings, "http://127.0.0.1:9")

    assert await run_daily_audit(blind) == {"unknown": 1}


async def test_audit_without_answering_node_is_incomplete(
    audited_settings: Settings, devchain: DevChain
) -> None:
    assert await run_daily_audit(set_node(audited_settings, "http://127.0.0.1:9")) is None
    assert await read_positions(audited_settings) == []


@pytest.mark.extended
async def test_interrupted_audit_continues(
    audited_settings: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    mine_block(devchain)
    front = set_node(
        audited_settings, start_proxy(upstreams, "node", devchain.rpc_url, newer_block(devchain)) + "/"
    )
    await run_daily_audit(front)
    (position,) = await read_positions(audited_settings)
    async with open_journal_store(audited_settings) as store:
        await store.run(partial(record_results, {}))  # make it long ago
    settle_on_chain(devchain, sign_unsubmitted(audited_settings, buyer))
    mine_block(devchain)

    counts = await run_daily_audit(front)

    (after,) = await read_positions(audited_settings)
    assert counts == {"unknown": 1}
    assert (after.block or 0) > (position.block or 0)


@asynccontextmanager
async def run_background_work(settings: Settings) -> AsyncGenerator[None]:
    """Run a server's background work, which audits at once."""
    async with aiohttp.ClientSession() as session, open_journal_store(settings) as store:
        journal = Journal(store, keep_seconds=HOUR)
        alerts = Alerts(settings, journal.for_component("alerts"), session)
        facilitators = open_facilitators(settings)
        background_work = build_background_work(
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
        background_work.start()
        try:
            yield
        finally:
            await background_work.stop()
            facilitators.close()


@pytest.mark.extended
async def test_findings_raise_one_alert(
    audited_settings: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    for _ in range(2):
        settle_on_chain(devchain, sign_unsubmitted(audited_settings, buyer))
    deadline = time.monotonic() + PATIENCE

    async with run_background_work(audited_settings):
        while not upstreams.requests_of("hook"):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)

    (alert,) = (call.body for call in upstreams.requests_of("hook"))
    assert (alert["kind"], alert["state"], alert["count"]) == ("audit_findings", "raised", 2)
    assert "2 paid on the chain, and not by a payment" in alert["message"]


async def test_clean_audit_ends_alert(audited_settings: Settings, upstreams: FakeUpstreams) -> None:
    async with aiohttp.ClientSession() as session, open_journal_store(audited_settings) as store:
        alerts = Alerts(audited_settings, Journal(store, keep_seconds=HOUR), session)
        for counts in ({"refused": 1}, {"refused": 1}, {}, {}):
            alerts.record_audit(counts)
            await alerts.report_audit_findings()

    assert [call.body["state"] for call in upstreams.requests_of("hook")] == ["raised", "over"]


@pytest.mark.extended
async def test_findings_are_in_metrics(audited_settings: Settings, devchain: DevChain, buyer: Buyer) -> None:
    settle_on_chain(devchain, sign_unsubmitted(audited_settings, buyer))
    await run_daily_audit(audited_settings)
    async with open_journal_store(audited_settings) as store:
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
async def test_doctor_warns_of_findings(audited_settings: Settings, devchain: DevChain, buyer: Buyer) -> None:
    settle_on_chain(devchain, sign_unsubmitted(audited_settings, buyer))
    before = await run_check(audited_settings, "audit")
    await run_daily_audit(audited_settings)

    after = await run_check(audited_settings, "audit")

    assert (before.status, after.status) == ("skipped", "warning")
    assert "1 paid on the chain, and not by a payment of" in after.what
    assert "must share a journal" in (after.mend or "")


async def test_doctor_warns_of_overdue_audit(audited_settings: Settings) -> None:
    done = {"completed_at": time.time() - 4 * HOUR, "findings": "{}"}
    row = {"network": "eip155:84532", "asset": "0x1", "pay_to": "0x2", "position": 1, "position_at": 1.0}
    await insert_rows(audited_settings.database_url, audits=[row | done])

    finding = await run_check(audited_settings, "audit")

    assert (finding.status, "4h 0m ago" in finding.what) == ("warning", True), finding


@pytest.mark.extended
async def test_doctor_accepts_clean_audit(audited_settings: Settings, devchain: DevChain) -> None:
    await run_daily_audit(audited_settings)

    assert (await run_check(audited_settings, "audit")).status == "ok"
