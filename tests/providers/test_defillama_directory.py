"""DefiLlama's list of protocols: parsing of rows, slices, and sums of parents."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from fake_upstreams import load_body

from centgate.crypto.protocol.directory import (
    DefiProtocol,
    DirectoryLink,
    ProtocolDetails,
    ProtocolDirectory,
    ProtocolToken,
    alphanumeric_key,
    to_slug,
)
from centgate.providers.defillama_directory import (
    SLICE_BYTES,
    SLICE_ROWS,
    parse_directory,
    parse_protocol,
    split_rows,
)

ROW: dict[str, Any] = {
    "id": "1599",
    "name": "Aave V3",
    "symbol": "AAVE",
    "url": "https://aave.com",
    "category": "Lending",
    "chain": "Multi-Chain",
    "chains": ["Ethereum", "Base"],
    "slug": "aave-v3",
    "gecko_id": "aave",
    "twitter": "aave",
    "github": ["aave"],
    "audit_links": ["https://aave.com/security"],
    "parentProtocol": "parent#aave",
    "tvl": 300.5,
    "chainTvls": {"Ethereum": 200.5, "Base": 100, "borrowed": 900, "Ethereum-borrowed": 900, "staking": 7},
}


async def parse_rows(*rows: Any) -> ProtocolDirectory:
    return await parse_directory(json.dumps(rows).encode())


async def parse_protocol_row(**changes: Any) -> DefiProtocol:
    """Parse the row above with these changes."""
    directory = await parse_rows({**ROW, **changes})
    (listing,) = directory.by_slug.values()
    return directory.get_protocol(listing)


async def test_row_has_name_category_chains_value_and_links() -> None:
    protocol = await parse_protocol_row()

    assert protocol == DefiProtocol(
        slug="aave-v3",
        name="Aave V3",
        category="Lending",
        chains=("Ethereum", "Base"),
        tvl_usd=300.5,
        links=(
            DirectoryLink("website", "https://aave.com"),
            DirectoryLink("social", "https://x.com/aave"),
            DirectoryLink("code", "https://github.com/aave"),
            DirectoryLink("audit", "https://aave.com/security"),
        ),
        details=ProtocolDetails(
            ids=frozenset({"1599"}),
            tvl_by_chain=(("Ethereum", 200.5), ("Base", 100.0)),
            token=ProtocolToken("AAVE", address=None, gecko_id="aave", market_cap_usd=None),
            parent_slug="aave",
            parent_id="parent#aave",
        ),
    )


@pytest.mark.parametrize(
    ("changes", "usd"),
    [
        ({"tvl": "12.5"}, 12.5),
        ({"tvl": 0}, 0.0),
        ({"tvl": None}, 300.5),
        ({"tvl": "NaN"}, 300.5),
        ({"tvl": "1e400"}, 300.5),
        ({"tvl": -3}, 300.5),
        ({"tvl": True}, 300.5),
        ({"tvl": 1e30}, 300.5),
        ({"tvl": [1]}, 300.5),
        ({"tvl": None, "chainTvls": {"Ethereum": "1.5", "Base": None, "pool2": 9, "Base-staking": 9}}, 1.5),
        ({"tvl": None, "chainTvls": {"treasury": 5, "OwnTokens": 1, "doublecounted": 1}}, None),
        ({"tvl": None, "chainTvls": None}, None),
        ({"tvl": None, "chainTvls": [1, 2]}, None),
    ],
)
async def test_value_locked_is_own_figure_or_sum_of_chains(
    changes: dict[str, Any], usd: float | None
) -> None:
    protocol = await parse_protocol_row(**changes)

    assert protocol.tvl_usd == usd


async def test_number_out_of_range_affects_only_itself() -> None:
    body = json.dumps([ROW]).replace("300.5", "1e400").encode()

    directory = await parse_directory(body)

    assert directory.get_protocol(directory.by_slug["aave-v3"]).tvl_usd == 300.5


@pytest.mark.parametrize("broken", [None, 7, {}, [], [None, 4], "", " ", True])
@pytest.mark.parametrize(
    "member", ["category", "chains", "url", "twitter", "github", "audit_links", "symbol"]
)
async def test_invalid_member_affects_only_itself(member: str, broken: Any) -> None:
    protocol = await parse_protocol_row(**{member: broken})

    assert (protocol.slug, protocol.name, protocol.tvl_usd) == ("aave-v3", "Aave V3", 300.5)


@pytest.mark.parametrize(
    "url",
    [
        "http://aave.com",
        "javascript:alert(1)",
        "aave.com",
        "https://",
        "https://localhost",
        "https://user:secret@aave.com",
        "https://aave.com/a b",
        "https://aave.com/\u202egpj.exe",
        "https://[aave.com",
        "https://aave.com/" + "a" * 2000,
    ],
)
async def test_non_https_urls_are_omitted(url: str) -> None:
    protocol = await parse_protocol_row(url=url, audit_links=[url])

    assert {link.kind for link in protocol.links} == {"social", "code"}


@pytest.mark.parametrize("handle", ["a b", "a/b", "sixteen_letters_", "", "ab?c", "aäb"])
async def test_invalid_handles_are_omitted(handle: str) -> None:
    protocol = await parse_protocol_row(
        twitter=handle, github=[handle + " "] if "/" not in handle else ["a/b/c"]
    )

    assert "social" not in {link.kind for link in protocol.links}


async def test_audits_are_few_distinct_links() -> None:
    audits = [f"https://audits.example/{number}" for number in range(30)]

    protocol = await parse_protocol_row(audit_links=[*audits[:1] * 5, *audits])

    assert [link.url for link in protocol.links if link.kind == "audit"] == audits[:10]


async def test_names_are_cleaned() -> None:
    protocol = await parse_protocol_row(
        name="Aave\u202e\x00 V3", category="Lend\u200bing", chains=["Base\n", "Base"]
    )

    assert (protocol.name, protocol.category, protocol.chains) == ("Aave V3", "Lending", ("Base",))


async def test_chains_of_values_replace_missing_chains() -> None:
    protocol = await parse_protocol_row(
        chains=None, chainTvls={"Base": 1, "Ethereum": 5, "staking": 9, "Base-pool2": 9}
    )

    assert protocol.chains == ("Ethereum", "Base")


async def test_one_chain_suffices_and_multi_chain_is_none() -> None:
    one = await parse_protocol_row(chains=[], chainTvls={}, chain="Base")
    many = await parse_protocol_row(chains=[], chainTvls={}, chain="Multi-Chain")

    assert (one.chains, many.chains) == (("Base",), ())


@pytest.mark.parametrize("row", [7, None, "x", [], [ROW], {}, {"slug": ".."}, {"slug": None, "name": "-"}])
async def test_invalid_row_is_omitted(row: Any) -> None:
    directory = await parse_rows(row, ROW, row)

    assert [*directory.by_slug] == ["aave-v3"]


async def test_slug_and_name_replace_each_other() -> None:
    directory = await parse_rows({"name": "Maker's Own DAO"}, {"slug": "b-c"})

    assert [(each.slug, each.name) for each in directory.by_slug.values()] == [
        ("makers-own-dao", "Maker's Own DAO"),
        ("b-c", "b-c"),
    ]


@pytest.mark.parametrize("odd", ["a" * 5_000, "aave\u202e-v3", "aave v3 is safe", "\n", "a\tb", 7])
async def test_invalid_slug_is_replaced_by_name(odd: Any) -> None:
    named = await parse_protocol_row(slug=odd)
    nameless = await parse_rows({**ROW, "slug": odd, "name": "a" * 5_000}, {**ROW, "slug": "lido"})

    assert named.slug == "aave-v3"
    assert [*nameless.by_slug] == ["lido"]


@pytest.mark.parametrize("odd", ["parent#" + "a" * 5_000, "parent#aa\u202eve", "parent#", 7])
async def test_invalid_parent_is_none(odd: Any) -> None:
    directory = await parse_rows({**ROW, "parentProtocol": odd})

    assert directory.children == {}


@pytest.mark.extended
async def test_number_of_chains_is_limited() -> None:
    many = {f"Chain {number}": 1 for number in range(50_000)}
    rows = [
        {**ROW, "slug": f"aave-v{half}", "chains": [f"{half} {number}" for number in range(150)]}
        for half in (1, 2)
    ]

    named, valued = (
        await parse_protocol_row(chains=[*many]),
        await parse_protocol_row(chains=None, chainTvls=many),
    )
    parent = (await parse_rows(*rows)).build_parent("aave")

    assert [len(each.chains) for each in (named, valued, parent)] == [200] * 3


async def test_impossible_sum_is_unknown() -> None:
    many = {f"Chain {number}": 1e15 for number in range(20)}

    protocol = await parse_protocol_row(tvl=None, chainTvls=many)
    parent = (await parse_rows({**ROW, "tvl": 1e15}, {**ROW, "slug": "aave-v2", "tvl": 1e15})).build_parent(
        "aave"
    )

    assert (protocol.tvl_usd, parent.tvl_usd) == (None, None)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"[7, {}]", b"null", b"<html>", b"[" * 100_000, b'[{"slug": "a"}', b"[NaN]"]
)
async def test_invalid_list_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        await parse_directory(body)


async def test_saved_rows_are_parsed() -> None:
    directory = await parse_rows(*load_body("defillama", "protocols"))

    lend, swap = directory.by_slug["example-lend"], directory.by_slug["example-swap"]
    assert (lend.symbol, lend.tvl_usd) == ("EXL", 3_000_000.5)
    assert (swap.symbol, swap.tvl_usd) == (None, 750.25)
    assert directory.get_protocol(lend).chains == ("Ethereum", "Base")
    assert directory.get_protocol(swap).category == "Dexs"


@pytest.mark.recorded
async def test_recorded_rows_are_parsed() -> None:
    rows = load_body("defillama", "protocols_two_rows_eigen")

    directory = await parse_rows(*rows)

    eigenpie = directory.get_protocol(directory.by_slug["eigenpie"])
    assert (eigenpie.category, eigenpie.chains) == ("Liquid Restaking", ("Zircuit", "Ethereum"))
    assert eigenpie.tvl_usd == pytest.approx(552_741_078.97)
    assert directory.by_slug["eigenlayer"].tvl_usd == pytest.approx(8_951_735_130.46)
    assert directory.by_slug["eigenpie"].symbol is None


async def test_parent_is_sum_of_counted_children() -> None:
    directory = await parse_rows(
        {
            **ROW,
            "slug": "aave-v2",
            "name": "Aave V2",
            "tvl": 10,
            "category": "Old",
            "chains": ["Polygon", "Base"],
        },
        ROW,
        {**ROW, "slug": "aave-arc", "name": "Aave Arc", "tvl": 1000, "excludeTvlFromParent": True},
        {**ROW, "slug": "aave-x", "name": "Aave X", "tvl": None, "chainTvls": {}},
        {**ROW, "tvl": 5_000},
    )

    parent = directory.build_parent("aave")

    assert (parent.slug, parent.name, parent.category, parent.tvl_usd) == ("aave", "Aave", "Lending", 310.5)
    assert parent.chains == ("Ethereum", "Base", "Polygon")
    assert [link.kind for link in parent.links] == ["website", "social", "code", "audit"]


async def test_parent_without_child_values_has_none() -> None:
    directory = await parse_rows({**ROW, "tvl": None, "chainTvls": {}, "name": "Other", "slug": "other"})

    parent = directory.build_parent("aave")

    assert (parent.name, parent.tvl_usd) == ("Aave", None)


def test_slices_have_limited_size() -> None:
    sizes = [300] * 2000 + [SLICE_BYTES * 3] + [2] * 5000 + [SLICE_BYTES // 2] * 9
    rows = [msgspec.Raw(b"x" * size) for size in sizes]

    given = [[len(row) for row in few] for few in split_rows(rows)]

    assert [size for few in given for size in few] == sizes
    assert max(len(few) for few in given) <= SLICE_ROWS
    assert max(sum(few) for few in given if len(few) > 1) <= SLICE_BYTES


def test_no_rows_give_no_slice() -> None:
    assert [*split_rows([])] == []


async def test_other_tasks_run_between_slices() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await parse_rows(*({"slug": f"p{number}"} for number in range(SLICE_ROWS * 8)))
    task.cancel()

    assert turns >= 8


def test_separate_page_is_summed_over_chains() -> None:
    body = {
        **ROW,
        "tvl": [{"date": 1, "totalLiquidityUSD": 9}],
        "chainTvls": {"Base": {"tvl": [{"date": 1, "totalLiquidityUSD": 9}]}},
        "currentChainTvls": {"Base": 5, "Base-borrowed": 9, "borrowed": 9, "Ethereum": "2.5", "vesting": 1},
    }

    protocol = parse_protocol("aave-v3", json.dumps(body).encode())

    assert protocol
    assert (protocol.tvl_usd, protocol.chains) == (7.5, ("Ethereum", "Base"))


@pytest.mark.parametrize("body", [b"[7]", b"7", b'"text"', b"", b'{"name":', b'{"a":' * 100_000])
def test_invalid_page_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_protocol("a", body)


def test_slugs_match_those_of_directory() -> None:
    assert [to_slug(name) for name in ("Aave V3", " Maker's  DAO_x", "Curve.fi", "A - B", "\uff21ave")] == [
        "aave-v3",
        "makers-dao-x",
        "curve.fi",
        "a-b",
        "aave",
    ]
    assert alphanumeric_key("Aave-V3 \N{OCTOPUS}!") == "aavev3"


async def test_oracles_of_newer_rows_are_in_breakdown() -> None:
    breakdown = [
        {"name": "Switchboard", "type": "Secondary"},
        {"name": "Pyth\u202e", "type": "Primary", "endDate": None},
        {"name": "Dice", "type": "RNG"},
        {"name": "Ticker", "type": "Reference"},
        {"name": "Former", "type": "Primary", "endDate": "2024-01-01"},
        {"name": 7},
        "Chainlink",
    ]

    protocol = await parse_protocol_row(oracles=["Pyth"], oraclesBreakdown=breakdown)

    assert protocol.details.oracles == ("Pyth", "Switchboard")


async def test_fork_origins_are_named_by_id() -> None:
    directory = await parse_rows(
        {**ROW, "forkedFrom": ["Uniswap V2"], "forkedFromIds": ["111", 112, "none", None]},
        {**ROW, "slug": "aave-v2", "name": "Aave V2", "id": "111"},
        {**ROW, "slug": "uniswap-v2", "name": "Uniswap V2", "id": 112},
    )

    protocol = directory.get_protocol(directory.by_slug["aave-v3"])

    assert protocol.details.forked_from == ("Uniswap V2", "Aave V2")


@pytest.mark.parametrize(
    ("audits", "status"),
    [("0", "none"), ("1", "partial"), (2, "audited"), ("3", "audited_origin"), ("7", None), (None, None)],
)
async def test_audits_are_a_status_not_a_count(audits: Any, status: str | None) -> None:
    protocol = await parse_protocol_row(audits=audits, governanceID=["snapshot:aave.eth", 7])

    assert protocol.details.audit_status == status
    assert protocol.details.governance_ids == ("snapshot:aave.eth",)


async def test_renamed_parent_has_new_slug() -> None:
    directory = await parse_rows({**ROW, "parentProtocol": "parent#old", "parentProtocolSlug": "new-name"})

    protocol = directory.get_protocol(directory.by_slug["aave-v3"])

    assert (protocol.details.parent_slug, [*directory.children]) == ("new-name", ["new-name"])
    assert "parent#old" in directory.build_parent("new-name").details.ids


@pytest.mark.parametrize(
    ("other", "change"),
    [
        ({"tvl": 50, "change_1d": -50}, 0.0),
        ({"tvl": 0, "change_1d": None}, 50.0),
        ({"tvl": 50, "change_1d": None}, None),
        ({"tvl": 50, "change_1d": -100}, None),
        ({"tvl": 50, "change_1d": None, "excludeTvlFromParent": True}, 50.0),
    ],
)
async def test_change_of_parent_is_that_of_sum(other: dict[str, Any], change: float | None) -> None:
    directory = await parse_rows(
        {**ROW, "tvl": 150, "change_1d": 50}, {**ROW, "slug": "aave-v2", "name": "Aave V2", **other}
    )

    details = directory.build_parent("aave").details

    assert details.tvl_change_day == (None if change is None else pytest.approx(change))
    assert details.tvl_change_week is None
