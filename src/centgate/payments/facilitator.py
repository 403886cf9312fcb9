"""Client of a facilitator, and what each of its answers to one presentation of a payment means.

The body is read first, then the status. Nothing is certain but `success: true` about this payment under a
status of success, a refusal whose reason is in the closed table of `settle_reasons`, and a request that never
reached the facilitator. All else leaves the outcome open: the facilitator may have broadcast the payment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import orjson

from centgate.payments.authorization import Payment, PaymentKey, TermsChanged, build_settle_request
from centgate.payments.settle_reasons import certainty_of
from centgate.payments.wire import NoResponse, NotConnected, Wire
from centgate.settings import Settings

NAME = "facilitator"
MAX_ANSWER = 64 * 1024
"""Bytes of an answer that are read."""

NOT_SENT_STATUSES = frozenset({401, 403, 404, 405, 411, 413, 414, 415, 429, 431})
"""Statuses by which a request was refused unread, unless the body says otherwise.

A bare 400 is not among them: facilitators answer so for what they have broadcast, too.
"""

MAX_REASON = 64
"""Characters of an unknown reason that are repeated."""

REVERTED = "transaction_failed"
"""The facilitator's own transaction failed; the same authorization may have landed in another."""

_HASH = re.compile(r"0x(?!0{64})[0-9a-fA-F]{64}")
_NAME = re.compile(r"[!-~]{1,200}")
"""Name of a transaction in a success: some facilitators have names of their own for them."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The money moved; `receipt` is x402's SettleResponse for `PAYMENT-RESPONSE`."""

    receipt: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NotSettled:
    """The presentation was refused, and sent nothing."""

    reason: str
    """In x402's vocabulary."""
    certainty: Literal["payload", "chain_state"] = "payload"
    """`chain_state`: the reason may be the effect of an earlier sending, so that the chain is to be asked."""


@dataclass(frozen=True, slots=True)
class Unsent:
    """The presentation never reached the facilitator: nothing was sent."""

    kind: Literal["timeout", "error"]
    message: str


@dataclass(frozen=True, slots=True)
class Unresolved:
    """The money may or may not have moved."""

    kind: Literal["timeout", "error"]
    message: str
    transaction: str | None = None
    """The transaction that the facilitator named."""
    reason: str | None = None
    """Why the facilitator refused, if it did."""


Outcome = Settled | NotSettled | Unsent | Unresolved


class Facilitator:
    """A facilitator's HTTP interface (x402 version 2, section 7)."""

    def __init__(self, settings: Settings, *, notice: Callable[[Outcome], None] = lambda _: None) -> None:
        self._settings = settings
        self._notice = notice
        """Told what comes of each settlement."""
        self._settle_url = settings.facilitator + "/settle"
        self._wire = Wire(self._settle_url, MAX_ANSWER)

    def close(self) -> None:
        """Let go of its connections."""
        self._wire.close()

    async def settle(self, payment: Payment) -> Outcome:
        """Have the payment broadcast; never raises for anything the facilitator does."""
        result = await self._settle(payment)
        self._notice(result)
        return result

    async def _settle(self, payment: Payment) -> Outcome:
        try:
            body = build_settle_request(payment)
        except TermsChanged:
            return Unresolved("error", "the payment was presented by another version of this server")
        headers = authorize(self._settings, self._settle_url)
        try:
            response = await self._wire.post(body, headers, max_wait=self._settings.facilitator_timeout)
        except NotConnected as error:
            kind = "timeout" if error.timed_out else "error"
            return Unsent(kind, f"the facilitator could not be reached: {error}")
        except NoResponse as error:
            return Unresolved("error", f"the facilitator {error}")
        except TimeoutError:
            return Unresolved("timeout", "the facilitator did not answer in time")
        return interpret_answer(payment, response.status, response.content)


def authorize(settings: Settings, url: str, *, method: str = "POST") -> dict[str, str]:
    """The header that lets us in at the facilitator, if any; ValueError for a key that cannot sign."""
    if settings.cdp_api_key_id and settings.cdp_api_key_secret:
        from centgate.payments.cdp import cdp_token  # loads a cryptography library that few need

        secret = settings.cdp_api_key_secret.get_secret_value()
        return {"Authorization": f"Bearer {cdp_token(settings.cdp_api_key_id, secret, method, url)}"}
    if settings.facilitator_token:
        return {"Authorization": f"Bearer {settings.facilitator_token.get_secret_value()}"}
    return {}


@dataclass(frozen=True, slots=True)
class _Answer:
    """A SettleResponse, or a VerifyResponse that refuses, as far as it counts."""

    success: bool
    reason: str
    transaction: str
    network: str
    payer: str
    amount: str

    @property
    def hash(self) -> str | None:
        """The transaction, if it is a hash."""
        return self.transaction if _HASH.fullmatch(self.transaction) else None


def interpret_answer(payment: Payment, status: int, content: bytes) -> Outcome:
    """Return what an answer to `/settle` means for this presentation of the payment."""
    answer = _read_answer(content)
    if answer is None:
        if status in NOT_SENT_STATUSES:
            return Unsent("error", f"the facilitator turned the request away with status {status}")
        if status == 200:
            return Unresolved("error", "the facilitator's answer is not an x402 settlement")
        return Unresolved("error", f"the facilitator answered with status {status}")
    if answer.success:
        if not 200 <= status < 300:
            return Unresolved("error", f"the facilitator answered with status {status}", answer.hash)
        return _interpret_success(payment, answer)
    certainty = certainty_of(answer.reason)
    if certainty == "in_doubt" or answer.hash:
        reason = answer.reason[:MAX_REASON] or "no reason given"
        message = f"the facilitator left the settlement open: {reason}"
        return Unresolved("error", message, answer.hash, reason)
    return NotSettled(answer.reason, certainty)


def _read_answer(content: bytes) -> _Answer | None:
    """Read a SettleResponse, or a VerifyResponse with `isValid: false`; None for all else."""
    try:
        answer = orjson.loads(content)
    except ValueError:
        return None
    if not isinstance(answer, dict):
        return None
    member = cast(dict[str, Any], answer).get
    success = member("success", False if member("isValid") is False else None)
    reason = member("errorReason") or member("invalidReason") or ""
    transaction, network = member("transaction") or "", member("network") or ""
    payer, amount = member("payer") or "", member("amount") or ""
    for text in (reason, transaction, network, payer, amount):
        if not isinstance(text, str):
            return None
    if not isinstance(success, bool):
        return None
    return _Answer(success, reason, transaction, network, payer, amount)


def _interpret_success(payment: Payment, answer: _Answer) -> Outcome:
    """Return what a success means: it counts when it names a transaction and is about this payment."""
    ours = (
        answer.network == payment.terms.network
        and (answer.payer or payment.key.payer).lower() == payment.key.payer
        and (answer.amount or str(payment.terms.amount)) == str(payment.terms.amount)
    )
    if not ours:
        return Unresolved("error", "the facilitator answered about another payment", answer.hash)
    if not _NAME.fullmatch(answer.transaction):
        return Unresolved("error", "the facilitator named no transaction")
    return Settled(receipt(payment.key, payment.terms.amount, answer.transaction))


def receipt(key: PaymentKey, amount: int, transaction: str) -> dict[str, Any]:
    """x402's SettleResponse for a payment that was settled."""
    return {
        "success": True,
        "payer": key.payer,
        "transaction": transaction,
        "network": key.network,
        "amount": str(amount),
    }


def refusal(key: PaymentKey, reason: str) -> dict[str, Any]:
    """x402's SettleResponse for a payment that was refused."""
    return {
        "success": False,
        "errorReason": reason,
        "payer": key.payer,
        "transaction": "",
        "network": key.network,
    }
