"""Webhook alerts to the operator: failing settlements, and payments that stay unresolved."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import aiohttp
import pytest
from buyer import ApiFactory, Buyer, encode_header, pay, sign_payment
from facilitators import StubFacilitator, reply_with
from fake_upstreams import FakeUpstreams
from pydantic import SecretStr
from seeded_journals import PATIENCE, record_open_payment

from centgate.payments.database.store_factory import open_store
from centgate.payments.facilitator.facilitator import (
    SettlementConfirmed,
    SettlementOutcome,
    SettlementRefused,
    SettlementUnknown,
)
from centgate.payments.journal.journal import Journal
from centgate.payments.notifications.alerts import Alerts
from centgate.settings import Settings

MINUTE, HOUR = 60.0, 3600.0
SECRET = "T00000000-xoxb-of-the-operator"
FAILED, WENT_WELL, REFUSED = (
    SettlementUnknown("error", "nonsense"),
    SettlementConfirmed({}),
    SettlementRefused("insufficient_funds"),
)

Alert = dict[str, Any]


@dataclass
class Clock:
    now: float = field(default_factory=time.time)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def alert_settings(settings: Settings, upstreams: FakeUpstreams) -> Settings:
    """Settings of a deployment whose alert webhook accepts every alert."""
    upstreams.set_response("hook", "/" + SECRET, "ok", method="POST")
    return settings.model_copy(update={"alert_webhook": f"{upstreams.url_of('hook')}/{SECRET}"})


def list_alerts(upstreams: FakeUpstreams) -> list[tuple[str, str]]:
    """Return kind and state of each sent alert."""
    return [(call.body["kind"], call.body["state"]) for call in upstreams.requests_of("hook")]


def wait_for_alert(upstreams: FakeUpstreams, kind: str, state: str) -> Alert:
    """Wait for the first alert of a kind and state, and return it."""
    deadline = time.monotonic() + PATIENCE
    while (kind, state) not in list_alerts(upstreams):
        assert time.monotonic() < deadline, list_alerts(upstreams)
        time.sleep(0.05)
    return upstreams.requests_of("hook")[list_alerts(upstreams).index((kind, state))].body


@asynccontextmanager
async def open_alerts(settings: Settings, clock: Clock, *names: str) -> AsyncGenerator[list[Alerts]]:
    """Open the alerts of several servers on one journal."""
    store = open_store(settings.database_url)
    journal = Journal(store, keep_seconds=HOUR)
    async with aiohttp.ClientSession() as session:
        yield [Alerts(settings, journal.for_component(name), session, clock=clock) for name in names]
    await store.close()


def record_outcomes(alerts: Alerts, *outcomes: SettlementOutcome) -> None:
    for outcome in outcomes:
        alerts.record_settlement(outcome)


@pytest.mark.extended
def test_failing_settlements_raise_and_end_alert(
    api: ApiFactory, alert_settings: Settings, upstreams: FakeUpstreams, facilitator: StubFacilitator
) -> None:
    client = api(alert_settings)
    facilitator.usually = reply_with(502, "<html>")
    payments = [sign_payment(client, Buyer(number)) for number in range(3)]
    assert {pay(client, payment).status_code for payment in payments} == {502}

    raised = wait_for_alert(upstreams, "settlements_failing", "raised")
    facilitator.usually = facilitator.settle
    assert {pay(client, payment).status_code for payment in payments} == {200}
    wait_for_alert(upstreams, "settlements_failing", "over")

    assert raised["count"] >= 3
    assert raised["network"] == "eip155:84532"
    assert raised["message"] in raised["text"]
    assert "://" not in raised["text"]
    assert list_alerts(upstreams).count(("settlements_failing", "raised")) == 1


@pytest.mark.extended
async def test_unresolved_payment_raises_and_ends_alert(
    api: ApiFactory,
    alert_settings: Settings,
    upstreams: FakeUpstreams,
    facilitator: StubFacilitator,
    buyer: Buyer,
) -> None:
    facilitator.usually = reply_with(502, "<html>")
    payload = await record_open_payment(alert_settings, buyer, ago=3600)
    await record_open_payment(alert_settings, Buyer(1), ago=60)  # too recent for an alert
    client = api(alert_settings)

    raised = wait_for_alert(upstreams, "payments_unresolved", "raised")
    facilitator.usually = facilitator.settle
    served = pay(client, encode_header(payload))
    wait_for_alert(upstreams, "payments_unresolved", "over")

    assert (raised["count"], served.status_code) == (1, 200)
    assert 3600 <= raised["oldestSeconds"] < 3700
    assert "1 payment is unresolved" in raised["text"]
    assert list_alerts(upstreams).count(("payments_unresolved", "raised")) == 1


async def test_alert_contains_no_secret(
    alert_settings: Settings, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    keys = {"facilitator_token": SecretStr("t0k3n"), "receipt_key": SecretStr("0x" + "5e" * 32)}
    keyed = alert_settings.model_copy(update=keys)
    payload = await record_open_payment(keyed, buyer, ago=3600)
    async with open_alerts(keyed, Clock(), "one") as (alerts,):
        await alerts.report_unresolved()

    (call,) = upstreams.requests_of("hook")
    said_in_all = json.dumps([call.body, dict(call.headers)]).lower()
    signed = payload["payload"]
    secrets = [signed["signature"][2:40], signed["authorization"]["nonce"][2:], "t0k3n", "5e5e", SECRET]
    assert [secret for secret in secrets if secret.lower() in said_in_all] == []
    assert set(call.body) == {
        *("kind", "state", "message", "text", "count", "oldestSeconds"),
        *("network", "networks", "server", "time"),
    }


@pytest.mark.extended
async def test_lasting_alert_repeats_at_growing_intervals(
    alert_settings: Settings, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    clock = Clock()
    began = clock.now
    await record_open_payment(alert_settings, buyer, ago=3600)
    times: list[float] = []
    async with open_alerts(alert_settings, clock, "one") as (alerts,):
        while clock.now < began + 100 * HOUR:
            before = len(upstreams.requests_of("hook"))
            await alerts.report_unresolved()
            times += [clock.now - began] * (len(upstreams.requests_of("hook")) - before)
            clock.now += 15 * MINUTE

    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert times[0] == 0
    assert pauses == [HOUR / 2, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 16 * HOUR, 24 * HOUR, 24 * HOUR]
    assert [state for _, state in list_alerts(upstreams)] == ["raised"] + ["reminder"] * len(pauses)


@pytest.mark.parametrize(
    ("outcomes", "alerted"),
    [
        ([FAILED] * 2, False),
        ([FAILED] * 3, True),
        ([FAILED, FAILED, WENT_WELL, FAILED, FAILED], False),
        ([FAILED, FAILED, REFUSED, FAILED, FAILED], False),
        ([REFUSED] * 20, False),
        ([FAILED, WENT_WELL] * 10, True),
        ([FAILED, WENT_WELL, WENT_WELL] * 7, False),
    ],
    ids=["two", "three in a row", "one well between", "a refusal between", "refusals", "half", "a third"],
)
async def test_conditions_of_alerts(
    alert_settings: Settings,
    upstreams: FakeUpstreams,
    outcomes: list[SettlementOutcome],
    alerted: bool,  # noqa: FBT001 - a parameter
) -> None:
    async with open_alerts(alert_settings, Clock(), "one") as (alerts,):
        record_outcomes(alerts, *outcomes)
        await alerts.report_settlements()

    assert list_alerts(upstreams) == ([("settlements_failing", "raised")] if alerted else [])


async def test_second_facilitator_use_raises_and_ends_alert(
    alert_settings: Settings, upstreams: FakeUpstreams
) -> None:
    async with open_alerts(alert_settings, Clock(), "one") as (alerts,):
        for rank in ("second", "second", "second", "first", "first", "first"):
            alerts.record_rank(rank)
            await alerts.report_settlements()

    messages = [call.body["message"] for call in upstreams.requests_of("hook")]
    assert list_alerts(upstreams) == [("fallback_in_use", "raised"), ("fallback_in_use", "over")]
    assert messages[0].startswith("3 of the last 3 payments went to the second facilitator")


async def test_old_failures_do_not_count(alert_settings: Settings, upstreams: FakeUpstreams) -> None:
    clock = Clock()
    async with open_alerts(alert_settings, clock, "one") as (alerts,):
        record_outcomes(alerts, *[FAILED] * 3)
        await alerts.report_settlements()
        clock.now += HOUR
        await alerts.report_settlements()
        await alerts.report_settlements()

    assert [state for _, state in list_alerts(upstreams)] == ["raised", "over"]
    message = upstreams.requests_of("hook")[-1].body["message"]
    assert message == (
        "no payment was settled in the last 15 minutes: it is not known if settlements succeed again"
    )


async def test_one_server_alerts_for_all_servers(alert_settings: Settings, upstreams: FakeUpstreams) -> None:
    async with open_alerts(alert_settings, Clock(), "one", "another") as servers:
        for _ in range(3):
            for alerts in servers:
                record_outcomes(alerts, *[FAILED] * 3)
                await alerts.report_settlements()
        assert list_alerts(upstreams) == [("settlements_failing", "raised")]

        record_outcomes(servers[0], *[WENT_WELL] * 3)
        for alerts in servers:
            await alerts.report_settlements()

    assert [state for _, state in list_alerts(upstreams)] == [
        "raised",
        "over",
        "raised",
    ]  # the other server's settlements still fail


@pytest.mark.parametrize(
    "answer", [(500, "no"), (302, "elsewhere"), (404, "gone")], ids=["500", "302", "404"]
)
async def test_undelivered_alert_is_sent_again(
    alert_settings: Settings, upstreams: FakeUpstreams, buyer: Buyer, answer: tuple[int, str]
) -> None:
    clock = Clock()
    await record_open_payment(alert_settings, buyer, ago=3600)
    upstreams.set_response_function("hook", "/" + SECRET, lambda _: answer, method="POST")
    async with open_alerts(alert_settings, clock, "one") as (alerts,):
        await alerts.report_unresolved()
        await alerts.report_unresolved()
        assert len(list_alerts(upstreams)) == 1
        upstreams.set_response("hook", "/" + SECRET, "ok", method="POST")
        clock.now += MINUTE
        await alerts.report_unresolved()
        await alerts.report_unresolved()

    assert [state for _, state in list_alerts(upstreams)] == ["raised", "raised"]


@pytest.mark.extended
async def test_slow_or_dead_webhook_delays_no_payment(
    api: ApiFactory, alert_settings: Settings, upstreams: FakeUpstreams, facilitator: StubFacilitator
) -> None:
    upstreams.delay = 20
    await record_open_payment(alert_settings, Buyer(8), ago=3600)
    await record_open_payment(alert_settings, Buyer(9), ago=3600)
    facilitator.next += [reply_with(500, "")] * 2
    client = api(alert_settings)
    deadline = time.monotonic() + PATIENCE
    while not upstreams.requests_of("hook"):
        assert time.monotonic() < deadline
        time.sleep(0.05)  # noqa: ASYNC251 - the server runs in a thread of its own

    responses = [pay(client, sign_payment(client, Buyer(number))) for number in range(3)]

    assert {response.status_code for response in responses} == {200}


async def test_nothing_is_counted_without_webhook(settings: Settings, buyer: Buyer) -> None:
    await record_open_payment(settings, buyer, ago=3600)
    async with open_alerts(settings, Clock(), "one") as (alerts,):
        record_outcomes(alerts, *[FAILED] * 3)
        await alerts.report_settlements()
        await alerts.report_unresolved()
