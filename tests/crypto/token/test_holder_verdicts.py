"""Verdicts on holders of a token and of its liquidity: shares, locks, lockers and burned amounts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from crypto.token.evidence_cases import (
    BURN,
    FACTS,
    NOW,
    OTHER,
    OWNER,
    THIRD,
    build_holder,
    build_locker,
    change_flags,
    change_simulation,
    list_flags,
)
from msgspec.structs import replace

from centgate.chains import is_burn_address
from centgate.crypto.token.citations import cite_field
from centgate.crypto.token.lockers import LOCKERS
from centgate.crypto.token.security import (
    DexPool,
    Holder,
    SimulationFlag,
    TokenLock,
)
from centgate.crypto.token.token_verdict import evaluate_token
from centgate.providers.goplus_token import parse_token_security


def test_impossible_tax_is_no_forged_balance():
    facts = change_flags(sell_tax=None, unreadable=("sell_tax",))

    warnings = evaluate_token(facts).warnings

    assert "unreadable: GoPlus Security gives impossible taxes; not checked by it: the sell tax" in warnings
    assert not any(
        "balance" in each for each in warnings if "gives impossible taxes" in each or "forged" in each
    )


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


def test_wallet_called_locked_is_not():
    facts = change_flags(lp_holders=(build_holder(95, locked=True),))

    assert (facts.lp_holders.locked_percent, facts.lp_holders.unlocked_percent) == (0, 95)
    assert list_flags(facts)["liquidity_in_one_wallet"] == "high"
    (warning,) = [each for each in evaluate_token(facts).warnings if "cannot lock" in each]
    assert warning == (
        "GoPlus Security calls 95 % of the liquidity locked that is in wallets, which cannot lock it: it "
        "counts as unlocked"
    )


@pytest.mark.parametrize(
    "holder",
    [
        build_holder(95, contract=True, locked=True),
        build_holder(95, contract=None, locked=True),
        build_holder(95, locked=True, locks=(TokenLock(95, NOW + timedelta(days=99)),)),
        replace(build_holder(95, locked=True), address=BURN),
        replace(build_holder(95, locked=True), address=next(iter(LOCKERS[1]))),
    ],
    ids=str,
)
def test_lock_of_what_may_be_a_contract_counts(holder: Holder):
    facts = replace(change_flags(lp_holders=(holder,)), chain_id=1)

    assert (facts.lp_holders.locked_percent, facts.lp_holders.unlocked_percent) == (95, 0)
    assert not any("cannot lock" in each for each in evaluate_token(facts).warnings)


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


@pytest.mark.parametrize(("percent", "unlocked"), [(1, "99 %"), (49, "51 %"), (50, None)])
def test_short_list_of_liquidity_holders_is_reported(percent: float, unlocked: str | None):
    burned = Holder(BURN, None, contract=False, locked=True, percent=percent)

    warnings = evaluate_token(change_flags(lp_holders=(burned,))).warnings

    named = [each for each in warnings if "not known to be locked" in each]
    assert [each.endswith(f"locked: {unlocked}") for each in named] == ([True] if unlocked else [])


def test_locks_in_force_hold_no_more_than_their_holder():
    ends = (NOW + timedelta(days=9), NOW + timedelta(days=900), NOW - timedelta(days=9))
    locker = replace(
        build_holder(60, contract=True, locked=True), locks=tuple(TokenLock(40, end) for end in ends)
    )

    shares = change_flags(lp_holders=(locker,)).lp_holders.shares

    assert shares
    assert [lock.percent for lock in shares.locks] == [30, 30]
    assert (shares.locked_percent, shares.unlocked_percent) == (60, 0)
