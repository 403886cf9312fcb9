"""Evidence about a token's contract: how far it is analysed, and which code runs. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from centgate.crypto.token.security import BYTECODE_FLAGS, Simulation, TokenFlags

KEY_FLAGS = (
    *("open_source", "honeypot", "changes_balances", "self_destructs", "hidden_owner", "reclaimable"),
    *("pausable", "personal_tax_modifiable"),
)
"""Flags behind the severe rules that an analysis of any contract reports."""
MIN_KEY_FLAGS = 6
"""Number of these flags with a value from which a contract counts as analysed."""
MIN_BYTECODE_FLAGS = 4
"""Number of a bytecode's flags with a value from which it counts as read."""


@dataclass(frozen=True)
class ContractEvidence:
    """Evidence about the code of a token: as the analysis, the bytecode and the simulation service see it."""

    flags: TokenFlags
    """Of the contract analysis, completed by the bytecode."""
    bytecode_flags: TokenFlags | None
    simulation: Simulation
    """The simulation service's result; all None if there was none."""
    is_pinned_clone: bool
    """True if the chain shows a clone that always runs the code of one contract."""

    @cached_property
    def is_analysed(self) -> bool:
        """True if the contract analysis has enough of the decisive flags, or the bytecode was read."""
        known = sum(getattr(self.flags, name) is not None for name in KEY_FLAGS)
        return known >= MIN_KEY_FLAGS or self.is_bytecode_read

    @cached_property
    def is_bytecode_read(self) -> bool:
        """True if the chain tells what the bytecode can do."""
        flags = self.bytecode_flags or TokenFlags()
        return sum(getattr(flags, name) is not None for name in BYTECODE_FLAGS) >= MIN_BYTECODE_FLAGS

    @cached_property
    def is_bytecode_read_in_part(self) -> bool:
        """True if the bytecode tells anything of what it can do, which the kind of a proxy is not."""
        flags = self.bytecode_flags or TokenFlags()
        return any(getattr(flags, name) is not None for name in BYTECODE_FLAGS if name != "proxy")

    # proxies and clones

    @cached_property
    def is_upgradeable(self) -> bool | None:
        """True if any source reports a proxy; None if none has a value.

        Sources call a clone a proxy too; that it is pinned to the code of one contract is proven by its own.
        """
        if self.is_pinned_clone:
            return False
        inferred = self.bytecode_flags.proxy if self.bytecode_flags else None
        answers = (self.flags.proxy, self.simulation.proxy, inferred)
        return True if True in answers else False if False in answers else None

    @cached_property
    def runs_other_code(self) -> bool:
        """True if it is a proxy or a clone, so that the code of another contract runs."""
        return bool(self.is_upgradeable or self.is_pinned_clone)

    @cached_property
    def may_run_other_code(self) -> bool:
        """True if it may be a proxy or a clone of code whose source is not known to be published.

        The simulation service may not see a proxy or a clone as one, and no other source tells.
        """
        answers = (self.flags.proxy, self.bytecode_flags and self.bytecode_flags.proxy)
        is_unknown = not self.runs_other_code and answers == (None, None)
        return is_unknown and self.simulation.all_open_source is not True

    # published source

    @cached_property
    def is_closed_source(self) -> bool:
        """True if any source reports that the source code is not published."""
        return (
            self.flags.open_source is False
            or self._simulated_open_source is False
            or self.simulation.has_any_flag("closed_source")
        )

    @cached_property
    def is_source_verified(self) -> bool | None:
        """True if the source code is published; False if any source reports it closed; None if unknown.

        The contract analysis sees a proxy's own source alone: then the source behind it has to be known.
        """
        if self.is_closed_source:
            return False
        if self.runs_other_code:
            return self._simulated_open_source
        if self.may_run_other_code:
            return None
        return True if self.flags.open_source or self._simulated_open_source else None

    @cached_property
    def _simulated_open_source(self) -> bool | None:
        """State of the code that runs, by the simulation service, which may not see a proxy as one."""
        result = self.simulation
        if result.open_source is False or result.proxy or not self.runs_other_code:
            return result.open_source
        return result.all_open_source
