"""`centgate receipt`: verify a signed receipt offline."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import orjson
import typer
from rich.console import Console
from rich.text import Text

from centgate.cli.buyer.render import render_pairs
from centgate.cli.options import Json
from centgate.cli.terminal import create_console, escape_controls, exit_with_error, print_json, text_line
from centgate.client.wire_model import decode_base64
from centgate.signing.receipts.verify import CheckState, ReceiptCheck, ReceiptVerdict, verify_receipt

app = typer.Typer(name="receipt", no_args_is_help=True)

Header = Literal["PAYMENT-RESPONSE", "PAYMENT-REQUIRED"]
MAX_FILE_BYTES = 1024 * 1024
"""Maximum bytes of a file; headers are far smaller."""

Saved = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="PAYMENT-RESPONSE unchanged, or all headers of the response, or its JSON. - reads it from "
        "standard input.",
    ),
]
Body = Annotated[Path | None, typer.Option(help="The answer's body, byte for byte.")]
Offer = Annotated[
    Path | None, typer.Option(help="PAYMENT-REQUIRED of the 402, or all its headers, or its JSON.")
]
Expected = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Expected signer: the API lists it at /.well-known/x402."),
]

_COLOURS: Mapping[CheckState, str] = {"ok": "green", "failed": "red", "not checked": "dim"}


@app.callback()
def receipt() -> None:
    """Verify the signed receipt of a paid answer."""


@app.command()
def verify(
    file: Saved,
    *,
    body: Body = None,
    offer: Offer = None,
    signer: Expected = None,
    json: Json = False,
) -> None:
    """Show who signed a receipt and for what, and verify it with its offer and body. Works offline.

    Exit code 0: every check that could be made is ok. 1: a check failed, or a file cannot be read.
    """
    verdict = verify_receipt(
        _read_saved_file(file, "PAYMENT-RESPONSE"),
        body=_read_bytes(body) if body else None,
        required=_read_saved_file(str(offer), "PAYMENT-REQUIRED") if offer else None,
        signer=_parse_signer(signer),
    )
    out = create_console()
    if json:
        print_json(_verdict_json(verdict))
    else:
        _print_verdict(verdict, out)
    raise typer.Exit(0 if verdict.is_valid else 1)


def _read_saved_file(file: str, header: Header) -> Mapping[str, Any]:
    content = sys.stdin.buffer.read() if file == "-" else _read_bytes(Path(file))
    try:
        return _parse_saved_header(content, header)
    except ValueError as error:
        exit_with_error(f"{'standard input' if file == '-' else file}: {error}")


def _parse_saved_header(content: bytes, header: Header) -> Mapping[str, Any]:
    """Parse a saved header: its value, all headers of a response, or JSON. Raises ValueError."""
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"it is longer than {MAX_FILE_BYTES // 1024} KiB, too long for {header}")
    text = content.decode("utf-8-sig", errors="replace").strip()
    if not text:
        raise ValueError(f"it is empty: it must hold the value of {header}")
    if not text.startswith("{"):
        text = _decode_header(text, header)
    try:
        decoded: Any = orjson.loads(text)
    except ValueError as error:
        raise ValueError(f"it is neither JSON nor a header of base64-encoded JSON: {error}") from None
    if not isinstance(decoded, dict):
        raise ValueError("it is not a JSON object")
    return cast(dict[str, Any], decoded)


def _decode_header(text: str, header: Header) -> str:
    """Decode the header's value, which is the whole text or one line `name: value` of it."""
    line = re.search(rf"^{header}:[ \t]*(\S+)[ \t\r]*$", text, re.IGNORECASE | re.MULTILINE)
    value = line[1] if line else "".join(text.split())
    try:
        return decode_base64(value).decode()
    except ValueError:
        raise ValueError(f"it is neither the value of {header} nor JSON") from None


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        exit_with_error(f"{file} cannot be read: {error.strerror}")


def _parse_signer(signer: str | None) -> str | None:
    if signer is not None and not re.fullmatch(r"0x[0-9a-fA-F]{40}", signer):
        exit_with_error(f"--signer must be an address, 0x and 40 hex digits, not {signer[:60]!r}")
    return signer


def _verdict_json(verdict: ReceiptVerdict) -> dict[str, Any]:
    return {
        "ok": verdict.is_valid,
        "signer": verdict.signer,
        "receipt": verdict.payload,
        "checks": [{"name": each.name, "state": each.state, "says": each.message} for each in verdict.checks],
    }


def _print_verdict(verdict: ReceiptVerdict, out: Console) -> None:
    if verdict.payload is not None:
        fields = {"signed by": verdict.signer or "", **_describe_payload(verdict.payload)}
        out.print(render_pairs(fields), soft_wrap=True)
        out.print(text_line(""))
    for check in verdict.checks:
        out.print(_check_line(check), soft_wrap=True)


def _describe_payload(payload: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a receipt for display."""
    return {
        "for": payload["resourceUrl"],
        "payer": payload["payer"],
        "network": payload["network"],
        "transaction": payload.get("transaction") or "not included",
        "issued": _format_time(payload["issuedAt"]),
    }


def _format_time(seconds: int) -> str:
    """Format a signed timestamp, which may be out of range."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{seconds} seconds after 1970"


def _check_line(check: ReceiptCheck) -> Text:
    word = Text(f"{check.state:<13}", style=_COLOURS[check.state])
    return Text.assemble(word, f"{check.name:<12}", escape_controls(check.message))
