"""Fetch untrusted URLs, from public addresses only."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from centgate.safefetch.bodies import ACCEPTED, gather, read_coding
from centgate.safefetch.connecting import connected, tls_context
from centgate.safefetch.exchange import Exchange
from centgate.safefetch.failure import FetchFailed
from centgate.safefetch.fairness import Fairness
from centgate.safefetch.policy import Policy
from centgate.safefetch.politeness import Politeness
from centgate.safefetch.resolving import Resolve, Resolver, admitted
from centgate.safefetch.target import Target, read_target

__all__ = ["FetchFailed", "Fetched", "Fetcher", "Resolve", "open_fetcher"]

MEGABYTE = 1 << 20
MAX_REDIRECTS = 5
MAX_ERROR_BYTES = 64 * 1024
"""Maximum body size of an error response."""
MAX_LOCATION_LENGTH = 8192
_BODYLESS_STATUSES = frozenset({204, 205, 304})
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Fetched:
    """Response of a site, with any status."""

    url: str
    """URL after redirects, without a fragment."""
    status: int
    content_type: str | None
    """Raw header, with its parameters."""
    body: bytes = field(repr=False)
    """Decompressed; at most 64 KB for an error, and empty for an error of another media type."""
    headers: Mapping[str, str] = field(repr=False)
    """Case-insensitive names."""


@dataclass(frozen=True, slots=True)
class _FetchOptions:
    most_bytes: int
    types: tuple[str, ...]

    def accepts(self, content_type: str | None) -> bool:
        media = (content_type or "").partition(";")[0].strip().lower()
        families = (media, media.partition("/")[0] + "/*")
        return not media or not self.types or any(family in self.types for family in families)


class Fetcher:
    """HTTP client for untrusted URLs.

    Fetches share no state: no connections, no cookies, no DNS results.
    """

    def __init__(
        self,
        policy: Policy,
        user_agent: str,
        *,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Create a fetcher; `resolve` and `tls` replace the system's resolver and its CAs."""
        if not (user_agent.isascii() and user_agent.isprintable()):
            raise ValueError("a user agent may contain only printable ASCII")
        self._policy, self._user_agent = policy, user_agent
        self._resolver = Resolver()
        self._resolve = resolve or self._resolver
        self._tls = tls or tls_context()
        self._politeness = Politeness()
        self._fairness = Fairness()

    async def fetch(
        self,
        url: str,
        *,
        seconds: float,
        most_bytes: int = 5 * MEGABYTE,
        types: Collection[str] = (),
    ) -> Fetched:
        """GET a URL. Raises FetchFailed if there is no readable response.

        `media_types` are the accepted types, `text/*` for a family; empty accepts all. A response of another
        type raises FetchFailed with `unsupported`, except for errors (status 400 and up), whose body is then
        empty. `timeout` is in seconds and includes everything: waiting for a slot, DNS lookups, redirects.
        """
        options = _FetchOptions(most_bytes, tuple(each.lower() for each in types))
        try:
            async with asyncio.timeout(seconds):
                return await self._fetch_following(url, options)
        except TimeoutError:
            raise FetchFailed(
                "timeout", f"{_host_label(url)} did not answer within {seconds:.3g} s"
            ) from None

    async def close(self) -> None:
        """Stop the resolver threads; connections end with their fetches."""
        self._resolver.close()

    async def _fetch_following(self, url: str, options: _FetchOptions) -> Fetched:
        target = self._check_url(url)
        for _ in range(MAX_REDIRECTS + 1):
            async with self._politeness.turn(target.host, label=target.shown):
                answer = await self._send(target, options)
            if isinstance(answer, Fetched):
                return answer
            target = self._follow_redirect(target, answer)
        raise FetchFailed("failed", f"{target.shown} redirects more than {MAX_REDIRECTS} times")

    def _check_url(self, url: str) -> Target:
        target = read_target(url)
        if target is None:
            raise FetchFailed("failed", "the address is not a valid URL")
        if rejection := self._policy.objection_to(target):
            raise FetchFailed("blocked_address", f"the address must not be fetched: {rejection}")
        return target

    def _follow_redirect(self, target: Target, location: str) -> Target:
        """Return the target of a redirect, checked like the first URL."""
        redirect = read_target(location, target.url)
        if redirect is None:
            raise FetchFailed("failed", f"{target.shown} redirects to an invalid URL")
        if self._policy.objection_to(redirect):
            message = f"{target.shown} redirects to an address that must not be fetched"
            raise FetchFailed("blocked_address", message)
        return redirect

    async def _send(self, target: Target, options: _FetchOptions) -> Fetched | str:
        """Return the response, or the location of a redirect."""
        await self._fairness.turn()
        addresses = await admitted(target, self._policy, self._resolve)
        async with connected(target, addresses, self._policy, self._tls) as connection:
            exchange = Exchange(target, connection, self._fairness)
            await exchange.ask(self._request_headers(options))
            if 300 <= exchange.status < 400 and exchange.status not in _BODYLESS_STATUSES:
                return _redirect_location(target, exchange)
            return await self._read_response(target, exchange, options)

    async def _read_response(self, target: Target, exchange: Exchange, options: _FetchOptions) -> Fetched:
        content_type = exchange.headers.get("Content-Type") or None
        body = bytearray()
        try:
            await self._read_body(target, exchange, options, into=body)
        except FetchFailed:
            if exchange.status < 400:
                raise
            del body[MAX_ERROR_BYTES:]  # the content of an error page matters less than its status
        return Fetched(target.url, exchange.status, content_type, bytes(body), exchange.headers)

    async def _read_body(
        self, target: Target, exchange: Exchange, options: _FetchOptions, *, into: bytearray
    ) -> None:
        """Read the body into a buffer, which keeps the bytes before a failure."""
        host, headers, error = target.shown, exchange.headers, exchange.status >= 400
        if exchange.status in _BODYLESS_STATUSES:
            return
        if not options.accepts(headers.get("Content-Type")):
            raise FetchFailed("unsupported", f"{host} answered with {headers['Content-Type'][:80]}")
        if headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
            raise FetchFailed("unsupported", f"{host} answered with an unsupported transfer coding")
        coding = read_coding(headers.get("Content-Encoding", ""), host)
        most_bytes = min(options.most_bytes, MAX_ERROR_BYTES) if error else options.most_bytes
        if not error and _content_length(headers) > most_bytes:
            raise FetchFailed(
                "too_large", f"{host} announces {_content_length(headers):,} bytes, which is too many"
            )
        await gather(exchange.pieces(), coding, most_bytes, into=into, host=host, fairness=self._fairness)

    def _request_headers(self, options: _FetchOptions) -> Mapping[str, str]:
        return {
            "User-Agent": self._user_agent,
            "Accept": ", ".join((*options.types, "*/*;q=0.1")) if options.types else "*/*",
            "Accept-Encoding": ACCEPTED,
            "Connection": "close",
        }


def _redirect_location(target: Target, exchange: Exchange) -> str:
    location = exchange.headers.get("Location")
    if exchange.status not in _REDIRECT_STATUSES or not location:
        raise FetchFailed(
            "failed", f"{target.shown} answered with status {exchange.status} without a valid location"
        )
    if len(location) > MAX_LOCATION_LENGTH:
        raise FetchFailed("failed", f"{target.shown} redirects to an address that is too long")
    return location


def _content_length(headers: Mapping[str, str]) -> int:
    length = headers.get("Content-Length", "")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0


def _host_label(url: str) -> str:
    target = read_target(url)
    return target.shown if target else "the address"


@asynccontextmanager
async def open_fetcher(
    policy: Policy,
    user_agent: str,
    *,
    resolve: Resolve | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncGenerator[Fetcher]:
    """Open a fetcher and close it on exit."""
    fetcher = Fetcher(policy, user_agent, resolve=resolve, tls=tls)
    try:
        yield fetcher
    finally:
        await fetcher.close()
