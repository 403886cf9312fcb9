"""Tokens named by the wallet's owner (`CENTGATE_ALLOWED_ASSETS`): no other is paid with on their networks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from buyers_shell import Shell, private_key_of
from fake_node import serve_node
from hostile import (
    SLUG,
    HostileApi,
    PlannedResponse,
    answer_body,
    build_offer,
    error_response,
    payment_required,
    payment_response,
    service_entry,
)
from pydantic import ValidationError

from centgate.client.settings import BuyerSettings
from centgate.signing.assets import USDC, Asset

pytestmark = pytest.mark.extended

LOCAL = "eip155:31339"
TOKEN = "0x1111111111111111111111111111111111111111"
OTHER = "0x2222222222222222222222222222222222222222"
NAMED = {"network": LOCAL, "asset": TOKEN, "name": "Dollar, of tests", "version": "7"}


@pytest.fixture(autouse=True)
def no_variable(no_operator: None) -> None:
    """Remove the settings of the developer's environment."""


@pytest.fixture
def shell(hostile: HostileApi, tmp_path: Path) -> Shell:
    """A buyer with a key, at an API that is paid in a token of a development chain."""
    hostile.service_response = PlannedResponse(200, service_entry(payment={"network": LOCAL}))
    set_terms(hostile)
    return Shell(tmp_path, {"CENTGATE_API_URL": hostile.url, "CENTGATE_WALLET_KEY": private_key_of()})


def set_terms(hostile: HostileApi, **changes: str) -> None:
    """Let the API ask for the token, with changes to its network, address, name or version."""
    token = NAMED | changes
    network = token["network"]
    offer = build_offer(
        hostile.url,
        network=network,
        asset=token["asset"],
        extra={"name": token["name"], "version": token["version"]},
    )
    hostile.unpaid = [payment_required(offer)] * 2
    hostile.paid = [
        lambda request: PlannedResponse(
            200,
            answer_body(),
            {"PAYMENT-RESPONSE": payment_response(request, network=network)},
            accepts_payment=True,
        )
    ]


def read_assets(*entries: Any) -> dict[str, Asset]:
    options: dict[str, Any] = {"allowed_assets": json.dumps(entries)}
    return dict(BuyerSettings(**options).allowed.assets)


def test_command_does_not_pay_with_unnamed_token(shell: Shell, hostile: HostileApi) -> None:
    done = shell("call", SLUG, "--body", "{}")

    assert (done.returncode, hostile.payments) == (4, [])
    assert "CENTGATE_ALLOWED_ASSETS" in done.stderr
    assert TOKEN not in done.stderr


def test_command_pays_with_named_token(shell: Shell, hostile: HostileApi) -> None:
    done = shell("call", SLUG, "--body", "{}", "--json", CENTGATE_ALLOWED_ASSETS=json.dumps([NAMED]))

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["receipt"]["network"] == LOCAL
    assert len(hostile.payments) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"asset": OTHER},
        {"name": "Dollar"},
        {"version": "2"},
        {"network": "eip155:31340"},
        {"network": "eip155:8453"},
    ],
    ids=lambda changes: "-".join(changes.values()),
)
def test_command_refuses_terms_of_another_token(
    shell: Shell, hostile: HostileApi, changes: dict[str, str]
) -> None:
    set_terms(hostile, **changes)

    done = shell("call", SLUG, "--body", "{}", CENTGATE_ALLOWED_ASSETS=json.dumps([NAMED]))

    assert (done.returncode, hostile.payments) == (4, []), done.stderr


def test_networks_of_the_command_exclude_others(shell: Shell, hostile: HostileApi) -> None:
    setting = {"CENTGATE_ALLOWED_ASSETS": json.dumps([NAMED])}

    refused = shell("call", SLUG, "--body", "{}", "--network", "eip155:84532", **setting)
    paid = shell("call", SLUG, "--body", "{}", "--network", LOCAL, **setting)

    assert refused.returncode == 4
    assert "name the network too if you name networks" in refused.stderr
    assert (paid.returncode, len(hostile.payments)) == (0, 1), paid.stderr


def test_command_reports_invalid_entry(shell: Shell, hostile: HostileApi) -> None:
    entry = {name: value for name, value in NAMED.items() if name != "name"}

    done = shell(
        "call", SLUG, "--body", "{}", "--network", LOCAL, CENTGATE_ALLOWED_ASSETS=json.dumps([entry])
    )

    assert (done.returncode, hostile.requests) == (2, [])
    assert done.stderr.splitlines() == [
        f"centgate: CENTGATE_ALLOWED_ASSETS: entry 1: add the name of the token {TOKEN} in its EIP-712 domain"
    ]


def test_entries_name_a_token_for_each_network() -> None:
    assert read_assets(NAMED, {"network": "eip155:8453"}) == {
        LOCAL: Asset(TOKEN, "Dollar, of tests", "7"),
        "eip155:8453": USDC["eip155:8453"],
    }
    assert BuyerSettings().allowed.assets == {}


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([NAMED, NAMED | {"asset": OTHER}], f"two tokens are named on {LOCAL}"),
        ([], "the list is empty"),
        ([{"network": LOCAL}], "no token is known on"),
        ([NAMED | {"payTo": OTHER}], "unknown key 'payTo'"),
        ([NAMED | {"asset": "0x1"}], "is not an address"),
        ([NAMED | {"name": "a\u202eb"}], "cannot be printed"),
        ({"network": LOCAL}, "needs a JSON list"),
    ],
)
def test_unclear_entries_are_refused(entries: Any, problem: str) -> None:
    options: dict[str, Any] = {"allowed_assets": json.dumps(entries)}

    with pytest.raises(ValidationError, match=problem):
        BuyerSettings(**options)


def test_advice_on_money_names_the_token(shell: Shell, hostile: HostileApi) -> None:
    """Circle's USDC, sent to the wallet, would not pay."""
    hostile.catalogue = PlannedResponse(200, {"services": [service_entry(payment={"network": LOCAL})]})
    note = {"state": "refused", "charged": False, "retry": "new_payment"}
    hostile.paid = [error_response(402, "payment_required", note=note, reason="insufficient_funds")]
    setting = {"CENTGATE_ALLOWED_ASSETS": json.dumps([NAMED])}

    shown = shell("wallet", "show", **setting)
    done = shell("call", SLUG, "--body", "{}", **setting)

    assert f"send the token {TOKEN} on {LOCAL} to the address" in " ".join(shown.stdout.split())
    assert f"in the token {TOKEN} on {LOCAL}" in done.stderr
    assert f"send the token {TOKEN} to it" in done.stderr


def test_balance_is_that_of_named_token(shell: Shell) -> None:
    asked: list[str] = []

    def answer(method: str, params: list[Any]) -> Any:
        if method == "eth_chainId":
            return hex(31339)
        asked.append(params[0]["to"])
        return "0x" + f"{1_500_000:064x}"

    with serve_node(answer) as url:
        unnamed = shell("wallet", "show", "--rpc", url)
        named = shell("wallet", "show", "--rpc", url, "--json", CENTGATE_ALLOWED_ASSETS=json.dumps([NAMED]))

    assert "CENTGATE_ALLOWED_ASSETS" in unnamed.stderr
    assert json.loads(named.stdout)["balanceUsd"] == "1.5"
    assert asked == [TOKEN]
