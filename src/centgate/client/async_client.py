"""Async client. Concurrent tasks, and one event loop after another, may share one instance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from centgate.client._generated.methods import AsyncServices
from centgate.client.client import BaseClient
from centgate.client.policy import DEFAULT_CONCURRENCY, DEFAULT_LIMIT

if TYPE_CHECKING:
    from centgate.client.catalog import ServiceDetail, ServiceSummary
    from centgate.client.errors import BuyerError
    from centgate.client.node import Balance, NonceStates
    from centgate.client.payment import Payment
    from centgate.client.quote import Quote
    from centgate.client.responses import Answer
    from centgate.client.tools import ToolFlavour
    from centgate.client.transport import Transport
    from centgate.client.wallet_payments import AnsweredPayment, WalletPaymentPage


class AsyncCentgate(BaseClient, AsyncServices):
    """Async client of one API, which pays automatically within its caps."""

    def _connect(self, transport: Transport) -> None:
        self._transport = transport

    async def call(
        self,
        slug: str,
        body: Mapping[str, Any],
        *,
        payment: Payment | None = None,
        timeout: float | None = None,
        max_price: Decimal | str | None = None,
    ) -> Answer:
        """Buy one answer of a service. Raises BuyerError; its `money` is the state of the payment.

        If an earlier call for the same request left a payment open, that payment is sent again and nothing
        is signed. `payment` is such an open payment that is not in the ledger. `timeout` and `max_price` are
        those of `with_limits`.
        """
        return await self._purchases.with_limits(timeout, max_price).call(slug, body, payment)

    async def map(
        self,
        slug: str,
        bodies: Iterable[Mapping[str, Any]],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        timeout: float | None = None,
        max_price: Decimal | str | None = None,
    ) -> list[Answer | BuyerError]:
        """Buy the answers to many requests, at most `concurrency` at once, within the caps.

        Returns the outcomes in the order of the bodies. An error is an outcome, because the other answers
        are paid for: test for it with `isinstance(outcome, Answer)`.
        """
        return await self._purchases.with_limits(timeout, max_price).map(slug, bodies, concurrency)

    async def terms(self, slug: str, body: Mapping[str, Any]) -> Quote:
        """Return the price and the payee of a call. Signs nothing."""
        return await self._purchases.terms(slug, body)

    async def services(self) -> tuple[ServiceSummary, ...]:
        """Return every service of the API, in catalogue order."""
        return await self._purchases.services()

    async def service(self, slug: str) -> ServiceDetail:
        """Return one service, with the schemas of its input and output."""
        return await self._purchases.service(slug)

    async def balance(self, rpc: str | None = None) -> Balance:
        """Return the wallet's USDC, as your own Ethereum node shows it; `rpc` replaces the client's.

        Raises NoNode, NoWallet, Unreachable or Drift.
        """
        return await self._purchases.balance(rpc)

    async def payments(self, *, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> WalletPaymentPage:
        """Return a page of the wallet's payments as the API knows them, newest first.

        `cursor` is the previous page's. The wallet signs in with a message for this API only; nothing is
        paid. Each payment says in `next` what to do about it.
        """
        return await self._purchases.payments(limit, cursor)

    async def payment(self, transaction: str) -> tuple[AnsweredPayment, ...]:
        """Return the wallet's payments in a transaction, or the one with this nonce, with stored answers.

        Raises NotFound if the wallet has none there.
        """
        return await self._purchases.payment(transaction)

    async def redeem(self, transaction: str, body: Mapping[str, Any]) -> Answer:
        """Return the answer that a payment in a transaction bought, without the payment itself.

        `body` is the request as it was paid for. Nothing is signed but the sign-in, and nothing is charged.
        Raises BuyerError as `call`, NotFound if the wallet has no payment there.
        """
        return await self._purchases.redeem(transaction, body)

    async def release_unused(self, rpc: str | None = None) -> NonceStates:
        """Ask your own Ethereum node about expired payments; those it shows unused stop counting.

        It is asked at its safe block, ten minutes after the end of a payment's window. What the API says of
        a payment never returns its amount to the caps.
        """
        return await self._purchases.release_unused(rpc)

    async def tools(self, flavour: ToolFlavour) -> list[dict[str, Any]]:
        """Return the API's services as tools for the models of OpenAI, Anthropic or Gemini.

        A tool's name is a service's slug: pass the name and the arguments that a model chose to `call`.
        """
        return await self._purchases.tools(flavour)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
