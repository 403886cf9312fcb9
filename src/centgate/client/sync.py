"""The client for programs without an event loop. Threads may share one.

It has an event loop in a thread of its own: there a `watch` is told, and a wallet signs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import httpx2

from centgate.client.answers import Answer
from centgate.client.buying import Client
from centgate.client.catalog import Entry, Listed
from centgate.client.event_loop import EventLoopThread
from centgate.client.payment import Payment
from centgate.client.services import Services
from centgate.client.terms import Quote


class Centgate(Client, Services):
    """A buyer at one API, which pays by itself under its caps."""

    def _connects(self, connect: Callable[[], httpx2.AsyncClient]) -> None:
        self._loop = EventLoopThread(connect)

    def call(self, slug: str, body: Mapping[str, Any], *, payment: Payment | None = None) -> Answer:
        """The answer of a service, paid for. Raises BuyerError, which says what is known of the money.

        A payment that an earlier call for the same request has left open is sent again, and nothing is
        signed; `payment` is such a one that the ledger does not know.
        """
        return self._loop.go(self._buyer.call(slug, body, payment))

    def terms(self, slug: str, body: Mapping[str, Any]) -> Quote:
        """What a call would cost and whom it would pay. Nothing is signed."""
        return self._loop.go(self._buyer.terms(slug, body))

    def services(self) -> tuple[Listed, ...]:
        """Every service of the API, in its order."""
        return self._loop.go(self._buyer.services())

    def service(self, slug: str) -> Entry:
        """One service, with the schemas of its input and output."""
        return self._loop.go(self._buyer.service(slug))

    def close(self) -> None:
        """Close the connections, and end the thread they are used in."""
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
