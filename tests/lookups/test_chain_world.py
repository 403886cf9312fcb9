"""The test chain itself: its expected facts, read without the JSON-RPC provider."""

from __future__ import annotations

from typing import Any

import pytest
from lookups import proxycode as code
from lookups.chain_world import DAY, DAYS_AGO, ETHER, MULTICALL, World, encode_call

from centgate.devchain.rpc_client import DevNodeError, call_rpc


def call_contract(world: World, to: str, data: bytes) -> str:
    """Return the raw result of a call."""
    return call_rpc(world.chain.rpc_url, "eth_call", {"to": to, "data": "0x" + data.hex()}, "latest")


CODE_ONLY = ("diamond",)
"""Proxies without functions other than their loupe."""


@pytest.mark.extended
def test_proxy_runs_its_expected_code(world: World):
    running = [proxy for name, proxy in world.proxies.items() if name not in CODE_ONLY]

    found = {
        proxy.address: call_contract(world, proxy.address, encode_call("answer()"))[:66] for proxy in running
    }
    here = {
        proxy.address: call_contract(world, proxy.address, encode_call("whereabouts()"))[26:66]
        for proxy in running
    }

    assert set(found.values()) == {f"0x{42:064x}"}
    assert here == {proxy.address: proxy.address[2:] for proxy in running}
    assert len(running) == 15


@pytest.mark.parametrize("name", ["empty target", "nothing"])
def test_non_proxy_runs_no_code(world: World, name: str):
    assert call_contract(world, world.contracts[name], encode_call("answer()")) == "0x"


def test_hostile_contracts_return_their_values(world: World):
    assert call_contract(world, world.contracts["ones"], encode_call("answer()")) == "0x" + "ff" * 64
    assert len(call_contract(world, world.contracts["zeros"], encode_call("facetAddresses()"))) == 2 + 2 * (
        64 + 3000 * 32
    )


def test_factory_contains_clone_pattern(world: World):
    made = call_rpc(world.chain.rpc_url, "eth_getCode", world.proxies["factory's"].address, "latest")
    factory = call_rpc(world.chain.rpc_url, "eth_getCode", world.contracts["factory"], "latest")

    assert made == "0x" + code.minimal_proxy(world.contracts["box"]).hex()
    assert "363d3d373d3d3d363d73" in factory


def test_delegated_wallet_has_code_of_its_authorization(world: World):
    found = call_rpc(world.chain.rpc_url, "eth_getCode", world.people["delegator"].address, "latest")

    assert found == "0x" + code.delegation(world.contracts["box"]).hex()


def test_safe_returns_its_master_copy(world: World):
    found = call_contract(world, world.proxies["safe"].address, encode_call("masterCopy()"))

    assert found[26:] == world.contracts["box"][2:]


def test_burned_gas_is_no_revert(world: World):
    with pytest.raises(DevNodeError, match="nvalid opcode"):
        call_contract(world, world.contracts["burner"], b"")


def test_chain_has_expected_age(world: World):
    stale = world.times[world.approvals["stale"].block]
    fresh = world.times[world.approvals["limited"].block]

    assert DAYS_AGO * DAY - 60 < fresh - stale < DAYS_AGO * DAY + 60


def test_allowances_have_expected_values(world: World):
    approver = world.people["approver"].address

    for name, approved in world.approvals.items():
        if approved.allowance is None:
            continue
        found = call_contract(
            world, approved.token, encode_call("allowance(address,address)", approver, approved.spender)
        )
        assert int(found, 16) == approved.allowance, name


def test_holder_has_balance_after_transfers(world: World):
    holder = world.people["holder"].address
    held: dict[str, Any] = {}
    for moved in world.transfers:
        sign = 1 if moved.receiver == holder else -1
        held[moved.token or "coin"] = held.get(moved.token or "coin", 0) + sign * moved.amount

    tokens = {name: held[token] for name, token in world.tokens.items() if token in held}

    assert tokens["plain"] == 960 * ETHER
    assert tokens["tax"] == 95 * ETHER
    for name, amount in tokens.items():
        if name != "lying":
            assert (
                int(call_contract(world, world.tokens[name], encode_call("balanceOf(address)", holder)), 16)
                == amount
            )
    coin = int(call_rpc(world.chain.rpc_url, "eth_getBalance", holder, "latest"), 16)
    assert 0 < 100 * ETHER + held["coin"] - coin < ETHER // 100


def test_multicall_has_its_usual_address(world: World):
    assert call_rpc(world.chain.rpc_url, "eth_getCode", MULTICALL, "latest") != "0x"
