"""Settlement of payments, and the place where unknown outcomes are resolved.

A payment is settled by a facilitator; the second gets it only if the first could not be reached or answered
429 (decision 33). If the facilitator leaves the outcome open, the nodes of the network decide
(`onchain_status` says what is proof). They decide at once if its answer names a reason or a transaction;
otherwise, as after a timeout, a later `Settler.resolve` asks them. If they show the nonce unspent or give no
usable answer, an attempt to resolve it submits the same bytes again, to the facilitator that has the payment
(decision 2); `_find_outcome_by_status` names the exception.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import aiohttp
import structlog
from msgspec.structs import replace

from centgate.instrumentation import SettlementLabel
from centgate.payments.authorization import EXPIRED_REASON, Payment, rebuild_payment, terms_when_signed
from centgate.payments.chain.chain_client import TIMEOUT, ChainClients
from centgate.payments.chain.onchain_status import OnchainPayment, OnchainStatus, PaymentQuery
from centgate.payments.chain.payment_node import ChainUnreachable
from centgate.payments.claim_values import Claim
from centgate.payments.database.tables import OpenCause
from centgate.payments.facilitator.facilitator import (
    REVERTED,
    SettlementConfirmed,
    SettlementNotSent,
    SettlementOutcome,
    SettlementRefused,
    SettlementUnknown,
    build_settle_response,
)
from centgate.payments.facilitator.facilitators import Facilitators, SettlementClient
from centgate.payments.journal.journal import Journal
from centgate.payments.terms import RouteTerms, build_terms
from centgate.service import AnyService
from centgate.settings import Settings
from centgate.signing.evm import to_checksum_address

_NO_ONE = "0x" + "0" * 39 + "1"
"""Payee and token of terms whose own are replaced by those of a payment."""
_CONFIRM_REFUSAL = ("unspent", "expired_unsafe", "expired")
"""On-chain statuses with which a refusal is believed: the nonce has not been used."""


def build_settler(
    settings: Settings,
    catalog: Sequence[AnyService],
    journal: Journal,
    facilitators: Facilitators,
    session: aiohttp.ClientSession,
) -> Settler:
    """Build the settler of a deployment; RPC nodes are queried over the session."""
    earlier_terms = {service.slug: build_terms(service, _with_payee(settings)) for service in catalog}
    return Settler(
        earlier_terms if settings.accepted_tokens else {},
        journal,
        facilitators,
        ChainClients(session, settings),
        earlier_terms=earlier_terms,
    )


def _with_payee(settings: Settings) -> Settings:
    """Return settings that terms can be built from, also for a deployment that accepts no payments now."""
    if settings.accepted_tokens:
        return settings
    return settings.model_copy(update={"pay_to": _NO_ONE, "asset": _NO_ONE, "asset_name": "none"})


class Settler:
    """Settles claimed payments, and records the outcomes in the journal.

    An unknown outcome changes no state: the row stays `settling`, with the transaction if one was named.
    """

    def __init__(
        self,
        terms: dict[str, RouteTerms],
        journal: Journal,
        facilitators: Facilitators,
        chains: ChainClients,
        *,
        earlier_terms: Mapping[str, RouteTerms] | None = None,
    ) -> None:
        self.terms = terms
        """Terms of each route, by slug; empty if no payments are accepted."""
        self.earlier_terms = earlier_terms or terms
        """Terms of each route from which those of earlier payments are made, by slug; never empty."""
        self.journal = journal
        self.chains = chains
        self.facilitators = facilitators

    async def settle(self, payment: Payment, claim: Claim) -> SettlementOutcome:
        """Settle a payment while its buyer waits, or resolve what an earlier attempt left open.

        A new settlement is written while the service runs; what any other outcome changes is written before
        this returns.
        """
        if claim.outcome_unknown:
            return await self.resolve(claim, max_wait=TIMEOUT)
        result = await self._settle_new(payment, claim)
        if isinstance(result, SettlementConfirmed):
            await self.journal.begin_settled(claim, result.receipt["transaction"])
        else:
            await self._record(claim, result)
        return result

    async def resolve(self, claim: Claim, *, max_wait: float) -> SettlementOutcome:
        """Find the outcome of a payment that an earlier attempt left open, and record it if it is known.

        `max_wait`: time limit for the nodes, in seconds.
        """
        result = await self._find_outcome(claim, max_wait)
        await self._record(claim, result)
        return result

    async def _find_outcome(self, claim: Claim, max_wait: float) -> SettlementOutcome:
        """Return the outcome of an earlier, unresolved attempt: from the chain, or from the facilitator.

        If the nodes agree that the nonce is used or the authorization has expired, the chain alone decides: a
        payment to us in any block settles it, anything else in a safe block refuses it. If they show the
        nonce unspent, or give no usable answer, the same bytes are submitted again, to the facilitator that
        may have them; the exception is in `_find_outcome_by_status`. Never returns SettlementNotSent.
        """
        cause: OpenCause = "not_final"
        try:
            status = await self._payment_status(claim, max_wait)
            if status is None:
                cause = "no_node"
        except ChainUnreachable:
            status, cause = None, "no_answer"
        result = await self._find_outcome_by_status(claim, status)
        if isinstance(result, SettlementUnknown) and result.open_cause is None:
            return replace(result, open_cause=cause)
        return result

    async def _find_outcome_by_status(self, claim: Claim, status: OnchainStatus | None) -> SettlementOutcome:
        """Return the outcome for an on-chain status, None if the nodes gave no usable one.

        Exception: if the nonce is unspent, and the facilitator named the transaction of the only submission,
        that transaction is waited for, and nothing is submitted. The payment is refused once it was reverted.
        """
        if status == "unspent" and claim.transaction and claim.presentations == 1:
            try:
                is_reverted = await self._is_reverted(claim)
            except ChainUnreachable:
                message = "the nodes gave no usable answer about the transaction that the facilitator named"
                return SettlementUnknown("error", message, open_cause="no_answer")
            if is_reverted:
                return SettlementRefused(REVERTED)
            return _unknown_outcome("the transaction that the facilitator named decides nothing yet")
        if status in (None, "unspent"):
            return await self._resubmit(claim)
        return _outcome_from_chain(status, claim)

    async def _resubmit(self, claim: Claim) -> SettlementOutcome:
        """Submit the bytes of the first submission again, of a payment that may be settled already.

        The authorization can move money only once, so this never charges twice. The facilitator's success
        settles the payment. With any other result the earlier attempts stay open. A used nonce proves
        nothing, since it may have been used before the payment was first submitted here.
        """
        payment = self._rebuild_payment(claim)
        if payment is None:
            return _unknown_outcome("the payment was signed for terms that cannot be submitted again")
        client = self.facilitators.find(claim.facilitator)
        if client is None:
            return _missing_facilitator()
        await self.journal.record_resubmission(claim)
        result = await self._submit(client, payment)
        self.facilitators.report(result)
        match result:
            case SettlementRefused(reason):
                return _unknown_outcome(f"the facilitator refused a payment that is still open: {reason}")
            case SettlementNotSent(kind, message):
                return SettlementUnknown(kind, message)
            case _:
                return result

    async def _settle_new(self, payment: Payment, claim: Claim) -> SettlementOutcome:
        """Settle a payment that was not submitted before.

        A refusal because of the chain's state, or one that is possible after sending, may be caused by a
        transfer: a proxy may have repeated the request, or the facilitator's own transaction may have made
        it. The chain is checked before it is accepted.
        """
        result = await self._submit_new(payment, claim)
        match result:
            case SettlementRefused(_, "chain_state" | "other_facilitator"):
                return await self._check_refusal(claim, result)
            case SettlementUnknown(transaction=transaction, reason=reason) if transaction or reason:
                await self._record_transaction(claim, result)
                return await self._check_answer_in_doubt(claim, result)
            case _:
                return result

    async def _check_refusal(self, claim: Claim, refused: SettlementRefused) -> SettlementOutcome:
        """Return the refusal if the nodes show the nonce unspent, or if none responds.

        If another facilitator may have sent the payment, its transaction may be mined later. Then the refusal
        is proved only if the nodes agree that the authorization expired unspent.
        """
        try:
            status = await self._payment_status(claim, TIMEOUT)
            answers = () if status is None else (status,)
        except ChainUnreachable as error:
            status, answers = None, error.answers
        if refused.certainty == "other_facilitator":
            if status is None:
                return _unknown_outcome(f"no proof by the chain of a refusal: {refused.reason}")
            return refused if status == "expired" else _outcome_from_chain(status, claim)
        if all(answer in _CONFIRM_REFUSAL for answer in answers):
            return refused
        if status is None:
            return _unknown_outcome(f"nodes disagree about a refusal: {refused.reason}")
        return _outcome_from_chain(status, claim)

    async def _check_answer_in_doubt(self, claim: Claim, unknown: SettlementUnknown) -> SettlementOutcome:
        """Return the on-chain outcome of a first submission whose answer decides nothing.

        It names a transaction or a reason. `unknown` itself is returned while the chain shows no outcome.
        """
        try:
            status = await self._payment_status(claim, TIMEOUT)
            if status in ("unspent", "expired_unsafe") and await self._is_reverted(claim):
                return SettlementRefused(unknown.reason or REVERTED)
        except ChainUnreachable:
            return unknown
        return (
            unknown if status in (None, "unspent", "expired_unsafe") else _outcome_from_chain(status, claim)
        )

    async def _payment_status(self, claim: Claim, max_wait: float) -> OnchainStatus | None:
        """Return the on-chain status of a payment, None without a node. Raises ChainUnreachable."""
        chain = self.chains.for_network(claim.key.network)
        query = PaymentQuery(
            claim.key, claim.pay_to, claim.amount, claim.valid_before, claim.presented_at, claim.claim_block
        )
        return await chain.read_payment_status(query, max_wait=max_wait) if chain else None

    async def _is_reverted(self, claim: Claim) -> bool:
        """Return True if the only submission of a payment named a transaction, and that was reverted."""
        chain = self.chains.for_network(claim.key.network)
        if chain is None or claim.transaction is None or claim.presentations > 1:
            return False
        return await chain.read_transaction_status(claim.transaction, claim.key) == "reverted"

    async def _submit_new(self, payment: Payment, claim: Claim) -> SettlementOutcome:
        """Submit a payment for the first time; to the second facilitator if the first did not take it.

        The journal has the facilitator's name before it is called.
        """
        client = self.facilitators.find(claim.facilitator)
        if client is None:
            return _missing_facilitator()
        if not claim.may_change_facilitator:
            result = await self._submit(client, payment)
        else:
            client, result = await self._submit_to_either(client, payment, claim)
        if isinstance(result, SettlementRefused) and claim.presentations > 1:
            result = replace(result, certainty="other_facilitator")
        self.facilitators.report(result, new_at=client)
        return result

    async def _submit_to_either(
        self, client: SettlementClient, payment: Payment, claim: Claim
    ) -> tuple[SettlementClient, SettlementOutcome]:
        """Submit a new payment to the facilitator that it was claimed for, then to the second if need be.

        Need be: the first was not reached, or answered 429. Returns the facilitator that was called last, and
        the outcome there.
        """
        if self.facilitators.rank(client) == "second":
            self.journal.meter.record_fallback("breaker")
            return client, await self._submit(client, payment)
        result = await self._submit(client, payment, is_new=True)
        second = self.facilitators.find_fallback(client)
        # a rejection is an answer: `SettlementNotSent.was_answered`
        if second is None or not isinstance(result, SettlementNotSent) or result.cause == "rejected":
            return client, result
        await self.journal.record_fallback(claim, second.name, result.message, may_be_sent=result.may_be_sent)
        self.journal.meter.record_fallback(result.cause)
        structlog.get_logger().info(
            "the second facilitator is used", service=claim.service, cause=result.cause
        )
        outcome = await self._submit(second, payment)
        if result.may_be_sent and isinstance(outcome, SettlementNotSent) and outcome.cause == "connection":
            # the first keeps it, whose own refusal then counts as if there were no second
            claim.facilitator, claim.may_change_facilitator = client.name, False
            claim.presentations -= 1
        return second, outcome

    async def _submit(
        self, client: SettlementClient, payment: Payment, *, is_new: bool = False
    ) -> SettlementOutcome:
        """Submit a payment to a facilitator and record the metric."""
        started = time.perf_counter()
        if is_new:
            result = await self.facilitators.settle_new(client, payment)
        else:
            result = await client.settle(payment)
        rank = self.facilitators.rank(client)
        self.journal.meter.record_settlement(_metric_label(result), time.perf_counter() - started, rank)
        return result

    def _rebuild_payment(self, claim: Claim) -> Payment | None:
        """Rebuild a payment for the terms it was signed for; any route's will do if its own was removed.

        None if what was signed is not stored, or the name of a token that is not known any more.
        """
        if claim.resubmission_json is None:
            return None
        terms = terms_when_signed(
            self.earlier_terms.get(claim.service) or next(iter(self.earlier_terms.values())),
            network=claim.key.network,
            asset=to_checksum_address(claim.key.asset),
            pay_to=to_checksum_address(claim.pay_to),
            amount=claim.amount,
        )
        payment = rebuild_payment(claim.key, terms, claim.resubmission_json)
        return payment if payment.resubmission["name"] else None

    async def _record(self, claim: Claim, result: SettlementOutcome) -> None:
        match result:
            case SettlementConfirmed(settlement):
                await self.journal.record_settled(claim, settlement["transaction"])
            case SettlementRefused(reason):
                await self.journal.record_refused(claim, reason)
            case SettlementNotSent():
                await self._record_unsent(claim, result)
            case SettlementUnknown():
                await self._record_transaction(claim, result)

    async def _record_unsent(self, claim: Claim, result: SettlementNotSent) -> None:
        """Record that a payment was not sent, and if it stays with the facilitator that it was submitted to.

        It does after an answer, and if another one has no part in it: earlier, or after a 429 with no second
        one configured. Else a 429 counts as one more submission, so that the refusal by another facilitator
        is no evidence.
        """
        is_alone = result.may_be_sent and not self.facilitators.has_second
        stays = result.was_answered or is_alone or not claim.may_change_facilitator
        may_be_sent = result.may_be_sent and not stays
        await self.journal.record_unsent(claim, result.message, was_answered=stays, may_be_sent=may_be_sent)

    async def _record_transaction(self, claim: Claim, result: SettlementUnknown) -> None:
        if result.transaction and result.transaction != claim.transaction:
            await self.journal.record_transaction(claim, result.transaction, result.reason)


def _outcome_from_chain(status: OnchainStatus, claim: Claim) -> SettlementOutcome:
    """Return the settlement outcome that an on-chain status proves, SettlementUnknown if none."""
    match status:
        case OnchainPayment(transaction):
            return SettlementConfirmed(build_settle_response(claim.key, claim.amount, transaction))
        case "spent":
            return SettlementRefused("invalid_transaction_state")
        case "expired":
            return SettlementRefused(EXPIRED_REASON)
        case "spent_unsafe" | "expired_unsafe" | "unspent":
            return _unknown_outcome("no safe block shows the outcome of the payment yet")


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


def _missing_facilitator() -> SettlementUnknown:
    return _unknown_outcome("the payment is at a facilitator that this server does not use any more")


def _unknown_outcome(message: str) -> SettlementUnknown:
    return SettlementUnknown("error", message)
