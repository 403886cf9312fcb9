"""Actions of operators on webhooks: what commands and the console show and do."""

from __future__ import annotations

import secrets
import time
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from centgate.payments.chain.payment_node import open_node_session
from centgate.payments.database.sql import UnitOfWork
from centgate.payments.database.store import Store
from centgate.payments.journal import webhook_outbox
from centgate.payments.journal.webhook_events import EventBuilder
from centgate.payments.journal.webhook_outbox import OutboxSummary, ReceiverState
from centgate.payments.notifications.webhook_receiver import Receiver, SendResult, create_receiver
from centgate.settings import Settings


class WebhookStatus(Struct, frozen=True):
    """State of the receiver, and numbers of the events that it has not accepted."""

    receiver: ReceiverState
    outbox: OutboxSummary


def read_status(receiver: Receiver | None) -> UnitOfWork[WebhookStatus]:
    """Return the state of a receiver and its outbox."""
    state = ReceiverState()
    if receiver is not None:
        state = yield from webhook_outbox.find_receiver(receiver.digest)
    return WebhookStatus(state, (yield from webhook_outbox.summarize_outbox()))


async def send_ping(settings: Settings) -> SendResult:
    """Send a signed event of type `ping` to the receiver, once; nothing is stored. It must be set."""
    receiver = create_receiver(settings)
    assert receiver is not None
    body = EventBuilder(settings.base_url).build_ping(time.time())
    async with open_node_session() as session:
        return await receiver.send(session, f"ping_{secrets.token_hex(16)}", body)


async def enable_receiver(settings: Settings, store: Store) -> bool:
    """Send webhooks again to a receiver that answered 410; False if it was not disabled.

    Raises JournalUnavailable.
    """
    receiver = create_receiver(settings)
    if receiver is None:
        return False
    state = await store.read(partial(webhook_outbox.find_receiver, receiver.digest))
    if state.disabled_at is None:
        return False
    enabled = replace(state, disabled_at=None, failing_since=None)
    await store.run(partial(webhook_outbox.save_receiver, receiver.digest, enabled))
    return True


async def resend_all(store: Store) -> int:
    """Make all events that were not sent due now; return their number. Raises JournalUnavailable."""
    total, last, number = 0, 0, webhook_outbox.RESEND_BATCH
    while number == webhook_outbox.RESEND_BATCH:
        number, last = await store.run(partial(webhook_outbox.resend_unsent, last))
        total += number
    return total


def describe_ping(result: SendResult) -> str:
    """Describe the result of a ping, for the operators' log."""
    if result.outcome == "accepted":
        return "the receiver accepted a ping"
    return f"a ping was not accepted: {result.error}"


def describe_resend(number: int) -> str:
    """Describe that so many events were made due, for operators and their log."""
    return f"{number} event{'' if number == 1 else 's'} will be sent within seconds"


def describe_enabling(*, is_enabled: bool) -> str:
    """Describe the result of `enable_receiver`, for operators and their log."""
    return "events are sent again" if is_enabled else "the receiver was not disabled"
