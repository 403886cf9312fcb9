"""One deployment that is paid on two networks: terms, settlements, journal, audit and clients."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from buyer import PHISHING, QUESTION, Buyer, decode_header, encode_header, fetch_terms, pay, payment_note
from centgate_process import CentgateProcess, run_centgate
from facilitators import StubFacilitator, reply_with
from test_kill import PATIENCE, pay_until_answered
from two_chains import FIRST, PAYEES, SECOND, TwoChains, open_two_chains, select_entry

from centgate.client import Allowed, AsyncCentgate, Caps, Ledger, TermsRefused, Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.payments.database.store_factory import open_store
from centgate.payments.reports.daily_totals import read_daily_totals
from centgate.server import run_in_thread
from centgate.settings import ProviderSettings, Settings

CENT = 10_000
ELSEWHERE = "0x" + "e1" * 20
DEAD_NODES = {
    f"rpc_{network.removeprefix('eip155:')}": ProviderSettings(url="http://127.0.0.1:9") for network in PAYEES
}


@pytest.fixture(scope="module")
def world() -> Generator[TwoChains]:
    """Two chains and their facilitator."""
    with open_two_chains() as chains:
        yield chains


@pytest.fixture
def deployment(world: TwoChains, tmp_path: Path) -> Settings:
    """A deployment that accepts payments on both chains."""
    return world.build_settings(tmp_path)


@pytest.fixture
def shop(deployment: Settings) -> Generator[httpx.Client]:
    """Client of the deployment's API."""
    with run_in_thread(deployment) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def sign_on_network(client: httpx.Client, network: str, buyer: Buyer, **changes: Any) -> str:
    """Sign a payment on one of the networks of the terms."""
    terms = select_entry(fetch_terms(client), network)
    return encode_header(buyer.payload(terms, now=int(time.time()), **changes))


def change_accepted(payment: str, **changes: Any) -> str:
    """Return a payment that claims to have accepted other terms."""
    payload = decode_header(payment)
    return encode_header({**payload, "accepted": payload["accepted"] | changes})


@contextmanager
def serve_process(world: TwoChains, folder: Path, **more: str) -> Generator[tuple[Any, httpx.Client]]:
    """Run a server process that accepts payments on both chains, and yield a client of it."""
    with (
        CentgateProcess(["serve", "--port", "0"], env=command_environment(world, folder) | more) as process,
        ExitStack() as at_end,
    ):
        at_end.callback(process.kill)
        assert process.stdout
        url = process.stdout.readline().removeprefix("ready ").strip()
        yield process, at_end.enter_context(httpx.Client(base_url=url, timeout=30))


def command_environment(world: TwoChains, folder: Path) -> dict[str, str]:
    """Return the environment of an operator's commands."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CENTGATE_")}
    return inherited | world.environment | {"CENTGATE_DATABASE_URL": f"sqlite:///{folder / 'journal.db'}"}


def run_command(world: TwoChains, folder: Path, *arguments: str, **more: str) -> str:
    """Return the output of an operator's command; `more` are settings as environment variables."""
    environment = command_environment(world, folder) | more
    result = run_centgate([*arguments], env=environment, cwd=folder)
    assert result.stdout, result.stderr
    return result.stdout


def read_totals(settings: Settings) -> dict[str, tuple[int, int]]:
    """Return the number and the amount of settled payments by network."""

    async def read() -> dict[str, tuple[int, int]]:
        store = open_store(settings.database_url, connections=1)
        try:
            lines = await store.read(partial(read_daily_totals, 0, time.time() + 1, time.time()))
        finally:
            await store.close()
        sums: Counter[str] = Counter()
        amounts: Counter[str] = Counter()
        for line in lines:
            sums[line.network] += line.figures.settled
            amounts[line.network] += line.figures.amount
        return {network: (sums[network], amounts[network]) for network in sums}

    return anyio.run(read)


def test_service_is_paid_on_each_network(world: TwoChains, deployment: Settings, shop: httpx.Client) -> None:
    before = {network: world.balance(network) for network in (FIRST, SECOND)}

    answers = {network: pay(shop, sign_on_network(shop, network, Buyer(1))) for network in (FIRST, SECOND)}

    for network, answer in answers.items():
        assert answer.status_code == 200, answer.text
        receipt = decode_header(answer.headers["PAYMENT-RESPONSE"])
        assert (receipt["success"], receipt["network"]) == (True, network)
        assert world.balance(network) == before[network] + CENT
    assert read_totals(deployment) == {FIRST: (1, CENT), SECOND: (1, CENT)}


@pytest.mark.extended
def test_same_nonce_on_both_networks_is_two_payments(shop: httpx.Client) -> None:
    nonce = "0x" + os.urandom(32).hex()

    answers = [
        pay(shop, sign_on_network(shop, network, Buyer(2), nonce=nonce)) for network in (FIRST, SECOND)
    ]

    assert [each.status_code for each in answers] == [200, 200]
    assert answers[0].json()["requestId"] != answers[1].json()["requestId"]


@pytest.mark.extended
def test_every_402_lists_both_networks_in_order(shop: httpx.Client) -> None:
    unpaid = shop.post(PHISHING, json=QUESTION)
    offered = decode_header(unpaid.headers["PAYMENT-REQUIRED"])["accepts"]
    entry = shop.get("/services/phishing-check").json()["payment"]
    listed = shop.get("/.well-known/x402").json()["products"][0]["accepts"]
    examples = shop.get("/openapi.json").json()["components"]["responses"]["PaymentRequired"]

    assert [(each["network"], each["payTo"].lower()) for each in offered] == list(PAYEES.items())
    assert unpaid.json()["error"]["details"]["accepts"] == offered
    assert entry["network"] == FIRST
    assert [each["network"] for each in entry["accepts"]] == [FIRST, SECOND]
    assert [each["network"] for each in listed] == [FIRST, SECOND]
    shown = examples["content"]["application/json"]["examples"]["payment_required"]["value"]
    assert [each["network"] for each in shown["error"]["details"]["accepts"]] == [FIRST, SECOND]


MIXED: dict[str, tuple[Callable[[str, str], str], str]] = {
    "a network that is not offered": (
        lambda first, _: change_accepted(first, network="eip155:8453"),
        "network_mismatch",
    ),
    "the payee of the other network": (
        lambda first, _: change_accepted(first, payTo=PAYEES[SECOND]),
        "invalid_payment_requirements",
    ),
    "the terms of the other network": (
        lambda first, second: encode_header(
            {**decode_header(first), "accepted": decode_header(second)["accepted"]}
        ),
        "invalid_exact_evm_payload_recipient_mismatch",
    ),
    "a token that is not offered": (
        lambda first, _: change_accepted(first, asset=ELSEWHERE),
        "invalid_payment_requirements",
    ),
}


@pytest.mark.extended
@pytest.mark.parametrize(("change", "reason"), MIXED.values(), ids=MIXED.keys())
def test_payment_with_mixed_entries_is_refused(
    world: TwoChains, shop: httpx.Client, change: Callable[[str, str], str], reason: str
) -> None:
    signed = [sign_on_network(shop, network, Buyer(3)) for network in (FIRST, SECOND)]
    before = [world.balance(network) for network in (FIRST, SECOND)]

    response = pay(shop, change(*signed))

    assert response.status_code == 402
    offered = decode_header(response.headers["PAYMENT-REQUIRED"])
    assert [each["network"] for each in offered["accepts"]] == [FIRST, SECOND]
    assert response.json()["error"]["details"]["reason"] == reason
    assert [world.balance(network) for network in (FIRST, SECOND)] == before


@pytest.mark.extended
def test_signature_for_one_chain_is_void_on_other(shop: httpx.Client) -> None:
    payload = decode_header(sign_on_network(shop, FIRST, Buyer(3)))
    entry = decode_header(select_entry(fetch_terms(shop), SECOND))["accepts"][0]
    payload["payload"]["authorization"]["to"] = entry["payTo"]
    payload["accepted"] = entry

    response = pay(shop, encode_header(payload))

    assert response.status_code == 402
    assert response.json()["error"]["details"]["reason"] == "invalid_exact_evm_payload_signature"


@pytest.mark.extended
def test_one_key_is_one_payment_over_both_networks(world: TwoChains, shop: httpx.Client) -> None:
    key = {"Idempotency-Key": os.urandom(16).hex()}
    payments = [sign_on_network(shop, network, Buyer(4)) for network in (FIRST, SECOND)]
    before = world.balance(SECOND)

    answers = [
        shop.post(PHISHING, json=QUESTION, headers={"PAYMENT-SIGNATURE": each, **key}) for each in payments
    ]

    assert [each.status_code for each in answers] == [200, 200]
    assert answers[1].content == answers[0].content
    assert world.balance(SECOND) == before


@pytest.mark.extended
@pytest.mark.parametrize("step", ["claimed", "settled", "produced"])
def test_payment_on_second_network_survives_crash(world: TwoChains, tmp_path: Path, step: str) -> None:
    before = world.balance(SECOND)
    with serve_process(world, tmp_path, CENTGATE_FAULT=step) as (process, client):
        payment = sign_on_network(client, SECOND, Buyer(5))
        with pytest.raises(httpx.TransportError):
            pay(client, payment)
        assert process.wait(PATIENCE) == -signal.SIGKILL

    with serve_process(world, tmp_path) as (_, client):
        first = pay_until_answered(client, payment)
        again = pay(client, payment)

    assert first.json()["data"]["status"] == "blocked"
    assert again.content == first.content
    assert world.balance(SECOND) == before + CENT


@pytest.mark.extended
@pytest.mark.parametrize("moved", [True, False], ids=["the-money-moved", "nothing-moved"])
def test_open_payment_on_second_network_is_resolved_by_its_node(
    world: TwoChains,
    tmp_path: Path,
    facilitator: StubFacilitator,
    moved: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """The node of the first network would show the nonce as unused: only the second one's may be asked."""
    buyer = Buyer(6)
    with (
        run_in_thread(world.build_settings(tmp_path, facilitator_url=facilitator.url)) as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        payment = sign_on_network(client, SECOND, buyer)
        facilitator.usually = reply_with(500, "out of order")
        before = world.balance(SECOND)

        unknown = pay(client, payment)
        if moved:
            settle_directly(world, payment)
        facilitator.usually = reply_with(500, "still out of order")
        resolved = pay(client, payment)

    assert unknown.status_code == 502
    assert payment_note(unknown)["retry"] == "same_payment"
    if moved:
        assert resolved.status_code == 200, resolved.text
        assert decode_header(resolved.headers["PAYMENT-RESPONSE"])["network"] == SECOND
        assert world.balance(SECOND) == before + CENT
    else:
        assert payment_note(resolved)["state"] == "in_flight"
        assert world.balance(SECOND) == before


def settle_directly(world: TwoChains, payment: str) -> None:
    """Settle a payment by the facilitator of both chains, without the server."""
    payload = decode_header(payment)
    body = {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": payload["accepted"]}
    answer = httpx.post(f"{world.facilitator_url}/settle", json=body, timeout=30).json()
    assert answer["success"], answer


@pytest.mark.extended
def test_operator_commands_support_both_networks(world: TwoChains, tmp_path: Path) -> None:
    with serve_process(world, tmp_path) as (_, client):
        paid = [
            pay(client, sign_on_network(client, network, Buyer(7))) for network in (FIRST, SECOND, SECOND)
        ]
    transactions = {decode_header(each.headers["PAYMENT-RESPONSE"])["transaction"] for each in paid}

    totals = json.loads(run_command(world, tmp_path, "payments", "summary", "--json"))
    audit = json.loads(run_command(world, tmp_path, "payments", "audit", "--json"))
    checks = json.loads(
        run_command(
            world, tmp_path, "doctor", "--json", "--only", "facilitator", "--only", "node", "--only", "token"
        )
    )

    by_network = {each["network"]: each for each in totals["totals"]}
    assert {network: each["dollars"] for network, each in by_network.items()} == {
        FIRST: "0.010000",
        SECOND: "0.020000",
    }
    transfers = {each["network"]: each["transfers"] for each in audit["audited"]}
    assert transfers.keys() == {FIRST, SECOND}
    assert transfers[FIRST] >= 1
    assert transfers[SECOND] >= 2
    assert not transactions & {
        each["transaction"] for each in audit["findings"]
    }  # others belong to other tests
    found = {each["name"]: each for each in checks["checks"]}
    assert [found[name]["status"] for name in ("facilitator", "node", "token")] == ["ok"] * 3
    for name in ("facilitator", "node", "token"):
        assert FIRST in found[name]["what"]
        assert SECOND in found[name]["what"]


@pytest.mark.extended
def test_audit_findings_name_their_network(world: TwoChains, shop: httpx.Client, tmp_path: Path) -> None:
    for network in (FIRST, SECOND):
        settle_directly(world, sign_on_network(shop, network, Buyer(8)))

    table = run_command(world, tmp_path, "payments", "audit")

    findings = [line for line in table.splitlines() if line.startswith("unknown ")]
    assert {line.split()[1] for line in findings} == {FIRST, SECOND}


def test_reconcile_uses_a_node_for_each_network(
    world: TwoChains, tmp_path: Path, facilitator: StubFacilitator
) -> None:
    facilitator.usually = reply_with(500, "out of order")
    settings = world.build_settings(tmp_path, facilitator_url=facilitator.url, providers=DEAD_NODES)
    with run_in_thread(settings) as url, httpx.Client(base_url=url, timeout=60) as client:
        payments = [sign_on_network(client, network, Buyer(9)) for network in (FIRST, SECOND)]
        assert {pay(client, each).status_code for each in payments} == {502}
    for payment in payments:
        settle_directly(world, payment)
    environment = {"CENTGATE_FACILITATOR_URL": facilitator.url} | {
        f"CENTGATE_RPC_{network.removeprefix('eip155:')}_URL": "http://127.0.0.1:9" for network in PAYEES
    }
    nodes = [f"--rpc={network}={chain.rpc_url}" for network, chain in world.chains.items()]

    output = json.loads(
        run_command(world, tmp_path, "payments", "reconcile", "--json", *nodes, **environment)
    )

    assert {each["network"]: each["after"] for each in output["resolved"]} == {
        FIRST: "settled",
        SECOND: "settled",
    }


@asynccontextmanager
async def open_client(url: str, world: TwoChains, **options: Any) -> AsyncGenerator[AsyncCentgate]:
    allowed = Allowed(assets=world.assets)
    wallet = Wallet.from_key(BUYER_ACCOUNTS[8].private_key)
    async with AsyncCentgate(url, wallet, allowed=allowed, **options) as client:
        yield client


@pytest.mark.extended
async def test_python_client_pays_on_preferred_network(world: TwoChains, shop: httpx.Client) -> None:
    url = str(shop.base_url)
    ledger = Ledger()

    async with open_client(url, world, ledger=ledger) as client:
        first = await client.call("phishing-check", QUESTION)
    async with open_client(url, world, preferred_network=SECOND) as client:
        second = await client.call("phishing-check", QUESTION)

    assert first.receipt
    assert second.receipt
    assert (first.receipt.network, second.receipt.network) == (FIRST, SECOND)


@pytest.mark.extended
def test_command_pays_with_named_token_on_second_network(
    world: TwoChains, shop: httpx.Client, tmp_path: Path
) -> None:
    entries = [
        {name: value for name, value in entry.items() if name != "payTo"}
        for entry in world.entries
        if entry["network"] == SECOND
    ]
    buyer = {
        "CENTGATE_API_URL": str(shop.base_url),
        "CENTGATE_WALLET_KEY": BUYER_ACCOUNTS[8].private_key,
        "CENTGATE_LEDGER": str(tmp_path / "ledger.jsonl"),
        "CENTGATE_NETWORKS": SECOND,
        "CENTGATE_ALLOWED_ASSETS": json.dumps(entries),
    }
    before = world.balance(SECOND)

    question = f"url={QUESTION['url']}"
    answer = run_command(world, tmp_path, "call", "phishing-check", question, "--json", **buyer)

    assert json.loads(answer)["receipt"]["network"] == SECOND
    assert world.balance(SECOND) == before + CENT


@pytest.mark.extended
async def test_python_client_counts_over_all_networks(world: TwoChains, shop: httpx.Client) -> None:
    url, ledger = str(shop.base_url), Ledger()
    caps = Caps(Decimal("0.02"), Decimal("0.02"))
    async with open_client(url, world, ledger=ledger, caps=caps) as client:
        await client.call("phishing-check", QUESTION)
    async with open_client(url, world, ledger=ledger, caps=caps, payee={SECOND: PAYEES[SECOND]}) as client:
        pinned = await client.call("phishing-check", {"url": "https://one.example"})
        quote = await client.terms("phishing-check", {"url": "https://two.example"})

    assert pinned.receipt
    assert pinned.receipt.network == SECOND
    assert quote.network == SECOND
    assert "total cap" in quote.objections[0]


@pytest.mark.extended
async def test_new_payee_on_new_network_needs_consent(world: TwoChains, shop: httpx.Client) -> None:
    url, ledger = str(shop.base_url), Ledger()
    only_second = Allowed(assets={SECOND: world.assets[SECOND]}, networks=frozenset())
    wallet = Wallet.from_key(BUYER_ACCOUNTS[8].private_key)
    async with open_client(url, world, ledger=ledger) as client:
        await client.call("phishing-check", QUESTION)

    async with AsyncCentgate(url, wallet, allowed=only_second, ledger=ledger) as client:
        with pytest.raises(TermsRefused, match=f"where nothing was paid yet.*CENTGATE_PAYEE={SECOND}="):
            await client.call("phishing-check", {"url": "https://one.example"})
    async with open_client(url, world, ledger=ledger, preferred_network=SECOND) as client:
        known = await client.call("phishing-check", {"url": "https://one.example"})

    assert known.receipt
    assert known.receipt.network == FIRST


@pytest.mark.extended
def test_typescript_client_pays_on_preferred_network(
    world: TwoChains, shop: httpx.Client, typescript_client: Path
) -> None:
    assets = {
        network: {"address": each.address, "name": each.name, "version": each.version, "decimals": 6}
        for network, each in world.assets.items()
    }
    result = subprocess.run(
        ["node", "build/test/two-networks.js"],
        cwd=typescript_client,
        env={
            **os.environ,
            "API_URL": str(shop.base_url),
            "WALLET_KEY": BUYER_ACCOUNTS[9].private_key,
            "ASSETS": json.dumps(assets),
            "PAYEES": json.dumps(PAYEES),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert result.returncode == 0, result.stderr[-3000:]
    printed = json.loads(result.stdout)
    assert [printed[name] for name in ("first", "preferred", "pinned")] == [FIRST, SECOND, SECOND]
    assert printed["spent"] == "0.02"
    assert "where nothing was paid yet" in printed["refused"]
