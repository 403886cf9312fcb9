"""Fetch phishing lists in the background, and reload lists whose files changed.

Requests are never delayed. One process fetches for all processes on this machine, a `Sandbox` process reads
the document at low priority, and the lists in use are replaced when the new ones are indexed.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import ParamSpec

import structlog

from centgate.errors import ProviderFailure
from centgate.phishing.published import HOTLIST, LEAD, PUBLISHED_LISTS, PublishedList
from centgate.phishing.rules import InvalidPhishingList
from centgate.phishing.snapshot import unpack_snapshot
from centgate.phishing.store import FetchState, ListFolder, ListStore
from centgate.phishing.update import MIN_KEPT, FetchedDocument, apply_hotlist, build_update
from centgate.resources import Resources
from centgate.sandbox import Sandbox, TaskFailed
from centgate.upstream import Upstream, UpstreamResponse

P = ParamSpec("P")

WATCH_INTERVAL = 5.0
"""Seconds between two looks at the files and at what is due."""
ERROR_INTERVAL = 600.0
"""Seconds after an error of this machine, such as a folder that cannot be written."""
FETCH_INTERVAL = 24 * 3600.0
"""Seconds between two fetches of a list; they change about once a day."""
HOTLIST_INTERVAL = 300.0
"""Seconds between two fetches of the hotlist, as MetaMask's wallets do."""
FIRST_RETRY, MAX_RETRY = 60.0, 6 * 3600.0
"""Seconds from the first failure to the next attempt, which double up to the maximum."""
JITTER = 0.1
"""Share by which intervals vary, so that servers do not all fetch at once."""
FETCH_TIMEOUT = 120.0
"""Seconds for fetching a document."""
MAX_DOCUMENT_BYTES = 32 << 20
"""Maximum size of a document after decompression; the largest published list has 10 MB."""
BUILD_TIMEOUT = 180.0
"""Seconds for reading and packing a list; 350,000 names take about 20."""
BUILD_MEGABYTES = 1024
LOW_PRIORITY = 10
"""Niceness of the process that reads a list, so that requests come first."""


class ListRefused(Exception):
    """A list could not be fetched or was not accepted; the message says why as a clause."""


class PhishingListRefresher:
    """Fetches the lists that are due, and reloads those whose files changed."""

    def __init__(
        self,
        urls: Mapping[str, str],
        folder: ListFolder,
        store: ListStore,
        upstream: Upstream,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`urls` are the addresses by list; empty if lists are only reloaded."""
        self._urls, self._folder, self._store, self._upstream, self._now = urls, folder, store, upstream, now

    @asynccontextmanager
    async def run_in_background(self) -> AsyncGenerator[None]:
        """Work in the background while the context is open."""
        tasks = [asyncio.create_task(self._repeat(work)) for work in (self.reload, self.fetch_due)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
                pause = WATCH_INTERVAL
            except OSError as error:
                pause = ERROR_INTERVAL
                structlog.get_logger().warning("the phishing lists cannot be kept", error=str(error))
            except Exception:  # noqa: BLE001 - only the end of the process may end background work
                pause = ERROR_INTERVAL
                structlog.get_logger().exception("the phishing lists could not be refreshed")
            await asyncio.sleep(pause)

    async def reload(self) -> None:
        """Load the lists whose files changed; requests use the old ones meanwhile."""
        await asyncio.to_thread(self._store.reload)

    async def fetch_due(self) -> None:
        """Fetch the lists that are due, unless another process does so. Raises OSError."""
        if not any(self._is_due(key) for key in self._urls):
            return
        with self._folder.lock() as is_mine:
            # another process may have fetched them between the two looks
            for key in [key for key in self._urls if is_mine and self._is_due(key)]:
                await self._attempt(key)

    def _is_due(self, key: str) -> bool:
        state = self._folder.read_state(key)
        return state is None or state.is_due(self._urls[key], self._now())

    async def _attempt(self, key: str) -> None:
        """Fetch a list and record the outcome."""
        url, log = self._urls[key], structlog.get_logger()
        try:
            if key == HOTLIST:
                await fetch_hotlist(self._folder, self._upstream, url)
            else:
                await fetch_list(self._folder, self._upstream, PUBLISHED_LISTS[key], url)
        except ListRefused as refusal:
            before = self._folder.read_state(key)
            failures = (before.failures if before else 0) + 1
            delay = min(FIRST_RETRY * 2 ** min(failures - 1, 20), MAX_RETRY)
            log.warning("a phishing list was not replaced", list=key, url=url, reason=str(refusal))
            self._record(key, delay, failures=failures, error=str(refusal))
        else:
            log.info("a phishing list was fetched", list=key, url=url)
            self._record(key, HOTLIST_INTERVAL if key == HOTLIST else FETCH_INTERVAL)

    def _record(self, key: str, delay: float, *, failures: int = 0, error: str | None = None) -> None:
        now = self._now()
        varied = delay * random.uniform(1 - JITTER, 1 + JITTER)
        state = FetchState(
            url=self._urls[key], attempted_at=now, next_at=now + varied, failures=failures, error=error
        )
        self._folder.store_state(key, state)


async def fetch_list(
    folder: ListFolder,
    upstream: Upstream,
    published: PublishedList,
    url: str,
    *,
    min_kept: float = MIN_KEPT,
) -> None:
    """Fetch a list and store it in the folder. Raises ListRefused, or OSError if it cannot be stored."""
    reply = await fetch_document(upstream, url)
    document = FetchedDocument(
        published, reply.body, url, datetime.now(UTC), parse_last_modified(reply), min_kept
    )
    packed = await run_at_low_priority(build_update, document, folder.read_packed(published.name))
    folder.store_packed(published.name, packed)


async def fetch_hotlist(folder: ListFolder, upstream: Upstream, url: str) -> None:
    """Fetch the changes of MetaMask's stalelist since its last one, and store the list with them.

    Raises ListRefused, or OSError if the list cannot be stored.
    """
    packed = folder.read_packed(LEAD)
    header = unpack_snapshot(packed).header if packed else None
    if packed is None or header is None or header.updated_seconds is None:
        raise ListRefused("there is no stalelist yet that it could change")
    reply = await fetch_document(upstream, f"{url.rstrip('/')}/{header.updated_seconds}")
    changed = await run_at_low_priority(
        partial(apply_hotlist, fetched_at=datetime.now(UTC)), packed, reply.body
    )
    folder.store_packed(LEAD, changed)


def open_list_upstream(resources: Resources) -> Upstream:
    """Return the connection to the servers of lists."""
    return Upstream(
        "phishinglist",
        "the server of the list",
        resources.session,
        max_bytes=MAX_DOCUMENT_BYTES,
        max_wait=FETCH_TIMEOUT,
    )


async def fetch_document(upstream: Upstream, url: str) -> UpstreamResponse:
    """Fetch a document. Raises ListRefused."""
    try:
        async with asyncio.timeout(FETCH_TIMEOUT):
            return await upstream.get(url)
    except ProviderFailure as failure:
        raise ListRefused(failure.message) from None
    except TimeoutError:
        raise ListRefused(f"the document was not complete within {FETCH_TIMEOUT:g} s") from None


def parse_last_modified(reply: UpstreamResponse) -> str | None:
    """Return the date of `Last-Modified`, if there is a valid one, in the form YYYY-MM-DD."""
    with suppress(ValueError, TypeError, KeyError):
        return parsedate_to_datetime(reply.headers["Last-Modified"]).date().isoformat()
    return None


async def run_at_low_priority(function: Callable[P, bytes], *args: P.args, **kwargs: P.kwargs) -> bytes:
    """Run a function that reads a document in a process of its own. Raises ListRefused."""
    # not kept open: a list is read once a day, and the process would hold its memory until then
    sandbox = Sandbox(1, megabytes=BUILD_MEGABYTES)
    try:
        return await sandbox.run_task(
            BUILD_TIMEOUT, _call_at_low_priority, partial(function, *args, **kwargs)
        )
    except InvalidPhishingList as error:
        raise ListRefused(str(error)) from None
    except TaskFailed as error:
        raise ListRefused(str(error)) from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ListRefused(f"the document could not be read ({type(error).__name__})") from error
    finally:
        await sandbox.close()


def _call_at_low_priority(task: Callable[[], bytes]) -> bytes:
    os.nice(LOW_PRIORITY)
    return task()
