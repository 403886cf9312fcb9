"""Files that several processes read while one replaces them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

Fingerprint: TypeAlias = "tuple[int, int, int] | None"
"""Inode, time of change in nanoseconds and size of a file; None without a file."""


def find_fingerprint(path: Path) -> Fingerprint:
    """Return the fingerprint of a file, which changes with its content, without reading it."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


@contextmanager
def replace_file(path: Path, *, prefix: str | None = None, mode: int = 0o600) -> Generator[Path]:
    """Yield an empty file beside a path, which takes its place in one step; after an error it is removed.

    `prefix` begins the name of that file, by default `.<name>.`. Raises OSError.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix or f".{path.name}.")
    except OSError as error:  # the error names the temporary file
        raise OSError(error.errno, error.strerror, str(path)) from error
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(mode)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
