"""Parts of contract-explain's answer that bytecode, calls and event logs tell."""

from __future__ import annotations

from pydantic import Field

from centgate.coercion import from_unix_seconds
from centgate.crypto.contract.code_analysis import Mutability
from centgate.crypto.contract.functions import ControlFunction
from centgate.crypto.contract.owners import OwnerKind
from centgate.crypto.contract.upgrade_events import Upgrade
from centgate.crypto.token.powers import PowerCaller, PowerKind
from centgate.lookups.contract_functions import ContractFunctions
from centgate.lookups.upgrade_history import MAX_UPGRADES, UpgradeHistory
from centgate.schema import Data
from centgate.timestamps import format_timestamp

MAX_FUNCTIONS = 100
"""Functions in a response."""


class ExplainedFunction(Data):
    """An external function, inferred from the bytecode that runs; behind a proxy its implementation's."""

    selector: str = Field(description="0x and 8 hexadecimal digits.")
    signature: str | None = Field(
        description="A signature in common use with this selector; another function may share it. Null when "
        "none is known."
    )
    arguments: str = Field(description="Types of its arguments, inferred from the code, separated by commas.")
    mutability: Mutability | None
    power: PowerKind | ControlFunction | None = Field(
        description="What its caller can do to others, by its signature and the storage it writes; null when "
        "nothing is known."
    )
    caller: PowerCaller | None = Field(
        description="Who it checks for, as far as storage shows it: `owner`, or holders of a `role`."
    )
    contract_address: str = Field(description="The contract whose code has it, lower case.")


class ControllingAccount(Data):
    """An account with power over the contract, as the chain shows it."""

    address: str | None = Field(description="Lower case.")
    kind: OwnerKind = Field(
        description="`none`: the contract names no owner; `renounced`: no one controls the address; `safe`: "
        "a Safe with published code; `timelock` and `governor`: as the contract itself answers."
    )
    threshold: int | None = Field(description="Signatures that a Safe needs.")
    owner_count: int | None = Field(description="Number of a Safe's owners.")
    delay_seconds: int | None = Field(description="Delay of a timelock, in seconds.")


class ContractUpgrade(Data):
    """A change of the code behind a proxy."""

    implementation_address: str | None = Field(
        description="Lower case; null when a diamond only removed functions."
    )
    block_number: int
    at: str | None = Field(description="ISO 8601, UTC; null when no source gives it.")
    transaction_hash: str


class ContractUpgrades(Data):
    """Changes of the code behind a proxy, by events: `Upgraded` (EIP-1967) or `DiamondCut` (EIP-2535)."""

    events: list[ContractUpgrade] = Field(
        max_length=MAX_UPGRADES,
        description="The latest first, at most 50; one for each facet of a diamond. Those of a beacon proxy "
        "are its beacon's.",
    )
    from_block: int = Field(description="First block that was read; 0: the whole history.")
    to_block: int


def build_upgrades(history: UpgradeHistory) -> ContractUpgrades:
    """Return the part of a response about upgrades."""
    return ContractUpgrades(
        events=[_build_upgrade(each) for each in history.upgrades],
        from_block=history.from_block,
        to_block=history.to_block,
    )


def _build_upgrade(upgrade: Upgrade) -> ContractUpgrade:
    at = from_unix_seconds(upgrade.timestamp)
    return ContractUpgrade(
        implementation_address=upgrade.implementation,
        block_number=upgrade.block,
        at=format_timestamp(at) if at else None,
        transaction_hash=upgrade.transaction,
    )


def build_functions(functions: ContractFunctions | None) -> list[ExplainedFunction] | None:
    """Return the first functions, as a response has them; None if they were not read."""
    if functions is None:
        return None
    return [
        ExplainedFunction(
            selector="0x" + each.function.selector.hex(),
            signature=each.signature,
            arguments=each.function.arguments,
            mutability=each.function.mutability,
            power=each.power,
            caller=each.caller,
            contract_address=each.contract,
        )
        for each in functions.functions[:MAX_FUNCTIONS]
    ]
