"""Evidence from simulated trades of a token: of the simulation service, and our own on the chain. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Literal

from msgspec import Struct

from centgate.crypto.token.security import Simulation, TokenSource
from centgate.crypto.token.trades import SimulatedTrade

MissingReason = Literal["chain_not_covered", "no_pair", "source_unavailable"]
OwnMissingReason = MissingReason | Literal["no_contract"]


class SimulationEvidence(Struct, frozen=True, dict=True):
    """Simulated trades of all sources, and the reasons for missing ones."""

    of_service: Simulation | None
    """From the simulation service."""
    no_service_reason: MissingReason | None
    own: Simulation | None
    """Our own, on the chain's pools."""
    no_own_reason: OwnMissingReason | None
    supply: float | None
    """Whole tokens that exist."""

    @cached_property
    def service_result(self) -> Simulation:
        """The simulation service's result; all None if there was none."""
        return self.of_service or Simulation()

    @cached_property
    def service_trade(self) -> SimulatedTrade | None:
        """The trade that the simulation service simulated; None if there was none."""
        return None if self.of_service is None else SimulatedTrade("honeypotis", self.of_service)

    @cached_property
    def own_trade(self) -> SimulatedTrade | None:
        """The trade that we simulated; None if there was none."""
        return None if self.own is None else SimulatedTrade("onchain", self.own)

    @cached_property
    def trades(self) -> tuple[SimulatedTrade, ...]:
        """The simulated trades of all sources."""
        return tuple(trade for trade in (self.service_trade, self.own_trade) if trade is not None)

    @cached_property
    def is_expected(self) -> bool:
        """True if a source could have simulated a sale on this chain."""
        tried = self.own is not None or self.no_own_reason not in (None, "chain_not_covered")
        return tried or self.of_service is not None or self.no_service_reason != "chain_not_covered"

    # the service's trade

    @cached_property
    def is_service_pair_empty(self) -> bool:
        """True if the simulation service used an empty pair."""
        return self.service_trade is not None and self.service_trade.is_pair_empty

    @property
    def has_service_sale(self) -> bool:
        """True if the simulation service tells how a sale went, or that none is possible."""
        result = self.service_result
        has_outcome = result.honeypot is not None or result.sell_tax is not None or bool(result.unreadable)
        return result.succeeded and has_outcome

    @property
    def service_risk(self) -> float | None:
        """The simulation service's rating of the risk, 0 to 100; None if its pair is empty."""
        return None if self.is_service_pair_empty else self.service_result.risk_level

    # sales of all trades

    @cached_property
    def sale_succeeded(self) -> bool:
        """True if a simulated sale on a pair with liquidity succeeded."""
        return any(trade.has_sold for trade in self.trades)

    @cached_property
    def is_sale_unproven(self) -> bool:
        """True if a simulation bought, and could not show that people can sell."""
        return any(trade.is_unproven for trade in self.trades)

    @cached_property
    def do_most_holders_fail(self) -> bool:
        """True if at least half of the holders at which a source tried a sale cannot sell."""
        return any(trade.do_most_holders_fail for trade in self.trades)

    @cached_property
    def siphoned_percent(self) -> float:
        """Percent of the tried holders whose balance was taken away: the highest of all sources."""
        return _highest(trade.siphoned_percent for trade in self.trades)

    @cached_property
    def average_holder_tax(self) -> float:
        """Percent that holders pay of a sale on average: the highest of all sources."""
        return _highest(trade.holder_sales.average_tax for trade in self.trades)

    @cached_property
    def pair_sources(self) -> tuple[TokenSource, ...]:
        """Sources that simulated a trade in a pair that is not empty, whatever came of it."""
        return tuple(
            trade.source
            for trade in self.trades
            if trade.result.succeeded and trade.result.pair_empty is not True
        )

    @cached_property
    def must_keep_part(self) -> bool:
        """True if a simulation could not sell a whole holding, and nearly all of it."""
        return any(trade.result.cannot_sell_all is True and not trade.is_pair_empty for trade in self.trades)

    @cached_property
    def is_transfer_blocked(self) -> bool:
        """True if a simulation could not send the token from one holder to another."""
        is_flagged = self.service_result.has_any_flag("transfer_blocked")
        return is_flagged or any(
            trade.result.transfer_blocked is True and not trade.is_pair_empty for trade in self.trades
        )

    @cached_property
    def is_sale_limited(self) -> bool:
        """True if a simulation found a largest sale."""
        return any(trade.result.max_sell is not None and not trade.is_pair_empty for trade in self.trades)

    @cached_property
    def max_sell_percent(self) -> float | None:
        """The largest single sale in percent of the supply; None without a limit or a known supply."""
        limits = [trade.result.max_sell for trade in self.trades if not trade.is_pair_empty]
        amounts = [limit.tokens for limit in limits if limit is not None and limit.tokens is not None]
        if not amounts or not self.supply:
            return None
        return 100 * min(amounts) / self.supply


def _highest(percents: Iterable[float | None]) -> float:
    return max((percent for percent in percents if percent is not None), default=0.0)
