"""Rules for approval risk: findings, severity and recommendation for one approval. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from centgate.crypto.approvals.exploited_spenders import EXPLOITED_SPENDERS
from centgate.crypto.approvals.reported import UNLIMITED_ALLOWANCE, ReportedApproval, SpenderAccountKind
from centgate.crypto.wallet.known_tokens import find_known_token
from centgate.crypto.wallet.wallets import to_whole_units, usd_value

RULES_VERSION = "2026-11-28"

ApprovalSeverity = Literal["danger", "warning", "info"]
ApprovalFindingSource = Literal["goplus", "rpc", "etherscan", "centgate"]
"""`centgate`: an address list in these rules."""
ApprovalFindingId = Literal[
    "malicious_spender",
    "malicious_token",
    "exploited_spender",
    "doubtful_spender",
    "spender_is_wallet",
    "spender_has_no_code",
    "spender_unverified",
    "spender_young",
    "spender_hides",
    "unlimited",
    "stale",
    "permit2",
    "permit2_grant",
    "expires_late",
    "nothing_held",
    "not_usable",
    "unread",
]
ApprovalAction = Literal["revoke", "review"]
SEVERITY_ORDER: dict[ApprovalSeverity, int] = {"danger": 0, "warning": 1, "info": 2}

PERMIT2 = "0x000000000022d473030f116ddee9f6b43ac78ba3"
"""Moves tokens for any holder of the owner's signature; has the same address on every chain."""
CAPPED_AT_UINT96 = frozenset(
    {
        (1, "0x1f9840a85d5af5bf1d1762f925bdaddc4201f984"),  # UNI
        (1, "0xc00e94cb662c3520282e6f5717214004a7f26888"),  # COMP
    }
)
"""Tokens that store an unlimited allowance as the largest 96-bit number."""
_ZERO_PADDED = re.compile("0x0000.*0000")
DAY_SECONDS = 86_400
DOUBTFUL_AMOUNT = 2**96
"""Amount in base units from which one that only an index lists may exceed a supply that was not read."""
STALE_DAYS = 180
YOUNG_DAYS = 30
LATE_DAYS = 365
"""A grant inside Permit2 that ends later is as good as one without end."""


@dataclass(frozen=True, slots=True)
class ApprovalEvidence:
    """All evidence about one approval. None: could not be read from the chain."""

    entry: ReportedApproval
    chain_id: int
    now: int
    """Seconds since 1970."""
    allowance: int | None = None
    """The current on-chain value, in base units, like `balance` and `supply`."""
    balance: int | None = None
    supply: int | None = None
    kind: SpenderAccountKind | None = None
    """Kind of account at the spender's address, read from the chain."""
    expires_at: int | None = None
    """End of a grant inside Permit2 as the chain has it, in seconds since 1970."""
    permit2_limit: int | None = None
    """What Permit2 itself may take of the token, in base units; only for a grant inside Permit2."""
    decimals: int | None = None
    price_usd: float | None = None
    """Price of one unit of the token, None also if it is doubtful."""

    @property
    def amount(self) -> int | None:
        """Amount in base units: the chain's, else the source's."""
        return self.entry.amount if self.allowance is None else self.allowance

    @property
    def is_unlimited(self) -> bool | None:
        """True if it exceeds anything the wallet could ever hold; None if unknown."""
        amount = self.amount
        if self.allowance is None and self.entry.unlimited:
            return True
        is_doubtful = self.allowance is None and self.supply is None and (amount or 0) >= DOUBTFUL_AMOUNT
        if amount is None or (is_doubtful and amount < self._max_amount):
            return None
        return amount >= self._max_amount or 0 < (self.supply or 0) < amount

    @property
    def _max_amount(self) -> int:
        token, spender = self.entry.pair
        if (self.chain_id, token) in CAPPED_AT_UINT96:
            return 2**96 - 1
        return 2**160 - 1 if spender == PERMIT2 or self.is_grant else 2**255

    @property
    def is_grant(self) -> bool:
        """True if it was given inside Permit2."""
        return self.entry.mechanism == "permit2"

    @property
    def end_time(self) -> int | None:
        """End of a grant in seconds since 1970: the chain's, else the event's."""
        return self.entry.expires_at if self.expires_at is None else self.expires_at

    @property
    def is_trusted(self) -> bool:
        """True if a source lists the spender as well known, and the chain does not show a plain wallet.

        Lists name contracts; what has no code of its own can change hands with its key.
        """
        return bool(self.entry.spender.trusted) and self.kind in (None, "contract")

    @property
    def has_known_value(self) -> bool:
        """True for a well-known token, and for one with a price of which something can be taken.

        Anyone can make other tokens, and approvals of them in any wallet's name.
        """
        token = self.entry.token.address
        return find_known_token(self.chain_id, token) is not None or bool(self.exposed_usd)

    @property
    def is_usable(self) -> bool:
        """False if nothing can be taken now: nothing is held, or Permit2 may take none of it."""
        return self.balance != 0 and not (self.is_grant and self.permit2_limit == 0)

    @property
    def is_stale(self) -> bool | None:
        """True if the latest change is more than STALE_DAYS ago; None if its time is unknown."""
        changed = self.entry.changed_at
        return None if changed is None else self.now - changed > STALE_DAYS * DAY_SECONDS

    @property
    def is_contract(self) -> bool | None:
        """True if the spender runs code of its own: by the chain, else by the source."""
        return self.entry.spender.is_contract if self.kind is None else self.kind == "contract"

    @property
    def exposed_amount(self) -> int | None:
        """Amount at risk now, in base units; None if the balance or the amount is unknown."""
        amount = UNLIMITED_ALLOWANCE if self.is_unlimited else self.amount
        limits = [amount, self.balance, *([self.permit2_limit] if self.is_grant else [])]
        known = [each for each in limits if each is not None]
        return min(known) if len(known) == len(limits) else None

    @property
    def exposed_usd(self) -> float | None:
        """Value at risk now, in US dollars; None if the amount, the decimals or the price are unknown."""
        return self.value_units(self.exposed_amount)

    def value_units(self, units: int | None) -> float | None:
        """Return the value of an amount of the token in base units, in US dollars; None if unknown."""
        if self.price_usd is None:
            return None
        return usd_value(to_whole_units(units, self.decimals), self.price_usd)

    @property
    def amounts_differ(self) -> bool:
        """True if an index lists another amount than the chain has, by more than 1 %."""
        live, listed = self.allowance, self.entry
        if live is None or listed.source != "goplus":
            return False
        if listed.unlimited:
            return not self.is_unlimited
        return listed.amount is not None and abs(live - listed.amount) * 100 > max(live, listed.amount)

    @property
    def kinds_differ(self) -> bool:
        """True if index and chain disagree on the spender being a contract."""
        listed = self.entry.spender.is_contract
        return self.kind is not None and listed is not None and listed != self.is_contract


@dataclass(frozen=True, slots=True)
class Signal:
    """The value that triggered a rule, with its source."""

    source: ApprovalFindingSource
    value: str | None


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """One reason to look at an approval."""

    id: ApprovalFindingId
    severity: ApprovalSeverity
    explanation: str
    source: ApprovalFindingSource
    value: str | None


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """A signal to detect, its severity and its meaning as a sentence."""

    id: ApprovalFindingId
    severity: ApprovalSeverity
    explanation: str
    detect: Callable[[ApprovalEvidence], Signal | None]
    is_lower_if_trusted: bool = True
    """True if the severity is one level lower for a spender that the source lists as well known."""


def _detect_misconduct_reports(evidence: ApprovalEvidence) -> Signal | None:
    reports = evidence.entry.spender.misconduct
    return Signal("goplus", ", ".join(reports)) if reports else None


def _detect_malicious_token(evidence: ApprovalEvidence) -> Signal | None:
    token = evidence.entry.token
    if not (token.malicious or token.misconduct):
        return None
    return Signal("goplus", ", ".join(token.misconduct) or "malicious_address 1")


def _detect_exploit_incident(evidence: ApprovalEvidence) -> Signal | None:
    incident = EXPLOITED_SPENDERS.get((evidence.chain_id, evidence.entry.spender.address))
    return Signal("centgate", incident) if incident else None


def _detect_zero_padded_address(evidence: ApprovalEvidence) -> Signal | None:
    spender = evidence.entry.spender.address
    return Signal("centgate", spender) if _ZERO_PADDED.fullmatch(spender) else None


def _detect_doubt_list(evidence: ApprovalEvidence) -> Signal | None:
    return Signal("goplus", "doubt_list 1") if evidence.entry.spender.is_doubtful else None


def _detect_wallet_spender(evidence: ApprovalEvidence) -> Signal | None:
    if evidence.kind is None:
        return Signal("goplus", "is_contract 0") if evidence.entry.spender.is_contract is False else None
    if evidence.kind == "delegated":
        return Signal("rpc", "a delegation (0xef0100) for code")
    return Signal("rpc", "no code") if evidence.kind == "wallet" else None


def _detect_unused_spender(evidence: ApprovalEvidence) -> Signal | None:
    return Signal("rpc", "no code, nonce 0") if evidence.kind == "unused" else None


def _detect_unlimited_amount(evidence: ApprovalEvidence) -> Signal | None:
    if not evidence.is_unlimited:
        return None
    if evidence.allowance is not None:
        return Signal("rpc", str(evidence.allowance))
    return Signal(evidence.entry.source, evidence.entry.amount_text)


def _detect_unlimited_elsewhere(evidence: ApprovalEvidence) -> Signal | None:
    return _detect_unlimited_amount(evidence) if evidence.entry.spender.address != PERMIT2 else None


def _detect_unlimited_for_permit2(evidence: ApprovalEvidence) -> Signal | None:
    return _detect_unlimited_amount(evidence) if evidence.entry.spender.address == PERMIT2 else None


def _detect_stale_approval(evidence: ApprovalEvidence) -> Signal | None:
    return Signal(evidence.entry.source, str(evidence.entry.changed_at)) if evidence.is_stale else None


def _detect_stale_and_unlimited(evidence: ApprovalEvidence) -> Signal | None:
    return _detect_stale_approval(evidence) if _detect_unlimited_elsewhere(evidence) else None


def _detect_stale_and_bounded(evidence: ApprovalEvidence) -> Signal | None:
    return _detect_stale_approval(evidence) if not _detect_unlimited_elsewhere(evidence) else None


def _detect_unverified_source(evidence: ApprovalEvidence) -> Signal | None:
    return Signal("goplus", "is_open_source 0") if evidence.entry.spender.source_verified is False else None


def _detect_young_contract(evidence: ApprovalEvidence) -> Signal | None:
    deployed = evidence.entry.spender.deployed_at
    young = deployed is not None and evidence.now - deployed < YOUNG_DAYS * DAY_SECONDS
    return Signal("goplus", str(deployed)) if young else None


def _detect_permit2_spender(evidence: ApprovalEvidence) -> Signal | None:
    return Signal("centgate", PERMIT2) if evidence.entry.spender.address == PERMIT2 else None


def _detect_grant(evidence: ApprovalEvidence) -> Signal | None:
    return Signal("rpc", str(evidence.end_time)) if evidence.is_grant else None


def _detect_late_end(evidence: ApprovalEvidence) -> Signal | None:
    end = evidence.end_time if evidence.is_grant else None
    is_late = end is not None and end - evidence.now > LATE_DAYS * DAY_SECONDS
    return Signal("rpc", str(end)) if is_late else None


def _detect_zero_balance(evidence: ApprovalEvidence) -> Signal | None:
    return Signal("rpc", "0") if evidence.balance == 0 else None


def _detect_unusable_grant(evidence: ApprovalEvidence) -> Signal | None:
    return Signal("rpc", "0") if evidence.is_grant and evidence.permit2_limit == 0 else None


def _detect_unread_values(evidence: ApprovalEvidence) -> Signal | None:
    # the supply adds nothing to an approval that is unlimited anyway
    supply = evidence.supply if evidence.supply is not None or not evidence.is_unlimited else 0
    read = {
        "allowance": evidence.allowance,
        "balance": evidence.balance,
        "total supply": supply,
        "the spender's code": evidence.kind,
        **({"Permit2's allowance": evidence.permit2_limit} if evidence.is_grant else {}),
    }
    missing = [name for name, value in read.items() if value is None]
    return Signal("rpc", ", ".join(missing)) if missing else None


def _detect_partly_unread(evidence: ApprovalEvidence) -> Signal | None:
    return _detect_unread_values(evidence) if evidence.is_unlimited is not None else None


def _detect_unknown_amount(evidence: ApprovalEvidence) -> Signal | None:
    return _detect_unread_values(evidence) if evidence.is_unlimited is None else None


APPROVAL_RULES: tuple[ApprovalRule, ...] = (
    ApprovalRule(
        "malicious_spender",
        "danger",
        "The spender is reported for wrongdoing.",
        _detect_misconduct_reports,
        is_lower_if_trusted=False,
    ),
    ApprovalRule(
        "malicious_token",
        "danger",
        "The token is reported as malicious.",
        _detect_malicious_token,
        is_lower_if_trusted=False,
    ),
    ApprovalRule(
        "exploited_spender",
        "danger",
        "Approved tokens were stolen through this address before.",
        _detect_exploit_incident,
        is_lower_if_trusted=False,
    ),
    ApprovalRule(
        "doubtful_spender", "danger", "The spender is on a list of suspicious addresses.", _detect_doubt_list
    ),
    ApprovalRule(
        "spender_is_wallet",
        "danger",
        "The spender is a wallet, not a contract: the holder of its key can take the tokens at any time.",
        _detect_wallet_spender,
    ),
    ApprovalRule(
        "spender_has_no_code",
        "danger",
        "The spender has no code and has sent no transaction: an unused wallet, or a contract not yet there.",
        _detect_unused_spender,
    ),
    ApprovalRule(
        "unlimited",
        "warning",
        "The spender may take all of this token that the wallet ever holds.",
        _detect_unlimited_elsewhere,
    ),
    ApprovalRule(
        "unlimited",
        "info",
        "Unlimited, as is usual for Permit2, which moves tokens only on the owner's signature.",
        _detect_unlimited_for_permit2,
    ),
    ApprovalRule(
        "spender_unverified",
        "warning",
        "The spender's source code is not published, so what it does cannot be read.",
        _detect_unverified_source,
    ),
    ApprovalRule(
        "spender_hides",
        "warning",
        "The spender's address begins and ends with zeros, so that it looks empty where it is shortened.",
        _detect_zero_padded_address,
    ),
    ApprovalRule(
        "spender_young", "warning", "The spender was deployed less than 30 days ago.", _detect_young_contract
    ),
    ApprovalRule(
        "stale",
        "warning",
        "The unlimited approval has not changed for more than 180 days.",
        _detect_stale_and_unlimited,
    ),
    ApprovalRule(
        "stale", "info", "The approval has not changed for more than 180 days.", _detect_stale_and_bounded
    ),
    ApprovalRule(
        "permit2",
        "info",
        "Permit2 passes this on to any spender that the owner signs for: grants on the chain are listed, and "
        "signatures that were not used yet leave no trace.",
        _detect_permit2_spender,
    ),
    ApprovalRule(
        "permit2_grant",
        "info",
        "Granted inside Permit2, through which the spender takes the tokens until the grant ends.",
        _detect_grant,
    ),
    ApprovalRule(
        "expires_late",
        "warning",
        "The grant ends more than a year from now.",
        _detect_late_end,
    ),
    ApprovalRule(
        "nothing_held",
        "info",
        "The wallet holds none of this token now, which lowers the severity; later deposits are exposed.",
        _detect_zero_balance,
    ),
    ApprovalRule(
        "not_usable",
        "info",
        "Permit2 may take none of this token now, which lowers the severity; a new approval of Permit2 "
        "exposes it again.",
        _detect_unusable_grant,
    ),
    ApprovalRule(
        "unread",
        "warning",
        "Whether it is unlimited is not known: its amount, or the supply of the token, could not be read.",
        _detect_unknown_amount,
        is_lower_if_trusted=False,
    ),
    ApprovalRule(
        "unread",
        "info",
        "Not everything could be read from the chain, so this may look safer than it is.",
        _detect_partly_unread,
    ),
)
"""Severities follow GoPlus's fields: wrongdoing, doubt and spenders without code are dangers."""


@dataclass(frozen=True, slots=True)
class ApprovalVerdict:
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


@dataclass(frozen=True, slots=True)
class ApprovalAdvice:
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


@dataclass(frozen=True, slots=True)
class TotalExposure:
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
    balance = evidence[0].balance
    if balance is None or (known < balance and None in (*direct, *granted)):
        return None
    return evidence[0].value_units(min(balance, known))
