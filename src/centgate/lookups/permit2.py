"""Read the grants that a wallet gave inside Permit2, from its event logs and its current state.

Interface: https://github.com/Uniswap/permit2, `IAllowanceTransfer`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from msgspec import Struct

from centgate.crypto.approvals.approval_evidence import PERMIT2
from centgate.crypto.approvals.reported import (
    ApprovalSource,
    GrantScan,
    ReportedApproval,
    ReportedSpender,
    ReportedToken,
)
from centgate.crypto.event_logs import EventLog
from centgate.lookups import erc20
from centgate.lookups.log_history import LogReader
from centgate.providers.jsonrpc.contract_calls import ContractCall

APPROVAL_TOPIC = "0xda9fa7c1b00402c17d0161b249b1ab8bbec047c5a52207b9c112deffd817036b"
"""Approval(address indexed owner, address indexed token, address indexed spender, uint160, uint48)."""
PERMIT_TOPIC = "0xc6a377bfc4eb120024a8ac08eef205be16b817020812c73223e81d1bdb9708ec"
"""Permit(address indexed owner, address indexed token, address indexed spender, uint160, uint48, uint48)."""
LOCKDOWN_TOPIC = "0x89b1add15eff56b3dfe299ad94e01f2b52fbcb80ae1a3baea6ae8c04cb2b98a4"
"""Lockdown(address indexed owner, address token, address spender), which sets a grant to 0."""
ALLOWANCE_SELECTOR = bytes.fromhex("927da105")
"""allowance(address owner, address token, address spender): amount, expiration, nonce."""


class _GrantEvent(Struct, frozen=True):
    token: str
    spender: str
    amount: int
    expires_at: int
    log: EventLog


async def scan_grants(reader: LogReader, wallet: str) -> GrantScan:
    """Read the grants that a wallet gave and that have not ended.

    Raises ProviderFailure if no source provides logs.
    """
    kinds = (APPROVAL_TOPIC, PERMIT_TOPIC, LOCKDOWN_TOPIC)
    logs = await reader.read([kinds, erc20.encode_topic(wallet)], address=PERMIT2)
    events = [event for log in logs.entries for event in _parse_event(log)]
    now = int(time.time())
    newest = {(event.token, event.spender): event for event in events}
    return GrantScan(
        tuple(
            _build_grant(event, logs.source)
            for event in newest.values()
            if event.amount and event.expires_at >= min(logs.end_time, now)
        ),
        from_block=logs.from_block,
        to_block=logs.to_block,
        head=logs.head,
        unread=logs.unread + len(logs.entries) - len(events),
        lacks_recent=logs.lacks_recent,
    )


def allowance_call(owner: str, token: str, spender: str) -> ContractCall:
    """Call Permit2's allowance."""
    addresses = b"".join(map(erc20.encode_address, (owner, token, spender)))
    return ContractCall(PERMIT2, ALLOWANCE_SELECTOR + addresses)


def decode_allowance(returned: bytes | None) -> tuple[int, int] | None:
    """Decode amount and expiration (seconds since 1970); None if the call failed."""
    if returned is None or len(returned) < 96:
        return None
    return int.from_bytes(returned[:32]), int.from_bytes(returned[32:64])


def _parse_event(log: EventLog) -> Iterator[_GrantEvent]:
    """Yield the event of a log; nothing if it is not in the expected format."""
    if len(log.data) < 130:
        return
    first, second = log.data[2:66], log.data[66:130]
    if log.topics[0] == LOCKDOWN_TOPIC:
        yield _GrantEvent(erc20.decode_address(first), erc20.decode_address(second), 0, 0, log)
    elif log.topics[0] in (APPROVAL_TOPIC, PERMIT_TOPIC) and len(log.topics) == 4:
        token, spender = map(erc20.decode_address, log.topics[2:])
        yield _GrantEvent(token, spender, int(first, 16), int(second, 16), log)


def _build_grant(event: _GrantEvent, source: ApprovalSource) -> ReportedApproval:
    return ReportedApproval(
        ReportedToken(event.token),
        ReportedSpender(event.spender),
        source,
        event.amount,
        str(event.amount),
        changed_at=event.log.timestamp,
        block=event.log.block,
        mechanism="permit2",
        expires_at=event.expires_at,
    )
