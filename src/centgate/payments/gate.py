"""Demand and settle: what stands between a request and its answer when money is involved."""

from __future__ import annotations

import time
from base64 import b64encode
from dataclasses import replace
from typing import Any

import orjson

from centgate.errors import (
    CentgateError,
    PaymentNotConfigured,
    PaymentNote,
    PaymentRequired,
    ProviderError,
    ProviderTimeout,
)
from centgate.payments import facilitator as outcome
from centgate.payments.authorization import Payment, bad_signature, needs_contract, read_payment
from centgate.payments.facilitator import Facilitator, NotSettled, Outcome, Settled, Unresolved
from centgate.payments.journal import Claim, Journal
from centgate.payments.reconcile import Chain, ChainUnreachable, Paid
from centgate.payments.terms import ASKED, Terms

RETRY_AFTER = 5
"""Seconds a buyer is asked to wait before presenting a payment again whose outcome is unknown."""


def unpaid() -> PaymentRequired:
    """What a request without a payment is told."""
    return PaymentRequired(f"{ASKED}: sign the terms in PAYMENT-REQUIRED and send the request again")


def unsold() -> PaymentNotConfigured:
    """What every request is told where no payments are taken."""
    return PaymentNotConfigured("this deployment takes no payments, and nothing is served without")


class Gate:
    """The terms of every route, and the two ways money is established: by the facilitator, by the chain."""

    def __init__(
        self, terms: dict[str, Terms], journal: Journal, facilitator: Facilitator, chain: Chain | None
    ) -> None:
        self.terms = terms
        self._journal = journal
        self._facilitator = facilitator
        self._chain = chain

    def asking(self, slug: str) -> PaymentNotConfigured | PaymentRequired:
        """What a request without a payment is told: the terms, or that no payments are taken here."""
        if slug not in self.terms:
            return unsold()
        return unpaid()

    async def demand(self, slug: str, header: str | None) -> Payment:
        """The payment a request carries, as far as it can be checked without settling it.

        Raises PaymentNotConfigured where none are taken, else PaymentRequired for one that cannot be
        accepted.
        """
        if header is None or slug not in self.terms:
            raise self.asking(slug)
        payment = read_payment(header, self.terms[slug], time.time())
        if needs_contract(payment) and not await self._contract_at(payment.key.payer):
            raise bad_signature()
        return payment

    async def settle(self, payment: Payment, claim: Claim) -> dict[str, Any]:
        """The receipt of a payment that is ours: settled now, or found to have been settled before.

        Raises PaymentRequired when it was refused for certain, ProviderTimeout or ProviderError of the
        facilitator while its outcome is unknown.
        """
        if claim.state == "settled":
            return outcome.receipt(payment, claim.transaction or "")
        result = await (
            self._resolve(payment, claim) if claim.doubtful else self._facilitator.settle(payment)
        )
        match result:
            case Settled(receipt):
                await self._journal.settled(claim, receipt["transaction"])
                return receipt
            case NotSettled(reason):
                await self._journal.refused(claim, reason)
                raise _refused(payment, reason)
            case Unresolved(_, _, transaction):
                if transaction:
                    await self._journal.pending(claim, transaction)
                raise _unresolved(result, transaction or claim.transaction)

    async def _resolve(self, payment: Payment, claim: Claim) -> Outcome:
        """What became of an earlier, unresolved attempt: the chain says, else the facilitator."""
        subject = replace(payment, key=claim.key, valid_before=claim.valid_before)
        if self._chain is None:
            return await self._present_again(payment, claim)
        try:
            match await self._chain.fate(subject, claim.since):
                case Paid(transaction):
                    return Settled(outcome.receipt(subject, transaction))
                case "lost":
                    return NotSettled("invalid_transaction_state")
                case "expired":
                    return NotSettled("invalid_exact_evm_payload_authorization_valid_before")
                case "unused":
                    return await self._present_again(payment, claim)
        except ChainUnreachable:
            return Unresolved("error", "the chain could not be asked what became of the payment")

    async def _present_again(self, payment: Payment, claim: Claim) -> Outcome:
        """Settle once more what may have been settled already.

        The authorization can move money once, so presenting it again never charges twice. Without a node to
        ask, a nonce that the facilitator calls used was used by our own first attempt: only its owner could
        have used it otherwise, by cancelling a payment that he then presents. Any other refusal leaves the
        first attempt as open as before.
        """
        if claim.key != payment.key:
            return Unresolved("error", "an earlier payment under this idempotency key is still open")
        result = await self._facilitator.settle(payment)
        if not isinstance(result, NotSettled):
            return result
        if result.reason == outcome.NONCE_USED and self._chain is None:
            return Settled(outcome.receipt(payment, claim.transaction or ""))
        return Unresolved("error", f"the facilitator refused a payment that is still open: {result.reason}")

    async def _contract_at(self, address: str) -> bool:
        if self._chain is None:
            return False
        try:
            return await self._chain.has_code(address)
        except ChainUnreachable:
            return False


def _refused(payment: Payment, reason: str) -> PaymentRequired:
    return PaymentRequired(
        f"the payment was refused: {reason}",
        reason=reason,
        payment=PaymentNote("refused", charged=False, retry="new_payment"),
        settlement=outcome.refusal(payment, reason),
    )


def _unresolved(result: Unresolved, transaction: str | None) -> CentgateError:
    """Never a fresh 402: a buyer would sign and pay again."""
    kind = ProviderTimeout if result.kind == "timeout" else ProviderError
    return kind(
        outcome.NAME,
        f"{result.message}; whether the payment moved is not known yet: send the same payment again",
        payment=PaymentNote("in_flight", charged=False, retry="same_payment", transaction=transaction),
        retry_after=RETRY_AFTER,
    )


def receipt_header(settlement: dict[str, Any]) -> str:
    """x402's SettleResponse as `PAYMENT-RESPONSE`."""
    return b64encode(orjson.dumps(settlement)).decode()
