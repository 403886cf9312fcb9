"""Query several providers: concurrently, or one after another until one returns a result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from contextvars import Context
from functools import partial
from typing import Any, ParamSpec, TypeVar

from centgate.errors import CentgateError, NoData, ProviderFailure, ProviderUnconfigured

P = ParamSpec("P")
T = TypeVar("T")


class _QueryGroup(asyncio.TaskGroup):
    """Task group that knows its tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: set[asyncio.Task[Any]] = set()

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        task = super().create_task(coro, name=name, context=context)
        self.tasks.add(task)
        return task

    async def wait(self) -> None:
        """Wait for all tasks, and for those that they create."""
        while pending := {task for task in self.tasks if not task.done()}:
            await asyncio.wait(pending)


@asynccontextmanager
async def open_task_group() -> AsyncGenerator[asyncio.TaskGroup]:
    """Open a task group for concurrent queries: the first failure cancels the others and is raised.

    Wrap optional queries in `attempt`. The results are available by `result()` after the block.
    """
    try:
        async with _QueryGroup() as group:
            yield group
            # Not in `__aexit__`: if a task fails there, Python 3.11 leaves the caller's count of
            # cancellations one too high, so that a timeout around it ends as CancelledError.
            await group.wait()
    except BaseExceptionGroup as failures:
        raise next(
            (each for each in failures.exceptions if isinstance(each, CentgateError)), failures.exceptions[0]
        ) from None


async def attempt(
    method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T | NoData | ProviderFailure:
    """Call a provider method; return its result, or NoData or ProviderFailure as a value."""
    try:
        return await method(*args, **kwargs)
    except (NoData, ProviderFailure) as missing:
        return missing


def found_or_none(answer: T | NoData | ProviderFailure) -> T | None:
    """Return the result of `attempt`, None for NoData and ProviderFailure."""
    return None if isinstance(answer, NoData | ProviderFailure) else answer


def require_any(*answers: object) -> None:
    """Raise the error that `first_of` raises if none of these results of `attempt` is a result."""
    missing = [answer for answer in answers if isinstance(answer, NoData | ProviderFailure)]
    if missing and len(missing) == len(answers):
        raise _combine_failures(missing)


def first_of(*methods: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Combine provider methods: try them in order until one returns a result.

    A failure or NoData moves on to the next. Raises NoData if all configured providers have no data. If any
    failed, raises the first failure, with the messages of all failures: whether the failed provider has data
    is unknown.
    """

    async def query(*args: P.args, **kwargs: P.kwargs) -> T:
        missing: list[NoData | ProviderFailure] = []
        for method in methods:
            answer = await attempt(method, *args, **kwargs)
            if not isinstance(answer, NoData | ProviderFailure):
                return answer
            missing.append(answer)
        raise _combine_failures(missing)

    return query


def first_concurrent(*methods: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Combine provider methods: call them concurrently, and return the first result in their order.

    Calls after that one are cancelled. Raises the same errors as `first_of`.
    """

    async def query(*args: P.args, **kwargs: P.kwargs) -> T:
        async with open_task_group() as group:
            tasks = [group.create_task(attempt(method, *args, **kwargs)) for method in methods]
            try:
                return await first_of(*(partial(_await_result, task) for task in tasks))()
            finally:
                for task in tasks:
                    task.cancel()

    return query


async def _await_result(task: asyncio.Task[T | NoData | ProviderFailure]) -> T:
    answer = await task
    if isinstance(answer, NoData | ProviderFailure):
        raise answer
    return answer


def _combine_failures(missing: list[NoData | ProviderFailure]) -> NoData | ProviderFailure:
    """Return the error to raise for several, with the messages of all failures."""
    first = min(missing, key=_rank_error)
    failures = [each.message for each in missing if _rank_error(each) == 0]
    if len(failures) < 2:
        return first
    combined = first.copy_for_caller()
    combined.message = "; ".join(dict.fromkeys(failures))
    return combined


def _rank_error(missing: NoData | ProviderFailure) -> int:
    """Rank errors: failures before NoData (they leave the answer unknown), unconfigured providers last."""
    if isinstance(missing, ProviderUnconfigured):
        return 2
    return 1 if isinstance(missing, NoData) else 0
