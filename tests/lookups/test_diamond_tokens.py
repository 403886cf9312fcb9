"""Tokens that are diamonds (EIP-2535) on a real EVM: powers of their facets, and what is not found."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_typing import Address
from exchange_market import install_market
from fake_upstreams import FakeUpstreams
from lookups.chain_providers import CHAIN_ID, open_providers, read_whole_token
from lookups.changing_node import ChangingNode, is_call_of
from lookups.test_token_risk_on_chain import run_token_risk
from lookups.test_trade_simulation import count_rounds
from lookups.token_world import create_world
from tampering_proxy import rpc_error, start_proxy

from centgate.crypto.abi import function_selector
from centgate.crypto.contract.proxy_standards import IMPLEMENTATION_SLOT
from centgate.devchain.chain import EvmChain
from centgate.devchain.deployer import Deployer
from centgate.devchain.exchanges import ETHEREUM
from centgate.devchain.http_server import serve_app
from centgate.devchain.rpc import create_rpc_app
from centgate.lookups import token_on_chain
from centgate.lookups.token_on_chain import OnchainToken
from centgate.settings import Settings
from centgate.solidity import load_contract

CONTRACTS = Path(__file__).with_name("contracts")
DIAMOND_CUT = "diamondCut((address,uint8,bytes4[])[],address,bytes)"
ADD, REPLACE, REMOVE = range(3)
ZERO = "0x" + "0" * 40
FACETS = {
    "CutFacet": (DIAMOND_CUT,),
    "LoupeFacet": ("facets()", "facetAddresses()", "facetAddress(bytes4)"),
    "OwnershipFacet": ("owner()", "transferOwnership(address)"),
    "TokenFacet": (
        *("symbol()", "decimals()", "totalSupply()", "balanceOf(address)", "allowance(address,address)"),
        *("approve(address,uint256)", "transfer(address,uint256)"),
        "transferFrom(address,address,uint256)",
    ),
    "PowerFacet": ("mint(address,uint256)", "setPaused(bool)", "setTax(uint256)", "addToBlacklist(address)"),
}
"""Functions that the diamond runs, by the facet that has them."""
INFERRED_FLAGS = ("mintable", "pausable", "blacklists", "tax_modifiable")


@dataclass
class Diamond:
    """A token on a chain of its own, whose owner is the deployer."""

    deployer: Deployer
    node: ChangingNode
    address: str
    facets: dict[str, str]
    """Address of a facet by its name, lower case."""
    settings: Settings

    def cut(self, action: int, facet: str, *signatures: str) -> None:
        """Add, replace or remove functions of the diamond."""
        address = self.facets.get(facet, ZERO)
        self.deployer.send(
            self.address,
            DIAMOND_CUT,
            [(address, action, list(map(function_selector, signatures)))],
            ZERO,
            b"",
        )

    async def read(self) -> tuple[OnchainToken, list[str]]:
        """Return what the chain tells of the token, and the warnings."""
        with serve_app(self.node.app, 0) as url:
            async with open_providers(self.settings, url) as (rpc, bytecode):
                return await read_whole_token(rpc, bytecode, self.address), rpc.trace.warnings


def deploy(deployer: Deployer, name: str, *values: object) -> str:
    """Deploy a contract of the diamond's source."""
    return deployer.deploy(load_contract(CONTRACTS, "DiamondToken", name), *values)


def deploy_diamond(deployer: Deployer) -> tuple[str, dict[str, str]]:
    """Deploy the token with all facets. Returns its address, and those of the facets by name."""
    facets = {name: deploy(deployer, name) for name in FACETS}
    cuts = [
        (facets[name], ADD, list(map(function_selector, signatures))) for name, signatures in FACETS.items()
    ]
    return deploy(deployer, "DiamondToken", cuts, 10**27), facets


@pytest.fixture
def diamond(chain_settings: Settings) -> Diamond:
    """A diamond with all functions of its facets."""
    deployer = install_market(EvmChain(CHAIN_ID, {})).operator
    address, facets = deploy_diamond(deployer)
    return Diamond(deployer, ChangingNode(deployer.chain), address, facets, chain_settings)


async def test_powers_of_facets_are_found(diamond: Diamond):
    found, warnings = await diamond.read()

    facet = diamond.facets["PowerFacet"]
    assert {(each.kind, each.caller, each.facet) for each in found.powers} == {
        ("upgrade", "owner", diamond.facets["CutFacet"]),
        ("mint", "owner", facet),
        ("pause", "owner", facet),
        ("change_taxes", "owner", facet),
        ("blacklist", None, facet),
    }
    assert [getattr(found.flags, name) for name in INFERRED_FLAGS] == [True] * 4
    assert (found.flags.proxy, found.flags.self_destructs) == (True, None)
    assert (found.owner.kind, found.identity.symbol) == ("wallet", "DIA")
    assert found.has_other_controllers is True
    (warning,) = warnings
    assert warning.startswith("it is a diamond (EIP-2535): ")


async def test_removed_functions_are_no_powers(diamond: Diamond):
    diamond.cut(REMOVE, "", "mint(address,uint256)", "addToBlacklist(address)", DIAMOND_CUT)

    found, _ = await diamond.read()

    assert [each.kind for each in found.powers] == ["pause", "change_taxes"]
    assert [getattr(found.flags, name) for name in INFERRED_FLAGS] == [None, True, None, True]
    # without diamondCut its code may be changed in another way, or not at all
    assert (found.flags.proxy, found.flags.self_destructs) == (None, None)
    assert found.has_other_controllers is False


async def test_replaced_function_is_that_of_the_new_facet(diamond: Diamond):
    diamond.facets["other"] = deploy(diamond.deployer, "PowerFacet")
    diamond.cut(REPLACE, "other", "mint(address,uint256)")

    found, _ = await diamond.read()

    assert [each.facet for each in found.powers if each.kind == "mint"] == [diamond.facets["other"]]


async def test_implementation_for_explorers_hides_no_facets(diamond: Diamond):
    description = deploy(diamond.deployer, "Description")
    slot, address = int(IMPLEMENTATION_SLOT, 16), bytes.fromhex(diamond.address[2:])
    diamond.deployer.chain.change_state(
        lambda state: state.set_storage(Address(address), slot, int(description, 16))
    )

    found, _ = await diamond.read()

    facet = diamond.facets["PowerFacet"]
    assert found.implementation == description
    assert {each.kind for each in found.powers if each.facet == facet and each.caller == "owner"} == {
        *("mint", "pause", "change_taxes")
    }


async def test_loupe_of_code_without_delegatecall_is_ignored(diamond: Diamond):
    loupe = encode(["(address,bytes4[])[]"], [[(diamond.facets["PowerFacet"], [b"\x40\xc1\x0f\x19"])]])
    diamond.address = diamond.facets["TokenFacet"]
    diamond.node.change = lambda call, true: loupe if is_call_of(call, "facets()") else true

    found, warnings = await diamond.read()

    assert (found.powers, found.flags.proxy, warnings) == ((), False, [])


async def test_facets_beyond_the_bound_are_named(diamond: Diamond, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(token_on_chain, "MAX_FACETS", 3)

    found, warnings = await diamond.read()

    assert [each.kind for each in found.powers] == ["upgrade"]
    assert any("; not checked: 1 of 4 facets" in each for each in warnings)


async def test_facet_without_its_function_is_named(diamond: Diamond):
    diamond.cut(REPLACE, "LoupeFacet", "mint(address,uint256)")

    found, warnings = await diamond.read()

    assert found.flags.mintable is None
    assert any("; not checked: 1 of 5 facets" in each for each in warnings)


async def test_facets_without_code_at_the_node_are_named(diamond: Diamond, upstreams: FakeUpstreams):
    def fail(request: dict[str, Any]) -> tuple[int, Any] | None:
        is_facet = request["method"] == "eth_getCode" and request["params"][0] in diamond.facets.values()
        return (200, rpc_error(-32000, "no state")) if is_facet else None

    with serve_app(diamond.node.app, 0) as url:
        node = start_proxy(upstreams, "node", url, fail)
        async with open_providers(diamond.settings, node) as (rpc, bytecode):
            found = await read_whole_token(rpc, bytecode, diamond.address)

    assert (found.powers, found.flags.proxy, found.flags.mintable) == ((), True, None)
    assert any("; not checked: 4 of 4 facets" in each for each in rpc.trace.warnings)


@pytest.mark.extended
async def test_flags_cite_functions_of_facets_within_six_rounds(upstreams: FakeUpstreams):
    starts: list[float] = []

    def note(_request: dict[str, Any]) -> tuple[int, Any] | None:
        starts.append(time.monotonic())
        return None

    exchanges = create_world().exchanges
    token, facets = deploy_diamond(exchanges.operator)
    exchanges.wrap(10**20)
    exchanges.add_v2_pool({token: 10**26, ETHEREUM.wrapped_native: 10**20})
    upstreams.delay = 0.8
    with serve_app(create_rpc_app(exchanges.operator.chain), 0) as url:
        data = await run_token_risk(start_proxy(upstreams, "node", url, note), token)

    cited = {
        each["field"]: each["value"]
        for flag in data["riskFlags"]
        for each in flag["evidence"]
        if each["source"] == "onchain"
    }
    assert cited["bytecode.mintable"] == "true"
    assert cited["bytecode.mintable.inferred"] == (
        f"mint(address,uint256) of facet {facets['PowerFacet']}, caller: owner"
    )
    assert cited["bytecode.blacklists.inferred"].endswith(", caller: unknown")
    assert cited["bytecode.proxy.inferred"].startswith(f"{DIAMOND_CUT} of facet {facets['CutFacet']}, ")
    assert data["ownership"]["canMint"] is True
    assert any(each.startswith("it is a diamond (EIP-2535): ") for each in data["warnings"])
    assert count_rounds(starts, upstreams.delay) <= 6


@pytest.mark.parametrize("answer", [None, b"\xff" * 96, bytes(31) + b"\x20" + bytes(32)])
async def test_diamond_without_readable_loupe_has_unknown_powers(diamond: Diamond, answer: bytes | None):
    diamond.node.change = lambda call, true: answer if is_call_of(call, "facets()") else true

    found, warnings = await diamond.read()

    assert (found.powers, found.flags.mintable, warnings) == ((), None, [])
