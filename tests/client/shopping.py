"""Common async interface of both clients, so that each test runs with both."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import anyio.to_thread

from centgate.client.catalog import ServiceDetail, ServiceSummary
from centgate.client.free_requests import Patience
from centgate.client.payment import Payment
from centgate.client.quote import Quote
from centgate.client.responses import Answer
from centgate.client.sync_client import Centgate

SHORT_TIMEOUTS = Patience(deadline=20, attempts=4, answer=10, connect=5, pause=0.01, longest_pause=0.05)
"""Short timeouts for tests."""
NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""TLS context without authorities, for plain HTTP: loading the authorities takes longer than a call."""


class AwaitableClient(Protocol):
    """Methods of both clients, as coroutines."""

    async def call(self, slug: str, body: Mapping[str, Any], *, payment: Payment | None = None) -> Answer: ...
    async def terms(self, slug: str, body: Mapping[str, Any]) -> Quote: ...
    async def services(self) -> tuple[ServiceSummary, ...]: ...
    async def service(self, slug: str) -> ServiceDetail: ...


class ThreadedClient:
    """Sync client that runs each call in a thread."""

    def __init__(self, client: Centgate) -> None:
        self._client = client

    async def call(self, slug: str, body: Mapping[str, Any], *, payment: Payment | None = None) -> Answer:
        return await anyio.to_thread.run_sync(partial(self._client.call, slug, body, payment=payment))

    async def terms(self, slug: str, body: Mapping[str, Any]) -> Quote:
        return await anyio.to_thread.run_sync(self._client.terms, slug, body)

    async def services(self) -> tuple[ServiceSummary, ...]:
        return await anyio.to_thread.run_sync(self._client.services)

    async def service(self, slug: str) -> ServiceDetail:
        return await anyio.to_thread.run_sync(self._client.service, slug)


OpenClient = Callable[..., AwaitableClient]
"""Opens a client of an API: `shop(url, **options)`, by default with the first buyer's wallet."""
