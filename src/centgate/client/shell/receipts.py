"""`centgate receipt`: check what a server signed, without asking anybody."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from centgate.client.saved import Header, read_saved
from centgate.client.shell.printing import as_json, console, line, plain
from centgate.client.shell.showing import pairs_page
from centgate.client.shell.telling import say
from centgate.receipts.checking import Check, State, Verdict, examine

app = typer.Typer(name="receipt", no_args_is_help=True)

Saved = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="PAYMENT-RESPONSE as it came, or all headers of the response, or its JSON. - reads it from "
        "standard input.",
    ),
]
Body = Annotated[Path | None, typer.Option(help="The answer's body, byte for byte as it came.")]
Offer = Annotated[
    Path | None, typer.Option(help="PAYMENT-REQUIRED of the 402, or all its headers, or its JSON.")
]
Expected = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Who has to have signed: the API tells it at /.well-known/x402."),
]
Json = Annotated[bool, typer.Option("--json", help="As JSON, and nothing else on standard output.")]

_COLOURS: Mapping[State, str] = {"ok": "green", "failed": "red", "not checked": "dim"}


@app.callback()
def receipt() -> None:
    """Check the signed receipt of a paid answer."""


@app.command()
def verify(
    file: Saved,
    *,
    body: Body = None,
    offer: Offer = None,
    signer: Expected = None,
    json: Json = False,
) -> None:
    """Say who signed a receipt and for what, and check all that belongs to it. Nothing is sent anywhere.

    Exit code 0: every check that could be made is ok. 1: one failed, or something cannot be read.
    """
    verdict = examine(
        _saved(file, "PAYMENT-RESPONSE"),
        body=_contents(body) if body else None,
        required=_saved(str(offer), "PAYMENT-REQUIRED") if offer else None,
        signer=_address(signer),
    )
    out = console()
    if json:
        out.print(line(as_json(_told(verdict))), soft_wrap=True)
    else:
        _show(verdict, out)
    raise typer.Exit(0 if verdict.holds else 1)


def _saved(file: str, header: Header) -> Mapping[str, Any]:
    content = sys.stdin.buffer.read() if file == "-" else _contents(Path(file))
    try:
        return read_saved(content, header)
    except ValueError as error:
        _fail(f"{'standard input' if file == '-' else file}: {error}")


def _contents(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        _fail(f"{file} cannot be read: {error.strerror}")


def _address(signer: str | None) -> str | None:
    if signer is not None and not re.fullmatch(r"0x[0-9a-fA-F]{40}", signer):
        _fail(f"--signer is an address, 0x and 40 hex digits, and not {signer[:60]!r}")
    return signer


def _fail(sentence: str) -> NoReturn:
    say(sentence)
    raise typer.Exit(1)


def _told(verdict: Verdict) -> dict[str, Any]:
    return {
        "ok": verdict.holds,
        "signer": verdict.signer,
        "receipt": verdict.payload,
        "checks": [{"name": each.name, "state": each.state, "says": each.says} for each in verdict.checks],
    }


def _show(verdict: Verdict, out: Console) -> None:
    if verdict.payload is not None:
        told = {"signed by": verdict.signer or "", **_words(verdict.payload)}
        out.print(pairs_page(told), soft_wrap=True)
        out.print(line(""))
    for check in verdict.checks:
        out.print(_row(check), soft_wrap=True)


def _words(payload: Mapping[str, Any]) -> dict[str, str]:
    """What a receipt says, for people."""
    return {
        "for": payload["resourceUrl"],
        "payer": payload["payer"],
        "network": payload["network"],
        "transaction": payload.get("transaction") or "not told",
        "issued": _moment(payload["issuedAt"]),
    }


def _moment(seconds: int) -> str:
    """A time that somebody else signed, which may be none."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{seconds} seconds after 1970"


def _row(check: Check) -> Text:
    word = Text(f"{check.state:<13}", style=_COLOURS[check.state])
    return Text.assemble(word, f"{check.name:<12}", plain(check.says))
