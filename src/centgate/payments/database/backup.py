"""Copy the journal of a running SQLite server into a file that can replace it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from centgate.payments.database.store import sqlite_path

PAGES_PER_STEP = 2000
"""Pages copied at once, about 8 MB; a copy is one snapshot, however many steps it takes."""


class BackupFailed(Exception):
    """There is no journal, the target exists, or the copy is damaged; the message is a clause."""


class Backup(Struct, frozen=True):
    """Result of a backup."""

    file: Path
    bytes: int
    payments: int


def back_up_sqlite(url: str, target: Path) -> Backup:
    """Copy the journal of a SQLite URL to a new file, also while servers write to it.

    The copy is one moment of the journal: what was committed before it began is in it. It is checked, and
    written to the disk before it gets its name. Raises BackupFailed, OSError or sqlite3.Error.
    """
    source = sqlite_path(url)
    if not source.is_file():
        raise BackupFailed(f"there is no journal at {source}")
    if target.exists():
        raise BackupFailed(f"{target} exists already")
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        payments = _copy_journal(source, unfinished)
        _sync(unfinished)
        os.link(unfinished, target)  # fails if another backup was faster
        _sync(target.absolute().parent)
    finally:
        unfinished.unlink(missing_ok=True)
    return Backup(target, target.stat().st_size, payments)


def _copy_journal(source: Path, target: Path) -> int:
    """Copy and check a journal; return the number of its payments."""
    target.unlink(missing_ok=True)
    address = f"{source.absolute().as_uri()}?mode=ro"
    target.touch(mode=0o600)  # it holds answers that buyers have paid for
    with closing(sqlite3.connect(address, uri=True)) as journal, closing(sqlite3.connect(target)) as copy:
        journal.execute("BEGIN")  # one snapshot, so that writers do not make the copy begin again
        journal.execute("SELECT count(*) FROM sqlite_master").fetchone()
        journal.backup(copy, pages=PAGES_PER_STEP, sleep=0)
        copy.execute("PRAGMA journal_mode = DELETE")  # a single file
        (finding,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        if finding != "ok":
            raise BackupFailed(f"the copy is damaged: {finding}")
        return copy.execute("SELECT count(*) FROM payments").fetchone()[0]


def _sync(path: Path) -> None:
    """Write a file, or the entries of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
