"""Results of token-risk's sources, merged into the evidence of its rules."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from centgate.chains import well_known_chain
from centgate.crypto.contract.bytecode import delegation_target
from centgate.crypto.token.evidence.contract import ImplementationSource
from centgate.crypto.token.evidence.simulations import MissingReason
from centgate.crypto.token.liquidity_shares import is_lock_refuted
from centgate.crypto.token.lockers import LOCKERS
from centgate.crypto.token.security import Simulation, TokenFlags
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_liquidity import (
    COMPARABLE_DEPTH_SHARE,
    Liquidity,
    sum_pool_liquidity,
    sum_simulated_liquidity,
)
from centgate.crypto.token.trade_verdict import NO_FEATURES, NOT_RUN
from centgate.errors import NoData, ProviderFailure, ProviderUnconfigured
from centgate.fallback import attempt, found_or_none
from centgate.lookups.chain_evidence import ChainEvidence
from centgate.lookups.contract_sources import SourceRegistries
from centgate.lookups.exchange_pairs import ExchangeListing
from centgate.providers.goplus import GoPlus
from centgate.providers.honeypotis import HoneypotIs
from centgate.providers.rpc import Rpc

MIN_CONFIRMED_SHARE = 0.5
"""Share of the dollars that an index gives for its deepest pair, below which the chain counts instead."""

SimulationOutcome = Simulation | NoData | ProviderFailure | None
"""A simulated purchase and sale, or the error; None if the simulation does not cover the chain."""


class TokenSources(Struct, frozen=True):
    """Results of all sources, or their errors."""

    analysis: TokenFlags | NoData | ProviderFailure
    simulation: SimulationOutcome
    listing: ExchangeListing
    chain: ChainEvidence
    implementation: ImplementationSource | None = None
    """Published source of the code behind a proxy or a clone; None if the chain shows none."""
    wallets: frozenset[str] = frozenset()
    """Holders of liquidity (lower case) that the chain shows to be wallets."""

    @property
    def flags(self) -> TokenFlags | None:
        """The contract analysis; None if it failed or has only begun."""
        analysis = self.analysis if isinstance(self.analysis, TokenFlags) else None
        if analysis is None or self._is_pending:
            return None
        return _mark_wallets(analysis, self.wallets) if self.wallets else analysis

    @property
    def _is_pending(self) -> bool:
        return isinstance(self.analysis, TokenFlags) and self.analysis.partial and not self.analysis.raw

    @property
    def _is_chain_read(self) -> bool:
        """True if the chain alone can answer."""
        return self.chain.simulation is not None and self.chain.simulation.succeeded

    def find_missing(self, goplus: GoPlus, rpc: Rpc, token: str) -> NoData | ProviderFailure | None:
        """Return the error to raise if no source could tell enough; None if there is an answer."""
        if self._is_chain_read:
            return None
        if isinstance(self.analysis, ProviderFailure):
            is_off = isinstance(self.analysis, ProviderUnconfigured)
            if not is_off or self.chain.missing_reason == "chain_not_covered":
                return self.analysis
            if self.chain.missing_reason == "source_unavailable":
                return rpc.invalid_response("could not be read")
        if self.flags or isinstance(self.simulation, Simulation) or self.listing.liquidity:
            return None
        if self.chain.simulation is not None and self.chain.simulation.explanation == NOT_RUN:
            return rpc.invalid_response("did not run the simulated trades")
        if self._is_pending:
            return goplus.invalid_response("has only begun to analyse this token; retry in a minute")
        simulation = self.chain.simulation
        is_tried = simulation is not None and simulation.explanation != NO_FEATURES
        if is_tried and (self.chain.liquidity is not None or self.chain.pools):
            return None  # the chain shows a pool in which it cannot be traded, as while it is paused
        message = f"no source has data on the token {token}"
        if self.chain.missing_reason == "no_pair":
            message = f"no source has analysed the token {token}, and no pool that holds it was found"
        return _no_evidence(message, self.simulation, *self.listing.missing)

    def build_evidence(self, chain_id: int) -> TokenEvidence:
        """Return the evidence of all sources."""
        flags = self.flags
        simulated = self.simulation if isinstance(self.simulation, Simulation) else None
        identity = self.chain.identity
        return TokenEvidence(
            now=datetime.now(UTC),
            analysis=flags,
            simulation=simulated,
            no_simulation_reason=_missing_reason(self.simulation),
            liquidity=self._choose_liquidity(flags, simulated),
            refuted_liquidity=self._refuted_liquidity,
            chain_liquidity=self.chain.liquidity,
            sources_without_pair=self.listing.sources_without_pair,
            pool_addresses=self.listing.pool_addresses | {pool.address for pool in self.chain.pools},
            own_simulation=self.chain.simulation,
            no_own_simulation_reason=self.chain.missing_reason,
            bytecode_flags=self.chain.bytecode_flags,
            bytecode_powers=self.chain.bytecode_powers,
            owner=self.chain.owner,
            has_other_controllers=self.chain.has_other_controllers,
            is_pinned_clone=self.chain.is_pinned_clone,
            implementation=self._implementation,
            locked_lp_holders=self.chain.lp_holders,
            chain_id=chain_id,
            supply=(identity.supply if identity else None) or (flags.supply if flags else None),
        )

    @property
    def _implementation(self) -> ImplementationSource | None:
        """Source of the code that runs: a contract whose code may not run clears nothing."""
        is_certain, source = self.chain.runs_implementation, self.implementation
        if source is None or is_certain is False or (source.verified and not is_certain):
            return None
        return source

    def _choose_liquidity(self, flags: TokenFlags | None, simulated: Simulation | None) -> Liquidity | None:
        """Return the liquidity of the source that knows most pairs, unless the chain refutes it."""
        if (refuted := self._refuted_liquidity) and (shown := self.chain.liquidity):
            depth = self.chain.usd_by_pool.get(refuted.top_pair or "", 0)
            # a shallow pair does not date deeper pools
            is_dated = depth >= COMPARABLE_DEPTH_SHARE * (shown.top_usd or 0)
            return replace(shown, trading_since=refuted.trading_since if is_dated else None)
        listed = self.listing.liquidity or self.chain.liquidity
        listed = listed or (sum_pool_liquidity(flags) if flags else None)
        return listed or (sum_simulated_liquidity(simulated) if simulated else None)

    @property
    def _refuted_liquidity(self) -> Liquidity | None:
        """Liquidity of an exchange index whose deepest pair holds far less on the chain; else None."""
        listed = self.listing.liquidity
        if listed is None or self.chain.liquidity is None:
            return None
        shown_usd = self.chain.usd_by_pool.get(listed.top_pair or "")
        is_refuted = shown_usd is not None and shown_usd < MIN_CONFIRMED_SHARE * (listed.top_usd or 0)
        return listed if is_refuted else None


async def find_wallets_called_locked(
    rpc: Rpc,
    chain_id: int,
    awaited: Awaitable[TokenFlags | NoData | ProviderFailure],
    *,
    max_wait: float,
) -> frozenset[str]:
    """Return wallets among the holders of liquidity that the awaited analysis calls locked without a lock.

    Those that it calls wallets itself are left out. Empty, with a warning, if the node does not tell within
    `max_wait` seconds from the start.
    """
    deadline = asyncio.get_running_loop().time() + max_wait
    analysis = await awaited
    rows = (analysis.lp_holders or ()) if isinstance(analysis, TokenFlags) else ()
    lockers = LOCKERS.get(well_known_chain(chain_id), {})
    in_doubt = [
        row.address
        for row in rows
        if row.contract is not False
        and is_lock_refuted(replace(row, contract=False), lockers.get(row.address))
    ]
    if not in_doubt or not rpc.is_available(chain_id):
        return frozenset()
    codes: Sequence[bytes] | None = None
    with suppress(TimeoutError):
        async with rpc.limit_time(deadline):
            codes = found_or_none(await attempt(rpc.contract_codes, chain_id, in_doubt))
    if codes is None:
        rpc.trace.add_warning(
            "not checked: whether holders of liquidity that GoPlus Security calls locked are wallets, as the "
            "node did not tell"
        )
        return frozenset()
    return frozenset(
        address for address, code in zip(in_doubt, codes, strict=True) if not code or delegation_target(code)
    )


def _mark_wallets(analysis: TokenFlags, wallets: frozenset[str]) -> TokenFlags:
    """Return the analysis with what the chain tells of holders of liquidity: these are no contracts."""
    rows = analysis.lp_holders or ()
    marked = tuple(replace(row, contract=False) if row.address in wallets else row for row in rows)
    return replace(analysis, lp_holders=marked)


async def read_implementation_source(registries: SourceRegistries, address: str) -> ImplementationSource:
    """Return what the source registries of a chain know about the contract behind a proxy (lower case)."""
    records = await registries.fetch_records(address)
    return ImplementationSource(
        address,
        records,
        unread=tuple(registries.list_unread(records)),
        verified=registries.is_verified(records),
    )


async def analyse_contract(
    goplus: GoPlus, chain_id: int, token: str
) -> TokenFlags | NoData | ProviderFailure:
    """Return the contract analysis, or why there is none."""
    if not goplus.supports_chain(chain_id):
        return ProviderUnconfigured(goplus.info.name, f"{goplus.info.label} does not cover chain {chain_id}")
    return await attempt(goplus.token_security, chain_id, token)


async def simulate_trade(honeypotis: HoneypotIs, chain_id: int, token: str) -> SimulationOutcome:
    """Return the simulation service's purchase and sale, or why there is none."""
    return (
        await attempt(honeypotis.simulate_trade, chain_id, token)
        if honeypotis.supports_chain(chain_id)
        else None
    )


def _no_evidence(message: str, *missing: SimulationOutcome) -> NoData | ProviderFailure:
    """Return a source's failure if a retry may succeed, else NoData with a message."""
    failures = [each for each in missing if isinstance(each, ProviderFailure)]
    retryable = (each for each in failures if not isinstance(each, ProviderUnconfigured))
    return next(retryable, NoData(message))


def _missing_reason(simulated: SimulationOutcome) -> MissingReason | None:
    match simulated:
        case Simulation():
            return None
        case NoData():
            return "no_pair"
        case None:
            return "chain_not_covered"
        case _:
            return "source_unavailable"
