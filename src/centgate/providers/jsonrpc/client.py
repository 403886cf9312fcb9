"""JSON-RPC client of one node: sends batches, and learns what the node does not accept."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from msgspec import Struct

from centgate import jsonrpc
from centgate.errors import AnswerTooLong, ProviderError, ProviderFailure, ProviderRateLimited
from centgate.fallback import open_task_group
from centgate.providers.jsonrpc.errors import (
    is_execution_failure,
    is_range_too_large,
    is_rate_limit,
    is_revert,
    parse_block_limit,
)
from centgate.sanitize import quote_line
from centgate.upstream import Upstream, UpstreamResponse

BATCH_SIZE = 50
"""Requests in one JSON-RPC batch."""
MAX_CONCURRENT = 10
"""Concurrent requests to a node that does not accept batches."""
LOG_RANGES = (50_000, 10_000, 5_000, 2_000, 1_000, 500, 100, 10)
"""Blocks per eth_getLogs call if a node does not say what it allows; the next is tried after each refusal."""
CAPABILITY_TTL = 600.0
"""Seconds for which a node without logs, or without batches, is remembered as such."""
_ERROR_STATUSES = range(400, 600)
"""Nodes return JSON errors with many different statuses."""

_RESULT_COUNT = re.compile(r"\b(results?|logs?|records?|responses?|entries|events?)\b")
"""Words of an error about the number of results, as against the number of blocks."""
_QUERY_WORDS = re.compile(r"\b(timeout|timed out|too long|time limit|deadline)\b")
"""Words of an error about the time that one query takes."""

T = TypeVar("T")
RpcRequest = tuple[str, list[Any]]
"""A method and its parameters."""
RawLog = dict[str, Any]
"""An event log as returned by a node."""


class CallFailure(Struct, frozen=True):
    """Call that fails on every node: it reverts, runs out of gas, or returns too much data."""

    code: int
    message: str
    data: str | None = None
    """Revert data in hexadecimal digits, from a node that gives it."""


class CallFeatures(Struct, frozen=True):
    """Features of a node's eth_call beyond the standard."""

    create_calls: bool = False
    """True if it runs a call without recipient, with value, from an address with code."""
    overrides: bool = False
    """True if it knows overrides of code and balance."""
    coins: int = 0
    """Coins of that address, in wei: the most that a call from it can send."""


class _RangeTooLarge(Exception):
    """The node rejects a block range, or the number of its results, as too large; carries its message."""


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """Requests of one caller that wait to be sent with those of others."""

    requests: Sequence[RpcRequest]
    tolerant: bool
    results: asyncio.Future[list[Any]] = field(repr=False)


@dataclass(slots=True)
class RpcNode:
    """One node and its known limitations."""

    url: str = field(repr=False)
    upstream: Upstream
    no_batches_until: float = 0
    """Monotonic time until which no batches are sent, since it rejected one."""
    log_range: int = LOG_RANGES[0]
    """Blocks per eth_getLogs call that it accepts."""
    avoid_until: float = 0
    no_logs_until: float = 0
    no_access_lists_until: float = 0
    """Monotonic time until which it is not asked for access lists, since it refused one."""
    call_features: CallFeatures | None = None
    """None until they are probed."""
    call_features_until: float = 0
    """Monotonic time until which they are not probed again."""
    no_joins_until: float = 0
    """Monotonic time until which no requests of several callers are joined, since it rejected that."""
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT), repr=False)

    async def send_requests(self, requests: Sequence[RpcRequest], *, tolerant: bool) -> list[Any]:
        """Return the result of each request, in order; with `tolerant`, CallFailure for a call that fails."""
        batches = [requests[start : start + BATCH_SIZE] for start in range(0, len(requests), BATCH_SIZE)]
        results = await run_concurrently(self._send_batch(batch, tolerant=tolerant) for batch in batches)
        return [result for batch in results for result in batch]

    async def send_joined(self, groups: Sequence[RequestGroup]) -> list[list[Any] | Exception]:
        """Send the requests of several callers as one batch; return the results of each, or its failure.

        If the node refuses the batch, or its answer is too long, each caller gets a batch of its own.
        """
        requests = [request for group in groups for request in group.requests]
        if len(groups) == 1 or len(requests) > BATCH_SIZE or time.monotonic() < self.no_joins_until:
            return await self._send_apart(groups)
        content = [jsonrpc.build_request(*request, number) for number, request in enumerate(requests)]
        try:
            reply = await self.upstream.post(self.url, content, accept=_ERROR_STATUSES)
        except AnswerTooLong:
            return await self._send_apart(groups)
        entries = _response_objects(reply)
        if len(entries) != len(requests):
            self._raise_if_refused(reply, entries)
            self.no_joins_until = time.monotonic() + CAPABILITY_TTL
            return await self._send_apart(groups)
        in_order = iter(jsonrpc.sort_responses(entries, len(requests)))
        return [self._parse_group(group, [next(in_order) for _ in group.requests]) for group in groups]

    async def _send_apart(self, groups: Sequence[RequestGroup]) -> list[list[Any] | Exception]:
        async def send(group: RequestGroup) -> list[Any] | Exception:
            try:
                return await self.send_requests(group.requests, tolerant=group.tolerant)
            except Exception as failure:  # noqa: BLE001 - raised again where the caller waits
                return failure

        return await run_concurrently(send(group) for group in groups)

    def _parse_group(
        self, group: RequestGroup, entries: Sequence[dict[str, Any]]
    ) -> list[Any] | ProviderFailure:
        try:
            return [
                self._parse_result(method, entry, tolerant=group.tolerant)
                for (method, _), entry in zip(group.requests, entries, strict=True)
            ]
        except ProviderFailure as failure:
            return failure

    async def get_logs(
        self, topics: Sequence[Any], floor: int, end: int, *, address: str | None
    ) -> tuple[list[RawLog], int]:
        """Return the logs of as many blocks up to `end` as the node allows, and the first of these blocks.

        `address` limits the logs to one contract.
        """
        address_filter = {} if address is None else {"address": address}
        if time.monotonic() < self.no_logs_until:
            raise self.invalid_response("does not provide event logs")
        length = self.log_range
        while True:
            start = max(floor, end - length + 1)
            log_filter = {**address_filter, "topics": topics, "fromBlock": hex(start), "toBlock": hex(end)}
            try:
                (entries,) = await self.send_requests([("eth_getLogs", [log_filter])], tolerant=False)
                if not isinstance(entries, list):  # an empty object is not "no logs"
                    raise self.invalid_response("returned event logs that are not a list")
                return cast(list[RawLog], entries), start
            except AnswerTooLong:
                length = self._shorter_range(end - start + 1, "")
            except _RangeTooLarge as refusal:
                message = str(refusal)
                length = self._shorter_range(end - start + 1, message)
                # a limit of blocks holds for every request; results and time only for this one
                if parse_block_limit(message, end - start + 1) or not _is_about_one_query(message):
                    self.log_range = min(self.log_range, length)

    def _shorter_range(self, refused: int, message: str) -> int:
        """Return the next shorter range after a refused one; ProviderError if no range is left."""
        length = parse_block_limit(message, refused) or next(
            (each for each in LOG_RANGES if each < refused), None
        )
        if length is None:
            if not _is_about_one_query(message):
                self.no_logs_until = time.monotonic() + CAPABILITY_TTL
            raise self.invalid_response("does not provide event logs, not even for a short block range")
        return length

    async def _send_batch(self, requests: Sequence[RpcRequest], *, tolerant: bool) -> list[Any]:
        if len(requests) == 1 or time.monotonic() < self.no_batches_until:
            return await self._send_each(requests, tolerant=tolerant)
        content = [jsonrpc.build_request(*request, number) for number, request in enumerate(requests)]
        try:
            reply = await self.upstream.post(self.url, content, accept=_ERROR_STATUSES)
        except AnswerTooLong:
            if not tolerant:
                raise
            return await self._send_each(requests, tolerant=tolerant)
        entries = _response_objects(reply)
        if len(entries) != len(requests):
            # some nodes accept no batches, and each reports that in its own way, unlike other errors
            self._raise_if_refused(reply, entries)
            results = await self._send_each(requests, tolerant=tolerant)
            self.no_batches_until = time.monotonic() + CAPABILITY_TTL
            return results
        in_order = jsonrpc.sort_responses(entries, len(requests))
        return [
            self._parse_result(method, entry, tolerant=tolerant)
            for (method, _), entry in zip(requests, in_order, strict=True)
        ]

    async def _send_each(self, requests: Sequence[RpcRequest], *, tolerant: bool) -> list[Any]:
        return await run_concurrently(
            self._send_one(method, params, tolerant=tolerant) for method, params in requests
        )

    async def _send_one(self, method: str, params: list[Any], *, tolerant: bool) -> Any:
        try:
            async with self.slots:
                reply = await self.upstream.post(
                    self.url, jsonrpc.build_request(method, params), accept=_ERROR_STATUSES
                )
        except AnswerTooLong as refusal:
            if not tolerant:
                raise
            return CallFailure(0, refusal.message)
        entries = _response_objects(reply)
        if len(entries) != 1 or not {"result", "error"} & entries[0].keys():
            self._raise_if_refused(reply, entries)
            raise (
                self.upstream.error_for_status(reply)
                if reply.status >= 400
                else self.invalid_response("returned no result (not JSON-RPC)")
            )
        if reply.status == 429 or (reply.status >= 400 and not isinstance(entries[0].get("error"), dict)):
            raise self.upstream.error_for_status(reply)
        return self._parse_result(method, entries[0], tolerant=tolerant)

    def _raise_if_refused(self, reply: UpstreamResponse, entries: Sequence[dict[str, Any]]) -> None:
        """Raise the failure that concerns the whole reply rather than the batch format."""
        if reply.status in (401, 402, 403, 429) or reply.status >= 500:
            raise self.upstream.error_for_status(reply)
        for entry in entries:
            error = jsonrpc.parse_error(entry.get("error"))
            if is_rate_limit(error.code, error.message.lower()):
                raise ProviderRateLimited(self.upstream.name, f"{self.upstream.label} asks to slow down")

    def _parse_result(self, method: str, entry: dict[str, Any], *, tolerant: bool) -> Any:
        """Return the result of a response object, or raise its error."""
        try:
            return jsonrpc.require_result(entry)
        except jsonrpc.RpcError as error:
            return self._classify_error(method, error, tolerant=tolerant)
        except ValueError:
            raise self.invalid_response(f"returned no result for {method}") from None

    def _classify_error(self, method: str, error: jsonrpc.RpcError, *, tolerant: bool) -> CallFailure:
        """Return the failure of the call itself with `tolerant`; raise every other error."""
        code, message, lowered = error.code, error.message, error.message.lower()
        if method == "eth_getLogs" and is_range_too_large(code, lowered):
            raise _RangeTooLarge(lowered)
        if tolerant and is_revert(code, lowered):  # first, since the words are the contract's
            return CallFailure(code, message, error.data)
        if is_rate_limit(code, lowered):
            raise ProviderRateLimited(self.upstream.name, f"{self.upstream.label} asks to slow down")
        if tolerant and is_execution_failure(code, lowered):
            return CallFailure(code, message, error.data)
        raise self.invalid_response(f"refuses {method}: {self._redact(message) or f'error {code}'}")

    def invalid_response(self, problem: str) -> ProviderError:
        """Build the error for a wrong answer of this node."""
        return ProviderError(self.upstream.name, f"{self.upstream.label} {problem}")

    def _redact(self, message: str) -> str | None:
        """Return a node's message in quotes, without secret parts of its URL, which some nodes repeat."""
        _, _, rest = self.url.partition("//")
        parts = re.split(r"[/?&=:@]", rest)
        is_host_first = "@" not in re.split(r"[/?]", rest)[0]  # else a user name, which may be a key
        for part in sorted(parts[1:] if is_host_first else parts, key=len, reverse=True):
            if len(part) >= 6:
                message = message.replace(part, "\u2026")
        return quote_line(message, 120)


async def run_concurrently(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently and return their results in order; the first failure cancels the others."""
    listed = list(coroutines)
    if len(listed) == 1:
        return [await listed[0]]
    async with open_task_group() as group:
        tasks = [group.create_task(each) for each in listed]
    return [task.result() for task in tasks]


def _is_about_one_query(message: str) -> bool:
    """True if a node refuses the results or the time of one query, which says nothing of others."""
    return not message or bool(_RESULT_COUNT.search(message) or _QUERY_WORDS.search(message))


def _response_objects(reply: UpstreamResponse) -> list[dict[str, Any]]:
    """Return the response objects of a reply; empty for an error that is not JSON."""
    try:
        body = reply.parse_json()
    except ProviderError:
        if reply.status < 400:
            raise
        return []
    return jsonrpc.list_responses(body)
