"""Event logs of a range of blocks, read backwards in parts as long as a node allows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from centgate.coercion import get_path
from centgate.crypto.event_logs import (
    EventLog,
    EventLogs,
    TopicFilter,
    has_topics,
    parse_event_log,
)
from centgate.errors import ProviderFailure
from centgate.provider import RequestTrace
from centgate.providers.jsonrpc.client import RpcNode
from centgate.providers.jsonrpc.node_pool import NodePool

LOGS_TIME_SHARE = 0.8
"""Share of the deadline after which no more logs are requested; those read so far are returned."""


class LogFilter(Struct, frozen=True):
    """Filter of a chain's event logs; without `address` those of all contracts match."""

    chain_id: int
    topics: TopicFilter
    address: str | None = None

    def matches(self, log: EventLog) -> bool:
        """True for a log that was asked for: nodes return others too."""
        return has_topics(log, self.topics) and self.address in (None, log.address)


class _LogRange(Struct, frozen=True):
    """Event logs of the blocks from `start` on; `unread` of them could not be parsed."""

    entries: Sequence[EventLog]
    unread: int
    start: int


async def read_event_logs(
    nodes: NodePool,
    log_filter: LogFilter,
    trace: RequestTrace,
    *,
    to_block: int,
    blocks: int,
    requests: int,
    limit: int,
) -> EventLogs:
    """Return the event logs of the `blocks` blocks up to `to_block`, as far as possible.

    Reads until the range is complete, or `requests` parts are read, or `limit` logs are found, or the time is
    nearly over. A part that fails ends the range with a warning; the first one raises its failure.
    """
    logs: list[EventLog] = []
    unread = 0
    end, floor = to_block, max(0, to_block - blocks + 1)
    deadline = asyncio.get_running_loop().time() + nodes.remaining_seconds() * LOGS_TIME_SHARE

    async def ask_node(node: RpcNode) -> _LogRange:
        return await _read_log_range(node, log_filter, floor, end)

    while end >= floor and requests > 0 and len(logs) < limit:
        requests -= 1
        try:
            # the first part has the provider's whole time: without it there is no result
            async with asyncio.timeout_at(deadline if end < to_block else None):
                log_range = await nodes.first_success(ask_node)
        except (TimeoutError, ProviderFailure) as failure:
            if end == to_block:
                raise
            reason = failure.message if isinstance(failure, ProviderFailure) else "out of time"
            trace.add_warning(f"event logs before block {end + 1} were not read: {reason}")
            trace.is_provisional = True
            break
        if log_range.unread:
            trace.add_warning(f"{log_range.unread} event logs of the node could not be parsed")
        unread += log_range.unread
        logs += log_range.entries
        end = log_range.start - 1
    logs.sort(key=lambda log: (log.block, log.index))
    return EventLogs(tuple(logs), end + 1, to_block, unread)


async def _read_log_range(node: RpcNode, log_filter: LogFilter, floor: int, end: int) -> _LogRange:
    returned, start = await node.get_logs(list(log_filter.topics), floor, end, address=log_filter.address)
    # what a reorganisation took out of the chain did not happen
    entries = [entry for entry in returned if get_path(entry, "removed") is not True]
    parsed = [log for entry in entries if (log := parse_event_log(entry, log_filter.chain_id))]
    if entries and not parsed:
        raise ValueError("no event log in a known format")
    matching = [log for log in parsed if log_filter.matches(log)]
    return _LogRange(matching, len(entries) - len(parsed), start)
