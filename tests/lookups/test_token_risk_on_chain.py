"""token-risk from a node alone: levels, rounds of requests, and nodes that fail."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from eth_utils.address import to_canonical_address
from fake_upstreams import FakeUpstreams
from lookups.test_trade_simulation import count_rounds
from lookups.token_cases import CASES
from lookups.token_world import WETH, TokenWorld, create_world
from tampering_proxy import rpc_error, start_proxy

from centgate.crypto.token.pools import PoolKey
from centgate.crypto.token.security import TokenFlags
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_warnings import collect_warnings
from centgate.devchain.exchanges import ETHEREUM
from centgate.devchain.http_server import serve_app, silence_libraries
from centgate.devchain.rpc import create_rpc_app
from centgate.devchain.token import CHAIN_ID
from centgate.errors import NoData, ProviderFailure
from centgate.lookups.chain_evidence import ChainEvidence, read_chain_evidence, read_locked_shares
from centgate.lookups.trade_pools import identify_pools
from centgate.provider import RequestTrace
from centgate.providers.bytecode import BytecodeAnalyzer
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import Rpc
from centgate.resources import open_resources
from centgate.services.token_risk import TokenRiskRequest, token_risk
from centgate.settings import ProviderSettings, Settings

CASE_BY_NAME = {case.name: case for case in CASES}
LONG_CALL = 2_000
"""Hex digits from which a creation brings the code of the simulator."""
NAMES = ("goplus", "honeypotis", "dexscreener", "geckoterminal")


class ServedTokens(TokenWorld):
    """Chain with tokens, and the URL of its node."""

    url: str = ""

    def token(self, name: str) -> str:
        """Return the token of a case, which is deployed at its first use."""
        return (self.pools.get(name) or self.add(CASE_BY_NAME[name]))[0].lower()


@pytest.fixture(scope="module")
def tokens() -> Generator[ServedTokens]:
    """One chain for all tests of this file."""
    world = create_world()
    own = ServedTokens(world.exchanges, world.buyers, world.router)
    with serve_app(create_rpc_app(world.owner.chain), 0) as url:
        own.url = url
        yield own


@pytest.fixture(autouse=True)
def quiet_chain() -> Generator[None]:
    """Silence the log of the chain's server."""
    with silence_libraries():
        yield


async def run_token_risk(url: str, token: str) -> dict[str, Any]:
    """Run token-risk with a node alone and return its data."""
    node = {f"rpc_{CHAIN_ID}": ProviderSettings(url=url)}
    off = {name: ProviderSettings(enabled=False) for name in NAMES}
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}", providers={**node, **off})
    return await run_request(
        settings, TokenRiskRequest.model_construct(chain=None, chain_id=CHAIN_ID, token_address=token)
    )


async def run_request(settings: Settings, request: TokenRiskRequest) -> dict[str, Any]:
    """Return the data of an answer from the sources of these settings."""
    async with open_resources(settings) as resources:
        providers = {source.info.name: source.provider(settings, resources) for source in token_risk.sources}
        result = await token_risk.run(request, providers)
    return json.loads(result.data)


@pytest.mark.parametrize(
    ("case", "level", "flag"),
    [
        pytest.param("tax on both", "high", "sell_tax_high", marks=pytest.mark.extended),
        ("revert on sale", "critical", "honeypot"),
        ("sale never ends", "critical", "honeypot"),
        pytest.param("pause between trades", "medium", "trading_cooldown", marks=pytest.mark.extended),
    ],
)
async def test_node_alone_gives_a_level(tokens: ServedTokens, case: str, level: str, flag: str):
    data = await run_token_risk(tokens.url, tokens.token(case))

    assert data["riskLevel"] == level, data["riskFlags"]
    assert flag in [each["id"] for each in data["riskFlags"]]
    (cited,) = [each["evidence"] for each in data["riskFlags"] if each["id"] == flag]
    assert {each["source"] for each in cited} == {"onchain"}
    assert data["honeypot"]["simulatedBy"] == ["onchain"]
    assert data["honeypot"]["holderSales"][0]["tested"] > 0
    assert any(each.startswith("not checked by GoPlus Security: ") for each in data["warnings"])
    assert any("honeypot.is" in each for each in data["warnings"])


async def test_token_that_never_tells_its_decimals_is_traded(tokens: ServedTokens):
    data = await run_token_risk(tokens.url, tokens.token("name, decimals and supply never end"))

    assert (data["token"]["symbol"], data["token"]["name"], data["token"]["decimals"]) == ("HOST", None, None)
    assert (data["honeypot"]["isHoneypot"], data["honeypot"]["simulatedBy"]) == (False, ["onchain"])
    assert data["liquidity"]["totalUsd"] is None
    assert any("liquidity" in each for each in data["warnings"] if each.startswith("not checked, as no"))


async def test_token_whose_code_never_ends_has_an_answer(tokens: ServedTokens):
    token = tokens.add(replace(CASE_BY_NAME["plain"], name="endless"))[0].lower()
    loop = bytes.fromhex("5b600056")
    tokens.owner.chain.change_state(lambda state: state.set_code(to_canonical_address(token), loop))

    data = await run_token_risk(tokens.url, token)

    assert (data["riskLevel"], data["honeypot"]["canSell"]) == ("high", False)
    assert data["honeypot"]["isHoneypot"] is None, "nobody can buy it either"


@pytest.mark.extended
async def test_token_metadata_is_read(tokens: ServedTokens):
    token = (await run_token_risk(tokens.url, tokens.token("tax on both")))["token"]

    assert (token["decimals"], token["source"]) == (18, "onchain")
    assert (token["totalSupply"], token["supply"]) == (str(10**27), 10**9)


@pytest.mark.extended
async def test_token_takes_at_most_six_rounds(tokens: ServedTokens, upstreams: FakeUpstreams):
    starts: list[float] = []

    def note(_request: dict[str, Any]) -> tuple[int, Any] | None:
        starts.append(time.monotonic())
        return None

    upstreams.delay = 0.8
    await run_token_risk(start_proxy(upstreams, "node", tokens.url, note), tokens.token("tax on both"))

    assert count_rounds(starts, upstreams.delay) <= 6


async def test_slow_node_ends_in_time(tokens: ServedTokens, upstreams: FakeUpstreams):
    upstreams.delay = 0.3
    node = {f"rpc_{CHAIN_ID}": ProviderSettings(url=start_proxy(upstreams, "node", tokens.url, pass_on))}
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}", providers=node)
    token = tokens.token("tax on both")

    async with open_resources(settings) as resources:
        rpc = Rpc(settings, resources).bind(RequestTrace())
        bytecode = BytecodeAnalyzer(settings, resources).bind(RequestTrace())
        found = await read_chain_evidence(rpc, bytecode, CHAIN_ID, token, list_pools=no_pools, max_wait=0.4)

    assert found == ChainEvidence(missing_reason="source_unavailable")
    assert rpc.trace.warnings == ["the chain was not read to the end within 0.4 s"]
    assert rpc.trace.providers["rpc"]["status"] == "timeout"


async def test_facts_before_slow_trades_are_kept(tokens: ServedTokens, upstreams: FakeUpstreams):
    release = threading.Event()

    def hold_trades(request: dict[str, Any]) -> tuple[int, Any] | None:
        call = request["params"][0] if request["method"] == "eth_call" else {"to": ""}
        if "to" not in call and len(call["data"]) > LONG_CALL:
            release.wait(20)
        return None

    node = start_proxy(upstreams, "node", tokens.url, hold_trades)
    found, warnings = await read_evidence(node, tokens.token("tax on both"), max_wait=3)
    release.set()

    assert (found.missing_reason, found.simulation) == ("source_unavailable", None)
    assert found.owner is not None
    assert found.pools
    assert warnings == ["the chain was not read to the end within 3 s"]


async def test_late_analysis_of_bytecode_takes_nothing_else(tokens: ServedTokens):
    settings = Settings(
        port=0,
        network=f"eip155:{CHAIN_ID}",
        providers={f"rpc_{CHAIN_ID}": ProviderSettings(url=tokens.url)},
        page_processes=1,
    )
    async with open_resources(settings) as resources:
        rpc = Rpc(settings, resources).bind(RequestTrace())
        bytecode = BytecodeAnalyzer(settings, resources).bind(RequestTrace())
        busy = asyncio.create_task(resources.page_parsers.run_task(20, time.sleep, 20))
        found = await read_chain_evidence(
            rpc, bytecode, CHAIN_ID, tokens.token("tax on both"), list_pools=no_pools, max_wait=4
        )
        busy.cancel()

    assert found.simulation is not None
    assert found.simulation.succeeded
    assert found.bytecode_flags == TokenFlags()
    assert found.identity is not None
    assert (found.identity.symbol, found.owner and found.owner.kind) == ("HOST", "wallet")


async def test_address_without_contract_is_named(tokens: ServedTokens):
    found, _ = await read_evidence(tokens.url, "0x" + "5a" * 20, max_wait=20)

    assert found == ChainEvidence(missing_reason="no_contract")
    evidence = TokenEvidence(datetime.now(UTC), no_own_simulation_reason=found.missing_reason)
    assert any("(the node shows no contract at this address)" in each for each in collect_warnings(evidence))


async def read_evidence(url: str, token: str, *, max_wait: float) -> tuple[ChainEvidence, list[str]]:
    """Return what a node tells of a token, and the warnings."""
    node = {f"rpc_{CHAIN_ID}": ProviderSettings(url=url)}
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}", providers=node)
    async with open_resources(settings) as resources:
        rpc = Rpc(settings, resources).bind(RequestTrace())
        bytecode = BytecodeAnalyzer(settings, resources).bind(RequestTrace())
        found = await read_chain_evidence(
            rpc, bytecode, CHAIN_ID, token, list_pools=no_pools, max_wait=max_wait
        )
    return found, rpc.trace.warnings


def pass_on(_request: dict[str, Any]) -> tuple[int, Any] | None:
    return None


async def no_pools() -> list[str]:
    return []


async def test_pool_known_to_index_alone_is_identified(tokens: ServedTokens):
    token = tokens.token("tax on both")
    pool = tokens.pools["tax on both"][1]
    node = {f"rpc_{CHAIN_ID}": ProviderSettings(url=tokens.url)}
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}", providers=node)

    async with open_resources(settings) as resources:
        rpc = Rpc(settings, resources).bind(RequestTrace())
        found = await identify_pools(rpc, CHAIN_ID, token, [tokens.router, token, pool.address])

    assert [(key.kind, key.address, key.token0, key.token1) for key in found] == [
        ("v2", pool.address, pool.token0, pool.token1)
    ]


@pytest.mark.parametrize(
    ("exchange", "burned", "is_believed"),
    [
        ("Uniswap v2", 50, True),
        ("a pair with the interface of Uniswap v2", 49, True),
        ("a pair with the interface of Uniswap v2", 50, False),
    ],
)
async def test_pair_of_unknown_exchange_proves_no_lock(
    monkeypatch: pytest.MonkeyPatch, exchange: str, burned: int, *, is_believed: bool
):
    """Its code can tell any share, and only a low one counts."""
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}")
    pair = PoolKey("v2", "0x" + "a" * 40, WETH, "0x" + "f" * 40, exchange, None)

    async def answer(_chain: int, calls: Sequence[ContractCall]) -> list[bytes]:
        balances = [burned if call.data.hex().endswith("dead") else 0 for call in calls[1:]]
        return [units.to_bytes(32) for units in (100, *balances)]

    async with open_resources(settings) as resources:
        rpc = Rpc(settings, resources).bind(RequestTrace())
        monkeypatch.setattr(rpc, "call_contracts", answer)
        found = await read_locked_shares(rpc, CHAIN_ID, pair)

    assert (found and [holder.percent for holder in found]) == ([burned] if is_believed else None)
    assert bool(rpc.trace.warnings) != is_believed


async def test_unread_shares_of_pair_are_reported(monkeypatch: pytest.MonkeyPatch):
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}")
    pair = PoolKey("v2", "0x" + "a" * 40, WETH, "0x" + "f" * 40, "Uniswap v2", None)

    async def answer(_chain: int, calls: Sequence[ContractCall]) -> list[bytes | None]:
        return [(100).to_bytes(32), None, *[bytes(32)] * (len(calls) - 2)]

    async with open_resources(settings) as resources:
        rpc = Rpc(settings, resources).bind(RequestTrace())
        monkeypatch.setattr(rpc, "call_contracts", answer)
        found = await read_locked_shares(rpc, CHAIN_ID, pair)

    assert found is None
    assert any(each.endswith("not checked on the chain: locked liquidity") for each in rpc.trace.warnings)


@pytest.mark.extended
async def test_burned_liquidity_is_found_by_balance(tokens: ServedTokens):
    token = tokens.token("tax on both")
    pair = tokens.pools["tax on both"][1].address
    shares = tokens.owner.read(pair, "balanceOf(address)", tokens.owner.address, returns="uint256")
    tokens.owner.send(pair, "transfer(address,uint256)", "0x" + "0" * 36 + "dEaD", shares // 2)

    liquidity = (await run_token_risk(tokens.url, token))["liquidity"]

    locks = [(lock["burned"], round(lock["percent"])) for lock in liquidity["locks"]]
    assert [lock for lock in locks if lock[1]] == [(True, 50)]
    assert liquidity["unlockedPercent"] is None
    assert liquidity["source"] == "onchain"
    assert liquidity["totalUsd"] > 1000


@pytest.mark.parametrize(
    ("usd", "source"),
    [pytest.param(500_000, "dexscreener", marks=pytest.mark.extended), (5e8, "onchain")],
)
async def test_chain_refutes_liquidity_of_index(
    tokens: ServedTokens, upstreams: FakeUpstreams, usd: float, source: str
):
    token = tokens.token("tax on both")
    pool = tokens.pools["tax on both"][1].address
    row = {
        "chainId": "ethereum",
        "pairAddress": pool,
        "baseToken": {"address": token, "symbol": "AB"},
        "quoteToken": {"address": WETH, "symbol": "WETH"},
        "priceUsd": "1",
        "liquidity": {"usd": usd},
        "pairCreatedAt": int(time.time() - 3600) * 1000,
    }
    upstreams.set_response("dexscreener", f"/token-pairs/v1/ethereum/{token}", [row])
    node = {"rpc_1": ProviderSettings(url=tokens.url)}
    providers = {name: ProviderSettings(enabled=False) for name in NAMES} | node
    settings = Settings(
        port=0, network="eip155:1", providers=providers | upstreams.provider_settings("dexscreener")
    )

    data = await run_request(settings, TokenRiskRequest(chain="ethereum", token_address=token))

    liquidity = data["liquidity"]
    warned = any("the chain's pools count" in each for each in data["warnings"])
    assert (liquidity["source"], warned) == (source, source == "onchain")
    assert (liquidity["totalUsd"] == usd) is not warned
    (new,) = [each for each in data["riskFlags"] if each["id"] == "new_pair"]
    assert [each["source"] for each in new["evidence"]] == ["dexscreener"]


async def test_liquidity_from_chain_instead_of_failed_index_is_said(
    tokens: ServedTokens, upstreams: FakeUpstreams
):
    token = tokens.token("tax on both")
    upstreams.faults["dexscreener"] = "500"
    node = {"rpc_1": ProviderSettings(url=tokens.url)}
    providers = {name: ProviderSettings(enabled=False) for name in NAMES} | node
    settings = Settings(
        port=0, network="eip155:1", providers=providers | upstreams.provider_settings("dexscreener")
    )

    data = await run_request(settings, TokenRiskRequest(chain="ethereum", token_address=token))

    assert data["liquidity"]["source"] == "onchain"
    assert "liquidity is read from the chain, as an exchange index did not answer" in data["warnings"]


async def test_liquidity_from_chain_that_refutes_an_index_has_no_other_reason(
    tokens: ServedTokens, upstreams: FakeUpstreams
):
    token = tokens.token("tax on both")
    pool = tokens.pools["tax on both"][1].address
    sides = {"base_token": token, "quote_token": WETH}
    row = {
        "id": f"eth_{pool}",
        "attributes": {"address": pool, "base_token_price_usd": "1", "reserve_in_usd": "500000000"},
        "relationships": {name: {"data": {"id": f"eth_{each}"}} for name, each in sides.items()},
    }
    upstreams.faults["dexscreener"] = "500"
    upstreams.set_response("geckoterminal", f"/api/v2/networks/eth/tokens/{token}/pools", {"data": [row]})
    providers = {name: ProviderSettings(enabled=False) for name in NAMES}
    providers |= upstreams.provider_settings("dexscreener", "geckoterminal")
    providers |= {"rpc_1": ProviderSettings(url=tokens.url)}

    data = await run_request(
        Settings(port=0, network="eip155:1", providers=providers),
        TokenRiskRequest(chain="ethereum", token_address=token),
    )

    assert data["liquidity"]["source"] == "onchain"
    assert any("GeckoTerminal lists $500,000,000" in each for each in data["warnings"])
    assert not any("liquidity is read from the chain" in each for each in data["warnings"])


async def test_token_that_cannot_be_traded_has_an_answer(tokens: ServedTokens):
    data = await run_token_risk(tokens.url, tokens.token("paused"))

    assert data["riskLevel"] == "critical"
    assert "holders_cannot_sell" in [each["id"] for each in data["riskFlags"]]
    assert data["honeypot"]["isHoneypot"] is None
    assert data["honeypot"]["reason"] == "transfers are paused"
    assert data["liquidity"]["totalUsd"] > 1000
    assert any("(transfers are paused); not checked there: " in each for each in data["warnings"])


@pytest.mark.parametrize("has_empty_pair", [False, True])
async def test_token_without_pool_is_no_data(tokens: ServedTokens, *, has_empty_pair: bool):
    token = tokens.deploy("Plain")
    if has_empty_pair:
        tokens.owner.send(ETHEREUM.v2_factory, "createPair(address,address)", token, WETH)

    with pytest.raises(NoData, match="and no pool that holds it was found"):
        await run_token_risk(tokens.url, token.lower())


@pytest.mark.extended
async def test_wallet_as_token_is_no_data(tokens: ServedTokens):
    with pytest.raises(NoData):
        await run_token_risk(tokens.url, "0x" + "12" * 20)


@pytest.mark.extended
async def test_failing_node_gives_retryable_error(tokens: ServedTokens, upstreams: FakeUpstreams):
    def fail(_request: dict[str, Any]) -> tuple[int, Any] | None:
        return 200, rpc_error(-32000, "no state")

    url = start_proxy(upstreams, "node", tokens.url, fail)

    with pytest.raises(ProviderFailure):
        await run_token_risk(url, tokens.token("tax on both"))


async def test_node_that_runs_no_trade_gives_retryable_error(tokens: ServedTokens, upstreams: FakeUpstreams):
    def fail(request: dict[str, Any]) -> tuple[int, Any] | None:
        is_simulated = request["method"] == "eth_call" and "gas" in request["params"][0]
        # probes of what the node can do are short
        return (503, {}) if is_simulated and len(str(request["params"])) > 2_000 else None

    url = start_proxy(upstreams, "node", tokens.url, fail)

    with pytest.raises(ProviderFailure):
        await run_token_risk(url, tokens.token("tax on both"))
