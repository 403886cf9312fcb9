"""Evidence about a token in which nothing is wrong, its changes, and a case for each rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from centgate.crypto.contract.contracts import MatchLevel, SourceRecord
from centgate.crypto.token.evidence.contract import KEY_FLAGS, ImplementationSource
from centgate.crypto.token.security import (
    GOPLUS_FIELDS,
    Holder,
    HolderSales,
    Simulation,
    SimulationFlag,
    TokenFlags,
    TokenLock,
    TradeLimit,
)
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_liquidity import Liquidity
from centgate.crypto.token.token_verdict import RiskLevel, evaluate_token

NOW = datetime(2026, 11, 21, tzinfo=UTC)
OWNER, OTHER, THIRD, BURN = "0x" + "11" * 20, "0x" + "22" * 20, "0x" + "33" * 20, "0x" + "0" * 36 + "dead"
LEVELS: dict[RiskLevel, float] = {"low": 0, "unknown": 2, "medium": 2, "high": 3, "critical": 4}
"""Rank of each level; an unknown one is as bad as `high`."""

GOOD = TokenFlags(
    **dict.fromkeys(GOPLUS_FIELDS, False) | dict.fromkeys(("open_source", "in_dex", "genuine"), True),  # pyright: ignore[reportArgumentType]
    buy_tax=0,
    sell_tax=0,
    transfer_tax=0,
    owner_address=OWNER,
    owner_percent=1,
    creator_address=OTHER,
    creator_percent=0,
    holder_count=5000,
    holders=(Holder(OTHER, None, contract=False, locked=False, percent=3),),
    lp_holders=(Holder(BURN, None, contract=False, locked=True, percent=60),),
    raw={
        **dict.fromkeys(
            [*GOPLUS_FIELDS.values(), "buy_tax", "sell_tax", "transfer_tax", "owner_percent"], "0"
        ),
        "owner_address": OWNER,
        "creator_percent": "0",
        "holder_count": "5000",
    },
)
SOLD = Simulation(
    succeeded=True,
    honeypot=False,
    buy_tax=0,
    sell_tax=0,
    transfer_tax=0,
    risk_level=1,
    open_source=True,
    proxy=False,
    liquidity_usd=50_000,
    pair_empty=False,
)
DEEP = Liquidity("dexscreener", 90_000, 3, other_side_usd=45_000, trading_since=NOW - timedelta(days=90))
FACTS = TokenEvidence(NOW, analysis=GOOD, simulation=SOLD, liquidity=DEEP)


def change_flags(facts: TokenEvidence = FACTS, **changes: Any) -> TokenEvidence:
    """Return evidence with changed fields of the contract analysis."""
    return replace(facts, analysis=replace(facts.flags, **changes))


def change_simulation(facts: TokenEvidence = FACTS, **changes: Any) -> TokenEvidence:
    """Return evidence with changed fields of the simulation."""
    return replace(facts, simulation=replace(facts.simulations.service_result, **changes))


def set_liquidity(usd: float, **more: Any) -> TokenEvidence:
    """Return evidence with this liquidity in pairs, in US dollars."""
    return replace(FACTS, liquidity=replace(DEEP, total_usd=usd, other_side_usd=usd / 2, **more))


def set_pair_age(**age: float) -> TokenEvidence:
    return replace(FACTS, liquidity=replace(DEEP, trading_since=NOW - timedelta(**age)))


def list_flags(facts: TokenEvidence) -> dict[str, str]:
    """Return the flags of the verdict with their severities."""
    return {flag.id: flag.severity for flag in evaluate_token(facts).flags}


def simulate_flags(*names: str, severity: str | None = None) -> TokenEvidence:
    return change_simulation(flags=tuple(SimulationFlag(name, severity, None) for name in names))


def build_holder(percent: float, **more: Any) -> Holder:
    kept: dict[str, Any] = {"tag": None, "contract": False, "locked": False}
    return Holder(OTHER, percent=percent, **(kept | more))


def build_locker(**until: float) -> Holder:
    """Return a locker with a third of the liquidity, until this time from now."""
    return replace(
        build_holder(33, contract=True, locked=True), locks=(TokenLock(33, NOW + timedelta(**until)),)
    )


def set_holder_sales(**sales: Any) -> TokenEvidence:
    return change_simulation(holder_sales=HolderSales(**sales))


def build_implementation(match: MatchLevel) -> ImplementationSource:
    """Return the only registry's record of the contract behind a proxy."""
    return ImplementationSource(
        THIRD, (SourceRecord("sourcify", match),), unread=(), verified=match == "exact"
    )


OPEN_CODE, CLOSED_CODE = build_implementation("exact"), build_implementation("none")
UNREAD_CODE = ImplementationSource(THIRD, (), unread=("Sourcify (no answer)",), verified=None)
"""Records of source registries about the contract behind a proxy."""
OWN = Simulation(succeeded=True, honeypot=False, buy_tax=0, sell_tax=0, transfer_tax=0, pair_empty=False)
"""Our own simulation of a successful sale."""
BYTECODE = TokenFlags(
    proxy=False, mintable=False, pausable=False, blacklists=False, tax_modifiable=False, self_destructs=False
)
BLOCKED: dict[str, Any] = {"honeypot": True, "sell_tax": 100.0, "reason": "TRANSFER_FROM_FAILED"}
RULE_CASES: list[tuple[TokenEvidence, str, str]] = [
    (change_simulation(change_flags(honeypot=True), **BLOCKED), "honeypot_confirmed", "critical"),
    (replace(change_flags(honeypot=True), simulation=None), "honeypot", "critical"),
    (change_simulation(change_flags(honeypot=None), **BLOCKED, liquidity_usd=5), "honeypot", "critical"),
    (change_simulation(**BLOCKED, liquidity_usd=1000), "honeypot", "critical"),
    (change_simulation(risk_level=92), "honeypot", "critical"),
    (change_flags(honeypot=True), "honeypot_disputed", "high"),
    (change_simulation(**BLOCKED, liquidity_usd=999), "sale_failed_in_doubt", "high"),
    (change_simulation(honeypot=True, succeeded=False), "sale_failed_in_doubt", "high"),
    (
        replace(FACTS, own_simulation=replace(SOLD, honeypot=None, sell_tax=None)),
        "sale_disputed_in_doubt",
        "medium",
    ),
    (
        replace(change_simulation(honeypot=True, sell_tax=100.0, pair_empty=True), liquidity=None),
        "no_liquidity",
        "high",
    ),
    (
        replace(change_flags(sell_tax=None, unreadable=("sell_tax",)), simulation=None),
        "sell_tax_unreadable",
        "high",
    ),
    (change_flags(sell_tax=None, unreadable=("sell_tax",)), "sell_tax_in_doubt", "medium"),
    (
        change_simulation(sell_tax=None, unreadable=("simulationResult.sellTax",)),
        "sell_tax_in_doubt",
        "medium",
    ),
    (change_flags(cannot_sell_all=True), "cannot_sell_all", "high"),
    (change_flags(cannot_buy=True), "cannot_buy", "high"),
    (change_flags(cannot_buy=True, in_dex=False), "cannot_buy_reward", "medium"),
    (change_flags(trading_cooldown=True), "trading_cooldown", "medium"),
    (change_flags(sell_tax=50.0), "sell_tax_extreme", "critical"),
    (change_simulation(sell_tax=50.0), "sell_tax_extreme", "critical"),
    (change_flags(sell_tax=49.9), "sell_tax_high", "high"),
    (change_simulation(sell_tax=10.0), "sell_tax_high", "high"),
    (change_flags(sell_tax=5.0), "sell_tax_medium", "medium"),
    (change_flags(sell_tax=4.9), "sell_tax_low", "low"),
    (change_flags(buy_tax=100.0), "buy_tax_high", "high"),
    (change_simulation(buy_tax=10.0), "buy_tax_high", "high"),
    (change_flags(buy_tax=9.0), "buy_tax_medium", "medium"),
    (change_flags(buy_tax=1.0), "buy_tax_low", "low"),
    (change_flags(transfer_tax=10.0), "transfer_tax_high", "high"),
    (change_simulation(transfer_tax=0.5), "transfer_tax", "medium"),
    (change_simulation(transfer_blocked=True), "transfer_blocked", "medium"),
    (change_flags(fake=True), "fake_token", "critical"),
    (change_flags(genuine=False), "fake_token", "critical"),
    (change_flags(airdrop_scam=True), "airdrop_scam", "critical"),
    (change_flags(gas_abuse=True), "gas_abuse", "critical"),
    (change_flags(serial_creator=True), "serial_creator", "low"),
    (change_flags(open_source=False), "closed_source", "high"),
    (change_simulation(open_source=False), "closed_source", "high"),
    (simulate_flags("closed_source"), "closed_source", "high"),
    (replace(FACTS, implementation=CLOSED_CODE), "closed_source", "high"),
    (change_flags(proxy=True), "upgradeable", "medium"),
    (change_simulation(proxy=True), "upgradeable", "medium"),
    (change_flags(external_call=True), "external_call", "medium"),
    (change_flags(changes_balances=True), "owner_changes_balances", "critical"),
    (change_flags(self_destructs=True), "self_destructs", "critical"),
    (change_flags(hidden_owner=True), "hidden_owner", "high"),
    (change_flags(reclaimable=True), "ownership_reclaimable", "high"),
    (change_flags(personal_tax_modifiable=True), "owner_can_tax_one", "high"),
    (change_flags(pausable=True), "owner_can_pause", "high"),
    (change_flags(tax_modifiable=True), "owner_can_change_tax", "medium"),
    (change_flags(blacklists=True), "owner_can_blacklist", "medium"),
    (change_flags(mintable=True), "owner_can_mint", "medium"),
    (change_flags(anti_whale_modifiable=True), "owner_can_change_limits", "medium"),
    (change_flags(anti_whale=True), "trading_limits", "low"),
    (change_flags(whitelists=True), "whitelist", "low"),
    (change_flags(owner_percent=20.0), "owner_holds_much", "high"),
    (change_flags(creator_percent=20.0), "creator_holds_much", "high"),
    (change_flags(holders=(build_holder(30), build_holder(20))), "holders_concentrated", "medium"),
    (change_flags(holder_count=49), "few_holders", "medium"),
    (
        replace(
            change_flags(in_dex=False), simulation=None, liquidity=None, sources_without_pair=("dexscreener",)
        ),
        "no_pair",
        "high",
    ),
    (set_liquidity(999), "low_liquidity", "high"),
    (set_liquidity(1000), "shallow_liquidity", "medium"),
    (set_liquidity(9999), "shallow_liquidity", "medium"),
    (set_pair_age(hours=23), "new_pair", "high"),
    (set_pair_age(days=6), "young_pair", "medium"),
    (change_flags(lp_holders=(build_holder(50),)), "liquidity_in_one_wallet", "high"),
    (change_flags(lp_holders=(build_holder(50, contract=True),)), "liquidity_in_one_contract", "high"),
    (
        change_flags(
            lp_holders=(build_holder(45), replace(build_holder(40, contract=True), address=THIRD)),
        ),
        "liquidity_in_few_hands",
        "high",
    ),
    (
        change_flags(lp_holders=(build_holder(30), replace(build_holder(20), address=THIRD))),
        "liquidity_in_wallets",
        "high",
    ),
    (change_flags(lp_holders=(replace(build_holder(20), address=OWNER),)), "owner_holds_liquidity", "high"),
    (
        change_flags(
            lp_holders=(build_holder(30), replace(build_holder(20, contract=True), address=THIRD)),
        ),
        "liquidity_unlocked",
        "medium",
    ),
    (replace(change_flags(lp_holders=None), locked_lp_holders=()), "liquidity_not_locked", "medium"),
    (change_flags(lp_holders=(build_locker(days=6),)), "lock_ends_this_week", "high"),
    (change_flags(lp_holders=(build_locker(days=29),)), "lock_ends_this_month", "medium"),
    (change_flags(holders=(build_holder(50, contract=True),)), "holder_dominates", "high"),
    (
        change_flags(tax_modifiable=True, blacklists=True, mintable=True),
        "owner_controls_everything",
        "high",
    ),
    (set_holder_sales(tested=1000, failed=500), "holders_cannot_sell", "critical"),
    (set_holder_sales(tested=1000, failed=499), "many_holders_cannot_sell", "high"),
    (set_holder_sales(tested=1000, failed=10), "some_holders_cannot_sell", "medium"),
    (set_holder_sales(tested=1000, siphoned=101), "holders_siphoned", "critical"),
    (set_holder_sales(tested=1000, siphoned=1), "some_holders_siphoned", "high"),
    (set_holder_sales(average_tax=50), "holder_taxes_extreme", "critical"),
    (set_holder_sales(average_tax=20), "holder_taxes_high", "high"),
    (
        set_holder_sales(average_tax=1, highest_tax=50, high_tax_count=1),
        "some_holders_taxed_heavily",
        "medium",
    ),
    (replace(change_simulation(max_sell=TradeLimit(4)), supply=10_000), "sale_limit_tiny", "high"),
    (change_simulation(max_sell=TradeLimit(4)), "sale_limit", "medium"),
    (replace(FACTS, own_simulation=Simulation(succeeded=True, origin_check=True)), "origin_check", "low"),
    (replace(FACTS, own_simulation=replace(OWN, cooldown=True)), "trading_cooldown", "medium"),
    (replace(FACTS, own_simulation=replace(OWN, cannot_sell_all=True)), "cannot_sell_all", "high"),
    (replace(FACTS, analysis=None, bytecode_flags=BYTECODE), "bytecode_only", "low"),
    (change_simulation(risk_level=60), "simulation_risk", "high"),
    (replace(FACTS, analysis=None), "no_contract_analysis", "medium"),
    (replace(FACTS, analysis=TokenFlags(in_dex=True)), "no_contract_analysis", "medium"),
    (replace(FACTS, analysis=TokenFlags(open_source=True)), "no_contract_analysis", "medium"),
    (change_flags(FACTS, **dict.fromkeys(KEY_FLAGS[:3])), "no_contract_analysis", "medium"),
    (replace(FACTS, simulation=None, no_simulation_reason="no_pair"), "not_simulated", "medium"),
    (change_simulation(succeeded=False, honeypot=None), "not_simulated", "medium"),
    (change_simulation(honeypot=None, buy_tax=None, sell_tax=None), "not_simulated", "medium"),
    (
        change_simulation(honeypot=None, unreadable=("honeypotResult.isHoneypot",)),
        "not_simulated",
        "medium",
    ),
    (change_flags(owner_address=BURN), "ownership_given_up", "info"),
    (change_flags(lp_holders=(replace(build_holder(96), address=BURN),)), "liquidity_locked", "info"),
    (change_flags(cex_listed=True), "well_known", "info"),
    *(
        (simulate_flags(name), f"simulation_{name}", "critical")
        for name in ("high_fail_rate", "high_siphon_rate")
    ),
    *(
        (simulate_flags(name), f"simulation_{name}", "critical")
        for name in ("low_sell_limit", "extremely_high_taxes")
    ),
    (simulate_flags("extremely_low_sell_limit"), "simulation_extremely_low_sell_limit", "critical"),
    (
        simulate_flags("effective_honeypot_low_sell_limit"),
        "simulation_effective_honeypot_low_sell_limit",
        "critical",
    ),
    *(
        (simulate_flags(name), f"simulation_{name}", "high")
        for name in ("medium_siphon_rate", "medium_fail_rate")
    ),
    (simulate_flags("high_tax"), "simulation_high_tax", "high"),
    *(
        (simulate_flags(name), f"simulation_{name}", "medium")
        for name in ("low_fail_rate", "transfer_blocked")
    ),
    (simulate_flags("one_sell_per_block_limit"), "simulation_one_sell_per_block_limit", "medium"),
    *((simulate_flags(name), f"simulation_{name}", "low") for name in ("medium_tax", "high_gas")),
    *(
        (simulate_flags("new", severity=each), f"simulation_other_{each}", each)
        for each in ("critical", "high")
    ),
    *((simulate_flags("new", severity=each), f"simulation_other_{each}", each) for each in ("medium", "low")),
    (simulate_flags("new"), "simulation_other_medium", "medium"),
    (change_simulation(honeypot=True, pair_empty=True), "not_simulated", "medium"),
]
