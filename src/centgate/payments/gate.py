"""Demand and settle: what stands between a request and its answer when money is involved."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import aiohttp
import orjson

from centgate.errors import (
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
    needs_contract,
    presented_before,
    read_payment,
)
from centgate.payments.claiming import Claim
from centgate.payments.facilitator import Facilitator, NotSettled, Outcome, Settled, Unresolved
from centgate.payments.journal import Journal
from centgate.payments.reconcile import Chains, ChainUnreachable, Fate, Paid, Sought
from centgate.payments.terms import ASKED, Terms, terms_of
from centgate.service import AnyService
from centgate.settings import Settings

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
        payment = read_payment(header, self.terms[slug], time.time(), key=key)
        if payment.unfit and await self._journal.note(payment) is None:
            raise payment.unfit
        if payment.unfit or not needs_contract(payment) or await self._contract_at(payment):
            return payment
        if await self._journal.note(payment) is None:  # else its outcome may be unknown, and no node answers
            raise bad_signature()
        return payment

    async def settle(self, payment: Payment, claim: Claim) -> dict[str, Any]:
        """The receipt of a payment that is ours: settled now, or found to have been settled before.

        Raises PaymentRequired when it was refused for certain, ProviderTimeout or ProviderError of the
        facilitator while its outcome is unknown.
        """
        if claim.state == "settled":
            return outcome.receipt(claim.key, claim.amount, claim.transaction or "")
        if claim.signed is None and claim.key == payment.key:  # it is older than the column
            claim.signed = payment.signed
        result = await (self._resolve(claim) if claim.doubtful else self._settle_first(payment, claim))
        await self._enter(claim, result)
        match result:
            case Settled(receipt):
                return receipt
            case NotSettled(reason):
                raise _refused(claim.key, reason)
            case Unresolved():
                raise _unresolved(result, claim.transaction)

    async def resolve(self, claim: Claim) -> Outcome:
        """Find out what became of a payment, and enter it; its buyer need not be there."""
        result = await self._resolve(claim)
        await self._enter(claim, result)
        return result

    async def _enter(self, claim: Claim, result: Outcome) -> None:
        match result:
            case Settled(receipt):
                await self._journal.settled(claim, receipt["transaction"])
            case NotSettled(reason):
                await self._journal.refused(claim, reason)
            case Unresolved(_, _, str(transaction)):
                await self._journal.pending(claim, transaction)
            case Unresolved():
                pass

    async def _settle_first(self, payment: Payment, claim: Claim) -> Outcome:
        """Settle what was not presented before.

        A transaction of the facilitator's that failed moved nothing, but fails as well when somebody else
        has broadcast the authorization before it.
        """
        result = await self._present(payment)
        if result == NotSettled(outcome.REVERTED) and self._chains.of(claim.key.network):
            seen = await self._look(claim)
            return result if seen in ("unused", "expired") else _meaning(seen, claim)
        return result

    async def _resolve(self, claim: Claim) -> Outcome:
        """What became of an earlier, unresolved attempt: the chain says, else the facilitator."""
        if self._chains.of(claim.key.network) is None:
            return await self._present_again(claim)
        seen = await self._look(claim)
        if seen == "unused":
            return await self._present_again(claim)
        return _meaning(seen, claim)

    async def _look(self, claim: Claim) -> Fate | None:
        """What the chain says; None while it cannot be asked."""
        chain = self._chains.of(claim.key.network)
        sought = Sought(claim.key, claim.pay_to, claim.amount, claim.valid_before, claim.since)
        try:
            return await chain.fate(sought) if chain else None
        except ChainUnreachable:
            return None

    async def _present_again(self, claim: Claim) -> Outcome:
        """Settle once more what may have been settled already: what was signed then, whoever asks now.

        The authorization can move money once, so presenting it again never charges twice. Without a node to
        ask, a nonce that the facilitator calls used was used by our own first attempt: only its owner could
        have used it otherwise, by cancelling a payment that he then presents. Any other refusal leaves the
        first attempt as open as before.
        """
        terms = self._terms_of(claim)
        if claim.signed is None or terms is None or not terms.asset.name:
            return Unresolved("error", "the payment was made on terms that cannot be presented again")
        result = await self._present(presented_before(claim.key, terms, claim.signed))
        if not isinstance(result, NotSettled):
            return result
        if result.reason == outcome.NONCE_USED and self._chains.of(claim.key.network) is None:
            return Settled(outcome.receipt(claim.key, claim.amount, claim.transaction or ""))
        return Unresolved("error", f"the facilitator refused a payment that is still open: {result.reason}")

    async def _present(self, payment: Payment) -> Outcome:
        """What the facilitator says."""
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

    async def _contract_at(self, payment: Payment) -> bool:
        chain = self._chains.of(payment.key.network)
        try:
            return chain is not None and await chain.has_code(payment.key.payer)
        except ChainUnreachable:
            return False


def _word(result: Outcome) -> Settlement:
    match result:
        case Settled():
            return "settled"
        case NotSettled():
            return "refused"
        case Unresolved():
            return "unresolved"


def _meaning(seen: Fate | None, claim: Claim) -> Outcome:
    """What the chain's word says of the money."""
    match seen:
        case Paid(transaction):
            return Settled(outcome.receipt(claim.key, claim.amount, transaction))
        case "lost":
            return NotSettled("invalid_transaction_state")
        case "expired":
            return NotSettled("invalid_exact_evm_payload_authorization_valid_before")
        case "unsure" | "unused":
            return Unresolved("error", "the chain has not said its last word on the payment")
        case None:
            return Unresolved("error", "the chain could not be asked what became of the payment")


def _refused(key: PaymentKey, reason: str) -> PaymentRequired:
    return PaymentRequired(
        f"the payment was refused: {reason}",
        reason=reason,
        payment=PaymentNote("refused", charged=False, retry="new_payment"),
        settlement=outcome.refusal(key, reason),
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
