"""Answer of token-risk as a whole, with the fields on the token itself and on its owner."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from centgate.answers.token_flags import RiskFlag, RiskScore, build_flag, build_score
from centgate.answers.token_liquidity import TokenLiquidity, build_liquidity
from centgate.answers.token_trades import HoneypotCheck, TokenTaxes, build_honeypot_check, build_taxes
from centgate.crypto.contract.owners import OwnerKind
from centgate.crypto.token.evidence.ownership import OwnerState
from centgate.crypto.token.identity import TokenIdentity
from centgate.crypto.token.security import TokenSource
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_verdict import RiskLevel, evaluate_token
from centgate.schema import Data


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


class TokenOwnership(Data):
    """Control over the token: the owner and its powers."""

    state: OwnerState = Field(
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


class TokenRisk(Data):
    """Risk level of a token with its evidence."""

    token_address: str = Field(description="Lower case.")
    risk_level: RiskLevel = Field(
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
        risk_score=build_score(verdict),
        risk_flags=[build_flag(flag) for flag in verdict.flags],
        token=_build_identity(evidence, identity),
        honeypot=build_honeypot_check(evidence),
        taxes=build_taxes(evidence),
        ownership=_build_ownership(evidence),
        liquidity=build_liquidity(evidence),
        source_note=evidence.flags.note,
        warnings=[*warnings, *verdict.warnings],
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
