"""What `centgate call` and `centgate services` do."""

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
    """What is asked, as it was typed."""

    slug: str
    pairs: tuple[str, ...] = ()
    body: str | None = None
    api: str | None = None
    max_price: str | None = None
    networks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is about to be bought, and where it is written down."""

    ledger: Ledger
    order: Order


@told
def buy(question: Question, *, json: bool) -> ExitCode:
    """Buy an answer and show it."""
    began, wanted = datetime.now(UTC), list[Wanted]()
    try:
        answer, payee = _bought(question, wanted)
        return _shown(answer, payee, json=json)
    except KeyboardInterrupt:
        if not wanted:
            raise
        return stopped(wanted[0], began)


def _bought(question: Question, wanted: list[Wanted]) -> tuple[Answer, str | None]:
    """The answer and who was paid; what is about to be bought is put to `wanted` before."""
    with _waiting(f"asking for {question.slug}") as watch, _client(question, watch) as client:
        service, body = _asked(client, question)
        wanted.append(Wanted(client.ledger, Order(client.api, service.path, canonical(body))))
        try:
            answer = client.call(question.slug, body)
        except InvalidInput as error:
            raise _with_example(error, service) from None
        return answer, _payee(client.ledger, answer)


@told
def show_terms(question: Question, *, json: bool) -> ExitCode:
    """Show what an answer would cost and whom it would pay; 4 when this client would not pay it."""
    with _waiting(f"asking for the terms of {question.slug}") as watch, _client(question, watch) as client:
        service, body = _asked(client, question)
        try:
            quote = client.terms(question.slug, body)
        except InvalidInput as error:
            raise _with_example(error, service) from None
    console().print(line(as_json(quote_json(quote))) if json else quote_page(quote), soft_wrap=True)
    return 4 if quote.objections else 0


@told
def show_services(api: str | None, *, json: bool) -> ExitCode:
    """Show every service of the API."""
    with _client(Question("", api=api), None) as client:
        found = read_services(client, [each.slug for each in _listed(client)])
    console().print(
        line(as_json([entry_json(each) for each in found])) if json else services_table(found), soft_wrap=json
    )
    return 0


@told
def show_service(slug: str, api: str | None, *, json: bool) -> ExitCode:
    """Show one service with all that it takes and gives."""
    with _client(Question(slug, api=api), None) as client:
        found = _service(client, slug)
    out = console()
    out.print(line(as_json(entry_json(found))) if json else service_page(found), soft_wrap=json)
    if not json:
        out.print(line(f"  {_example(found)}"), soft_wrap=True)
    return 0


def _shown(answer: Answer, payee: str | None, *, json: bool) -> ExitCode:
    """Show an answer; on standard error where standard output cannot be written, for it was paid for."""
    out, whole = console(), as_json(answer_json(answer, payee))
    try:
        out.print(line(whole) if json else answer_page(answer, payee, out.width), soft_wrap=json)
    except KeyboardInterrupt:
        write_nowhere()  # who reads has seen enough
    except OSError as error:
        say(f"standard output cannot be written ({error.strerror}); this is the answer that was paid for:")
        sys.stderr.write(f"{whole}\n")
        write_nowhere()
        return 5
    return 0


@contextmanager
def _waiting(what: str) -> Generator[Watch | None]:
    """Show on a terminal that something goes on; yields what is to be told of its steps."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield None
        return
    with err.status(line(what)) as status:
        yield lambda sentence: status.update(line(sentence))


def _client(question: Question, watch: Watch | None) -> Centgate:
    most = None if question.max_price is None else _dollars(question.max_price)
    networks = question.networks or None
    settings = settings_given(api_url=question.api, cap_per_call=most, networks=networks)
    return Centgate.from_settings(settings, watch=watch)


def _dollars(text: str) -> Decimal:
    try:
        amount = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise BadArguments([f"--max-price is an amount in US dollars, such as 0.02, not {text!r}"])
    return amount


def _asked(client: Centgate, question: Question) -> tuple[Entry, dict[str, Any]]:
    """The service, and the request that was typed for it."""
    service = _service(client, question.slug)
    given = read_body(_text(question.body)) if question.body is not None else {}
    if question.body is None or question.pairs:
        schema = _readable(service)
        given |= read_pairs(question.pairs, schema)
        require_all(given, schema)
    return service, given


def _service(client: Centgate, slug: str) -> Entry:
    """The service; NotFound names the nearest where there is none."""
    try:
        return client.service(slug)
    except NotFound:
        slugs = [each.slug for each in _listed(client)]
    near = get_close_matches(slug, slugs, 1)
    more = f"did you mean {near[0]}?" if near else f"it has {', '.join(slugs)}"
    raise NotFound(f"{client.api} has no service {slug!r}: {more}")


def _listed(client: Centgate) -> tuple[Listed, ...]:
    try:
        return client.services()
    except NotFound:
        raise Drift(f"{client.api} has no catalogue: is a Centgate there?") from None


def _readable(service: Entry) -> dict[str, Any]:
    """The input schema, where it describes an object; Drift where it does not."""
    properties: Any = service.input_schema.get("properties")
    if isinstance(properties, dict):
        fields = cast(dict[str, Any], properties)
        if all(isinstance(each, dict) for each in fields.values()):
            return service.input_schema
    raise Drift(
        f"the API does not describe the input of {service.slug} as a Centgate does: give it as --body"
    )


def _text(body: str) -> str | bytes:
    return sys.stdin.buffer.read() if body == "-" else body


def _with_example(error: InvalidInput, service: Entry) -> InvalidInput:
    """The same error, with a command that works."""
    for issue in error.issues[1:]:
        error.add_note(f"{issue.path}: {issue.message}" if issue.path else issue.message)
    error.add_note(f"for example: {_example(service)}")
    return error


def _example(service: Entry) -> str:
    """Return a command that works, with the network where it has to be named."""
    return command(service.slug, service.input_example, network=network_to_name(service.payment.network))


def stopped(wanted: Wanted, began: datetime) -> ExitCode:
    """Say what it means for the money that the wait was broken off."""
    try:
        with wanted.ledger.entry() as entry:
            sent = entry.pending(wanted.order, payer=None, now=time.time())
            records = [each for each in entry.records() if each.time >= began]
    except LedgerUnwritable as error:
        say(f"stopped: whether a payment was signed is not known, since {error}")
        return 5
    if sent is not None:
        say(
            "stopped after a payment was signed: whether it moved is not known. Run the same command again "
            "within a day: it sends the same payment, never a second one"
        )
        return 5
    if ended := [each for each in records if each.payment.fits(wanted.order)]:
        how = "answered" if ended[-1].event == "delivered" else "refused"
        say(f"stopped after the payment was {how}: `centgate wallet receipts` has it")
        return 4 if ended[-1].money in UNMOVED else 5
    say("stopped: nothing was signed")
    return 130


def _payee(ledger: Ledger, answer: Answer) -> str | None:
    """Who was paid for an answer, as the ledger has it."""
    try:
        records = ledger.records()
    except LedgerUnwritable:
        return None
    paid = (each for each in reversed(records) if each.request_id == answer.request_id)
    return next((each.payment.payee for each in paid), None)
