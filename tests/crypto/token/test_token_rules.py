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
from centgate.crypto.token.evidence import (
    KEY_FLAGS,
    Liquidity,
    TokenEvidence,
    sum_pair_liquidity,
    sum_pool_liquidity,
)
from centgate.crypto.token.pairs import Pair, PairToken
from centgate.crypto.token.security import (
    GOPLUS_FIELDS,
    DexPool,
    Holder,
    Simulation,
    SimulationFlag,
    TokenFlags,
)
from centgate.crypto.token.token_rules import RULES_VERSION, SEVERITY_RANK, TOKEN_RULES
from centgate.crypto.token.token_verdict import RiskLevel, TokenVerdict, evaluate_token, list_subjects
from centgate.providers.goplus_token import parse_token_security

NOW = datetime(2026, 11, 21, tzinfo=UTC)
OWNER, OTHER, BURN = "0x" + "11" * 20, "0x" + "22" * 20, "0x" + "0" * 36 + "dead"
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
        replace(flagged(in_dex=False), liquidity=None, sources_without_pair=("dexscreener",)),
        "no_pair",
        "high",
    ),
    (deep(999), "low_liquidity", "high"),
    (deep(1000), "shallow_liquidity", "medium"),
    (deep(9999), "shallow_liquidity", "medium"),
    (aged(hours=23), "new_pair", "high"),
    (aged(days=6), "young_pair", "medium"),
    (flagged(lp_holders=(wallet(80),)), "liquidity_in_one_wallet", "high"),
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

    assert verdict == TokenVerdict("low", (), verdict.warnings)


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


# what bounds the severity

POWERS: dict[str, Any] = dict.fromkeys(
    ("mintable", "pausable", "tax_modifiable", "personal_tax_modifiable", "changes_balances"), True
) | {"self_destructs": True, "anti_whale_modifiable": True}


@pytest.mark.parametrize("owner", ["", BURN, "0x" + "0" * 40, "0x" + "0" * 39 + "1"])
def test_without_an_owner_his_powers_are_a_note(owner: str):
    flags = raised(flagged(owner_address=owner, blacklists=True, **POWERS))

    assert set(flags.values()) == {"info", "low"}
    lasting = {name for name, severity in flags.items() if severity == "low"}
    assert lasting == {"owner_can_tax_one", "owner_can_blacklist"}


@pytest.mark.parametrize("doubt", ["hidden_owner", "reclaimable", "proxy"])
@pytest.mark.parametrize("answer", [True, None])
def test_an_owner_who_may_remain_keeps_his_powers(doubt: str, answer: Any):
    flags = raised(flagged(FACTS, owner_address=BURN, **POWERS, **{doubt: answer}))

    assert flags["owner_changes_balances"] == flags["self_destructs"] == "critical"


def test_an_unknown_owner_is_an_owner():
    assert raised(flagged(owner_address=None, pausable=True))["owner_can_pause"] == "high"


@pytest.mark.parametrize("name", ["trusted", "cex_listed"])
def test_the_powers_over_a_well_known_token_are_centralised_control(name: str):
    powers = POWERS | {"proxy": True, "blacklists": True, name: True}

    verdict = evaluate_token(flagged(FACTS, owner_percent=40.0, **powers))

    assert verdict.level == "low"
    assert all("centralised control" in each.explanation for each in verdict.flags if each.severity == "low")


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
HOLDERS: Any = st.none() | st.lists(
    st.builds(
        Holder,
        st.sampled_from([OWNER, OTHER, BURN]),
        st.sampled_from([None, "UniswapV2"]),
        UNSURE,
        UNSURE,
        PERCENT,
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
ALL_FACTS = st.builds(
    TokenEvidence,
    st.just(NOW),
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
often = settings(max_examples=200, deadline=None, derandomize=True, database=None)


def level(facts: TokenEvidence) -> float:
    return LEVELS[evaluate_token(facts).level]


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
@given(ALL_FACTS, st.sampled_from(["flags", "simulation", "liquidity"]))
def test_a_lost_source_makes_nothing_safe_without_naming_its_checks(facts: TokenEvidence, lost: str):
    without = replace(facts, **{lost: None})
    source = {"flags": "goplus", "simulation": "honeypotis", "liquidity": "liquidity"}[lost]
    warnings = " ".join(evaluate_token(without).warnings)

    assert level(without) >= level(facts) or all(check in warnings for check in list_subjects(source))


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
