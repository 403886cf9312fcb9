"""Purchase logic: request the terms, check them and the caps, sign once, send until there is an answer.

A second payment is signed within one call only if the first was not accepted and never can be: the API
reports that it was unused because its window had ended, and by the local clock the window ended before this
call started. The token rejects an authorization after its window, so at most one payment sent by a call can
move, whatever the API reports. Every other outcome is raised to the caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import anyio

from centgate.client.caps import Caps
from centgate.client.catalog import ServiceDetail, ServiceSummary
from centgate.client.errors import (
    BuyerError,
    CapExceeded,
    Drift,
    LedgerUnwritable,
    NoWallet,
    PaymentRefused,
    TermsRefused,
)
from centgate.client.free_requests import FreeRequests, Patience
from centgate.client.ledger import Ledger, LockedLedger
from centgate.client.outcome import EXPIRED_REASON, PaymentOutcome, classify_failure, classify_outcome
from centgate.client.payment import Payment, PurchaseOrder, canonical_json, generate_nonce, sign_payment
from centgate.client.quote import (
    Allowed,
    PaymentOffer,
    PaymentOption,
    Quote,
    choose_option,
    find_payee_objection,
)
from centgate.client.responses import Answer
from centgate.client.transport import Transport, TransportError
from centgate.client.wallet import Wallet

WalletSource = Wallet | Callable[[], Wallet | None] | None
"""Wallet, or a function that returns it when a payment has to be signed."""


@dataclass(frozen=True, slots=True)
class _PaymentToSend:
    """Payment to send; `doubtful` if the API may have received it already."""

    payment: Payment
    doubtful: bool


@dataclass(slots=True)
class Purchases:
    """Purchase logic of one client. `watch` receives progress messages."""

    api: str
    transport: Transport
    wallet: WalletSource
    caps: Caps
    payee: str | None
    ledger: Ledger
    allowed: Allowed
    patience: Patience
    watch: Callable[[str], None] | None
    _paths: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def _free_requests(self) -> FreeRequests:
        return FreeRequests(self.api, self.patience, self.transport)

    async def services(self) -> tuple[ServiceSummary, ...]:
        """Return every service of the API, in catalogue order."""
        return await self._free_requests.fetch_services()

    async def service(self, slug: str) -> ServiceDetail:
        """Return one service with its schemas."""
        entry = await self._free_requests.fetch_service(slug)
        self._paths[slug] = entry.path
        return entry

    async def terms(self, slug: str, body: Mapping[str, Any]) -> Quote:
        """Return the price and terms of a call, with any objections. Signs nothing."""
        order = await self._build_order(slug, body)
        offer = await self._free_requests.fetch_terms(order)
        if isinstance(offer, Answer):
            raise Drift(f"{self.api} answers {slug} without requiring a payment")
        return await self._build_quote(offer)

    async def call(self, slug: str, body: Mapping[str, Any], payment: Payment | None = None) -> Answer:
        """Buy the answer to a request; `payment` is an earlier payment for it, which is sent again."""
        started_at = time.time()
        order = await self._build_order(slug, body)
        if payment is not None and not payment.is_for(order):
            raise ValueError("this payment was signed for another request")
        open_payment = (
            _PaymentToSend(payment, doubtful=True) if payment else await self._find_open_payment(order)
        )
        for is_last in (False, True):
            to_send = open_payment or await self._sign_payment_or_answer(order)
            if isinstance(to_send, Answer):
                return to_send
            try:
                return await self._send_until_answered(order, to_send)
            except PaymentRefused as refused:
                if is_last or not _is_expired_unused(refused, to_send.payment, started_at):
                    raise
                self._notify("the payment expired before the API accepted it; signing another")
            open_payment = None
        raise AssertionError("the second round returns or raises")

    async def _build_order(self, slug: str, body: Mapping[str, Any]) -> PurchaseOrder:
        content = canonical_json(body)
        if slug not in self._paths:
            self._paths[slug] = await self._free_requests.fetch_path(slug)
        return PurchaseOrder(self.api, self._paths[slug], content)

    async def _build_quote(self, offer: PaymentOffer) -> Quote:
        host = urlsplit(self.api).hostname or ""
        option = choose_option(offer, host=host, allowed=self.allowed)
        with await self.ledger.async_entry() as entry:
            last_payee = entry.last_payee(self.api)
            payer = self.wallet.address if isinstance(self.wallet, Wallet) else None
            cap_objection = self._cap_objection(option, entry, payer)
        objections = (
            find_payee_objection(option, pinned_payee=self.payee, last_payee=last_payee, api=self.api),
            cap_objection,
        )
        return Quote(
            usd=option.usd,
            network=option.network,
            asset=option.asset.address,
            token=option.asset.name,
            payee=option.payee,
            seconds=option.window,
            resource=str(offer.resource["url"]),
            objections=tuple(objection for objection in objections if objection),
            offer=offer.model_dump(by_alias=True),
        )

    async def _find_open_payment(self, order: PurchaseOrder) -> _PaymentToSend | None:
        """Find the payment that an earlier call for this request left open."""
        payer = self.wallet.address if isinstance(self.wallet, Wallet) else None
        with await self.ledger.async_entry() as entry:
            payment = entry.find_pending(order, payer=payer, now=time.time())
        if payment is None:
            return None
        self._notify("an earlier payment for the same request is open; sending it again")
        return _PaymentToSend(payment, doubtful=True)

    async def _sign_payment_or_answer(self, order: PurchaseOrder) -> _PaymentToSend | Answer:
        """Sign a payment under the API's terms; or return the answer if no payment is required."""
        offer = await self._free_requests.fetch_terms(order)
        if isinstance(offer, Answer):
            return offer
        option = choose_option(offer, host=urlsplit(self.api).hostname or "", allowed=self.allowed)
        return await self._sign_and_record(option, order, self._open_wallet())

    def _open_wallet(self) -> Wallet:
        wallet = self.wallet if isinstance(self.wallet, Wallet) or self.wallet is None else self.wallet()
        if wallet is None:
            raise NoWallet(
                "the call requires a payment and there is no wallet: make one with `centgate wallet new`, or "
                "set CENTGATE_WALLET to a key file. Nothing was signed"
            )
        self.wallet = wallet
        return wallet

    async def _sign_and_record(
        self, option: PaymentOption, order: PurchaseOrder, wallet: Wallet
    ) -> _PaymentToSend:
        """Check the caps, sign, and record the payment before it is sent.

        Recorded payments count towards the total cap. The ledger stays locked from the check to the record,
        so that processes that share it cannot exceed the cap together. If another process has signed for the
        same request meanwhile, its payment is used.
        """
        with await self.ledger.async_entry() as entry:
            now = time.time()
            if pending := entry.find_pending(order, payer=wallet.address, now=now):
                return _PaymentToSend(pending, doubtful=True)
            last_payee = entry.last_payee(self.api)
            if objection := find_payee_objection(
                option, pinned_payee=self.payee, last_payee=last_payee, api=self.api
            ):
                raise TermsRefused(objection)
            if objection := self._cap_objection(option, entry, wallet.address):
                raise CapExceeded(objection)
            payment = sign_payment(option, order, wallet, nonce=generate_nonce(), now=now)
            entry.write_record("signed", payment, "unknown")
        self._notify(f"signed ${option.usd} to {option.payee} on {option.network}")
        return _PaymentToSend(payment, doubtful=False)

    def _cap_objection(self, option: PaymentOption, entry: LockedLedger, payer: str | None) -> str | None:
        """Return why the caps forbid a price; None if they allow it."""
        objection = self.caps.objection(option.usd, signed=entry.total_signed_usd(payer))
        if objection and self.ledger.path and option.usd <= self.caps.per_call:
            return f"{objection}; `centgate wallet cap` shows the count and can reset it"
        return objection

    async def _send_until_answered(self, order: PurchaseOrder, ready: _PaymentToSend) -> Answer:
        """Send a payment until it is answered or refused, or the deadline or retry limit is reached."""
        payment, doubtful, policy = ready.payment, ready.doubtful, self.patience
        started = time.monotonic()
        for attempt in count(1):
            remaining = max(started + policy.deadline - time.monotonic(), 1.0)
            try:
                response = await self.transport.send(
                    order.path,
                    order.body,
                    payment=payment.header,
                    timeout=min(remaining, policy.answer),
                )
            except TransportError as error:
                outcome = classify_failure(error, payment)
            else:
                outcome = classify_outcome(response, payment, maybe_accepted=doubtful)
            pause = max(
                outcome.retry_delay, min(policy.pause * 2 ** min(attempt - 1, 30), policy.longest_pause)
            )
            past_deadline = time.monotonic() + pause > started + policy.deadline
            if not outcome.should_retry or attempt >= policy.attempts or past_deadline:
                return await self._finish(outcome, payment)
            doubtful = doubtful or outcome.maybe_accepted
            self._notify(f"{outcome.result}; sending the same payment again in {pause:.1f} s")
            await anyio.sleep(pause)
        raise AssertionError("count does not end")

    async def _finish(self, judged: PaymentOutcome, payment: Payment) -> Answer:
        """Record the outcome of a payment, then return the answer or raise the error."""
        outcome = judged.result
        ledger_problem = await self._record_outcome(judged, payment)
        if isinstance(outcome, BuyerError):
            if ledger_problem:
                outcome.add_note(ledger_problem)
            raise outcome
        if ledger_problem:
            return _with_note(outcome, ledger_problem)
        return outcome

    async def _record_outcome(self, judged: PaymentOutcome, payment: Payment) -> str | None:
        """Append the outcome to the ledger. Returns a message on failure, since no payment is lost by it."""
        outcome = judged.result
        receipt = getattr(outcome, "receipt", None)
        failed = isinstance(outcome, BuyerError)
        try:
            with await self.ledger.async_entry() as entry:
                entry.write_record(
                    judged.ledger_event,
                    payment,
                    outcome.money,
                    transaction=receipt.transaction if receipt else None,
                    request_id=outcome.request_id,
                    why=str(outcome) if failed else None,
                    receipt=receipt.header if receipt and receipt.signer else None,
                )
        except LedgerUnwritable as error:
            return f"{error}. Until then the same call sends this payment again"
        return None

    def _notify(self, sentence: str) -> None:
        if self.watch is not None:
            self.watch(sentence)


def _is_expired_unused(refused: PaymentRefused, payment: Payment, started_at: float) -> bool:
    """Return True if the payment was not accepted and had expired when the call started.

    `started_at` is in seconds since 1970.
    """
    expired = started_at > payment.valid_before
    return refused.money == "reported_not_moved" and refused.reason == EXPIRED_REASON and expired


def _with_note(answer: Answer, note: str) -> Answer:
    return replace(answer, notes=(*answer.notes, note))
