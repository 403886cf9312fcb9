"""Sandbox: tasks run in other processes, and are killed at their limits without an effect on others."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
import sandboxed

from centgate.sandbox import ProcessNotStarted, Sandbox, TaskDied, TaskTimedOut

pytestmark = pytest.mark.extended

SLOW_IMPORT = """
import pathlib, time
pathlib.Path("importing").touch()
end = time.monotonic() + 10
while not pathlib.Path("event_loop_ran").exists():
    if time.monotonic() > end:
        pathlib.Path("gave_up").touch()
        break
    time.sleep(0.01)
"""
"""Module whose import ends when the event loop has run."""
FIRST_TASK = """
import asyncio, pathlib
from centgate.sandbox import Sandbox

async def main():
    sandbox = Sandbox(1, megabytes=512, modules=("slow_import",))
    task = asyncio.create_task(sandbox.run_task(5, abs, -3))
    while not pathlib.Path("importing").exists():
        await asyncio.sleep(0.01)
    pathlib.Path("event_loop_ran").touch()
    print(await task)
    await sandbox.close()

if __name__ == "__main__":
    asyncio.run(main())
"""
"""Program that starts a sandbox whose fork server imports that module."""


@pytest.fixture
async def sandbox() -> AsyncGenerator[Sandbox]:
    """A sandbox with one process of half a gigabyte."""
    opened = Sandbox(1, megabytes=512)
    try:
        yield opened
    finally:
        await opened.close()


async def test_task_runs_in_another_process(sandbox: Sandbox) -> None:
    assert await sandbox.run_task(5, sandboxed.double_number, 21) == 42
    assert await sandbox.run_task(5, sandboxed.worker_process_id) != os.getpid()


@pytest.mark.parametrize(
    ("work", "slowdown", "told"),
    [
        (sandboxed.hold_interpreter_lock, 100, r"more than 0\.5 s"),
        (sandboxed.run_in_thread, 100, r"more than 0\.5 s"),
        (sandboxed.run_forever, 3, r"more than 1\.5 s"),
    ],
)
async def test_too_slow_task_is_killed_and_next_one_runs(
    work: Callable[[], Any], slowdown: float, told: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.sandbox.MAX_SLOWDOWN", slowdown)
    with pytest.raises(TaskTimedOut, match=told):
        await sandbox.run_task(0.5, work)

    assert await sandbox.run_task(5, sandboxed.double_number, 1) == 2


async def test_limit_is_processor_time_of_each_task(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine must not end tasks that need little of it."""
    monkeypatch.setattr("centgate.sandbox.MAX_SLOWDOWN", 100)
    for _ in range(2):
        assert await sandbox.run_task(0.5, sandboxed.sleep, 0.7) >= 0.7
        assert await sandbox.run_task(0.5, sandboxed.compute, 0.35) >= 0.35
    assert await sandbox.run_task(0.5, sandboxed.sleep, 0.7) >= 0.7


@pytest.mark.parametrize("work", [sandboxed.allocate_too_much, sandboxed.leak_memory, sandboxed.exit_process])
async def test_task_beyond_memory_limit_ends_alone(work: Callable[[], Any], sandbox: Sandbox) -> None:
    with pytest.raises(TaskDied):
        await sandbox.run_task(20, work)

    assert await sandbox.run_task(5, sandboxed.double_number, 1) == 2


async def test_exception_of_task_is_raised(sandbox: Sandbox) -> None:
    with pytest.raises(KeyError, match="missing"):
        await sandbox.run_task(5, sandboxed.raise_unexpected)


async def test_cancelled_task_is_killed(sandbox: Sandbox) -> None:
    await sandbox.run_task(5, sandboxed.double_number, 1)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await sandbox.run_task(60, sandboxed.run_forever)

    assert await sandbox.run_task(5, sandboxed.double_number, 1) == 2


async def test_event_loop_runs_while_task_holds_interpreter_lock(sandbox: Sandbox) -> None:
    await sandbox.run_task(5, sandboxed.double_number, 1)
    work = asyncio.create_task(sandbox.run_task(1, sandboxed.hold_interpreter_lock))
    longest, last = 0.0, time.monotonic()

    while not work.done():
        await asyncio.sleep(0)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()

    with pytest.raises(TaskTimedOut):
        work.result()
    assert longest < 0.5


def test_event_loop_runs_while_fork_server_imports(tmp_path: Path) -> None:
    (tmp_path / "slow_import.py").write_text(SLOW_IMPORT)
    (tmp_path / "script.py").write_text(FIRST_TASK)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}

    finished = subprocess.run(
        [sys.executable, "script.py"], env=environment, capture_output=True, text=True, check=False
    )

    assert (finished.stdout, finished.stderr) == ("3\n", "")
    assert not (tmp_path / "gave_up").exists()


async def test_waiting_task_gets_its_turn(sandbox: Sandbox) -> None:
    together = [sandbox.run_task(5, sandboxed.double_number, number) for number in range(20)]

    assert await asyncio.gather(*together) == [2 * number for number in range(20)]


async def test_closing_ends_the_processes() -> None:
    sandbox = Sandbox(1, megabytes=512)
    worker = await sandbox.run_task(5, sandboxed.worker_process_id)

    await sandbox.close()

    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


async def test_closing_while_processes_start_ends_them() -> None:
    sandbox = Sandbox(1, megabytes=512)
    before = multiprocessing.active_children()
    first = asyncio.create_task(sandbox.run_task(5, sandboxed.double_number, 1))
    await asyncio.sleep(0)

    first.cancel()
    await sandbox.close()

    assert multiprocessing.active_children() == before


async def test_failed_start_is_reported_and_retried() -> None:
    sandbox = Sandbox(1, megabytes=512)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        with pytest.raises(ProcessNotStarted):
            await sandbox.run_task(5, sandboxed.double_number, 1)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

        assert await sandbox.run_task(5, sandboxed.double_number, 1) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        await sandbox.close()


async def test_task_that_a_broken_pool_forgets_is_reported(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool breaks after it has accepted the task, and before a thread of it has taken the task."""
    worker = await sandbox.run_task(5, sandboxed.worker_process_id)
    # the state is checked before the pool breaks, as in the race
    monkeypatch.setattr("pebble.ProcessPool._check_pool_status", sandboxed.skip_check)
    os.kill(worker, signal.SIGKILL)
    await asyncio.sleep(1)  # until the pool has noticed

    async with asyncio.timeout(20):
        with pytest.raises(ProcessNotStarted):
            await sandbox.run_task(5, sandboxed.double_number, 1)
    monkeypatch.undo()

    assert await sandbox.run_task(5, sandboxed.double_number, 1) == 2


async def test_killed_fork_server_is_restarted(sandbox: Sandbox) -> None:
    fork_server = await sandbox.run_task(5, sandboxed.fork_server_id)
    assert fork_server != os.getpid()

    os.kill(fork_server, signal.SIGKILL)
    await asyncio.to_thread(os.waitid, os.P_PID, fork_server, os.WEXITED | os.WNOWAIT)
    # the first tasks may end with the processes; the pool is new for the next one
    await asyncio.gather(
        *(sandbox.run_task(5, sandboxed.exit_process) for _ in range(3)), return_exceptions=True
    )

    assert await sandbox.run_task(5, sandboxed.fork_server_id) not in (fork_server, 1)


async def test_closed_sandbox_starts_nothing() -> None:
    sandbox = Sandbox(1, megabytes=512)
    await sandbox.run_task(5, sandboxed.double_number, 1)
    await sandbox.close()

    with pytest.raises(ProcessNotStarted):
        await sandbox.run_task(5, sandboxed.double_number, 1)
