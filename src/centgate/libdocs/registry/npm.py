"""Client for npm's registry of JavaScript packages (github.com/npm/registry, docs/REGISTRY-API.md)."""

from __future__ import annotations

import asyncio
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, cast
from urllib.parse import quote

import msgspec
from msgspec import Struct

from centgate.coercion import as_text, get_path, parse_iso_time
from centgate.errors import AnswerTooLong
from centgate.libdocs.registry.npm_ranges import find_newest_in, is_range
from centgate.libdocs.registry.packages import Archive, Package
from centgate.libdocs.registry.parsing import (
    MAX_METADATA_BYTES,
    MAX_SUMMARY,
    Digest,
    decode_reply,
    find_repository,
    find_sites,
    is_on_github,
    parse_integrity,
    parse_package_name,
    parse_short_version,
    parse_version,
    quote_version,
    resolve_archive_url,
    stable_version_key,
)
from centgate.sanitize import clean_line
from centgate.upstream import Upstream, UpstreamResponse, join_url

BASE_URL = "https://registry.npmjs.org"
FILES_URL = "https://unpkg.com"
ABBREVIATED_HEADERS = {"Accept": "application/vnd.npm.install-v1+json, application/json;q=0.8"}
"""Requests all versions without their documentation (docs/responses/package-metadata.md of the same
repository)."""
MAX_LISTINGS = 2
"""Maximum number of lists of versions that are read for parts at the same time: some have ten megabytes."""
MAX_PARTS = 20
TYPES_SCOPE = "@types/"
"""Scope of the packages of types (github.com/DefinitelyTyped/DefinitelyTyped)."""
MIN_FAMILY = 3
"""Number of dependencies named after a package from which they are its parts: one alone may be a plugin."""
_GITHUB_SHORTHAND = re.compile(r"(?:github:)?([\w.-]+/[\w.-]+)", re.ASCII)
_EXACT_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?")


class _Versions(Struct):
    """A package with all its versions, which are not decoded."""

    versions: dict[str, msgspec.Raw] = {}
    time: dict[str, Any] | None = None
    modified: Any = None


class NpmRegistry:
    """Client for npm."""

    def __init__(self, upstream: Upstream, address: str | None = None) -> None:
        self.upstream, self._base = upstream, address or BASE_URL
        self._listings = asyncio.Semaphore(MAX_LISTINGS)

    async def fetch_latest(self, name: str) -> Package | None:
        """Return the release tagged as the latest; the newest stable one if that is a pre-release."""
        tagged = await self.fetch_release(name, "latest")
        if tagged is None or stable_version_key(tagged.version):
            return tagged
        return await self.fetch_latest_of_major(name, None) or tagged

    async def fetch_release(self, name: str, version: str) -> Package | None:
        """Return a release by its version, or the newest of a short one.

        A leading `v` before a number is ignored. Raises AnswerTooLong if the list of versions is too large.
        """
        if numbers := parse_short_version(version):  # npm's own versions have three numbers
            return await self._fetch_latest_of(name, numbers)
        number = version[1:] if re.match(r"v[0-9]", version) else version
        url = self._package_url(name, f"/{quote_version(number)}")
        reply = await self.upstream.get(url, accept=(404, 405))
        if reply.status in (404, 405):
            return None
        body = reply.parse_json()
        # npm resolves any other text as a tag, and only the tag `latest` is requested on purpose
        return (
            self._parse_package(reply, name, body)
            if number == "latest" or body["version"] == number
            else None
        )

    async def fetch_history(self, name: str) -> tuple[int | None, datetime | None]:
        """Return the number of releases, without pre-releases, and the date of the newest.

        The response has several megabytes for some packages, so it is requested only where a decision depends
        on it.
        """
        reply = await self.upstream.get(self._package_url(name), headers=ABBREVIATED_HEADERS, accept=(404,))
        if reply.status == 404:
            return None, None
        listing = decode_reply(reply, _Versions)
        days = [day for number, day in (listing.time or {}).items() if number in listing.versions]
        dates = filter(None, map(parse_iso_time, days or [listing.modified]))
        return sum("-" not in number for number in listing.versions), max(dates, default=None)

    async def fetch_latest_of_major(self, name: str, major: str | None) -> Package | None:
        """Return the newest release of a major version, or of all for None, without pre-releases.

        Returns None without such a release, or if the list of versions is too large to read.
        """
        if major is not None and not major.isdecimal():
            return None
        try:
            return await self._fetch_latest_of(name, () if major is None else (int(major),))
        except AnswerTooLong:
            return None

    async def fetch_newest_in(self, name: str, wanted: str) -> Package | None:
        """Return the release that npm installs for a version or a range in a manifest.

        This is the one tagged as the latest if the range has it, else the newest in the range. Returns None
        without any, or if the list of versions is too large to read. Tags and addresses mean the latest.
        """
        if _is_exact_version(wanted):
            return await self.fetch_release(name, wanted)
        latest = await self.fetch_release(name, "latest")
        if latest is None or not is_range(wanted) or find_newest_in(wanted, [latest.version]):
            return latest
        try:
            async with self._listings:
                return await self._fetch_newest(name, partial(find_newest_in, wanted))
        except AnswerTooLong:
            return None

    async def _fetch_latest_of(self, name: str, numbers: tuple[int, ...]) -> Package | None:
        """Return the newest release whose version begins with these numbers, without pre-releases."""

        wanted = ".".join(map(str, numbers)) or "*"
        return await self._fetch_newest(name, partial(find_newest_in, wanted))

    async def _fetch_newest(self, name: str, find: Callable[[Iterable[str]], str | None]) -> Package | None:
        """Return the release that `find` selects from the versions of a package.

        A deprecated one is selected only without any other, as npm installs it.
        """
        reply = await self.upstream.get(
            self._package_url(name),
            headers=ABBREVIATED_HEADERS,
            accept=(404,),
            max_bytes=MAX_METADATA_BYTES,
        )
        if reply.status == 404:
            return None
        releases = decode_reply(reply, _Versions).versions
        # in a thread: thousands of versions and a long range take a second
        newest = await asyncio.to_thread(_select_release, releases, find)
        return await self.fetch_release(name, newest) if newest else None

    def _package_url(self, name: str, suffix: str = "") -> str:
        return join_url(self._base, f"/{quote(name, safe='@')}{suffix}")

    def _parse_package(self, reply: UpstreamResponse, requested_name: str, body: Any) -> Package:
        name_published, version = (
            parse_package_name(reply, body["name"], requested_name),
            parse_version(body["version"]),
        )
        links = _repository_links(body)
        return Package(
            registry="npm",
            name=requested_name,
            title=name_published,
            version=version,
            summary=clean_line(as_text(get_path(body, "description")), MAX_SUMMARY),
            repository=find_repository(links),
            is_on_github=is_on_github(links),
            deprecated=_parse_deprecation(get_path(body, "deprecated")),
            releases=None,
            published=None,
            archives=tuple(self._parse_archives(get_path(body, "dist"), name_published, version)),
            has_types=_has_types(body),
            parts=_parse_parts(name_published, body),
            sites=find_sites([get_path(body, "homepage")]),
        )

    def _parse_archives(self, dist: Any, name: str, version: str) -> Iterator[Archive]:
        url, digest = (
            resolve_archive_url(get_path(dist, "tarball"), self._base + "/", BASE_URL),
            _parse_digest(dist),
        )
        if url and digest:
            # unpkg shows every published file under its own name, so the link is always valid
            shown_at = (
                f"{FILES_URL}/{name}@{quote_version(version)}/" if url.startswith(BASE_URL + "/") else None
            )
            yield Archive("npm", url, *digest, None, shown_at)


def types_package_name(name: str) -> str:
    """Return the package that publishes the types of a package without any."""
    return TYPES_SCOPE + name.removeprefix("@").replace("/", "__")


def _parse_digest(dist: Any) -> Digest | None:
    """Return the published digest. Packages from before 2017 have only SHA-1."""
    if digest := parse_integrity(get_path(dist, "integrity")):
        return digest
    shasum = get_path(dist, "shasum")
    try:
        return ("sha1", binascii.unhexlify(shasum)) if isinstance(shasum, str) else None
    except binascii.Error:
        return None


def _repository_links(body: Any) -> list[Any]:
    """Return the links of a repository: a URL, that of an object, or of `<owner>/<name>` on GitHub."""
    value = get_path(body, "repository")
    link = get_path(value, "url") if isinstance(value, dict) else value
    short = _GITHUB_SHORTHAND.fullmatch(link[:200]) if isinstance(link, str) else None
    return [f"https://github.com/{short[1]}" if short else link, get_path(body, "homepage")]


def _parse_deprecation(value: Any) -> str | None:
    """Return the deprecation message. Some registries give only true."""
    if isinstance(value, str) and value:
        return clean_line(value, 200)
    return "deprecated" if value is True else None


def _select_release(
    releases: Mapping[str, msgspec.Raw], find: Callable[[Iterable[str]], str | None]
) -> str | None:
    """Return the version that `find` selects; a deprecated one only without any other."""
    return find(each for each, raw in releases.items() if not _is_deprecated(raw)) or find(releases)


def _is_deprecated(release: msgspec.Raw) -> bool:
    return _parse_deprecation(get_path(msgspec.json.decode(release), "deprecated")) is not None


def _has_types(body: Any) -> bool:
    return any(get_path(body, member) for member in ("types", "typings")) or _exports_types(
        get_path(body, "exports"), 6
    )


def _exports_types(exports: Any, depth: int) -> bool:
    if not isinstance(exports, dict) or not depth:
        return False
    members = cast(dict[str, Any], exports)
    return "types" in members or any(_exports_types(each, depth - 1) for each in members.values())


def _parse_parts(name: str, body: Any) -> tuple[tuple[str, str], ...]:
    """Return its parts, with the versions or ranges that it needs: what it re-exports is documented there.

    These are dependencies of its own scope, and those that are named after it, if there are several of them
    or it needs one exact version.
    """
    scope = name.split("/")[0] + "/" if name.startswith("@") else f"@{name}/"
    needed: dict[str, Any] = {}
    for member in ("peerDependencies", "dependencies"):
        group = get_path(body, member)
        needed |= cast(Mapping[str, Any], group) if isinstance(group, dict) else {}
    is_family = sum(each.startswith(f"{name}-") for each in needed) >= MIN_FAMILY
    found = [
        (each, version)
        for each, version in needed.items()
        if (
            each.startswith(scope)
            or (each.startswith(f"{name}-") and (is_family or _is_exact_version(version)))
        )
        and each != name
        and get_path(body, "peerDependenciesMeta", each, "optional") is not True
    ]
    return tuple((each, version if isinstance(version, str) else "*") for each, version in found[:MAX_PARTS])


def _is_exact_version(version: Any) -> bool:
    return isinstance(version, str) and bool(_EXACT_VERSION.fullmatch(version))
