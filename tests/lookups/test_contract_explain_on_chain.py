"""contract-explain on a development chain: all kinds of proxies, and contracts that resemble one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lookups.chain_world import World

from centgate.devchain.rpc_client import call_rpc

BuyAnswer = Callable[..., dict[str, Any]]

PROXIES = (
    "eip1167",
    "eip1167 push0",
    "eip1167 vyper",
    "eip1167 arguments",
    "clone arguments",
    "eip1967",
    "eip1967 wallet admin",
    "eip1967 no admin",
    "uups",
    "eip1822",
    "zeppelinos",
    "safe",
    "factory's",
    "beacon",
    "diamond",
    "delegated wallet",
)
ESSENTIAL = {"eip1967", "beacon", "diamond"}
"""Proxies of `make test`."""
NO_PROXIES = (
    "box",
    "factory",
    "spender",
    "empty target",
    "dirty slot",
    "own target",
    "beacon nowhere",
    "beacon mute",
    "named slot",
    "library user",
    "ones",
    "zeros",
    "burner",
)


def explain_contract(buy_answer: BuyAnswer, address: str) -> dict[str, Any]:
    """Return the data about an address."""
    return buy_answer("contract-explain", contractAddress=address)["data"]


@pytest.fixture(
    params=[pytest.param(name, marks=[] if name in ESSENTIAL else [pytest.mark.extended]) for name in PROXIES]
)
def kind(request: pytest.FixtureRequest) -> str:
    """Return the name of each proxy of the test chain."""
    return request.param


def test_all_proxies_of_test_chain_have_cases(world: World):
    assert set(PROXIES) == world.proxies.keys()


@pytest.mark.extended
def test_proxy_has_kind_and_implementation(world: World, buy_answer: BuyAnswer, kind: str):
    expected = world.proxies[kind]

    proxy = explain_contract(buy_answer, expected.address)["proxy"]

    assert proxy["isProxy"] is True
    assert proxy["kind"] == expected.kind
    assert {each["address"] for each in proxy["implementations"]} == set(expected.implementations)
    assert proxy["beaconAddress"] == expected.beacon
    assert proxy["accountKind"] == ("delegated_wallet" if expected.kind == "eip7702" else "contract")
    assert [each for each in proxy["evidence"] if each["source"] == "rpc" and each["value"]]


def test_upgrader_is_named_if_chain_shows_it(world: World, buy_answer: BuyAnswer, kind: str):
    expected = world.proxies[kind]

    upgrade = explain_contract(buy_answer, expected.address)["proxy"]["upgrade"]

    if expected.upgradeable is None:
        assert upgrade["possible"] is not False
    else:
        assert upgrade["possible"] is expected.upgradeable
    if expected.admin:
        assert (upgrade["byAddress"], upgrade["byKind"]) == (expected.admin, expected.admin_kind)


@pytest.mark.extended
@pytest.mark.parametrize("name", NO_PROXIES)
def test_contract_that_resembles_proxy_is_none(world: World, buy_answer: BuyAnswer, name: str):
    proxy = explain_contract(buy_answer, world.contracts[name])["proxy"]

    assert proxy["isProxy"] is not True
    assert proxy["implementations"] == []
    assert proxy["kind"] is None
    assert proxy["accountKind"] == "contract"


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("own target", "is its own address"),
        ("beacon mute", "leads to no code to run"),
        ("beacon nowhere", "is not a contract's address"),
        ("empty target", "is not a contract's address"),
        ("dirty slot", "is not a contract's address"),
        ("named slot", "a call to it does not read"),
        ("library user", "a call to it does not read"),
    ],
)
def test_slot_without_contract_is_reported(world: World, buy_answer: BuyAnswer, name: str, reason: str):
    data = explain_contract(buy_answer, world.contracts[name])

    assert data["proxy"]["isProxy"] is None
    assert any(reason in each for each in data["warnings"])


def test_balance_of_development_chain_has_no_value(world: World, buy_answer: BuyAnswer):
    holder = world.people["holder"].address
    held = int(call_rpc(world.chain.rpc_url, "eth_getBalance", holder, "latest"), 16)

    balance = explain_contract(buy_answer, holder)["nativeBalance"]

    assert (balance["amountBaseUnits"], balance["worth"], balance["source"]) == (str(held), None, "rpc")


def test_wallet_has_no_code(world: World, buy_answer: BuyAnswer):
    data = explain_contract(buy_answer, world.people["newcomer"].address)

    assert data["proxy"]["accountKind"] == "wallet"
    assert data["proxy"]["isProxy"] is False
    assert data["verified"] is None


@pytest.mark.extended
def test_publication_of_source_is_unknown_without_registries(world: World, buy_answer: BuyAnswer):
    data = explain_contract(buy_answer, world.tokens["plain"])

    assert data["verified"] is None
    assert data["contractName"] is None
    assert data["proxy"]["isProxy"] is False
    assert data["warnings"]


def test_functions_and_standards_are_read_from_code(world: World, buy_answer: BuyAnswer):
    data = buy_answer("contract-explain", contractAddress=world.tokens["plain"])["data"]

    assert "ERC-20" in data["standards"]
    signatures = {each["signature"] for each in data["functions"]}
    assert {"transfer(address,uint256)", "balanceOf(address)"} <= signatures
    assert data["functionCount"] == len(data["functions"])
    assert data["upgrades"] is None
    assert (data["roles"], data["owner"]["kind"]) == ([], "none")


def test_roles_have_their_members(world: World, buy_answer: BuyAnswer):
    data = explain_contract(buy_answer, world.contracts["roles"])

    members = {each["name"]: [one["address"] for one in each["members"]] for each in data["roles"]}
    assert members == {
        "DEFAULT_ADMIN_ROLE": [world.people["admin"].address],
        "MINTER_ROLE": [world.people["friend"].address],
        "PAUSER_ROLE": [],
    }
    assert data["roles"][1]["memberCount"] == 1
    assert any("does not list who holds the roles PAUSER_ROLE" in each for each in data["warnings"])


def test_proxy_has_functions_of_its_implementation(world: World, buy_answer: BuyAnswer):
    proxy = world.proxies["uups"]

    data = buy_answer("contract-explain", contractAddress=proxy.address)["data"]

    assert {each["contractAddress"] for each in data["functions"]} == set(proxy.implementations)
    assert data["functions"][0]["power"] == "upgrade"
    assert (data["upgrades"]["events"], data["upgrades"]["fromBlock"]) == ([], 0)


def test_diamond_and_all_facets_are_read(world: World, buy_answer: BuyAnswer):
    diamond = world.proxies["diamond"]

    data = buy_answer("contract-explain", contractAddress=diamond.address)["data"]

    expected = {diamond.address, *diamond.implementations}
    assert {each["contractAddress"] for each in data["functions"]} == expected


@pytest.mark.extended
def test_wallet_has_no_functions(world: World, buy_answer: BuyAnswer):
    data = buy_answer("contract-explain", contractAddress=world.people["admin"].address)["data"]

    assert (data["functions"], data["standards"], data["owner"]) == (None, None, None)
