"""Match of a protocol by slug, name, symbol or similar name."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.crypto.protocol.directory import ProtocolDirectory
from centgate.crypto.protocol.name_match import (
    ProtocolMatch,
    match_exact,
    match_similar,
    match_without_ending,
    parse_slug,
    suggest_slugs,
)
from centgate.providers.defillama_directory import parse_directory

ROWS: tuple[dict[str, Any], ...] = (
    {"slug": "aave-v2", "name": "Aave V2", "symbol": "AAVE", "parentProtocol": "parent#aave", "tvl": 10},
    {"slug": "aave-v3", "name": "Aave V3", "symbol": "AAVE", "parentProtocol": "parent#aave", "tvl": 300},
    {
        "slug": "uniswap-v2",
        "name": "Uniswap V2",
        "symbol": "UNI",
        "parentProtocol": "parent#uniswap",
        "tvl": 5,
    },
    {
        "slug": "uniswap-v3",
        "name": "Uniswap V3",
        "symbol": "UNI",
        "parentProtocol": "parent#uniswap",
        "tvl": 50,
    },
    {"slug": "curve-dex", "name": "Curve DEX", "symbol": "CRV", "gecko_id": "curve-dao-token", "tvl": 20},
    {"slug": "curve.fi", "name": "Curve Old", "symbol": "-", "tvl": None},
    {"slug": "makerdao", "name": "Sky Lending", "symbol": "MKR", "gecko_id": "maker", "tvl": 40},
    {"slug": "swap-a", "name": "Swap", "symbol": "CRV", "tvl": 1},
    {"slug": "swap-b", "name": "Swap", "symbol": None, "tvl": 2},
    {
        "slug": "eigenpie",
        "name": "Eigenpie",
        "symbol": "-",
        "parentProtocol": "parent#magpie-ecosystem",
        "tvl": 3,
    },
    {"slug": "lido", "name": "Lido", "symbol": "LDO", "gecko_id": "lido-dao", "tvl": 900},
    {"slug": "crv", "name": "A protocol whose slug is a symbol", "tvl": 0},
    {"slug": "compound-v3", "name": "Compound V3", "symbol": "COMP", "tvl": 7},
    {"slug": "pancakeswap", "name": "PancakeSwap", "symbol": "CAKE", "tvl": 7},
    {"slug": "lombard", "name": "\u041b\u043e\u043c\u0431\u0430\u0440\u0434", "tvl": 7},
)
DIRECTORY: ProtocolDirectory = asyncio.run(parse_directory(json.dumps(ROWS).encode()))


def matched_slug(match: ProtocolMatch | None) -> str | None:
    return match.protocol.slug if match else None


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("aave-v3", "aave-v3"),
        ("AAVE-V3", "aave-v3"),
        ("Aave V3", "aave-v3"),
        ("aave v3", "aave-v3"),
        ("aave_v3", "aave-v3"),
        ("  Aave   V3 ", "aave-v3"),
        ("AaveV3", "aave-v3"),
        ("A\u200bave V3\n", "aave-v3"),
        ("\uff21ave V3", "aave-v3"),
        ("aave", "aave"),
        ("Aave", "aave"),
        ("AAVE", "aave"),
        ("parent-less", None),
        ("uniswap", "uniswap"),
        ("Magpie Ecosystem", "magpie-ecosystem"),
        ("magpieecosystem", "magpie-ecosystem"),
        ("parent#aave", "aave"),
        ("Parent#Uniswap", "uniswap"),
        ("curve.fi", "curve.fi"),
        ("Curve.Fi", "curve.fi"),
        ("Sky Lending", "makerdao"),
        ("sky-lending", "makerdao"),
        ("crv", "crv"),
        ("\u041b\u043e\u043c\u0431\u0430\u0440\u0434", "lombard"),
    ],
)
def test_exact_slug_name_or_parent_is_certain(query: str, meant: str | None) -> None:
    match = match_exact(DIRECTORY, query)

    assert matched_slug(match) == meant
    assert match is None or match.warning is None


@pytest.mark.parametrize(
    ("query", "meant", "doubt"),
    [
        ("UNI", "uniswap-v3", 'by the symbol "UNI", the most valuable of 2 that have it'),
        ("$uni", "uniswap-v3", 'by the symbol "UNI", the most valuable of 2 that have it'),
        ("ldo", "lido", 'matched "Lido" (lido) by the symbol "LDO"'),
        ("Curve-DAO-token", "curve-dex", 'by the CoinGecko id "Curve-DAO-token"'),
        ("maker", "makerdao", 'by the CoinGecko id "maker"'),
        ("Swap", "swap-b", 'by the name "Swap", the most valuable of 2 that have it'),
    ],
)
def test_ambiguous_match_is_marked(query: str, meant: str, doubt: str) -> None:
    match = match_exact(DIRECTORY, query)

    assert match
    assert match.protocol.slug == meant
    assert match.warning
    assert doubt in match.warning


def test_a_name_does_not_come_before_the_slug_of_a_parent() -> None:
    rows = [*ROWS, {"slug": "aave-of-others", "name": "AAVE", "tvl": 3}]
    directory: ProtocolDirectory = asyncio.run(parse_directory(json.dumps(rows).encode()))

    match = match_exact(directory, "Aave")

    assert match
    assert (match.protocol.slug, match.protocol.tvl_usd) == ("aave", 310)
    assert match.warning == 'matched the parent aave; "AAVE" (aave-of-others) has the same name'


@pytest.mark.parametrize(
    "query", ["-", "$-", "--", "", " ", "..", "../", "\x00", "\N{OCTOPUS}", "null", "None"]
)
def test_unknown_name_matches_nothing(query: str) -> None:
    assert match_exact(DIRECTORY, query) is None
    assert match_similar(DIRECTORY, query) is None


def test_parent_has_sum_of_its_children() -> None:
    match = match_exact(DIRECTORY, "Aave")

    assert match
    assert (match.protocol.name, match.protocol.tvl_usd) == ("Aave", 310)


def test_own_row_is_preferred_to_sum_of_children() -> None:
    rows = [*ROWS, {"slug": "aave", "name": "Aave", "tvl": 1}]
    directory = asyncio.run(parse_directory(json.dumps(rows).encode()))

    match = match_exact(directory, "aave")

    assert match
    assert match.protocol.tvl_usd == 1


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("compond-v3", "compound-v3"),
        ("Compund V3", "compound-v3"),
        ("uniswapp", "uniswap"),
        ("pancakeswapp", "pancakeswap"),
        ("compound-v2", None),
        ("aave-v4", None),
        ("lidoo", None),
        ("sushiswap", None),
    ],
)
def test_similar_name_needs_high_similarity(query: str, meant: str | None) -> None:
    match = match_similar(DIRECTORY, query)

    assert matched_slug(match) == meant
    assert match is None or "by a similar name" in (match.warning or "")


KIN: tuple[dict[str, Any], ...] = (
    *(each for each in ROWS if each["slug"] not in ("curve-dex", "curve.fi", "lido", "makerdao")),
    {"slug": "curve-dex", "name": "Curve DEX", "parentProtocol": "parent#curve-finance", "tvl": 20},
    {"slug": "crvusd", "name": "crvUSD", "parentProtocol": "parent#curve-finance", "tvl": 90},
    {"slug": "yearn.finance", "name": "Yearn", "tvl": 4},
    {"slug": "lido", "name": "Lido", "symbol": "LDO", "tvl": 900},
    {"slug": "ribbon-dao", "name": "Ribbon DAO", "tvl": 1},
    {"slug": "ribbon.xyz", "name": "Ribbon dot xyz", "tvl": 2},
    {"slug": "kelp-v2", "name": "Kelp V2", "tvl": 1},
    {"slug": "x-dex", "name": "X dot DEX", "tvl": 1},
    {"slug": "maker-labs", "name": "Something", "tvl": 1},
)
RELATIVES: ProtocolDirectory = asyncio.run(parse_directory(json.dumps(KIN).encode()))


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("Curve", "curve-finance"),
        ("curve.fi", "curve-finance"),
        ("Curve Protocol", "curve-finance"),
        ("Yearn Finance", "yearn.finance"),
        ("yearn.fi", "yearn.finance"),
        ("yearn protocol", "yearn.finance"),
        ("lido finance", "lido"),
        ("Lido DAO", "lido"),
        ("lido.fi", "lido"),
        ("https://www.lido.fi/", "lido"),
        ("aave.com", "aave"),
        ("app.aave.com", "aave"),
        ("aave labs", "aave"),
        ("Aave V3 protocol", "aave-v3"),
        ("uniswap.org", "uniswap"),
        ("uniswap v3 labs", "uniswap-v3"),
        ("ribbon", "ribbon.xyz"),
        ("maker", "maker-labs"),
        ("uniswap-v4", None),
        ("uniswap v4 labs", None),
        ("kelp", None),
        ("kelp dao", None),
        ("x", None),
        ("x.com", None),
        ("finance", None),
        (".com", None),
        ("", None),
    ],
)
def test_name_with_other_suffix_matches_and_is_marked(query: str, meant: str | None) -> None:
    match = match_without_ending(RELATIVES, query)

    assert matched_slug(match) == meant
    assert match is None or "by its name apart from an ending" in (match.warning or "")


def test_most_valuable_of_equally_similar_names_is_chosen() -> None:
    rows = [{"slug": "stakehouse-a", "tvl": 1}, {"slug": "stakehouse-b", "tvl": 2}]
    directory = asyncio.run(parse_directory(json.dumps(rows).encode()))

    match = match_similar(directory, "stakehouse-c")

    assert matched_slug(match) == "stakehouse-b"


def test_number_of_suggested_slugs_is_limited() -> None:
    assert suggest_slugs(DIRECTORY, "aave v4") == ["aave-v3", "aave-v2", "aave"]
    assert suggest_slugs(DIRECTORY, "sushiswap")[0] in ("pancakeswap", "uniswap")
    assert suggest_slugs(DIRECTORY, "zzzzzzzz") == []
    assert suggest_slugs(DIRECTORY, "") == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Aave V3", "aave-v3"),
        ("1inch.io", "1inch.io"),
        ("../admin", None),
        ("%2e%2e%2fadmin", None),
        ("a/b", None),
        ("a\\b", None),
        ("a?b=c", None),
        ("a#b", None),
        ("..", None),
        ("\x00", None),
        ("\N{OCTOPUS}", None),
        ("a\x00b", "ab"),
        ("parent#aave", "aave"),
        ("\ufdfa" * 100, None),
    ],
)
def test_only_valid_slugs_are_queried(query: str, expected: str | None) -> None:
    assert parse_slug(query) == expected


@given(st.text(max_size=100))
def test_any_text_is_matched_without_error(asked: str) -> None:
    match_exact(DIRECTORY, asked)
    match_without_ending(DIRECTORY, asked)
    match_similar(DIRECTORY, asked)

    assert len(suggest_slugs(DIRECTORY, asked)) <= 3
    assert not set(parse_slug(asked) or "") & set("/\\%?# ")
