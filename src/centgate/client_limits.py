"""Limits on unpaid and refused work, by client address, payment and payer.

Everything is kept in the memory of one server process: each process, and each replica, has limits of its own.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Generic, TypeVar

from starlette.types import Scope

from centgate.client_address import ClientAddresses
from centgate.errors import (
    UNTOUCHED,
    CentgateError,
    PaymentConflict,
    PaymentNote,
    PaymentRequired,
    RateLimited,
    Refused,
)
from centgate.meter import SILENT, LimitedBy, Meter
from centgate.payments.authorization import Payment, PaymentKey, read_payment

if TYPE_CHECKING:
    from centgate.payments.claiming import Claim
    from centgate.payments.gate import Gate
    from centgate.payments.journal import Journal
    from centgate.settings import Settings

MAX_KEYS = 100_000
"""Buckets that are remembered of each kind: some 20 MB."""
WRONG_REQUESTS = 10
"""Requests a minute, from one address, that a payment may come with although it was made for another one."""
REFUSED_COST = 10
"""Tokens of a request whose payment the facilitator refused: it and perhaps nodes were asked."""
_ROUNDING = 1e-6
"""Seconds that sums of times may be off: a clock of days has fewer digits after the point than a token."""
ACCEPTED = frozenset({"in_flight", "settled", "delivered"})
"""States of a payment that was accepted."""

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
Pair = tuple[str, str, str, str, str]
"""A client's name, and the parts of the key of a payment it has presented: as strings they hash quickly."""


class TokenBuckets(Generic[K]):
    """Token buckets by key.

    A bucket is stored as the time at which it will be full again, and a full one is not stored. Beyond
    `max_keys` the one that was changed longest ago is dropped: to have a bucket dropped early, somebody needs
    requests from `max_keys` other keys, which is far more than the tokens that are won.
    """

    def __init__(
        self,
        per_minute: float,
        burst: float,
        *,
        max_keys: int = MAX_KEYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make buckets of `burst` tokens that fill at `per_minute`; 0 a minute is without a limit."""
        self._interval = 60 / per_minute if per_minute else 0.0
        self._span = burst * self._interval + _ROUNDING
        self._max_keys = max_keys
        self._clock = clock
        self._full_at = OrderedDict[K, float]()

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, key: K) -> bool:
        """Take a token, if there is one."""
        now = self._clock()
        full_at = max(self._full_at.get(key, now), now) + self._interval
        if full_at - now > self._span:
            return False
        self._store(key, full_at, now)
        return True

    def spend(self, key: K, tokens: int = 1) -> None:
        """Take tokens whether they are there or not: the next ones come the later."""
        now = self._clock()
        self._store(key, max(self._full_at.get(key, now), now) + tokens * self._interval, now)

    def give_back(self, key: K, tokens: int = 1) -> None:
        """Put tokens back, as many as the bucket holds."""
        full_at = self._full_at.get(key)
        if full_at is not None:
            self._store(key, full_at - tokens * self._interval, self._clock())

    def has(self, key: K, tokens: int = 1) -> bool:
        """True if so many tokens are there."""
        if key not in self._full_at and tokens == 1:
            return True
        return self.wait(key, tokens) <= 0

    def wait(self, key: K, tokens: int = 1) -> float:
        """Return the seconds until so many tokens are there; 0 or less when they are."""
        now = self._clock()
        return max(self._full_at.get(key, now), now) - now + tokens * self._interval - self._span

    def _store(self, key: K, full_at: float, now: float) -> None:
        if full_at <= now:
            self._full_at.pop(key, None)
            return
        self._full_at[key] = full_at
        self._full_at.move_to_end(key)
        for _ in range(2):  # more go than come, so that no request has to wait for a sweep
            oldest = next(iter(self._full_at))
            if self._full_at[oldest] > now and len(self._full_at) <= self._max_keys:
                break
            del self._full_at[oldest]


class ClientLimits:
    """The limits of one server process."""

    def __init__(
        self, settings: Settings, meter: Meter = SILENT, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.meter = meter
        self.clients = ClientAddresses(settings.trusted_proxies)
        per_minute, refused = settings.free_per_minute, settings.refused_per_minute
        wrong = WRONG_REQUESTS if per_minute else 0
        self.addresses = TokenBuckets[str](per_minute, settings.free_burst, clock=clock)
        self.payers = TokenBuckets[str](refused, refused, clock=clock)
        self.wrong_requests = TokenBuckets[Pair](wrong, wrong, clock=clock)
        """Of an address and a payment, so that nobody can keep the buyer from what he paid for."""
        self.presented: dict[Pair, dict[str, int]] = {}
        """How many requests of each binding an address has under way with a payment."""

    def admit(self, scope: Scope) -> Admission:
        """Take a token for a request, if its client has one."""
        return Admission(self, self.clients.read(scope))


@dataclass(frozen=True, slots=True)
class Presented:
    """A request to a paid route, as far as it concerns the limits."""

    slug: str
    signature: str | None
    """`PAYMENT-SIGNATURE`, if it came."""
    idempotency_key: str | None = None


class Admission:
    """The token of one request, which is given back when its payment is accepted."""

    def __init__(self, limits: ClientLimits, client: str) -> None:
        self.client = client
        self._limits = limits
        self._tokens = int(limits.addresses.take(client))
        self.is_limited = not self._tokens
        """Whether the client has used up its free work: only what the journal knows goes on."""
        self._pair: Pair | None = None
        self._binding: str | None = None

    def refusal(self, payment: PaymentNote | None = None) -> RateLimited:
        """Return the error for a client that has used up its free work."""
        wait = self._limits.addresses.wait(self.client)
        message = "too many requests without an accepted payment came from this address"
        return self._limited("address", message, wait, payment)

    async def count_request(
        self, request: Presented, gate: Gate, journal: Journal, answer: Callable[[], Awaitable[T]]
    ) -> T:
        """Answer a request, and keep or give back its token by the outcome.

        Raises RateLimited, JournalUnavailable when it must look a payment up, and what `answer` raises.
        """
        if self.is_limited:
            await self._require_known(request, gate, journal)
        try:
            result = await answer()
        except CentgateError as error:
            self._count(error)
            raise
        finally:
            self._forget_binding()
        self._give_back()
        return result

    async def present(self, payment: Payment, binding: str, journal: Journal) -> None:
        """Let a payment be tried for a request; `binding` is the digest of that.

        Raises RateLimited when it came with too many other requests, or when too many payments of this payer
        were refused and the journal does not know this one.
        """
        pair = self._pair_with(payment.key)
        under_way = self._limits.presented.get(pair, {})
        # those under way may turn out to be wrong: all at once must not be more than one after the other
        others = len(under_way) - (binding in under_way)
        if not self._limits.wrong_requests.has(pair, 1 + others):
            raise await self._wrong_request(pair, payment, journal)
        self._pair, self._binding = pair, binding
        self._limits.presented.setdefault(pair, under_way)[binding] = under_way.get(binding, 0) + 1
        payer = payment.key.payer
        if not payment.signer_known or self._limits.payers.has(payer):
            return
        if not _is_accepted(await journal.note(payment)):
            message = "too many payments of this payer were refused"
            raise self._limited("payer", message, self._limits.payers.wait(payer), UNTOUCHED)

    async def count_settlement(self, settlement: Awaitable[T], payment: Payment, claim: Claim) -> T:
        """Wait for a settlement, count its outcome, and return its result.

        A refusal costs the address ten tokens, since the facilitator and perhaps nodes were asked, and any
        number of keys can be made. It counts against the payer as well, but only one whose own key has
        signed: anybody can have another payment refused in a payer's name. A payment that is settled for the
        first time also makes up for the request that asked for its terms.
        """
        is_new = claim.state != "settled"
        try:
            result = await settlement
        except PaymentRequired:
            self._limits.addresses.spend(self.client, REFUSED_COST - 1)
            if payment.signer_known:
                self._limits.payers.spend(payment.key.payer)
            raise
        self._tokens += is_new
        self._give_back()
        return result

    async def _require_known(self, request: Presented, gate: Gate, journal: Journal) -> None:
        """Refuse what is not about a payment that was accepted before."""
        if request.signature is None:
            raise self.refusal()
        payment = _decode(request, gate)
        note = await journal.note(payment) if payment else None
        if payment is None or not _is_accepted(note):
            raise self.refusal(UNTOUCHED)
        self._pair = self._pair_with(payment.key)
        if not self._limits.wrong_requests.has(self._pair):
            raise await self._wrong_request(self._pair, payment, journal)

    def _pair_with(self, key: PaymentKey) -> Pair:
        return (self.client, key.network, key.asset, key.payer, key.nonce)

    async def _wrong_request(self, pair: Pair, payment: Payment, journal: Journal) -> RateLimited:
        """Return the error for a payment that came with too many requests it was not made for.

        Signatures of settled payments can be read on the chain, and whoever guesses the request of one is
        given its answer. So the right request is refused as well until the minute is over: to be answered
        would tell that the guess was good. The buyer at another address has a bucket of its own.
        """
        wait = self._limits.wrong_requests.wait(pair)
        itself = replace(payment, identifier=None)  # not what another payment under the same key has bought
        note = replace(await journal.note(itself) or UNTOUCHED, retry="same_payment")
        message = "this payment came with too many requests that it was not made for"
        return self._limited("payment", message, wait, note)

    def _limited(self, by: LimitedBy, message: str, wait: float, payment: PaymentNote | None) -> RateLimited:
        self._limits.meter.limited(by)
        return RateLimited(message, retry_after=max(1, ceil(wait)), payment=payment)

    def _count(self, error: CentgateError) -> None:
        """Give the token back for an accepted payment, or count a request that it was not made for."""
        if not isinstance(error, Refused) and error.payment and _is_accepted(error.payment):
            # what is in flight has not been paid, and may be a payment that never will be
            if error.payment.state != "in_flight":
                self._give_back()
            return
        # without tokens, a known payment must not be the way around the limit for any refused work
        counts = self.is_limited or _is_for_another(error)
        if self._pair and counts and not isinstance(error, RateLimited):
            self._limits.wrong_requests.spend(self._pair)

    def _give_back(self) -> None:
        if self._tokens:
            self._limits.addresses.give_back(self.client, self._tokens)
            self._tokens = 0

    def _forget_binding(self) -> None:
        if self._pair is None or self._binding is None:
            return
        under_way = self._limits.presented[self._pair]
        under_way[self._binding] -= 1
        if not under_way[self._binding]:
            del under_way[self._binding]
        if not under_way:
            del self._limits.presented[self._pair]


def _is_accepted(note: PaymentNote | None) -> bool:
    return note is not None and note.state in ACCEPTED


def _is_for_another(error: CentgateError) -> bool:
    """Return whether the payment, or its idempotency key, was made for another request."""
    used = isinstance(error, PaymentRequired) and error.reason == "payment_already_used"
    return used or isinstance(error, PaymentConflict)


def _decode(request: Presented, gate: Gate) -> Payment | None:
    """The payment of a request; None where it is none that could have been accepted."""
    terms = gate.terms.get(request.slug)
    if terms is None or request.signature is None:
        return None
    try:
        return read_payment(request.signature, terms, time.time(), key=request.idempotency_key)
    except PaymentRequired:
        return None
