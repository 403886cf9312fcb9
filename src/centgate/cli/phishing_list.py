"""`centgate phishing-list`: build, update and show the list that addresses are checked against."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from datetime import date as day
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from centgate.cli.options import Json
from centgate.cli.server_settings import load_settings
from centgate.cli.terminal import exit_with_error
from centgate.log import configure_logging
from centgate.lookups.phishing_refresh import (
    ListRefused,
    fetch_hotlist,
    fetch_list,
    open_list_upstream,
)
from centgate.phishing import source_package
from centgate.phishing.normalize import DroppedEntry
from centgate.phishing.published import HOTLIST, LEAD, PUBLISHED_LISTS, parse_list_urls
from centgate.phishing.rules import InvalidPhishingList
from centgate.phishing.snapshot import (
    ImportedList,
    Snapshot,
    SnapshotHeader,
    import_list,
    load_snapshot,
    pack_snapshot,
)
from centgate.phishing.store import ListFolder, ListStore, write_atomically
from centgate.phishing.update import MIN_KEPT
from centgate.resources import open_resources
from centgate.upstream import Upstream

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
    write_file(out, pack_snapshot(imported.snapshot))
    write_file(out.with_suffix(".LICENSE"), source_package.read_licence(archive))
    print_report(imported, out)


@app.command()
def update(
    file: Annotated[
        Path | None, typer.Argument(help="A list in one of its published formats; without it, fetch lists.")
    ] = None,
    out: OutputFile = Path("phishing-list.xz"),
    source: Annotated[str | None, typer.Option(help="Name of a file's list in responses.")] = None,
    date: Annotated[str | None, typer.Option(help="Date of a file's list, if it is not in the file.")] = None,
    url: Annotated[
        str | None,
        typer.Option(help="Fetch these lists, written as in CENTGATE_PHISHING_LIST_URL, into the folder."),
    ] = None,
    min_kept: Annotated[
        float,
        typer.Option(min=0, max=1, help="Accept a fetched list of more than this share of the previous one."),
    ] = MIN_KEPT,
) -> None:
    """Build a snapshot of a list from a file, or fetch lists into CENTGATE_PHISHING_FOLDER.

    Running servers load a changed list within seconds. Without FILE and --url, the lists of the settings are
    fetched, or the default ones.
    """
    if file is None or url is not None:
        if file is not None:
            exit_with_error("give a file or --url, not both", 2)
        asyncio.run(fetch_lists(url, min_kept))
        return
    if date and not is_iso_date(date):
        exit_with_error(f"'{date}' is not a date in the form YYYY-MM-DD", 2)
    try:
        imported = import_list(file.read_bytes(), source=source or file.name, date=date)
    except OSError as error:
        exit_with_error(f"{file} cannot be read: {error.strerror}")
    except InvalidPhishingList as error:
        exit_with_error(f"{file}: {error}")
    write_file(out, pack_snapshot(imported.snapshot))
    print_report(imported, out)


async def fetch_lists(url: str | None, min_kept: float) -> None:
    """Fetch lists into the folder; exits with 1 if one was not fetched."""
    settings = load_settings()
    configure_logging("error")
    try:
        urls = parse_list_urls(url.split(",")) if url else settings.phishing_urls
    except ValueError as error:
        exit_with_error(str(error), 2)
    folder, failed = ListFolder(settings.phishing_folder), False
    try:
        async with open_resources(settings) as resources:
            with folder.lock() as is_mine:
                if not is_mine:
                    exit_with_error(f"a server is fetching lists into {folder.folder}; try again later")
                upstream = open_list_upstream(resources)
                for key, address in (urls or parse_list_urls(["default"])).items():
                    failed |= not await fetch_into(folder, upstream, key, url=address, min_kept=min_kept)
    except OSError as error:
        exit_with_error(f"{folder.folder} cannot be written: {error.strerror}")
    if failed:
        raise typer.Exit(1)


async def fetch_into(folder: ListFolder, upstream: Upstream, key: str, *, url: str, min_kept: float) -> bool:
    """Fetch one list into the folder and print the outcome; returns False if it was refused."""
    try:
        if key == HOTLIST:
            await fetch_hotlist(folder, upstream, url)
        else:
            await fetch_list(folder, upstream, PUBLISHED_LISTS[key], url, min_kept=min_kept)
    except ListRefused as refusal:
        Console(stderr=True).print(f"{key}: {refusal}", style="red", highlight=False, markup=False)
        return False
    path = folder.snapshot_file(LEAD if key == HOTLIST else key)
    Console(markup=False).print(format_snapshot(load_snapshot(path)))
    Console(markup=False).print(f"written to {path}", highlight=False)
    return True


@app.command()
def show(
    file: Annotated[
        Path | None, typer.Argument(help="A snapshot; without it, the lists that a server here uses.")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Show the content of the lists in use, or of a snapshot, and their sources.

    The lists in use are those of CENTGATE_PHISHING_FOLDER, CENTGATE_PHISHING_LIST and the package, the first
    one deciding first.
    """
    lists = [("", read_snapshot(file).header, None)] if file else open_used_lists()
    if as_json:
        print(json.dumps(describe_headers(lists)))
        return
    for name, header, licence in lists:
        Console(markup=False).print(format_header(header, licence, name=name))


UsedList = tuple[str, SnapshotHeader, str | None]
"""The name, the header and the licence of a list; the header may not state the licence."""


def read_snapshot(file: Path) -> Snapshot:
    try:
        return load_snapshot(file)
    except OSError as error:
        exit_with_error(f"{file} cannot be read: {error.strerror}")
    except InvalidPhishingList as error:
        exit_with_error(str(error))


def open_used_lists() -> list[UsedList]:
    """Return the lists that a server with these settings answers from."""
    settings = load_settings()
    configure_logging("error")
    try:
        store = ListStore(ListFolder(settings.phishing_folder), settings.phishing_list)
        store.reload()
    except OSError as error:
        exit_with_error(f"{settings.phishing_list} cannot be read: {error.strerror}")
    except InvalidPhishingList as error:
        exit_with_error(str(error))
    return [(loaded.name, loaded.header, loaded.licence) for loaded in store.collection.lists]


def describe_headers(lists: Sequence[UsedList]) -> dict[str, Any]:
    """Return the members of the first list, and all lists in use by name."""
    members = [
        {"id": header.sha256, **header.model_dump(mode="json"), "licence": header.licence or licence}
        for _, header, licence in lists
    ]
    named = [{"name": name} | each for (name, *_), each in zip(lists, members, strict=True) if name]
    return members[0] | ({"lists": named} if named else {})


def is_iso_date(text: str) -> bool:
    try:
        return day.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def write_file(out: Path, content: bytes) -> None:
    try:
        write_atomically(out, content)
    except OSError as error:
        exit_with_error(f"{out} cannot be written: {error.strerror}")


def print_report(imported: ImportedList, out: Path) -> None:
    console = Console(markup=False)
    console.print(format_snapshot(imported.snapshot))
    if imported.dropped:
        console.print(format_dropped(imported.dropped))
    console.print(f"written to {out}", highlight=False)


def format_snapshot(snapshot: Snapshot) -> Table:
    """Return a table of a snapshot's header."""
    return format_header(snapshot.header, None)


def format_header(header: SnapshotHeader, licence: str | None, *, name: str = "") -> Table:
    """Return a table of a header; `licence` is that of a list whose file does not state one."""
    table = Table(show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    if name:
        table.add_row("list", name)
    for label, value in {
        "source": header.source,
        "date": header.date or "not stated",
        "version": header.version or "not stated",
        "licence": header.licence or licence or "not stated",
        "fetched": f"{header.fetched_at} from {header.url}" if header.fetched_at else "no",
        "id": header.sha256,
        "allowlist": f"{header.allowlist:,}",
        "blocklist": f"{header.blocklist:,}",
        "blocked paths": f"{header.paths:,}",
        "fuzzylist": f"{header.fuzzylist:,}",
        "tolerance": str(header.tolerance),
    }.items():
        table.add_row(label, value)
    return table


def format_dropped(dropped: tuple[DroppedEntry, ...]) -> Table:
    table = Table("dropped entries", "reason", "examples")
    for reason, count in Counter(entry.reason for entry in dropped).most_common():
        examples = [repr(entry.entry) for entry in dropped if entry.reason == reason][:EXAMPLES_PER_REASON]
        table.add_row(f"{count:,}", reason, ", ".join(examples))
    return table
