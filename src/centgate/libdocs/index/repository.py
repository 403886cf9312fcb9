"""README, documentation and examples of a library's repository, by GitHub's archive of a release's tag.

Only read if the operator gives GitHub's address. The address of an archive is that of GitHub's documentation
("Downloading source code archives"); not tried live. A branch is never read: it describes no release.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from centgate.libdocs.index.index_file import REPOSITORY_FOLDER
from centgate.libdocs.index.store import UNFINISHED_SUFFIX
from centgate.libdocs.registry.packages import Archive, DownloadedArchive, Package
from centgate.libdocs.registry.parsing import MAX_ARCHIVE_BYTES
from centgate.web.fetch.failure import FetchFailed
from centgate.web.fetch.fetcher import Fetcher

REPOSITORY_SECONDS = 6.0
"""Seconds for a repository, while the package is downloaded."""
MAX_TAGS = 4
_ARCHIVE_TYPES = ("application/x-gzip", "application/gzip", "application/octet-stream")


@dataclass(frozen=True, slots=True)
class RepositoryArchive:
    """An archive of a repository at a tag."""

    archive: Archive
    content: bytes = field(repr=False)


class RepositoryReader:
    """Downloads archives of repositories."""

    def __init__(self, fetcher: Fetcher, base_url: str) -> None:
        self._fetcher, self._base = fetcher, base_url.rstrip("/")

    async def fetch(self, package: Package) -> RepositoryArchive | None:
        """Return the archive of the tag of a release; None if there is none, or if it cannot be read."""
        if not package.repository or not package.is_on_github:
            return None
        try:
            async with asyncio.timeout(REPOSITORY_SECONDS):
                for tag in list_tags(package):
                    if found := await self._fetch_tag(package.repository, tag):
                        return found
        except (FetchFailed, TimeoutError):
            pass  # the package is read without it
        return None

    async def _fetch_tag(self, repository: str, tag: str) -> RepositoryArchive | None:
        page = f"{self._base}/{quote(repository)}"
        url = f"{page}/archive/refs/tags/{quote(tag, safe='@')}.tar.gz"
        found = await self._fetcher.fetch(
            url, timeout=REPOSITORY_SECONDS, max_bytes=MAX_ARCHIVE_BYTES, media_types=_ARCHIVE_TYPES
        )
        if found.status != 200:
            return None
        viewer = f"{page}/blob/{quote(tag, safe='@')}/"
        archive = Archive("repository", url, "sha256", None, len(found.body), viewer)
        return RepositoryArchive(archive, found.body)


def list_tags(package: Package) -> list[str]:
    """Return the names that a release's tag usually has, the most usual first."""
    version = package.version.removeprefix("v")
    name = package.title.rsplit("/", 1)[-1]
    tags = (f"v{version}", version, f"{package.title}@{version}", f"{name}-{version}")
    return list(dict.fromkeys(tags))[:MAX_TAGS]


@asynccontextmanager
async def store_repository(
    found: RepositoryArchive | None, beside: Path
) -> AsyncGenerator[list[DownloadedArchive]]:
    """Store an archive in a temporary file, which is deleted on exit; empty without any."""
    if found is None:
        yield []
        return
    file = beside.with_name(f"{uuid4().hex}{UNFINISHED_SUFFIX}")
    try:
        await asyncio.to_thread(file.write_bytes, found.content)
        yield [DownloadedArchive(found.archive, file, REPOSITORY_FOLDER)]
    finally:
        file.unlink(missing_ok=True)
