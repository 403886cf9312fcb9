"""Daily audit: the leader audits the last day about once an hour."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial

import aiohttp
import structlog

from centgate.payments.audit import audit_queries
from centgate.payments.audit.audit import (
    Auditor,
    AuditResult,
    BlockRange,
    configured_recipients,
    find_range_by_time,
    save_audit_position,
)
from centgate.payments.audit.audit_queries import AuditPosition, Recipient
from centgate.payments.chain.chain_client import ChainClient, ChainClients
from centgate.payments.chain.nodes import list_networks_with_nodes
from centgate.payments.chain.payment_node import ChainUnreachable
from centgate.payments.database.store import Store
from centgate.payments.journal import process_queries
from centgate.payments.journal.journal import REFUSED_RETENTION
from centgate.settings import Settings

DAY = 86_400
FIRST_PERIOD = REFUSED_RETENTION
"""Period of the first audit of a journal in seconds: refused payments are kept as long."""
LONGEST_PERIOD = 30 * DAY
"""Maximum gap in seconds; after a longer one, an audit starts like the first one."""
REUSE_SECONDS = 1800
"""Seconds for which the audit of another process is reused."""


class DailyAudit:
    """Audits the last day of every recipient whose network has nodes, and any gap before it."""

    def __init__(self, settings: Settings, store: Store, session: aiohttp.ClientSession) -> None:
        self._settings = settings
        self._store = store
        self._chains = ChainClients(session, settings)
        self._auditor = Auditor(store)
        self.networks = list_networks_with_nodes(settings)

    async def run(self) -> Mapping[str, int] | None:
        """Audit, unless another process just has; return the number of findings by kind.

        Returns None if nothing can be audited, or if a part could not and the rest has no findings. Raises
        JournalUnavailable.
        """
        now = await self._store.read(process_queries.read_time) or time.time()
        positions = {each.recipient: each for each in await self._store.read(audit_queries.list_positions)}
        last = await self._store.read(audit_queries.find_last_audit)
        if last is not None and last.completed_at > now - REUSE_SECONDS:
            return last.findings
        results = [
            await self._audit_recipient(each, now, positions.get(each))
            for each in await self._list_recipients(now)
        ]
        if not results:
            return None
        complete = {each.recipient: each.counts for each in results if each.problem is None}
        if len(complete) == len(results):
            await self._store.run(partial(audit_queries.record_results, complete))
        counts = _sum_counts(each.counts for each in results)
        return counts if counts or len(complete) == len(results) else None

    async def _list_recipients(self, now: float) -> list[Recipient]:
        """Return current recipients, and those of the last day, on networks that have nodes."""
        own = configured_recipients(self._settings)
        recent = await self._store.read(partial(audit_queries.list_recipients, now - DAY, now))
        return sorted(each for each in {*own, *recent} if each.network in self.networks)

    async def _audit_recipient(
        self, recipient: Recipient, now: float, before: AuditPosition | None
    ) -> AuditResult:
        chain, result = self._chains.for_network(recipient.network), AuditResult(recipient)
        assert chain is not None
        if before and (before.block_time or 0) < now - LONGEST_PERIOD:
            before = None  # the gap is too long to read
        try:
            await self._auditor.audit(chain, result, await _find_range(chain, now, before))
        except ChainUnreachable as error:
            result.problem = str(error)
            structlog.get_logger().warning(
                "the audit is not complete", pay_to=recipient.pay_to, error=str(error)
            )
        await save_audit_position(self._store, result, before)
        return result


async def _find_range(chain: ChainClient, now: float, before: AuditPosition | None) -> BlockRange:
    """Return the blocks of the last day, and the unaudited ones before it."""
    if before is None or before.block_time is None:
        return await find_range_by_time(chain, now - FIRST_PERIOD, now)
    return await find_range_by_time(chain, min(now - DAY, before.block_time), now, after=before.block)


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum((Counter(each) for each in counts), Counter[str]()))
