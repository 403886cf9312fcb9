"""Commands `centgate call` and `centgate services`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Any, cast

from centgate.client import Answer, Centgate, Ledger
from centgate.client.catalog import Entry, Listed
from centgate.client.errors import Drift, InvalidInput, LedgerUnwritable, NotFound
from centgate.client.payment import Order, canonical
from centgate.client.shell.arguments import (
    BadArguments,
    command,
    network_to_name,
    read_body,
    read_pairs,
    require_all,
)
from centgate.client.shell.listing import entry_json, read_services, service_page, services_table
from centgate.client.shell.printing import as_json, console, line, write_nowhere
from centgate.client.shell.showing import answer_json, answer_page, quote_json, quote_page
from centgate.client.shell.telling import UNMOVED, ExitCode, say, settings_given, told

Watch = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Question:
    """Arguments of a call, as typed."""

    slug: str
    pairs: tuple[str, ...] = ()
    body: str | None = None
    api: str | None = None
    max_price: str | None = None
    networks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Request about to be paid, and the ledger that records the payment."""

    ledger: Ledger
    order: Order


@told
def buy(question: Question, *, json: bool) -> ExitCode:
    """Buy an answer and print it."""
    started_at, purchases = datetime.now(UTC), list[Wanted]()
    try:
        answer, payee = _buy_answer(question, purchases)
        return _print_answer(answer, payee, json=json)
    except KeyboardInterrupt:
        if not purchases:
            raise
        return stopped(purchases[0], started_at)


def _buy_answer(question: Question, purchases: list[Wanted]) -> tuple[Answer, str | None]:
    """Buy the answer. Returns it with the payee; appends the purchase to `purchases` before paying."""
    with _progress(f"asking for {question.slug}") as watch, _open_client(question, watch) as client:
        service, body = _prepare_request(client, question)
        purchases.append(Wanted(client.ledger, Order(client.api, service.path, canonical(body))))
        try:
            answer = client.call(question.slug, body)
        except InvalidInput as error:
            raise _with_example(error, service) from None
        return answer, _payee_of(client.ledger, answer)


@told
def show_terms(question: Question, *, json: bool) -> ExitCode:
    """Print the price and the payee of a call; exit code 4 if this client would not pay it."""
    with (
        _progress(f"asking for the terms of {question.slug}") as watch,
        _open_client(question, watch) as client,
    ):
        service, body = _prepare_request(client, question)
        try:
            quote = client.terms(question.slug, body)
        except InvalidInput as error:
            raise _with_example(error, service) from None
    console().print(line(as_json(quote_json(quote))) if json else quote_page(quote), soft_wrap=True)
    return 4 if quote.objections else 0


@told
def show_services(api: str | None, *, json: bool) -> ExitCode:
    """Print every service of the API."""
    with _open_client(Question("", api=api), None) as client:
        services = read_services(client, [each.slug for each in _list_services(client)])
    console().print(
        line(as_json([entry_json(each) for each in services])) if json else services_table(services),
        soft_wrap=json,
    )
    return 0


@told
def show_service(slug: str, api: str | None, *, json: bool) -> ExitCode:
    """Print one service with its input and output fields."""
    with _open_client(Question(slug, api=api), None) as client:
        service = _fetch_service(client, slug)
    out = console()
    out.print(line(as_json(entry_json(service))) if json else service_page(service), soft_wrap=json)
    if not json:
        out.print(line(f"  {_example_command(service)}"), soft_wrap=True)
    return 0


def _print_answer(answer: Answer, payee: str | None, *, json: bool) -> ExitCode:
    """Print an answer; on standard error if standard output cannot be written, because it was paid for."""
    out, text = console(), as_json(answer_json(answer, payee))
    try:
        out.print(line(text) if json else answer_page(answer, payee, out.width), soft_wrap=json)
    except KeyboardInterrupt:
        write_nowhere()  # the user interrupted the output
    except OSError as error:
        say(f"standard output cannot be written ({error.strerror}); the paid answer is on standard error:")
        sys.stderr.write(f"{text}\n")
        write_nowhere()
        return 5
    return 0


@contextmanager
def _progress(what: str) -> Generator[Watch | None]:
    """Show a spinner on a terminal; yields a callback for progress messages, or None."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield None
        return
    with err.status(line(what)) as status:
        yield lambda sentence: status.update(line(sentence))


def _open_client(question: Question, watch: Watch | None) -> Centgate:
    max_price = None if question.max_price is None else _parse_dollars(question.max_price)
    networks = question.networks or None
    settings = settings_given(api_url=question.api, cap_per_call=max_price, networks=networks)
    return Centgate.from_settings(settings, watch=watch)


def _parse_dollars(text: str) -> Decimal:
    try:
        amount = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise BadArguments([f"--max-price is an amount in US dollars, such as 0.02, not {text!r}"])
    return amount


def _prepare_request(client: Centgate, question: Question) -> tuple[Entry, dict[str, Any]]:
    """Return the service and the request body from the arguments."""
    service = _fetch_service(client, question.slug)
    body = read_body(_body_text(question.body)) if question.body is not None else {}
    if question.body is None or question.pairs:
        schema = _input_schema(service)
        body |= read_pairs(question.pairs, schema)
        require_all(body, schema)
    return service, body


def _fetch_service(client: Centgate, slug: str) -> Entry:
    """Fetch a service. Raises NotFound with the closest slug."""
    try:
        return client.service(slug)
    except NotFound:
        slugs = [each.slug for each in _list_services(client)]
    matches = get_close_matches(slug, slugs, 1)
    hint = f"did you mean {matches[0]}?" if matches else f"it has {', '.join(slugs)}"
    raise NotFound(f"{client.api} has no service {slug!r}: {hint}")


def _list_services(client: Centgate) -> tuple[Listed, ...]:
    try:
        return client.services()
    except NotFound:
        raise Drift(f"{client.api} has no catalogue. Is this a Centgate API URL?") from None


def _input_schema(service: Entry) -> dict[str, Any]:
    """Return the input schema of a service. Raises Drift unless it describes an object."""
    properties: Any = service.input_schema.get("properties")
    if isinstance(properties, dict):
        fields = cast(dict[str, Any], properties)
        if all(isinstance(each, dict) for each in fields.values()):
            return service.input_schema
    raise Drift(
        f"the API's input schema of {service.slug} is not in the Centgate format: pass the input as --body"
    )


def _body_text(body: str) -> str | bytes:
    return sys.stdin.buffer.read() if body == "-" else body


def _with_example(error: InvalidInput, service: Entry) -> InvalidInput:
    """Add every issue and a working example command to the error."""
    for issue in error.issues[1:]:
        error.add_note(f"{issue.path}: {issue.message}" if issue.path else issue.message)
    error.add_note(f"for example: {_example_command(service)}")
    return error


def _example_command(service: Entry) -> str:
    """Return a working command, with `--network` if the network must be enabled."""
    return command(service.slug, service.input_example, network=network_to_name(service.payment.network))


def stopped(purchase: Wanted, started_at: datetime) -> ExitCode:
    """Print the payment's state after an interruption."""
    try:
        with purchase.ledger.entry() as entry:
            open_payment = entry.pending(purchase.order, payer=None, now=time.time())
            records = [each for each in entry.records() if each.time >= started_at]
    except LedgerUnwritable as error:
        say(f"stopped: it is unknown whether a payment was signed, because {error}")
        return 5
    if open_payment is not None:
        say(
            "stopped after a payment was signed: it is unknown whether it moved. Run the same command again "
            "within a day: it sends the same payment, never a second one"
        )
        return 5
    if payment_records := [each for each in records if each.payment.fits(purchase.order)]:
        outcome = "answered" if payment_records[-1].event == "delivered" else "refused"
        say(f"stopped after the payment was {outcome}: see `centgate wallet receipts`")
        return 4 if payment_records[-1].money in UNMOVED else 5
    say("stopped: nothing was signed")
    return 130


def _payee_of(ledger: Ledger, answer: Answer) -> str | None:
    """Look up in the ledger the payee of an answer."""
    try:
        records = ledger.records()
    except LedgerUnwritable:
        return None
    matching = (each for each in reversed(records) if each.request_id == answer.request_id)
    return next((each.payment.payee for each in matching), None)
