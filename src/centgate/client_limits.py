"""Limits on unpaid and refused work, by client address, payment and payer.

All state is in the memory of one server process: each process, and each replica, has its own limits.
"""

from __future__ import annotations

import dataclasses
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec.structs import replace
from starlette.types import Scope

from centgate.client_address import ClientAddressReader
from centgate.context_managers import AsyncScope
from centgate.errors import (
    UNCHARGED_RESEND,
    CentgateError,
    PaymentConflict,
    PaymentNotConfigured,
    PaymentNote,
    PaymentRequired,
    RateLimited,
    Refused,
)
from centgate.instrumentation import NULL_METER, LimitScope, Meter
from centgate.payments.authorization import Payment
from centgate.payments.payment_key import PaymentKey

if TYPE_CHECKING:
    from centgate.payments.claim_values import Claim
    from centgate.payments.gate import PaymentGate, PaymentHeaders
    from centgate.payments.journal.journal import Journal
    from centgate.settings import Settings

MAX_KEYS = 100_000
"""Maximum number of buckets of each kind: about 20 MB."""
WRONG_REQUESTS, WRONG_REQUESTS_BURST = 10, 60
"""Requests per minute, and at once, from one address that may present a payment made for a different request.

A buyer may try each route once, or send many requests together, and is told each time what is wrong.
"""
RERUNS_PER_MINUTE, RERUNS_BURST = 0.2, 60
"""Runs of a service for one settled payment that was not answered: otherwise a cent would buy any number of
calls to providers, some of which bill the operator also for pages that cannot be read. A buyer that has sent
many equal requests together, each of which failed at once, still gets the answer as soon as it can be given.
"""
REFUSED_COST = 10
"""Tokens for a request whose payment the facilitator refused, or whose signature made nodes look for a
contract: strangers cause such calls for nothing.
"""
_ROUNDING = 1e-6
"""Tolerance in seconds for rounding errors: a clock value of days has less precision than one token."""
ACCEPTED_STATES = frozenset({"in_flight", "settled", "delivered"})
"""States of a payment that was accepted."""

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
ClientPaymentKey = tuple[str, str, str, str, str]
"""A client's name and the parts of a payment's key, as strings because these hash quickly."""


class TokenBuckets(Generic[K]):
    """Token buckets by key.

    A bucket is stored as the time at which it will be full again, and a full one is not stored. Beyond
    `max_keys` the one that was changed longest ago is dropped: to have a bucket dropped early, a client needs
    requests from `max_keys` other keys, which costs far more than the tokens gained.
    """

    def __init__(
        self,
        per_minute: float,
        burst: float,
        *,
        max_keys: int = MAX_KEYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create buckets of `burst` tokens that refill at `per_minute`; 0 per minute means no limit."""
        self._interval = 60 / per_minute if per_minute else 0.0
        self._span = burst * self._interval + _ROUNDING
        self._max_keys = max_keys
        self._clock = clock
        self._full_at = OrderedDict[K, float]()

    def __len__(self) -> int:
        return len(self._full_at)

    def take_token(self, key: K) -> bool:
        """Take a token and return True; False if the bucket is empty."""
        now = self._clock()
        full_at = max(self._full_at.get(key, now), now) + self._interval
        if full_at - now > self._span:
            return False
        self._store(key, full_at, now)
        return True

    def spend_tokens(self, key: K, tokens: int = 1) -> None:
        """Take tokens even if the bucket is empty; it then takes longer to refill."""
        now = self._clock()
        self._store(key, max(self._full_at.get(key, now), now) + tokens * self._interval, now)

    def return_tokens(self, key: K, tokens: int = 1) -> None:
        """Return tokens to the bucket, up to its size."""
        full_at = self._full_at.get(key)
        if full_at is not None:
            self._store(key, full_at - tokens * self._interval, self._clock())

    def has_tokens(self, key: K, tokens: int = 1) -> bool:
        """True if the bucket holds at least this many tokens."""
        if key not in self._full_at and tokens == 1:
            return True
        return self.seconds_until(key, tokens) <= 0

    def seconds_until(self, key: K, tokens: int = 1) -> float:
        """Return the seconds until this many tokens are available; 0 or less if they are."""
        now = self._clock()
        return max(self._full_at.get(key, now), now) - now + tokens * self._interval - self._span

    def _store(self, key: K, full_at: float, now: float) -> None:
        if full_at <= now:
            self._full_at.pop(key, None)
            return
        self._full_at[key] = full_at
        self._full_at.move_to_end(key)
        for _ in range(2):  # drops more than are added, so that no request has to wait for a full sweep
            oldest = next(iter(self._full_at))
            if self._full_at[oldest] > now and len(self._full_at) <= self._max_keys:
                break
            del self._full_at[oldest]


class ClientLimits:
    """The limits of one server process."""

    def __init__(
        self, settings: Settings, meter: Meter = NULL_METER, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.meter = meter
        self.clients = ClientAddressReader(settings.trusted_proxies)
        per_minute, refused = settings.free_per_minute, settings.refused_per_minute
        wrong = WRONG_REQUESTS if per_minute else 0
        self.addresses = TokenBuckets[str](per_minute, settings.free_burst, clock=clock)
        self.payers = TokenBuckets[str](refused, refused, clock=clock)
        self.wrong_requests = TokenBuckets[ClientPaymentKey](wrong, WRONG_REQUESTS_BURST, clock=clock)
        """By address and payment, so that another client cannot block the buyer of a paid request."""
        self.guessers = TokenBuckets[str](wrong, WRONG_REQUESTS_BURST, clock=clock)
        """By address that has used up its free requests, for all payments: those of others are public."""
        self.guesses_in_progress: set[ClientPaymentKey] = set()
        """Payments for which a token of `guessers` is held: the same request with one needs no other."""
        self.reruns = TokenBuckets[PaymentKey](RERUNS_PER_MINUTE, RERUNS_BURST, clock=clock)
        self.requests_in_progress: dict[ClientPaymentKey, dict[str, int]] = {}
        """Requests in progress by address and payment: their number for each request binding."""

    def admit(self, scope: Scope) -> Admission:
        """Create the admission of a request; takes a token if its client has one."""
        return Admission(self, self.clients.read_client_key(scope))


class Admission:
    """The token of one request; it is returned when the request's payment is accepted.

    Order of the calls for a request to a paid route:

    1. `limit_request`, around the others.
    2. `check_payment`, at most once, when the payment is verified; `limit_request` ends what it begins.
    3. `count_rerun`, then `count_settlement`, at most once each, when the payment is claimed. The work on a
       payment continues without its buyer, so these may come after the end of `limit_request`.

    `count_node_query` may come at any time: a sign-in before all of these is a signature to check, too.
    """

    def __init__(self, limits: ClientLimits, client: str) -> None:
        self.client = client
        self._limits = limits
        self._tokens = int(limits.addresses.take_token(client))
        self.is_limited = not self._tokens
        """True if the client has used up its free requests: only payments accepted before proceed."""
        self._holds_guess = False
        """True while it holds a token of `guessers`."""
        self._pair: ClientPaymentKey | None = None
        self._binding: str | None = None

    def rate_limit_error(self, payment: PaymentNote | None = None) -> RateLimited:
        """Return the error for a client that has used up its free requests."""
        wait = self._limits.addresses.seconds_until(self.client)
        message = "too many requests without an accepted payment came from this address"
        return self._rate_limited("address", message, wait, payment)

    def limit_request(
        self, slug: str, headers: PaymentHeaders, gate: PaymentGate, journal: Journal
    ) -> AbstractAsyncContextManager[None]:
        """Limit a request that is answered inside the `async with`, whose outcome decides on the token.

        Raises RateLimited, and JournalUnavailable if it has to look up a payment.
        """
        return AsyncScope(partial(self._begin_request, slug, headers, gate, journal), self._end_request)

    async def _begin_request(
        self, slug: str, headers: PaymentHeaders, gate: PaymentGate, journal: Journal
    ) -> None:
        """Raise RateLimited if the client's tokens are used up and its payment is not known."""
        if self.is_limited:
            await self._require_known(slug, headers, gate, journal)

    async def _end_request(self, _: None, error: BaseException | None) -> None:
        """Count the outcome of a request."""
        if isinstance(error, CentgateError):
            self._count_error(error)
        self._remove_binding()
        if self._holds_guess and self._pair:
            self._limits.guesses_in_progress.discard(self._pair)
            self._limits.guessers.return_tokens(self.client)
        if error is None:
            self._give_back()

    async def check_payment(self, payment: Payment, binding: str, journal: Journal) -> None:
        """Check the limits before a payment is used for a request; `binding` is the request's digest.

        Raises RateLimited if it was presented with too many other requests, or if too many payments of this
        payer were refused and the journal does not know this one.
        """
        pair = self._payment_pair(payment.key)
        under_way = self._limits.requests_in_progress.get(pair, {})
        # requests in progress may be wrong too; parallel requests must not allow more than sequential ones
        others = len(under_way) - (binding in under_way)
        is_repeated = not self.is_limited or self._holds_guess or binding in under_way
        has_tokens = self._limits.wrong_requests.has_tokens(pair, 1 + others)
        if not (has_tokens and (is_repeated or self._take_guess(pair))):
            raise await self._too_many_wrong_requests(pair, payment, journal)
        self._pair, self._binding = pair, binding
        self._limits.requests_in_progress.setdefault(pair, under_way)[binding] = under_way.get(binding, 0) + 1
        payer = payment.key.payer
        if not payment.is_signer_verified or self._limits.payers.has_tokens(payer):
            return
        if not _is_accepted(await journal.find_note(payment)):
            message = "too many payments of this payer were refused"
            raise self._rate_limited(
                "payer", message, self._limits.payers.seconds_until(payer), UNCHARGED_RESEND
            )

    def count_rerun(self, claim: Claim) -> None:
        """Count a run of the service for a payment that is settled already.

        Raises RateLimited if it has failed too often in a short time; the answer is still owed.
        """
        if claim.state == "settled" and not self._limits.reruns.take_token(claim.key):
            wait = self._limits.reruns.seconds_until(claim.key)
            message = "the service failed too often for this payment: wait before you send it again"
            note = PaymentNote("settled", charged=True, retry="same_payment", transaction=claim.transaction)
            raise self._rate_limited("payment", message, wait, note)

    async def count_settlement(self, payment: Payment, claim: Claim, settlement: Awaitable[T]) -> T:
        """Await a payment's settlement and count its outcome.

        A refusal costs the address ten tokens, since it causes calls to the facilitator and perhaps to nodes,
        and a client can create any number of keys. It also counts against the payer if the payer's own key
        signed; otherwise a third party could cause refusals in a payer's name. A payment that is settled for
        the first time also returns the token of the request that fetched its terms.
        """
        is_new = claim.state != "settled"
        try:
            receipt = await settlement
        except PaymentRequired:
            self._limits.addresses.spend_tokens(self.client, REFUSED_COST - 1)
            if payment.is_signer_verified:
                self._limits.payers.spend_tokens(payment.key.payer)
            raise
        self._tokens += is_new
        self._give_back()
        return receipt

    def count_node_query(self) -> None:
        """Take the tokens of a request whose signature is no key's: nodes are asked about a contract."""
        self._limits.addresses.spend_tokens(self.client, REFUSED_COST - 1)

    async def _require_known(
        self, slug: str, headers: PaymentHeaders, gate: PaymentGate, journal: Journal
    ) -> None:
        """Raise RateLimited unless the request presents a payment that was accepted before."""
        if not headers.has_payment:
            raise self.rate_limit_error()
        payment = _parse_payment(slug, headers, gate, journal.estimate_now())
        note = await journal.find_note(payment) if payment else None
        if payment is None or not _is_accepted(note):
            raise self.rate_limit_error(UNCHARGED_RESEND)
        self._pair = self._payment_pair(payment.key)
        is_repeated = self._pair in self._limits.guesses_in_progress  # with which request is not known yet
        has_tokens = self._limits.wrong_requests.has_tokens(self._pair)
        if not (has_tokens and (is_repeated or self._take_guess(self._pair))):
            raise await self._too_many_wrong_requests(self._pair, payment, journal)

    def _take_guess(self, pair: ClientPaymentKey) -> bool:
        """Take a token for a payment; False if none is left.

        It is held to the end of the request, as parallel guesses must not allow more than sequential ones.
        """
        self._holds_guess = self._limits.guessers.take_token(self.client)
        if self._holds_guess:
            self._limits.guesses_in_progress.add(pair)
        return self._holds_guess

    def _payment_pair(self, key: PaymentKey) -> ClientPaymentKey:
        return (self.client, key.network, key.asset, key.payer, key.nonce)

    async def _too_many_wrong_requests(
        self, pair: ClientPaymentKey, payment: Payment, journal: Journal
    ) -> RateLimited:
        """Return the error for a payment that was presented with too many requests it was not made for.

        Signatures of settled payments are public on the chain, and a client that guesses the matching request
        receives its answer. So the matching request is refused as well until there is a token; otherwise the
        answer would confirm the guess. The buyer, at another address, has a separate bucket.
        """
        limits = self._limits
        wait = max(limits.wrong_requests.seconds_until(pair), limits.guessers.seconds_until(self.client))
        itself = replace(payment, identifier=None)  # else finds other payments of this key
        note = dataclasses.replace(await journal.find_note(itself) or UNCHARGED_RESEND, retry="same_payment")
        message = "too many requests came with payments that were not made for them"
        return self._rate_limited("payment", message, wait, note)

    def _rate_limited(
        self, by: LimitScope, message: str, wait: float, payment: PaymentNote | None
    ) -> RateLimited:
        self._limits.meter.record_rate_limit(by)
        return RateLimited(message, retry_after=max(1, ceil(wait)), payment=payment)

    def _count_error(self, error: CentgateError) -> None:
        """Return the token for an accepted payment, or count a request that the payment was not made for."""
        if not isinstance(error, Refused) and error.payment and _is_accepted(error.payment):
            # a payment in flight is not settled yet and may never be
            if error.payment.state != "in_flight":
                self._give_back()
            return
        # a client without tokens must not bypass the limit for refused requests with a known payment
        counts = self.is_limited or _is_for_other_request(error)
        if self._pair and counts and not isinstance(error, RateLimited):
            self._limits.wrong_requests.spend_tokens(self._pair)
            if self.is_limited:
                self._limits.guessers.spend_tokens(self.client)

    def _give_back(self) -> None:
        if self._tokens:
            self._limits.addresses.return_tokens(self.client, self._tokens)
            self._tokens = 0

    def _remove_binding(self) -> None:
        if self._pair is None or self._binding is None:
            return
        under_way = self._limits.requests_in_progress[self._pair]
        under_way[self._binding] -= 1
        if not under_way[self._binding]:
            del under_way[self._binding]
        if not under_way:
            del self._limits.requests_in_progress[self._pair]


def _is_accepted(note: PaymentNote | None) -> bool:
    return note is not None and note.state in ACCEPTED_STATES


def _is_for_other_request(error: CentgateError) -> bool:
    """True if the payment, or its idempotency key, was made for another request."""
    used = isinstance(error, PaymentRequired) and error.reason == "payment_already_used"
    return used or isinstance(error, PaymentConflict)


def _parse_payment(slug: str, headers: PaymentHeaders, gate: PaymentGate, now: float) -> Payment | None:
    """Parse the payment of a request; return None if it could not have been accepted."""
    try:
        return gate.read(slug, headers, now)
    except (PaymentNotConfigured, PaymentRequired):
        return None
