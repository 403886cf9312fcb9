"""Reading what Exa tells of pages it was asked for: `results` with their text, `statuses` of what failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from ada_url import URL

from centgate.facts.foreign_markdown import harmless
from centgate.facts.hits import AUTHOR, MOST_ROWS, TITLE, address, line, published
from centgate.facts.web import Page, Unread, UnreadReason
from centgate.readings import at, items, number, text
from centgate.text import legible

_HTTP = re.compile(r"(?:CRAWL_)?HTTP_(\d{3})")
_TAG = re.compile(r"[A-Z0-9_]{1,40}")
_GONE, _CLOSED, _LATE = (404, 410), (401, 402, 403, 407, 429, 451), (408, 504, 524)
_SENTENCES: Mapping[UnreadReason, str] = {
    "not_found": "there is no such page",
    "blocked": "the site refuses to hand out the page",
    "timeout": "the page took too long",
    "unsupported": "there is nothing that can be read as text",
    "failed": "the page could not be read",
}


def read_pages(asked: Sequence[str], body: Mapping[str, Any], most: int) -> dict[str, Page | Unread]:
    """What came of each address, where one character more than `most` was asked for.

    An address that is in neither list has failed. TypeError where there is neither list.
    """
    if not isinstance(body.get("results"), list) and not isinstance(body.get("statuses"), list):
        raise TypeError("neither results nor statuses")
    statuses = _by_address(items(body.get("statuses"))[:MOST_ROWS], "id")
    texts = _matched(asked, items(body.get("results"))[:MOST_ROWS], statuses)
    return {url: _page(url, texts.get(url), _status(statuses, url), most) for url in asked}


def _page(url: str, row: Any, status: Any, most: int) -> Page | Unread:
    """What came of reading one page."""
    raw = text(at(row, "text")) or ""
    markdown = harmless(legible(raw[: most + 1])).strip()
    if not markdown:
        return _unread(url, status)
    return Page(
        url=url,
        markdown=markdown,
        length=None if _cut(raw, most) else len(markdown),
        title=line(at(row, "title"), TITLE),
        author=line(at(row, "author"), AUTHOR),
        published=published(at(row, "publishedDate")),
        final_url=address(at(row, "url")),
    )


def _cut(raw: str, most: int) -> bool:
    """Whether a text has more than `most` characters, counted as such or, as JavaScript does, in UTF-16."""
    return len(raw) > most or len(raw.encode("utf-16-le", "surrogatepass")) // 2 == most + 1


def _unread(url: str, status: Any) -> Unread:
    """Why there is no text, by what was said of the address, if anything was."""
    error = at(status, "error")
    tag = word(at(error, "tag")) or word(error)
    reason = _reason(tag or "", number(at(error, "httpStatusCode")))
    return Unread(url, reason, _SENTENCES[reason] + (f" (Exa says {tag})" if tag else ""))


def word(said: Any) -> str | None:
    """Exa's own word for an error (`tag`), in capitals."""
    return found[0] if isinstance(said, str) and (found := _TAG.fullmatch(said.strip().upper())) else None


def _reason(tag: str, status: float | None) -> UnreadReason:
    """Our word for a tag; where it says little, the page's own status decides."""
    if named := _HTTP.fullmatch(tag):
        status = int(named[1])
    elif "UNSUPPORTED" in tag:
        return "unsupported"
    elif "TIMEOUT" in tag:
        return "timeout"
    if "NOT_FOUND" in tag or status in _GONE:
        return "not_found"
    if status in _CLOSED:
        return "blocked"
    if status in _LATE:
        return "timeout"
    return "unsupported" if status == 415 else "failed"


def _matched(asked: Sequence[str], results: Iterable[Any], statuses: Mapping[str, Any]) -> dict[str, Any]:
    """The result for each address asked, by its id or its url.

    When one address and one result are left over they belong together, unless the address is said to have
    failed: a page that moved is listed under where it went.
    """
    listed = [row for row in results if isinstance(at(row, "text"), str)]
    known = _by_address(listed, "id", "url")
    matched = {url: row for url in asked if (row := known.get(url) or known.get(_plain(url)))}
    missing = [url for url in asked if url not in matched]
    taken = {id(row) for row in matched.values()}
    spare = [row for row in listed if id(row) not in taken]
    if len(missing) == len(spare) == 1 and at(_status(statuses, missing[0]), "status") != "error":
        matched[missing[0]] = spare[0]
    return matched


def _status(statuses: Mapping[str, Any], url: str) -> Any:
    return statuses.get(url) or statuses.get(_plain(url))


def _by_address(listed: Iterable[Any], *keys: str) -> dict[str, Any]:
    """Rows by the addresses under these keys: as they stand, and plain."""
    found: dict[str, Any] = {}
    named = [(at(row, key), row) for key in keys for row in listed]
    for url, row in named:
        if isinstance(url, str):
            found.setdefault(url, row)
    for url, row in named:
        if isinstance(url, str):
            found.setdefault(_plain(url), row)
    return found


def _plain(url: str) -> str:
    """An address without what an index may have changed: scheme, case of the host, last slash, fragment."""
    try:
        parts = URL(url)
    except ValueError:
        return url
    return f"{parts.host}{unquote(parts.pathname).rstrip('/')}{parts.search}"
