"""Rules for token risk: the whole table of flags, and a table of limits on their severity."""

from __future__ import annotations

from centgate.crypto.token.contract_rules import CONTRACT_RULES
from centgate.crypto.token.market_rules import MARKET_RULES
from centgate.crypto.token.sale_rules import SALE_RULES
from centgate.crypto.token.simulation_rules import SIMULATION_RULES
from centgate.crypto.token.tax_rules import TAX_RULES
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_rule import AmountRange, SeverityLimit, TokenRule

GAP_RULES: tuple[TokenRule, ...] = (
    # missing evidence
    TokenRule(
        "no_contract_analysis",
        "medium",
        "the contract's analysis",
        "No source has analysed enough of its contract, so what its owner can do is not known.",
        lambda evidence: not evidence.contract.is_analysed,
        ("goplus:result",),
        "gap",
    ),
    TokenRule(
        "not_simulated",
        "medium",
        "a simulated sale",
        "No source that was asked could simulate a sale on a pair with money.",
        lambda evidence: evidence.simulations.is_expected and not evidence.trade.has_sale_result,
        (
            "honeypotis:simulationSuccess",
            "honeypotis:simulationError",
            "honeypotis:pair.liquidity",
            "onchain:simulation.isHoneypot",
        ),
        "gap",
    ),
    TokenRule(
        "bytecode_only",
        "low",
        "what only source code shows",
        "Its contract is judged by its bytecode alone, which does not show every power.",
        lambda evidence: evidence.analysis is None and evidence.contract.is_bytecode_read,
        ("onchain:bytecode.isRead",),
        "gap",
    ),
)

MERIT_RULES: tuple[TokenRule, ...] = (
    TokenRule(
        "ownership_given_up",
        "info",
        "its owner",
        "Its ownership was given up, so no account can use an owner's powers.",
        lambda evidence: evidence.ownership.is_given_up,
        (
            *("goplus:owner_address", "goplus:hidden_owner", "goplus:can_take_back_ownership"),
            *("goplus:is_proxy", "onchain:owner.kind"),
        ),
    ),
    TokenRule(
        "liquidity_locked",
        "info",
        "locked liquidity",
        "{amount:.4g} % of its liquidity is locked or burned.",
        AmountRange(lambda evidence: evidence.lp_holders.locked_percent, 95),
        ("goplus:lp_holders", "onchain:liquidity.lockedPercent"),
    ),
    TokenRule(
        "well_known",
        "info",
        "lists of trusted tokens",
        "It is on a list of trusted tokens, or traded on a large exchange.",
        lambda evidence: evidence.flags.is_well_known,
        ("goplus:trust_list", "goplus:is_in_cex.listed"),
        "merit",
    ),
)


TOKEN_RULES: tuple[TokenRule, ...] = (
    *SALE_RULES,
    *TAX_RULES,
    *CONTRACT_RULES,
    *MARKET_RULES,
    *SIMULATION_RULES,
    *GAP_RULES,
    *MERIT_RULES,
)
"""The order decides among flags of the same severity."""

_CENTRALISED = "It is a well-known token, so this counts as centralised control."
_LISTED = "It is traded on a large exchange, so this counts as centralised control."


def _is_listed_only(evidence: TokenEvidence) -> bool:
    """True if a large exchange trades it and no list of trusted tokens has it: that proves less."""
    return evidence.flags.is_well_known and evidence.flags.trusted is not True


SEVERITY_LIMITS: tuple[SeverityLimit, ...] = (
    SeverityLimit(
        frozenset({"power"}),
        "info",
        lambda evidence: evidence.ownership.is_given_up,
        "Its ownership was given up, so no account can use this power.",
    ),
    SeverityLimit(
        frozenset({"lasting_power"}),
        "low",
        lambda evidence: evidence.ownership.is_given_up,
        "Its ownership was given up, so this can no longer be changed; what was set stays in force.",
    ),
    SeverityLimit(
        frozenset({"power", "lasting_power"}),
        "high",
        lambda evidence: evidence.ownership.is_shared,
        "Its owner is a Safe that needs several signatures.",
    ),
    SeverityLimit(
        frozenset({"power", "lasting_power", "code_power", "share"}),
        "low",
        lambda evidence: evidence.flags.trusted is True,
        _CENTRALISED,
    ),
    SeverityLimit(
        frozenset({"hidden_power"}),
        "medium",
        lambda evidence: evidence.flags.trusted is True,
        _CENTRALISED,
    ),
    SeverityLimit(
        frozenset({"power", "lasting_power", "code_power"}),
        "medium",
        _is_listed_only,
        _LISTED,
    ),
    SeverityLimit(
        frozenset({"habit"}),
        "low",
        lambda evidence: evidence.flags.trusted is True,
        "It is on a list of trusted tokens, which know this of it.",
    ),
    SeverityLimit(
        frozenset({"gap"}),
        "low",
        lambda evidence: evidence.flags.trusted is True,
        "It is on a list of trusted tokens, so this alone says little.",
    ),
)
"""Limits in this order; each later one applies only if it is lower."""
