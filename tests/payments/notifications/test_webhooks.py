"""Webhooks: events are written with the change that they report, and sent until the receiver accepts them."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Generator
from email.utils import formatdate
from functools import partial
from typing import Any

import pytest
from buyer import ApiFactory, Buyer, encode_header, fetch_terms, pay, sign_payment
from facilitators import StubFacilitator, build_settings, reply_with
from seeded_journals import record_open_payment
from webhook_outboxes import HOUR, ORDER, TRANSACTION, Outbox, open_outbox
from webhook_receiver import (
    OTHER_SECRET,
    SECRET,
    ReceivedWebhook,
    Reply,
    WebhookReceiver,
    open_receiver,
)

from centgate.payments.audit.refunds import Refund, record_refund
from centgate.payments.journal import webhook_outbox
from centgate.payments.journal.webhook_events import EventBuilder
from centgate.payments.journal.webhook_outbox import KEEP_SECONDS
from centgate.payments.notifications.webhook_actions import enable_receiver, resend_all
from centgate.payments.notifications.webhook_sender import BATCH_SIZE, LEASE_SECONDS, RETRY_DELAYS
from centgate.settings import Settings

DAY = 86_400.0
REFUND = "0x" + "f0" * 32


@pytest.fixture
def receiver() -> Generator[WebhookReceiver]:
    with open_receiver() as opened:
        yield opened


@pytest.fixture
def webhook_settings(settings: Settings, receiver: WebhookReceiver) -> Settings:
    """A deployment whose webhooks go to a receiver that accepts them."""
    return receiver.configure(settings)


@pytest.fixture
def webhook_database_settings(
    webhook_settings: Settings, database_url: str, facilitator: StubFacilitator, tmp_path: Any
) -> Settings:
    """The same, on each kind of database."""
    settings = build_settings(tmp_path, facilitator.url, database_url=database_url)
    return settings.model_copy(
        update={
            "webhook_url": webhook_settings.webhook_url,
            "webhook_secret": webhook_settings.webhook_secret,
        }
    )


def accept_after(wait: Callable[[], object]) -> Callable[[ReceivedWebhook], Reply]:
    """Return a reply that accepts a webhook after a wait."""

    def accept(_: ReceivedWebhook) -> Reply:
        wait()
        return 200, {}

    return accept


async def test_paid_call_writes_event(api: ApiFactory, webhook_settings: Settings, buyer: Buyer) -> None:
    client = api(webhook_settings)
    payment = sign_payment(client, buyer)

    answers = [pay(client, payment) for _ in range(2)]
    async with open_outbox(webhook_settings) as outbox:
        (entry,) = await outbox.read()

    assert {each.status_code for each in answers} == {200}
    assert entry.type == "payment.delivered"
    assert json.loads(entry.payload)["data"]["requestId"] == answers[0].json()["requestId"]


@pytest.mark.extended
def test_paid_call_is_reported_once(
    api: ApiFactory, webhook_settings: Settings, receiver: WebhookReceiver, buyer: Buyer
) -> None:
    client = api(webhook_settings)
    payload = buyer.payload(fetch_terms(client), now=int(time.time()))

    answers = [pay(client, encode_header(payload)) for _ in range(2)]
    (webhook,) = receiver.wait_for(1)

    assert (webhook.body["type"], webhook.body["version"]) == ("payment.delivered", 1)
    assert webhook.body["server"] == str(client.base_url).rstrip("/")
    data = webhook.data
    assert data["requestId"] == answers[0].json()["requestId"]
    assert (data["service"], data["state"], data["status"]) == ("phishing-check", "delivered", 200)
    assert (data["amount"], data["amountDecimal"]) == ("10000", "0.010000")
    assert (data["network"], data["testNetwork"]) == ("eip155:84532", True)
    assert data["payer"] == buyer.address.lower()
    assert data["transaction"].startswith("0x")
    assert (data["refundTransaction"], data["refundChecked"]) == (None, None)
    sent = (webhook.raw.decode() + json.dumps(dict(webhook.headers))).lower()
    assert payload["payload"]["signature"][2:40].lower() not in sent
    assert SECRET.removeprefix("whsec_").lower() not in sent
    assert answers[0].json()["data"]["status"] not in sent


async def test_webhook_has_documented_members(
    webhook_settings: Settings, receiver: WebhookReceiver, buyer: Buyer
) -> None:
    async with open_outbox(webhook_settings) as outbox:
        await outbox.deliver(buyer)
        await outbox.send()

    (webhook,) = receiver.received
    assert set(webhook.body) == {"type", "version", "timestamp", "server", "data"}
    assert set(webhook.data) == {
        *("network", "testNetwork", "asset", "payer", "nonce", "payTo", "amount", "amountDecimal"),
        *("service", "state", "presentedAt", "transaction", "requestId", "status"),
        *("refundTransaction", "refundChecked"),
    }


async def test_delivery_and_event_are_one_write(
    webhook_database_settings: Settings, receiver: WebhookReceiver, buyer: Buyer
) -> None:
    async with open_outbox(webhook_database_settings) as outbox:
        key = await outbox.deliver(buyer)
        (event,) = await outbox.read()
        await outbox.send()
        (sent,) = await outbox.read()

    (webhook,) = receiver.received
    assert (event.state, event.type, event.attempts) == ("pending", "payment.delivered", 0)
    assert (sent.state, sent.attempts, sent.error, sent.next_at) == ("sent", 1, None, None)
    assert (webhook.id, webhook.raw) == (event.event, event.payload.encode())
    assert (webhook.data["nonce"], webhook.data["transaction"]) == (key.nonce, TRANSACTION)


async def test_refund_is_reported(
    webhook_database_settings: Settings, receiver: WebhookReceiver, buyer: Buyer
) -> None:
    async with open_outbox(webhook_database_settings) as outbox:
        key = await outbox.settle(buyer)
        now = time.time()
        enter = partial(
            record_refund,
            outbox.store,
            key,
            Refund(REFUND, now),
            redeem_cutoff=now + HOUR,
            events=EventBuilder(webhook_database_settings.base_url),
        )
        assert await enter()
        assert not await enter()  # it was entered already
        outbox.clock.now = time.time()
        await outbox.send()

    (webhook,) = receiver.received
    assert (webhook.body["type"], webhook.data["state"]) == ("payment.refunded", "refunded")
    assert (webhook.data["refundTransaction"], webhook.data["refundChecked"]) == (REFUND, False)
    assert webhook.data["transaction"] == TRANSACTION


async def test_stuck_payment_is_reported_once(
    webhook_database_settings: Settings, receiver: WebhookReceiver, buyer: Buyer
) -> None:
    async with open_outbox(webhook_database_settings) as outbox:
        key = await outbox.present(buyer)
        await outbox.senders[0].record_stuck_payments()
        assert await outbox.read() == []  # it may still be resolved in time
        outbox.clock.now += 60 * webhook_database_settings.alert_minutes + 1
        for _ in range(3):
            await outbox.senders[0].record_stuck_payments()
            await outbox.send()

    (webhook,) = receiver.received
    assert (webhook.body["type"], webhook.data["state"]) == ("payment.stuck", "settling")
    assert (webhook.data["nonce"], webhook.data["requestId"]) == (key.nonce, None)


@pytest.mark.parametrize("by", ["buyer", "reconciler"])
async def test_payment_is_stuck_although_it_is_looked_up_again_and_again(
    webhook_database_settings: Settings, buyer: Buyer, by: str
) -> None:
    async with open_outbox(webhook_database_settings) as outbox:
        key = await outbox.present(buyer)
        async with outbox.journal.claim_open_payment(key) as claim:
            assert claim is not None
            await outbox.journal.schedule_retry(claim, outbox.clock.now + 10, cause="not_final")
        for _ in range(int(webhook_database_settings.alert_minutes) + 1):
            outbox.clock.now += 60
            async with outbox.journal.claim_open_payment(key) as claim:
                assert claim is not None
                if by == "buyer":
                    await outbox.journal.record_resubmission(claim)
                else:
                    await outbox.journal.record_transaction(claim, TRANSACTION, None)
                    await outbox.journal.schedule_retry(claim, outbox.clock.now + 30, cause="not_final")
            await outbox.senders[0].record_stuck_payments()

        (event,) = await outbox.read()
        assert event.type == "payment.stuck"


async def test_unused_payment_is_not_stuck_when_resubmitted(
    webhook_database_settings: Settings, buyer: Buyer
) -> None:
    late = 60 * webhook_database_settings.alert_minutes + 30
    async with open_outbox(webhook_database_settings) as outbox:
        payment = outbox.sign(buyer, seconds=int(late) + 60)
        async with outbox.journal.claim(payment, ORDER) as claim:
            await outbox.journal.record_unsent(claim, "status 429", was_answered=True, may_be_sent=False)
        outbox.clock.now += late
        async with outbox.journal.claim(payment, ORDER):
            await outbox.senders[0].record_stuck_payments()

        assert await outbox.read() == []


async def test_without_receiver_no_event_is_written(settings: Settings, buyer: Buyer) -> None:
    async with open_outbox(settings) as outbox:
        await outbox.deliver(buyer)
        await outbox.present(Buyer(1))
        outbox.clock.now += DAY
        await outbox.senders[0].record_stuck_payments()
        assert not await outbox.senders[0].send_due()
        assert await outbox.read() == []


async def test_event_is_sent_until_accepted(
    webhook_database_settings: Settings, receiver: WebhookReceiver, buyer: Buyer
) -> None:
    receiver.answer(500, 503, 302, 200, location=receiver.url)
    async with open_outbox(webhook_database_settings) as outbox:
        await outbox.deliver(buyer)
        errors: list[str | None] = []
        for delay in (0.0, *RETRY_DELAYS):
            outbox.clock.now += 0.7 * delay
            await outbox.send()  # not due yet
            outbox.clock.now += 0.6 * delay
            await outbox.send()
            errors.append((await outbox.read())[0].error)
        (entry,) = await outbox.read()

    assert len(receiver.received) == 4
    assert len(set(receiver.ids)) == 1
    assert {each.raw for each in receiver.received} == {entry.payload.encode()}
    assert errors[:3] == ["status 500", "status 503", "status 302, a redirect, which is not followed"]
    assert (entry.state, entry.attempts) == ("sent", 4)


async def test_unaccepted_event_is_given_up_and_can_be_resent(
    webhook_settings: Settings, receiver: WebhookReceiver, buyer: Buyer
) -> None:
    receiver.answer(500)
    async with open_outbox(webhook_settings) as outbox:
        await outbox.deliver(buyer)
        started = outbox.clock.now
        for _ in range(len(RETRY_DELAYS) + 3):
            await outbox.send()
            outbox.clock.now = (await outbox.read())[0].next_at or outbox.clock.now
        (given_up,) = await outbox.read()
        receiver.answer(200)
        assert await outbox.store.run(partial(webhook_outbox.resend_event, given_up.event))
        assert not await outbox.store.run(partial(webhook_outbox.resend_event, "evt_unknown"))
        outbox.clock.now = max(outbox.clock.now, time.time())
        await outbox.send()
        (entry,) = await outbox.read()

    assert (given_up.state, given_up.attempts) == ("failed", len(RETRY_DELAYS) + 1)
    assert 2.4 * DAY < outbox.clock.now - started < 3.8 * DAY
    assert (entry.state, len(set(receiver.ids))) == ("sent", 1)


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_retry_after_is_honoured(
    webhook_settings: Settings, receiver: WebhookReceiver, buyer: Buyer, form: str
) -> None:
    receiver.answer(
        503, Retry_After="900" if form == "seconds" else formatdate(time.time() + 900, usegmt=True)
    )
    async with open_outbox(webhook_settings) as outbox:
        await outbox.deliver(buyer)
        await outbox.send()
        (entry,) = await outbox.read()

    assert entry.next_at is not None
    assert 895 < entry.next_at - outbox.clock.now < 901


@pytest.mark.parametrize("statuses", [(200,), (503, 200)], ids=["a new event", "a failed event"])
async def test_event_of_before_clock_was_set_back_is_sent(
    webhook_database_settings: Settings, receiver: WebhookReceiver, buyer: Buyer, statuses: tuple[int, ...]
) -> None:
    receiver.answer(*statuses)
    async with open_outbox(webhook_database_settings) as outbox:
        await outbox.deliver(buyer)
        if len(statuses) > 1:
            await outbox.send()
        outbox.clock.now -= 10 * DAY
        await outbox.send()
        (waiting,) = await outbox.read()
        await outbox.senders[0].limit_waits()
        await outbox.send()
        (entry,) = await outbox.read()

    assert waiting.state == "pending"
    assert (entry.state, entry.attempts) == ("sent", len(statuses))


async def test_event_that_another_server_has_just_claimed_is_not_sent_twice(
    webhook_database_settings: Settings, receiver: WebhookReceiver, buyer: Buyer
) -> None:
    async with open_outbox(webhook_database_settings) as outbox:
        await outbox.deliver(buyer)
        later = outbox.clock.now + 3  # after the time was read that the event is compared with
        claimed = await outbox.store.run(partial(webhook_outbox.claim_due, later, 1, LEASE_SECONDS))
        await outbox.senders[0].limit_waits()
        await outbox.send()

    assert (len(claimed), receiver.ids) == (1, [])


@pytest.mark.parametrize("seconds_back", [0, HOUR])
async def test_pause_of_failed_event_is_kept(
    webhook_database_settings: Settings, receiver: WebhookReceiver, buyer: Buyer, seconds_back: float
) -> None:
    """A clock that was set back a little must not use up the attempts of an event."""
    receiver.answer(503, Retry_After=str(int(DAY)))
    async with open_outbox(webhook_database_settings) as outbox:
        await outbox.deliver(buyer)
        await outbox.send()
        outbox.clock.now -= seconds_back
        await outbox.senders[0].limit_waits()
        await outbox.send()
        (entry,) = await outbox.read()

    assert (entry.state, entry.attempts) == ("pending", 1)


@pytest.mark.parametrize("text", ["nonsense", "-5", "1e9", "Wed, 99 Foo 2026", "9" * 400])
async def test_invalid_retry_after_is_ignored(
    webhook_settings: Settings, receiver: WebhookReceiver, buyer: Buyer, text: str
) -> None:
    receiver.answer(503, Retry_After=text)
    async with open_outbox(webhook_settings) as outbox:
        await outbox.deliver(buyer)
        await outbox.send()
        (entry,) = await outbox.read()

    assert entry.next_at is not None
    assert entry.next_at - outbox.clock.now <= DAY


async def test_gone_receiver_gets_nothing_until_enabled(
    webhook_settings: Settings, receiver: WebhookReceiver, buyer: Buyer
) -> None:
    receiver.answer(410)
    async with open_outbox(webhook_settings) as outbox:
        await outbox.deliver(buyer)
        await outbox.send()
        receiver.answer(200)
        await outbox.deliver(Buyer(1))
        outbox.clock.now += DAY
        await outbox.send()
        trouble = await outbox.senders[0].find_trouble()
        assert len(receiver.received) == 1
        assert await enable_receiver(webhook_settings, outbox.store)
        await outbox.send()

    assert trouble is not None
    assert (trouble.is_disabled, trouble.pending) == (True, 2)
    assert len(receiver.received) == 3


async def test_rotation_signs_with_both_secrets(
    settings: Settings, receiver: WebhookReceiver, buyer: Buyer
) -> None:
    rotating = receiver.configure(settings, f"{OTHER_SECRET},{SECRET}")
    async with open_outbox(rotating) as outbox:
        for number, receiver.secret in enumerate((SECRET, OTHER_SECRET)):
            await outbox.deliver(Buyer(number))
            await outbox.send()

    assert (len(receiver.received), receiver.unsigned) == (2, 0)


async def test_signature_covers_id_time_and_body(
    webhook_settings: Settings, receiver: WebhookReceiver, buyer: Buyer
) -> None:
    receiver.secret = OTHER_SECRET
    async with open_outbox(webhook_settings) as outbox:
        await outbox.deliver(buyer)
        await outbox.send()

    assert (len(receiver.received), receiver.unsigned) == (0, 1)


@pytest.mark.extended
async def test_two_servers_do_not_send_same_event_concurrently(
    webhook_database_settings: Settings, receiver: WebhookReceiver
) -> None:
    receiver.reply = accept_after(partial(time.sleep, 0.2))
    async with open_outbox(webhook_database_settings, servers=2) as outbox:
        for number in range(3):
            await outbox.deliver(Buyer(number))
        await asyncio.gather(*(each.send_due() for each in outbox.senders))
        entries = await outbox.read()

    assert {(entry.state, entry.attempts) for entry in entries} == {("sent", 1)}
    assert len(receiver.ids) == len(set(receiver.ids)) == 3


async def test_event_of_stalled_server_is_sent_by_another(
    webhook_database_settings: Settings, receiver: WebhookReceiver, buyer: Buyer
) -> None:
    both_are_sending = threading.Barrier(2, timeout=20)
    receiver.reply = accept_after(both_are_sending.wait)
    async with open_outbox(webhook_database_settings, servers=2) as outbox:
        await outbox.deliver(buyer)
        await asyncio.gather(outbox.senders[0].send_due(), send_after_lease(outbox))
        (entry,) = await outbox.read()

    assert (entry.state, len(receiver.ids), len(set(receiver.ids))) == ("sent", 2, 1)


async def send_after_lease(outbox: Outbox) -> None:
    """Send with the second server, after the lease of the first ended during its wait."""
    (entry,) = await outbox.read()
    while not entry.attempts:
        await asyncio.sleep(0.01)
        (entry,) = await outbox.read()
    outbox.clock.now += LEASE_SECONDS + 1
    await outbox.senders[1].send_due()


@pytest.mark.extended
async def test_failing_receiver_is_tried_with_one_event(
    webhook_settings: Settings, receiver: WebhookReceiver
) -> None:
    receiver.answer(500)
    async with open_outbox(webhook_settings) as outbox:
        for _ in range(BATCH_SIZE + 5):
            await outbox.deliver(Buyer(0))
        tries: list[int] = []
        for _ in range(3):
            before = len(receiver.received)
            await outbox.send()
            tries.append(len(receiver.received) - before)
        receiver.answer(200)
        outbox.clock.now += 10
        await outbox.send()
        entries = await outbox.read()

    assert tries == [BATCH_SIZE, 1, 1]
    assert {entry.state for entry in entries} == {"sent"}


async def test_receiver_without_success_for_hour_is_trouble(
    webhook_settings: Settings, receiver: WebhookReceiver, buyer: Buyer
) -> None:
    receiver.answer(500)
    async with open_outbox(webhook_settings) as outbox:
        await outbox.deliver(buyer)
        await outbox.send()
        assert await outbox.senders[0].find_trouble() is None
        outbox.clock.now += HOUR + 1
        trouble = await outbox.senders[0].find_trouble()
        receiver.answer(200)
        await resend_all(outbox.store)
        await outbox.send()

        assert trouble is not None
        assert (trouble.is_disabled, trouble.pending) == (False, 1)
        assert await outbox.senders[0].find_trouble() is None


async def test_all_unsent_events_can_be_resent(
    webhook_database_settings: Settings, receiver: WebhookReceiver
) -> None:
    receiver.answer(500)
    async with open_outbox(webhook_database_settings) as outbox:
        for number in range(5):
            await outbox.deliver(Buyer(number))
        await outbox.send()
        receiver.answer(200)
        assert await resend_all(outbox.store) == 5
        outbox.clock.now = time.time() + 1
        await outbox.send()
        await outbox.send()
        assert await resend_all(outbox.store) == 0
        assert {entry.state for entry in await outbox.read()} == {"sent"}


async def test_old_events_are_pruned(webhook_database_settings: Settings, buyer: Buyer) -> None:
    async with open_outbox(webhook_database_settings) as outbox:
        outbox.clock.now -= KEEP_SECONDS + HOUR
        await outbox.deliver(buyer)
        outbox.clock.now += 2 * HOUR
        await outbox.deliver(Buyer(1))
        await outbox.journal.prune()
        events = await outbox.read()

    assert [entry.occurred_at for entry in events] == [outbox.clock.now]


@pytest.mark.extended
def test_slow_receiver_delays_no_payment(
    api: ApiFactory, webhook_settings: Settings, receiver: WebhookReceiver, facilitator: StubFacilitator
) -> None:
    stalled = threading.Event()
    receiver.reply = accept_after(partial(stalled.wait, 20))
    client = api(webhook_settings)
    assert pay(client, sign_payment(client, Buyer(0))).status_code == 200
    receiver.wait_for(1)

    answers = [pay(client, sign_payment(client, Buyer(number))) for number in range(1, 4)]
    stalled.set()

    assert {each.status_code for each in answers} == {200}
    assert len({each.id for each in receiver.wait_for(4)}) == 4


@pytest.mark.extended
async def test_server_reports_stuck_payments(
    api: ApiFactory,
    webhook_settings: Settings,
    receiver: WebhookReceiver,
    facilitator: StubFacilitator,
    buyer: Buyer,
) -> None:
    facilitator.usually = reply_with(502, "<html>")
    await record_open_payment(webhook_settings, buyer, ago=3600)
    api(webhook_settings)

    (webhook,) = receiver.wait_for(1)

    assert webhook.body["type"] == "payment.stuck"
