"""token-risk: whether a token is dangerous to hold, and why."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from centgate.chains import Address, OnNamedChain
from centgate.errors import ProviderUnconfigured
from centgate.provider import Enrichment, Primary, Secondary
from centgate.providers.dexscreener import DexScreener
from centgate.providers.geckoterminal import GeckoTerminal
from centgate.providers.goplus import GoPlus
from centgate.providers.honeypotis import HoneypotIs
from centgate.schema import Data
from centgate.service import service

RiskSource = Literal["goplus", "honeypotis", "dexscreener", "geckoterminal"]


class TokenRiskRequest(OnNamedChain):
    """A token on a chain."""

    token_address: Address = Field(description="The token's contract: 0x and 40 hexadecimal characters.")


class Evidence(Data):
    """What one source said."""

    source: RiskSource
    field: str = Field(description="What the source calls the fact.")
    value: str | None = Field(description="Its value as the source gave it, as text; null when it gave none.")


class RiskFlag(Data):
    """One reason behind the verdict."""

    id: str = Field(description="Stable identifier of the reason, e.g. `sell_tax`.")
    severity: Literal["critical", "high", "medium", "low", "info"]
    explanation: str = Field(description="One sentence on what it means for a holder.")
    evidence: list[Evidence]
    rules_version: str = Field(description="Version of the rules that raised the flag, a date.")


class HoneypotCheck(Data):
    """Whether the token can be sold again."""

    is_honeypot: bool | None = Field(description="Null when no source could tell.")
    simulated: bool = Field(description="Whether a buy and a sell were simulated.")
    not_simulated: Literal["chain_not_covered", "no_pair", "failed", "source_unavailable"] | None = Field(
        description="Why there was no simulation; null when there was one."
    )
    can_buy: bool | None
    can_sell: bool | None
    can_transfer: bool | None
    reason: str | None = Field(description="What stopped the sale, in the simulation's words.")
    sources_agree: bool | None = Field(description="Null unless two sources answered.")
    evidence: list[Evidence]


class TaxReading(Data):
    """A tax as one source gave it."""

    source: RiskSource
    percent: float
    raw: str = Field(description="As the source gave it: some count in percent, some in fractions of one.")


class Tax(Data):
    """A tax in percent: the highest of the readings."""

    percent: float | None = Field(description="Percent of the amount; null when no source gave one.")
    readings: list[TaxReading]


class TokenTaxes(Data):
    """What is taken from each movement of the token."""

    buy: Tax
    sell: Tax
    transfer: Tax
    modifiable: bool | None = Field(description="Whether the owner can change a tax.")


class TokenOwnership(Data):
    """Who controls the token, and what that control reaches."""

    state: Literal["none", "renounced", "held", "hidden", "unknown"] = Field(
        description="`none`: the contract has no owner; `renounced`: given to an address nobody holds; "
        "`hidden`: control remains although no owner shows."
    )
    owner_address: str | None = Field(description="Lower case.")
    creator_address: str | None = Field(description="Lower case.")
    reclaimable: bool | None = Field(description="Whether a renounced ownership can be taken back.")
    source_verified: bool | None = Field(description="Whether the contract's source is published.")
    upgradeable: bool | None = Field(
        description="Whether the contract is a proxy, so that its code can change."
    )
    can_mint: bool | None
    can_pause: bool | None
    can_blacklist: bool | None
    can_change_balances: bool | None
    can_self_destruct: bool | None
    owner_percent: float | None = Field(description="The owner's share of the supply in percent.")
    creator_percent: float | None = Field(description="The creator's share of the supply in percent.")
    top_holders_percent: float | None = Field(
        description="Share of the ten largest holders in percent, without pools, lockers and burn addresses."
    )
    holder_count: int | None
    trusted: bool | None = Field(description="Whether a source lists it as well known; false proves nothing.")
    source: RiskSource | None


class TopPair(Data):
    """The deepest pair on the chain asked about."""

    pair_address: str = Field(description="Lower case.")
    dex: str | None
    liquidity_usd: float | None
    created_at: str | None = Field(description="ISO 8601, UTC.")


class TokenLiquidity(Data):
    """What stands against a sale, on the chain asked about alone."""

    total_usd: float | None = Field(description="US dollars in all the pairs that the source lists.")
    pair_count: int | None
    top_pair: TopPair | None
    locked_percent: float | None = Field(
        description="Share of the liquidity that is locked or burned, in percent."
    )
    source: RiskSource | None


class TokenRisk(Data):
    """The verdict on a token with what it rests on."""

    token_address: str = Field(description="Lower case.")
    risk_level: Literal["critical", "high", "medium", "low", "unknown"] = Field(
        description="That of the worst flag; `unknown` when too little is known to call it anything."
    )
    risk_flags: list[RiskFlag] = Field(description="The worst first.")
    honeypot: HoneypotCheck
    taxes: TokenTaxes
    ownership: TokenOwnership
    liquidity: TokenLiquidity
    warnings: list[str] = Field(description="What could not be checked, and where sources disagree.")


@service(
    order=10,
    title="Token risk",
    category="crypto-context",
    tags=("token", "honeypot", "tax", "ownership", "evm"),
    guardrails=(
        "One token per request.",
        "Read-only: nothing is signed or sent.",
        "The buy/sell simulation covers ethereum, base and bsc; elsewhere token-security flags decide.",
        "A fact that no source gave is null and is never read as safe.",
        "The level describes what sources report now; it is no advice and no forecast.",
    ),
    fresh_for=timedelta(minutes=5),
    example=TokenRiskRequest(chain="base", token_address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"),
    sample=TokenRisk(
        token_address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
        risk_level="low",
        risk_flags=[
            RiskFlag(
                id="owner_can_blacklist",
                severity="low",
                explanation="The issuer can freeze single holders, as with most centrally issued dollars.",
                evidence=[Evidence(source="goplus", field="is_blacklisted", value="1")],
                rules_version="2026-11-01",
            )
        ],
        honeypot=HoneypotCheck(
            is_honeypot=False,
            simulated=True,
            not_simulated=None,
            can_buy=True,
            can_sell=True,
            can_transfer=True,
            reason=None,
            sources_agree=True,
            evidence=[
                Evidence(source="goplus", field="is_honeypot", value="0"),
                Evidence(source="honeypotis", field="honeypotResult.isHoneypot", value="false"),
            ],
        ),
        taxes=TokenTaxes(
            buy=Tax(percent=0, readings=[TaxReading(source="honeypotis", percent=0, raw="0")]),
            sell=Tax(percent=0, readings=[TaxReading(source="honeypotis", percent=0, raw="0")]),
            transfer=Tax(percent=None, readings=[]),
            modifiable=False,
        ),
        ownership=TokenOwnership(
            state="held",
            owner_address="0x3abd6f64a422225e61e435bae41db12096106df7",
            creator_address=None,
            reclaimable=False,
            source_verified=True,
            upgradeable=True,
            can_mint=True,
            can_pause=True,
            can_blacklist=True,
            can_change_balances=False,
            can_self_destruct=False,
            owner_percent=0,
            creator_percent=None,
            top_holders_percent=21.4,
            holder_count=4_100_000,
            trusted=True,
            source="goplus",
        ),
        liquidity=TokenLiquidity(
            total_usd=412_000_000,
            pair_count=30,
            top_pair=TopPair(
                pair_address="0xd0b53d9277642d899df5c87a3966a349a798f224",
                dex="uniswap",
                liquidity_usd=98_000_000,
                created_at="2023-08-16T19:05:00Z",
            ),
            locked_percent=None,
            source="dexscreener",
        ),
        warnings=["no source gave the share of liquidity that is locked"],
    ),
)
async def token_risk(
    request: TokenRiskRequest,
    goplus: Primary[GoPlus],
    honeypotis: Secondary[HoneypotIs],
    dexscreener: Enrichment[DexScreener],
    geckoterminal: Enrichment[GeckoTerminal],
) -> TokenRisk:
    """Honeypot, tax and ownership risk of an EVM token.

    Joins token-security flags, a simulated buy and sell, and the liquidity found on exchanges into one level
    with its reasons. Every reason carries the source and the value it rests on; taxes are in percent, and
    where two sources give one the higher counts.
    """
    raise ProviderUnconfigured(goplus.about.name, f"this build has no adapter for {goplus.about.name}")
