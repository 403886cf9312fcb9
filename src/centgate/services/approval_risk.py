"""approval-risk: approvals of a wallet at tokens and inside Permit2, and which of them to revoke."""

from __future__ import annotations

import time
from datetime import timedelta

from msgspec.structs import replace
from pydantic import Field

from centgate.answers.approval_risk import (
    NOT_COVERED,
    Allowance,
    Approval,
    ApprovalAccount,
    ApprovalCoverage,
    ApprovalExposure,
    ApprovalFinding,
    ApprovalRisk,
    ApprovedToken,
    Recommendation,
    Spender,
    build_approval_risk,
)
from centgate.chains import Address, ChainRequest
from centgate.crypto.approvals.approval_evidence import ApprovalEvidence
from centgate.crypto.approvals.approval_history import ApprovalHistory, collect_warnings, describe_delegation
from centgate.crypto.approvals.approval_rules import RULES_VERSION
from centgate.crypto.approvals.approval_verdict import evaluate_approval, order_valued_first
from centgate.crypto.approvals.reported import (
    ApprovalScan,
    CurrentToken,
    GrantScan,
    OnchainState,
    ReportedApproval,
    ReportedApprovals,
)
from centgate.errors import NoData, ProviderFailure
from centgate.fallback import attempt, open_task_group
from centgate.lookups.allowances import merge_approvals, read_onchain_state, scan_approvals
from centgate.lookups.log_history import LogReader
from centgate.lookups.permit2 import scan_grants
from centgate.lookups.token_prices import fetch_token_prices, list_chain_prices
from centgate.provider import Enrichment, Fallback, Primary, describe_fallback
from centgate.providers.defillama import DefiLlama
from centgate.providers.etherscan import Etherscan
from centgate.providers.goplus import GoPlus
from centgate.providers.rpc import Rpc
from centgate.service import service


class ApprovalRiskRequest(ChainRequest):
    """A wallet on a chain."""

    wallet_address: Address = Field(description="The wallet: 0x and 40 hexadecimal characters.")


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
                reason='"USDC" to "AggregationRouterV5": Unlimited, and unchanged for more than 180 days.',
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
            not_covered=[*NOT_COVERED, "grants inside Permit2 before block 37104000"],
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
    evidence = await _add_prices(evidence, defillama, request.chain_id, live)
    verdicts = sorted(
        (evaluate_approval(each) for each in evidence if each.amount != 0), key=lambda each: each.sort_key
    )
    if not verdicts and not history.is_complete:
        goplus.trace.is_provisional = True
    warnings = [*collect_warnings(history, live, evidence), *goplus.trace.warnings]
    if delegation := describe_delegation(live):
        rpc.trace.put_warnings_first([delegation])
    return build_approval_risk(request.chain_id, request.wallet_address, history, live, verdicts, warnings)


async def _read_history(
    request: ApprovalRiskRequest, goplus: GoPlus, rpc: Rpc, reader: LogReader
) -> ApprovalHistory:
    """Read the approvals from the index if it is complete, else from event logs, or from both combined.

    Grants inside Permit2 are read from event logs in any case, and so are the approvals if an explorer has
    the wallet's whole history.
    """
    chain_id, wallet = request.chain_id, request.wallet_address
    is_index_available = goplus.is_available(chain_id)
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
            used = "event logs of a block range"
            goplus.trace.add_warning(describe_fallback(used, goplus.info, "was not available"))
        return ApprovalHistory(logs.approvals, logs.source, logs, found_grants)
    assert isinstance(scan, NoData | ProviderFailure)  # there is neither index nor logs
    raise scan if index is None or isinstance(index, NoData) else index


async def _read_live_state(
    request: ApprovalRiskRequest, rpc: Rpc, history: ApprovalHistory, now: int
) -> OnchainState:
    """Read the current on-chain state; if there are too many approvals, of the most urgent ones."""
    chain_id = request.chain_id
    evidence = order_valued_first(ApprovalEvidence(entry, chain_id, now) for entry in history.entries)
    entries = [each.entry for each in evidence]
    live = (
        await read_onchain_state(rpc, chain_id, request.wallet_address, entries, history.scan)
        if rpc.is_available(chain_id)
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
    evidence: list[ApprovalEvidence], defillama: DefiLlama, chain_id: int, live: OnchainState
) -> list[ApprovalEvidence]:
    """Add the prices of tokens that could be taken; doubtful prices are left out."""
    ordered = order_valued_first(evidence)
    tokens = dict.fromkeys(each.entry.token.address for each in ordered if each.exposed_amount)
    if not tokens:
        return evidence
    prices = await fetch_token_prices(defillama, chain_id, list(tokens))
    if prices is None:
        prices = list_chain_prices(defillama, chain_id, live.feed_answers)
    confident = {token: price.usd for token, price in prices.items() if price.is_confident}
    return [replace(each, price_usd=confident.get(each.entry.token.address)) for each in evidence]
