"""The way of a purchase: ask, look at the terms, check the caps, sign once, send until it is answered.

Told once for sync and async: what is to be sent is yielded, and what came of it is sent in.

When is a second payment signed within one call? Only when the first was never taken and never can be: the API
says that it was not used, for the reason that its window had ended, and by our own clock it had before this
call began. The token takes no authorization past its window, so at most one payment that a call sends can
move, whatever the API says; everything else is told to the caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from centgate.client.answers import Answer
from centgate.client.asking import Asking, Patience
from centgate.client.caps import Caps
from centgate.client.catalog import Entry, Listed
from centgate.client.errors import (
    BuyerError,
    CapExceeded,
    Drift,
    LedgerUnwritable,
    NoWallet,
    PaymentRefused,
    TermsRefused,
)
from centgate.client.exchange import Pause, Send, Way, ask
from centgate.client.judging import EXPIRED, Judged, judge
from centgate.client.ledger import Entry as LedgerEntry
from centgate.client.ledger import Ledger
from centgate.client.payment import Order, Payment, canonical, fresh_nonce, sign
from centgate.client.terms import Allowed, Offer, Option, Quote, choose, payee_objection
from centgate.client.wallet import Wallet

WalletSource = Wallet | Callable[[], Wallet | None] | None
"""A wallet, or what gives it when a payment is to be signed."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A payment to be sent, and whether the API may have it already."""

    payment: Payment
    doubtful: bool


class Buyer:
    """One client's means and memory. Its methods are ways: they do no networking themselves."""

    def __init__(
        self,
        api: str,
        *,
        wallet: WalletSource,
        caps: Caps,
        payee: str | None,
        ledger: Ledger,
        allowed: Allowed,
        patience: Patience,
        watch: Callable[[str], None] | None,
    ) -> None:
        self.api = api
        self.ledger = ledger
        self._wallet = wallet
        self._caps = caps
        self._payee = payee
        self._allowed = allowed
        self._patience = patience
        self._watch = watch
        self._paths: dict[str, str] = {}
        self._asking = Asking(api, patience)

    def services(self) -> Way[tuple[Listed, ...]]:
        """Every service of the API, in its order."""
        return self._asking.services()

    def service(self, slug: str) -> Way[Entry]:
        """One service, whole."""
        entry = yield from self._asking.service(slug)
        self._paths[slug] = entry.path
        return entry

    def terms(self, slug: str, body: Mapping[str, Any]) -> Way[Quote]:
        """What a call would cost, and why this client would not pay it, if so. Nothing is signed."""
        order = yield from self._order(slug, body)
        came = yield from self._asking.terms(order)
        if isinstance(came, Answer):
            raise Drift(f"{self.api} answers {slug} without asking for a payment")
        return (yield from self._quote(came))

    def call(self, slug: str, body: Mapping[str, Any], payment: Payment | None = None) -> Way[Answer]:
        """The answer to a request, paid for; `payment` is one that was signed for it and is sent again."""
        began = time.time()
        order = yield from self._order(slug, body)
        if payment is not None and not payment.fits(order):
            raise ValueError("this payment was signed for another request")
        ready = _Ready(payment, doubtful=True) if payment else (yield from self._pending(order))
        for last in (False, True):
            got = ready or (yield from self._agreed(order))
            if isinstance(got, Answer):
                return got
            try:
                return (yield from self._delivered(order, got))
            except PaymentRefused as refused:
                if last or not _never_taken(refused, got.payment, began):
                    raise
                self._tell("the payment's window ended before it was taken; signing another")
            ready = None
        raise AssertionError("the second round returns or raises")

    def _order(self, slug: str, body: Mapping[str, Any]) -> Way[Order]:
        content = canonical(body)
        if slug not in self._paths:
            self._paths[slug] = yield from self._asking.path(slug)
        return Order(self.api, self._paths[slug], content)

    def _quote(self, offer: Offer) -> Way[Quote]:
        host = urlsplit(self.api).hostname or ""
        option = choose(offer, host=host, allowed=self._allowed)
        with (yield from self._entry()) as entry:
            known = entry.payee(self.api)
            payer = self._wallet.address if isinstance(self._wallet, Wallet) else None
            over = self._cap_objection(option, entry, payer)
        objections = (payee_objection(option, pinned=self._payee, known=known, api=self.api), over)
        return Quote(
            usd=option.usd,
            network=option.network,
            asset=option.asset.address,
            token=option.asset.name,
            payee=option.payee,
            seconds=option.window,
            resource=str(offer.resource["url"]),
            objections=tuple(each for each in objections if each),
            offer=offer.model_dump(by_alias=True),
        )

    def _entry(self) -> Way[LedgerEntry]:
        """The ledger, when nobody else holds it. Nothing is yielded while it is held."""
        waiting = self.ledger.waiting()
        while True:
            try:
                seconds = next(waiting)
            except StopIteration as held:
                return held.value
            yield Pause(seconds)

    def _pending(self, order: Order) -> Way[_Ready | None]:
        """The payment that an earlier call for this request has left open."""
        payer = self._wallet.address if isinstance(self._wallet, Wallet) else None
        with (yield from self._entry()) as entry:
            payment = entry.pending(order, payer=payer, now=time.time())
        if payment is None:
            return None
        self._tell("an earlier payment for the same request is open; sending it again")
        return _Ready(payment, doubtful=True)

    def _agreed(self, order: Order) -> Way[_Ready | Answer]:
        """A payment under the API's terms; or the answer, where nothing is asked for."""
        offer = yield from self._asking.terms(order)
        if isinstance(offer, Answer):
            return offer
        option = choose(offer, host=urlsplit(self.api).hostname or "", allowed=self._allowed)
        return (yield from self._signed(option, order, self._signer()))

    def _signer(self) -> Wallet:
        wallet = self._wallet if isinstance(self._wallet, Wallet) or self._wallet is None else self._wallet()
        if wallet is None:
            raise NoWallet(
                "the call has to be paid and there is no wallet: make one with `centgate wallet new`, or set "
                "CENTGATE_WALLET to a key file. Nothing was signed"
            )
        self._wallet = wallet
        return wallet

    def _signed(self, option: Option, order: Order, wallet: Wallet) -> Way[_Ready]:
        """Check the caps, sign, and write it down, before anybody hears of it.

        What is written down counts against the total cap. The ledger is held from the check to the record,
        so that processes that share it cannot pass the cap together. Another process may have signed for the
        same request meanwhile: then its payment is the one.
        """
        with (yield from self._entry()) as entry:
            now = time.time()
            if pending := entry.pending(order, payer=wallet.address, now=now):
                return _Ready(pending, doubtful=True)
            known = entry.payee(self.api)
            if objection := payee_objection(option, pinned=self._payee, known=known, api=self.api):
                raise TermsRefused(objection)
            if objection := self._cap_objection(option, entry, wallet.address):
                raise CapExceeded(objection)
            payment = sign(option, order, wallet, nonce=fresh_nonce(), now=now)
            entry.write("signed", payment, "unknown")
        self._tell(f"signed ${option.usd} to {option.payee} on {option.network}")
        return _Ready(payment, doubtful=False)

    def _cap_objection(self, option: Option, entry: LedgerEntry, payer: str | None) -> str | None:
        """Return why the caps forbid a price; None when they allow it."""
        objection = self._caps.objection(option.usd, signed=entry.signed_usd(payer))
        if objection and self.ledger.path and option.usd <= self._caps.per_call:
            return f"{objection}; `centgate wallet cap` shows the count and begins a new one"
        return objection

    def _delivered(self, order: Order, ready: _Ready) -> Way[Answer]:
        """Send a payment until it is answered, refused, or patience ends."""
        payment, doubtful, patience = ready.payment, ready.doubtful, self._patience
        started = time.monotonic()
        headers = {"Content-Type": "application/json", "PAYMENT-SIGNATURE": payment.header}
        for attempt in count(1):
            left = max(started + patience.deadline - time.monotonic(), 1.0)
            seconds = min(left, patience.answer)
            came = yield from ask(Send("POST", order.path, order.body, headers, patience.connect, seconds))
            judged = judge(came, payment, doubtful=doubtful)
            pause = max(judged.after, min(patience.pause * 2 ** min(attempt - 1, 30), patience.longest_pause))
            late = time.monotonic() + pause > started + patience.deadline
            if not judged.again or attempt >= patience.attempts or late:
                return (yield from self._concluded(judged, payment))
            doubtful = doubtful or judged.doubtful
            self._tell(f"{judged.outcome}; sending the same payment again in {pause:.1f} s")
            yield Pause(pause)
        raise AssertionError("count does not end")

    def _concluded(self, judged: Judged, payment: Payment) -> Way[Answer]:
        """Write down what came of a payment: the answer is returned, anything else raised."""
        outcome = judged.outcome
        unwritten = yield from self._written(judged, payment)
        if isinstance(outcome, BuyerError):
            if unwritten:
                outcome.add_note(unwritten)
            raise outcome
        if unwritten:
            return _noting(outcome, unwritten)
        return outcome

    def _written(self, judged: Judged, payment: Payment) -> Way[str | None]:
        """Enter the outcome in the ledger; a sentence when that fails, which loses nothing."""
        outcome = judged.outcome
        receipt = getattr(outcome, "receipt", None)
        failed = isinstance(outcome, BuyerError)
        try:
            with (yield from self._entry()) as entry:
                entry.write(
                    judged.ending,
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

    def _tell(self, sentence: str) -> None:
        if self._watch is not None:
            self._watch(sentence)


def _never_taken(refused: PaymentRefused, payment: Payment, began: float) -> bool:
    """Whether a payment was not taken, and could not be any more when the call began (seconds since 1970)."""
    ended = began > payment.valid_before
    return refused.money == "reported_not_moved" and refused.reason == EXPIRED and ended


def _noting(answer: Answer, note: str) -> Answer:
    return replace(answer, notes=(*answer.notes, note))
