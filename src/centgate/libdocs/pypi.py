"""PyPI: Python packages, by its JSON interface (docs.pypi.org/api/json)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar, cast
from urllib.parse import quote

import msgspec

from centgate.libdocs.aliases import RegistryName
from centgate.libdocs.packages import Archive, ArchiveKind, Package
from centgate.libdocs.registries import (
    LARGEST_ARCHIVE,
    SUMMARY,
    called,
    decoded,
    fetched,
    followed,
    quoted,
    repository,
    same_version,
    version_of,
)
from centgate.readings import at, count, items, text
from centgate.text import cleaned
from centgate.upstream import Reply, Upstream, joined

ADDRESS = "https://pypi.org"
FILES = "https://files.pythonhosted.org"
INSPECTOR = "https://inspector.pypi.io"
MOST_ARCHIVES = 3
LONGEST_README = 100_000
_LINKS = ("source", "source code", "repository", "code", "github", "homepage")
"""What projects call the link to their repository, likeliest first."""


class _Project(msgspec.Struct):
    """A project; its releases can be tens of thousands of files, so they stay unread."""

    info: msgspec.Raw
    urls: msgspec.Raw = msgspec.Raw(b"[]")
    releases: dict[str, msgspec.Raw] | None = None


class Pypi:
    """Python packages."""

    name: ClassVar[RegistryName] = "pypi"
    label: ClassVar[str] = "PyPI"

    def __init__(self, upstream: Upstream, address: str | None = None) -> None:
        self._upstream, self._base = upstream, address or ADDRESS

    @property
    def upstream(self) -> Upstream:
        """The connection to the registry."""
        return self._upstream

    async def newest(self, name: str) -> Package | None:
        """The release that PyPI puts first: neither a preview nor yanked, unless there is no other."""
        reply = await self._ask(f"/pypi/{quote(name)}/json")
        if reply is None:
            return None
        project = decoded(reply, _Project)
        return self._package(reply, name, project, msgspec.json.decode(project.urls))

    async def release(self, name: str, version: str) -> Package | None:
        """A release from the project's list, or from its own page where a registry gives no list."""
        reply = await self._ask(f"/pypi/{quote(name)}/json")
        if reply is None:
            return None
        project = decoded(reply, _Project)
        if project.releases is None:
            return await self._page_of(name, version)
        known = same_version(version, project.releases)
        if known is None:
            return None
        return self._package(reply, name, project, msgspec.json.decode(project.releases[known]), known)

    async def archive(self, archive: Archive) -> bytes:
        return await fetched(self._upstream, archive)

    async def _page_of(self, name: str, version: str) -> Package | None:
        reply = await self._ask(f"/pypi/{quote(name)}/{quoted(version)}/json")
        if reply is None:
            return None
        project = decoded(reply, _Project)
        return self._package(reply, name, project, msgspec.json.decode(project.urls))

    async def _ask(self, path: str) -> Reply | None:
        reply = await self._upstream.get(joined(self._base, path), accept=(404,))
        return None if reply.status == 404 else reply

    def _package(
        self, reply: Reply, asked: str, project: _Project, uploads: Any, version: str | None = None
    ) -> Package:
        """`version` is None for the one that the project's description is of."""
        info = msgspec.json.decode(project.info)
        title, number = called(reply, info["name"], asked), version_of(version or info["version"])
        files = [file for file in items(uploads) if isinstance(at(file, "filename"), str)]
        archives = tuple(self._archives(files, asked, number))[:MOST_ARCHIVES]
        return Package(
            registry="pypi",
            name=asked,
            title=title,
            version=number,
            summary=cleaned(text(at(info, "summary")), SUMMARY),
            repository=repository(_links(info)),
            deprecated=_withdrawn(info, files),
            releases=None if project.releases is None else len(project.releases),
            published=max(filter(None, map(_uploaded, files)), default=None),
            archives=archives,
            readme=None if archives else (text(at(info, "description")) or "")[:LONGEST_README] or None,
        )

    def _archives(self, files: list[Any], name: str, version: str) -> Iterator[Archive]:
        """The source first, which is where documentation is, then the smallest wheels; none too large."""
        for file in sorted(files, key=_preference):
            kind, size = _kind(file["filename"]), count(at(file, "size"))
            page = joined(self._base, f"/pypi/{quote(name)}/json")
            url = followed(at(file, "url"), page, FILES)
            digest = at(file, "digests", "sha256")
            if kind and url and isinstance(digest, str) and (size or 0) <= LARGEST_ARCHIVE:
                shown_at = _shown_at(file, url, name, version)
                yield Archive(kind, url, "sha256", bytes.fromhex(digest), size, shown_at)


def _shown_at(file: Any, url: str, name: str, version: str) -> str | None:
    """PyPI's inspector shows each file of each archive that PyPI has, so that the link holds for certain.

    A link into the repository would be a guess: nothing says which tag a release was made from. PyPI puts an
    archive where its digest says (BLAKE2b, in three parts), and so do its mirrors; other registries do not.
    """
    digest = str(at(file, "digests", "blake2b_256"))
    place = f"/packages/{digest[:2]}/{digest[2:4]}/{digest[4:]}/{quote(file['filename'])}"
    return f"{INSPECTOR}/project/{quote(name)}/{quoted(version)}{place}/" if url.endswith(place) else None


def _preference(file: Any) -> tuple[bool, bool, int]:
    name = file["filename"]
    return _kind(name) != "sdist", not name.endswith("-none-any.whl"), count(at(file, "size")) or 0


def _kind(filename: str) -> ArchiveKind | None:
    if filename.endswith(".whl"):
        return "wheel"
    return "sdist" if filename.endswith((".tar.gz", ".tgz", ".zip")) else None


def _links(info: Any) -> list[Any]:
    given = at(info, "project_urls")
    links = cast(dict[str, Any], given) if isinstance(given, dict) else {}
    known = {label.lower(): link for label, link in links.items()}
    return [*(known.get(label) for label in _LINKS), at(info, "home_page"), *links.values()]


def _withdrawn(info: Any, files: list[Any]) -> str | None:
    """Why a release, or its project, should not be used any more."""
    if files and all(at(file, "yanked") is True for file in files):
        return f"yanked: {cleaned(text(at(files[0], 'yanked_reason')), 200) or 'no reason given'}"
    classifiers = items(at(info, "classifiers"))
    return "inactive" if "Development Status :: 7 - Inactive" in classifiers else None


def _uploaded(file: Any) -> datetime | None:
    """When a file was uploaded; the older of the two members has no zone and is in UTC."""
    value = at(file, "upload_time_iso_8601") or at(file, "upload_time")
    try:
        told = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return told.replace(tzinfo=UTC) if told.tzinfo is None else told
