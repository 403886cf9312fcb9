"""Checks of what the journal shows: the last audit, open payments and webhooks."""

from __future__ import annotations

import time
from functools import partial
from typing import TypeVar

from centgate.cli.doctor.check import fail, ok, skip, warn
from centgate.cli.doctor.context import DoctorContext
from centgate.findings import Finding
from centgate.payments.audit.audit import FINDING_ADVICE, FINDING_KINDS, describe_counts
from centgate.payments.audit.audit_queries import LastAudit, find_last_audit
from centgate.payments.chain.nodes import select_nodes
from centgate.payments.database.migrations import SchemaMismatch
from centgate.payments.database.store import InvalidDatabaseUrl, JournalUnavailable, UnitFactory
from centgate.payments.journal.queries import CheckedPayments, count_checked_payments
from centgate.payments.journal.readonly import describe_error, open_readonly
from centgate.payments.notifications.webhook_actions import WebhookStatus, read_status, send_ping
from centgate.payments.notifications.webhook_receiver import create_receiver
from centgate.payments.time_format import format_age
from centgate.timestamps import format_unix_time

T = TypeVar("T")

AUDIT_OVERDUE = 3 * 3600
"""Seconds after which the last audit is overdue."""


async def _read_journal(
    deployment: DoctorContext, unit: UnitFactory[T], *, if_missing: Finding | None = None
) -> T | Finding:
    """Return the result of a unit, or the finding that the journal cannot be read.

    Of a journal that does not exist yet the result is that of no rows, unless `if_missing` replaces it.
    """
    try:
        async with open_readonly(deployment.settings.database_url) as journal:
            return if_missing if journal.missing_message and if_missing else await journal.reader.read(unit)
    except (JournalUnavailable, SchemaMismatch, InvalidDatabaseUrl) as error:
        return skip(f"the journal cannot be read: {describe_error(error)}")


async def check_audit(deployment: DoctorContext) -> Finding:
    """The last audit is recent, and the journal matched the chain."""
    settings = deployment.settings
    last = await _read_journal(deployment, find_last_audit)
    if last is None:
        nodes = select_nodes(settings, settings.network)
        why = "a server runs the first some minutes after its start" if nodes.urls else nodes.description
        return skip(f"no audit yet: {why}", "or run `centgate payments audit`")
    return last if isinstance(last, Finding) else _evaluate_audit(last)


def _evaluate_audit(last: LastAudit) -> Finding:
    when = f"the audit of {format_unix_time(last.completed_at)}"
    if last.findings:
        advice = [FINDING_ADVICE[kind] for kind in FINDING_KINDS if last.findings.get(kind)]
        what = f"{when} found differences between journal and chain: {describe_counts(last.findings)}"
        return warn(what, f"see `centgate payments audit`; {'; '.join(advice)}")
    since = time.time() - last.completed_at
    if since > AUDIT_OVERDUE:
        return warn(
            f"the last audit was {format_age(since)} ago",
            "check the servers' logs: the nodes may not respond",
        )
    return ok(f"{when} found no difference between journal and chain")


async def check_open_payments(deployment: DoctorContext) -> Finding:
    """No payment stays open because no node answers, or because its facilitator was removed."""
    counts = await _read_journal(
        deployment, count_checked_payments, if_missing=skip("there is no journal yet")
    )
    if isinstance(counts, Finding):
        return counts
    configured = {account.name for account in deployment.settings.facilitators}
    return _evaluate_counts(counts, configured, node_setting=deployment.node_setting)


def _evaluate_counts(counts: CheckedPayments, configured: set[str], *, node_setting: str) -> Finding:
    removed = {name: number for name, number in counts.by_facilitator.items() if name not in configured}
    problems: list[str] = []
    repairs: list[str] = []
    if waiting := counts.waiting_for_node:
        problems.append(f"{_count_payments(waiting)} open because no node answers")
        repairs.append(f"set {node_setting} to a node of the network that answers")
    for name, number in sorted(removed.items()):
        problems.append(f"{_count_payments(number)} at {name}, which is not a facilitator here any more")
        repairs.append(f"let CENTGATE_FACILITATOR_FALLBACK_URL name {name}, or let a node decide")
    if problems:
        return warn("; ".join(problems), f"{'; '.join(repairs)}; then `centgate payments reconcile`")
    pending = counts.by_cause["not_final"]
    if pending:
        return ok(f"{_count_payments(pending)} open, and nodes answer about them")
    return ok("no payment is open after it was checked")


def _count_payments(number: int) -> str:
    return "1 payment is" if number == 1 else f"{number} payments are"


async def check_webhooks(deployment: DoctorContext) -> Finding:
    """CENTGATE_WEBHOOK_URL accepts events; a signed ping is sent only with --send-test-alert."""
    settings = deployment.settings
    receiver = create_receiver(settings)
    if receiver is None:
        return skip("CENTGATE_WEBHOOK_URL is not set: no webhooks are sent")
    if deployment.send_test_alert:
        result = await send_ping(settings)
        if result.outcome != "accepted":
            return fail(f"{receiver.origin} did not accept a ping: {result.error}", "check the receiver")
    status = await _read_journal(deployment, partial(read_status, receiver))
    return status if isinstance(status, Finding) else _evaluate_webhooks(receiver.origin, status)


def _evaluate_webhooks(origin: str, status: WebhookStatus) -> Finding:
    state, outbox = status.receiver, status.outbox
    waiting = f"{outbox.pending} pending, {outbox.failed} failed"
    if state.disabled_at is not None:
        return fail(
            f"{origin} answered 410 at {format_unix_time(state.disabled_at)}: nothing is sent ({waiting})",
            "repair it, then `centgate payments webhooks enable`",
        )
    if state.failing_since is not None:
        return warn(
            f"{origin} has accepted nothing since {format_unix_time(state.failing_since)} ({waiting})",
            "`centgate payments webhooks list --state pending` shows why",
        )
    if outbox.failed:
        advice = "`centgate payments webhooks resend --unsent` sends them again"
        return warn(f"all attempts for some events have failed ({waiting})", advice)
    when = f"accepted an event at {format_unix_time(state.succeeded_at)}" if state.succeeded_at else "is set"
    return ok(f"{origin} {when} ({waiting})")
