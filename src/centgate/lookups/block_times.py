"""Read the times of blocks from a node."""

from __future__ import annotations

from collections.abc import Collection

from centgate.chains import from_chain_seconds
from centgate.fallback import attempt, found_or_none
from centgate.providers.rpc import Rpc


async def read_block_times(rpc: Rpc, chain_id: int, numbers: Collection[int]) -> dict[int, int]:
    """Return the times of blocks, in seconds since 1970, by number; empty if the node fails.

    A block is left out if its time cannot be true: the first block of some chains has none.
    """
    if not numbers:
        return {}
    headers = found_or_none(await attempt(rpc.block_headers, chain_id, sorted(numbers))) or []
    return {each.number: each.timestamp for each in headers if from_chain_seconds(each.timestamp, chain_id)}
