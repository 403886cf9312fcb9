"""`centgate payments backup`."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from centgate.cli.payments.context import ExitCode
from centgate.cli.server_settings import load_settings
from centgate.cli.terminal import print_message
from centgate.payments.database.backup import BackupFailed, back_up_sqlite


def write_backup(file: Path) -> ExitCode:
    """Write a copy of the journal of the settings, and print what is in it; return the exit code."""
    url = load_settings().database_url
    if not url.startswith("sqlite:"):
        print_message("the journal is in PostgreSQL: back it up with pg_dump --format=custom")
        return 2
    try:
        written = back_up_sqlite(url, file)
    except (BackupFailed, sqlite3.Error) as error:
        print_message(f"no backup was written: {error}")
        return 1
    except OSError as error:
        print_message(f"no backup was written: {file} cannot be written: {error.strerror}")
        return 1
    print(f"{written.file}: {written.payments:,} payments, {written.bytes / 1e6:,.1f} MB")
    return 0
