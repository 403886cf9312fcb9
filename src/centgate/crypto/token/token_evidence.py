"""Evidence about a token, merged from all sources: the input of the token rules. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal

from centgate.chains import is_burn_address, well_known_chain
from centgate.crypto.contract.owners import Owner
from centgate.crypto.token.evidence.contract import ContractEvidence
from centgate.crypto.token.evidence.ownership import OwnershipEvidence
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
from centgate.crypto.token.trades import TOTAL_TAX, SimulatedTrade, TaxName

MissingReason = Literal["chain_not_covered", "no_pair", "source_unavailable"]
OwnMissingReason = MissingReason | Literal["no_contract"]

MIN_SELLABLE_USD = 1_000
"""US dollars in its pairs below which a token cannot be sold in practice."""
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
            simulation=self.simulation_result,
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
    def simulation_result(self) -> Simulation:
        """The simulation service's result; all None if there was none."""
        return self.simulation or Simulation()

    @cached_property
    def trades(self) -> tuple[SimulatedTrade, ...]:
        """The simulated trades of all sources."""
        results: tuple[tuple[TokenSource, Simulation | None], ...] = (
            ("honeypotis", self.simulation),
            ("onchain", self.own_simulation),
        )
        return tuple(SimulatedTrade(source, result) for source, result in results if result is not None)

    # the sale

    @cached_property
    def is_simulated_pair_empty(self) -> bool:
        """True if the simulation service used an empty pair."""
        return any(trade.is_pair_empty for trade in self.trades if trade.source == "honeypotis")

    @cached_property
    def has_simulated_sale(self) -> bool:
        """True if the simulation service tells how a sale went, or that none is possible."""
        result = self.simulation_result
        is_told = result.honeypot is not None or result.sell_tax is not None or bool(result.unreadable)
        return result.succeeded and is_told

    @cached_property
    def has_other_liquidity(self) -> bool:
        """True if the token's pairs hold liquidity, even if the pair that a simulation used is empty."""
        return (self.usable_usd or 0) >= MIN_SELLABLE_USD

    @cached_property
    def is_liquidity_removed(self) -> bool:
        """True if a simulated pair is empty, no sale went through, and no other source lists liquidity."""
        is_empty = any(trade.is_pair_empty for trade in self.trades)
        return is_empty and not self.sale_succeeded and not self.has_other_liquidity

    @cached_property
    def has_sale_result(self) -> bool:
        """True if a simulation on a pair that matters says anything about a sale."""
        return any(
            trade.has_result and not (trade.is_pair_empty and self.has_other_liquidity)
            for trade in self.trades
        )

    @cached_property
    def is_simulation_expected(self) -> bool:
        """True if a source could have simulated a sale on this chain."""
        reason = self.no_own_simulation_reason
        tried = self.own_simulation is not None or reason not in (None, "chain_not_covered")
        return tried or self.simulation is not None or self.no_simulation_reason != "chain_not_covered"

    @cached_property
    def sale_succeeded(self) -> bool:
        """True if a simulated sale on a pair with liquidity succeeded."""
        return any(trade.has_sold for trade in self.trades)

    @cached_property
    def honeypot_claims(self) -> int:
        """Number of sources that say that the token cannot be sold."""
        return sum(trade.has_failed for trade in self.trades) + (self.token_flags.honeypot is True)

    @cached_property
    def is_sale_failure_doubtful(self) -> bool:
        """True if a sale failed without proof that nobody can sell.

        That is: no holder was there to try; or the contract shows no reason, and the liquidity is low or
        unknown.
        """
        if any(self._is_failure_doubtful(trade) for trade in self.trades):
            return True
        return self.is_sale_unproven and self.honeypot_claims == 0

    def _is_failure_doubtful(self, trade: SimulatedTrade) -> bool:
        if not trade.has_failed or self.token_flags.honeypot is not False or self.honeypot_claims > 1:
            return False
        usd = trade.result.liquidity_usd if trade.result.liquidity_usd is not None else self.usable_usd
        return not trade.result.succeeded or usd is None or usd < MIN_SELLABLE_USD

    @cached_property
    def is_honeypot(self) -> bool | None:
        """True if any source says that it cannot be sold; None if no source could tell.

        None also if a tax takes the whole sale, at least half of the holders cannot sell, or a simulation
        could not show that people can sell, although the sources call it no honeypot.
        """
        if self.honeypot_claims:
            return True
        if self.is_sale_taken or self.do_most_holders_fail or self.is_sale_unproven:
            return None
        return False if self.token_flags.honeypot is False or self.sale_succeeded else None

    @cached_property
    def is_sale_unproven(self) -> bool:
        """True if a simulation bought, and could not show that people can sell."""
        return any(trade.is_unproven for trade in self.trades)

    @cached_property
    def is_sale_taken(self) -> bool:
        """True if a tax takes the whole sale: by a source's figure, or on average at holders."""
        averages = (trade.holder_sales.average_tax or 0 for trade in self.trades)
        return max((self.sell_tax or 0, *averages)) >= TOTAL_TAX

    @cached_property
    def do_most_holders_fail(self) -> bool:
        """True if at least half of the holders at which a source tried a sale cannot sell."""
        return any(trade.do_most_holders_fail for trade in self.trades)

    @cached_property
    def sources_agree(self) -> bool | None:
        """True if all sources agree on a sale; None unless two have a result."""
        claims = [trade.has_failed for trade in self.trades if trade.has_failed or trade.has_sold]
        if self.token_flags.honeypot is not None:
            claims.append(self.token_flags.honeypot)
        return None if len(claims) < 2 else len(set(claims)) == 1

    @cached_property
    def can_buy(self) -> bool | None:
        """Result of a simulated purchase, else of the contract analysis."""
        if self.token_flags.cannot_buy or (self.buy_tax or 0) >= TOTAL_TAX:
            return False
        is_buy_simulated = any(
            trade.result.buy_tax is not None and not trade.is_pair_empty for trade in self.trades
        )
        return (
            True
            if is_buy_simulated or (self.token_flags.cannot_buy is False and self.token_flags.in_dex)
            else None
        )

    @cached_property
    def can_sell(self) -> bool | None:
        """Result of a simulated sale, else of the contract analysis; False if no pair has liquidity.

        None if the account that sold is not like most holders, or if another source contradicts its sale.
        """
        if self.is_honeypot or self.is_sale_taken:
            return None if self.sale_succeeded else False
        if self.is_liquidity_removed or self.has_no_pair:
            return False
        if self.is_sale_failure_doubtful or self.do_most_holders_fail:
            return None
        is_sellable = self.token_flags.honeypot is False and self.token_flags.sell_tax is not None
        return True if self.sale_succeeded or is_sellable else None

    @cached_property
    def can_transfer(self) -> bool | None:
        """Result of a simulated transfer, else of the contract analysis."""
        if self.simulation_result.has_any_flag("transfer_blocked") or (self.transfer_tax or 0) >= TOTAL_TAX:
            return False
        return True if self.transfer_tax is not None else None

    # taxes, in percent

    def is_sell_tax_placeholder(self, trade: SimulatedTrade) -> bool:
        """True if a simulated sell tax only encodes a failed sale and is no tax."""
        return trade.is_pair_empty or (
            self._is_failure_doubtful(trade) and (trade.result.sell_tax or 0) >= TOTAL_TAX
        )

    def simulated_tax(self, trade: SimulatedTrade, name: TaxName) -> float | None:
        """Return a tax that a trade measured; None if its figure says nothing."""
        if name == "sell_tax":
            return None if self.is_sell_tax_placeholder(trade) else trade.result.sell_tax
        return None if trade.is_pair_empty else getattr(trade.result, name)

    def tax_readings(self, name: TaxName) -> list[tuple[TokenSource, float]]:
        """Return a tax as each source gives it."""
        flagged: float | None = getattr(self.token_flags, name)
        readings: list[tuple[TokenSource, float]] = [] if flagged is None else [("goplus", flagged)]
        for trade in self.trades:
            tax = self.simulated_tax(trade, name)
            if tax is not None:
                readings.append((trade.source, tax))
        return readings

    def _highest_tax(self, name: TaxName) -> float | None:
        return max((tax for _, tax in self.tax_readings(name)), default=None)

    @cached_property
    def sell_tax(self) -> float | None:
        return self._highest_tax("sell_tax")

    @cached_property
    def has_invalid_sell_tax(self) -> bool:
        """True if a source gives an impossible sell tax."""
        is_simulated_invalid = any(
            not trade.is_pair_empty and "simulationResult.sellTax" in trade.result.unreadable
            for trade in self.trades
        )
        return is_simulated_invalid or "sell_tax" in self.token_flags.unreadable

    @cached_property
    def buy_tax(self) -> float | None:
        return self._highest_tax("buy_tax")

    @cached_property
    def transfer_tax(self) -> float | None:
        return self._highest_tax("transfer_tax")

    @cached_property
    def max_sell_percent(self) -> float | None:
        """The largest single sale in percent of the supply; None without a limit or a known supply."""
        limits = [trade.result.max_sell for trade in self.trades if not trade.is_pair_empty]
        amounts = [limit.tokens for limit in limits if limit is not None and limit.tokens is not None]
        if not amounts or not self.supply:
            return None
        return 100 * min(amounts) / self.supply

    @cached_property
    def is_sale_limited(self) -> bool:
        """True if a simulation found a largest sale."""
        return any(trade.result.max_sell is not None and not trade.is_pair_empty for trade in self.trades)

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
    def usable_usd(self) -> float | None:
        return self.liquidity.usable_usd if self.liquidity else None

    @cached_property
    def has_no_pair(self) -> bool:
        """True if an exchange index lists no pair and no other source contradicts it."""
        if not self.sources_without_pair or self.liquidity is not None or self.pair_simulators:
            return False
        return not self.token_flags.in_dex or (
            len(self.sources_without_pair) > 1 and self.token_flags.trusted is not True
        )

    @cached_property
    def pair_simulators(self) -> tuple[TokenSource, ...]:
        """Sources that simulated a trade in a pair that is not empty, whatever came of it."""
        return tuple(
            trade.source
            for trade in self.trades
            if trade.result.succeeded and trade.result.pair_empty is not True
        )

    @cached_property
    def trading_age(self) -> timedelta | None:
        """Time since trading began; None if unknown."""
        since = self.liquidity.trading_since if self.liquidity else None
        is_pair_simulated = self.liquidity is None or self.liquidity.source in ("onchain", "goplus")
        since = since or (self.simulation_result.pair_created_at if is_pair_simulated else None)
        return max(self.now - since, timedelta(0)) if since else None

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
