"""Who can change the code behind a proxy, as far as the chain shows it. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from centgate.crypto.abi import function_selector
from centgate.crypto.contract.account_finding import (
    AccountEvidence,
    AccountFinding,
    create_slot_evidence,
)
from centgate.crypto.contract.account_kinds import WALLET_KINDS, describe_kind
from centgate.crypto.contract.account_state import ChainState
from centgate.crypto.contract.owners import OWNER_CALL
from centgate.crypto.contract.proxy_standards import ADMIN_SLOT, ZEPPELIN_ADMIN_SLOT, list_running

_UPGRADE_FUNCTIONS = ("upgradeTo(address)", "upgradeToAndCall(address,bytes)", "updateCodeAddress(address)")
_ADMIN_UPGRADE_FUNCTIONS = ("upgrade(address,address)", "upgradeAndCall(address,address,bytes)")
"""Functions by which only the owner of a ProxyAdmin upgrades its proxies."""


def add_upgrade_power(state: ChainState, finding: AccountFinding) -> AccountFinding:
    """Add who can change the code, as far as the chain shows it."""
    slot = ZEPPELIN_ADMIN_SLOT if finding.kind == "zeppelinos" else ADMIN_SLOT
    if (admin := state.slot_address(slot)) and finding.kind != "safe":
        return _add_admin(
            state, replace(finding, evidence=(*finding.evidence, create_slot_evidence(state, slot))), admin
        )
    if finding.kind == "safe":
        note = "the code of a Safe can be changed by a transaction of the Safe, where its code allows that"
        return replace(finding, notes=(*finding.notes, note))
    if not can_upgrade(state.code or b"") and not _can_implementation_upgrade(state, finding):
        return finding
    return _add_self_upgrade(state, finding)


def _add_self_upgrade(state: ChainState, finding: AccountFinding) -> AccountFinding:
    """Add the owner of a proxy that is upgraded by its own code or by its implementation."""
    owner = state.owner_address(state.address)
    if not owner:
        note = "the code behind this proxy can be changed; its own code decides by whom"
        return replace(finding, upgradeable=True, notes=(*finding.notes, note))
    finding = replace(
        finding, evidence=(*finding.evidence, AccountEvidence("rpc", f"call {OWNER_CALL}", owner))
    )
    if state.is_burn_address(owner):
        note = (
            f"the code behind this proxy can be changed by the accounts that its own code allows, often its "
            f"owner(), but that is a burn address ({owner}): whether any account can is not known"
        )
        return replace(finding, notes=(*finding.notes, note))
    note = (
        f"the code behind this proxy can be changed by the accounts that its own code allows, often its "
        f"owner(), {owner}, {describe_kind(state.account_kind(owner))}"
    )
    return replace(finding, upgradeable=True, notes=(*finding.notes, note))


def _add_admin(state: ChainState, finding: AccountFinding, admin: str) -> AccountFinding:
    """Add the admin that a proxy stores in a slot."""
    kind = state.account_kind(admin)
    if state.is_burn_address(admin):
        note = f"the admin that it stores is a burn address ({admin}), which cannot change its code"
        return _add_upgrade_without_admin(state, replace(finding, notes=(*finding.notes, note)))
    if kind in WALLET_KINDS:
        note = f"its code can be changed at any time by a single wallet, {admin}"
        return replace(finding, upgradeable=True, upgrader=admin, notes=(*finding.notes, note))
    note = f"its code can be changed by its admin {admin}, {describe_kind(kind)}"
    if owner := state.owner_address(admin):
        call = AccountEvidence("rpc", f"call {OWNER_CALL} of the admin {admin}", owner)
        finding = replace(finding, evidence=(*finding.evidence, call))
        if state.is_burn_address(owner):
            return _add_ownerless_admin(state, finding, admin, owner)
        note += f", whose owner() is {owner}, {describe_kind(state.account_kind(owner))}"
    return replace(finding, upgradeable=True, upgrader=admin, notes=(*finding.notes, note))


def _add_ownerless_admin(
    state: ChainState, finding: AccountFinding, admin: str, owner: str
) -> AccountFinding:
    """Add an admin contract that names no owner, by whom a ProxyAdmin would upgrade its proxies."""
    if _has_function(state.codes.get(admin, b""), _ADMIN_UPGRADE_FUNCTIONS):
        note = (
            f"its admin {admin} is a contract whose owner() is a burn address ({owner}): as a ProxyAdmin it "
            "cannot change the code"
        )
        return _add_upgrade_without_admin(state, replace(finding, notes=(*finding.notes, note)))
    note = (
        f"its code can be changed by its admin {admin} alone, a contract whose owner() is a burn address "
        f"({owner}): whether any account can make it do that is not known"
    )
    return replace(finding, notes=(*finding.notes, note))


def _add_upgrade_without_admin(state: ChainState, finding: AccountFinding) -> AccountFinding:
    """Finish a proxy that its admin cannot change; its implementation may be able to upgrade it.

    Anyone can deploy a proxy that stores such an admin and obeys another account, so nothing is ruled out.
    """
    return _add_self_upgrade(state, finding) if _can_implementation_upgrade(state, finding) else finding


def add_owner(state: ChainState, finding: AccountFinding, address: str, label: str) -> AccountFinding:
    """Add that the owner() of `address` can change the code."""
    owner = state.owner_address(address)
    if not owner:
        note = f"its code can be changed through {label}; by whom is not known"
        return replace(finding, notes=(*finding.notes, note))
    evidence = AccountEvidence("rpc", f"call {OWNER_CALL} of {address}", owner)
    if state.is_burn_address(owner):
        # whom the code obeys may be another account than the one that it names
        note = f"its code cannot be changed by the owner() of {label}, a burn address ({owner})"
        return replace(
            finding, upgradeable=None, evidence=(*finding.evidence, evidence), notes=(*finding.notes, note)
        )
    single = "a single wallet, " if state.account_kind(owner) in WALLET_KINDS else ""
    note = f"its code can be changed by the owner() of {label}: {single}{owner}"
    return replace(
        finding, upgrader=owner, evidence=(*finding.evidence, evidence), notes=(*finding.notes, note)
    )


def can_upgrade(code: bytes) -> bool:
    """True if the code has a function that changes the implementation of a proxy."""
    return _has_function(code, _UPGRADE_FUNCTIONS)


def _can_implementation_upgrade(state: ChainState, finding: AccountFinding) -> bool:
    running = list_running(state, finding.implementations)
    return any(can_upgrade(state.codes.get(each, b"")) for each in running)


def _has_function(code: bytes, signatures: Iterable[str]) -> bool:
    """True if the code contains the selector of any of these functions."""
    return any(function_selector(signature) in code for signature in signatures)
