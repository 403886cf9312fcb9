"""Payment gate: verifies and settles the payment of a request before it is answered."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import aiohttp
import orjson

from centgate.errors import (
    UNCHARGED_RESEND,
    CentgateError,
    PaymentNotConfigured,
    PaymentNote,
    PaymentRequired,
    ProviderError,
    ProviderTimeout,
)
from centgate.instrumentation import SettlementLabel
from centgate.payments.authorization import (
    Payment,
    PaymentKey,
    read_payment,
    rebuild_payment,
    signature_rejection,
    terms_when_signed,
)
from centgate.payments.chain_client import TIMEOUT, ChainClients
from centgate.payments.claims import Claim
from centgate.payments.facilitator import (
    FACILITATOR_NAME,
    REVERTED,
    FacilitatorClient,
    SettlementConfirmed,
    SettlementNotSent,
    SettlementOutcome,
    SettlementRefused,
    SettlementUnknown,
    build_refusal_response,
    build_settle_response,
)
from centgate.payments.journal import Journal
from centgate.payments.onchain_status import OnchainPayment, OnchainStatus, PaymentQuery
from centgate.payments.payment_node import ChainUnreachable
from centgate.payments.terms import PAYMENT_REQUIRED_MESSAGE, RouteTerms, build_terms
from centgate.service import AnyService
from centgate.settings import Settings
from centgate.signing.evm import to_checksum_address

MAX_OPEN = 10_000
"""Maximum number of open payments; above it, new ones are refused. Expired authorizations do not count."""
OVERLOAD_RETRY_AFTER = 60
_UNUSED_STATUSES = ("unused", "expired_unsafe", "expired")
"""On-chain statuses of a nonce that has not been used."""
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


def build_gate(
    settings: Settings,
    catalog: Sequence[AnyService],
    journal: Journal,
    facilitator: FacilitatorClient,
    session: aiohttp.ClientSession,
) -> PaymentGate:
    """Build the payment gate of a deployment; RPC nodes are queried over the session."""
    priced = catalog if settings.pay_to else ()
    return PaymentGate(
        terms={service.slug: build_terms(service, settings) for service in priced},
        journal=journal,
        facilitator=facilitator,
        chains=ChainClients(session, settings),
    )


class PaymentGate:
    """Terms of every route, and settlement of payments by the facilitator and by the chain."""

    def __init__(
        self,
        terms: dict[str, RouteTerms],
        journal: Journal,
        facilitator: FacilitatorClient,
        chains: ChainClients,
    ) -> None:
        self.terms = terms
        self._journal = journal
        self._facilitator = facilitator
        self._chains = chains

    def challenge(self, slug: str) -> PaymentNotConfigured | PaymentRequired:
        """Return the error for an unpaid request: 402, or that no payments are accepted."""
        if slug not in self.terms:
            return payments_disabled()
        return payment_required()

    async def verify(
        self, slug: str, header: str | None, *, idempotency_header: str | None = None
    ) -> Payment:
        """Return a request's payment, verified as far as possible without settling it.

        `key` is the `Idempotency-Key` header.

        Raises PaymentNotConfigured if no payments are accepted, else PaymentRequired for one that cannot be
        accepted. One that is in the journal already is accepted, whatever the current terms are.
        """
        if header is None or slug not in self.terms:
            raise self.challenge(slug)
        payment = read_payment(
            header, self.terms[slug], await self._journal.now(), idempotency_header=idempotency_header
        )
        problem = payment.rejection or await self._signature_problem(payment) or self._overload_error()
        if problem and await self._journal.find_note(payment) is None:
            raise problem
        return payment

    async def find_newest_block(self, payment: Payment) -> int | None:
        """Return the newest known block number of the payment's network, None if unknown."""
        chain = self._chains.for_network(payment.key.network)
        return await chain.find_newest_block() if chain else None

    async def settle(self, payment: Payment, claim: Claim) -> dict[str, Any]:
        """Return the receipt of a settled payment: settled now, or found to be settled before.

        Raises PaymentRequired if it was definitely refused, ProviderTimeout or ProviderError of the
        facilitator if its outcome is unknown or the facilitator was not reached.
        """
        if claim.state == "settled":
            return build_settle_response(claim.key, claim.amount, claim.transaction or "")
        if claim.resubmission_json is None and claim.key == payment.key:  # the row is older than the column
            claim.resubmission_json = payment.resubmission_json
        result = await (
            self._find_outcome(claim, TIMEOUT) if claim.outcome_unknown else self._settle_new(payment, claim)
        )
        await self._record(claim, result)
        match result:
            case SettlementConfirmed(settlement):
                return settlement
            case SettlementRefused(reason):
                raise _refused_error(claim.key, reason)
            case SettlementNotSent():
                raise _unsent_error(result)
            case SettlementUnknown():
                raise _unresolved_error(result, claim.transaction)

    async def reconcile(self, claim: Claim, *, max_wait: float) -> SettlementOutcome:
        """Find the outcome of an unresolved payment and record it, without its buyer.

        `max_wait`: time limit for the nodes, in seconds.
        """
        result = await self._find_outcome(claim, max_wait)
        await self._record(claim, result)
        return result

    async def _record(self, claim: Claim, result: SettlementOutcome) -> None:
        match result:
            case SettlementConfirmed(settlement):
                await self._journal.record_settled(claim, settlement["transaction"])
            case SettlementRefused(reason):
                await self._journal.record_refused(claim, reason)
            case SettlementNotSent(_, message):
                await self._journal.record_unsent(claim, message)
            case SettlementUnknown():
                await self._record_transaction(claim, result)

    async def _record_transaction(self, claim: Claim, result: SettlementUnknown) -> None:
        if result.transaction and result.transaction != claim.transaction:
            await self._journal.record_transaction(claim, result.transaction, result.reason)

    async def _settle_new(self, payment: Payment, claim: Claim) -> SettlementOutcome:
        """Settle a payment that was not submitted before.

        A refusal because of the chain's state, or one that is possible after sending, may be caused by a
        transfer: of a proxy that repeated the request, or of the facilitator's own transaction. The chain is
        checked before it is accepted.
        """
        result = await self._settle_with_facilitator(payment)
        match result:
            case SettlementRefused(_, "chain_state"):
                return await self._check_refusal(claim, result)
            case SettlementUnknown(transaction=transaction, reason=reason) if transaction or reason:
                await self._record_transaction(claim, result)
                return await self._check_unresolved(claim, result)
            case _:
                return result

    async def _check_refusal(self, claim: Claim, refused: SettlementRefused) -> SettlementOutcome:
        """Return the refusal if the nodes show the nonce unused, or if none responds."""
        try:
            status = await self._payment_status(claim, TIMEOUT)
        except ChainUnreachable as error:
            unused = all(answer in _UNUSED_STATUSES for answer in error.answers)
            return (
                refused if unused else _unknown_outcome(f"nodes disagree about a refusal: {refused.reason}")
            )
        return refused if status in (None, *_UNUSED_STATUSES) else _outcome_from_chain(status, claim)

    async def _check_unresolved(self, claim: Claim, unresolved: SettlementUnknown) -> SettlementOutcome:
        """Return the on-chain outcome of a first submission that was refused but may have been sent."""
        try:
            status = await self._payment_status(claim, TIMEOUT)
            if status in ("unused", "expired_unsafe") and await self._is_reverted(claim):
                return SettlementRefused(unresolved.reason or REVERTED)
        except ChainUnreachable:
            return unresolved
        return (
            unresolved if status in (None, "unused", "expired_unsafe") else _outcome_from_chain(status, claim)
        )

    async def _find_outcome(self, claim: Claim, max_wait: float) -> SettlementOutcome:
        """Return the outcome of an earlier, unresolved attempt: from the chain, else from the facilitator.

        While nodes show the nonce unused, a transaction that the facilitator named may still be mined, so
        the payment is not submitted once more in parallel.
        """
        try:
            status = await self._payment_status(claim, max_wait)
            if status == "unused" and claim.transaction:
                if await self._is_reverted(claim):
                    return SettlementRefused(REVERTED)
                if claim.presentations == 1:
                    return _unknown_outcome("the transaction that the facilitator named is not mined yet")
        except ChainUnreachable:
            status = None
        if status in (None, "unused"):
            return await self._resettle(claim)
        return _outcome_from_chain(status, claim)

    async def _payment_status(self, claim: Claim, max_wait: float) -> OnchainStatus | None:
        """Return the on-chain status of a payment, None without a node. Raises ChainUnreachable."""
        chain = self._chains.for_network(claim.key.network)
        query = PaymentQuery(
            claim.key, claim.pay_to, claim.amount, claim.valid_before, claim.presented_at, claim.claim_block
        )
        return await chain.read_payment_status(query, max_wait=max_wait) if chain else None

    async def _is_reverted(self, claim: Claim) -> bool:
        """Return True if the only submission of a payment named a transaction, and that was reverted."""
        chain = self._chains.for_network(claim.key.network)
        if chain is None or claim.transaction is None or claim.presentations > 1:
            return False
        return await chain.read_transaction_status(claim.transaction, claim.key) == "reverted"

    async def _resettle(self, claim: Claim) -> SettlementOutcome:
        """Submit a payment once more that may be settled already: the data of its first submission.

        The authorization can move money only once, so this never charges twice. The facilitator's success
        settles the payment. Anything else leaves the earlier attempts as open as they were; a used nonce
        proves nothing, since it may have been used before the payment was first submitted here.
        """
        terms = self._find_terms(claim)
        if claim.resubmission_json is None or terms is None or not terms.asset.name:
            return _unknown_outcome("the payment was signed for terms that cannot be submitted again")
        await self._journal.record_presentation(claim)
        result = await self._settle_with_facilitator(
            rebuild_payment(claim.key, terms, claim.resubmission_json)
        )
        match result:
            case SettlementRefused(reason):
                return _unknown_outcome(f"the facilitator refused a payment that is still open: {reason}")
            case SettlementNotSent(kind, message):
                return SettlementUnknown(kind, message)
            case _:
                return result

    async def _settle_with_facilitator(self, payment: Payment) -> SettlementOutcome:
        """Submit a payment to the facilitator and record the metric."""
        started = time.perf_counter()
        result = await self._facilitator.settle(payment)
        self._journal.meter.record_settlement(_metric_label(result), time.perf_counter() - started)
        return result

    def _find_terms(self, claim: Claim) -> RouteTerms | None:
        """Return the terms a payment was signed for; any route's will do if its own was removed."""
        terms = self.terms.get(claim.service) or next(iter(self.terms.values()), None)
        return terms and terms_when_signed(
            terms,
            network=claim.key.network,
            asset=to_checksum_address(claim.key.asset),
            pay_to=to_checksum_address(claim.pay_to),
            amount=claim.amount,
        )

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
        """Return the error for new payments while too many are open, None if there is room."""
        if self._journal.open_count < MAX_OPEN:
            return None
        return ProviderError(
            FACILITATOR_NAME,
            "too many payments are open with the facilitator: send the same payment again later",
            payment=UNCHARGED_RESEND,
            retry_after=OVERLOAD_RETRY_AFTER,
        )


def _metric_label(result: SettlementOutcome) -> SettlementLabel:
    match result:
        case SettlementConfirmed():
            return "settled"
        case SettlementRefused():
            return "refused"
        case SettlementNotSent():
            return "unsent"
        case SettlementUnknown():
            return "unresolved"


def _outcome_from_chain(status: OnchainStatus | None, claim: Claim) -> SettlementOutcome:
    """Map an on-chain status to a settlement outcome."""
    match status:
        case OnchainPayment(transaction):
            return SettlementConfirmed(build_settle_response(claim.key, claim.amount, transaction))
        case "spent":
            return SettlementRefused("invalid_transaction_state")
        case "expired":
            return SettlementRefused("invalid_exact_evm_payload_authorization_valid_before")
        case "spent_unsafe" | "expired_unsafe" | "unused" | None:
            return _unknown_outcome("no safe block shows the outcome of the payment yet")


def _unknown_outcome(message: str) -> SettlementUnknown:
    return SettlementUnknown("error", message)


def _refused_error(key: PaymentKey, reason: str) -> PaymentRequired:
    return PaymentRequired(
        f"the payment was refused: {reason}",
        reason=reason,
        payment=PaymentNote("refused", charged=False, retry="new_payment"),
        settlement=build_refusal_response(key, reason),
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


def _unresolved_error(result: SettlementUnknown, transaction: str | None) -> CentgateError:
    """Return the error for a payment that may have moved: never a 402, or a buyer would pay again."""
    kind = ProviderTimeout if result.kind == "timeout" else ProviderError
    return kind(
        FACILITATOR_NAME,
        f"{result.message}; whether the payment moved is not known yet: send the same payment again",
        payment=PaymentNote("in_flight", charged=False, retry="same_payment", transaction=transaction),
        retry_after=RETRY_AFTER,
    )


def encode_receipt_header(settlement: dict[str, Any]) -> str:
    """Encode x402's SettleResponse as the `PAYMENT-RESPONSE` header."""
    return b64encode(orjson.dumps(settlement)).decode()
