"""Evidence about a token, merged from all sources: the input of the token rules. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

from centgate.chains import is_burn_address, well_known_chain
from centgate.crypto.contract.owners import Owner
from centgate.crypto.token.evidence.contract import ContractEvidence
from centgate.crypto.token.evidence.market import MarketEvidence
from centgate.crypto.token.evidence.ownership import OwnershipEvidence
from centgate.crypto.token.evidence.simulations import MissingReason, OwnMissingReason, SimulationEvidence
from centgate.crypto.token.evidence.trade import TradeEvidence
from centgate.crypto.token.liquidity_shares import LiquidityShares, free_percent, split_liquidity
from centgate.crypto.token.lockers import LOCKERS
from centgate.crypto.token.powers import ContractPower
from centgate.crypto.token.security import (
    BYTECODE_FLAGS,
    Holder,
    Simulation,
    TokenFlags,
    TokenSource,
)
from centgate.crypto.token.token_liquidity import Liquidity

_POOL_OR_EXCHANGE = re.compile(
    r"swap|pool|\b(lp|amm|cex|htx|okx|okex)\b|curve|balancer|aerodrome|velodrome|exchange|binance|coinbase"
    r"|kraken|kucoin|bybit|bitget|bitfinex|gate\.?io|huobi|mexc|crypto\.com|upbit|bithumb|bitstamp|gemini"
    r"|\b(un)?lock|\bvest"
)
"""Tags of holders that are not counted as potential sellers: pools, exchanges, lockers and vesting."""


@dataclass(frozen=True)
class TokenEvidence:
    """All evidence about one token at one moment; None for a source without a result."""

    now: datetime
    flags: TokenFlags | None = None
    """From the contract analysis."""
    simulation: Simulation | None = None
    """From the simulation service."""
    no_simulation_reason: MissingReason | None = None
    """Reason for a missing simulation."""
    liquidity: Liquidity | None = None
    refuted_liquidity: Liquidity | None = None
    """Liquidity by an exchange index whose deepest pair holds far less on the chain: the chain counts."""
    chain_liquidity: Liquidity | None = None
    """Liquidity of the pools that the chain shows; where an index lists pairs, these count."""
    sources_without_pair: tuple[TokenSource, ...] = ()
    """Exchange indexes that list no pair of the token."""
    pool_addresses: frozenset[str] = frozenset()
    bytecode_flags: TokenFlags | None = None
    """Inferred from the bytecode and storage on the chain, without source."""
    bytecode_powers: tuple[ContractPower, ...] = ()
    """The functions of the bytecode behind these flags, and those of powers that have no flag."""
    own_simulation: Simulation | None = None
    """Our own, on the chain's pools."""
    no_own_simulation_reason: OwnMissingReason | None = None
    """Reason for a missing simulation of our own; None also if none was tried."""
    owner: Owner | None = None
    """The owner that the chain shows."""
    has_other_controllers: bool = False
    """True if the bytecode has roles, or a power that another account than the owner may use."""
    is_pinned_clone: bool = False
    """True if the chain shows a clone that always runs the code of one contract."""
    chain_id: int | None = None
    supply: float | None = None
    """Whole tokens that exist."""
    locked_lp_holders: tuple[Holder, ...] | None = None
    """Burn addresses and lockers that hold shares of the top pair, as the chain shows them."""

    @cached_property
    def token_flags(self) -> TokenFlags:
        """The flags of the contract analysis, completed by those that the bytecode tells; else None."""
        if self.bytecode_flags is None or self.flags is None:
            return self.flags or self.bytecode_flags or TokenFlags()
        added = {
            name: inferred
            for name in BYTECODE_FLAGS
            if getattr(self.flags, name) is None
            and (inferred := getattr(self.bytecode_flags, name)) is not None
        }
        return replace(self.flags, **added) if added else self.flags

    @cached_property
    def contract(self) -> ContractEvidence:
        """How far its contract is analysed, and which code runs."""
        return ContractEvidence(
            flags=self.token_flags,
            bytecode_flags=self.bytecode_flags,
            simulation=self.simulations.service_result,
            is_pinned_clone=self.is_pinned_clone,
        )

    @cached_property
    def ownership(self) -> OwnershipEvidence:
        """Its owner, and who can use an owner's powers."""
        return OwnershipEvidence(
            flags=self.token_flags,
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
            flags=self.token_flags,
            liquidity=self.liquidity,
            sources_without_pair=self.sources_without_pair,
            simulations=self.simulations,
        )

    @cached_property
    def trade(self) -> TradeEvidence:
        """Whether it can be bought, sold and sent, and at which tax."""
        return TradeEvidence(flags=self.token_flags, simulations=self.simulations, market=self.market)

    # holders

    @cached_property
    def owner_percent(self) -> float | None:
        """The owner's share of the supply in percent; None without an owner or for a burn address."""
        owner = self.ownership.address
        if not owner or is_burn_address(owner) or self.ownership.is_unlisted:
            return None
        return self.token_flags.owner_percent

    @cached_property
    def creator_percent(self) -> float | None:
        creator = self.token_flags.creator_address
        return None if creator and is_burn_address(creator) else self.token_flags.creator_percent

    @cached_property
    def top_holders_percent(self) -> float | None:
        """Share in percent of the largest holders that are wallets and could sell; None if unreadable."""
        shares = self._list_free_shares(lambda each: not each.contract)
        return None if shares is None else _sum_capped(shares)

    @cached_property
    def largest_holder_percent(self) -> float | None:
        """Share in percent of the largest holder that could sell, contract or wallet; None if unreadable."""
        shares = self._list_free_shares(lambda _: True)
        return None if shares is None else max(shares, default=0)

    def _list_free_shares(self, counts: Callable[[Holder], bool]) -> list[float] | None:
        """Return what holders that could sell can move now, in percent of the supply; None if unreadable."""
        rows = [replace(row, percent=free_percent(row, self.now)) for row in self.token_flags.holders or ()]
        return _list_shares(rows, lambda each: counts(each) and not self._is_passive_holder(each))

    def _is_passive_holder(self, holder: Holder) -> bool:
        """True for pools, lockers, burn addresses and exchanges, which do not hold for themselves."""
        pools = {pool.pair for pool in self.token_flags.pools or ()}
        return (
            (holder.locked is True and not holder.percent)
            or is_burn_address(holder.address)
            or holder.address in self.pool_addresses
            or holder.address in pools
            or bool(holder.tag and _POOL_OR_EXCHANGE.search(holder.tag.lower()))
        )

    # liquidity

    @cached_property
    def liquidity_shares(self) -> LiquidityShares | None:
        """Holders of the liquidity; None if no source lists them.

        By the contract analysis; else by the chain, where only lockers and burn addresses are looked for.
        """
        lockers = LOCKERS.get(well_known_chain(self.chain_id or 0), {})
        listed = split_liquidity(self.token_flags.lp_holders, self.now, lockers=lockers)
        if listed is not None:
            return listed
        if self.locked_lp_holders is None:
            return None
        shown = split_liquidity(self.locked_lp_holders, self.now, lockers=lockers)
        return replace(shown or LiquidityShares((), ()), lists_hands=False)

    @cached_property
    def _hands(self) -> LiquidityShares | None:
        """The shares if those who can take out liquidity are listed."""
        shares = self.liquidity_shares
        return shares if shares and shares.lists_hands else None

    @cached_property
    def locked_percent(self) -> float | None:
        """Share of the liquidity in percent that cannot be withdrawn now."""
        return self.liquidity_shares.locked_percent if self.liquidity_shares else None

    @cached_property
    def unlocked_percent(self) -> float | None:
        """Share of the liquidity in percent that its holders can withdraw at any time."""
        return self._hands.unlocked_percent if self._hands else None

    @cached_property
    def unaccounted_percent(self) -> float | None:
        """Share of the liquidity in percent outside of known lockers, where only those were looked for."""
        shares = self.liquidity_shares
        return None if shares is None or shares.lists_hands else round(100 - shares.locked_percent, 4)

    @cached_property
    def few_hands_percent(self) -> float | None:
        """Share of the liquidity in percent of its three largest hands."""
        return self._hands.few_hands_percent if self._hands else None

    @cached_property
    def largest_lp_wallet_percent(self) -> float | None:
        """Share of the liquidity in percent that one wallet can withdraw at once."""
        return self._hands.largest_percent(contract=False) if self._hands else None

    @cached_property
    def lp_wallets_percent(self) -> float | None:
        """Share of the liquidity in percent that wallets together can withdraw at once."""
        return self._hands.wallets_percent if self._hands else None

    @cached_property
    def largest_lp_contract_percent(self) -> float | None:
        """Share of the liquidity in percent that one contract without a lock can withdraw at once."""
        return self._hands.largest_percent(contract=True) if self._hands else None

    @cached_property
    def owner_lp_percent(self) -> float | None:
        """Share of the liquidity in percent that owner and creator can withdraw at once."""
        owners = (self.ownership.address, self.token_flags.creator_address)
        return self._hands.percent_of(owners) if self._hands else None

    def ending_lock_percent(self, within: timedelta) -> float | None:
        """Return the share of the liquidity in percent whose lock ends within this time."""
        return self._hands.ending_percent(self.now, within) if self._hands else None


def _list_shares(holders: Iterable[Holder] | None, counts: Callable[[Holder], bool]) -> list[float] | None:
    """Return the shares in percent of the holders for which `counts` is true; None if they are unreadable.

    Several rows of one holder are one share.
    """
    rows = list(holders or ())
    matching = [row for row in rows if counts(row)]
    totals: dict[str, float] = {}
    for row in matching:
        if row.percent is not None:
            totals[row.address] = totals.get(row.address, 0) + row.percent
    shares = list(totals.values())
    is_unreadable = not shares and any(row.percent is None for row in matching)
    return None if is_unreadable or all(row.percent is None for row in rows) else shares


def _sum_capped(shares: Iterable[float]) -> float:
    return round(min(sum(shares), 100), 4)
