"""The one way out: every call to an upstream has its pace, its deadline, a cap on the answer, and a breaker.

A connection that fails is tried once more. An upstream that failed many times in a row is left alone for a
moment. Statuses that mean the same everywhere become errors here; what a body means is its provider's matter.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any, ClassVar, Literal, Protocol
from urllib.parse import urlsplit

import aiohttp
import orjson
import structlog

from centgate.errors import (
    AnswerTooLong,
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderRefused,
    ProviderTimeout,
)
from centgate.meter import SILENT, Meter

USER_AGENT = f"Mozilla/5.0 (compatible; Centgate/{version('centgate')})"
"""Some hosts challenge clients that do not look like one."""
CONNECT_SECONDS = 4
PER_HOST = 100
"""Connections open at once to one host."""
CHUNK = 64 * 1024
_LOST = (aiohttp.ClientConnectionError, aiohttp.ServerTimeoutError)
"""What is tried once more: refused, reset, closed without an answer, or not there in time."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most so many calls in any span of so many seconds.

    The allowance of a short span may be used at once. Of a long one half may; the other half is spread
    evenly, so that the next turn is never far.
    """

    SHORT: ClassVar[float] = 10.0
    calls: int
    seconds: float = 60

    @property
    def at_once(self) -> int:
        """Calls that need not wait for one another."""
        return self.calls if self.seconds <= self.SHORT else (self.calls + 1) // 2

    @property
    def gap(self) -> float:
        """Seconds between those that do."""
        rest = self.calls - self.at_once
        return self.seconds / rest if rest else 0.0

    def shared_by(self, processes: int) -> Rate:
        """The part of one of several processes."""
        return Rate(max(1, self.calls // processes), self.seconds * max(1.0, processes / self.calls))


class Pace:
    """Keeps to a rate, in every span of its length."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = rate.seconds
        self._turns = deque[float](maxlen=rate.calls)
        self._at_once, self._gap = rate.at_once, rate.gap

    def reserve(self, patience: float) -> float:
        """Take the next turn: the seconds until then. Beyond `patience` the turn is not taken."""
        wait = self.wait()
        if wait <= patience:
            self.take(wait)
        return wait

    def wait(self) -> float:
        """The seconds until the next turn."""
        now = due = self._clock()
        turns = self._turns
        if len(turns) >= self._at_once and turns[-self._at_once] > now - self._seconds:
            due = max(due, turns[-1] + self._gap)
        if len(turns) == turns.maxlen:
            due = max(due, turns[0] + self._seconds)
        return due - now

    def take(self, wait: float) -> None:
        """Enter a turn in so many seconds, also one that was not asked for here."""
        due = self._clock() + wait
        self._turns.append(max(due, self._turns[-1]) if self._turns else due)


class SharedTurns(Protocol):
    """Turns that several servers take together."""

    async def reserve(self, patience: float, least: float) -> float | None:
        """As `Pace.reserve`, no sooner than in `least` seconds; None while nothing is shared."""
        ...


class Turns:
    """Turns at an upstream, by a rate that all servers keep together while they can.

    While they cannot, each process keeps to its part of the rate. By itself it never exceeds the whole, also
    when what is shared is forgotten.
    """

    def __init__(self, rate: Rate, processes: int = 1, shared: SharedTurns | None = None) -> None:
        """`processes`: of this server, which know nothing of one another unless the rate is shared."""
        self._shared = shared
        self._part = Pace(rate.shared_by(processes))
        self._whole = Pace(rate)

    async def reserve(self, patience: float) -> float:
        """As `Pace.reserve`."""
        wait = await self._shared.reserve(patience, self._whole.wait()) if self._shared else None
        if wait is None:
            wait = self._part.reserve(patience)
        elif wait <= patience:
            self._part.take(wait)
        if wait <= patience:
            self._whole.take(wait)
        return wait


class Breaker:
    """Counts failures in a row; after `LIMIT` of them one call is let through every `PAUSE` seconds."""

    LIMIT = 10
    PAUSE = 5.0

    def __init__(self, tell: Callable[[Literal[1, -1]], None] = lambda _change: None) -> None:
        """`tell` is told when it opens (1) and closes (-1)."""
        self._tell = tell
        self._failures = 0
        self._next_try = 0.0
        self._reserved_until = 0.0
        self._reserved_try: float | None = None

    @property
    def is_open(self) -> bool:
        """True from the failure that opened it until a call succeeds, also when the next trial is due."""
        return self._failures >= self.LIMIT

    @property
    def wait(self) -> float:
        """Seconds until a new request may begin the next trial; 0 when it is due, or none is needed."""
        if not self.is_open:
            return 0.0
        return max(0.0, max(self._next_try, self._reserved_until) - time.monotonic())

    def reserve_trial(self) -> None:
        """Keep the trial that is due for one request: `wait` holds others back for a pause.

        Each trial is reserved once. A request that never asks the upstream, because its payment fails, can
        thus delay the trial by one pause and no more. `lets_through` does not look at reservations.
        """
        if self.is_open and self._reserved_try != self._next_try:
            self._reserved_try = self._next_try
            self._reserved_until = time.monotonic() + self.PAUSE

    def lets_through(self) -> bool:
        """Whether to ask now; who is let through while it is open keeps others out for a pause."""
        now = time.monotonic()
        if self._failures < self.LIMIT:
            return True
        if now < self._next_try:
            return False
        self._next_try = now + self.PAUSE
        return True

    def saw(self, *, failure: bool) -> None:
        """What came of a call."""
        was_open = self._failures >= self.LIMIT
        self._failures = self._failures + 1 if failure else 0
        if self._failures == self.LIMIT:
            self._next_try = time.monotonic() + self.PAUSE
            self._tell(1)
        elif was_open and not failure:
            self._tell(-1)


@dataclass(frozen=True, slots=True)
class Reply:
    """An upstream's answer, whole."""

    name: str
    label: str
    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    def json(self) -> Any:
        """The body as JSON; ProviderError for a web page, a cut body, or nothing."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            raise ProviderError(self.name, f"{self.label} answered with {self._instead()}") from None

    def _instead(self) -> str:
        start = self.body[:200].lstrip().lower()
        if not start:
            return "an empty body"
        if start.startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
            return "a web page in place of data"
        return "text that is no JSON" if start[:1] not in b"{[" else "JSON that is cut short or broken"


class Upstream:
    """One upstream's connection to the world, shared by all requests of the process."""

    def __init__(
        self,
        name: str,
        label: str,
        session: aiohttp.ClientSession | None,
        *,
        turns: Turns | None = None,
        max_bytes: int,
        patience: float,
        meter: Meter = SILENT,
    ) -> None:
        """`patience`: seconds a call may wait for its turn. `session` is None where nothing is asked."""
        self.name, self.label = name, label
        self._session = session
        self._turns = turns
        self._breaker = Breaker(partial(meter.tripped, name))
        self._max_bytes = max_bytes
        self._patience = patience

    @property
    def breaker(self) -> Breaker:
        """The circuit breaker of this connection."""
        return self._breaker

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        accept: Collection[int] = (),
    ) -> Reply:
        """GET; statuses in `accept` are returned beside those of success, others raise ProviderFailure."""
        return await self._ask("GET", url, accept, params=params, headers=headers)

    async def post(
        self,
        url: str,
        content: Any,
        *,
        headers: Mapping[str, str] | None = None,
        accept: Collection[int] = (),
    ) -> Reply:
        """POST JSON, to read: it may be sent twice. Otherwise as `get`."""
        json_headers = {"Content-Type": "application/json", **(headers or {})}
        return await self._ask("POST", url, accept, data=orjson.dumps(content), headers=json_headers)

    async def _ask(self, method: str, url: str, accept: Collection[int], **options: Any) -> Reply:
        await self._turn()
        if not self._breaker.lets_through():
            raise ProviderError(self.name, f"{self.label} failed repeatedly and is left alone for a moment")
        started, outcome = time.monotonic(), "cut off"
        try:
            reply = await self._twice(method, url, options)
            outcome = str(reply.status)
        except ProviderFailure as failure:
            outcome = failure.code
            raise
        except asyncio.CancelledError:
            # the deadline is the caller's; whoever made it wait for most of that was too slow
            if time.monotonic() - started >= self._patience / 2:
                self._breaker.saw(failure=True)
            raise
        finally:
            structlog.get_logger().debug(
                "upstream", name=self.name, outcome=outcome, seconds=round(time.monotonic() - started, 3)
            )
        if reply.status < 500:
            self._breaker.saw(failure=False)
        if 200 <= reply.status < 300 or reply.status in accept:
            return reply
        raise self.failure(reply)

    async def _turn(self) -> None:
        if self._turns is None:
            return
        wait = await self._turns.reserve(self._patience)
        if wait > self._patience:
            raise ProviderRateLimited(
                self.name,
                f"{self.label} is asked as often as it allows; its next turn is in {wait:.0f} s",
                retry_after=int(wait) + 1,
            )
        if wait:
            await asyncio.sleep(wait)

    async def _twice(self, method: str, url: str, options: Mapping[str, Any]) -> Reply:
        try:
            return await self._once(method, url, options)
        except _LOST:
            pass
        try:
            return await self._once(method, url, options)
        except _LOST as lost:
            self._breaker.saw(failure=True)
            if isinstance(lost, TimeoutError):
                raise ProviderTimeout(self.name, f"{self.label} could not be reached in time") from None
            raise ProviderError(self.name, f"{self.label} could not be reached") from None

    async def _once(self, method: str, url: str, options: Mapping[str, Any]) -> Reply:
        assert self._session is not None, "nothing is asked in a rehearsal"
        try:
            async with self._session.request(method, url, allow_redirects=False, **options) as response:
                body = await self._read(response)
                return Reply(self.name, self.label, response.status, body, response.headers)
        except _LOST:
            raise
        except (aiohttp.ClientError, ValueError) as error:
            # a broken header, a cut body, bytes that are not what their encoding says
            structlog.get_logger().debug("unreadable", name=self.name, error=type(error).__name__)
            raise ProviderError(self.name, f"{self.label} answered in broken HTTP") from None

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        read = bytearray()
        async for chunk in response.content.iter_chunked(CHUNK):
            read += chunk
            if len(read) > self._max_bytes:
                response.close()
                raise AnswerTooLong(
                    self.name, f"{self.label} answered with more than {self._max_bytes >> 20} MB"
                )
        return bytes(read)

    def failure(self, reply: Reply) -> ProviderFailure:
        """What a status that is no success means; counts it where the upstream is in trouble."""
        name, label, status = self.name, self.label, reply.status
        if status >= 500:
            self._breaker.saw(failure=True)
        if status == 429:
            return ProviderRateLimited(
                name, f"{label} asks to slow down", retry_after=_seconds(reply.headers.get("Retry-After"))
            )
        if status in (408, 504):
            return ProviderTimeout(name, f"{label} gave up with status {status}")
        if status in (401, 402, 403):
            page = " with a web page" if reply.body[:1] == b"<" else ""
            return ProviderRefused(name, f"{label} refuses this deployment{page} (status {status})")
        return ProviderError(name, f"{label} answered with status {status}")


def joined(base: str, path: str) -> str:
    """`path` under `base`; a base that brings the beginning of the path along is taken as it was meant."""
    base = base.rstrip("/")
    prefix = urlsplit(base).path
    return base + (path.removeprefix(prefix) if prefix and (path + "/").startswith(prefix + "/") else path)


def open_session() -> aiohttp.ClientSession:
    """The connections that all upstreams share."""
    session = aiohttp.ClientSession(
        trust_env=False,
        connector=aiohttp.TCPConnector(limit=0, limit_per_host=PER_HOST),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        headers={"User-Agent": USER_AGENT, "Accept": "application/json"},
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    # aiohttp repeats a GET on its own, which would double the one repetition here; it has no other switch
    session._retry_connection = False  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return session


def _seconds(retry_after: str | None) -> int | None:
    """`Retry-After` where it is a number, at most an hour."""
    return min(int(retry_after), 3600) if retry_after and retry_after.strip().isdigit() else None
