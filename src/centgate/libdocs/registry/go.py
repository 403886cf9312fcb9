"""Client for Go's module proxy and checksum database (go.dev/ref/mod); links lead to pkg.go.dev.

Written from the documentation of their bodies; not tried live.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias
from urllib.parse import quote

from centgate.coercion import as_text, get_path, parse_iso_time
from centgate.libdocs.registry.packages import Archive, Package
from centgate.libdocs.registry.parsing import (
    find_repository,
    find_version,
    is_on_github,
    parse_short_version,
    parse_version,
    stable_version_key,
)
from centgate.sanitize import clean_line
from centgate.upstream import Upstream, UpstreamResponse, join_url

BASE_URL = "https://proxy.golang.org"
SUMS_URL = "https://sum.golang.org"
PAGES_URL = "https://pkg.go.dev"
MAX_REASON = 200
MISSING_STATUSES = (404, 410)
"""Statuses by which a proxy says that it has no such module or version."""
MAX_VERSIONS = 5_000
MAX_MODULE_FILE = 64_000
"""Characters of a go.mod that are read; its module line is among the first ones."""
MAX_PREAMBLE = 4_000
MAX_RETRACTIONS = 300
_DEPRECATED = re.compile(
    r"^//[ \t]*Deprecated:[ \t]*(?P<above>[^\n]+)\n(?://[^\n]*\n)*module[ \t]|"
    r"^module[ \t][^\n]*//[ \t]*Deprecated:[ \t]*(?P<beside>[^\n]+)",
    re.MULTILINE,
)
_RETRACT = re.compile(r"^retract[ \t]*(?:\((?P<block>[^()]{0,8000})\)|(?P<one>[^\n(]+))", re.MULTILINE)
_RANGE = re.compile(
    r"\[[ \t]*(?P<low>v[^\s,\]]+)[ \t]*,[ \t]*(?P<high>v[^\s\]]+)[ \t]*\]|(?P<one>v[^\s,\]]+)"
)
_VERSION = re.compile(r"v[0-9][0-9A-Za-z.+-]*")
_COMMENT = re.compile(r"//[^\n]*")
_SEMVER = re.compile(
    r"v(?P<numbers>[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9})(?:-(?P<pre_release>[0-9A-Za-z.-]{1,100}))?(?:\+.*)?"
)
Key: TypeAlias = tuple[int, int, int, tuple[tuple[int, int, str], ...]]


class GoRegistry:
    """Client for a module proxy."""

    def __init__(self, upstream: Upstream, address: str | None = None, sums: str | None = None) -> None:
        self.upstream, self._base, self._sums = upstream, address or BASE_URL, sums or SUMS_URL

    async def fetch_latest(self, name: str) -> Package | None:
        """Return the newest stable release that is not retracted, as the go command selects it."""
        versions = await self._list_versions(name)
        if versions is None:
            return None
        newest = _find_newest(versions)
        if newest is None:  # a module without tagged releases has only the proxy's own choice
            return await self._fetch(name, "latest", versions)
        module_file = await self._fetch_module_file(name, newest)
        usable = _leave_out_retracted(versions, module_file)
        return await self._fetch(name, _find_newest(usable) or newest, versions, module_file)

    async def fetch_release(self, name: str, version: str) -> Package | None:
        """Return a release by its version, with or without its `v`, or the newest of a short one.

        Returns None if it does not exist.
        """
        versions = await self._list_versions(name)
        if versions is None:
            return None
        usable: list[str] = []
        if parse_short_version(version) and (newest := _find_newest(versions)):
            usable = _leave_out_retracted(versions, await self._fetch_module_file(name, newest))
        published = find_version(version, dict.fromkeys(versions), usable) or version
        # a proxy resolves the names of branches too
        return await self._fetch(name, published, versions) if _VERSION.fullmatch(published) else None

    async def has_module_file(self, package: Package) -> bool:
        """True if the repository of a release has a go.mod.

        A proxy serves any repository. For one without, it writes a file of the directive `module` alone
        (`LegacyGoMod` in cmd/go/internal/modfetch/coderepo.go).
        """
        return len(_COMMENT.sub("", await self._fetch_module_file(package.name, package.version)).split()) > 2

    async def _list_versions(self, name: str) -> list[str] | None:
        """Return the tagged versions in the proxy's order, which is none; None for an unknown module."""
        reply = await self._get(name, "list")
        return None if reply is None else list(map(parse_version, _decode(reply).split()[:MAX_VERSIONS]))

    async def _fetch(
        self, name: str, version: str, versions: Sequence[str], module_file: str | None = None
    ) -> Package | None:
        reply = await self._get(name, "latest" if version == "latest" else f"{version}.info")
        if reply is None:
            return None
        info = reply.parse_json()
        number = parse_version(info["Version"])
        if version not in ("latest", number):
            return None
        if module_file is None:
            module_file = await self._fetch_module_file(name, number)
        digest = await self._fetch_digest(name, number)
        links = [f"https://{name}", as_text(get_path(info, "Origin", "URL"))]
        return Package(
            registry="go",
            name=name,
            title=name,
            version=number,
            summary=None,
            repository=find_repository(links),
            is_on_github=is_on_github(links),
            deprecated=_deprecation_reason(number, module_file),
            releases=len(versions),
            published=parse_iso_time(get_path(info, "Time")),
            archives=tuple(self._make_archives(name, number, digest)),
        )

    async def _fetch_module_file(self, name: str, version: str) -> str:
        """Return the go.mod of a release; the one of the newest retracts and deprecates."""
        reply = await self._get(name, f"{version}.mod")
        return "" if reply is None else _decode(reply)[:MAX_MODULE_FILE]

    async def _fetch_digest(self, name: str, version: str) -> bytes | None:
        """Return the hash of a release in the checksum database; None if it has none."""
        path = f"/lookup/{escape(name)}@{escape(version)}"
        reply = await self.upstream.get(join_url(self._sums, path), accept=MISSING_STATUSES)
        return None if reply.status in MISSING_STATUSES else find_digest(_decode(reply), name, version)

    def _make_archives(self, name: str, version: str, digest: bytes | None) -> Iterator[Archive]:
        if digest is None:
            return
        is_official = self._base == BASE_URL
        page = f"{PAGES_URL}/{quote(name)}@{quote(version, safe='+')}" if is_official else None
        yield Archive("go", self._url(name, f"{version}.zip"), "h1", digest, None, page)

    async def _get(self, name: str, file: str) -> UpstreamResponse | None:
        reply = await self.upstream.get(self._url(name, file), accept=MISSING_STATUSES)
        return None if reply.status in MISSING_STATUSES else reply

    def _url(self, name: str, file: str) -> str:
        path = f"/@{file}" if file == "latest" else f"/@v/{escape(file)}"
        return join_url(self._base, f"/{escape(name)}{path}")


def escape(text: str) -> str:
    """Return a module path or a version as a proxy's URLs have it: `!b` for `B`."""
    return quote(re.sub(r"[A-Z]", lambda letter: f"!{letter[0].lower()}", text), safe="/!+")


def find_digest(lines: str, name: str, version: str) -> bytes | None:
    """Return the hash of a module's files among lines of a go.sum; None if it is not there."""
    for line in lines.splitlines():
        match line.split():
            case [module, number, written] if (module, number) == (name, version):
                return _decode_digest(written)
            case _:
                continue
    return None


def parse_retractions(module_file: str) -> list[tuple[Key, Key]]:
    """Return the first and the last version of each range that a go.mod withdraws."""
    ranges: list[tuple[Key, Key]] = []
    # comments may have brackets
    for directive in _RETRACT.finditer(_COMMENT.sub("", module_file)):
        for each in _RANGE.finditer(directive["block"] or directive["one"]):
            low, high = (_precedence_key(each[end] or each["one"]) for end in ("low", "high"))
            if low and high and len(ranges) < MAX_RETRACTIONS:
                ranges.append((low, high))
    return ranges


def _leave_out_retracted(versions: Sequence[str], module_file: str) -> list[str]:
    retractions = parse_retractions(module_file)
    return [each for each in versions if not _is_within(each, retractions)]


def _is_within(version: str, ranges: Sequence[tuple[Key, Key]]) -> bool:
    key = _precedence_key(version)
    return key is not None and any(low <= key <= high for low, high in ranges)


def _precedence_key(version: str) -> Key | None:
    """Return the sort key of a release or a pre-release (semver.org, 11); None for other notations."""
    found = _SEMVER.fullmatch(version)
    if found is None:
        return None
    major, minor, patch = map(int, found["numbers"].split("."))
    if found["pre_release"] is None:
        return (major, minor, patch, ((2, 0, ""),))  # above its pre-releases
    identifiers = found["pre_release"].split(".")
    return (
        major,
        minor,
        patch,
        tuple((0, int(each), "") if each.isdigit() else (1, 0, each) for each in identifiers),
    )


def _deprecation_reason(version: str, module_file: str) -> str | None:
    if _is_within(version, parse_retractions(module_file)):
        return "retracted"
    found = _DEPRECATED.search(module_file[:MAX_PREAMBLE])
    return clean_line(found["above"] or found["beside"], MAX_REASON) if found else None


def _find_newest(versions: Sequence[str]) -> str | None:
    """Return the newest stable version; one that is marked incompatible only without any other."""
    for candidates in (versions, [each.removesuffix("+incompatible") for each in versions]):
        stable = {key: version for version in candidates if (key := stable_version_key(version))}
        if stable:
            newest = stable[max(stable)]
            return newest if newest in versions else f"{newest}+incompatible"
    keys = {version: key for version in versions if (key := _precedence_key(version))}
    return max(keys, key=keys.__getitem__, default=None)


def _decode(reply: UpstreamResponse) -> str:
    return reply.body.decode("utf-8", "replace")


def _decode_digest(written: str) -> bytes | None:
    """Decode a hash as go.sum writes it, `h1:` and the SHA-256 of a list of files."""
    algorithm, _, encoded = written.partition(":")
    try:
        digest = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return None
    return digest if algorithm == "h1" and len(digest) == 32 else None
