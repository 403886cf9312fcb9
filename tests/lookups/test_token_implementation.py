"""token-risk about proxies and clones: source registries are asked about the code that runs."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from typing import Any

import pytest
from exchange_market import install_market
from fake_upstreams import FakeUpstreams, Fault, RecordedRequest
from lookups.proxycode import (
    BEACON_SLOT,
    IMPLEMENTATION_SLOT,
    beacon_proxy,
    decoy_proxy,
    minimal_proxy,
    reading_decoy,
    slot_proxy,
)
from lookups.test_trade_simulation import count_rounds
from pydantic import SecretStr
from services.test_token_risk import HONEST
from tampering_proxy import rpc_error, start_proxy

from centgate.devchain.chain import EvmChain, GenesisAccount
from centgate.devchain.http_server import serve_app, silence_libraries
from centgate.devchain.rpc import create_rpc_app
from centgate.devchain.well_known import BASE
from centgate.resources import open_resources
from centgate.services.token_risk import TokenRiskRequest, token_risk
from centgate.settings import ProviderSettings, Settings

CHAIN_ID = 8453
LOGIC, OTHER, PROXY, CLONE, BEACON, BEACON_PROXY, NESTED, STALE, DECOY, READER, NAMER = (
    f"0x{digit * 40}" for digit in "abcdef12345"
)
ZERO = b"\x60\x00\x60\x00\xf3"
REGISTRIES = ("etherscan", "sourcify", "blockscout")
KEYED = SecretStr("secret")


@pytest.fixture(scope="module")
def node() -> Generator[str]:
    """URL of a node of Base, with proxies and clones."""
    slot = {IMPLEMENTATION_SLOT: int(LOGIC, 16)}
    accounts = {
        LOGIC: GenesisAccount(code=ZERO),
        OTHER: GenesisAccount(code=ZERO),
        PROXY: GenesisAccount(code=slot_proxy(IMPLEMENTATION_SLOT), storage=slot),
        CLONE: GenesisAccount(code=minimal_proxy(LOGIC)),
        # implementation(): the address of the logic
        BEACON: GenesisAccount(code=bytes.fromhex(f"73{LOGIC[2:]}5f5260205ff3")),
        BEACON_PROXY: GenesisAccount(code=beacon_proxy(), storage={BEACON_SLOT: int(BEACON, 16)}),
        NESTED: GenesisAccount(
            code=slot_proxy(IMPLEMENTATION_SLOT), storage={IMPLEMENTATION_SLOT: int(CLONE, 16)}
        ),
        STALE: GenesisAccount(
            code=slot_proxy(IMPLEMENTATION_SLOT), storage={**slot, BEACON_SLOT: int(OTHER, 16)}
        ),
        DECOY: GenesisAccount(code=decoy_proxy(IMPLEMENTATION_SLOT), storage={**slot, 0: int(OTHER, 16)}),
        READER: GenesisAccount(code=reading_decoy(IMPLEMENTATION_SLOT, OTHER), storage=slot),
        NAMER: GenesisAccount(code=reading_decoy(IMPLEMENTATION_SLOT, OTHER, ask="31"), storage=slot),
    }
    chain = EvmChain(CHAIN_ID, accounts)
    install_market(chain, BASE)
    with silence_libraries(), serve_app(create_rpc_app(chain), 0) as url:
        yield url


class Sources:
    """Fake registries, none of which has any source at first, and an analysis that finds nothing wrong."""

    def __init__(self, upstreams: FakeUpstreams, node: str) -> None:
        self.upstreams, self.published = upstreams, set[str]()
        self.key: SecretStr | None = KEYED
        self.analysis: dict[str, str] = {"is_proxy": "1"}
        self.node = start_proxy(upstreams, "node", node)
        upstreams.set_response_function("goplus", f"/api/v1/token_security/{CHAIN_ID}", self._analyse)
        upstreams.set_response_function("etherscan", "/v2/api", self._etherscan)
        upstreams.set_response_function("sourcify", f"/server/v2/contract/{CHAIN_ID}/*", self._sourcify)
        upstreams.set_response(
            "blockscout", "/api/v2/smart-contracts/*", {"message": "Not found"}, status=404
        )

    def _analyse(self, request: RecordedRequest) -> tuple[int, Any]:
        row = HONEST | self.analysis
        return 200, {"code": 1, "message": "OK", "result": {request.params["contract_addresses"]: row}}

    def _etherscan(self, request: RecordedRequest) -> tuple[int, Any]:
        row = {"SourceCode": "", "ABI": "Contract source code not verified"}
        if "etherscan" in self.published:
            row = {"SourceCode": "contract Vault {}", "ABI": "[]", "ContractName": "Vault", "Proxy": "0"}
        return 200, {"status": "1", "message": "OK", "result": [row]}

    def _sourcify(self, request: RecordedRequest) -> tuple[int, Any]:
        is_published = "sourcify" in self.published
        return (200, {"match": "exact_match", "abi": []}) if is_published else (404, {"match": None})

    def asked(self) -> list[tuple[str, str]]:
        """Return the registries that were asked, with the contract."""
        return [
            (name, request.params.get("address") or request.path.rpartition("/")[2])
            for name in REGISTRIES
            for request in self.upstreams.requests_of(name)
        ]

    async def assess(self, token: str) -> dict[str, Any]:
        """Return the data of token-risk about a token."""
        off = ("honeypotis", "dexscreener", "geckoterminal", "bytecode")
        settings = Settings(
            port=0,
            providers={
                **{name: ProviderSettings(enabled=False) for name in off},
                **self.upstreams.provider_settings("goplus", "sourcify", "blockscout", per_minute=10_000),
                **self.upstreams.provider_settings("etherscan", per_minute=10_000, key=self.key),
                f"rpc_{CHAIN_ID}": ProviderSettings(url=self.node),
            },
        )
        async with open_resources(settings) as resources:
            providers = {each.info.name: each.provider(settings, resources) for each in token_risk.sources}
            request = TokenRiskRequest(chain_id=CHAIN_ID, token_address=token)
            return json.loads((await token_risk.run(request, providers)).data)


@pytest.fixture
def sources(upstreams: FakeUpstreams, node: str) -> Sources:
    return Sources(upstreams, node)


def find_flag(data: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((flag for flag in data["riskFlags"] if flag["id"] == name), None)


@pytest.mark.parametrize("token", [PROXY, CLONE, BEACON_PROXY])
async def test_closed_implementation_is_a_finding(sources: Sources, token: str):
    data = await sources.assess(token)

    assert sources.asked() == [(name, LOGIC) for name in REGISTRIES]
    assert data["ownership"]["sourceVerified"] is False
    flag = find_flag(data, "closed_source")
    assert flag is not None
    assert [(each["source"], each["field"], each["value"]) for each in flag["evidence"]] == [
        ("goplus", "is_open_source", "1"),
        *((name, "matchLevel", "none") for name in REGISTRIES),
        ("onchain", "implementation", LOGIC),
    ]
    assert (
        "sources disagree: GoPlus Security says that its source is published, by Etherscan, Sourcify, "
        f"Blockscout that of the code behind it, {LOGIC}, is not published; it counts as not published"
    ) in data["warnings"]


@pytest.mark.parametrize("registry", ["etherscan", "sourcify"])
async def test_published_implementation_is_verified(sources: Sources, registry: str):
    sources.published.add(registry)

    data = await sources.assess(PROXY)

    assert sources.asked() == [(name, LOGIC) for name in ("etherscan", "sourcify")]
    assert data["ownership"]["sourceVerified"] is True
    assert find_flag(data, "closed_source") is None
    assert not any("behind" in each for each in data["warnings"])


async def test_published_implementation_clears_clone_not_proxy(sources: Sources):
    sources.published.add("sourcify")
    sources.analysis["is_open_source"] = "0"

    clone, proxy = await sources.assess(CLONE), await sources.assess(PROXY)

    assert [each["ownership"]["sourceVerified"] for each in (clone, proxy)] == [True, False]
    assert [any("sources disagree: GoPlus" in each for each in data["warnings"]) for data in (clone, proxy)]


async def test_registry_without_key_is_named(sources: Sources):
    sources.key = None

    data = await sources.assess(PROXY)

    assert data["ownership"]["sourceVerified"] is None
    assert (
        f"the source of the code behind the proxy, {LOGIC}, was not checked by Etherscan (not configured) "
        "(Sourcify and Blockscout found none)"
    ) in data["warnings"]


@pytest.mark.parametrize("fault", ["500", "timeout", "wrong types"])
async def test_failed_registry_is_named(sources: Sources, fault: Fault):
    sources.upstreams.faults["sourcify"] = fault

    data = await sources.assess(PROXY)

    assert data["ownership"]["sourceVerified"] is None
    assert find_flag(data, "closed_source") is None
    assert any("was not checked by Sourcify (no answer)" in each for each in data["warnings"])


async def test_registries_that_hang_in_turn_end_with_the_chain(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
):
    def hang(_request: RecordedRequest) -> tuple[int, Any]:
        time.sleep(4)
        return 503, ""

    monkeypatch.setattr("centgate.services.token_risk.CHAIN_SECONDS", 2.0)
    sources.upstreams.set_response_function("etherscan", "/v2/api", hang)
    started = time.monotonic()

    data = await sources.assess(PROXY)

    assert time.monotonic() - started < 3.5
    assert sources.asked() == [(name, LOGIC) for name in ("etherscan", "sourcify")]
    assert data["ownership"]["sourceVerified"] is None
    assert (
        f"the source of the code behind the proxy, {LOGIC}, was not checked by Etherscan (no answer), "
        "Blockscout (not asked in time) (Sourcify found none)"
    ) in data["warnings"]
    assert any(each.startswith("Etherscan did not answer") for each in data["warnings"])


@pytest.mark.parametrize("token", [NESTED, DECOY, READER, NAMER])
async def test_source_of_code_that_may_not_run_proves_nothing(sources: Sources, token: str):
    sources.published |= {"sourcify", "etherscan"}

    data = await sources.assess(token)

    assert data["ownership"]["sourceVerified"] is None
    assert "the source of the code behind the proxy was not checked" in data["warnings"]


@pytest.mark.parametrize("token", [STALE, BEACON_PROXY])
async def test_contract_that_calls_do_not_touch_makes_no_doubt(sources: Sources, token: str):
    sources.published.add("sourcify")

    assert (await sources.assess(token))["ownership"]["sourceVerified"] is True


@pytest.mark.parametrize(("published", "verified"), [({"sourcify"}, None), (set[str](), False)])
async def test_node_without_access_lists_clears_nothing(
    sources: Sources, node: str, published: set[str], *, verified: bool | None
):
    def refuse(request: dict[str, Any]) -> tuple[int, Any] | None:
        is_list = request["method"] == "eth_createAccessList"
        return (200, rpc_error(-32601, "no such method")) if is_list else None

    sources.published, sources.node = published, start_proxy(sources.upstreams, "poor", node, refuse)

    assert (await sources.assess(PROXY))["ownership"]["sourceVerified"] is verified
    assert (await sources.assess(STALE))["ownership"]["sourceVerified"] is None
    assert (await sources.assess(CLONE))["ownership"]["sourceVerified"] is bool(published)


async def test_registries_are_asked_about_proxies_only(sources: Sources):
    await sources.assess(LOGIC)

    assert sources.asked() == []


@pytest.mark.extended
async def test_registries_add_no_round(sources: Sources):
    sources.upstreams.delay = 0.8

    await sources.assess(PROXY)

    starts = {
        name: [request.at for request in sources.upstreams.requests_of(name)]
        for name in ("node", *REGISTRIES)
    }
    second_round = next(at for at in starts["node"] if at > starts["node"][0] + 0.6)
    assert abs(min(starts["sourcify"]) - second_round) < 0.4
    assert count_rounds([at for times in starts.values() for at in times], sources.upstreams.delay) <= 6
