"""Client for crates.io's registry of Rust packages (crates.io/data-access, "API"); links lead to docs.rs.

Written from the documentation of its bodies; not tried live.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from centgate.coercion import as_count, as_list, as_text, get_path, parse_iso_time
from centgate.libdocs.registry.packages import Archive, Package
from centgate.libdocs.registry.parsing import (
    MAX_SUMMARY,
    find_repository,
    find_sites,
    find_version,
    is_on_github,
    parse_package_name,
    parse_version,
    quote_version,
    stable_version_key,
    without_build,
)
from centgate.sanitize import clean_line
from centgate.upstream import Upstream, UpstreamResponse, join_url

BASE_URL = "https://crates.io"
FILES_URL = "https://static.crates.io"
SOURCE_URL = "https://docs.rs/crate"


class CratesRegistry:
    """Client for crates.io."""

    def __init__(self, upstream: Upstream, address: str | None = None) -> None:
        self.upstream, self._base = upstream, address or BASE_URL

    async def fetch_latest(self, name: str) -> Package | None:
        """Return the newest stable release, or the newest one of a crate with pre-releases alone."""
        return await self._fetch(name, None)

    async def fetch_release(self, name: str, version: str) -> Package | None:
        """Return a release by its version, the newest of a short one; None if it does not exist."""
        return await self._fetch(name, version)

    async def _fetch(self, name: str, version: str | None) -> Package | None:
        url = join_url(self._base, f"/api/v1/crates/{quote(name)}")
        reply = await self.upstream.get(url, accept=(404,))
        if reply.status == 404:
            return None
        body = reply.parse_json()
        releases = {parse_version(row["num"]): row for row in as_list(body["versions"])}
        usable = [number for number, row in releases.items() if get_path(row, "yanked") is not True]
        number = find_version(version, releases, usable) if version else _find_newest(releases, usable)
        return self._parse_package(reply, name, body, releases, number) if number else None

    def _parse_package(
        self,
        reply: UpstreamResponse,
        requested_name: str,
        body: Any,
        releases: dict[str, Any],
        number: str,
    ) -> Package:
        crate, release = body["crate"], releases[number]
        title = parse_package_name(reply, crate["name"], requested_name)
        links = [get_path(crate, key) for key in ("documentation", "homepage", "repository")]
        return Package(
            registry="crates",
            name=requested_name,
            title=title,
            version=number,
            summary=clean_line(as_text(get_path(crate, "description")), MAX_SUMMARY),
            repository=find_repository(links[::-1]),
            is_on_github=is_on_github(links[::-1]),
            deprecated="yanked" if get_path(release, "yanked") is True else None,
            releases=len(releases),
            published=parse_iso_time(get_path(release, "created_at")),
            archives=tuple(self._parse_archives(release, title, number)),
            sites=find_sites(links[:2]),
            downloads=as_count(get_path(crate, "downloads")),
        )

    def _parse_archives(self, release: Any, name: str, version: str) -> Iterator[Archive]:
        checksum = get_path(release, "checksum")
        if not isinstance(checksum, str):
            return
        is_official = self._base == BASE_URL
        host = FILES_URL if is_official else self._base
        url = join_url(host, f"/crates/{quote(name)}/{quote(name)}-{quote_version(version)}.crate")
        shown_at = f"{SOURCE_URL}/{quote(name)}/{quote_version(version)}/source/" if is_official else None
        size = as_count(get_path(release, "crate_size"))
        yield Archive("crate", url, "sha256", bytes.fromhex(checksum), size, shown_at)


def _find_newest(releases: Iterable[str], usable: Sequence[str]) -> str | None:
    """Return the newest stable version that is not yanked; else the first listed, which is the newest."""
    stable = {key: number for number in usable if (key := stable_version_key(without_build(number)))}
    return stable[max(stable)] if stable else next(iter([*usable, *releases]), None)
