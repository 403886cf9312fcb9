"""Looking up host names: all addresses of a name, in a few threads of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from centgate.safefetch.addresses import Address, read_address
from centgate.safefetch.failure import FetchFailed
from centgate.safefetch.policy import Policy
from centgate.safefetch.target import Target

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""All IP addresses of a host name, as text."""
SECONDS = 3.0
THREADS = 16


class Resolver:
    """Asks the system's resolver; it cannot be interrupted, so its threads bound how many lookups hang."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="safefetch-dns")

    async def __call__(self, host: str) -> Sequence[str]:
        """All addresses of a name; OSError where there are none."""
        found = await asyncio.get_running_loop().run_in_executor(self._threads, _looked_up, host)
        return list(dict.fromkeys(found))

    def close(self) -> None:
        """Let the threads end; what still hangs is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _looked_up(host: str) -> list[str]:
    # the dot makes the name absolute: without it the search domains of this machine would be tried as well
    answers = socket.getaddrinfo(f"{host}.", None, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in answers]


async def admitted(target: Target, policy: Policy, resolve: Resolve) -> list[Address]:
    """The addresses of a target; FetchFailed if but one of them must not be fetched from."""
    if target.address is not None:
        addresses = [target.address]
    else:
        addresses = [read_address(text) for text in await _resolved(target, resolve)]
    checked = [each for each in addresses if each is not None and policy.admits(str(each), target.port)]
    if len(checked) < len(addresses):
        raise FetchFailed("blocked_address", f"{target.shown} leads to an address that must not be fetched")
    return checked


async def _resolved(target: Target, resolve: Resolve) -> Sequence[str]:
    try:
        async with asyncio.timeout(SECONDS):
            addresses = await resolve(target.host)
    except TimeoutError:
        raise FetchFailed("dns", f"{target.shown} could not be looked up within {SECONDS:g} s") from None
    except socket.gaierror as error:
        unknown = error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
        what = "is not known to the DNS" if unknown else "could not be looked up"
        raise FetchFailed("dns", f"{target.shown} {what}") from None
    except (OSError, UnicodeError):
        raise FetchFailed("dns", f"{target.shown} could not be looked up") from None
    if not addresses:
        raise FetchFailed("dns", f"{target.shown} has no address")
    return addresses
