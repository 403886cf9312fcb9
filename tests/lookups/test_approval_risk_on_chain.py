"""approval-risk on a development chain: the active approvals, amounts, spenders and Permit2 grants."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from lookups.chain_world import UNLIMITED, ChainApproval, World

from centgate.timestamps import format_timestamp

BuyAnswer = Callable[..., dict[str, Any]]
INACTIVE = ("revoked", "used up")
"""Approvals that are used up or revoked."""


@pytest.fixture
def risk(world: World, buy_answer: BuyAnswer) -> dict[str, Any]:
    """Return the data about the approver."""
    return buy_answer("approval-risk", walletAddress=world.people["approver"].address)


def find_approval(answer: dict[str, Any], approved: ChainApproval) -> dict[str, Any]:
    """Return the entry of an approval."""
    (found,) = [
        each
        for each in answer["data"]["approvals"]
        if token_and_spender(each) == (approved.token, approved.spender)
    ]
    return found


def token_and_spender(approval: dict[str, Any]) -> tuple[str, str]:
    """Return token and spender."""
    return approval["token"]["address"], approval["spender"]["address"]


def list_findings(approval: dict[str, Any]) -> dict[str, str]:
    """Return severity by finding."""
    return {each["id"]: each["severity"] for each in approval["findings"]}


@pytest.mark.extended
def test_only_active_approvals_are_listed(world: World, risk: dict[str, Any]):
    standing = [approved for name, approved in world.approvals.items() if name not in INACTIVE]

    assert sorted(token_and_spender(each) for each in risk["data"]["approvals"]) == sorted(
        (approved.token, approved.spender) for approved in standing
    )


@pytest.mark.extended
def test_amounts_match_chain(world: World, risk: dict[str, Any]):
    for name, approved in world.approvals.items():
        if name not in INACTIVE and approved.allowance is not None:
            allowance = find_approval(risk, approved)["allowance"]
            assert allowance["amountBaseUnits"] == str(approved.allowance), name
            assert allowance["live"] is True, name
            assert allowance["unlimited"] is (approved.allowance > 2**200), name


@pytest.mark.extended
def test_unreadable_allowance_is_as_in_event_and_not_live(world: World, risk: dict[str, Any]):
    untold = find_approval(risk, world.approvals["untold"])

    assert untold["allowance"]["live"] is False
    assert untold["allowance"]["amountBaseUnits"] == str(UNLIMITED)
    assert "unread" in list_findings(untold)
    assert risk["data"]["coverage"]["callsFailed"] == 1


def test_exposed_amount_is_lesser_of_allowance_and_balance(world: World, risk: dict[str, Any]):
    exposed = {
        name: find_approval(risk, world.approvals[name])["allowance"]["exposedBaseUnits"]
        for name in ("limited", "unlimited to wallet", "partly spent", "stale")
    }

    assert exposed == {
        "limited": "500",
        "unlimited to wallet": str(100 * 10**6 - 50),
        "partly spent": str(100 * 10**6 - 10),
        "stale": "0",
    }


def test_spenders_are_classified_by_code(world: World, risk: dict[str, Any]):
    found = {
        name: (
            find_approval(risk, approved)["spender"]["kind"],
            set(list_findings(find_approval(risk, approved))) - {"unlimited"},
        )
        for name, approved in world.approvals.items()
        if name not in INACTIVE
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


def test_only_old_approval_is_stale(world: World, risk: dict[str, Any]):
    stale = {token_and_spender(each) for each in risk["data"]["approvals"] if each["stale"]}

    assert stale == {(world.approvals["stale"].token, world.approvals["stale"].spender)}


@pytest.mark.extended
def test_approval_has_time_of_latest_event(world: World, risk: dict[str, Any]):
    for name, approved in world.approvals.items():
        if name not in INACTIVE:
            at = format_timestamp(datetime.fromtimestamp(world.times[approved.block], UTC))
            assert find_approval(risk, approved)["changedAt"] == at, name


def test_dangerous_approvals_are_first_with_revocation(world: World, risk: dict[str, Any]):
    dangerous = {
        (world.approvals[name].token, world.approvals[name].spender)
        for name in ("unlimited to wallet", "unlimited to nothing", "to delegated wallet")
    }

    advice = {
        (each["tokenAddress"], each["spenderAddress"]): each["action"]
        for each in risk["data"]["recommendations"]
    }

    assert {token_and_spender(each) for each in risk["data"]["approvals"][:3]} == dangerous
    assert {each for each, action in advice.items() if action == "revoke"} >= dangerous
    assert advice[world.approvals["stale"].token, world.approvals["stale"].spender] == "revoke"
    limited = world.approvals["limited"]
    assert (limited.token, limited.spender) not in advice


def test_coverage_is_complete(world: World, risk: dict[str, Any]):
    coverage = risk["data"]["coverage"]

    assert (coverage["source"], coverage["complete"], coverage["fromBlock"]) == ("rpc", True, 0)
    assert coverage["toBlock"] >= max(world.times)
    assert 199 < coverage["days"] < 201
    assert risk["data"]["unlimitedCount"] == 6
    assert any("NFT" in each for each in risk["data"]["warnings"])
    assert risk["warnings"] == ["there are no prices on a development chain"]


def test_wallet_without_approvals_has_no_recommendations(world: World, buy_answer: BuyAnswer):
    answer = buy_answer("approval-risk", walletAddress=world.people["newcomer"].address)

    assert answer["data"]["approvals"] == []
    assert answer["data"]["recommendations"] == []
    assert answer["data"]["coverage"]["complete"] is True


@pytest.fixture
def grants(world: World, buy_answer: BuyAnswer) -> dict[str, dict[str, Any]]:
    """Return the grants inside Permit2 of the grantor, by their special property."""
    data = buy_answer("approval-risk", walletAddress=world.people["grantor"].address)["data"]
    assert data["coverage"]["complete"] is True
    names = {(grant.token, grant.spender): name for name, grant in world.grants.items()}
    return {
        names[token_and_spender(each)]: each for each in data["approvals"] if each["mechanism"] == "permit2"
    }


def test_active_permit2_grants_are_listed(grants: dict[str, dict[str, Any]]):
    amounts = {name: each["allowance"]["amountBaseUnits"] for name, each in grants.items()}

    assert amounts == {"limited": "300", "unlimited to wallet": str(2**160 - 1), "not usable": "200"}
    assert all(each["allowance"]["live"] and each["allowance"]["expiresAt"] for each in grants.values())


def test_grant_severity_depends_on_spender_and_expiry(grants: dict[str, dict[str, Any]]):
    assert {name: (each["severity"], set(list_findings(each))) for name, each in grants.items()} == {
        "limited": ("info", {"permit2_grant"}),
        "unlimited to wallet": (
            "danger",
            {"permit2_grant", "spender_is_wallet", "unlimited", "expires_late"},
        ),
        "not usable": ("info", {"permit2_grant", "not_usable"}),
    }


def test_grant_exposes_at_most_what_permit2_may_take(grants: dict[str, dict[str, Any]]):
    exposed = {name: each["allowance"]["exposedBaseUnits"] for name, each in grants.items()}

    assert exposed == {"limited": "300", "unlimited to wallet": "1000", "not usable": "0"}


def test_delegated_wallet_is_first_warning(world: World, buy_answer: BuyAnswer):
    delegated = world.proxies["delegated wallet"]

    answer = buy_answer("approval-risk", walletAddress=delegated.address)

    data = answer["data"]
    assert data["account"] == {
        "kind": "delegated_wallet",
        "delegateAddress": delegated.implementations[0],
    }
    warning = data["warnings"][0]
    assert warning.startswith(f"The wallet runs the code of {delegated.implementations[0]}")
    assert (answer["warnings"][0], data["warnings"].count(warning)) == (warning, 1)
    assert data["approvals"] == []


def test_review_of_delegation_is_recommended(world: World, buy_answer: BuyAnswer):
    delegated = world.proxies["delegated wallet"]

    data = buy_answer("approval-risk", walletAddress=delegated.address)["data"]

    (recommendation,) = data["recommendations"]
    assert (recommendation["action"], recommendation["mechanism"]) == ("review", "delegation")
    assert (recommendation["tokenAddress"], recommendation["url"]) == (None, None)
    assert recommendation["spenderAddress"] == delegated.implementations[0]


@pytest.mark.extended
def test_token_cannot_spend_while_it_is_read(world: World, buy_answer: BuyAnswer):
    data = buy_answer("approval-risk", walletAddress=world.people["lured"].address)["data"]

    (approval,) = [each for each in data["approvals"] if each["token"]["address"] == world.tokens["plain"]]
    assert approval["spender"]["address"] == world.contracts["lure"]
    assert (approval["allowance"]["amountBaseUnits"], approval["token"]["balanceBaseUnits"]) == (
        "1000",
        "1000",
    )
