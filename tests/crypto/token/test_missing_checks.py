"""Warnings of facts that no source gave, or that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest
from crypto.token.evidence_cases import (
    BYTECODE,
    FACTS,
    OWN,
    OWNER,
    build_holder,
    change_flags,
    change_simulation,
)
from msgspec.structs import replace

from centgate.crypto.contract.owners import Owner
from centgate.crypto.token.evidence.simulations import MissingReason
from centgate.crypto.token.security import (
    TokenFlags,
)
from centgate.crypto.token.token_liquidity import Liquidity
from centgate.crypto.token.token_verdict import evaluate_token
from centgate.providers.goplus_token import parse_token_security


@pytest.mark.parametrize("only", [{"open_source": True}, {"mintable": False}, {"honeypot": False}], ids=str)
def test_single_analysis_answer_is_no_analysis(only: Any):
    facts = replace(FACTS, analysis=TokenFlags(**only))

    assert evaluate_token(facts).level == "medium"
    assert (
        evaluate_token(replace(facts, simulation=None, no_simulation_reason="chain_not_covered")).level
        == "unknown"
    )
    assert evaluate_token(replace(facts, analysis=TokenFlags(trusted=True, **only))).level == "low"


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


@pytest.mark.parametrize("reason", ["chain_not_covered", "no_pair", "source_unavailable", None])
def test_own_simulation_is_not_denied(reason: MissingReason | None):
    facts = replace(FACTS, simulation=None, own_simulation=OWN, no_simulation_reason=reason)

    (warning,) = [each for each in evaluate_token(facts).warnings if "not checked by it" in each]
    assert warning.startswith("honeypot.is simulated no trade")


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


def test_holders_that_code_keeps_from_selling_are_not_called_missing():
    """Holders may have been tried whose failed sales prove nothing, as the token refuses code."""
    facts = replace(FACTS, own_simulation=replace(OWN, holder_sales=None))

    warnings = evaluate_token(facts).warnings

    assert not any("no holder was found" in each for each in warnings)
    assert any(each.startswith("no sale at a holder could be judged") for each in warnings)


@pytest.mark.parametrize(
    ("blocked", "tax", "is_open"),
    [(None, None, True), (None, 0.0, False), (False, 0.0, False), (True, None, False)],
)
def test_transfer_without_result_is_reported(*, blocked: bool | None, tax: float | None, is_open: bool):
    facts = replace(FACTS, own_simulation=replace(OWN, transfer_blocked=blocked, transfer_tax=tax))

    warnings = [
        each
        for each in evaluate_token(facts).warnings
        if each.endswith("not checked there: blocked transfers")
    ]

    assert bool(warnings) is is_open


@pytest.mark.parametrize(
    ("usd", "unmeasured", "is_told"), [(200, 1, True), (200, 0, False), (None, 1, False)]
)
def test_pools_of_unknown_depth_are_reported(*, usd: float | None, unmeasured: int, is_told: bool):
    shown = Liquidity("onchain", usd, 2, other_side_usd=usd, unmeasured_count=unmeasured)

    warnings = evaluate_token(replace(FACTS, liquidity=shown)).warnings

    warning = "liquidity leaves out 1 of 2 pools: the chain does not tell what they hold in US dollars"
    assert (warning in warnings) is is_told


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


def test_unreadable_verdict_is_reported():
    facts = change_simulation(honeypot=None, unreadable=("honeypotResult.isHoneypot",))

    assert any("gives no boolean as isHoneypot" in each for each in evaluate_token(facts).warnings)


@pytest.mark.parametrize("buy_tax", [None, 0.0])
def test_failed_purchase_beside_sales_of_holders_is_said(buy_tax: float | None):
    own = replace(OWN, buy_tax=buy_tax, explanation="the token's transfer fails" if buy_tax is None else None)

    warnings = evaluate_token(replace(FACTS, own_simulation=own)).warnings

    warning = (
        "no purchase succeeded in the simulation on the chain itself (the token's transfer fails); not "
        "checked there: whether it can be bought, the buy tax"
    )
    assert (warning in warnings) is (buy_tax is None)
