"""Evidence about a token, merged from all sources: the input of the token rules. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal

from centgate.chains import is_burn_address
from centgate.crypto.token.pairs import Pair
from centgate.crypto.token.security import Holder, Simulation, TokenFlags
from centgate.crypto.token.top_pair import choose_top_pair, pair_depth

TokenSource = Literal["goplus", "honeypotis", "dexscreener", "geckoterminal"]
MissingReason = Literal["chain_not_covered", "no_pair", "source_unavailable"]
OwnerState = Literal["none", "renounced", "held", "hidden", "unknown"]

MIN_SELLABLE_USD = 1_000
"""US dollars in its pairs below which a token cannot be sold in practice."""
COMPARABLE_DEPTH_SHARE = 0.5
"""Share of the top pair's depth from which another pair counts for how long the token has been traded."""
KEY_FLAGS = (
    *("open_source", "honeypot", "changes_balances", "self_destructs", "hidden_owner", "reclaimable"),
    *("pausable", "personal_tax_modifiable"),
)
"""Flags behind the severe rules that an analysis of any contract reports."""
MIN_KEY_FLAGS = 6
"""Number of these flags with a value from which a contract counts as analysed."""
_POOL_OR_EXCHANGE = re.compile(
    r"swap|pool|\b(lp|amm|cex|htx|okx|okex)\b|curve|balancer|aerodrome|velodrome|exchange|binance|coinbase"
    r"|kraken|kucoin|bybit|bitget|bitfinex|gate\.?io|huobi|mexc|crypto\.com|upbit|bithumb|bitstamp|gemini"
    r"|\b(un)?lock|\bvest"
)
"""Tags of holders that are not counted as potential sellers: pools, exchanges, lockers and vesting."""


@dataclass(frozen=True, slots=True)
class Liquidity:
    """Liquidity of a token's pairs on one chain, as listed by one source."""

    source: TokenSource
    total_usd: float | None
    pair_count: int
    other_side_usd: float | None = None
    """US dollars of the other tokens in its pairs, which a sale can pay out. None if not reported."""
    top_pair: str | None = None
    top_dex: str | None = None
    top_usd: float | None = None
    top_created_at: datetime | None = None
    trading_since: datetime | None = None
    """Creation time of the top pair or of an older one about as deep: a new pair does not reset the age."""

    @property
    def usable_usd(self) -> float | None:
        """The lower of the total and twice the other side: the other side is what backs the price."""
        if self.total_usd is None or self.other_side_usd is None:
            return self.total_usd
        return min(self.total_usd, 2 * self.other_side_usd)


def sum_pair_liquidity(token: str, pairs: Sequence[Pair], source: TokenSource) -> Liquidity:
    """Return the liquidity of a token's pairs as listed by an exchange index; `pairs` must not be empty."""
    choice = choose_top_pair(pairs, token)
    top = choice.pair
    depths = [pair.liquidity_usd for pair in pairs if pair.liquidity_usd is not None]
    other_sides = _list_other_sides_usd(token, pairs)
    min_depth = COMPARABLE_DEPTH_SHARE * (pair_depth(top) or 0)
    comparable = [
        pair for pair in pairs if (pair_depth(pair) or 0) >= min_depth and pair not in choice.price_outliers
    ]
    return Liquidity(
        source=source,
        total_usd=round(sum(depths), 2) if depths else None,
        pair_count=len(pairs),
        other_side_usd=round(sum(other_sides), 2) if other_sides else None,
        top_pair=top.address,
        top_dex=top.dex,
        top_usd=top.liquidity_usd,
        top_created_at=top.created_at,
        trading_since=min((pair.created_at for pair in comparable if pair.created_at), default=None),
    )


def _list_other_sides_usd(token: str, pairs: Sequence[Pair]) -> list[float]:
    """Return the US dollars on the other side of each pair.

    Returns [] if a pair with at least a tenth of the largest liquidity lacks the figure.
    """
    significant_usd = max((pair.liquidity_usd or 0 for pair in pairs), default=0) / 10
    other_sides = [(pair.liquidity_usd or 0, _other_side_usd(token, pair)) for pair in pairs]
    if any(liquidity >= significant_usd and other is None for liquidity, other in other_sides):
        return []
    return [min(other, liquidity) for liquidity, other in other_sides if other is not None]


def _other_side_usd(token: str, pair: Pair) -> float | None:
    return pair.quote_side_usd if pair.base.address == token else pair.base_side_usd


def sum_pool_liquidity(flags: TokenFlags) -> Liquidity | None:
    """Return the liquidity listed by the contract analysis, or None if it lists none."""
    pools = flags.pools or ()
    valued_pools = [pool for pool in pools if pool.liquidity_usd is not None]
    if not valued_pools:
        return None
    top = max(valued_pools, key=lambda pool: pool.liquidity_usd or 0)
    return Liquidity(
        source="goplus",
        total_usd=round(sum(pool.liquidity_usd or 0 for pool in valued_pools), 2),
        pair_count=len(pools),
        top_pair=top.pair,
        top_dex=top.name,
        top_usd=top.liquidity_usd,
    )


@dataclass(frozen=True)
class TokenEvidence:
    """All evidence about one token at one moment; None for a source without a result."""

    now: datetime
    flags: TokenFlags | None = None
    simulation: Simulation | None = None
    no_simulation_reason: MissingReason | None = None
    """Reason for a missing simulation."""
    liquidity: Liquidity | None = None
    sources_without_pair: tuple[TokenSource, ...] = ()
    """Exchange indexes that list no pair of the token."""
    pool_addresses: frozenset[str] = frozenset()

    @cached_property
    def token_flags(self) -> TokenFlags:
        """The flags; all None if there is no analysis."""
        return self.flags or TokenFlags()

    @cached_property
    def simulation_result(self) -> Simulation:
        """The simulation; all None if there was none."""
        return self.simulation or Simulation()

    @cached_property
    def is_analysed(self) -> bool:
        """True if the contract analysis has at least ENOUGH of the decisive flags; one or two say little."""
        return sum(getattr(self.token_flags, name) is not None for name in KEY_FLAGS) >= MIN_KEY_FLAGS

    # the sale

    @cached_property
    def is_pair_empty(self) -> bool:
        """True if the simulation used an empty pair: its result then says nothing about the token's code."""
        return self.simulation_result.pair_empty is True and not self.simulation_result.is_transfer_blocked

    @cached_property
    def has_other_liquidity(self) -> bool:
        """True if the token's pairs hold liquidity, even if the pair that the simulation used is empty."""
        return (self.usable_usd or 0) >= MIN_SELLABLE_USD

    @cached_property
    def is_liquidity_removed(self) -> bool:
        """True if the simulated pair is empty and no other source lists liquidity."""
        return self.is_pair_empty and not self.has_other_liquidity

    @cached_property
    def sale_failed(self) -> bool:
        """True if the simulation reports a honeypot in any of its fields, on a pair with liquidity."""
        result = self.simulation_result
        is_honeypot = (
            result.honeypot is True or (result.risk_level or 0) >= 90 or (result.sell_tax or 0) >= 100
        )
        return is_honeypot and not self.is_pair_empty

    @cached_property
    def sale_succeeded(self) -> bool:
        """True if a simulated sale on a pair with liquidity succeeded."""
        succeeded = self.simulation_result.succeeded and self.simulation_result.honeypot is False
        return succeeded and not (self.sale_failed or self.is_pair_empty)

    @cached_property
    def is_sale_failure_doubtful(self) -> bool:
        """True if the sale failed, the contract shows no reason and the liquidity is low or unknown."""
        if not self.sale_failed or self.token_flags.honeypot is not False:
            return False
        result = self.simulation_result
        usd = result.liquidity_usd if result.liquidity_usd is not None else self.usable_usd
        return not result.succeeded or usd is None or usd < MIN_SELLABLE_USD

    @cached_property
    def is_honeypot(self) -> bool | None:
        """True if any source says that it cannot be sold; None if no source could tell."""
        if self.token_flags.honeypot or self.sale_failed:
            return True
        return False if self.token_flags.honeypot is False or self.sale_succeeded else None

    @cached_property
    def sources_agree(self) -> bool | None:
        """True if analysis and simulation agree on a sale; None unless both have a result."""
        if self.token_flags.honeypot is None or not (self.sale_failed or self.sale_succeeded):
            return None
        return self.token_flags.honeypot == self.sale_failed

    @cached_property
    def can_buy(self) -> bool | None:
        """Result of a simulated purchase, else of the contract analysis."""
        if self.token_flags.cannot_buy or (self.buy_tax or 0) >= 100:
            return False
        is_buy_simulated = self.simulation_buy_tax is not None
        return (
            True
            if is_buy_simulated or (self.token_flags.cannot_buy is False and self.token_flags.in_dex)
            else None
        )

    @cached_property
    def can_sell(self) -> bool | None:
        """Result of a simulated sale, else of the contract analysis; False if no pair has liquidity."""
        if self.is_honeypot or self.is_liquidity_removed or self.has_no_pair or (self.sell_tax or 0) >= 100:
            return False
        is_sellable = self.token_flags.honeypot is False and self.token_flags.sell_tax is not None
        return True if self.sale_succeeded or is_sellable else None

    @cached_property
    def can_transfer(self) -> bool | None:
        """Result of a simulated transfer, else of the contract analysis."""
        if self.simulation_result.has_any_flag("transfer_blocked") or (self.transfer_tax or 0) >= 100:
            return False
        return True if self.transfer_tax is not None else None

    # taxes, in percent

    @cached_property
    def is_sell_tax_placeholder(self) -> bool:
        """True if the simulated sell tax only encodes a failed sale and is no tax."""
        return self.is_pair_empty or (
            self.is_sale_failure_doubtful and (self.simulation_result.sell_tax or 0) >= 100
        )

    @cached_property
    def simulation_sell_tax(self) -> float | None:
        return None if self.is_sell_tax_placeholder else self.simulation_result.sell_tax

    @cached_property
    def sell_tax(self) -> float | None:
        return _highest_tax(self.token_flags.sell_tax, self.simulation_sell_tax)

    @cached_property
    def has_invalid_sell_tax(self) -> bool:
        """True if a source gives an impossible sell tax."""
        is_simulated_invalid = (
            not self.is_pair_empty and "simulationResult.sellTax" in self.simulation_result.unreadable
        )
        return is_simulated_invalid or "sell_tax" in self.token_flags.unreadable

    @cached_property
    def simulation_buy_tax(self) -> float | None:
        return None if self.is_pair_empty else self.simulation_result.buy_tax

    @cached_property
    def buy_tax(self) -> float | None:
        return _highest_tax(self.token_flags.buy_tax, self.simulation_buy_tax)

    @cached_property
    def simulation_transfer_tax(self) -> float | None:
        return None if self.is_pair_empty else self.simulation_result.transfer_tax

    @cached_property
    def transfer_tax(self) -> float | None:
        return _highest_tax(self.token_flags.transfer_tax, self.simulation_transfer_tax)

    # ownership

    @cached_property
    def owner_state(self) -> OwnerState:
        owner = self.token_flags.owner_address
        if self.token_flags.hidden_owner:
            return "hidden"
        if owner is None:
            return "unknown"
        if not owner:
            return "none"
        return "renounced" if is_burn_address(owner) else "held"

    @cached_property
    def is_ownerless(self) -> bool:
        """True if it is known that no account can use owner privileges, now or later."""
        flags = self.token_flags
        return (
            self.owner_state in ("none", "renounced")
            and all(answer is False for answer in (flags.hidden_owner, flags.reclaimable, flags.proxy))
            and not self.simulation_result.proxy
        )

    @cached_property
    def is_well_known(self) -> bool:
        """True if it is on a list of trusted tokens or on a large exchange."""
        return bool(self.token_flags.trusted or self.token_flags.cex_listed)

    @cached_property
    def is_closed_source(self) -> bool:
        return (
            self.token_flags.open_source is False
            or self.simulation_result.open_source is False
            or self.simulation_result.has_any_flag("closed_source")
        )

    @cached_property
    def is_source_verified(self) -> bool | None:
        """True if the source code is published; False if any source reports it closed; None if unknown."""
        if self.is_closed_source:
            return False
        return True if self.token_flags.open_source or self.simulation_result.open_source else None

    @cached_property
    def is_upgradeable(self) -> bool | None:
        """True if any source reports a proxy; None if none has a value."""
        answers = (self.token_flags.proxy, self.simulation_result.proxy)
        return True if True in answers else False if False in answers else None

    # holders

    @cached_property
    def owner_percent(self) -> float | None:
        """The owner's share of the supply in percent; None without an owner or for a burn address."""
        owner = self.token_flags.owner_address
        return None if not owner or is_burn_address(owner) else self.token_flags.owner_percent

    @cached_property
    def creator_percent(self) -> float | None:
        creator = self.token_flags.creator_address
        return None if creator and is_burn_address(creator) else self.token_flags.creator_percent

    @cached_property
    def top_holders_percent(self) -> float | None:
        """Share in percent of the largest holders that are wallets and could sell; None if unreadable."""
        shares = _list_shares(
            self.token_flags.holders, lambda each: not (each.contract or self._is_passive_holder(each))
        )
        return None if shares is None else _sum_capped(shares)

    def _is_passive_holder(self, holder: Holder) -> bool:
        """True for pools, lockers, burn addresses and exchanges, which do not hold for themselves."""
        pools = {pool.pair for pool in self.token_flags.pools or ()}
        return (
            bool(holder.locked)
            or is_burn_address(holder.address)
            or holder.address in self.pool_addresses
            or holder.address in pools
            or bool(holder.tag and _POOL_OR_EXCHANGE.search(holder.tag.lower()))
        )

    @cached_property
    def is_owner_contract(self) -> bool | None:
        """True if the owner is a contract; None unless the owner is among the largest holders."""
        rows = [*(self.token_flags.holders or ()), *(self.token_flags.lp_holders or ())]
        return next((row.contract for row in rows if row.address == self.token_flags.owner_address), None)

    # liquidity

    @cached_property
    def usable_usd(self) -> float | None:
        return self.liquidity.usable_usd if self.liquidity else None

    @cached_property
    def has_no_pair(self) -> bool:
        """True if an exchange index lists no pair and no other source contradicts it."""
        if not self.sources_without_pair or self.liquidity is not None:
            return False
        return not self.token_flags.in_dex or (len(self.sources_without_pair) > 1 and not self.is_well_known)

    @cached_property
    def trading_age(self) -> timedelta | None:
        """Time since trading began; None if unknown."""
        since = self.liquidity.trading_since if self.liquidity else None
        since = since or (None if self.liquidity else self.simulation_result.pair_created_at)
        return max(self.now - since, timedelta(0)) if since else None

    @cached_property
    def locked_percent(self) -> float | None:
        """Share of the liquidity in percent that cannot be withdrawn."""
        shares = _list_shares(
            self.token_flags.lp_holders, lambda each: bool(each.locked or is_burn_address(each.address))
        )
        return None if shares is None else _sum_capped(shares)

    @cached_property
    def largest_lp_wallet_percent(self) -> float | None:
        """Share of the liquidity in percent that one wallet can withdraw at once."""
        shares = _list_shares(
            self.token_flags.lp_holders,
            lambda each: not (each.contract or each.locked or is_burn_address(each.address)),
        )
        return None if shares is None else max(shares, default=0)


def _list_shares(holders: Iterable[Holder] | None, counts: Callable[[Holder], bool]) -> list[float] | None:
    """Return the shares in percent of the holders for which `counts` is true; None if they are unreadable."""
    rows = list(holders or ())
    matching = [row for row in rows if counts(row)]
    shares = [row.percent for row in matching if row.percent is not None]
    is_unreadable = not shares and any(row.percent is None for row in matching)
    return None if is_unreadable or all(row.percent is None for row in rows) else shares


def _sum_capped(shares: Iterable[float]) -> float:
    return round(min(sum(shares), 100), 4)


def _highest_tax(*taxes: float | None) -> float | None:
    return max((tax for tax in taxes if tax is not None), default=None)
