"""Buy the answers to many requests with a limit on those at work at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import anyio

from centgate.client.errors import BuyerError
from centgate.client.responses import Answer


async def buy_all(
    call: Callable[[Mapping[str, Any]], Awaitable[Answer]],
    bodies: Iterable[Mapping[str, Any]],
    *,
    concurrency: int,
) -> list[Answer | BuyerError]:
    """Buy an answer to each body and return the outcomes in the order of the bodies.

    An error is an outcome, because the other answers are paid for. Raises ValueError for a concurrency
    below 1, and the first exception that is no BuyerError, when all calls have ended.
    """
    if concurrency < 1:
        raise ValueError(f"concurrency is the number of calls at once, at least 1, not {concurrency}")
    queue = list(bodies)
    outcomes: dict[int, Answer | BuyerError] = {}
    failures: list[Exception] = []
    numbers = iter(range(len(queue)))

    async def work() -> None:
        for number in numbers:
            try:
                outcomes[number] = await call(queue[number])
            except BuyerError as error:
                outcomes[number] = error
            except Exception as error:  # noqa: BLE001 - raised when the others have ended
                failures.append(error)

    async with anyio.create_task_group() as tasks:
        for _ in range(min(concurrency, len(queue))):
            tasks.start_soon(work)
    if failures:
        raise failures[0]
    return [outcomes[number] for number in range(len(queue))]
