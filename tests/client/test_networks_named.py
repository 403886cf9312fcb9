"""Allowed networks: main networks must be named by the wallet's owner; test networks are always allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from buyers_shell import Shell, private_key_of
from hostile import (
    SLUG,
    HostileApi,
    PlannedResponse,
    ReceivedRequest,
    answer_body,
    build_offer,
    payment_required,
    payment_response,
    service_entry,
)
from shopping import OpenClient

from centgate.client.errors import TermsRefused
from centgate.client.policy import Allowed
from centgate.client.settings import BuyerSettings
from centgate.client.sync_client import Centgate
from centgate.signing.assets import TEST_NETWORKS, USDC

pytestmark = pytest.mark.extended

BASE = "eip155:8453"
MAIN = sorted(USDC.keys() - TEST_NETWORKS)


def build_terms(hostile: HostileApi, network: str) -> PlannedResponse:
    """Return a 402 that asks for a payment on a network."""
    token = USDC[network]
    extra = {"name": token.name, "version": token.version}
    return payment_required(build_offer(hostile.url, network=network, asset=token.address, extra=extra))


def deliver_on(network: str) -> Any:
    def deliver(request: ReceivedRequest) -> PlannedResponse:
        headers = {"PAYMENT-RESPONSE": payment_response(request, network=network)}
        return PlannedResponse(200, answer_body(), headers, accepts_payment=True)

    return deliver


@pytest.mark.parametrize("network", MAIN)
async def test_unnamed_main_network_is_not_paid(shop: OpenClient, hostile: HostileApi, network: str) -> None:
    hostile.unpaid = [build_terms(hostile, network)]

    with pytest.raises(TermsRefused) as refused:
        await shop(hostile.url).call(SLUG, {})

    sentence = str(refused.value)
    ways = (f"CENTGATE_NETWORKS={network}", f"--network {network}", f'networks=["{network}"]')
    assert all(way in sentence for way in ways)
    assert (refused.value.money, hostile.payments) == ("not_moved", [])


@pytest.mark.parametrize(
    "named",
    [{"networks": [BASE]}, {"networks": BASE}, {"allowed": Allowed(networks=frozenset({BASE}))}],
    ids=["a list", "a word", "allowed"],
)
async def test_named_main_network_is_paid(
    shop: OpenClient, hostile: HostileApi, named: dict[str, Any]
) -> None:
    hostile.unpaid, hostile.paid = [build_terms(hostile, BASE)], [deliver_on(BASE)]

    answer = await shop(hostile.url, **named).call(SLUG, {})

    assert answer.receipt
    assert answer.receipt.network == BASE


async def test_named_networks_exclude_others(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.unpaid = [build_terms(hostile, "eip155:1")]

    with pytest.raises(TermsRefused, match=r"CENTGATE_NETWORKS=eip155:1,eip155:8453"):
        await shop(hostile.url, networks=[BASE]).call(SLUG, {})

    with pytest.raises(TermsRefused, match="which is not enabled"):
        await shop(hostile.url, networks=[BASE]).call(SLUG, {})
    assert hostile.payments == []


@pytest.mark.parametrize("wallet", ["0x" + "ab" * 32, Path("wallet.key"), b"\xab" * 32])
def test_key_or_path_is_not_a_wallet(hostile: HostileApi, wallet: Any) -> None:
    with pytest.raises(TypeError, match=r"Wallet\.from_key\(key\) or Wallet\.from_file\(path\)") as refused:
        Centgate(hostile.url, wallet)

    assert "ab" * 3 not in str(refused.value)


@pytest.mark.parametrize("name", ["base", "8453", "eip155:999", ""])
def test_unknown_network_cannot_be_named(hostile: HostileApi, name: str) -> None:
    with pytest.raises(ValueError, match="this client cannot pay on network"):
        Centgate(hostile.url, networks=[name])


def test_networks_are_set_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_NETWORKS", f"{BASE}, eip155:137")

    assert BuyerSettings().networks == (BASE, "eip155:137")


@pytest.fixture
def shell(hostile: HostileApi, tmp_path: Path) -> Shell:
    """A buyer with a key, at an API that is paid on Base."""
    hostile.service_response = PlannedResponse(200, service_entry(payment={"network": BASE}))
    hostile.unpaid, hostile.paid = [build_terms(hostile, BASE)] * 2, [deliver_on(BASE)]
    return Shell(tmp_path, {"CENTGATE_API_URL": hostile.url, "CENTGATE_WALLET_KEY": private_key_of()})


def test_command_refuses_unnamed_network(shell: Shell, hostile: HostileApi) -> None:
    done = shell("call", SLUG, "--body", "{}")

    assert (done.returncode, hostile.payments) == (4, [])
    assert f"`--network {BASE}`" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [(("--network", BASE), {}), ((), {"CENTGATE_NETWORKS": BASE})],
    ids=["the option", "the setting"],
)
def test_command_pays_on_named_network(
    shell: Shell, arguments: tuple[str, ...], settings: dict[str, str]
) -> None:
    done = shell("call", SLUG, "--body", "{}", "--json", *arguments, **settings)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["receipt"]["network"] == BASE


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [(("--network", "base"), {}), ((), {"CENTGATE_NETWORKS": "base"})],
    ids=["the option", "the setting"],
)
def test_command_reports_unknown_network(
    shell: Shell, arguments: tuple[str, ...], settings: dict[str, str]
) -> None:
    done = shell("call", SLUG, "--body", "{}", *arguments, **settings)

    assert done.returncode == 2
    source = "--network" if arguments else "CENTGATE_NETWORKS"
    assert f"centgate: {source}: this client cannot pay on network 'base'" in done.stderr


def test_example_of_service_names_its_network(shell: Shell) -> None:
    done = shell("services", SLUG)

    assert f"centgate call {SLUG} --network {BASE}" in done.stdout


def test_wallet_shows_allowed_networks(shell: Shell) -> None:
    assert "test networks only" in shell("wallet", "show").stdout
    assert BASE in shell("wallet", "show", CENTGATE_NETWORKS=BASE).stdout
