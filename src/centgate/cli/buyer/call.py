"""Commands `centgate call` and `centgate services`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from centgate.cli.buyer.arguments import (
    InvalidArguments,
    network_to_enable,
    parse_body,
    parse_pairs,
    require_keys,
)
from centgate.cli.buyer.exit_codes import (
    NOT_MOVED_STATES,
    ExitCode,
    read_buyer_settings,
    reports_errors,
)
from centgate.cli.buyer.render import answer_json, quote_json, render_answer, render_quote
from centgate.cli.buyer.services import fetch_service_details, render_service, render_services, service_json
from centgate.cli.terminal import (
    create_console,
    discard_stdout,
    escape_controls,
    format_json,
    print_json,
    print_message,
    render_value,
    text_line,
)
from centgate.client import Answer, Centgate, Ledger, OptionNames
from centgate.client.caps import parse_dollars
from centgate.client.catalog import ServiceDetail, ServiceSummary
from centgate.client.errors import Drift, InvalidInput, LedgerUnwritable, NotFound
from centgate.client.payment import PurchaseOrder
from centgate.client.payment_signature import canonical_json
from centgate.client.shell_command import format_command
from centgate.json_schema import InvalidSchema, Schema, parse_schema

Watch = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CallArguments:
    """Arguments of a call, as typed."""

    slug: str
    pairs: tuple[str, ...] = ()
    body: str | None = None
    api: str | None = None
    max_price: str | None = None
    networks: tuple[str, ...] = ()
    quiet: bool = False

    @property
    def option_names(self) -> OptionNames:
        """Names of the options that the command used, for the advice in messages."""
        return OptionNames(
            api="--api" if self.api else "--api or CENTGATE_API_URL",
            per_call="--max-price" if self.max_price else "--max-price or CENTGATE_CAP_PER_CALL",
        )


@dataclass(frozen=True, slots=True)
class PendingPurchase:
    """Request about to be paid, and the ledger that records the payment."""

    ledger: Ledger
    order: PurchaseOrder


@reports_errors
def run_purchase(arguments: CallArguments, *, json: bool) -> ExitCode:
    """Buy an answer and print it."""
    started_at, purchases = datetime.now(UTC), list[PendingPurchase]()
    try:
        answer, payee = _buy_answer(arguments, purchases)
        return _print_answer(answer, payee, json=json, quiet=arguments.quiet)
    except KeyboardInterrupt:
        if not purchases:
            raise
        return report_interruption(purchases[0], started_at)


def _buy_answer(arguments: CallArguments, purchases: list[PendingPurchase]) -> tuple[Answer, str | None]:
    """Buy the answer. Returns it with the payee; appends the purchase to `purchases` before paying."""
    with _progress(arguments, "asking for") as watch, _open_client(arguments, watch) as client:
        service, body = _prepare_request(client, arguments)
        order = PurchaseOrder(client.api, service.path, canonical_json(body), service.slug)
        purchases.append(PendingPurchase(client.ledger, order))
        try:
            answer = client.call(arguments.slug, body)
        except InvalidInput as error:
            raise _with_example(error, service) from None
        return answer, _payee_of(client.ledger, answer)


@reports_errors
def show_terms(arguments: CallArguments, *, json: bool) -> ExitCode:
    """Print the price and the payee of a call; exit code 4 if this client would not pay it."""
    with (
        _progress(arguments, "asking for the terms of") as watch,
        _open_client(arguments, watch) as client,
    ):
        service, body = _prepare_request(client, arguments)
        try:
            quote = client.terms(arguments.slug, body)
        except InvalidInput as error:
            raise _with_example(error, service) from None
    if json:
        print_json(quote_json(quote))
    else:
        create_console().print(render_quote(quote), soft_wrap=True)
    return 4 if quote.objections else 0


@reports_errors
def show_services(api: str | None, *, json: bool) -> ExitCode:
    """Print every service of the API."""
    with _open_client(CallArguments("", api=api), None) as client:
        services = fetch_service_details(client, [each.slug for each in _list_services(client)])
    if json:
        print_json([service_json(each) for each in services])
    else:
        create_console().print(render_services(services))
    return 0


@reports_errors
def show_service(slug: str, api: str | None, *, json: bool) -> ExitCode:
    """Print one service with its input and output fields."""
    with _open_client(CallArguments(slug, api=api), None) as client:
        service = _fetch_service(client, slug)
    if json:
        print_json(service_json(service))
        return 0
    out = create_console()
    out.print(render_service(service))
    out.print(text_line(f"  {_example_command(service)}"), soft_wrap=True)
    return 0


def _print_answer(answer: Answer, payee: str | None, *, json: bool, quiet: bool) -> ExitCode:
    """Print an answer; on standard error if standard output cannot be written, because it was paid for."""
    out, formatted = create_console(), _format_answer(answer, payee)
    text = formatted or escape_controls(answer.body.decode("utf-8", "replace"))
    try:
        if json or formatted is None:
            out.print(text_line(text), soft_wrap=True)
        elif quiet:
            out.print(render_value(answer.data, out.width))
        else:
            out.print(render_answer(answer, payee, out.width))
    except KeyboardInterrupt:
        print_message(f"stopped while the paid answer was printed{_describe_copy(answer)}")
        discard_stdout()
        return 6
    except OSError as error:
        print_message(
            f"standard output cannot be written ({error.strerror}){_describe_copy(answer)}. "
            "The paid answer is on standard error:"
        )
        with suppress(OSError):
            sys.stderr.write(f"{text}\n")
        discard_stdout()
        return 6
    return 0


def _format_answer(answer: Answer, payee: str | None) -> str | None:
    """Format an answer as JSON; None if it is nested too deeply for that."""
    try:
        return format_json(answer_json(answer, payee))
    except RecursionError:
        return None


def _describe_copy(answer: Answer) -> str:
    """Return a clause on how to read a paid answer again."""
    transaction = answer.receipt.transaction if answer.receipt else None
    return f"; read it again with `centgate wallet payments {transaction}`" if transaction else ""


@contextmanager
def _progress(arguments: CallArguments, action: str) -> Generator[Watch | None]:
    """Show a spinner on a terminal; yields a callback for progress messages, or None."""
    err = create_console(stderr=True)
    if arguments.quiet or not err.is_terminal:
        yield None
        return
    with err.status(text_line(f"{action} {arguments.slug}")) as status:
        yield lambda sentence: status.update(text_line(sentence))


def _open_client(arguments: CallArguments, watch: Watch | None) -> Centgate:
    max_price = None if arguments.max_price is None else _parse_price(arguments.max_price)
    networks = arguments.networks or None
    settings = read_buyer_settings(api_url=arguments.api, cap_per_call=max_price, networks=networks)
    return Centgate.from_settings(settings, watch=watch, options=arguments.option_names)


def _parse_price(text: str) -> Decimal:
    try:
        return parse_dollars(text)
    except ValueError:
        message = f"--max-price is an amount in US dollars, such as 0.02, not {text!r}"
        raise InvalidArguments([message]) from None


def _prepare_request(client: Centgate, arguments: CallArguments) -> tuple[ServiceDetail, dict[str, Any]]:
    """Return the service and the request body from the arguments."""
    service = _fetch_service(client, arguments.slug)
    body = parse_body(read_body(arguments.body)) if arguments.body is not None else {}
    if arguments.body is None or arguments.pairs:
        schema = _input_schema(service)
        body |= parse_pairs(arguments.pairs, schema)
        require_keys(body, schema)
    return service, body


def _fetch_service(client: Centgate, slug: str) -> ServiceDetail:
    """Fetch a service. Raises NotFound with the closest slug."""
    try:
        return client.service(slug)
    except NotFound:
        slugs = [each.slug for each in _list_services(client)]
    matches = get_close_matches(slug, slugs, 1)
    hint = f"did you mean {matches[0]}?" if matches else f"it has {', '.join(slugs)}"
    raise NotFound(f"{client.api} has no service {slug!r}: {hint}")


def _list_services(client: Centgate) -> tuple[ServiceSummary, ...]:
    try:
        return client.services()
    except NotFound:
        raise Drift(f"{client.api} has no catalogue. Is this a Centgate API URL?") from None


def _input_schema(service: ServiceDetail) -> Schema:
    """Return the input schema of a service. Raises Drift unless it describes an object."""
    with suppress(InvalidSchema):
        schema = parse_schema(service.input_schema)
        if schema.has("properties"):
            return schema
    raise Drift(
        f"the API's input schema of {service.slug} is not in the Centgate format: pass the input as --body"
    )


def read_body(body: str) -> str | bytes:
    return sys.stdin.buffer.read() if body == "-" else body


def _with_example(error: InvalidInput, service: ServiceDetail) -> InvalidInput:
    """Add every issue and a working example command to the error."""
    for issue in error.issues[1:]:
        error.add_note(f"{issue.path}: {issue.message}" if issue.path else issue.message)
    error.add_note(f"for example: {_example_command(service)}")
    return error


def _example_command(service: ServiceDetail) -> str:
    """Return a working command, with `--network` if the network must be enabled."""
    return format_command(
        service.slug, service.input_example, network=network_to_enable(service.payment.network)
    )


def report_interruption(purchase: PendingPurchase, started_at: datetime) -> ExitCode:
    """Print the payment's state after an interruption."""
    try:
        with purchase.ledger.entry() as entry:
            open_payment = entry.find_pending(purchase.order, payer=None, now=time.time())
            records = [each for each in entry.records() if each.time >= started_at]
    except LedgerUnwritable as error:
        print_message(f"stopped: it is unknown whether a payment was signed, because {error}")
        return 5
    if open_payment is not None:
        print_message(
            "stopped after a payment was signed: it is unknown whether it moved. Run the same command again "
            "within a day: it sends the same payment, never a second one"
        )
        return 5
    if payment_records := [each for each in records if each.payment.is_for(purchase.order)]:
        event = payment_records[-1].event
        outcome = {"delivered": "answered", "unanswered": "charged and not answered"}.get(event, "refused")
        print_message(
            f"stopped after the payment was {outcome}: see `centgate wallet receipts`, and what it bought "
            "with `centgate wallet payments`"
        )
        return 4 if payment_records[-1].money in NOT_MOVED_STATES else 6
    print_message("stopped: nothing was signed")
    return 130


def _payee_of(ledger: Ledger, answer: Answer) -> str | None:
    """Look up in the ledger the payee of an answer."""
    try:
        records = ledger.records()
    except LedgerUnwritable:
        return None
    matching = (each for each in reversed(records) if each.request_id == answer.request_id)
    return next((each.payment.payee for each in matching), None)
