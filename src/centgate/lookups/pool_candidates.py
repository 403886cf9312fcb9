"""Pools of a token that may exist: the calls that ask the exchanges' factories, and their answers. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from centgate.chains import CHAIN_BY_ID, ZERO_ADDRESS, well_known_chain
from centgate.crypto.abi import decode_uint, encode_address, encode_uint, function_selector
from centgate.crypto.token.exchange_tables import EXCHANGES, HOOKED_TIER, POOL_KINDS, QUOTE_TOKENS, Exchange
from centgate.crypto.token.pool_math import is_possible_root
from centgate.crypto.token.pools import DYNAMIC_FEE, PoolKey, QuoteToken
from centgate.lookups.contract_answers import parse_address
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.signing.evm import keccak

NATIVE_CURRENCY = ZERO_ADDRESS
"""The native coin in a v4 pool."""
_MAX_POOL_TERM = 2**23 - 1
"""Largest fee or tick spacing that every factory takes (uint24, int24): a larger one makes its call fail."""


class PoolCandidate(NamedTuple):
    """A pool that may exist, and the call that tells. Dozens are created per token, so it is a light one."""

    exchange: Exchange
    quote: QuoteToken
    call: ContractCall
    fee: int | None = None
    """Millionths; None if the pool or its hooks decide it."""
    tick_spacing: int | None = None
    stable: bool = False
    pool_id: bytes | None = None
    """Hash of the key of a v4 pool."""
    hooks: str | None = None


class FoundPool(NamedTuple):
    """A pool that exists, with its exchange."""

    exchange: Exchange
    quote: QuoteToken
    key: PoolKey

    @property
    def token(self) -> str:
        """The token that is priced in the quote token, in lower case."""
        return self.key.token0 if self.quote.address == self.key.token1 else self.key.token1


def list_candidates(chain_id: int, token: str) -> list[PoolCandidate]:
    """Return the pools that the exchanges of a chain may have of a token (lower case)."""
    return [
        candidate
        for exchange in EXCHANGES[well_known_chain(chain_id)]
        for quote in list_quote_tokens(exchange, chain_id)
        if quote.address != token
        for candidate in _list_by_quote(exchange, token, quote)
    ]


def list_quote_tokens(exchange: Exchange, chain_id: int) -> list[QuoteToken]:
    """Return the tokens against which an exchange's pools are looked up; v4 has the native coin too."""
    table = well_known_chain(chain_id)
    quotes = list(QUOTE_TOKENS[table])
    if exchange.kind == "v4":
        symbol = CHAIN_BY_ID[table].native
        quotes.insert(0, QuoteToken(NATIVE_CURRENCY, symbol, 18, is_native=True))
    return quotes


def _list_by_quote(exchange: Exchange, token: str, quote: QuoteToken) -> list[PoolCandidate]:
    """Return the pools of a token that an exchange may have against one quote token."""
    pair = _encode_pair(*sorted((token, quote.address)))
    match exchange.kind:
        case "v4":
            # launchpads use the wrapped coin
            hooked = () if quote.address == NATIVE_CURRENCY else exchange.hooks
            return [
                *(_v4_candidate(exchange, quote, pair, tier) for tier in exchange.tiers),
                *(_v4_candidate(exchange, quote, pair, HOOKED_TIER, each) for each in hooked),
            ]
        case "v3" | "slipstream":
            return [
                PoolCandidate(
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
                PoolCandidate(
                    exchange, quote, _lookup_call(exchange, pair, stable=stable), exchange.fee, stable=stable
                )
                for stable in (False, True)
            ]
        case _:
            return [PoolCandidate(exchange, quote, _lookup_call(exchange, pair), exchange.fee)]


def _v4_candidate(
    exchange: Exchange, quote: QuoteToken, pair: bytes, tier: tuple[int | None, int], hooks: str | None = None
) -> PoolCandidate:
    """Return a v4 pool: its id is the hash of its key."""
    fee, spacing = tier
    pool_id = keccak(pair + encode_v4_terms(fee, spacing, hooks or NATIVE_CURRENCY))
    call = ContractCall(exchange.factory, function_selector("getSlot0(bytes32)") + pool_id)
    return PoolCandidate(exchange, quote, call, fee, spacing, pool_id=pool_id, hooks=hooks)


def confirmation_call(pool: FoundPool) -> ContractCall:
    """Return the call of a pool's factory that gives its address, if it has such a pool; v4 has none."""
    key = pool.key
    pair = _encode_pair(key.token0, key.token1)
    return _lookup_call(pool.exchange, pair, fee=key.fee, tick_spacing=key.tick_spacing, stable=key.stable)


def _lookup_call(
    exchange: Exchange,
    pair: bytes,
    *,
    fee: int | None = None,
    tick_spacing: int | None = None,
    stable: bool = False,
) -> ContractCall:
    match exchange.kind:
        case "algebra":
            data = function_selector("poolByPair(address,address)") + pair
        case "solidly":
            data = function_selector("getPool(address,address,bool)") + pair + encode_uint(stable)
        case "v3":
            data = function_selector("getPool(address,address,uint24)") + pair + encode_uint(fee or 0)
        case "slipstream":
            data = function_selector("getPool(address,address,int24)") + pair + encode_uint(tick_spacing or 0)
        case _:
            data = function_selector("getPair(address,address)") + pair
    return ContractCall(exchange.factory, data)


def _encode_pair(token0: str, token1: str) -> bytes:
    return encode_address(token0) + encode_address(token1)


@lru_cache(maxsize=256)
def encode_v4_terms(fee: int | None, tick_spacing: int, hooks: str) -> bytes:
    """Encode the end of a v4 PoolKey: fee in millionths (None if the hooks decide it), spacing and hooks."""
    fee_word = encode_uint(DYNAMIC_FEE if fee is None else fee)
    return fee_word + encode_uint(tick_spacing) + encode_address(hooks)


def parse_lookup(candidate: PoolCandidate, token: str, answer: bytes | None) -> FoundPool | None:
    """Return a pool that exists: with its address, or in v4 with a price; else None."""
    number = decode_uint(answer)
    if not number or not _is_lookup_answer(candidate, answer):
        return None
    exchange, pool_id = candidate.exchange, candidate.pool_id
    token0, token1 = sorted((token, candidate.quote.address))
    key = PoolKey(
        POOL_KINDS[exchange.kind],
        exchange.manager or "" if exchange.kind == "v4" else f"0x{number:040x}",
        token0,
        token1,
        exchange.name,
        candidate.fee,
        tick_spacing=candidate.tick_spacing,
        hooks=candidate.hooks,
        pool_id="0x" + pool_id.hex() if pool_id else None,
        stable=candidate.stable,
    )
    return FoundPool(exchange, candidate.quote, key)


def find_silent_exchanges(
    candidates: Sequence[PoolCandidate], answers: Sequence[bytes | None]
) -> set[Exchange]:
    """Return the exchanges whose factory answers no call: mostly the node has no code at its address."""
    return {each.exchange for each in candidates} - {
        candidate.exchange
        for candidate, answer in zip(candidates, answers, strict=True)
        if answer is not None
    }


def count_unread_lookups(candidates: Sequence[PoolCandidate], answers: Sequence[bytes | None]) -> int:
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


def _is_lookup_answer(candidate: PoolCandidate, answer: bytes | None) -> bool:
    """True for an address, or in v4 for a price: what a look-up of a pool returns, also if there is none."""
    if candidate.exchange.kind == "v4":
        return is_possible_root(decode_uint(answer))
    return parse_address(answer) is not None


def parse_term(answer: bytes | None) -> int | None:
    """Parse a fee, a tick spacing or a flag; None if it is larger than any pool's."""
    number = decode_uint(answer)
    return number if number is not None and number <= _MAX_POOL_TERM else None
