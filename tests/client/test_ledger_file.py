"""Ledger file: crashes, several processes, a full disk, and unreadable lines."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from hostile import SLUG, HostileApi, PlannedResponse, ReceivedRequest, answer_body, error_response
from shopping import OpenClient

from centgate.client.async_client import AsyncCentgate
from centgate.client.errors import BuyerError, LedgerUnwritable, Unresolved
from centgate.client.ledger import Ledger
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS

pytestmark = pytest.mark.extended

PROGRAM = """
import json, os, signal, sys
from centgate.client import Centgate, Ledger, Patience, Wallet

url, key, path, bodies, die = sys.argv[1:]

def watch(sentence):
    if die == "signed" and sentence.startswith("signed"):
        os.kill(os.getpid(), signal.SIGKILL)

with Centgate(url, Wallet.from_key(key), ledger=Ledger(path), watch=watch) as client:
    for body in json.loads(bodies):
        client.call("some-facts", body)
"""


def start_buyer(url: str, path: Path, bodies: list[object], die: str = "") -> subprocess.Popen[bytes]:
    """Start a process that makes these purchases one by one with a ledger."""
    arguments = [url, BUYER_ACCOUNTS[0].private_key, str(path), json.dumps(bodies), die]
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "ledger.jsonl"


def list_events(path: Path) -> list[str]:
    return [record.event for record in Ledger(path).records()]


def read_content(path: Path) -> bytes:
    return path.read_bytes()


def read_mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def delete_ledger(path: Path) -> None:
    path.unlink()


def keep_first_line(path: Path) -> None:
    path.write_bytes(path.read_bytes().splitlines()[0])


def find_handle(path: Path) -> int:
    """Return the file descriptor of a file that this process has open."""
    return next(int(link.name) for link in Path("/dev/fd").iterdir() if link.exists() and link.samefile(path))


def add_junk_lines(path: Path) -> None:
    """Put unreadable lines around the records, and an incomplete one at the end."""
    first, *more = path.read_bytes().splitlines(keepends=True)
    before, between = b"\xff\xfe\n{}\n\n[]\nnull\n", b'{"time":1}\n'
    path.write_bytes(before + first + between + b"".join(more) + b'{"cut')


async def test_purchase_is_recorded(shop: OpenClient, hostile: HostileApi, path: Path) -> None:
    answer = await shop(hostile.url, ledger=Ledger(path)).call(SLUG, {"a": 1})

    signed, delivered = Ledger(path).records()
    assert answer.receipt
    assert (signed.event, signed.money, delivered.event, delivered.money) == (
        "signed",
        "unknown",
        "delivered",
        "moved",
    )
    assert signed.payment.header == hostile.payments[0]
    assert (delivered.transaction, delivered.request_id) == (answer.receipt.transaction, answer.request_id)
    assert delivered.payment.nonce == signed.payment.nonce
    assert read_mode(path) == 0o600
    assert BUYER_ACCOUNTS[0].private_key[2:].encode() not in read_content(path)


async def test_payment_is_recorded_before_it_is_sent(
    shop: OpenClient, hostile: HostileApi, path: Path
) -> None:
    values: list[str] = []

    def look(request: ReceivedRequest) -> PlannedResponse:
        values.extend(list_events(path))
        return hostile.deliver(request)

    hostile.paid = [look]

    await shop(hostile.url, ledger=Ledger(path)).call(SLUG, {})

    assert values == ["signed"]


async def test_payment_signed_before_crash_is_sent_later(
    shop: OpenClient, hostile: HostileApi, path: Path
) -> None:
    process = start_buyer(hostile.url, path, [{"a": 1}], die="signed")
    assert process.wait(60) == -signal.SIGKILL
    assert hostile.payments == []

    answer = await shop(hostile.url, ledger=Ledger(path)).call(SLUG, {"a": 1})

    assert answer.money == "moved"
    assert list_events(path) == ["signed", "delivered"]


async def test_payment_taken_before_crash_is_not_repeated(
    shop: OpenClient, hostile: HostileApi, path: Path
) -> None:
    processes: list[subprocess.Popen[bytes]] = []

    def kill(request: ReceivedRequest) -> PlannedResponse:
        os.kill(processes[0].pid, signal.SIGKILL)
        return hostile.deliver(request)

    hostile.paid = [kill]
    processes.append(start_buyer(hostile.url, path, [{"a": 1}]))
    assert processes[0].wait(60) == -signal.SIGKILL

    answer = await shop(hostile.url, ledger=Ledger(path)).call(SLUG, {"a": 1})

    assert answer.money == "moved"
    assert (len(hostile.payments), len(hostile.accepted_nonces)) == (2, 1)


def test_processes_may_share_ledger(hostile: HostileApi, path: Path) -> None:
    own = [[{"process": process, "n": number} for number in range(8)] for process in range(3)]
    processes = [start_buyer(hostile.url, path, [*bodies]) for bodies in own]

    assert [process.wait(120) for process in processes] == [0, 0, 0]
    assert sorted(list_events(path)) == ["delivered"] * 24 + ["signed"] * 24
    assert len(hostile.accepted_nonces) == 24
    assert all(json.loads(line) for line in path.read_text().splitlines())


@pytest.mark.skipif(sys.platform == "win32", reason="the lock is that of POSIX")
def test_entries_are_exclusive(path: Path) -> None:
    import fcntl

    ledger = Ledger(path)
    with ledger.entry(), path.open("rb") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def lock_ledger(path: Path) -> Generator[None]:
    """Lock the ledger in another process."""
    import fcntl

    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        yield


@pytest.mark.skipif(sys.platform == "win32", reason="the lock is that of POSIX")
async def test_long_lock_is_reported(shop: OpenClient, hostile: HostileApi, path: Path) -> None:
    with lock_ledger(path), pytest.raises(LedgerUnwritable, match="locked by other processes for") as error:
        await shop(hostile.url, ledger=Ledger(path, patience=0.1)).call(SLUG, {})

    assert error.value.money == "not_moved"
    assert hostile.payments == []


@pytest.mark.skipif(sys.platform == "win32", reason="the lock is that of POSIX")
async def test_call_waiting_for_ledger_can_be_cancelled(hostile: HostileApi, path: Path) -> None:
    async with AsyncCentgate(
        hostile.url, Wallet.from_key(BUYER_ACCOUNTS[0].private_key), ledger=Ledger(path)
    ) as client:
        with lock_ledger(path):
            with anyio.move_on_after(1) as limit:  # in time only if nothing blocks the loop
                await client.call(SLUG, {"a": 1})
            assert limit.cancelled_caught

        answer = await client.call(SLUG, {})

    assert answer.money == "moved"
    assert len(hostile.payments) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_forked_process_does_not_keep_lock(path: Path) -> None:
    import fcntl

    with Ledger(path).entry():
        kept = os.dup(find_handle(path))  # as a fork has it

    try:
        with path.open("rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(kept)


async def test_open_payment_of_another_process_is_joined(
    shop: OpenClient, hostile: HostileApi, path: Path
) -> None:
    process: list[int] = []

    def meanwhile(request: ReceivedRequest) -> PlannedResponse:
        if not process:
            process.append(start_buyer(hostile.url, path, [{"a": 1}]).wait(60))
        return hostile.deliver(request)

    hostile.paid = [meanwhile]

    await shop(hostile.url, ledger=Ledger(path)).call(SLUG, {"a": 1})

    assert process == [0]
    assert (len(hostile.payments), len(set(hostile.payments))) == (2, 1)


async def test_invalid_lines_are_skipped(
    shop: OpenClient, hostile: HostileApi, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hostile.paid = [PlannedResponse(500, b"")] * 4
    with pytest.raises(Unresolved):
        await shop(hostile.url, ledger=Ledger(path)).call(SLUG, {})
    add_junk_lines(path)

    answer = await shop(hostile.url, ledger=Ledger(path)).call(SLUG, {})

    assert answer.money == "moved"
    assert len(set(hostile.payments)) == 1
    assert list_events(path) == ["signed", "unresolved", "delivered"]
    assert "line 1 of the ledger" in caplog.text
    assert read_content(path).count(b'{"cut\n') == 1


async def test_last_line_without_end_counts(shop: OpenClient, hostile: HostileApi, path: Path) -> None:
    hostile.paid = [PlannedResponse(500, b"")] * 4
    with pytest.raises(Unresolved):
        await shop(hostile.url, ledger=Ledger(path)).call(SLUG, {})
    keep_first_line(path)

    await shop(hostile.url, ledger=Ledger(path)).call(SLUG, {})

    assert len(set(hostile.payments)) == 1
    assert list_events(path) == ["signed", "delivered"]


async def test_text_of_api_does_not_fill_ledger(shop: OpenClient, hostile: HostileApi, path: Path) -> None:
    long = "x" * 1_000_000
    note = {"state": "settled", "charged": True, "retry": "same_payment"}
    hostile.paid = [
        error_response(418, long, note=note),
        PlannedResponse(200, answer_body() | {"requestId": long}),
    ]

    for _ in range(2):
        with pytest.raises(BuyerError):
            await shop(hostile.url, ledger=Ledger(path)).call(SLUG, {})

    assert len(read_content(path)) < 20_000


async def test_deleted_ledger_is_created_again(shop: OpenClient, hostile: HostileApi, path: Path) -> None:
    client = shop(hostile.url, ledger=Ledger(path))
    await client.call(SLUG, {"a": 1})
    delete_ledger(path)

    await client.call(SLUG, {"a": 1})

    assert list_events(path) == ["signed", "delivered"]


@pytest.mark.parametrize("place", ["/dev/full", "/proc/ledger.jsonl"])
async def test_nothing_is_signed_without_writable_ledger(
    shop: OpenClient, hostile: HostileApi, place: str
) -> None:
    if not Path(place).parent.exists():
        pytest.skip("this system has no such place")

    with pytest.raises(LedgerUnwritable, match="CENTGATE_LEDGER") as error:
        await shop(hostile.url, ledger=Ledger(place)).call(SLUG, {})

    assert error.value.money == "not_moved"
    assert hostile.payments == []


async def test_full_disk_loses_no_answer(shop: OpenClient, hostile: HostileApi, path: Path) -> None:
    def fill(request: ReceivedRequest) -> PlannedResponse:
        path.unlink()
        path.symlink_to("/dev/full")
        return hostile.deliver(request)

    hostile.paid = [fill]

    answer = await shop(hostile.url, ledger=Ledger(path)).call(SLUG, {})

    assert answer.money == "moved"
    assert "cannot be written" in answer.notes[0]


async def test_another_wallet_does_not_use_open_payment(
    shop: OpenClient, hostile: HostileApi, path: Path
) -> None:
    hostile.paid = [PlannedResponse(500, b"")] * 4
    with pytest.raises(Unresolved):
        await shop(hostile.url, ledger=Ledger(path)).call(SLUG, {})
    other = Wallet.from_key(BUYER_ACCOUNTS[1].private_key)

    answer = await shop(hostile.url, ledger=Ledger(path), wallet=other).call(SLUG, {})

    assert answer.receipt
    assert answer.receipt.payer == other.address
