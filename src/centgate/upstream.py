"""HTTP client for upstreams: every call has a rate limit, a deadline, a maximum size and a circuit breaker.

A failed connection is retried once. After many consecutive failures an upstream is not called for a while.
Statuses with a common meaning become errors here; the provider interprets the body.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
import orjson
import structlog

from centgate import __version__
from centgate.circuit_breaker import CircuitBreaker
from centgate.errors import (
    AnswerTooLong,
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderRefused,
    ProviderTimeout,
)
from centgate.instrumentation import NULL_METER, Meter
from centgate.rate_limiter import RateLimiter
from centgate.timestamps import parse_retry_after

USER_AGENT = f"Mozilla/5.0 (compatible; Centgate/{__version__})"
"""Starts like a browser's, since some hosts block other clients."""
CONNECT_TIMEOUT = 4
MAX_CONNECTIONS_PER_HOST = 100
"""Maximum number of open connections to one host."""
CHUNK_BYTES = 64 * 1024
MAX_RETRY_AFTER = 3600
"""Maximum seconds that an upstream's `Retry-After` counts."""
_CONNECTION_ERRORS = (aiohttp.ClientConnectionError, aiohttp.ServerTimeoutError)
"""Errors that are retried once: connection refused, reset, closed without a response, or timed out."""


@dataclass(frozen=True, slots=True)
class UpstreamResponse:
    """A complete response of an upstream."""

    name: str
    label: str
    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    def parse_json(self) -> Any:
        """Parse the body as JSON. Raises ProviderError for a web page, a truncated or an empty body."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            raise ProviderError(self.name, f"{self.label} answered with {self._describe_body()}") from None

    def parse_object(self) -> dict[str, Any]:
        """Parse the body as a JSON object. Raises as `parse_json`, and TypeError for other JSON."""
        body = self.parse_json()
        if not isinstance(body, dict):
            raise TypeError("the response is not a JSON object")
        return cast(dict[str, Any], body)

    def _describe_body(self) -> str:
        start = self.body[:200].lstrip().lower()
        if not start:
            return "an empty body"
        if start.startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
            return "a web page instead of data"
        return "text that is not JSON" if start[:1] not in b"{[" else "truncated or invalid JSON"


class Upstream:
    """HTTP client of one upstream, shared by all requests of the process."""

    def __init__(
        self,
        name: str,
        label: str,
        session: aiohttp.ClientSession | None,
        *,
        rate_limiter: RateLimiter | None = None,
        max_bytes: int,
        max_wait: float,
        meter: Meter = NULL_METER,
    ) -> None:
        """`session` is None if nothing is called.

        `max_wait`: maximum wait for the rate limit, in seconds. A call that its caller cancels after half of
        that time counts as a failure in the circuit breaker.
        """
        self.name, self.label = name, label
        self._session = session
        self._rate_limiter = rate_limiter
        self._breaker = CircuitBreaker(partial(meter.record_breaker_change, name))
        self._max_bytes = max_bytes
        self._max_wait = max_wait
        self._log = structlog.get_logger()

    @property
    def breaker(self) -> CircuitBreaker:
        """The circuit breaker of this connection."""
        return self._breaker

    @property
    def seconds_until_allowed(self) -> float:
        """Seconds until the rate limit allows a call; 0 if a call now would still be made."""
        wait = self._rate_limiter.estimate_wait() if self._rate_limiter else 0.0
        return wait if wait > self._max_wait else 0.0

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        accept: Collection[int] = (),
        max_bytes: int | None = None,
    ) -> UpstreamResponse:
        """Send a GET; returns success statuses and those in `accept`, raises ProviderFailure for others.

        `max_bytes` is a maximum size of this response that is below the upstream's.
        """
        return await self._call(
            "GET", url, accept, max_bytes=max_bytes or self._max_bytes, params=params, headers=headers
        )

    async def post(
        self,
        url: str,
        content: Any,
        *,
        headers: Mapping[str, str] | None = None,
        accept: Collection[int] = (),
    ) -> UpstreamResponse:
        """Send a POST with JSON, for reading only: it may be sent twice. Otherwise as `get`."""
        json_headers = {"Content-Type": "application/json", **(headers or {})}
        body = orjson.dumps(content)
        return await self._call(
            "POST", url, accept, max_bytes=self._max_bytes, data=body, headers=json_headers
        )

    async def _call(
        self, method: str, url: str, accept: Collection[int], *, max_bytes: int, **options: Any
    ) -> UpstreamResponse:
        if self._breaker.is_paused:  # a call that is refused takes no place of the rate limit
            raise self._circuit_error()
        await self._acquire()
        if not self._breaker.allow_call():
            raise self._circuit_error()
        started, outcome = time.monotonic(), "cut off"
        try:
            reply = await self._send_with_retry(method, url, max_bytes, options)
            outcome = str(reply.status)
        except ProviderFailure as failure:
            outcome = failure.code
            raise
        except asyncio.CancelledError:
            # too slow for the deadline of the caller; a call that is cancelled early was just not needed
            if time.monotonic() - started >= self._max_wait / 2:
                self._breaker.record_outcome(failure=True)
            raise
        finally:
            self._log.debug(
                "an upstream was called",
                name=self.name,
                outcome=outcome,
                seconds=round(time.monotonic() - started, 3),
            )
        if reply.status < 500:
            self._breaker.record_outcome(failure=False)
        if 200 <= reply.status < 300 or reply.status in accept:
            return reply
        raise self.error_for_status(reply)

    def _circuit_error(self) -> ProviderError:
        return ProviderError(self.name, f"{self.label} is unavailable (circuit open after repeated failures)")

    async def _acquire(self) -> None:
        if self._rate_limiter is None:
            return
        wait = await self._rate_limiter.acquire(self._max_wait)
        if wait > self._max_wait:
            raise ProviderRateLimited(
                self.name,
                f"{self.label} rate limit reached; next request allowed in {wait:.0f} s",
                retry_after=int(wait) + 1,
            )
        if wait:
            await asyncio.sleep(wait)

    async def _send_with_retry(
        self, method: str, url: str, max_bytes: int, options: Mapping[str, Any]
    ) -> UpstreamResponse:
        try:
            return await self._send(method, url, max_bytes, options)
        except _CONNECTION_ERRORS:
            pass
        try:
            return await self._send(method, url, max_bytes, options)
        except _CONNECTION_ERRORS as lost:
            self._breaker.record_outcome(failure=True)
            if isinstance(lost, TimeoutError):
                raise ProviderTimeout(self.name, f"{self.label} could not be reached in time") from None
            raise ProviderError(self.name, f"{self.label} could not be reached") from None

    async def _send(
        self, method: str, url: str, max_bytes: int, options: Mapping[str, Any]
    ) -> UpstreamResponse:
        assert self._session is not None, "no calls during startup validation"
        try:
            async with self._session.request(method, url, allow_redirects=False, **options) as response:
                body = await self._read(response, max_bytes)
                return UpstreamResponse(self.name, self.label, response.status, body, response.headers)
        except _CONNECTION_ERRORS:
            raise
        except (aiohttp.ClientError, ValueError) as error:
            # an invalid header, a truncated body, or bytes that do not match their encoding
            self._log.debug("an upstream sent invalid HTTP", name=self.name, error=type(error).__name__)
            raise ProviderError(self.name, f"{self.label} sent an invalid HTTP response") from None

    async def _read(self, response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
        read = bytearray()
        async for chunk in response.content.iter_chunked(CHUNK_BYTES):
            read += chunk
            if len(read) > max_bytes:
                response.close()
                raise AnswerTooLong(self.name, f"{self.label} answered with more than {max_bytes >> 20} MB")
        return bytes(read)

    def error_for_status(self, reply: UpstreamResponse) -> ProviderFailure:
        """Return the error for a non-success status; 5xx count as failures in the circuit breaker."""
        name, label, status = self.name, self.label, reply.status
        if status >= 500:
            self._breaker.record_outcome(failure=True)
        if status == 429:
            return ProviderRateLimited(
                name,
                f"{label} rate limit reached (status 429)",
                retry_after=ceil(min(parse_retry_after(reply.headers.get("Retry-After")), MAX_RETRY_AFTER))
                or None,
            )
        if status in (408, 504):
            return ProviderTimeout(name, f"{label} gave up with status {status}")
        if status in (401, 402, 403):
            page = " with a web page" if reply.body[:1] == b"<" else ""
            return ProviderRefused(name, f"{label} refuses this deployment{page} (status {status})")
        return ProviderError(name, f"{label} answered with status {status}")


def join_url(base: str, path: str) -> str:
    """Join `base` and `path`; a prefix of the path that is already part of the base is not repeated."""
    base = base.rstrip("/")
    prefix = urlsplit(base).path
    return base + (path.removeprefix(prefix) if prefix and (path + "/").startswith(prefix + "/") else path)


def open_session() -> aiohttp.ClientSession:
    """Open the HTTP session that all upstreams share."""
    session = aiohttp.ClientSession(
        trust_env=False,
        connector=aiohttp.TCPConnector(limit=0, limit_per_host=MAX_CONNECTIONS_PER_HOST),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
        headers={"User-Agent": USER_AGENT, "Accept": "application/json"},
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    # aiohttp retries a GET by itself, which would double the retry here; there is no public switch
    session._retry_connection = False  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return session
