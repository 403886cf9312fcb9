"""An operator's own files under `/.well-known/`: what directories ask for to see who runs a domain."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = "/.well-known/"
OURS = frozenset({"agent-skills", "ai-catalog.json", "api-catalog", "mcp", "security.txt", "x402"})
"""The names of files and folders that the API and the website make themselves."""
MOST_FILES = 100
MOST_BYTES = 64 * 1024

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_PLAIN = "text/plain; charset=utf-8"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".pem": "application/x-pem-file",
    ".svg": "image/svg+xml",
    ".xml": "application/xml",
}


class Unservable(OSError):
    """The folder, or something in it, cannot be served; the message says what and why."""


@dataclass(frozen=True, slots=True)
class VerificationFile:
    """One file, read once."""

    name: str
    media_type: str
    content: bytes

    @property
    def path(self) -> str:
        """As it is asked for."""
        return FOLDER + self.name


def files(folder: Path | None) -> tuple[VerificationFile, ...]:
    """Every file of a folder by name, but those that are hidden (`.name`); Unservable in words.

    None is the operator who has set no folder.
    """
    if folder is None:
        return ()
    try:
        lying = sorted(each for each in folder.iterdir() if not each.name.startswith("."))
        if len(lying) > MOST_FILES:
            raise _unservable(folder, f"holds {len(lying)} files, and {MOST_FILES} are served at most")
        return tuple(_read(each, folder.resolve()) for each in lying)
    except Unservable:
        raise
    except OSError as error:
        where = Path(error.filename) if error.filename else folder
        raise _unservable(where, f"cannot be read: {error.strerror}") from error


def _read(file: Path, folder: Path) -> VerificationFile:
    """One file that may be served."""
    if not _NAME.fullmatch(file.name):
        raise _unservable(file, "is named with more than letters, digits, dots, dashes and underscores")
    if file.name in OURS:
        raise _unservable(file, f"would hide {FOLDER}{file.name}, which Centgate makes itself")
    if not file.is_file():
        raise _unservable(file, "is no file; folders are not served")
    if not file.resolve().is_relative_to(folder):
        raise _unservable(file, "is a link that leads out of the folder")
    with file.open("rb") as opened:
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise _unservable(file, f"is longer than {MOST_BYTES // 1024} KiB")
    return VerificationFile(file.name, _TYPES.get(file.suffix.lower(), _PLAIN), content)


def _unservable(where: Path, why: str) -> Unservable:
    return Unservable(f"CENTGATE_WELL_KNOWN: {where} {why}")
