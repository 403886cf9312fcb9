"""Evidence about a token, merged from all sources: the input of the token rules. No I/O."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from centgate.crypto.contract.owners import Owner
from centgate.crypto.token.evidence.contract import ContractEvidence, ImplementationSource
from centgate.crypto.token.evidence.holders import HolderEvidence
from centgate.crypto.token.evidence.lp_holders import LpHolderEvidence
from centgate.crypto.token.evidence.market import MarketEvidence
from centgate.crypto.token.evidence.ownership import OwnershipEvidence
from centgate.crypto.token.evidence.simulations import MissingReason, OwnMissingReason, SimulationEvidence
from centgate.crypto.token.evidence.trade import TradeEvidence
from centgate.crypto.token.powers import ContractPower
from centgate.crypto.token.security import BYTECODE_FLAGS, Holder, Simulation, TokenFlags, TokenSource
from centgate.crypto.token.token_liquidity import Liquidity


class TokenEvidence(Struct, frozen=True, dict=True):
    """All evidence about one token at one moment; None for a source without a result.

    Its fields are the results of the sources, its properties what they say together, by subject.
    """

    now: datetime
    chain_id: int | None = None
    supply: float | None = None
    """Whole tokens that exist."""

    # contract analysis and simulation service
    analysis: TokenFlags | None = None
    simulation: Simulation | None = None
    no_simulation_reason: MissingReason | None = None
    """Reason for a missing simulation."""

    # exchange indexes
    liquidity: Liquidity | None = None
    """Liquidity that counts: of an index, else of the chain, the analysis or the simulation."""
    refuted_liquidity: Liquidity | None = None
    """Liquidity by an exchange index whose deepest pair holds far less on the chain: the chain counts."""
    sources_without_pair: tuple[TokenSource, ...] = ()
    """Exchange indexes that list no pair of the token."""
    pool_addresses: frozenset[str] = frozenset()
    """Pools by the exchange indexes and the chain."""

    # chain
    bytecode_flags: TokenFlags | None = None
    """Inferred from the bytecode and storage on the chain, without source."""
    bytecode_powers: tuple[ContractPower, ...] = ()
    """The functions of the bytecode behind these flags, and those of powers that have no flag."""
    owner: Owner | None = None
    """The owner that the chain shows."""
    has_other_controllers: bool = False
    """True if the bytecode has roles, or a power that another account than the owner may use."""
    is_pinned_clone: bool = False
    """True if the chain shows a clone that always runs the code of one contract."""
    implementation: ImplementationSource | None = None
    """Source of the code behind a proxy or a clone; None if the chain shows none, or one that may run other
    code than this published one."""
    own_simulation: Simulation | None = None
    """Our own, on the chain's pools."""
    no_own_simulation_reason: OwnMissingReason | None = None
    """Reason for a missing simulation of our own; None also if none was tried."""
    chain_liquidity: Liquidity | None = None
    """Liquidity of the pools that the chain shows; where an index lists pairs, these count."""
    locked_lp_holders: tuple[Holder, ...] | None = None
    """Burn addresses and lockers that hold shares of the top pair, as the chain shows them."""

    @cached_property
    def flags(self) -> TokenFlags:
        """The flags of the contract analysis, completed by those that the bytecode tells; else None."""
        if self.bytecode_flags is None or self.analysis is None:
            return self.analysis or self.bytecode_flags or TokenFlags()
        added = {
            name: inferred
            for name in BYTECODE_FLAGS
            if getattr(self.analysis, name) is None
            and (inferred := getattr(self.bytecode_flags, name)) is not None
        }
        return replace(self.analysis, **added) if added else self.analysis

    @cached_property
    def contract(self) -> ContractEvidence:
        """Its code: how far it is analysed, and which contract's code runs."""
        return ContractEvidence(
            flags=self.flags,
            bytecode_flags=self.bytecode_flags,
            simulation=self.simulations.service_result,
            is_pinned_clone=self.is_pinned_clone,
            implementation=self.implementation,
        )

    @cached_property
    def ownership(self) -> OwnershipEvidence:
        """Its owner, and who can use an owner's powers."""
        return OwnershipEvidence(
            flags=self.flags,
            owner=self.owner,
            contract=self.contract,
            has_other_controllers=self.has_other_controllers,
        )

    @cached_property
    def simulations(self) -> SimulationEvidence:
        """Simulated trades, by source."""
        return SimulationEvidence(
            of_service=self.simulation,
            no_service_reason=self.no_simulation_reason,
            own=self.own_simulation,
            no_own_reason=self.no_own_simulation_reason,
            supply=self.supply,
        )

    @cached_property
    def market(self) -> MarketEvidence:
        """Its pairs: whether there are any, how deep, and since when."""
        return MarketEvidence(
            now=self.now,
            flags=self.flags,
            liquidity=self.liquidity,
            sources_without_pair=self.sources_without_pair,
            simulations=self.simulations,
        )

    @cached_property
    def trade(self) -> TradeEvidence:
        """Its purchases, sales and transfers: whether they succeed, and their taxes."""
        return TradeEvidence(flags=self.flags, simulations=self.simulations, market=self.market)

    @cached_property
    def holders(self) -> HolderEvidence:
        """Its holders' shares of the supply."""
        return HolderEvidence(
            now=self.now,
            flags=self.flags,
            pool_addresses=self.pool_addresses,
            ownership=self.ownership,
        )

    @cached_property
    def lp_holders(self) -> LpHolderEvidence:
        """Holders of its liquidity: what is locked, and who can take out the rest."""
        return LpHolderEvidence(
            now=self.now,
            chain_id=self.chain_id,
            flags=self.flags,
            locked_by_chain=self.locked_lp_holders,
            ownership=self.ownership,
        )
