"""Values of tokens in US dollars, and the order of holdings and transfers."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from centgate.coercion import (
    MAX_BASE_UNITS,
    MAX_USD,
    as_base_units,
    as_block_number,
    as_hash,
    as_price,
    parse_iso_time,
)
from centgate.coercion import as_decimals as token_decimals
from centgate.crypto.wallet.valuation import (
    PriceQuote,
    WalletTotal,
    add_up,
    choose_quote,
    rank_holdings,
    value_coin,
    value_holding,
)
from centgate.crypto.wallet.wallets import (
    Holding,
    NativeCoin,
    Price,
    Token,
    Transfer,
    sort_newest_first,
    to_finite_float,
    to_whole_units,
)
from centgate.timestamps import format_timestamp

often = settings(deadline=None, database=None)
anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())


def build_price(usd: float, confidence: float | None = 0.99, decimals: int | None = None) -> Price:
    return Price(usd, confidence, "X", decimals, None)


def build_holding(symbol: str | None, amount: int = 10**18, decimals: int | None = 18) -> Holding:
    return Holding(
        Token("0x" + (symbol or "0").encode().hex().rjust(40, "0"), symbol, None, decimals), amount
    )


@pytest.mark.parametrize(
    ("own", "llama", "expected"),
    [
        (None, None, None),
        (2.0, None, PriceQuote(2.0, None, "blockscout")),
        (2.0, build_price(3), PriceQuote(3, 0.99, "defillama")),
        (2.0, build_price(3, None), PriceQuote(2.0, None, "blockscout")),
        (None, build_price(3, None), PriceQuote(3, None, "defillama")),
        (2.0, build_price(3, 0.9), PriceQuote(3, 0.9, "defillama")),
        (2.0, build_price(3, 0.89), PriceQuote(2.0, None, "blockscout")),
        (None, build_price(3, 0.89), PriceQuote(3, 0.89, "defillama")),
        (2.0, Price(3, None, "X", 18, None, "chainlink"), PriceQuote(3, None, "chainlink")),
        (2.0, Price(1, None, "X", 18, None, "peg"), PriceQuote(2.0, None, "blockscout")),
        (None, Price(1, None, "X", 18, None, "peg"), PriceQuote(1, None, "peg")),
    ],
)
def test_doubtful_or_assumed_price_yields_to_that_of_explorer(
    own: float | None, llama: Price | None, expected: PriceQuote | None
) -> None:
    assert choose_quote(own, llama) == expected


def test_missing_decimals_are_those_of_price() -> None:
    found = value_holding(build_holding("X", 5 * 10**6, None), build_price(2, decimals=6))

    assert (found.decimals, found.usd) == (6, 10)


def test_decimals_of_token_are_preferred() -> None:
    assert value_holding(build_holding("X", 10**18, 18), build_price(2, decimals=6)).usd == 2


def test_value_is_unknown_without_decimals() -> None:
    found = value_holding(build_holding("X", 10**18, None), build_price(2))

    assert (found.quote, found.usd) == (None, None)


def test_confident_values_precede_doubtful_and_unpriced() -> None:
    rows = [
        value_holding(build_holding("b"), None),
        value_holding(build_holding("dear"), build_price(10**9, 0.5)),
        value_holding(build_holding(None), None),
        value_holding(build_holding("A"), None),
        value_holding(build_holding("cheap"), build_price(0.01)),
        value_holding(build_holding("rich"), build_price(50)),
    ]

    order = [each.holding.token.symbol for each in rank_holdings(rows)]

    assert order == ["rich", "cheap", "dear", "A", "b", None]
    assert [each.holding.token.symbol for each in rank_holdings(reversed(rows))] == order


def test_native_coin_has_18_decimals() -> None:
    assert value_coin(NativeCoin(125 * 10**16), build_price(3000)) == (
        PriceQuote(3000, 0.99, "defillama"),
        3750,
    )
    assert value_coin(NativeCoin(10**18, 7.5), None) == (PriceQuote(7.5, None, "blockscout"), 7.5)
    assert value_coin(NativeCoin(10**18), None) is None
    assert value_coin(NativeCoin(None), build_price(3000)) is None


def test_amounts_are_scaled_exactly() -> None:
    assert str(to_whole_units(MAX_BASE_UNITS, 18)).replace(".", "") == str(MAX_BASE_UNITS)
    assert str(to_whole_units(1, 255)) == "1E-255"
    assert to_whole_units(5, 0) == 5
    assert to_whole_units(None, 18) is to_whole_units(5, None) is None


@often
@given(
    st.integers(0, MAX_BASE_UNITS),
    st.none() | st.integers(0, 255),
    st.floats(min_value=1e-300, allow_infinity=False),
)
def test_value_beyond_all_wealth_is_unknown(amount: int, decimals: int | None, usd: float) -> None:
    found = value_holding(build_holding("X", amount, decimals), build_price(usd))

    assert found.usd is None or found.usd <= MAX_USD
    units = to_finite_float(to_whole_units(amount, decimals))
    assert units is None or math.isfinite(units)


@often
@given(anything)
def test_numbers_of_sources_are_parsed_or_unknown(value: object) -> None:
    amount, decimals, usd, at = (
        as_base_units(value),
        token_decimals(value),
        as_price(value),
        parse_iso_time(value),
    )

    assert amount is None or 0 <= amount <= MAX_BASE_UNITS
    assert decimals is None or 0 <= decimals <= 255
    assert usd is None or 0 < usd < math.inf
    assert at is None or at.tzinfo


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        ("0x", None),
        ("", None),
        ("0x0", 0),
        ("12", 12),
        ("0x" + "f" * 64, MAX_BASE_UNITS),
        ("0x1" + "0" * 64, None),
        ("1e18", None),
        ("-1", None),
        (True, None),
        (1.0, None),
    ],
)
def test_amounts_are_parsed_in_every_format(value: object, amount: int | None) -> None:
    assert as_base_units(value) == amount


@pytest.mark.parametrize(
    "value", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-11-02T10:15:47", "yesterday", 7]
)
def test_impossible_time_is_unknown(value: object) -> None:
    assert parse_iso_time(value) is None


def build_transfer(name: str, block: int | None, second: int | None, place: int = 0) -> Transfer:
    at = None if second is None else datetime(2026, 11, 2, 10, 0, second, tzinfo=UTC)
    return Transfer(name, "0x", "0x", None, 1, block, at, place)


def test_latest_transfer_is_first_and_block_replaces_missing_time() -> None:
    rows = [
        build_transfer("oldest of all", 1, None),
        build_transfer("first", 5, 10),
        build_transfer("second", 6, None),
        build_transfer("third", 6, None, place=3),
        build_transfer("by time", None, 15),
        build_transfer("fourth", 7, 20),
        build_transfer("newest", 9, None),
        build_transfer("unknown", None, None),
    ]
    newest = ["newest", "fourth", "by time", "third", "second", "first", "oldest of all", "unknown"]

    assert [each.transaction for each in sort_newest_first(rows)] == newest
    assert [each.transaction for each in sort_newest_first(rows[::-1])] == newest


@often
@given(anything)
def test_transaction_and_block_are_parsed_or_unknown(value: object) -> None:
    number = as_block_number(value)

    assert number is None or 0 <= number < 2**53
    assert as_hash(value) is None
    assert as_hash("0x" + "AB" * 32) == "0x" + "ab" * 32
    assert as_hash("0x" + "ab" * 32 + "\n") is None


def test_year_before_1000_has_four_digits() -> None:
    assert format_timestamp(datetime(999, 1, 2, 3, 4, 5, 999_999, UTC)) == "0999-01-02T03:04:05Z"


SURE, VAGUE = PriceQuote(2.0, 0.99, "defillama"), PriceQuote(9.0, 0.5, "defillama")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], WalletTotal(0, 0, 0)),
        ([None], WalletTotal(None, 0, 1)),
        ([(VAGUE, 9.0)], WalletTotal(None, 9, 0)),
        ([(SURE, 0.0), None], WalletTotal(0, 0, 1)),
        ([(SURE, 2.0), (VAGUE, 9.0), (SURE, 3.0), None, (VAGUE, 1.0)], WalletTotal(5, 10, 1)),
    ],
)
def test_total_separates_confident_and_doubtful_values(
    values: list[tuple[PriceQuote, float] | None], expected: WalletTotal
) -> None:
    assert add_up(values) == expected
