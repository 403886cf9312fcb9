"""pool-snapshot through the paid API: selection of the pair, its price, and warnings."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import ApiFactory, payment_note
from fake_upstreams import FAULTS, FakeUpstreams, configure_providers, load_body, send_paid
from jsonschema import Draft202012Validator

from centgate.envelope import PROVIDER_SCHEMA
from centgate.services.pool_snapshot import pool_snapshot
from centgate.settings import ProviderSettings, Settings

PATH = "/services/pool-snapshot"
FIGURES = (
    *("pairAddress", "priceUsd", "liquidityUsd", "volume24hUsd", "fdvUsd", "pairCreatedAt", "txns24h", "url"),
)
NO_NODE = {"rpc": ProviderSettings(enabled=False)}
NOT_READ = "chainPriceUsd, saleImpacts and feePercent are not known: no node is configured for the chain"
TOKEN = "0x" + "a1" * 20
WETH = "0x4200000000000000000000000000000000000006"
USDC = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
SYMBOLS = {TOKEN: "TKN", WETH: "WETH", USDC: "USDC"}
PRICES = {TOKEN: 0.5, WETH: 2000.0, USDC: 1.0}
CHAINS = {
    "ethereum": (1, "eth"),
    "base": (8453, "base"),
    "bsc": (56, "bsc"),
    "polygon": (137, "polygon_pos"),
    "arbitrum": (42161, "arbitrum"),
    "optimism": (10, "optimism"),
}
WRONG: tuple[dict[str, Any], ...] = (
    {"chain": "base"},
    {"chain": "base", "tokenAddress": TOKEN, "pairAddress": TOKEN},
    {"chain": "solana", "tokenAddress": TOKEN},
    {"chainId": 43114, "tokenAddress": TOKEN},
    {"tokenAddress": TOKEN},
    {"chain": "base", "pairAddress": "0x" + "ab" * 32},
)
HOUR = 3600
DOUBTS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"liquidity": {"usd": 999}}, "the pair holds only $999.00"),
    ({"liquidity": None}, "no figure is given for the pair's liquidity"),
    ({"liquidity": {"usd": 1e6, "base": 1_999_992, "quote": 0.002}}, "one side holds only $4.00"),
    ({"pairCreatedAt": int(time.time() - HOUR) * 1000}, "less than 24 hours old"),
    ({"pairCreatedAt": int(time.time() - 72 * HOUR) * 1000}, "less than 7 days old"),
    ({"pairCreatedAt": None}, "the source gives no pairCreatedAt for this pair"),
    ({"fdv": None, "volume": {}}, "the source gives no volume24hUsd, fdvUsd for this pair"),
    ({"marketCap": None}, "the source gives no marketCapUsd for this pair"),
    ({"txns": {"h24": {"buys": 3}}}, "the source gives no txns24h for this pair"),
)
OF_TOKEN = {"chain": "base", "tokenAddress": TOKEN}
FALLBACK = "a fallback source was used: GeckoTerminal instead of DEX Screener, which gave no usable answer"
UNLISTED = "a fallback source was used: GeckoTerminal instead of DEX Screener, which has no such pair"
LISTED = (
    "pairCreatedAt is from GeckoTerminal: for an older pair it may be the day "
    "on which the pair was first listed there"
)
OF_QUOTE = (
    "the priced token is the pair's quote token, for which fdvUsd, marketCapUsd and "
    "windows.priceChangePercent are not known"
)
UNKNOWN = {"errors": [{"status": "404", "title": "Not Found"}]}


def pair_address(number: int) -> str:
    """Return the address of a pair by its number."""
    return f"0x{number:040x}"


def dexscreener_row(
    number: int, base: str = TOKEN, quote: str = WETH, usd: float = 1e6, **more: Any
) -> dict[str, Any]:
    """Return a balanced pair in DEX Screener's format."""
    return {
        "chainId": "base",
        "dexId": "uniswap",
        "url": f"https://dexscreener.com/base/{pair_address(number)}",
        "pairAddress": pair_address(number),
        "baseToken": {"address": base, "symbol": SYMBOLS[base]},
        "quoteToken": {"address": quote, "symbol": SYMBOLS[quote]},
        "priceUsd": str(PRICES[base]),
        "priceNative": str(PRICES[base] / PRICES[quote]),
        "txns": {"h24": {"buys": 12, "sells": 9}},
        "volume": {"h24": 34_000},
        "liquidity": {"usd": usd, "base": usd / 2 / PRICES[base], "quote": usd / 2 / PRICES[quote]},
        "fdv": 5_000_000,
        "marketCap": 4_000_000,
        "pairCreatedAt": 1_692_212_700_000,
    } | more


def geckoterminal_pool(
    number: int, base: str = TOKEN, quote: str = WETH, usd: float = 1e6, **fields: Any
) -> dict[str, Any]:
    """Return a pool in GeckoTerminal's format."""
    return {
        "id": f"base_{pair_address(number)}",
        "attributes": {
            "address": pair_address(number),
            "base_token_price_usd": str(PRICES[base]),
            "quote_token_price_usd": str(PRICES[quote]),
            "reserve_in_usd": str(usd),
            "volume_usd": {"h24": "34000.0"},
            "transactions": {"h24": {"buys": 12, "sells": 9}},
            "fdv_usd": "5000000.0",
            "market_cap_usd": "4000000.0",
            "pool_created_at": "2023-08-16T19:05:00Z",
        }
        | fields,
        "relationships": {
            "base_token": {"data": {"id": f"base_{base}"}},
            "quote_token": {"data": {"id": f"base_{quote}"}},
            "dex": {"data": {"id": "aerodrome-base"}},
        },
    }


def serve_dexscreener_pairs(upstreams: FakeUpstreams, *rows: Any, token: str = TOKEN) -> None:
    """Serve the pairs of a token on Base at DEX Screener."""
    upstreams.set_response("dexscreener", f"/token-pairs/v1/base/{token}", list(rows))


def serve_dexscreener_pair(upstreams: FakeUpstreams, at: str, *rows: Any) -> None:
    """Serve the pair of an address on Base at DEX Screener."""
    body = {"schemaVersion": "1.0.0", "pairs": list(rows) or None, "pair": rows[0] if rows else None}
    upstreams.set_response("dexscreener", f"/latest/dex/pairs/base/{at}", body)


def serve_geckoterminal_pools(upstreams: FakeUpstreams, *pools: Any, token: str = TOKEN) -> None:
    """Serve the pools of a token on Base at GeckoTerminal."""
    path, status = f"/api/v2/networks/base/tokens/{token}/pools", 200 if pools else 404
    upstreams.set_response("geckoterminal", path, {"data": list(pools)} if pools else UNKNOWN, status=status)


def serve_geckoterminal_pool(upstreams: FakeUpstreams, at: str, *pools: Any) -> None:
    """Serve the pool of an address on Base at GeckoTerminal."""
    path, status = f"/api/v2/networks/base/pools/{at}", 200 if pools else 404
    upstreams.set_response("geckoterminal", path, {"data": pools[0]} if pools else UNKNOWN, status=status)


def serve_nothing(upstreams: FakeUpstreams, at: str) -> None:
    """Let neither source know a token or a pair at an address."""
    serve_dexscreener_pairs(upstreams, token=at)
    serve_dexscreener_pair(upstreams, at)
    serve_geckoterminal_pools(upstreams, token=at)
    serve_geckoterminal_pool(upstreams, at)


@pytest.fixture
def client(api: ApiFactory, settings: Settings, upstreams: FakeUpstreams) -> httpx.Client:
    """An API with fake upstreams."""
    return api(
        configure_providers(
            settings,
            upstreams.provider_settings("dexscreener", timeout=2.5)  # one of the faults is no response
            | upstreams.provider_settings("geckoterminal")
            | NO_NODE,
        )
    )


def pair_request(number: int) -> dict[str, Any]:
    """Return a request for a pair on Base."""
    return {"chain": "base", "pairAddress": pair_address(number)}


def reset_failures(client: httpx.Client, upstreams: FakeUpstreams, number: int) -> None:
    """Let DEX Screener answer once, so that its failures are no longer consecutive."""
    upstreams.faults.pop("dexscreener", None)
    serve_dexscreener_pair(upstreams, pair_address(1000 + number), dexscreener_row(1000 + number))
    assert send_paid(client, PATH, pair_request(1000 + number)).status_code == 200


def provider_statuses(body: Any) -> dict[str, str]:
    """Return the status of each source."""
    return {each["name"]: each["status"] for each in body["providers"]}


def find_selection(body: Any, source: str = "dexscreener") -> Any:
    """Return a source's data about the selected pair."""
    return next(each["selection"] for each in body["providers"] if each["name"] == source)


def test_token_is_answered_with_deepest_pair(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    serve_dexscreener_pairs(
        upstreams, dexscreener_row(1, usd=5e4), dexscreener_row(2), dexscreener_row(3, usd=400)
    )

    response = send_paid(client, PATH, OF_TOKEN)

    assert response.status_code == 200
    body = response.json()
    assert body["warnings"] == [NOT_READ]
    assert provider_statuses(body) == {"dexscreener": "ok", "geckoterminal": "skipped", "rpc": "unconfigured"}
    known = {key: body["data"][key] for key in FIGURES}
    assert known == {
        "pairAddress": pair_address(2),
        "priceUsd": 0.5,
        "liquidityUsd": 1e6,
        "volume24hUsd": 34_000,
        "fdvUsd": 5_000_000,
        "pairCreatedAt": "2023-08-16T19:05:00Z",
        "txns24h": {"buys": 12, "sells": 9},
        "url": f"https://dexscreener.com/base/{pair_address(2)}",
    }
    assert find_selection(body) == {
        "pairsConsidered": 3,
        "reason": "The deepest of 3 pairs by liquidity. priceUsd is for its base token.",
        "baseToken": {"address": TOKEN, "symbol": "TKN"},
        "quoteToken": {"address": WETH, "symbol": "WETH"},
        "dex": "uniswap",
    }
    assert {key for each in body["providers"] for key in each} <= set(PROVIDER_SCHEMA["properties"])


def test_example_is_about_base_token_of_its_pair() -> None:
    """The chain quotes sales of the base token alone."""
    example = pool_snapshot.output_example
    total = example["liquidityUsd"] + sum(each["liquidityUsd"] for each in example["otherPairs"])

    assert example["baseToken"]["address"] == pool_snapshot.input_example["tokenAddress"]
    sides = [example[name] for name in ("baseToken", "quoteToken")]
    assert example["liquidityUsd"] == sum(side["reserveUsd"] for side in sides)
    assert example["baseToken"]["reserveUsd"] == example["baseToken"]["reserve"] * example["priceUsd"]
    assert example["pairCount"] == len(example["otherPairs"]) + 1
    assert [each["liquidityShare"] for each in example["otherPairs"]] == [
        round(100 * each["liquidityUsd"] / total, 2) for each in example["otherPairs"]
    ]


def test_answer_is_valid_by_schema(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    bare = {key: dexscreener_row(1)[key] for key in ("chainId", "pairAddress", "baseToken", "quoteToken")}
    serve_dexscreener_pairs(upstreams, bare)

    data = send_paid(client, PATH, OF_TOKEN).json()["data"]

    validator: Any = Draft202012Validator(pool_snapshot.output_schema)
    assert list(validator.iter_errors(data)) == []
    assert list(validator.iter_errors(pool_snapshot.output_example)) == []
    assert list(data) == list(pool_snapshot.output_example)


@pytest.mark.extended
def test_chains_are_accepted_by_slug_and_id(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    token = TOKEN.upper().replace("0X", "0x")
    for name in CHAINS:
        upstreams.set_response(
            "dexscreener", f"/token-pairs/v1/{name}/{TOKEN}", [dexscreener_row(1, chainId=name, url=None)]
        )

    by_slug = [send_paid(client, PATH, {"chain": slug, "tokenAddress": token}) for slug in CHAINS]
    by_id = [send_paid(client, PATH, {"chainId": n, "tokenAddress": TOKEN}) for n, _ in CHAINS.values()]

    assert [response.status_code for response in (*by_slug, *by_id)] == [200] * 12
    assert [each.json()["data"] for each in by_slug] == [each.json()["data"] for each in by_id]
    assert len(upstreams.requests_of("dexscreener")) == 6


def test_each_chain_has_its_fallback(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    upstreams.faults["dexscreener"] = "500"
    for _, network in CHAINS.values():
        told = json.loads(json.dumps(geckoterminal_pool(1)).replace("base_0x", f"{network}_0x"))
        upstreams.set_response(
            "geckoterminal", f"/api/v2/networks/{network}/tokens/{TOKEN}/pools", {"data": [told]}
        )

    responses = [send_paid(client, PATH, {"chain": slug, "tokenAddress": TOKEN}) for slug in CHAINS]

    assert [response.json()["data"]["url"] for response in responses] == [
        f"https://www.geckoterminal.com/{network}/pools/{pair_address(1)}" for _, network in CHAINS.values()
    ]


def test_quote_token_has_own_price_and_no_fdv(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    deep = dexscreener_row(1, WETH, USDC, 5e6, priceUsd="2000.00", priceNative="2000.40")
    serve_dexscreener_pairs(upstreams, dexscreener_row(2, USDC, WETH, 3e4), deep, token=USDC)

    body = send_paid(client, PATH, {"chain": "base", "tokenAddress": USDC}).json()

    assert body["warnings"] == [NOT_READ, OF_QUOTE]
    assert body["data"]["pairAddress"] == pair_address(1)
    assert body["data"]["priceUsd"] == pytest.approx(0.9998)
    assert body["data"]["fdvUsd"] is None
    assert find_selection(body)["reason"].endswith(
        "priceUsd is for its quote token, so fdvUsd does not apply."
    )


@pytest.mark.extended
@pytest.mark.parametrize("source", ["dexscreener", "geckoterminal"])
def test_figures_unknown_of_quote_token_are_named(
    client: httpx.Client, upstreams: FakeUpstreams, source: str
) -> None:
    if source == "dexscreener":
        row = dexscreener_row(1, WETH, USDC, 5e6, marketCap=5e9, priceChange={"h1": 1.5})
        serve_dexscreener_pairs(upstreams, row, token=USDC)
    else:
        serve_dexscreener_pairs(upstreams, token=USDC)
        told = {"market_cap_usd": "5e9", "price_change_percentage": {"h1": "1.5"}}
        serve_geckoterminal_pools(upstreams, geckoterminal_pool(1, WETH, USDC, 5e6, **told), token=USDC)

    body = send_paid(client, PATH, {"chain": "base", "tokenAddress": USDC}).json()

    assert OF_QUOTE in body["warnings"]
    assert (body["data"]["fdvUsd"], body["data"]["marketCapUsd"]) == (None, None)
    assert {each["priceChangePercent"] for each in body["data"]["windows"]} <= {None}


def test_trades_of_quote_token_are_mirrored(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    trading = {
        "txns": {"h1": {"buys": 3, "sells": 1}, "h24": {"buys": 12, "sells": 9}},
        "volume": {"h1": 500, "h24": 34_000},
        "priceChange": {"h1": 1.5, "h24": -2},
    }
    deep = dexscreener_row(1, WETH, USDC, 5e6, **trading)
    serve_dexscreener_pairs(upstreams, deep, token=USDC)
    serve_dexscreener_pairs(upstreams, deep, token=WETH)

    quote, base = (
        send_paid(client, PATH, {"chain": "base", "tokenAddress": token}).json()["data"]
        for token in (USDC, WETH)
    )

    assert base["txns24h"] == {"buys": 12, "sells": 9}
    assert quote["txns24h"] == {"buys": 9, "sells": 12}
    assert base["windows"][0] == {
        "window": "1h",
        "priceChangePercent": 1.5,
        "volumeUsd": 500,
        "buys": 3,
        "sells": 1,
    }
    assert quote["windows"][0] == {
        "window": "1h",
        "priceChangePercent": None,
        "volumeUsd": 500,
        "buys": 1,
        "sells": 3,
    }


def test_other_pairs_have_their_share(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    serve_dexscreener_pairs(
        upstreams,
        dexscreener_row(1, usd=1e6, labels=["v3"]),
        dexscreener_row(2, usd=2.5e5),
        dexscreener_row(3, usd=7.5e5),
    )

    data = send_paid(client, PATH, OF_TOKEN).json()["data"]

    assert (data["dex"], data["dexVersion"], data["pairCount"]) == ("uniswap", "v3", 3)
    assert [(each["pairAddress"], each["liquidityShare"]) for each in data["otherPairs"]] == [
        (pair_address(3), 37.5),
        (pair_address(2), 12.5),
    ]
    assert data["baseToken"]["reserveUsd"] == pytest.approx(5e5)


def test_pool_at_implausible_price_is_skipped_with_warning(
    client: httpx.Client, upstreams: FakeUpstreams
) -> None:
    nonsense = dexscreener_row(1, usd=2e6, priceUsd="11.53", liquidity={"usd": 2e6})
    serve_dexscreener_pairs(upstreams, nonsense, dexscreener_row(2, usd=1.5e6), dexscreener_row(3, usd=1.2e6))

    body = send_paid(client, PATH, OF_TOKEN).json()

    assert body["data"]["pairAddress"] == pair_address(2)
    assert "1 whose price is far from that of the deep pairs" in find_selection(body)["reason"]
    assert body["warnings"] == [
        "prices of the token's deepest pairs differ by more than 10%: from $0.5 to $11.53",
        NOT_READ,
    ]


def test_shallow_pool_at_implausible_price_gives_no_warning(
    client: httpx.Client, upstreams: FakeUpstreams
) -> None:
    serve_dexscreener_pairs(upstreams, dexscreener_row(1, usd=1_219.57, priceUsd="11.53"), dexscreener_row(2))

    body = send_paid(client, PATH, OF_TOKEN).json()

    assert body["data"]["priceUsd"] == 0.5
    assert body["warnings"] == [NOT_READ]


def test_one_sided_pool_does_not_hide_balanced_one(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    hollow = dexscreener_row(1, usd=9e7, liquidity={"usd": 9e7, "base": 1.8e8, "quote": 0.002})
    serve_dexscreener_pairs(upstreams, hollow, dexscreener_row(2, usd=5e4))

    body = send_paid(client, PATH, OF_TOKEN).json()

    assert body["data"]["pairAddress"] == pair_address(2)
    assert "hides an almost empty side" in find_selection(body)["reason"]
    assert body["warnings"] == [NOT_READ]


@pytest.mark.extended
def test_doubtful_or_missing_values_give_warnings(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    for number, (odd, _) in enumerate(DOUBTS):
        serve_dexscreener_pair(upstreams, pair_address(number), dexscreener_row(number, **odd))

    warnings = [
        send_paid(client, PATH, pair_request(number)).json()["warnings"] for number in range(len(DOUBTS))
    ]

    assert [each[0] for each in warnings] == [NOT_READ] * len(DOUBTS)
    assert [
        said for (_, said), (_, warning) in zip(DOUBTS, warnings, strict=True) if said not in warning
    ] == []


def test_pair_is_answered_with_price_of_base_token(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    serve_dexscreener_pair(upstreams, pair_address(7), dexscreener_row(7, WETH, USDC))

    body = send_paid(client, PATH, pair_request(7)).json()

    assert body["warnings"] == [NOT_READ]
    assert body["data"]["priceUsd"] == 2000
    assert body["data"]["fdvUsd"] == 5_000_000
    assert find_selection(body)["pairsConsidered"] == 1
    assert find_selection(body)["reason"] == "The requested pair. priceUsd is for its base token."


@pytest.mark.extended
def test_second_source_answers_after_any_failure(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    for number, fault in enumerate(FAULTS):
        serve_geckoterminal_pool(upstreams, pair_address(number), geckoterminal_pool(number))
        reset_failures(client, upstreams, number)
        upstreams.faults["dexscreener"] = fault

        body = send_paid(client, PATH, pair_request(number)).json()

        assert body["data"]["pairAddress"] == pair_address(number), fault
        assert find_selection(body, "geckoterminal")
        assert f"provider_{provider_statuses(body)['dexscreener']}" == FAULTS[fault][1]
        assert provider_statuses(body)["geckoterminal"] == "ok"
        assert body["warnings"][0].startswith("DEX Screener ")
        assert body["warnings"][1:] == [NOT_READ, FALLBACK, LISTED]


def test_second_source_is_queried_if_first_has_no_data(
    client: httpx.Client, upstreams: FakeUpstreams
) -> None:
    serve_nothing(upstreams, TOKEN)
    serve_geckoterminal_pools(
        upstreams, geckoterminal_pool(4, WETH, TOKEN, pool_created_at="2021-12-29T12:35:14Z")
    )

    body = send_paid(client, PATH, OF_TOKEN).json()

    assert provider_statuses(body) == {"dexscreener": "no_data", "geckoterminal": "ok", "rpc": "unconfigured"}
    assert body["data"]["priceUsd"] == 0.5
    assert body["data"]["fdvUsd"] is None
    assert body["data"]["pairCreatedAt"] is None
    unused = (
        "pairCreatedAt is null: GeckoTerminal gives 2021-12-29, which is the day on which the pair was first "
        "listed there, not that of its creation"
    )
    assert body["warnings"] == [NOT_READ, UNLISTED, unused, OF_QUOTE]


def test_fallback_answers_if_first_source_is_disabled(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    serve_geckoterminal_pool(upstreams, pair_address(4), geckoterminal_pool(4))
    off = {"dexscreener": ProviderSettings(url=upstreams.url_of("dexscreener"), enabled=False)}
    client = api(configure_providers(settings, upstreams.provider_settings("geckoterminal") | off | NO_NODE))

    response = send_paid(client, PATH, pair_request(4))

    assert response.status_code == 200
    assert provider_statuses(response.json()) == {
        "dexscreener": "unconfigured",
        "geckoterminal": "ok",
        "rpc": "unconfigured",
    }
    assert response.json()["warnings"] == [NOT_READ, FALLBACK, LISTED]
    assert upstreams.requests_of("dexscreener") == []


def test_failing_node_is_failure_if_no_index_is_asked(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    upstreams.faults["rpc"] = "500"
    node = {"rpc_8453": ProviderSettings(url=upstreams.url_of("rpc"))}
    strict = settings.model_copy(update={"resale_permitted_only": True})
    client = api(configure_providers(strict, node))

    response = send_paid(client, PATH, OF_TOKEN)

    assert (response.status_code, response.json()["error"]["provider"]) == (502, "rpc")
    assert payment_note(response)["retry"] == "same_payment"


@pytest.mark.extended
@pytest.mark.parametrize("of", ["tokenAddress", "pairAddress"])
def test_first_failure_is_reported_and_payment_stays_redeemable(
    of: str, client: httpx.Client, upstreams: FakeUpstreams
) -> None:
    for number, fault in enumerate(FAULTS):
        reset_failures(client, upstreams, number)
        upstreams.faults |= {"dexscreener": fault, "geckoterminal": "503"}

        response = send_paid(client, PATH, {"chain": "base", of: TOKEN})

        assert (response.status_code, response.json()["error"]["code"]) == FAULTS[fault]
        assert response.json()["error"]["provider"] == "dexscreener"
        assert payment_note(response)["retry"] == "same_payment"


@pytest.mark.extended
@pytest.mark.parametrize(
    ("of", "hint"),
    [("tokenAddress", "it may be on another chain"), ("pairAddress", "send it as tokenAddress")],
)
def test_unknown_token_is_no_data_with_hint(
    of: str, hint: str, client: httpx.Client, upstreams: FakeUpstreams
) -> None:
    serve_nothing(upstreams, TOKEN)

    response = send_paid(client, PATH, {"chain": "base", of: TOKEN})

    assert response.status_code == 404
    assert response.json()["error"]["code"] == "no_data"
    assert hint in response.json()["error"]["message"]
    assert TOKEN in response.json()["error"]["message"]
    # clients end the message with a period of their own
    assert response.json()["error"]["message"][-1] not in ".?!"


@pytest.mark.extended
def test_token_without_pairs_is_unknown_despite_failed_pair_query(
    client: httpx.Client, upstreams: FakeUpstreams
) -> None:
    serve_nothing(upstreams, TOKEN)
    for name, path in (
        ("dexscreener", f"/latest/dex/pairs/base/{TOKEN}"),
        ("geckoterminal", f"/api/v2/networks/base/pools/{TOKEN}"),
    ):
        upstreams.set_response(name, path, {"error": "injected"}, status=500)

    response = send_paid(client, PATH, OF_TOKEN)

    assert (response.status_code, response.json()["error"]["code"]) == (404, "no_data")


@pytest.mark.extended
@pytest.mark.parametrize("of", ["tokenAddress", "pairAddress"])
@pytest.mark.parametrize("failing", ["dexscreener", "geckoterminal"])
def test_no_data_is_not_reported_while_source_is_down(
    failing: str, of: str, client: httpx.Client, upstreams: FakeUpstreams
) -> None:
    serve_nothing(upstreams, TOKEN)
    upstreams.faults[failing] = "500"

    response = send_paid(client, PATH, {"chain": "base", of: TOKEN})

    assert response.status_code == 502
    assert response.json()["error"]["provider"] == failing
    assert payment_note(response)["retry"] == "same_payment"


@pytest.mark.parametrize("of", ["tokenAddress", "pairAddress"])
def test_failed_node_does_not_weaken_no_data(
    of: str, api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    serve_nothing(upstreams, TOKEN)
    upstreams.faults["rpc"] = "500"
    names = ("dexscreener", "geckoterminal", "rpc")
    client = api(configure_providers(settings, upstreams.provider_settings(*names)))

    response = send_paid(client, PATH, {"chain": "base", of: TOKEN})

    assert (response.status_code, response.json()["error"]["code"]) == (404, "no_data")
    assert upstreams.requests_of("rpc")


@pytest.mark.parametrize("of", ["tokenAddress", "pairAddress"])
def test_failed_index_and_node_are_both_reported(
    of: str, api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    serve_nothing(upstreams, TOKEN)
    upstreams.faults |= {"geckoterminal": "500", "rpc": "500"}
    names = ("dexscreener", "geckoterminal", "rpc")
    client = api(configure_providers(settings, upstreams.provider_settings(*names)))

    response = send_paid(client, PATH, {"chain": "base", of: TOKEN})

    assert (response.status_code, response.json()["error"]["provider"]) == (502, "geckoterminal")
    assert "JSON-RPC node" in response.json()["error"]["message"]


@pytest.mark.extended
@pytest.mark.parametrize("off", ["dexscreener", "geckoterminal"])
def test_disabled_source_does_not_weaken_no_data(
    off: str, api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    serve_nothing(upstreams, TOKEN)
    there = upstreams.provider_settings("dexscreener", "geckoterminal")
    client = api(
        configure_providers(
            settings, there | NO_NODE | {off: ProviderSettings(url=upstreams.url_of(off), enabled=False)}
        )
    )

    response = send_paid(client, PATH, OF_TOKEN)

    assert response.status_code == 404
    assert upstreams.requests_of(off) == []


def test_pair_sent_as_token_is_answered_with_warning(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    serve_nothing(upstreams, pair_address(7))
    serve_dexscreener_pair(upstreams, pair_address(7), dexscreener_row(7, WETH, USDC))

    body = send_paid(client, PATH, {"chain": "base", "tokenAddress": pair_address(7)}).json()

    assert provider_statuses(body)["dexscreener"] == "ok"
    assert body["data"]["pairAddress"] == pair_address(7)
    assert body["data"]["priceUsd"] == 2000
    assert body["warnings"] == [
        f"{pair_address(7)} is not a token with pairs but a pair, and was answered as pairAddress",
        NOT_READ,
    ]


def test_pool_at_address_of_its_token_belongs_to_token(
    client: httpx.Client, upstreams: FakeUpstreams
) -> None:
    serve_nothing(upstreams, TOKEN)
    serve_geckoterminal_pool(upstreams, TOKEN, geckoterminal_pool(1, WETH, TOKEN, address=TOKEN))

    body = send_paid(client, PATH, OF_TOKEN).json()

    assert body["data"]["pairAddress"] == TOKEN
    assert body["data"]["priceUsd"] == 0.5
    assert body["warnings"] == [NOT_READ, UNLISTED, LISTED, OF_QUOTE]


@pytest.mark.extended
def test_remaining_queries_are_concurrent_after_no_data(
    client: httpx.Client, upstreams: FakeUpstreams
) -> None:
    serve_nothing(upstreams, TOKEN)
    upstreams.delay = 0.2

    response = send_paid(client, PATH, OF_TOKEN)

    first, *rest = (request.at for request in upstreams.requests)
    assert response.status_code == 404
    assert len(rest) == 3
    assert min(rest) - first >= upstreams.delay > max(rest) - min(rest)


@pytest.mark.extended
def test_failed_first_source_costs_second_one_query(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    upstreams.faults["dexscreener"] = "500"
    serve_geckoterminal_pools(upstreams, geckoterminal_pool(1))
    upstreams.delay = 0.1

    response = send_paid(client, PATH, OF_TOKEN)

    assert response.status_code == 200
    assert len(upstreams.requests_of("geckoterminal")) == 1


@pytest.mark.extended
def test_tiny_amount_does_not_win_by_large_figure(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    odd = dexscreener_row(1, usd=1e7, priceUsd="0.9", liquidity={"usd": 1e7, "quote": 0.0015})
    serve_dexscreener_pairs(upstreams, odd, dexscreener_row(2))

    body = send_paid(client, PATH, OF_TOKEN).json()

    assert (body["data"]["pairAddress"], body["data"]["priceUsd"]) == (pair_address(2), 0.5)
    assert "hides an almost empty side" in find_selection(body)["reason"]


@pytest.mark.extended
def test_other_pair_than_requested_is_ignored(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    serve_dexscreener_pair(upstreams, TOKEN, dexscreener_row(5))
    serve_geckoterminal_pool(upstreams, TOKEN)

    response = send_paid(client, PATH, {"chain": "base", "pairAddress": TOKEN})

    assert response.status_code == 404


@pytest.mark.extended
def test_token_with_pairs_costs_one_query(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    serve_dexscreener_pairs(upstreams, dexscreener_row(1))

    send_paid(client, PATH, OF_TOKEN)
    second = send_paid(client, PATH, OF_TOKEN)

    assert second.json()["cache"]["hit"] is True
    assert [request.path for request in upstreams.requests] == [f"/token-pairs/v1/base/{TOKEN}"]


def test_invalid_row_is_omitted_with_warning(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    serve_dexscreener_pairs(upstreams, {"chainId": "base"}, dexscreener_row(1))

    body = send_paid(client, PATH, OF_TOKEN).json()

    assert body["data"]["pairAddress"] == pair_address(1)
    assert body["warnings"] == ["DEX Screener: 1 of 2 pairs could not be read and are left out", NOT_READ]


@pytest.mark.extended
def test_request_without_sources_is_refused_before_payment(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    client = api(
        configure_providers(
            settings,
            upstreams.provider_settings("dexscreener", "geckoterminal", enabled=False) | NO_NODE,
        )
    )

    response = send_paid(client, PATH, OF_TOKEN)

    assert response.status_code == 503
    assert response.json()["error"]["code"] == "provider_unconfigured"
    assert payment_note(response)["charged"] is False


def test_invalid_request_is_refused_before_payment(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    responses = [client.post(PATH, json=wrong) for wrong in WRONG]

    assert [response.status_code for response in responses] == [400] * len(WRONG)
    assert {response.json()["error"]["code"] for response in responses} == {"validation_error"}
    assert upstreams.requests == []


def test_recorded_pair_is_answered(
    api: ApiFactory, settings: Settings, recordings_url: str, tmp_path: Path
) -> None:
    names = ("dexscreener", "geckoterminal")
    client = api(
        configure_providers(
            settings, {name: ProviderSettings(url=f"{recordings_url}/{name}") for name in names} | NO_NODE
        )
    )
    pair = "0x88e6A0c2dDD26FEEb64F039a2c41296FcB3f5640"

    body = send_paid(client, PATH, {"chain": "ethereum", "pairAddress": pair}).json()

    assert body["warnings"] == [NOT_READ]
    assert body["data"]["pairAddress"] == pair.lower()
    assert body["data"]["pairCreatedAt"] == "2021-05-05T21:42:11Z"
    assert body["data"]["priceUsd"] == 2701.37


def test_recorded_pools_are_answered_from_fallback(
    api: ApiFactory, settings: Settings, recordings_url: str, upstreams: FakeUpstreams
) -> None:
    upstreams.faults["dexscreener"] = "503"
    there = {"geckoterminal": ProviderSettings(url=f"{recordings_url}/geckoterminal")}
    client = api(configure_providers(settings, upstreams.provider_settings("dexscreener") | there))
    weth = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"

    data = send_paid(client, PATH, {"chainId": 1, "tokenAddress": weth}).json()["data"]

    assert data["liquidityUsd"] == 289872902.4088
    assert data["priceUsd"] == pytest.approx(2958.2, rel=1e-3)
    assert data["fdvUsd"] is None


@pytest.mark.recorded
@pytest.mark.extended
def test_recorded_pairs_of_bnb_are_answered(client: httpx.Client, upstreams: FakeUpstreams) -> None:
    rows = load_body("dexscreener", "search_eth_wbnb_30_pairs")["pairs"]
    wbnb = "0xbb4cdb9cbd36b01bd1cbaebf2de08d9173bc095c"
    upstreams.set_response("dexscreener", f"/token-pairs/v1/bsc/{wbnb}", rows)

    body = send_paid(client, PATH, {"chain": "bsc", "tokenAddress": wbnb}).json()

    assert body["warnings"] == [NOT_READ, OF_QUOTE]
    assert body["data"]["liquidityUsd"] == 7605771.47
    assert body["data"]["priceUsd"] == pytest.approx(758.87, abs=0.01)
