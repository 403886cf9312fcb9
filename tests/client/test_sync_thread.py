"""The thread of a sync client: interrupted, shared, forked, forgotten, closed."""

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
def started(program: str, url: str) -> Generator[subprocess.Popen[str]]:
    """A process with a client, in which a warning is an error; it is gone after the block."""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", BEGIN + program, url, KEY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "centgate-client"]


def test_an_interrupt_ends_the_call_and_the_client_goes_on(hostile: HostileApi) -> None:
    arrived, release = threading.Event(), threading.Event()

    def hold(asked: ReceivedRequest) -> PlannedResponse:
        arrived.set()
        release.wait(PATIENCE)
        return PlannedResponse(fault="no_response")

    hostile.paid = [hold]
    with started(INTERRUPTED, hostile.url) as process:
        assert arrived.wait(PATIENCE)

        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    release.set()

    assert (out, err) == ("interrupted\nmoved\n", "")
    assert len(set(hostile.payments)) == 1


@pytest.mark.parametrize("end", ["", "client.close()", "del client"])
def test_a_process_ends_without_a_warning(hostile: HostileApi, end: str) -> None:
    with started(f'client.call("some-facts", {{}})\n{end}', hostile.url) as process:
        out, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_process_that_was_forked_has_a_thread_of_its_own(hostile: HostileApi) -> None:
    with started(FORKED, hostile.url) as process:
        _, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, err) == (0, "")
    assert len(hostile.accepted_nonces) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_process_ends_without_its_parents_loop(hostile: HostileApi) -> None:
    with started(FORKED_UNUSED, hostile.url) as process:
        _, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, err) == (0, "")
    assert len(hostile.accepted_nonces) == 2


async def test_it_may_be_used_where_an_event_loop_runs(client: Centgate) -> None:
    with client:
        assert client.call(SLUG, {}).data == DATA


def test_a_client_that_was_not_used_has_no_thread(client: Centgate) -> None:
    before = threads()

    client.close()

    assert threads() == before == []


def test_closing_ends_the_thread(client: Centgate) -> None:
    client.call(SLUG, {})
    assert len(threads()) == 1

    client.close()
    client.close()

    assert threads() == []
    with pytest.raises(RuntimeError, match="closed"):
        client.call(SLUG, {})


def test_forgetting_a_client_ends_the_thread(hostile: HostileApi) -> None:
    Centgate(hostile.url, Wallet.from_key(KEY)).call(SLUG, {})

    gc.collect()

    assert threads() == []


def test_closing_ends_the_calls_under_way(client: Centgate, hostile: HostileApi) -> None:
    arrived, release = threading.Event(), threading.Event()
    came: list[BaseException] = []

    def hold(asked: ReceivedRequest) -> PlannedResponse:
        arrived.set()
        release.wait(30)
        return hostile.deliver(asked)

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


def test_threads_that_call_while_it_is_closed_all_end(client: Centgate) -> None:
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
def test_what_a_watch_raises_is_raised_by_the_call(hostile: HostileApi, stop: type[BaseException]) -> None:
    def watch(sentence: str) -> None:
        if sentence.startswith("signed"):
            raise stop

    with Centgate(hostile.url, Wallet.from_key(KEY), watch=watch) as client:
        with pytest.raises(stop):
            client.call(SLUG, {})
        assert client.call(SLUG, {}, payment=None).data == DATA
    assert len(hostile.payments) == 1


def test_a_watch_cannot_call_the_client(hostile: HostileApi) -> None:
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
def test_it_works_where_sniffio_is_installed(client: Centgate) -> None:
    ended: list[object] = []

    def call() -> None:
        with client:
            ended.append(client.call(SLUG, {}).money)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(10)

    assert ended == ["moved"]


def test_a_loop_that_cannot_start_is_an_error_of_the_call(
    client: Centgate, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert threads() == []


def test_connections_that_cannot_be_opened_are_an_error_of_the_call_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "unknown://proxy:1")

    with (
        Centgate("http://127.0.0.1:9", proxies="environment") as client,
        pytest.raises(ValueError, match="proxy"),
    ):
        client.services()

    assert "Traceback" not in capsys.readouterr().err
