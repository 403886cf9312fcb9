"""Evidence about a token's owner: who it is, and whether its powers can be used. No I/O."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from msgspec import Struct

from centgate.chains import is_burn_address
from centgate.crypto.contract.owners import Owner, OwnerKind
from centgate.crypto.token.evidence.contract import ContractEvidence
from centgate.crypto.token.security import TokenFlags

OwnerState = Literal["none", "renounced", "held", "hidden", "unknown"]


class OwnershipEvidence(Struct, frozen=True, dict=True):
    """Evidence about the account that controls a token."""

    flags: TokenFlags
    """Of the contract analysis, completed by the bytecode."""
    owner: Owner | None
    """The owner that the chain shows."""
    contract: ContractEvidence
    has_other_controllers: bool
    """True if the bytecode has roles, or a power that another account than the owner may use."""

    @cached_property
    def address(self) -> str | None:
        """Address of the owner by the contract analysis, else by the chain; empty without an owner.

        An owner that the chain shows counts also where the analysis names none.
        """
        listed = self.flags.owner_address
        if self.owner is None or (listed and not is_burn_address(listed)):
            return listed
        if self.owner.kind == "none":
            return listed if listed is not None else ""
        return self.owner.address if self.is_unlisted or not listed else listed

    @cached_property
    def is_unlisted(self) -> bool:
        """True if the chain shows an owner where the contract analysis names none, or one that is nobody."""
        listed, shown = self.flags.owner_address, self.owner and self.owner.address
        is_listed_nobody = listed is not None and (not listed or is_burn_address(listed))
        return bool(is_listed_nobody and shown and not is_burn_address(shown))

    @cached_property
    def state(self) -> OwnerState:
        owner = self.address
        if self.flags.hidden_owner:
            return "hidden"
        if owner is None:
            return "unknown"
        if not owner:
            return "none"
        return "renounced" if is_burn_address(owner) else "held"

    @cached_property
    def kind(self) -> OwnerKind:
        """Kind of the owner that the sources agree on."""
        if self.state in ("none", "renounced"):
            return self.state
        if self.owner is None or self.owner.kind in ("none", "renounced"):
            return "unknown"
        is_other = self.address not in (None, self.owner.address)
        return "unknown" if is_other else self.owner.kind

    @cached_property
    def is_contract(self) -> bool | None:
        """True if the owner is a contract; None if neither the chain nor the list of holders tells."""
        if self.kind in ("wallet", "safe", "timelock", "governor", "contract"):
            return self.kind != "wallet"
        rows = [*(self.flags.holders or ()), *(self.flags.lp_holders or ())]
        return next((row.contract for row in rows if row.address == self.address), None)

    # who can use its powers

    @cached_property
    def is_given_up(self) -> bool:
        """True if it is known that no account can use owner privileges, now or later.

        A contract without an owner does not prove that: its powers may belong to roles.
        """
        flags, shown = self.flags, self.owner.kind if self.owner else "unknown"
        return (
            self.state == "renounced"
            and shown in ("none", "renounced", "unknown")
            and flags.hidden_owner is False
            and flags.reclaimable is False
            and (flags.proxy is False or self.contract.is_pinned_clone)
            and not (self.contract.is_upgradeable or self.has_other_controllers)
        )

    @cached_property
    def is_shared(self) -> bool:
        """True if its owner is a Safe that does nothing without several signatures."""
        if not self.owner or self.kind != "safe" or self._has_hidden_control:
            return False
        return (self.owner.threshold or 0) > 1 and self.owner.has_modules is False

    @property
    def _has_hidden_control(self) -> bool:
        """True if another account than the owner may have an owner's powers."""
        return bool(self.flags.hidden_owner or self.flags.reclaimable)

    @cached_property
    def is_unchecked(self) -> bool:
        """True if one key may control it: its owner is a wallet, or is of an unknown kind."""
        return not (self.is_given_up or self.is_shared)

    def has_power(self, name: str) -> bool | None:
        """Return a flag about an owner's power; False if no account can use it."""
        flag: bool | None = getattr(self.flags, name)
        return False if flag and self.is_given_up else flag
