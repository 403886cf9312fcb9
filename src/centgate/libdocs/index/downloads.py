"""Download the archives of a library's documentation: its own, its types', those of its parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from centgate.errors import AnswerTooLong
from centgate.fallback import open_task_group
from centgate.libdocs.index.build_job import DownloadedArchive
from centgate.libdocs.index.store import UNFINISHED_SUFFIX
from centgate.libdocs.registry.client import RegistryClient
from centgate.libdocs.registry.packages import Archive, Package
from centgate.libdocs.registry.parsing import MAX_ARCHIVE_BYTES

MAX_TOTAL_BYTES = MAX_ARCHIVE_BYTES + (30 << 20)
"""Maximum bytes of all archives read for one library."""
MAX_PARTS = 28
"""Maximum number of further packages read for one library."""
MAX_DOWNLOADS = 8
"""Maximum number of their archives that are downloaded, and so in memory, before their sizes are added up."""


@asynccontextmanager
async def download_archives(
    package: Package, archive: Archive | None, registry_client: RegistryClient, beside: Path
) -> AsyncGenerator[list[DownloadedArchive]]:
    """Download a release's archive and related archives into temporary files next to `beside`.

    The files are deleted on exit. Raises AnswerTooLong if the release's own archive is too large.
    """
    files: list[Path] = []
    try:
        archives = await _fetch_archives(package, archive, registry_client)
        for each in archives:
            files.append(beside.with_name(f"{uuid4().hex}{UNFINISHED_SUFFIX}"))
            await asyncio.to_thread(files[-1].write_bytes, each.content)
        downloaded = [
            DownloadedArchive(each.archive, file, each.path_prefix)
            for each, file in zip(archives, files, strict=True)
        ]
        del archives  # tens of megabytes
        yield downloaded
    finally:
        for file in files:
            file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _ArchiveBytes:
    """An archive with its bytes."""

    archive: Archive
    content: bytes = field(repr=False)
    path_prefix: str = ""


async def _fetch_archives(
    package: Package, archive: Archive | None, registry_client: RegistryClient
) -> list[_ArchiveBytes]:
    own = [_ArchiveBytes(archive, await registry_client.download(package, archive))] if archive else []
    if package.registry != "npm":
        return own
    others = await _find_parts(package, registry_client)
    if not package.has_types and (types := await registry_client.fetch_types(package)):
        others = [types, *others]
    return await _add_parts(own, [each for each in others[:MAX_PARTS] if each.archives], registry_client)


async def _find_parts(package: Package, registry_client: RegistryClient) -> list[Package]:
    """Return its parts and their parts: the first level may re-export what the second one documents."""
    found, requested = list[Package](), {package.name}
    level = [package]
    for _ in range(2):
        parts = {name: version for each in level for name, version in each.parts if name not in requested}
        missing = list(parts.items())[: MAX_PARTS - len(found)]
        level = await registry_client.fetch_parts(missing)
        found += level
        requested.update(parts)
    return found


async def _add_parts(
    own: list[_ArchiveBytes], parts: Sequence[Package], registry_client: RegistryClient
) -> list[_ArchiveBytes]:
    """Return an archive with those of its parts; none follows after some exceeded the total size."""
    selected = own
    for start in range(0, len(parts), MAX_DOWNLOADS):
        archives = [*selected, *await _fetch_parts(parts[start : start + MAX_DOWNLOADS], registry_client)]
        selected = _limit_total_size(archives)
        if len(selected) < len(archives):
            break
    return selected


async def _fetch_parts(packages: Iterable[Package], registry_client: RegistryClient) -> list[_ArchiveBytes]:
    async with open_task_group() as group:
        tasks = [group.create_task(_fetch_part(each, registry_client)) for each in packages]
    return [part_archive for task in tasks if (part_archive := task.result())]


async def _fetch_part(package: Package, registry_client: RegistryClient) -> _ArchiveBytes | None:
    """Return the archive of a part, or None if it is too large."""
    archive = package.archives[0]
    try:
        return _ArchiveBytes(archive, await registry_client.download(package, archive), f"{package.name}/")
    except AnswerTooLong:
        return None


def _limit_total_size(archives: list[_ArchiveBytes]) -> list[_ArchiveBytes]:
    """Return as many archives, in order, as fit the total size limit."""
    selected, size = list[_ArchiveBytes](), 0
    for each in archives:
        if size + len(each.content) <= MAX_TOTAL_BYTES:
            size += len(each.content)
            selected.append(each)
    return selected
