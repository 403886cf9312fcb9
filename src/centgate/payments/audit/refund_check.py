"""Entry of a refund by its operator: the chain shows that the payer was paid back, then it is recorded."""

from __future__ import annotations

import re
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from centgate.environment import node_variable
from centgate.payments.audit import audit_queries
from centgate.payments.audit.refunds import Refund, record_refund
from centgate.payments.chain.chain_client import ChainClient
from centgate.payments.chain.nodes import select_nodes
from centgate.payments.chain.onchain_status import OnchainPayment, PaymentQuery
from centgate.payments.chain.payment_node import ChainUnreachable, open_node_session
from centgate.payments.database.store import Store
from centgate.payments.journal import queries
from centgate.payments.journal.descriptions import (
    ViewSettings,
    format_dollars,
    format_money,
    status_label,
)
from centgate.payments.journal.read_model import PaymentRecord
from centgate.payments.journal.webhook_events import create_event_builder
from centgate.payments.time_format import format_iso
from centgate.settings import Settings


class RefundProblem(Struct, frozen=True):
    """A reason why a refund was not recorded."""

    message: str
    can_be_unchecked: bool = False
    """True if the operator may record it without the check on the chain."""


def find_hash_problem(transaction: str) -> str | None:
    """Return why a text is not the hash of a transaction, None if it is one."""
    if not re.fullmatch(r"0x[0-9a-fA-F]{64}", transaction):
        return f"must be the refund's transaction, 0x and 64 hexadecimal characters, not {transaction!r}"
    if not int(transaction, 16):
        return "must be the refund's transaction; a hash of zeros is not one"
    return None


def describe_recorded_refund(transaction: str, *, unchecked: bool) -> str:
    """Return the result of a recorded refund, for the log."""
    return f"recorded in {transaction}{' (unchecked)' if unchecked else ''}"


class RefundRecorder(Struct, frozen=True):
    """Records refunds that the chain shows; `view` has the current time."""

    settings: Settings
    store: Store
    view: ViewSettings

    async def enter_refund(
        self, record: PaymentRecord, transaction: str, *, unchecked: bool
    ) -> RefundProblem | None:
        """Record the refund of a payment in a transaction; return why it was not recorded, None if it was.

        `unchecked` skips the check on the chain. Raises JournalUnavailable.
        """
        refund = Refund(transaction.lower(), self.view.now)
        try:
            was_received = (
                record.state in ("refused", "unused")
                and not record.refund
                and await self._was_received(record)
            )
        except ChainUnreachable as error:
            return RefundProblem(
                f"the payment is {record.state} here, and it could not be checked if its money arrived "
                f"({error}): set {node_variable(record.key.network)} or try again"
            )
        objection = None if was_received else _find_objection(record, self.view, refund.transaction)
        if objection:
            return RefundProblem(objection)
        if record.refund:  # in the same transaction
            return None
        if not unchecked:
            moved_amount = await self._read_moved_amount(record, refund.transaction)
            if isinstance(moved_amount, RefundProblem):
                return moved_amount
            refund = replace(refund, moved_amount=moved_amount)
        cutoff = self.view.redemption_cutoff
        if await record_refund(
            self.store,
            record.key,
            refund,
            redeem_cutoff=cutoff,
            was_received=was_received,
            events=create_event_builder(self.settings),
        ):
            return None
        return RefundProblem(
            "the payment or the refunds in this transaction changed in the meantime: nothing was recorded; "
            "check it and try again"
        )

    async def _read_moved_amount(self, record: PaymentRecord, transaction: str) -> int | RefundProblem:
        """Return the amount that a transaction moved to the payer if it covers the refund of a payment."""
        nodes = select_nodes(self.settings, record.key.network)
        if not nodes.urls:
            variable = node_variable(record.key.network)
            message = f"there is {nodes.description} to check the transaction: set {variable}"
            return RefundProblem(message, can_be_unchecked=True)
        async with open_node_session() as session:
            try:
                return await self._find_sufficient_amount(ChainClient(session, nodes), record, transaction)
            except ChainUnreachable as error:
                message = f"the transaction could not be checked ({error}): try again"
                return RefundProblem(message, can_be_unchecked=True)

    async def _find_sufficient_amount(
        self, chain: ChainClient, record: PaymentRecord, transaction: str
    ) -> int | RefundProblem:
        key = record.key
        moved_amount = await chain.read_received_amount(transaction, key.asset, key.payer)
        if moved_amount == "unknown":
            message = f"there is no transaction {transaction} on {key.network}"
            return RefundProblem(message, can_be_unchecked=True)
        if moved_amount == "reverted":
            return RefundProblem(f"the transaction {transaction} was reverted: no money moved")
        refunded_amount = await self.store.read(partial(queries.sum_refunds, key, transaction))
        if moved_amount - refunded_amount >= record.amount:
            return moved_amount
        recorded = f", {format_dollars(refunded_amount)} of it for refunds that are recorded already"
        moved = format_money(moved_amount, key.network)
        return RefundProblem(
            f"the transaction moved {moved} of {key.asset} to {key.payer}"
            f"{recorded if refunded_amount else ''}, and {format_dollars(record.amount)} are owed"
        )

    async def _was_received(self, record: PaymentRecord) -> bool:
        """Return True if nodes show that a payment that was refused here was transferred all the same.

        Raises ChainUnreachable, also without a node.
        """
        nodes = select_nodes(self.settings, record.key.network)
        if not nodes.urls:
            raise ChainUnreachable(f"there is {nodes.description}")
        row = await self.store.read(partial(queries.find_payment, record.key))
        if row is None:
            return False
        first_event = await self.store.read(partial(audit_queries.find_first_event_time, row))
        query = PaymentQuery(
            record.key, record.pay_to, record.amount, record.valid_before, record.created_at, claim_block=None
        )
        query = replace(query, presented_at=min(record.created_at, first_event or record.created_at))
        async with open_node_session() as session:
            chain = ChainClient(session, nodes)
            return isinstance(await chain.find_payment(query, await chain.read_safe_block()), OnchainPayment)


def _find_objection(record: PaymentRecord, view: ViewSettings, transaction: str) -> str | None:
    """Return why a transaction cannot be recorded as a payment's refund; None if it can."""
    match "refunded" if record.refund else status_label(record, view):
        case "refundable":
            return None
        case "refunded":
            return (
                None if record.refund == transaction else f"its refund in {record.refund} is already recorded"
            )
        case "redeemable":
            until = format_iso(record.updated_at + view.redeem_seconds)
            return (
                f"its answer can be redeemed until {until}: after an earlier refund the buyer could get both"
            )
        case word:
            return f"no refund is due: the payment is {word}"
