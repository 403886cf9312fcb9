"""Async client. Concurrent tasks may share one instance."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from centgate.client._generated.methods import AsyncServices
from centgate.client.catalog import ServiceDetail, ServiceSummary
from centgate.client.client import BaseClient
from centgate.client.payment import Payment
from centgate.client.quote import Quote
from centgate.client.responses import Answer
from centgate.client.transport import Transport


class AsyncCentgate(BaseClient, AsyncServices):
    """Async client of one API, which pays automatically within its caps."""

    def _connect(self, transport: Transport) -> None:
        self._transport = transport

    async def call(self, slug: str, body: Mapping[str, Any], *, payment: Payment | None = None) -> Answer:
        """Buy one answer of a service. Raises BuyerError; its `money` is the state of the payment.

        If an earlier call for the same request left a payment open, that payment is sent again and nothing
        is signed. `payment` is such an open payment that is not in the ledger.
        """
        return await self._purchases.call(slug, body, payment)

    async def terms(self, slug: str, body: Mapping[str, Any]) -> Quote:
        """Return the price and the payee of a call. Signs nothing."""
        return await self._purchases.terms(slug, body)

    async def services(self) -> tuple[ServiceSummary, ...]:
        """Return every service of the API, in catalogue order."""
        return await self._purchases.services()

    async def service(self, slug: str) -> ServiceDetail:
        """Return one service, with the schemas of its input and output."""
        return await self._purchases.service(slug)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
