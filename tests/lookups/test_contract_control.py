"""Owners and role members of a contract, read from a development chain."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass

import pytest
from exchange_market import deploy_owner
from lookups.chain_providers import CHAIN_ID, open_providers
from lookups.chain_world import compile_contract

from centgate.crypto.abi import function_selector
from centgate.crypto.contract.account_state import ChainState
from centgate.crypto.contract.owners import OWNER_CALL, Owner
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.chain import EvmChain, GenesisAccount
from centgate.devchain.deployer import Deployer
from centgate.devchain.exchanges import OPERATOR, OPERATOR_BALANCE
from centgate.devchain.http_server import serve_app
from centgate.devchain.rpc import create_rpc_app
from centgate.lookups.contract_control import Controller, read_controller, read_roles, read_stated_owner
from centgate.lookups.contract_functions import ContractFunctions, read_functions
from centgate.settings import Settings
from centgate.solidity import CompiledContract

ALICE, BOB, CAROL = (account.address.lower() for account in BUYER_ACCOUNTS[:3])
ZERO = "0x" + "0" * 40
DELAY = 86_400
HAS_ROLE, MINTER_ROLE, PAUSER_ROLE, *LISTS = map(
    function_selector,
    (
        *("hasRole(bytes32,address)", "MINTER_ROLE()", "PAUSER_ROLE()"),
        *("getRoleMemberCount(bytes32)", "getRoleMember(bytes32,uint256)"),
    ),
)


@dataclass(frozen=True)
class Contracts:
    """Contracts on the chain, and the URL of its node."""

    url: str
    timelock: str
    admin: str
    """Contract owned by the timelock, which is its default admin too; Alice and Bob mint."""
    renounced: str


@pytest.fixture(scope="module")
def contracts() -> Generator[Contracts]:
    chain = EvmChain(CHAIN_ID, {OPERATOR.address: GenesisAccount(OPERATOR_BALANCE)})
    operator = Deployer(chain, OPERATOR)
    compiled = compile_contract("roles")
    inputs = [{"type": each} for each in ("address", "address[]", "address[]")]
    constructor = {"type": "constructor", "inputs": inputs}
    roles = CompiledContract("roles", compiled["bytecode"], compiled["runtime"], (constructor,))
    timelock = deploy_owner(operator, "TimelockController", DELAY, [BOB], [BOB], ZERO)
    admin = operator.deploy(roles, timelock, [timelock], [ALICE, BOB])
    renounced = operator.deploy(roles, ZERO, [], [])
    with serve_app(create_rpc_app(chain), 0) as url:
        yield Contracts(url, timelock, admin, renounced)


async def test_owner_of_owner_is_read(contracts: Contracts, chain_settings: Settings) -> None:
    found: list[Controller] = []
    async with open_providers(chain_settings, contracts.url) as (rpc, _):
        for address in (contracts.admin, contracts.renounced, contracts.timelock, ALICE):
            state = ChainState(CAROL)
            found.append(await read_controller(rpc, CHAIN_ID, address, state=state))

    timelock = Owner(contracts.timelock, "timelock", delay_seconds=DELAY)
    assert found == [
        Controller(Owner(contracts.admin, "contract"), timelock),
        Controller(Owner(contracts.renounced, "contract"), Owner(ZERO, "renounced")),
        Controller(timelock),
        Controller(Owner(ALICE, "wallet")),
    ]


async def test_known_owner_is_not_read_again(contracts: Contracts, chain_settings: Settings) -> None:
    state = ChainState(CAROL)
    state.call_results[contracts.admin, OWNER_CALL] = bytes.fromhex(BOB[2:]).rjust(32, b"\0")
    state.call_results[contracts.renounced, OWNER_CALL] = None
    async with open_providers(chain_settings, contracts.url) as (rpc, _):
        named = await read_controller(rpc, CHAIN_ID, contracts.admin, state=state)
        unnamed = await read_controller(rpc, CHAIN_ID, contracts.renounced, state=state)

    assert named.owner == Owner(BOB, "wallet")
    assert unnamed.owner is None


@pytest.mark.extended
async def test_role_members_are_read_with_their_kinds(contracts: Contracts, chain_settings: Settings) -> None:
    selectors = {HAS_ROLE, MINTER_ROLE, PAUSER_ROLE, *LISTS}
    async with open_providers(chain_settings, contracts.url) as (rpc, _):
        roles = await read_roles(rpc, CHAIN_ID, contracts.admin, selectors=selectors, candidates=[CAROL])

    assert roles is not None
    told = {each.role.name: (each.role.count, each.accounts) for each in roles}
    assert told == {
        "DEFAULT_ADMIN_ROLE": (1, (Owner(contracts.timelock, "timelock", delay_seconds=DELAY),)),
        "MINTER_ROLE": (2, (Owner(ALICE, "wallet"), Owner(BOB, "wallet"))),
        "PAUSER_ROLE": (None, ()),
    }


async def test_candidates_are_confirmed_without_enumeration(
    contracts: Contracts, chain_settings: Settings
) -> None:
    selectors = {HAS_ROLE, MINTER_ROLE}
    async with open_providers(chain_settings, contracts.url) as (rpc, _):
        roles = await read_roles(rpc, CHAIN_ID, contracts.admin, selectors=selectors, candidates=[CAROL, BOB])

    assert roles is not None
    assert [(each.role.count, each.accounts) for each in roles] == [
        (None, ()),
        (None, (Owner(BOB, "wallet"),)),
    ]


async def test_roles_are_unknown_without_node(chain_settings: Settings) -> None:
    async with open_providers(chain_settings, "http://127.0.0.1:9") as (rpc, _):
        roles = await read_roles(rpc, CHAIN_ID, ALICE, selectors={HAS_ROLE}, candidates=[])
        controller = await read_controller(rpc, CHAIN_ID, ALICE, state=ChainState(CAROL))

    assert roles is None
    assert controller == Controller(Owner(ALICE, "unknown"))


@pytest.mark.parametrize("answer", [None, b"\0" * 16, b"\1" * 64])
async def test_owner_function_without_address_leaves_owner_open(
    contracts: Contracts, chain_settings: Settings, answer: bytes | None
):
    address = contracts.admin.lower()
    state = ChainState(address, call_results={(address, OWNER_CALL): answer})
    async with open_providers(chain_settings, contracts.url) as (rpc, bytecode):
        (code,) = await rpc.contract_codes(CHAIN_ID, [address])
        reading: asyncio.Task[ContractFunctions | None] = asyncio.create_task(
            read_functions(bytecode, {address: code})
        )
        owner = await read_stated_owner(rpc, CHAIN_ID, state, reading=reading)

    assert owner is None
    assert any("owner of this contract is not known" in each for each in rpc.trace.warnings)
