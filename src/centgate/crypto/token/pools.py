"""Pools of a token as the chain shows them. No I/O."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal

from msgspec import Struct

from centgate.coercion import as_price, as_usd
from centgate.crypto.token.pairs import Pair, PairToken, multiply_known

PoolKind = Literal["v2", "solidly", "v3", "algebra", "v4"]
"""Interface of a pool: Uniswap v2 and its forks; Aerodrome and Velodrome; Uniswap v3, PancakeSwap v3 and
Slipstream; Algebra; Uniswap v4."""
MAX_V4_AMOUNT = 2**128 - 1
"""Largest amount and liquidity in v4's contracts (uint128)."""
DYNAMIC_FEE = 0x800000
"""Fee in the key of a v4 pool whose hooks decide it."""


class PoolKey(Struct, frozen=True):
    """Identity of a pool: what a trade has to know of it. Addresses are in lower case."""

    kind: PoolKind
    address: str
    """The pool's contract; for v4 the PoolManager."""
    token0: str
    token1: str
    exchange: str
    """Name for people, such as `Uniswap v3`."""
    fee: int | None
    """Millionths of the amount (3000 is 0.3 %); None if the pool changes it, or if it could not be read."""
    tick_spacing: int | None = None
    stable: bool = False
    """True for a pool of two tokens of equal value (Solidly's `x³y + xy³` curve)."""
    hooks: str | None = None
    """Contract that v4 calls at each trade; None without one."""
    pool_id: str | None = None
    """v4's id of the pool, 32 bytes in hex; None where the pool is a contract."""


class QuoteToken(Struct, frozen=True):
    """Token with a known price in dollars, in which others are traded."""

    address: str
    """Lower case; the zero address is v4's native coin."""
    symbol: str
    decimals: int
    is_native: bool = False
    """True for the native coin and its wrapped form, priced by Chainlink; others are stablecoins."""


class PoolState(Struct, frozen=True):
    """State of a pool in one block, seen from one of its tokens. Amounts are in base units."""

    key: PoolKey
    token: str
    """The token that is priced, in lower case."""
    quote: QuoteToken
    """The pool's other token."""
    token_decimals: int
    token_symbol: str | None
    """Strangers' text, cleaned."""
    token_supply: int | None
    """Base units that exist."""
    spot: tuple[int, int]
    """Price without fee or impact, exactly: base units of the quote for base units of the token."""
    token_reserve: int | None
    """What the pool holds; None in v4, where one contract holds all pools' tokens."""
    quote_reserve: int | None
    quote_usd: float | None
    """US dollars for one whole quote token."""

    @property
    def is_token_first(self) -> bool:
        """True if the priced token is token0."""
        return self.key.token0 == self.token

    @property
    def is_fee_unread(self) -> bool:
        """True if the pool has a fee that could not be read; other kinds are not asked for theirs."""
        return self.key.fee is None and self.key.kind in ("solidly", "v3")

    @property
    def price_in_quote(self) -> float:
        """Whole quote tokens for one whole token."""
        quote_units, token_units = self.spot
        return float(Fraction(quote_units * 10**self.token_decimals, token_units * 10**self.quote.decimals))

    @property
    def price_usd(self) -> float | None:
        """US dollars for one whole token."""
        return multiply_known(self.price_in_quote, self.quote_usd)

    @property
    def token_side_usd(self) -> float | None:
        """US dollars of the token that the pool holds, at the spot price."""
        return multiply_known(_to_whole(self.token_reserve, self.token_decimals), self.price_usd)

    @property
    def quote_side_usd(self) -> float | None:
        """US dollars of the quote token that the pool holds."""
        return multiply_known(_to_whole(self.quote_reserve, self.quote.decimals), self.quote_usd)

    @property
    def liquidity_usd(self) -> float | None:
        """US dollars of both sides together."""
        sides = (self.token_side_usd, self.quote_side_usd)
        return None if None in sides else sum(side for side in sides if side is not None)

    @property
    def ranked_usd(self) -> float:
        """US dollars by which pools are compared: the token's side counts no more than the quote's.

        Anyone can fill a pool with tokens at a price of their own choice.
        """
        return min(self.liquidity_usd or 0, 2 * (self.quote_side_usd or 0))


class PriceImpact(Struct, frozen=True):
    """Loss of a sale of the token in a pool against the spot price."""

    usd: int
    """US dollars of the token, at the spot price."""
    percent: float | None
    """Percent less than at the spot price, with the pool's fee; None if the pool cannot take the amount."""


def build_pair(state: PoolState) -> Pair:
    """Convert a pool's state to a pair whose base is the priced token.

    The chain alone tells no volume, number of trades or time of creation.
    """
    return Pair(
        address=state.key.address if state.key.pool_id is None else state.key.pool_id,
        dex=state.key.exchange,
        base=PairToken(state.token, state.token_symbol),
        quote=PairToken(state.quote.address, state.quote.symbol),
        price_usd=as_price(state.price_usd),
        quote_price_usd=state.quote_usd,
        liquidity_usd=as_usd(state.liquidity_usd),
        base_side_usd=as_usd(state.token_side_usd),
        quote_side_usd=as_usd(state.quote_side_usd),
        volume24h_usd=None,
        fdv_usd=as_usd(multiply_known(_to_whole(state.token_supply, state.token_decimals), state.price_usd)),
        created_at=None,
        buys24h=None,
        sells24h=None,
        url=None,
        source="rpc",
        version=_parse_version(state.key.exchange),
        fee_percent=None if state.key.fee is None else state.key.fee / 10_000,
        base_amount=_to_whole(state.token_reserve, state.token_decimals),
        quote_amount=_to_whole(state.quote_reserve, state.quote.decimals),
    )


def _parse_version(exchange: str) -> str | None:
    """Return the version at the end of an exchange's name, such as `Uniswap v3`; None if it has none."""
    last_word = exchange.rpartition(" ")[2]
    return last_word if re.fullmatch("v[0-9]", last_word) else None


def _to_whole(units: int | None, decimals: int) -> float | None:
    return None if units is None else units / 10**decimals
