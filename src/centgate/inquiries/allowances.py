"""Approvals as the chain has them: those reported in a bounded range of blocks, and what stands now."""

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
from centgate.sources import attempt, together
from centgate.text import cleaned

BLOCK_SECONDS: Mapping[int, float] = {1: 12, 8453: 2, 10: 2, 137: 2, 56: 0.45, 42161: 0.25}
"""Time between blocks, about. A chain that is not here is read from its first block."""
DAYS = 30
"""How far back event logs are read, as far as the requests suffice."""
LOG_REQUESTS = 16
DATED_BLOCKS = 40
"""Blocks whose time is asked for, the newest."""
LIVE_APPROVALS = 300
"""Approvals whose allowance is read."""
LIVE_SPENDERS = 100
"""Spenders whose code is read; it comes whole, and is long."""

_DELEGATION = bytes.fromhex("ef0100")
T = TypeVar("T")


async def scanned(rpc: Rpc, chain_id: int, wallet: str) -> Scan:
    """Read the approvals that a wallet gave in the latest blocks, about `DAYS` days of them.

    Without the times of blocks, which `read_live` reads along with the rest. Raises ProviderFailure when the
    node gives no logs.
    """
    latest = await rpc.latest_block(chain_id)
    seconds = BLOCK_SECONDS.get(chain_id)
    blocks = int(DAYS * 86_400 / seconds) if seconds else latest.number + 1
    topics = [erc20.APPROVAL, erc20.topic(wallet)]
    logs = await rpc.logs(chain_id, topics, to_block=latest.number, blocks=blocks, requests=LOG_REQUESTS)
    newest = _newest(logs.entries)
    standing = {pair: log for pair, log in newest.items() if int(log.data, 16) > 0}
    return Scan(
        told=ToldApprovals(
            tuple(_told(pair, log) for pair, log in standing.items()),
            tokens=len({token for token, _ in newest}),
        ),
        from_block=logs.from_block,
        to_block=logs.to_block,
        until=latest.timestamp,
        revoked=len(newest) - len(standing),
        collectibles=sum(len(log.topics) == 4 for log in logs.entries),
    )


def _newest(events: Iterable[Log]) -> dict[tuple[str, str], Log]:
    """The latest event of each token and spender; NFTs have a fourth topic and no data."""
    fungible = [log for log in events if len(log.topics) == 3 and len(log.data) == 66]
    return {(log.address, erc20.address_in(log.topics[2])): log for log in fungible}


def _told(pair: tuple[str, str], log: Log) -> ToldApproval:
    token, spender = pair
    amount = int(log.data, 16)
    return ToldApproval(ToldToken(token), ToldSpender(spender), "rpc", amount, str(amount), block=log.block)


def together_told(told: ToldApprovals, scan: Scan) -> ToldApprovals:
    """An index's approvals, with those that only the logs report."""
    known = {entry.pair for entry in told.entries}
    tokens = {entry.token.address for entry in told.entries}
    more = [entry for entry in scan.told.entries if entry.pair not in known]
    return replace(
        told,
        entries=(*told.entries, *more),
        tokens=told.tokens + len({entry.token.address for entry in more} - tokens),
    )


async def read_live(
    rpc: Rpc, chain_id: int, wallet: str, told: Sequence[ToldApproval], scan: Scan | None = None
) -> Live:
    """What stands now of the first `LIVE_APPROVALS` of these, and when their blocks were made.

    All is asked for at the same time; what cannot be read is missing from the answer.
    """
    asked = told[:LIVE_APPROVALS]
    spenders = list(dict.fromkeys(entry.spender.address for entry in asked))[:LIVE_SPENDERS]
    blocks = sorted({entry.block for entry in asked if entry.block is not None})[-DATED_BLOCKS:]
    first = [scan.from_block] if scan else []
    async with together() as group:
        reading = group.create_task(_readings(rpc, chain_id, wallet, asked))
        kinds = group.create_task(_kinds(rpc, chain_id, spenders))
        times = group.create_task(_times(rpc, chain_id, sorted({*first, *blocks})))
    allowances, tokens = reading.result()
    return Live(allowances, tokens, kinds.result(), times.result())


async def _times(rpc: Rpc, chain_id: int, blocks: Sequence[int]) -> dict[int, int]:
    found = _or_none(await attempt(rpc.blocks, chain_id, blocks)) if blocks else None
    made = {number: block.timestamp for number, block in zip(blocks, found or [], strict=False)}
    # the first block of some chains has no time
    return {number: seconds for number, seconds in made.items() if seconds}


async def _readings(
    rpc: Rpc, chain_id: int, wallet: str, told: Sequence[ToldApproval]
) -> tuple[dict[tuple[str, str], int | None], dict[str, TokenNow]]:
    if not told:
        return {}, {}
    pairs = [entry.pair for entry in told]
    tokens = list(dict.fromkeys(token for token, _ in pairs))
    calls = [erc20.allowance(token, wallet, spender) for token, spender in pairs]
    calls += [call for token in tokens for call in _questions(token, wallet)]
    answers = _or_none(await attempt(rpc.calls, chain_id, calls))
    if answers is None:
        return dict.fromkeys(pairs), {}
    allowances = {pair: erc20.number(answer) for pair, answer in zip(pairs, answers, strict=False)}
    rest = answers[len(pairs) :]
    return allowances, {token: _now(rest[4 * at : 4 * at + 4]) for at, token in enumerate(tokens)}


def _questions(token: str, wallet: str) -> tuple[Call, ...]:
    return (
        erc20.balance_of(token, wallet),
        erc20.decimals(token),
        erc20.symbol(token),
        erc20.total_supply(token),
    )


def _now(answers: Sequence[bytes | None]) -> TokenNow:
    balance, decimals, symbol, supply = answers
    return TokenNow(
        erc20.number(balance), erc20.small(decimals), cleaned(erc20.text(symbol)), erc20.number(supply)
    )


async def _kinds(rpc: Rpc, chain_id: int, spenders: Sequence[str]) -> dict[str, Kind]:
    if not spenders:
        return {}
    async with together() as group:
        coding = group.create_task(attempt(rpc.codes, chain_id, spenders))
        counting = group.create_task(attempt(rpc.nonces, chain_id, spenders))
    codes, nonces = _or_none(coding.result()), _or_none(counting.result())
    if codes is None:
        return {}
    # an address whose transactions could not be counted is not called unused
    counts = nonces or [1] * len(codes)
    return {spender: _kind(code, nonce) for spender, code, nonce in zip(spenders, codes, counts, strict=True)}


def _kind(code: bytes, nonce: int) -> Kind:
    if code.startswith(_DELEGATION) and len(code) == 23:
        return "delegated"
    if code:
        return "contract"
    return "wallet" if nonce else "unused"


def _or_none(answer: T | NoData | ProviderFailure) -> T | None:
    return None if isinstance(answer, NoData | ProviderFailure) else answer
