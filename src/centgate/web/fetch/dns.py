"""Resolve host names to all their addresses, in separate threads."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from centgate.web.fetch.failure import FetchFailed
from centgate.web.fetch.ip_ranges import IpAddress, parse_ip_address
from centgate.web.fetch.policy import FetchPolicy
from centgate.web.fetch.url import Target

ResolveFunction = Callable[[str], Awaitable[Sequence[str]]]
"""Function that returns all IP addresses of a host name, as text."""
LOOKUP_SECONDS = 3.0
MAX_THREADS = 16


class DnsResolver:
    """Client of the system's resolver. Lookups cannot be cancelled, so the threads bound those that hang."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="safefetch-dns")

    async def __call__(self, host: str) -> Sequence[str]:
        """Return all addresses of a name. Raises OSError if it has no address."""
        found = await asyncio.get_running_loop().run_in_executor(self._threads, _lookup_host, host)
        return list(dict.fromkeys(found))

    def close(self) -> None:
        """Shut down the threads without waiting for lookups that hang."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _lookup_host(host: str) -> list[str]:
    # the dot makes the name absolute: otherwise the search domains of this machine would be tried as well
    entries = socket.getaddrinfo(f"{host}.", None, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in entries]


async def resolve_allowed(target: Target, policy: FetchPolicy, resolve: ResolveFunction) -> list[IpAddress]:
    """Return the addresses of a target. Raises FetchFailed if any of them must not be fetched."""
    if target.address is not None:
        addresses = [target.address]
    else:
        addresses = [parse_ip_address(text) for text in await _resolve_name(target, resolve)]
    allowed = [each for each in addresses if each is not None and policy.can_connect(str(each), target.port)]
    if len(allowed) < len(addresses):
        raise FetchFailed(
            "blocked_address", f"{target.label} resolves to an address that must not be fetched"
        )
    return allowed


async def _resolve_name(target: Target, resolve: ResolveFunction) -> Sequence[str]:
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            addresses = await resolve(target.host)
    except TimeoutError:
        raise FetchFailed(
            "dns", f"{target.label} could not be resolved within {LOOKUP_SECONDS:g} s"
        ) from None
    except socket.gaierror as error:
        unknown = error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
        problem = "does not exist in the DNS" if unknown else "could not be resolved"
        raise FetchFailed("dns", f"{target.label} {problem}") from None
    except (OSError, UnicodeError):
        raise FetchFailed("dns", f"{target.label} could not be resolved") from None
    if not addresses:
        raise FetchFailed("dns", f"{target.label} has no address")
    return addresses
