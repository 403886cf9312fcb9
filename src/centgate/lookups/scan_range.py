"""Choose the range of blocks whose event logs are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from centgate.providers.rpc import BlockHeader, Rpc

BLOCK_SECONDS: Mapping[int, float] = {1: 12, 8453: 2, 10: 2, 137: 2, 56: 0.45, 42161: 0.25}
"""Approximate time between blocks. Other chains are read from their first block."""
SCAN_DAYS = 30
"""Days of event logs that are read, as far as the requests suffice."""
LOG_REQUESTS = 16
"""Most queries of event logs for one scan."""


@dataclass(frozen=True, slots=True)
class ScanRange:
    """The newest block, and the number of blocks up to it."""

    latest: BlockHeader
    blocks: int


async def read_scan_range(rpc: Rpc, chain_id: int) -> ScanRange:
    """Return the range of about the last `SCAN_DAYS` days. Raises ProviderFailure if the node fails."""
    latest = await rpc.latest_block(chain_id)
    seconds = BLOCK_SECONDS.get(chain_id)
    return ScanRange(latest, int(SCAN_DAYS * 86_400 / seconds) if seconds else latest.number + 1)
