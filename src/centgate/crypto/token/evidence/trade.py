"""Evidence on whether a token can be traded, and at which tax, by analysis and simulations. No I/O.

A sale and its tax are one subject: a sale that failed for an unclear reason measured no tax, and if the tax
takes everything, nothing can be sold.
"""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct

from centgate.crypto.token.evidence.market import MIN_SELLABLE_USD, MarketEvidence
from centgate.crypto.token.evidence.simulations import SimulationEvidence
from centgate.crypto.token.security import TokenFlags, TokenSource
from centgate.crypto.token.trades import TOTAL_TAX, SimulatedTrade, TaxName


class TradeEvidence(Struct, frozen=True, dict=True):
    """Evidence about purchases, sales and transfers of a token."""

    flags: TokenFlags
    """Of the contract analysis, completed by the bytecode."""
    simulations: SimulationEvidence
    market: MarketEvidence

    # sale

    @cached_property
    def has_sale_result(self) -> bool:
        """True if a simulation on a pair that matters says anything about a sale."""
        return any(
            trade.has_result and not (trade.is_pair_empty and self.market.is_sellable)
            for trade in self.simulations.trades
        )

    @cached_property
    def is_liquidity_removed(self) -> bool:
        """True if a simulated pair is empty, no sale went through, and no other source lists liquidity."""
        is_empty = any(trade.is_pair_empty for trade in self.simulations.trades)
        return is_empty and not self.simulations.sale_succeeded and not self.market.is_sellable

    @cached_property
    def honeypot_claims(self) -> int:
        """Number of sources that say that the token cannot be sold."""
        failures = sum(trade.has_failed for trade in self.simulations.trades)
        return failures + (self.flags.honeypot is True)

    @cached_property
    def sources_agree(self) -> bool | None:
        """True if all sources agree on a sale; None unless two have a result."""
        trades = self.simulations.trades
        claims = [trade.has_failed for trade in trades if trade.has_failed or trade.has_sold]
        if self.flags.honeypot is not None:
            claims.append(self.flags.honeypot)
        return None if len(claims) < 2 else len(set(claims)) == 1

    @cached_property
    def is_sale_failure_doubtful(self) -> bool:
        """True if a sale failed without proof that nobody can sell.

        That is: no holder was there to try; or the contract shows no reason, and the liquidity is low or
        unknown.
        """
        if any(self._is_failure_doubtful(trade) for trade in self.simulations.trades):
            return True
        return self.simulations.is_sale_unproven and self.honeypot_claims == 0

    def _is_failure_doubtful(self, trade: SimulatedTrade) -> bool:
        if not trade.has_failed or self.flags.honeypot is not False or self.honeypot_claims > 1:
            return False
        in_pair = trade.result.liquidity_usd
        usd = in_pair if in_pair is not None else self.market.usable_usd
        return not trade.result.succeeded or usd is None or usd < MIN_SELLABLE_USD

    # taxes, in percent: the highest that a source gives

    @cached_property
    def buy_tax(self) -> float | None:
        return self._highest_tax("buy_tax")

    @cached_property
    def sell_tax(self) -> float | None:
        return self._highest_tax("sell_tax")

    @cached_property
    def transfer_tax(self) -> float | None:
        return self._highest_tax("transfer_tax")

    def _highest_tax(self, name: TaxName) -> float | None:
        return max((tax for _, tax in self.list_tax_readings(name)), default=None)

    def list_tax_readings(self, name: TaxName) -> list[tuple[TokenSource, float]]:
        """Return a tax as each source gives it."""
        flagged: float | None = getattr(self.flags, name)
        readings: list[tuple[TokenSource, float]] = [] if flagged is None else [("goplus", flagged)]
        for trade in self.simulations.trades:
            tax = self._read_simulated_tax(trade, name)
            if tax is not None:
                readings.append((trade.source, tax))
        return readings

    def _read_simulated_tax(self, trade: SimulatedTrade, name: TaxName) -> float | None:
        """Return a tax that a trade measured; None if its figure says nothing."""
        if name == "sell_tax":
            return None if self.is_sell_tax_placeholder(trade) else trade.result.sell_tax
        return None if trade.is_pair_empty else getattr(trade.result, name)

    def is_sell_tax_placeholder(self, trade: SimulatedTrade) -> bool:
        """True if a simulated sell tax only encodes a failed sale and is no tax."""
        return trade.is_pair_empty or (
            self._is_failure_doubtful(trade) and (trade.result.sell_tax or 0) >= TOTAL_TAX
        )

    @cached_property
    def has_invalid_sell_tax(self) -> bool:
        """True if a source gives an impossible sell tax."""
        is_simulated_invalid = any(
            not trade.is_pair_empty and "simulationResult.sellTax" in trade.result.unreadable
            for trade in self.simulations.trades
        )
        return is_simulated_invalid or "sell_tax" in self.flags.unreadable

    # what a holder can do

    @cached_property
    def is_honeypot(self) -> bool | None:
        """True if any source says that it cannot be sold; None if no source could tell.

        Also None if the sources say that it is no honeypot, but a tax takes the whole sale, at least half of
        the holders cannot sell, or a simulation could not show that people can sell.
        """
        if self.honeypot_claims:
            return True
        simulations = self.simulations
        if self._is_sale_taken or simulations.do_most_holders_fail or simulations.is_sale_unproven:
            return None
        return False if self.flags.honeypot is False or simulations.sale_succeeded else None

    @cached_property
    def _is_sale_taken(self) -> bool:
        """True if a tax takes the whole sale: by a source's figure, or on average at holders."""
        return max(self.sell_tax or 0, self.simulations.average_holder_tax) >= TOTAL_TAX

    @cached_property
    def can_buy(self) -> bool | None:
        """Result of a simulated purchase, else of the contract analysis."""
        flags = self.flags
        if flags.cannot_buy or (self.buy_tax or 0) >= TOTAL_TAX:
            return False
        is_buy_simulated = any(
            trade.result.buy_tax is not None and not trade.is_pair_empty for trade in self.simulations.trades
        )
        return True if is_buy_simulated or (flags.cannot_buy is False and flags.in_dex) else None

    @cached_property
    def can_sell(self) -> bool | None:
        """Result of a simulated sale, else of the contract analysis; False if no pair has liquidity.

        None if the account that sold is not like most holders, or if another source contradicts its sale.
        """
        has_sold = self.simulations.sale_succeeded
        if self.is_honeypot or self._is_sale_taken:
            return None if has_sold else False
        if self.is_liquidity_removed or self.market.has_no_pair:
            return False
        if self.is_sale_failure_doubtful or self.simulations.do_most_holders_fail:
            return None
        is_sellable = self.flags.honeypot is False and self.flags.sell_tax is not None
        return True if has_sold or is_sellable else None

    @cached_property
    def can_transfer(self) -> bool | None:
        """Result of a simulated transfer, else of the contract analysis."""
        if self.simulations.is_transfer_blocked or (self.transfer_tax or 0) >= TOTAL_TAX:
            return False
        return True if self.transfer_tax is not None else None
