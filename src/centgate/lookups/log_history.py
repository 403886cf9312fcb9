"""Read event logs: all from an explorer, or those of recent blocks from a node."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from centgate.chains import CHAIN_BY_ID
from centgate.crypto.event_logs import EventLog, EventLogs, LogRange
from centgate.fallback import attempt
from centgate.lookups.block_times import read_block_times
from centgate.providers.etherscan import Etherscan
from centgate.providers.jsonrpc.results import BlockHeader
from centgate.providers.rpc import Rpc

BLOCK_SECONDS: Mapping[int, float] = {1: 12, 8453: 2, 10: 2, 137: 2, 56: 0.45, 42161: 0.25}
"""Approximate time between blocks. Other chains are read from their first block."""
SCAN_DAYS = 30
"""Days of event logs that a node is asked for, as far as the requests suffice."""
RECENT_HOURS = 1
"""Hours of event logs that a node is asked for beside an explorer."""
LOG_REQUESTS = 16
"""Most queries of event logs to a node for one scan."""


class LogHistory(LogRange, frozen=True):
    """Event logs of a range of blocks, oldest first."""

    entries: tuple[EventLog, ...]
    end_time: int
    """Time of the last block, in seconds since 1970."""
    source: Literal["etherscan", "rpc"]


class LogReader:
    """Event logs of one chain, from an explorer if it has them, else from a node."""

    def __init__(self, chain_id: int, rpc: Rpc, etherscan: Etherscan) -> None:
        self.chain_id, self._rpc, self._etherscan = chain_id, rpc, etherscan

    @property
    def has_history(self) -> bool:
        """True if an explorer is configured that may have all logs of the chain."""
        return self._etherscan.is_configured and self.chain_id in CHAIN_BY_ID

    async def read(
        self,
        topics: Sequence[str | Sequence[str]],
        *,
        address: str | None = None,
        requests: int = LOG_REQUESTS,
    ) -> LogHistory:
        """Return the logs with these topics, all if an explorer has them, else those of about `SCAN_DAYS`.

        `address` limits them to one contract, and `requests` the queries to a node. Raises ProviderFailure if
        no source provides logs.
        """
        if self.has_history:
            logs = await attempt(self._etherscan.event_logs, self.chain_id, topics, address=address)
            if isinstance(logs, EventLogs):
                return await self._add_recent(logs, topics, address, requests)
        latest = await self._rpc.latest_block(self.chain_id)
        return await self._read_recent(latest, topics, address, requests, SCAN_DAYS)

    async def block_times(self, numbers: Collection[int]) -> dict[int, int]:
        """Return the node's times of blocks, in seconds since 1970; empty if it fails."""
        return await read_block_times(self._rpc, self.chain_id, numbers)

    async def _add_recent(
        self, logs: EventLogs, topics: Sequence[str | Sequence[str]], address: str | None, requests: int
    ) -> LogHistory:
        """Add the node's recent logs to an explorer's, which can lag behind the chain."""
        latest = await attempt(self._rpc.latest_block, self.chain_id)
        if not isinstance(latest, BlockHeader):
            return _build_explored(logs, None)
        # an explorer gives the oldest logs first, so that a cut list lacks the newest
        days = SCAN_DAYS if logs.is_cut else RECENT_HOURS / 24
        recent = await attempt(self._read_recent, latest, topics, address, requests, days)
        return (
            _merge_logs(logs, recent, wanted_from=latest.number + 1 - self._count_blocks(latest, days))
            if isinstance(recent, LogHistory)
            else _build_explored(logs, latest.number)
        )

    async def _read_recent(
        self,
        latest: BlockHeader,
        topics: Sequence[str | Sequence[str]],
        address: str | None,
        requests: int,
        days: float,
    ) -> LogHistory:
        """Return the node's logs of about so many days up to a block, in at most `requests` queries."""
        logs = await self._rpc.event_logs(
            self.chain_id,
            topics,
            address=address,
            to_block=latest.number,
            blocks=self._count_blocks(latest, days),
            requests=requests,
        )
        return LogHistory(
            logs.entries,
            latest.timestamp,
            "rpc",
            from_block=logs.from_block,
            to_block=logs.to_block,
            head=latest.number,
            unread=logs.unread,
        )

    def _count_blocks(self, latest: BlockHeader, days: float) -> int:
        """Return the number of blocks of about so many days up to a block."""
        seconds = BLOCK_SECONDS.get(self.chain_id)
        return min(int(days * 86_400 / seconds) if seconds else latest.number + 1, latest.number + 1)


def _build_explored(logs: EventLogs, head: int | None) -> LogHistory:
    """Return an explorer's logs without recent ones of the node, whose newest block is `head`."""
    return LogHistory(
        logs.entries,
        int(time.time()),
        "etherscan",
        from_block=logs.to_block + 1 if logs.is_cut else 0,
        to_block=logs.to_block if logs.is_cut else None,
        head=head,
        unread=logs.unread,
        lacks_recent=True,
    )


def _merge_logs(logs: EventLogs, recent: LogHistory, *, wanted_from: int) -> LogHistory:
    """Return an explorer's logs with the node's recent ones, which were wanted from a block on."""
    merged = {(log.block, log.index): log for log in (*recent.entries, *logs.entries)}
    return LogHistory(
        tuple(merged[position] for position in sorted(merged)),
        recent.end_time,
        "etherscan",
        from_block=recent.from_block if logs.is_cut and recent.from_block > logs.to_block else 0,
        to_block=recent.to_block,
        head=recent.head,
        unread=logs.unread + recent.unread,
        lacks_recent=not logs.is_cut and recent.from_block > wanted_from,
    )
