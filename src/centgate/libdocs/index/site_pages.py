"""Pages of a library's documentation site, found by its llms-full.txt or llms.txt (llmstxt.org).

A site without either is read by its sitemap and the links of its first page. Sites are named by the metadata
of packages, so they are strangers': they are fetched by the safe fetcher under their robots.txt, and their
text is split where packages are parsed.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Protocol
from urllib.parse import urljoin, urlsplit
from uuid import uuid4

import msgspec
from msgspec import Struct

from centgate.errors import UnreadReason
from centgate.libdocs.archive.file_selection import document_kind
from centgate.libdocs.index.index_file import SITE_FOLDER
from centgate.libdocs.index.store import UNFINISHED_SUFFIX
from centgate.libdocs.parse.documents import PackageDocument
from centgate.sandbox import TaskFailed
from centgate.web.fetch.failure import FetchFailed
from centgate.web.fetch.fetcher import Fetcher
from centgate.web.fetch.url import join_url
from centgate.web.sitemap.robots import Robots, check_redirects

SITE_SECONDS = 6.0
"""Seconds for a documentation site, while the package is downloaded; what came until then is used."""
MAX_SITES = 2
MAX_PAGES = 40
"""Maximum number of pages read of an llms.txt."""
MAX_LINKS = 1000
"""Links of an llms.txt that are looked at: that is done in the server process."""
MAX_PARTS = 4000
"""Maximum number of parts that the text of a site is split into."""
MAX_FULL_BYTES = 4 << 20
MAX_PAGE_BYTES = 500_000
CONCURRENT_PAGES = 2
_DOCUMENTATION = re.compile(
    r"/(?:api|docs?|documentation|examples?|getting[-_]started|guides?|howto|learn|manual|quick[-_]?start|recipes|reference"
    r"|tutorials?|usage)\b"
)
_NO_DOCUMENTATION = re.compile(
    r"/(?:about|authors?|blog|careers?|categories|category|changelog|changes|community|contact|genindex|imprint|jobs|legal"
    r"|login|news|posts?|pricing|privacy|py-modindex|releases?|search|shop|showcase|sponsors?|tags?|team|terms|_modules"
    r"|_sources|versioned[-_]\w+|v?\d+(?:\.(?:\d+|x))+)(?:[/.]|$)"
)
"""Parts of paths of pages without documentation, and of that of other versions."""
_PASSING_REASONS: tuple[UnreadReason, ...] = ("timeout", "unreachable")
"""Failures that may have passed when a site is read again."""
_TEXT_TYPES = ("text/plain", "text/markdown", "text/x-markdown", "application/octet-stream")
_LINK = re.compile(r"\]\(([^()\s]{1,500})\)")
_OPTIONAL = re.compile(r"^##[ \t]+Optional[ \t]*$", re.MULTILINE | re.IGNORECASE)
_SOURCE = re.compile(r"(?:source|url)[ \t]*:[ \t]*<?(https?://[^\s<>]{1,500})>?[ \t]*", re.IGNORECASE)
_HEADING = re.compile(r"#[ \t]+(\S.{0,200})")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_PAGE_FILE = re.compile(r"\.(?:mdx?|markdown|txt)$", re.IGNORECASE)


class SitePage(Struct, frozen=True):
    """Text of one page, or of a whole site, not sanitised."""

    url: str
    text: str


class SiteText(Struct, frozen=True):
    """Pages that were read of a library's site."""

    pages: Sequence[SitePage] = ()
    is_cut: bool = False
    """True if the site did not answer, or not all of it in time: a later reading may find more."""


class SitePageReader(Protocol):
    """Reader of a site's HTML pages."""

    async def find_pages(self, url: str) -> list[str]:
        """Return the pages that a site names, the nearest to a page first; empty if it cannot be read."""
        ...

    async def read_page(self, url: str) -> SitePage | None:
        """Return the main content of a page as Markdown; None if it cannot be read."""
        ...


class SiteReader:
    """Reads documentation sites."""

    def __init__(self, fetcher: Fetcher, robots: Robots, pages: SitePageReader) -> None:
        self._fetcher, self._robots, self._pages = fetcher, robots, pages
        self._has_failed = False

    async def read_sites(self, urls: Sequence[str], seconds: float | None = None) -> SiteText:
        """Return the pages of the first site that has any, read in `seconds` or in `SITE_SECONDS`."""
        pages: list[SitePage] = []
        if not urls:
            return SiteText()
        self._has_failed = False
        try:
            async with asyncio.timeout(SITE_SECONDS if seconds is None else seconds):
                for url in urls[:MAX_SITES]:
                    await self._read_site(url, pages)
                    if pages:
                        return SiteText(pages)
                await self._read_html(urls[0], pages)
        except TimeoutError:
            return SiteText(pages, is_cut=True)  # the pages until then are used
        return SiteText(pages, is_cut=self._has_failed and not pages)

    async def _read_site(self, url: str, pages: list[SitePage]) -> None:
        # the root of a host with a site below it may be another site
        base = _find_folder(url)
        if full := await self._fetch_text(f"{base}llms-full.txt", MAX_FULL_BYTES):
            pages.append(full)
        elif contents := await self._fetch_text(f"{base}llms.txt", MAX_PAGE_BYTES):
            await self._read_linked(find_page_links(contents), pages)

    async def _read_linked(self, urls: Iterable[str], pages: list[SitePage]) -> None:
        for url in urls:
            if page := await self._fetch_text(url, MAX_PAGE_BYTES):
                pages.append(page)  # noqa: PERF401 - what came before a timeout is used

    async def _read_html(self, url: str, pages: list[SitePage]) -> None:
        """Read the pages that a site names, documentation first, at the pace that it asks for."""
        found = select_documentation(await self._pages.find_pages(url))
        pause = await self._robots.crawl_delay(url)
        step = 1 if pause else CONCURRENT_PAGES
        for start in range(0, len(found), step):
            if start and pause:
                await asyncio.sleep(pause)
            read = await asyncio.gather(*map(self._pages.read_page, found[start : start + step]))
            pages += filter(None, read)

    async def _fetch_text(self, url: str, max_bytes: int) -> SitePage | None:
        """Return a text of a site; None if there is none, or if robots.txt does not allow it."""
        try:
            await self._robots.require_allowed(url)
            found = await self._fetcher.fetch(
                url,
                timeout=SITE_SECONDS,
                max_bytes=max_bytes,
                media_types=_TEXT_TYPES,
                check_redirect=check_redirects(url, self._robots.require_allowed),
            )
        except FetchFailed as failure:
            self._has_failed |= failure.reason in _PASSING_REASONS
            return None
        except TaskFailed:
            return None
        self._has_failed |= found.status == 429 or found.status >= 500
        if found.status != 200 or urlsplit(found.url).netloc != urlsplit(url).netloc:
            return None
        text = found.body.decode("utf-8", "replace").strip()
        return None if not text or text.startswith("<") else SitePage(found.url, text)


def _find_folder(url: str) -> str:
    """Return the folder of a site by the URL of its first page."""
    return urljoin(url, ".") if urlsplit(url).path.endswith((".html", ".htm")) else url.rstrip("/") + "/"


def select_documentation(urls: Iterable[str]) -> list[str]:
    """Return the pages to read of a site: without news, shops and the like, documentation first."""
    paths = {url: urlsplit(url).path.lower() for url in urls}
    useful = [url for url, path in paths.items() if not _NO_DOCUMENTATION.search(path)]
    useful.sort(key=lambda url: _DOCUMENTATION.search(paths[url]) is None)
    return (useful or list(paths))[:MAX_PAGES]


@asynccontextmanager
async def store_pages(pages: Sequence[SitePage], beside: Path) -> AsyncGenerator[Path]:
    """Store pages in a temporary file, because megabytes would block the pipe to another process."""
    file = beside.with_name(f"{uuid4().hex}{UNFINISHED_SUFFIX}")
    content = msgspec.json.encode([(page.url, page.text) for page in pages])
    try:
        await asyncio.to_thread(file.write_bytes, content)
        yield file
    finally:
        file.unlink(missing_ok=True)


def load_pages(file: Path) -> list[SitePage]:
    """Return the pages in such a file."""
    return [SitePage(*page) for page in msgspec.json.decode(file.read_bytes(), type=list[tuple[str, str]])]


def find_page_links(contents: SitePage) -> list[str]:
    """Return the Markdown pages of its own host that an llms.txt lists, without its optional section."""
    listed = _OPTIONAL.split(contents.text)[0]
    pages: dict[str, None] = {}
    for link in islice(_LINK.finditer(listed), MAX_LINKS):
        url = _join_own(link[1], contents.url)
        path = urlsplit(url or "").path
        if url and _PAGE_FILE.search(path) and not path.endswith("llms-full.txt"):
            pages[url] = None
    return list(pages)[:MAX_PAGES]


def _join_own(url: str, site_url: str) -> str | None:
    """Resolve a URL of a site's text, without its fragment; None if it is invalid, or of another host."""
    joined = join_url(site_url, url.partition("#")[0])
    return joined if joined and urlsplit(joined).netloc == urlsplit(site_url).netloc else None


def split_site(pages: Iterable[SitePage]) -> list[PackageDocument]:
    """Return the pages of a site as documents; a text with several top headings is several pages.

    Pages that are no documentation by their path, such as release notes, are left out, and so are copies.
    """
    documents: dict[str, PackageDocument] = {}
    numbers = Counter[str]()
    parts = ((page.url, *part) for page in pages for part in _iter_titled(page.text))
    for page_url, title, text in islice(parts, MAX_PARTS):
        url = _find_source(text, page_url)
        path = f"{SITE_FOLDER}{_page_path(url if url != page_url else None, title, page_url)}"
        if document_kind(f"{path}.md", "npm") and text.strip() and text not in documents:
            numbered = _number_path(path, numbers)
            documents[text] = PackageDocument(f"{numbered}.md", text, "markdown", url)
    return list(documents.values())


def _number_path(path: str, numbers: Counter[str]) -> str:
    """Return a path that no other page has: many pages of a site can have one title, such as "Overview"."""
    numbered = path
    while numbers[numbered]:
        numbers[path] += 1
        numbered = f"{path}-{numbers[path]}"
    numbers[numbered] += 1
    return numbered


def _iter_titled(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield each part below a top heading, with its title; fenced code has no headings."""
    title: str | None = None
    lines: list[str] = []
    mark = ""
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if fence and (not mark or fence[1].startswith(mark)):
            mark = "" if mark else fence[1]
        heading = None if mark else _HEADING.fullmatch(line)
        if heading:
            yield title, "\n".join(lines)
            title, lines = heading[1].strip(), []
        lines.append(line)
    yield title, "\n".join(lines)


def _find_source(text: str, site_url: str) -> str:
    """Return the URL that a page names for itself, if it is of the same host; else the URL it was read at."""
    for line in text.split("\n", 6)[:6]:
        source = _SOURCE.fullmatch(line.strip())
        if source and (url := _join_own(source[1], site_url)):
            return url
    return site_url


def _page_path(url: str | None, title: str | None, site_url: str) -> str:
    path = urlsplit(url or "").path.strip("/") or title or urlsplit(site_url).path.strip("/")
    words = re.sub(r"[^\w/.-]+", "-", _PAGE_FILE.sub("", path).lower()).strip("-/.")
    return words[:200] or "index"
