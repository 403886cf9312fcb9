"""pool-snapshot on a development chain: answers of the chain alone, and of an index compared with it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import ApiFactory
from exchange_market import NATIVE_COIN, install_market
from fake_upstreams import FakeUpstreams, configure_providers, send_paid
from lookups.changing_node import is_call_of
from lookups.pool_market import COIN, DOLLAR, TOKEN, Market

from centgate.devchain.chain import EvmChain
from centgate.devchain.devnet import DevChain, open_devchain
from centgate.devchain.environment import devchain_settings
from centgate.settings import ProviderSettings, Settings

PATH = "/services/pool-snapshot"


@dataclass
class Pools:
    """A token of 20,000 dollars a side in a v2 pool against native coin, and of 2,000 in a v3 pool."""

    token: str = ""
    v2: str = ""
    v3: str = ""
    weth: str = ""

    def create(self, chain: EvmChain) -> None:
        exchanges = install_market(chain)
        self.token = exchanges.create_token("Token", "TKN", supply=10**26).lower()
        self.weth, usdc = exchanges.wrap(10 * 10**18).lower(), exchanges.stablecoin("USDC", 2_000 * 10**6)
        self.v2 = exchanges.add_v2_pool({self.token: 10**24, self.weth: 10 * 10**18}).lower()
        self.v3 = exchanges.add_v3_pool({self.token: 10**23, usdc: 2_000 * 10**6}).lower()


@pytest.fixture(scope="module")
def pools() -> Pools:
    """Addresses of the pools; filled when the chain starts."""
    return Pools()


@pytest.fixture(scope="module")
def chain(pools: Pools) -> Generator[DevChain]:
    """A development chain with the pools."""
    with open_devchain(prepare=pools.create) as chain:
        yield chain


@pytest.fixture
def client(api: ApiFactory, chain: DevChain, tmp_path: Path) -> httpx.Client:
    """API without any source but the node."""
    return api(devchain_settings(chain, Settings(port=0), tmp_path))


def buy(client: httpx.Client, **body: Any) -> dict[str, Any]:
    """Buy a snapshot."""
    response = send_paid(client, PATH, body)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.extended
def test_token_snapshot_needs_only_the_chain(client: httpx.Client, chain: DevChain, pools: Pools) -> None:
    body = buy(client, chainId=chain.chain_id, tokenAddress=pools.token)

    data = body["data"]
    assert data["pairAddress"] == pools.v2
    assert data["priceUsd"] == data["chainPriceUsd"] == pytest.approx(0.02)
    assert data["liquidityUsd"] == pytest.approx(40_000)
    assert data["quoteToken"] == {
        "address": pools.weth,
        "symbol": "WETH",
        "reserve": 10,
        "reserveUsd": pytest.approx(20_000),
    }
    assert (data["dex"], data["feePercent"], data["pairCount"]) == ("Uniswap v2", 0.3, 2)
    assert [each["pairAddress"] for each in data["otherPairs"]] == [pools.v3]
    assert data["otherPairs"][0]["liquidityShare"] == pytest.approx(100 / 11, abs=0.1)
    assert [each["usd"] for each in data["saleImpacts"]] == [100, 1_000, 10_000]
    assert (data["volume24hUsd"], data["txns24h"], data["windows"]) == (None, None, [])
    assert any("none of 24 hours" in each for each in body["warnings"])
    (node,) = [each for each in body["providers"] if each["name"] == "rpc"]
    assert node["status"] == "ok"


@pytest.mark.extended
def test_pair_snapshot_needs_only_the_chain(client: httpx.Client, chain: DevChain, pools: Pools) -> None:
    data = buy(client, chainId=chain.chain_id, pairAddress=pools.v3)["data"]

    assert data["pairAddress"] == pools.v3
    assert data["priceUsd"] == pytest.approx(0.02)
    assert data["otherPairs"] == []


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_version_of_exchange_is_named(
    client: httpx.Client, chain: DevChain, pools: Pools, version: str
) -> None:
    data = buy(client, chainId=chain.chain_id, pairAddress=getattr(pools, version))["data"]

    assert (data["dex"], data["dexVersion"]) == (f"Uniswap {version}", version)


@pytest.mark.parametrize("is_by_address", [False, True], ids=["of the token", "by address"])
def test_chain_values_the_whole_supply(
    client: httpx.Client, chain: DevChain, pools: Pools, *, is_by_address: bool
) -> None:
    asked = {"pairAddress": pools.v3} if is_by_address else {"tokenAddress": pools.token}

    body = buy(client, chainId=chain.chain_id, **asked)

    assert body["data"]["fdvUsd"] == pytest.approx(0.02 * 10**8)
    assert not any("fdvUsd" in each for each in body["warnings"])


@pytest.mark.parametrize(("pool", "is_assumed"), [("v2", False), ("v3", True)])
def test_assumed_price_of_stablecoin_is_warned_of(
    client: httpx.Client, chain: DevChain, pools: Pools, *, pool: str, is_assumed: bool
) -> None:
    warnings = buy(client, chainId=chain.chain_id, pairAddress=getattr(pools, pool))["warnings"]

    assert any("as one dollar, whatever it is worth" in each for each in warnings) is is_assumed


@pytest.mark.parametrize("is_by_address", [False, True], ids=["of the token", "by address"])
@pytest.mark.parametrize("is_lost", [True, False], ids=["lost", "read"])
async def test_unread_fee_is_warned_of(
    api: ApiFactory, settings: Settings, base_market: Market, *, is_by_address: bool, is_lost: bool
) -> None:
    exchanges, token = base_market.exchanges, base_market.token.lower()
    usdc = exchanges.stablecoin("USDC", 10**6 * DOLLAR)
    pool = exchanges.add_solidly_pool({token: 10**5 * TOKEN, usdc: 10**5 * DOLLAR}, stable=True).lower()
    base_market.node.lose_answers(lambda call, _answer: is_lost and is_call_of(call, "getFee(address,bool)"))
    providers = {name: ProviderSettings(enabled=False) for name in ("dexscreener", "geckoterminal")}
    providers["rpc_8453"] = ProviderSettings(url=base_market.url)
    client = api(configure_providers(settings, providers))

    body = buy(client, chain="base", **({"pairAddress": pool} if is_by_address else {"tokenAddress": token}))

    warning = f"feePercent is not known: the fee of the pool {pool} could not be read"
    assert body["data"]["feePercent"] == (None if is_lost else 0.05)
    assert [each for each in body["warnings"] if "feePercent" in each] == ([warning] if is_lost else [])


@pytest.mark.parametrize("has_v4_pool", [True, False])
async def test_pools_of_unknown_depth_are_warned_of(
    api: ApiFactory, settings: Settings, base_market: Market, *, has_v4_pool: bool
) -> None:
    exchanges, token = base_market.exchanges, base_market.token.lower()
    shallow = {token: 100 * TOKEN, exchanges.stablecoin("USDC", 10**6 * DOLLAR): 100 * DOLLAR}
    exchanges.add_v2_pool(shallow)
    if has_v4_pool:
        exchanges.add_v4_pool({NATIVE_COIN: 5 * COIN, token: 10**4 * TOKEN})
    providers = {name: ProviderSettings(enabled=False) for name in ("dexscreener", "geckoterminal")}
    providers["rpc_8453"] = ProviderSettings(url=base_market.url)
    client = api(configure_providers(settings, providers))

    body = buy(client, chain="base", tokenAddress=token)

    assert body["data"]["dex"] == "Uniswap v2"
    warning = (
        "1 of the token's 2 pools may be deeper than this one: the chain does not tell what they hold in US "
        "dollars"
    )
    assert (warning in body["warnings"]) is has_v4_pool


def test_indexes_that_answer_are_not_called_silent(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, chain: DevChain, pools: Pools
) -> None:
    upstreams.set_response("dexscreener", f"/token-pairs/v1/ethereum/{pools.token}", [])
    upstreams.set_response("dexscreener", f"/latest/dex/pairs/ethereum/{pools.token}", {"pairs": None})
    providers = {
        **upstreams.provider_settings("dexscreener"),
        "geckoterminal": ProviderSettings(enabled=False),
        "rpc_1": ProviderSettings(url=chain.rpc_url),
    }
    client = api(configure_providers(settings, providers))

    body = buy(client, chain="ethereum", tokenAddress=pools.token)

    assert [each["status"] for each in body["providers"] if each["name"] == "dexscreener"] == ["no_data"]
    assert (
        "a fallback source was used: no exchange index gave this pair, so the figures are read from the "
        "chain, which has none of 24 hours"
    ) in body["warnings"]


@pytest.mark.parametrize(("told", "doubted"), [(0.0205, False), (0.03, True)])
def test_index_is_compared_with_chain(
    api: ApiFactory,
    settings: Settings,
    upstreams: FakeUpstreams,
    chain: DevChain,
    pools: Pools,
    *,
    told: float,
    doubted: bool,
) -> None:
    body = _buy_listed(
        api, settings, upstreams, chain, token=pools.token, pair=pools.v2, pools=pools, price=told
    )

    assert body["data"]["priceUsd"] == told
    assert body["data"]["chainPriceUsd"] == pytest.approx(0.02)
    assert body["data"]["feePercent"] == 0.3  # of the chain: the index names none
    assert len(body["data"]["saleImpacts"]) == 3
    assert any("differs by" in each for each in body["warnings"]) is doubted


@pytest.mark.parametrize(("liquidity", "doubted"), [(41_000, False), (1_000_000, True), (30_000, True)])
def test_index_liquidity_is_compared_with_chain(
    api: ApiFactory,
    settings: Settings,
    upstreams: FakeUpstreams,
    chain: DevChain,
    pools: Pools,
    *,
    liquidity: float,
    doubted: bool,
) -> None:
    body = _buy_listed(
        api, settings, upstreams, chain, token=pools.token, pair=pools.v2, pools=pools, liquidity=liquidity
    )

    assert body["data"]["liquidityUsd"] == liquidity
    warned = [each for each in body["warnings"] if "the source's liquidity" in each]
    assert bool(warned) is doubted
    assert all("from the $40,000 that the pool's contract holds" in each for each in warned)


def test_sales_of_quote_token_are_reported_as_unquoted(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, chain: DevChain, pools: Pools
) -> None:
    body = _buy_listed(api, settings, upstreams, chain, token=pools.weth, pair=pools.v2, pools=pools)

    assert (body["data"]["saleImpacts"], body["data"]["chainPriceUsd"]) == ([], None)
    reason = f"the chain prices and quotes the pool's base token {pools.token} alone"
    assert f"chainPriceUsd is null and saleImpacts empty: {reason}" in body["warnings"]


def test_pool_unknown_to_chain_is_reported(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, chain: DevChain, pools: Pools
) -> None:
    body = _buy_listed(api, settings, upstreams, chain, token=pools.token, pair=pools.weth, pools=pools)

    assert (body["data"]["saleImpacts"], body["data"]["chainPriceUsd"]) == ([], None)
    (named,) = [each for each in body["warnings"] if "chainPriceUsd" in each]
    assert named.endswith(f"no pool of a known exchange against a token with a known price at {pools.weth}")


def test_pool_without_contract_is_reported(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, chain: DevChain, pools: Pools
) -> None:
    pool_id = "0x" + "44" * 32

    body = _buy_listed(api, settings, upstreams, chain, token=pools.token, pair=pool_id, pools=pools)

    assert body["data"]["chainPriceUsd"] is None
    assert any(
        each.endswith("a pool without a contract of its own is not looked up") for each in body["warnings"]
    )


def _buy_listed(
    api: ApiFactory,
    settings: Settings,
    upstreams: FakeUpstreams,
    chain: DevChain,
    *,
    token: str,
    pair: str,
    pools: Pools,
    price: float = 0.02,
    liquidity: float = 40_000,
) -> dict[str, Any]:
    """Buy a snapshot of a pair of the two tokens that DexScreener lists."""
    row = {
        "chainId": "ethereum",
        "pairAddress": pair,
        "baseToken": {"address": pools.token, "symbol": "TKN"},
        "quoteToken": {"address": pools.weth, "symbol": "WETH"},
        "priceUsd": str(price),
        "priceNative": "0.00001",
        "liquidity": {"usd": liquidity},
    }
    upstreams.set_response("dexscreener", f"/token-pairs/v1/ethereum/{token}", [row])
    node = {"rpc_1": ProviderSettings(url=chain.rpc_url)}
    client = api(configure_providers(settings, upstreams.provider_settings("dexscreener") | node))
    return buy(client, chain="ethereum", tokenAddress=token)


def test_unknown_token_is_no_data_of_node(client: httpx.Client, chain: DevChain) -> None:
    response = send_paid(client, PATH, {"chainId": chain.chain_id, "tokenAddress": "0x" + "77" * 20})

    assert response.status_code == 404, response.text
    assert response.json()["error"]["code"] == "no_data"
    assert response.json()["error"]["message"].startswith("the chain's exchanges have no pool of")
