"""States of pools: which of very many are read, the calls for reserves, price and fee, and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from centgate.coercion import MAX_BASE_UNITS
from centgate.crypto.abi import WORD, decode_uint, decode_word, encode_address, encode_uint, function_selector
from centgate.crypto.token.pool_math import FEE_UNIT, is_possible_root, price_of_sqrt, price_of_stable
from centgate.crypto.token.pools import MAX_V4_AMOUNT, PoolKey, PoolState
from centgate.lookups.erc20 import balance_of_call
from centgate.lookups.pool_candidates import FoundPool, parse_term
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import Rpc

MAX_POOLS = 24
"""Pools with a contract of their own whose state is read; those of v4 are all in one."""


class TokenFacts(Struct, frozen=True):
    """Facts of the token that the first round reads besides the pools."""

    decimals: int
    symbol: str | None
    supply: int | None
    """Base units that exist; None if the token does not tell."""
    native_usd: float | None
    """US dollars for the native coin."""


async def choose_pools(
    rpc: Rpc, chain_id: int, pools: Sequence[FoundPool], native_usd: float | None
) -> Sequence[FoundPool]:
    """Return the pools to read: of more than MAX_POOLS contracts those that hold most dollars of the quote.

    Anyone can create empty pools to hide one behind them, so they are compared, which takes a round.
    """
    contracts = [pool for pool in pools if pool.key.kind != "v4"]
    if len(contracts) <= MAX_POOLS:
        return pools
    rpc.trace.add_warning(
        f"{len(contracts) - MAX_POOLS} of {len(pools)} pools on the chain were not read: those with the least"
        " of the other token"
    )
    calls = [balance_of_call(pool.quote.address, pool.key.address) for pool in contracts]
    balances = await rpc.call_contracts(chain_id, calls)
    depths = {
        pool.key: _measure_depth(pool, decode_uint(balance), native_usd)
        for pool, balance in zip(contracts, balances, strict=True)
    }
    deepest = set(sorted(depths, key=lambda key: -depths[key])[:MAX_POOLS])
    return [pool for pool in pools if pool.key.kind == "v4" or pool.key in deepest]


def _measure_depth(pool: FoundPool, balance: int | None, native_usd: float | None) -> float:
    """Return what a pool holds of its quote token in US dollars, or in coins if these have no known price."""
    if balance is None:
        return inf  # the node lost it, and the pool may be the deepest
    usd = native_usd or 1 if pool.quote.is_native else 1
    return balance * usd / 10**pool.quote.decimals


async def read_states(
    rpc: Rpc, chain_id: int, pools: Sequence[FoundPool], facts: TokenFacts
) -> list[PoolState]:
    """Read the state of pools in one round; pools that are empty or answer nonsense are left out.

    Raises ProviderFailure if the node told the state of none.
    """
    groups = [_state_calls(pool) for pool in pools]
    returned = iter(await rpc.call_contracts(chain_id, [call for group in groups for call in group]))
    answers = [[next(returned) for _ in group] for group in groups]
    told = [
        (pool, group)
        for pool, group in zip(pools, answers, strict=True)
        if not _is_state_missing(pool.key, group)
    ]
    states = [state for pool, group in told if (state := _parse_state(pool, facts, group))]
    unread = len(pools) - len(told)
    if unread and not states:
        raise rpc.invalid_response("did not tell the state of the token's pools")
    if unread:
        rpc.trace.add_warning(f"the node did not tell the state of {unread} pools, which are left out")
    return states


def _state_calls(pool: FoundPool) -> list[ContractCall]:
    """Return the calls for a pool's state: balances, then price or reserves, then its own fee."""
    exchange, quote, key = pool
    if key.kind == "v4":
        pool_id = bytes.fromhex((key.pool_id or "0x")[2:])
        view = exchange.factory
        return [
            ContractCall(view, function_selector("getSlot0(bytes32)") + pool_id),
            ContractCall(view, function_selector("getLiquidity(bytes32)") + pool_id),
        ]
    balances = [balance_of_call(each, key.address) for each in (pool.token, quote.address)]
    match exchange.kind:
        case "v2":
            return [*balances, ContractCall(key.address, function_selector("getReserves()"))]
        case "solidly":
            fee = encode_address(key.address) + encode_uint(key.stable)
            return [
                *balances,
                ContractCall(key.address, function_selector("getReserves()")),
                ContractCall(exchange.factory, function_selector("getFee(address,bool)") + fee),
            ]
        case "algebra":
            return [*balances, ContractCall(key.address, function_selector("globalState()"))]
        case _:
            return [
                *balances,
                ContractCall(key.address, function_selector("slot0()")),
                ContractCall(key.address, function_selector("fee()")),
            ]


def _is_state_missing(key: PoolKey, answers: Sequence[bytes | None]) -> bool:
    """True if a call failed, or gave the impossible, that no known pool and no quote token refuses."""
    if key.kind == "v4":
        root, liquidity = map(decode_uint, answers)
        return not is_possible_root(root) or liquidity is None or liquidity > MAX_V4_AMOUNT
    _, quote_held, price_answer, *_ = answers
    return decode_uint(quote_held) is None or not _is_possible_price(key, price_answer)


def _is_possible_price(key: PoolKey, answer: bytes | None) -> bool:
    """True if the contract of a pool can hold the reserves, or the root of the price, that were read."""
    if answer is None or len(answer) < 2 * WORD:
        return False
    first, second = decode_word(answer, 0), decode_word(answer, 1)
    if key.kind in ("v2", "solidly"):
        # the contracts multiply the reserves, and revert above 256 bits
        return first * second <= MAX_BASE_UNITS
    return is_possible_root(first)


def _parse_state(pool: FoundPool, facts: TokenFacts, answers: Sequence[bytes | None]) -> PoolState | None:
    """Parse a pool's state, of which nothing is missing; None if the pool is empty."""
    key, quote = pool.key, pool.quote
    reserves: tuple[int | None, int | None] | None
    if key.kind == "v4":
        root, liquidity = map(decode_uint, answers)
        spot = price_of_sqrt(root, token_first=key.token0 == pool.token) if root and liquidity else None
        reserves = (None, None)
    else:
        held, quote_held, price_answer, *fee_answers = answers
        key = _add_fee(key, fee_answers)
        spot = _parse_spot(pool, facts, price_answer)
        reserves = _parse_reserves(pool, held, quote_held, price_answer)
    if spot is None or reserves is None:
        return None
    return PoolState(
        key,
        pool.token,
        quote,
        token_decimals=facts.decimals,
        token_symbol=facts.symbol,
        token_supply=facts.supply,
        spot=spot,
        token_reserve=reserves[0],
        quote_reserve=reserves[1],
        quote_usd=facts.native_usd if quote.is_native else 1.0,
    )


def _add_fee(key: PoolKey, answers: Sequence[bytes | None]) -> PoolKey:
    """Add the fee that a pool or its factory tells, if its kind has none of its own."""
    fee = parse_term(answers[0]) if answers and key.fee is None else None
    if fee is None:
        return key
    # Solidly's factories give hundredths of a percent
    return replace(key, fee=fee * (FEE_UNIT // 10_000 if key.kind == "solidly" else 1))


def _parse_spot(pool: FoundPool, facts: TokenFacts, answer: bytes | None) -> tuple[int, int] | None:
    """Parse the spot price from `getReserves`, or from the first word of `slot0` or `globalState`."""
    if answer is None or len(answer) < 2 * WORD:
        return None
    if pool.key.kind not in ("v2", "solidly"):
        root = decode_word(answer, 0)
        return price_of_sqrt(root, token_first=pool.key.token0 == pool.token) if root else None
    reserve, other = _decode_recorded(pool, answer)
    if pool.key.stable:
        return price_of_stable(reserve, other, facts.decimals, pool.quote.decimals)
    return (other, reserve) if reserve and other else None


def _parse_reserves(
    pool: FoundPool, held: bytes | None, quote_held: bytes | None, answer: bytes | None
) -> tuple[int, int] | None:
    """Parse the base units of the token and of the quote token in a pool; None if it lacks one of them."""
    reserve, quote_reserve = decode_uint(held), decode_uint(quote_held)
    if not reserve or not quote_reserve:
        return None
    if pool.key.kind not in ("v2", "solidly") or answer is None:
        return reserve, quote_reserve
    # a token can tell a reader any balance; the pair trades with what it has recorded
    recorded, quote_recorded = _decode_recorded(pool, answer)
    return min(reserve, recorded), min(quote_reserve, quote_recorded)


def _decode_recorded(pool: FoundPool, answer: bytes) -> tuple[int, int]:
    """Decode `getReserves`: base units of the token, then of the quote token."""
    first, second = decode_word(answer, 0), decode_word(answer, 1)
    return (first, second) if pool.key.token0 == pool.token else (second, first)
