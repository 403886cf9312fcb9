"""Context managers of two functions. One of a generator takes three to four times the processor time, which
counts on the way of a paid call (docs/performance.md).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class AsyncScope(Generic[T]):
    """An `async with` whose block begins with one function and ends with another, also after an error."""

    __slots__ = ("_begin", "_end", "_value")

    def __init__(
        self, begin: Callable[[], Awaitable[T]], end: Callable[[T, BaseException | None], Awaitable[None]]
    ) -> None:
        """`begin` returns the value of `as`; `end` gets it, and the error that leaves the block, if any."""
        self._begin, self._end = begin, end

    async def __aenter__(self) -> T:
        self._value = await self._begin()
        return self._value

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._end(self._value, error)
