"""npm: JavaScript packages, by its registry's interface (github.com/npm/registry, docs/REGISTRY-API.md)."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar, cast
from urllib.parse import quote

import msgspec

from centgate.errors import AnswerTooLong
from centgate.libdocs.aliases import RegistryName
from centgate.libdocs.packages import Archive, Package
from centgate.libdocs.registries import (
    SUMMARY,
    Digest,
    called,
    decoded,
    fetched,
    followed,
    integrity,
    quoted,
    repository,
    version_of,
)
from centgate.readings import at, moment, text
from centgate.text import cleaned
from centgate.upstream import Reply, Upstream, joined

ADDRESS = "https://registry.npmjs.org"
FILES = "https://unpkg.com"
ABBREVIATED = {"Accept": "application/vnd.npm.install-v1+json, application/json;q=0.8"}
"""All versions without their documentation (docs/responses/package-metadata.md of the same repository)."""
MOST_PARTS = 4
_SHORT = re.compile(r"(?:github:)?([\w.-]+/[\w.-]+)", re.ASCII)
_PLAIN = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}")
_EXACT = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?")


class _Versions(msgspec.Struct):
    """A package with all its versions, which stay unread."""

    versions: dict[str, msgspec.Raw] = {}
    time: dict[str, Any] | None = None
    modified: Any = None


class Npm:
    """JavaScript packages."""

    name: ClassVar[RegistryName] = "npm"
    label: ClassVar[str] = "npm"

    def __init__(self, upstream: Upstream, address: str | None = None) -> None:
        self._upstream, self._base = upstream, address or ADDRESS

    @property
    def upstream(self) -> Upstream:
        """The connection to the registry."""
        return self._upstream

    async def newest(self, name: str) -> Package | None:
        """The release that its owners tagged as the latest."""
        return await self.release(name, "latest")

    async def release(self, name: str, version: str) -> Package | None:
        """A release by its version; a number may be preceded by a `v`."""
        number = version[1:] if re.match(r"v[0-9]", version) else version
        url = self._url(name, f"/{quoted(number)}")
        reply = await self._upstream.get(url, accept=(404, 405))
        if reply.status in (404, 405):
            return None
        body = reply.json()
        # what is no version is looked up as a tag; only its own `latest` is one that is asked for
        return self._package(reply, name, body) if number == "latest" or body["version"] == number else None

    async def history(self, name: str) -> tuple[int | None, datetime | None]:
        """How many releases there are, previews not counted, and when the newest was made.

        The answer is megabytes for some packages, so it is asked for only where it decides something.
        """
        reply = await self._upstream.get(self._url(name), headers=ABBREVIATED, accept=(404,))
        if reply.status == 404:
            return None, None
        told = decoded(reply, _Versions)
        days = [day for number, day in (told.time or {}).items() if number in told.versions]
        made = filter(None, map(moment, days or [told.modified]))
        return sum("-" not in number for number in told.versions), max(made, default=None)

    async def newest_of(self, name: str, major: str) -> Package | None:
        """The newest release of a major version, previews not counted; None where too many are told of."""
        reply = await self._upstream.get(self._url(name), headers=ABBREVIATED, accept=(404,))
        if reply.status == 404:
            return None
        try:
            told = decoded(reply, _Versions).versions
        except AnswerTooLong:
            return None
        numbers = [each.split(".") for each in told if _PLAIN.fullmatch(each)]
        ours = [list(map(int, each)) for each in numbers if each[0] == major]
        return await self.release(name, ".".join(map(str, max(ours)))) if ours else None

    async def archive(self, archive: Archive) -> bytes:
        return await fetched(self._upstream, archive)

    def _url(self, name: str, more: str = "") -> str:
        return joined(self._base, f"/{quote(name, safe='@')}{more}")

    def _package(self, reply: Reply, asked: str, body: Any) -> Package:
        title, version = called(reply, body["name"], asked), version_of(body["version"])
        return Package(
            registry="npm",
            name=asked,
            title=title,
            version=version,
            summary=cleaned(text(at(body, "description")), SUMMARY),
            repository=_repository(body),
            deprecated=_deprecated(at(body, "deprecated")),
            releases=None,
            published=None,
            archives=tuple(self._archives(at(body, "dist"), title, version)),
            typed=_typed(body),
            parts=_parts(title, body),
        )

    def _archives(self, dist: Any, name: str, version: str) -> Iterator[Archive]:
        url, digest = followed(at(dist, "tarball"), self._base + "/", ADDRESS), _digest(dist)
        if url and digest:
            # every published file stands there under its own name: the link holds for certain
            shown_at = f"{FILES}/{name}@{quoted(version)}/" if url.startswith(ADDRESS + "/") else None
            yield Archive("npm", url, *digest, None, shown_at)


def types_package(name: str) -> str:
    """Where the types of a package without any are published (github.com/DefinitelyTyped/DefinitelyTyped)."""
    return "@types/" + name.removeprefix("@").replace("/", "__")


def _digest(dist: Any) -> Digest | None:
    """The published digest; packages of before 2017 have SHA-1 alone."""
    if known := integrity(at(dist, "integrity")):
        return known
    shasum = at(dist, "shasum")
    try:
        return ("sha1", binascii.unhexlify(shasum)) if isinstance(shasum, str) else None
    except binascii.Error:
        return None


def _repository(body: Any) -> str | None:
    """Written as an address, as an object with one, or as `<owner>/<name>` for GitHub's."""
    given = at(body, "repository")
    link = at(given, "url") if isinstance(given, dict) else given
    short = _SHORT.fullmatch(link[:200]) if isinstance(link, str) else None
    return short[1] if short else repository([link, at(body, "homepage")])


def _deprecated(value: Any) -> str | None:
    """A sentence, or, on some registries, true."""
    if isinstance(value, str) and value:
        return cleaned(value, 200)
    return "deprecated" if value is True else None


def _typed(body: Any) -> bool:
    return any(at(body, member) for member in ("types", "typings")) or _names_types(at(body, "exports"), 6)


def _names_types(exports: Any, depth: int) -> bool:
    if not isinstance(exports, dict) or not depth:
        return False
    members = cast(dict[str, Any], exports)
    return "types" in members or any(_names_types(each, depth - 1) for each in members.values())


def _parts(name: str, body: Any) -> tuple[tuple[str, str], ...]:
    """The packages of its own scope that it needs, with the version: what it hands on is documented there."""
    scope = name.split("/")[0] + "/" if name.startswith("@") else f"@{name}/"
    needed: dict[str, Any] = {}
    for member in ("peerDependencies", "dependencies"):
        given = at(body, member)
        needed |= cast(Mapping[str, Any], given) if isinstance(given, dict) else {}
    found = [
        (each, wanted)
        for each, wanted in needed.items()
        if each.startswith(scope)
        and each != name
        and at(body, "peerDependenciesMeta", each, "optional") is not True
    ]
    return tuple((each, wanted if _exact(wanted) else "latest") for each, wanted in found[:MOST_PARTS])


def _exact(wanted: Any) -> bool:
    return isinstance(wanted, str) and bool(_EXACT.fullmatch(wanted))
