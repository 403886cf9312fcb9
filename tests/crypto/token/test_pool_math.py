"""Prices and trades of pools, compared with exact references."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.chains import CHAINS
from centgate.crypto.token.exchange_tables import EXCHANGES, PRICE_FEEDS, QUOTE_TOKENS
from centgate.crypto.token.pool_math import loss_percent, price_of_sqrt, price_of_stable, quote_v2_sale
from centgate.crypto.wallet.known_tokens import find_known_token
from centgate.signing.assets import USDC

AMOUNTS = st.integers(1, 10**30)


@given(AMOUNTS, AMOUNTS, AMOUNTS, st.integers(0, 100_000))
def test_v2_sale_keeps_product(amount: int, reserve_in: int, reserve_out: int, fee: int) -> None:
    received = quote_v2_sale(amount, reserve_in, reserve_out, fee)

    after_fee = Fraction(amount * (10**6 - fee), 10**6)
    exact = after_fee * reserve_out / (reserve_in + after_fee)
    assert received <= exact < received + 1
    assert (reserve_in + amount) * (reserve_out - received) >= reserve_in * reserve_out


@given(st.integers(2**33, 2**158))
def test_prices_of_both_tokens_are_inverse(sqrt_price: int) -> None:
    first, second = price_of_sqrt(sqrt_price, token_first=True), price_of_sqrt(sqrt_price, token_first=False)

    assert Fraction(*first) * Fraction(*second) == 1
    assert Fraction(*first) == Fraction(sqrt_price, 2**96) ** 2


@given(st.integers(1, 10**15), st.integers(1, 10**15))
def test_stable_price_is_slope_of_curve(reserve: int, other: int) -> None:
    spot = price_of_stable(reserve, other, 6, 6)

    assert spot is not None
    x, y = Fraction(reserve), Fraction(other)
    assert Fraction(*spot) == (3 * x**2 * y + y**3) / (x**3 + 3 * x * y**2)


@pytest.mark.parametrize(("received", "expected"), [(100, 0.0), (90, 10.0), (0, 100.0), (120, 0.0)])
def test_loss_is_relative_to_spot_price(received: int, expected: float) -> None:
    assert loss_percent(received, 200, (1, 2)) == expected


def test_quote_tokens_are_known_tokens() -> None:
    for chain, quotes in QUOTE_TOKENS.items():
        for quote in quotes:
            known = find_known_token(chain, quote.address)
            assert known is not None, quote
            assert known.decimals == quote.decimals
        assert quotes[0].is_native
        assert sum(quote.is_native for quote in quotes) == 1


def test_every_chain_has_exchanges_feeds_and_usdc() -> None:
    for chain in CHAINS:
        assert EXCHANGES[chain.id]
        assert PRICE_FEEDS[chain.id]
        usdc = USDC.get(f"eip155:{chain.id}")
        assert usdc is None or usdc.address.lower() in {quote.address for quote in QUOTE_TOKENS[chain.id]}


def test_addresses_are_valid_and_lower_case() -> None:
    addresses = [
        address
        for exchanges in EXCHANGES.values()
        for each in exchanges
        for address in (each.factory, each.quoter, each.manager)
        if address
    ]

    assert all(len(address) == 42 and address == address.lower() for address in addresses)
    assert all(int(address, 16) for address in addresses)
