"""Spending caps hold under concurrency and against any API; unsigned payments do not count."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from hostile import SLUG, HostileApi, PlannedResponse, error_response
from shopping import OpenClient

from centgate.client.async_client import AsyncCentgate
from centgate.client.caps import Caps, SignedAmounts, Spent
from centgate.client.errors import BuyerError, CapExceeded, LedgerUnwritable
from centgate.client.ledger import Ledger
from centgate.client.responses import Answer
from centgate.client.sync_client import Centgate
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS

SEVEN = Caps(total=Decimal("0.07"))
CENT = Decimal("0.01")
WALLET = Wallet.from_key(BUYER_ACCOUNTS[0].private_key)


@pytest.mark.extended
def test_concurrent_threads_keep_cap(hostile: HostileApi) -> None:
    together = threading.Barrier(50)

    def buy(number: int) -> Answer | BuyerError:
        together.wait(30)
        try:
            return client.call(SLUG, {"n": number})
        except BuyerError as error:
            return error

    with Centgate(hostile.url, WALLET, caps=SEVEN) as client, ThreadPoolExecutor(50) as threads:
        came = [*threads.map(buy, range(50))]

    assert sum(isinstance(each, Answer) for each in came) == 7
    assert {type(each) for each in came} == {Answer, CapExceeded}
    assert len(hostile.accepted_nonces) == len(set(hostile.payments)) == 7


@pytest.mark.extended
async def test_concurrent_tasks_keep_cap(hostile: HostileApi) -> None:
    came: list[Answer | BuyerError] = []

    async def buy(number: int) -> None:
        try:
            came.append(await client.call(SLUG, {"n": number}))
        except BuyerError as error:
            came.append(error)

    async with AsyncCentgate(hostile.url, WALLET, caps=SEVEN) as client, anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(buy, number)

    assert sum(isinstance(each, Answer) for each in came) == 7
    assert {type(each) for each in came} == {Answer, CapExceeded}
    assert len(hostile.accepted_nonces) == len(set(hostile.payments)) == 7


def test_equal_concurrent_requests_share_open_payment(hostile: HostileApi) -> None:
    arrived, release = threading.Event(), threading.Event()

    def hold(request: object) -> PlannedResponse:
        arrived.set()
        release.wait(30)
        return hostile.deliver(request)  # pyright: ignore[reportArgumentType]

    hostile.paid = [hold]
    with Centgate(hostile.url, WALLET) as client, ThreadPoolExecutor(1) as threads:
        first = threads.submit(client.call, SLUG, {"a": 1})
        assert arrived.wait(30)
        second = client.call(SLUG, {"a": 1})
        release.set()

        assert first.result(30).data == second.data
    assert len(set(hostile.payments)) == 1


def test_payment_counts_once() -> None:
    signed = SignedAmounts()

    for _ in range(2):
        signed.add("0xAB", "0x1", CENT)

    assert (signed.total("0xab"), signed.nonces("0xAb")) == (CENT, {"0x1"})


async def test_unrecorded_payment_does_not_count(
    shop: OpenClient, hostile: HostileApi, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.jsonl"
    path.symlink_to("/dev/full")
    client = shop(hostile.url, caps=Caps(total=CENT), ledger=Ledger(path))
    with pytest.raises(LedgerUnwritable):
        await client.call(SLUG, {})
    path.unlink()

    answer = await client.call(SLUG, {})

    assert answer.money == "moved"


async def test_refused_payment_counts(
    shop: OpenClient, hostile: HostileApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    note = {"state": "refused", "charged": False, "retry": "new_payment"}
    hostile.paid = [error_response(402, "payment_required", note=note)]
    client = shop(hostile.url, caps=Caps(total=CENT))
    with pytest.raises(BuyerError, match=r"the API .* reports that no money moved"):
        await client.call(SLUG, {})
    monkeypatch.setattr(time, "time", lambda: now + 3600)

    with pytest.raises(CapExceeded):
        await client.call(SLUG, {})

    assert len(set(hostile.payments)) == 1


@pytest.mark.parametrize("usd", ["-0.01", "NaN", "Infinity"])
def test_cap_must_be_amount(usd: str) -> None:
    with pytest.raises(ValueError, match="amount in US dollars"):
        Caps(per_call=Decimal(usd))


def test_caps_are_read_from_texts_and_numbers() -> None:
    options: dict[str, Any] = {"total": "$1", "per_hour": 5, "per_day": 0.5}

    caps = Caps(**options)

    assert (caps.total, caps.per_hour, caps.per_day) == (Decimal(1), Decimal(5), Decimal("0.5"))
    assert caps.objection(Decimal("0.02"), spent=Spent()) is None
