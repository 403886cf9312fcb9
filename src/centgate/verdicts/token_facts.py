"""What is known of a token, from all sources together: the ground that its rules stand on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal

from centgate.chains import is_burned
from centgate.facts.pairs import Pair
from centgate.facts.tokens import Holder, Simulation, TokenFlags
from centgate.verdicts.top_pair import depth, top_pair

Source = Literal["goplus", "honeypotis", "dexscreener", "geckoterminal"]
Gap = Literal["chain_not_covered", "no_pair", "source_unavailable"]
OwnerState = Literal["none", "renounced", "held", "hidden", "unknown"]

THIN_USD = 1_000
"""With less in its pairs a token cannot be sold in earnest."""
COMPARABLE = 0.5
"""Share of the top pair's depth from which another pair shows how long the token has been traded."""
DECISIVE = (
    *("open_source", "honeypot", "changes_balances", "self_destructs", "hidden_owner", "reclaimable"),
    *("pausable", "personal_tax_modifiable"),
)
"""The flags behind the grave rules which an analysis of any contract answers."""
ENOUGH = 6
"""Of these, so many tell that a contract was analysed."""
_POOL_OR_EXCHANGE = re.compile(
    r"swap|pool|\b(lp|amm|cex|htx|okx|okex)\b|curve|balancer|aerodrome|velodrome|exchange|binance|coinbase"
    r"|kraken|kucoin|bybit|bitget|bitfinex|gate\.?io|huobi|mexc|crypto\.com|upbit|bithumb|bitstamp|gemini"
    r"|\b(un)?lock|\bvest"
)
"""Tags of holders that do not sell against the others."""


@dataclass(frozen=True, slots=True)
class Liquidity:
    """What stands in a token's pairs on one chain, as one source lists them."""

    source: Source
    total_usd: float | None
    pair_count: int
    other_side_usd: float | None = None
    """What could be taken out for the token: the other tokens in its pairs. None where they are not told."""
    top_pair: str | None = None
    top_dex: str | None = None
    top_usd: float | None = None
    top_created_at: datetime | None = None
    traded_since: datetime | None = None
    """When the top pair was made, or an older one as deep, so that a second pair makes no token young."""

    @property
    def usable_usd(self) -> float | None:
        """The total, or twice what stands on the other side where that is less: that side backs the price."""
        if self.total_usd is None or self.other_side_usd is None:
            return self.total_usd
        return min(self.total_usd, 2 * self.other_side_usd)


def in_pairs(token: str, pairs: Sequence[Pair], source: Source) -> Liquidity:
    """The liquidity in a token's pairs, at least one, as an exchange index lists them."""
    choice = top_pair(pairs, token)
    top = choice.pair
    depths = [pair.liquidity_usd for pair in pairs if pair.liquidity_usd is not None]
    others = _other_sides(token, pairs)
    enough = COMPARABLE * (depth(top) or 0)
    comparable = [pair for pair in pairs if (depth(pair) or 0) >= enough and pair not in choice.far]
    return Liquidity(
        source=source,
        total_usd=round(sum(depths), 2) if depths else None,
        pair_count=len(pairs),
        other_side_usd=round(sum(others), 2) if others else None,
        top_pair=top.address,
        top_dex=top.dex,
        top_usd=top.liquidity_usd,
        top_created_at=top.created_at,
        traded_since=min((pair.created_at for pair in comparable if pair.created_at), default=None),
    )


def _other_sides(token: str, pairs: Sequence[Pair]) -> list[float]:
    """US dollars that stand against the token in each pair; nothing where a pair of weight does not tell."""
    weight = max((pair.liquidity_usd or 0 for pair in pairs), default=0) / 10
    others = [(pair.liquidity_usd or 0, _other_side(token, pair)) for pair in pairs]
    if any(liquidity >= weight and other is None for liquidity, other in others):
        return []
    return [min(other, liquidity) for liquidity, other in others if other is not None]


def _other_side(token: str, pair: Pair) -> float | None:
    return pair.quote_side_usd if pair.base.address == token else pair.base_side_usd


def in_pools(flags: TokenFlags) -> Liquidity | None:
    """The liquidity that the contract analysis lists; None where it lists none."""
    pools = flags.pools or ()
    known = [pool for pool in pools if pool.liquidity_usd is not None]
    if not known:
        return None
    top = max(known, key=lambda pool: pool.liquidity_usd or 0)
    return Liquidity(
        source="goplus",
        total_usd=round(sum(pool.liquidity_usd or 0 for pool in known), 2),
        pair_count=len(pools),
        top_pair=top.pair,
        top_dex=top.name,
        top_usd=top.liquidity_usd,
    )


@dataclass(frozen=True)
class Facts:
    """Everything known of one token at one moment; a source that said nothing is None."""

    now: datetime
    flags: TokenFlags | None = None
    simulation: Simulation | None = None
    simulation_gap: Gap | None = None
    """Why there is no simulation."""
    liquidity: Liquidity | None = None
    no_pair_in: tuple[Source, ...] = ()
    """The exchange indexes that know no pair of the token."""
    pool_addresses: frozenset[str] = frozenset()

    @cached_property
    def known(self) -> TokenFlags:
        """The flags, all unknown where there are none."""
        return self.flags or TokenFlags()

    @cached_property
    def simulated(self) -> Simulation:
        """The simulation, all unknown where there was none."""
        return self.simulation or Simulation()

    @cached_property
    def analysed(self) -> bool:
        """Whether the contract's analysis answers most of what matters; an answer or two say little."""
        return sum(getattr(self.known, name) is not None for name in DECISIVE) >= ENOUGH

    # the sale

    @cached_property
    def pair_is_empty(self) -> bool:
        """Whether the sale was tried on a pair without money, which says nothing of the token's code."""
        return self.simulated.pair_empty is True and not self.simulated.transfer_blocked

    @cached_property
    def traded_elsewhere(self) -> bool:
        """Whether money stands in pairs of it, whatever the simulation found in the one it took."""
        return (self.usable_usd or 0) >= THIN_USD

    @cached_property
    def liquidity_removed(self) -> bool:
        """Whether the pair is empty and no other source lists money in any."""
        return self.pair_is_empty and not self.traded_elsewhere

    @cached_property
    def sale_failed(self) -> bool:
        """Whether the simulation calls it a honeypot, in any of its ways, on a pair that has money."""
        tried = self.simulated
        said = tried.honeypot is True or (tried.risk_level or 0) >= 90 or (tried.sell_tax or 0) >= 100
        return said and not self.pair_is_empty

    @cached_property
    def sale_worked(self) -> bool:
        """Whether a sale was simulated on a pair with money, and went through."""
        went = self.simulated.succeeded and self.simulated.honeypot is False
        return went and not (self.sale_failed or self.pair_is_empty)

    @cached_property
    def sale_is_in_doubt(self) -> bool:
        """Whether the sale failed where the contract shows no reason and little money stands against it."""
        if not self.sale_failed or self.known.honeypot is not False:
            return False
        tried = self.simulated
        depth = tried.liquidity_usd if tried.liquidity_usd is not None else self.usable_usd
        return not tried.succeeded or depth is None or depth < THIN_USD

    @cached_property
    def honeypot(self) -> bool | None:
        """Whether any source says that it cannot be sold; None when no source could tell."""
        if self.known.honeypot or self.sale_failed:
            return True
        return False if self.known.honeypot is False or self.sale_worked else None

    @cached_property
    def sources_agree(self) -> bool | None:
        """Whether both say the same of a sale; None unless both say something."""
        if self.known.honeypot is None or not (self.sale_failed or self.sale_worked):
            return None
        return self.known.honeypot == self.sale_failed

    @cached_property
    def can_buy(self) -> bool | None:
        """As a simulated purchase went, or as the contract's analysis says."""
        if self.known.cannot_buy or (self.buy_tax or 0) >= 100:
            return False
        bought = self.simulated_buy_tax is not None
        return True if bought or (self.known.cannot_buy is False and self.known.in_dex) else None

    @cached_property
    def can_sell(self) -> bool | None:
        """As a simulated sale went, or as the contract's analysis says; no pair with money, no sale."""
        if self.honeypot or self.liquidity_removed or self.no_pair or (self.sell_tax or 0) >= 100:
            return False
        analysed = self.known.honeypot is False and self.known.sell_tax is not None
        return True if self.sale_worked or analysed else None

    @cached_property
    def can_transfer(self) -> bool | None:
        """As a simulated transfer went, or as the contract's analysis says."""
        if self.simulated.flagged("transfer_blocked") or (self.transfer_tax or 0) >= 100:
            return False
        return True if self.transfer_tax is not None else None

    # taxes, in percent

    @cached_property
    def tax_means_failure(self) -> bool:
        """Whether the simulated sell tax is only how a sale that failed is written."""
        return self.pair_is_empty or (self.sale_is_in_doubt and (self.simulated.sell_tax or 0) >= 100)

    @cached_property
    def simulated_sell_tax(self) -> float | None:
        return None if self.tax_means_failure else self.simulated.sell_tax

    @cached_property
    def sell_tax(self) -> float | None:
        return _highest(self.known.sell_tax, self.simulated_sell_tax)

    @cached_property
    def sell_tax_unreadable(self) -> bool:
        """Whether a source gives a sell tax that cannot be."""
        simulated = not self.pair_is_empty and "simulationResult.sellTax" in self.simulated.unreadable
        return simulated or "sell_tax" in self.known.unreadable

    @cached_property
    def simulated_buy_tax(self) -> float | None:
        return None if self.pair_is_empty else self.simulated.buy_tax

    @cached_property
    def buy_tax(self) -> float | None:
        return _highest(self.known.buy_tax, self.simulated_buy_tax)

    @cached_property
    def simulated_transfer_tax(self) -> float | None:
        return None if self.pair_is_empty else self.simulated.transfer_tax

    @cached_property
    def transfer_tax(self) -> float | None:
        return _highest(self.known.transfer_tax, self.simulated_transfer_tax)

    # who controls it

    @cached_property
    def owner_state(self) -> OwnerState:
        owner = self.known.owner_address
        if self.known.hidden_owner:
            return "hidden"
        if owner is None:
            return "unknown"
        if not owner:
            return "none"
        return "renounced" if is_burned(owner) else "held"

    @cached_property
    def ownerless(self) -> bool:
        """Whether it is known that nobody can use an owner's powers, now or later."""
        known = self.known
        return (
            self.owner_state in ("none", "renounced")
            and all(answer is False for answer in (known.hidden_owner, known.reclaimable, known.proxy))
            and not self.simulated.proxy
        )

    @cached_property
    def well_known(self) -> bool:
        """Whether it is on a list of trusted tokens or on a large exchange."""
        return bool(self.known.trusted or self.known.cex_listed)

    @cached_property
    def closed_source(self) -> bool:
        return (
            self.known.open_source is False
            or self.simulated.open_source is False
            or self.simulated.flagged("closed_source")
        )

    @cached_property
    def source_verified(self) -> bool | None:
        """Whether the source code is published; closed where any source finds it closed."""
        if self.closed_source:
            return False
        return True if self.known.open_source or self.simulated.open_source else None

    @cached_property
    def upgradeable(self) -> bool | None:
        """Whether it is a proxy in the eyes of any source."""
        answers = (self.known.proxy, self.simulated.proxy)
        return True if True in answers else False if False in answers else None

    # who holds it

    @cached_property
    def owner_percent(self) -> float | None:
        """The owner's share of the supply, where the owner is somebody."""
        owner = self.known.owner_address
        return None if not owner or is_burned(owner) else self.known.owner_percent

    @cached_property
    def creator_percent(self) -> float | None:
        creator = self.known.creator_address
        return None if creator and is_burned(creator) else self.known.creator_percent

    @cached_property
    def top_holders_percent(self) -> float | None:
        """Share of the largest holders that are wallets which could sell; None where a figure is missing."""
        shares = _shares(self.known.holders, lambda each: not (each.contract or self._passive(each)))
        return None if shares is None else _sum(shares)

    def _passive(self, holder: Holder) -> bool:
        """Pools, lockers, burn addresses and exchanges hold for others, or for nobody."""
        pools = {pool.pair for pool in self.known.pools or ()}
        return (
            bool(holder.locked)
            or is_burned(holder.address)
            or holder.address in self.pool_addresses
            or holder.address in pools
            or bool(holder.tag and _POOL_OR_EXCHANGE.search(holder.tag.lower()))
        )

    @cached_property
    def owner_is_contract(self) -> bool | None:
        """Known where the owner is among the largest holders."""
        rows = [*(self.known.holders or ()), *(self.known.lp_holders or ())]
        return next((row.contract for row in rows if row.address == self.known.owner_address), None)

    # what stands against a sale

    @cached_property
    def usable_usd(self) -> float | None:
        return self.liquidity.usable_usd if self.liquidity else None

    @cached_property
    def no_pair(self) -> bool:
        """Whether an index of exchanges knows no pair, and no other source speaks against it."""
        if not self.no_pair_in or self.liquidity is not None:
            return False
        return not self.known.in_dex or (len(self.no_pair_in) > 1 and not self.well_known)

    @cached_property
    def age(self) -> timedelta | None:
        """How long it has been traded."""
        since = self.liquidity.traded_since if self.liquidity else None
        since = since or (None if self.liquidity else self.simulated.pair_created_at)
        return max(self.now - since, timedelta(0)) if since else None

    @cached_property
    def locked_percent(self) -> float | None:
        """Share of the liquidity that nobody can take out."""
        shares = _shares(self.known.lp_holders, lambda each: bool(each.locked or is_burned(each.address)))
        return None if shares is None else _sum(shares)

    @cached_property
    def largest_lp_wallet_percent(self) -> float | None:
        """Share of the liquidity that one wallet can take out at once."""
        shares = _shares(
            self.known.lp_holders, lambda each: not (each.contract or each.locked or is_burned(each.address))
        )
        return None if shares is None else max(shares, default=0)


def _shares(holders: Iterable[Holder] | None, counts: Callable[[Holder], bool]) -> list[float] | None:
    """The shares, in percent, of those holders that count; None where they could not be read."""
    rows = list(holders or ())
    counted = [row for row in rows if counts(row)]
    shares = [row.percent for row in counted if row.percent is not None]
    unread = not shares and any(row.percent is None for row in counted)
    return None if unread or all(row.percent is None for row in rows) else shares


def _sum(shares: Iterable[float]) -> float:
    return round(min(sum(shares), 100), 4)


def _highest(*taxes: float | None) -> float | None:
    return max((tax for tax in taxes if tax is not None), default=None)
