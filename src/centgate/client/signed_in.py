"""Requests that a wallet signs in for: its payments as the API knows them, and their answers."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar
from urllib.parse import urlencode

import orjson
from pydantic import ValidationError

from centgate.client.errors import BuyerError, Drift, InvalidInput, NotFound, ServiceFailed, Unreachable
from centgate.client.free_requests import error_from_response
from centgate.client.payment import Payment, PurchaseOrder
from centgate.client.policy import Patience
from centgate.client.responses import parse_error
from centgate.client.sign_in import answer_challenge
from centgate.client.transport import HttpResponse, Transport, TransportError
from centgate.client.wallet import Wallet
from centgate.client.wallet_payments import (
    MAX_LIMIT,
    PAYMENTS_PATH,
    AnsweredPayment,
    TransactionPayments,
    WalletPaymentPage,
)
from centgate.client.wire_model import UntrustedModel
from centgate.signing.assets import TOKEN_DECIMALS

ATTEMPTS = 2
"""Sign-ins for one request: an answer may be lost, and its sign-in is used up then."""
_REFERENCE = re.compile(r"0x[0-9a-fA-F]{64}|(?!0x)[A-Za-z0-9_.~-]{1,200}")
"""Hashes and nonces of EVM chains, and the ids that a facilitator may have instead."""

Model = TypeVar("Model", bound=UntrustedModel)


@dataclass(frozen=True, slots=True)
class SignedInRequests:
    """Requests to one API by one wallet. They are free; no error raised here means that money moved."""

    api: str
    patience: Patience
    transport: Transport
    wallet: Wallet

    async def fetch_payments(self, limit: int, cursor: str | None) -> WalletPaymentPage:
        """Return a page of the wallet's payments, newest first."""
        if not 1 <= limit <= MAX_LIMIT:
            raise ValueError(f"a limit is a number from 1 to {MAX_LIMIT}, not {limit}")
        query = urlencode({"limit": limit, **({"cursor": cursor} if cursor else {})})
        return self._parse(await self.send(PAYMENTS_PATH, query=query), WalletPaymentPage)

    async def fetch_payment(self, reference: str) -> tuple[AnsweredPayment, ...]:
        """Return the wallet's payments in a transaction, or the one with this nonce, with their answers."""
        response = await self.send(payment_path(reference))
        return self._parse(response, TransactionPayments).payments

    async def send(self, path: str, body: bytes | None = None, *, query: str = "") -> HttpResponse:
        """Sign in for a path and send a request; GET without a body, else POST.

        Returns any response but a 402. Raises Unreachable, or Drift for a challenge that is not signed.
        """
        target = f"{path}?{query}" if query else path
        response = await self._send_once(target, body, None)
        for _ in range(ATTEMPTS):
            if response.status != 402:
                return response
            challenge = response.headers.get("payment-required")
            signature = answer_challenge(challenge, self.wallet, api=self.api, path=path)
            response = await self._send_once(target, body, signature)
        if response.status == 402:
            reason = parse_error(response).message
            raise ServiceFailed(f"{self.api} does not accept the sign-in: {reason}", "payment_required", None)
        return response

    async def _send_once(self, target: str, body: bytes | None, signature: str | None) -> HttpResponse:
        try:
            return await self.transport.send(target, body, sign_in=signature, timeout=self.patience.answer)
        except TransportError as error:
            raise Unreachable(f"{self.api} {error}. No money moved; ask again") from None

    def _parse(self, response: HttpResponse, model: type[Model]) -> Model:
        if response.status != 200:
            raise self._error_from(response)
        try:
            return model.model_validate(orjson.loads(response.body))
        except (ValueError, ValidationError) as error:
            first = str(error).splitlines()[0][:200]
            raise Drift(f"{self.api} returned payments in an unknown format: {first}") from None

    def _error_from(self, response: HttpResponse) -> BuyerError:
        failure = parse_error(response)
        if response.status == 404 and failure.code == "not_found":
            return NotFound(failure.message, request_id=failure.request_id)
        return error_from_response(self.api, response, failure)


def payment_path(reference: str) -> str:
    """Return the path of a transaction or nonce. Raises NotFound for what can be neither."""
    if not _REFERENCE.fullmatch(reference):
        raise NotFound(
            f"{reference[:60]!r} is neither a transaction nor a nonce, which are 0x and 64 hex digits: "
            "`centgate wallet payments --json` and `payments()` list both"
        )
    return f"{PAYMENTS_PATH}/{reference}"


def require_redeemable(payments: tuple[AnsweredPayment, ...]) -> list[AnsweredPayment]:
    """Return the payments whose answer is owed, then those whose answer is stored.

    Raises InvalidInput if there are none.
    """
    steps = ("redeem", "read_answer")
    if found := [payment for step in steps for payment in payments if payment.next == step]:
        return found
    state = ", ".join(sorted({payment.next for payment in payments}))
    raise InvalidInput(f"nothing can be redeemed there; what can be done about it: {state}", [])


def rebuild_payment(shown: AnsweredPayment, order: PurchaseOrder, wallet: Wallet) -> Payment:
    """Return a payment as the ledger records it, from what the API shows of it; it cannot be sent."""
    return Payment(
        api=order.api,
        path=order.path,
        service=order.service,
        body=order.digest,
        network=shown.network,
        asset=shown.asset,
        payer=wallet.address,
        payee=shown.pay_to,
        usd=Decimal(shown.amount).scaleb(-TOKEN_DECIMALS),
        nonce=shown.nonce,
        valid_before=int(time.time()),
        header="",
    )
