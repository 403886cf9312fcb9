"""Render a purchase: an answer with its receipt, the terms, and earlier payments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from centgate.cli.terminal import escape_controls, render_status, render_value, text_line
from centgate.client.ledger import LedgerRecord
from centgate.client.node import latest_records
from centgate.client.quote import Quote
from centgate.client.responses import Answer
from centgate.signing.assets import TEST_NETWORKS

_STATE_LABELS = {
    "signed": "open",
    "unresolved": "open",
    "delivered": "answered",
    "refused": "refused",
    "unanswered": "unanswered",
    "unused": "not used",
}


def render_answer(answer: Answer, payee: str | None, width: int) -> RenderableType:
    """Render the data, warnings, providers and receipt of an answer."""
    footer = Table.grid(padding=(0, 2, 0, 0))
    footer.add_column(style="cyan", no_wrap=True)
    footer.add_column(overflow="fold")
    for label, sentences in (("warning", answer.warnings), ("note", answer.notes)):
        for each in sentences:
            footer.add_row(Text(label, style="yellow"), escape_controls(each))
    footer.add_row("sources", Text.assemble(*_provider_statuses(answer, datetime.now(UTC))))
    footer.add_row("receipt", escape_controls(describe_receipt(answer, payee)))
    if answer.receipt and answer.receipt.signer:
        footer.add_row("signed by", answer.receipt.signer)
    return Group(render_value(answer.data, width), text_line(""), footer)


def describe_receipt(answer: Answer, payee: str | None) -> str:
    """Describe the payment of an answer: amount, payee and transaction."""
    receipt = answer.receipt
    if receipt is None:
        return f"none received; the request ID is {answer.request_id}"
    amount = format_dollars(receipt.amount, receipt.network)
    text = f"paid {amount} to {payee or 'the API'} in {receipt.transaction}"
    return f"{text} (replayed, not charged again)" if receipt.replayed else text


def answer_json(answer: Answer, payee: str | None) -> dict[str, Any]:
    """Return the response envelope with the receipt and the client's notes."""
    receipt = answer.receipt
    receipt_json = receipt and {
        "transaction": receipt.transaction,
        "payer": receipt.payer,
        "payee": payee,
        "network": receipt.network,
        "amountUsd": str(receipt.amount),
        "replayed": receipt.replayed,
        "signer": receipt.signer,
        "paymentResponse": receipt.header,
    }
    return {**answer.envelope, "receipt": receipt_json, "notes": list(answer.notes)}


def render_quote(quote: Quote) -> RenderableType:
    """Render the terms of a call; nothing was signed."""
    fields = {
        "amount": format_dollars(quote.usd, quote.network),
        "token": f"{quote.token}, {quote.asset}",
        "network": _describe_network(quote.network),
        "payee": quote.payee,
        "window": f"{quote.seconds} seconds: validity of a signature",
        "for": quote.resource,
    }
    objections = [
        Text.assemble(("would not be paid  ", "red"), escape_controls(each)) for each in quote.objections
    ]
    return Group(render_pairs(fields), *objections, text_line("Nothing was signed."))


def quote_json(quote: Quote) -> dict[str, Any]:
    """Return the terms as JSON, with x402's original under `offer`."""
    return {
        "amountUsd": str(quote.usd),
        "network": quote.network,
        "asset": quote.asset,
        "payee": quote.payee,
        "windowSeconds": quote.seconds,
        "resource": quote.resource,
        "objections": list(quote.objections),
        "offer": quote.offer,
    }


def render_pairs(pairs: Mapping[str, str]) -> RenderableType:
    """Render names beside values."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs.items():
        grid.add_row(name, escape_controls(value))
    return grid


def render_receipts(records: Sequence[LedgerRecord]) -> RenderableType:
    """Render payments, the latest last, in three lines each so that nothing is truncated."""
    return Group(*(part for record in latest_records(records) for part in _payment_lines(record)))


def receipts_json(records: Sequence[LedgerRecord]) -> list[dict[str, Any]]:
    """Return the payments as JSON, without the signatures."""
    return [
        {
            "time": record.time.isoformat(),
            "api": record.payment.api,
            "service": _slug_of(record),
            "amountUsd": str(record.payment.usd),
            "network": record.payment.network,
            "payer": record.payment.payer,
            "payee": record.payment.payee,
            "state": _STATE_LABELS[record.event],
            "money": record.money,
            "transaction": record.transaction,
            "requestId": record.request_id,
            "why": record.why,
            "paymentResponse": record.receipt,
        }
        for record in latest_records(records)
    ]


def _payment_lines(record: LedgerRecord) -> Iterator[RenderableType]:
    payment, state = record.payment, _STATE_LABELS[record.event]
    yield Text.assemble(
        f"{record.time.astimezone():%Y-%m-%d %H:%M:%S}  ",
        (f"{escape_controls(_slug_of(record))}  ", "bold"),
        f"{format_dollars(payment.usd, payment.network)}  ",
        render_status(state),
    )
    yield text_line(f"  to {payment.payee} on {payment.network}")
    if record.transaction:
        yield text_line(f"  in {record.transaction}")
    if record.why:
        yield text_line(f"  {record.why}")


def _slug_of(record: LedgerRecord) -> str:
    """Return the slug of a payment's service; older records have only its path, `/services/crawler/map`."""
    return record.payment.service or record.payment.path.removeprefix("/services/").replace("/", "-")


def _provider_statuses(answer: Answer, now: datetime) -> Iterator[Text]:
    """Render the status of each provider and the age of its data."""
    for number, provider in enumerate(answer.providers):
        yield Text(", " if number else "")
        yield Text(f"{escape_controls(provider.get('name'))} ")
        yield render_status(str(provider.get("status")))
        yield Text(_format_age(provider.get("fetchedAt"), now), style="dim")
    if answer.cached:
        yield Text("; from the API's cache", style="dim")


def _format_age(fetched: object, now: datetime) -> str:
    """Format the age of a provider's data, ` (3 s old)`; empty if it is unknown."""
    try:
        seconds = (now - datetime.fromisoformat(str(fetched))).total_seconds()
    except (ValueError, TypeError):
        return ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f" ({seconds // size:.0f} {unit} old)"
    return f" ({max(seconds, 0):.0f} s old)"


def format_dollars(amount: Decimal, network: str) -> str:
    """Format an amount of a dollar token, whichever it is; test money is named as such."""
    return f"${amount}{' of test money' if network in TEST_NETWORKS else ''}"


def _describe_network(network: str) -> str:
    return f"{network}, a test network without real money" if network in TEST_NETWORKS else network
