"""Verdicts on sales and taxes: simulations, trading limits, holders that sell, and sources that disagree."""

from __future__ import annotations

from typing import Any

import pytest
from crypto.token.evidence_cases import (
    BLOCKED,
    DEEP,
    FACTS,
    OWN,
    SOLD,
    change_flags,
    change_simulation,
    list_flags,
    set_holder_sales,
    set_liquidity,
)
from msgspec.structs import replace

from centgate.crypto.token.security import (
    HolderSales,
)
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_liquidity import Liquidity
from centgate.crypto.token.token_verdict import evaluate_token


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


def test_exchange_listing_alone_proves_no_sale():
    facts = replace(change_flags(cex_listed=True, honeypot=None), simulation=None)
    facts = replace(facts, no_simulation_reason="chain_not_covered")

    assert evaluate_token(facts).level == "unknown"


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


def test_mild_verdict_is_unknown_without_known_sale():
    assert (
        evaluate_token(change_simulation(change_flags(honeypot=None), succeeded=False, honeypot=None)).level
        == "medium"
    )
    facts = replace(change_flags(honeypot=None), simulation=None, no_simulation_reason="chain_not_covered")
    assert evaluate_token(facts).level == "unknown"
