"""On-chain checks before a refund is recorded: the payer was paid back, and the payment had been received."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import aiohttp

from centgate.payments import audit_queries, queries
from centgate.payments.desk import CommandContext
from centgate.payments.entries import format_dollars, format_money
from centgate.payments.nodes import payment_nodes
from centgate.payments.onchain import Chain, ChainUnreachable, Paid, PaymentQuery
from centgate.payments.records import Record

UNCHECKED = "to record it without this check, add --unchecked"


async def refund_problem(desk: CommandContext, record: Record, transaction: str) -> str | None:
    """Return why a transaction does not cover the refund of a payment, None if it does."""
    nodes = payment_nodes(desk.settings, record.key.network)
    if not nodes.urls:
        setting = f"CENTGATE_RPC_{record.key.network.removeprefix('eip155:')}_URL"
        return f"there is {nodes.description} to check the transaction: set {setting}; {UNCHECKED}"
    async with aiohttp.ClientSession(trust_env=False) as session:
        try:
            return await _find_amount_problem(desk, Chain(session, nodes), record, transaction)
        except ChainUnreachable as error:
            return f"the transaction could not be checked ({error}): try again; {UNCHECKED}"


async def _find_amount_problem(
    desk: CommandContext, chain: Chain, record: Record, transaction: str
) -> str | None:
    key = record.key
    moved_amount = await chain.received(transaction, key.asset, key.payer)
    if moved_amount == "unknown":
        return f"there is no transaction {transaction} on {key.network}; {UNCHECKED}"
    if moved_amount == "reverted":
        return f"the transaction {transaction} was reverted: no money moved"
    refunded_amount = await desk.journal.reader.read(partial(queries.refunded_amount, key, transaction))
    if moved_amount - refunded_amount >= record.amount:
        return None
    others = (
        f", {format_dollars(refunded_amount)} of it for refunds that are recorded already"
        if refunded_amount
        else ""
    )
    return (
        f"the transaction moved {format_money(moved_amount, key.network)} of {key.asset} to {key.payer}{others}, "
        f"and {format_dollars(record.amount)} are owed"
    )


async def was_taken(desk: CommandContext, record: Record) -> bool:
    """Return True if nodes show that a payment that was refused here was transferred all the same."""
    nodes = payment_nodes(desk.settings, record.key.network)
    row = await desk.journal.reader.read(partial(queries.find, record.key))
    if not nodes.urls or row is None:
        return False
    first_event = await desk.journal.reader.read(partial(audit_queries.first_event, row))
    query = PaymentQuery(
        record.key, record.pay_to, record.amount, record.valid_before, record.created_at, claim_block=None
    )
    query = replace(query, presented_at=min(record.created_at, first_event or record.created_at))
    async with aiohttp.ClientSession(trust_env=False) as session:
        chain = Chain(session, nodes)
        try:
            return isinstance(await chain.find_payment(query, await chain.safe_block()), Paid)
        except ChainUnreachable:
            return False
