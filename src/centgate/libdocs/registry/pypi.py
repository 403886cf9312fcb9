"""Client for PyPI's JSON API of Python packages (docs.pypi.org/api/json)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import quote

import msgspec
from msgspec import Struct

from centgate.coercion import as_count, as_list, as_text, get_path
from centgate.libdocs.registry.packages import Archive, ArchiveKind, Package
from centgate.libdocs.registry.parsing import (
    MAX_ARCHIVE_BYTES,
    MAX_SUMMARY,
    decode_reply,
    find_repository,
    find_sites,
    find_version,
    is_on_github,
    parse_package_name,
    parse_short_version,
    parse_version,
    quote_version,
    resolve_archive_url,
    stable_version_key,
)
from centgate.sanitize import clean_line, quote_line
from centgate.upstream import Upstream, UpstreamResponse, join_url

BASE_URL = "https://pypi.org"
FILES_URL = "https://files.pythonhosted.org"
INSPECTOR_URL = "https://inspector.pypi.io"
MAX_ARCHIVES = 3
MAX_README_LENGTH = 100_000
_REPOSITORY_LABELS = ("source", "source code", "repository", "code", "github", "homepage")
"""Labels that projects use for the link to their repository, most likely first."""


_SITE_LABELS = ("documentation", "docs", "homepage", "home")
"""Labels of the link to a documentation site, most likely first."""


class _Project(Struct):
    """A project. Its releases can list tens of thousands of files, so they are not decoded."""

    info: msgspec.Raw
    urls: msgspec.Raw = msgspec.Raw(b"[]")
    releases: dict[str, msgspec.Raw] | None = None


class PypiRegistry:
    """Client for PyPI."""

    def __init__(self, upstream: Upstream, address: str | None = None) -> None:
        self.upstream, self._base = upstream, address or BASE_URL

    async def fetch_latest(self, name: str) -> Package | None:
        """Return the release that PyPI lists first: neither a pre-release nor yanked, unless there is no
        other.
        """
        reply = await self._get_json(f"/pypi/{quote(name)}/json")
        if reply is None:
            return None
        project = decode_reply(reply, _Project)
        package = self._parse_package(reply, name, project, msgspec.json.decode(project.urls))
        if stable_version_key(package.version) or not project.releases:
            return package
        # registries other than PyPI may name a pre-release
        stable = _newest_stable(project.releases)
        return self._parse_package(reply, name, project, *stable) if stable else package

    async def fetch_release(self, name: str, version: str) -> Package | None:
        """Return a release from the project's list, or from its own page if the registry gives no list.

        A short version is the newest release of it that has files and is not yanked.
        """
        reply = await self._get_json(f"/pypi/{quote(name)}/json")
        if reply is None:
            return None
        project = decode_reply(reply, _Project)
        if project.releases is None:
            return await self._fetch_release_page(name, version)
        numbers = parse_short_version(version) if version not in project.releases else None
        if numbers and (newest := _newest_stable(project.releases, numbers)):
            return self._parse_package(reply, name, project, *newest)
        published_version = find_version(version, project.releases)
        if published_version is None:
            key = stable_version_key(version)
            # some add a number of their own: opencv-python 4.10.0.84 is of OpenCV 4.10.0
            newest = _newest_stable(project.releases, key[:-2]) if key and not key[-1] else None
            return self._parse_package(reply, name, project, *newest) if newest else None
        return self._parse_package(
            reply, name, project, msgspec.json.decode(project.releases[published_version]), published_version
        )

    async def _fetch_release_page(self, name: str, version: str) -> Package | None:
        reply = await self._get_json(f"/pypi/{quote(name)}/{quote_version(version)}/json")
        if reply is None:
            return None
        project = decode_reply(reply, _Project)
        return self._parse_package(reply, name, project, msgspec.json.decode(project.urls))

    async def _get_json(self, path: str) -> UpstreamResponse | None:
        reply = await self.upstream.get(join_url(self._base, path), accept=(404,))
        return None if reply.status == 404 else reply

    def _parse_package(
        self,
        reply: UpstreamResponse,
        requested_name: str,
        project: _Project,
        uploads: Any,
        version: str | None = None,
    ) -> Package:
        """Parse a release. `version` is None for the version that the project's description belongs to."""
        info = msgspec.json.decode(project.info)
        title, number = (
            parse_package_name(reply, info["name"], requested_name),
            parse_version(version or info["version"]),
        )
        files = [file for file in as_list(uploads) if isinstance(get_path(file, "filename"), str)]
        archives = tuple(self._parse_archives(files, requested_name, number))[:MAX_ARCHIVES]
        return Package(
            registry="pypi",
            name=requested_name,
            title=title,
            version=number,
            summary=clean_line(as_text(get_path(info, "summary")), MAX_SUMMARY),
            repository=find_repository(_repository_links(info)),
            is_on_github=is_on_github(_repository_links(info)),
            deprecated=_deprecation_reason(info, files),
            releases=None if project.releases is None else len(project.releases),
            published=max(filter(None, map(_upload_time, files)), default=None),
            archives=archives,
            sites=find_sites(_site_links(info)),
            readme=None
            if archives
            else (as_text(get_path(info, "description")) or "")[:MAX_README_LENGTH] or None,
        )

    def _parse_archives(self, files: list[Any], name: str, version: str) -> Iterator[Archive]:
        """Yield the source distribution, which contains the documentation, then the smallest wheels; none too
        large.
        """
        for file in sorted(files, key=_archive_sort_key):
            kind, size = _archive_kind(file["filename"]), as_count(get_path(file, "size"))
            page = join_url(self._base, f"/pypi/{quote(name)}/json")
            url = resolve_archive_url(get_path(file, "url"), page, FILES_URL)
            digest = get_path(file, "digests", "sha256")
            if kind and url and isinstance(digest, str) and (size or 0) <= MAX_ARCHIVE_BYTES:
                shown_at = _inspector_url(file, url, name, version)
                yield Archive(kind, url, "sha256", bytes.fromhex(digest), size, shown_at)


def _newest_stable(
    releases: Mapping[str, msgspec.Raw], numbers: tuple[int, ...] = ()
) -> tuple[list[Any], str] | None:
    """Return the files and the version of the newest stable release that has files and is not yanked.

    `numbers` are those with which its version begins.
    """
    versions = {key: version for version in releases if (key := stable_version_key(version))}
    for key in sorted((each for each in versions if each[: len(numbers)] == numbers), reverse=True):
        files = as_list(msgspec.json.decode(releases[versions[key]]))
        if files and not all(get_path(file, "yanked") is True for file in files):
            return files, versions[key]
    return None


def _inspector_url(file: Any, url: str, name: str, version: str) -> str | None:
    """Return the URL prefix in PyPI's inspector, which shows each file of each archive on PyPI, so links are
    valid.

    A link into the repository would be a guess: nothing says which tag a release was made from. PyPI stores
    an archive under its digest (BLAKE2b, in three parts), and so do its mirrors; other registries do not.
    """
    digest = str(get_path(file, "digests", "blake2b_256"))
    suffix = f"/packages/{digest[:2]}/{digest[2:4]}/{digest[4:]}/{quote(file['filename'])}"
    return (
        f"{INSPECTOR_URL}/project/{quote(name)}/{quote_version(version)}{suffix}/"
        if url.endswith(suffix)
        else None
    )


def _archive_sort_key(file: Any) -> tuple[bool, bool, int]:
    name = file["filename"]
    return (
        _archive_kind(name) != "sdist",
        not name.endswith("-none-any.whl"),
        as_count(get_path(file, "size")) or 0,
    )


def _archive_kind(filename: str) -> ArchiveKind | None:
    if filename.endswith(".whl"):
        return "wheel"
    return "sdist" if filename.endswith((".tar.gz", ".tgz", ".zip")) else None


def _site_links(info: Any) -> list[Any]:
    project_urls = get_path(info, "project_urls")
    links = cast(dict[str, Any], project_urls) if isinstance(project_urls, dict) else {}
    by_label = {label.lower(): link for label, link in links.items()}
    labels = [by_label.get(label) for label in _SITE_LABELS]
    return [*labels[:2], get_path(info, "docs_url"), *labels[2:], get_path(info, "home_page")]


def _repository_links(info: Any) -> list[Any]:
    project_urls = get_path(info, "project_urls")
    links = cast(dict[str, Any], project_urls) if isinstance(project_urls, dict) else {}
    by_label = {label.lower(): link for label, link in links.items()}
    return [
        *(by_label.get(label) for label in _REPOSITORY_LABELS),
        get_path(info, "home_page"),
        *links.values(),
    ]


def _deprecation_reason(info: Any, files: list[Any]) -> str | None:
    """Return the reason not to use a release or its project any more, if there is one."""
    if files and all(get_path(file, "yanked") is True for file in files):
        return f"yanked: {quote_line(as_text(get_path(files[0], 'yanked_reason')), 200) or 'no reason given'}"
    classifiers = as_list(get_path(info, "classifiers"))
    return "inactive" if "Development Status :: 7 - Inactive" in classifiers else None


def _upload_time(file: Any) -> datetime | None:
    """Return the upload time of a file. The older of the two members has no time zone and is in UTC."""
    value = get_path(file, "upload_time_iso_8601") or get_path(file, "upload_time")
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
