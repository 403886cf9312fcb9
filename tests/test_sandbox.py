"""Work in a sandbox is done, or killed, and nobody else waits for it."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

import pytest
import sandboxed

from centgate.sandbox import ProcessNotStarted, Sandbox, TaskDied, TaskTimedOut

pytestmark = pytest.mark.extended


@pytest.fixture
async def sandbox() -> AsyncGenerator[Sandbox]:
    """One process with half a gigabyte."""
    opened = Sandbox(1, megabytes=512)
    try:
        yield opened
    finally:
        await opened.close()


async def test_work_is_done_in_another_process(sandbox: Sandbox) -> None:
    assert await sandbox.run_task(5, sandboxed.double_number, 21) == 42
    assert await sandbox.run_task(5, sandboxed.worker_process_id) != os.getpid()


@pytest.mark.parametrize("work", [sandboxed.run_forever, sandboxed.hold_interpreter_lock])
async def test_work_that_takes_too_long_is_killed_and_the_next_is_done(
    work: Callable[[], Any], sandbox: Sandbox
) -> None:
    with pytest.raises(TaskTimedOut, match=r"more than 0\.5 s"):
        await sandbox.run_task(0.5, work)

    assert await sandbox.run_task(5, sandboxed.double_number, 1) == 2


@pytest.mark.parametrize("work", [sandboxed.allocate_too_much, sandboxed.leak_memory, sandboxed.exit_process])
async def test_work_that_takes_too_much_memory_ends_alone(work: Callable[[], Any], sandbox: Sandbox) -> None:
    with pytest.raises(TaskDied):
        await sandbox.run_task(20, work)

    assert await sandbox.run_task(5, sandboxed.double_number, 1) == 2


async def test_what_the_work_raises_is_raised(sandbox: Sandbox) -> None:
    with pytest.raises(KeyError, match="missing"):
        await sandbox.run_task(5, sandboxed.raise_unexpected)


async def test_work_that_nobody_waits_for_is_killed(sandbox: Sandbox) -> None:
    await sandbox.run_task(5, sandboxed.double_number, 1)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await sandbox.run_task(60, sandboxed.run_forever)

    assert await sandbox.run_task(5, sandboxed.double_number, 1) == 2


async def test_the_event_loop_goes_on_while_work_holds_the_interpreter(sandbox: Sandbox) -> None:
    await sandbox.run_task(5, sandboxed.double_number, 1)
    work = asyncio.create_task(sandbox.run_task(1, sandboxed.hold_interpreter_lock))
    longest, last = 0.0, time.monotonic()

    while not work.done():
        await asyncio.sleep(0)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()

    with pytest.raises(TaskTimedOut):
        work.result()
    assert longest < 0.5


async def test_waiting_work_gets_its_turn(sandbox: Sandbox) -> None:
    together = [sandbox.run_task(5, sandboxed.double_number, number) for number in range(20)]

    assert await asyncio.gather(*together) == [2 * number for number in range(20)]


async def test_closing_ends_the_processes() -> None:
    sandbox = Sandbox(1, megabytes=512)
    worker = await sandbox.run_task(5, sandboxed.worker_process_id)

    await sandbox.close()

    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


async def test_what_cannot_be_started_is_said_and_tried_again() -> None:
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


async def test_a_killed_fork_server_is_started_anew(sandbox: Sandbox) -> None:
    fork_server = await sandbox.run_task(5, sandboxed.fork_server_id)
    assert fork_server != os.getpid()

    os.kill(fork_server, signal.SIGKILL)
    await asyncio.to_thread(os.waitid, os.P_PID, fork_server, os.WEXITED | os.WNOWAIT)
    with suppress(TaskDied):
        await sandbox.run_task(5, sandboxed.exit_process)

    assert await sandbox.run_task(5, sandboxed.fork_server_id) not in (fork_server, 1)


async def test_a_closed_sandbox_starts_nothing_again() -> None:
    sandbox = Sandbox(1, megabytes=512)
    await sandbox.run_task(5, sandboxed.double_number, 1)
    await sandbox.close()

    with pytest.raises(ProcessNotStarted):
        await sandbox.run_task(5, sandboxed.double_number, 1)
