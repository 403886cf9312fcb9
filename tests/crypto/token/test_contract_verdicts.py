"""Verdicts on a token's contract: powers of its owner, the kind of owner, whose source is published."""

from __future__ import annotations

from typing import Any

import pytest
from crypto.token.evidence_cases import (
    BURN,
    BYTECODE,
    CLOSED_CODE,
    FACTS,
    OPEN_CODE,
    OTHER,
    OWN,
    OWNER,
    THIRD,
    UNREAD_CODE,
    build_holder,
    change_flags,
    change_simulation,
    list_flags,
)
from msgspec.structs import replace

from centgate.crypto.contract.owners import Owner
from centgate.crypto.token.powers import ContractPower
from centgate.crypto.token.token_verdict import evaluate_token

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


@pytest.mark.parametrize(
    "habit", [{"external_call": True}, {"trading_cooldown": True}, {"transfer_tax": 0.02}], ids=str
)
def test_habit_of_trusted_token_is_low(habit: Any):
    assert evaluate_token(change_flags(trusted=True, **habit)).level == "low"
    assert evaluate_token(change_flags(**habit)).level == "medium"


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


def test_owner_of_unknown_kind_is_not_read():
    facts = replace(FACTS, own_simulation=OWN, bytecode_flags=BYTECODE, owner=Owner(None, "unknown"))

    assert any("its owner was not read" in each for each in evaluate_token(facts).warnings)


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


@pytest.mark.parametrize(
    "bad", [{"honeypot": True}, {"sell_tax": 60.0}, {"fake": True}, {"gas_abuse": True}, {"buy_tax": 20.0}]
)
def test_well_known_token_gets_no_excuse_for_fraud(bad: Any):
    assert (
        evaluate_token(change_flags(trusted=True, **bad)).level == evaluate_token(change_flags(**bad)).level
    )


def test_creator_with_bad_history_is_finding():
    assert list_flags(change_flags(serial_creator=True, cannot_sell_all=True))["serial_creator"] == "high"


@pytest.mark.parametrize("seen", [False, None])
def test_proxy_unseen_by_simulation_counts(seen: Any):
    facts = change_simulation(proxy=seen, open_source=True, all_open_source=False)
    hidden = change_flags(facts, proxy=True, open_source=True)

    assert (facts.contract.is_source_verified, list_flags(facts)) == (True, {})
    assert hidden.contract.is_source_verified is False
    assert list_flags(hidden)["closed_source"] == "high"
    assert change_simulation(hidden, all_open_source=True).contract.is_source_verified is True


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


@pytest.mark.parametrize(
    ("analysed", "simulated", "verdict"), [(False, True, "not published"), (True, False, "not published")]
)
def test_sources_that_disagree_about_source_are_named(*, analysed: bool, simulated: bool, verdict: str):
    facts = change_simulation(change_flags(open_source=analysed), open_source=simulated)

    words = {True: "published", False: "not published"}
    assert (
        f"sources disagree: GoPlus Security says that its source is {words[analysed]}, honeypot.is says that "
        f"its source is {words[simulated]}; it counts as {verdict}"
    ) in evaluate_token(facts).warnings


@pytest.mark.parametrize("is_open", [True, False, None])
def test_sources_that_agree_about_source_are_not_named(*, is_open: bool | None):
    agreed = change_simulation(change_flags(open_source=is_open), open_source=is_open)
    silent = change_simulation(change_flags(open_source=is_open), open_source=None)

    for facts in (agreed, silent):
        assert not any("that its source is" in each for each in evaluate_token(facts).warnings)


def test_registries_decide_about_code_behind_proxy():
    proxy = change_simulation(change_flags(proxy=True), proxy=True, open_source=False, root_open_source=True)
    opened, unread = (replace(proxy, implementation=each) for each in (OPEN_CODE, UNREAD_CODE))
    closed = change_simulation(replace(proxy, implementation=CLOSED_CODE), open_source=True)

    assert [each.contract.is_source_verified for each in (opened, unread, closed)] == [True, False, False]
    assert ["closed_source" in list_flags(each) for each in (opened, unread, closed)] == [False, True, True]
    for facts in (opened, closed):
        (warning,) = [each for each in evaluate_token(facts).warnings if "by Sourcify" in each]
        assert THIRD in warning
        assert "honeypot.is says" in warning


@pytest.mark.parametrize("own", ["analysis", "simulation"])
def test_published_code_behind_proxy_does_not_open_its_own(own: str):
    proxy = replace(change_flags(proxy=True), implementation=OPEN_CODE)
    if own == "analysis":
        proxy = change_flags(proxy, open_source=False)
    else:
        proxy = change_simulation(proxy, open_source=False, root_open_source=False)

    assert proxy.contract.is_source_verified is False
    assert replace(proxy, is_pinned_clone=True).contract.is_source_verified is True


def test_own_source_that_no_source_tells_is_named():
    proxy = replace(FACTS, analysis=None, simulation=None, implementation=OPEN_CODE)

    assert proxy.contract.is_source_verified is True
    warning = "the source of the proxy's own code was not checked"
    assert warning in evaluate_token(proxy).warnings
    assert warning not in evaluate_token(replace(proxy, is_pinned_clone=True)).warnings


def test_registry_that_was_not_read_is_named():
    proxy = change_simulation(change_flags(proxy=True), all_open_source=True)
    proxy = replace(proxy, implementation=UNREAD_CODE)

    assert proxy.contract.is_source_verified is True, "by honeypot.is, as without registries"
    assert (
        f"the source of the code behind the proxy, {THIRD}, was not checked by Sourcify (no answer)"
        in evaluate_token(proxy).warnings
    )
