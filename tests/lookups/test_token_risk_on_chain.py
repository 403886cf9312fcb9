"""token-risk from nothing but a node: levels, rounds of requests, and a node that fails."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from typing import Any

import pytest
from fake_upstreams import FakeUpstreams
from lookups.test_trade_simulation import count_rounds
from lookups.token_cases import CASES
from lookups.token_world import TokenWorld, create_world
from tampering_proxy import rpc_error, start_proxy

from centgate.devchain.http_server import serve_app, silence_libraries
from centgate.devchain.rpc import create_rpc_app
from centgate.devchain.token import CHAIN_ID
from centgate.errors import NoData, ProviderFailure
from centgate.lookups.chain_evidence import ChainEvidence, read_chain_evidence
from centgate.lookups.trade_pools import identify_pools
from centgate.provider import RequestTrace
from centgate.providers.bytecode import BytecodeAnalyzer
from centgate.providers.rpc import Rpc
from centgate.resources import open_resources
from centgate.services.token_risk import TokenRiskRequest, token_risk
from centgate.settings import ProviderSettings, Settings

CASE_BY_NAME = {case.name: case for case in CASES}
NAMES = ("goplus", "honeypotis", "dexscreener", "geckoterminal")


class Served(TokenWorld):
    """Chain with tokens, and the URL of its node."""

    url: str = ""

    def token(self, name: str) -> str:
        """Return the token of a case, which is deployed at its first use."""
        return (self.pools.get(name) or self.add(CASE_BY_NAME[name]))[0].lower()


@pytest.fixture(scope="module")
def served() -> Generator[Served]:
    """One chain for all tests of this file."""
    world = create_world()
    own = Served(world.exchanges, world.buyers, world.router)
    with serve_app(create_rpc_app(world.owner.chain), 0) as url:
        own.url = url
        yield own


@pytest.fixture(autouse=True)
def quiet_chain() -> Generator[None]:
    """Silence the log of the chain's server."""
    with silence_libraries():
        yield


async def answer(url: str, token: str) -> dict[str, Any]:
    """Return the data of an answer from a node alone."""
    node = {f"rpc_{CHAIN_ID}": ProviderSettings(url=url)}
    off = {name: ProviderSettings(enabled=False) for name in NAMES}
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}", providers={**node, **off})
    async with open_resources(settings) as resources:
        providers = {source.info.name: source.provider(settings, resources) for source in token_risk.sources}
        request = TokenRiskRequest.model_construct(chain=None, chain_id=CHAIN_ID, token_address=token)
        result = await token_risk.run(request, providers)
    return json.loads(result.data)


@pytest.mark.parametrize(
    ("case", "level", "flag"),
    [
        ("tax on both", "high", "sell_tax_high"),
        ("revert on sale", "critical", "honeypot"),
        pytest.param("pause between trades", "medium", "trading_cooldown", marks=pytest.mark.extended),
    ],
)
async def test_a_node_alone_gives_a_level(served: Served, case: str, level: str, flag: str):
    data = await answer(served.url, served.token(case))

    assert data["riskLevel"] == level, data["riskFlags"]
    assert flag in [each["id"] for each in data["riskFlags"]]
    (cited,) = [each["evidence"] for each in data["riskFlags"] if each["id"] == flag]
    assert {each["source"] for each in cited} == {"onchain"}
    assert data["honeypot"]["simulatedBy"] == ["onchain"]
    assert data["honeypot"]["holderSales"][0]["tested"] > 0
    assert any(each.startswith("not checked by GoPlus Security: ") for each in data["warnings"])
    assert any("honeypot.is" in each for each in data["warnings"])


@pytest.mark.extended
async def test_the_token_says_who_it_is(served: Served):
    token = (await answer(served.url, served.token("tax on both")))["token"]

    assert (token["decimals"], token["source"]) == (18, "onchain")
    assert (token["totalSupply"], token["supply"]) == (str(10**27), 10**9)


@pytest.mark.extended
async def test_a_token_costs_six_rounds_at_most(served: Served, upstreams: FakeUpstreams):
    starts: list[float] = []

    def note(_request: dict[str, Any]) -> tuple[int, Any] | None:
        starts.append(time.monotonic())
        return None

    upstreams.delay = 0.3
    await answer(start_proxy(upstreams, "node", served.url, note), served.token("tax on both"))

    assert count_rounds(starts, upstreams.delay) <= 6


async def test_a_slow_node_ends_in_time(served: Served, upstreams: FakeUpstreams):
    upstreams.delay = 0.3
    node = {f"rpc_{CHAIN_ID}": ProviderSettings(url=start_proxy(upstreams, "node", served.url, pass_on))}
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}", providers=node)
    token = served.token("tax on both")

    async with open_resources(settings) as resources:
        rpc = Rpc(settings, resources).bind(RequestTrace())
        bytecode = BytecodeAnalyzer(settings, resources).bind(RequestTrace())
        found = await read_chain_evidence(rpc, bytecode, CHAIN_ID, token, list_pools=no_pools, max_wait=0.4)

    assert found == ChainEvidence(missing_reason="source_unavailable")
    assert rpc.trace.warnings == ["the chain was not read to the end within 0.4 s"]
    assert rpc.trace.providers["rpc"]["status"] == "timeout"


def pass_on(_request: dict[str, Any]) -> tuple[int, Any] | None:
    return None


async def no_pools() -> list[str]:
    return []


async def test_a_pool_that_only_an_index_knows_is_identified(served: Served):
    token = served.token("tax on both")
    pool = served.pools["tax on both"][1]
    node = {f"rpc_{CHAIN_ID}": ProviderSettings(url=served.url)}
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}", providers=node)

    async with open_resources(settings) as resources:
        rpc = Rpc(settings, resources).bind(RequestTrace())
        found = await identify_pools(rpc, CHAIN_ID, token, [served.router, token, pool.address])

    assert [(key.kind, key.address, key.token0, key.token1) for key in found] == [
        ("v2", pool.address, pool.token0, pool.token1)
    ]


@pytest.mark.extended
async def test_burned_liquidity_is_found_by_balance(served: Served):
    token = served.token("tax on both")
    pair = served.pools["tax on both"][1].address
    shares = served.owner.read(pair, "balanceOf(address)", served.owner.address, returns="uint256")
    served.owner.send(pair, "transfer(address,uint256)", "0x" + "0" * 36 + "dEaD", shares // 2)

    liquidity = (await answer(served.url, token))["liquidity"]

    locks = [(lock["burned"], round(lock["percent"])) for lock in liquidity["locks"]]
    assert [lock for lock in locks if lock[1]] == [(True, 50)]
    assert liquidity["unlockedPercent"] is None
    assert liquidity["source"] == "onchain"
    assert liquidity["totalUsd"] > 1000


@pytest.mark.extended
async def test_a_token_without_a_pool_is_no_data(served: Served):
    with pytest.raises(NoData):
        await answer(served.url, served.deploy("Plain").lower())


async def test_a_node_that_fails_is_a_failure_that_can_be_repeated(served: Served, upstreams: FakeUpstreams):
    def fail(_request: dict[str, Any]) -> tuple[int, Any] | None:
        return 200, rpc_error(-32000, "no state")

    url = start_proxy(upstreams, "node", served.url, fail)

    with pytest.raises(ProviderFailure):
        await answer(url, served.token("tax on both"))
