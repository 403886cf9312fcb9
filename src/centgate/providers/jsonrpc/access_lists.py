"""Accounts and storage slots that calls to a contract touch, as a node lists them (eth_createAccessList)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from centgate.errors import ProviderFailure, ProviderRateLimited, ProviderTimeout
from centgate.providers.jsonrpc.client import CAPABILITY_TTL, CallFailure, RpcRequest
from centgate.providers.jsonrpc.multicall import MULTICALL, encode_aggregate
from centgate.providers.jsonrpc.node_pool import NodePool

LIST_SECONDS = 2.0
"""Seconds for a node to list what a call touches; a slow one must not use up those of the trades."""


async def read_touched_accounts(
    nodes: NodePool, contract: str, calls: Sequence[bytes]
) -> Mapping[str, frozenset[str]] | None:
    """Return the accounts that these calls to a contract touch, itself included, with their storage slots.

    Addresses are lower case, slots 0x and 64 digits. None if no node tells. The calls are sent by Multicall3:
    nodes may leave out slots of the account that a transaction names, as listing them costs more than it
    saves.
    """
    content = encode_aggregate([(contract, data) for data in calls])
    request: RpcRequest = (
        "eth_createAccessList",
        [{"to": MULTICALL, "data": "0x" + content.hex()}, "latest"],
    )
    max_wait = min(LIST_SECONDS, nodes.remaining_seconds() / (2 * len(nodes.nodes)))
    for node in nodes.nodes:
        if time.monotonic() < node.no_access_lists_until:
            continue
        try:
            async with asyncio.timeout(max_wait):
                (answer,) = await node.send_requests([request], tolerant=True)
            return _parse_touched_accounts(answer, contract)
        except (TimeoutError, ProviderRateLimited, ProviderTimeout):
            continue
        except (ProviderFailure, ValueError, LookupError, TypeError, AttributeError):
            # many nodes lack this method, which is no failure of theirs
            node.no_access_lists_until = time.monotonic() + CAPABILITY_TTL
    return None


def _parse_touched_accounts(answer: Any, contract: str) -> Mapping[str, frozenset[str]] | None:
    """Parse an access list.

    None if the contract is missing, as without a call, or if the call failed, which cuts the list.
    """
    if isinstance(answer, CallFailure) or answer.get("error"):
        return None
    touched: dict[str, set[str]] = {}
    for entry in answer["accessList"]:
        slots = (int(slot, 16) for slot in entry["storageKeys"])
        touched.setdefault(entry["address"].lower(), set()).update(f"0x{slot:064x}" for slot in slots)
    return {account: frozenset(slots) for account, slots in touched.items()} if contract in touched else None
