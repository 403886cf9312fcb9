"""token-risk: whether a token is dangerous to hold, and why."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeVar, cast

from pydantic import ConfigDict, Field

from centgate.chains import Address, OnNamedChain
from centgate.errors import Issue, NoData, ProviderFailure, ProviderUnconfigured
from centgate.facts.tokens import Simulation, TokenFlags
from centgate.provider import Enrichment, Primary, Secondary
from centgate.providers.dexscreener import DexScreener
from centgate.providers.geckoterminal import GeckoTerminal
from centgate.providers.goplus import GoPlus
from centgate.providers.honeypotis import HoneypotIs
from centgate.schema import Data
from centgate.service import service
from centgate.sources import attempt, together
from centgate.text import timestamp
from centgate.verdicts.token_facts import Facts, Gap, Liquidity, Source, in_pairs, in_pools
from centgate.verdicts.token_rules import RULES_VERSION
from centgate.verdicts.token_verdict import Cited, Flag, cited, judge

T = TypeVar("T")

NO_TOKEN = "^0x(0{36}[0-9a-fA-F]{4}|[eE]{40})$"
"""The zero address, precompiled contracts, and what stands for a chain's own coin."""
_NAMED_CHAIN = cast(dict[str, Any], OnNamedChain.model_config.get("json_schema_extra"))


class TokenRiskRequest(OnNamedChain):
    """A token on a chain."""

    model_config = ConfigDict(
        json_schema_extra={
            **_NAMED_CHAIN,
            "allOf": [{"properties": {"tokenAddress": {"not": {"pattern": NO_TOKEN}}}}],
        }
    )

    token_address: Address = Field(description="The token's contract: 0x and 40 hexadecimal characters.")

    @classmethod
    def rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """The chain is named, and the address can be a token's."""
        yield from super().rules(body, context)
        address = body.get("tokenAddress")
        if isinstance(address, str) and re.fullmatch(NO_TOKEN[:-1], address):
            yield Issue(
                "tokenAddress",
                "this is no token: the zero address, a precompiled contract, or the placeholder of a chain's "
                "own coin",
            )


class Evidence(Data):
    """What one source said."""

    source: Source
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
    can_buy: bool | None = Field(description="Null when no source could tell, as below.")
    can_sell: bool | None
    can_transfer: bool | None
    reason: str | None = Field(
        description="What stopped the sale, or the simulation, in the simulation's words."
    )
    sources_agree: bool | None = Field(description="Null unless two sources answered.")
    evidence: list[Evidence]


class TaxReading(Data):
    """A tax as one source gave it."""

    source: Source
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
    owner_address: str | None = Field(description="Lower case; null where there is none.")
    owner_is_contract: bool | None = Field(
        description="Whether the owner is a contract, such as a multisig; null where no source tells."
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
    source: Source | None


class TopPair(Data):
    """The deepest pair on the chain asked about."""

    pair_address: str = Field(description="Lower case.")
    dex: str | None
    liquidity_usd: float | None
    created_at: str | None = Field(description="ISO 8601, UTC.")


class TokenLiquidity(Data):
    """What stands against a sale, on the chain asked about alone."""

    total_usd: float | None = Field(description="US dollars in all the pairs that the source lists.")
    other_side_usd: float | None = Field(
        description="US dollars of other tokens in these pairs: what could be had for all of the token. Far "
        "less than half of the total where a pair is one-sided. Null where the source does not tell it."
    )
    pair_count: int | None = Field(description="Pairs that the source lists; 0 where it lists none.")
    top_pair: TopPair | None
    traded_since: str | None = Field(
        description="When the top pair was made, or an older one about as deep. ISO 8601, UTC."
    )
    locked_percent: float | None = Field(
        description="Share of the liquidity that is locked or burned, in percent."
    )
    largest_wallet_percent: float | None = Field(
        description="Share of the liquidity that one wallet can take out at any time, in percent."
    )
    source: Source | None


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
    """Honeypot, tax and ownership risk of an EVM token.

    Joins token-security flags, a simulated buy and sell, and the liquidity found on exchanges into one level
    with its reasons. Every reason carries the source and the value it rests on; taxes are in percent, and
    where two sources give one the higher counts.
    """
    chain_id, token = request.on, request.token_address
    async with together() as asking:
        analysis = asking.create_task(_unless_unknown(goplus.token(chain_id, token)))
        simulation = asking.create_task(_simulation(honeypotis, chain_id, token))
        listing = asking.create_task(_listing(dexscreener, geckoterminal, chain_id, token))
    flags, tried, listed = analysis.result(), simulation.result(), listing.result()
    pending = isinstance(flags, TokenFlags) and flags.partial and not flags.raw
    known = None if pending or isinstance(flags, NoData) else flags
    if not known and not isinstance(tried, Simulation) and not listed.liquidity:
        begun = goplus.failed("has only begun to analyse this token; ask again in a minute")
        raise begun if pending else _nothing_to_judge(token, tried, *listed.missing)
    facts = _facts(known, tried, listed)
    if facts.liquidity and facts.liquidity.source == "goplus":
        goplus.record.warn(
            "liquidity is the sum of the pairs that GoPlus Security lists, as no index of exchanges tells it"
        )
    verdict = judge(facts)
    return TokenRisk(
        token_address=token,
        risk_level=verdict.level,
        risk_flags=[_flag(flag) for flag in verdict.flags],
        honeypot=_honeypot(facts),
        taxes=_taxes(facts),
        ownership=_ownership(facts),
        liquidity=_liquidity(facts),
        warnings=[*goplus.record.warnings, *verdict.warnings],
    )


@dataclass(frozen=True, slots=True)
class Listing:
    """What the indexes of exchanges say of a token."""

    liquidity: Liquidity | None = None
    pool_addresses: frozenset[str] = frozenset()
    missing: tuple[NoData | ProviderFailure, ...] = ()
    no_pair_in: tuple[Source, ...] = ()


async def _unless_unknown(asking: Awaitable[T]) -> T | NoData:
    """The answer, or that there is none; a failure is raised."""
    try:
        return await asking
    except NoData as nothing:
        return nothing


Tried = Simulation | NoData | ProviderFailure | None
"""A simulated purchase and sale, or why there is none; None where sales are not simulated."""


async def _simulation(honeypotis: HoneypotIs, chain_id: int, token: str) -> Tried:
    return await attempt(honeypotis.simulate, chain_id, token) if honeypotis.covers(chain_id) else None


async def _listing(
    dexscreener: DexScreener, geckoterminal: GeckoTerminal, chain_id: int, token: str
) -> Listing:
    """The pairs in one index of exchanges, or in the next when that has none."""
    missing: list[NoData | ProviderFailure] = []
    none_in: list[Source] = []
    indexes: tuple[tuple[Source, DexScreener | GeckoTerminal], ...] = (
        ("dexscreener", dexscreener),
        ("geckoterminal", geckoterminal),
    )
    for source, index in indexes:
        pairs = await attempt(index.pairs, chain_id, token)
        if isinstance(pairs, NoData):
            none_in.append(source)
        if isinstance(pairs, NoData | ProviderFailure):
            missing.append(pairs)
            continue
        if any(isinstance(each, ProviderFailure) for each in missing):
            index.record.warn(f"liquidity is {index.about.label}'s, in place of {dexscreener.about.label}'s")
        addresses = frozenset(pair.address for pair in pairs)
        return Listing(in_pairs(token, pairs, source), addresses, tuple(missing), tuple(none_in))
    return Listing(missing=tuple(missing), no_pair_in=tuple(none_in))


def _nothing_to_judge(token: str, *missing: Tried) -> NoData | ProviderFailure:
    """A failure, if a source that failed may know something when asked again; else that nothing is known."""
    failures = [each for each in missing if isinstance(each, ProviderFailure)]
    nothing = NoData(f"no source knows anything of the token {token}")
    return next((each for each in failures if not isinstance(each, ProviderUnconfigured)), nothing)


def _facts(known: TokenFlags | None, tried: Tried, listed: Listing) -> Facts:
    return Facts(
        now=datetime.now(UTC),
        flags=known,
        simulation=tried if isinstance(tried, Simulation) else None,
        simulation_gap=_gap(tried),
        liquidity=listed.liquidity or (in_pools(known) if known else None),
        no_pair_in=listed.no_pair_in,
        pool_addresses=listed.pool_addresses,
    )


def _gap(tried: Tried) -> Gap | None:
    match tried:
        case Simulation():
            return None
        case NoData():
            return "no_pair"
        case None:
            return "chain_not_covered"
        case _:
            return "source_unavailable"


def _flag(flag: Flag) -> RiskFlag:
    return RiskFlag(
        id=flag.id,
        severity=flag.severity,
        explanation=flag.explanation,
        evidence=[_evidence(each) for each in flag.evidence],
        rules_version=flag.rules_version,
    )


def _evidence(cited: Cited) -> Evidence:
    return Evidence(source=cited.source, field=cited.field, value=cited.value)


def _honeypot(f: Facts) -> HoneypotCheck:
    simulated = f.simulated.succeeded
    return HoneypotCheck(
        is_honeypot=f.honeypot,
        simulated=simulated,
        not_simulated=None if simulated else f.simulation_gap or "failed",
        can_buy=f.can_buy,
        can_sell=f.can_sell,
        can_transfer=f.can_transfer,
        reason=f.simulated.reason,
        sources_agree=f.sources_agree,
        evidence=[
            _evidence(each)
            for name in ("goplus:is_honeypot", "honeypotis:honeypotResult.isHoneypot")
            for each in cited(f, name)
            if each.value is not None
        ],
    )


def _taxes(f: Facts) -> TokenTaxes:
    known, raw, simulated = f.known, f.known.raw, f.simulated.raw
    powers = (known.tax_modifiable, known.personal_tax_modifiable)
    return TokenTaxes(
        buy=_tax(
            f.buy_tax,
            (known.buy_tax, raw.get("buy_tax")),
            (f.simulated_buy_tax, simulated.get("simulationResult.buyTax")),
        ),
        sell=_tax(
            f.sell_tax,
            (known.sell_tax, raw.get("sell_tax")),
            (f.simulated_sell_tax, simulated.get("simulationResult.sellTax")),
        ),
        transfer=_tax(
            f.transfer_tax,
            (known.transfer_tax, raw.get("transfer_tax")),
            (f.simulated_transfer_tax, simulated.get("simulationResult.transferTax")),
        ),
        modifiable=True if True in powers else None if None in powers else False,
    )


def _tax(
    highest: float | None,
    flagged: tuple[float | None, str | None],
    simulated: tuple[float | None, str | None],
) -> Tax:
    """A tax with its readings, each in percent and as its source gave it."""
    sources: tuple[Source, Source] = ("goplus", "honeypotis")
    return Tax(
        percent=highest,
        readings=[
            TaxReading(source=source, percent=percent, raw=raw or "")
            for source, (percent, raw) in zip(sources, (flagged, simulated), strict=True)
            if percent is not None
        ],
    )


def _ownership(f: Facts) -> TokenOwnership:
    known = f.known
    return TokenOwnership(
        state=f.owner_state,
        owner_address=known.owner_address or None,
        owner_is_contract=f.owner_is_contract,
        creator_address=known.creator_address,
        reclaimable=known.reclaimable,
        source_verified=f.source_verified,
        upgradeable=f.upgradeable,
        can_mint=known.mintable,
        can_pause=known.pausable,
        can_blacklist=known.blacklists,
        can_change_balances=known.changes_balances,
        can_self_destruct=known.self_destructs,
        owner_percent=f.owner_percent,
        creator_percent=f.creator_percent,
        top_holders_percent=f.top_holders_percent,
        holder_count=known.holder_count,
        trusted=f.well_known or known.trusted,
        source="goplus" if f.flags else None,
    )


def _liquidity(f: Facts) -> TokenLiquidity:
    found = f.liquidity
    if found is None:
        source = f.no_pair_in[0] if f.no_pair else None
        return TokenLiquidity(
            total_usd=None,
            other_side_usd=None,
            pair_count=0 if f.no_pair else None,
            top_pair=None,
            traded_since=None,
            locked_percent=f.locked_percent,
            largest_wallet_percent=f.largest_lp_wallet_percent,
            source=source,
        )
    return TokenLiquidity(
        total_usd=found.total_usd,
        other_side_usd=found.other_side_usd,
        pair_count=found.pair_count,
        top_pair=_top_pair(found),
        traded_since=timestamp(found.traded_since) if found.traded_since else None,
        locked_percent=f.locked_percent,
        largest_wallet_percent=f.largest_lp_wallet_percent,
        source=found.source,
    )


def _top_pair(found: Liquidity) -> TopPair | None:
    if found.top_pair is None:
        return None
    return TopPair(
        pair_address=found.top_pair,
        dex=found.top_dex,
        liquidity_usd=found.top_usd,
        created_at=timestamp(found.top_created_at) if found.top_created_at else None,
    )
