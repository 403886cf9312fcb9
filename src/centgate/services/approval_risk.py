"""approval-risk: who may spend a wallet's tokens, and which of that to take back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from pydantic import Field

from centgate.chains import CHAIN_BY_ID, Address, OnChain
from centgate.errors import NoData
from centgate.facts.approvals import ApprovalSource, Live, Scan, TokenNow, ToldApproval, ToldApprovals
from centgate.inquiries.allowances import read_live, scanned, together_told
from centgate.provider import Fallback, Primary
from centgate.providers.goplus import GoPlus
from centgate.providers.rpc import Rpc
from centgate.readings import since_1970
from centgate.schema import Data
from centgate.service import service
from centgate.sources import attempt
from centgate.text import cleaned, timestamp
from centgate.verdicts.approval_history import History, note, remarks
from centgate.verdicts.approval_rules import (
    PERMIT2,
    RULES_VERSION,
    Action,
    Evidence,
    FindingId,
    FindingSource,
    Severity,
    Verdict,
    advice,
    judged,
)

SpenderKind = Literal["contract", "wallet", "unknown"]

MOST = 200
"""Approvals in an answer, the most pressing."""
NOT_COVERED = ["NFT operator approvals", "grants signed for Permit2"]


class ApprovalRiskRequest(OnChain):
    """A wallet on a chain."""

    wallet_address: Address = Field(description="The wallet: 0x and 40 hexadecimal characters.")


class ApprovalFinding(Data):
    """One reason to look at an approval."""

    id: FindingId
    severity: Severity
    explanation: str = Field(description="One sentence.")
    source: FindingSource = Field(
        description="Whose word it is; `centgate`: this service's, of an address that its rules know."
    )
    value: str | None = Field(description="What the source gave, as text.")


class Allowance(Data):
    """How much may be spent."""

    amount_base_units: str | None = Field(
        description="In base units, a decimal string; null when not known exactly."
    )
    amount: float | None = Field(
        description="Scaled by the token's decimals; null when those are unknown, or it is unlimited."
    )
    unlimited: bool | None = Field(description="Whether it exceeds anything the wallet could ever hold.")
    exposed_base_units: str | None = Field(
        description="What could be taken now, the lesser of amount and balance, a decimal string."
    )
    exposed: float | None = Field(description="The same, scaled by the token's decimals.")
    live: bool = Field(description="Whether it was read from the chain for this answer, not from an index.")
    source: ApprovalSource


class ApprovedToken(Data):
    """The token that may be spent."""

    address: str = Field(description="Lower case.")
    symbol: str | None = Field(description="From the token itself, cleaned and cut to 64 characters.")
    decimals: int | None
    balance_base_units: str | None = Field(
        description="The wallet's balance in base units, a decimal string."
    )
    balance: float | None = Field(description="The wallet's balance scaled by the decimals.")


class Spender(Data):
    """Who may spend it."""

    address: str = Field(description="Lower case.")
    name: str | None = Field(description="Cleaned and cut to 64 characters.")
    project: str | None = Field(description="Whose contract it is, as the source labels it.")
    kind: SpenderKind = Field(
        description="`contract`: has code of its own; `wallet`: has none, or only a delegation."
    )
    source_verified: bool | None
    trusted: bool | None = Field(description="Whether a source lists it as well known; false proves nothing.")
    deployed_at: str | None = Field(description="ISO 8601, UTC.")


class Approval(Data):
    """A standing permission for one spender to move one token."""

    token: ApprovedToken
    spender: Spender
    allowance: Allowance
    changed_at: str | None = Field(
        description="ISO 8601, UTC: the latest change; for some tokens the last time it was spent from."
    )
    stale: bool | None = Field(description="Whether the latest change is more than 180 days ago.")
    severity: Severity = Field(
        description="That of the worst finding, one level less while the wallet holds none of the token."
    )
    findings: list[ApprovalFinding]


class Recommendation(Data):
    """What to do about one approval."""

    action: Action
    token_address: str = Field(description="Lower case.")
    spender_address: str = Field(description="Lower case.")
    reason: str = Field(description="One line: the token and the spender by name where known, and why.")
    url: str | None = Field(
        description="A page where the wallet's owner can revoke it; null on a development chain."
    )


class ApprovalCoverage(Data):
    """How much of the wallet's history the answer rests on."""

    source: ApprovalSource = Field(
        description="Who lists the approvals. `goplus`: an index, completed from event logs where there is a "
        "block range; `rpc`: event logs of that range alone."
    )
    note: str = Field(description="What the list rests on, in a sentence.")
    complete: bool | None = Field(
        description="Whether all ERC-20 approvals were seen; null when the source cannot tell."
    )
    chain_id: int
    from_block: int | None = Field(description="First block whose events were read; null for an index.")
    to_block: int | None = Field(description="Last block whose events were read; null for an index.")
    days: float | None = Field(description="Days from the first block to the last, by their timestamps.")
    tokens_examined: int | None = Field(description="Tokens with approvals, also those since revoked.")
    calls_failed: int = Field(description="Allowances that were asked for and could not be read.")
    not_covered: list[str] = Field(description="Kinds of permission that were not looked for.")
    rules_version: str = Field(description="The version of the rules that judged the approvals.")


class ApprovalRisk(Data):
    """A wallet's approvals, judged."""

    approvals: list[Approval] = Field(
        description="Dangers first, then unlimited and stale, unlimited, stale, and the rest; at most 200. "
        "Revoked ones are left out."
    )
    unlimited_count: int = Field(description="Of all approvals found, trusted spenders included.")
    recommendations: list[Recommendation] = Field(description="The most pressing first.")
    coverage: ApprovalCoverage
    warnings: list[str] = Field(description="What could not be checked, and where sources disagree.")


@service(
    order=70,
    title="Approval risk",
    category="crypto-context",
    tags=("wallet", "approvals", "allowance", "revoke", "evm"),
    guardrails=(
        "One wallet on one chain per request.",
        "ERC-20 approvals only; no NFT operators and no signed Permit2 grants.",
        "The fallback reads a bounded block range; `coverage` says which.",
        "Recommendations are words and links; no transaction is prepared.",
        "Read-only: nothing is signed or sent.",
    ),
    fresh_for=timedelta(minutes=5),
    example=ApprovalRiskRequest(chain_id=8453, wallet_address="0xd8da6bf26964af9d7eed9e03e53415d37aa96045"),
    sample=ApprovalRisk(
        approvals=[
            Approval(
                token=ApprovedToken(
                    address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
                    symbol="USDC",
                    decimals=6,
                    balance_base_units="42500000",
                    balance=42.5,
                ),
                spender=Spender(
                    address="0x1111111254eeb25477b68fb85ed929f73a960582",
                    name="AggregationRouterV5",
                    project="1inch",
                    kind="contract",
                    source_verified=True,
                    trusted=False,
                    deployed_at="2023-07-27T17:31:37Z",
                ),
                allowance=Allowance(
                    amount_base_units=str(2**256 - 1),
                    amount=None,
                    unlimited=True,
                    exposed_base_units="42500000",
                    exposed=42.5,
                    live=True,
                    source="rpc",
                ),
                changed_at="2026-01-12T08:00:11Z",
                stale=True,
                severity="warning",
                findings=[
                    ApprovalFinding(
                        id="unlimited",
                        severity="warning",
                        explanation="The spender may take all of this token that the wallet ever holds.",
                        source="rpc",
                        value=str(2**256 - 1),
                    ),
                    ApprovalFinding(
                        id="stale",
                        severity="warning",
                        explanation="The unlimited approval has not changed for more than 180 days.",
                        source="goplus",
                        value="1768204811",
                    ),
                ],
            )
        ],
        unlimited_count=1,
        recommendations=[
            Recommendation(
                action="revoke",
                token_address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
                spender_address="0x1111111254eeb25477b68fb85ed929f73a960582",
                reason="USDC to AggregationRouterV5: Unlimited, and unchanged for more than 180 days.",
                url="https://revoke.cash/address/0xd8da6bf26964af9d7eed9e03e53415d37aa96045?chainId=8453",
            )
        ],
        coverage=ApprovalCoverage(
            source="goplus",
            note="GoPlus's index of approvals, which does not say how complete it is.",
            complete=None,
            chain_id=8453,
            from_block=None,
            to_block=None,
            days=None,
            tokens_examined=1,
            calls_failed=0,
            not_covered=NOT_COVERED,
            rules_version=RULES_VERSION,
        ),
        warnings=[],
    ),
)
async def approval_risk(
    request: ApprovalRiskRequest,
    goplus: Primary[GoPlus],
    rpc: Fallback[Rpc],
) -> ApprovalRisk:
    """Standing ERC-20 approvals of a wallet, with what to revoke.

    Lists who may spend which token and how much, flags unlimited and stale approvals and doubtful spenders,
    and says how much of the wallet's history it saw. Where the index of approvals does not answer, a bounded
    range of event logs is analysed.
    """
    history = await _history(request, goplus, rpc)
    now = int(time.time())
    live = await _live(request, rpc, history, now)
    history = history.dated(live.times)
    evidence = [_evidence(told, live, request.chain_id, now) for told in history.told.entries]
    verdicts = sorted((judged(case) for case in evidence if case.amount != 0), key=lambda each: each.order)
    if not verdicts and not history.complete:
        goplus.record.provisional = True
    shown = [(verdict, _approval(verdict, live)) for verdict in verdicts[:MOST]]
    return ApprovalRisk(
        approvals=[approval for _, approval in shown],
        unlimited_count=sum(bool(verdict.evidence.unlimited) for verdict in verdicts),
        recommendations=[line for each in shown if (line := _recommendation(*each, request))],
        coverage=_coverage(history, live, request, empty=not verdicts),
        warnings=[*goplus.record.warnings, *remarks(history, live, evidence), *_left_out(verdicts)],
    )


async def _history(request: ApprovalRiskRequest, goplus: GoPlus, rpc: Rpc) -> History:
    """From the index where it answers in full, else from event logs, else from both."""
    chain_id, wallet = request.chain_id, request.wallet_address
    asked = goplus.configured and goplus.covers(chain_id)
    index = await attempt(goplus.approvals, chain_id, wallet) if asked else None
    if isinstance(index, ToldApprovals) and not index.partial:
        return History(index, "goplus", None)
    scan = await attempt(scanned, rpc, chain_id, wallet)
    if isinstance(index, ToldApprovals):
        logs = scan if isinstance(scan, Scan) else None
        return History(together_told(index, logs) if logs else index, "goplus", logs)
    if isinstance(scan, Scan):
        if goplus.covers(chain_id):
            goplus.record.warn(
                f"{goplus.about.label} was not available; event logs of a range were read instead"
            )
        return History(scan.told, "rpc", scan)
    raise scan if index is None or isinstance(index, NoData) else index


async def _live(request: ApprovalRiskRequest, rpc: Rpc, history: History, now: int) -> Live:
    """What stands on the chain now, as far as it can be read; of too many the most pressing."""
    chain_id = request.chain_id
    told = sorted(history.told.entries, key=lambda told: judged(Evidence(told, chain_id, now)).order)
    able = rpc.configured and rpc.covers(chain_id)
    live = await read_live(rpc, chain_id, request.wallet_address, told, history.scan) if able else Live()
    if told and not live.tokens:
        rpc.record.warn("Allowances could not be read from the chain; the amounts are as listed, not live")
    return live


def _evidence(told: ToldApproval, live: Live, chain_id: int, now: int) -> Evidence:
    token = live.tokens.get(told.token.address)
    return Evidence(
        told,
        chain_id,
        now,
        allowance=live.allowances.get(told.pair),
        balance=token.balance if token else None,
        supply=token.supply if token else None,
        kind=live.kinds.get(told.spender.address),
    )


def _approval(verdict: Verdict, live: Live) -> Approval:
    case = verdict.evidence
    told = case.told
    token = _token(case, live.tokens.get(told.token.address))
    return Approval(
        token=token,
        spender=_spender(case),
        allowance=_allowance(case, token.decimals),
        changed_at=_time(told.changed_at),
        stale=case.stale,
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


def _token(case: Evidence, now: TokenNow | None) -> ApprovedToken:
    told = case.told.token
    decimals = now.decimals if now and now.decimals is not None else told.decimals
    return ApprovedToken(
        address=told.address,
        symbol=(now.symbol if now else None) or told.symbol,
        decimals=decimals,
        balance_base_units=_text(case.balance),
        balance=_scaled(case.balance, decimals),
    )


def _spender(case: Evidence) -> Spender:
    told = case.told.spender
    kind: SpenderKind = (
        "unknown" if case.is_contract is None else "contract" if case.is_contract else "wallet"
    )
    return Spender(
        address=told.address,
        name=told.name or ("Permit2" if told.address == PERMIT2 else None),
        project=told.project,
        kind=kind,
        source_verified=told.source_verified,
        trusted=told.trusted,
        deployed_at=_time(told.deployed_at),
    )


def _allowance(case: Evidence, decimals: int | None) -> Allowance:
    live = case.allowance is not None
    amount = case.amount if live or not case.told.unlimited else None
    return Allowance(
        amount_base_units=_text(amount),
        amount=None if case.unlimited else _scaled(amount, decimals),
        unlimited=case.unlimited,
        exposed_base_units=_text(case.exposed),
        exposed=_scaled(case.exposed, decimals),
        live=live,
        source="rpc" if live else case.told.source,
    )


def _text(units: int | None) -> str | None:
    return None if units is None else str(units)


def _scaled(units: int | None, decimals: int | None) -> float | None:
    return None if units is None or decimals is None else units / 10**decimals


def _time(seconds: int | None) -> str | None:
    told = since_1970(seconds)
    return timestamp(told) if told else None


def _recommendation(
    verdict: Verdict, approval: Approval, request: ApprovalRiskRequest
) -> Recommendation | None:
    what = advice(verdict)
    if what is None:
        return None
    token, spender = verdict.evidence.told.pair
    named = " to ".join(
        filter(None, (cleaned(approval.token.symbol, 20), cleaned(approval.spender.name, 40)))
    )
    page = f"https://revoke.cash/address/{request.wallet_address}?chainId={request.chain_id}"
    return Recommendation(
        action=what.action,
        token_address=token,
        spender_address=spender,
        reason=f"{named}: {what.reason}" if named else what.reason,
        url=page if request.chain_id in CHAIN_BY_ID else None,
    )


def _coverage(history: History, live: Live, request: ApprovalRiskRequest, *, empty: bool) -> ApprovalCoverage:
    scan, told = history.scan, history.told
    by_index = history.source == "goplus"
    older = [f"approvals before block {scan.from_block}"] if scan and not scan.complete else []
    return ApprovalCoverage(
        source=history.source,
        note=note(history, empty=empty),
        complete=history.complete,
        chain_id=request.chain_id,
        from_block=scan.from_block if scan else None,
        to_block=scan.to_block if scan else None,
        days=scan.days if scan else None,
        tokens_examined=told.tokens,
        calls_failed=live.failed,
        not_covered=[*NOT_COVERED, *(older if told.partial or not by_index else [])],
        rules_version=RULES_VERSION,
    )


def _left_out(verdicts: Sequence[Verdict]) -> list[str]:
    more = len(verdicts) - MOST
    return [f"Less pressing approvals left out of this answer: {more}"] if more > 0 else []
