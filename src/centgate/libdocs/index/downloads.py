"""Download the archives of a library's documentation: its own, its types', those of its parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

from msgspec import Struct

from centgate.errors import AnswerTooLong
from centgate.fallback import open_task_group
from centgate.libdocs.index.store import UNFINISHED_SUFFIX
from centgate.libdocs.registry.client import RegistryClient
from centgate.libdocs.registry.packages import Archive, DownloadedArchive, Package
from centgate.libdocs.registry.parsing import MAX_ARCHIVE_BYTES

MAX_TOTAL_BYTES = MAX_ARCHIVE_BYTES + (30 << 20)
"""Maximum bytes of all archives read for one library."""
MAX_PARTS = 28
"""Maximum number of further packages read for one library."""
MAX_DOWNLOADS = 8
"""Maximum number of their archives that are downloaded at the same time."""
MAX_PARALLEL_BYTES = 8 << 20
"""Maximum bytes of an archive that is downloaded beside others, as those of parts are: a larger one is
downloaded again alone, so that few are in memory."""


@asynccontextmanager
async def download_archives(
    package: Package, archive: Archive | None, registry_client: RegistryClient, beside: Path
) -> AsyncGenerator[list[DownloadedArchive]]:
    """Download a release's archive and related archives into temporary files next to `beside`.

    The files are deleted on exit. Raises AnswerTooLong if the release's own archive is too large.
    """
    downloader = _Downloader(registry_client, beside)
    try:
        yield await downloader.fetch_family(package, archive)
    finally:
        for file in downloader.files:
            file.unlink(missing_ok=True)


class _StoredArchive(Struct, frozen=True):
    """An archive in a file, of which nothing is in memory any more."""

    downloaded: DownloadedArchive
    size: int
    """Bytes."""


class _Downloader:
    """Downloads archives into files."""

    def __init__(self, registry_client: RegistryClient, beside: Path) -> None:
        self.files: list[Path] = []
        """All files, which may not exist yet."""
        self._registry_client, self._beside = registry_client, beside

    async def fetch_family(self, package: Package, archive: Archive | None) -> list[DownloadedArchive]:
        """Download the archive of a release, of its types and its parts."""
        own = [await self._fetch(package, archive)] if archive else []
        if package.registry == "npm":
            others = await _find_parts(package, self._registry_client)
            if not package.has_types and (types := await self._registry_client.fetch_types(package)):
                others = [types, *others]
            own += await self._fetch_parts(
                [each for each in others[:MAX_PARTS] if each.archives],
                MAX_TOTAL_BYTES - sum(each.size for each in own),
            )
        return [each.downloaded for each in own]

    async def _fetch_parts(self, parts: Sequence[Package], room: int) -> list[_StoredArchive]:
        """Download as many parts, in order, as fit into `room` bytes; the first too many end it."""
        selected: list[_StoredArchive] = []
        for start in range(0, len(parts), MAX_DOWNLOADS):
            together = parts[start : start + MAX_DOWNLOADS]
            is_full = False
            for part, small in zip(together, await self._fetch_together(together), strict=True):
                stored = small
                if stored is None and room > MAX_PARALLEL_BYTES:
                    stored = await self._fetch_part(part, min(room, MAX_ARCHIVE_BYTES))
                if stored and stored.size <= room:
                    selected.append(stored)
                    room -= stored.size
                else:
                    is_full = is_full or stored is not None or room < MAX_ARCHIVE_BYTES
            if is_full:
                break
        return selected

    async def _fetch_together(self, parts: Iterable[Package]) -> list[_StoredArchive | None]:
        async with open_task_group() as group:
            tasks = [group.create_task(self._fetch_part(each, MAX_PARALLEL_BYTES)) for each in parts]
        return [task.result() for task in tasks]

    async def _fetch_part(self, package: Package, max_bytes: int) -> _StoredArchive | None:
        """Download the archive of a part; returns None if it is larger than `max_bytes`."""
        try:
            return await self._fetch(package, package.archives[0], f"{package.name}/", max_bytes)
        except AnswerTooLong:
            return None

    async def _fetch(
        self, package: Package, archive: Archive, prefix: str = "", max_bytes: int = MAX_ARCHIVE_BYTES
    ) -> _StoredArchive:
        content = await self._registry_client.download(package, archive, max_bytes)
        file = self._beside.with_name(f"{uuid4().hex}{UNFINISHED_SUFFIX}")
        self.files.append(file)
        await asyncio.to_thread(file.write_bytes, content)
        return _StoredArchive(DownloadedArchive(archive, file, prefix), len(content))


async def _find_parts(package: Package, registry_client: RegistryClient) -> list[Package]:
    """Return its parts and their parts: the first level may re-export what the second one documents."""
    found, requested = list[Package](), {package.name}
    level = [package]
    for _ in range(2):
        parts = {name: wanted for each in level for name, wanted in each.parts if name not in requested}
        missing = list(parts.items())[: MAX_PARTS - len(found)]
        level = await registry_client.fetch_parts(missing)
        found += level
        requested.update(parts)
    return found
