"""Rules on sales of a token: whether it can be sold, and what sales at its holders showed."""

from __future__ import annotations

import math
from collections.abc import Callable

from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_rule import (
    FAILED_SALES,
    HOLDER_TAXES,
    SALE_SUBJECT,
    SELL_LIMITS,
    TAKEN_AWAY,
    AmountRange,
    TokenRule,
)

SOME_FAILED, FEW_FAILED = 10.0, 1.0
"""Percent of the tried holders that cannot sell."""
MANY_SIPHONED = 10.0
"""Percent of the tried holders whose balance was taken away."""
HEAVY_TAX, HIGH_TAX = 50.0, 20.0
"""Percent of a holder's sale."""
TINY_SALE_PERCENT = 0.05
"""Percent of the supply below which a largest sale keeps a holding from being sold."""
_BLOCKED = (
    "honeypotis:honeypotResult.isHoneypot",
    "honeypotis:honeypotResult.honeypotReason",
    "onchain:simulation.isHoneypot",
)
_RISK = ("honeypotis:summary.riskLevel", "honeypotis:simulationResult.sellTax", "onchain:simulation.sellTax")
_FAILED_SALES = (
    "honeypotis:holderAnalysis.failed",
    "honeypotis:holderAnalysis.holders",
    "onchain:simulation.holders.failed",
    "onchain:simulation.holders.tested",
)
_SIPHONED = (
    "honeypotis:holderAnalysis.siphoned",
    "honeypotis:holderAnalysis.holders",
    "onchain:simulation.holders.siphoned",
    "onchain:simulation.holders.tested",
)
_HOLDER_TAXES = (
    "honeypotis:holderAnalysis.averageTax",
    "honeypotis:holderAnalysis.highestTax",
    "honeypotis:holderAnalysis.highTaxWallets",
    "onchain:simulation.holders.averageTax",
    "onchain:simulation.holders.highestTax",
)
_LARGEST_SALE = ("honeypotis:simulationResult.maxSell.token", "onchain:simulation.maxSell.tokens")
_LISTED_DEPTH = ("pairs:totalUsd", "pairs:otherSideUsd")
_PAIR_DEPTH = ("honeypotis:pair.liquidity", "honeypotis:pair.reserves0", "honeypotis:pair.reserves1")


def _has_failed_share(minimum: float, below: float = math.inf) -> Callable[[TokenEvidence], bool]:
    """Return a condition: this percentage of the tried holders cannot sell."""
    return lambda evidence: any(
        minimum <= (trade.failed_percent or 0) < below for trade in evidence.simulations.trades
    )


def _is_any_holder_taxed_heavily(evidence: TokenEvidence) -> bool:
    return any(
        (trade.holder_sales.highest_tax or 0) >= HEAVY_TAX and trade.holder_sales.high_tax_count != 0
        for trade in evidence.simulations.trades
    )


SALE_RULES: tuple[TokenRule, ...] = (
    # sale
    TokenRule(
        "honeypot_confirmed",
        "critical",
        SALE_SUBJECT,
        "Two sources say that it cannot be sold again: analyses of the contract, or simulated sales.",
        lambda evidence: evidence.trade.honeypot_claims > 1,
        ("goplus:is_honeypot", *_BLOCKED, *_RISK),
    ),
    TokenRule(
        "honeypot",
        "critical",
        SALE_SUBJECT,
        "It can be bought but not sold again.",
        lambda evidence: (
            evidence.trade.honeypot_claims == 1
            and not evidence.simulations.sale_succeeded
            and not evidence.trade.is_sale_failure_doubtful
        ),
        ("goplus:is_honeypot", *_BLOCKED, *_RISK),
    ),
    TokenRule(
        "honeypot_disputed",
        "high",
        SALE_SUBJECT,
        "One source says that it cannot be sold again, although a simulated sale went through.",
        lambda evidence: evidence.trade.honeypot_claims == 1 and evidence.simulations.sale_succeeded,
        ("goplus:is_honeypot", *_BLOCKED),
    ),
    TokenRule(
        "sale_failed_in_doubt",
        "high",
        SALE_SUBJECT,
        "No simulated sale shows that people can sell it; liquidity is too low, or the simulation too "
        "incomplete, to be sure.",
        lambda evidence: evidence.trade.is_sale_failure_doubtful and not evidence.simulations.sale_succeeded,
        (*_BLOCKED, "onchain:simulation.explanation", *_PAIR_DEPTH, "goplus:is_honeypot", *_LISTED_DEPTH),
    ),
    TokenRule(
        "sale_disputed_in_doubt",
        "medium",
        SALE_SUBJECT,
        "One simulated sale went through, and another simulation could not show that people can sell it.",
        lambda evidence: evidence.simulations.sale_succeeded and evidence.simulations.is_sale_unproven,
        (*_BLOCKED, "onchain:simulation.explanation"),
    ),
    TokenRule(
        "no_liquidity",
        "high",
        "the pair's reserves",
        "The pair it trades in holds next to nothing, so a holder cannot sell: its liquidity was removed.",
        lambda evidence: evidence.trade.is_liquidity_removed,
        (*_PAIR_DEPTH, "onchain:simulation.pairEmpty", *_LISTED_DEPTH, *_BLOCKED),
    ),
    TokenRule(
        "cannot_sell_all",
        "high",
        "whether all of it can be sold at once",
        "A holder cannot sell the whole holding at once.",
        lambda evidence: evidence.flags.cannot_sell_all is True or evidence.simulations.must_keep_part,
        ("goplus:cannot_sell_all", "onchain:simulation.cannotSellAll"),
    ),
    TokenRule(
        "cannot_buy",
        "high",
        "whether it can be bought",
        "It cannot be bought on an exchange.",
        lambda evidence: evidence.flags.cannot_buy is True and evidence.flags.in_dex is not False,
        ("goplus:cannot_buy", "goplus:is_in_dex"),
    ),
    TokenRule(
        "cannot_buy_reward",
        "medium",
        "whether it can be bought",
        "It cannot be bought, and trades on no exchange, as with tokens that are only given out.",
        lambda evidence: evidence.flags.cannot_buy is True and evidence.flags.in_dex is False,
        ("goplus:cannot_buy", "goplus:is_in_dex"),
    ),
    TokenRule(
        "holders_cannot_sell",
        "critical",
        FAILED_SALES,
        "At least half of the holders at which a sale was simulated cannot sell.",
        lambda evidence: evidence.simulations.do_most_holders_fail,
        _FAILED_SALES,
        covered_by=("simulation_high_fail_rate",),
    ),
    TokenRule(
        "many_holders_cannot_sell",
        "high",
        FAILED_SALES,
        "At least a tenth of the holders at which a sale was simulated cannot sell.",
        _has_failed_share(SOME_FAILED),
        _FAILED_SALES,
        covered_by=("holders_cannot_sell", "simulation_high_fail_rate", "simulation_medium_fail_rate"),
    ),
    TokenRule(
        "some_holders_cannot_sell",
        "medium",
        FAILED_SALES,
        "Some of the holders at which a sale was simulated cannot sell.",
        _has_failed_share(FEW_FAILED, SOME_FAILED),
        _FAILED_SALES,
        covered_by=("simulation_high_fail_rate", "simulation_medium_fail_rate", "simulation_low_fail_rate"),
    ),
    TokenRule(
        "holders_siphoned",
        "critical",
        TAKEN_AWAY,
        "More than a tenth of the holders that were tried had it taken away.",
        lambda evidence: evidence.simulations.siphoned_percent > MANY_SIPHONED,
        _SIPHONED,
        covered_by=("simulation_high_siphon_rate",),
    ),
    TokenRule(
        "some_holders_siphoned",
        "high",
        TAKEN_AWAY,
        "Some of the holders that were tried had it taken away.",
        lambda evidence: evidence.simulations.siphoned_percent > 0,
        _SIPHONED,
        covered_by=("holders_siphoned", "simulation_high_siphon_rate", "simulation_medium_siphon_rate"),
    ),
    TokenRule(
        "holder_taxes_extreme",
        "critical",
        HOLDER_TAXES,
        "Its holders pay at least half of a sale on average.",
        lambda evidence: evidence.simulations.average_holder_tax >= HEAVY_TAX,
        _HOLDER_TAXES,
        covered_by=("simulation_extremely_high_taxes", "sell_tax_extreme"),
    ),
    TokenRule(
        "holder_taxes_high",
        "high",
        HOLDER_TAXES,
        "Its holders pay at least a fifth of a sale on average.",
        lambda evidence: evidence.simulations.average_holder_tax >= HIGH_TAX,
        _HOLDER_TAXES,
        covered_by=(
            "holder_taxes_extreme",
            "simulation_extremely_high_taxes",
            "simulation_high_tax",
            "sell_tax_extreme",
            "sell_tax_high",
        ),
    ),
    TokenRule(
        "some_holders_taxed_heavily",
        "medium",
        HOLDER_TAXES,
        "Some of its holders pay at least half of a sale.",
        _is_any_holder_taxed_heavily,
        _HOLDER_TAXES,
        covered_by=(
            "holder_taxes_extreme",
            "holder_taxes_high",
            "simulation_extremely_high_taxes",
            "sell_tax_extreme",
            "sell_tax_high",
        ),
    ),
    TokenRule(
        "sale_limit_tiny",
        "high",
        SELL_LIMITS,
        "At most {amount:.4g} % of the supply can be sold at once.",
        AmountRange(lambda evidence: evidence.simulations.max_sell_percent, 0, TINY_SALE_PERCENT),
        (*_LARGEST_SALE, "onchain:supply"),
    ),
    TokenRule(
        "sale_limit",
        "medium",
        SELL_LIMITS,
        "There is a largest amount that can be sold at once.",
        lambda evidence: evidence.simulations.is_sale_limited,
        _LARGEST_SALE,
        covered_by=("sale_limit_tiny",),
    ),
    TokenRule(
        "transfer_blocked",
        "medium",
        "blocked transfers",
        "It can be sold, and not be sent from one holder to another.",
        lambda evidence: evidence.simulations.is_transfer_blocked,
        ("onchain:simulation.transferBlocked",),
        covered_by=("simulation_transfer_blocked",),
    ),
    TokenRule(
        "trading_cooldown",
        "medium",
        "a pause between trades",
        "A holder must wait between two trades, which can keep a sale from happening in time.",
        lambda evidence: (
            evidence.flags.trading_cooldown is True
            or any(trade.result.cooldown is True for trade in evidence.simulations.trades)
        ),
        ("goplus:trading_cooldown", "onchain:simulation.cooldown"),
        "habit",
    ),
    TokenRule(
        "origin_check",
        "low",
        "a check of the transaction's sender",
        "It can be traded by the transaction's sender alone, so that contracts and smart wallets cannot.",
        lambda evidence: any(trade.result.origin_check is True for trade in evidence.simulations.trades),
        ("onchain:simulation.originCheck",),
        "habit",
    ),
)
