"""`centgate phishing-list`: make, renew and show the list that addresses are checked against."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from datetime import date as day
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from centgate.phishing import origin
from centgate.phishing.entries import Dropped
from centgate.phishing.rules import UnreadableList
from centgate.phishing.snapshot import Imported, Snapshot, import_list, load, packed, shipped

SHOWN_EACH = 3

app = typer.Typer(
    name="phishing-list",
    help="Make, renew and show the list that phishing-check answers from.",
    no_args_is_help=True,
)
Out = Annotated[Path, typer.Option(help="Where the snapshot is written.")]


@app.command()
def build(out: Out = Path("phishing-list.xz")) -> None:
    """Make the shipped snapshot again from its npm package, byte for byte."""
    try:
        archive = origin.fetch_package()
    except origin.OriginUnavailable as error:
        fail(str(error))
    imported = origin.import_package(archive)
    write(out, packed(imported.snapshot))
    write(out.with_suffix(".LICENSE"), origin.licence(archive))
    report(imported, out)


@app.command()
def update(
    file: Annotated[Path, typer.Argument(help="A config.json of eth-phishing-detect, or a stalelist.")],
    out: Out = Path("phishing-list.xz"),
    source: Annotated[str | None, typer.Option(help="What answers call the list.")] = None,
    date: Annotated[str | None, typer.Option(help="The list's day, if not in the file.")] = None,
) -> None:
    """Make a snapshot of a newer list; the server reads it from where its settings point."""
    if date and not is_day(date):
        fail(f"'{date}' is no day written as YYYY-MM-DD")
    try:
        imported = import_list(file.read_bytes(), source=source or file.name, date=date)
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
    except UnreadableList as error:
        fail(f"{file}: {error}")
    write(out, packed(imported.snapshot))
    report(imported, out)


@app.command()
def show(
    file: Annotated[Path | None, typer.Argument(help="A snapshot; the shipped one if absent.")] = None,
) -> None:
    """Say what is in a snapshot and where it comes from."""
    try:
        snapshot = load(file) if file else shipped()
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
    except UnreadableList as error:
        fail(str(error))
    Console().print(described(snapshot))


def is_day(text: str) -> bool:
    try:
        return day.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def write(out: Path, content: bytes) -> None:
    """Replace a file in one step, so that a server never reads half of it."""
    try:
        with tempfile.NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}.", delete=False) as part:
            try:
                part.write(content)
                part.flush()
                os.fsync(part.fileno())
                Path(part.name).chmod(0o644)
                Path(part.name).replace(out)
            except BaseException:
                Path(part.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        fail(f"{out} cannot be written: {error.strerror}")


def report(imported: Imported, out: Path) -> None:
    console = Console()
    console.print(described(imported.snapshot))
    if imported.dropped:
        console.print(told(imported.dropped))
    console.print(f"written to {out}", highlight=False)


def described(snapshot: Snapshot) -> Table:
    header = snapshot.header
    table = Table(show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in {
        "source": header.source,
        "date": header.date or "not stated",
        "version": header.version or "not stated",
        "id": snapshot.id,
        "allowlist": f"{header.allowlist:,}",
        "blocklist": f"{header.blocklist:,}",
        "blocked paths": f"{header.paths:,}",
        "fuzzylist": f"{header.fuzzylist:,}",
        "tolerance": str(header.tolerance),
    }.items():
        table.add_row(name, value)
    return table


def told(dropped: tuple[Dropped, ...]) -> Table:
    table = Table("entries dropped", "because", "such as")
    for reason, count in Counter(entry.reason for entry in dropped).most_common():
        examples = [repr(entry.entry) for entry in dropped if entry.reason == reason][:SHOWN_EACH]
        table.add_row(f"{count:,}", reason, ", ".join(examples))
    return table


def fail(message: str) -> NoReturn:
    Console(stderr=True).print(message, style="red", highlight=False, markup=False)
    raise typer.Exit(1)
