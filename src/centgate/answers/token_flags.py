"""Fields of token-risk on its reasons: flags with their evidence, and the score."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from centgate.crypto.contract.contracts import SourceRegistry
from centgate.crypto.token.citations import Citation
from centgate.crypto.token.security import TokenSource
from centgate.crypto.token.token_rule import RULES_VERSION
from centgate.crypto.token.token_verdict import TokenVerdict, VerdictFlag
from centgate.schema import Data


class Evidence(Data):
    """A value that one source gave."""

    source: Literal[TokenSource, SourceRegistry]
    field: str = Field(description="The source's own name for the fact.")
    value: str | None = Field(
        description="Its value as the source gave it, as text; null when it gave none. Untrusted text."
    )


class RiskFlag(Data):
    """One reason for the risk level."""

    id: str = Field(description="Stable identifier of the reason, e.g. `sell_tax_high`.")
    severity: Literal["critical", "high", "medium", "low", "info"]
    explanation: str = Field(description="One sentence on what it means for a holder.")
    evidence: list[Evidence]
    rules_version: str = Field(description="Version of the rules that raised the flag, a date.")


class ScorePart(Data):
    """Points that one flag adds to the score."""

    flag_id: str = Field(description="`id` of the flag in `riskFlags`.")
    points: int = Field(description="Part of the score that this flag brings, of at most 100.")


class RiskScore(Data):
    """The risk level as a figure, with its parts."""

    score: int = Field(
        description="0 without a finding, 100 is the worst. Always within the band of `riskLevel`: low 0 to "
        "24, medium 25 to 49, high 50 to 74, critical 75 to 100. Not a probability."
    )
    parts: list[ScorePart] = Field(
        description="Their points add up to the score. The worst flag brings the start of its band, each "
        "further one 2 (low), 4 (medium), 7 (high) or 10 (critical) points, up to the end of the band."
    )
    rules_version: str = Field(description="Version of the rules and of these points, a date.")


def build_score(verdict: TokenVerdict) -> RiskScore | None:
    """Return the score with its parts; None if the level is unknown."""
    if verdict.score is None:
        return None
    return RiskScore(
        score=verdict.score.score,
        parts=[ScorePart(flag_id=part.flag_id, points=part.points) for part in verdict.score.parts],
        rules_version=RULES_VERSION,
    )


def build_flag(flag: VerdictFlag) -> RiskFlag:
    """Return a flag of the verdict, as a response has it."""
    return RiskFlag(
        id=flag.id,
        severity=flag.severity,
        explanation=flag.explanation,
        evidence=[build_evidence(each) for each in flag.evidence],
        rules_version=flag.rules_version,
    )


def build_evidence(cited: Citation) -> Evidence:
    """Return a cited value, as a response has it."""
    return Evidence(source=cited.source, field=cited.field, value=cited.value)
