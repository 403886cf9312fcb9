"""Rules on trades of a token: whether it can be sold, sales at real holders, taxes, simulation's flags."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_rule import SALE_SUBJECT, AmountRange, FlagSeverity, TokenRule
from centgate.crypto.token.trades import HONEYPOT_RISK, TaxName

SOME_FAILED, FEW_FAILED = 10.0, 1.0
"""Percent of the tried holders that cannot sell."""
MANY_SIPHONED = 10.0
"""Percent of the tried holders whose balance was taken away."""
HEAVY_TAX, HIGH_TAX = 50.0, 20.0
"""Percent of a holder's sale."""
TINY_SALE_PERCENT = 0.05
"""Percent of the supply below which a largest sale keeps a holding from being sold."""
FAILED_SALES, TAKEN_AWAY = "failed sales", "holdings taken away"
HOLDER_TAXES, SELL_LIMITS = "holders' taxes", "sell limits"
HOLDER_CHECKS = ", ".join((FAILED_SALES, TAKEN_AWAY, HOLDER_TAXES))
"""Checks that sales at holders make."""
_SIMULATION_FLAGS: tuple[tuple[str, FlagSeverity, str, str], ...] = (
    ("high_fail_rate", "critical", FAILED_SALES, "A very high share of its holders could not sell."),
    ("high_siphon_rate", "critical", TAKEN_AWAY, "It was taken away from very many holders."),
    (
        "effective_honeypot_low_sell_limit",
        "critical",
        SELL_LIMITS,
        "So little may be sold at once that it cannot be sold in effect.",
    ),
    ("extremely_low_sell_limit", "critical", SELL_LIMITS, "Extremely little of it may be sold at once."),
    ("low_sell_limit", "critical", SELL_LIMITS, "Very little of it may be sold at once."),
    ("extremely_high_taxes", "critical", HOLDER_TAXES, "More than half is taken when it is traded."),
    ("medium_siphon_rate", "high", TAKEN_AWAY, "It was taken away from many holders."),
    ("medium_fail_rate", "high", FAILED_SALES, "A high share of its holders could not sell."),
    ("high_tax", "high", HOLDER_TAXES, "More than 40 % is taken when it is traded."),
    ("low_fail_rate", "medium", FAILED_SALES, "Some of its holders could not sell."),
    ("transfer_blocked", "medium", "blocked transfers", "It could not be sent from one holder to another."),
    ("one_sell_per_block_limit", "medium", SELL_LIMITS, "It can be sold only once in each block."),
    ("medium_tax", "low", HOLDER_TAXES, "More than 21 % is taken when it is traded."),
    ("high_gas", "low", "gas", "Trading it costs a great deal of gas."),
)
"""Flags of the simulation (https://docs.honeypot.is): name, severity, subject, message."""
_OTHER_SEVERITIES: tuple[FlagSeverity, ...] = ("critical", "high", "medium", "low")
_DEFAULT_SEVERITY: FlagSeverity = "medium"
"""Severity of a flag that has none."""
_HANDLED_FLAGS = frozenset(
    {"closed_source", "medium_gas", "all_snipers_honeypot", "some_snipers_honeypot", "custom_token_info"}
    | {name for name, *_ in _SIMULATION_FLAGS}
)


def _has_simulation_flag(name: str) -> Callable[[TokenEvidence], bool]:
    """Return a condition: the simulation raised this flag, except for a tax that only encodes a failure."""
    about_tax = name.endswith(("_tax", "_taxes"))
    return lambda evidence: any(
        trade.result.has_any_flag(name) and not (about_tax and evidence.trade.is_sell_tax_placeholder(trade))
        for trade in evidence.simulations.trades
    )


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


def _has_other_flag(severity: FlagSeverity) -> Callable[[TokenEvidence], bool]:
    return lambda evidence: any(
        (flag.severity or _DEFAULT_SEVERITY) == severity and flag.name not in _HANDLED_FLAGS
        for flag in evidence.simulations.service_result.flags
    )


def _build_simulation_rules() -> Iterator[TokenRule]:
    cites = ("honeypotis:summary.flags",)
    for name, severity, check, message in _SIMULATION_FLAGS:
        yield TokenRule(f"simulation_{name}", severity, check, message, _has_simulation_flag(name), cites)
    for severity in _OTHER_SEVERITIES:
        message = f"The simulation raises a flag that these rules do not know, which counts as {severity}."
        yield TokenRule(
            f"simulation_other_{severity}", severity, "other flags", message, _has_other_flag(severity), cites
        )


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
TAX_FIELDS: Mapping[TaxName, tuple[str, str, str]] = {
    "buy_tax": ("goplus:buy_tax", "honeypotis:simulationResult.buyTax", "onchain:simulation.buyTax"),
    "sell_tax": ("goplus:sell_tax", "honeypotis:simulationResult.sellTax", "onchain:simulation.sellTax"),
    "transfer_tax": (
        "goplus:transfer_tax",
        "honeypotis:simulationResult.transferTax",
        "onchain:simulation.transferTax",
    ),
}
"""Fields of the sources that have a tax."""

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
        lambda evidence: evidence.flags.cannot_sell_all is True,
        ("goplus:cannot_sell_all",),
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

TAX_RULES: tuple[TokenRule, ...] = (
    # taxes
    TokenRule(
        "sell_tax_extreme",
        "critical",
        "the sell tax",
        "{amount:.4g} % of every sale is taken, so most of the money, or all of it, is lost.",
        AmountRange(lambda evidence: evidence.trade.sell_tax, 50),
        TAX_FIELDS["sell_tax"],
    ),
    TokenRule(
        "sell_tax_high",
        "high",
        "the sell tax",
        "{amount:.4g} % of every sale is taken.",
        AmountRange(lambda evidence: evidence.trade.sell_tax, 10, 50),
        TAX_FIELDS["sell_tax"],
    ),
    TokenRule(
        "sell_tax_medium",
        "medium",
        "the sell tax",
        "{amount:.4g} % of every sale is taken.",
        AmountRange(lambda evidence: evidence.trade.sell_tax, 5, 10),
        TAX_FIELDS["sell_tax"],
    ),
    TokenRule(
        "sell_tax_low",
        "low",
        "the sell tax",
        "{amount:.4g} % of every sale is taken.",
        AmountRange(lambda evidence: evidence.trade.sell_tax, 0.01, 5),
        TAX_FIELDS["sell_tax"],
    ),
    TokenRule(
        "sell_tax_unreadable",
        "high",
        "the sell tax",
        "The only sell tax reported is impossible, so how much of a sale is taken is not known.",
        lambda evidence: evidence.trade.has_invalid_sell_tax and evidence.trade.sell_tax is None,
        TAX_FIELDS["sell_tax"],
    ),
    TokenRule(
        "sell_tax_in_doubt",
        "medium",
        "the sell tax",
        "One of the reported sell taxes is impossible, so the other may be incomplete.",
        lambda evidence: evidence.trade.has_invalid_sell_tax and evidence.trade.sell_tax is not None,
        TAX_FIELDS["sell_tax"],
    ),
    TokenRule(
        "buy_tax_high",
        "high",
        "the buy tax",
        "{amount:.4g} % of every purchase is taken.",
        AmountRange(lambda evidence: evidence.trade.buy_tax, 10),
        TAX_FIELDS["buy_tax"],
    ),
    TokenRule(
        "buy_tax_medium",
        "medium",
        "the buy tax",
        "{amount:.4g} % of every purchase is taken.",
        AmountRange(lambda evidence: evidence.trade.buy_tax, 5, 10),
        TAX_FIELDS["buy_tax"],
    ),
    TokenRule(
        "buy_tax_low",
        "low",
        "the buy tax",
        "{amount:.4g} % of every purchase is taken.",
        AmountRange(lambda evidence: evidence.trade.buy_tax, 0.01, 5),
        TAX_FIELDS["buy_tax"],
    ),
    TokenRule(
        "transfer_tax_high",
        "high",
        "the transfer tax",
        "{amount:.4g} % is taken when it is sent from one holder to another.",
        AmountRange(lambda evidence: evidence.trade.transfer_tax, 10),
        TAX_FIELDS["transfer_tax"],
    ),
    TokenRule(
        "transfer_tax",
        "medium",
        "the transfer tax",
        "{amount:.4g} % is taken when it is sent from one holder to another.",
        AmountRange(lambda evidence: evidence.trade.transfer_tax, 0.01, 10),
        TAX_FIELDS["transfer_tax"],
        "habit",
    ),
)

SIMULATION_RULES: tuple[TokenRule, ...] = (
    # other results of the simulation
    *_build_simulation_rules(),
    TokenRule(
        "simulation_risk",
        "high",
        "the simulation's own rating",
        "The simulation rates its risk at {amount:.0f} of 100.",
        AmountRange(
            lambda evidence: evidence.simulations.service_risk,
            60,
            HONEYPOT_RISK,
            unit="of 100",
        ),
        ("honeypotis:summary.riskLevel", "honeypotis:summary.risk"),
    ),
)
