"""Rules for tokens: each rule alone, limits of the severity, and properties that hold for all evidence."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fake_upstreams import load_body, recorded_case
from hypothesis import given, settings
from hypothesis import strategies as st

from centgate.chains import is_burn_address
from centgate.crypto.contract.owners import Owner
from centgate.crypto.token.citations import Citation, cite_field
from centgate.crypto.token.evidence.contract import KEY_FLAGS
from centgate.crypto.token.lockers import LOCKERS
from centgate.crypto.token.missing_checks import list_subjects
from centgate.crypto.token.pairs import Pair, PairToken
from centgate.crypto.token.powers import ContractPower
from centgate.crypto.token.security import (
    BYTECODE_FLAGS,
    GOPLUS_FIELDS,
    SOURCE_LABELS,
    DexPool,
    Holder,
    HolderSales,
    Simulation,
    SimulationFlag,
    TokenFlags,
    TokenLock,
    TradeLimit,
)
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_liquidity import Liquidity, sum_pair_liquidity, sum_pool_liquidity
from centgate.crypto.token.token_rule import RULES_VERSION, SEVERITY_RANK
from centgate.crypto.token.token_rules import TOKEN_RULES
from centgate.crypto.token.token_verdict import RiskLevel, TokenScore, TokenVerdict, evaluate_token
from centgate.provider import Provider
from centgate.providers.dexscreener import DexScreener
from centgate.providers.geckoterminal import GeckoTerminal
from centgate.providers.goplus import GoPlus
from centgate.providers.goplus_token import parse_token_security
from centgate.providers.honeypotis import HoneypotIs

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


OWN = Simulation(succeeded=True, honeypot=False, buy_tax=0, sell_tax=0, transfer_tax=0, pair_empty=False)
"""Our own simulation of a successful sale."""
BYTECODE = TokenFlags(
    proxy=False, mintable=False, pausable=False, blacklists=False, tax_modifiable=False, self_destructs=False
)
BLOCKED: dict[str, Any] = {"honeypot": True, "sell_tax": 100.0, "reason": "TRANSFER_FROM_FAILED"}
LEVELLING: list[tuple[TokenEvidence, str, str]] = [
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


def test_good_evidence_raises_no_flags():
    verdict = evaluate_token(FACTS)

    assert verdict == TokenVerdict("low", (), verdict.warnings, TokenScore(0, ()))


def test_every_rule_has_case():
    assert {name for _, name, _ in LEVELLING} == {rule.id for rule in TOKEN_RULES}
    assert len({rule.id for rule in TOKEN_RULES}) == len(TOKEN_RULES)


@pytest.mark.parametrize(
    ("facts", "name", "severity"),
    LEVELLING,
    ids=[f"{number}-{name}" for number, (_, name, _) in enumerate(LEVELLING)],
)
def test_rule_raises_its_flag_alone(facts: TokenEvidence, name: str, severity: Any):
    verdict = evaluate_token(facts)

    (flag,) = [each for each in verdict.flags if each.id == name]
    assert flag.severity == severity
    assert flag.rules_version == RULES_VERSION
    assert flag.evidence
    assert not flag.explanation[0].islower()
    assert flag.explanation.endswith(".")
    assert "{" not in flag.explanation
    assert (
        LEVELS[verdict.level] >= SEVERITY_RANK[flag.severity]
        or SEVERITY_RANK[flag.severity] <= SEVERITY_RANK["low"]
    )


@pytest.mark.parametrize("saying", [{"liquidity_usd": 999}, {"liquidity_usd": 500, "sell_tax": 100.0}])
def test_failed_sale_in_shallow_pair_is_high_without_tax(saying: Any):
    facts = change_simulation(honeypot=True, **saying)

    assert evaluate_token(facts).level == "high"
    assert facts.trade.sell_tax == 0


def test_failed_sale_at_unknown_depth_is_uncertain():
    facts = replace(change_simulation(**BLOCKED, liquidity_usd=None), liquidity=None)

    assert list_flags(facts)["sale_failed_in_doubt"] == "high"
    assert list_flags(replace(facts, liquidity=DEEP))["honeypot"] == "critical"


def test_empty_pair_is_no_honeypot_and_has_no_taxes():
    facts = change_simulation(
        change_flags(honeypot=None), honeypot=True, risk_level=100, sell_tax=100.0, pair_empty=True
    )
    facts = replace(facts, liquidity=None)

    assert list_flags(facts) == {"no_liquidity": "high"}
    assert (facts.trade.is_honeypot, facts.trade.can_sell, facts.trade.sell_tax) == (None, False, 0)


def test_refused_transfer_in_empty_pair_is_honeypot():
    facts = change_simulation(change_flags(honeypot=None), **BLOCKED, pair_empty=True, liquidity_usd=0)

    assert list_flags(facts)["honeypot"] == "critical"


def test_disagreeing_sources_are_both_cited():
    warnings = " ".join(evaluate_token(change_flags(honeypot=True, raw={"is_honeypot": "1"})).warnings)

    assert "sources disagree: GoPlus Security says is_honeypot 1" in warnings


def test_different_taxes_are_both_cited_and_higher_counts():
    facts = change_simulation(sell_tax=30.0)

    assert facts.trade.sell_tax == 30
    assert any("0 %" in warning and "30 %" in warning for warning in evaluate_token(facts).warnings)


def test_full_tax_is_critical_despite_possible_trading_limits():
    verdict = evaluate_token(change_flags(sell_tax=100.0, trading_cooldown=True))

    assert verdict.level == "critical"
    assert any("pause between trades" in warning for warning in verdict.warnings)


def test_empty_pair_beside_deep_pairs_is_ignored():
    facts = change_simulation(pair_empty=True)

    assert list_flags(facts) == {"not_simulated": "medium"}
    assert change_flags(facts, honeypot=None).trade.can_sell is None
    assert any("used is empty, DEX Screener lists $90,000" in each for each in evaluate_token(facts).warnings)


def test_sale_in_empty_pair_does_not_contradict_analysis():
    assert (
        list_flags(change_simulation(change_flags(honeypot=True), pair_empty=True))["honeypot"] == "critical"
    )


@pytest.mark.parametrize("only", [{"open_source": True}, {"mintable": False}, {"honeypot": False}], ids=str)
def test_single_analysis_answer_is_no_analysis(only: Any):
    facts = replace(FACTS, analysis=TokenFlags(**only))

    assert evaluate_token(facts).level == "medium"
    assert (
        evaluate_token(replace(facts, simulation=None, no_simulation_reason="chain_not_covered")).level
        == "unknown"
    )
    assert evaluate_token(replace(facts, analysis=TokenFlags(trusted=True, **only))).level == "low"


def test_impossible_tax_is_no_forged_balance():
    facts = change_flags(sell_tax=None, unreadable=("sell_tax",))

    warnings = evaluate_token(facts).warnings

    assert "unreadable: GoPlus Security gives impossible taxes; not checked by it: the sell tax" in warnings
    assert not any(
        "balance" in each for each in warnings if "gives impossible taxes" in each or "forged" in each
    )


def test_unreadable_entries_of_lists_are_reported():
    facts = change_flags(unreadable=("holders[]", "dex[]"))

    (warning,) = [each for each in evaluate_token(facts).warnings if "cannot be read" in each]
    assert warning.startswith("unreadable: GoPlus Security gives entries in holders, dex that cannot be read")


def test_flag_without_name_is_reported():
    facts = change_simulation(unreadable=("flags",))

    assert any(
        each.startswith("unreadable: honeypot.is raises a flag without a name")
        for each in evaluate_token(facts).warnings
    )


def test_impossible_simulated_tax_is_reported():
    facts = change_simulation(buy_tax=None, unreadable=("simulationResult.buyTax",))

    assert any("honeypot.is gives impossible taxes" in each for each in evaluate_token(facts).warnings)


def test_simulation_without_summary_reports_missing_checks():
    unmade = [
        each
        for each in evaluate_token(change_simulation(summarised=False, risk_level=None)).warnings
        if "honeypot.is gives no value" in each
    ]

    assert len(unmade) == 1
    assert all(words in unmade[0] for words in ("failed sales", "sell limits", "the simulation's own rating"))


def test_unknown_owner_is_reported():
    assert any("its owner" in each for each in evaluate_token(change_flags(owner_address=None)).warnings)


def test_text_with_link_is_not_repeated():
    facts = change_simulation(
        change_flags(note="claim at evil.example"), succeeded=False, reason="see https://evil.example/x"
    )

    assert "evil" not in " ".join(evaluate_token(facts).warnings)


def test_unreadable_shares_are_unknown_and_reported():
    facts = change_flags(holders=(), lp_holders=(replace(build_holder(1), percent=None),))

    assert (
        facts.lp_holders.locked_percent,
        facts.lp_holders.largest_wallet_percent,
        facts.holders.top_percent,
    ) == (None,) * 3
    named = " ".join(evaluate_token(facts).warnings)
    assert "locked liquidity" in named
    assert "concentrated holders" in named


def test_long_lists_are_cited_in_part():
    flags = tuple(SimulationFlag(f"{number:0>60}", "high", None) for number in range(900))

    (flag,) = [
        each
        for each in evaluate_token(change_simulation(flags=flags)).flags
        if each.id == "simulation_other_high"
    ]

    assert len(flag.evidence[0].value or "") < 1000


def test_liquidity_shares_are_cited_with_unlocked_holders():
    burned = Holder(BURN, None, contract=False, locked=True, percent=30)
    free = replace(build_holder(50, contract=True), address=OTHER)

    cited = cite_field(change_flags(lp_holders=(burned, build_locker(days=6), free)), "goplus:lp_holders")

    (text,) = [each.value for each in cited]
    assert text is not None
    first, second, third = text.split(", ")
    assert first == f"{OTHER} 50 % free (contract)"
    assert second.endswith("locked until 2026-11-27")
    assert third == f"{BURN} 30 % burned"


# limits of the severity

POWERS: dict[str, Any] = dict.fromkeys(
    ("mintable", "pausable", "tax_modifiable", "personal_tax_modifiable", "changes_balances"), True
) | {"self_destructs": True, "anti_whale_modifiable": True}


@pytest.mark.parametrize("owner", [BURN, "0x" + "0" * 40, "0x" + "0" * 39 + "1"])
def test_renounced_ownership_makes_powers_note(owner: str):
    flags = list_flags(change_flags(owner_address=owner, blacklists=True, **POWERS))

    assert flags.pop("self_destructs") == "critical"
    assert set(flags.values()) == {"info", "low"}
    lasting = {name for name, severity in flags.items() if severity == "low"}
    assert lasting == {"owner_can_tax_one", "owner_can_blacklist"}


@pytest.mark.parametrize("shown", [None, Owner(None, "none")], ids=str)
def test_contract_without_owner_data_keeps_its_powers(shown: Owner | None):
    facts = replace(change_flags(owner_address="", **POWERS), owner=shown)

    assert list_flags(facts)["owner_changes_balances"] == "critical"
    assert (facts.ownership.state, facts.ownership.has_power("mintable")) == ("none", True)
    assert evaluate_token(change_flags(facts, trusted=True)).level == "low"
    assert "ownership_given_up" not in list_flags(facts)


def test_contract_without_owner_and_powers_is_low():
    assert list_flags(change_flags(owner_address="")) == {}


def test_roles_keep_powers_after_renounced_ownership():
    facts = replace(change_flags(owner_address=BURN, **POWERS), has_other_controllers=True)

    assert list_flags(facts)["owner_changes_balances"] == "critical"
    assert facts.ownership.has_power("mintable") is True


@pytest.mark.parametrize("doubt", ["hidden_owner", "reclaimable", "proxy"])
@pytest.mark.parametrize("answer", [True, None])
def test_possible_owner_keeps_powers(doubt: str, answer: Any):
    flags = list_flags(change_flags(FACTS, owner_address=BURN, **POWERS, **{doubt: answer}))

    assert flags["owner_changes_balances"] == flags["self_destructs"] == "critical"


def test_unknown_owner_counts_as_owner():
    assert list_flags(change_flags(owner_address=None, pausable=True))["owner_can_pause"] == "high"


def test_powers_of_trusted_token_are_centralised_control():
    powers = POWERS | {"proxy": True, "blacklists": True, "trusted": True}

    verdict = evaluate_token(change_flags(FACTS, owner_percent=40.0, **powers))

    assert verdict.level == "low"
    assert all("centralised control" in each.explanation for each in verdict.flags if each.severity == "low")


def test_exchange_listing_lowers_powers_but_not_shares():
    listed = change_flags(FACTS, cex_listed=True, **POWERS, blacklists=True)

    assert evaluate_token(listed).level == "medium"
    assert list_flags(change_flags(listed, owner_percent=40.0))["owner_holds_much"] == "high"
    assert (
        list_flags(change_flags(listed, lp_holders=(build_holder(60),)))["liquidity_in_one_wallet"] == "high"
    )
    assert list_flags(change_flags(listed, hidden_owner=True))["hidden_owner"] == "high"


def test_exchange_listing_alone_proves_no_sale():
    facts = replace(change_flags(cex_listed=True, honeypot=None), simulation=None)
    facts = replace(facts, no_simulation_reason="chain_not_covered")

    assert evaluate_token(facts).level == "unknown"


@pytest.mark.parametrize(
    "habit", [{"external_call": True}, {"trading_cooldown": True}, {"transfer_tax": 0.02}], ids=str
)
def test_habit_of_trusted_token_is_low(habit: Any):
    assert evaluate_token(change_flags(trusted=True, **habit)).level == "low"
    assert evaluate_token(change_flags(**habit)).level == "medium"


# the owner that the chain shows

ALL_POWERS: dict[str, Any] = {"tax_modifiable": True, "blacklists": True, "mintable": True}
SHARED_SAFE = Owner(OWNER, "safe", threshold=2, owner_count=3, has_modules=False)


@pytest.mark.parametrize(
    ("owner", "level"),
    [
        (Owner(OWNER, "wallet"), "high"),
        (Owner(OWNER, "contract"), "high"),
        (Owner(OWNER, "unknown"), "high"),
        (SHARED_SAFE, "medium"),
        (replace(SHARED_SAFE, threshold=1), "high"),
        (replace(SHARED_SAFE, has_modules=True), "high"),
        (replace(SHARED_SAFE, has_modules=None), "high"),
        # any contract can return the same values
        (Owner(OWNER, "timelock", delay_seconds=172_800), "high"),
        (Owner(OWNER, "governor"), "high"),
    ],
    ids=lambda value: (
        value if isinstance(value, str) else f"{value.kind}-{value.threshold}-{value.has_modules}"
    ),
)
def test_kind_of_owner_limits_all_powers_together(owner: Owner, level: str):
    assert evaluate_token(replace(change_flags(**ALL_POWERS), owner=owner)).level == level


def test_safe_limits_worst_power():
    worst = change_flags(changes_balances=True)
    claimed = replace(worst, owner=Owner(OWNER, "timelock", delay_seconds=172_800))
    shared = replace(worst, owner=SHARED_SAFE)

    assert list_flags(worst)["owner_changes_balances"] == "critical"
    assert list_flags(shared)["owner_changes_balances"] == "high"
    assert list_flags(claimed)["owner_changes_balances"] == "critical"


def test_hidden_owner_cancels_limit_of_safe():
    facts = replace(change_flags(changes_balances=True, hidden_owner=True), owner=SHARED_SAFE)

    assert list_flags(facts)["owner_changes_balances"] == "critical"


def test_owner_from_chain_alone_counts():
    renounced = change_flags(owner_address=BURN, mintable=True)

    assert list_flags(renounced)["owner_can_mint"] == "info"
    facts = replace(renounced, owner=Owner(OTHER, "wallet"))
    assert list_flags(facts)["owner_can_mint"] == "medium"
    assert any("the owner on the chain is" in each for each in evaluate_token(facts).warnings)


@pytest.mark.parametrize("listed", ["", BURN, "0x" + "0" * 40])
def test_owner_denied_by_analysis_is_reported(listed: str):
    facts = change_flags(owner_address=listed, owner_percent=30.0, mintable=True)
    facts = replace(facts, owner=replace(SHARED_SAFE, address=OTHER))

    assert (facts.ownership.state, facts.ownership.address, facts.ownership.kind) == ("held", OTHER, "safe")
    assert (facts.holders.owner_percent, facts.ownership.has_power("mintable")) == (None, True)
    (warning,) = [each for each in evaluate_token(facts).warnings if "owner on the chain" in each]
    assert OTHER in warning
    assert "the chain counts" in warning


def test_renounced_ownership_is_read_from_chain():
    facts = replace(change_flags(owner_address="", mintable=True), owner=Owner("0x" + "0" * 40, "renounced"))

    assert (facts.ownership.state, facts.ownership.has_power("mintable")) == ("renounced", False)
    assert not any("owner on the chain" in each for each in evaluate_token(facts).warnings)


def test_powers_of_burned_owner_read_false():
    nobody = change_flags(owner_address=BURN, mintable=True, pausable=True, whitelists=None)

    assert [nobody.ownership.has_power(name) for name in ("mintable", "pausable", "whitelists")] == [
        False,
        False,
        None,
    ]
    assert change_flags(nobody, reclaimable=True).ownership.has_power("mintable") is True


def test_power_denied_by_analysis_is_named_with_function():
    powers = (
        ContractPower("mint", "0x40c10f19", "mint(address,uint256)", "owner"),
        ContractPower("take_balances", "0xf3bdc228", "destroyBlackFunds(address)", None),
        ContractPower("upgrade", "0x3659cfe6", "upgradeTo(address)", None),
    )
    facts = replace(FACTS, bytecode_flags=replace(BYTECODE, mintable=True), bytecode_powers=powers)

    (warning,) = [
        each for each in evaluate_token(facts).warnings if "bytecode" in each and "disagree" in each
    ]
    assert warning == (
        "sources disagree: the bytecode has mint(address,uint256), destroyBlackFunds(address), GoPlus "
        "Security says is_mintable 0, owner_change_balance 0"
    )
    agreed = change_flags(facts, mintable=True, changes_balances=None)
    assert not any("the bytecode has" in each for each in evaluate_token(agreed).warnings)


def test_renounced_owner_changes_no_balances_but_code_may_be_destroyed():
    """GoPlus says of a self-destruction that there is one, not whose it is."""
    facts = change_flags(owner_address=BURN, changes_balances=True, self_destructs=True)
    shared = replace(change_flags(self_destructs=True), owner=SHARED_SAFE)

    assert facts.ownership.has_power("changes_balances") is False
    flags = list_flags(facts)
    assert (flags["owner_changes_balances"], flags["self_destructs"]) == ("info", "critical")
    assert list_flags(shared)["self_destructs"] == "critical"
    assert list_flags(change_flags(facts, trusted=True))["self_destructs"] == "low"
    assert list_flags(change_flags(facts, cex_listed=True))["self_destructs"] == "medium"


# liquidity in other hands


def test_expired_lock_is_no_lock():
    ended = change_flags(lp_holders=(replace(build_locker(days=-1), percent=33),)).lp_holders

    assert (ended.locked_percent, ended.unlocked_percent) == (0, 33)
    assert ended.shares
    assert ended.shares.hands[0].lock_ended_at == NOW - timedelta(days=1)


def test_locks_of_one_locker_count_separately():
    locks = (TokenLock(30, NOW - timedelta(days=1)), TokenLock(60, NOW + timedelta(days=400)))
    holder = build_holder(95, contract=True, locked=True, locks=locks, tag="UNCX")

    found = change_flags(lp_holders=(holder,)).lp_holders

    assert (found.locked_percent, found.unlocked_percent) == (60, 35)
    assert found.shares
    assert [(each.locker, each.percent) for each in found.shares.locks] == [("UNCX", 60)]
    assert [(each.percent, each.lock_ended_at) for each in found.shares.hands] == [
        (30, NOW - timedelta(days=1)),
        (5, None),
    ]


def test_balance_beyond_expired_locks_is_unlocked():
    locks = (TokenLock(1, NOW - timedelta(days=9)), TokenLock(2, NOW - timedelta(days=1)))
    facts = change_flags(lp_holders=(build_holder(95, contract=True, locked=True, locks=locks),))

    assert (facts.lp_holders.locked_percent, facts.lp_holders.unlocked_percent) == (0, 95)
    assert list_flags(facts)["liquidity_in_one_contract"] == "high"


@pytest.mark.parametrize("contract", [True, False])
def test_unlocked_shares_of_one_address_are_added(*, contract: bool):
    ended = tuple(TokenLock(9, NOW - timedelta(days=day)) for day in range(1, 11))
    facts = change_flags(lp_holders=(build_holder(95, contract=contract, locked=True, locks=ended),))

    assert facts.lp_holders.few_hands_percent == 95
    assert list_flags(facts)[f"liquidity_in_one_{'contract' if contract else 'wallet'}"] == "high"


@pytest.mark.parametrize("lock", [TokenLock(1, NOW + timedelta(days=900)), TokenLock(1, None)], ids=str)
def test_balance_beyond_active_locks_is_unlocked(lock: TokenLock):
    facts = change_flags(lp_holders=(build_holder(96, contract=True, locked=True, locks=(lock,)),))

    assert (facts.lp_holders.locked_percent, facts.lp_holders.unlocked_percent) == (1, 95)
    assert "liquidity_locked" not in list_flags(facts)
    verdict = evaluate_token(facts)
    assert verdict.level == "high"
    explanation = next(flag.explanation for flag in verdict.flags if flag.id == "liquidity_in_one_contract")
    # it may be a known locker
    assert explanation == "One contract holds 95 % of the liquidity, and no lock in force covers it."


def test_lock_with_unreadable_end_is_neither_locked_nor_unlocked():
    locks = (TokenLock(60, None, end_unreadable=True),)
    facts = change_flags(lp_holders=(build_holder(64, contract=True, locked=True, locks=locks),))

    assert (facts.lp_holders.locked_percent, facts.lp_holders.unlocked_percent) == (0, 4)
    assert "liquidity_locked" not in list_flags(facts)
    assert any(
        each == "60 % of the liquidity is in locks whose end is not known"
        for each in evaluate_token(facts).warnings
    )


def test_known_locker_counts_if_source_is_silent():
    verified = next(iter(LOCKERS[1].values()))
    unverified = next(each for each in LOCKERS[1].values() if not each.is_verified)
    rows = (
        replace(build_holder(50, locked=None, contract=True), address=verified.address),
        replace(build_holder(40, locked=None, contract=True), address=unverified.address),
    )

    found = replace(change_flags(lp_holders=rows), chain_id=1).lp_holders

    assert (found.locked_percent, found.unlocked_percent) == (50, 40)


@pytest.mark.parametrize(
    "holders",
    [
        (build_holder(50), replace(build_holder(50), address=OWNER)),
        (replace(build_holder(79), address=OWNER),),
        (build_holder(100, contract=True),),
        tuple(replace(build_holder(20), address="0x" + f"{number:02x}" * 20) for number in range(0xA0, 0xA5)),
    ],
    ids=str,
)
def test_concentrated_unlocked_liquidity_is_high(holders: Any):
    assert evaluate_token(change_flags(lp_holders=holders)).level == "high"


def test_unlocked_liquidity_of_wallets_is_one_flag():
    wallets = tuple(
        replace(build_holder(30), address="0x" + f"{number:02x}" * 20) for number in range(0xA0, 0xA3)
    )
    raised = list_flags(change_flags(lp_holders=wallets))

    assert {name for name in raised if name.startswith("liquidity")} == {"liquidity_in_wallets"}
    contracts = tuple(replace(each, contract=True, percent=20) for each in wallets)
    assert evaluate_token(change_flags(lp_holders=contracts)).level == "medium"


def test_rows_of_one_holder_are_added():
    rows = (build_holder(30), build_holder(30, contract=True))

    assert change_flags(holders=rows).holders.largest_percent == 60


def test_contract_with_half_of_supply_is_high():
    assert evaluate_token(change_flags(holders=(build_holder(50, contract=True),))).level == "high"


def test_holding_with_expired_lock_counts_as_holding():
    holder = build_holder(60, contract=True, locked=True, locks=(TokenLock(60, NOW - timedelta(days=1)),))

    assert change_flags(holders=(holder,)).holders.largest_percent == 60


@pytest.mark.parametrize(
    ("locks", "free"),
    [
        ((TokenLock(59, NOW - timedelta(days=1)), TokenLock(1, NOW + timedelta(days=900))), 59),
        ((TokenLock(1, NOW + timedelta(days=900)),), 59),
        ((TokenLock(60, NOW + timedelta(days=900)),), 0),
        ((TokenLock(60, None),), 0),
        ((), 0),
    ],
    ids=str,
)
def test_balance_without_active_lock_counts_as_holding(locks: tuple[TokenLock, ...], free: float):
    holder = build_holder(60, contract=True, locked=True, locks=locks)
    facts = change_flags(holders=(holder, replace(build_holder(2, locked=True), percent=None)))

    assert facts.holders.largest_percent == free
    assert evaluate_token(facts).level == ("high" if free else "low")


# sales at holders


def test_failing_majority_of_holders_is_critical_without_summary():
    verdict = evaluate_token(
        change_simulation(
            summarised=False, holder_sales=HolderSales(tested=1000, failed=900, siphoned=0, average_tax=1)
        )
    )

    assert verdict.level == "critical"
    (unmade,) = [each for each in verdict.warnings if "honeypot.is gives no value" in each]
    assert not any(check in unmade for check in ("failed sales", "holdings taken away", "holders' taxes"))


def test_few_failing_holders_are_no_rate():
    assert "holders_cannot_sell" not in list_flags(set_holder_sales(tested=2, failed=2))
    assert evaluate_token(set_holder_sales(tested=2, failed=2)).level == "high"


def test_holders_of_empty_pair_are_ignored():
    assert (
        evaluate_token(change_simulation(set_holder_sales(tested=9, failed=9), pair_empty=True)).level
        == "medium"
    )


# sources that disagree, and sources that are switched off


def test_sale_in_pair_unknown_to_indexes_counts():
    facts = replace(
        change_flags(in_dex=None), liquidity=None, sources_without_pair=("dexscreener", "geckoterminal")
    )

    assert "no_pair" not in list_flags(facts)
    assert facts.trade.can_sell is True
    assert any("a simulated sale went through" in each for each in evaluate_token(facts).warnings)


@pytest.mark.parametrize("own", [True, False], ids=["own", "service"])
@pytest.mark.parametrize("in_dex", [None, False, True])
def test_pair_of_simulated_purchase_precedes_none(*, own: bool, in_dex: bool | None):
    """A purchase went through, and whether a sale does is not known: there is a pair all the same."""
    bought = replace(OWN if own else SOLD, honeypot=None, sell_tax=None, liquidity_usd=None)
    facts = replace(
        change_flags(in_dex=in_dex),
        simulation=None if own else bought,
        own_simulation=bought if own else None,
        liquidity=None,
        sources_without_pair=("dexscreener", "geckoterminal"),
    )

    assert "no_pair" not in list_flags(facts)
    assert facts.trade.can_sell is not False
    (warning,) = [each for each in evaluate_token(facts).warnings if "list no pair" in each]
    assert ("the chain" if own else "honeypot.is") in warning
    assert "no_pair" in list_flags(replace(facts, simulation=None, own_simulation=None)) or in_dex


def test_exchange_listing_alone_refutes_no_missing_pair():
    facts = replace(
        change_flags(cex_listed=True),
        simulation=None,
        no_simulation_reason="chain_not_covered",
        liquidity=None,
        sources_without_pair=("dexscreener", "geckoterminal"),
    )

    assert list_flags(facts)["no_pair"] == "high"


@pytest.mark.parametrize(
    ("changes", "source"),
    [
        ({"simulation": replace(SOLD, liquidity_usd=1e6)}, "honeypot.is"),
        ({"chain_liquidity": Liquidity("onchain", 1e6, 2)}, "the chain"),
    ],
    ids=["simulation", "chain"],
)
def test_deeper_pair_than_listed_is_reported(changes: Any, source: str):
    facts = replace(set_liquidity(500), **changes)

    assert list_flags(facts)["low_liquidity"] == "high"
    (warning,) = [each for each in evaluate_token(facts).warnings if "$1,000,000" in each]
    assert source in warning
    assert "DEX Screener lists $500" in warning
    close = replace(set_liquidity(600_000), **changes)
    assert not any("$1,000,000" in each for each in evaluate_token(close).warnings)


@pytest.mark.parametrize(
    ("facts", "sellable"),
    [
        (replace(change_flags(sell_tax=100.0), simulation=None), False),
        (change_flags(sell_tax=99.0), None),
        (set_holder_sales(tested=9, failed=0, average_tax=99.5), None),
    ],
    ids=str,
)
def test_total_tax_leaves_honeypot_unknown(facts: TokenEvidence, sellable: bool | None):  # noqa: FBT001
    assert (facts.trade.is_honeypot, facts.trade.can_sell) == (None, sellable)
    assert evaluate_token(facts).level == "critical"


def test_tax_just_below_total_counts_as_sale():
    facts = change_flags(sell_tax=98.9)

    assert (facts.trade.is_honeypot, facts.trade.can_sell) == (False, True)
    assert change_simulation(sell_tax=99.0).trade.is_honeypot is True


def test_own_sale_contradicts_honeypot_of_service():
    facts = replace(
        change_simulation(change_flags(honeypot=None), **BLOCKED, liquidity_usd=50_000), own_simulation=OWN
    )

    assert list_flags(facts)["honeypot_disputed"] == "high"
    assert (facts.trade.is_honeypot, facts.trade.can_sell) == (True, None)
    assert facts.trade.sources_agree is False
    assert any("Centgate on the chain sold" in each for each in evaluate_token(facts).warnings)


def test_own_failed_sale_is_honeypot():
    facts = replace(FACTS, analysis=None, simulation=None, own_simulation=replace(OWN, honeypot=True))

    assert list_flags(facts)["honeypot"] == "critical"
    assert list_flags(replace(facts, simulation=change_simulation(honeypot=True).simulation))[
        "honeypot_confirmed"
    ]


def test_purchase_without_sale_is_uncertain():
    facts = replace(FACTS, simulation=None, own_simulation=replace(OWN, honeypot=None, sell_tax=None))

    assert list_flags(facts)["sale_failed_in_doubt"] == "high"
    assert facts.trade.can_sell is None


def test_doubt_of_one_simulation_stays_beside_sale_of_another():
    doubt = replace(OWN, honeypot=None, sell_tax=None, explanation="a wallet cannot sell")
    facts = replace(FACTS, own_simulation=doubt)

    assert (FACTS.trade.is_honeypot, facts.trade.is_honeypot) == (False, None)
    assert (
        "a simulated sale went through, but Centgate on the chain found: a wallet cannot sell; "
        "isHoneypot is not known"
    ) in evaluate_token(facts).warnings


def test_chain_alone_gives_level():
    pools = Liquidity("onchain", 90_000, 2, other_side_usd=45_000)
    alone = TokenEvidence(
        NOW,
        no_simulation_reason="chain_not_covered",
        liquidity=pools,
        bytecode_flags=BYTECODE,
        own_simulation=OWN,
        owner=Owner(None, "none"),
    )

    verdict = evaluate_token(alone)

    assert (verdict.level, list_flags(alone)) == ("low", {"bytecode_only": "low"})
    warnings = " ".join(verdict.warnings)
    assert all(check in warnings for check in list_subjects("goplus"))
    assert evaluate_token(replace(alone, own_simulation=replace(OWN, sell_tax=12.0))).level == "high"
    mintable = replace(alone, bytecode_flags=replace(BYTECODE, mintable=True), owner=Owner(OWNER, "wallet"))
    (flag,) = [each for each in evaluate_token(mintable).flags if each.id == "owner_can_mint"]
    assert flag.severity == "medium"
    assert Citation("onchain", "bytecode.mintable", "true") in flag.evidence


def test_side_of_pairs_is_not_cited_from_source_without_it():
    facts = replace(FACTS, liquidity=replace(DEEP, source="geckoterminal"))

    assert cite_field(facts, "liquidity:otherSideUsd") == []
    assert cite_field(facts, "liquidity:totalUsd") == [Citation("geckoterminal", "reserve_in_usd", "90000")]


def test_owner_of_unknown_kind_is_not_read():
    facts = replace(FACTS, own_simulation=OWN, bytecode_flags=BYTECODE, owner=Owner(None, "unknown"))

    assert any("its owner was not read" in each for each in evaluate_token(facts).warnings)


def test_unread_chain_is_not_said_to_lack_node():
    facts = replace(FACTS, no_own_simulation_reason="source_unavailable", bytecode_flags=BYTECODE)

    assert any("(the chain was not read in full)" in each for each in evaluate_token(facts).warnings)


def test_bytecode_that_tells_some_powers_is_not_called_unread():
    told = TokenFlags(proxy=False, pausable=True, self_destructs=False)
    facts = replace(FACTS, own_simulation=OWN, bytecode_flags=told, owner=Owner(OWNER, "wallet"))

    (warning,) = [
        each for each in evaluate_token(facts).warnings if each.startswith("on the chain itself its bytecode")
    ]

    assert "its bytecode does not tell everything; not checked there: " in warning
    assert "whether its owner can stop transfers" not in warning
    assert "self-destruction" not in warning
    assert "whether more of it can be made" in warning
    assert "what only source code shows" in warning


def test_unread_bytecode_leaves_all_its_checks_open():
    facts = replace(FACTS, own_simulation=OWN, bytecode_flags=TokenFlags(proxy=False))

    warnings = "; ".join(evaluate_token(facts).warnings)

    assert "its bytecode was not read" in warnings
    assert "whether its owner can stop transfers" in warnings


def test_analysis_precedes_bytecode_and_both_are_cited():
    facts = replace(change_flags(mintable=False), bytecode_flags=replace(BYTECODE, mintable=True))

    assert "owner_can_mint" not in list_flags(facts)
    assert any(
        "opposite of what GoPlus Security says for is_mintable" in each
        for each in evaluate_token(facts).warnings
    )


def test_code_behind_proxy_decides_source_verification():
    proxy = change_flags(proxy=True, open_source=True)

    assert change_simulation(proxy, proxy=True, open_source=False).contract.is_source_verified is False
    assert change_simulation(proxy, proxy=True, open_source=True).contract.is_source_verified is True
    assert replace(proxy, simulation=None).contract.is_source_verified is None
    assert any(
        "behind the proxy" in each for each in evaluate_token(replace(proxy, simulation=None)).warnings
    )


def test_trusted_proxy_is_not_called_verified_unread():
    proxy = change_flags(proxy=True, open_source=True, trusted=True)

    assert replace(proxy, simulation=None).contract.is_source_verified is None
    assert change_simulation(proxy, all_open_source=True).contract.is_source_verified is True


def test_source_is_unknown_if_no_source_tells_proxies():
    facts = change_flags(proxy=None, open_source=True)

    alone = replace(facts, simulation=None)
    assert alone.contract.is_source_verified is None
    assert any("whether it is a proxy" in each for each in evaluate_token(alone).warnings)
    assert change_simulation(facts, all_open_source=True).contract.is_source_verified is True
    assert replace(alone, bytecode_flags=BYTECODE).contract.is_source_verified is True


# the score


def test_score_is_sum_of_parts_within_level_band():
    for facts, _, _ in LEVELLING:
        verdict = evaluate_token(facts)
        if verdict.score is None:
            assert verdict.level == "unknown"
            continue
        assert verdict.score.score == sum(part.points for part in verdict.score.parts)
        assert [part.flag_id for part in verdict.score.parts] == [flag.id for flag in verdict.flags]
        lowest, highest = {"low": (0, 24), "medium": (25, 49), "high": (50, 74), "critical": (75, 100)}[
            verdict.level
        ]
        assert lowest <= verdict.score.score <= highest


def test_score_without_findings_is_zero():
    assert evaluate_token(FACTS).score == TokenScore(0, ())


@pytest.mark.parametrize(
    "bad", [{"honeypot": True}, {"sell_tax": 60.0}, {"fake": True}, {"gas_abuse": True}, {"buy_tax": 20.0}]
)
def test_well_known_token_gets_no_excuse_for_fraud(bad: Any):
    assert (
        evaluate_token(change_flags(trusted=True, **bad)).level == evaluate_token(change_flags(**bad)).level
    )


def test_creator_with_bad_history_is_finding():
    assert list_flags(change_flags(serial_creator=True, cannot_sell_all=True))["serial_creator"] == "high"


@pytest.mark.parametrize(
    "passive",
    [
        {"locked": True},
        {"contract": True},
        {"tag": "UniswapV2"},
        {"tag": "Binance: Hot Wallet 6"},
        {"tag": "Null Address", "address": "0x" + "0" * 40},
    ],
    ids=str,
)
def test_pools_lockers_and_exchanges_are_no_holders(passive: dict[str, Any]):
    holder = build_holder(90)

    assert change_flags(holders=(replace(holder, **passive), build_holder(2))).holders.top_percent == 2


def test_pairs_of_any_source_are_no_holders():
    pool = DexPool(OTHER, "UniswapV3", 5.0)

    assert change_flags(holders=(build_holder(90),), pools=(pool,)).holders.top_percent == 0
    assert (
        replace(
            change_flags(holders=(build_holder(90),)), pool_addresses=frozenset({OTHER})
        ).holders.top_percent
        == 0
    )


def test_forged_balance_is_reported_and_no_share():
    flags = parse_token_security({"holders": [{"address": OTHER, "percent": "1769801.0"}]}, partial=False)
    facts = replace(FACTS, analysis=flags)

    assert facts.holders.top_percent is None
    assert any("balance forged or unreadable" in warning for warning in evaluate_token(facts).warnings)


@pytest.mark.parametrize("field", ["holders", "lp_holders"])
def test_shares_beyond_whole_are_reported(field: str):
    rows = tuple(
        replace(build_holder(40), address="0x" + f"{number:02x}" * 20) for number in range(0xA0, 0xA9)
    )

    facts = change_flags(FACTS, **{field: rows})
    (warning,) = [each for each in evaluate_token(facts).warnings if "360 %" in each]

    assert warning.startswith("balance forged or unreadable: GoPlus Security")
    assert field in warning
    whole = change_flags(FACTS, **{field: (build_holder(60), replace(build_holder(40.5), address=THIRD))})
    assert not any("forged" in each for each in evaluate_token(whole).warnings)


def test_burned_share_belongs_to_no_holder():
    assert "owner_holds_much" not in list_flags(change_flags(owner_address=BURN, owner_percent=95.0))


@pytest.mark.parametrize(
    ("address", "burned"),
    [
        (BURN, 1),
        ("0x" + "dead" * 10, 1),
        ("0x" + "0" * 40, 1),
        (OWNER, 0),
        ("0xdead" + "1" * 36, 0),
        ("0x" + "0" * 36 + "2006", 0),
    ],
)
def test_burn_addresses(address: str, burned: int):
    assert is_burn_address(address) == bool(burned)


# liquidity

PAIR = Pair(
    address="0x" + "33" * 20,
    dex="uniswap",
    base=PairToken(OTHER, "A"),
    quote=PairToken(OWNER, "B"),
    price_usd=1.0,
    quote_price_usd=1.0,
    liquidity_usd=20_000.0,
    base_side_usd=10_000.0,
    quote_side_usd=10_000.0,
    volume24h_usd=None,
    fdv_usd=None,
    created_at=NOW - timedelta(days=3),
    buys24h=None,
    sells24h=None,
    url=None,
    source="dexscreener",
)


def test_one_sided_pool_counts_by_its_other_side():
    one_sided = replace(PAIR, liquidity_usd=1_000_000.0, base_side_usd=999_995.0, quote_side_usd=5.0)

    found = sum_pair_liquidity(OTHER, [one_sided], "dexscreener")

    assert (found.total_usd, found.other_side_usd, found.usable_usd) == (1_000_000, 5, 10)
    assert sum_pair_liquidity(OWNER, [one_sided], "dexscreener").usable_usd == 1_000_000


def test_second_pair_does_not_make_token_young():
    old = replace(PAIR, liquidity_usd=12_000.0, created_at=NOW - timedelta(days=400))
    dust = replace(PAIR, liquidity_usd=5.0, created_at=NOW - timedelta(days=900))

    found = sum_pair_liquidity(OTHER, [PAIR, old, dust], "dexscreener")

    assert (found.trading_since, found.top_created_at) == (old.created_at, PAIR.created_at)


def test_shallow_old_pair_does_not_hide_new_trading():
    new = replace(PAIR, created_at=NOW - timedelta(hours=2))
    old = replace(PAIR, liquidity_usd=6_000.0, created_at=NOW - timedelta(days=400))

    found = sum_pair_liquidity(OTHER, [old, new], "dexscreener")

    assert found.trading_since == new.created_at


def test_hollow_pair_is_not_top_pair():
    hollow = replace(
        PAIR, address=BURN, liquidity_usd=9e6, base_side_usd=9e6 - 5, quote_side_usd=5.0, created_at=None
    )

    found = sum_pair_liquidity(OTHER, [hollow, PAIR], "dexscreener")

    assert (found.top_pair, found.trading_since) == (PAIR.address, PAIR.created_at)
    assert found.usable_usd == 20_010


def test_missing_sides_are_unknown_and_reported():
    found = sum_pair_liquidity(
        OTHER, [replace(PAIR, base_side_usd=None, quote_side_usd=None)], "geckoterminal"
    )

    assert (found.total_usd, found.other_side_usd, found.usable_usd) == (20_000, None, 20_000)
    assert any("one-sided" in each for each in evaluate_token(replace(FACTS, liquidity=found)).warnings)


def test_dust_without_sides_is_ignored():
    dust = replace(PAIR, liquidity_usd=9.0, base_side_usd=None, quote_side_usd=None)

    assert sum_pair_liquidity(OTHER, [PAIR, dust], "dexscreener").other_side_usd == 10_000


def test_partial_index_failure_leaves_liquidity_unchecked():
    facts = replace(FACTS, liquidity=None, sources_without_pair=("dexscreener",))

    warnings = " ".join(evaluate_token(facts).warnings)

    assert "no_pair" not in list_flags(facts)
    assert "pairs on exchanges, liquidity, how long it has been traded" in warnings


def test_missing_liquidity_is_unknown():
    found = sum_pair_liquidity(OTHER, [replace(PAIR, liquidity_usd=None)], "dexscreener")

    assert (found.total_usd, found.usable_usd, found.pair_count) == (None, None, 1)
    assert any("liquidity" in each for each in evaluate_token(replace(FACTS, liquidity=found)).warnings)


def test_trusted_token_missing_in_indexes_has_unknown_liquidity():
    facts = replace(
        change_flags(trusted=True), liquidity=None, sources_without_pair=("dexscreener", "geckoterminal")
    )

    assert evaluate_token(facts).level == "low"
    assert any(
        "DEX Screener and GeckoTerminal list no pair" in each for each in evaluate_token(facts).warnings
    )


# properties of all evidence

UNSURE: Any = st.sampled_from([None, False, True])
PERCENT: Any = st.none() | st.sampled_from([0.0, 1.0, 5.0, 10.0, 49.0, 50.0, 99.0, 100.0])
USD: Any = st.none() | st.sampled_from([0.0, 0.5, 500.0, 1000.0, 9999.0, 1e6])
LOCKS = st.builds(
    TokenLock,
    st.sampled_from([1.0, 30.0, 60.0]),
    st.sampled_from([None, *(NOW + timedelta(days=days) for days in (-1, 3, 20, 900))]),
)
HOLDERS: Any = st.none() | st.lists(
    st.builds(
        Holder,
        st.sampled_from([OWNER, OTHER, BURN]),
        st.sampled_from([None, "UniswapV2"]),
        UNSURE,
        UNSURE,
        PERCENT,
        st.lists(LOCKS, max_size=2).map(tuple),
    ),
    max_size=3,
).map(tuple)
SPECIAL: dict[str, Any] = {
    **dict.fromkeys(GOPLUS_FIELDS, UNSURE),
    **dict.fromkeys(("buy_tax", "sell_tax", "transfer_tax", "owner_percent", "creator_percent"), PERCENT),
    "owner_address": st.sampled_from([None, "", BURN, OWNER]),
    "creator_address": st.sampled_from([None, OTHER]),
    "holder_count": st.sampled_from([None, 3, 100]),
    "holders": HOLDERS,
    "lp_holders": HOLDERS,
}
ANALYSES = st.fixed_dictionaries(SPECIAL).map(lambda values: TokenFlags(**values))
NAMES = [rule.id.removeprefix("simulation_") for rule in TOKEN_RULES if rule.id.startswith("simulation_")]
SIMULATIONS = st.builds(
    Simulation,
    succeeded=st.booleans(),
    honeypot=UNSURE,
    reason=st.sampled_from([None, "TRANSFER_FAILED", "INSUFFICIENT_OUTPUT_AMOUNT"]),
    buy_tax=PERCENT,
    sell_tax=PERCENT,
    transfer_tax=PERCENT,
    risk_level=st.sampled_from([None, 0.0, 59.0, 60.0, 89.0, 90.0, 100.0]),
    flags=st.lists(st.sampled_from(NAMES), max_size=2).map(
        lambda names: tuple(SimulationFlag(name, None, None) for name in names)
    ),
    open_source=UNSURE,
    proxy=UNSURE,
    liquidity_usd=USD,
    pair_empty=UNSURE,
)
LIQUIDITIES = st.builds(
    Liquidity,
    st.sampled_from(["dexscreener", "geckoterminal", "goplus"]),
    USD,
    st.just(1),
    other_side_usd=USD,
    trading_since=st.sampled_from([None, NOW, NOW - timedelta(days=3), NOW - timedelta(days=30)]),
)
OWN_SIMULATIONS = st.builds(
    Simulation,
    succeeded=st.booleans(),
    honeypot=UNSURE,
    buy_tax=PERCENT,
    sell_tax=PERCENT,
    transfer_tax=PERCENT,
    transfer_blocked=UNSURE,
    cooldown=UNSURE,
    cannot_sell_all=UNSURE,
    origin_check=UNSURE,
    pair_empty=UNSURE,
    holder_sales=st.none()
    | st.builds(
        HolderSales,
        tested=st.sampled_from([None, 0, 1, 10, 1000]),
        failed=st.sampled_from([None, 0, 1, 5, 10]),
        siphoned=st.sampled_from([None, 0, 1]),
        average_tax=PERCENT,
        highest_tax=PERCENT,
        high_tax_count=st.sampled_from([None, 0, 1]),
    ),
    max_sell=st.none() | st.just(TradeLimit(4)),
)
INFERRED_FLAGS: dict[str, Any] = dict.fromkeys(BYTECODE_FLAGS, UNSURE)
INFERRED = st.fixed_dictionaries(INFERRED_FLAGS).map(lambda values: TokenFlags(**values))
OWNERS = st.builds(
    Owner,
    st.sampled_from([None, OWNER, OTHER, BURN]),
    st.sampled_from(["none", "renounced", "wallet", "safe", "timelock", "governor", "contract", "unknown"]),
    threshold=st.sampled_from([None, 1, 2]),
    has_modules=st.sampled_from([None, False, True]),
    delay_seconds=st.sampled_from([None, 60, 172_800]),
)
ALL_FACTS = st.builds(
    TokenEvidence,
    st.just(NOW),
    own_simulation=st.none() | OWN_SIMULATIONS,
    no_own_simulation_reason=st.sampled_from([None, "no_pair", "source_unavailable"]),
    bytecode_flags=st.none() | INFERRED,
    owner=st.none() | OWNERS,
    has_other_controllers=st.booleans(),
    is_pinned_clone=st.booleans(),
    supply=st.sampled_from([None, 10.0, 1e6]),
    analysis=st.none() | ANALYSES,
    simulation=st.none() | SIMULATIONS,
    no_simulation_reason=st.sampled_from([None, "chain_not_covered", "no_pair", "source_unavailable"]),
    liquidity=st.none() | LIQUIDITIES,
    sources_without_pair=st.sampled_from([(), ("dexscreener",), ("dexscreener", "geckoterminal")]),
)
BAD_FLAGS = sorted({*GOPLUS_FIELDS} - {"open_source", "in_dex", "genuine", "trusted", "cex_listed"})
BAD_SIMULATED: list[dict[str, Any]] = [
    {"honeypot": True},
    {"risk_level": 100.0},
    {"open_source": False},
    {"proxy": True},
]
SOURCES = {
    "analysis": "goplus",
    "simulation": "honeypotis",
    "liquidity": "liquidity",
    "own_simulation": "onchain:simulation",
    "bytecode_flags": "onchain:bytecode",
    "owner": "onchain:owner",
}
often = settings(deadline=None, derandomize=True, database=None)


def rank_level(facts: TokenEvidence) -> float:
    """Return level and score as one number; without a score, that of a medium level."""
    verdict = evaluate_token(facts)
    return LEVELS[verdict.level] * 1000 + (verdict.score.score if verdict.score else 0)


@pytest.mark.extended
@often
@given(ALL_FACTS, st.sampled_from(BYTECODE_FLAGS))
def test_bad_power_in_bytecode_never_lowers_level(facts: TokenEvidence, name: str):
    if facts.bytecode_flags is not None:
        worse = replace(facts, bytecode_flags=replace(facts.bytecode_flags, **{name: True}))
        assert rank_level(worse) >= rank_level(facts)


BAD_OWN: list[dict[str, Any]] = [
    {"honeypot": True},
    {"cooldown": True},
    {"cannot_sell_all": True},
    {"transfer_blocked": True},
    {"max_sell": TradeLimit(0.0001)},
]


@pytest.mark.extended
@often
@given(ALL_FACTS, st.sampled_from(BAD_OWN))
def test_bad_own_simulation_never_lowers_level(facts: TokenEvidence, bad: dict[str, Any]):
    if facts.own_simulation is not None:
        assert rank_level(replace(facts, own_simulation=replace(facts.own_simulation, **bad))) >= rank_level(
            facts
        )


@often
@given(ALL_FACTS, st.sampled_from(["failed", "siphoned"]))
def test_more_failing_holders_never_lower_level(facts: TokenEvidence, name: str):
    if facts.own_simulation is not None and (sales := facts.own_simulation.holder_sales):
        more = replace(sales, **{name: (getattr(sales, name) or 0) + 4})
        assert rank_level(
            replace(facts, own_simulation=replace(facts.own_simulation, holder_sales=more))
        ) >= rank_level(facts)


@pytest.mark.extended
@often
@given(ALL_FACTS)
def test_owner_with_one_key_is_never_better(facts: TokenEvidence):
    if facts.owner is not None and facts.owner.address == OWNER:
        assert rank_level(replace(facts, owner=Owner(OWNER, "wallet"))) >= rank_level(facts)


@pytest.mark.extended
@often
@given(ALL_FACTS)
def test_unlocked_holder_never_lowers_level(facts: TokenEvidence):
    if facts.analysis is not None:
        free = tuple(replace(row, locked=False) for row in facts.analysis.lp_holders or ())
        assert rank_level(change_flags(facts, lp_holders=free)) >= rank_level(facts)


@pytest.mark.extended
@often
@given(ALL_FACTS)
def test_expired_lock_never_lowers_level(facts: TokenEvidence):
    if facts.analysis is not None:
        rows = facts.analysis.lp_holders or ()
        long = [lock for row in rows for lock in row.locks if not lock.has_ended(NOW + timedelta(days=100))]
        ended = {lock: replace(lock, unlocks_at=NOW - timedelta(days=1)) for lock in long}
        free = tuple(replace(row, locks=tuple(ended.get(lock, lock) for lock in row.locks)) for row in rows)
        assert rank_level(change_flags(facts, lp_holders=free)) >= rank_level(facts)


@pytest.mark.extended
@often
@given(ALL_FACTS)
def test_additional_controllers_never_lower_level(facts: TokenEvidence):
    assert rank_level(replace(facts, has_other_controllers=True)) >= rank_level(
        replace(facts, has_other_controllers=False)
    )


@often
@given(ALL_FACTS, st.sampled_from(BAD_FLAGS))
def test_bad_flag_never_lowers_level(facts: TokenEvidence, name: str):
    if facts.analysis is not None:
        assert rank_level(change_flags(facts, **{name: True})) >= rank_level(
            change_flags(facts, **{name: False})
        )
        assert rank_level(change_flags(facts, **{name: True})) >= rank_level(facts)


@often
@given(ALL_FACTS, st.sampled_from(BAD_SIMULATED))
def test_bad_simulation_never_lowers_level(facts: TokenEvidence, bad: dict[str, Any]):
    if facts.simulation is not None:
        assert rank_level(change_simulation(facts, **bad)) >= rank_level(facts)


@pytest.mark.extended
@often
@given(ALL_FACTS, st.sampled_from(NAMES))
def test_simulation_flag_never_lowers_level(facts: TokenEvidence, name: str):
    if facts.simulation is not None:
        more = (*facts.simulation.flags, SimulationFlag(name, "critical", None))
        assert rank_level(change_simulation(facts, flags=more)) >= rank_level(facts)


@often
@given(ALL_FACTS, st.sampled_from(["buy_tax", "sell_tax", "transfer_tax"]), st.floats(0, 100))
def test_higher_tax_never_lowers_level(facts: TokenEvidence, name: str, more: float):
    if facts.analysis is not None:
        higher = max(more, getattr(facts.analysis, name) or 0)
        assert rank_level(change_flags(facts, **{name: higher})) >= rank_level(facts)


@often
@given(ALL_FACTS, st.sampled_from([*SOURCES]))
def test_lost_source_never_lowers_level_silently(facts: TokenEvidence, lost: str):
    without = replace(facts, **{lost: None})
    if lost == "liquidity":
        without = replace(without, sources_without_pair=())
    warnings = " ".join(evaluate_token(without).warnings)

    assert rank_level(without) >= rank_level(facts) or all(
        check in warnings for check in list_subjects(SOURCES[lost])
    )


@pytest.mark.extended
@often
@given(ALL_FACTS, st.sampled_from([*BAD_FLAGS, "trusted", "cex_listed"]))
def test_unknown_flag_is_never_better_than_harmless_one(facts: TokenEvidence, name: str):
    harmless = name not in ("trusted", "cex_listed")
    if facts.analysis is not None and harmless:
        assert rank_level(change_flags(facts, **{name: None})) >= rank_level(
            change_flags(facts, **{name: False})
        )


@often
@given(ALL_FACTS)
def test_flags_have_evidence_and_level_is_worst_flag(facts: TokenEvidence):
    verdict = evaluate_token(facts)

    worst = max((SEVERITY_RANK[flag.severity] for flag in verdict.flags), default=0)
    assert verdict.level == "unknown" or LEVELS[verdict.level] == max(worst, 1) - (worst < 2)
    assert (verdict.score is None) == (verdict.level == "unknown")
    assert all(flag.evidence for flag in verdict.flags)
    assert len({flag.id for flag in verdict.flags}) == len(verdict.flags)


def test_level_is_unknown_without_analysis_and_simulation():
    facts = replace(set_liquidity(5), analysis=None, simulation=None)

    assert list_flags(facts)["low_liquidity"] == "high"
    assert evaluate_token(facts).level == "unknown"


def test_mild_verdict_is_unknown_without_known_sale():
    assert (
        evaluate_token(change_simulation(change_flags(honeypot=None), succeeded=False, honeypot=None)).level
        == "medium"
    )
    facts = replace(change_flags(honeypot=None), simulation=None, no_simulation_reason="chain_not_covered")
    assert evaluate_token(facts).level == "unknown"


def test_missing_flags_are_listed_in_one_sentence():
    facts = replace(
        FACTS, analysis=parse_token_security({"is_honeypot": "0", "is_open_source": "0"}, partial=False)
    )

    named = [
        each
        for each in evaluate_token(facts).warnings
        if "gives no value (its source is not published)" in each
    ]

    assert len(named) == 1
    assert all(
        words in named[0] for words in ("a blacklist", "a hidden owner", "whether more of it can be made")
    )
    assert "whether it can be sold" not in named[0]


def test_evidence_covers_every_flag():
    assert {*GOPLUS_FIELDS} <= {field.name for field in fields(TokenFlags)}


@pytest.mark.parametrize("source", [GoPlus, HoneypotIs, DexScreener, GeckoTerminal])
def test_source_has_label_of_its_provider(source: type[Provider]):
    assert SOURCE_LABELS[source.info.name] == source.info.label  # pyright: ignore[reportArgumentType]


# saved bodies


def load_evidence(case: str, token: str) -> TokenEvidence:
    flags = parse_token_security(load_body("goplus_token_security", case)["result"][token], partial=False)
    return TokenEvidence(
        NOW, analysis=flags, no_simulation_reason="source_unavailable", liquidity=sum_pool_liquidity(flags)
    )


@pytest.mark.parametrize(
    ("case", "token", "expected"),
    [
        ("trusted_without_owner", "0x" + "f3" * 20, "low"),
        ("two_tokens", "0x" + "f5" * 20, "low"),
        ("full_sell_tax", "0x" + "f2" * 20, "critical"),
        ("forged_balance", "0x" + "f1" * 20, "critical"),
        recorded_case(
            "eth_weth_trusted_no_owner_no_dex_list", "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2", "low"
        ),
        recorded_case(
            "bsc_two_tokens_launchpad_and_cake_trusted", "0x0e09fabb73bd3ade0a17ecc321fd13a19e81ce82", "low"
        ),
        recorded_case(
            "eth_gvr_100pct_taxes_owner_can_pause", "0x84fa8f52e437ac04107ec1768764b2b39287cb3e", "critical"
        ),
        recorded_case(
            "eth_kokodi_honeypot_hidden_owner_serial_creator",
            "0x4e7e15a6b83718ba79674cc4ce09f7d4a631ec2c",
            "critical",
        ),
    ],
)
def test_saved_token_has_its_risk_level(case: str, token: str, expected: str):
    assert evaluate_token(load_evidence(case, token)).level == expected


@pytest.mark.parametrize("seen", [False, None])
def test_proxy_unseen_by_simulation_counts(seen: Any):
    facts = change_simulation(proxy=seen, open_source=True, all_open_source=False)
    hidden = change_flags(facts, proxy=True, open_source=True)

    assert (facts.contract.is_source_verified, list_flags(facts)) == (True, {})
    assert hidden.contract.is_source_verified is False
    assert list_flags(hidden)["closed_source"] == "high"
    assert change_simulation(hidden, all_open_source=True).contract.is_source_verified is True


def test_unreadable_verdict_is_reported():
    facts = change_simulation(honeypot=None, unreadable=("honeypotResult.isHoneypot",))

    assert any("gives no boolean as isHoneypot" in each for each in evaluate_token(facts).warnings)


@pytest.mark.parametrize(("percent", "unlocked"), [(1, "99 %"), (49, "51 %"), (50, None)])
def test_short_list_of_liquidity_holders_is_reported(percent: float, unlocked: str | None):
    burned = Holder(BURN, None, contract=False, locked=True, percent=percent)

    warnings = evaluate_token(change_flags(lp_holders=(burned,))).warnings

    named = [each for each in warnings if "not known to be locked" in each]
    assert [each.endswith(f"locked: {unlocked}") for each in named] == ([True] if unlocked else [])


def test_pinned_clone_is_not_upgradeable_and_needs_source_of_target():
    facts = change_flags(proxy=True, open_source=True, owner_address=BURN, mintable=True)
    clone = replace(facts, is_pinned_clone=True, bytecode_flags=replace(BYTECODE, mintable=True))

    assert (facts.contract.is_upgradeable, clone.contract.is_upgradeable) == (True, False)
    assert ("upgradeable" in list_flags(facts), "upgradeable" in list_flags(clone)) == (True, False)
    assert (facts.ownership.has_power("mintable"), clone.ownership.has_power("mintable")) == (True, False)
    assert change_simulation(clone, all_open_source=True).contract.is_source_verified is True
    assert change_simulation(clone, all_open_source=False).contract.is_source_verified is False
    unchecked = replace(clone, simulation=None)
    assert unchecked.contract.is_source_verified is None
    assert any("behind the clone" in each for each in evaluate_token(unchecked).warnings)


def test_locks_in_force_hold_no_more_than_their_holder():
    ends = (NOW + timedelta(days=9), NOW + timedelta(days=900), NOW - timedelta(days=9))
    locker = replace(
        build_holder(60, contract=True, locked=True), locks=tuple(TokenLock(40, end) for end in ends)
    )

    shares = change_flags(lp_holders=(locker,)).lp_holders.shares

    assert shares
    assert [lock.percent for lock in shares.locks] == [30, 30]
    assert (shares.locked_percent, shares.unlocked_percent) == (60, 0)


@pytest.mark.parametrize("seen", [False, None])
def test_closed_code_that_may_be_a_clones_target_is_named(seen: Any):
    """The simulation service sees no proxy, and whether the token is a clone was not read."""
    facts = change_simulation(
        change_flags(proxy=None, open_source=None), proxy=seen, open_source=True, all_open_source=False
    )

    unread = replace(facts, bytecode_flags=None)

    assert unread.contract.is_source_verified is None
    assert any("honeypot.is" in each and "clone" in each for each in evaluate_token(unread).warnings)
    read = replace(facts, bytecode_flags=replace(BYTECODE, proxy=False))
    assert read.contract.is_source_verified is True
    assert not any("clone" in each for each in evaluate_token(read).warnings)
