"""Client of one facilitator, and the meaning of each of its responses to a submitted payment.

The body is read first, then the status. Only three results are certain. The first is `success: true` about
this payment with a 2xx status. The second is a refusal of this payment with a status below 500 that names no
transaction, and whose reason is in the closed table of `settle_reasons`. The third is a request that never
reached the facilitator. Everything else leaves the outcome open: the facilitator may have broadcast the
payment.
"""

from __future__ import annotations

import re
from typing import Any, Literal, cast

import orjson
from msgspec import Struct

from centgate.errors import PaymentNote, PaymentRequired
from centgate.payments.authorization import Payment
from centgate.payments.database.tables import OpenCause
from centgate.payments.facilitator.extension_responses import DirectoryResponses
from centgate.payments.facilitator.facilitator_http import FacilitatorPool, NoResponse, NotConnected
from centgate.payments.facilitator.settle_reasons import classify_reason
from centgate.payments.payment_key import PaymentKey
from centgate.payments.settle_request import TermsChanged, build_settle_request
from centgate.sanitize import clean_line
from centgate.settings import FacilitatorAccount

FACILITATOR_NAME = "facilitator"
MAX_ANSWER = 64 * 1024
"""Maximum size of a response body in bytes."""

NOT_SENT_STATUSES = frozenset({401, 403, 404, 405, 411, 413, 414, 415, 429, 431})
"""Statuses that reject a request without processing it, unless the body speaks of a settlement.

A bare 400 is not among them: facilitators also return it for payments that they have broadcast.
"""

RATE_LIMITED = 429
"""The only one of these statuses after which a payment may go to the second facilitator."""

MAX_REASON = 64
"""Maximum length of an unknown reason in messages, in characters."""

REVERTED = "transaction_failed"
"""The facilitator's own transaction failed; the same authorization may have landed in another."""

_HASH = re.compile(r"0x(?!0{64})[0-9a-fA-F]{64}")
_SETTLEMENT_MEMBER = re.compile(
    rb'"(?:success|isValid|transaction|txHash|payer|errorReason|invalidReason)"\s*:|0x[0-9a-fA-F]{64}'
)
"""Member of a body that says anything about a settlement, in whatever form and depth, or a transaction."""
_TRANSACTION_ID = re.compile(r"[!-~]{1,200}")
"""Transaction id in a success: some facilitators use their own ids instead of hashes."""
_NO_TRANSACTION = re.compile(r"\s*(0[xX])?0*\s*")
"""What facilitators write for no transaction: nothing, or zeros."""


class SettlementConfirmed(Struct, frozen=True):
    """The money moved; `receipt` is x402's SettleResponse for `PAYMENT-RESPONSE`."""

    receipt: dict[str, Any]


class SettlementRefused(Struct, frozen=True):
    """The payment does not pay us: refused, reverted, expired, or its nonce was used otherwise."""

    reason: str
    """In x402's vocabulary."""
    certainty: Literal["payload", "chain_state", "other_facilitator"] = "payload"
    """`chain_state`: an earlier transaction may be the cause of the refusal, so the chain must be checked.

    `other_facilitator`: a proxy of the first may have sent the payment before it was rate-limited, so that
    the refusal by the second is not evidence until the authorization has expired unused.
    """


NotSentCause = Literal["connection", "rate_limit", "breaker", "rejected"]
"""Why a submission was not sent: no connection, status 429, not called because of earlier ones of both, or
any other status of a rejected request.
"""


class SettlementNotSent(Struct, frozen=True):
    """The facilitator did not take the submission; with status 429 a proxy may have passed it on."""

    kind: Literal["timeout", "error"]
    message: str
    cause: NotSentCause = "rejected"

    @property
    def was_answered(self) -> bool:
        """True if the facilitator has answered for the payment, so that another one must not get it.

        A rejected key, path or size is such an answer. Servers in front of a facilitator give these statuses
        for several reasons, perhaps after they passed the request on, and an operator has to act in any case.
        """
        return self.cause == "rejected"

    @property
    def may_be_sent(self) -> bool:
        """True if a proxy may have passed it on, so that another facilitator's refusal is no evidence."""
        return self.cause == "rate_limit"


class SettlementUnknown(Struct, frozen=True):
    """The money may or may not have moved."""

    kind: Literal["timeout", "error"]
    message: str
    transaction: str | None = None
    """The transaction hash from the facilitator's response."""
    reason: str | None = None
    """The facilitator's reason, if it refused."""
    open_cause: OpenCause | None = None
    """Why it stays open after the nodes were asked; None if they were not."""


SettlementOutcome = SettlementConfirmed | SettlementRefused | SettlementNotSent | SettlementUnknown


class FacilitatorClient:
    """A facilitator's HTTP interface (x402 version 2, section 7)."""

    def __init__(
        self, account: FacilitatorAccount, *, timeout: float, directory: DirectoryResponses | None = None
    ) -> None:
        """`timeout`: seconds for a settlement. Raises ValueError for an invalid address."""
        self.name = account.name
        """Its name in the journal."""
        self._account = account
        self._timeout = timeout
        self._directory = directory or DirectoryResponses()
        self._settle_url = account.url + "/settle"
        self._pool = FacilitatorPool(self._settle_url, MAX_ANSWER)

    def close(self) -> None:
        """Close its connections."""
        self._pool.close()

    async def settle(self, payment: Payment, *, connect_timeout: float | None = None) -> SettlementOutcome:
        """Submit a payment for settlement. Never raises for anything the facilitator does.

        `connect_timeout`: seconds for a connection, if shorter than the total timeout.
        """
        try:
            body = build_settle_request(payment.key, payment.terms, payment.resubmission)
        except TermsChanged:
            return SettlementUnknown("error", "the payment was submitted by another version of this server")
        headers = build_auth_headers(self._account, self._settle_url)
        try:
            response = await self._pool.post(
                body, headers, max_wait=self._timeout, connect_timeout=connect_timeout
            )
        except NotConnected as error:
            kind = "timeout" if error.timed_out else "error"
            return SettlementNotSent(kind, f"the facilitator could not be reached: {error}", "connection")
        except NoResponse as error:
            return SettlementUnknown("error", f"the facilitator {error}")
        except TimeoutError:
            return SettlementUnknown("timeout", "the facilitator did not respond in time")
        self._directory.record(payment.terms.route.service.slug, response.extension_responses)
        return interpret_response(payment, response.status, response.content)


def build_auth_headers(account: FacilitatorAccount, url: str, *, method: str = "POST") -> dict[str, str]:
    """Return a facilitator's authentication header, if any. Raises ValueError for an unusable key."""
    if account.cdp_api_key_id and account.cdp_api_key_secret:
        from centgate.payments.facilitator.cdp import (
            create_cdp_token,
        )  # imports a cryptography library that few deployments need

        secret = account.cdp_api_key_secret.get_secret_value()
        return {"Authorization": f"Bearer {create_cdp_token(account.cdp_api_key_id, secret, method, url)}"}
    if account.token:
        return {"Authorization": f"Bearer {account.token.get_secret_value()}"}
    return {}


class _SettleResponse(Struct, frozen=True):
    """The relevant fields of a SettleResponse, or of a VerifyResponse that refuses."""

    success: bool
    is_invalid: bool
    """True for `isValid: false`."""
    reason: str
    transaction: str
    network: str
    payer: str
    amount: str

    @property
    def plain_reason(self) -> str:
        """The reason as one visible line: a stranger's text."""
        return clean_line(self.reason, MAX_REASON) or "no reason given"

    @property
    def names_transaction(self) -> bool:
        """True if it names a transaction in any form, for example by an id of the facilitator's own."""
        return not _NO_TRANSACTION.fullmatch(self.transaction)

    @property
    def hash(self) -> str | None:
        """The transaction, None unless it is a hash."""
        return self.transaction if _HASH.fullmatch(self.transaction) else None


def interpret_response(payment: Payment, status: int, content: bytes) -> SettlementOutcome:
    """Map a response of `/settle` to the outcome of this submission."""
    response = _parse_response(content)
    if response is None:
        if status in NOT_SENT_STATUSES and not _SETTLEMENT_MEMBER.search(content):
            message = f"the facilitator rejected the request with status {status}"
            return SettlementNotSent("error", message, "rate_limit" if status == RATE_LIMITED else "rejected")
        if status == 200:
            return SettlementUnknown("error", "the facilitator's response is not an x402 settlement")
        return SettlementUnknown("error", f"the facilitator returned status {status}")
    if response.success:
        if not 200 <= status < 300:
            return SettlementUnknown("error", f"the facilitator returned status {status}", response.hash)
        return _interpret_success(payment, response)
    certainty = classify_reason(response.reason)
    is_certain = status < 500 and _is_about(payment, response) and not response.names_transaction
    if certainty == "in_doubt" or not is_certain:
        message = f"the facilitator left the settlement unresolved: {response.plain_reason}"
        return SettlementUnknown("error", message, response.hash, response.plain_reason)
    return SettlementRefused(response.reason, certainty)


def _is_about(payment: Payment, response: _SettleResponse) -> bool:
    """Return True unless the response names another payer, amount or network."""
    return (
        (response.network or payment.terms.network) == payment.terms.network
        and (response.payer or payment.key.payer).lower() == payment.key.payer
        and (response.amount or str(payment.terms.amount)) == str(payment.terms.amount)
    )


def _parse_response(content: bytes) -> _SettleResponse | None:
    """Parse a SettleResponse, or a VerifyResponse with `isValid: false`; None for anything else."""
    try:
        parsed = orjson.loads(content)
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    member = cast(dict[str, Any], parsed).get
    is_invalid = member("isValid") is False
    success = member("success", False if is_invalid else None)
    reason = member("errorReason") or member("invalidReason") or ""
    transaction, network = member("transaction") or member("txHash") or "", member("network") or ""
    payer, amount = member("payer") or "", member("amount") or ""
    for text in (reason, transaction, network, payer, amount):
        if not isinstance(text, str):
            return None
    if not isinstance(success, bool):
        return None
    return _SettleResponse(success, is_invalid, reason, transaction, network, payer, amount)


def _interpret_success(payment: Payment, response: _SettleResponse) -> SettlementOutcome:
    """Map a success to an outcome: it must name a transaction and this network, and contradict nothing."""
    if not response.network or not _is_about(payment, response):
        return SettlementUnknown(
            "error", "the facilitator's response is about another payment", response.hash
        )
    if response.reason or response.is_invalid:
        message = f"the facilitator's success contradicts itself: {response.plain_reason}"
        return SettlementUnknown("error", message, response.hash)
    if not response.names_transaction or not _TRANSACTION_ID.fullmatch(response.transaction):
        return SettlementUnknown("error", "the facilitator named no transaction")
    return SettlementConfirmed(build_settle_response(payment.key, payment.terms.amount, response.transaction))


def build_settle_response(key: PaymentKey, amount: int, transaction: str) -> dict[str, Any]:
    """Build x402's SettleResponse for a settled payment."""
    return {
        "success": True,
        "payer": key.payer,
        "transaction": transaction,
        "network": key.network,
        "amount": str(amount),
    }


def build_refusal_error(key: PaymentKey, reason: str) -> PaymentRequired:
    """Build the error for a refused payment, with x402's SettleResponse."""
    return PaymentRequired(
        f"the payment was refused: {reason}",
        reason=reason,
        payment=PaymentNote("refused", charged=False, retry="new_payment"),
        settlement={
            "success": False,
            "errorReason": reason,
            "payer": key.payer,
            "transaction": "",
            "network": key.network,
        },
    )
