"""Read approvals from the chain: those in the event logs of a bounded range, and current allowances."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from centgate.chains import ZERO_ADDRESS
from centgate.crypto import abi
from centgate.crypto.approvals.approval_evidence import PERMIT2
from centgate.crypto.approvals.reported import (
    ApprovalScan,
    ApprovalSource,
    CurrentToken,
    OnchainState,
    ReportedApproval,
    ReportedApprovals,
    ReportedSpender,
    ReportedToken,
    SpenderAccountKind,
)
from centgate.crypto.contract.account_kinds import classify_code
from centgate.crypto.event_logs import EventLog
from centgate.crypto.wallet.known_tokens import find_known_token
from centgate.fallback import attempt, found_or_none, open_task_group
from centgate.lookups import erc20
from centgate.lookups.block_times import read_block_times
from centgate.lookups.chainlink import native_price_calls
from centgate.lookups.log_history import LogReader
from centgate.lookups.permit2 import allowance_call, decode_allowance
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import Rpc
from centgate.sanitize import clean_line

MAX_TIMED_BLOCKS = 40
"""Number of blocks whose time is queried, the newest first."""
MAX_READ_APPROVALS = 300
"""Number of approvals whose allowance is read."""
MAX_READ_SPENDERS = 100
"""Number of spenders whose code is read; code is long and cannot be read in part."""

MAX_CLASSIFIED_CONTRACTS = 100
"""Contracts with indexed Approval events that are asked whether they are tokens or NFTs."""


async def scan_approvals(reader: LogReader, rpc: Rpc, wallet: str) -> ApprovalScan:
    """Read the approvals at tokens that a wallet gave.

    Block times may be missing; `read_onchain_state` reads them with the rest. Raises ProviderFailure if no
    source provides logs.
    """
    logs = await reader.read([erc20.APPROVAL_TOPIC, abi.encode_topic(wallet)])
    indexed_logs = [log for log in logs.entries if len(log.topics) == 4]
    indexed = await _classify_indexed(rpc, reader.chain_id, wallet, indexed_logs)
    events = sorted((*logs.entries, *indexed.fungible), key=lambda log: (log.block, log.index))
    latest_events = _latest_events(events)
    shapes = [(len(log.topics), len(log.data) >= 66) for log in logs.entries]
    odd = sum(topics != 4 and (topics, has_amount) != (3, True) for topics, has_amount in shapes)
    harmless = {wallet, ZERO_ADDRESS}  # an allowance for oneself or for nobody
    active = {
        pair: log
        for pair, log in latest_events.items()
        if _logged_amount(log) > 0 and pair[1] not in harmless
    }
    return ApprovalScan(
        approvals=ReportedApprovals(
            tuple(_build_approval(pair, log, logs.source) for pair, log in active.items()),
            tokens=len({token for token, _ in latest_events}),
        ),
        from_block=logs.from_block,
        to_block=logs.to_block,
        head=logs.head,
        end_time=logs.end_time,
        collectibles=indexed.nft_count,
        unread=logs.unread + indexed.unknown_count + odd,
        lacks_recent=logs.lacks_recent,
        source=logs.source,
    )


class _IndexedEvents(Struct, frozen=True):
    """Approval events whose third argument is indexed: an NFT's identifier, or the amount of some tokens."""

    fungible: tuple[EventLog, ...] = ()
    """Events of tokens, with the amount moved into the data."""
    nft_count: int = 0
    unknown_count: int = 0
    """Number of events whose contract could not be asked, or did not tell which of the two it is."""


async def _classify_indexed(
    rpc: Rpc, chain_id: int, wallet: str, events: Sequence[EventLog]
) -> _IndexedEvents:
    """Tell the approvals of tokens from those of NFTs.

    A contract can answer both `allowance` and that it is an ERC-721. What it allows now counts then: an
    amount is a token's, and without one it stays unknown, as if it answers neither.
    """
    newest = {log.address: log for log in events}
    asked = list(newest)[-MAX_CLASSIFIED_CONTRACTS:]
    calls = [
        call
        for token in asked
        for call in (
            erc20.allowance_call(token, wallet, abi.decode_address(newest[token].topics[2])),
            erc20.build_nft_call(token),
        )
    ]
    answers = found_or_none(await attempt(rpc.call_contracts, chain_id, calls)) if calls else []
    if answers is None:
        return _IndexedEvents(unknown_count=len(events))
    kinds = {
        token: _indexed_kind(abi.decode_uint(allowance), abi.decode_uint(is_nft))
        for token, allowance, is_nft in zip(asked, answers[::2], answers[1::2], strict=True)
    }
    fungible = tuple(
        replace(log, topics=log.topics[:3], data=log.topics[3])
        for log in events
        if kinds.get(log.address) == "token"
    )
    nft_count = sum(kinds.get(log.address) == "nft" for log in events)
    return _IndexedEvents(fungible, nft_count, len(events) - len(fungible) - nft_count)


def _indexed_kind(allowance: int | None, is_nft: int | None) -> Literal["token", "nft"] | None:
    if allowance or (allowance is not None and not is_nft):
        return "token"
    return "nft" if allowance is None and is_nft else None


def _logged_amount(log: EventLog) -> int:
    return int(log.data[:66], 16)


def _latest_events(events: Iterable[EventLog]) -> dict[tuple[str, str], EventLog]:
    """Return the latest event of each token and spender; events of NFTs have a fourth topic and no data."""
    fungible = [log for log in events if len(log.topics) == 3 and len(log.data) >= 66]
    return {(log.address, abi.decode_address(log.topics[2])): log for log in fungible}


def _build_approval(pair: tuple[str, str], log: EventLog, source: ApprovalSource) -> ReportedApproval:
    token, spender = pair
    amount = _logged_amount(log)
    return ReportedApproval(
        ReportedToken(token),
        ReportedSpender(spender),
        source,
        amount,
        str(amount),
        changed_at=log.timestamp,
        block=log.block,
    )


def merge_approvals(reported: ReportedApprovals, scan: ApprovalScan) -> ReportedApprovals:
    """Merge an index's approvals with those found only in the logs."""
    known_pairs = {entry.pair for entry in reported.entries}
    tokens = {entry.token.address for entry in reported.entries}
    logged = {entry.pair: entry for entry in scan.approvals.entries}
    new_entries = [entry for pair, entry in logged.items() if pair not in known_pairs]
    return replace(
        reported,
        entries=(*(_update_entry(entry, logged.get(entry.pair)) for entry in reported.entries), *new_entries),
        tokens=reported.tokens + len({entry.token.address for entry in new_entries} - tokens),
    )


def _update_entry(listed: ReportedApproval, logged: ReportedApproval | None) -> ReportedApproval:
    """Return an index's entry with the amount of the newest event; an index may be old."""
    if logged is None or (logged.changed_at or math.inf) < (listed.changed_at or 0):
        return listed
    return replace(
        listed,
        amount=logged.amount,
        amount_text=logged.amount_text,
        unlimited=False,
        changed_at=logged.changed_at or listed.changed_at,
        block=logged.block,
    )


async def read_onchain_state(
    rpc: Rpc,
    chain_id: int,
    wallet: str,
    reported: Sequence[ReportedApproval],
    scan: ApprovalScan | None,
) -> OnchainState:
    """Read the current allowances of the first `MAX_READ_APPROVALS` of these, and the times of their blocks.

    Those of well-known tokens come first. All queries run concurrently; values that cannot be read are
    missing from the result.
    """
    known = [entry for entry in reported if find_known_token(chain_id, entry.token.address)]
    others = [entry for entry in reported if not find_known_token(chain_id, entry.token.address)]
    approvals = [*take_turns(known), *take_turns(others)][:MAX_READ_APPROVALS]
    spenders = dict.fromkeys(entry.spender.address for entry in approvals if entry.spender.address != wallet)
    accounts = [wallet, *list(spenders)[:MAX_READ_SPENDERS]]
    untimed = (entry for entry in approvals if entry.changed_at is None)
    blocks = sorted({entry.block for entry in untimed if entry.block is not None})[-MAX_TIMED_BLOCKS:]
    first_block = [scan.from_block] if scan else []
    async with open_task_group() as group:
        token_task = group.create_task(_read_tokens(rpc, chain_id, wallet, approvals))
        code_task = group.create_task(_read_codes(rpc, chain_id, accounts))
        time_task = group.create_task(read_block_times(rpc, chain_id, {*first_block, *blocks}))
    codes = code_task.result()
    return replace(
        token_task.result(),
        kinds={account: _classify_spender(code, nonce) for account, (code, nonce) in codes.items()},
        wallet_code=codes[wallet][0] if wallet in codes else None,
        block_times=time_task.result(),
    )


def take_turns(reported: Iterable[ReportedApproval]) -> list[ReportedApproval]:
    """Return the approvals with each token in turn, so that many of one token do not displace the others."""
    by_token: dict[str, list[ReportedApproval]] = {}
    for entry in reported:
        by_token.setdefault(entry.token.address, []).append(entry)
    turns = zip_longest(*by_token.values())
    return [entry for turn in turns for entry in turn if entry is not None]


async def _read_tokens(
    rpc: Rpc, chain_id: int, wallet: str, reported: Sequence[ReportedApproval]
) -> OnchainState:
    """Return the state of the approvals and their tokens, without accounts and times."""
    if not reported:
        return OnchainState()
    tokens = list(dict.fromkeys(entry.token.address for entry in reported))
    granted = list(dict.fromkeys(entry.token.address for entry in reported if entry.mechanism == "permit2"))
    calls = [_live_allowance_call(entry, wallet) for entry in reported]
    calls += [erc20.allowance_call(token, wallet, PERMIT2) for token in granted]
    calls += [call for token in tokens for call in _token_calls(token, wallet)]
    calls += native_price_calls(chain_id)
    answers = found_or_none(await attempt(rpc.call_contracts, chain_id, calls))
    if answers is None:
        return OnchainState(dict.fromkeys(entry.key for entry in reported))
    found, rest = answers[: len(reported)], answers[len(reported) :]
    limits, rest = rest[: len(granted)], rest[len(granted) :]
    grants = {
        entry.key: grant
        for entry, answer in zip(reported, found, strict=True)
        if entry.mechanism == "permit2" and (grant := decode_allowance(answer))
    }
    return OnchainState(
        allowances={
            entry.key: grants.get(entry.key, (None, 0))[0]
            if entry.mechanism == "permit2"
            else abi.decode_uint(answer)
            for entry, answer in zip(reported, found, strict=True)
        },
        expirations={key: expiration for key, (_, expiration) in grants.items()},
        permit2_limits={
            token: abi.decode_uint(answer) for token, answer in zip(granted, limits, strict=True)
        },
        tokens={token: _parse_token(rest[4 * index : 4 * index + 4]) for index, token in enumerate(tokens)},
        feed_answers=rest[4 * len(tokens) :],
    )


def _live_allowance_call(entry: ReportedApproval, wallet: str) -> ContractCall:
    token, spender = entry.pair
    if entry.mechanism == "permit2":
        return allowance_call(wallet, token, spender)
    return erc20.allowance_call(token, wallet, spender)


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
        abi.decode_uint(balance),
        erc20.decode_decimals(decimals),
        clean_line(abi.decode_text(symbol)),
        abi.decode_uint(supply),
    )


async def _read_codes(rpc: Rpc, chain_id: int, addresses: Sequence[str]) -> dict[str, tuple[bytes, int]]:
    """Return code and number of transactions of each account; empty if the code cannot be read."""
    async with open_task_group() as group:
        code_task = group.create_task(attempt(rpc.contract_codes, chain_id, addresses))
        nonce_task = group.create_task(attempt(rpc.transaction_counts, chain_id, addresses))
    codes, nonces = found_or_none(code_task.result()), found_or_none(nonce_task.result())
    if codes is None:
        return {}
    # without its number of transactions an address is not reported as unused
    counts = nonces or [1] * len(codes)
    return {address: (code, nonce) for address, code, nonce in zip(addresses, codes, counts, strict=True)}


def _classify_spender(code: bytes, nonce: int) -> SpenderAccountKind:
    kind = classify_code(code)
    return "unused" if kind == "wallet" and not nonce else kind
