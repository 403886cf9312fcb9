"""Purchase logic: request the terms, check them and the caps, sign once, send until there is an answer.

A second payment is signed within one call only if the first was not accepted and never can be: the API
reports that it was unused because its window had ended, and by the local clock the window ended before this
call started. The token rejects an authorization after its window, so at most one payment sent by a call can
move, whatever the API reports. Every other outcome is raised to the caller.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import anyio

from centgate.client.batch import buy_all
from centgate.client.caps import Caps, Spent, parse_dollars
from centgate.client.catalog import ServiceDetail, ServiceSummary
from centgate.client.errors import (
    BuyerError,
    CapExceeded,
    Drift,
    InvalidInput,
    LedgerUnwritable,
    NoNode,
    NoWallet,
    PaymentRefused,
    TermsRefused,
    Unavailable,
    Unreachable,
)
from centgate.client.free_requests import FreeRequests, ServiceOffer, error_from_response
from centgate.client.ledger import Ledger, LockedLedger
from centgate.client.node import Balance, NonceStates, open_node, release_unused_payments
from centgate.client.outcome import EXPIRED_REASON, PaymentOutcome, classify_failure, classify_outcome
from centgate.client.payment import Payment, PurchaseOrder
from centgate.client.payment_signature import canonical_json, generate_nonce, sign_payment
from centgate.client.policy import DEFAULT_OPTIONS, Allowed, OptionNames, Patience
from centgate.client.quote import (
    PaymentOffer,
    PaymentOption,
    Quote,
    choose_option,
    find_payee_objection,
    list_options,
)
from centgate.client.responses import Answer, parse_error
from centgate.client.signed_in import SignedInRequests, payment_path, rebuild_payment, require_redeemable
from centgate.client.tools import ToolFlavour, build_tool
from centgate.client.transport import Transport, TransportError
from centgate.client.wallet import Wallet
from centgate.client.wallet_payments import AnsweredPayment, WalletPaymentPage

CATALOG_CONCURRENCY = 8
"""Services whose entries are read at once."""
CATALOG_MAX_AGE = 60.0
"""Seconds after which a service's entry is read again before a payment is signed."""
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
    payees: Mapping[str, str]
    """Pinned payees, as `parse_payees` returns them."""
    ledger: Ledger
    allowed: Allowed
    patience: Patience
    watch: Callable[[str], None] | None
    rpc: str | None = None
    """URL of the wallet owner's Ethereum node."""
    options: OptionNames = DEFAULT_OPTIONS
    time_limit: float | None = None
    """Seconds for a call from its start to its end; None leaves it to `patience`."""
    _offers: dict[str, ServiceOffer] = field(default_factory=dict[str, ServiceOffer])
    _opened_wallets: list[Wallet] = field(default_factory=list[Wallet])
    """Wallet that the function returned: at most one, in a list that the copies of `with_limits` share."""

    def __post_init__(self) -> None:
        """Raise TypeError for a wallet of another type, such as a key; the message does not quote it."""
        if not (self.wallet is None or isinstance(self.wallet, Wallet) or callable(self.wallet)):
            raise TypeError("a wallet is made by Wallet.from_key(key) or Wallet.from_file(path)")

    @property
    def _free_requests(self) -> FreeRequests:
        return FreeRequests(self.api, self.patience, self.transport, self.options.api)

    def with_limits(self, timeout: float | None, max_price: Decimal | str | None) -> Purchases:
        """Return a copy with the limits of single calls: seconds in total, and US dollars.

        A maximum price above the cap per call does not raise it. Raises ValueError for other values.
        """
        limited = copy(self)
        if timeout is not None:
            if not 0 < timeout < math.inf:
                raise ValueError(f"a timeout is a number of seconds above 0, not {timeout}")
            limited.time_limit = timeout
        if max_price is not None and (price := parse_dollars(max_price)) < self.caps.per_call:
            limited.caps = replace(self.caps, per_call=price)
            limited.options = replace(self.options, per_call="`max_price`")
        return limited

    async def services(self) -> tuple[ServiceSummary, ...]:
        """Return every service of the API, in catalogue order."""
        return await self._free_requests.fetch_services()

    async def service(self, slug: str) -> ServiceDetail:
        """Return one service with its schemas."""
        entry = await self._free_requests.fetch_service(slug)
        self._offers[slug] = ServiceOffer(entry.path, entry.available, time.monotonic())
        return entry

    async def available_services(self) -> list[ServiceDetail]:
        """Return the services that can be bought, with their schemas, in catalogue order."""
        slugs = [each.slug for each in await self.services()]
        details: dict[str, ServiceDetail] = {}
        limiter = anyio.CapacityLimiter(CATALOG_CONCURRENCY)

        async def fetch(slug: str) -> None:
            async with limiter:
                details[slug] = await self.service(slug)

        try:
            async with anyio.create_task_group() as tasks:
                for slug in slugs:
                    tasks.start_soon(fetch, slug)
        except* BuyerError as errors:
            raise next(_iterate_errors(errors)) from None
        return [details[slug] for slug in slugs if details[slug].available]

    async def tools(self, flavour: ToolFlavour) -> list[dict[str, Any]]:
        """Return the services that can be bought as tools of a language model."""
        return [build_tool(service, flavour) for service in await self.available_services()]

    async def terms(self, slug: str, body: Mapping[str, Any]) -> Quote:
        """Return the price and terms of a call, with any objections. Signs nothing."""
        order = await self._build_order(slug, body)
        offer = await self._free_requests.fetch_terms(order)
        if isinstance(offer, Answer):
            raise Drift(f"{self.api} answers {slug} without requiring a payment")
        quote = await self._build_quote(offer)
        try:
            await self._require_available(slug)
        except Unavailable as error:
            return replace(quote, objections=(*quote.objections, str(error)))
        return quote

    def spent(self) -> Spent:
        """Return what the wallet has signed for, as its ledger counts it towards the caps."""
        wallet = self._find_wallet()
        with self.ledger.entry() as entry:
            return entry.spent(wallet.address if wallet else None)

    async def balance(self, rpc: str | None) -> Balance:
        """Return the wallet's USDC, as the wallet owner's node shows it."""
        async with open_node(self._require_node(rpc)) as node:
            return await node.read_balance(self._open_wallet().address, self.allowed.assets)

    async def payments(self, limit: int, cursor: str | None) -> WalletPaymentPage:
        """Return a page of the wallet's payments, as the API knows them."""
        return await self._signed_in().fetch_payments(limit, cursor)

    async def payment(self, transaction: str) -> tuple[AnsweredPayment, ...]:
        """Return the wallet's payments in a transaction with their answers, as the API knows them."""
        return await self._signed_in().fetch_payment(transaction)

    async def redeem(self, transaction: str, body: Mapping[str, Any]) -> Answer:
        """Return the answer that a payment in a transaction bought, and record it in the ledger."""
        signed_in, content = self._signed_in(), canonical_json(body)
        candidates = require_redeemable(await signed_in.fetch_payment(transaction))
        payment = (
            await self._find_signed_among(candidates, content)
            if len(candidates) > 1
            else await self._find_or_rebuild(candidates[0], content, wallet=signed_in.wallet)
        )
        # the nonce names one payment; in a transaction with several the API would choose by the body
        response = await signed_in.send(payment_path(payment.nonce), content)
        if response.status == 400:
            raise error_from_response(self.api, response, parse_error(response))
        return await self._finish(classify_outcome(response, payment, maybe_accepted=True), payment)

    async def _find_or_rebuild(self, shown: AnsweredPayment, content: bytes, *, wallet: Wallet) -> Payment:
        """Return a payment as it is in the ledger, else as the API shows it."""
        order = await self._build_shown_order(shown, content)
        return await self._find_signed(shown.nonce) or rebuild_payment(shown, order, wallet)

    async def _find_signed_among(self, candidates: list[AnsweredPayment], content: bytes) -> Payment:
        """Find the payment that was signed for a request. Raises InvalidInput if the ledger has none."""
        for shown in candidates:
            payment = await self._find_signed(shown.nonce)
            if payment and payment.is_for(await self._build_shown_order(shown, content)):
                return payment
        raise InvalidInput(
            f"{len(candidates)} payments can be redeemed there, and the ledger has none of them for this "
            "request: name one by its nonce in place of the transaction",
            [],
        )

    async def _build_shown_order(self, shown: AnsweredPayment, content: bytes) -> PurchaseOrder:
        offer = await self._free_requests.fetch_offer(shown.service)
        return PurchaseOrder(self.api, offer.path, content, shown.service)

    async def _find_signed(self, nonce: str) -> Payment | None:
        """Find a payment in the ledger; None if it has none. Raises Drift if it was made to another API."""
        with await self.ledger.async_entry() as entry:
            payment = entry.find_signed(nonce)
        if payment is not None and payment.api != self.api:
            raise Drift(
                f"{self.api} shows a payment that was made to {payment.api}. Nothing was recorded; if both "
                "are one API, redeem it with another ledger"
            )
        return payment

    def _signed_in(self) -> SignedInRequests:
        return SignedInRequests(self.api, self.patience, self.transport, self._open_wallet())

    async def release_unused(self, rpc: str | None) -> NonceStates:
        """Ask the wallet owner's node about expired payments; those it shows unused stop counting."""
        payer = self._open_wallet().address
        return await release_unused_payments(self.ledger, payer, self._require_node(rpc))

    def _require_node(self, rpc: str | None) -> str:
        if not (url := rpc or self.rpc):
            raise NoNode(
                "there is no node to ask: pass `rpc`, the URL of your own Ethereum node, or set "
                "CENTGATE_WALLET_RPC"
            )
        return url

    async def map(
        self, slug: str, bodies: Iterable[Mapping[str, Any]], concurrency: int
    ) -> list[Answer | BuyerError]:
        """Buy the answers to many requests, at most `concurrency` at once."""
        return await buy_all(partial(self.call, slug), bodies, concurrency=concurrency)

    async def call(self, slug: str, body: Mapping[str, Any], payment: Payment | None = None) -> Answer:
        """Buy the answer to a request; `payment` is an earlier payment for it, which is sent again."""
        started_at = time.time()
        end = time.monotonic() + (self.time_limit or math.inf)
        async with self._reports_timeout(end):
            order = await self._build_order(slug, body)
        if payment is not None and not payment.is_for(order):
            raise ValueError("this payment was signed for another request")
        open_payment = (
            _PaymentToSend(payment, doubtful=True) if payment else await self._find_open_payment(order)
        )
        for is_last in (False, True):
            to_send = open_payment or await self._sign_payment_or_answer(slug, order, end)
            if isinstance(to_send, Answer):
                return to_send
            try:
                return await self._send_until_answered(order, to_send, end)
            except PaymentRefused as refused:
                if is_last or not _is_expired_unused(refused, to_send.payment, started_at):
                    raise
                self._notify("the payment expired before the API accepted it; signing another")
            open_payment = None
        raise AssertionError("the second round returns or raises")

    async def _build_order(self, slug: str, body: Mapping[str, Any]) -> PurchaseOrder:
        content = canonical_json(body)
        if slug not in self._offers:
            self._offers[slug] = await self._free_requests.fetch_offer(slug)
        return PurchaseOrder(self.api, self._offers[slug].path, content, slug)

    async def _require_available(self, slug: str) -> None:
        """Raise Unavailable if the catalogue says that the service cannot answer."""
        max_age = CATALOG_MAX_AGE if self._offers[slug].is_available else 1.0
        if self._offers[slug].age > max_age:
            with suppress(BuyerError):  # the terms are still asked for: only what the catalogue says counts
                self._offers[slug] = await self._free_requests.fetch_offer(slug)
        if not self._offers[slug].is_available:
            raise Unavailable(
                f"{self.api} lists {slug} as not available: none of its sources is set up there. Nothing was "
                "signed; another deployment may serve it"
            )

    @asynccontextmanager
    async def _reports_timeout(self, end: float) -> AsyncGenerator[None]:
        """Raise Unreachable if unpaid requests are not done at `end` (monotonic seconds)."""
        try:
            with anyio.fail_after(None if end == math.inf else max(end - time.monotonic(), 0)):
                yield
        except TimeoutError:
            raise Unreachable(
                f"{self.api} did not give its terms within the {self.time_limit} seconds of this call. "
                "Nothing was signed; allow more with `timeout`"
            ) from None

    async def _build_quote(self, offer: PaymentOffer) -> Quote:
        options = self._list_options(offer)
        with await self.ledger.async_entry() as entry:
            option, payee_objection = self._choose_option(options, entry)
            cap_objection = self._cap_objection(option, entry, self._known_payer)
        objections = (payee_objection, cap_objection)
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
        with await self.ledger.async_entry() as entry:
            payment = entry.find_pending(order, payer=self._known_payer, now=time.time())
        if payment is None:
            return None
        self._notify("an earlier payment for the same request is open; sending it again")
        return _PaymentToSend(payment, doubtful=True)

    async def _sign_payment_or_answer(
        self, slug: str, order: PurchaseOrder, end: float
    ) -> _PaymentToSend | Answer:
        """Sign a payment under the API's terms; or return the answer if no payment is required."""
        async with self._reports_timeout(end):
            await self._require_available(slug)
            offer = await self._free_requests.fetch_terms(order)
        if isinstance(offer, Answer):
            return offer
        return await self._sign_and_record(self._list_options(offer), order, self._open_wallet())

    def _list_options(self, offer: PaymentOffer) -> list[PaymentOption]:
        """Return the entries that can be signed, best first. Raises TermsRefused."""
        return list_options(offer, host=urlsplit(self.api).hostname or "", allowed=self.allowed)

    def _choose_option(
        self, options: list[PaymentOption], entry: LockedLedger
    ) -> tuple[PaymentOption, str | None]:
        """Return the best option whose payee may be paid, else the best one with the objection."""
        last = entry.last_payees(self.api)
        return choose_option(
            options, partial(find_payee_objection, pinned=self.payees, last=last, api=self.api)
        )

    @property
    def _known_payer(self) -> str | None:
        """Address of the wallet; None while its function has returned none."""
        if isinstance(self.wallet, Wallet):
            return self.wallet.address
        return self._opened_wallets[0].address if self._opened_wallets else None

    def _find_wallet(self) -> Wallet | None:
        if isinstance(self.wallet, Wallet) or self.wallet is None:
            return self.wallet
        if not self._opened_wallets and (wallet := self.wallet()):
            self._opened_wallets.append(wallet)
        return self._opened_wallets[0] if self._opened_wallets else None

    def _open_wallet(self) -> Wallet:
        wallet = self._find_wallet()
        if wallet is None:
            raise NoWallet(
                "the call requires a payment and there is no wallet: make one with `centgate wallet new`, or "
                "set CENTGATE_WALLET to a key file. Nothing was signed"
            )
        return wallet

    async def _sign_and_record(
        self, options: list[PaymentOption], order: PurchaseOrder, wallet: Wallet
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
            option, payee_objection = self._choose_option(options, entry)
            if payee_objection:
                raise TermsRefused(payee_objection)
            if objection := self._cap_objection(option, entry, wallet.address):
                raise CapExceeded(objection)
            payment = sign_payment(option, order, wallet, nonce=generate_nonce(), now=now)
            entry.write_record("signed", payment, "unknown")
        self._notify(f"signed ${option.usd} to {option.payee} on {option.network}")
        return _PaymentToSend(payment, doubtful=False)

    def _cap_objection(self, option: PaymentOption, entry: LockedLedger, payer: str | None) -> str | None:
        """Return why the caps forbid a price; None if they allow it."""
        objection = self.caps.objection(option.usd, spent=entry.spent(payer), option=self.options.per_call)
        if objection and self.ledger.path and option.usd <= self.caps.per_call:
            return f"{objection}; `centgate wallet cap` shows the count and can reset it"
        return objection

    async def _send_until_answered(self, order: PurchaseOrder, ready: _PaymentToSend, end: float) -> Answer:
        """Send a payment until it is answered or refused, or `end` or another limit is reached."""
        payment, doubtful, policy = ready.payment, ready.doubtful, self.patience
        end = min(end, time.monotonic() + policy.deadline)
        for attempt in count(1):
            remaining = max(end - time.monotonic(), 1.0)
            try:
                response = await self.transport.send(
                    payment.path,
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
            past_deadline = time.monotonic() + pause > end
            if not outcome.should_retry or attempt >= policy.attempts or past_deadline:
                return await self._finish(outcome, payment)
            doubtful = doubtful or outcome.maybe_accepted
            self._notify(f"{outcome.result}; sending the same payment again in {pause:.1f} s")
            await anyio.sleep(pause)
        raise AssertionError("count does not end")

    async def _finish(self, outcome: PaymentOutcome, payment: Payment) -> Answer:
        """Record the outcome of a payment, then return the answer or raise the error."""
        result = outcome.result
        ledger_problem = await self._record_outcome(outcome, payment)
        if isinstance(result, BuyerError):
            if ledger_problem:
                result.add_note(ledger_problem)
            raise result
        return replace(result, notes=(*result.notes, ledger_problem)) if ledger_problem else result

    async def _record_outcome(self, outcome: PaymentOutcome, payment: Payment) -> str | None:
        """Append the outcome to the ledger. Returns a message on failure, since no payment is lost by it."""
        result = outcome.result
        receipt = getattr(result, "receipt", None)
        try:
            with await self.ledger.async_entry() as entry:
                entry.write_record(
                    outcome.ledger_event,
                    payment,
                    result.money,
                    transaction=receipt.transaction if receipt else None,
                    request_id=result.request_id,
                    why=str(result) if isinstance(result, BuyerError) else None,
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


def _iterate_errors(group: BaseExceptionGroup[BuyerError]) -> Iterator[BuyerError]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _iterate_errors(error)
        else:
            yield error
