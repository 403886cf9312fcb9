"""Verdict on one approval, what to do about it, and the value at risk in all of them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from centgate.crypto.approvals.approval_evidence import PERMIT2, ApprovalEvidence
from centgate.crypto.approvals.approval_rules import (
    APPROVAL_RULES,
    SEVERITY_ORDER,
    ApprovalRule,
    ApprovalSeverity,
    RuleFinding,
)

ApprovalAction = Literal["revoke", "review"]


class ApprovalVerdict(Struct, frozen=True):
    """Result of the rules for one approval."""

    evidence: ApprovalEvidence
    findings: tuple[RuleFinding, ...]
    severity: ApprovalSeverity
    """Severity of the worst finding, one level lower while nothing can be taken."""

    @property
    def is_dangerous(self) -> bool:
        """True if any finding is a danger, even if the wallet holds none of the token."""
        return any(finding.severity == "danger" for finding in self.findings)

    @property
    def priority_group(self) -> int:
        """Sort group: 0 danger, 1 unlimited and stale, 2 unlimited, 3 stale, 4 rest."""
        if self.is_dangerous:
            return 0
        unlimited, stale = bool(self.evidence.is_unlimited), bool(self.evidence.is_stale)
        return 1 if unlimited and stale else 2 if unlimited else 3 if stale else 4

    @property
    def sort_key(self) -> tuple[int, int, float, str, str, str]:
        """Sort key, the most urgent first, then the most dollars at risk; unique within a wallet."""
        evidence = self.evidence
        severity = SEVERITY_ORDER[self.severity]
        return self.priority_group, severity, -(evidence.exposed_usd or 0), *evidence.entry.key


def order_valued_first(evidence: Iterable[ApprovalEvidence]) -> list[ApprovalEvidence]:
    """Order approvals for reading: those of known value first, then the most urgent.

    So tokens that a stranger made by the hundreds displace none that is worth something.
    """
    return sorted(evidence, key=lambda each: (not each.has_known_value, evaluate_approval(each).sort_key))


def select_verdicts(verdicts: Sequence[ApprovalVerdict], limit: int) -> list[ApprovalVerdict]:
    """Return at most `limit` verdicts in their order; those of known value are kept before others."""
    places = sorted(range(len(verdicts)), key=lambda place: not verdicts[place].evidence.has_known_value)
    return [verdicts[place] for place in sorted(places[:limit])]


class ApprovalAdvice(Struct, frozen=True):
    """Recommended action for an approval, with the reason as a sentence."""

    action: ApprovalAction
    reason: str


def evaluate_approval(evidence: ApprovalEvidence) -> ApprovalVerdict:
    """Apply every rule to an approval; findings are sorted, the worst first."""
    findings = [finding for rule in APPROVAL_RULES if (finding := _apply_rule(rule, evidence))]
    findings.sort(key=lambda finding: SEVERITY_ORDER[finding.severity])
    worst = findings[0].severity if findings else "info"
    severity = worst if evidence.is_usable else lower_severity(worst)
    return ApprovalVerdict(evidence, tuple(findings), severity)


def _apply_rule(rule: ApprovalRule, evidence: ApprovalEvidence) -> RuleFinding | None:
    signal = rule.detect(evidence)
    if signal is None:
        return None
    is_lowered = rule.is_lower_if_trusted and evidence.is_trusted
    severity = lower_severity(rule.severity) if is_lowered else rule.severity
    return RuleFinding(rule.id, severity, rule.explanation, signal.source, signal.value)


def lower_severity(severity: ApprovalSeverity) -> ApprovalSeverity:
    """Return the next lower severity."""
    return "warning" if severity == "danger" else "info"


def recommend_action(verdict: ApprovalVerdict) -> ApprovalAdvice | None:
    """Return the recommended action; None if nothing needs attention."""
    if verdict.is_dangerous:
        suffix = " The allowance is unlimited." if verdict.evidence.is_unlimited else ""
        return ApprovalAdvice("revoke", verdict.findings[0].explanation + suffix)
    spender, group = verdict.evidence.entry.spender, verdict.priority_group
    if spender.address == PERMIT2 and group < 4:
        return ApprovalAdvice(
            "review", "Granted to Permit2: keep it only while you use applications that need it."
        )
    match group:
        case 1:
            action = "review" if verdict.evidence.is_trusted else "revoke"
            return ApprovalAdvice(action, "Unlimited, and unchanged for more than 180 days.")
        case 2:
            return ApprovalAdvice("review", "Unlimited: lower it to what is needed, or revoke it when done.")
        case 3:
            return ApprovalAdvice(
                "review", "Unchanged for more than 180 days: revoke it unless it is still in use."
            )
        case _:
            worst = verdict.findings[0] if verdict.findings else None
            return (
                ApprovalAdvice("review", worst.explanation) if worst and worst.severity == "warning" else None
            )


class TotalExposure(Struct, frozen=True):
    """Value that all spenders together could take of a wallet now."""

    usd: float | None
    """In US dollars, each token at most its balance; None if no exposed token has a price."""
    unpriced_tokens: int
    """Tokens that could be taken and whose value is unknown."""


def total_exposure(verdicts: Sequence[ApprovalVerdict]) -> TotalExposure:
    """Add up what could be taken; several approvals of a token expose its balance once."""
    by_token: dict[str, list[ApprovalEvidence]] = {}
    for verdict in verdicts:
        if verdict.evidence.exposed_amount != 0:
            by_token.setdefault(verdict.evidence.entry.token.address, []).append(verdict.evidence)
    values = [_value_exposed(evidence) for evidence in by_token.values()]
    known = [value for value in values if value is not None]
    return TotalExposure(sum(known) if known or not values else None, len(values) - len(known))


def _value_exposed(evidence: Sequence[ApprovalEvidence]) -> float | None:
    """Return the value at risk of one token.

    None if an approval's amount at risk is unknown, unless the others expose the whole balance. Grants inside
    Permit2 share what Permit2 itself may take.
    """
    direct = [each.exposed_amount for each in evidence if not each.is_grant]
    granted = [each.exposed_amount for each in evidence if each.is_grant]
    known = sum(amount for amount in direct if amount is not None)
    limit = next((each.permit2_limit for each in evidence if each.is_grant), None)
    grants = sum(amount for amount in granted if amount is not None)
    known += grants if limit is None else min(grants, limit)
    holding = evidence[0].holding
    if holding is None or (known < holding and None in (*direct, *granted)):
        return None
    return evidence[0].value_units(min(holding, known))
