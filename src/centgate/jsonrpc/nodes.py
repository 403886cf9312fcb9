"""The nodes of a chain: JSON-RPC in batches, from one node after another until one answers."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from centgate.errors import (
    AnswerTooLong,
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderTimeout,
)
from centgate.jsonrpc.refusals import blocks_allowed, error_in, is_halt, is_rate, is_too_much
from centgate.sources import together
from centgate.text import cleaned
from centgate.upstream import Reply, Upstream

BATCH = 50
"""Requests in one JSON-RPC batch."""
SINGLY = 10
"""Requests under way at once to a node that takes no batches."""
SPANS = (50_000, 10_000, 5_000, 2_000, 1_000, 500, 100, 10)
"""Blocks asked for at a time, where a node does not say what it allows: the next after each refusal."""
REST = 30.0
"""Seconds that a node which failed is asked only after the others."""
MUTE = 600.0
"""Seconds that a node which gives no logs, or takes no batches, is not asked for any."""
_SPEAKING = range(400, 600)
"""Nodes say what is wrong in JSON under many a status."""

_OF_RESULTS = re.compile(r"\b(results?|logs?|records?|responses?|entries|events?)\b")
"""Words of a refusal for how much was found, and not for how many blocks were asked for."""

T = TypeVar("T")
Asked = tuple[str, list[Any]]
"""A method and its parameters."""
Log = dict[str, Any]
"""An event as nodes give it."""


@dataclass(frozen=True, slots=True)
class RpcRefused:
    """A call that fails whoever is asked: it reverts, runs out of gas, or returns more than is read."""

    code: int
    message: str


class _TooMuch(Exception):
    """The node finds the range of blocks, or what is in it, too large; carries what it says."""


@dataclass(slots=True)
class Node:
    """One node, and what is known of its habits."""

    url: str = field(repr=False)
    upstream: Upstream
    single_until: float = 0
    """Until when it is sent no batches, since it took none."""
    span: int = SPANS[0]
    """Blocks whose logs it gives at a time."""
    rests_until: float = 0
    mute_until: float = 0
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SINGLY), repr=False)

    async def ask(self, asked: Sequence[Asked], *, tolerant: bool) -> list[Any]:
        """The result of each request, in order. With `tolerant` a call that fails has RpcRefused for one."""
        batches = [asked[start : start + BATCH] for start in range(0, len(asked), BATCH)]
        answers = await at_once(self._batch(batch, tolerant=tolerant) for batch in batches)
        return [answer for batch in answers for answer in batch]

    async def logs(
        self, topics: Sequence[Any], floor: int, end: int, *, address: str | None = None
    ) -> tuple[list[Log], int]:
        """The logs of as many blocks up to `end` as it gives at a time, and the first of these blocks.

        `address` is the contract whose logs are asked for; None for those of all.
        """
        where = {} if address is None else {"address": address}
        if time.monotonic() < self.mute_until:
            raise self.failed("gives no logs")
        span = self.span
        while True:
            start = max(floor, end - span + 1)
            query = {**where, "topics": topics, "fromBlock": hex(start), "toBlock": hex(end)}
            try:
                (entries,) = await self.ask([("eth_getLogs", [query])], tolerant=False)
                return list(entries), start
            except AnswerTooLong:
                span = self._shorter(end - start + 1, "")
            except _TooMuch as refusal:
                said = str(refusal)
                span = self._shorter(end - start + 1, said)
                # a limit of blocks holds for every question; that there was too much in them only for this
                if blocks_allowed(said, end - start + 1) or not _OF_RESULTS.search(said):
                    self.span = min(self.span, span)

    def _shorter(self, refused: int, said: str) -> int:
        """The blocks to ask for after so many were; ProviderError when hardly any are left to leave out."""
        shorter = blocks_allowed(said, refused) or next((span for span in SPANS if span < refused), None)
        if shorter is None:
            self.mute_until = time.monotonic() + MUTE
            raise self.failed("gives no logs, not even of a short range")
        return shorter

    async def _batch(self, asked: Sequence[Asked], *, tolerant: bool) -> list[Any]:
        if len(asked) == 1 or time.monotonic() < self.single_until:
            return await self._singly(asked, tolerant=tolerant)
        content = [_request(number, *each) for number, each in enumerate(asked)]
        try:
            reply = await self.upstream.post(self.url, content, accept=_SPEAKING)
        except AnswerTooLong:
            if not tolerant:
                raise
            return await self._singly(asked, tolerant=tolerant)
        entries = _entries(reply)
        if len(entries) != len(asked):
            # some nodes take no batches, and each says so in its own way, unlike other refusals
            self._raise_for(reply, entries)
            answers = await self._singly(asked, tolerant=tolerant)
            self.single_until = time.monotonic() + MUTE
            return answers
        by_id = {str(entry.get("id")): entry for entry in entries}
        return [
            self._result(method, by_id[str(number)], tolerant=tolerant)
            for number, (method, _) in enumerate(asked)
        ]

    async def _singly(self, asked: Sequence[Asked], *, tolerant: bool) -> list[Any]:
        return await at_once(self._one(method, params, tolerant=tolerant) for method, params in asked)

    async def _one(self, method: str, params: list[Any], *, tolerant: bool) -> Any:
        try:
            async with self.turns:
                reply = await self.upstream.post(self.url, _request(0, method, params), accept=_SPEAKING)
        except AnswerTooLong as refusal:
            if not tolerant:
                raise
            return RpcRefused(0, refusal.message)
        entries = _entries(reply)
        if len(entries) != 1 or not {"result", "error"} & entries[0].keys():
            self._raise_for(reply, entries)
            raise (
                self.upstream.failure(reply)
                if reply.status >= 400
                else self.failed("answered with no result (not JSON-RPC)")
            )
        if reply.status == 429 or (reply.status >= 400 and not isinstance(entries[0].get("error"), dict)):
            raise self.upstream.failure(reply)
        return self._result(method, entries[0], tolerant=tolerant)

    def _raise_for(self, reply: Reply, entries: Sequence[dict[str, Any]]) -> None:
        """Raise what is meant by the whole reply, and not by the way it was asked."""
        if reply.status in (401, 402, 403, 429) or reply.status >= 500:
            raise self.upstream.failure(reply)
        for entry in entries:
            code, message = error_in(entry)
            if is_rate(code, message.lower()):
                raise ProviderRateLimited(self.upstream.name, f"{self.upstream.label} asks to slow down")

    def _result(self, method: str, entry: dict[str, Any], *, tolerant: bool) -> Any:
        """The result in a response object; what its error means otherwise."""
        if not entry.get("error"):
            if entry.get("result") is None:
                raise self.failed(f"knows no answer to {method}")
            return entry["result"]
        code, message = error_in(entry)
        said = message.lower()
        if method == "eth_getLogs" and is_too_much(code, said):
            raise _TooMuch(said)
        if is_rate(code, said):
            raise ProviderRateLimited(self.upstream.name, f"{self.upstream.label} asks to slow down")
        if tolerant and is_halt(code, said):
            return RpcRefused(code, message)
        raise self.failed(f"refuses {method}: {self._quoted(message) or f'error {code}'}")

    def failed(self, what: str) -> ProviderError:
        """The error that says that this node answered wrongly."""
        return ProviderError(self.upstream.name, f"{self.upstream.label} {what}")

    def _quoted(self, message: str) -> str | None:
        """What a node says, without what is secret in its address, which some repeat."""
        _, _, beyond = self.url.partition("//")
        for part in sorted(re.split(r"[/?&=:@]", beyond)[1:], key=len, reverse=True):
            if len(part) >= 6:
                message = message.replace(part, "\u2026")
        return cleaned(message, 120)


class Nodes:
    """The nodes of one chain, in the operator's order."""

    def __init__(self, nodes: Sequence[Node], timeout: float) -> None:
        """`timeout`: seconds for all of them together."""
        self._nodes = nodes
        self._timeout = timeout

    def __bool__(self) -> bool:
        return bool(self._nodes)

    async def first(self, asking: Callable[[Node], Awaitable[T]]) -> T:
        """What the first node answers that can; the failure of the first asked when none can.

        Of several nodes each has its share of the time, so that one that hangs leaves some to the others.
        """
        now = time.monotonic()
        order = sorted(self._nodes, key=lambda node: node.rests_until > now)
        failures: list[ProviderFailure] = []
        for node in order:
            share = self._timeout / len(order) if node is not order[-1] else None
            try:
                async with asyncio.timeout(share):
                    answer = await asking(node)
            except TimeoutError:
                message = f"{node.upstream.label} did not answer within {share:.3g} s"
                failures.append(ProviderTimeout(node.upstream.name, message))
            except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
                failures.append(node.failed("answered in a shape that is not known here"))
            except ProviderFailure as failure:
                failures.append(failure)
            else:
                node.rests_until = 0
                return answer
            node.rests_until = time.monotonic() + (failures[-1].retry_after or REST)
        raise failures[0]

    async def each(
        self, asked: Sequence[Asked], read: Callable[[Any], T], *, tolerant: bool = False
    ) -> list[T]:
        """Each request's result as `read` reads it, all from one node; it may raise ValueError and its kin.

        With `tolerant` it gets RpcRefused for a call that fails.
        """

        async def asking(node: Node) -> list[T]:
            return [read(answer) for answer in await node.ask(asked, tolerant=tolerant)]

        return await self.first(asking)


async def at_once(asking: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The answers, in order; the first failure ends the others."""
    async with together() as group:
        tasks = [group.create_task(each) for each in asking]
    return [task.result() for task in tasks]


def _request(number: int, method: str, params: list[Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _entries(reply: Reply) -> list[dict[str, Any]]:
    """The response objects of a reply; none when it is no JSON."""
    try:
        body = reply.json()
    except ProviderError:
        if reply.status < 400:
            raise
        return []
    bodies = cast(list[Any], body) if isinstance(body, list) else [body]
    return [cast(dict[str, Any], entry) for entry in bodies if isinstance(entry, dict)]
