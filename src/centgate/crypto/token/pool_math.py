"""Prices and trades of pools, in exact integers. No I/O.

v2: https://docs.uniswap.org/contracts/v2/concepts/advanced-topics/pricing
v3 and v4: https://docs.uniswap.org/contracts/v3/reference/core/interfaces/pool/IUniswapV3PoolState
Solidly: the curve `x³y + xy³` of Aerodrome's and Velodrome's stable pools
"""

from __future__ import annotations

FEE_UNIT = 1_000_000
"""Fees are in millionths."""
Q192 = 2**192
_MIN_ROOT = 4_295_128_739
"""`sqrtPriceX96` at the lowest tick of v3 and v4, -887272 (TickMath of Uniswap)."""
_MAX_ROOT = 1_461_446_703_485_210_103_287_273_052_203_988_822_378_723_970_342
"""Bound above the prices of v3 and v4, at tick 887272."""
_STABLE_UNIT = 10**18
"""Decimals in which a stable pool counts both of its tokens."""


def quote_v2_sale(amount: int, reserve_in: int, reserve_out: int, fee: int) -> int:
    """Return what a constant-product pool pays for an amount, rounded down; the fee is in millionths."""
    if amount <= 0 or reserve_in <= 0 or reserve_out <= 0:
        return 0
    after_fee = amount * (FEE_UNIT - fee)
    return after_fee * reserve_out // (reserve_in * FEE_UNIT + after_fee)


def price_of_sqrt(sqrt_price: int, *, token_first: bool) -> tuple[int, int]:
    """Return the spot price of a v3 or v4 pool from `sqrtPriceX96`, the root of token1 for token0.

    The price is units of the other token for units of the priced one; `token_first`: it is token0.
    """
    square = sqrt_price * sqrt_price
    return (square, Q192) if token_first else (Q192, square)


def is_possible_root(sqrt_price: int | None) -> bool:
    """Return True for a `sqrtPriceX96` between the extreme ticks, or the 0 of a pool without a price yet."""
    return sqrt_price is not None and (sqrt_price == 0 or _MIN_ROOT <= sqrt_price < _MAX_ROOT)


def is_last_root(sqrt_price: int) -> bool:
    """Return True for the `sqrtPriceX96` at which a swap without a limit of its own ends."""
    return sqrt_price in (_MIN_ROOT + 1, _MAX_ROOT - 1)


def price_of_stable(
    reserve: int, other_reserve: int, decimals: int, other_decimals: int
) -> tuple[int, int] | None:
    """Return the spot price on Solidly's stable curve: units of the other token for units of this one.

    It is the curve's slope, `(3x²y + y³) / (x³ + 3xy²)` for reserves x and y of equal decimals. None if one
    side is empty.
    """
    x = reserve * _STABLE_UNIT // 10**decimals
    y = other_reserve * _STABLE_UNIT // 10**other_decimals
    if not x or not y:
        return None
    slope_up, slope_down = 3 * x * x * y + y**3, x**3 + 3 * x * y * y
    return slope_up * 10**other_decimals, slope_down * 10**decimals


def loss_percent(received: int, amount: int, spot: tuple[int, int]) -> float:
    """Return by how many percent a sale pays less than at the spot price; at least 0."""
    quote_units, token_units = spot
    expected = amount * quote_units
    return (
        max(0.0, round(float(100 * (expected - received * token_units) / expected), 4)) if expected else 0.0
    )
