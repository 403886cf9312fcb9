"""Quorum of nodes: an answer counts if as many nodes as required give the same one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import TypeVar

from centgate.payments.chain.payment_node import ChainUnreachable, PaymentNode

T = TypeVar("T")

HEDGE_DELAY = 1.5
"""Seconds without a response after which the next node is queried in parallel."""


class Quorum:
    """The nodes of one network, of which `size` must agree."""

    def __init__(self, nodes: Sequence[PaymentNode], size: int) -> None:
        self.nodes = nodes
        self.size = size

    async def query(self, question: Callable[[PaymentNode], Awaitable[T]], max_wait: float) -> T:
        """Return the answer that the required number of nodes give.

        As many nodes are queried as can still give it; one that fails, differs or is slow is replaced.
        `max_wait`: time limit for all nodes together, in seconds. Raises ChainUnreachable.
        """
        answers: list[T] = []
        try:
            async with asyncio.timeout(max_wait):
                return await self._query_until_quorum(question, answers)
        except TimeoutError as error:
            raise ChainUnreachable("the nodes did not respond in time", tuple(answers)) from error

    async def _query_until_quorum(
        self, question: Callable[[PaymentNode], Awaitable[T]], answers: list[T]
    ) -> T:
        remaining = iter(self.nodes)
        tasks = {asyncio.ensure_future(query_node(question, node)) for node in islice(remaining, self.size)}
        failure = ChainUnreachable("there is no node")
        try:
            while tasks:
                done, tasks = await asyncio.wait(
                    tasks, timeout=HEDGE_DELAY, return_when=asyncio.FIRST_COMPLETED
                )
                errors = {task: task.exception() for task in done}  # every exception must be retrieved
                for task, error in errors.items():
                    if isinstance(error, ChainUnreachable):
                        failure = error
                    else:
                        answers.append(task.result())
                        if answers.count(task.result()) >= self.size:
                            return task.result()
                agreeing = max(map(answers.count, answers), default=0)
                missing = self.size - agreeing - len(tasks) if done else 1
                more = islice(remaining, max(0, missing))
                tasks |= {asyncio.ensure_future(query_node(question, node)) for node in more}
        finally:
            for task in tasks:
                task.cancel()
        raise ChainUnreachable("the nodes do not agree" if answers else str(failure), tuple(answers))


async def query_node(question: Callable[[PaymentNode], Awaitable[T]], node: PaymentNode) -> T:
    """Query one node. Raises ChainUnreachable, also for an unexpected response format."""
    try:
        return await question(node)
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ChainUnreachable("the node returned an unexpected response") from error
