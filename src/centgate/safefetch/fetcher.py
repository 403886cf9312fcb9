"""Fetching an address that a stranger gave."""

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
MOST_REDIRECTS = 5
MOST_ERROR_BYTES = 64 * 1024
"""Of the body of an answer that says that something went wrong."""
LONGEST_LOCATION = 8192
_NO_BODY = frozenset({204, 205, 304})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a site answered, whatever its status."""

    url: str
    """After redirects, without a fragment."""
    status: int
    content_type: str | None
    """The header as it came, with its parameters."""
    body: bytes = field(repr=False)
    """Without its content coding; of an error at most 64 KB, and none of a type that was not asked for."""
    headers: Mapping[str, str] = field(repr=False)
    """Names in any case."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    most_bytes: int
    types: tuple[str, ...]

    def admits(self, content_type: str | None) -> bool:
        media = (content_type or "").partition(";")[0].strip().lower()
        families = (media, media.partition("/")[0] + "/*")
        return not media or not self.types or any(family in self.types for family in families)


class Fetcher:
    """Fetches what strangers name, from public addresses only.

    Nothing of one fetch stays for the next: no connection, no cookie, no lookup of a name.
    """

    def __init__(
        self,
        policy: Policy,
        user_agent: str,
        *,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`resolve` and `tls` stand in for the system's resolver and its authorities."""
        if not (user_agent.isascii() and user_agent.isprintable()):
            raise ValueError("a user agent is printable ASCII")
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
        """GET a URL; FetchFailed when nothing came back that may be read.

        `types` are the media types that are read, `text/*` for a family; all when empty. The body of an
        answer of another type is not read, and is FetchFailed with `unsupported`; of an error (status 400
        and up) it is empty instead. `seconds` holds for everything: waiting for a turn, lookups, redirects.
        """
        wanted = _Wanted(most_bytes, tuple(each.lower() for each in types))
        try:
            async with asyncio.timeout(seconds):
                return await self._followed(url, wanted)
        except TimeoutError:
            raise FetchFailed("timeout", f"{_host(url)} did not answer within {seconds:.3g} s") from None

    async def close(self) -> None:
        """Let go of the threads; connections end with their fetches."""
        self._resolver.close()

    async def _followed(self, url: str, wanted: _Wanted) -> Fetched:
        target = self._admissible(url)
        for _ in range(MOST_REDIRECTS + 1):
            async with self._politeness.turn(target.host, shown=target.shown):
                answer = await self._asked(target, wanted)
            if isinstance(answer, Fetched):
                return answer
            target = self._led_on(target, answer)
        raise FetchFailed("failed", f"{target.shown} redirects more than {MOST_REDIRECTS} times")

    def _admissible(self, url: str) -> Target:
        target = read_target(url)
        if target is None:
            raise FetchFailed("failed", "the address cannot be read as a URL")
        if objection := self._policy.objection_to(target):
            raise FetchFailed("blocked_address", f"the address must not be fetched: {objection}")
        return target

    def _led_on(self, target: Target, location: str) -> Target:
        """Where a redirect leads; held to what holds for the first address."""
        onward = read_target(location, target.url)
        if onward is None:
            raise FetchFailed("failed", f"{target.shown} redirects to what cannot be read as a URL")
        if self._policy.objection_to(onward):
            what = f"{target.shown} redirects to an address that must not be fetched"
            raise FetchFailed("blocked_address", what)
        return onward

    async def _asked(self, target: Target, wanted: _Wanted) -> Fetched | str:
        """The answer, or where it leads on to."""
        await self._fairness.turn()
        addresses = await admitted(target, self._policy, self._resolve)
        async with connected(target, addresses, self._policy, self._tls) as connection:
            exchange = Exchange(target, connection, self._fairness)
            await exchange.ask(self._fields(wanted))
            if 300 <= exchange.status < 400 and exchange.status not in _NO_BODY:
                return _location(target, exchange)
            return await self._fetched(target, exchange, wanted)

    async def _fetched(self, target: Target, exchange: Exchange, wanted: _Wanted) -> Fetched:
        content_type = exchange.headers.get("Content-Type") or None
        body = bytearray()
        try:
            await self._read(target, exchange, wanted, into=body)
        except FetchFailed:
            if exchange.status < 400:
                raise
            del body[MOST_ERROR_BYTES:]  # what an error page says matters less than that it is one
        return Fetched(target.url, exchange.status, content_type, bytes(body), exchange.headers)

    async def _read(self, target: Target, exchange: Exchange, wanted: _Wanted, *, into: bytearray) -> None:
        """Read the body, as far as it is wanted, into a buffer that keeps what came before a failure."""
        host, headers, error = target.shown, exchange.headers, exchange.status >= 400
        if exchange.status in _NO_BODY:
            return
        if not wanted.admits(headers.get("Content-Type")):
            raise FetchFailed("unsupported", f"{host} answered with {headers['Content-Type'][:80]}")
        if headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
            raise FetchFailed("unsupported", f"{host} answered in a transfer coding that is not read")
        coding = read_coding(headers.get("Content-Encoding", ""), host)
        most_bytes = min(wanted.most_bytes, MOST_ERROR_BYTES) if error else wanted.most_bytes
        if not error and _announced(headers) > most_bytes:
            raise FetchFailed(
                "too_large", f"{host} announces {_announced(headers):,} bytes, which is too much"
            )
        await gather(exchange.pieces(), coding, most_bytes, into=into, host=host, fairness=self._fairness)

    def _fields(self, wanted: _Wanted) -> Mapping[str, str]:
        return {
            "User-Agent": self._user_agent,
            "Accept": ", ".join((*wanted.types, "*/*;q=0.1")) if wanted.types else "*/*",
            "Accept-Encoding": ACCEPTED,
            "Connection": "close",
        }


def _location(target: Target, exchange: Exchange) -> str:
    location = exchange.headers.get("Location")
    if exchange.status not in _REDIRECTS or not location:
        raise FetchFailed(
            "failed", f"{target.shown} answered with status {exchange.status} and leads nowhere"
        )
    if len(location) > LONGEST_LOCATION:
        raise FetchFailed("failed", f"{target.shown} redirects to an address that is too long")
    return location


def _announced(headers: Mapping[str, str]) -> int:
    length = headers.get("Content-Length", "")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0


def _host(url: str) -> str:
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
    """A fetcher, closed in the end."""
    fetcher = Fetcher(policy, user_agent, resolve=resolve, tls=tls)
    try:
        yield fetcher
    finally:
        await fetcher.close()
