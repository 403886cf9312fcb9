"""Pools of a token, read from the factories of the exchanges, with prices in dollars by Chainlink.

Three rounds of calls: which pools exist, their state, and quotes for the price impact; one more if there are
very many pools. Pools are looked up against the chain's quote tokens; v4 has no list of pools, so those with
the usual fees and without hooks are looked up by the hash of their key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple, TypeVar

from centgate.chains import CHAIN_BY_ID, well_known_chain
from centgate.coercion import MAX_BASE_UNITS, as_clean_name
from centgate.crypto.contract.bytecode import function_selector
from centgate.crypto.token.exchange_tables import (
    EXCHANGES,
    MAX_FEED_AGE,
    MIN_FEED_AGE,
    POOL_KINDS,
    PRICE_FEEDS,
    QUOTE_TOKENS,
    SEQUENCER_GRACE,
    Exchange,
)
from centgate.crypto.token.pairs import Pair
from centgate.crypto.token.pool_math import (
    FEE_UNIT,
    is_possible_root,
    loss_percent,
    price_of_sqrt,
    price_of_stable,
    quote_v2_sale,
)
from centgate.crypto.token.pools import PoolKey, PoolState, PriceImpact, QuoteToken, build_pair
from centgate.errors import NoData
from centgate.fallback import attempt
from centgate.lookups.erc20 import (
    balance_of_call,
    decimals_call,
    decode_text,
    decode_uint,
    encode_address,
    symbol_call,
)
from centgate.providers.rpc import ContractCall, Rpc
from centgate.signing.evm import keccak

T = TypeVar("T")

NATIVE_CURRENCY = "0x" + "00" * 20
"""The native coin in a v4 pool."""
IMPACT_USD = (100, 1_000, 10_000)
"""Sizes of the sales whose price impact is quoted, in US dollars."""
MAX_QUOTE_GAIN = 5
"""Percent by which a quote may exceed the spot price, which is read earlier."""
MAX_POOLS = 24
"""Pools with a contract of their own whose state is read; those of v4 are all in one."""
MAX_TOKEN_DECIMALS = 77
_MAX_V4_AMOUNT = 2**128 - 1
_MAX_POOL_TERM = 2**23 - 1
"""Largest fee or tick spacing that every factory takes (uint24, int24): a larger one makes its call fail."""
_WORD = 32
_POOL_TERMS = {"v3": "fee()", "slipstream": "tickSpacing()", "solidly": "stable()"}
"""Function of a pool that gives the term by which its factory finds it, by the kind of the exchange."""
_DYNAMIC_FEE = 0x800000
"""Fee in the key of a v4 pool whose hooks decide it."""


@dataclass(frozen=True, slots=True)
class _TokenFacts:
    """Facts of the token that the first round reads besides the pools."""

    decimals: int
    symbol: str | None
    native_usd: float | None
    """US dollars for the native coin."""


class _Candidate(NamedTuple):
    """A pool that may exist, and the call that tells. Dozens are created per token, so it is a light one."""

    exchange: Exchange
    quote: QuoteToken
    call: ContractCall
    fee: int | None = None
    tick_spacing: int | None = None
    stable: bool = False
    pool_id: bytes | None = None
    """Hash of the key of a v4 pool."""


async def find_pools(rpc: Rpc, chain_id: int, token: str) -> list[PoolState]:
    """Return the token's (lower case) pools, deepest first; those of unknown depth, as in v4, last.

    Raises NoData if there is none, or if the token has no decimals, and ProviderFailure.
    """
    table = well_known_chain(chain_id)
    candidates = [
        candidate
        for exchange in EXCHANGES[table]
        for quote in _quotes_for(exchange, table)
        if quote.address != token
        for candidate in _list_candidates(exchange, token, quote)
    ]
    facts_calls = _facts_calls(table, token)
    results = await rpc.call_contracts(chain_id, [*facts_calls, *(each.call for each in candidates)])
    answers = results[len(facts_calls) :]
    silent = _find_silent(candidates, answers) if chain_id in CHAIN_BY_ID else set[Exchange]()
    if silent:
        names = ", ".join(sorted(each.name for each in silent))
        rpc.trace.add_warning(f"not at this node, so their pools are left out: {names}")
    unread = _count_unread(candidates, answers)
    if unread:
        rpc.trace.add_warning(
            f"the node did not tell whether {unread} pools of the token exist, which are left out"
        )
    keys = [
        (candidate, key)
        for candidate, answer in zip(candidates, answers, strict=True)
        if (key := _existing_pool(candidate, token, answer))
    ]
    if not keys and (unread or await _has_any_code(rpc, chain_id, [each.factory for each in silent])):
        raise rpc.invalid_response("did not tell which pools the token has")
    if not keys:
        raise NoData(f"the chain's exchanges have no pool of {token} against a token with a known price")
    decimals = await _confirm_decimals(rpc, chain_id, token, results[0])
    facts = _parse_facts(rpc, table, decimals, results[1 : len(facts_calls)])
    keys = await _choose_pools(rpc, chain_id, facts, keys)
    states = await _read_states(rpc, chain_id, token, facts, keys)
    if not states:
        raise NoData(f"no pool of {token} on the chain holds anything")
    return sorted(states, key=lambda state: -state.ranked_usd)


async def read_pool(rpc: Rpc, chain_id: int, address: str) -> PoolState:
    """Return the state of the pool at an address (lower case): the price of its token in its quote token.

    Raises NoData if it is no pool of a known exchange with a quote token, and ProviderFailure.
    """
    exchange, quote, key = await _identify_pool(rpc, chain_id, address)
    table, token = well_known_chain(chain_id), key.token0 if quote.address == key.token1 else key.token1
    known_call = _lookup_call(
        exchange,
        _encode_pair(key.token0, key.token1),
        fee=key.fee,
        tick_spacing=key.tick_spacing,
        stable=key.stable,
    )
    facts_calls = _facts_calls(table, token)
    known, *answers = await rpc.call_contracts(chain_id, [known_call, *facts_calls])
    # anyone can deploy a contract that names this factory, so the factory has to name the pool
    confirmed = _parse_address(known)
    if confirmed is None:
        raise rpc.invalid_response(f"did not tell whether {exchange.name} has this pool")
    if confirmed != address:
        raise NoData(
            f"the contract at {address} names the factory of {exchange.name}, which has no such pool"
        )
    decimals = await _confirm_decimals(rpc, chain_id, token, answers[0])
    facts = _parse_facts(rpc, table, decimals, answers[1:])
    candidate = _Candidate(exchange, quote, ContractCall(address, b""))
    states = await _read_states(rpc, chain_id, token, facts, [(candidate, key)])
    if not states:
        raise NoData(f"the pool at {address} holds nothing")
    return states[0]


async def _identify_pool(rpc: Rpc, chain_id: int, address: str) -> tuple[Exchange, QuoteToken, PoolKey]:
    """Return what the contract at an address says of itself, if that is a pool of a known exchange.

    Raises NoData if it is none, or has no quote token, and ProviderFailure.
    """
    no_pool = NoData(f"no pool of a known exchange against a token with a known price at {address}")
    reads = ("factory()", "token0()", "token1()", *_POOL_TERMS.values())
    calls = [ContractCall(address, function_selector(signature)) for signature in reads]
    answers = await rpc.call_contracts(chain_id, calls)
    confirm_address = partial(_confirm_answer, rpc, chain_id, parse=_parse_address, subject="the pool")
    factory = await confirm_address(calls[0], answers[0])
    table = well_known_chain(chain_id)
    exchange = next(
        (each for each in EXCHANGES[table] if each.factory == factory and each.kind != "v4"), None
    )
    if exchange is None:
        raise no_pool
    token0, token1 = [await confirm_address(calls[number], answers[number]) for number in (1, 2)]
    quotes = {quote.address: quote for quote in _quotes_for(exchange, table)}
    quote = quotes.get(token1 or "") or quotes.get(token0 or "")
    if quote is None or token0 is None or token1 is None:
        raise no_pool
    fee, spacing, stable = [
        await _confirm_answer(rpc, chain_id, call, answer, parse=_parse_term, subject="the pool")
        if kind == exchange.kind
        else _parse_term(answer)
        for kind, call, answer in zip(_POOL_TERMS, calls[3:], answers[3:], strict=True)
    ]
    key = PoolKey(
        POOL_KINDS[exchange.kind],
        address,
        token0,
        token1,
        exchange.name,
        exchange.fee if exchange.kind == "v2" else fee,
        tick_spacing=spacing,
        stable=bool(stable),
    )
    return exchange, quote, key


async def quote_impacts(rpc: Rpc, chain_id: int, state: PoolState) -> list[PriceImpact]:
    """Quote sales of the token in a pool, in one round; [] without a price in dollars or a quoter."""
    if not state.price_usd:
        return []
    amounts = {usd: units for usd in IMPACT_USD if (units := _units_for(state, usd))}
    if missing := [f"${usd:,}" for usd in IMPACT_USD if usd not in amounts]:
        rpc.trace.add_warning(
            f"no sale of {', '.join(missing)} was quoted: the smallest unit of the token is worth more"
        )
    # nobody can sell more than the contracts' numbers hold, so larger amounts are not asked for
    possible = {usd: amount for usd, amount in amounts.items() if amount <= _max_amount(state.key)}
    received = await _quote_sales(rpc, chain_id, state, possible) if amounts else None
    if received is None:
        return []
    impossible = [
        usd for usd, units in received.items() if not _is_possible_quote(state, amounts[usd], units)
    ]
    if impossible:
        sizes = ", ".join(f"${usd:,}" for usd in impossible)
        rpc.trace.add_warning(f"the sale of {sizes} is left out: the node's quote of it cannot be true")
    return [
        PriceImpact(usd, loss_percent(received[usd], amount, state.spot) if received.get(usd) else None)
        for usd, amount in amounts.items()
        if usd not in impossible
    ]


def _is_possible_quote(state: PoolState, amount: int, received: int) -> bool:
    """False for more than the spot price pays, which no pool does, but for a move of it between two reads."""
    quote_units, token_units = state.spot
    return 100 * received * token_units <= (100 + MAX_QUOTE_GAIN) * amount * quote_units


def _units_for(state: PoolState, usd: int) -> int:
    """Return the base units of the token for US dollars; exactly, as a hostile pool's price may be tiny."""
    return int(Fraction(usd) / Fraction(state.price_usd or 1) * 10**state.token_decimals)


def _max_amount(key: PoolKey) -> int:
    return _MAX_V4_AMOUNT if key.kind == "v4" else MAX_BASE_UNITS


async def _quote_sales(
    rpc: Rpc, chain_id: int, state: PoolState, amounts: Mapping[int, int]
) -> dict[int, int] | None:
    """Return what the pool pays for each amount, by US dollars; 0 if it cannot take the amount.

    None, with a warning, if the exchange's quoter is not there to be asked.
    """
    if state.key.kind == "v2" and state.key.fee is not None:
        reserves = (state.token_reserve or 0, state.quote_reserve or 0)
        return {usd: quote_v2_sale(amount, *reserves, state.key.fee) for usd, amount in amounts.items()}
    exchange = next(each for each in EXCHANGES[well_known_chain(chain_id)] if each.name == state.key.exchange)
    calls = [_quote_call(exchange, state, amount) for amount in amounts.values()]
    answers = await rpc.call_contracts(chain_id, calls)
    if exchange.quoter and not any(answers) and not await _has_any_code(rpc, chain_id, [exchange.quoter]):
        rpc.trace.add_warning(f"sales could not be quoted: {exchange.name}'s quoter is not at this node")
        return None
    return {usd: decode_uint(answer) or 0 for usd, answer in zip(amounts, answers, strict=True)}


async def _has_any_code(rpc: Rpc, chain_id: int, addresses: Sequence[str]) -> bool:
    """True if the node has code at one of the addresses; also if there are some and it does not tell."""
    codes = await attempt(rpc.contract_codes, chain_id, addresses) if addresses else []
    return any(codes) if isinstance(codes, list) else True


def _quotes_for(exchange: Exchange, table: int) -> list[QuoteToken]:
    """Return the tokens against which an exchange's pools are looked up; v4 has the native coin too."""
    quotes = list(QUOTE_TOKENS[table])
    if exchange.kind == "v4":
        symbol = CHAIN_BY_ID[table].native
        quotes.insert(0, QuoteToken(NATIVE_CURRENCY, symbol, 18, is_native=True))
    return quotes


def _list_candidates(exchange: Exchange, token: str, quote: QuoteToken) -> list[_Candidate]:
    """Return the pools of a token that an exchange may have against one quote token."""
    pair = _encode_pair(*sorted((token, quote.address)))
    match exchange.kind:
        case "v4":
            return [_v4_candidate(exchange, quote, pair, tier) for tier in exchange.tiers]
        case "v3" | "slipstream":
            return [
                _Candidate(
                    exchange,
                    quote,
                    _lookup_call(exchange, pair, fee=fee, tick_spacing=spacing),
                    exchange.fee if fee is None else fee,
                    spacing,
                )
                for fee, spacing in exchange.tiers
            ]
        case "solidly":
            return [
                _Candidate(
                    exchange, quote, _lookup_call(exchange, pair, stable=stable), exchange.fee, stable=stable
                )
                for stable in (False, True)
            ]
        case _:
            return [_Candidate(exchange, quote, _lookup_call(exchange, pair), exchange.fee)]


def _lookup_call(
    exchange: Exchange,
    pair: bytes,
    *,
    fee: int | None = None,
    tick_spacing: int | None = None,
    stable: bool = False,
) -> ContractCall:
    """Return the call of a factory that gives the address of a pool; v4 has none."""
    match exchange.kind:
        case "algebra":
            data = function_selector("poolByPair(address,address)") + pair
        case "solidly":
            data = function_selector("getPool(address,address,bool)") + pair + _encode(stable)
        case "v3":
            data = function_selector("getPool(address,address,uint24)") + pair + _encode(fee or 0)
        case "slipstream":
            data = function_selector("getPool(address,address,int24)") + pair + _encode(tick_spacing or 0)
        case _:
            data = function_selector("getPair(address,address)") + pair
    return ContractCall(exchange.factory, data)


def _encode_pair(token0: str, token1: str) -> bytes:
    return encode_address(token0) + encode_address(token1)


def _v4_candidate(
    exchange: Exchange, quote: QuoteToken, pair: bytes, tier: tuple[int | None, int]
) -> _Candidate:
    """Return a v4 pool without hooks: its id is the hash of its key."""
    fee, spacing = tier
    pool_id = keccak(pair + _encode_v4_terms(fee, spacing, NATIVE_CURRENCY))
    call = ContractCall(exchange.factory, function_selector("getSlot0(bytes32)") + pool_id)
    return _Candidate(exchange, quote, call, fee, spacing, pool_id=pool_id)


def _existing_pool(candidate: _Candidate, token: str, answer: bytes | None) -> PoolKey | None:
    """Return the key of a pool that exists: with its address, or in v4 with a price; else None."""
    number = decode_uint(answer)
    if not number or not _is_lookup_answer(candidate, answer):
        return None
    is_v4 = candidate.exchange.kind == "v4"
    return _pool_key(candidate, token, candidate.exchange.manager or "" if is_v4 else f"0x{number:040x}")


def _pool_key(candidate: _Candidate, token: str, address: str) -> PoolKey:
    exchange, pool_id = candidate.exchange, candidate.pool_id
    token0, token1 = sorted((token, candidate.quote.address))
    return PoolKey(
        POOL_KINDS[exchange.kind],
        address,
        token0,
        token1,
        exchange.name,
        candidate.fee,
        tick_spacing=candidate.tick_spacing,
        pool_id="0x" + pool_id.hex() if pool_id else None,
        stable=candidate.stable,
    )


def _find_silent(candidates: Sequence[_Candidate], answers: Sequence[bytes | None]) -> set[Exchange]:
    """Return the exchanges whose factory answers no call: mostly the node has no code at its address."""
    return {each.exchange for each in candidates} - {
        candidate.exchange
        for candidate, answer in zip(candidates, answers, strict=True)
        if answer is not None
    }


def _count_unread(candidates: Sequence[_Candidate], answers: Sequence[bytes | None]) -> int:
    """Count the failed look-ups at factories that answer others: none refuses one of two different tokens."""
    present = {
        candidate.exchange.name
        for candidate, answer in zip(candidates, answers, strict=True)
        if decode_uint(answer) is not None
    }
    return sum(
        candidate.exchange.name in present and not _is_lookup_answer(candidate, answer)
        for candidate, answer in zip(candidates, answers, strict=True)
    )


def _is_lookup_answer(candidate: _Candidate, answer: bytes | None) -> bool:
    """True for an address, or in v4 for a price: what a look-up of a pool returns, also if there is none."""
    if candidate.exchange.kind == "v4":
        return is_possible_root(decode_uint(answer))
    return _parse_address(answer) is not None


def _facts_calls(table: int, token: str) -> list[ContractCall]:
    feeds = PRICE_FEEDS[table]
    latest = function_selector("latestRoundData()")
    calls = [decimals_call(token), symbol_call(token), ContractCall(feeds.native_usd, latest)]
    return [*calls, ContractCall(feeds.sequencer, latest)] if feeds.sequencer else calls


async def _confirm_decimals(rpc: Rpc, chain_id: int, token: str, answer: bytes | None) -> int:
    """Return the decimals of a token with pools.

    Raises NoData if the token itself has no usable ones, and ProviderFailure if the node does not tell.
    """
    decimals = await _confirm_answer(
        rpc, chain_id, decimals_call(token), answer, parse=decode_uint, subject="the decimals of the token"
    )
    if decimals is None or decimals > MAX_TOKEN_DECIMALS:
        raise NoData(f"{token} has pools, but no usable decimals, without which they have no price")
    return decimals


async def _confirm_answer(
    rpc: Rpc,
    chain_id: int,
    call: ContractCall,
    answer: bytes | None,
    *,
    parse: Callable[[bytes | None], T | None],
    subject: str,
) -> T | None:
    """Return a parsed answer, asked for once more if it is missing; None if the contract has none.

    Raises ProviderFailure if the node could not run the call: that is no fact about the contract, and nobody
    should pay for it.
    """
    if (parsed := parse(answer)) is not None:
        return parsed
    outcome = await rpc.call_outcome(chain_id, call)
    if not (outcome.succeeded or outcome.is_refusal):
        raise rpc.invalid_response(f"could not read {subject}")
    return parse(outcome.data) if outcome.succeeded else None


def _parse_facts(rpc: Rpc, table: int, decimals: int, answers: Sequence[bytes | None]) -> _TokenFacts:
    """Parse symbol and the price of the native coin."""
    symbol, feed, *sequencer = answers
    native_usd = _parse_feed(feed, PRICE_FEEDS[table].heartbeat)
    if native_usd is None:
        rpc.trace.add_warning("Chainlink's price of the native coin is missing or too old")
    elif sequencer and not _is_sequencer_up(sequencer[0]):
        native_usd = None
        rpc.trace.add_warning(
            "the chain's sequencer is down or has just restarted, so Chainlink's prices are not used"
        )
    return _TokenFacts(decimals, as_clean_name(decode_text(symbol)), native_usd)


def _parse_feed(answer: bytes | None, heartbeat: int) -> float | None:
    """Parse `latestRoundData` of a feed with 8 decimals; None if missing, not above 0, stale or future."""
    if answer is None or len(answer) < 5 * _WORD:
        return None
    price, updated_at = int.from_bytes(answer[32:64], "big", signed=True), _word(answer, 3)
    max_age = max(MAX_FEED_AGE * heartbeat, MIN_FEED_AGE)
    is_current = -MIN_FEED_AGE <= time.time() - updated_at <= max_age
    return price / 10**8 if price > 0 and is_current else None


def _is_sequencer_up(answer: bytes | None) -> bool:
    """True if the sequencer answers 0 (up) and has done so for longer than the grace period."""
    if answer is None or len(answer) < 5 * _WORD:
        return False
    # a feed that was never started answers 0 for everything
    started_at = _word(answer, 2)
    return _word(answer, 1) == 0 and started_at > 0 and time.time() - started_at > SEQUENCER_GRACE


async def _choose_pools(
    rpc: Rpc, chain_id: int, facts: _TokenFacts, keys: Sequence[tuple[_Candidate, PoolKey]]
) -> Sequence[tuple[_Candidate, PoolKey]]:
    """Return the pools to read: of more than MAX_POOLS contracts those that hold most dollars of the quote.

    Anyone can create empty pools to hide one behind them, so they are compared, which takes a round.
    """
    contracts = [each for each in keys if each[1].kind != "v4"]
    if len(contracts) <= MAX_POOLS:
        return keys
    rpc.trace.add_warning(
        f"{len(contracts) - MAX_POOLS} of {len(keys)} pools on the chain were not read: those with the least"
        " of the other token"
    )
    calls = [balance_of_call(candidate.quote.address, key.address) for candidate, key in contracts]
    balances = await rpc.call_contracts(chain_id, calls)
    depths = {
        key: (decode_uint(balance) or 0)
        * ((facts.native_usd or 1) if candidate.quote.is_native else 1)
        / 10**candidate.quote.decimals
        for (candidate, key), balance in zip(contracts, balances, strict=True)
    }
    deepest = set(sorted(depths, key=lambda key: -depths[key])[:MAX_POOLS])
    return [(candidate, key) for candidate, key in keys if key.kind == "v4" or key in deepest]


async def _read_states(
    rpc: Rpc, chain_id: int, token: str, facts: _TokenFacts, keys: Sequence[tuple[_Candidate, PoolKey]]
) -> list[PoolState]:
    """Read the state of pools in one round; pools that are empty or answer nonsense are left out.

    Raises ProviderFailure if the node told the state of none.
    """
    groups = [_state_calls(candidate, key, token) for candidate, key in keys]
    returned = iter(await rpc.call_contracts(chain_id, [call for group in groups for call in group]))
    answers = [[next(returned) for _ in group] for group in groups]
    told = [
        (candidate, key, group)
        for (candidate, key), group in zip(keys, answers, strict=True)
        if not _is_state_missing(key, group)
    ]
    states = [
        state
        for candidate, key, group in told
        if (state := _parse_state(candidate, key, token, facts, group))
    ]
    unread = len(keys) - len(told)
    if unread and not states:
        raise rpc.invalid_response("did not tell the state of the token's pools")
    if unread:
        rpc.trace.add_warning(f"the node did not tell the state of {unread} pools, which are left out")
    return states


def _is_state_missing(key: PoolKey, answers: Sequence[bytes | None]) -> bool:
    """True if a call failed, or gave the impossible, that no known pool and no quote token refuses."""
    if key.kind == "v4":
        root, liquidity = map(decode_uint, answers)
        return not is_possible_root(root) or liquidity is None or liquidity > _MAX_V4_AMOUNT
    _, quote_held, price_answer, *_ = answers
    return decode_uint(quote_held) is None or not _is_possible_price(key, price_answer)


def _is_possible_price(key: PoolKey, answer: bytes | None) -> bool:
    """True if the contract of a pool can hold the reserves, or the root of the price, that were read."""
    if answer is None or len(answer) < 2 * _WORD:
        return False
    first, second = _word(answer, 0), _word(answer, 1)
    if key.kind in ("v2", "solidly"):
        # the contracts multiply the reserves, and revert above 256 bits
        return first * second <= MAX_BASE_UNITS
    return is_possible_root(first)


def _state_calls(candidate: _Candidate, key: PoolKey, token: str) -> list[ContractCall]:
    """Return the calls for a pool's state: balances, then price or reserves, then its own fee."""
    if key.kind == "v4":
        pool_id = bytes.fromhex((key.pool_id or "0x")[2:])
        view = candidate.exchange.factory
        return [
            ContractCall(view, function_selector("getSlot0(bytes32)") + pool_id),
            ContractCall(view, function_selector("getLiquidity(bytes32)") + pool_id),
        ]
    balances = [balance_of_call(each, key.address) for each in (token, candidate.quote.address)]
    match candidate.exchange.kind:
        case "v2":
            return [*balances, ContractCall(key.address, function_selector("getReserves()"))]
        case "solidly":
            fee = encode_address(key.address) + _encode(key.stable)
            return [
                *balances,
                ContractCall(key.address, function_selector("getReserves()")),
                ContractCall(candidate.exchange.factory, function_selector("getFee(address,bool)") + fee),
            ]
        case "algebra":
            return [*balances, ContractCall(key.address, function_selector("globalState()"))]
        case _:
            return [
                *balances,
                ContractCall(key.address, function_selector("slot0()")),
                ContractCall(key.address, function_selector("fee()")),
            ]


def _parse_state(
    candidate: _Candidate, key: PoolKey, token: str, facts: _TokenFacts, answers: Sequence[bytes | None]
) -> PoolState | None:
    """Parse a pool's state, of which nothing is missing; None if the pool is empty."""
    token_first = key.token0 == token
    quote, quote_usd = candidate.quote, facts.native_usd if candidate.quote.is_native else 1.0
    state = PoolState(
        key,
        token,
        quote,
        token_decimals=facts.decimals,
        token_symbol=facts.symbol,
        spot=(0, 1),
        token_reserve=None,
        quote_reserve=None,
        quote_usd=quote_usd,
    )
    if key.kind == "v4":
        root, liquidity = (decode_uint(answer) for answer in answers)
        if not root or not liquidity:
            return None
        return replace(state, spot=price_of_sqrt(root, token_first=token_first))
    held, quote_held, price_answer, *fee_answer = answers
    state = replace(state, token_reserve=decode_uint(held), quote_reserve=decode_uint(quote_held))
    if fee_answer and key.fee is None and (fee := _parse_term(fee_answer[0])) is not None:
        # Solidly's factories give hundredths of a percent
        unit = FEE_UNIT // 10_000 if key.kind == "solidly" else 1
        state = replace(state, key=replace(key, fee=fee * unit))
    spot = _parse_spot(state, price_answer, token_first=token_first)
    if spot is None or not state.token_reserve or not state.quote_reserve:
        return None
    if key.kind in ("v2", "solidly") and price_answer is not None:
        # a token can tell a reader any balance; the pair trades with what it has recorded
        recorded = (_word(price_answer, 0), _word(price_answer, 1))
        first, second = recorded if token_first else recorded[::-1]
        state = replace(
            state,
            token_reserve=min(state.token_reserve, first),
            quote_reserve=min(state.quote_reserve, second),
        )
    return replace(state, spot=spot)


def _parse_spot(state: PoolState, answer: bytes | None, *, token_first: bool) -> tuple[int, int] | None:
    """Parse the spot price from `getReserves`, or from the first word of `slot0` or `globalState`."""
    if answer is None or len(answer) < 2 * _WORD:
        return None
    first, second = _word(answer, 0), _word(answer, 1)
    if state.key.kind not in ("v2", "solidly"):
        return price_of_sqrt(first, token_first=token_first) if first else None
    reserve, other = (first, second) if token_first else (second, first)
    if state.key.stable:
        return price_of_stable(reserve, other, state.token_decimals, state.quote.decimals)
    return (other, reserve) if reserve and other else None


def _quote_call(exchange: Exchange, state: PoolState, amount: int) -> ContractCall:
    """Return the call that quotes a sale: of the pool itself, or of its exchange's quoter."""
    key, token, quote = state.key, state.token, state.quote.address
    way = encode_address(token) + encode_address(quote)
    match exchange.kind:
        case "v2" | "solidly":
            arguments = _encode(amount) + encode_address(token)
            return ContractCall(key.address, function_selector("getAmountOut(uint256,address)") + arguments)
        case "algebra":
            signature = "quoteExactInputSingle(address,address,uint256,uint160)"
            arguments = way + _encode(amount) + _encode(0)
        case "v4":
            signature = "quoteExactInputSingle(((address,address,uint24,int24,address),bool,uint128,bytes))"
            zero_for_one = _encode(state.is_token_first)
            empty = _encode(8 * _WORD) + _encode(0)
            arguments = _encode(_WORD) + _encode_v4_key(key) + zero_for_one + _encode(amount) + empty
        case "slipstream":
            signature = "quoteExactInputSingle((address,address,uint256,int24,uint160))"
            arguments = way + _encode(amount) + _encode(key.tick_spacing or 0) + _encode(0)
        case "v3":
            signature = "quoteExactInputSingle((address,address,uint256,uint24,uint160))"
            arguments = way + _encode(amount) + _encode(key.fee or 0) + _encode(0)
    return ContractCall(exchange.quoter or key.address, function_selector(signature) + arguments)


def _encode_v4_key(key: PoolKey) -> bytes:
    """Encode a v4 PoolKey: currencies, fee, tick spacing and hooks."""
    terms = _encode_v4_terms(key.fee, key.tick_spacing or 0, key.hooks or NATIVE_CURRENCY)
    return encode_address(key.token0) + encode_address(key.token1) + terms


@lru_cache(maxsize=256)
def _encode_v4_terms(fee: int | None, tick_spacing: int, hooks: str) -> bytes:
    fee_word = _encode(_DYNAMIC_FEE if fee is None else fee)
    return fee_word + _encode(tick_spacing) + encode_address(hooks)


def _encode(number: int) -> bytes:
    """Encode a number as an ABI word."""
    return number.to_bytes(_WORD, "big")


def _word(answer: bytes, index: int) -> int:
    return int.from_bytes(answer[index * _WORD : (index + 1) * _WORD], "big")


def _parse_term(answer: bytes | None) -> int | None:
    """Parse a fee, a tick spacing or a flag; None if it is larger than any pool's."""
    number = decode_uint(answer)
    return number if number is not None and number <= _MAX_POOL_TERM else None


def _parse_address(answer: bytes | None) -> str | None:
    """Parse an address in lower case; None without one."""
    number = decode_uint(answer)
    return None if number is None or number >> 160 else f"0x{number:040x}"


class ChainIndex:
    """The chain itself, in the form of an exchange index; remembers the pools that it has read."""

    def __init__(self, rpc: Rpc) -> None:
        self.trace = rpc.trace
        self._rpc = rpc
        self._states: dict[str, PoolState] = {}

    def record_timeout(self) -> None:
        """Record that the node was too slow: a call that is cancelled records nothing."""
        self._rpc.record_status("timeout")

    def can_read(self, chain_id: int) -> bool:
        """True if a node of the chain is configured."""
        return self._rpc.is_configured and self._rpc.supports_chain(chain_id)

    async def pairs(self, chain_id: int, token: str) -> list[Pair]:
        """Return the token's pools as pairs. Raises NoData and ProviderFailure."""
        return [self._keep(state) for state in await find_pools(self._rpc, chain_id, token)]

    async def pair(self, chain_id: int, address: str) -> Pair:
        """Return the pool at an address as a pair. Raises NoData and ProviderFailure."""
        return self._keep(await read_pool(self._rpc, chain_id, address))

    async def impacts(self, chain_id: int, pair: Pair) -> list[PriceImpact]:
        """Quote sales of the base token in a pool that was read. Raises ProviderFailure."""
        return await quote_impacts(self._rpc, chain_id, self._states[pair.address])

    def _keep(self, state: PoolState) -> Pair:
        pair = build_pair(state)
        self._states[pair.address] = state
        return pair
