"""Times of the last change of each page, for the sitemap."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from xml.sax.saxutils import unescape

from msgspec import Struct

from centgate.timestamps import format_timestamp
from centgate.website.file import SiteFile
from centgate.website.page import SitePage

_SHOWN_TIME = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
_SITEMAP_ENTRY = re.compile(r"<loc>([^<]*)</loc><lastmod>([^<]*)</lastmod>")


class PageVersion(Struct, frozen=True):
    """Text of a page without the times it shows, and the time since which it is unchanged."""

    text: bytes
    changed_at: str
    """W3C date and time in UTC, as sitemaps have it."""


def date_pages(
    pages: Iterable[SitePage],
    files: Mapping[str, SiteFile],
    now: datetime,
    earlier: Mapping[str, PageVersion],
) -> dict[str, PageVersion]:
    """Return the version of each page by its path: the earlier one if its text is the same."""
    versions: dict[str, PageVersion] = {}
    for page in pages:
        text, known = _drop_times(files[page.markdown_path].content), earlier.get(page.path)
        version = PageVersion(text, format_timestamp(now))
        versions[page.path] = known if known and known.text == text else version
    return versions


def read_versions(folder: Path, site: str) -> dict[str, PageVersion]:
    """Return the versions that a static build left in a folder, by path, as far as they are readable."""
    try:
        sitemap = (folder / "sitemap.xml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    versions: dict[str, PageVersion] = {}
    for address, time in _SITEMAP_ENTRY.findall(sitemap):
        path = unescape(address).removeprefix(site)
        markdown = folder / ("index.md" if path == "/" else f"{path[1:]}.md")
        with suppress(OSError):
            versions[path] = PageVersion(_drop_times(markdown.read_bytes()), time)
    return versions


def _drop_times(markdown: bytes) -> bytes:
    return _SHOWN_TIME.sub(b"", markdown)
