"""Rules for approval risk: signals of one approval, with their severity and meaning. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from centgate.crypto.approvals.approval_evidence import DAY_SECONDS, PERMIT2, ApprovalEvidence
from centgate.crypto.approvals.exploited_spenders import EXPLOITED_SPENDERS

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
SEVERITY_ORDER: dict[ApprovalSeverity, int] = {"danger": 0, "warning": 1, "info": 2}

YOUNG_DAYS = 30
LATE_DAYS = 365
"""A grant inside Permit2 that ends later is as good as one without end."""
_ZERO_PADDED = re.compile("0x0000.*0000")


class Signal(Struct, frozen=True):
    """The value that triggered a rule, with its source."""

    source: ApprovalFindingSource
    value: str | None


class RuleFinding(Struct, frozen=True):
    """One reason to look at an approval."""

    id: ApprovalFindingId
    severity: ApprovalSeverity
    explanation: str
    source: ApprovalFindingSource
    value: str | None


class ApprovalRule(Struct, frozen=True):
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
    if evidence.kind == "delegated_wallet":
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
