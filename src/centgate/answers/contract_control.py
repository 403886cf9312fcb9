"""Fields of contract-explain on control: functions, owners, roles and upgrades of a contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from centgate.chains import from_chain_seconds
from centgate.crypto.contract.code_analysis import Mutability
from centgate.crypto.contract.functions import ControlFunction
from centgate.crypto.contract.owners import Owner, OwnerKind
from centgate.crypto.contract.roles import MAX_LISTED_MEMBERS
from centgate.crypto.contract.upgrade_events import Upgrade
from centgate.crypto.token.powers import PowerCaller, PowerKind
from centgate.lookups.contract_control import Controller, RoleHolders
from centgate.lookups.contract_functions import ContractFunction, ContractFunctions
from centgate.lookups.upgrade_history import MAX_UPGRADES, UpgradeHistory
from centgate.schema import Data
from centgate.timestamps import format_timestamp

SignatureSource = Literal["abi", "common"]

MAX_FUNCTIONS = 100
"""Functions in a response."""
MAX_ROLE_MEMBERS = MAX_LISTED_MEMBERS + 3


class ExplainedFunction(Data):
    """An external function, inferred from the bytecode that runs: of a proxy, its own and those behind it."""

    selector: str = Field(description="0x and 8 hexadecimal digits.")
    signature: str | None = Field(
        description="A signature with this selector; another function may share it. Null when none is known."
    )
    signature_source: SignatureSource | None = Field(
        description="`abi`: from the published ABI of this contract, so the name is a stranger's text; "
        "`common`: from a list of signatures in common use; null without a signature."
    )
    arguments: str = Field(description="Types of its arguments, inferred from the code, separated by commas.")
    mutability: Mutability | None = Field(description="Inferred from the code; null when unknown.")
    power: PowerKind | ControlFunction | None = Field(
        description="What its caller can do to others, by its signature and the storage it writes; null when "
        "nothing is known."
    )
    caller: PowerCaller | None = Field(
        description="Who it checks for, as far as storage shows it: `owner`, or holders of a `role`."
    )
    contract_address: str = Field(description="The contract whose code has it, lower case.")


class OwnerAccount(Data):
    """An account that owns a contract or holds a role in it, as the chain shows it."""

    address: str | None = Field(description="Lower case.")
    kind: OwnerKind = Field(
        description="`none`: the contract names no owner; `renounced`: no one controls the address; `safe`: "
        "a Safe with published code; `timelock` and `governor`: as the contract itself answers."
    )
    threshold: int | None = Field(description="Signatures that a Safe needs.")
    owner_count: int | None = Field(description="Number of a Safe's owners.")
    has_modules: bool | None = Field(
        description="Whether a Safe lists modules: contracts that act for it without its owners' signatures."
    )
    delay_seconds: int | None = Field(description="Delay of a timelock, in seconds.")


class ControllingAccount(OwnerAccount):
    """An account with power over the contract, and who owns it in turn."""

    owner: OwnerAccount | None = Field(
        description="Behind kind `contract`, the account that this contract's own `owner()` names, such as "
        "that of a ProxyAdmin; null for other kinds, and when it names none or was not read.",
    )


class ContractRole(Data):
    """A role of AccessControl (OpenZeppelin), as the contract answers."""

    name: str = Field(description="A name in common use, for which the contract has a getter.")
    role: str = Field(description="0x and 64 hexadecimal digits; zero is the default admin's.")
    admin_role: str | None = Field(description="The role whose members grant and revoke this one.")
    member_count: int | None = Field(
        description="Number of members; null if the contract does not list them."
    )
    members: list[OwnerAccount] = Field(
        max_length=MAX_ROLE_MEMBERS,
        description="The first 5 members of a listed role. Of the owner, the upgrade controller and the "
        "creator, also those that hold a role. The kind is `unknown` beyond the first 8 accounts of all "
        "roles.",
    )


class ContractUpgrade(Data):
    """A change of the code behind a proxy."""

    implementation_address: str | None = Field(
        description="Lower case; null when a diamond only removed functions."
    )
    block_number: int = Field(description="Block of the change.")
    at: str | None = Field(description="ISO 8601, UTC; null when no source gives it.")
    transaction_hash: str = Field(description="Transaction of the change.")


class ContractUpgrades(Data):
    """Changes of the code behind a proxy, by events: `Upgraded` (EIP-1967) or `DiamondCut` (EIP-2535)."""

    events: list[ContractUpgrade] = Field(
        max_length=MAX_UPGRADES,
        description="The latest first, at most 50; one for each facet of a diamond. Those of a beacon proxy "
        "are its beacon's.",
    )
    from_block: int = Field(description="First block that was read; 0: the whole history.")
    to_block: int | None = Field(
        description="Last block that was read; null if the source does not say how far it reaches."
    )


def build_functions(
    functions: ContractFunctions | None, published: Mapping[str, Mapping[bytes, str]]
) -> list[ExplainedFunction] | None:
    """Return the first functions, as a response has them; None if they were not read.

    `published` has the signatures in published ABIs, by contract and selector.
    """
    if functions is None:
        return None
    return [
        _build_function(each, published.get(each.contract, {}))
        for each in functions.functions[:MAX_FUNCTIONS]
    ]


def _build_function(found: ContractFunction, published: Mapping[bytes, str]) -> ExplainedFunction:
    selector = found.function.selector
    source: SignatureSource | None = "abi" if selector in published else "common" if found.signature else None
    return ExplainedFunction(
        selector="0x" + selector.hex(),
        signature=published.get(selector, found.signature),
        signature_source=source,
        arguments=found.function.arguments,
        mutability=found.function.mutability,
        power=found.power,
        caller=found.caller,
        contract_address=found.contract,
    )


def build_controller(controller: Controller | None) -> ControllingAccount | None:
    """Return an account with power over a contract, as a response has it."""
    if controller is None:
        return None
    account = _build_account(controller.account)
    owner = _build_account(controller.owner) if controller.owner else None
    return ControllingAccount(**dict(account), owner=owner)


def build_roles(roles: Sequence[RoleHolders] | None) -> list[ContractRole] | None:
    """Return the roles of a contract, as a response has them."""
    return None if roles is None else [_build_role(each) for each in roles]


def _build_role(holders: RoleHolders) -> ContractRole:
    """Return a role, as a response has it."""
    role = holders.role
    return ContractRole(
        name=role.name,
        role="0x" + role.role.hex(),
        admin_role="0x" + role.admin_role.hex() if role.admin_role is not None else None,
        member_count=role.count,
        members=[_build_account(each) for each in holders.accounts],
    )


def _build_account(owner: Owner) -> OwnerAccount:
    return OwnerAccount(
        address=owner.address,
        kind=owner.kind,
        threshold=owner.threshold,
        owner_count=owner.owner_count,
        has_modules=owner.has_modules,
        delay_seconds=owner.delay_seconds,
    )


def build_upgrades(history: UpgradeHistory | None, chain_id: int) -> ContractUpgrades | None:
    """Return the part of a response about upgrades."""
    if history is None:
        return None
    return ContractUpgrades(
        events=[_build_upgrade(each, chain_id) for each in history.upgrades],
        from_block=history.from_block,
        to_block=history.to_block,
    )


def _build_upgrade(upgrade: Upgrade, chain_id: int) -> ContractUpgrade:
    at = from_chain_seconds(upgrade.timestamp, chain_id)
    return ContractUpgrade(
        implementation_address=upgrade.implementation,
        block_number=upgrade.block,
        at=format_timestamp(at) if at else None,
        transaction_hash=upgrade.transaction,
    )
