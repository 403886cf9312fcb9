"""Nodes of a chain: the next one is tried when one fails, and requests of several callers share a batch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

from centgate.errors import ProviderFailure, ProviderTimeout
from centgate.providers.jsonrpc.client import RequestGroup, RpcNode, RpcRequest

QUIET_TURNS = 5
"""Turns of the event loop for which a request waits for a further one to the same node.

Callers that begin together ask within a few turns, however long these take on a busy machine. With a timer
the process would sleep before each round of requests, and continue with cold caches.
"""
FAILURE_COOLDOWN = 30.0
"""Seconds for which a node that failed is tried only after the others."""

T = TypeVar("T")


class RequestJoiner:
    """Joins what several callers ask a node at about the same time into one batch.

    An HTTP request costs more CPU than all that is in it. Each caller gets its own results or failure, and
    may be cancelled alone.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, list[RequestGroup]] = {}
        """By the node's id."""
        self._sending: set[asyncio.Task[None]] = set()

    async def send_requests(
        self, node: RpcNode, requests: Sequence[RpcRequest], *, tolerant: bool
    ) -> list[Any]:
        """As `RpcNode.send_requests`, when `QUIET_TURNS` brought no further request."""
        loop = asyncio.get_running_loop()
        group = RequestGroup(requests, tolerant, loop.create_future())
        if id(node) not in self._waiting:
            self._waiting[id(node)] = []
            loop.call_soon(self._await_others, node, 1, QUIET_TURNS)
        self._waiting[id(node)].append(group)
        return await group.results

    def _await_others(self, node: RpcNode, known: int, turns: int) -> None:
        """Start after so many turns, or after `QUIET_TURNS` if more callers than the `known` wait by now."""
        waiting = len(self._waiting[id(node)])
        turns = turns - 1 if waiting == known else QUIET_TURNS
        if turns:
            asyncio.get_running_loop().call_soon(self._await_others, node, waiting, turns)
        else:
            self._start(node)

    def _start(self, node: RpcNode) -> None:
        groups = [group for group in self._waiting.pop(id(node)) if not group.results.done()]
        if not groups:
            return
        task = asyncio.get_running_loop().create_task(self._send(node, groups))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

        def cancel_unwanted(_: asyncio.Future[list[Any]]) -> None:
            if all(group.results.done() for group in groups):
                task.cancel()

        for group in groups:
            group.results.add_done_callback(cancel_unwanted)

    async def _send(self, node: RpcNode, groups: Sequence[RequestGroup]) -> None:
        try:
            answers = await node.send_joined(groups)
        except Exception as failure:  # noqa: BLE001 - raised again where the callers wait
            answers = [copy_failure(failure) for _ in groups]
        for group, answer in zip(groups, answers, strict=True):
            if group.results.done():
                continue
            if isinstance(answer, Exception):
                group.results.set_exception(answer)
            else:
                group.results.set_result(answer)


class NodePool:
    """Nodes of one chain, in the configured order."""

    def __init__(
        self,
        nodes: Sequence[RpcNode],
        remaining_seconds: Callable[[], float],
        joiner: RequestJoiner | None = None,
    ) -> None:
        """`remaining_seconds` is asked at each query. With a `joiner` concurrent requests share batches."""
        self.nodes = nodes
        self.remaining_seconds = remaining_seconds
        self._joiner = joiner

    async def first_success(self, query: Callable[[RpcNode], Awaitable[T]]) -> T:
        """Return the answer of the first node that succeeds; raise the first failure if all fail.

        Each of several nodes gets a share of the time, so that one that hangs leaves time for the others.
        """
        now, timeout = time.monotonic(), self.remaining_seconds()
        order = sorted(self.nodes, key=lambda node: node.avoid_until > now)
        failures: list[ProviderFailure] = []
        for node in order:
            time_limit = timeout / len(order) if node is not order[-1] else None
            try:
                # the last node has the time that the caller gives
                async with asyncio.timeout(time_limit) if time_limit is not None else nullcontext():
                    answer = await query(node)
            except TimeoutError:
                message = f"{node.upstream.label} did not answer within {time_limit:.3g} s"
                failures.append(ProviderTimeout(node.upstream.name, message))
            except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
                failures.append(node.invalid_response("answered in a shape that is not known here"))
            except ProviderFailure as failure:
                failures.append(failure)
            else:
                node.avoid_until = 0
                return answer
            node.avoid_until = time.monotonic() + (failures[-1].retry_after or FAILURE_COOLDOWN)
        raise failures[0]

    async def fetch_each(
        self, requests: Sequence[RpcRequest], parse: Callable[[Any], T], *, tolerant: bool = False
    ) -> list[T]:
        """Return each request's result parsed by `parse`, all from one node.

        `parse` may raise ValueError, LookupError or TypeError. With `tolerant` it gets CallFailure for a call
        that fails.
        """

        async def asking(node: RpcNode) -> list[T]:
            return [parse(answer) for answer in await self.send_requests(node, requests, tolerant=tolerant)]

        return await self.first_success(asking)

    async def send_requests(
        self, node: RpcNode, requests: Sequence[RpcRequest], *, tolerant: bool
    ) -> list[Any]:
        """As `RpcNode.send_requests`, together with what others ask the node at the same time."""
        if self._joiner is None:
            return await node.send_requests(requests, tolerant=tolerant)
        return await self._joiner.send_requests(node, requests, tolerant=tolerant)


def copy_failure(failure: Exception) -> Exception:
    """Return a failure for one of several callers: each changes its own."""
    return failure.copy_for_caller() if isinstance(failure, ProviderFailure) else failure
