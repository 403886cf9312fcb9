"""Check of the last audit of the journal."""

from __future__ import annotations

import time

from centgate.cli.doctor.check import Finding, ok, skip, warn
from centgate.cli.doctor.context import DoctorContext
from centgate.payments.audit import FINDING_ADVICE, FINDING_KINDS, describe_counts
from centgate.payments.audit_queries import LastAudit, find_last_audit
from centgate.payments.migrations import SchemaMismatch
from centgate.payments.nodes import select_nodes
from centgate.payments.readonly import describe_error, open_readonly
from centgate.payments.store import InvalidDatabaseUrl, JournalUnavailable
from centgate.payments.time_format import format_age, format_iso

OVERDUE = 3 * 3600
"""Seconds after which the last audit is overdue."""


async def check_audit(deployment: DoctorContext) -> Finding:
    """The last audit is recent, and the journal matched the chain."""
    settings = deployment.settings
    try:
        async with open_readonly(settings.database_url) as books:
            last = None if books.missing_message else await books.reader.read(find_last_audit)
    except (JournalUnavailable, SchemaMismatch, InvalidDatabaseUrl) as error:
        return skip(f"the journal cannot be read: {describe_error(error)}")
    if last is None:
        nodes = select_nodes(settings, settings.network)
        why = "a server runs one minutes after its start" if nodes.urls else nodes.description
        return skip(f"no audit yet: {why}", "or run `centgate payments audit`")
    return _evaluate(last)


def _evaluate(last: LastAudit) -> Finding:
    when = f"the audit of {format_iso(last.completed_at)[:19]}Z"
    if last.findings:
        advice = [FINDING_ADVICE[kind] for kind in FINDING_KINDS if last.findings.get(kind)]
        what = f"{when} found differences between journal and chain: {describe_counts(last.findings)}"
        return warn(what, f"see `centgate payments audit`; {'; '.join(advice)}")
    since = time.time() - last.completed_at
    if since > OVERDUE:
        return warn(
            f"the last audit was {format_age(since)} ago",
            "check the servers' logs: the nodes may not respond",
        )
    return ok(f"{when} found no difference between journal and chain")
