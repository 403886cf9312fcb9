"""Groups of equal statements in PostgreSQL: one transaction and one round trip for all that wait.

One by one, a paid call's two statements cost the server three times as much: most of this is that each wakes
a process and has a commit of its own. The statements of a group are committed together or not at all.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import structlog
from msgspec import Struct, field

from centgate.instrumentation import Meter
from centgate.payments.database.sql import BoundStatement, CompiledStatement, ResultRow

MAX_STATEMENTS = 64
"""Maximum number of statements in a group."""
MAX_GROUPS = 2
"""Maximum number of groups of one statement at the server: where one waits for a lock, others go on."""
GROUP_TIMEOUT = 2.5
"""Seconds for a group; its units then run again, each by itself."""


class GroupFailed(Exception):
    """A statement of the group failed, or its outcome is unknown: the unit must be run again, by itself."""


class Connect(Protocol):
    """Lends a connection, within a time in seconds."""

    def __call__(self, *, max_wait: float) -> AbstractAsyncContextManager[Any]: ...


class _Waiting(Struct):
    bound: BoundStatement
    rows: asyncio.Future[list[ResultRow]]


class _Queue(Struct):
    """The statements of one text that wait for the next group."""

    waiting: deque[_Waiting] = field(default_factory=deque[_Waiting])
    running: int = 0
    """Number of tasks that execute groups until none waits."""


class StatementGroups:
    """Executes statements in groups; a group starts with all equal statements of a turn of the event loop."""

    def __init__(self, connect: Connect, meter: Meter) -> None:
        self._connect = connect
        self._meter = meter
        self._queues: dict[CompiledStatement, _Queue] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def fetch_rows(self, bound: BoundStatement) -> list[ResultRow]:
        """Execute a statement with others like it and return its rows. Raises GroupFailed."""
        queue = self._queues.setdefault(bound.statement, _Queue())
        waiting = _Waiting(bound, asyncio.get_running_loop().create_future())
        queue.waiting.append(waiting)
        if queue.running < MAX_GROUPS:
            queue.running += 1
            task = asyncio.create_task(self._execute_waiting(queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await waiting.rows

    async def _execute_waiting(self, queue: _Queue) -> None:
        try:
            while queue.waiting:
                size = min(MAX_STATEMENTS, len(queue.waiting))
                await self._execute_group([queue.waiting.popleft() for _ in range(size)])
        finally:  # in the turn that found none waiting: a callback of the task would be called a turn later
            queue.running -= 1

    async def _execute_group(self, group: Sequence[_Waiting]) -> None:
        """Execute a group, and give each statement its rows or GroupFailed."""
        started = time.perf_counter()
        try:
            async with self._connect(max_wait=GROUP_TIMEOUT) as connection:
                found = await _fetch_group([each.bound for each in group], connection)
                self._meter.record_commit(time.perf_counter() - started, len(group))
                for each, rows in zip(group, found, strict=True):
                    _hand_over(each, rows)
        except Exception as error:  # noqa: BLE001 - each unit finds its own error when it runs by itself
            # the class alone: a message of the database may quote the values of a statement
            structlog.get_logger().warning(
                "a group of statements failed", statements=len(group), error=type(error).__name__
            )
        finally:
            for each in group:
                _hand_over(each, None)  # nothing if it has its rows


async def _fetch_group(group: Sequence[BoundStatement], connection: Any) -> list[list[ResultRow]]:
    """Return the rows of each statement; they are durable."""
    statement = group[0].statement
    if len(group) == 1:
        values = group[0].list_values()
        return [await connection.fetch(statement.postgresql, *values, timeout=GROUP_TIMEOUT)]
    numbered = sorted(enumerate(group), key=lambda each: each[1].lock_order)
    arguments = [[*bound.list_values(), number] for number, bound in numbered]
    rows = await connection.fetchmany(statement.postgresql_numbered, arguments, timeout=GROUP_TIMEOUT)
    found: list[list[ResultRow]] = [[] for _ in group]
    for row in rows:
        number: int = row[0]
        found[number].append(row)
    return found


def _hand_over(waiting: _Waiting, rows: list[ResultRow] | None) -> None:
    """Give a statement its rows, None if the group failed; its unit may have stopped waiting."""
    if waiting.rows.done():
        return
    if rows is None:
        waiting.rows.set_exception(GroupFailed())
    else:
        waiting.rows.set_result(rows)
