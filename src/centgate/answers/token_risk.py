"""Answer of token-risk: its fields, filled from the evidence and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from centgate.crypto.contract.owners import OwnerKind
from centgate.crypto.token.citations import Citation, cite_field
from centgate.crypto.token.evidence.simulations import MissingReason
from centgate.crypto.token.identity import TokenIdentity
from centgate.crypto.token.security import TokenSource, TradeLimit
from centgate.crypto.token.tax_rules import TAX_FIELDS
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_liquidity import Liquidity
from centgate.crypto.token.token_rule import RULES_VERSION
from centgate.crypto.token.token_verdict import TokenVerdict, VerdictFlag, evaluate_token
from centgate.crypto.token.trades import TaxName
from centgate.schema import Data
from centgate.timestamps import format_timestamp

_SALE_FIELDS = (
    "goplus:is_honeypot",
    "honeypotis:honeypotResult.isHoneypot",
    "onchain:simulation.isHoneypot",
)


class Evidence(Data):
    """A value that one source gave."""

    source: TokenSource
    field: str = Field(description="The source's own name for the fact.")
    value: str | None = Field(
        description="Its value as the source gave it, as text; null when it gave none. Untrusted text."
    )


class RiskFlag(Data):
    """One reason for the risk level."""

    id: str = Field(description="Stable identifier of the reason, e.g. `sell_tax_high`.")
    severity: Literal["critical", "high", "medium", "low", "info"]
    explanation: str = Field(description="One sentence on what it means for a holder.")
    evidence: list[Evidence]
    rules_version: str = Field(description="Version of the rules that raised the flag, a date.")


class ScorePart(Data):
    """Points that one flag adds to the score."""

    flag_id: str = Field(description="`id` of the flag in `riskFlags`.")
    points: int = Field(description="Part of the score that this flag brings, of at most 100.")


class RiskScore(Data):
    """The risk level as a figure, with its parts."""

    score: int = Field(
        description="0 without a finding, 100 is the worst. Always within the band of `riskLevel`: low 0 to "
        "24, medium 25 to 49, high 50 to 74, critical 75 to 100. Not a probability."
    )
    parts: list[ScorePart] = Field(
        description="Their points add up to the score. The worst flag brings the start of its band, each "
        "further one 2 (low), 4 (medium), 7 (high) or 10 (critical) points, up to the end of the band."
    )
    rules_version: str = Field(description="Version of the rules and of these points, a date.")


class TokenIdentityData(Data):
    """Facts that the token states of itself."""

    name: str | None = Field(
        description="Untrusted text of the token's maker, one line, at most 64 characters."
    )
    symbol: str | None = Field(description="Untrusted text, as the name.")
    decimals: int | None = Field(description="Decimals of a whole token.")
    total_supply: str | None = Field(description="Base units that exist, as decimal digits.")
    supply: float | None = Field(description="Whole tokens that exist.")
    source: TokenSource | None = Field(description="The source of these facts; null when none gave any.")


class HolderSalesData(Data):
    """Sales that a simulation made at real holders of the token."""

    source: TokenSource = Field(description="The source that simulated them.")
    tested: int | None = Field(description="Holders at which a sale was tried.")
    failed: int | None = Field(description="Those that could not sell.")
    siphoned: int | None = Field(description="Those whose balance was taken away.")
    average_tax: float | None = Field(description="Percent of a sale, over those that could sell.")
    highest_tax: float | None = Field(description="Percent of a sale.")
    high_tax_count: int | None = Field(description="Those that pay a much higher tax than others.")


class TradeLimitData(Data):
    """The largest amount that can be traded at once."""

    source: TokenSource = Field(description="The source that found the limit.")
    tokens: float | None = Field(description="Whole tokens.")
    other_side: float | None = Field(description="Units of the pair's other token.")


class HoneypotCheck(Data):
    """Result of the check that the token can be sold again."""

    is_honeypot: bool | None = Field(
        description="True also when a simulated sale lost 99 % or more. Null when no source could tell, when "
        "the contract analysis or the average of holders gives such a tax, or when at least half of the "
        "holders that were tried cannot sell."
    )
    simulated: bool = Field(description="Whether a buy and a sell were simulated.")
    not_simulated: Literal["chain_not_covered", "no_pair", "failed", "source_unavailable"] | None = Field(
        description="The reason for a missing simulation; null when there was one."
    )
    can_buy: bool | None = Field(description="Null when no source could tell, as for the next two.")
    can_sell: bool | None = Field(
        description="Null also when a simulated sale went through, and another source says that it cannot "
        "be sold, or at least half of the holders that were tried cannot sell."
    )
    can_transfer: bool | None
    reason: str | None = Field(
        description="What stopped the sale, or the simulation, as a clause in our words; null when the "
        "reason is not a known one: see `sourceReason`."
    )
    source_reason: str | None = Field(
        description="The same in the words of the simulation or of the token: untrusted text, cut."
    )
    simulated_by: list[TokenSource] = Field(
        description="Sources that simulated a purchase and a sale: honeypot.is, and `onchain`, which is "
        "Centgate's own simulation by calls to a node."
    )
    holder_sales: list[HolderSalesData] = Field(description="One entry for each source.")
    max_buy: TradeLimitData | None = Field(description="The smallest limit found, or null.")
    max_sell: TradeLimitData | None = Field(description="The smallest limit found, or null.")
    sources_agree: bool | None = Field(description="Null unless two sources answered.")
    evidence: list[Evidence]


class TaxReading(Data):
    """A tax as reported by one source."""

    source: TokenSource
    percent: float = Field(description="Percent of the amount.")
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
    modifiable: bool | None = Field(
        description="Whether the owner can change a tax; false when the ownership was given up."
    )


class TokenOwnership(Data):
    """Control over the token: the owner and its powers."""

    state: Literal["none", "renounced", "held", "hidden", "unknown"] = Field(
        description="`none`: the contract names no owner, though roles may have an owner's powers; "
        "`renounced`: given to an address that no one controls; `hidden`: control remains although no owner "
        "is visible."
    )
    owner_address: str | None = Field(description="Lower case; null when there is none.")
    owner_is_contract: bool | None = Field(
        description="Whether the owner is a contract, such as a multisig; null when unknown."
    )
    owner_kind: OwnerKind = Field(
        description="As the chain shows it: one wallet, a Safe of several owners, a timelock, a governor "
        "(DAO), or another contract."
    )
    owner_threshold: int | None = Field(
        description="Signatures that a Safe needs; null for other owners, as the next two."
    )
    owner_count: int | None = Field(description="Owners of a Safe.")
    owner_has_modules: bool | None = Field(
        description="Whether a Safe lists modules, which act for it without its owners."
    )
    owner_delay_seconds: int | None = Field(description="Delay of a timelock in seconds, or null.")
    creator_address: str | None = Field(description="Lower case.")
    reclaimable: bool | None = Field(description="Whether a renounced ownership can be taken back.")
    source_verified: bool | None = Field(
        description="Whether the source of the code that runs is published, for a proxy of the code "
        "behind it; null when unknown."
    )
    upgradeable: bool | None = Field(
        description="Whether its code can change; false for a clone that always runs one contract's code."
    )
    can_mint: bool | None = Field(
        description="False when the ownership was given up, as for `canPause` and `canChangeBalances`; the "
        "source's own reading stays in the evidence of the flag."
    )
    can_pause: bool | None
    can_blacklist: bool | None
    can_change_balances: bool | None
    can_self_destruct: bool | None = Field(
        description="True also when the ownership was given up: others may have this power."
    )
    owner_percent: float | None = Field(description="Percent of the supply.")
    creator_percent: float | None = Field(description="Percent of the supply.")
    top_holders_percent: float | None = Field(
        description="Share of the largest wallets, at most ten, in percent: without contracts, pools, "
        "lockers, exchanges and burn addresses."
    )
    holder_count: int | None = Field(description="Addresses that hold the token.")
    trusted: bool | None = Field(description="Whether a source lists it as well known; false proves nothing.")
    source: TokenSource | None


class TopPair(Data):
    """The deepest pair on the requested chain."""

    pair_address: str = Field(description="Lower case.")
    dex: str | None = Field(description="The exchange, as the source names it: untrusted text.")
    liquidity_usd: float | None = Field(description="US dollars in the pair, both sides together.")
    created_at: str | None = Field(description="ISO 8601, UTC.")


class LiquidityLockData(Data):
    """A share of the liquidity that cannot be taken out."""

    address: str = Field(description="Holder of the shares, lower case: a locker, or a burn address.")
    locker: str | None = Field(
        description="Name of the locker, or the source's tag of it: untrusted text; null for a burn address "
        "or an unknown one."
    )
    percent: float = Field(description="Percent of the liquidity.")
    unlocks_at: str | None = Field(
        description="End of the lock, ISO 8601, UTC; null when it is burned, or when no source tells it."
    )
    burned: bool = Field(description="True if it can never be taken out.")


class LiquidityHandData(Data):
    """A share of the liquidity that one address can take out at any time."""

    address: str = Field(description="Lower case.")
    percent: float = Field(description="Percent of the liquidity.")
    contract: bool | None = Field(description="Whether it is a contract; null when no source tells.")
    lock_ended_at: str | None = Field(description="End of its lock, ISO 8601, UTC; null if it had none.")


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
    unlocked_percent: float | None = Field(
        description="Share of the liquidity that its listed holders can take out at any time, in percent. "
        "What is neither locked nor unlocked is held by addresses that no source lists, or in locks whose "
        "end cannot be read."
    )
    locks: list[LiquidityLockData] = Field(description="Locks in force, and what is burned.")
    unlocked_holders: list[LiquidityHandData] = Field(description="The largest first.")
    source: TokenSource | None


class TokenRisk(Data):
    """Risk level of a token with its evidence."""

    token_address: str = Field(description="Lower case.")
    risk_level: Literal["critical", "high", "medium", "low", "unknown"] = Field(
        description="The level of the worst flag; `unknown` with too little evidence for a level."
    )
    risk_flags: list[RiskFlag] = Field(description="The worst first.")
    honeypot: HoneypotCheck
    taxes: TokenTaxes
    ownership: TokenOwnership
    liquidity: TokenLiquidity
    warnings: list[str] = Field(
        description="Checks that were not possible, and disagreements between sources."
    )
    risk_score: RiskScore | None = Field(description="Null when the level is `unknown`.")
    token: TokenIdentityData
    source_note: str | None = Field(
        description="Further risks in the contract analysis's own words: untrusted text, cut."
    )


def build_token_risk(
    token: str, evidence: TokenEvidence, identity: TokenIdentity | None, warnings: Sequence[str]
) -> TokenRisk:
    """Return the answer about a token; `identity` is what the chain says of it."""
    verdict = evaluate_token(evidence)
    return TokenRisk(
        token_address=token,
        risk_level=verdict.level,
        risk_score=_build_score(verdict),
        risk_flags=[_to_risk_flag(flag) for flag in verdict.flags],
        token=_build_identity(evidence, identity),
        honeypot=_build_honeypot_check(evidence),
        taxes=_build_taxes(evidence),
        ownership=_build_ownership(evidence),
        liquidity=_build_liquidity(evidence),
        source_note=evidence.flags.note,
        warnings=[*warnings, *verdict.warnings],
    )


def _build_score(verdict: TokenVerdict) -> RiskScore | None:
    if verdict.score is None:
        return None
    return RiskScore(
        score=verdict.score.score,
        parts=[ScorePart(flag_id=part.flag_id, points=part.points) for part in verdict.score.parts],
        rules_version=RULES_VERSION,
    )


def _build_identity(evidence: TokenEvidence, identity: TokenIdentity | None) -> TokenIdentityData:
    """Build what the token says of itself: by the chain, else by the first source that tells."""
    if identity is not None:
        supply = str(identity.total_supply) if identity.total_supply is not None else None
        return TokenIdentityData(
            name=identity.name,
            symbol=identity.symbol,
            decimals=identity.decimals,
            total_supply=supply,
            supply=identity.supply,
            source="onchain",
        )
    flags, simulated = evidence.flags, evidence.simulations.service_result
    is_flagged = flags.symbol is not None
    return TokenIdentityData(
        name=flags.name if is_flagged else simulated.name,
        symbol=flags.symbol if is_flagged else simulated.symbol,
        # those of honeypot.is, which is not the source if the analysis tells name and symbol
        decimals=None if is_flagged else simulated.decimals,
        total_supply=None,
        supply=flags.supply if is_flagged else None,
        source="goplus" if is_flagged else "honeypotis" if simulated.symbol else None,
    )


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
    trades, trade = evidence.simulations.trades, evidence.trade
    simulated_by: list[TokenSource] = [
        each.source for each in trades if each.result.succeeded and each.has_result
    ]
    failures = [each.result for each in trades if each.result.reason or each.result.explanation]
    return HoneypotCheck(
        is_honeypot=trade.is_honeypot,
        simulated=bool(simulated_by),
        not_simulated=None if simulated_by else _choose_missing_reason(evidence),
        can_buy=trade.can_buy,
        can_sell=trade.can_sell,
        can_transfer=trade.can_transfer,
        reason=next((each.explanation for each in failures if each.explanation), None),
        source_reason=next((each.reason for each in failures if each.reason), None),
        simulated_by=simulated_by,
        holder_sales=_build_holder_sales(evidence),
        max_buy=_build_limit(evidence, "max_buy"),
        max_sell=_build_limit(evidence, "max_sell"),
        sources_agree=trade.sources_agree,
        evidence=[
            _to_evidence(each)
            for name in _SALE_FIELDS
            for each in cite_field(evidence, name)
            if each.value is not None
        ],
    )


def _choose_missing_reason(evidence: TokenEvidence) -> MissingReason | Literal["failed"]:
    """Return why no trade was simulated: `failed` if a simulation ended without a result, else what prevented
    the first one that covers the chain.
    """
    first, own = evidence.no_simulation_reason, evidence.no_own_simulation_reason
    if evidence.simulations.trades:
        return "failed"
    reason = own if first in (None, "chain_not_covered") and own not in (None, "chain_not_covered") else first
    return "failed" if reason in (None, "no_contract") else reason


def _build_holder_sales(evidence: TokenEvidence) -> list[HolderSalesData]:
    return [
        HolderSalesData(
            source=trade.source,
            tested=sales.tested,
            failed=sales.failed,
            siphoned=sales.siphoned,
            average_tax=sales.average_tax,
            highest_tax=sales.highest_tax,
            high_tax_count=sales.high_tax_count,
        )
        for trade in evidence.simulations.trades
        if (sales := trade.result.holder_sales)
    ]


def _build_limit(evidence: TokenEvidence, name: Literal["max_buy", "max_sell"]) -> TradeLimitData | None:
    """Build the smallest of the limits that sources found."""
    found: list[tuple[TokenSource, TradeLimit]] = []
    for trade in evidence.simulations.trades:
        limit = trade.result.max_buy if name == "max_buy" else trade.result.max_sell
        if limit is not None:
            found.append((trade.source, limit))
    if not found:
        return None
    source, limit = min(found, key=lambda entry: float("inf") if entry[1].tokens is None else entry[1].tokens)
    return TradeLimitData(source=source, tokens=limit.tokens, other_side=limit.other_side)


def _build_taxes(evidence: TokenEvidence) -> TokenTaxes:
    has_power = evidence.ownership.has_power
    powers = (has_power("tax_modifiable"), has_power("personal_tax_modifiable"))
    return TokenTaxes(
        buy=_build_tax(evidence, "buy_tax"),
        sell=_build_tax(evidence, "sell_tax"),
        transfer=_build_tax(evidence, "transfer_tax"),
        modifiable=True if True in powers else None if None in powers else False,
    )


def _build_tax(evidence: TokenEvidence, name: TaxName) -> Tax:
    """Build a tax with its readings, each in percent and as its source gave it."""
    raw = {each.source: each.value for field in TAX_FIELDS[name] for each in cite_field(evidence, field)}
    readings = evidence.trade.list_tax_readings(name)
    return Tax(
        percent=max((percent for _, percent in readings), default=None),
        readings=[
            TaxReading(source=source, percent=percent, raw=raw.get(source) or "")
            for source, percent in readings
        ],
    )


def _build_ownership(evidence: TokenEvidence) -> TokenOwnership:
    flags, owner = evidence.flags, evidence.owner
    contract, ownership = evidence.contract, evidence.ownership
    is_owner_known = owner is not None and ownership.kind == owner.kind
    return TokenOwnership(
        state=ownership.state,
        owner_address=ownership.address or None,
        owner_is_contract=ownership.is_contract,
        owner_kind=ownership.kind,
        owner_threshold=owner.threshold if owner and is_owner_known else None,
        owner_count=owner.owner_count if owner and is_owner_known else None,
        owner_has_modules=owner.has_modules if owner and is_owner_known else None,
        owner_delay_seconds=owner.delay_seconds if owner and is_owner_known else None,
        creator_address=flags.creator_address,
        reclaimable=flags.reclaimable,
        source_verified=contract.is_source_verified,
        upgradeable=contract.is_upgradeable,
        can_mint=ownership.has_power("mintable"),
        can_pause=ownership.has_power("pausable"),
        can_blacklist=flags.blacklists,
        can_change_balances=ownership.has_power("changes_balances"),
        can_self_destruct=flags.self_destructs,
        owner_percent=evidence.holders.owner_percent,
        creator_percent=evidence.holders.creator_percent,
        top_holders_percent=evidence.holders.top_percent,
        holder_count=flags.holder_count,
        trusted=evidence.flags.is_well_known or flags.trusted,
        source="goplus" if evidence.analysis else "onchain" if evidence.bytecode_flags else None,
    )


def _build_liquidity(evidence: TokenEvidence) -> TokenLiquidity:
    liquidity, shares = evidence.liquidity, evidence.lp_holders.shares
    no_pair = evidence.sources_without_pair[0] if evidence.market.has_no_pair else None
    since = liquidity.trading_since if liquidity else None
    return TokenLiquidity(
        total_usd=liquidity.total_usd if liquidity else None,
        other_side_usd=liquidity.other_side_usd if liquidity else None,
        pair_count=liquidity.pair_count if liquidity else 0 if no_pair else None,
        top_pair=_build_top_pair(liquidity) if liquidity else None,
        traded_since=format_timestamp(since) if since else None,
        locked_percent=evidence.lp_holders.locked_percent,
        largest_wallet_percent=evidence.lp_holders.largest_wallet_percent,
        unlocked_percent=evidence.lp_holders.unlocked_percent,
        locks=[
            LiquidityLockData(
                address=lock.address,
                locker=lock.locker,
                percent=lock.percent,
                unlocks_at=format_timestamp(lock.unlocks_at) if lock.unlocks_at else None,
                burned=lock.burned,
            )
            for lock in (shares.locks if shares else ())
        ],
        unlocked_holders=[
            LiquidityHandData(
                address=hand.address,
                percent=hand.percent,
                contract=hand.contract,
                lock_ended_at=format_timestamp(hand.lock_ended_at) if hand.lock_ended_at else None,
            )
            for hand in (shares.hands if shares else ())
        ],
        source=liquidity.source if liquidity else no_pair,
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
