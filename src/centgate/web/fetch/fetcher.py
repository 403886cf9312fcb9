"""Fetch untrusted URLs, from public addresses only."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Hashable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from msgspec import Struct

from centgate.sanitize import quote_line
from centgate.web.fetch.connector import default_tls, open_checked_connection
from centgate.web.fetch.content_coding import ACCEPT_ENCODING, parse_coding, read_body
from centgate.web.fetch.dns import DnsResolver, ResolveFunction, resolve_allowed
from centgate.web.fetch.failure import FetchFailed
from centgate.web.fetch.fairness import CooperativeScheduler
from centgate.web.fetch.host_limiter import HostLimiter
from centgate.web.fetch.http_client import HttpExchange
from centgate.web.fetch.policy import FetchPolicy
from centgate.web.fetch.redirect_cookies import RedirectCookies
from centgate.web.fetch.url import Target, parse_target
from centgate.web.fetch.validators import Validators, parse_validators

__all__ = ["FetchFailed", "FetchResult", "Fetcher", "ResolveFunction", "open_fetcher"]

MEGABYTE = 1 << 20
MAX_REDIRECTS = 5
MAX_ERROR_BYTES = 64 * 1024
"""Maximum body size of an error response."""
MAX_LOCATION_LENGTH = 8192
PARTIAL_CONTENT = 206
NOT_MODIFIED = 304
_BODYLESS_STATUSES = frozenset({204, 205, NOT_MODIFIED})
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class FetchResult:
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
    redirects: int = 0
    """Number of redirects that were followed."""

    @property
    def validators(self) -> Validators | None:
        """Validators of this version of the page; None if the site sends no usable ones."""
        return parse_validators(self.url, self.headers)


CheckRedirect = Callable[[str], Awaitable[None]]
"""Checks the URL that a redirect leads to."""


class _FetchOptions(Struct, frozen=True):
    max_bytes: int
    media_types: tuple[str, ...]
    max_redirects: int = MAX_REDIRECTS
    validators: Validators | None = None
    check_redirect: CheckRedirect | None = None
    on_excess: Literal["fail", "cut"] = "fail"

    def conditions_for(self, url: str) -> Mapping[str, str]:
        """Return the conditional fields of a request for a URL."""
        return self.validators.request_headers if self.validators and self.validators.url == url else {}

    def accepts(self, content_type: str | None) -> bool:
        media = (content_type or "").partition(";")[0].strip().lower()
        families = (media, media.partition("/")[0] + "/*")
        return not media or not self.media_types or any(family in self.media_types for family in families)


class Fetcher:
    """HTTP client for untrusted URLs.

    Fetches share no state: no connections, no cookies, no DNS results. The redirects of one share cookies.
    """

    def __init__(
        self,
        policy: FetchPolicy,
        user_agent: str,
        *,
        resolve: ResolveFunction | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Create a fetcher; `resolve` and `tls` replace the system's resolver and its CAs."""
        if not (user_agent.isascii() and user_agent.isprintable()):
            raise ValueError("a user agent may contain only printable ASCII")
        self._policy, self._user_agent = policy, user_agent
        self._resolver = DnsResolver()
        self._resolve = resolve or self._resolver
        self._tls = tls
        self._host_limiter = HostLimiter()
        self._scheduler = CooperativeScheduler()

    async def fetch(
        self,
        url: str,
        *,
        timeout: float,
        max_bytes: int = 5 * MEGABYTE,
        media_types: Collection[str] = (),
        max_redirects: int = MAX_REDIRECTS,
        validators: Validators | None = None,
        check_redirect: CheckRedirect | None = None,
        on_excess: Literal["fail", "cut"] = "fail",
    ) -> FetchResult:
        """GET a URL. Raises FetchFailed if there is no readable response.

        With `validators` of an earlier response the status is 304, without a body, if the page is the same.

        `media_types` are the accepted types, `text/*` for a family; empty accepts all. A response of another
        type raises FetchFailed with `unsupported`, except for errors (status 400 and up), whose body is then
        empty. `check_redirect` is called before a redirect is followed, and raises if it must not be.
        A body of more than `max_bytes` raises FetchFailed, or is cut there.
        `timeout` is in seconds and includes everything: waiting for a slot, DNS lookups, redirects.
        """
        options = _FetchOptions(
            max_bytes,
            tuple(each.lower() for each in media_types),
            max_redirects,
            validators,
            check_redirect,
            on_excess,
        )
        try:
            async with asyncio.timeout(timeout):
                return await self._fetch_following(url, options)
        except TimeoutError:
            raise FetchFailed(
                "timeout", f"{_host_label(url)} did not answer within {timeout:.3g} s"
            ) from None

    def estimate_wait(self, urls: Collection[str], key: Hashable) -> float:
        """Return the seconds that a new request for these URLs would wait for the busiest of their hosts."""
        return self._host_limiter.estimate_wait(_list_hosts(urls), key)

    def announce(self, urls: Collection[str], key: Hashable) -> AbstractContextManager[None]:
        """Count a request for these URLs in `estimate_wait` before its payment is settled.

        Requests with an equal `key` count once, as they share their answer.
        """
        return self._host_limiter.announce(_list_hosts(urls), key)

    def reserve(self, urls: Collection[str], key: Hashable) -> AbstractContextManager[None]:
        """Count a request for these URLs whose payment is settled."""
        return self._host_limiter.reserve(_list_hosts(urls), key)

    async def close(self) -> None:
        """Stop the resolver threads; connections end with their fetches."""
        self._resolver.close()

    async def _fetch_following(self, url: str, options: _FetchOptions) -> FetchResult:
        target, cookies = self._check_url(url), RedirectCookies()
        for redirects in range(options.max_redirects + 1):
            async with self._host_limiter.acquire_slot(target.host):
                answer = await self._send(target, options, cookies)
            if isinstance(answer, FetchResult):
                return replace(answer, redirects=redirects)
            target = self._follow_redirect(target, answer)
            if options.check_redirect and redirects < options.max_redirects:
                await options.check_redirect(target.url)
        raise FetchFailed("failed", f"{target.label} redirects more than {MAX_REDIRECTS} times")

    def _check_url(self, url: str) -> Target:
        target = parse_target(url)
        if target is None:
            raise FetchFailed("failed", "the address is not a valid URL")
        if rejection := self._policy.target_rejection(target):
            raise FetchFailed("blocked_address", f"the address must not be fetched: {rejection}")
        return target

    def _follow_redirect(self, target: Target, location: str) -> Target:
        """Return the target of a redirect, checked like the first URL."""
        redirect = parse_target(location, target.url)
        if redirect is None:
            raise FetchFailed("failed", f"{target.label} redirects to an invalid URL")
        if self._policy.target_rejection(redirect):
            message = f"{target.label} redirects to an address that must not be fetched"
            raise FetchFailed("blocked_address", message)
        return redirect

    async def _send(
        self, target: Target, options: _FetchOptions, cookies: RedirectCookies
    ) -> FetchResult | str:
        """Return the response, or the location of a redirect."""
        await self._scheduler.wait_turn()
        addresses = await resolve_allowed(target, self._policy, self._resolve)
        async with open_checked_connection(
            target, addresses, self._policy, self._tls or default_tls()
        ) as connection:
            exchange = HttpExchange(target, connection, self._scheduler)
            headers = {**self._request_headers(target, options), **cookies.headers_for(target)}
            await exchange.send_request(headers)
            if 300 <= exchange.status < 400 and exchange.status not in _BODYLESS_STATUSES:
                cookies.store(target, exchange.headers)
                return _redirect_location(target, exchange)
            return await self._read_response(target, exchange, options)

    async def _read_response(
        self, target: Target, exchange: HttpExchange, options: _FetchOptions
    ) -> FetchResult:
        content_type = exchange.headers.get("Content-Type") or None
        body = bytearray()
        try:
            await self._read_body(target, exchange, options, buffer=body)
        except FetchFailed:
            is_cut = options.on_excess == "cut" and len(body) >= options.max_bytes
            if exchange.status < 400 and not is_cut:
                raise
            # the content of an error page matters less than its status
            del body[MAX_ERROR_BYTES if exchange.status >= 400 else options.max_bytes :]
        return FetchResult(target.url, exchange.status, content_type, bytes(body), exchange.headers)

    async def _read_body(
        self, target: Target, exchange: HttpExchange, options: _FetchOptions, *, buffer: bytearray
    ) -> None:
        """Read the body into a buffer, which keeps the bytes before a failure."""
        host, headers, error = target.label, exchange.headers, exchange.status >= 400
        if exchange.status in _BODYLESS_STATUSES:
            return
        if not options.accepts(headers.get("Content-Type")):
            content_type = quote_line(headers["Content-Type"], 80)
            raise FetchFailed("unsupported", f"{host} answered with {content_type}")
        if headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
            raise FetchFailed("unsupported", f"{host} answered with an unsupported transfer coding")
        coding = parse_coding(headers.get("Content-Encoding", ""), host)
        most_bytes = min(options.max_bytes, MAX_ERROR_BYTES) if error else options.max_bytes
        if not error and options.on_excess == "fail" and _content_length(headers) > most_bytes:
            raise FetchFailed(
                "too_large", f"{host} announces {_content_length(headers):,} bytes, which is too many"
            )
        await read_body(
            exchange.iter_body(), coding, most_bytes, buffer=buffer, host=host, scheduler=self._scheduler
        )

    def _request_headers(self, target: Target, options: _FetchOptions) -> Mapping[str, str]:
        return {
            "User-Agent": self._user_agent,
            "Accept": ", ".join((*options.media_types, "*/*;q=0.1")) if options.media_types else "*/*",
            "Accept-Encoding": ACCEPT_ENCODING,
            "Connection": "close",
            **options.conditions_for(target.url),
        }


def _redirect_location(target: Target, exchange: HttpExchange) -> str:
    location = exchange.headers.get("Location")
    if exchange.status not in _REDIRECT_STATUSES or not location:
        raise FetchFailed(
            "failed", f"{target.label} answered with status {exchange.status} without a valid location"
        )
    if len(location) > MAX_LOCATION_LENGTH:
        raise FetchFailed("failed", f"{target.label} redirects to an address that is too long")
    return location


def _content_length(headers: Mapping[str, str]) -> int:
    length = headers.get("Content-Length", "")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0


def _list_hosts(urls: Collection[str]) -> list[str]:
    return [target.host for target in map(parse_target, urls) if target]


def _host_label(url: str) -> str:
    target = parse_target(url)
    return target.label if target else "the address"


@asynccontextmanager
async def open_fetcher(
    policy: FetchPolicy,
    user_agent: str,
    *,
    resolve: ResolveFunction | None = None,
) -> AsyncGenerator[Fetcher]:
    """Open a fetcher and close it on exit."""
    fetcher = Fetcher(policy, user_agent, resolve=resolve)
    try:
        yield fetcher
    finally:
        await fetcher.close()
