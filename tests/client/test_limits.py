"""Limits of single calls and of periods, concurrent calls, and answers of the wallet's own node."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from buyers_shell import Shell, private_key_of
from fake_node import answer_at, serve_node
from hostile import (
    NETWORK,
    SLUG,
    HostileApi,
    PlannedResponse,
    ReceivedRequest,
    error_response,
    service_entry,
)
from shopping import OpenClient

from centgate.client import (
    Answer,
    BuyerError,
    CapExceeded,
    Caps,
    Centgate,
    Ledger,
    NoNode,
    NoWallet,
    Unavailable,
    Unreachable,
    Unresolved,
    Wallet,
)
from centgate.client.errors import LedgerUnwritable
from centgate.client.node import release_unused_payments
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.signing.assets import USDC

BOOK = {"name": "book", "label": "Book", "role": "primary"}
EXTENDED = pytest.mark.extended


def list_service(hostile: HostileApi, *, configured: bool) -> None:
    """List the service with its only source set up, or not."""
    sources = [{"name": "book", "configured": configured, "terms": ""}]
    hostile.service_response = PlannedResponse(200, service_entry(providers=[BOOK], sources=sources))


def age_ledger(path: Path, by: timedelta) -> None:
    """Move every line of a ledger into the past."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["time"] = (datetime.fromisoformat(line["time"]) - by).astimezone(UTC).isoformat()
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


async def test_unavailable_service_is_not_paid(shop: OpenClient, hostile: HostileApi) -> None:
    list_service(hostile, configured=False)

    with pytest.raises(Unavailable, match="lists some-facts as not available") as error:
        await shop(hostile.url).call(SLUG, {})

    assert error.value.money == "not_moved"
    assert hostile.payments == []


async def test_service_that_becomes_available_is_bought(
    shop: OpenClient, hostile: HostileApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_service(hostile, configured=False)
    client = shop(hostile.url)
    with pytest.raises(Unavailable):
        await client.call(SLUG, {})
    list_service(hostile, configured=True)
    later = time.monotonic() + 5
    monkeypatch.setattr("centgate.client.free_requests.time.monotonic", lambda: later)

    answer = await client.call(SLUG, {})

    assert answer.money == "moved"


async def test_terms_state_unavailable_service(shop: OpenClient, hostile: HostileApi) -> None:
    list_service(hostile, configured=False)

    quote = await shop(hostile.url).terms(SLUG, {})

    assert "not available" in quote.objections[0]


async def test_open_payment_is_sent_to_unavailable_service(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.paid = [PlannedResponse(500, b"")] * 4
    client = shop(hostile.url)
    with pytest.raises(Unresolved):
        await client.call(SLUG, {})
    list_service(hostile, configured=False)

    answer = await client.call(SLUG, {})

    assert (answer.money, len(set(hostile.payments))) == ("moved", 1)


async def test_price_above_call_limit_is_not_signed(shop: OpenClient, hostile: HostileApi) -> None:
    client = shop(hostile.url)

    with pytest.raises(CapExceeded, match=r"raise the cap \(`max_price`\)"):
        await client.call(SLUG, {}, max_price="0.009")

    assert hostile.payments == []
    assert (await client.call(SLUG, {})).money == "moved"


async def test_call_limit_cannot_raise_cap(shop: OpenClient, hostile: HostileApi) -> None:
    with pytest.raises(CapExceeded, match="CENTGATE_CAP_PER_CALL"):
        await shop(hostile.url, caps=Caps(per_call=Decimal("0.005"))).call(SLUG, {}, max_price="1")

    assert hostile.payments == []


@pytest.mark.parametrize("limits", [{"max_price": "cheap"}, {"max_price": "-1"}, {"timeout": 0.0}])
async def test_invalid_limit_is_refused(
    shop: OpenClient, hostile: HostileApi, limits: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"is expected|number of seconds"):
        await shop(hostile.url).call(SLUG, {}, **limits)


async def test_slow_terms_are_not_signed(shop: OpenClient, hostile: HostileApi) -> None:
    def stall(_request: ReceivedRequest) -> PlannedResponse:
        time.sleep(1)
        return PlannedResponse(500, b"")

    hostile.unpaid = [stall]

    with pytest.raises(Unreachable, match=r"within the 0\.2 seconds of this call") as error:
        await shop(hostile.url).call(SLUG, {}, timeout=0.2)

    assert error.value.money == "not_moved"
    assert hostile.payments == []


async def test_payment_slower_than_call_stays_open(shop: OpenClient, hostile: HostileApi) -> None:
    def stall(request: ReceivedRequest) -> PlannedResponse:
        time.sleep(2)
        return hostile.deliver(request)

    hostile.paid = [stall]
    client = shop(hostile.url)
    with pytest.raises(Unresolved):
        await client.call(SLUG, {}, timeout=0.5)

    answer = await client.call(SLUG, {})

    assert (answer.money, len(set(hostile.payments))) == ("moved", 1)


@pytest.mark.parametrize("period", ["hour", "day"])
async def test_cap_over_time_outlives_client(
    shop: OpenClient, hostile: HostileApi, tmp_path: Path, period: str
) -> None:
    path = tmp_path / "ledger.jsonl"
    caps = Caps(per_hour=Decimal("0.01")) if period == "hour" else Caps(per_day=Decimal("0.01"))
    await shop(hostile.url, caps=caps, ledger=Ledger(path)).call(SLUG, {"n": 1})

    with pytest.raises(CapExceeded, match=f"cap per {period} reached.*CENTGATE_CAP_PER_{period.upper()}"):
        await shop(hostile.url, caps=caps, ledger=Ledger(path)).call(SLUG, {"n": 2})

    assert len(set(hostile.payments)) == 1
    age_ledger(path, timedelta(hours=1.1) if period == "hour" else timedelta(hours=24.1))
    answer = await shop(hostile.url, caps=caps, ledger=Ledger(path)).call(SLUG, {"n": 3})
    assert answer.money == "moved"


async def test_spending_is_counted_over_time(shop: OpenClient, hostile: HostileApi, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    await shop(hostile.url, ledger=Ledger(path)).call(SLUG, {"n": 1})
    age_ledger(path, timedelta(hours=2))
    client = shop(hostile.url, ledger=Ledger(path))
    await client.call(SLUG, {"n": 2})

    spent = client.spent

    assert (spent.total, spent.last_day, spent.last_hour) == (
        Decimal("0.02"),
        Decimal("0.02"),
        Decimal("0.01"),
    )


@pytest.mark.extended
async def test_many_calls_keep_order(shop: OpenClient, hostile: HostileApi) -> None:
    at_work, most, lock = 0, 0, threading.Lock()

    def deliver(request: ReceivedRequest) -> PlannedResponse:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.05)
        with lock:
            at_work -= 1
        response = hostile.deliver(request)
        body = dict(response.body) | {"data": json.loads(request.body)}
        return PlannedResponse(200, body, response.headers, accepts_payment=True)

    hostile.paid = [deliver] * 7

    outcomes = await shop(hostile.url).map(SLUG, [{"n": number} for number in range(7)], concurrency=3)

    assert [each.data for each in outcomes if isinstance(each, Answer)] == [{"n": n} for n in range(7)]
    assert most == 3


async def test_error_is_outcome_beside_answers(shop: OpenClient, hostile: HostileApi) -> None:
    client = shop(hostile.url, caps=Caps(total=Decimal("0.02")))

    outcomes = await client.map(SLUG, ({"n": number} for number in range(4)))

    assert sorted(type(each).__name__ for each in outcomes) == ["Answer", "Answer", *["CapExceeded"] * 2]
    assert len(set(hostile.payments)) == 2


async def test_zero_concurrency_is_refused(shop: OpenClient, hostile: HostileApi) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        await shop(hostile.url).map(SLUG, [{}], concurrency=0)


async def test_balance_is_read_from_owners_node(shop: OpenClient, hostile: HostileApi) -> None:
    def answer(method: str, params: list[Any]) -> Any:
        return (
            "0x" + f"{1_230_000:064x}" if method == "eth_call" else answer_at(0, used=False)(method, params)
        )

    with serve_node(answer) as url:
        balance = await shop(hostile.url, rpc=url).balance()

    assert (balance.usd, balance.network, balance.asset) == (
        Decimal("1.23"),
        NETWORK,
        USDC[NETWORK].address,
    )
    assert balance.address == BUYER_ACCOUNTS[0].address


@pytest.mark.parametrize(
    "rest",
    ["/v3/secret", ":secret/", ":1/secret", ":99999/secret"],
    ids=["path", "port", "down", "large port"],
)
async def test_error_of_node_does_not_show_its_key(shop: OpenClient, hostile: HostileApi, rest: str) -> None:
    url = hostile.url if rest.startswith("/") else "http://127.0.0.1"
    with pytest.raises(BuyerError, match="node") as error:
        await shop(hostile.url, rpc=url + rest).balance()

    assert "secret" not in str(error.value)
    assert "node's URL is invalid" in str(error.value) or "the node http://127.0.0.1:" in str(error.value)


async def test_without_node_or_wallet_there_is_no_balance(shop: OpenClient, hostile: HostileApi) -> None:
    with pytest.raises(NoNode, match="CENTGATE_WALLET_RPC"):
        await shop(hostile.url).balance()
    with pytest.raises(NoWallet):
        await shop(hostile.url, wallet=None).balance("http://127.0.0.1:9")


@EXTENDED
@pytest.mark.parametrize(("used", "total"), [(False, "0"), (True, "0.01")], ids=["unused", "used"])
async def test_only_owners_node_returns_amount_to_cap(
    shop: OpenClient,
    hostile: HostileApi,
    monkeypatch: pytest.MonkeyPatch,
    used: bool,  # noqa: FBT001
    total: str,
) -> None:
    refused = {"state": "refused", "charged": False, "retry": "new_payment"}
    hostile.paid = [error_response(402, "payment_required", note=refused)]
    client, now = shop(hostile.url), time.time()
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: now - 3700)
        with pytest.raises(BuyerError):
            await client.call(SLUG, {})
    assert client.spent.total == Decimal("0.01")

    with serve_node(answer_at(0, used=used)) as url:
        states = await client.release_unused(url)

    assert client.spent.total == Decimal(total)
    assert len(states.used if used else states.unused) == 1


@EXTENDED
async def test_release_waits_for_ledger_without_blocking(tmp_path: Path) -> None:
    path, ticks = tmp_path / "ledger.jsonl", 0

    async def count_ticks() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.01)
            ticks += 1

    with serve_node(answer_at(0, used=False)) as url, Ledger(path).entry() as entry:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count_ticks)
            with pytest.raises(LedgerUnwritable):
                await release_unused_payments(Ledger(path, patience=0.5), "0x", url)
            tasks.cancel_scope.cancel()
        assert entry.records() == []

    assert ticks > 5


@EXTENDED
async def test_late_wallet_keeps_call_limits(hostile: HostileApi) -> None:
    with Centgate(hostile.url, lambda: Wallet.from_key(private_key_of())) as client:
        limited = client.with_limits(max_price="0.001")
        with pytest.raises(CapExceeded):
            limited.call(SLUG, {})
        assert client.call(SLUG, {}).money == "moved"
        assert client.spent.total == limited.spent.total == Decimal("0.01")


@EXTENDED
async def test_wallet_function_is_called_once(shop: OpenClient, hostile: HostileApi) -> None:
    opened: list[Wallet] = []

    def open_wallet() -> Wallet:
        opened.append(Wallet.from_key(private_key_of()))
        return opened[-1]

    client = shop(hostile.url, wallet=open_wallet)
    await client.terms(SLUG, {})
    assert not opened

    await client.call(SLUG, {})
    await client.call(SLUG, {"n": 2})

    assert len(opened) == 1
    assert client.spent.total == Decimal("0.02")


# the command


@pytest.fixture
def shell(hostile: HostileApi, tmp_path: Path) -> Shell:
    return Shell(tmp_path, {"CENTGATE_API_URL": hostile.url, "CENTGATE_WALLET_KEY": private_key_of()})


@EXTENDED
def test_advice_names_used_option(shell: Shell) -> None:
    capped = shell("call", SLUG, "--body", "{}", "--max-price", "0.001")
    away = shell("call", SLUG, "--body", "{}", "--api", "http://127.0.0.1:9")
    wrong = shell("call", SLUG, "--body", "{}", CENTGATE_API_URL="http://127.0.0.1:9")

    assert "raise the cap (--max-price)" in capped.stderr
    assert away.stderr.rstrip().endswith("check --api")
    assert wrong.stderr.rstrip().endswith("check --api or CENTGATE_API_URL")


@EXTENDED
def test_quiet_prints_only_data(shell: Shell) -> None:
    done = shell("call", SLUG, "--body", "{}", "--quiet")

    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["fact", "water", "is", "wet"], "")


@EXTENDED
def test_caps_over_time_are_settings(shell: Shell) -> None:
    shell("call", SLUG, "--body", "{}")

    output = json.loads(shell("wallet", "cap", "--json", CENTGATE_CAP_PER_HOUR="0.5").stdout)

    assert (output["lastHourUsd"], output["capPerHourUsd"]) == ("0.01", "0.5")
    assert (output["lastDayUsd"], output["capPerDayUsd"]) == ("0.01", None)
    refused = shell("call", SLUG, "--body", '{"n": 2}', CENTGATE_CAP_PER_DAY="0.01")
    assert (refused.returncode, "CENTGATE_CAP_PER_DAY" in refused.stderr) == (4, True)


@EXTENDED
def test_wallet_is_shown_as_json(shell: Shell, tmp_path: Path) -> None:
    made = json.loads(shell("wallet", "new", "--path", str(tmp_path / "key"), "--json").stdout)
    output = json.loads(shell("wallet", "show", "--json").stdout)

    assert made["keyFile"] == str(tmp_path / "key")
    assert (output["address"], output["balanceUsd"]) == (BUYER_ACCOUNTS[0].address, None)
