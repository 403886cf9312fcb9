"""What a purchase looks like in a terminal: an answer with its receipt, terms, and the receipts of before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from centgate.client.answers import Answer
from centgate.client.ledger import Record
from centgate.client.shell.printing import line, plain, shown, styled
from centgate.client.terms import Quote
from centgate.dollars import TEST_NETWORKS

_STATES = {
    "signed": "open",
    "unresolved": "open",
    "delivered": "answered",
    "refused": "refused",
    "unused": "not used",
}


def answer_page(answer: Answer, payee: str | None, width: int) -> RenderableType:
    """The data, what is to be said against it, where it comes from, and what was paid."""
    footer = Table.grid(padding=(0, 2, 0, 0))
    footer.add_column(style="cyan", no_wrap=True)
    footer.add_column(overflow="fold")
    for label, sentences in (("warning", answer.warnings), ("note", answer.notes)):
        for each in sentences:
            footer.add_row(Text(label, style="yellow"), plain(each))
    footer.add_row("sources", Text.assemble(*_sources(answer, datetime.now(UTC))))
    footer.add_row("receipt", plain(receipt_line(answer, payee)))
    if answer.receipt and answer.receipt.signer:
        footer.add_row("signed by", answer.receipt.signer)
    return Group(shown(answer.data, width), line(""), footer)


def receipt_line(answer: Answer, payee: str | None) -> str:
    """Who was paid how much in which transaction."""
    receipt = answer.receipt
    if receipt is None:
        return f"none came; the request was {answer.request_id}"
    paid = f"paid {_usdc(receipt.amount, receipt.network)} to {payee or 'the API'} in {receipt.transaction}"
    return f"{paid} (given again, for nothing)" if receipt.replayed else paid


def answer_json(answer: Answer, payee: str | None) -> dict[str, Any]:
    """The whole envelope, with the receipt beside it."""
    paid = answer.receipt
    receipt = paid and {
        "transaction": paid.transaction,
        "payer": paid.payer,
        "payee": payee,
        "network": paid.network,
        "amountUsd": str(paid.amount),
        "replayed": paid.replayed,
        "signer": paid.signer,
        "paymentResponse": paid.header,
    }
    return {**answer.envelope, "receipt": receipt, "notes": list(answer.notes)}


def quote_page(quote: Quote) -> RenderableType:
    """Terms in words; nothing was signed."""
    told = {
        "amount": _usdc(quote.usd, quote.network),
        "token": f"{quote.token}, {quote.asset}",
        "network": _network(quote.network),
        "payee": quote.payee,
        "window": f"{quote.seconds} seconds: how long a signature would be good for",
        "for": quote.resource,
    }
    against = [Text.assemble(("would not be paid  ", "red"), plain(each)) for each in quote.objections]
    return Group(pairs_page(told), *against, line("Nothing was signed."))


def quote_json(quote: Quote) -> dict[str, Any]:
    """Terms as JSON, with x402's own words under `offer`."""
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


def pairs_page(told: Mapping[str, str]) -> RenderableType:
    """Names beside values."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in told.items():
        grid.add_row(name, plain(value))
    return grid


def receipts_page(records: Iterable[Record]) -> RenderableType:
    """What was paid, the latest last: three lines each, so that nothing is cut."""
    return Group(*(part for record in last_of_each(records) for part in _receipt(record)))


def receipts_json(records: Iterable[Record]) -> list[dict[str, Any]]:
    """What was paid, without the signatures."""
    return [
        {
            "time": record.time.isoformat(),
            "api": record.payment.api,
            "service": _service(record),
            "amountUsd": str(record.payment.usd),
            "network": record.payment.network,
            "payer": record.payment.payer,
            "payee": record.payment.payee,
            "state": _STATES[record.event],
            "money": record.money,
            "transaction": record.transaction,
            "requestId": record.request_id,
            "why": record.why,
            "paymentResponse": record.receipt,
        }
        for record in last_of_each(records)
    ]


def last_of_each(records: Iterable[Record]) -> list[Record]:
    """How each payment stands now, in the order in which they were signed."""
    latest: dict[str, Record] = {}
    for record in records:
        latest[record.payment.nonce] = record
    return list(latest.values())


def _receipt(record: Record) -> Iterator[RenderableType]:
    payment, state = record.payment, _STATES[record.event]
    yield Text.assemble(
        f"{record.time.astimezone():%Y-%m-%d %H:%M:%S}  ",
        (f"{plain(_service(record))}  ", "bold"),
        f"{_usdc(payment.usd, payment.network)}  ",
        styled(state),
    )
    yield line(f"  to {payment.payee}")
    if record.transaction:
        yield line(f"  in {record.transaction}")
    if record.why:
        yield line(f"  {record.why}")


def _service(record: Record) -> str:
    """A slug from a path: `/services/crawler/map` is `crawler-map`."""
    return record.payment.path.removeprefix("/services/").replace("/", "-")


def _sources(answer: Answer, now: datetime) -> Iterator[Text]:
    """What each source did, and how old what it said is."""
    for number, provider in enumerate(answer.providers):
        yield Text(", " if number else "")
        yield Text(f"{plain(provider.get('name'))} ")
        yield styled(str(provider.get("status")))
        yield Text(_age(provider.get("fetchedAt"), now), style="dim")
    if answer.cached:
        yield Text("; from the API's cache", style="dim")


def _age(fetched: object, now: datetime) -> str:
    """How old what a source said is, ` (3 s old)`; nothing where it does not say."""
    try:
        seconds = (now - datetime.fromisoformat(str(fetched))).total_seconds()
    except (ValueError, TypeError):
        return ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f" ({seconds // size:.0f} {unit} old)"
    return f" ({max(seconds, 0):.0f} s old)"


def _usdc(amount: Decimal, network: str) -> str:
    return f"{amount} {'test ' if network in TEST_NETWORKS else ''}USDC"


def _network(network: str) -> str:
    return f"{network}, where money is worth nothing" if network in TEST_NETWORKS else network
