"""Sync client. Several threads may share one instance.

It runs an event loop in its own thread; `watch` callbacks and wallet signatures run in that thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import httpx2

from centgate.client._generated.methods import Services
from centgate.client.catalog import ServiceDetail, ServiceSummary
from centgate.client.client import BaseClient
from centgate.client.event_loop import EventLoopThread
from centgate.client.payment import Payment
from centgate.client.quote import Quote
from centgate.client.responses import Answer


class Centgate(BaseClient, Services):
    """Sync client of one API, which pays automatically within its caps."""

    def _connect(self, connect: Callable[[], httpx2.AsyncClient]) -> None:
        self._loop = EventLoopThread(connect)

    def call(self, slug: str, body: Mapping[str, Any], *, payment: Payment | None = None) -> Answer:
        """Buy one answer of a service. Raises BuyerError; its `money` is the state of the payment.

        If an earlier call for the same request left a payment open, that payment is sent again and nothing
        is signed. `payment` is such an open payment that is not in the ledger.
        """
        return self._loop.go(self._purchases.call(slug, body, payment))

    def terms(self, slug: str, body: Mapping[str, Any]) -> Quote:
        """Return the price and the payee of a call. Signs nothing."""
        return self._loop.go(self._purchases.terms(slug, body))

    def services(self) -> tuple[ServiceSummary, ...]:
        """Return every service of the API, in catalogue order."""
        return self._loop.go(self._purchases.services())

    def service(self, slug: str) -> ServiceDetail:
        """Return one service, with the schemas of its input and output."""
        return self._loop.go(self._purchases.service(slug))

    def close(self) -> None:
        """Close the connections and stop the client's thread."""
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
