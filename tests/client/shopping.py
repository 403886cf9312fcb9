"""Common async interface of both clients, so that each test runs with both."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Protocol

import anyio.to_thread

from centgate.client.caps import Spent
from centgate.client.catalog import ServiceDetail, ServiceSummary
from centgate.client.errors import BuyerError
from centgate.client.node import Balance, NonceStates
from centgate.client.payment import Payment
from centgate.client.policy import Patience
from centgate.client.quote import Quote
from centgate.client.responses import Answer
from centgate.client.sync_client import Centgate
from centgate.client.tools import ToolFlavour
from centgate.client.wallet_payments import AnsweredPayment, WalletPaymentPage

SHORT_TIMEOUTS = Patience(deadline=20, attempts=4, answer=10, connect=5, pause=0.01, longest_pause=0.05)
"""Short timeouts for tests."""
NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""TLS context without authorities, for plain HTTP: loading the authorities takes longer than a call."""


class AwaitableClient(Protocol):
    """Methods of both clients, as coroutines."""

    @property
    def spent(self) -> Spent: ...
    async def call(
        self,
        slug: str,
        body: Mapping[str, Any],
        *,
        payment: Payment | None = None,
        timeout: float | None = None,
        max_price: Decimal | str | None = None,
    ) -> Answer: ...
    async def map(
        self, slug: str, bodies: Iterable[Mapping[str, Any]], *, concurrency: int = 4
    ) -> list[Answer | BuyerError]: ...
    async def balance(self, rpc: str | None = None) -> Balance: ...
    async def release_unused(self, rpc: str | None = None) -> NonceStates: ...
    async def payments(self, *, limit: int = 20, cursor: str | None = None) -> WalletPaymentPage: ...
    async def payment(self, transaction: str) -> tuple[AnsweredPayment, ...]: ...
    async def redeem(self, transaction: str, body: Mapping[str, Any]) -> Answer: ...
    async def tools(self, flavour: ToolFlavour) -> list[dict[str, Any]]: ...
    async def terms(self, slug: str, body: Mapping[str, Any]) -> Quote: ...
    async def services(self) -> tuple[ServiceSummary, ...]: ...
    async def service(self, slug: str) -> ServiceDetail: ...


class ThreadedClient:
    """Sync client that runs each call in a thread."""

    def __init__(self, client: Centgate) -> None:
        self._client = client

    @property
    def spent(self) -> Spent:
        return self._client.spent

    async def call(
        self,
        slug: str,
        body: Mapping[str, Any],
        *,
        payment: Payment | None = None,
        timeout: float | None = None,
        max_price: Decimal | str | None = None,
    ) -> Answer:
        call = partial(self._client.call, slug, body, payment=payment, timeout=timeout, max_price=max_price)
        return await anyio.to_thread.run_sync(call)

    async def map(
        self, slug: str, bodies: Iterable[Mapping[str, Any]], *, concurrency: int = 4
    ) -> list[Answer | BuyerError]:
        buy = partial(self._client.map, slug, bodies, concurrency=concurrency)
        return await anyio.to_thread.run_sync(buy)

    async def balance(self, rpc: str | None = None) -> Balance:
        return await anyio.to_thread.run_sync(self._client.balance, rpc)

    async def release_unused(self, rpc: str | None = None) -> NonceStates:
        return await anyio.to_thread.run_sync(self._client.release_unused, rpc)

    async def payments(self, *, limit: int = 20, cursor: str | None = None) -> WalletPaymentPage:
        list_page = partial(self._client.payments, limit=limit, cursor=cursor)
        return await anyio.to_thread.run_sync(list_page)

    async def payment(self, transaction: str) -> tuple[AnsweredPayment, ...]:
        return await anyio.to_thread.run_sync(self._client.payment, transaction)

    async def redeem(self, transaction: str, body: Mapping[str, Any]) -> Answer:
        return await anyio.to_thread.run_sync(self._client.redeem, transaction, body)

    async def tools(self, flavour: ToolFlavour) -> list[dict[str, Any]]:
        return await anyio.to_thread.run_sync(self._client.tools, flavour)

    async def terms(self, slug: str, body: Mapping[str, Any]) -> Quote:
        return await anyio.to_thread.run_sync(self._client.terms, slug, body)

    async def services(self) -> tuple[ServiceSummary, ...]:
        return await anyio.to_thread.run_sync(self._client.services)

    async def service(self, slug: str) -> ServiceDetail:
        return await anyio.to_thread.run_sync(self._client.service, slug)


OpenClient = Callable[..., AwaitableClient]
"""Opens a client of an API: `shop(url, **options)`, by default with the first buyer's wallet."""
