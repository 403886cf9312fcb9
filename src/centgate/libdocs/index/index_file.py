"""File of an index: its format, its folders, and its metadata. What reads and writes chunks is elsewhere."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

FORMAT = "9"
"""Version of the file format; an index in another format is not used and is built again."""
SITE_FOLDER, REPOSITORY_FOLDER = "@site/", "@repository/"
"""Folders of the pages of a documentation site and of a repository in an index; no package has such ones."""


def open_read_only(file: Path) -> sqlite3.Connection:
    """Open an index, which never changes once it is complete: SQLite need not look for changes or locks."""
    return sqlite3.connect(f"file:{quote(os.fspath(file))}?mode=ro&immutable=1", uri=True)


def read_metadata(file: Path) -> Mapping[str, str]:
    """Return the metadata from the build, and `snippet_count`, `chunks`, `built_at` and `format`.

    Raises sqlite3.Error if the file is not an index.
    """
    with closing(open_read_only(file)) as database:
        return dict(database.execute("select key, value from about"))
