"""Classification of an account, with the evidence that it rests on."""

from __future__ import annotations

from msgspec import Struct

from centgate.crypto.contract.account_kinds import AccountKind
from centgate.crypto.contract.account_state import ChainState
from centgate.crypto.contract.contracts import ContractSource, ProxyKind


class AccountEvidence(Struct, frozen=True):
    """A value that a finding rests on, with its source."""

    source: ContractSource
    field: str
    value: str | None


class AccountFinding(Struct, frozen=True):
    """Classification of an account. None means unknown."""

    account: AccountKind
    is_proxy: bool | None
    kind: ProxyKind | None = None
    implementations: tuple[str, ...] = ()
    beacon: str | None = None
    upgradeable: bool | None = None
    upgrader: str | None = None
    """Address that can change the code behind a proxy."""
    evidence: tuple[AccountEvidence, ...] = ()
    notes: tuple[str, ...] = ()
    """Warnings as sentences."""
    has_delegatecall: bool | None = None
    """True if its code can run another contract's code (DELEGATECALL)."""


def create_slot_evidence(state: ChainState, slot: str) -> AccountEvidence:
    """Return what a storage slot of the account holds, as evidence."""
    return AccountEvidence("rpc", f"storage {slot}", "0x" + state.slots[state.address, slot].hex())


def create_code_evidence(state: ChainState, field: str) -> AccountEvidence:
    """Return the start of the account's code as evidence of what `field` names."""
    return AccountEvidence("rpc", field, "0x" + (state.code or b"")[:64].hex())
