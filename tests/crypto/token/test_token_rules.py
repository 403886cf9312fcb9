"""The rules for tokens: each alone, what bounds them, and what holds for all of them."""

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
from centgate.crypto.token.evidence import KEY_FLAGS, TokenEvidence
from centgate.crypto.token.lockers import LOCKERS
from centgate.crypto.token.pairs import Pair, PairToken
from centgate.crypto.token.security import (
    BYTECODE_FLAGS,
    GOPLUS_FIELDS,
    DexPool,
    Holder,
    HolderSales,
    Simulation,
    SimulationFlag,
    TokenFlags,
    TokenLock,
    TradeLimit,
)
from centgate.crypto.token.token_liquidity import Liquidity, sum_pair_liquidity, sum_pool_liquidity
from centgate.crypto.token.token_rule import RULES_VERSION, SEVERITY_RANK
from centgate.crypto.token.token_rules import TOKEN_RULES
from centgate.crypto.token.token_verdict import RiskLevel, TokenScore, TokenVerdict, evaluate_token
from centgate.crypto.token.token_warnings import list_subjects
from centgate.providers.goplus_token import parse_token_security

NOW = datetime(2026, 11, 21, tzinfo=UTC)
OWNER, OTHER, THIRD, BURN = "0x" + "11" * 20, "0x" + "22" * 20, "0x" + "33" * 20, "0x" + "0" * 36 + "dead"
LEVELS: dict[RiskLevel, float] = {"low": 0, "unknown": 2, "medium": 2, "high": 3, "critical": 4}
"""How grave they are: what nobody knows is as good a reason to keep off as a finding of weight."""

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
FACTS = TokenEvidence(NOW, flags=GOOD, simulation=SOLD, liquidity=DEEP)


def flagged(facts: TokenEvidence = FACTS, **changes: Any) -> TokenEvidence:
    """Facts whose contract analysis is another in some fields."""
    return replace(facts, flags=replace(facts.token_flags, **changes))


def tried(facts: TokenEvidence = FACTS, **changes: Any) -> TokenEvidence:
    """Facts whose simulation went otherwise in some respects."""
    return replace(facts, simulation=replace(facts.simulation_result, **changes))


def deep(usd: float, **more: Any) -> TokenEvidence:
    """Facts with so many dollars in pairs."""
    return replace(FACTS, liquidity=replace(DEEP, total_usd=usd, other_side_usd=usd / 2, **more))


def aged(**age: float) -> TokenEvidence:
    return replace(FACTS, liquidity=replace(DEEP, trading_since=NOW - timedelta(**age)))


def raised(facts: TokenEvidence) -> dict[str, str]:
    """The flags of a verdict with their severities."""
    return {flag.id: flag.severity for flag in evaluate_token(facts).flags}


def saw(*names: str, severity: str | None = None) -> TokenEvidence:
    return tried(flags=tuple(SimulationFlag(name, severity, None) for name in names))


def wallet(percent: float, **more: Any) -> Holder:
    kept: dict[str, Any] = {"tag": None, "contract": False, "locked": False}
    return Holder(OTHER, percent=percent, **(kept | more))


def locked(**until: float) -> Holder:
    """A locker with a third of the liquidity, free again after this time."""
    return replace(wallet(33, contract=True, locked=True), locks=(TokenLock(33, NOW + timedelta(**until)),))


def sold_at(**sales: Any) -> TokenEvidence:
    return tried(holder_sales=HolderSales(**sales))


OWN = Simulation(succeeded=True, honeypot=False, buy_tax=0, sell_tax=0, transfer_tax=0, pair_empty=False)
"""Our own simulation of a sale that went through."""
BYTECODE = TokenFlags(
    proxy=False, mintable=False, pausable=False, blacklists=False, tax_modifiable=False, self_destructs=False
)
BLOCKED: dict[str, Any] = {"honeypot": True, "sell_tax": 100.0, "reason": "TRANSFER_FROM_FAILED"}
LEVELLING: list[tuple[TokenEvidence, str, str]] = [
    (tried(flagged(honeypot=True), **BLOCKED), "honeypot_confirmed", "critical"),
    (replace(flagged(honeypot=True), simulation=None), "honeypot", "critical"),
    (tried(flagged(honeypot=None), **BLOCKED, liquidity_usd=5), "honeypot", "critical"),
    (tried(**BLOCKED, liquidity_usd=1000), "honeypot", "critical"),
    (tried(risk_level=92), "honeypot", "critical"),
    (flagged(honeypot=True), "honeypot_disputed", "high"),
    (tried(**BLOCKED, liquidity_usd=999), "sale_failed_in_doubt", "high"),
    (tried(honeypot=True, succeeded=False), "sale_failed_in_doubt", "high"),
    (
        replace(tried(honeypot=True, sell_tax=100.0, pair_empty=True), liquidity=None),
        "no_liquidity",
        "high",
    ),
    (
        replace(flagged(sell_tax=None, unreadable=("sell_tax",)), simulation=None),
        "sell_tax_unreadable",
        "high",
    ),
    (flagged(sell_tax=None, unreadable=("sell_tax",)), "sell_tax_in_doubt", "medium"),
    (tried(sell_tax=None, unreadable=("simulationResult.sellTax",)), "sell_tax_in_doubt", "medium"),
    (flagged(cannot_sell_all=True), "cannot_sell_all", "high"),
    (flagged(cannot_buy=True), "cannot_buy", "high"),
    (flagged(cannot_buy=True, in_dex=False), "cannot_buy_reward", "medium"),
    (flagged(trading_cooldown=True), "trading_cooldown", "medium"),
    (flagged(sell_tax=50.0), "sell_tax_extreme", "critical"),
    (tried(sell_tax=50.0), "sell_tax_extreme", "critical"),
    (flagged(sell_tax=49.9), "sell_tax_high", "high"),
    (tried(sell_tax=10.0), "sell_tax_high", "high"),
    (flagged(sell_tax=5.0), "sell_tax_medium", "medium"),
    (flagged(sell_tax=4.9), "sell_tax_low", "low"),
    (flagged(buy_tax=100.0), "buy_tax_high", "high"),
    (tried(buy_tax=10.0), "buy_tax_high", "high"),
    (flagged(buy_tax=9.0), "buy_tax_medium", "medium"),
    (flagged(buy_tax=1.0), "buy_tax_low", "low"),
    (flagged(transfer_tax=10.0), "transfer_tax_high", "high"),
    (tried(transfer_tax=0.5), "transfer_tax", "medium"),
    (flagged(fake=True), "fake_token", "critical"),
    (flagged(genuine=False), "fake_token", "critical"),
    (flagged(airdrop_scam=True), "airdrop_scam", "critical"),
    (flagged(gas_abuse=True), "gas_abuse", "critical"),
    (flagged(serial_creator=True), "serial_creator", "low"),
    (flagged(open_source=False), "closed_source", "high"),
    (tried(open_source=False), "closed_source", "high"),
    (saw("closed_source"), "closed_source", "high"),
    (flagged(proxy=True), "upgradeable", "medium"),
    (tried(proxy=True), "upgradeable", "medium"),
    (flagged(external_call=True), "external_call", "medium"),
    (flagged(changes_balances=True), "owner_changes_balances", "critical"),
    (flagged(self_destructs=True), "self_destructs", "critical"),
    (flagged(hidden_owner=True), "hidden_owner", "high"),
    (flagged(reclaimable=True), "ownership_reclaimable", "high"),
    (flagged(personal_tax_modifiable=True), "owner_can_tax_one", "high"),
    (flagged(pausable=True), "owner_can_pause", "high"),
    (flagged(tax_modifiable=True), "owner_can_change_tax", "medium"),
    (flagged(blacklists=True), "owner_can_blacklist", "medium"),
    (flagged(mintable=True), "owner_can_mint", "medium"),
    (flagged(anti_whale_modifiable=True), "owner_can_change_limits", "medium"),
    (flagged(anti_whale=True), "trading_limits", "low"),
    (flagged(whitelists=True), "whitelist", "low"),
    (flagged(owner_percent=20.0), "owner_holds_much", "high"),
    (flagged(creator_percent=20.0), "creator_holds_much", "high"),
    (flagged(holders=(wallet(30), wallet(20))), "holders_concentrated", "medium"),
    (flagged(holder_count=49), "few_holders", "medium"),
    (
        replace(
            flagged(in_dex=False), simulation=None, liquidity=None, sources_without_pair=("dexscreener",)
        ),
        "no_pair",
        "high",
    ),
    (deep(999), "low_liquidity", "high"),
    (deep(1000), "shallow_liquidity", "medium"),
    (deep(9999), "shallow_liquidity", "medium"),
    (aged(hours=23), "new_pair", "high"),
    (aged(days=6), "young_pair", "medium"),
    (flagged(lp_holders=(wallet(50),)), "liquidity_in_one_wallet", "high"),
    (flagged(lp_holders=(wallet(50, contract=True),)), "liquidity_in_one_contract", "high"),
    (flagged(lp_holders=(wallet(45), replace(wallet(40), address=THIRD))), "liquidity_in_few_hands", "high"),
    (flagged(lp_holders=(replace(wallet(20), address=OWNER),)), "owner_holds_liquidity", "high"),
    (flagged(lp_holders=(wallet(30), replace(wallet(20), address=THIRD))), "liquidity_unlocked", "medium"),
    (replace(flagged(lp_holders=None), locked_lp_holders=()), "liquidity_not_locked", "medium"),
    (flagged(lp_holders=(locked(days=6),)), "lock_ends_this_week", "high"),
    (flagged(lp_holders=(locked(days=29),)), "lock_ends_this_month", "medium"),
    (flagged(holders=(wallet(50, contract=True),)), "holder_dominates", "high"),
    (
        flagged(tax_modifiable=True, blacklists=True, mintable=True),
        "owner_controls_everything",
        "high",
    ),
    (sold_at(tested=1000, failed=500), "holders_cannot_sell", "critical"),
    (sold_at(tested=1000, failed=499), "many_holders_cannot_sell", "high"),
    (sold_at(tested=1000, failed=10), "some_holders_cannot_sell", "medium"),
    (sold_at(tested=1000, siphoned=101), "holders_siphoned", "critical"),
    (sold_at(tested=1000, siphoned=1), "some_holders_siphoned", "high"),
    (sold_at(average_tax=50), "holder_taxes_extreme", "critical"),
    (sold_at(average_tax=20), "holder_taxes_high", "high"),
    (sold_at(average_tax=1, highest_tax=50, high_tax_count=1), "some_holders_taxed_heavily", "medium"),
    (replace(tried(max_sell=TradeLimit(4)), supply=10_000), "sale_limit_tiny", "high"),
    (tried(max_sell=TradeLimit(4)), "sale_limit", "medium"),
    (replace(FACTS, own_simulation=Simulation(succeeded=True, origin_check=True)), "origin_check", "low"),
    (replace(FACTS, own_simulation=replace(OWN, cooldown=True)), "trading_cooldown", "medium"),
    (replace(FACTS, flags=None, bytecode_flags=BYTECODE), "bytecode_only", "low"),
    (tried(risk_level=60), "simulation_risk", "high"),
    (replace(FACTS, flags=None), "no_contract_analysis", "medium"),
    (replace(FACTS, flags=TokenFlags(in_dex=True)), "no_contract_analysis", "medium"),
    (replace(FACTS, flags=TokenFlags(open_source=True)), "no_contract_analysis", "medium"),
    (flagged(FACTS, **dict.fromkeys(KEY_FLAGS[:3])), "no_contract_analysis", "medium"),
    (replace(FACTS, simulation=None, no_simulation_reason="no_pair"), "not_simulated", "medium"),
    (tried(succeeded=False, honeypot=None), "not_simulated", "medium"),
    (flagged(owner_address=BURN), "ownership_given_up", "info"),
    (flagged(lp_holders=(replace(wallet(96), address=BURN),)), "liquidity_locked", "info"),
    (flagged(cex_listed=True), "well_known", "info"),
    *((saw(name), f"simulation_{name}", "critical") for name in ("high_fail_rate", "high_siphon_rate")),
    *((saw(name), f"simulation_{name}", "critical") for name in ("low_sell_limit", "extremely_high_taxes")),
    (saw("extremely_low_sell_limit"), "simulation_extremely_low_sell_limit", "critical"),
    (saw("effective_honeypot_low_sell_limit"), "simulation_effective_honeypot_low_sell_limit", "critical"),
    *((saw(name), f"simulation_{name}", "high") for name in ("medium_siphon_rate", "medium_fail_rate")),
    (saw("high_tax"), "simulation_high_tax", "high"),
    *((saw(name), f"simulation_{name}", "medium") for name in ("low_fail_rate", "transfer_blocked")),
    (saw("one_sell_per_block_limit"), "simulation_one_sell_per_block_limit", "medium"),
    *((saw(name), f"simulation_{name}", "low") for name in ("medium_tax", "high_gas")),
    *((saw("new", severity=each), f"simulation_other_{each}", each) for each in ("critical", "high")),
    *((saw("new", severity=each), f"simulation_other_{each}", each) for each in ("medium", "low")),
    (saw("new"), "simulation_other_medium", "medium"),
    (tried(honeypot=True, pair_empty=True), "not_simulated", "medium"),
]


def test_good_facts_raise_nothing():
    verdict = evaluate_token(FACTS)

    assert verdict == TokenVerdict("low", (), verdict.warnings, TokenScore(0, ()))


def test_every_rule_is_tried_here():
    assert {name for _, name, _ in LEVELLING} == {rule.id for rule in TOKEN_RULES}
    assert len({rule.id for rule in TOKEN_RULES}) == len(TOKEN_RULES)


@pytest.mark.parametrize(
    ("facts", "name", "severity"),
    LEVELLING,
    ids=[f"{number}-{name}" for number, (_, name, _) in enumerate(LEVELLING)],
)
def test_each_rule_alone_raises_its_flag(facts: TokenEvidence, name: str, severity: Any):
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
def test_a_sale_that_failed_in_a_thin_pair_is_high_and_no_tax(saying: Any):
    facts = tried(honeypot=True, **saying)

    assert evaluate_token(facts).level == "high"
    assert facts.sell_tax == 0


def test_a_sale_that_failed_at_an_unknown_depth_is_in_doubt():
    facts = replace(tried(**BLOCKED, liquidity_usd=None), liquidity=None)

    assert raised(facts)["sale_failed_in_doubt"] == "high"
    assert raised(replace(facts, liquidity=DEEP))["honeypot"] == "critical"


def test_an_empty_pair_is_no_honeypot_and_has_no_taxes():
    facts = tried(flagged(honeypot=None), honeypot=True, risk_level=100, sell_tax=100.0, pair_empty=True)
    facts = replace(facts, liquidity=None)

    assert raised(facts) == {"no_liquidity": "high"}
    assert (facts.is_honeypot, facts.can_sell, facts.sell_tax) == (None, False, 0)


def test_a_refused_transfer_in_an_empty_pair_is_a_honeypot():
    facts = tried(flagged(honeypot=None), **BLOCKED, pair_empty=True, liquidity_usd=0)

    assert raised(facts)["honeypot"] == "critical"


def test_sources_that_disagree_are_both_named():
    warnings = " ".join(evaluate_token(flagged(honeypot=True, raw={"is_honeypot": "1"})).warnings)

    assert "sources disagree: GoPlus Security says is_honeypot 1" in warnings


def test_taxes_that_differ_are_both_named_and_the_higher_counts():
    facts = tried(sell_tax=30.0)

    assert facts.sell_tax == 30
    assert any("0 %" in warning and "30 %" in warning for warning in evaluate_token(facts).warnings)


def test_a_full_tax_that_limits_on_trading_may_explain_is_still_critical_with_a_word_of_doubt():
    verdict = evaluate_token(flagged(sell_tax=100.0, trading_cooldown=True))

    assert verdict.level == "critical"
    assert any("pause between trades" in warning for warning in verdict.warnings)


def test_an_empty_pair_beside_deep_ones_was_not_what_is_sold_in():
    facts = tried(pair_empty=True)

    assert raised(facts) == {"not_simulated": "medium"}
    assert flagged(facts, honeypot=None).can_sell is None
    assert any("used is empty, DexScreener lists $90,000" in each for each in evaluate_token(facts).warnings)


def test_a_sale_on_an_empty_pair_says_nothing_against_the_analysis():
    assert raised(tried(flagged(honeypot=True), pair_empty=True))["honeypot"] == "critical"


@pytest.mark.parametrize("only", [{"open_source": True}, {"mintable": False}, {"honeypot": False}], ids=str)
def test_an_analysis_of_one_answer_is_none(only: Any):
    facts = replace(FACTS, flags=TokenFlags(**only))

    assert evaluate_token(facts).level == "medium"
    assert (
        evaluate_token(replace(facts, simulation=None, no_simulation_reason="chain_not_covered")).level
        == "unknown"
    )
    assert evaluate_token(replace(facts, flags=TokenFlags(trusted=True, **only))).level == "low"


def test_a_tax_that_cannot_be_is_no_forged_balance():
    facts = flagged(sell_tax=None, unreadable=("sell_tax",))

    warnings = evaluate_token(facts).warnings

    assert "unreadable: GoPlus Security gives impossible taxes; not checked by it: the sell tax" in warnings
    assert not any(
        "balance" in each for each in warnings if "gives impossible taxes" in each or "forged" in each
    )


def test_a_simulated_tax_that_cannot_be_is_named():
    facts = tried(buy_tax=None, unreadable=("simulationResult.buyTax",))

    assert any("honeypot.is gives impossible taxes" in each for each in evaluate_token(facts).warnings)


def test_a_simulation_without_its_summary_names_what_that_would_tell():
    unmade = [
        each
        for each in evaluate_token(tried(summarised=False, risk_level=None)).warnings
        if "honeypot.is gives no value" in each
    ]

    assert len(unmade) == 1
    assert all(words in unmade[0] for words in ("failed sales", "sell limits", "the simulation's own rating"))


def test_an_owner_that_is_not_known_is_named():
    assert any("its owner" in each for each in evaluate_token(flagged(owner_address=None)).warnings)


def test_words_with_a_link_are_not_repeated():
    facts = tried(flagged(note="claim at evil.example"), succeeded=False, reason="see https://evil.example/x")

    assert "evil" not in " ".join(evaluate_token(facts).warnings)


def test_shares_that_cannot_be_read_are_unknown_and_named():
    facts = flagged(holders=(), lp_holders=(replace(wallet(1), percent=None),))

    assert (facts.locked_percent, facts.largest_lp_wallet_percent, facts.top_holders_percent) == (None,) * 3
    named = " ".join(evaluate_token(facts).warnings)
    assert "locked liquidity" in named
    assert "concentrated holders" in named


def test_long_lists_are_cited_in_part():
    flags = tuple(SimulationFlag(f"{number:0>60}", "high", None) for number in range(900))

    (flag,) = [
        each for each in evaluate_token(tried(flags=flags)).flags if each.id == "simulation_other_high"
    ]

    assert len(flag.evidence[0].value or "") < 1000


def test_shares_of_the_liquidity_are_cited_with_who_is_free_to_sell():
    burned = Holder(BURN, None, contract=False, locked=True, percent=30)
    free = replace(wallet(50, contract=True), address=OTHER)

    cited = cite_field(flagged(lp_holders=(burned, locked(days=6), free)), "goplus:lp_holders")

    (text,) = [each.value for each in cited]
    assert text is not None
    first, second, third = text.split(", ")
    assert first == f"{OTHER} 50 % free (contract)"
    assert second.endswith("locked until 2026-11-27")
    assert third == f"{BURN} 30 % burned"


# what bounds the severity

POWERS: dict[str, Any] = dict.fromkeys(
    ("mintable", "pausable", "tax_modifiable", "personal_tax_modifiable", "changes_balances"), True
) | {"self_destructs": True, "anti_whale_modifiable": True}


@pytest.mark.parametrize("owner", [BURN, "0x" + "0" * 40, "0x" + "0" * 39 + "1"])
def test_an_ownership_given_up_makes_its_powers_a_note(owner: str):
    flags = raised(flagged(owner_address=owner, blacklists=True, **POWERS))

    assert set(flags.values()) == {"info", "low"}
    lasting = {name for name, severity in flags.items() if severity == "low"}
    assert lasting == {"owner_can_tax_one", "owner_can_blacklist"}


@pytest.mark.parametrize("shown", [None, Owner(None, "none")], ids=str)
def test_a_contract_that_names_no_owner_keeps_its_powers(shown: Owner | None):
    facts = replace(flagged(owner_address="", **POWERS), owner=shown)

    assert raised(facts)["owner_changes_balances"] == "critical"
    assert (facts.owner_state, facts.has_power("mintable")) == ("none", True)
    assert evaluate_token(flagged(facts, trusted=True)).level == "low"
    assert "ownership_given_up" not in raised(facts)


def test_a_contract_without_owner_and_powers_stays_low():
    assert raised(flagged(owner_address="")) == {}


def test_roles_keep_the_powers_of_an_ownership_given_up():
    facts = replace(flagged(owner_address=BURN, **POWERS), has_other_controllers=True)

    assert raised(facts)["owner_changes_balances"] == "critical"
    assert facts.has_power("mintable") is True


@pytest.mark.parametrize("doubt", ["hidden_owner", "reclaimable", "proxy"])
@pytest.mark.parametrize("answer", [True, None])
def test_an_owner_who_may_remain_keeps_his_powers(doubt: str, answer: Any):
    flags = raised(flagged(FACTS, owner_address=BURN, **POWERS, **{doubt: answer}))

    assert flags["owner_changes_balances"] == flags["self_destructs"] == "critical"


def test_an_unknown_owner_is_an_owner():
    assert raised(flagged(owner_address=None, pausable=True))["owner_can_pause"] == "high"


def test_a_trusted_tokens_powers_are_centralised_control():
    powers = POWERS | {"proxy": True, "blacklists": True, "trusted": True}

    verdict = evaluate_token(flagged(FACTS, owner_percent=40.0, **powers))

    assert verdict.level == "low"
    assert all("centralised control" in each.explanation for each in verdict.flags if each.severity == "low")


def test_an_exchange_listing_lowers_powers_to_medium_and_no_share():
    listed = flagged(FACTS, cex_listed=True, **POWERS, blacklists=True)

    assert evaluate_token(listed).level == "medium"
    assert raised(flagged(listed, owner_percent=40.0))["owner_holds_much"] == "high"
    assert raised(flagged(listed, lp_holders=(wallet(60),)))["liquidity_in_one_wallet"] == "high"
    assert raised(flagged(listed, hidden_owner=True))["hidden_owner"] == "high"


def test_an_exchange_listing_alone_proves_no_sale():
    facts = replace(flagged(cex_listed=True, honeypot=None), simulation=None)
    facts = replace(facts, no_simulation_reason="chain_not_covered")

    assert evaluate_token(facts).level == "unknown"


@pytest.mark.parametrize(
    "habit", [{"external_call": True}, {"trading_cooldown": True}, {"transfer_tax": 0.02}], ids=str
)
def test_a_habit_of_a_trusted_token_is_low(habit: Any):
    assert evaluate_token(flagged(trusted=True, **habit)).level == "low"
    assert evaluate_token(flagged(**habit)).level == "medium"


# the owner that the chain shows

ALL_POWERS: dict[str, Any] = {"tax_modifiable": True, "blacklists": True, "mintable": True}


def owned(kind: Any, **more: Any) -> TokenEvidence:
    return replace(flagged(**ALL_POWERS), owner=Owner(OWNER, kind, **more))


@pytest.mark.parametrize(
    ("owner", "level"),
    [
        (owned("wallet"), "high"),
        (owned("contract"), "high"),
        (owned("unknown"), "high"),
        (owned("safe", threshold=1, owner_count=3), "high"),
        (owned("safe", threshold=2, owner_count=3), "medium"),
        # any contract can answer like these
        (owned("timelock", delay_seconds=172_800), "high"),
        (owned("governor"), "high"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else value.owner.kind,
)
def test_the_owners_kind_decides_about_all_powers_together(owner: TokenEvidence, level: str):
    assert evaluate_token(owner).level == level


def test_safe_limits_the_worst_power():
    worst = flagged(changes_balances=True)
    claimed = replace(worst, owner=Owner(OWNER, "timelock", delay_seconds=172_800))
    shared = replace(worst, owner=Owner(OWNER, "safe", threshold=3))

    assert raised(worst)["owner_changes_balances"] == "critical"
    assert raised(shared)["owner_changes_balances"] == "high"
    assert raised(claimed)["owner_changes_balances"] == "critical"


def test_a_hidden_owner_takes_the_meaning_from_a_safe():
    facts = replace(
        flagged(changes_balances=True, hidden_owner=True), owner=Owner(OWNER, "safe", threshold=3)
    )

    assert raised(facts)["owner_changes_balances"] == "critical"


def test_an_owner_that_only_the_chain_shows_is_an_owner():
    renounced = flagged(owner_address=BURN, mintable=True)

    assert raised(renounced)["owner_can_mint"] == "info"
    facts = replace(renounced, owner=Owner(OTHER, "wallet"))
    assert raised(facts)["owner_can_mint"] == "medium"
    assert any("the owner on the chain is" in each for each in evaluate_token(facts).warnings)


@pytest.mark.parametrize("listed", ["", BURN, "0x" + "0" * 40])
def test_an_owner_that_the_analysis_denies_is_named(listed: str):
    facts = flagged(owner_address=listed, owner_percent=30.0, mintable=True)
    facts = replace(facts, owner=Owner(OTHER, "safe", threshold=2, owner_count=3))

    assert (facts.owner_state, facts.owner_address, facts.owner_kind) == ("held", OTHER, "safe")
    assert (facts.owner_percent, facts.has_power("mintable")) == (None, True)
    (warning,) = [each for each in evaluate_token(facts).warnings if "owner on the chain" in each]
    assert OTHER in warning
    assert "the chain counts" in warning


def test_the_chain_shows_that_an_ownership_was_given_up():
    facts = replace(flagged(owner_address="", mintable=True), owner=Owner("0x" + "0" * 40, "renounced"))

    assert (facts.owner_state, facts.has_power("mintable")) == ("renounced", False)
    assert not any("owner on the chain" in each for each in evaluate_token(facts).warnings)


def test_nobodys_powers_read_false():
    nobody = flagged(owner_address=BURN, mintable=True, pausable=True, whitelists=None)

    assert [nobody.has_power(name) for name in ("mintable", "pausable", "whitelists")] == [False, False, None]
    assert flagged(nobody, reclaimable=True).has_power("mintable") is True


# liquidity in other hands


def test_a_lock_that_ended_is_no_lock():
    ended = flagged(lp_holders=(replace(locked(days=-1), percent=33),))

    assert (ended.locked_percent, ended.unlocked_percent) == (0, 33)
    assert ended.liquidity_shares
    assert ended.liquidity_shares.hands[0].lock_ended_at == NOW - timedelta(days=1)


def test_locks_of_one_locker_count_apart():
    locks = (TokenLock(30, NOW - timedelta(days=1)), TokenLock(60, NOW + timedelta(days=400)))
    facts = flagged(lp_holders=(wallet(95, contract=True, locked=True, locks=locks, tag="UNCX"),))

    assert (facts.locked_percent, facts.unlocked_percent) == (60, 35)
    assert facts.liquidity_shares
    assert [(each.locker, each.percent) for each in facts.liquidity_shares.locks] == [("UNCX", 60)]
    assert [(each.percent, each.lock_ended_at) for each in facts.liquidity_shares.hands] == [
        (30, NOW - timedelta(days=1)),
        (5, None),
    ]


def test_what_a_locker_holds_beyond_ended_locks_is_free():
    locks = (TokenLock(1, NOW - timedelta(days=9)), TokenLock(2, NOW - timedelta(days=1)))
    facts = flagged(lp_holders=(wallet(95, contract=True, locked=True, locks=locks),))

    assert (facts.locked_percent, facts.unlocked_percent) == (0, 95)
    assert raised(facts)["liquidity_in_one_contract"] == "high"


@pytest.mark.parametrize("contract", [True, False])
def test_free_shares_of_one_address_count_together(*, contract: bool):
    ended = tuple(TokenLock(9, NOW - timedelta(days=day)) for day in range(1, 11))
    facts = flagged(lp_holders=(wallet(95, contract=contract, locked=True, locks=ended),))

    assert facts.few_hands_percent == 95
    assert raised(facts)[f"liquidity_in_one_{'contract' if contract else 'wallet'}"] == "high"


@pytest.mark.parametrize("lock", [TokenLock(1, NOW + timedelta(days=900)), TokenLock(1, None)], ids=str)
def test_what_a_locker_holds_beyond_live_locks_is_free(lock: TokenLock):
    facts = flagged(lp_holders=(wallet(96, contract=True, locked=True, locks=(lock,)),))

    assert (facts.locked_percent, facts.unlocked_percent) == (1, 95)
    assert "liquidity_locked" not in raised(facts)
    verdict = evaluate_token(facts)
    assert verdict.level == "high"
    explanation = next(flag.explanation for flag in verdict.flags if flag.id == "liquidity_in_one_contract")
    # it may well be a known locker
    assert explanation == "One contract holds 95 % of the liquidity, and no lock in force covers it."


def test_a_lock_whose_end_is_unreadable_is_neither_locked_nor_free():
    locks = (TokenLock(60, None, end_unreadable=True),)
    facts = flagged(lp_holders=(wallet(64, contract=True, locked=True, locks=locks),))

    assert (facts.locked_percent, facts.unlocked_percent) == (0, 4)
    assert "liquidity_locked" not in raised(facts)
    assert any(
        each == "60 % of the liquidity is in locks whose end is not known"
        for each in evaluate_token(facts).warnings
    )


def test_a_known_locker_counts_where_the_source_does_not_say():
    verified = next(iter(LOCKERS[1].values()))
    unverified = next(each for each in LOCKERS[1].values() if not each.is_verified)
    rows = (
        replace(wallet(50, locked=None, contract=True), address=verified.address),
        replace(wallet(40, locked=None, contract=True), address=unverified.address),
    )

    facts = replace(flagged(lp_holders=rows), chain_id=1)

    assert (facts.locked_percent, facts.unlocked_percent) == (50, 40)


@pytest.mark.parametrize(
    "holders",
    [
        (wallet(50), replace(wallet(50), address=OWNER)),
        (replace(wallet(79), address=OWNER),),
        (wallet(100, contract=True),),
    ],
    ids=str,
)
def test_unlocked_liquidity_of_few_is_high(holders: Any):
    assert evaluate_token(flagged(lp_holders=holders)).level == "high"


def test_one_contract_with_half_the_supply_is_high():
    assert evaluate_token(flagged(holders=(wallet(50, contract=True),))).level == "high"


def test_a_locked_holding_whose_lock_ended_is_a_holding():
    holder = wallet(60, contract=True, locked=True, locks=(TokenLock(60, NOW - timedelta(days=1)),))

    assert flagged(holders=(holder,)).largest_holder_percent == 60


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
def test_what_no_lock_in_force_holds_is_a_holding(locks: tuple[TokenLock, ...], free: float):
    holder = wallet(60, contract=True, locked=True, locks=locks)
    facts = flagged(holders=(holder, replace(wallet(2, locked=True), percent=None)))

    assert facts.largest_holder_percent == free
    assert evaluate_token(facts).level == ("high" if free else "low")


# sales at holders


def test_most_holders_failing_is_critical_without_a_summary():
    verdict = evaluate_token(
        tried(summarised=False, holder_sales=HolderSales(tested=1000, failed=900, siphoned=0, average_tax=1))
    )

    assert verdict.level == "critical"
    (unmade,) = [each for each in verdict.warnings if "honeypot.is gives no value" in each]
    assert not any(check in unmade for check in ("failed sales", "holdings taken away", "holders' taxes"))


def test_few_failures_are_no_rate():
    assert "holders_cannot_sell" not in raised(sold_at(tested=2, failed=2))
    assert evaluate_token(sold_at(tested=2, failed=2)).level == "high"


def test_holders_of_an_empty_pair_say_nothing():
    assert evaluate_token(tried(sold_at(tested=9, failed=9), pair_empty=True)).level == "medium"


# sources that disagree, and sources that are off


def test_a_sale_in_a_pair_that_indexes_lack_is_a_sale():
    facts = replace(
        flagged(in_dex=None), liquidity=None, sources_without_pair=("dexscreener", "geckoterminal")
    )

    assert "no_pair" not in raised(facts)
    assert facts.can_sell is True
    assert any("a simulated sale went through" in each for each in evaluate_token(facts).warnings)


@pytest.mark.parametrize(
    "facts",
    [
        replace(flagged(sell_tax=100.0), simulation=None),
        flagged(sell_tax=99.0),
        sold_at(tested=9, failed=0, average_tax=99.5),
    ],
    ids=str,
)
def test_a_tax_that_takes_everything_leaves_the_honeypot_unknown(facts: TokenEvidence):
    assert (facts.is_honeypot, facts.can_sell) == (None, False)
    assert evaluate_token(facts).level == "critical"


def test_a_tax_just_below_everything_lets_a_sale_be_one():
    facts = flagged(sell_tax=98.9)

    assert (facts.is_honeypot, facts.can_sell) == (False, True)
    assert tried(sell_tax=99.0).is_honeypot is True


def test_our_own_sale_disputes_the_services_honeypot():
    facts = replace(tried(flagged(honeypot=None), **BLOCKED, liquidity_usd=50_000), own_simulation=OWN)

    assert raised(facts)["honeypot_disputed"] == "high"
    assert facts.sources_agree is False
    assert any("Centgate on the chain sold" in each for each in evaluate_token(facts).warnings)


def test_our_own_failed_sale_is_a_honeypot():
    facts = replace(FACTS, flags=None, simulation=None, own_simulation=replace(OWN, honeypot=True))

    assert raised(facts)["honeypot"] == "critical"
    assert raised(replace(facts, simulation=tried(honeypot=True).simulation))["honeypot_confirmed"]


def test_a_purchase_without_a_sale_is_in_doubt():
    facts = replace(FACTS, simulation=None, own_simulation=replace(OWN, honeypot=None, sell_tax=None))

    assert raised(facts)["sale_failed_in_doubt"] == "high"
    assert facts.can_sell is None


def test_the_chain_alone_reaches_a_level():
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

    assert (verdict.level, raised(alone)) == ("low", {"bytecode_only": "low"})
    warnings = " ".join(verdict.warnings)
    assert all(check in warnings for check in list_subjects("goplus"))
    assert evaluate_token(replace(alone, own_simulation=replace(OWN, sell_tax=12.0))).level == "high"
    mintable = replace(alone, bytecode_flags=replace(BYTECODE, mintable=True), owner=Owner(OWNER, "wallet"))
    (flag,) = [each for each in evaluate_token(mintable).flags if each.id == "owner_can_mint"]
    assert flag.severity == "medium"
    assert Citation("onchain", "bytecode.mintable", "true") in flag.evidence


def test_the_analysis_comes_before_the_bytecode_and_both_are_named():
    facts = replace(flagged(mintable=False), bytecode_flags=replace(BYTECODE, mintable=True))

    assert "owner_can_mint" not in raised(facts)
    assert any(
        "opposite of what GoPlus Security says for is_mintable" in each
        for each in evaluate_token(facts).warnings
    )


def test_the_code_behind_a_proxy_decides_about_the_source():
    proxy = flagged(proxy=True, open_source=True)

    assert tried(proxy, proxy=True, open_source=False).is_source_verified is False
    assert tried(proxy, proxy=True, open_source=True).is_source_verified is True
    assert replace(proxy, simulation=None).is_source_verified is None
    assert any(
        "behind the proxy" in each for each in evaluate_token(replace(proxy, simulation=None)).warnings
    )


# the score


def test_the_score_is_the_sum_of_its_parts_within_the_levels_band():
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


def test_without_a_finding_the_score_is_nothing():
    assert evaluate_token(FACTS).score == TokenScore(0, ())


@pytest.mark.parametrize(
    "bad", [{"honeypot": True}, {"sell_tax": 60.0}, {"fake": True}, {"gas_abuse": True}, {"buy_tax": 20.0}]
)
def test_being_well_known_excuses_no_fraud(bad: Any):
    assert evaluate_token(flagged(trusted=True, **bad)).level == evaluate_token(flagged(**bad)).level


def test_a_creator_with_a_past_counts_in_bad_company():
    assert raised(flagged(serial_creator=True, cannot_sell_all=True))["serial_creator"] == "high"


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
    holder = wallet(90)

    assert flagged(holders=(replace(holder, **passive), wallet(2))).top_holders_percent == 2


def test_pairs_that_any_source_lists_are_no_holders():
    pool = DexPool(OTHER, "UniswapV3", 5.0)

    assert flagged(holders=(wallet(90),), pools=(pool,)).top_holders_percent == 0
    assert replace(flagged(holders=(wallet(90),)), pool_addresses=frozenset({OTHER})).top_holders_percent == 0


def test_a_forged_balance_is_no_share_and_is_named():
    flags = parse_token_security({"holders": [{"address": OTHER, "percent": "1769801.0"}]}, partial=False)
    facts = replace(FACTS, flags=flags)

    assert facts.top_holders_percent is None
    assert any("balance forged or unreadable" in warning for warning in evaluate_token(facts).warnings)


def test_what_nobody_holds_is_nobodys_share():
    assert "owner_holds_much" not in raised(flagged(owner_address=BURN, owner_percent=95.0))


@pytest.mark.parametrize(
    ("address", "burned"),
    [(BURN, 1), ("0x" + "dead" * 10, 1), ("0x" + "0" * 40, 1), (OWNER, 0), ("0xdead" + "1" * 36, 0)],
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


def test_a_one_sided_pool_counts_by_what_can_be_had():
    one_sided = replace(PAIR, liquidity_usd=1_000_000.0, base_side_usd=999_995.0, quote_side_usd=5.0)

    found = sum_pair_liquidity(OTHER, [one_sided], "dexscreener")

    assert (found.total_usd, found.other_side_usd, found.usable_usd) == (1_000_000, 5, 10)
    assert sum_pair_liquidity(OWNER, [one_sided], "dexscreener").usable_usd == 1_000_000


def test_a_second_pair_does_not_make_a_token_young():
    old = replace(PAIR, liquidity_usd=12_000.0, created_at=NOW - timedelta(days=400))
    dust = replace(PAIR, liquidity_usd=5.0, created_at=NOW - timedelta(days=900))

    found = sum_pair_liquidity(OTHER, [PAIR, old, dust], "dexscreener")

    assert (found.trading_since, found.top_created_at) == (old.created_at, PAIR.created_at)


def test_an_old_pair_a_third_as_deep_does_not_hide_that_trade_has_just_begun():
    new = replace(PAIR, created_at=NOW - timedelta(hours=2))
    old = replace(PAIR, liquidity_usd=6_000.0, created_at=NOW - timedelta(days=400))

    found = sum_pair_liquidity(OTHER, [old, new], "dexscreener")

    assert found.trading_since == new.created_at


def test_a_hollow_pair_is_not_the_top_pair():
    hollow = replace(
        PAIR, address=BURN, liquidity_usd=9e6, base_side_usd=9e6 - 5, quote_side_usd=5.0, created_at=None
    )

    found = sum_pair_liquidity(OTHER, [hollow, PAIR], "dexscreener")

    assert (found.top_pair, found.trading_since) == (PAIR.address, PAIR.created_at)
    assert found.usable_usd == 20_010


def test_sides_that_are_not_told_are_unknown_and_named():
    found = sum_pair_liquidity(
        OTHER, [replace(PAIR, base_side_usd=None, quote_side_usd=None)], "geckoterminal"
    )

    assert (found.total_usd, found.other_side_usd, found.usable_usd) == (20_000, None, 20_000)
    assert any("one-sided" in each for each in evaluate_token(replace(FACTS, liquidity=found)).warnings)


def test_dust_that_does_not_tell_its_sides_is_passed_over():
    dust = replace(PAIR, liquidity_usd=9.0, base_side_usd=None, quote_side_usd=None)

    assert sum_pair_liquidity(OTHER, [PAIR, dust], "dexscreener").other_side_usd == 10_000


def test_one_index_without_a_pair_and_another_that_failed_leave_liquidity_unchecked():
    facts = replace(FACTS, liquidity=None, sources_without_pair=("dexscreener",))

    warnings = " ".join(evaluate_token(facts).warnings)

    assert "no_pair" not in raised(facts)
    assert "pairs on exchanges, liquidity, how long it has been traded" in warnings


def test_liquidity_that_is_not_told_is_unknown():
    found = sum_pair_liquidity(OTHER, [replace(PAIR, liquidity_usd=None)], "dexscreener")

    assert (found.total_usd, found.usable_usd, found.pair_count) == (None, None, 1)
    assert any("liquidity" in each for each in evaluate_token(replace(FACTS, liquidity=found)).warnings)


def test_a_trusted_token_that_indexes_do_not_find_has_unknown_liquidity():
    facts = replace(
        flagged(trusted=True), liquidity=None, sources_without_pair=("dexscreener", "geckoterminal")
    )

    assert evaluate_token(facts).level == "low"
    assert any(
        "DexScreener and GeckoTerminal list no pair" in each for each in evaluate_token(facts).warnings
    )


# what holds for all facts

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
    cooldown=UNSURE,
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
    flags=st.none() | ANALYSES,
    simulation=st.none() | SIMULATIONS,
    no_simulation_reason=st.sampled_from([None, "chain_not_covered", "no_pair", "source_unavailable"]),
    liquidity=st.none() | LIQUIDITIES,
)
BAD_FLAGS = sorted({*GOPLUS_FIELDS} - {"open_source", "in_dex", "genuine", "trusted", "cex_listed"})
BAD_SIMULATED: list[dict[str, Any]] = [
    {"honeypot": True},
    {"risk_level": 100.0},
    {"open_source": False},
    {"proxy": True},
]
SOURCES = {
    "flags": "goplus",
    "simulation": "honeypotis",
    "liquidity": "liquidity",
    "own_simulation": "onchain:simulation",
    "bytecode_flags": "onchain:bytecode",
    "owner": "onchain:owner",
}
often = settings(deadline=None, derandomize=True, database=None)


def level(facts: TokenEvidence) -> float:
    """Level and score as one figure; without a score, that of a medium level."""
    verdict = evaluate_token(facts)
    return LEVELS[verdict.level] * 1000 + (verdict.score.score if verdict.score else 0)


@often
@given(ALL_FACTS, st.sampled_from(BYTECODE_FLAGS))
def test_a_bad_power_in_the_bytecode_never_lowers_the_level(facts: TokenEvidence, name: str):
    if facts.bytecode_flags is not None:
        worse = replace(facts, bytecode_flags=replace(facts.bytecode_flags, **{name: True}))
        assert level(worse) >= level(facts)


BAD_OWN: list[dict[str, Any]] = [{"honeypot": True}, {"cooldown": True}, {"max_sell": TradeLimit(0.0001)}]


@often
@given(ALL_FACTS, st.sampled_from(BAD_OWN))
def test_a_bad_simulation_of_our_own_never_lowers_the_level(facts: TokenEvidence, bad: dict[str, Any]):
    if facts.own_simulation is not None:
        assert level(replace(facts, own_simulation=replace(facts.own_simulation, **bad))) >= level(facts)


@often
@given(ALL_FACTS, st.sampled_from(["failed", "siphoned"]))
def test_more_failing_holders_never_lower_the_level(facts: TokenEvidence, name: str):
    if facts.own_simulation is not None and (sales := facts.own_simulation.holder_sales):
        more = replace(sales, **{name: (getattr(sales, name) or 0) + 4})
        assert level(
            replace(facts, own_simulation=replace(facts.own_simulation, holder_sales=more))
        ) >= level(facts)


@often
@given(ALL_FACTS)
def test_an_owner_with_one_key_is_never_better(facts: TokenEvidence):
    if facts.owner is not None and facts.owner.address == OWNER:
        assert level(replace(facts, owner=Owner(OWNER, "wallet"))) >= level(facts)


@often
@given(ALL_FACTS)
def test_an_unlocked_hand_never_lowers_the_level(facts: TokenEvidence):
    if facts.flags is not None:
        free = tuple(replace(row, locked=False) for row in facts.flags.lp_holders or ())
        assert level(flagged(facts, lp_holders=free)) >= level(facts)


@often
@given(ALL_FACTS)
def test_an_ended_lock_never_lowers_the_level(facts: TokenEvidence):
    if facts.flags is not None:
        rows = facts.flags.lp_holders or ()
        long = [lock for row in rows for lock in row.locks if not lock.has_ended(NOW + timedelta(days=100))]
        ended = {lock: replace(lock, unlocks_at=NOW - timedelta(days=1)) for lock in long}
        free = tuple(replace(row, locks=tuple(ended.get(lock, lock) for lock in row.locks)) for row in rows)
        assert level(flagged(facts, lp_holders=free)) >= level(facts)


@often
@given(ALL_FACTS)
def test_controllers_besides_the_owner_never_lower_the_level(facts: TokenEvidence):
    assert level(replace(facts, has_other_controllers=True)) >= level(
        replace(facts, has_other_controllers=False)
    )


@often
@given(ALL_FACTS, st.sampled_from(BAD_FLAGS))
def test_a_bad_flag_never_lowers_the_level(facts: TokenEvidence, name: str):
    if facts.flags is not None:
        assert level(flagged(facts, **{name: True})) >= level(flagged(facts, **{name: False}))
        assert level(flagged(facts, **{name: True})) >= level(facts)


@often
@given(ALL_FACTS, st.sampled_from(BAD_SIMULATED))
def test_a_bad_simulation_never_lowers_the_level(facts: TokenEvidence, bad: dict[str, Any]):
    if facts.simulation is not None:
        assert level(tried(facts, **bad)) >= level(facts)


@often
@given(ALL_FACTS, st.sampled_from(NAMES))
def test_a_flag_of_the_simulation_never_lowers_the_level(facts: TokenEvidence, name: str):
    if facts.simulation is not None:
        more = (*facts.simulation.flags, SimulationFlag(name, "critical", None))
        assert level(tried(facts, flags=more)) >= level(facts)


@often
@given(ALL_FACTS, st.sampled_from(["buy_tax", "sell_tax", "transfer_tax"]), st.floats(0, 100))
def test_a_higher_tax_never_lowers_the_level(facts: TokenEvidence, name: str, more: float):
    if facts.flags is not None:
        higher = max(more, getattr(facts.flags, name) or 0)
        assert level(flagged(facts, **{name: higher})) >= level(facts)


@often
@given(ALL_FACTS, st.sampled_from([*SOURCES]))
def test_a_lost_source_makes_nothing_safe_without_naming_its_checks(facts: TokenEvidence, lost: str):
    without = replace(facts, **{lost: None})
    warnings = " ".join(evaluate_token(without).warnings)

    assert level(without) >= level(facts) or all(check in warnings for check in list_subjects(SOURCES[lost]))


@often
@given(ALL_FACTS, st.sampled_from([*BAD_FLAGS, "trusted", "cex_listed"]))
def test_an_unknown_flag_is_never_better_than_a_harmless_one(facts: TokenEvidence, name: str):
    harmless = name not in ("trusted", "cex_listed")
    if facts.flags is not None and harmless:
        assert level(flagged(facts, **{name: None})) >= level(flagged(facts, **{name: False}))


@often
@given(ALL_FACTS)
def test_every_flag_stands_on_something_and_every_verdict_on_its_worst_flag(facts: TokenEvidence):
    verdict = evaluate_token(facts)

    worst = max((SEVERITY_RANK[flag.severity] for flag in verdict.flags), default=0)
    assert verdict.level == "unknown" or LEVELS[verdict.level] == max(worst, 1) - (worst < 2)
    assert (verdict.score is None) == (verdict.level == "unknown")
    assert all(flag.evidence for flag in verdict.flags)
    assert len({flag.id for flag in verdict.flags}) == len(verdict.flags)


def test_without_an_analysis_and_a_simulation_the_level_is_unknown():
    facts = replace(deep(5), flags=None, simulation=None)

    assert raised(facts)["low_liquidity"] == "high"
    assert evaluate_token(facts).level == "unknown"


def test_a_mild_verdict_is_unknown_where_nobody_knows_of_a_sale():
    assert evaluate_token(tried(flagged(honeypot=None), succeeded=False, honeypot=None)).level == "medium"
    facts = replace(flagged(honeypot=None), simulation=None, no_simulation_reason="chain_not_covered")
    assert evaluate_token(facts).level == "unknown"


def test_absent_flags_are_named_in_one_sentence():
    facts = replace(
        FACTS, flags=parse_token_security({"is_honeypot": "0", "is_open_source": "0"}, partial=False)
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


def test_facts_hold_every_flag_there_is():
    assert {*GOPLUS_FIELDS} <= {field.name for field in fields(TokenFlags)}


# saved bodies


def analysed(case: str, token: str) -> TokenEvidence:
    flags = parse_token_security(load_body("goplus_token_security", case)["result"][token], partial=False)
    return TokenEvidence(
        NOW, flags=flags, no_simulation_reason="source_unavailable", liquidity=sum_pool_liquidity(flags)
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
def test_a_saved_token_gets_its_risk_level(case: str, token: str, expected: str):
    assert evaluate_token(analysed(case, token)).level == expected


@pytest.mark.parametrize("seen", [False, None])
def test_a_proxy_that_the_simulation_does_not_see_is_a_proxy(seen: Any):
    facts = tried(proxy=seen, open_source=True, all_open_source=False)
    hidden = flagged(facts, proxy=True, open_source=True)

    assert (facts.is_source_verified, raised(facts)) == (True, {})
    assert hidden.is_source_verified is False
    assert raised(hidden)["closed_source"] == "high"
    assert tried(hidden, all_open_source=True).is_source_verified is True


def test_a_verdict_that_cannot_be_read_is_named():
    facts = tried(honeypot=None, unreadable=("honeypotResult.isHoneypot",))

    assert any("gives no boolean as isHoneypot" in each for each in evaluate_token(facts).warnings)


@pytest.mark.parametrize(("percent", "unlocked"), [(1, "99 %"), (49, "51 %"), (50, None)])
def test_a_short_list_of_the_liquiditys_holders_is_named(percent: float, unlocked: str | None):
    burned = Holder(BURN, None, contract=False, locked=True, percent=percent)

    warnings = evaluate_token(flagged(lp_holders=(burned,))).warnings

    named = [each for each in warnings if "not known to be locked" in each]
    assert [each.endswith(f"locked: {unlocked}") for each in named] == ([True] if unlocked else [])


def test_a_pinned_clone_cannot_be_upgraded_and_needs_the_source_of_its_target():
    facts = flagged(proxy=True, open_source=True, owner_address=BURN, mintable=True)
    clone = replace(facts, is_pinned_clone=True, bytecode_flags=replace(BYTECODE, mintable=True))

    assert (facts.is_upgradeable, clone.is_upgradeable) == (True, False)
    assert ("upgradeable" in raised(facts), "upgradeable" in raised(clone)) == (True, False)
    assert (facts.has_power("mintable"), clone.has_power("mintable")) == (True, False)
    assert tried(clone, all_open_source=True).is_source_verified is True
    assert tried(clone, all_open_source=False).is_source_verified is False
    unchecked = replace(clone, simulation=None)
    assert unchecked.is_source_verified is None
    assert any("behind the clone" in each for each in evaluate_token(unchecked).warnings)
