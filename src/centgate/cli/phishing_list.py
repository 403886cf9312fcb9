"""`centgate phishing-list`: build, update and show the list that addresses are checked against."""

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

from centgate.phishing import source_package
from centgate.phishing.normalize import DroppedEntry
from centgate.phishing.rules import InvalidPhishingList
from centgate.phishing.snapshot import (
    ImportedList,
    Snapshot,
    import_list,
    load_shipped,
    load_snapshot,
    pack_snapshot,
)

EXAMPLES_PER_REASON = 3

app = typer.Typer(
    name="phishing-list",
    help="Build, update and show the list that phishing-check uses.",
    no_args_is_help=True,
)
OutputFile = Annotated[Path, typer.Option(help="Output file for the snapshot.")]


@app.command()
def build(out: OutputFile = Path("phishing-list.xz")) -> None:
    """Rebuild the shipped snapshot from its npm package, byte for byte."""
    try:
        archive = source_package.fetch_package()
    except source_package.PackageUnavailable as error:
        exit_with_error(str(error))
    imported = source_package.import_package(archive)
    write_atomically(out, pack_snapshot(imported.snapshot))
    write_atomically(out.with_suffix(".LICENSE"), source_package.read_licence(archive))
    print_report(imported, out)


@app.command()
def update(
    file: Annotated[Path, typer.Argument(help="A config.json of eth-phishing-detect, or a stalelist.")],
    out: OutputFile = Path("phishing-list.xz"),
    source: Annotated[str | None, typer.Option(help="Name of the list in responses.")] = None,
    date: Annotated[str | None, typer.Option(help="Date of the list, if it is not in the file.")] = None,
) -> None:
    """Build a snapshot of a newer list; the server reads it from the path in its settings."""
    if date and not is_iso_date(date):
        exit_with_error(f"'{date}' is not a date in the form YYYY-MM-DD")
    try:
        imported = import_list(file.read_bytes(), source=source or file.name, date=date)
    except OSError as error:
        exit_with_error(f"{file} cannot be read: {error.strerror}")
    except InvalidPhishingList as error:
        exit_with_error(f"{file}: {error}")
    write_atomically(out, pack_snapshot(imported.snapshot))
    print_report(imported, out)


@app.command()
def show(
    file: Annotated[Path | None, typer.Argument(help="A snapshot; the shipped one if absent.")] = None,
) -> None:
    """Show the content of a snapshot and its source."""
    try:
        snapshot = load_snapshot(file) if file else load_shipped()
    except OSError as error:
        exit_with_error(f"{file} cannot be read: {error.strerror}")
    except InvalidPhishingList as error:
        exit_with_error(str(error))
    Console().print(format_snapshot(snapshot))


def is_iso_date(text: str) -> bool:
    try:
        return day.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def write_atomically(out: Path, content: bytes) -> None:
    """Replace a file in one step, so that a server never reads a partial file."""
    try:
        with tempfile.NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}.", delete=False) as temporary:
            try:
                temporary.write(content)
                temporary.flush()
                os.fsync(temporary.fileno())
                Path(temporary.name).chmod(0o644)
                Path(temporary.name).replace(out)
            except BaseException:
                Path(temporary.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        exit_with_error(f"{out} cannot be written: {error.strerror}")


def print_report(imported: ImportedList, out: Path) -> None:
    console = Console()
    console.print(format_snapshot(imported.snapshot))
    if imported.dropped:
        console.print(format_dropped(imported.dropped))
    console.print(f"written to {out}", highlight=False)


def format_snapshot(snapshot: Snapshot) -> Table:
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


def format_dropped(dropped: tuple[DroppedEntry, ...]) -> Table:
    table = Table("dropped entries", "reason", "examples")
    for reason, count in Counter(entry.reason for entry in dropped).most_common():
        examples = [repr(entry.entry) for entry in dropped if entry.reason == reason][:EXAMPLES_PER_REASON]
        table.add_row(f"{count:,}", reason, ", ".join(examples))
    return table


def exit_with_error(message: str) -> NoReturn:
    Console(stderr=True).print(message, style="red", highlight=False, markup=False)
    raise typer.Exit(1)
