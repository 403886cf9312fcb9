"""On-chain checks before a refund is recorded: the payer was paid back, and the payment had been received."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from centgate.cli.payments.context import CommandContext
from centgate.cli.payments.serializers import format_dollars, format_money
from centgate.payments import audit_queries, queries
from centgate.payments.chain_client import ChainClient
from centgate.payments.nodes import select_nodes
from centgate.payments.onchain_status import OnchainPayment, PaymentQuery
from centgate.payments.payment_node import ChainUnreachable, open_node_session
from centgate.payments.read_model import PaymentRecord

UNCHECKED = "to record it without this check, add --unchecked"


async def find_refund_problem(desk: CommandContext, record: PaymentRecord, transaction: str) -> str | None:
    """Return why a transaction does not cover the refund of a payment, None if it does."""
    nodes = select_nodes(desk.settings, record.key.network)
    if not nodes.urls:
        setting = f"CENTGATE_RPC_{record.key.network.removeprefix('eip155:')}_URL"
        return f"there is {nodes.description} to check the transaction: set {setting}; {UNCHECKED}"
    async with open_node_session() as session:
        try:
            return await _find_amount_problem(desk, ChainClient(session, nodes), record, transaction)
        except ChainUnreachable as error:
            return f"the transaction could not be checked ({error}): try again; {UNCHECKED}"


async def _find_amount_problem(
    desk: CommandContext, chain: ChainClient, record: PaymentRecord, transaction: str
) -> str | None:
    key = record.key
    moved_amount = await chain.read_received_amount(transaction, key.asset, key.payer)
    if moved_amount == "unknown":
        return f"there is no transaction {transaction} on {key.network}; {UNCHECKED}"
    if moved_amount == "reverted":
        return f"the transaction {transaction} was reverted: no money moved"
    refunded_amount = await desk.journal.reader.read(partial(queries.sum_refunds, key, transaction))
    if moved_amount - refunded_amount >= record.amount:
        return None
    others = (
        f", {format_dollars(refunded_amount)} of it for refunds that are recorded already"
        if refunded_amount
        else ""
    )
    moved = format_money(moved_amount, key.network)
    return (
        f"the transaction moved {moved} of {key.asset} to {key.payer}{others}"
        f", and {format_dollars(record.amount)} are owed"
    )


async def was_received(desk: CommandContext, record: PaymentRecord) -> bool:
    """Return True if nodes show that a payment that was refused here was transferred all the same."""
    nodes = select_nodes(desk.settings, record.key.network)
    row = await desk.journal.reader.read(partial(queries.find_payment, record.key))
    if not nodes.urls or row is None:
        return False
    first_event = await desk.journal.reader.read(partial(audit_queries.find_first_event_time, row))
    query = PaymentQuery(
        record.key, record.pay_to, record.amount, record.valid_before, record.created_at, claim_block=None
    )
    query = replace(query, presented_at=min(record.created_at, first_event or record.created_at))
    async with open_node_session() as session:
        chain = ChainClient(session, nodes)
        try:
            return isinstance(await chain.find_payment(query, await chain.read_safe_block()), OnchainPayment)
        except ChainUnreachable:
            return False
