"""Read who controls a contract: what kinds of accounts own it, can upgrade it and hold its roles."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from msgspec import Struct

from centgate.crypto.abi import function_selector
from centgate.crypto.contract.account_finding import AccountFinding
from centgate.crypto.contract.account_state import ChainState
from centgate.crypto.contract.owners import OWNER_CALL, Owner, has_owner_function, parse_owner
from centgate.crypto.contract.roles import RoleMembers, list_role_calls, parse_roles
from centgate.fallback import attempt
from centgate.lookups.accounts import read_owner
from centgate.lookups.contract_functions import ContractFunctions
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import Rpc

MAX_ROLE_ACCOUNTS = 8
"""Members of roles whose kind is read, of all roles together."""


class Controller(Struct, frozen=True):
    """Account with power over a contract."""

    account: Owner
    owner: Owner | None = None
    """Owner of a contract of no known kind, such as a ProxyAdmin; None for others, or if it was not read."""


class RoleHolders(Struct, frozen=True):
    """Role of a contract with what is known of its members."""

    role: RoleMembers
    accounts: tuple[Owner, ...]
    """Its members, in their order; of kind `unknown` beyond `MAX_ROLE_ACCOUNTS`."""


async def read_controller(rpc: Rpc, chain_id: int, address: str, *, state: ChainState) -> Controller:
    """Return the account at an address (lower case) and, if it is a contract of no known kind, its owner.

    `state` may have that owner's address already: then one round suffices, else it takes three.
    """
    known = state.owner_address(address)
    if known is not None:
        account, owner = await asyncio.gather(
            read_owner(rpc, chain_id, address), read_owner(rpc, chain_id, known)
        )
        return Controller(account, owner if account.kind == "contract" else None)
    account = await read_owner(rpc, chain_id, address)
    if account.kind != "contract" or (address, OWNER_CALL) in state.call_results:
        return Controller(account)
    returned = await attempt(
        rpc.call_contracts, chain_id, [ContractCall(address, function_selector(OWNER_CALL))]
    )
    owner_address = parse_owner(returned[0]) if isinstance(returned, list) else None
    if owner_address is None:
        return Controller(account)
    return Controller(account, await read_owner(rpc, chain_id, owner_address))


async def read_roles(
    rpc: Rpc, chain_id: int, contract: str, *, selectors: Collection[bytes], candidates: Sequence[str]
) -> list[RoleHolders] | None:
    """Return the roles of a contract with AccessControl, in two rounds; None if the node fails.

    `candidates` are accounts that may hold roles, for contracts that do not list the members.
    """
    calls = list_role_calls(selectors, candidates)
    returned = await attempt(
        rpc.call_contracts, chain_id, [ContractCall(contract, data) for data in calls.values()]
    )
    if not isinstance(returned, list):
        return None
    roles = parse_roles(dict(zip(calls, returned, strict=True)))
    accounts = list(dict.fromkeys(member for role in roles for member in role.members))[:MAX_ROLE_ACCOUNTS]
    owners = await asyncio.gather(*(read_owner(rpc, chain_id, each) for each in accounts))
    known = dict(zip(accounts, owners, strict=True))
    return [
        RoleHolders(role, tuple(known.get(each) or Owner(each, "unknown") for each in role.members))
        for role in roles
    ]


async def read_stated_owner(
    rpc: Rpc, chain_id: int, state: ChainState, *, reading: asyncio.Task[ContractFunctions | None]
) -> Controller | None:
    """Return the owner that a contract states, of kind `none` if it states none.

    None if it was not asked, or if its code has the function and the answer is no address.
    """
    if (address := state.stated_owner) is not None:
        return await read_controller(rpc, chain_id, address, state=state)
    if not state.has_asked_owner:
        return None
    functions = await reading
    if functions is not None and has_owner_function(functions.selectors):
        rpc.trace.add_warning("the owner of this contract is not known: its own function gave no address")
        return None
    return Controller(Owner(None, "none"))


async def read_upgrade_controller(
    rpc: Rpc, chain_id: int, finding: AccountFinding, state: ChainState
) -> Controller | None:
    if finding.upgrader is None:
        return None
    return await read_controller(rpc, chain_id, finding.upgrader, state=state)


async def read_contract_roles(
    rpc: Rpc,
    chain_id: int,
    address: str,
    *,
    reading: asyncio.Task[ContractFunctions | None],
    candidates: Sequence[str],
) -> list[RoleHolders] | None:
    """Return the roles of a contract, empty without AccessControl; None if its functions are unknown."""
    functions = await reading
    if functions is None:
        return None
    if "AccessControl" not in functions.standards:
        return [] if not functions.unread else None
    roles = await read_roles(rpc, chain_id, address, selectors=functions.selectors, candidates=candidates)
    if roles is None:
        rpc.trace.add_warning("the roles of this contract are not known: the node did not tell")
        return None
    if unlisted := [each.role.name for each in roles if each.role.count is None]:
        rpc.trace.add_warning(
            f"the contract does not list who holds the roles {', '.join(unlisted)}: others than the given "
            "members may hold them"
        )
    return roles
