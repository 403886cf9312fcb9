"""Fields of token-risk on trades: whether the token can be sold, what limits a sale, and taxes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from centgate.answers.token_flags import Evidence, build_evidence
from centgate.crypto.token.citations import cite_field
from centgate.crypto.token.evidence.simulations import MissingReason
from centgate.crypto.token.security import TokenSource, TradeLimit
from centgate.crypto.token.tax_rules import TAX_FIELDS
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.trades import TaxName
from centgate.schema import Data

_SALE_FIELDS = (
    "goplus:is_honeypot",
    "honeypotis:honeypotResult.isHoneypot",
    "onchain:simulation.isHoneypot",
)


class HolderSalesData(Data):
    """Sales that a simulation made at real holders of the token."""

    source: TokenSource = Field(description="The source that simulated them.")
    tested: int | None = Field(description="Holders at which a sale was tried.")
    failed: int | None = Field(description="Those that could not sell.")
    siphoned: int | None = Field(description="Those whose balance was taken away.")
    average_tax: float | None = Field(description="Percent of a sale, over those that could sell.")
    highest_tax: float | None = Field(description="Percent of a sale.")
    high_tax_count: int | None = Field(description="Those that pay a much higher tax than others.")


class TradeLimitData(Data):
    """The largest amount that can be traded at once."""

    source: TokenSource = Field(description="The source that found the limit.")
    tokens: float | None = Field(description="Whole tokens.")
    other_side: float | None = Field(description="Units of the pair's other token.")


class HoneypotCheck(Data):
    """Result of the check that the token can be sold again."""

    is_honeypot: bool | None = Field(
        description="True also when a simulated sale lost 99 % or more. Null when no source could tell, when "
        "the contract analysis or the average of holders gives such a tax, or when at least half of the "
        "holders that were tried cannot sell."
    )
    simulated: bool = Field(description="Whether a buy and a sell were simulated.")
    not_simulated: Literal["chain_not_covered", "no_pair", "failed", "source_unavailable"] | None = Field(
        description="The reason for a missing simulation; null when there was one."
    )
    can_buy: bool | None = Field(description="Null when no source could tell, as for the next two.")
    can_sell: bool | None = Field(
        description="Null also when a simulated sale went through, and another source says that it cannot "
        "be sold, or at least half of the holders that were tried cannot sell."
    )
    can_transfer: bool | None
    reason: str | None = Field(
        description="What stopped the sale, or the simulation, as a clause in our words; null when the "
        "reason is not a known one: see `sourceReason`."
    )
    source_reason: str | None = Field(
        description="The same in the words of the simulation or of the token: untrusted text, cut."
    )
    simulated_by: list[TokenSource] = Field(
        description="Sources that simulated a purchase and a sale: honeypot.is, and `onchain`, which is "
        "Centgate's own simulation by calls to a node."
    )
    holder_sales: list[HolderSalesData] = Field(description="One entry for each source.")
    max_buy: TradeLimitData | None = Field(description="The smallest limit found, or null.")
    max_sell: TradeLimitData | None = Field(description="The smallest limit found, or null.")
    sources_agree: bool | None = Field(description="Null unless two sources answered.")
    evidence: list[Evidence]


class TaxReading(Data):
    """A tax as reported by one source."""

    source: TokenSource
    percent: float = Field(description="Percent of the amount.")
    raw: str = Field(description="As the source gave it: some give percent, some fractions of one.")


class Tax(Data):
    """A tax in percent: the highest of the readings."""

    percent: float | None = Field(description="Percent of the amount; null when no source gave one.")
    readings: list[TaxReading]


class TokenTaxes(Data):
    """Share taken from each purchase, sale and transfer of the token."""

    buy: Tax
    sell: Tax
    transfer: Tax
    modifiable: bool | None = Field(
        description="Whether the owner can change a tax; false when the ownership was given up."
    )


def build_honeypot_check(evidence: TokenEvidence) -> HoneypotCheck:
    """Return what all sources say on sales of the token."""
    trades, trade = evidence.simulations.trades, evidence.trade
    simulated_by: list[TokenSource] = [
        each.source for each in trades if each.result.succeeded and each.has_result
    ]
    failures = [each.result for each in trades if each.result.reason or each.result.explanation]
    return HoneypotCheck(
        is_honeypot=trade.is_honeypot,
        simulated=bool(simulated_by),
        not_simulated=None if simulated_by else _choose_missing_reason(evidence),
        can_buy=trade.can_buy,
        can_sell=trade.can_sell,
        can_transfer=trade.can_transfer,
        reason=next((each.explanation for each in failures if each.explanation), None),
        source_reason=next((each.reason for each in failures if each.reason), None),
        simulated_by=simulated_by,
        holder_sales=_build_holder_sales(evidence),
        max_buy=_build_limit(evidence, "max_buy"),
        max_sell=_build_limit(evidence, "max_sell"),
        sources_agree=trade.sources_agree,
        evidence=[
            build_evidence(each)
            for name in _SALE_FIELDS
            for each in cite_field(evidence, name)
            if each.value is not None
        ],
    )


def _choose_missing_reason(evidence: TokenEvidence) -> MissingReason | Literal["failed"]:
    """Return why no trade was simulated: `failed` if a simulation ended without a result, else what prevented
    the first one that covers the chain.
    """
    first, own = evidence.no_simulation_reason, evidence.no_own_simulation_reason
    if evidence.simulations.trades:
        return "failed"
    reason = own if first in (None, "chain_not_covered") and own not in (None, "chain_not_covered") else first
    return "failed" if reason in (None, "no_contract") else reason


def _build_holder_sales(evidence: TokenEvidence) -> list[HolderSalesData]:
    return [
        HolderSalesData(
            source=trade.source,
            tested=sales.tested,
            failed=sales.failed,
            siphoned=sales.siphoned,
            average_tax=sales.average_tax,
            highest_tax=sales.highest_tax,
            high_tax_count=sales.high_tax_count,
        )
        for trade in evidence.simulations.trades
        if (sales := trade.result.holder_sales)
    ]


def _build_limit(evidence: TokenEvidence, name: Literal["max_buy", "max_sell"]) -> TradeLimitData | None:
    """Build the smallest of the limits that sources found."""
    found: list[tuple[TokenSource, TradeLimit]] = []
    for trade in evidence.simulations.trades:
        limit = trade.result.max_buy if name == "max_buy" else trade.result.max_sell
        if limit is not None:
            found.append((trade.source, limit))
    if not found:
        return None
    source, limit = min(found, key=lambda entry: float("inf") if entry[1].tokens is None else entry[1].tokens)
    return TradeLimitData(source=source, tokens=limit.tokens, other_side=limit.other_side)


def build_taxes(evidence: TokenEvidence) -> TokenTaxes:
    """Return the taxes, and whether the owner can change them."""
    has_power = evidence.ownership.has_power
    powers = (has_power("tax_modifiable"), has_power("personal_tax_modifiable"))
    return TokenTaxes(
        buy=_build_tax(evidence, "buy_tax"),
        sell=_build_tax(evidence, "sell_tax"),
        transfer=_build_tax(evidence, "transfer_tax"),
        modifiable=True if True in powers else None if None in powers else False,
    )


def _build_tax(evidence: TokenEvidence, name: TaxName) -> Tax:
    """Build a tax with its readings, each in percent and as its source gave it."""
    raw = {each.source: each.value for field in TAX_FIELDS[name] for each in cite_field(evidence, field)}
    readings = evidence.trade.list_tax_readings(name)
    return Tax(
        percent=max((percent for _, percent in readings), default=None),
        readings=[
            TaxReading(source=source, percent=percent, raw=raw.get(source) or "")
            for source, percent in readings
        ],
    )
