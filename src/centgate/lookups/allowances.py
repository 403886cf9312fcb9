"""Read approvals from the chain: those in the event logs of a bounded range, and current allowances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from centgate.crypto.approvals.reported import (
    ApprovalScan,
    CurrentToken,
    OnchainState,
    ReportedApproval,
    ReportedApprovals,
    ReportedSpender,
    ReportedToken,
    SpenderKind,
)
from centgate.errors import NoData, ProviderFailure
from centgate.fallback import attempt, open_task_group
from centgate.lookups import erc20
from centgate.providers.rpc import ContractCall, EventLog, Rpc
from centgate.sanitize import clean_line

BLOCK_SECONDS: Mapping[int, float] = {1: 12, 8453: 2, 10: 2, 137: 2, 56: 0.45, 42161: 0.25}
"""Approximate time between blocks. Other chains are read from their first block."""
SCAN_DAYS = 30
"""Days of event logs that are read, as far as the requests suffice."""
LOG_REQUESTS = 16
MAX_TIMED_BLOCKS = 40
"""Number of blocks whose time is queried, the newest first."""
MAX_READ_APPROVALS = 300
"""Number of approvals whose allowance is read."""
MAX_READ_SPENDERS = 100
"""Number of spenders whose code is read; code is long and cannot be read in part."""

_DELEGATION = bytes.fromhex("ef0100")
T = TypeVar("T")


async def scan_approvals(rpc: Rpc, chain_id: int, wallet: str) -> ApprovalScan:
    """Read the approvals that a wallet gave in the latest blocks, about `SCAN_DAYS` days of them.

    Block times are missing; `read_onchain_state` reads them with the rest. Raises ProviderFailure if the node
    provides no logs.
    """
    latest = await rpc.latest_block(chain_id)
    seconds = BLOCK_SECONDS.get(chain_id)
    blocks = int(SCAN_DAYS * 86_400 / seconds) if seconds else latest.number + 1
    topics = [erc20.APPROVAL_TOPIC, erc20.encode_topic(wallet)]
    logs = await rpc.event_logs(
        chain_id, topics, to_block=latest.number, blocks=blocks, requests=LOG_REQUESTS
    )
    latest_events = _latest_events(logs.entries)
    active = {pair: log for pair, log in latest_events.items() if int(log.data, 16) > 0}
    return ApprovalScan(
        approvals=ReportedApprovals(
            tuple(_build_approval(pair, log) for pair, log in active.items()),
            tokens=len({token for token, _ in latest_events}),
        ),
        from_block=logs.from_block,
        to_block=logs.to_block,
        end_time=latest.timestamp,
        revoked=len(latest_events) - len(active),
        collectibles=sum(len(log.topics) == 4 for log in logs.entries),
    )


def _latest_events(events: Iterable[EventLog]) -> dict[tuple[str, str], EventLog]:
    """Return the latest event of each token and spender; NFT events have a fourth topic and no data."""
    fungible = [log for log in events if len(log.topics) == 3 and len(log.data) == 66]
    return {(log.address, erc20.decode_address(log.topics[2])): log for log in fungible}


def _build_approval(pair: tuple[str, str], log: EventLog) -> ReportedApproval:
    token, spender = pair
    amount = int(log.data, 16)
    return ReportedApproval(
        ReportedToken(token), ReportedSpender(spender), "rpc", amount, str(amount), block=log.block
    )


def merge_approvals(reported: ReportedApprovals, scan: ApprovalScan) -> ReportedApprovals:
    """Merge an index's approvals with those found only in the logs."""
    known_pairs = {entry.pair for entry in reported.entries}
    tokens = {entry.token.address for entry in reported.entries}
    new_entries = [entry for entry in scan.approvals.entries if entry.pair not in known_pairs]
    return replace(
        reported,
        entries=(*reported.entries, *new_entries),
        tokens=reported.tokens + len({entry.token.address for entry in new_entries} - tokens),
    )


async def read_onchain_state(
    rpc: Rpc,
    chain_id: int,
    wallet: str,
    reported: Sequence[ReportedApproval],
    scan: ApprovalScan | None = None,
) -> OnchainState:
    """Read the current allowances of the first `MAX_READ_APPROVALS` of these, and the times of their blocks.

    All queries run concurrently; values that cannot be read are missing from the result.
    """
    approvals = reported[:MAX_READ_APPROVALS]
    spenders = list(dict.fromkeys(entry.spender.address for entry in approvals))[:MAX_READ_SPENDERS]
    blocks = sorted({entry.block for entry in approvals if entry.block is not None})[-MAX_TIMED_BLOCKS:]
    first_block = [scan.from_block] if scan else []
    async with open_task_group() as group:
        token_task = group.create_task(_read_tokens(rpc, chain_id, wallet, approvals))
        kind_task = group.create_task(_read_spender_kinds(rpc, chain_id, spenders))
        time_task = group.create_task(_read_block_times(rpc, chain_id, sorted({*first_block, *blocks})))
    allowances, tokens = token_task.result()
    return OnchainState(allowances, tokens, kind_task.result(), time_task.result())


async def _read_block_times(rpc: Rpc, chain_id: int, blocks: Sequence[int]) -> dict[int, int]:
    found = _result_or_none(await attempt(rpc.block_headers, chain_id, blocks)) if blocks else None
    times = {number: block.timestamp for number, block in zip(blocks, found or [], strict=False)}
    # the first block of some chains has no time
    return {number: seconds for number, seconds in times.items() if seconds}


async def _read_tokens(
    rpc: Rpc, chain_id: int, wallet: str, reported: Sequence[ReportedApproval]
) -> tuple[dict[tuple[str, str], int | None], dict[str, CurrentToken]]:
    if not reported:
        return {}, {}
    pairs = [entry.pair for entry in reported]
    tokens = list(dict.fromkeys(token for token, _ in pairs))
    calls = [erc20.allowance_call(token, wallet, spender) for token, spender in pairs]
    calls += [call for token in tokens for call in _token_calls(token, wallet)]
    answers = _result_or_none(await attempt(rpc.call_contracts, chain_id, calls))
    if answers is None:
        return dict.fromkeys(pairs), {}
    allowances = {pair: erc20.decode_uint(answer) for pair, answer in zip(pairs, answers, strict=False)}
    token_answers = answers[len(pairs) :]
    return allowances, {
        token: _parse_token(token_answers[4 * index : 4 * index + 4]) for index, token in enumerate(tokens)
    }


def _token_calls(token: str, wallet: str) -> tuple[ContractCall, ...]:
    return (
        erc20.balance_of_call(token, wallet),
        erc20.decimals_call(token),
        erc20.symbol_call(token),
        erc20.total_supply_call(token),
    )


def _parse_token(answers: Sequence[bytes | None]) -> CurrentToken:
    balance, decimals, symbol, supply = answers
    return CurrentToken(
        erc20.decode_uint(balance),
        erc20.decode_decimals(decimals),
        clean_line(erc20.decode_text(symbol)),
        erc20.decode_uint(supply),
    )


async def _read_spender_kinds(rpc: Rpc, chain_id: int, spenders: Sequence[str]) -> dict[str, SpenderKind]:
    if not spenders:
        return {}
    async with open_task_group() as group:
        code_task = group.create_task(attempt(rpc.contract_codes, chain_id, spenders))
        nonce_task = group.create_task(attempt(rpc.transaction_counts, chain_id, spenders))
    codes, nonces = _result_or_none(code_task.result()), _result_or_none(nonce_task.result())
    if codes is None:
        return {}
    # without its number of transactions an address is not reported as unused
    counts = nonces or [1] * len(codes)
    return {
        spender: _spender_kind(code, nonce)
        for spender, code, nonce in zip(spenders, codes, counts, strict=True)
    }


def _spender_kind(code: bytes, nonce: int) -> SpenderKind:
    if code.startswith(_DELEGATION) and len(code) == 23:
        return "delegated"
    if code:
        return "contract"
    return "wallet" if nonce else "unused"


def _result_or_none(answer: T | NoData | ProviderFailure) -> T | None:
    return None if isinstance(answer, NoData | ProviderFailure) else answer
