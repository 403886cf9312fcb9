"""Webhooks of servers that die: every event arrives, under one ID, at whatever step."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from buyer import Buyer, pay, sign_payment
from databases import Postgres
from facilitators import StubFacilitator, build_settings
from served_api import ApiProcess, run_api_process, run_api_processes
from webhook_receiver import SECRET, ReceivedWebhook, Reply, WebhookReceiver, open_receiver

from centgate.settings import Settings

pytestmark = pytest.mark.extended


@pytest.fixture
def receiver() -> Generator[WebhookReceiver]:
    with open_receiver() as opened:
        yield opened


@pytest.fixture
def expire_leases(database_url: str, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], None]:
    """Function that ends the leases of all events."""
    statement = "UPDATE webhook_events SET next_at = 0 WHERE state = 'pending'"

    def expire() -> None:
        if database_url.startswith("postgresql"):
            postgres: Postgres = request.getfixturevalue("postgres")
            postgres.run(statement, database_url)
            return
        path = database_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, timeout=30)) as journal, journal:
            journal.execute(statement)

    return expire


@pytest.fixture
def deployment(tmp_path: Path, facilitator: StubFacilitator, database_url: str) -> Settings:
    return build_settings(tmp_path, facilitator.url, database_url=database_url)


def start_server(deployment: Settings, receiver: WebhookReceiver, fault: str = "") -> ApiProcess:
    """Start a server that sends webhooks, and crashes at a step of a payment."""
    return ApiProcess(deployment, WEBHOOK_URL=receiver.url, WEBHOOK_SECRET=SECRET, FAULT=fault)


@contextmanager
def run_server(deployment: Settings, receiver: WebhookReceiver) -> Generator[ApiProcess]:
    """Run a server that sends webhooks."""
    with run_api_process(deployment, WEBHOOK_URL=receiver.url, WEBHOOK_SECRET=SECRET) as process:
        yield process


@contextmanager
def run_two_servers(
    deployment: Settings, receiver: WebhookReceiver
) -> Generator[tuple[ApiProcess, ApiProcess]]:
    """Run two servers that send webhooks."""
    with run_api_processes(deployment, WEBHOOK_URL=receiver.url, WEBHOOK_SECRET=SECRET) as processes:
        yield processes


def buy(process: ApiProcess, number: int) -> None:
    """Buy an answer, during which the server may die."""
    with httpx.Client(base_url=process.url, timeout=30) as client:
        pay(client, sign_payment(client, Buyer(number)))


def test_crash_before_sending_keeps_event(
    deployment: Settings, receiver: WebhookReceiver, expire_leases: Callable[[], None]
) -> None:
    process = start_server(deployment, receiver, "delivered")
    with pytest.raises(httpx.TransportError):
        buy(process, 0)
    process.kill()
    expire_leases()  # it may have claimed the event just before
    assert receiver.received == []

    with run_server(deployment, receiver):
        (webhook,) = receiver.wait_for(1)

    assert webhook.body["type"] == "payment.delivered"


def test_crash_before_delivery_reports_nothing(deployment: Settings, receiver: WebhookReceiver) -> None:
    process = start_server(deployment, receiver, "produced")
    with httpx.Client(base_url=process.url, timeout=30) as client:
        payment = sign_payment(client, Buyer(0))
        with pytest.raises(httpx.TransportError):
            pay(client, payment)
    process.kill()

    with (
        run_server(deployment, receiver) as process,
        httpx.Client(base_url=process.url, timeout=30) as client,
    ):
        assert receiver.received == []
        answer = pay(client, payment)
        while answer.status_code != 200:
            answer = pay(client, payment)
        (webhook,) = receiver.wait_for(1)

    assert webhook.data["requestId"] == answer.json()["requestId"]


def test_crash_after_sending_repeats_same_id(
    deployment: Settings, receiver: WebhookReceiver, expire_leases: Callable[[], None]
) -> None:
    process = start_server(deployment, receiver)

    def kill(_: ReceivedWebhook) -> Reply:
        process.kill()
        return 200, {}

    receiver.reply = kill
    buy(process, 0)
    receiver.wait_for(1)
    process.popen.wait(30)

    receiver.answer(200)
    expire_leases()
    with run_server(deployment, receiver):
        first, second = receiver.wait_for(2)

    assert (first.id, first.raw) == (second.id, second.raw)


def test_two_replicas_report_each_payment_once(deployment: Settings, receiver: WebhookReceiver) -> None:
    with run_two_servers(deployment, receiver) as processes:
        for number in range(6):
            buy(processes[number % 2], number)
        received = receiver.wait_for(6)

    assert len({each.id for each in received}) == len(receiver.received) == 6


def test_events_of_dead_leader_are_sent_by_other(
    deployment: Settings, receiver: WebhookReceiver, expire_leases: Callable[[], None]
) -> None:
    receiver.answer(500)
    with run_two_servers(deployment, receiver) as processes:
        for number in range(4):
            buy(processes[number % 2], number)
        receiver.wait_for(1)
        receiver.answer(200)
        processes[0].kill()
        expire_leases()
        while len(set(receiver.ids)) < 4:
            receiver.wait_for(len(receiver.received) + 1)

    assert len(set(receiver.ids)) == 4
