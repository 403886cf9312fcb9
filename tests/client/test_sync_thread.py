"""The thread of a sync client: interrupts, sharing, forks, garbage collection, closing."""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pytest
from hostile import DATA, SLUG, HostileApi, PlannedResponse, ReceivedRequest

from centgate.client.sync_client import Centgate
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS

pytestmark = pytest.mark.extended

KEY = BUYER_ACCOUNTS[0].private_key
PATIENCE = 60
BEGIN = """
import logging, os, signal, sys
from centgate.client import Centgate, Wallet

signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs in the background ignores it
logging.getLogger("asyncio").setLevel(logging.ERROR)  # that a machine is slow is no fault
client = Centgate(sys.argv[1], Wallet.from_key(sys.argv[2]))
"""
INTERRUPTED = """
try:
    client.call("some-facts", {})
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(client.call("some-facts", {}).money, flush=True)
"""
FORKED = """
client.call("some-facts", {"n": 1})
child = os.fork()
client.call("some-facts", {"n": child and 2})
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
client.call("some-facts", {"n": 3})
"""


FORKED_UNUSED = """
client.call("some-facts", {"n": 1})
child = os.fork()
if not child:
    client.close()
    del client
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
client.call("some-facts", {"n": 2})
"""


@pytest.fixture
def client(hostile: HostileApi) -> Centgate:
    return Centgate(hostile.url, Wallet.from_key(KEY))


@contextmanager
def start_program(program: str, url: str) -> Generator[subprocess.Popen[str]]:
    """Start a process with a client, in which a warning is an error; stop it at the end."""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", BEGIN + program, url, KEY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def list_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "centgate-client"]


def test_interrupt_ends_call_and_client_continues(hostile: HostileApi) -> None:
    arrived, release = threading.Event(), threading.Event()

    def hold(request: ReceivedRequest) -> PlannedResponse:
        arrived.set()
        release.wait(PATIENCE)
        return PlannedResponse(fault="no_response")

    hostile.paid = [hold]
    with start_program(INTERRUPTED, hostile.url) as process:
        assert arrived.wait(PATIENCE)

        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    release.set()

    assert (out, err) == ("interrupted\nmoved\n", "")
    assert len(set(hostile.payments)) == 1


@pytest.mark.parametrize("end", ["", "client.close()", "del client"])
def test_process_ends_without_warning(hostile: HostileApi, end: str) -> None:
    with start_program(f'client.call("some-facts", {{}})\n{end}', hostile.url) as process:
        out, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_forked_process_has_own_thread(hostile: HostileApi) -> None:
    with start_program(FORKED, hostile.url) as process:
        _, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, err) == (0, "")
    assert len(hostile.accepted_nonces) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_forked_process_ends_without_parents_loop(hostile: HostileApi) -> None:
    with start_program(FORKED_UNUSED, hostile.url) as process:
        _, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, err) == (0, "")
    assert len(hostile.accepted_nonces) == 2


async def test_client_works_inside_event_loop(client: Centgate) -> None:
    with client:
        assert client.call(SLUG, {}).data == DATA


def test_unused_client_has_no_thread(client: Centgate) -> None:
    before = list_threads()

    client.close()

    assert list_threads() == before == []


def test_closing_ends_thread(client: Centgate) -> None:
    client.call(SLUG, {})
    assert len(list_threads()) == 1

    client.close()
    client.close()

    assert list_threads() == []
    with pytest.raises(RuntimeError, match="closed"):
        client.call(SLUG, {})


def test_collected_client_ends_thread(hostile: HostileApi) -> None:
    Centgate(hostile.url, Wallet.from_key(KEY)).call(SLUG, {})

    gc.collect()

    assert list_threads() == []


def test_closing_ends_running_calls(client: Centgate, hostile: HostileApi) -> None:
    arrived, release = threading.Event(), threading.Event()
    came: list[BaseException] = []

    def hold(request: ReceivedRequest) -> PlannedResponse:
        arrived.set()
        release.wait(30)
        return hostile.deliver(request)

    def call() -> None:
        try:
            client.call(SLUG, {})
        except RuntimeError as error:
            came.append(error)

    hostile.paid = [hold]
    thread = threading.Thread(target=call)
    thread.start()
    assert arrived.wait(30)

    client.close()
    thread.join(30)
    release.set()

    assert "was closed during a call" in str(came[0])
    assert [record.event for record in client.ledger.records()] == ["signed"]


def test_concurrent_calls_end_on_close(client: Centgate) -> None:
    ended: list[Exception | None] = []

    def call(number: int) -> None:
        try:
            client.call(SLUG, {"n": number})
            ended.append(None)
        except RuntimeError as error:
            ended.append(error)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    client.close()
    for thread in threads:
        thread.join(30)

    assert len(ended) == 20
    assert all(error is None or "closed" in str(error) for error in ended)


@pytest.mark.parametrize("stop", [SystemExit, KeyboardInterrupt, ZeroDivisionError])
def test_error_of_callback_is_raised_by_call(hostile: HostileApi, stop: type[BaseException]) -> None:
    def watch(sentence: str) -> None:
        if sentence.startswith("signed"):
            raise stop

    with Centgate(hostile.url, Wallet.from_key(KEY), watch=watch) as client:
        with pytest.raises(stop):
            client.call(SLUG, {})
        assert client.call(SLUG, {}, payment=None).data == DATA
    assert len(hostile.payments) == 1


def test_callback_cannot_call_client(hostile: HostileApi) -> None:
    def watch(sentence: str) -> None:
        client.services()

    with (
        Centgate(hostile.url, Wallet.from_key(KEY), watch=watch) as client,
        pytest.raises(RuntimeError, match="cannot call the client itself"),
    ):
        client.call(SLUG, {})


@pytest.fixture
def sniffio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-in for sniffio, which other packages install: it finds asyncio only within a task."""

    class NotFound(RuntimeError):
        pass

    def find() -> str:
        if asyncio.current_task() is None:
            raise NotFound
        return "asyncio"

    current: ContextVar[Any] = ContextVar("current", default=None)
    found = SimpleNamespace(
        current_async_library=find, AsyncLibraryNotFoundError=NotFound, current_async_library_cvar=current
    )
    monkeypatch.setattr("anyio._core._eventloop.sniffio", found)


@pytest.mark.usefixtures("sniffio")
def test_client_works_with_sniffio(client: Centgate) -> None:
    ended: list[object] = []

    def call() -> None:
        with client:
            ended.append(client.call(SLUG, {}).money)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(10)

    assert ended == ["moved"]


def test_loop_that_cannot_start_is_error_of_call(client: Centgate, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[str] = []

    def fail() -> None:
        raise OSError(24, "Too many open files")

    def call() -> None:
        try:
            client.call(SLUG, {})
        except OSError as error:
            raised.append(str(error))
        client.close()

    monkeypatch.setattr(asyncio, "new_event_loop", fail)
    monkeypatch.setattr(asyncio.events, "new_event_loop", fail)
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(10)

    assert raised == ["[Errno 24] Too many open files"]
    assert list_threads() == []


def test_failed_connection_pool_is_error_of_call_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "unknown://proxy:1")

    with (
        Centgate("http://127.0.0.1:9", proxies="environment") as client,
        pytest.raises(ValueError, match="proxy"),
    ):
        client.services()

    assert "Traceback" not in capsys.readouterr().err
