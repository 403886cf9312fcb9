"""Tokens and their owners on a real EVM, read through JSON-RPC and the sandboxed analysis of bytecode."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial

import pytest
from exchange_market import deploy_owner, install_market
from lookups.chain_providers import CHAIN_ID, open_providers, read_whole_token
from lookups.chain_world import World
from lookups.changing_node import ChangingNode, is_call_of
from lookups.proxycode import (
    BEACON_SLOT,
    IMPLEMENTATION_SLOT,
    PROXIABLE_SLOT,
    minimal_proxy,
    proxy_with_function,
    slot_proxy,
)

from centgate.crypto.contract.owner_kinds import SAFE_PROXY_CODE, SAFE_SINGLETONS, classify_owner
from centgate.crypto.contract.owners import Owner
from centgate.devchain.chain import EvmChain, GenesisAccount
from centgate.devchain.http_server import serve_app
from centgate.devchain.rpc import create_rpc_app
from centgate.errors import ProviderFailure
from centgate.lookups.accounts import read_owner
from centgate.lookups.token_on_chain import OnchainToken
from centgate.settings import Settings

NOBODY = "0x" + "77" * 20


async def test_token_and_owners_are_read(chain_settings: Settings):
    exchanges = install_market(EvmChain(CHAIN_ID, {}))
    token = exchanges.stablecoin("USDC", 5).lower()
    deploy = partial(deploy_owner, exchanges.operator)
    timelock = deploy("TimelockController", 86_400, [], [], "0x" + "0" * 40).lower()
    governor = deploy("Governor", "DAO", 1, 50, 0, token, timelock).lower()
    claimed = deploy("Safe", [NOBODY, token], 2).lower()
    with serve_app(create_rpc_app(exchanges.operator.chain), 0) as url:
        async with open_providers(chain_settings, url) as (rpc, bytecode):
            read = await read_whole_token(rpc, bytecode, token)
            owners = {
                each: await read_owner(rpc, CHAIN_ID, each) for each in (timelock, governor, claimed, NOBODY)
            }

    assert (read.identity.symbol, read.identity.decimals) == ("USDC", 6)
    assert (read.owner.kind, read.implementation) == ("wallet", None)
    assert read.flags.mintable is True
    assert [(each.kind, each.caller) for each in read.powers] == [("mint", "owner")]
    assert read.has_other_controllers is False
    assert owners == {
        timelock: Owner(timelock, "timelock", delay_seconds=86_400),
        governor: Owner(governor, "governor"),
        claimed: Owner(claimed, "contract", threshold=2, owner_count=2),
        NOBODY: Owner(NOBODY, "wallet"),
    }


async def test_owner_function_without_address_leaves_owner_open(chain_settings: Settings):
    exchanges = install_market(EvmChain(CHAIN_ID, {}))
    token = exchanges.stablecoin("USDC", 5).lower()
    node = ChangingNode(exchanges.operator.chain)
    node.lose_answers(lambda call, _answer: is_call_of(call, "owner()"))
    with serve_app(node.app, 0) as url:
        async with open_providers(chain_settings, url) as (rpc, bytecode):
            read = await read_whole_token(rpc, bytecode, token)

    assert read.owner == Owner(None, "unknown")


def test_safe_requires_published_code():
    answers: dict[str, bytes | None] = {
        "getThreshold()": (1).to_bytes(32),
        "getOwners()": (32).to_bytes(32) + (1).to_bytes(32) + b"\1" * 32,
        "VERSION()": b"1.4.1",
    }
    published = next(iter(SAFE_SINGLETONS))
    kinds = [
        classify_owner(NOBODY, code=code, singleton=singleton, answers=answers).kind
        for code, singleton in (
            (SAFE_PROXY_CODE + b"metadata", published),
            (SAFE_PROXY_CODE, NOBODY),
            (SAFE_PROXY_CODE, None),
            (b"\1", published),
        )
    ]

    assert kinds == ["safe", "contract", "contract", "contract"]


@pytest.mark.parametrize(
    ("address", "code", "kind"),
    [
        (None, b"", "none"),
        ("0x" + "0" * 40, b"", "renounced"),
        (NOBODY, None, "unknown"),
        (NOBODY, bytes.fromhex("ef0100" + "11" * 20), "wallet"),
    ],
)
def test_owner_without_contract_is_a_wallet(address: str | None, code: bytes | None, kind: str):
    assert classify_owner(address, code=code, singleton=None, answers={}).kind == kind


async def test_analysis_of_hostile_code_ends(chain_settings: Settings):
    codes = [os.urandom(24_576), bytes.fromhex("5b600056") * 6_000, b"\x5b" * 24_576]
    codes.append(bytes.fromhex("60003560e01c") + bytes.fromhex("80631234567814610000575b") * 2_000)
    async with open_providers(chain_settings, "http://127.0.0.1:9") as (_, bytecode):
        for code in codes:
            await bytecode.analyze(code)
        with pytest.raises(ProviderFailure, match="does not read code of 49153 bytes"):
            await bytecode.analyze(bytes(49_153))


@pytest.mark.extended
async def test_code_of_beacon_proxy_is_found(world: World, chain_settings: Settings):
    beacon, plain = world.proxies["beacon"], world.proxies["eip1967"]

    async with open_providers(chain_settings, world.chain.rpc_url) as (rpc, bytecode):
        found = [await read_whole_token(rpc, bytecode, each.address) for each in (beacon, plain)]

    assert [each.implementation for each in found] == [*beacon.implementations, *plain.implementations]


async def read_tokens(
    settings: Settings, accounts: Mapping[str, GenesisAccount | bytes], *tokens: str
) -> list[OnchainToken]:
    """Read tokens on a chain with these accounts, or accounts of these codes."""
    genesis = {
        address: GenesisAccount(code=each) if isinstance(each, bytes) else each
        for address, each in accounts.items()
    }
    chain = EvmChain(CHAIN_ID, genesis)
    with serve_app(create_rpc_app(chain), 0) as url:
        async with open_providers(settings, url) as (rpc, bytecode):
            return [await read_whole_token(rpc, bytecode, token) for token in tokens]


async def test_clone_is_proxy_only_if_its_target_delegates(chain_settings: Settings):
    target, pinned, chained = (f"0x{digit * 40}" for digit in "abc")
    codes = {
        target: b"\x60\x00\x60\x00\xf3",
        pinned: minimal_proxy(target),
        # its target is a clone, which delegates as well
        chained: minimal_proxy(pinned),
    }
    found = await read_tokens(chain_settings, codes, pinned, chained)

    assert [each.implementation for each in found] == [target, pinned]
    assert [each.is_pinned_clone for each in found] == [True, False]
    assert [each.flags.proxy for each in found] == [False, True]


async def test_powers_of_proxy_itself_are_found(chain_settings: Settings):
    target, token = (f"0x{digit * 40}" for digit in "ab")
    code = proxy_with_function(IMPLEMENTATION_SLOT, "40c10f19")
    accounts = {
        target: GenesisAccount(code=b"\x60\x00\x60\x00\xf3"),
        token: GenesisAccount(code=code, storage={IMPLEMENTATION_SLOT: int(target, 16)}),
    }
    (found,) = await read_tokens(chain_settings, accounts, token)

    assert found.implementation == target
    assert [each.kind for each in found.powers] == ["mint"]
    assert (found.flags.mintable, found.flags.proxy) == (True, True)
    assert found.has_other_controllers is True


async def test_beacon_beside_other_slot_is_not_asked(chain_settings: Settings):
    """It would take a round more, and the beacon of a proxy that has another standard's slot is for show."""
    target, shown, token = (f"0x{digit * 40}" for digit in "abc")
    accounts = {
        target: GenesisAccount(code=b"\x60\x00\x60\x00\xf3"),
        shown: GenesisAccount(code=b"\x60\x00\x60\x00\xf3"),
        token: GenesisAccount(
            code=slot_proxy(PROXIABLE_SLOT),
            storage={PROXIABLE_SLOT: int(target, 16), BEACON_SLOT: int(shown, 16)},
        ),
    }
    (found,) = await read_tokens(chain_settings, accounts, token)

    assert found.implementation == target


@pytest.mark.extended
async def test_token_with_delegated_code_is_upgradeable(chain_settings: Settings):
    target, wallet, clone = (f"0x{digit * 40}" for digit in "abc")
    codes = {
        target: b"\x60\x00\x60\x00\xf3",
        # the owner of the wallet's key can delegate to other code at any time (EIP-7702)
        wallet: bytes.fromhex("ef0100" + target[2:]),
        clone: minimal_proxy(wallet),
    }
    found = await read_tokens(chain_settings, codes, wallet, clone)

    assert [each.implementation for each in found] == [target, wallet]
    assert [each.is_pinned_clone for each in found] == [False, False]
    assert [each.flags.proxy for each in found] == [True, True]
