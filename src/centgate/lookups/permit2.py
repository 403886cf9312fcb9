"""Read the grants that a wallet gave inside Permit2, from its event logs and its current state.

Interface: https://github.com/Uniswap/permit2, `IAllowanceTransfer`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from msgspec import Struct

from centgate.crypto import abi
from centgate.crypto.abi import event_topic, function_selector
from centgate.crypto.approvals.approval_evidence import PERMIT2
from centgate.crypto.approvals.reported import (
    ApprovalSource,
    GrantScan,
    ReportedApproval,
    ReportedSpender,
    ReportedToken,
)
from centgate.crypto.event_logs import EventLog
from centgate.lookups.log_history import LogReader
from centgate.providers.jsonrpc.contract_calls import ContractCall

APPROVAL_TOPIC = event_topic("Approval(address,address,address,uint160,uint48)")
"""Indexed: owner, token, spender."""
PERMIT_TOPIC = event_topic("Permit(address,address,address,uint160,uint48,uint48)")
"""Indexed: owner, token, spender."""
LOCKDOWN_TOPIC = event_topic("Lockdown(address,address,address)")
"""Indexed: owner. It sets the grant of a token and a spender to 0."""
ALLOWANCE_SELECTOR = function_selector("allowance(address,address,address)")
"""Of owner, token and spender: amount, expiration, nonce."""


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
    logs = await reader.read([kinds, abi.encode_topic(wallet)], address=PERMIT2)
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
    addresses = b"".join(map(abi.encode_address, (owner, token, spender)))
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
        yield _GrantEvent(abi.decode_address(first), abi.decode_address(second), 0, 0, log)
    elif log.topics[0] in (APPROVAL_TOPIC, PERMIT_TOPIC) and len(log.topics) == 4:
        token, spender = map(abi.decode_address, log.topics[2:])
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
