"""Pools of a token, read from the factories of the exchanges, with prices in dollars by Chainlink.

Three rounds of calls: which pools exist, their state, and quotes for the price impact; one more if there are
very many pools. Pools are looked up against the chain's quote tokens. v4 has no list of pools, so they are
looked up by the hash of their key: those with the usual fees and no hooks, and those with a launchpad's
hooks.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial

from msgspec import Struct

from centgate.chains import CHAIN_BY_ID, well_known_chain
from centgate.coercion import as_clean_name
from centgate.crypto.abi import decode_text, decode_uint, function_selector
from centgate.crypto.token.exchange_tables import EXCHANGES, POOL_KINDS, Exchange
from centgate.crypto.token.identity import MAX_DECIMALS
from centgate.crypto.token.pairs import Pair
from centgate.crypto.token.pools import PoolKey, PoolState, PriceImpact, build_pair
from centgate.errors import NoData
from centgate.lookups.chainlink import native_price_calls, parse_native_price
from centgate.lookups.contract_answers import confirm_answer, has_any_code, parse_address
from centgate.lookups.erc20 import decimals_call, symbol_call, total_supply_call
from centgate.lookups.pool_candidates import (
    FoundPool,
    confirmation_call,
    count_unread_lookups,
    find_silent_exchanges,
    list_candidates,
    list_quote_tokens,
    parse_lookup,
    parse_term,
)
from centgate.lookups.pool_states import TokenFacts, choose_pools, read_states
from centgate.lookups.price_impact import quote_impacts
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import Rpc

_POOL_TERMS = {"v3": "fee()", "slipstream": "tickSpacing()", "solidly": "stable()"}
"""Function of a pool that gives the term by which its factory finds it, by the kind of the exchange.

Pools of other kinds may have a function of that name with another meaning.
"""


class PoolList(Struct, frozen=True):
    """Pools of a token, in no order, and the answers about its facts that came with them."""

    pools: Sequence[FoundPool]
    answers: Sequence[bytes | None]


async def find_pools(rpc: Rpc, chain_id: int, token: str) -> list[PoolState]:
    """Return the token's (lower case) pools, deepest first; those of unknown depth, as in v4, last.

    Raises NoData if there is none, or if the token has no decimals, and ProviderFailure.
    """
    listed = await list_token_pools(rpc, chain_id, token)
    facts = await confirm_facts(rpc, chain_id, token, listed)
    return await read_listed_pools(rpc, chain_id, token, listed.pools, facts)


async def list_token_pools(rpc: Rpc, chain_id: int, token: str) -> PoolList:
    """Return the pools of a token (lower case). Raises NoData if there is none, and ProviderFailure."""
    candidates = list_candidates(chain_id, token)
    facts_calls = _facts_calls(chain_id, token)
    results = await rpc.call_contracts(chain_id, [*facts_calls, *(each.call for each in candidates)])
    answers = results[len(facts_calls) :]
    silent = find_silent_exchanges(candidates, answers) if chain_id in CHAIN_BY_ID else set[Exchange]()
    if silent:
        names = ", ".join(sorted(each.name for each in silent))
        rpc.trace.add_warning(f"not at this node, so their pools are left out: {names}")
    unread = count_unread_lookups(candidates, answers)
    if unread:
        rpc.trace.add_warning(
            f"the node did not tell whether {unread} pools of the token exist, which are left out"
        )
    pools = [
        pool
        for candidate, answer in zip(candidates, answers, strict=True)
        if (pool := parse_lookup(candidate, token, answer))
    ]
    if not pools and (unread or await has_any_code(rpc, chain_id, [each.factory for each in silent])):
        raise rpc.invalid_response("did not tell which pools the token has")
    if not pools:
        raise NoData(f"the chain's exchanges have no pool of {token} against a token with a known price")
    return PoolList(pools, results[: len(facts_calls)])


async def read_listed_pools(
    rpc: Rpc, chain_id: int, token: str, pools: Sequence[FoundPool], facts: TokenFacts
) -> list[PoolState]:
    """Return the state of pools, deepest first. Raises NoData if all are empty, and ProviderFailure."""
    chosen = await choose_pools(rpc, chain_id, pools, facts.native_usd)
    states = await read_states(rpc, chain_id, chosen, facts)
    if not states:
        raise NoData(f"all on-chain pools of {token} are empty")
    return sorted(states, key=lambda state: -state.ranked_usd)


async def read_pool(rpc: Rpc, chain_id: int, address: str) -> PoolState:
    """Return the state of the pool at an address (lower case): the price of its token in its quote token.

    Raises NoData if it is no pool of a known exchange with a quote token, and ProviderFailure.
    """
    pool = await _identify_pool(rpc, chain_id, address)
    calls = [confirmation_call(pool), *_facts_calls(chain_id, pool.token)]
    known, *answers = await rpc.call_contracts(chain_id, calls)
    # anyone can deploy a contract that names this factory, so the factory has to name the pool
    confirmed = parse_address(known)
    if confirmed is None:
        raise rpc.invalid_response(f"did not tell whether {pool.exchange.name} has this pool")
    if confirmed != address:
        raise NoData(
            f"the contract at {address} names the factory of {pool.exchange.name}, which has no such pool"
        )
    facts = await confirm_facts(rpc, chain_id, pool.token, PoolList([pool], answers))
    states = await read_states(rpc, chain_id, [pool], facts)
    if not states:
        raise NoData(f"the pool at {address} holds nothing")
    return states[0]


async def _identify_pool(rpc: Rpc, chain_id: int, address: str) -> FoundPool:
    """Return what the contract at an address says of itself, if that is a pool of a known exchange.

    Raises NoData if it is none, or has no quote token, and ProviderFailure.
    """
    no_pool = NoData(f"no pool of a known exchange against a token with a known price at {address}")
    reads = ("factory()", "token0()", "token1()", *_POOL_TERMS.values())
    calls = [ContractCall(address, function_selector(signature)) for signature in reads]
    answers = await rpc.call_contracts(chain_id, calls)
    confirm_address = partial(confirm_answer, rpc, chain_id, parse=parse_address, subject="the pool")
    factory = await confirm_address(calls[0], answers[0])
    exchanges = EXCHANGES[well_known_chain(chain_id)]
    exchange = next((each for each in exchanges if each.factory == factory and each.kind != "v4"), None)
    if exchange is None:
        raise no_pool
    token0, token1 = [await confirm_address(calls[number], answers[number]) for number in (1, 2)]
    quotes = {quote.address: quote for quote in list_quote_tokens(exchange, chain_id)}
    quote = quotes.get(token1 or "") or quotes.get(token0 or "")
    if quote is None or token0 is None or token1 is None:
        raise no_pool
    terms = {
        kind: await confirm_answer(rpc, chain_id, call, answer, parse=parse_term, subject="the pool")
        for kind, call, answer in zip(_POOL_TERMS, calls[3:], answers[3:], strict=True)
        if kind == exchange.kind
    }
    key = PoolKey(
        POOL_KINDS[exchange.kind],
        address,
        token0,
        token1,
        exchange.name,
        exchange.fee if exchange.kind == "v2" else terms.get("v3"),
        tick_spacing=terms.get("slipstream"),
        stable=bool(terms.get("solidly")),
    )
    return FoundPool(exchange, quote, key)


def _facts_calls(chain_id: int, token: str) -> list[ContractCall]:
    return [decimals_call(token), symbol_call(token), total_supply_call(token), *native_price_calls(chain_id)]


async def confirm_facts(rpc: Rpc, chain_id: int, token: str, listed: PoolList) -> TokenFacts:
    """Return the facts of a token with pools.

    Raises NoData if the token itself has no usable decimals, and ProviderFailure if the node does not tell.
    """
    answer, symbol, supply, *prices = listed.answers
    decimals = await confirm_answer(
        rpc, chain_id, decimals_call(token), answer, parse=decode_uint, subject="the decimals of the token"
    )
    if decimals is None or decimals > MAX_DECIMALS:
        raise NoData(f"{token} has pools, but no usable decimals, without which they have no price")
    is_native_priced = any(pool.quote.is_native for pool in listed.pools)
    native_price = parse_native_price(rpc.trace, chain_id, prices) if is_native_priced else None
    native_usd = native_price.usd if native_price else None
    return TokenFacts(decimals, as_clean_name(decode_text(symbol)), decode_uint(supply), native_usd)


class ChainIndex:
    """The chain itself, in the form of an exchange index; remembers the pools that it has read."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc
        self._states: dict[str, PoolState] = {}

    def limit_time(self, deadline: float) -> AbstractAsyncContextManager[None]:
        """Cancel the block at a time of the event loop, as `Provider.limit_time` does."""
        return self._rpc.limit_time(deadline)

    def is_available(self, chain_id: int) -> bool:
        """True if a node of the chain is configured."""
        return self._rpc.is_available(chain_id)

    async def pairs(self, chain_id: int, token: str) -> list[Pair]:
        """Return the token's pools as pairs. Raises NoData and ProviderFailure."""
        return [self._keep(state) for state in await find_pools(self._rpc, chain_id, token)]

    async def pair(self, chain_id: int, address: str) -> Pair:
        """Return the pool at an address as a pair. Raises NoData and ProviderFailure."""
        return self._keep(await read_pool(self._rpc, chain_id, address))

    def is_fee_unread(self, pair: Pair) -> bool:
        """True if the fee of a pool that was read is missing although pools of its kind tell it."""
        return self._states[pair.address].is_fee_unread

    async def impacts(self, chain_id: int, pair: Pair) -> list[PriceImpact]:
        """Quote sales of the base token in a pool that was read. Raises ProviderFailure."""
        return await quote_impacts(self._rpc, chain_id, self._states[pair.address])

    def _keep(self, state: PoolState) -> Pair:
        pair = build_pair(state)
        self._states[pair.address] = state
        return pair
