"""Choice of a token's top pair, and the warnings about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from centgate.crypto.token.pairs import Pair, PairToken
from centgate.crypto.token.top_pair import (
    choose_top_pair,
    describe_price_spread,
    list_pair_warnings,
    pair_depth,
)

TOKEN = "0x" + "a" * 40
OTHER = "0x" + "b" * 40
NOW = datetime(2026, 6, 1, tzinfo=UTC)
MARKET = 3.5
"""Price of the token in all plausible pairs."""


def build_pair(number: int = 1, **more: Any) -> Pair:
    """Return a plausible pair with the token as base; `number` gives its address."""
    sound = Pair(
        address=f"0x{number:040x}",
        dex="uniswap",
        base=PairToken(TOKEN, "TKN"),
        quote=PairToken(OTHER, "WETH"),
        price_usd=MARKET,
        quote_price_usd=2000.0,
        liquidity_usd=100_000.0,
        base_side_usd=None,
        quote_side_usd=None,
        volume24h_usd=5_000.0,
        fdv_usd=1_000_000.0,
        created_at=NOW - timedelta(days=100),
        buys24h=10,
        sells24h=10,
        url=None,
        source="dexscreener",
    )
    return replace(sound, **more)


def swap_sides(given: Pair) -> Pair:
    """Return the same pool with the token as quote."""
    return replace(
        given,
        base=given.quote,
        quote=given.base,
        price_usd=given.quote_price_usd,
        quote_price_usd=given.price_usd,
        base_side_usd=given.quote_side_usd,
        quote_side_usd=given.base_side_usd,
    )


def test_deepest_pair_is_chosen() -> None:
    pairs = [
        build_pair(1, liquidity_usd=5e4),
        build_pair(2, liquidity_usd=5e6),
        build_pair(3, liquidity_usd=5e5),
    ]

    choice = choose_top_pair(pairs, TOKEN)

    assert choice.pair == pairs[1]
    assert choice.considered == 3
    assert (choice.price_outliers, choice.nearly_empty) == ((), ())


def test_depth_precedes_side_of_token() -> None:
    deep, small = swap_sides(build_pair(1, liquidity_usd=5e6)), build_pair(2, liquidity_usd=5e4)

    assert choose_top_pair([small, deep], TOKEN).pair == deep


def test_token_as_base_is_preferred_at_equal_depth() -> None:
    slightly_deeper, base = swap_sides(build_pair(1, liquidity_usd=1e6)), build_pair(2, liquidity_usd=0.95e6)

    assert choose_top_pair([slightly_deeper, base], TOKEN).pair == base
    assert (
        choose_top_pair([slightly_deeper, replace(base, liquidity_usd=0.89e6)], TOKEN).pair == slightly_deeper
    )


def test_busier_pair_is_chosen_at_equal_depth() -> None:
    quiet, busy = build_pair(1, volume24h_usd=None), build_pair(2, volume24h_usd=1.0)

    assert choose_top_pair([quiet, busy], TOKEN).pair == busy


def test_large_pool_at_implausible_price_is_skipped() -> None:
    nonsense = build_pair(1, price_usd=11.53 * MARKET, liquidity_usd=2e6)
    sound = [build_pair(2, liquidity_usd=1.5e6), build_pair(3, liquidity_usd=0.8e6)]

    choice = choose_top_pair([nonsense, *sound], TOKEN)

    assert choice.pair == sound[0]
    assert choice.price_outliers == (nonsense,)


def test_many_shallow_pools_do_not_outvote_deep_one() -> None:
    deep = build_pair(1, liquidity_usd=2e6)
    shallow = [build_pair(number, liquidity_usd=1.5e5, price_usd=40.0) for number in range(2, 40)]

    choice = choose_top_pair([*shallow, deep], TOKEN)

    assert choice.pair == deep
    assert len(choice.price_outliers) == 38


def test_depth_is_limited_by_empty_other_side() -> None:
    hollow = build_pair(1, liquidity_usd=1e8, base_side_usd=1e8, quote_side_usd=40.0)
    sound = build_pair(2, liquidity_usd=2e4, base_side_usd=1e4, quote_side_usd=1e4)

    choice = choose_top_pair([hollow, sound], TOKEN)

    assert (pair_depth(hollow), pair_depth(sound)) == (80.0, 2e4)
    assert choice.pair == sound
    assert choice.nearly_empty == (hollow,)
    assert choose_top_pair([hollow], TOKEN).pair == hollow


@pytest.mark.parametrize("base_side", [None, 0.0, 2.7, 4e6, 1e7])
@pytest.mark.parametrize("as_quote", [False, True])
def test_nearly_empty_side_limits_depth(base_side: float | None, *, as_quote: bool) -> None:
    odd = build_pair(
        1, price_usd=0.9 * MARKET, liquidity_usd=1e7, base_side_usd=base_side, quote_side_usd=2.7
    )
    odd = swap_sides(odd) if as_quote else odd
    sound = build_pair(2, liquidity_usd=1e6, base_side_usd=5e5, quote_side_usd=5e5)

    choice = choose_top_pair([odd, sound], TOKEN)

    assert choice.pair == sound
    assert choice.nearly_empty == (odd,)


@pytest.mark.parametrize(("base_side", "quote_side"), [(98_000.0, 2_000.0), (None, 1_500.0), (None, None)])
def test_unbalanced_pool_has_its_depth(base_side: Any, quote_side: Any) -> None:
    leaning = build_pair(liquidity_usd=1e5, base_side_usd=base_side, quote_side_usd=quote_side)

    assert pair_depth(leaning) == 1e5


def test_pair_without_price_comes_last() -> None:
    unpriced, priced = build_pair(1, price_usd=None, liquidity_usd=1e6), build_pair(2, liquidity_usd=10.0)

    assert choose_top_pair([unpriced, priced], TOKEN).pair == priced
    assert choose_top_pair([unpriced], TOKEN).pair == unpriced


def test_busiest_pair_is_chosen_without_liquidity_data() -> None:
    pairs = [build_pair(number, liquidity_usd=None, volume24h_usd=float(number)) for number in (1, 3, 2)]

    choice = choose_top_pair(pairs, TOKEN)

    assert choice.pair == pairs[1]
    assert choice.deep_pairs == ()


def test_plausible_pair_raises_no_suspicion() -> None:
    assert list(list_pair_warnings(build_pair(base_side_usd=5e4, quote_side_usd=5e4), NOW)) == []
    assert list(list_pair_warnings(build_pair(created_at=None), NOW)) == []


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        ({"liquidity_usd": None}, "no figure is given"),
        ({"liquidity_usd": 0.0}, "holds only $0.00"),
        ({"liquidity_usd": 999.99}, "holds only $999.99"),
        ({"base_side_usd": 96_000.0, "quote_side_usd": 4_000.0}, "one-sided"),
        ({"base_side_usd": 12.5, "quote_side_usd": None}, "one side holds only $12.50"),
        ({"created_at": NOW - timedelta(hours=23)}, "less than 24 hours old"),
        ({"created_at": NOW - timedelta(days=6)}, "less than 7 days old"),
    ],
)
def test_each_suspicion_is_one_sentence(odd: dict[str, Any], message: str) -> None:
    (sentence,) = list_pair_warnings(build_pair(**odd), NOW)

    assert message in sentence


@pytest.mark.parametrize(
    "plain",
    [
        {"liquidity_usd": 1_000.0},
        {"base_side_usd": 94_000.0, "quote_side_usd": 6_000.0},
        {"created_at": NOW - timedelta(days=7)},
    ],
)
def test_values_at_limits_are_not_suspicious(plain: dict[str, Any]) -> None:
    assert list(list_pair_warnings(build_pair(**plain), NOW)) == []


def test_price_difference_of_deep_pairs_is_reported() -> None:
    chosen, dearer = (
        build_pair(1, liquidity_usd=1e6),
        build_pair(2, price_usd=MARKET * 1.2, liquidity_usd=5e5),
    )

    sentence = describe_price_spread(choose_top_pair([chosen, dearer], TOKEN), TOKEN)

    assert sentence is not None
    assert "from $3.5 to $4.2" in sentence


@pytest.mark.parametrize("other", [{"price_usd": MARKET * 1.09}, {"price_usd": 99.0, "liquidity_usd": 5e4}])
def test_small_differences_and_shallow_pairs_are_not_reported(other: dict[str, Any]) -> None:
    pairs = [build_pair(1, liquidity_usd=1e6), build_pair(2, **{"liquidity_usd": 5e5, **other})]

    assert describe_price_spread(choose_top_pair(pairs, TOKEN), TOKEN) is None


FIGURES = st.none() | st.floats(0, 1e12)


@st.composite
def generate_pair(draw: st.DrawFn) -> Pair:
    """Generate a pair with any figures, with the token on either side."""
    drawn = build_pair(
        draw(st.integers(1, 50)),
        price_usd=draw(st.none() | st.floats(1e-12, 1e9)),
        quote_price_usd=draw(st.none() | st.floats(1e-12, 1e9)),
        liquidity_usd=draw(FIGURES),
        base_side_usd=draw(FIGURES),
        quote_side_usd=draw(FIGURES),
        volume24h_usd=draw(FIGURES),
    )
    return swap_sides(drawn) if draw(st.booleans()) else drawn


@st.composite
def generate_market(draw: st.DrawFn) -> tuple[list[Pair], list[Pair]]:
    """Generate deep pairs near the market price, and shallow or outnumbered pairs at implausible prices."""
    rough = st.floats(MARKET / 1.15, MARKET * 1.15)
    depths = draw(st.lists(st.floats(1e5, 9e5), min_size=1, max_size=6))
    sound = [build_pair(n, price_usd=draw(rough), liquidity_usd=deep) for n, deep in enumerate(depths, 1)]
    nonsense_price = st.floats(1e-9, MARKET / 3) | st.floats(MARKET * 3, 1e9)
    shallow = draw(st.lists(st.floats(0, 9_999), max_size=8))
    larger = [draw(st.floats(1e6, 9e5 * 10))] if len(sound) >= 2 and draw(st.booleans()) else []
    if larger and sum(deep >= larger[0] / 10 for deep in depths) < 2:
        larger = []
    nonsense = [
        build_pair(n, price_usd=draw(nonsense_price), liquidity_usd=deep)
        for n, deep in enumerate([*shallow, *larger], 100)
    ]
    sides = st.booleans()
    return [swap_sides(each) if draw(sides) else each for each in sound], [
        swap_sides(each) if draw(sides) else each for each in nonsense
    ]


def generate_pair_lists() -> st.SearchStrategy[list[Pair]]:
    """Generate lists without duplicate pairs."""
    return st.lists(generate_pair(), min_size=1, max_size=12, unique_by=lambda each: each.address)


@given(generate_market(), st.data())
def test_implausible_price_is_never_chosen_beside_deep_pairs(
    drawn: tuple[list[Pair], list[Pair]], data: st.DataObject
) -> None:
    sound, nonsense = drawn
    pairs = data.draw(st.permutations([*sound, *nonsense]))

    choice = choose_top_pair(pairs, TOKEN)

    assert choice.pair in sound
    assert set(choice.price_outliers) == set(nonsense)


@pytest.mark.extended
@given(generate_pair_lists(), st.data())
def test_order_of_pairs_does_not_matter(pairs: list[Pair], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(pairs))

    assert choose_top_pair(shuffled, TOKEN) == choose_top_pair(pairs, TOKEN)


@pytest.mark.extended
@given(generate_pair_lists())
def test_choice_is_one_of_pairs_and_has_description(pairs: list[Pair]) -> None:
    choice = choose_top_pair(pairs, TOKEN)

    assert choice.pair in pairs
    assert choice.considered == len(pairs)
    assert choice.pair not in choice.price_outliers
    assert all(sentence.isprintable() for sentence in list_pair_warnings(choice.pair, NOW))
    describe_price_spread(choice, TOKEN)


@pytest.mark.extended
@given(generate_pair_lists())
def test_chosen_pair_has_price_if_any_has(pairs: list[Pair]) -> None:
    choice = choose_top_pair(pairs, TOKEN)

    assert (choice.pair.price_of(TOKEN) is None) == all(each.price_of(TOKEN) is None for each in pairs)


@given(generate_pair())
def test_price_is_same_as_base_and_as_quote(drawn: Pair) -> None:
    assert drawn.price_of(TOKEN) == swap_sides(drawn).price_of(TOKEN)
    assert drawn.price_of("0x" + "c" * 40) is None
