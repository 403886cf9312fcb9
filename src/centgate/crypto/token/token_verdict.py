"""Evaluate the token rules: risk level, score, and flags with citations.

The level is that of the worst flag after the adjustments. A missing fact neither raises nor lowers a flag: it
is in the warnings, among the checks that were not made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from centgate.crypto.token.citations import Citation, cite_field, list_evidence_fields
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_rule import RULES_VERSION, SEVERITY_RANK, FlagSeverity, TokenRule
from centgate.crypto.token.token_rules import SEVERITY_LIMITS, TOKEN_RULES
from centgate.crypto.token.token_warnings import collect_warnings

RiskLevel = Literal["critical", "high", "medium", "low", "unknown"]
SCORE_BANDS: dict[FlagSeverity, tuple[int, int]] = {
    "info": (0, 24),
    "low": (0, 24),
    "medium": (25, 49),
    "high": (50, 74),
    "critical": (75, 100),
}
"""Scores of a level, lowest and highest, by the severity of its worst flag."""
FLAG_POINTS: dict[FlagSeverity, int] = {"info": 0, "low": 2, "medium": 4, "high": 7, "critical": 10}
"""Points of each flag within its band."""


class VerdictFlag(Struct, frozen=True):
    """A reason for the risk level."""

    id: str
    severity: FlagSeverity
    explanation: str
    evidence: tuple[Citation, ...]
    rules_version: str = RULES_VERSION


class FlagScore(Struct, frozen=True):
    """Points that one flag adds to the score."""

    flag_id: str
    points: int


class TokenScore(Struct, frozen=True):
    """Figure within the band of a risk level: 0 without a finding, 100 is the worst."""

    score: int
    parts: tuple[FlagScore, ...]
    """In the order of the flags; their points add up to the score."""


class TokenVerdict(Struct, frozen=True):
    """The risk level of a token, its flags (the worst first), and the warnings."""

    level: RiskLevel
    flags: tuple[VerdictFlag, ...]
    warnings: tuple[str, ...]
    score: TokenScore | None = None
    """None if the level is `unknown`."""


def evaluate_token(evidence: TokenEvidence) -> TokenVerdict:
    """Apply the rules to the evidence."""
    flags = sorted(raise_flags(evidence), key=lambda flag: -SEVERITY_RANK[flag.severity])
    level = overall_level(evidence, flags)
    return TokenVerdict(
        level,
        tuple(flags),
        tuple(collect_warnings(evidence)),
        None if level == "unknown" else rate_flags(flags),
    )


def rate_flags(flags: Sequence[VerdictFlag]) -> TokenScore:
    """Return the score of flags that are ordered by severity, the worst first.

    The worst flag sets the band: low is 0 to 24, medium 25 to 49, high 50 to 74, critical 75 to 100. Each
    further flag adds points, up to the end of the band.
    """
    if not flags:
        return TokenScore(0, ())
    lowest, highest = SCORE_BANDS[flags[0].severity]
    parts: list[FlagScore] = []
    for number, flag in enumerate(flags):
        points = FLAG_POINTS[flag.severity] + (lowest if number == 0 else 0)
        rest = highest - sum(part.points for part in parts)
        parts.append(FlagScore(flag.id, min(points, rest)))
    return TokenScore(sum(part.points for part in parts), tuple(parts))


def overall_level(evidence: TokenEvidence, flags: Sequence[VerdictFlag]) -> RiskLevel:
    """Return the level of the worst flag; `unknown` if the evidence is too thin to rate it mild."""
    if (
        evidence.analysis is None
        and not evidence.simulations.trades
        and not evidence.contract.is_bytecode_read
    ):
        return "unknown"
    worst = max((SEVERITY_RANK[flag.severity] for flag in flags), default=0)
    significant = SEVERITY_RANK["medium"] if evidence.contract.is_analysed else SEVERITY_RANK["high"]
    if worst < significant and not _can_rate_mild(evidence):
        return "unknown"
    levels: tuple[RiskLevel, ...] = ("low", "low", "medium", "high", "critical")
    return levels[worst]


def _can_rate_mild(evidence: TokenEvidence) -> bool:
    return (
        evidence.flags.trusted is True
        or evidence.simulations.sale_succeeded
        or (evidence.contract.is_analysed and evidence.trade.is_honeypot is not None)
    )


def raise_flags(evidence: TokenEvidence) -> list[VerdictFlag]:
    """Return one adjusted flag per rule that applies and is not covered by another."""
    applying = {rule.id: rule for rule in TOKEN_RULES if rule.condition(evidence)}
    flags = [
        _build_flag(evidence, rule)
        for rule in applying.values()
        if not any(covering in applying for covering in rule.covered_by)
    ]
    if any(SEVERITY_RANK[flag.severity] >= SEVERITY_RANK["high"] for flag in flags):
        return [_raise_serial_creator(flag) for flag in flags]
    return flags


def _build_flag(evidence: TokenEvidence, rule: TokenRule) -> VerdictFlag:
    severity, message = rule.severity, rule.explain(evidence)
    for each in SEVERITY_LIMITS:
        if (
            rule.kind in each.kinds
            and SEVERITY_RANK[each.max_severity] < SEVERITY_RANK[severity]
            and each.condition(evidence)
        ):
            severity, message = each.max_severity, f"{message} {each.message}"
    return VerdictFlag(rule.id, severity, message, _cite_rule(evidence, rule))


def _raise_serial_creator(flag: VerdictFlag) -> VerdictFlag:
    """Raise `serial_creator` to high when another flag is at least high."""
    if flag.id != "serial_creator":
        return flag
    return replace(flag, severity="high", explanation=f"{flag.explanation} Other findings here are serious.")


def _cite_rule(evidence: TokenEvidence, rule: TokenRule) -> tuple[Citation, ...]:
    """Cite the sources' values for a rule; without any value, its first field."""
    citations = [each for name in list_evidence_fields(rule) for each in cite_field(evidence, name)]
    return tuple(each for each in citations if each.value is not None) or tuple(citations[:1])
