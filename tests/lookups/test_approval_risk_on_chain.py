"""approval-risk on a real chain: every approval that was given, and no other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from lookups.chain_world import UNLIMITED, ChainApproval, World

from centgate.timestamps import format_timestamp

Answered = Callable[..., dict[str, Any]]
GONE = ("revoked", "used up")
"""Approvals that are used up or revoked."""


@pytest.fixture
def risk(world: World, answered: Answered) -> dict[str, Any]:
    """Return the data about the approver."""
    return answered("approval-risk", walletAddress=world.people["approver"].address)


def row(answer: dict[str, Any], approved: ChainApproval) -> dict[str, Any]:
    """Return the entry of an approval."""
    (found,) = [
        each for each in answer["data"]["approvals"] if pair(each) == (approved.token, approved.spender)
    ]
    return found


def pair(approval: dict[str, Any]) -> tuple[str, str]:
    """Return token and spender."""
    return approval["token"]["address"], approval["spender"]["address"]


def findings(approval: dict[str, Any]) -> dict[str, str]:
    """Return severity by finding."""
    return {each["id"]: each["severity"] for each in approval["findings"]}


@pytest.mark.extended
def test_it_lists_the_approvals_that_stand_and_no_others(world: World, risk: dict[str, Any]):
    standing = [approved for name, approved in world.approvals.items() if name not in GONE]

    assert sorted(pair(each) for each in risk["data"]["approvals"]) == sorted(
        (approved.token, approved.spender) for approved in standing
    )


def test_amounts_are_those_on_the_chain(world: World, risk: dict[str, Any]):
    for name, approved in world.approvals.items():
        if name not in GONE and approved.allowance is not None:
            allowance = row(risk, approved)["allowance"]
            assert allowance["amountBaseUnits"] == str(approved.allowance), name
            assert allowance["live"] is True, name
            assert allowance["unlimited"] is (approved.allowance > 2**200), name


def test_an_allowance_that_the_token_does_not_tell_is_as_its_event_says_and_not_live(
    world: World, risk: dict[str, Any]
):
    untold = row(risk, world.approvals["untold"])

    assert untold["allowance"]["live"] is False
    assert untold["allowance"]["amountBaseUnits"] == str(UNLIMITED)
    assert "unread" in findings(untold)
    assert risk["data"]["coverage"]["callsFailed"] == 1


def test_what_could_be_taken_now_is_the_smaller_of_allowance_and_balance(world: World, risk: dict[str, Any]):
    exposed = {
        name: row(risk, world.approvals[name])["allowance"]["exposedBaseUnits"]
        for name in ("limited", "unlimited to wallet", "partly spent", "stale")
    }

    assert exposed == {
        "limited": "500",
        "unlimited to wallet": str(100 * 10**6 - 50),
        "partly spent": str(100 * 10**6 - 10),
        "stale": "0",
    }


def test_spenders_are_told_apart_by_what_stands_at_their_address(world: World, risk: dict[str, Any]):
    found = {
        name: (row(risk, approved)["spender"]["kind"], set(findings(row(risk, approved))) - {"unlimited"})
        for name, approved in world.approvals.items()
        if name not in GONE
    }

    assert found == {
        "unlimited to wallet": ("wallet", {"spender_is_wallet"}),
        "unlimited to nothing": ("wallet", {"spender_has_no_code"}),
        "to delegated wallet": ("wallet", {"spender_is_wallet", "nothing_held"}),
        "permit2": ("contract", {"permit2"}),
        "limited": ("contract", set()),
        "partly spent": ("contract", set()),
        "stale": ("contract", {"stale", "nothing_held"}),
        "untold": ("contract", {"unread"}),
    }


def test_only_the_approval_of_200_days_ago_is_stale(world: World, risk: dict[str, Any]):
    stale = {pair(each) for each in risk["data"]["approvals"] if each["stale"]}

    assert stale == {(world.approvals["stale"].token, world.approvals["stale"].spender)}


def test_each_approval_has_the_time_of_its_latest_event(world: World, risk: dict[str, Any]):
    for name, approved in world.approvals.items():
        if name not in GONE:
            at = format_timestamp(datetime.fromtimestamp(world.times[approved.block], UTC))
            assert row(risk, approved)["changedAt"] == at, name


def test_the_dangerous_come_first_and_are_to_be_revoked(world: World, risk: dict[str, Any]):
    dangerous = {
        (world.approvals[name].token, world.approvals[name].spender)
        for name in ("unlimited to wallet", "unlimited to nothing", "to delegated wallet")
    }

    advice = {
        (each["tokenAddress"], each["spenderAddress"]): each["action"]
        for each in risk["data"]["recommendations"]
    }

    assert {pair(each) for each in risk["data"]["approvals"][:3]} == dangerous
    assert {each for each, action in advice.items() if action == "revoke"} >= dangerous
    assert advice[world.approvals["stale"].token, world.approvals["stale"].spender] == "revoke"
    limited = world.approvals["limited"]
    assert (limited.token, limited.spender) not in advice


def test_the_whole_chain_was_read_and_the_answer_says_so(world: World, risk: dict[str, Any]):
    coverage = risk["data"]["coverage"]

    assert (coverage["source"], coverage["complete"], coverage["fromBlock"]) == ("rpc", True, 0)
    assert coverage["toBlock"] >= max(world.times)
    assert 199 < coverage["days"] < 201
    assert risk["data"]["unlimitedCount"] == 6
    assert any("NFT" in each for each in risk["data"]["warnings"])
    assert risk["warnings"] == ["there are no prices on a development chain"]


def test_a_wallet_that_never_approved_anything_has_nothing_to_revoke(world: World, answered: Answered):
    answer = answered("approval-risk", walletAddress=world.people["newcomer"].address)

    assert answer["data"]["approvals"] == []
    assert answer["data"]["recommendations"] == []
    assert answer["data"]["coverage"]["complete"] is True


@pytest.fixture
def granted(world: World, answered: Answered) -> dict[str, dict[str, Any]]:
    """Return the grants inside Permit2 of the grantor, by their special property."""
    data = answered("approval-risk", walletAddress=world.people["grantor"].address)["data"]
    assert data["coverage"]["complete"] is True
    names = {(grant.token, grant.spender): name for name, grant in world.grants.items()}
    return {names[pair(each)]: each for each in data["approvals"] if each["mechanism"] == "permit2"}


def test_grants_inside_permit2_that_stand_are_listed(granted: dict[str, dict[str, Any]]):
    amounts = {name: each["allowance"]["amountBaseUnits"] for name, each in granted.items()}

    assert amounts == {"limited": "300", "unlimited to wallet": str(2**160 - 1), "not usable": "200"}
    assert all(each["allowance"]["live"] and each["allowance"]["expiresAt"] for each in granted.values())


def test_grants_are_judged_by_their_spender_and_end(granted: dict[str, dict[str, Any]]):
    assert {name: (each["severity"], set(findings(each))) for name, each in granted.items()} == {
        "limited": ("info", {"permit2_grant"}),
        "unlimited to wallet": (
            "danger",
            {"permit2_grant", "spender_is_wallet", "unlimited", "expires_late"},
        ),
        "not usable": ("info", {"permit2_grant", "not_usable"}),
    }


def test_a_grant_exposes_no_more_than_permit2_may_take(granted: dict[str, dict[str, Any]]):
    exposed = {name: each["allowance"]["exposedBaseUnits"] for name, each in granted.items()}

    assert exposed == {"limited": "300", "unlimited to wallet": "1000", "not usable": "0"}


def test_a_delegated_wallet_is_the_first_finding(world: World, answered: Answered):
    delegated = world.proxies["delegated wallet"]

    data = answered("approval-risk", walletAddress=delegated.address)["data"]

    assert data["account"] == {
        "kind": "delegated_wallet",
        "delegateAddress": delegated.implementations[0],
    }
    assert data["warnings"][0].startswith(f"The wallet runs the code of {delegated.implementations[0]}")
    assert data["approvals"] == []


def test_a_token_cannot_spend_another_approval_while_it_is_read(world: World, answered: Answered):
    data = answered("approval-risk", walletAddress=world.people["lured"].address)["data"]

    (approval,) = [each for each in data["approvals"] if each["token"]["address"] == world.tokens["plain"]]
    assert approval["spender"]["address"] == world.contracts["lure"]
    assert (approval["allowance"]["amountBaseUnits"], approval["token"]["balanceBaseUnits"]) == (
        "1000",
        "1000",
    )
