"""approval-risk: who may spend a wallet's tokens, and which of that to take back."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from centgate.chains import Address, OnChain
from centgate.errors import ProviderUnconfigured
from centgate.provider import Fallback, Primary
from centgate.providers.goplus import GoPlus
from centgate.providers.rpc import Rpc
from centgate.schema import Data
from centgate.service import service

ApprovalSource = Literal["goplus", "rpc"]
Severity = Literal["danger", "warning", "info"]


class ApprovalRiskRequest(OnChain):
    """A wallet on a chain."""

    wallet_address: Address = Field(description="The wallet: 0x and 40 hexadecimal characters.")


class ApprovalFinding(Data):
    """One reason to look at an approval."""

    id: Literal[
        "malicious_spender",
        "malicious_token",
        "doubtful_spender",
        "spender_is_wallet",
        "spender_has_no_code",
        "spender_unverified",
        "spender_young",
        "unlimited",
        "stale",
        "permit2",
    ]
    severity: Severity
    explanation: str = Field(description="One sentence.")
    source: ApprovalSource
    value: str | None = Field(description="What the source gave, as text.")


class Allowance(Data):
    """How much may be spent."""

    amount_base_units: str | None = Field(
        description="In base units, a decimal string; null when not known exactly."
    )
    amount: float | None = Field(description="Scaled by the token's decimals; null when those are unknown.")
    unlimited: bool | None = Field(description="Whether it exceeds anything the wallet could ever hold.")
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
    kind: Literal["contract", "wallet", "unknown"]
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
    severity: Severity = Field(description="That of the worst finding.")
    findings: list[ApprovalFinding]


class Recommendation(Data):
    """What to do about one approval."""

    action: Literal["revoke", "review"]
    token_address: str = Field(description="Lower case.")
    spender_address: str = Field(description="Lower case.")
    reason: str = Field(description="One sentence.")
    url: str = Field(description="A page where the wallet's owner can revoke it.")


class ApprovalCoverage(Data):
    """How much of the wallet's history the answer rests on."""

    source: ApprovalSource = Field(
        description="`goplus`: an index of approvals; `rpc`: event logs of a block range."
    )
    complete: bool | None = Field(
        description="Whether all ERC-20 approvals were seen; null when the source cannot tell."
    )
    chain_id: int
    from_block: int | None = Field(description="First block of the range; null for an index.")
    to_block: int | None = Field(description="Last block of the range; null for an index.")
    days: float | None = Field(description="Length of the range in days, about.")
    tokens_examined: int | None
    calls_failed: int = Field(description="Allowances that could not be read.")
    not_covered: list[str] = Field(description="Kinds of permission that were not looked for.")


class ApprovalRisk(Data):
    """A wallet's approvals, judged."""

    approvals: list[Approval] = Field(description="The most severe first; revoked ones left out.")
    unlimited_count: int
    recommendations: list[Recommendation] = Field(description="The most pressing first.")
    coverage: ApprovalCoverage
    warnings: list[str] = Field(description="What could not be checked.")


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
                    address="0x000000000022d473030f116ddee9f6b43ac78ba3",
                    name="Permit2",
                    kind="contract",
                    source_verified=True,
                    trusted=True,
                    deployed_at=None,
                ),
                allowance=Allowance(
                    amount_base_units=str(2**256 - 1), amount=None, unlimited=True, live=True, source="rpc"
                ),
                changed_at="2026-01-12T08:00:11Z",
                stale=True,
                severity="warning",
                findings=[
                    ApprovalFinding(
                        id="unlimited",
                        severity="warning",
                        explanation="The spender may take every unit the wallet ever holds.",
                        source="goplus",
                        value="Unlimited",
                    ),
                    ApprovalFinding(
                        id="stale",
                        severity="warning",
                        explanation="Unchanged for more than 180 days.",
                        source="goplus",
                        value="1768204811",
                    ),
                ],
            )
        ],
        unlimited_count=1,
        recommendations=[
            Recommendation(
                action="review",
                token_address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
                spender_address="0x000000000022d473030f116ddee9f6b43ac78ba3",
                reason="Unlimited, and unchanged for more than 180 days.",
                url="https://revoke.cash/address/0xd8da6bf26964af9d7eed9e03e53415d37aa96045?chainId=8453",
            )
        ],
        coverage=ApprovalCoverage(
            source="goplus",
            complete=None,
            chain_id=8453,
            from_block=None,
            to_block=None,
            days=None,
            tokens_examined=1,
            calls_failed=0,
            not_covered=["NFT operator approvals", "grants signed for Permit2"],
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
    raise ProviderUnconfigured(goplus.about.name, f"this build has no adapter for {goplus.about.name}")
