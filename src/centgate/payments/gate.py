"""Verify and settle: what stands between a request and its answer when money is involved."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import aiohttp
import orjson

from centgate.errors import (
    UNTOUCHED,
    CentgateError,
    PaymentNotConfigured,
    PaymentNote,
    PaymentRequired,
    ProviderError,
    ProviderTimeout,
)
from centgate.evm import checksummed
from centgate.meter import Settlement
from centgate.payments import facilitator as outcome
from centgate.payments.authorization import (
    Payment,
    PaymentKey,
    bad_signature,
    earlier_terms,
    presented_before,
    read_payment,
)
from centgate.payments.claiming import Claim
from centgate.payments.facilitator import Facilitator, NotSettled, Outcome, Settled, Unresolved, Unsent
from centgate.payments.journal import Journal
from centgate.payments.onchain import TIMEOUT, Chains, ChainUnreachable, OnchainStatus, Paid, PaymentQuery
from centgate.payments.terms import ASKED, Terms, terms_of
from centgate.service import AnyService
from centgate.settings import Settings

MAX_OPEN = 10_000
"""Payments that may be open at once; while there are more, no new ones are taken. Those past their end do not
count."""
OVERLOAD_RETRY_AFTER = 60
_NEVER_MOVED = ("unused", "expired_unsafe", "expired")
"""On-chain statuses of a nonce that is unused so far."""
RETRY_AFTER = 5
"""Seconds a buyer is asked to wait before presenting a payment again whose outcome is unknown."""


def unpaid() -> PaymentRequired:
    """What a request without a payment is told."""
    return PaymentRequired(f"{ASKED}: sign the terms in PAYMENT-REQUIRED and send the request again")


def unsold() -> PaymentNotConfigured:
    """What every request is told where no payments are taken."""
    return PaymentNotConfigured("this deployment takes no payments, and nothing is served without")


def open_gate(
    settings: Settings,
    catalog: Sequence[AnyService],
    journal: Journal,
    facilitator: Facilitator,
    session: aiohttp.ClientSession,
) -> Gate:
    """The gate of a deployment; nodes of the chain are asked over the session."""
    priced = catalog if settings.pay_to else ()
    return Gate(
        terms={service.slug: terms_of(service, settings) for service in priced},
        journal=journal,
        facilitator=facilitator,
        chains=Chains(session, settings),
    )


class Gate:
    """The terms of every route, and the two ways money is established: by the facilitator, by the chain."""

    def __init__(
        self, terms: dict[str, Terms], journal: Journal, facilitator: Facilitator, chains: Chains
    ) -> None:
        self.terms = terms
        self._journal = journal
        self._facilitator = facilitator
        self._chains = chains

    def asking(self, slug: str) -> PaymentNotConfigured | PaymentRequired:
        """What a request without a payment is told: the terms, or that no payments are taken here."""
        if slug not in self.terms:
            return unsold()
        return unpaid()

    async def demand(self, slug: str, header: str | None, *, key: str | None = None) -> Payment:
        """The payment a request carries, as far as it can be checked without settling it.

        `key` is what `Idempotency-Key` said.

        Raises PaymentNotConfigured where none are taken, else PaymentRequired for one that cannot be
        accepted; one that was taken before is, whatever our terms are today.
        """
        if header is None or slug not in self.terms:
            raise self.asking(slug)
        payment = read_payment(header, self.terms[slug], await self._journal.now(), key=key)
        problem = payment.unfit or await self._signature_problem(payment) or self._overload()
        if problem and await self._journal.note(payment) is None:
            raise problem
        return payment

    async def newest_block(self, payment: Payment) -> int | None:
        """Return the newest block number known of the payment's network, None if none is."""
        chain = self._chains.of(payment.key.network)
        return await chain.newest_block() if chain else None

    async def settle(self, payment: Payment, claim: Claim) -> dict[str, Any]:
        """Return the receipt of a payment that is ours: settled now, or found to have been settled before.

        Raises PaymentRequired when it was refused for certain, ProviderTimeout or ProviderError of the
        facilitator while its outcome is unknown, or when the facilitator was not reached.
        """
        if claim.state == "settled":
            return outcome.receipt(claim.key, claim.amount, claim.transaction or "")
        if claim.signed is None and claim.key == payment.key:  # it is older than the column
            claim.signed = payment.signed
        result = await (
            self._resolve(claim, TIMEOUT) if claim.doubtful else self._settle_first(payment, claim)
        )
        await self._enter(claim, result)
        match result:
            case Settled(receipt):
                return receipt
            case NotSettled(reason):
                raise _refused(claim.key, reason)
            case Unsent():
                raise _unsent(result)
            case Unresolved():
                raise _unresolved(result, claim.transaction)

    async def resolve(self, claim: Claim, *, max_wait: float) -> Outcome:
        """Find out what became of a payment, and enter it; its buyer need not be there.

        `max_wait`: seconds that nodes have.
        """
        result = await self._resolve(claim, max_wait)
        await self._enter(claim, result)
        return result

    async def _enter(self, claim: Claim, result: Outcome) -> None:
        match result:
            case Settled(receipt):
                await self._journal.settled(claim, receipt["transaction"])
            case NotSettled(reason):
                await self._journal.refused(claim, reason)
            case Unsent(_, message):
                await self._journal.unsent(claim, message)
            case Unresolved():
                await self._enter_transaction(claim, result)

    async def _enter_transaction(self, claim: Claim, result: Unresolved) -> None:
        if result.transaction and result.transaction != claim.transaction:
            await self._journal.pending(claim, result.transaction, result.reason)

    async def _settle_first(self, payment: Payment, claim: Claim) -> Outcome:
        """Settle a payment that was not presented before.

        A refusal because of the chain's state, or one that may be said after sending, may be the effect of a
        transfer: of a proxy that repeated our request, or of the facilitator's own transaction. The chain is
        asked before it is believed.
        """
        result = await self._present(payment)
        match result:
            case NotSettled(_, "chain_state"):
                return await self._check_refusal(claim, result)
            case Unresolved(transaction=transaction, reason=reason) if transaction or reason:
                await self._enter_transaction(claim, result)
                return await self._check_doubt(claim, result)
            case _:
                return result

    async def _check_refusal(self, claim: Claim, refusal: NotSettled) -> Outcome:
        """Return the refusal if the nodes show the nonce unused, or if none answers."""
        try:
            status = await self._payment_status(claim, TIMEOUT)
        except ChainUnreachable as error:
            unused = all(answer in _NEVER_MOVED for answer in error.answers)
            return refusal if unused else _unknown(f"nodes disagree about a refusal: {refusal.reason}")
        return refusal if status in (None, *_NEVER_MOVED) else _outcome_of(status, claim)

    async def _check_doubt(self, claim: Claim, doubt: Unresolved) -> Outcome:
        """Return what the chain says of a first presentation that was refused but may have been sent."""
        try:
            status = await self._payment_status(claim, TIMEOUT)
            if status in ("unused", "expired_unsafe") and await self._is_reverted(claim):
                return NotSettled(doubt.reason or outcome.REVERTED)
        except ChainUnreachable:
            return doubt
        return doubt if status in (None, "unused", "expired_unsafe") else _outcome_of(status, claim)

    async def _resolve(self, claim: Claim, max_wait: float) -> Outcome:
        """Return what became of an earlier, unresolved attempt: the chain decides, else the facilitator.

        While nodes show the nonce unused, a transaction that the facilitator named may still be mined, so
        that the payment is not presented once more beside it.
        """
        try:
            status = await self._payment_status(claim, max_wait)
            if status == "unused" and claim.transaction:
                if await self._is_reverted(claim):
                    return NotSettled(outcome.REVERTED)
                if claim.presentations == 1:
                    return _unknown("the transaction that the facilitator named is not mined yet")
        except ChainUnreachable:
            status = None
        if status in (None, "unused"):
            return await self._present_again(claim)
        return _outcome_of(status, claim)

    async def _payment_status(self, claim: Claim, max_wait: float) -> OnchainStatus | None:
        """Return what the chain says, None where there is no node. Raises ChainUnreachable."""
        chain = self._chains.of(claim.key.network)
        query = PaymentQuery(
            claim.key, claim.pay_to, claim.amount, claim.valid_before, claim.since, claim.claim_block
        )
        return await chain.payment_status(query, max_wait=max_wait) if chain else None

    async def _is_reverted(self, claim: Claim) -> bool:
        """True if the only presentation of a payment named a transaction, and that was reverted."""
        chain = self._chains.of(claim.key.network)
        if chain is None or claim.transaction is None or claim.presentations > 1:
            return False
        return await chain.transaction_status(claim.transaction, claim.key) == "reverted"

    async def _present_again(self, claim: Claim) -> Outcome:
        """Present once more what may have been settled already: what was signed then, whoever asks now.

        The authorization can move money once, so this never charges twice. The facilitator's success settles
        the payment. Anything else leaves the attempts before as open as they were; a nonce that is used
        proves nothing, since it may have been used before the payment came here.
        """
        terms = self._terms_of(claim)
        if claim.signed is None or terms is None or not terms.asset.name:
            return _unknown("the payment was made on terms that cannot be presented again")
        await self._journal.presenting(claim)
        result = await self._present(presented_before(claim.key, terms, claim.signed))
        match result:
            case NotSettled(reason):
                return _unknown(f"the facilitator refused a payment that is still open: {reason}")
            case Unsent(kind, message):
                return Unresolved(kind, message)
            case _:
                return result

    async def _present(self, payment: Payment) -> Outcome:
        """Present a payment to the facilitator."""
        started = time.perf_counter()
        result = await self._facilitator.settle(payment)
        self._journal.meter.presented(_word(result), time.perf_counter() - started)
        return result

    def _terms_of(self, claim: Claim) -> Terms | None:
        """The terms a payment was made on; those of any route will do, if its own is gone."""
        terms = self.terms.get(claim.service) or next(iter(self.terms.values()), None)
        return terms and earlier_terms(
            terms,
            network=claim.key.network,
            asset=checksummed(claim.key.asset),
            pay_to=checksummed(claim.pay_to),
            amount=claim.amount,
        )

    async def _signature_problem(self, payment: Payment) -> PaymentRequired | None:
        """Return the refusal of a signature that cannot be the payer's, None for one that may be.

        One that is not by the payer's own key needs code at the payer's address (ERC-1271), or deploys it
        (ERC-6492). Where a node should know and none answers, the facilitator decides.
        """
        if payment.signer_known or payment.signature_form == "counterfactual":
            return None
        chain = self._chains.of(payment.key.network)
        try:
            may_be = (
                await chain.has_code(payment.key.payer) if chain else payment.signature_form == "contract"
            )
        except ChainUnreachable:
            return None
        return None if may_be else bad_signature()

    def _overload(self) -> ProviderError | None:
        """Return the refusal of new payments while too many are open."""
        if self._journal.open_count < MAX_OPEN:
            return None
        return ProviderError(
            outcome.NAME,
            "too many payments are open with the facilitator: send the same payment again later",
            payment=UNTOUCHED,
            retry_after=OVERLOAD_RETRY_AFTER,
        )


def _word(result: Outcome) -> Settlement:
    match result:
        case Settled():
            return "settled"
        case NotSettled():
            return "refused"
        case Unsent():
            return "unsent"
        case Unresolved():
            return "unresolved"


def _outcome_of(status: OnchainStatus | None, claim: Claim) -> Outcome:
    """Map an on-chain status to a settlement outcome."""
    match status:
        case Paid(transaction):
            return Settled(outcome.receipt(claim.key, claim.amount, transaction))
        case "spent":
            return NotSettled("invalid_transaction_state")
        case "expired":
            return NotSettled("invalid_exact_evm_payload_authorization_valid_before")
        case "spent_unsafe" | "expired_unsafe" | "unused" | None:
            return _unknown("no safe block shows yet what became of the payment")


def _unknown(message: str) -> Unresolved:
    return Unresolved("error", message)


def _refused(key: PaymentKey, reason: str) -> PaymentRequired:
    return PaymentRequired(
        f"the payment was refused: {reason}",
        reason=reason,
        payment=PaymentNote("refused", charged=False, retry="new_payment"),
        settlement=outcome.refusal(key, reason),
    )


def _unsent(result: Unsent) -> CentgateError:
    """Return the error for a payment that is as good as before: never a fresh 402."""
    kind = ProviderTimeout if result.kind == "timeout" else ProviderError
    return kind(
        outcome.NAME,
        f"{result.message}; the payment was not sent on: send the same payment again",
        payment=UNTOUCHED,
        retry_after=RETRY_AFTER,
    )


def _unresolved(result: Unresolved, transaction: str | None) -> CentgateError:
    """Return the error for a payment that may have moved: never a 402, or a buyer would pay again."""
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
