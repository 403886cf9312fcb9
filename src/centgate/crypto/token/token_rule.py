"""Row of the table of token rules. No I/O."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from centgate.crypto.token.token_evidence import TokenEvidence

RULES_VERSION = "2026-12-01"
"""Changes with every rule change. A date."""

FlagSeverity = Literal["info", "low", "medium", "high", "critical"]
FlagKind = Literal[
    "power", "lasting_power", "hidden_power", "code_power", "share", "habit", "gap", "merit", "other"
]
"""`code_power`: power over the code, which others than the owner may have; `habit`: how it behaves when it is
moved; `gap`: something is not known; `merit`: only speaks for it."""
SEVERITY_RANK: dict[FlagSeverity, int] = {"info": 0, "low": 1, "medium": 2, "high": 3, "critical": 4}
SALE_SUBJECT = "whether it can be sold"
FAILED_SALES, TAKEN_AWAY = "failed sales", "holdings taken away"
HOLDER_TAXES, SELL_LIMITS = "holders' taxes", "sell limits"
HOLDER_CHECKS = ", ".join((FAILED_SALES, TAKEN_AWAY, HOLDER_TAXES))
"""Checks that sales at holders make."""


class AmountRange(Struct, frozen=True):
    """Condition of a rule: an amount is known and `minimum <= amount < below`."""

    read: Callable[[TokenEvidence], float | None]
    minimum: float
    below: float = math.inf
    unit: str = "%"

    def __call__(self, evidence: TokenEvidence) -> bool:
        amount = self.read(evidence)
        return amount is not None and self.minimum <= amount < self.below

    def __str__(self) -> str:
        if math.isinf(self.below):
            return f"{self._format(self.minimum)} or more"
        end = f"under {self._format(self.below)}"
        return f"{self._format(self.minimum)} to {end}" if self.minimum else end

    def _format(self, amount: float) -> str:
        return f"${amount:,.0f}" if self.unit == "$" else f"{amount:g} {self.unit}"


class TokenRule(Struct, frozen=True):
    """One row of the table.

    The message is a sentence, in which `{amount}` is the amount of the condition, an `AmountRange`. The
    evidence fields are `<source>:<field>` (`goplus:is_mintable`, `honeypotis:simulationResult.sellTax`,
    `onchain:simulation.isHoneypot`, `liquidity:...`, `registries:...`), the decisive one first; a flag that
    the bytecode tells is cited from there as well. The subject is worded to complete "not checked: ...".
    """

    id: str
    severity: FlagSeverity
    subject: str
    message: str
    condition: Callable[[TokenEvidence], bool]
    evidence_fields: tuple[str, ...]
    kind: FlagKind = "other"
    covered_by: tuple[str, ...] = ()
    """Rules that say the same and more: if one of them applies, this one does not."""

    @property
    def threshold(self) -> str:
        """The amounts for which it applies, in words; empty for a rule without one."""
        return str(self.condition) if isinstance(self.condition, AmountRange) else ""

    def explain(self, evidence: TokenEvidence) -> str:
        """Return the message with the amount that the condition reads."""
        if not isinstance(self.condition, AmountRange):
            return self.message
        return self.message.format(amount=self.condition.read(evidence))


class SeverityLimit(Struct, frozen=True):
    """Limit on the severity of some kinds of flags, with the reason as a sentence."""

    kinds: frozenset[FlagKind]
    max_severity: FlagSeverity
    condition: Callable[[TokenEvidence], bool]
    message: str
