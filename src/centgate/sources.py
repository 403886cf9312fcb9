"""Asking several providers: at the same time, or one after another until one answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import ParamSpec, TypeVar

from centgate.errors import CentgateError, NoData, ProviderFailure, ProviderUnconfigured

P = ParamSpec("P")
T = TypeVar("T")


@asynccontextmanager
async def together() -> AsyncGenerator[asyncio.TaskGroup]:
    """Ask at the same time, each with `create_task`: the first failure ends the others and is raised.

    What an answer can do without is wrapped in `attempt`. The answers are there, as `result()`, after the
    block.
    """
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failures:
        raise next(
            (each for each in failures.exceptions if isinstance(each, CentgateError)), failures.exceptions[0]
        ) from None


async def attempt(
    method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T | NoData | ProviderFailure:
    """Ask a method: the answer, or, as a value, why there is none: nothing known, or a failure."""
    try:
        return await method(*args, **kwargs)
    except (NoData, ProviderFailure) as missing:
        return missing


def first_of(*methods: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """The same question to several providers in turn, until one answers.

    Both a failure and "nothing known" pass on to the next. Raises NoData when all that can be asked here
    know nothing. Raises the first failure when any failed, which then says why the others failed as well:
    what that one knows cannot be told.
    """

    async def ask(*args: P.args, **kwargs: P.kwargs) -> T:
        missing: list[NoData | ProviderFailure] = []
        for method in methods:
            answer = await attempt(method, *args, **kwargs)
            if not isinstance(answer, NoData | ProviderFailure):
                return answer
            missing.append(answer)
        raise _told(missing)

    return ask


def first_at_once(*methods: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """The same question to several at the same time: the answer of the first, in their order, that has one.

    Those that come after it are left where they are. Raises what `first_of` raises.
    """

    async def ask(*args: P.args, **kwargs: P.kwargs) -> T:
        async with together() as group:
            asked = [group.create_task(attempt(method, *args, **kwargs)) for method in methods]
            try:
                return await first_of(*(partial(_result, task) for task in asked))()
            finally:
                for task in asked:
                    task.cancel()

    return ask


async def _result(task: asyncio.Task[T | NoData | ProviderFailure]) -> T:
    answer = await task
    if isinstance(answer, NoData | ProviderFailure):
        raise answer
    return answer


def _told(missing: list[NoData | ProviderFailure]) -> NoData | ProviderFailure:
    """The one to raise of several, with what the other failures say."""
    first = min(missing, key=_certainty)
    failures = [each.message for each in missing if _certainty(each) == 0]
    if len(failures) < 2:
        return first
    told = first.again()
    told.message = "; ".join(dict.fromkeys(failures))
    return told


def _certainty(missing: NoData | ProviderFailure) -> int:
    """Failures come first, since they leave open what is known; who cannot be asked at all has no say."""
    if isinstance(missing, ProviderUnconfigured):
        return 2
    return 1 if isinstance(missing, NoData) else 0
