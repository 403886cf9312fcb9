"""What is wrong with an approval, and what to do about it: rules over what sources and chain say, no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from centgate.facts.approvals import UNLIMITED, Kind, ToldApproval

RULES_VERSION = "2026-11-21"

Severity = Literal["danger", "warning", "info"]
FindingSource = Literal["goplus", "rpc", "centgate"]
"""`centgate`: these rules themselves, by an address that they know."""
FindingId = Literal[
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
    "nothing_held",
    "unread",
]
Action = Literal["revoke", "review"]
RANK: dict[Severity, int] = {"danger": 0, "warning": 1, "info": 2}

PERMIT2 = "0x000000000022d473030f116ddee9f6b43ac78ba3"
"""Moves tokens for whoever holds the owner's signature; at the same address on every chain."""
CAPPED_AT_UINT96 = frozenset(
    {
        (1, "0x1f9840a85d5af5bf1d1762f925bdaddc4201f984"),  # UNI
        (1, "0xc00e94cb662c3520282e6f5717214004a7f26888"),  # COMP
    }
)
"""Tokens that keep an unlimited allowance as the largest number of 96 bits."""
EXPLOITED: Mapping[tuple[int, str], str] = {
    (1, "0x5f58058c0ec971492166763c8c22632b583f667f"): "Bancor, June 2020",
    (1, "0x8dfeb86c7c962577ded19ab2050ac78654fea9f7"): "Bancor, June 2020",
    (1, "0x923cab01e6a4639664aa64b76396eec0ea7d3a5f"): "Bancor, June 2020",
    (1, "0x17e8ca1b4798b97602895f63206afcd1fc90ca5f"): "Furucombo, February 2021",
    (56, "0xed1afc8c4604958c2f38a3408fa63b32e737c428"): "Transit Swap, October 2022",
    (1, "0xde62e1b0edaa55aac5ffbe21984d321706418024"): "Dexible, February 2023",
    (42161, "0x7222b106acac96dc5dbdbb4eefa7649dd1f5d434"): "Dexible, February 2023",
    (1, "0x044b75f554b886a065b9567891e45c79542d7357"): "SushiSwap, April 2023",
    (10, "0xf0cbce1942a68beb3d1b73f0dd86c8dcc363ef49"): "SushiSwap, April 2023",
    (56, "0xd75f5369724b513b497101fb15211160c1d96550"): "SushiSwap, April 2023",
    (137, "0x5097cbb61d3c75907656dc4e3bba892ff136649a"): "SushiSwap, April 2023",
    (42161, "0xa7cac4207579a179c1069435d032ee0f9f150e5c"): "SushiSwap, April 2023",
    (1, "0x126c9fbab3a2fca24edfd17322e71a5e36e91865"): "Unibot, October 2023",
}
"""Contracts through which approved tokens were taken: whose, and when. By chain and address.

Only some that are well known; https://github.com/RevokeCash/approval-exploit-list keeps a full list.
"""
_HIDES = re.compile("0x0000.*0000")
DAY = 86_400
STALE_DAYS = 180
YOUNG_DAYS = 30


@dataclass(frozen=True, slots=True)
class Evidence:
    """An approval with all that is known of it. None is what could not be read from the chain."""

    told: ToldApproval
    chain_id: int
    now: int
    """Seconds since 1970."""
    allowance: int | None = None
    """As the chain has it now, in base units, like `balance` and `supply`."""
    balance: int | None = None
    supply: int | None = None
    kind: Kind | None = None
    """What the chain has at the spender's address."""

    @property
    def amount(self) -> int | None:
        """In base units: the chain's figure, else the source's."""
        return self.told.amount if self.allowance is None else self.allowance

    @property
    def unlimited(self) -> bool | None:
        """Whether it exceeds anything the wallet could ever hold; None when nothing tells."""
        amount = self.amount
        if self.allowance is None and self.told.unlimited:
            return True
        return None if amount is None else amount >= self._ceiling or 0 < (self.supply or 0) < amount

    @property
    def _ceiling(self) -> int:
        token, spender = self.told.pair
        if (self.chain_id, token) in CAPPED_AT_UINT96:
            return 2**96 - 1
        return 2**160 - 1 if spender == PERMIT2 else 2**255

    @property
    def stale(self) -> bool | None:
        """Whether the latest change is long ago; None when its time is not known."""
        changed = self.told.changed_at
        return None if changed is None else self.now - changed > STALE_DAYS * DAY

    @property
    def is_contract(self) -> bool | None:
        """Whether the spender's own code decides what it takes: by the chain, else by the source."""
        return self.told.spender.is_contract if self.kind is None else self.kind == "contract"

    @property
    def exposed(self) -> int | None:
        """What could be taken now, in base units; None where the balance or the amount is not known."""
        if self.balance is None:
            return None
        amount = UNLIMITED if self.unlimited else self.amount
        return None if amount is None else min(amount, self.balance)

    @property
    def amounts_differ(self) -> bool:
        """Whether an index told another amount than the chain has, beyond rounding."""
        live, told = self.allowance, self.told
        if live is None or told.source == "rpc":
            return False
        if told.unlimited:
            return not self.unlimited
        return told.amount is not None and abs(live - told.amount) * 100 > max(live, told.amount)

    @property
    def kinds_differ(self) -> bool:
        """Whether an index told of a contract where the chain has none, or the other way round."""
        told = self.told.spender.is_contract
        return self.kind is not None and told is not None and told != self.is_contract


@dataclass(frozen=True, slots=True)
class Sign:
    """What made a rule speak."""

    source: FindingSource
    value: str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason to look at an approval."""

    id: FindingId
    severity: Severity
    explanation: str
    source: FindingSource
    value: str | None


@dataclass(frozen=True, slots=True)
class Rule:
    """A sign to look for, how bad it is, and what it means in a sentence."""

    id: FindingId
    severity: Severity
    explanation: str
    sign: Callable[[Evidence], Sign | None]
    trust_lowers: bool = True
    """Whether it weighs a level less where the source lists the spender as well known."""


def _misdeeds(case: Evidence) -> Sign | None:
    words = case.told.spender.misdeeds
    return Sign("goplus", ", ".join(words)) if words else None


def _malicious_token(case: Evidence) -> Sign | None:
    token = case.told.token
    if not (token.malicious or token.misdeeds):
        return None
    return Sign("goplus", ", ".join(token.misdeeds) or "malicious_address 1")


def _exploited(case: Evidence) -> Sign | None:
    whose = EXPLOITED.get((case.chain_id, case.told.spender.address))
    return Sign("centgate", whose) if whose else None


def _hides(case: Evidence) -> Sign | None:
    spender = case.told.spender.address
    return Sign("centgate", spender) if _HIDES.fullmatch(spender) else None


def _doubtful(case: Evidence) -> Sign | None:
    return Sign("goplus", "doubt_list 1") if case.told.spender.doubtful else None


def _wallet(case: Evidence) -> Sign | None:
    if case.kind is None:
        return Sign("goplus", "is_contract 0") if case.told.spender.is_contract is False else None
    if case.kind == "delegated":
        return Sign("rpc", "a delegation (0xef0100) for code")
    return Sign("rpc", "no code") if case.kind == "wallet" else None


def _unused(case: Evidence) -> Sign | None:
    return Sign("rpc", "no code, nonce 0") if case.kind == "unused" else None


def _unlimited(case: Evidence) -> Sign | None:
    if not case.unlimited:
        return None
    if case.allowance is not None:
        return Sign("rpc", str(case.allowance))
    return Sign(case.told.source, case.told.said)


def _unlimited_elsewhere(case: Evidence) -> Sign | None:
    return _unlimited(case) if case.told.spender.address != PERMIT2 else None


def _unlimited_for_permit2(case: Evidence) -> Sign | None:
    return _unlimited(case) if case.told.spender.address == PERMIT2 else None


def _stale(case: Evidence) -> Sign | None:
    return Sign(case.told.source, str(case.told.changed_at)) if case.stale else None


def _stale_and_unlimited(case: Evidence) -> Sign | None:
    return _stale(case) if _unlimited_elsewhere(case) else None


def _stale_and_bounded(case: Evidence) -> Sign | None:
    return _stale(case) if not _unlimited_elsewhere(case) else None


def _unverified(case: Evidence) -> Sign | None:
    return Sign("goplus", "is_open_source 0") if case.told.spender.source_verified is False else None


def _young(case: Evidence) -> Sign | None:
    deployed = case.told.spender.deployed_at
    young = deployed is not None and case.now - deployed < YOUNG_DAYS * DAY
    return Sign("goplus", str(deployed)) if young else None


def _permit2(case: Evidence) -> Sign | None:
    return Sign("centgate", PERMIT2) if case.told.spender.address == PERMIT2 else None


def _nothing_held(case: Evidence) -> Sign | None:
    return Sign("rpc", "0") if case.balance == 0 else None


def _unread(case: Evidence) -> Sign | None:
    # of an approval that is unlimited anyway the supply says no more
    supply = case.supply if case.supply is not None or not case.unlimited else 0
    read = {
        "allowance": case.allowance,
        "balance": case.balance,
        "total supply": supply,
        "the spender's code": case.kind,
    }
    missing = [name for name, value in read.items() if value is None]
    return Sign("rpc", ", ".join(missing)) if missing else None


def _unread_in_part(case: Evidence) -> Sign | None:
    return _unread(case) if case.unlimited is not None else None


def _unread_altogether(case: Evidence) -> Sign | None:
    return _unread(case) if case.unlimited is None else None


RULES: tuple[Rule, ...] = (
    Rule(
        "malicious_spender",
        "danger",
        "The spender is reported for wrongdoing.",
        _misdeeds,
        trust_lowers=False,
    ),
    Rule(
        "malicious_token",
        "danger",
        "The token is reported as malicious.",
        _malicious_token,
        trust_lowers=False,
    ),
    Rule(
        "exploited_spender",
        "danger",
        "Approved tokens were stolen through this contract before.",
        _exploited,
        trust_lowers=False,
    ),
    Rule("doubtful_spender", "danger", "The spender is on a list of suspicious addresses.", _doubtful),
    Rule(
        "spender_is_wallet",
        "danger",
        "The spender is a wallet, not a contract: whoever holds its key can take the tokens at will.",
        _wallet,
    ),
    Rule(
        "spender_has_no_code",
        "danger",
        "The spender has no code and has sent no transaction: an unused wallet, or a contract not yet there.",
        _unused,
    ),
    Rule(
        "unlimited",
        "warning",
        "The spender may take all of this token that the wallet ever holds.",
        _unlimited_elsewhere,
    ),
    Rule(
        "unlimited",
        "info",
        "Unlimited, as is usual for Permit2, which moves tokens only on the owner's signature.",
        _unlimited_for_permit2,
    ),
    Rule(
        "spender_unverified",
        "warning",
        "The spender's source code is not published, so nobody can read what it does.",
        _unverified,
    ),
    Rule(
        "spender_hides",
        "warning",
        "The spender's address begins and ends with zeros, so that it looks empty where it is shortened.",
        _hides,
    ),
    Rule("spender_young", "warning", "The spender was deployed less than 30 days ago.", _young),
    Rule(
        "stale",
        "warning",
        "The unlimited approval has not changed for more than 180 days.",
        _stale_and_unlimited,
    ),
    Rule("stale", "info", "The approval has not changed for more than 180 days.", _stale_and_bounded),
    Rule(
        "permit2",
        "info",
        "Permit2 passes this on to whoever the owner signs for; those signed grants are not covered.",
        _permit2,
    ),
    Rule(
        "nothing_held",
        "info",
        "The wallet holds none of this token now, which lowers the severity; later deposits are exposed.",
        _nothing_held,
    ),
    Rule(
        "unread",
        "warning",
        "How much may be spent is not known: no source gives an amount that can be read.",
        _unread_altogether,
        trust_lowers=False,
    ),
    Rule(
        "unread",
        "info",
        "Not everything could be read from the chain, so this may look safer than it is.",
        _unread_in_part,
    ),
)
"""Levels as GoPlus's fields suggest them: wrongdoing, doubt and spenders without code are dangers."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An approval, judged."""

    evidence: Evidence
    findings: tuple[Finding, ...]
    severity: Severity
    """That of the worst finding, one level less while the wallet holds none of the token."""

    @property
    def dangerous(self) -> bool:
        """Whether anything about it is a danger, also while there is nothing to take."""
        return any(finding.severity == "danger" for finding in self.findings)

    @property
    def group(self) -> int:
        """Its place in the order: danger, unlimited and stale, unlimited, stale, rest."""
        if self.dangerous:
            return 0
        unlimited, stale = bool(self.evidence.unlimited), bool(self.evidence.stale)
        return 1 if unlimited and stale else 2 if unlimited else 3 if stale else 4

    @property
    def order(self) -> tuple[int, int, str, str]:
        """Sorts approvals, the most pressing first; no two of a wallet are equal."""
        return self.group, RANK[self.severity], *self.evidence.told.pair


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about an approval, and why, in a sentence."""

    action: Action
    reason: str


def judged(evidence: Evidence) -> Verdict:
    """Every rule's word on an approval, the worst first."""
    findings = [finding for rule in RULES if (finding := _found(rule, evidence))]
    findings.sort(key=lambda finding: RANK[finding.severity])
    worst = findings[0].severity if findings else "info"
    severity = lowered(worst) if evidence.balance == 0 else worst
    return Verdict(evidence, tuple(findings), severity)


def _found(rule: Rule, evidence: Evidence) -> Finding | None:
    sign = rule.sign(evidence)
    if sign is None:
        return None
    trusted = rule.trust_lowers and evidence.told.spender.trusted
    severity = lowered(rule.severity) if trusted else rule.severity
    return Finding(rule.id, severity, rule.explanation, sign.source, sign.value)


def lowered(severity: Severity) -> Severity:
    """One level less."""
    return "warning" if severity == "danger" else "info"


def advice(verdict: Verdict) -> Advice | None:
    """What to do; None where nothing stands out."""
    if verdict.dangerous:
        more = " The allowance is unlimited." if verdict.evidence.unlimited else ""
        return Advice("revoke", verdict.findings[0].explanation + more)
    told, group = verdict.evidence.told, verdict.group
    if told.spender.address == PERMIT2 and group < 4:
        return Advice("review", "Granted to Permit2: keep it only while you use applications that need it.")
    match group:
        case 1:
            action = "review" if told.spender.trusted else "revoke"
            return Advice(action, "Unlimited, and unchanged for more than 180 days.")
        case 2:
            return Advice("review", "Unlimited: lower it to what is needed, or revoke it when done.")
        case 3:
            return Advice("review", "Unchanged for more than 180 days: revoke it unless it is still in use.")
        case _:
            worst = verdict.findings[0] if verdict.findings else None
            return Advice("review", worst.explanation) if worst and worst.severity == "warning" else None
