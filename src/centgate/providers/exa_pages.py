"""Parse Exa's contents API: `results` with the text of pages, `statuses` of those that failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from ada_url import URL

from centgate.coercion import as_list, as_number, as_text, get_path
from centgate.errors import UnreadReason
from centgate.sanitize import strip_invisible
from centgate.web.fetch.failure import classify_status
from centgate.web.fetch.url import normalize_escapes
from centgate.web.results import UNREAD_MESSAGES, UnreadPage, WebPage
from centgate.web.sanitize_markdown import sanitize_markdown
from centgate.web.search_results import (
    MAX_AUTHOR_LENGTH,
    MAX_ROWS,
    MAX_TITLE_LENGTH,
    parse_date,
    parse_line,
    parse_url,
)

_HTTP_TAG = re.compile(r"(?:CRAWL_)?HTTP_(\d{3})")
_TAG = re.compile(r"[A-Z0-9_]{1,40}")
_TIMEOUT_STATUSES = (408, 504, 524)


def parse_pages(
    urls: Sequence[str], body: Mapping[str, Any], max_characters: int
) -> dict[str, WebPage | UnreadPage]:
    """Parse the result for each URL, where one character more than `max_characters` was requested.

    A URL that is in neither list has failed. TypeError if both lists are missing.
    """
    if not isinstance(body.get("results"), list) and not isinstance(body.get("statuses"), list):
        raise TypeError("neither results nor statuses")
    statuses = _index_by_url(as_list(body.get("statuses"))[:MAX_ROWS], "id")
    texts = _match_results(urls, as_list(body.get("results"))[:MAX_ROWS], statuses)
    return {url: _parse_page(url, texts.get(url), _status_of(statuses, url), max_characters) for url in urls}


def _parse_page(url: str, row: Any, status: Any, max_characters: int) -> WebPage | UnreadPage:
    """Parse the result for one page."""
    raw = as_text(get_path(row, "text")) or ""
    markdown = sanitize_markdown(strip_invisible(raw[: max_characters + 1])).strip()
    if not markdown:
        return _parse_failure(url, status)
    return WebPage(
        url=url,
        markdown=markdown,
        length=None if _is_truncated(raw, max_characters) else len(markdown),
        title=parse_line(get_path(row, "title"), MAX_TITLE_LENGTH),
        author=parse_line(get_path(row, "author"), MAX_AUTHOR_LENGTH),
        published=parse_date(get_path(row, "publishedDate")),
        final_url=parse_url(get_path(row, "url")),
        image=parse_url(get_path(row, "image")),
    )


def _is_truncated(raw: str, max_characters: int) -> bool:
    """True if a text exceeds `max_characters`, counted in code points or, as in JavaScript, in UTF-16."""
    return (
        len(raw) > max_characters or len(raw.encode("utf-16-le", "surrogatepass")) // 2 == max_characters + 1
    )


def _parse_failure(url: str, status: Any) -> UnreadPage:
    """Return why there is no text, from the status of the URL, if any."""
    error = get_path(status, "error")
    tag = parse_tag(get_path(error, "tag")) or parse_tag(error)
    reason = _failure_reason(tag or "", as_number(get_path(error, "httpStatusCode")))
    return UnreadPage(url, reason, UNREAD_MESSAGES[reason] + (f" (Exa says {tag})" if tag else ""))


def parse_tag(value: Any) -> str | None:
    """Parse Exa's error tag, in capitals; None if it is not one."""
    return found[0] if isinstance(value, str) and (found := _TAG.fullmatch(value.strip().upper())) else None


def _failure_reason(tag: str, status: float | None) -> UnreadReason:
    """Map a tag to a reason; for unspecific tags the page's own status decides."""
    if match := _HTTP_TAG.fullmatch(tag):
        status = int(match[1])
    elif "UNSUPPORTED" in tag:
        return "unsupported"
    elif "TIMEOUT" in tag:
        return "timeout"
    if "NOT_FOUND" in tag:
        return "not_found"
    if status in _TIMEOUT_STATUSES:
        return "timeout"
    return "unsupported" if status == 415 else classify_status(status)


def _match_results(
    asked: Sequence[str], results: Iterable[Any], statuses: Mapping[str, Any]
) -> dict[str, Any]:
    """Match results to the requested URLs, by id or url.

    If exactly one URL and one result remain they belong together, unless the URL is reported as failed: a
    page that moved is listed under its new URL.
    """
    with_text = [row for row in results if isinstance(get_path(row, "text"), str)]
    by_url = _index_by_url(with_text, "id", "url")
    matched = {url: row for url in asked if (row := by_url.get(url) or by_url.get(_normalize_url(url)))}
    missing = [url for url in asked if url not in matched]
    used = {id(row) for row in matched.values()}
    unmatched = [row for row in with_text if id(row) not in used]
    if (
        len(missing) == len(unmatched) == 1
        and get_path(_status_of(statuses, missing[0]), "status") != "error"
    ):
        matched[missing[0]] = unmatched[0]
    return matched


def _status_of(statuses: Mapping[str, Any], url: str) -> Any:
    return statuses.get(url) or statuses.get(_normalize_url(url))


def _index_by_url(listed: Iterable[Any], *keys: str) -> dict[str, Any]:
    """Index rows by the URLs under these keys: exact and normalized."""
    index: dict[str, Any] = {}
    urls = [(get_path(row, key), row) for key in keys for row in listed]
    for url, row in urls:
        if isinstance(url, str):
            index.setdefault(url, row)
    for url, row in urls:
        if isinstance(url, str):
            index.setdefault(_normalize_url(url), row)
    return index


def _normalize_url(url: str) -> str:
    """Normalize what an index may change in a URL: scheme, case of the host, last slash, fragment."""
    try:
        parts = URL(url)
    except ValueError:
        return url
    return f"{parts.host}{unquote(parts.pathname).rstrip('/')}{normalize_escapes(parts.search)}"
