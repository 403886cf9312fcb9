"""Store of index files, one for each library and version, with eviction of the least recently used."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from msgspec import Struct

from centgate.libdocs.index.index_file import FORMAT
from centgate.libdocs.registry.package_names import REGISTRIES, RegistryName

MAX_BYTES = 500 << 20
MAX_FILES = 500
MAX_BUILDS = 8
"""Maximum number of indexes that are built or wait to be built at once."""
MAX_ATTEMPTS = 50
"""Attempts to create a file in a folder that other tasks may remove."""
ABANDONED_SECONDS = 600
"""Seconds after which an unfinished file counts as abandoned."""
INDEX_SUFFIX, UNFINISHED_SUFFIX = ".db", ".part"
BuildFile = Callable[[Path], Awaitable[None]]


class TooManyBuilds(Exception):
    """Too many indexes are being built."""


class IndexKey(Struct, frozen=True):
    """Key of an index. Name and version consist of letters, digits and `@ / ~ . _ + ! -`."""

    registry: RegistryName
    name: str
    version: str


class IndexStore:
    """The indexes in a folder, which several processes may share."""

    def __init__(self, folder: Path, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> None:
        self._folder = folder
        self._max_bytes, self._max_files = max_bytes, max_files
        self._builds: dict[IndexKey, asyncio.Task[Path]] = {}

    def find(self, key: IndexKey) -> Path | None:
        """Return the index and mark it as used; None if there is no index."""
        file = self._file(key)
        try:
            os.utime(file)
        except OSError:
            return None
        return file

    def versions(self, registry: RegistryName, name: str) -> list[str]:
        """Return the versions of a library that have an index, newest first."""
        folder = self._file(IndexKey(registry, name, "0")).parent
        return sorted(
            (file.name.removesuffix(INDEX_SUFFIX) for file in _index_files(folder)),
            key=_version_sort_key,
            reverse=True,
        )

    def libraries(self) -> list[tuple[RegistryName, str]]:
        """Return the libraries that have an index."""
        return [
            (registry, folder.name.replace("~", "/"))
            for registry in REGISTRIES
            for folder in _list_folder(self._folder / FORMAT / registry)
        ]

    @property
    def is_full(self) -> bool:
        """True if as many indexes are being built as may be at a time."""
        return len(self._builds) >= MAX_BUILDS

    @property
    def is_busy(self) -> bool:
        """True if a quarter as many indexes are being built as may be, or more."""
        return len(self._builds) >= MAX_BUILDS // 4

    def is_building(self, registry: RegistryName, name: str) -> bool:
        """True if an index of a library is being built, of whatever version."""
        return any((key.registry, key.name) == (registry, name) for key in self._builds)

    def start_build(self, key: IndexKey, make: BuildFile) -> asyncio.Task[Path]:
        """Return the task that builds an index, and start it if necessary. It continues without waiters.

        `make` writes the file at the path that it is given. Raises TooManyBuilds if the task cannot start.
        """
        task = self._builds.get(key)
        if task is None:
            if self.is_full:
                raise TooManyBuilds
            task = self._builds[key] = asyncio.create_task(self._build(key, make))
            task.add_done_callback(lambda done: self._finish_build(key, done))
        return task

    def discard(self, key: IndexKey) -> None:
        """Delete an index that cannot be read."""
        with suppress(OSError):
            self._file(key).unlink()

    def _file(self, title: IndexKey) -> Path:
        name = title.name.replace("/", "~")
        return self._folder / FORMAT / title.registry / name / f"{title.version}{INDEX_SUFFIX}"

    async def _build(self, title: IndexKey, make: BuildFile) -> Path:
        file = self._file(title)
        unfinished = file.with_name(f"{uuid4().hex}{UNFINISHED_SUFFIX}")
        try:
            await asyncio.to_thread(_create_placeholder, unfinished)
            await make(unfinished)
            await asyncio.to_thread(self._publish, unfinished, file)
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
                file.parent.rmdir()  # fails unless it is empty
        return file

    def _publish(self, unfinished: Path, file: Path) -> None:
        """Move a finished index into place, then delete those that were not used for longest."""
        unfinished.replace(file)
        self._evict(file)

    def _evict(self, newest: Path) -> None:
        newest_size, size, count = newest.stat().st_size, 0, 0
        for used, length, path in sorted(_stat_files(self._folder), reverse=True):
            unfinished = path.suffix != INDEX_SUFFIX
            if path == newest or (unfinished and time.time() - used < ABANDONED_SECONDS):
                continue
            size, count = size + length, count + 1
            if unfinished or size + newest_size > self._max_bytes or count >= self._max_files:
                with suppress(OSError):
                    path.unlink()
                    path.parent.rmdir()

    def _finish_build(self, title: IndexKey, task: asyncio.Task[Path]) -> None:
        del self._builds[title]
        if not task.cancelled():
            task.exception()  # retrieved: waiters get it, and without any it must not be logged as lost


def _create_placeholder(unfinished: Path) -> None:
    """Create an empty file where an index will be, so that its folder is not removed as unused.

    Until the file exists, a build that fails may remove the folder, even during `mkdir`.
    """
    for _ in range(MAX_ATTEMPTS):
        with suppress(FileNotFoundError, FileExistsError):
            unfinished.parent.mkdir(parents=True, exist_ok=True)
            unfinished.touch()
            return
    raise FileNotFoundError(f"the folder {unfinished.parent} is removed repeatedly by other tasks")


def _index_files(folder: Path) -> Iterator[Path]:
    return (path for path in _list_folder(folder) if path.suffix == INDEX_SUFFIX)


def _list_folder(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _stat_files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """Yield the last use, the size and the path of each file, including indexes in other formats."""
    for path in folder.glob("*/*/*/*"):
        with suppress(OSError):
            status = path.stat()
            yield status.st_mtime, status.st_size, path


def _version_sort_key(version: str) -> tuple[list[int], bool]:
    """Return the sort key of a version: its numbers; a release comes after its pre-releases."""
    release = re.match(r"[0-9.]*", version)
    numbers = [int(part[:9]) for part in (release[0] if release else "").split(".") if part]
    return numbers, release is not None and release[0] == version
