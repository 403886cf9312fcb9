"""Generator of docs/settlement-outcomes.md: runs each facilitator response through the real code."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal, cast

import orjson

from centgate.catalog import all_services
from centgate.errors import CentgateError, PaymentNote
from centgate.payments.authorization import Payment
from centgate.payments.chain.chain_client import ChainClients
from centgate.payments.chain.onchain_status import OnchainPayment, OnchainStatus, TransactionStatus
from centgate.payments.chain.payment_node import ChainUnreachable
from centgate.payments.claim_values import RequestBinding
from centgate.payments.database.store_factory import open_store
from centgate.payments.facilitator.facilitator import (
    SettlementNotSent,
    SettlementOutcome,
    SettlementUnknown,
    interpret_response,
)
from centgate.payments.facilitator.facilitators import Facilitators
from centgate.payments.gate import PaymentGate
from centgate.payments.journal.journal import Journal
from centgate.payments.payer_policy import PayerPolicy
from centgate.payments.payment_key import PaymentKey
from centgate.payments.settle_request import ResubmissionData
from centgate.payments.settlement import Settler
from centgate.payments.terms import RouteTerms, build_terms
from centgate.settings import Settings

_HASH = "0x" + "ab" * 32
_OTHER_FORM = {"error": {"transaction": _HASH}}
_RESUBMISSION: ResubmissionData = {
    "signature": "0x" + "11" * 65,
    "validAfter": "0",
    "validBefore": "2000000000",
    "window": 120,
    "name": "USD Coin",
    "version": "2",
    "url": "https://facts.example/services/token-risk",
}


def _refusal(reason: str, transaction: str = "") -> dict[str, Any]:
    return {"success": False, "errorReason": reason, "transaction": transaction, "network": "eip155:8453"}


@dataclass(frozen=True, slots=True)
class _FacilitatorReply:
    """A facilitator's response: status and body, or the failure instead of a response."""

    label: str
    status: int = 200
    body: Any = None
    instead: SettlementOutcome | None = None

    def interpret(self, payment: Payment) -> SettlementOutcome:
        return self.instead or interpret_response(payment, self.status, orjson.dumps(self.body))


@dataclass(frozen=True, slots=True)
class _ChainState:
    """On-chain status of a payment, and of a transaction that the facilitator named."""

    label: str
    status: OnchainStatus | Literal["no node", "no answer"]
    transaction: TransactionStatus = "unknown"


REPLIES: Sequence[_FacilitatorReply] = (
    _FacilitatorReply("2xx, success about this payment, with a transaction", 200, {
        "success": True, "transaction": _HASH, "network": "eip155:8453",
    }),
    _FacilitatorReply("success under another status", 500, {
        "success": True, "transaction": _HASH, "network": "eip155:8453",
    }),
    _FacilitatorReply("success about another payment, without a transaction, or with a reason", 200, {
        "success": True, "transaction": "", "network": "eip155:8453",
    }),
    _FacilitatorReply("a refusal of kind `payload`, below status 500", 400, _refusal("invalid_payload")),
    _FacilitatorReply(
        "a refusal of kind `chain_state`, below status 500", 400, _refusal("insufficient_funds")
    ),
    _FacilitatorReply("a refusal of kind `in_doubt` (a used nonce, an unknown reason)", 200, _refusal(
        "invalid_exact_evm_nonce_already_used"
    )),
    _FacilitatorReply("a refusal that names a transaction, whatever the reason", 200, _refusal(
        "transaction_failed", _HASH
    )),
    _FacilitatorReply("a refusal under status 500 or more, about another payment, or with a transaction"
        " that is no hash", 500, _refusal("insufficient_funds")),
    _FacilitatorReply("401, 403, 404, 405, 411, 413, 414, 415, 429 or 431; no word of a settlement", 429),
    _FacilitatorReply("one of these, and a word of a settlement in another form", 403, _OTHER_FORM),
    _FacilitatorReply("no connection: DNS, refused, TLS, timeout", instead=SettlementNotSent("error", "")),
    _FacilitatorReply("400 or any other status without such a body", 400),
    _FacilitatorReply("timeout, or an incomplete response", instead=SettlementUnknown("timeout", "")),
)  # fmt: skip

CHAIN_STATES: Sequence[_ChainState] = (
    _ChainState("no node, or none responds", "no node"),
    _ChainState("nonce unspent", "unspent"),
    _ChainState("nonce unspent, named transaction reverted", "unspent", "reverted"),
    _ChainState("nonce unspent in a safe block past `validBefore`", "expired"),
    _ChainState("paid to the seller in a block after the claim", OnchainPayment(_HASH), "succeeded"),
    _ChainState("nonce used otherwise or before the claim, not safe yet", "spent_unsafe"),
    _ChainState("the same in a safe block", "spent"),
)

_INTRODUCTION = """# Outcomes of a settlement

Outcome of a payment, by the facilitator's response and by the on-chain status. Each cell is the result of
running the real code; `make docs` generates this page. The kinds of reasons are those of
[facilitator-reasons.md](facilitator-reasons.md), the rules are in
[decision 2](decisions/0002-unknown-outcomes.md).

| outcome | response to the buyer | state in the journal | requests that are served |
| --- | --- | --- | --- |
"""
_FIRST = """
## First submission

"""
_REPEATED = """
## Repeated submission, after an attempt with an unknown outcome

If the on-chain status decides, the facilitator is not called again. In the column "nonce unspent, named
transaction reverted" the first attempt named that transaction. A payment that was `unused` or `refused`
before is submitted as for the first time.

"""


@dataclass(frozen=True, slots=True)
class _DocumentedOutcome:
    word: str
    buyer: str
    journal: str
    served: str


class _ScriptedFacilitator:
    name = "scripted"

    def __init__(self, reply: _FacilitatorReply) -> None:
        self.reply = reply

    async def settle(self, payment: Payment, *, connect_timeout: float | None = None) -> SettlementOutcome:
        assert connect_timeout is None
        return self.reply.interpret(payment)

    def close(self) -> None:
        pass


class _ScriptedChains:
    def __init__(self, state: _ChainState) -> None:
        self.state = state

    def for_network(self, _network: str) -> _ScriptedChains | None:
        return None if self.state.status == "no node" else self

    async def read_payment_status(self, *_: Any, **__: Any) -> OnchainStatus:
        if self.state.status in ("no node", "no answer"):
            raise ChainUnreachable("scripted")
        return self.state.status

    async def read_transaction_status(self, *_: Any) -> TransactionStatus:
        return self.state.transaction


async def find_outcomes() -> tuple[list[list[_DocumentedOutcome]], list[list[_DocumentedOutcome]]]:
    """Return the outcomes of first and of repeated submissions, a row for each reply."""
    service = all_services()[0]
    settings = Settings(pay_to="0x" + "22" * 20)
    terms = build_terms(service, settings)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{Path(folder) / 'journal.db'}")
        try:
            await store.migrate()
            runner = _OutcomeRunner(Journal(store, keep_seconds=3600), terms)
            first = [[await runner.outcome(reply, state) for state in CHAIN_STATES] for reply in REPLIES]
            repeated = [
                [await runner.outcome(reply, state, repeated=True) for state in CHAIN_STATES]
                for reply in REPLIES
            ]
        finally:
            await store.close()
    return first, repeated


class _OutcomeRunner:
    """Settles one payment after the other, with a separate journal."""

    def __init__(self, journal: Journal, terms: RouteTerms) -> None:
        self._journal = journal
        self._terms = terms
        self._nonces = count(1)

    async def outcome(
        self, reply: _FacilitatorReply, state: _ChainState, *, repeated: bool = False
    ) -> _DocumentedOutcome:
        payment = self._payment(next(self._nonces))
        order = RequestBinding(self._terms.route.service.slug, "binding")
        if repeated:
            has_transaction = state.transaction == "reverted"
            earlier = (
                _FacilitatorReply("", 200, _refusal("settlement_pending", _HASH))
                if has_transaction
                else REPLIES[-1]
            )
            await self._settle(payment, order, earlier, _ChainState("", "no node"))
        error = await self._settle(payment, order, reply, state)
        note = await self._journal.find_note(payment)
        return _describe_outcome(error, note)

    async def _settle(
        self, payment: Payment, order: RequestBinding, reply: _FacilitatorReply, state: _ChainState
    ) -> CentgateError | None:
        facilitator, chains = _ScriptedFacilitator(reply), _ScriptedChains(state)
        settler = Settler(
            {self._terms.route.service.slug: self._terms},
            self._journal,
            Facilitators([facilitator]),
            cast(ChainClients, chains),
        )
        try:
            async with self._journal.claim(payment, order) as claim:
                await PaymentGate(settler, PayerPolicy(Settings())).settle(payment, claim)
        except CentgateError as error:
            return error
        return None

    def _payment(self, number: int) -> Payment:
        terms = self._terms.first
        key = PaymentKey(terms.network, terms.asset.address.lower(), "0x" + "33" * 20, f"0x{number:064x}")
        return Payment(
            key=key,
            terms=terms,
            resubmission=_RESUBMISSION,
            resubmission_json=orjson.dumps(_RESUBMISSION).decode(),
            valid_before=2_000_000_000,
            rejection=None,
            is_signer_verified=True,
            signature_form="key",
            signature_digest="proof",
            identifier=None,
            is_on_test_network=False,
        )


def _describe_outcome(error: CentgateError | None, journal_note: PaymentNote | None) -> _DocumentedOutcome:
    if error is None:
        return _DocumentedOutcome("served", "200, the answer", "settled, then delivered", "this request")
    note = error.payment
    assert note is not None
    assert journal_note is not None
    match note.state:
        case "refused":
            buyer, journal, served = "402, `retry: new_payment`", "refused", "none"
        case "unused":
            buyer, journal, served = (
                "502 or 504, `unused`, `retry: same_payment`",
                "unused, without alerts, until `validBefore`",
                "none; submitted again, it may pay for any request",
            )
        case _:
            buyer, journal, served = (
                "502 or 504, `in_flight`, `retry: same_payment`",
                "settling: reconciled in the background, alert after ten minutes",
                "none until it is resolved",
            )
    assert journal_note.state == note.state, (journal_note, note)
    return _DocumentedOutcome("open" if note.state == "in_flight" else note.state, buyer, journal, served)


def render_page() -> str:
    """Return the documentation page as Markdown."""
    first, repeated = asyncio.run(find_outcomes())
    results = {cell.word: cell for rows in (first, repeated) for row in rows for cell in row}
    legend = "".join(
        f"| **{each.word}** | {each.buyer} | {each.journal} | {each.served} |\n" for each in results.values()
    )
    return _INTRODUCTION + legend + _FIRST + _render_table(first) + _REPEATED + _render_table(repeated)


def _render_table(rows: list[list[_DocumentedOutcome]]) -> str:
    heads: Mapping[str, None] = dict.fromkeys(state.label for state in CHAIN_STATES)
    lines = [f"| the facilitator | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
    for reply, row in zip(REPLIES, rows, strict=True):
        lines.append(f"| {reply.label} | {' | '.join(cell.word for cell in row)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(render_page(), end="")
