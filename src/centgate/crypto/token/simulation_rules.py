"""Rules on the flags and the rating of the simulation service."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_rule import (
    FAILED_SALES,
    HOLDER_TAXES,
    SELL_LIMITS,
    TAKEN_AWAY,
    AmountRange,
    FlagSeverity,
    TokenRule,
)
from centgate.crypto.token.trades import HONEYPOT_RISK

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
