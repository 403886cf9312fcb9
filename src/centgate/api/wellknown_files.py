"""The operator's own files under `/.well-known/`, by which directories verify who runs a domain."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

WELL_KNOWN_PREFIX = "/.well-known/"
RESERVED_NAMES = frozenset(
    {"agent-skills", "ai-catalog.json", "api-catalog", "mcp", "mcp.json", "security.txt", "x402"}
)
"""Names of files and folders that the API and the website generate themselves."""
MAX_FILES = 100
MAX_FILE_BYTES = 64 * 1024

_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_DEFAULT_TYPE = "text/plain; charset=utf-8"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".pem": "application/x-pem-file",
    ".svg": "image/svg+xml",
    ".xml": "application/xml",
}


class UnservableFile(OSError):
    """The folder, or a file in it, cannot be served; the message names it and the reason."""


class WellKnownFile(Struct, frozen=True):
    """One file of the folder, read at start-up."""

    name: str
    media_type: str
    content: bytes

    @property
    def path(self) -> str:
        """URL path of the file."""
        return WELL_KNOWN_PREFIX + self.name


def read_wellknown_files(folder: Path | None) -> tuple[WellKnownFile, ...]:
    """Read the files of a folder, sorted by name, without hidden ones (`.name`). Raises UnservableFile.

    Returns no files for None: the operator has not set a folder.
    """
    if folder is None:
        return ()
    try:
        entries = sorted(each for each in folder.iterdir() if not each.name.startswith("."))
        if len(entries) > MAX_FILES:
            raise _unservable_error(folder, f"contains {len(entries)} files; at most {MAX_FILES} are served")
        return tuple(_read_file(each, folder.resolve()) for each in entries)
    except UnservableFile:
        raise
    except OSError as error:
        where = Path(error.filename) if error.filename else folder
        raise _unservable_error(where, f"cannot be read: {error.strerror}") from error


def _read_file(file: Path, folder: Path) -> WellKnownFile:
    """Check that a file may be served, and read it."""
    if not _NAME_PATTERN.fullmatch(file.name):
        raise _unservable_error(
            file, "has a name with characters other than letters, digits, dots, dashes and underscores"
        )
    if file.name in RESERVED_NAMES:
        raise _unservable_error(
            file, f"would hide {WELL_KNOWN_PREFIX}{file.name}, which Centgate generates itself"
        )
    if not file.is_file():
        raise _unservable_error(file, "is not a file; folders are not served")
    if not file.resolve().is_relative_to(folder):
        raise _unservable_error(file, "is a link to a path outside the folder")
    with file.open("rb") as stream:
        content = stream.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise _unservable_error(file, f"is longer than {MAX_FILE_BYTES // 1024} KiB")
    return WellKnownFile(file.name, _TYPES.get(file.suffix.lower(), _DEFAULT_TYPE), content)


def _unservable_error(where: Path, why: str) -> UnservableFile:
    return UnservableFile(f"CENTGATE_WELL_KNOWN: {where} {why}")
