"""Command `centgate wallet payments`: the wallet's payments as the API knows them, and their answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from centgate.cli.buyer.arguments import parse_body
from centgate.cli.buyer.call import read_body
from centgate.cli.buyer.exit_codes import ExitCode, read_buyer_settings, reports_errors
from centgate.cli.buyer.render import answer_json, format_dollars, render_answer
from centgate.cli.terminal import create_console, escape_controls, print_json, render_status, text_line
from centgate.client import AnsweredPayment, Centgate, WalletPayment
from centgate.signing.assets import TOKEN_DECIMALS

_NEXT_STEPS = {
    "read_answer": "the answer is stored",
    "redeem": "the answer is owed: fetch it with --body",
    "wait": "the outcome is not known yet",
    "pay_again": "no money moved",
    "await_refund": "the operator owes the money back",
    "none": "",
}


@reports_errors
def show_payments(
    limit: int, cursor: str | None, path: Path | None, api: str | None, *, json: bool
) -> ExitCode:
    """Print a page of the wallet's payments, newest first."""
    with Centgate.from_settings(read_buyer_settings(wallet=path, api_url=api)) as client:
        page = client.payments(limit=limit, cursor=cursor)
    out = create_console()
    if json:
        print_json(page.model_dump(mode="json", by_alias=True))
        return 0
    if not page.payments:
        out.print(text_line("The API knows no payment of this wallet."), soft_wrap=True)
    out.print(_render_payments(page.payments), soft_wrap=True)
    if page.cursor:
        out.print(text_line(f"More: --cursor {page.cursor}"), soft_wrap=True)
    return 0


@reports_errors
def show_payment(transaction: str, path: Path | None, api: str | None, *, json: bool) -> ExitCode:
    """Print the wallet's payments in a transaction, with their answers."""
    with Centgate.from_settings(read_buyer_settings(wallet=path, api_url=api)) as client:
        found = client.payment(transaction)
    out = create_console()
    if json:
        content = [each.model_dump(mode="json", by_alias=True) for each in found]
        print_json({"payments": content})
        return 0
    for each in found:
        out.print(_render_payments([each]), soft_wrap=True)
        if each.answer:
            print_json(each.answer.body)
    return 0


@reports_errors
def redeem_answer(transaction: str, body: str, path: Path | None, api: str | None, *, json: bool) -> ExitCode:
    """Fetch the answer that a payment bought, and print it."""
    content = parse_body(read_body(body))
    with Centgate.from_settings(read_buyer_settings(wallet=path, api_url=api)) as client:
        answer = client.redeem(transaction, content)
    out = create_console()
    if json:
        print_json(answer_json(answer, None))
    else:
        out.print(render_answer(answer, None, out.width), soft_wrap=True)
    return 0


def _render_payments(payments: Sequence[WalletPayment | AnsweredPayment]) -> RenderableType:
    """Render payments in a few lines each, so that nothing is truncated."""
    return Group(*(line for payment in payments for line in _payment_lines(payment)))


def _payment_lines(payment: WalletPayment) -> Iterator[RenderableType]:
    amount = Decimal(payment.amount).scaleb(-TOKEN_DECIMALS)
    yield Text.assemble(
        f"{escape_controls(payment.created_at)}  ",
        (f"{escape_controls(payment.service)}  ", "bold"),
        f"{format_dollars(amount, escape_controls(payment.network))}  ",
        render_status(payment.state),
    )
    reference = f"in {payment.transaction}" if payment.transaction else f"nonce {payment.nonce}"
    yield text_line(f"  {reference} on {payment.network}")
    if step := _describe_next_step(payment):
        until = payment.redeemable_until if payment.next in ("read_answer", "redeem") else None
        yield text_line(f"  {step}{f' until {until}' if until else ''}")
    if payment.reason:
        yield text_line(f"  {payment.reason}")
    if payment.refund:
        yield text_line(f"  paid back in {payment.refund.transaction}")


def _describe_next_step(payment: WalletPayment) -> str:
    if payment.next == "none" and not payment.charged:
        return "no money moved; the API accepts no new payment of this wallet for it"
    return _NEXT_STEPS[payment.next]
