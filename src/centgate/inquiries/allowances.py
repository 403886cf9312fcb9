"""Read approvals from the chain: those in the event logs of a bounded range, and current allowances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from centgate.errors import NoData, ProviderFailure
from centgate.facts.approvals import (
    Kind,
    Live,
    Scan,
    TokenNow,
    ToldApproval,
    ToldApprovals,
    ToldSpender,
    ToldToken,
)
from centgate.inquiries import erc20
from centgate.providers.rpc import Call, Log, Rpc
from centgate.sources import attempt, open_task_group
from centgate.text import clean_line

BLOCK_SECONDS: Mapping[int, float] = {1: 12, 8453: 2, 10: 2, 137: 2, 56: 0.45, 42161: 0.25}
"""Approximate time between blocks. Other chains are read from their first block."""
DAYS = 30
"""Days of event logs that are read, as far as the requests suffice."""
LOG_REQUESTS = 16
DATED_BLOCKS = 40
"""Number of blocks whose time is queried, the newest first."""
LIVE_APPROVALS = 300
"""Number of approvals whose allowance is read."""
LIVE_SPENDERS = 100
"""Number of spenders whose code is read; code is long and cannot be read in part."""

_DELEGATION = bytes.fromhex("ef0100")
T = TypeVar("T")


async def scanned(rpc: Rpc, chain_id: int, wallet: str) -> Scan:
    """Read the approvals that a wallet gave in the latest blocks, about `DAYS` days of them.

    Block times are missing; `read_onchain_state` reads them with the rest. Raises ProviderFailure if the node
    provides no logs.
    """
    latest = await rpc.latest_block(chain_id)
    seconds = BLOCK_SECONDS.get(chain_id)
    blocks = int(DAYS * 86_400 / seconds) if seconds else latest.number + 1
    topics = [erc20.APPROVAL, erc20.topic(wallet)]
    logs = await rpc.logs(chain_id, topics, to_block=latest.number, blocks=blocks, requests=LOG_REQUESTS)
    latest_events = _latest_events(logs.entries)
    active = {pair: log for pair, log in latest_events.items() if int(log.data, 16) > 0}
    return Scan(
        told=ToldApprovals(
            tuple(_build_approval(pair, log) for pair, log in active.items()),
            tokens=len({token for token, _ in latest_events}),
        ),
        from_block=logs.from_block,
        to_block=logs.to_block,
        until=latest.timestamp,
        revoked=len(latest_events) - len(active),
        collectibles=sum(len(log.topics) == 4 for log in logs.entries),
    )


def _latest_events(events: Iterable[Log]) -> dict[tuple[str, str], Log]:
    """Return the latest event of each token and spender; NFT events have a fourth topic and no data."""
    fungible = [log for log in events if len(log.topics) == 3 and len(log.data) == 66]
    return {(log.address, erc20.address_in(log.topics[2])): log for log in fungible}


def _build_approval(pair: tuple[str, str], log: Log) -> ToldApproval:
    token, spender = pair
    amount = int(log.data, 16)
    return ToldApproval(ToldToken(token), ToldSpender(spender), "rpc", amount, str(amount), block=log.block)


def together_told(told: ToldApprovals, scan: Scan) -> ToldApprovals:
    """Merge an index's approvals with those found only in the logs."""
    known_pairs = {entry.pair for entry in told.entries}
    tokens = {entry.token.address for entry in told.entries}
    new_entries = [entry for entry in scan.told.entries if entry.pair not in known_pairs]
    return replace(
        told,
        entries=(*told.entries, *new_entries),
        tokens=told.tokens + len({entry.token.address for entry in new_entries} - tokens),
    )


async def read_live(
    rpc: Rpc, chain_id: int, wallet: str, told: Sequence[ToldApproval], scan: Scan | None = None
) -> Live:
    """Read the current allowances of the first `LIVE_APPROVALS` of these, and the times of their blocks.

    All queries run concurrently; values that cannot be read are missing from the result.
    """
    approvals = told[:LIVE_APPROVALS]
    spenders = list(dict.fromkeys(entry.spender.address for entry in approvals))[:LIVE_SPENDERS]
    blocks = sorted({entry.block for entry in approvals if entry.block is not None})[-DATED_BLOCKS:]
    first_block = [scan.from_block] if scan else []
    async with open_task_group() as group:
        token_task = group.create_task(_read_tokens(rpc, chain_id, wallet, approvals))
        kind_task = group.create_task(_read_spender_kinds(rpc, chain_id, spenders))
        time_task = group.create_task(_read_block_times(rpc, chain_id, sorted({*first_block, *blocks})))
    allowances, tokens = token_task.result()
    return Live(allowances, tokens, kind_task.result(), time_task.result())


async def _read_block_times(rpc: Rpc, chain_id: int, blocks: Sequence[int]) -> dict[int, int]:
    found = _result_or_none(await attempt(rpc.blocks, chain_id, blocks)) if blocks else None
    times = {number: block.timestamp for number, block in zip(blocks, found or [], strict=False)}
    # the first block of some chains has no time
    return {number: seconds for number, seconds in times.items() if seconds}


async def _read_tokens(
    rpc: Rpc, chain_id: int, wallet: str, reported: Sequence[ToldApproval]
) -> tuple[dict[tuple[str, str], int | None], dict[str, TokenNow]]:
    if not reported:
        return {}, {}
    pairs = [entry.pair for entry in reported]
    tokens = list(dict.fromkeys(token for token, _ in pairs))
    calls = [erc20.allowance(token, wallet, spender) for token, spender in pairs]
    calls += [call for token in tokens for call in _token_calls(token, wallet)]
    answers = _result_or_none(await attempt(rpc.calls, chain_id, calls))
    if answers is None:
        return dict.fromkeys(pairs), {}
    allowances = {pair: erc20.number(answer) for pair, answer in zip(pairs, answers, strict=False)}
    token_answers = answers[len(pairs) :]
    return allowances, {
        token: _parse_token(token_answers[4 * index : 4 * index + 4]) for index, token in enumerate(tokens)
    }


def _token_calls(token: str, wallet: str) -> tuple[Call, ...]:
    return (
        erc20.balance_of(token, wallet),
        erc20.decimals(token),
        erc20.symbol(token),
        erc20.total_supply(token),
    )


def _parse_token(answers: Sequence[bytes | None]) -> TokenNow:
    balance, decimals, symbol, supply = answers
    return TokenNow(
        erc20.number(balance), erc20.small(decimals), clean_line(erc20.text(symbol)), erc20.number(supply)
    )


async def _read_spender_kinds(rpc: Rpc, chain_id: int, spenders: Sequence[str]) -> dict[str, Kind]:
    if not spenders:
        return {}
    async with open_task_group() as group:
        code_task = group.create_task(attempt(rpc.codes, chain_id, spenders))
        nonce_task = group.create_task(attempt(rpc.nonces, chain_id, spenders))
    codes, nonces = _result_or_none(code_task.result()), _result_or_none(nonce_task.result())
    if codes is None:
        return {}
    # without its number of transactions an address is not reported as unused
    counts = nonces or [1] * len(codes)
    return {
        spender: _spender_kind(code, nonce)
        for spender, code, nonce in zip(spenders, codes, counts, strict=True)
    }


def _spender_kind(code: bytes, nonce: int) -> Kind:
    if code.startswith(_DELEGATION) and len(code) == 23:
        return "delegated"
    if code:
        return "contract"
    return "wallet" if nonce else "unused"


def _result_or_none(answer: T | NoData | ProviderFailure) -> T | None:
    return None if isinstance(answer, NoData | ProviderFailure) else answer
