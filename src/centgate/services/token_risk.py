"""token-risk: risk level of a token, with the reasons."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeVar, cast

from pydantic import ConfigDict, Field

from centgate.chains import Address, NamedChainRequest
from centgate.crypto.token.evidence import (
    Liquidity,
    MissingReason,
    TokenEvidence,
    TokenSource,
    sum_pair_liquidity,
    sum_pool_liquidity,
)
from centgate.crypto.token.security import Simulation, TokenFlags
from centgate.crypto.token.token_rules import RULES_VERSION
from centgate.crypto.token.token_verdict import Citation, VerdictFlag, cite_field, evaluate_token
from centgate.errors import Issue, NoData, ProviderFailure, ProviderUnconfigured
from centgate.fallback import attempt, open_task_group
from centgate.provider import Enrichment, Primary, Secondary
from centgate.providers.dexscreener import DexScreener
from centgate.providers.geckoterminal import GeckoTerminal
from centgate.providers.goplus import GoPlus
from centgate.providers.honeypotis import HoneypotIs
from centgate.schema import Data
from centgate.service import service
from centgate.timestamps import format_timestamp

T = TypeVar("T")

NO_TOKEN = "^0x(0{36}[0-9a-fA-F]{4}|[eE]{40})$"
"""The zero address, precompiled contracts, and the placeholder for a chain's native coin."""
_NAMED_CHAIN = cast(dict[str, Any], NamedChainRequest.model_config.get("json_schema_extra"))


class TokenRiskRequest(NamedChainRequest):
    """A token on a chain."""

    model_config = ConfigDict(
        json_schema_extra={
            **_NAMED_CHAIN,
            "allOf": [{"properties": {"tokenAddress": {"not": {"pattern": NO_TOKEN}}}}],
        }
    )

    token_address: Address = Field(description="The token's contract: 0x and 40 hexadecimal characters.")

    @classmethod
    def check_cross_field_rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """Require a named chain and an address that can be a token's."""
        yield from super().check_cross_field_rules(body, context)
        address = body.get("tokenAddress")
        if isinstance(address, str) and re.fullmatch(NO_TOKEN[:-1], address):
            yield Issue(
                "tokenAddress",
                "this is not a token: the zero address, a precompiled contract, or the placeholder of a "
                "chain's native coin",
            )


class Evidence(Data):
    """A value that one source gave."""

    source: TokenSource
    field: str = Field(description="The source's own name for the fact.")
    value: str | None = Field(description="Its value as the source gave it, as text; null when it gave none.")


class RiskFlag(Data):
    """One reason for the risk level."""

    id: str = Field(description="Stable identifier of the reason, e.g. `sell_tax`.")
    severity: Literal["critical", "high", "medium", "low", "info"]
    explanation: str = Field(description="One sentence on what it means for a holder.")
    evidence: list[Evidence]
    rules_version: str = Field(description="Version of the rules that raised the flag, a date.")


class HoneypotCheck(Data):
    """Result of the check that the token can be sold again."""

    is_honeypot: bool | None = Field(description="Null when no source could tell.")
    simulated: bool = Field(description="Whether a buy and a sell were simulated.")
    not_simulated: Literal["chain_not_covered", "no_pair", "failed", "source_unavailable"] | None = Field(
        description="The reason for a missing simulation; null when there was one."
    )
    can_buy: bool | None = Field(description="Null when no source could tell, as for the next two.")
    can_sell: bool | None
    can_transfer: bool | None
    reason: str | None = Field(
        description="The simulation's own text on what stopped the sale, or the simulation."
    )
    sources_agree: bool | None = Field(description="Null unless two sources answered.")
    evidence: list[Evidence]


class TaxReading(Data):
    """A tax as reported by one source."""

    source: TokenSource
    percent: float
    raw: str = Field(description="As the source gave it: some give percent, some fractions of one.")


class Tax(Data):
    """A tax in percent: the highest of the readings."""

    percent: float | None = Field(description="Percent of the amount; null when no source gave one.")
    readings: list[TaxReading]


class TokenTaxes(Data):
    """Share taken from each purchase, sale and transfer of the token."""

    buy: Tax
    sell: Tax
    transfer: Tax
    modifiable: bool | None = Field(description="Whether the owner can change a tax.")


class TokenOwnership(Data):
    """Control over the token: the owner and its powers."""

    state: Literal["none", "renounced", "held", "hidden", "unknown"] = Field(
        description="`none`: the contract has no owner; `renounced`: given to an address that no one "
        "controls; `hidden`: control remains although no owner is visible."
    )
    owner_address: str | None = Field(description="Lower case; null when there is none.")
    owner_is_contract: bool | None = Field(
        description="Whether the owner is a contract, such as a multisig; null when no source tells."
    )
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
        description="Share of the largest holders (ten at most) in percent, wallets only: without contracts, "
        "pools, lockers, exchanges and burn addresses."
    )
    holder_count: int | None
    trusted: bool | None = Field(description="Whether a source lists it as well known; false proves nothing.")
    source: TokenSource | None


class TopPair(Data):
    """The deepest pair on the requested chain."""

    pair_address: str = Field(description="Lower case.")
    dex: str | None
    liquidity_usd: float | None
    created_at: str | None = Field(description="ISO 8601, UTC.")


class TokenLiquidity(Data):
    """Liquidity that a sale can use, on the requested chain only."""

    total_usd: float | None = Field(description="US dollars in all pairs that the source lists.")
    other_side_usd: float | None = Field(
        description="US dollars of the other tokens in these pairs: the most that selling all of the token "
        "could return. Far less than half of the total where a pair is one-sided. Null when the source does "
        "not give it."
    )
    pair_count: int | None = Field(description="Pairs that the source lists; 0 when it lists none.")
    top_pair: TopPair | None
    traded_since: str | None = Field(
        description="Creation time of the top pair, or of an older one about as deep. ISO 8601, UTC."
    )
    locked_percent: float | None = Field(
        description="Share of the liquidity that is locked or burned, in percent."
    )
    largest_wallet_percent: float | None = Field(
        description="Share of the liquidity that one wallet can take out at any time, in percent."
    )
    source: TokenSource | None


class TokenRisk(Data):
    """Risk level of a token with its evidence."""

    token_address: str = Field(description="Lower case.")
    risk_level: Literal["critical", "high", "medium", "low", "unknown"] = Field(
        description="The level of the worst flag; `unknown` when there is too little evidence for a level."
    )
    risk_flags: list[RiskFlag] = Field(description="The worst first.")
    honeypot: HoneypotCheck
    taxes: TokenTaxes
    ownership: TokenOwnership
    liquidity: TokenLiquidity
    warnings: list[str] = Field(
        description="Checks that were not possible, and disagreements between sources."
    )


@service(
    order=10,
    title="Token risk",
    category="crypto-context",
    tags=("token", "honeypot", "tax", "ownership", "evm"),
    guardrails=(
        "One token per request.",
        "Read-only: nothing is signed or sent.",
        "The buy/sell simulation covers ethereum, base and bsc; elsewhere token-security flags decide.",
        "A fact that no source gave is null and is never treated as safe.",
        "The level describes what sources report now; it is neither advice nor a forecast.",
    ),
    cache_ttl=timedelta(minutes=5),
    input_example=TokenRiskRequest(chain="base", token_address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"),
    output_example=TokenRisk(
        token_address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
        risk_level="low",
        risk_flags=[
            RiskFlag(
                id="owner_can_blacklist",
                severity="low",
                explanation="It has a blacklist: single holders can be kept from selling. It is a well-known "
                "token, so this counts as centralised control.",
                evidence=[
                    Evidence(source="goplus", field="is_blacklisted", value="1"),
                    Evidence(
                        source="goplus",
                        field="owner_address",
                        value="0x3abd6f64a422225e61e435bae41db12096106df7",
                    ),
                ],
                rules_version=RULES_VERSION,
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
            owner_is_contract=None,
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
            other_side_usd=198_000_000,
            pair_count=30,
            top_pair=TopPair(
                pair_address="0xd0b53d9277642d899df5c87a3966a349a798f224",
                dex="uniswap",
                liquidity_usd=98_000_000,
                created_at="2023-08-16T19:05:00Z",
            ),
            traded_since="2023-08-16T19:05:00Z",
            locked_percent=None,
            largest_wallet_percent=None,
            source="dexscreener",
        ),
        warnings=["not checked, as GoPlus Security gives no value: locked liquidity, fraudulent airdrops"],
    ),
)
async def token_risk(
    request: TokenRiskRequest,
    goplus: Primary[GoPlus],
    honeypotis: Secondary[HoneypotIs],
    dexscreener: Enrichment[DexScreener],
    geckoterminal: Enrichment[GeckoTerminal],
) -> TokenRisk:
    """Rate the honeypot, tax and ownership risk of an EVM token.

    Combines token-security flags, a simulated buy and sell, and the liquidity on exchanges into one risk
    level with its reasons. Every reason names its source and value. Taxes are in percent; if two sources
    give a tax, the higher one counts.
    """
    chain_id, token = request.target_chain_id, request.token_address
    async with open_task_group() as group:
        analysis = group.create_task(_unless_unknown(goplus.token_security(chain_id, token)))
        simulation = group.create_task(_simulate(honeypotis, chain_id, token))
        listing = group.create_task(_list_pairs(dexscreener, geckoterminal, chain_id, token))
    flags, simulated, listed = analysis.result(), simulation.result(), listing.result()
    is_pending = isinstance(flags, TokenFlags) and flags.partial and not flags.raw
    token_flags = None if is_pending or isinstance(flags, NoData) else flags
    if not token_flags and not isinstance(simulated, Simulation) and not listed.liquidity:
        not_ready = goplus.invalid_response("has only begun to analyse this token; retry in a minute")
        raise not_ready if is_pending else _no_evidence(token, simulated, *listed.missing)
    evidence = _build_evidence(token_flags, simulated, listed)
    if evidence.liquidity and evidence.liquidity.source == "goplus":
        goplus.trace.add_warning(
            "liquidity is the sum of the pairs that GoPlus Security lists, as no exchange index gives it"
        )
    verdict = evaluate_token(evidence)
    return TokenRisk(
        token_address=token,
        risk_level=verdict.level,
        risk_flags=[_to_risk_flag(flag) for flag in verdict.flags],
        honeypot=_build_honeypot_check(evidence),
        taxes=_build_taxes(evidence),
        ownership=_build_ownership(evidence),
        liquidity=_build_liquidity(evidence),
        warnings=[*goplus.trace.warnings, *verdict.warnings],
    )


@dataclass(frozen=True, slots=True)
class ExchangeListing:
    """Result of the exchange indexes for a token."""

    liquidity: Liquidity | None = None
    pool_addresses: frozenset[str] = frozenset()
    missing: tuple[NoData | ProviderFailure, ...] = ()
    sources_without_pair: tuple[TokenSource, ...] = ()


async def _unless_unknown(awaitable: Awaitable[T]) -> T | NoData:
    """Return the result, or the NoData error as a value. Raises ProviderFailure."""
    try:
        return await awaitable
    except NoData as no_data:
        return no_data


SimulationOutcome = Simulation | NoData | ProviderFailure | None
"""A simulated purchase and sale, or the error; None if the simulation does not cover the chain."""


async def _simulate(honeypotis: HoneypotIs, chain_id: int, token: str) -> SimulationOutcome:
    return (
        await attempt(honeypotis.simulate_trade, chain_id, token)
        if honeypotis.supports_chain(chain_id)
        else None
    )


async def _list_pairs(
    dexscreener: DexScreener, geckoterminal: GeckoTerminal, chain_id: int, token: str
) -> ExchangeListing:
    """Return the pairs of the first exchange index that has any."""
    missing: list[NoData | ProviderFailure] = []
    without_pair: list[TokenSource] = []
    indexes: tuple[tuple[TokenSource, DexScreener | GeckoTerminal], ...] = (
        ("dexscreener", dexscreener),
        ("geckoterminal", geckoterminal),
    )
    for source, index in indexes:
        pairs = await attempt(index.pairs, chain_id, token)
        if isinstance(pairs, NoData):
            without_pair.append(source)
        if isinstance(pairs, NoData | ProviderFailure):
            missing.append(pairs)
            continue
        if any(isinstance(each, ProviderFailure) for each in missing):
            index.trace.add_warning(
                f"liquidity is from {index.info.label} instead of {dexscreener.info.label}"
            )
        addresses = frozenset(pair.address for pair in pairs)
        return ExchangeListing(
            sum_pair_liquidity(token, pairs, source), addresses, tuple(missing), tuple(without_pair)
        )
    return ExchangeListing(missing=tuple(missing), sources_without_pair=tuple(without_pair))


def _no_evidence(token: str, *missing: SimulationOutcome) -> NoData | ProviderFailure:
    """Return a source's failure if a retry may succeed, else NoData."""
    failures = [each for each in missing if isinstance(each, ProviderFailure)]
    no_data = NoData(f"no source has data on the token {token}")
    return next((each for each in failures if not isinstance(each, ProviderUnconfigured)), no_data)


def _build_evidence(
    flags: TokenFlags | None, simulated: SimulationOutcome, listed: ExchangeListing
) -> TokenEvidence:
    return TokenEvidence(
        now=datetime.now(UTC),
        flags=flags,
        simulation=simulated if isinstance(simulated, Simulation) else None,
        no_simulation_reason=_missing_reason(simulated),
        liquidity=listed.liquidity or (sum_pool_liquidity(flags) if flags else None),
        sources_without_pair=listed.sources_without_pair,
        pool_addresses=listed.pool_addresses,
    )


def _missing_reason(simulated: SimulationOutcome) -> MissingReason | None:
    match simulated:
        case Simulation():
            return None
        case NoData():
            return "no_pair"
        case None:
            return "chain_not_covered"
        case _:
            return "source_unavailable"


def _to_risk_flag(flag: VerdictFlag) -> RiskFlag:
    return RiskFlag(
        id=flag.id,
        severity=flag.severity,
        explanation=flag.explanation,
        evidence=[_to_evidence(each) for each in flag.evidence],
        rules_version=flag.rules_version,
    )


def _to_evidence(cited: Citation) -> Evidence:
    return Evidence(source=cited.source, field=cited.field, value=cited.value)


def _build_honeypot_check(evidence: TokenEvidence) -> HoneypotCheck:
    is_simulated = evidence.simulation_result.succeeded
    return HoneypotCheck(
        is_honeypot=evidence.is_honeypot,
        simulated=is_simulated,
        not_simulated=None if is_simulated else evidence.no_simulation_reason or "failed",
        can_buy=evidence.can_buy,
        can_sell=evidence.can_sell,
        can_transfer=evidence.can_transfer,
        reason=evidence.simulation_result.reason,
        sources_agree=evidence.sources_agree,
        evidence=[
            _to_evidence(each)
            for name in ("goplus:is_honeypot", "honeypotis:honeypotResult.isHoneypot")
            for each in cite_field(evidence, name)
            if each.value is not None
        ],
    )


def _build_taxes(evidence: TokenEvidence) -> TokenTaxes:
    flags, raw, simulated = evidence.token_flags, evidence.token_flags.raw, evidence.simulation_result.raw
    powers = (flags.tax_modifiable, flags.personal_tax_modifiable)
    return TokenTaxes(
        buy=_build_tax(
            evidence.buy_tax,
            (flags.buy_tax, raw.get("buy_tax")),
            (evidence.simulation_buy_tax, simulated.get("simulationResult.buyTax")),
        ),
        sell=_build_tax(
            evidence.sell_tax,
            (flags.sell_tax, raw.get("sell_tax")),
            (evidence.simulation_sell_tax, simulated.get("simulationResult.sellTax")),
        ),
        transfer=_build_tax(
            evidence.transfer_tax,
            (flags.transfer_tax, raw.get("transfer_tax")),
            (evidence.simulation_transfer_tax, simulated.get("simulationResult.transferTax")),
        ),
        modifiable=True if True in powers else None if None in powers else False,
    )


def _build_tax(
    highest: float | None,
    flagged: tuple[float | None, str | None],
    simulated: tuple[float | None, str | None],
) -> Tax:
    """Build a tax with its readings, each in percent and as its source gave it."""
    sources: tuple[TokenSource, TokenSource] = ("goplus", "honeypotis")
    return Tax(
        percent=highest,
        readings=[
            TaxReading(source=source, percent=percent, raw=raw or "")
            for source, (percent, raw) in zip(sources, (flagged, simulated), strict=True)
            if percent is not None
        ],
    )


def _build_ownership(evidence: TokenEvidence) -> TokenOwnership:
    flags = evidence.token_flags
    return TokenOwnership(
        state=evidence.owner_state,
        owner_address=flags.owner_address or None,
        owner_is_contract=evidence.is_owner_contract,
        creator_address=flags.creator_address,
        reclaimable=flags.reclaimable,
        source_verified=evidence.is_source_verified,
        upgradeable=evidence.is_upgradeable,
        can_mint=flags.mintable,
        can_pause=flags.pausable,
        can_blacklist=flags.blacklists,
        can_change_balances=flags.changes_balances,
        can_self_destruct=flags.self_destructs,
        owner_percent=evidence.owner_percent,
        creator_percent=evidence.creator_percent,
        top_holders_percent=evidence.top_holders_percent,
        holder_count=flags.holder_count,
        trusted=evidence.is_well_known or flags.trusted,
        source="goplus" if evidence.flags else None,
    )


def _build_liquidity(evidence: TokenEvidence) -> TokenLiquidity:
    liquidity = evidence.liquidity
    if liquidity is None:
        source = evidence.sources_without_pair[0] if evidence.has_no_pair else None
        return TokenLiquidity(
            total_usd=None,
            other_side_usd=None,
            pair_count=0 if evidence.has_no_pair else None,
            top_pair=None,
            traded_since=None,
            locked_percent=evidence.locked_percent,
            largest_wallet_percent=evidence.largest_lp_wallet_percent,
            source=source,
        )
    return TokenLiquidity(
        total_usd=liquidity.total_usd,
        other_side_usd=liquidity.other_side_usd,
        pair_count=liquidity.pair_count,
        top_pair=_build_top_pair(liquidity),
        traded_since=format_timestamp(liquidity.trading_since) if liquidity.trading_since else None,
        locked_percent=evidence.locked_percent,
        largest_wallet_percent=evidence.largest_lp_wallet_percent,
        source=liquidity.source,
    )


def _build_top_pair(liquidity: Liquidity) -> TopPair | None:
    if liquidity.top_pair is None:
        return None
    return TopPair(
        pair_address=liquidity.top_pair,
        dex=liquidity.top_dex,
        liquidity_usd=liquidity.top_usd,
        created_at=format_timestamp(liquidity.top_created_at) if liquidity.top_created_at else None,
    )
