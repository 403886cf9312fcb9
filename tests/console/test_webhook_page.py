"""The console's page of webhooks: its content, and its forms."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest
from buyer import Buyer
from console_session import Operator, ServedConsole, serve_console
from webhook_outboxes import open_outbox
from webhook_receiver import WebhookReceiver, open_receiver

from centgate.settings import Settings


@pytest.fixture
def receiver() -> Generator[WebhookReceiver]:
    with open_receiver() as opened:
        yield opened


@pytest.fixture
def webhook_settings(settings: Settings, receiver: WebhookReceiver) -> Settings:
    return receiver.configure(settings)


@pytest.fixture
def operator(webhook_settings: Settings) -> Generator[Operator]:
    with serve_console(webhook_settings) as served:
        yield served.log_in()


def deliver(settings: Settings, number: int) -> list[str]:
    """Record deliveries, send the due events, and return the IDs of all events."""

    async def record() -> list[str]:
        async with open_outbox(settings) as outbox:
            for each in range(number):
                await outbox.deliver(Buyer(each))
            await outbox.send()
            return [each.event for each in await outbox.read()]

    return asyncio.run(record())


def test_events_are_shown_and_resent(
    operator: Operator, webhook_settings: Settings, receiver: WebhookReceiver
) -> None:
    receiver.answer(500)
    first, second = deliver(webhook_settings, 2)
    html = operator.get("/webhooks").text
    receiver.answer(200)

    one = operator.send("/webhooks/resend", event=first)
    html = operator.get(one.headers["location"]).text
    deliver(webhook_settings, 0)
    accepted = receiver.ids[2:]
    operator.send("/webhooks/resend-unsent")
    deliver(webhook_settings, 0)

    assert "has accepted nothing since" in html
    assert (first in html, second in html, "status 500" in html) == (True, True, True)
    assert "a-secret-of-the-operator" not in html
    assert f"{first} will be sent within seconds" in html.lower()
    assert accepted == [first]
    assert set(receiver.ids) == {first, second}
    assert first in operator.get("/webhooks?state=sent").text
    assert "There is no such event" in operator.get("/webhooks?state=pending").text
    log = operator.get("/actions").text
    assert f"{first} will be sent within seconds" in log
    assert "1 event will be sent within seconds" in log


def test_unknown_event_is_not_resent(operator: Operator) -> None:
    operator.send("/webhooks/resend", event="<b>evt</b>")
    html = operator.get("/webhooks").text
    assert "here is no event" in html
    assert "<b>evt</b>" not in html


def test_receiver_is_tested_and_enabled(
    operator: Operator, webhook_settings: Settings, receiver: WebhookReceiver
) -> None:
    operator.send("/webhooks/ping")
    pinged = operator.get("/webhooks").text
    receiver.answer(410)
    deliver(webhook_settings, 1)
    gone = operator.get("/webhooks").text
    operator.send("/webhooks/enable")
    enabled = operator.get("/webhooks").text

    assert "The receiver accepted a ping" in pinged
    assert receiver.received[0].body["type"] == "ping"
    assert "answered 410" in gone
    assert "Events are sent again" in enabled
    assert "answered 410" not in enabled


def test_page_without_receiver(console: ServedConsole) -> None:
    html = console.log_in().get("/webhooks").text
    assert "CENTGATE_WEBHOOK_URL and CENTGATE_WEBHOOK_SECRET are not set" in html
