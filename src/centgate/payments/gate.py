"""Payment gate: verifies and settles the payment of a request before it is answered."""

from __future__ import annotations

import dataclasses
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from centgate.errors import (
    UNCHARGED_RESEND,
    UNKNOWN_RESEND,
    CentgateError,
    PaymentNotConfigured,
    PaymentNote,
    PaymentRequired,
    ProviderError,
    ProviderTimeout,
)
from centgate.payments.authorization import (
    Payment,
    read_payment,
    signature_rejection,
)
from centgate.payments.chain.payment_node import ChainUnreachable
from centgate.payments.claim_values import Claim, FacilitatorChoice
from centgate.payments.database.store import JournalUnavailable
from centgate.payments.facilitator.facilitator import (
    FACILITATOR_NAME,
    SettlementConfirmed,
    SettlementNotSent,
    SettlementRefused,
    SettlementUnknown,
    build_refusal_error,
    build_settle_response,
)
from centgate.payments.mpp.challenge import ChallengeIssuer
from centgate.payments.mpp.credential import read_credential
from centgate.payments.payer_policy import PayerPolicy
from centgate.payments.settlement import Settler
from centgate.payments.terms import PAYMENT_REQUIRED_MESSAGE

OVERLOAD_RETRY_AFTER = 60
RETRY_AFTER = 5
"""`Retry-After` in seconds for a payment with an unknown outcome."""


def payment_required() -> PaymentRequired:
    """Return the 402 error for a request without a payment."""
    return PaymentRequired(
        f"{PAYMENT_REQUIRED_MESSAGE}: sign the terms in PAYMENT-REQUIRED and send the request again"
    )


def payments_disabled() -> PaymentNotConfigured:
    """Return the error for a deployment without an address to be paid at."""
    return PaymentNotConfigured(
        "this deployment accepts no payments, and paid routes are not served without one"
    )


class PaymentHeaders(Struct, frozen=True):
    """Headers of a request that carry its payment."""

    signature: str | None = None
    """`PAYMENT-SIGNATURE`, if present."""
    credential: str | None = None
    """The credential of `Authorization: Payment`, if present and MPP has a secret here."""
    idempotency_key: str | None = None
    """`Idempotency-Key`, if present."""

    @property
    def has_payment(self) -> bool:
        """True if a payment is in one of them."""
        return self.signature is not None or self.credential is not None


class PaymentGate:
    """Terms of every route, verification of payments, and receipts or errors for their settlement."""

    def __init__(self, settler: Settler, payers: PayerPolicy, issuer: ChallengeIssuer | None = None) -> None:
        self.terms = settler.terms
        self.earlier_terms = settler.earlier_terms
        self.issuer = issuer
        """Issues and recognises the challenges of MPP; None without its secret."""
        self._payers = payers
        self._settler = settler
        self._journal = settler.journal
        self._chains = settler.chains

    def challenge(self, slug: str) -> PaymentNotConfigured | PaymentRequired:
        """Return the error for an unpaid request: 402, or that no payments are accepted."""
        if slug not in self.terms:
            return payments_disabled()
        return payment_required()

    def read(self, slug: str, headers: PaymentHeaders, now: float) -> Payment:
        """Decode a request's payment, from one of its two headers; `now` is in seconds since 1970.

        Raises PaymentNotConfigured or PaymentRequired.
        """
        if slug not in self.terms:
            raise self.challenge(slug)
        terms, key = self.terms[slug], headers.idempotency_key
        if headers.credential is not None and self.issuer is not None:
            return read_credential(headers.credential, self.issuer, terms, now, idempotency_header=key)
        if headers.signature is None:
            raise self.challenge(slug)
        return read_payment(headers.signature, terms, now, idempotency_header=key)

    async def verify(self, slug: str, headers: PaymentHeaders) -> Payment:
        """Return a request's payment, verified as far as possible without settling it.

        Raises PaymentNotConfigured if no payments are accepted, else PaymentRequired for one that cannot be
        accepted. One that is in the journal already is accepted, whatever the current terms are.
        """
        if not headers.has_payment:
            raise self.challenge(slug)
        try:
            now = await self._journal.now()
        except JournalUnavailable as error:
            error.payment = UNKNOWN_RESEND
            raise
        payment = self.read(slug, headers, now)
        problem = payment.rejection or await self._signature_problem(payment)
        if payment.rejection is None and (refusal := self.find_payer_refusal(payment.key.payer)):
            payment = replace(payment, rejection=refusal)
        problem = problem or payment.rejection or self._overload_error()
        if problem and await self._journal.find_note(payment) is None:
            if payment.is_signer_verified:  # else anyone could find out who is denied
                self.correct_advice(problem, payment.key.payer)
            raise problem
        return payment

    def find_payer_refusal(self, payer: str) -> PaymentRequired | None:
        """Return the error for any new payment of a payer, None if the operator sells to it."""
        return self._payers.find_refusal(payer)

    def correct_advice(self, error: CentgateError, payer: str) -> None:
        """Change the advice `new_payment` of an error to `none` if the payer is not sold to."""
        note = error.payment
        if note and note.retry == "new_payment" and self.find_payer_refusal(payer):
            error.payment = dataclasses.replace(note, retry="none")

    async def find_newest_block(self, payment: Payment) -> int | None:
        """Return the newest known block number of the payment's network, None if unknown."""
        chain = self._chains.for_network(payment.key.network)
        return await chain.find_newest_block() if chain else None

    def choose_facilitator(self) -> FacilitatorChoice:
        """Return the facilitator that a new payment goes to, to be stored with its claim."""
        return self._settler.facilitators.choose()

    async def settle(self, payment: Payment, claim: Claim) -> dict[str, Any]:
        """Return the receipt of a settled payment: settled now, or found to be settled before.

        Raises PaymentRequired if it was definitely refused, ProviderTimeout or ProviderError of the
        facilitator if its outcome is unknown or the facilitator was not reached.
        """
        if claim.state == "settled":
            return build_settle_response(claim.key, claim.amount, claim.transaction or "")
        is_same = claim.key == payment.key and payment.rejection is None
        if claim.resubmission_json is None and is_same:  # the row is older than the column
            claim.resubmission_json = payment.resubmission_json
        result = await self._settler.settle(payment, claim)
        match result:
            case SettlementConfirmed(settlement):
                return settlement
            case SettlementRefused(reason):
                raise build_refusal_error(claim.key, reason)
            case SettlementNotSent():
                raise _unsent_error(result)
            case SettlementUnknown():
                raise _unknown_error(result, claim.transaction)

    async def _signature_problem(self, payment: Payment) -> PaymentRequired | None:
        """Return the error for a signature that cannot be the payer's, None for one that may be.

        A signature that is not by the payer's own key needs code at the payer's address (ERC-1271), or
        deploys it (ERC-6492). If nodes are configured and none responds, the facilitator decides.
        """
        if payment.is_signer_verified or payment.signature_form == "counterfactual":
            return None
        chain = self._chains.for_network(payment.key.network)
        try:
            may_be = (
                await chain.has_code(payment.key.payer) if chain else payment.signature_form == "contract"
            )
        except ChainUnreachable:
            return None
        return None if may_be else signature_rejection()

    def _overload_error(self) -> ProviderError | None:
        """Return the error for new payments while too many are unresolved, None if there is room."""
        if not self._journal.is_overloaded:
            return None
        return ProviderError(
            FACILITATOR_NAME,
            "too many payments are open with the facilitator: send the same payment again later",
            payment=UNCHARGED_RESEND,
            retry_after=OVERLOAD_RETRY_AFTER,
        )


def _unsent_error(result: SettlementNotSent) -> CentgateError:
    """Return the error for a payment that is still valid: never a new 402."""
    kind = ProviderTimeout if result.kind == "timeout" else ProviderError
    return kind(
        FACILITATOR_NAME,
        f"{result.message}; the payment was not forwarded: send the same payment again",
        payment=UNCHARGED_RESEND,
        retry_after=RETRY_AFTER,
    )


def _unknown_error(result: SettlementUnknown, transaction: str | None) -> CentgateError:
    """Return the error for a payment that may have moved: never a 402, or a buyer would pay again."""
    kind = ProviderTimeout if result.kind == "timeout" else ProviderError
    return kind(
        FACILITATOR_NAME,
        f"{result.message}; whether the payment moved is not known yet: send the same payment again",
        payment=PaymentNote("in_flight", charged=False, retry="same_payment", transaction=transaction),
        retry_after=RETRY_AFTER,
    )
