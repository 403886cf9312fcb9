"""Prices in US dollars: how operators write them, and how they are shown.

A price is at most the largest that a mistyped decimal point should reach, and has no more decimals than the
dollar tokens it is paid in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

DEFAULT_PRICE = Decimal("0.01")
"""US dollars per call, unless the operator sets another price."""
MAX_PRICE = Decimal(100)
"""Highest price: more is probably an amount in base units or a missing decimal point."""
PRICE_DECIMALS = 6
"""Decimals of the dollar tokens, and so the most that a price may have."""


def parse_price(value: object) -> Decimal:
    """Parse a price such as `0.03`: decimal dollars without sign or exponent. Raises ValueError."""
    text = str(value).strip()
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,30})?", text, re.ASCII):
        raise ValueError(f"{text[:40]!r} is not a price: write decimal dollars, such as 0.03")
    price = Decimal(text)
    if price == 0:
        raise ValueError("a price must be more than 0")
    if price > MAX_PRICE:
        raise ValueError(f"{text} dollars are more than the highest price, {MAX_PRICE} dollars a call")
    if price != round(price, PRICE_DECIMALS):
        raise ValueError(f"{text} has more than {PRICE_DECIMALS} decimals, the most that the token can pay")
    return price.normalize() + Decimal(0)


def format_amount(dollars: Decimal) -> str:
    """Format dollars without a sign, with two decimals or as many as needed: `0.03`, `1.00`, `0.005`."""
    shortest = dollars.normalize()
    return f"{min(shortest, round(shortest, 2), key=_exponent):,f}"


def format_price(dollars: Decimal) -> str:
    """Format dollars with their sign: `$0.03`."""
    return f"${format_amount(dollars)}"


def format_price_range(prices: Iterable[Decimal]) -> str:
    """Format the prices of several services: `$0.01`, or `$0.01 to $0.03` if they differ."""
    values = sorted(set(prices))
    return " to ".join(format_price(each) for each in dict.fromkeys((values[0], values[-1])))


def describe_prices(prices: Iterable[Decimal]) -> str:
    """Describe the prices of several services in words, for a phrase that ends in "a call"."""
    values = set(prices)
    return "one cent" if values == {DEFAULT_PRICE} else format_price_range(values)


def _exponent(amount: Decimal) -> int:
    exponent = amount.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0
