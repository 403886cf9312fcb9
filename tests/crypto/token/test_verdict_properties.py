"""Properties that verdicts on tokens have for all evidence."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from crypto.token.evidence_cases import (
    BURN,
    CLOSED_CODE,
    LEVELS,
    NOW,
    OPEN_CODE,
    OTHER,
    OWNER,
    UNREAD_CODE,
    change_flags,
    change_simulation,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from centgate.crypto.contract.owners import Owner
from centgate.crypto.token.missing_checks import list_subjects
from centgate.crypto.token.security import (
    BYTECODE_FLAGS,
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
from centgate.crypto.token.token_rule import SEVERITY_RANK
from centgate.crypto.token.token_rules import TOKEN_RULES
from centgate.crypto.token.token_verdict import evaluate_token

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
    all_open_source=UNSURE,
    root_open_source=UNSURE,
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
    implementation=st.sampled_from([None, OPEN_CODE, CLOSED_CODE, UNREAD_CODE]),
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
@given(ALL_FACTS, st.sampled_from([None, OPEN_CODE, UNREAD_CODE]))
def test_closed_code_behind_proxy_never_lowers_level(facts: TokenEvidence, other: Any):
    closed = replace(facts, implementation=CLOSED_CODE)

    assert rank_level(closed) >= rank_level(replace(facts, implementation=other))


@often
@given(ALL_FACTS)
def test_lost_registry_never_lowers_level_silently(facts: TokenEvidence):
    without = replace(facts, implementation=UNREAD_CODE)

    assert rank_level(without) == rank_level(replace(facts, implementation=None))
    assert any("Sourcify (no answer)" in each for each in evaluate_token(without).warnings)


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
