"""Answer of approval-risk: its fields, filled from the approvals, the chain's state and the verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from centgate.chains import CHAIN_BY_ID
from centgate.coercion import from_unix_seconds
from centgate.crypto.approvals.approval_evidence import PERMIT2, ApprovalEvidence
from centgate.crypto.approvals.approval_history import ApprovalHistory, choose_symbol, describe_coverage
from centgate.crypto.approvals.approval_rules import (
    RULES_VERSION,
    ApprovalFindingId,
    ApprovalFindingSource,
    ApprovalSeverity,
)
from centgate.crypto.approvals.approval_verdict import (
    ApprovalAction,
    ApprovalVerdict,
    recommend_action,
    select_verdicts,
    total_exposure,
)
from centgate.crypto.approvals.reported import ApprovalMechanism, ApprovalSource, OnchainState
from centgate.crypto.contract.account_kinds import AccountKind, ReportedKind, classify_code, classify_report
from centgate.crypto.contract.bytecode import delegation_target
from centgate.crypto.wallet.wallets import format_base_units
from centgate.sanitize import quote_line
from centgate.schema import Data
from centgate.timestamps import format_timestamp

RecommendationMechanism = Literal[ApprovalMechanism, "delegation"]

MAX_APPROVALS = 200
"""Most approvals in a response, the most urgent first."""
NOT_COVERED = [
    "NFT operator approvals",
    "signatures for Permit2 that were not used yet",
    "allowances that a token gives without an event that names their owner",
]


class ApprovalFinding(Data):
    """One reason to look at an approval."""

    id: ApprovalFindingId
    severity: ApprovalSeverity
    explanation: str = Field(description="One sentence.")
    source: ApprovalFindingSource = Field(
        description="The source of the finding; `centgate`: an address list in this service's own rules."
    )
    value: str | None = Field(description="What the source gave, as text: untrusted, cut.")


class Allowance(Data):
    """Amount that the spender may spend."""

    amount_base_units: str | None = Field(
        description="In base units, a decimal string; null when not known exactly."
    )
    amount: float | None = Field(
        description="Scaled by the token's decimals; null when these are unknown, or when it is unlimited."
    )
    unlimited: bool | None = Field(description="Whether it exceeds anything the wallet could ever hold.")
    exposed_base_units: str | None = Field(
        description="What could be taken now: the lower of amount and balance, in base units, a decimal "
        "string."
    )
    exposed: float | None = Field(description="The same, scaled by the token's decimals.")
    exposed_usd: float | None = Field(
        description="Value of `exposed` in US dollars; null when no price is known, or only a doubtful one."
    )
    expires_at: str | None = Field(
        description="End of a grant inside Permit2, ISO 8601, UTC; null for an approval at the token, which "
        "has no end, and for an end after the year 9998, which is as good as none."
    )
    live: bool = Field(description="Whether it was read from the chain for this answer, not from an index.")
    source: ApprovalSource


class ApprovedToken(Data):
    """The token that may be spent."""

    address: str = Field(description="Lower case.")
    symbol: str | None = Field(description="As the token calls itself: untrusted text, cut.")
    decimals: int | None = Field(description="Decimals between base units and scaled amounts.")
    balance_base_units: str | None = Field(
        description="The wallet's balance in base units, a decimal string; as the source of the approvals "
        "lists it if the chain could not be read."
    )
    balance: float | None = Field(description="The wallet's balance scaled by the decimals.")


class Spender(Data):
    """The account that may spend the token."""

    address: str = Field(description="Lower case.")
    name: str | None = Field(description="Name of the contract: untrusted text of its author, cut.")
    project: str | None = Field(
        description="The contract's project, as the source labels it: untrusted text, cut."
    )
    kind: ReportedKind = Field(
        description="`contract`: has code of its own; `wallet`: has none, or only an EIP-7702 delegation."
    )
    source_verified: bool | None
    trusted: bool | None = Field(description="Whether a source lists it as well known; false proves nothing.")
    deployed_at: str | None = Field(description="ISO 8601, UTC.")


class Approval(Data):
    """An active permission for one spender to move one token."""

    mechanism: ApprovalMechanism = Field(
        description="`token`: approved at the token; `permit2`: granted inside Permit2, which moves the "
        "token for the spender."
    )
    token: ApprovedToken
    spender: Spender
    allowance: Allowance
    changed_at: str | None = Field(
        description="Time of the latest change, ISO 8601, UTC; for some tokens the last time the allowance "
        "was used."
    )
    stale: bool | None = Field(description="Whether the latest change is more than 180 days ago.")
    severity: ApprovalSeverity = Field(
        description="Severity of the worst finding, one level lower while nothing can be taken: the wallet "
        "holds none of the token, or Permit2 may take none."
    )
    findings: list[ApprovalFinding]


class Recommendation(Data):
    """Recommended action for one approval, or for the wallet's delegation by EIP-7702."""

    action: ApprovalAction
    mechanism: RecommendationMechanism = Field(
        description="As in `approvals`: where to revoke it; `delegation`: it is of the wallet itself."
    )
    token_address: str | None = Field(description="Lower case; null for a delegation.")
    spender_address: str = Field(description="Lower case; for a delegation the contract that it names.")
    reason: str = Field(description="One line: the token and the spender by name where known, and why.")
    url: str | None = Field(
        description="A page where the wallet's owner can revoke it; null for a delegation and on a "
        "development chain."
    )


class ApprovalCoverage(Data):
    """Part of the wallet's history that the answer covers."""

    source: ApprovalSource = Field(
        description="Source of the approvals. `goplus`: an index, completed from event logs if there is a "
        "block range; `etherscan`: all event logs; `rpc`: only event logs of that range."
    )
    note: str = Field(description="One sentence on the source of the list.")
    complete: bool | None = Field(
        description="Whether all approvals at ERC-20 tokens and inside Permit2 are in the answer; null when "
        "the source cannot tell."
    )
    chain_id: int = Field(description="Id of the chain (EIP-155).")
    from_block: int | None = Field(description="First block whose events were read; null for an index.")
    to_block: int | None = Field(
        description="Last block whose events were read; null for an index, and where an explorer alone gave "
        "the events, which does not say how far it reaches."
    )
    permit2_from_block: int | None = Field(
        description="First block whose grants inside Permit2 were read; null when they could not be read."
    )
    permit2_to_block: int | None = Field(description="Last block of these.")
    days: float | None = Field(description="Days from the first block to the last, by their timestamps.")
    tokens_examined: int | None = Field(
        description="Tokens with approvals, including approvals revoked since."
    )
    calls_failed: int = Field(description="Allowances that could not be read from the chain.")
    not_covered: list[str] = Field(description="Kinds of permission that were not searched for.")
    rules_version: str = Field(description="Version of the rules applied to the approvals, a date.")


class ApprovalAccount(Data):
    """Kind of account at the wallet's own address."""

    kind: AccountKind = Field(
        description="`delegated_wallet`: runs other code by EIP-7702, which can move all tokens without any "
        "approval; `unknown`: not read."
    )
    delegate_address: str | None = Field(
        description="The contract whose code a delegated wallet runs, lower case."
    )


class ApprovalExposure(Data):
    """Value that all spenders together could take of the wallet now."""

    usd: float | None = Field(
        description="In US dollars, of every token at most its balance; null when no value is known, and "
        "when no approval was found but some may exist."
    )
    unpriced_tokens: int = Field(
        description="Tokens that could be taken and whose value is not known, so that `usd` lacks them."
    )


class ApprovalRisk(Data):
    """Approvals of a wallet, with findings and recommendations."""

    approvals: list[Approval] = Field(
        description="Dangers first, then unlimited and stale, unlimited, stale, and the rest, in each group "
        "the most dollars at risk first. At most 200, those of well-known and of priced tokens before "
        "others. Revoked ones are left out."
    )
    unlimited_count: int = Field(
        description="Number of unlimited approvals found, including those of trusted spenders."
    )
    recommendations: list[Recommendation] = Field(
        description="That about a delegation first, then the most urgent."
    )
    coverage: ApprovalCoverage
    warnings: list[str] = Field(
        description="A delegated wallet first; checks that were not possible, and disagreements between "
        "sources."
    )
    exposure: ApprovalExposure
    account: ApprovalAccount


def build_approval_risk(
    chain_id: int,
    wallet: str,
    history: ApprovalHistory,
    live: OnchainState,
    verdicts: Sequence[ApprovalVerdict],
    warnings: Sequence[str],
) -> ApprovalRisk:
    """Return the answer about a wallet; `verdicts` are on its approvals, the most urgent first."""
    listed = [
        (verdict, _build_approval(verdict, live)) for verdict in select_verdicts(verdicts, MAX_APPROVALS)
    ]
    account = _build_account(live)
    return ApprovalRisk(
        approvals=[approval for _, approval in listed],
        unlimited_count=sum(bool(verdict.evidence.is_unlimited) for verdict in verdicts),
        recommendations=[
            *_recommend_delegation_review(account),
            *(
                recommendation
                for each in listed
                if (recommendation := _build_recommendation(*each, chain_id, wallet))
            ),
        ],
        coverage=_build_coverage(chain_id, history, live, verdicts),
        warnings=[*warnings, *_warn_left_out(verdicts)],
        exposure=_build_exposure(verdicts, is_complete=history.is_complete is True),
        account=account,
    )


def _build_exposure(verdicts: Sequence[ApprovalVerdict], *, is_complete: bool) -> ApprovalExposure:
    if not verdicts and not is_complete:
        return ApprovalExposure(usd=None, unpriced_tokens=0)
    total = total_exposure(verdicts)
    return ApprovalExposure(usd=total.usd, unpriced_tokens=total.unpriced_tokens)


def _build_account(live: OnchainState) -> ApprovalAccount:
    code = live.wallet_code
    if code is None:
        return ApprovalAccount(kind="unknown", delegate_address=None)
    return ApprovalAccount(kind=classify_code(code), delegate_address=delegation_target(code))


def _build_approval(verdict: ApprovalVerdict, live: OnchainState) -> Approval:
    evidence = verdict.evidence
    entry = evidence.entry
    token = _build_token(evidence, live)
    return Approval(
        mechanism=entry.mechanism,
        token=token,
        spender=_build_spender(evidence),
        allowance=_build_allowance(evidence),
        changed_at=_format_time(entry.changed_at),
        stale=evidence.is_stale,
        severity=verdict.severity,
        findings=[
            ApprovalFinding(
                id=finding.id,
                severity=finding.severity,
                explanation=finding.explanation,
                source=finding.source,
                value=finding.value,
            )
            for finding in verdict.findings
        ],
    )


def _build_token(evidence: ApprovalEvidence, live: OnchainState) -> ApprovedToken:
    token = evidence.entry.token
    return ApprovedToken(
        address=token.address,
        symbol=choose_symbol(token, live),
        decimals=evidence.decimals,
        balance_base_units=format_base_units(evidence.holding),
        balance=_scale_units(evidence.holding, evidence.decimals),
    )


def _build_spender(evidence: ApprovalEvidence) -> Spender:
    spender = evidence.entry.spender
    return Spender(
        address=spender.address,
        name=spender.name or ("Permit2" if spender.address == PERMIT2 else None),
        project=spender.project,
        kind=classify_report(is_contract=evidence.is_contract),
        source_verified=spender.source_verified,
        trusted=spender.trusted,
        deployed_at=_format_time(spender.deployed_at),
    )


def _build_allowance(evidence: ApprovalEvidence) -> Allowance:
    is_live = evidence.allowance is not None
    amount = evidence.amount if is_live or not evidence.entry.unlimited else None
    return Allowance(
        amount_base_units=format_base_units(amount),
        amount=None if evidence.is_unlimited else _scale_units(amount, evidence.decimals),
        unlimited=evidence.is_unlimited,
        exposed_base_units=format_base_units(evidence.exposed_amount),
        exposed=_scale_units(evidence.exposed_amount, evidence.decimals),
        exposed_usd=evidence.exposed_usd,
        expires_at=_format_time(evidence.end_time) if evidence.is_grant else None,
        live=is_live,
        source="rpc" if is_live else evidence.entry.source,
    )


def _scale_units(units: int | None, decimals: int | None) -> float | None:
    return None if units is None or decimals is None else units / 10**decimals


def _format_time(seconds: int | None) -> str | None:
    moment = from_unix_seconds(seconds)
    return format_timestamp(moment) if moment else None


def _build_recommendation(
    verdict: ApprovalVerdict, approval: Approval, chain_id: int, wallet: str
) -> Recommendation | None:
    action_advice = recommend_action(verdict)
    if action_advice is None:
        return None
    entry = verdict.evidence.entry
    names = " to ".join(
        filter(None, (quote_line(approval.token.symbol, 20), quote_line(approval.spender.name, 40)))
    )
    if names and entry.mechanism == "permit2":
        names += " through Permit2"
    page = f"https://revoke.cash/address/{wallet}?chainId={chain_id}"
    return Recommendation(
        action=action_advice.action,
        mechanism=entry.mechanism,
        token_address=entry.token.address,
        spender_address=entry.spender.address,
        reason=f"{names}: {action_advice.reason}" if names else action_advice.reason,
        url=page if chain_id in CHAIN_BY_ID else None,
    )


def _recommend_delegation_review(account: ApprovalAccount) -> Iterator[Recommendation]:
    if account.delegate_address:
        yield Recommendation(
            action="review",
            mechanism="delegation",
            token_address=None,
            spender_address=account.delegate_address,
            reason="The wallet runs this contract's code (EIP-7702), which can move all its tokens without "
            "any approval: keep the delegation only if it is your wallet application's, else revoke it.",
            url=None,
        )


def _build_coverage(
    chain_id: int,
    history: ApprovalHistory,
    live: OnchainState,
    verdicts: Sequence[ApprovalVerdict],
) -> ApprovalCoverage:
    scan, grants = history.scan, history.grants
    is_all_listed = len(verdicts) <= MAX_APPROVALS
    return ApprovalCoverage(
        source=history.source,
        note=describe_coverage(history, empty=not verdicts),
        complete=history.is_complete if is_all_listed else False,
        chain_id=chain_id,
        from_block=scan.from_block if scan else None,
        to_block=scan.to_block if scan else None,
        permit2_from_block=grants.from_block if grants else None,
        permit2_to_block=grants.to_block if grants else None,
        days=scan.days if scan else None,
        tokens_examined=history.reported.tokens,
        calls_failed=live.unreadable_count,
        not_covered=[*NOT_COVERED, *_list_uncovered(history)],
        rules_version=RULES_VERSION,
    )


def _list_uncovered(history: ApprovalHistory) -> Iterator[str]:
    """Yield the approvals of other times that were not searched for."""
    scan, grants = history.scan, history.grants
    if scan and scan.from_block:
        yield f"approvals before block {scan.from_block}"
    if grants is None:
        yield "grants inside Permit2"
    elif grants.from_block:
        yield f"grants inside Permit2 before block {grants.from_block}"


def _warn_left_out(verdicts: Sequence[ApprovalVerdict]) -> list[str]:
    more = len(verdicts) - MAX_APPROVALS
    if more <= 0:
        return []
    return [f"Approvals left out of this answer, of tokens without a known value or less urgent: {more}"]
