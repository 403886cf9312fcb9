"""Indexes on disk, a file for each library and version: found, made once for all, put away."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from centgate.libdocs.aliases import REGISTRIES, RegistryName
from centgate.libdocs.index import FORMAT

MOST_BYTES = 500 << 20
MOST_FILES = 500
MOST_UNDER_WAY = 8
"""Indexes that are made or wait to be made at once."""
BEGINNINGS = 50
"""Attempts to put a file into a folder that others take away."""
LEFT_BEHIND = 600
"""Seconds after which an unfinished file belongs to nobody any more."""
INDEX, UNFINISHED = ".db", ".part"
Make = Callable[[Path], Awaitable[None]]


class Busy(Exception):
    """Too many indexes are being made."""


@dataclass(frozen=True, slots=True)
class Title:
    """What an index is of. Name and version are made of letters, digits and `@ / ~ . _ + ! -` alone."""

    registry: RegistryName
    name: str
    version: str


class Shelves:
    """The indexes in a folder, which several processes may share."""

    def __init__(self, folder: Path, *, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> None:
        self._folder = folder
        self._most_bytes, self._most_files = most_bytes, most_files
        self._under_way: dict[Title, asyncio.Task[Path]] = {}

    def find(self, title: Title) -> Path | None:
        """The index, marked as used; None when there is none."""
        file = self._file(title)
        try:
            os.utime(file)
        except OSError:
            return None
        return file

    def versions(self, registry: RegistryName, name: str) -> list[str]:
        """The versions of a library that there are indexes of, newest first."""
        folder = self._file(Title(registry, name, "0")).parent
        return sorted((file.name.removesuffix(INDEX) for file in _indexes(folder)), key=_age, reverse=True)

    def libraries(self) -> list[tuple[RegistryName, str]]:
        """The libraries that there are indexes of."""
        return [
            (registry, folder.name.replace("~", "/", 1) if folder.name.startswith("@") else folder.name)
            for registry in REGISTRIES
            for folder in _entries(self._folder / FORMAT / registry)
        ]

    def making(self, title: Title, make: Make) -> asyncio.Task[Path]:
        """The making of an index, begun unless it is under way; it goes on when nobody waits for it.

        `make` writes the file whose path it is given. Raises Busy when it cannot begin.
        """
        task = self._under_way.get(title)
        if task is None:
            if len(self._under_way) >= MOST_UNDER_WAY:
                raise Busy
            task = self._under_way[title] = asyncio.create_task(self._made(title, make))
            task.add_done_callback(lambda done: self._done(title, done))
        return task

    def discard(self, title: Title) -> None:
        """Put an index away that cannot be read."""
        with suppress(OSError):
            self._file(title).unlink()

    def _file(self, title: Title) -> Path:
        name = title.name.replace("/", "~")
        return self._folder / FORMAT / title.registry / name / f"{title.version}{INDEX}"

    async def _made(self, title: Title, make: Make) -> Path:
        file = self._file(title)
        unfinished = file.with_name(f"{uuid4().hex}{UNFINISHED}")
        try:
            await asyncio.to_thread(_begin, unfinished)
            await make(unfinished)
            await asyncio.to_thread(self._put, unfinished, file)
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
                file.parent.rmdir()  # only where it is empty
        return file

    def _put(self, unfinished: Path, file: Path) -> None:
        """Put a finished index in its place, then put away what was not used for longest."""
        unfinished.replace(file)
        self._tidy(file)

    def _tidy(self, newest: Path) -> None:
        kept, size, count = newest.stat().st_size, 0, 0
        for used, length, path in sorted(_files(self._folder), reverse=True):
            unfinished = path.suffix != INDEX
            if path == newest or (unfinished and time.time() - used < LEFT_BEHIND):
                continue
            size, count = size + length, count + 1
            if unfinished or size + kept > self._most_bytes or count >= self._most_files:
                with suppress(OSError):
                    path.unlink()
                    path.parent.rmdir()

    def _done(self, title: Title, task: asyncio.Task[Path]) -> None:
        del self._under_way[title]
        if not task.cancelled():
            task.exception()  # whoever waits has it; when nobody does any more, it is nobody's


def _begin(unfinished: Path) -> None:
    """Put an empty file where an index will be, so that its folder is not taken for one that is done with.

    Until the file is there a making that fails may take the folder away, also from under `mkdir`.
    """
    for _ in range(BEGINNINGS):
        with suppress(FileNotFoundError, FileExistsError):
            unfinished.parent.mkdir(parents=True, exist_ok=True)
            unfinished.touch()
            return
    raise FileNotFoundError(f"the folder {unfinished.parent} does not stay")


def _indexes(folder: Path) -> Iterator[Path]:
    return (path for path in _entries(folder) if path.suffix == INDEX)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """When each file was last used, how long it is, and where; also of indexes in other formats."""
    for path in folder.glob("*/*/*/*"):
        with suppress(OSError):
            told = path.stat()
            yield told.st_mtime, told.st_size, path


def _age(version: str) -> tuple[list[int], bool]:
    """By its numbers; a release comes after its previews."""
    release = re.match(r"[0-9.]*", version)
    numbers = [int(part[:9]) for part in (release[0] if release else "").split(".") if part]
    return numbers, release is not None and release[0] == version
