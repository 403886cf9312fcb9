"""Verdicts on a token's pairs: the liquidity in them and their age."""

from __future__ import annotations

from datetime import timedelta

from crypto.token.evidence_cases import (
    BURN,
    DEEP,
    FACTS,
    NOW,
    OTHER,
    OWNER,
    change_flags,
    change_simulation,
    list_flags,
)
from msgspec.structs import replace

from centgate.crypto.token.citations import Citation, cite_field
from centgate.crypto.token.pairs import Pair, PairToken
from centgate.crypto.token.token_liquidity import sum_pair_liquidity
from centgate.crypto.token.token_verdict import evaluate_token


def test_side_of_pairs_is_not_cited_from_source_without_it():
    facts = replace(FACTS, liquidity=replace(DEEP, source="geckoterminal"))

    assert cite_field(facts, "liquidity:otherSideUsd") == []
    assert cite_field(facts, "liquidity:totalUsd") == [Citation("geckoterminal", "reserve_in_usd", "90000")]


PAIR = Pair(
    address="0x" + "33" * 20,
    dex="uniswap",
    base=PairToken(OTHER, "A"),
    quote=PairToken(OWNER, "B"),
    price_usd=1.0,
    quote_price_usd=1.0,
    liquidity_usd=20_000.0,
    base_side_usd=10_000.0,
    quote_side_usd=10_000.0,
    volume24h_usd=None,
    fdv_usd=None,
    created_at=NOW - timedelta(days=3),
    buys24h=None,
    sells24h=None,
    url=None,
    source="dexscreener",
)


def test_one_sided_pool_counts_by_its_other_side():
    one_sided = replace(PAIR, liquidity_usd=1_000_000.0, base_side_usd=999_995.0, quote_side_usd=5.0)

    found = sum_pair_liquidity(OTHER, [one_sided], "dexscreener")

    assert (found.total_usd, found.other_side_usd, found.usable_usd) == (1_000_000, 5, 10)
    assert sum_pair_liquidity(OWNER, [one_sided], "dexscreener").usable_usd == 1_000_000


def test_second_pair_does_not_make_token_young():
    old = replace(PAIR, liquidity_usd=12_000.0, created_at=NOW - timedelta(days=400))
    dust = replace(PAIR, liquidity_usd=5.0, created_at=NOW - timedelta(days=900))

    found = sum_pair_liquidity(OTHER, [PAIR, old, dust], "dexscreener")

    assert (found.trading_since, found.top_created_at) == (old.created_at, PAIR.created_at)


def test_shallow_old_pair_does_not_hide_new_trading():
    new = replace(PAIR, created_at=NOW - timedelta(hours=2))
    old = replace(PAIR, liquidity_usd=6_000.0, created_at=NOW - timedelta(days=400))

    found = sum_pair_liquidity(OTHER, [old, new], "dexscreener")

    assert found.trading_since == new.created_at


def test_old_shallow_pair_of_simulation_does_not_date_deeper_pools():
    shown = replace(DEEP, source="onchain", trading_since=None, top_pair=PAIR.address, top_usd=90_000.0)
    old = change_simulation(
        pair_address=BURN, pair_created_at=NOW - timedelta(days=400), liquidity_usd=6_000.0
    )
    facts = replace(old, liquidity=shown)

    assert any("how long it has been traded" in each for each in evaluate_token(facts).warnings)
    for same in ({"pair_address": PAIR.address}, {"liquidity_usd": 50_000.0}):
        dated = change_simulation(facts, **same)
        assert not any("how long it has been traded" in each for each in evaluate_token(dated).warnings)


def test_date_of_pair_that_does_not_count_is_no_evidence():
    raw = {"pair.createdAtTimestamp": "1750000000"}
    old = change_simulation(raw=raw, pair_address=BURN, pair_created_at=NOW - timedelta(days=400))
    facts = replace(old, liquidity=replace(DEEP, trading_since=NOW - timedelta(hours=1)))
    dated = change_simulation(facts, pair_created_at=NOW - timedelta(hours=1))

    sources = [
        [
            cited.source
            for flag in evaluate_token(each).flags
            if flag.id == "new_pair"
            for cited in flag.evidence
        ]
        for each in (facts, dated)
    ]

    assert sources == [["dexscreener"], ["dexscreener", "honeypotis"]]


def test_hollow_pair_is_not_top_pair():
    hollow = replace(
        PAIR, address=BURN, liquidity_usd=9e6, base_side_usd=9e6 - 5, quote_side_usd=5.0, created_at=None
    )

    found = sum_pair_liquidity(OTHER, [hollow, PAIR], "dexscreener")

    assert (found.top_pair, found.trading_since) == (PAIR.address, PAIR.created_at)
    assert found.usable_usd == 20_010


def test_missing_sides_are_unknown_and_reported():
    found = sum_pair_liquidity(
        OTHER, [replace(PAIR, base_side_usd=None, quote_side_usd=None)], "geckoterminal"
    )

    assert (found.total_usd, found.other_side_usd, found.usable_usd) == (20_000, None, 20_000)
    assert any("one-sided" in each for each in evaluate_token(replace(FACTS, liquidity=found)).warnings)


def test_dust_without_sides_is_ignored():
    dust = replace(PAIR, liquidity_usd=9.0, base_side_usd=None, quote_side_usd=None)

    assert sum_pair_liquidity(OTHER, [PAIR, dust], "dexscreener").other_side_usd == 10_000


def test_partial_index_failure_leaves_liquidity_unchecked():
    facts = replace(FACTS, liquidity=None, sources_without_pair=("dexscreener",))

    warnings = " ".join(evaluate_token(facts).warnings)

    assert "no_pair" not in list_flags(facts)
    assert "pairs on exchanges, liquidity, how long it has been traded" in warnings


def test_missing_liquidity_is_unknown():
    found = sum_pair_liquidity(OTHER, [replace(PAIR, liquidity_usd=None)], "dexscreener")

    assert (found.total_usd, found.usable_usd, found.pair_count) == (None, None, 1)
    assert any("liquidity" in each for each in evaluate_token(replace(FACTS, liquidity=found)).warnings)


def test_trusted_token_missing_in_indexes_has_unknown_liquidity():
    facts = replace(
        change_flags(trusted=True), liquidity=None, sources_without_pair=("dexscreener", "geckoterminal")
    )

    assert evaluate_token(facts).level == "low"
    assert any(
        "DEX Screener and GeckoTerminal list no pair" in each for each in evaluate_token(facts).warnings
    )
