"""Basenames of accounts, read from a development chain with the contracts of Base."""

from __future__ import annotations

from threading import Event

import pytest
from lookups.changing_node import is_call_of
from lookups.pool_market import Market

from centgate.crypto.wallet.primary_names import (
    BASENAME_REGISTRIES,
    BASENAME_RESOLVERS,
    L2_REVERSE_REGISTRARS,
    hash_name,
    hash_reverse_basename,
)
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.deployer import Deployer
from centgate.lookups.accounts import read_account
from centgate.providers.jsonrpc.contract_calls import ContractCall

ALICE, BOB = (account.address.lower() for account in BUYER_ACCOUNTS[:2])
REGISTRY = BASENAME_REGISTRIES[8453]
REGISTRAR = L2_REVERSE_REGISTRARS[8453]
OLD, NEW = BASENAME_RESOLVERS
BASE_COIN_TYPE, OPTIMISM_COIN_TYPE = 0x80002105, 0x8000000A
MAX_WAIT = 99
"""Seconds."""
OTHER = "0x" + "0e" * 20
"""A resolver that is none of Basenames' own."""


def claim_name(market: Market, account: str, name: str, *, resolver: str = OLD) -> None:
    """Let an account claim a name, in the reverse record of a resolver."""
    send, node = market.exchanges.operator.send, hash_reverse_basename(account)
    send(REGISTRY, "setResolver(bytes32,address)", node, resolver)
    if resolver != OTHER:
        send(resolver, "setName(bytes32,string)", node, name)


def register_name(market: Market, name: str, account: str, *, resolver: str = OLD) -> None:
    """Let a name resolve to an account."""
    send, node = market.exchanges.operator.send, hash_name(name)
    send(REGISTRY, "setResolver(bytes32,address)", node, resolver)
    if resolver != OTHER:
        send(resolver, "setAddr(bytes32,address)", node, account)


def claim_ens_name(market: Market, account: str, name: str) -> None:
    """Let an account claim a name at ENS' own registrar."""
    sender = next(each for each in BUYER_ACCOUNTS if each.address.lower() == account)
    market.exchanges.operator.transfer_native(account, 10**18)
    Deployer(market.exchanges.operator.chain, sender).send(REGISTRAR, "setName(string)", name)


def register_ens_name(market: Market, name: str, account: str, *, coin_type: int = BASE_COIN_TYPE) -> None:
    """Let a name resolve to an account on the chain of a coin type."""
    send, node = market.exchanges.operator.send, hash_name(name)
    send(REGISTRY, "setResolver(bytes32,address)", node, NEW)
    send(NEW, "setAddr(bytes32,uint256,bytes)", node, coin_type, bytes.fromhex(account[2:]))


async def read_name(
    market: Market, account: str, *, max_wait: float = MAX_WAIT
) -> tuple[str | None, list[str]]:
    """Return the name of an account, and the warnings about it."""
    found, _ = await read_account(market.rpc, market.chain_id, account, max_wait=max_wait)
    assert (found.kind, found.is_sanctioned) == ("wallet", False)
    return found.name, [each for each in market.rpc.trace.warnings if "name" in each]


@pytest.mark.parametrize(("reverse", "forward"), [(OLD, OLD), (OLD, NEW), (NEW, NEW)])
async def test_name_resolves_back(base_market: Market, reverse: str, forward: str) -> None:
    claim_name(base_market, ALICE, "alice.base.eth", resolver=reverse)
    register_name(base_market, "alice.base.eth", ALICE, resolver=forward)

    assert await read_name(base_market, ALICE) == ("alice.base.eth", [])


async def test_account_without_name_takes_one_round(base_market: Market) -> None:
    calls: list[ContractCall] = []
    base_market.node.change = lambda call, answer: calls.append(call) or answer

    assert await read_name(base_market, ALICE) == (None, [])
    assert [each for each in calls if is_call_of(each, "name(bytes32)")]
    assert [each for each in calls if is_call_of(each, "addr(bytes32)")] == []


async def test_claimed_name_of_another_account_is_left_out(base_market: Market) -> None:
    claim_name(base_market, BOB, "alice.base.eth")
    register_name(base_market, "alice.base.eth", ALICE)

    name, (warning,) = await read_name(base_market, BOB)

    assert name is None
    assert warning == "the Basename of the address is left out: it does not resolve back to the address"


async def test_address_of_a_former_resolver_is_not_believed(base_market: Market) -> None:
    claim_name(base_market, BOB, "alice.base.eth")
    register_name(base_market, "alice.base.eth", BOB, resolver=OLD)
    register_name(base_market, "alice.base.eth", ALICE, resolver=NEW)

    name, (warning,) = await read_name(base_market, BOB)

    assert (name, "does not resolve back" in warning) == (None, True)


@pytest.mark.parametrize("name", ["p\u0430y.base.eth", "alice.eth", "Alice.base.eth"])
async def test_unsafe_name_is_left_out(base_market: Market, name: str) -> None:
    claim_name(base_market, ALICE, name)
    register_name(base_market, name, ALICE)

    found, (warning,) = await read_name(base_market, ALICE)

    assert found is None
    assert warning.startswith("the Basename of the address is left out: it has other characters")


@pytest.mark.parametrize(("reverse", "forward"), [(OTHER, OLD), (OLD, OTHER)])
async def test_name_at_another_resolver_is_unknown(base_market: Market, reverse: str, forward: str) -> None:
    claim_name(base_market, ALICE, "alice.base.eth", resolver=reverse)
    register_name(base_market, "alice.base.eth", ALICE, resolver=forward)

    found, (warning,) = await read_name(base_market, ALICE)

    assert found is None
    assert warning == "the Basename of the address is unknown: its resolver is none of Basenames' own"


@pytest.mark.parametrize("signature", ["resolver(bytes32)", "name(bytes32)", "addr(bytes32)"])
async def test_name_is_unknown_without_answer(base_market: Market, signature: str) -> None:
    claim_name(base_market, ALICE, "alice.base.eth")
    register_name(base_market, "alice.base.eth", ALICE)
    base_market.node.lose_answers(lambda call, _: is_call_of(call, signature))

    found, (warning,) = await read_name(base_market, ALICE)

    assert (found, warning) == (None, "the Basename of the address is unknown: the node did not tell")


async def test_name_of_ens_registrar_alone_resolves_back(base_market: Market) -> None:
    claim_ens_name(base_market, ALICE, "alice.base.eth")
    register_ens_name(base_market, "alice.base.eth", ALICE)

    assert await read_name(base_market, ALICE) == ("alice.base.eth", [])


@pytest.mark.parametrize(
    ("account", "coin_type"), [(BOB, BASE_COIN_TYPE), (ALICE, OPTIMISM_COIN_TYPE), (ALICE, 60)]
)
async def test_ens_name_needs_the_address_on_base(base_market: Market, account: str, coin_type: int) -> None:
    claim_ens_name(base_market, ALICE, "alice.base.eth")
    register_ens_name(base_market, "alice.base.eth", account, coin_type=coin_type)

    name, (warning,) = await read_name(base_market, ALICE)

    assert (name, "does not resolve back" in warning) == (None, True)


async def test_ens_name_counts_before_that_of_basenames(base_market: Market) -> None:
    claim_name(base_market, ALICE, "old.base.eth")
    register_name(base_market, "old.base.eth", ALICE)
    claim_ens_name(base_market, ALICE, "new.base.eth")
    register_ens_name(base_market, "new.base.eth", ALICE)

    assert await read_name(base_market, ALICE) == ("new.base.eth", [])


async def test_name_of_basenames_counts_if_that_of_ens_fails(base_market: Market) -> None:
    claim_name(base_market, ALICE, "alice.base.eth")
    register_name(base_market, "alice.base.eth", ALICE)
    claim_ens_name(base_market, ALICE, "alice.base.eth")

    assert await read_name(base_market, ALICE) == ("alice.base.eth", [])


async def test_name_outside_base_eth_is_left_out(base_market: Market) -> None:
    claim_ens_name(base_market, ALICE, "alice.eth")

    found, (warning,) = await read_name(base_market, ALICE)

    assert (found, warning.endswith(" or is not under base.eth")) == (None, True)


@pytest.mark.parametrize("registered", [True, False])
async def test_silent_ens_registrar_hides_no_basename(base_market: Market, *, registered: bool) -> None:
    if registered:
        claim_name(base_market, ALICE, "alice.base.eth")
        register_name(base_market, "alice.base.eth", ALICE)
    base_market.node.lose_answers(lambda call, _: is_call_of(call, "nameForAddr(address)"))

    unknown = ["the Basename of the address is unknown: the node did not tell"]
    assert await read_name(base_market, ALICE) == (("alice.base.eth", []) if registered else (None, unknown))


async def test_slow_second_round_hides_nothing_else(base_market: Market) -> None:
    claim_name(base_market, ALICE, "alice.base.eth")
    register_name(base_market, "alice.base.eth", ALICE)
    await read_name(base_market, BOB)  # the first calls of a chain are slow
    is_over = Event()
    base_market.node.lose_answers(
        lambda call, _: is_call_of(call, "addr(bytes32)") and is_over.wait(MAX_WAIT)
    )

    answer = await read_name(base_market, ALICE, max_wait=3)
    is_over.set()

    found, (warning,) = answer
    assert (found, warning) == (
        None,
        "the Basename of the address is unknown: the node did not answer in time",
    )
    assert base_market.rpc.trace.providers["rpc"]["status"] == "timeout"
