"""The client for programs with an event loop. Tasks may share one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import httpx2

from centgate.client.answers import Answer
from centgate.client.buying import Client
from centgate.client.catalog import Entry, Listed
from centgate.client.exchange import go
from centgate.client.payment import Payment
from centgate.client.services import AsyncServices
from centgate.client.terms import Quote


class AsyncCentgate(Client, AsyncServices):
    """A buyer at one API, which pays by itself under its caps."""

    def _connects(self, connect: Callable[[], httpx2.AsyncClient]) -> None:
        self._http = connect()

    async def call(self, slug: str, body: Mapping[str, Any], *, payment: Payment | None = None) -> Answer:
        """The answer of a service, paid for. Raises BuyerError, which says what is known of the money.

        A payment that an earlier call for the same request has left open is sent again, and nothing is
        signed; `payment` is such a one that the ledger does not know.
        """
        return await go(self._http, self._buyer.call(slug, body, payment))

    async def terms(self, slug: str, body: Mapping[str, Any]) -> Quote:
        """What a call would cost and whom it would pay. Nothing is signed."""
        return await go(self._http, self._buyer.terms(slug, body))

    async def services(self) -> tuple[Listed, ...]:
        """Every service of the API, in its order."""
        return await go(self._http, self._buyer.services())

    async def service(self, slug: str) -> Entry:
        """One service, with the schemas of its input and output."""
        return await go(self._http, self._buyer.service(slug))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
