"""Evidence about a token's contract: how far it is analysed, and which code runs. No I/O."""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct

from centgate.crypto.contract.contracts import SourceRecord
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


class ImplementationSource(Struct, frozen=True):
    """Records of source registries about the contract whose code a proxy or a clone runs."""

    address: str
    """Lower case."""
    records: tuple[SourceRecord, ...]
    unread: tuple[str, ...]
    """Names of the chain's registries that gave no record, with the reason."""
    verified: bool | None
    """True if one has source that matches its code; False only if every registry of the chain has none."""


class ContractEvidence(Struct, frozen=True, dict=True):
    """Evidence about the code of a token: as the analysis, the bytecode and the simulation service see it."""

    flags: TokenFlags
    """Of the contract analysis, completed by the bytecode."""
    bytecode_flags: TokenFlags | None
    simulation: Simulation
    """The simulation service's result; all None if there was none."""
    is_pinned_clone: bool
    """True if the chain shows a clone that always runs the code of one contract."""
    implementation: ImplementationSource | None = None
    """None if the chain shows no proxy or clone, or one that may run other code than this published one."""

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
        """True if the source of code that runs is not published.

        Registries decide about the code behind a proxy or a clone; about all other code any source that
        reports it closed.
        """
        if self.is_implementation_open is None:
            return self.flags.open_source is False or self.simulated_open_source is False
        return not self.is_implementation_open or self.is_own_source_open is False

    @cached_property
    def is_source_verified(self) -> bool | None:
        """True if the source code is published; False if it counts as closed; None if unknown.

        The contract analysis sees a proxy's own source alone: then the source behind it has to be known.
        """
        if self.is_closed_source:
            return False
        if self.is_implementation_open:
            return True
        if self.runs_other_code:
            return self.simulated_open_source
        if self.may_run_other_code:
            return None
        return True if self.flags.open_source or self.simulated_open_source else None

    @property
    def is_implementation_open(self) -> bool | None:
        """True if registries have the source of the code behind a proxy or a clone; None if unknown."""
        return self.implementation.verified if self.implementation else None

    @cached_property
    def is_own_source_open(self) -> bool | None:
        """True if the source of a proxy itself is published, by all who tell; None if none does.

        Also True for a clone, which has no code of its own.
        """
        if self.is_pinned_clone:
            return True
        answers = (self.flags.open_source, self.simulation.root_open_source)
        return False if False in answers else True if True in answers else None

    @cached_property
    def simulated_open_source(self) -> bool | None:
        """State of the code that runs, by the simulation service, which may not see a proxy as one."""
        result = self.simulation
        if result.has_any_flag("closed_source"):
            return False
        if result.open_source is False or result.proxy or not self.runs_other_code:
            return result.open_source
        return result.all_open_source
