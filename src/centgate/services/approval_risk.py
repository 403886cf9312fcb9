"""approval-risk: approvals of a wallet at tokens and inside Permit2, and which of them to revoke."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Literal

from pydantic import Field

from centgate.chains import CHAIN_BY_ID, Address, ChainRequest
from centgate.coercion import from_unix_seconds
from centgate.crypto.approvals.approval_history import ApprovalHistory, collect_warnings, describe_coverage
from centgate.crypto.approvals.approval_rules import (
    PERMIT2,
    RULES_VERSION,
    ApprovalAction,
    ApprovalEvidence,
    ApprovalFindingId,
    ApprovalFindingSource,
    ApprovalSeverity,
    ApprovalVerdict,
    evaluate_approval,
    recommend_action,
    total_exposure,
)
from centgate.crypto.approvals.reported import (
    ApprovalMechanism,
    ApprovalScan,
    ApprovalSource,
    CurrentToken,
    GrantScan,
    OnchainState,
    ReportedApproval,
    ReportedApprovals,
)
from centgate.crypto.contract.bytecode import delegation_target
from centgate.crypto.contract.contracts import AccountKind
from centgate.crypto.wallet.wallets import format_base_units
from centgate.errors import NoData, ProviderFailure
from centgate.fallback import attempt, open_task_group
from centgate.lookups.allowances import merge_approvals, read_onchain_state, scan_approvals
from centgate.lookups.log_history import LogReader
from centgate.lookups.permit2 import scan_grants
from centgate.lookups.token_prices import fetch_token_prices
from centgate.provider import Enrichment, Fallback, Primary
from centgate.providers.defillama import DefiLlama
from centgate.providers.etherscan import Etherscan
from centgate.providers.goplus import GoPlus
from centgate.providers.rpc import Rpc
from centgate.sanitize import quote_line
from centgate.schema import Data
from centgate.service import service
from centgate.timestamps import format_timestamp

SpenderKind = Literal["contract", "wallet", "unknown"]

MAX_APPROVALS = 200
"""Most approvals in a response, the most urgent first."""
NOT_COVERED = ["NFT operator approvals", "signatures for Permit2 that were not used yet"]


class ApprovalRiskRequest(ChainRequest):
    """A wallet on a chain."""

    wallet_address: Address = Field(description="The wallet: 0x and 40 hexadecimal characters.")


class ApprovalFinding(Data):
    """One reason to look at an approval."""

    id: ApprovalFindingId
    severity: ApprovalSeverity
    explanation: str = Field(description="One sentence.")
    source: ApprovalFindingSource = Field(
        description="The source of the finding; `centgate`: an address list in this service's own rules."
    )
    value: str | None = Field(description="What the source gave, as text.")


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
        "has no end."
    )
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
    """The account that may spend the token."""

    address: str = Field(description="Lower case.")
    name: str | None = Field(description="Cleaned and cut to 64 characters.")
    project: str | None = Field(description="The contract's project, as the source labels it.")
    kind: SpenderKind = Field(
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
    """Recommended action for one approval."""

    action: ApprovalAction
    mechanism: ApprovalMechanism = Field(description="As in `approvals`: where to revoke it.")
    token_address: str = Field(description="Lower case.")
    spender_address: str = Field(description="Lower case.")
    reason: str = Field(description="One line: the token and the spender by name where known, and why.")
    url: str | None = Field(
        description="A page where the wallet's owner can revoke it; null on a development chain."
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
    chain_id: int
    from_block: int | None = Field(description="First block whose events were read; null for an index.")
    to_block: int | None = Field(description="Last block whose events were read; null for an index.")
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
    """What all spenders together could take of the wallet now."""

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
        "the most dollars at risk first; at most 200. Revoked ones are left out."
    )
    unlimited_count: int = Field(
        description="Number of unlimited approvals found, including those of trusted spenders."
    )
    recommendations: list[Recommendation] = Field(description="The most urgent first.")
    coverage: ApprovalCoverage
    warnings: list[str] = Field(
        description="A delegated wallet first; checks that were not possible, and disagreements between "
        "sources."
    )
    exposure: ApprovalExposure
    account: ApprovalAccount


@service(
    order=70,
    title="Approval risk",
    category="crypto-context",
    fixed_roles=True,
    tags=("wallet", "approvals", "allowance", "revoke", "evm"),
    guardrails=(
        "One wallet on one chain per request.",
        "ERC-20 approvals, also inside Permit2; no NFT operators and no signatures that were not used yet.",
        "The fallback and the grants inside Permit2 read a bounded block range; `coverage` says which.",
        "Recommendations are text and links; no transaction is prepared.",
        "Read-only: nothing is signed or sent.",
    ),
    cache_ttl=timedelta(minutes=5),
    input_example=ApprovalRiskRequest(
        chain_id=8453, wallet_address="0xd8da6bf26964af9d7eed9e03e53415d37aa96045"
    ),
    output_example=ApprovalRisk(
        approvals=[
            Approval(
                mechanism="token",
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
                    exposed_usd=42.5,
                    expires_at=None,
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
                mechanism="token",
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
            permit2_from_block=37_104_000,
            permit2_to_block=38_400_000,
            days=None,
            tokens_examined=1,
            calls_failed=0,
            not_covered=NOT_COVERED,
            rules_version=RULES_VERSION,
        ),
        warnings=[],
        exposure=ApprovalExposure(usd=42.5, unpriced_tokens=0),
        account=ApprovalAccount(kind="wallet", delegate_address=None),
    ),
)
async def approval_risk(
    request: ApprovalRiskRequest,
    goplus: Primary[GoPlus],
    rpc: Fallback[Rpc],
    etherscan: Enrichment[Etherscan],
    defillama: Enrichment[DefiLlama],
) -> ApprovalRisk:
    """Return the active ERC-20 approvals of a wallet, with recommendations on what to revoke.

    Includes the grants inside Permit2. Lists who may spend which token and how much, flags unlimited and
    stale approvals and suspicious spenders, and states how much of the wallet's history is covered. If the
    index of approvals does not answer, a bounded range of event logs is analysed.
    """
    reader = LogReader(request.chain_id, rpc, etherscan)
    history = await _read_history(request, goplus, rpc, reader)
    now = int(time.time())
    live = await _read_live_state(request, rpc, history, now)
    history = history.with_times(live.block_times)
    head = history.head
    evidence = [_build_evidence(entry, live, request.chain_id, now, head) for entry in history.entries]
    evidence = await _add_prices(evidence, defillama, request.chain_id)
    verdicts = sorted(
        (evaluate_approval(each) for each in evidence if each.amount != 0), key=lambda each: each.sort_key
    )
    if not verdicts and not history.is_complete:
        goplus.trace.is_provisional = True
    listed = [(verdict, _build_approval(verdict, live)) for verdict in verdicts[:MAX_APPROVALS]]
    return ApprovalRisk(
        approvals=[approval for _, approval in listed],
        unlimited_count=sum(bool(verdict.evidence.is_unlimited) for verdict in verdicts),
        recommendations=[
            recommendation for each in listed if (recommendation := _build_recommendation(*each, request))
        ],
        coverage=_build_coverage(history, live, request, verdicts),
        warnings=[
            *collect_warnings(history, live, evidence),
            *goplus.trace.warnings,
            *_warn_left_out(verdicts),
        ],
        exposure=_build_exposure(verdicts, is_complete=history.is_complete is True),
        account=_build_account(live),
    )


async def _read_history(
    request: ApprovalRiskRequest, goplus: GoPlus, rpc: Rpc, reader: LogReader
) -> ApprovalHistory:
    """Read the approvals from the index if it is complete, else from event logs, or from both combined.

    Grants inside Permit2 are read from event logs in any case, and so are the approvals if an explorer has
    the wallet's whole history.
    """
    chain_id, wallet = request.chain_id, request.wallet_address
    is_index_available = goplus.is_configured and goplus.supports_chain(chain_id)
    async with open_task_group() as group:
        grants_task = group.create_task(attempt(scan_grants, reader, wallet))
        scan_task = (
            group.create_task(attempt(scan_approvals, reader, rpc, wallet))
            if reader.has_history or not is_index_available
            else None
        )
        index = await attempt(goplus.approvals, chain_id, wallet) if is_index_available else None
    is_index_whole = isinstance(index, ReportedApprovals) and not index.partial
    scan = scan_task.result() if scan_task else None
    if scan is None and not is_index_whole:
        scan = await attempt(scan_approvals, reader, rpc, wallet)
    grants = grants_task.result()
    found_grants = grants if isinstance(grants, GrantScan) else None
    logs = scan if isinstance(scan, ApprovalScan) else None
    if isinstance(index, ReportedApprovals):
        return ApprovalHistory(merge_approvals(index, logs) if logs else index, "goplus", logs, found_grants)
    if logs:
        if goplus.supports_chain(chain_id) and not logs.is_complete:
            goplus.trace.add_warning(
                f"{goplus.info.label} was not available; event logs of a block range were read instead"
            )
        return ApprovalHistory(logs.approvals, logs.source, logs, found_grants)
    assert isinstance(scan, NoData | ProviderFailure)  # there is neither index nor logs
    raise scan if index is None or isinstance(index, NoData) else index


async def _read_live_state(
    request: ApprovalRiskRequest, rpc: Rpc, history: ApprovalHistory, now: int
) -> OnchainState:
    """Read the current on-chain state; if there are too many approvals, of the most urgent ones."""
    chain_id = request.chain_id
    entries = sorted(
        history.entries,
        key=lambda entry: evaluate_approval(ApprovalEvidence(entry, chain_id, now)).sort_key,
    )
    can_read = rpc.is_configured and rpc.supports_chain(chain_id)
    live = (
        await read_onchain_state(rpc, chain_id, request.wallet_address, entries, history.scan)
        if can_read
        else OnchainState()
    )
    if entries and not live.tokens:
        rpc.trace.add_warning(
            "Allowances could not be read from the chain; the amounts are as listed, not live"
        )
    return live


def _build_evidence(
    entry: ReportedApproval, live: OnchainState, chain_id: int, now: int, head: int | None
) -> ApprovalEvidence:
    token = live.tokens.get(entry.token.address)
    # a node that is behind the event does not know of it yet
    is_known = entry.block is None or head is None or entry.block <= head
    return ApprovalEvidence(
        entry,
        chain_id,
        now,
        allowance=live.current_allowance(entry.key, now) if is_known else None,
        balance=token.balance if token else None,
        supply=token.supply if token else None,
        kind=live.kinds.get(entry.spender.address),
        decimals=_token_decimals(entry, token),
        expires_at=live.expirations.get(entry.key),
        permit2_limit=live.permit2_limits.get(entry.token.address) if entry.mechanism == "permit2" else None,
    )


def _token_decimals(entry: ReportedApproval, token: CurrentToken | None) -> int | None:
    """Return the decimals that the chain gives, else the source's."""
    return token.decimals if token and token.decimals is not None else entry.token.decimals


async def _add_prices(
    evidence: list[ApprovalEvidence], defillama: DefiLlama, chain_id: int
) -> list[ApprovalEvidence]:
    """Add the prices of tokens that could be taken; doubtful prices are left out."""
    urgent_first = sorted(evidence, key=lambda each: evaluate_approval(each).sort_key)
    tokens = dict.fromkeys(each.entry.token.address for each in urgent_first if each.exposed_amount)
    prices = (await fetch_token_prices(defillama, chain_id, list(tokens)) if tokens else None) or {}
    confident = {token: price.usd for token, price in prices.items() if price.is_confident}
    return [replace(each, price_usd=confident.get(each.entry.token.address)) for each in evidence]


def _build_exposure(verdicts: Sequence[ApprovalVerdict], *, is_complete: bool) -> ApprovalExposure:
    if not verdicts and not is_complete:
        return ApprovalExposure(usd=None, unpriced_tokens=0)
    total = total_exposure(verdicts)
    return ApprovalExposure(usd=total.usd, unpriced_tokens=total.unpriced_tokens)


def _build_account(live: OnchainState) -> ApprovalAccount:
    code = live.wallet_code
    if code is None:
        return ApprovalAccount(kind="unknown", delegate_address=None)
    delegate = delegation_target(code)
    kind: AccountKind = "delegated_wallet" if delegate else "contract" if code else "wallet"
    return ApprovalAccount(kind=kind, delegate_address=delegate)


def _build_approval(verdict: ApprovalVerdict, live: OnchainState) -> Approval:
    evidence = verdict.evidence
    entry = evidence.entry
    token = _build_token(evidence, live.tokens.get(entry.token.address))
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


def _build_token(evidence: ApprovalEvidence, live_token: CurrentToken | None) -> ApprovedToken:
    token = evidence.entry.token
    return ApprovedToken(
        address=token.address,
        symbol=(live_token.symbol if live_token else None) or token.symbol,
        decimals=evidence.decimals,
        balance_base_units=format_base_units(evidence.balance),
        balance=_scale_units(evidence.balance, evidence.decimals),
    )


def _build_spender(evidence: ApprovalEvidence) -> Spender:
    spender = evidence.entry.spender
    kind: SpenderKind = (
        "unknown" if evidence.is_contract is None else "contract" if evidence.is_contract else "wallet"
    )
    return Spender(
        address=spender.address,
        name=spender.name or ("Permit2" if spender.address == PERMIT2 else None),
        project=spender.project,
        kind=kind,
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
    verdict: ApprovalVerdict, approval: Approval, request: ApprovalRiskRequest
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
    page = f"https://revoke.cash/address/{request.wallet_address}?chainId={request.chain_id}"
    return Recommendation(
        action=action_advice.action,
        mechanism=entry.mechanism,
        token_address=entry.token.address,
        spender_address=entry.spender.address,
        reason=f"{names}: {action_advice.reason}" if names else action_advice.reason,
        url=page if request.chain_id in CHAIN_BY_ID else None,
    )


def _build_coverage(
    history: ApprovalHistory,
    live: OnchainState,
    request: ApprovalRiskRequest,
    verdicts: Sequence[ApprovalVerdict],
) -> ApprovalCoverage:
    scan, grants = history.scan, history.grants
    is_all_listed = len(verdicts) <= MAX_APPROVALS
    return ApprovalCoverage(
        source=history.source,
        note=describe_coverage(history, empty=not verdicts),
        complete=history.is_complete if is_all_listed else False,
        chain_id=request.chain_id,
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
    return [f"Approvals left out of this answer, less urgent as far as is known: {more}"] if more > 0 else []
