"""Price impact of sales in a pool, as the pool or its exchange's quoter quotes them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from fractions import Fraction
from functools import partial

from centgate.chains import well_known_chain
from centgate.coercion import MAX_BASE_UNITS
from centgate.crypto.abi import WORD, decode_uint, decode_word, encode_address, encode_uint, function_selector
from centgate.crypto.token.exchange_tables import EXCHANGES, Exchange
from centgate.crypto.token.pool_math import is_last_root, loss_percent, quote_v2_sale
from centgate.crypto.token.pools import MAX_V4_AMOUNT, PoolKey, PoolState, PriceImpact
from centgate.errors import NoData, ProviderFailure
from centgate.fallback import attempt
from centgate.lookups.contract_answers import confirm_answer, has_any_code
from centgate.lookups.pool_candidates import NATIVE_CURRENCY, encode_v4_terms
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import Rpc

IMPACT_USD = (100, 1_000, 10_000)
"""Sizes of the sales whose price impact is quoted, in US dollars."""
MAX_QUOTE_GAIN = 5
"""Percent by which a quote may exceed the spot price, which is read earlier."""


async def quote_impacts(rpc: Rpc, chain_id: int, state: PoolState) -> list[PriceImpact]:
    """Quote sales of the token in a pool, in one round, in two if answers are missing.

    [] without a price in dollars or a quoter.
    """
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
    left_out = {*impossible, *(possible.keys() - received.keys())}
    return [
        PriceImpact(usd, loss_percent(received[usd], amount, state.spot) if received.get(usd) else None)
        for usd, amount in amounts.items()
        if usd not in left_out
    ]


def _units_for(state: PoolState, usd: int) -> int:
    """Return the base units of the token for US dollars; exactly, as a hostile pool's price may be tiny."""
    return int(Fraction(usd) / Fraction(state.price_usd or 1) * 10**state.token_decimals)


def _max_amount(key: PoolKey) -> int:
    return MAX_V4_AMOUNT if key.kind == "v4" else MAX_BASE_UNITS


async def _quote_sales(
    rpc: Rpc, chain_id: int, state: PoolState, amounts: Mapping[int, int]
) -> dict[int, int] | None:
    """Return what the pool pays for each amount, by US dollars; 0 if it cannot take the amount.

    Amounts whose quote the node lost are left out, with a warning. None, also with one, if the exchange's
    quoter is not there to be asked.
    """
    if state.key.kind == "v2" and state.key.fee is not None:
        reserves = (state.token_reserve or 0, state.quote_reserve or 0)
        return {usd: quote_v2_sale(amount, *reserves, state.key.fee) for usd, amount in amounts.items()}
    exchange = next(each for each in EXCHANGES[well_known_chain(chain_id)] if each.name == state.key.exchange)
    calls = [_quote_call(exchange, state, amount) for amount in amounts.values()]
    answers = await rpc.call_contracts(chain_id, calls)
    if exchange.quoter and not any(answers) and not await has_any_code(rpc, chain_id, [exchange.quoter]):
        rpc.trace.add_warning(f"sales could not be quoted: {exchange.name}'s quoter is not at this node")
        return None
    parse = _parse_root_quote if exchange.kind in ("v3", "slipstream") else decode_uint
    confirm_quote = partial(confirm_answer, rpc, chain_id, parse=parse, subject="the quote of a sale")
    pairs = zip(calls, answers, strict=True)
    quotes = await asyncio.gather(*(attempt(confirm_quote, call, answer) for call, answer in pairs))
    received = {
        usd: quote or 0
        for usd, quote in zip(amounts, quotes, strict=True)
        if not isinstance(quote, NoData | ProviderFailure)
    }
    if lost := [f"${usd:,}" for usd in amounts if usd not in received]:
        rpc.trace.add_warning(f"the sale of {', '.join(lost)} is left out: the node did not quote it")
    return received


def _parse_root_quote(answer: bytes | None) -> int | None:
    """Parse what a pool pays and the price after the sale; 0 if its liquidity ends before all is sold.

    The quoter then gives what the pool pays for the part that it takes.
    """
    received = decode_uint(answer)
    if received is None or answer is None or len(answer) < 2 * WORD:
        return received
    return 0 if is_last_root(decode_word(answer, 1)) else received


def _quote_call(exchange: Exchange, state: PoolState, amount: int) -> ContractCall:
    """Return the call that quotes a sale: of the pool itself, or of its exchange's quoter."""
    key, token, quote = state.key, state.token, state.quote.address
    way = encode_address(token) + encode_address(quote)
    match exchange.kind:
        case "v2" | "solidly":
            arguments = encode_uint(amount) + encode_address(token)
            return ContractCall(key.address, function_selector("getAmountOut(uint256,address)") + arguments)
        case "algebra":
            signature = "quoteExactInputSingle(address,address,uint256,uint160)"
            arguments = way + encode_uint(amount) + encode_uint(0)
        case "v4":
            signature = "quoteExactInputSingle(((address,address,uint24,int24,address),bool,uint128,bytes))"
            zero_for_one = encode_uint(state.is_token_first)
            empty = encode_uint(8 * WORD) + encode_uint(0)
            arguments = encode_uint(WORD) + _encode_v4_key(key) + zero_for_one + encode_uint(amount) + empty
        case "slipstream":
            signature = "quoteExactInputSingle((address,address,uint256,int24,uint160))"
            arguments = way + encode_uint(amount) + encode_uint(key.tick_spacing or 0) + encode_uint(0)
        case "v3":
            signature = "quoteExactInputSingle((address,address,uint256,uint24,uint160))"
            arguments = way + encode_uint(amount) + encode_uint(key.fee or 0) + encode_uint(0)
    return ContractCall(exchange.quoter or key.address, function_selector(signature) + arguments)


def _encode_v4_key(key: PoolKey) -> bytes:
    """Encode a v4 PoolKey: currencies, fee, tick spacing and hooks."""
    terms = encode_v4_terms(key.fee, key.tick_spacing or 0, key.hooks or NATIVE_CURRENCY)
    return encode_address(key.token0) + encode_address(key.token1) + terms


def _is_possible_quote(state: PoolState, amount: int, received: int) -> bool:
    """False for more than the spot price pays, which no pool does, but for a move of it between two reads."""
    quote_units, token_units = state.spot
    return 100 * received * token_units <= (100 + MAX_QUOTE_GAIN) * amount * quote_units
