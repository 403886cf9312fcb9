"""Parse untrusted search results: URLs, dates and text."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime
from typing import Any, cast

from ada_url import URL

from centgate.coercion import as_clean_name, as_list
from centgate.sanitize import clean_line
from centgate.timestamps import format_timestamp
from centgate.web.fetch.url import MAX_URL_LENGTH, normalize_escapes
from centgate.web.results import Hit
from centgate.web.sitemap.urls import parse_page_url

MAX_TITLE_LENGTH = 300
"""Maximum characters of a title."""
MAX_AUTHOR_LENGTH = 200
MAX_DESCRIPTION_LENGTH = 1000
MAX_SITE_NAME_LENGTH = 100
MAX_ENGINES = 10
MAX_ROWS = 1000
"""Entries of a list that are read: far more than are ever requested."""
OPERATORS = {"github": "site:github.com", "pdf": "filetype:pdf"}
"""Search operators by category; engines may ignore an operator, so `is_of_category` checks the results."""

_PDF_HOSTS = {"arxiv.org", "www.arxiv.org", "openreview.net"}
"""Sites whose URLs under /pdf are PDF, whatever their extension."""
_PLAIN_URL = re.compile(
    r"https?://[^\x00-\x20\x7f\"<>\\^`{|}/?#]+([/?#][^\x00-\x20\x7f\"<>\\^`{|}]*)?", re.IGNORECASE
)
_HTTP_START = re.compile(r"https?://[^/\\]", re.IGNORECASE)
_DATE = re.compile(
    r"(\d{4})(?:-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_LANGUAGE = re.compile(r"[a-zA-Z]{2,3}(?:-[a-zA-Z0-9]{2,8}){0,3}")
_DATE_COMPLETIONS = {len("2000"): "-01-01", len("2000-01"): "-01"}
_OLDEST_YEAR = 1000
_EPOCH = "1970-01-01T00:00:00"
"""Placeholder that some programs use for a missing date."""


def parse_rows(value: Any) -> list[Any]:
    """Return the first thousand results. Raises TypeError if they are not a list, or contain no object."""
    if not isinstance(value, list):
        raise TypeError("results are not a list")
    results = cast(list[Any], value)[:MAX_ROWS]
    if results and not any(isinstance(each, dict) for each in results):
        raise TypeError("no result is an object")
    return results


def has_no_urls(results: Sequence[Any]) -> bool:
    """True if there are entries and none has a URL field: then their format is unknown.

    A URL that is null or invalid counts as a field; such entries are skipped elsewhere.
    """
    urls = [cast(dict[str, Any], row).get("url", 0) for row in results if isinstance(row, dict)]
    return bool(results) and not any(url is None or isinstance(url, str) for url in urls)


def parse_url(value: Any) -> str | None:
    """Parse an http or https URL with a host and without credentials; None for anything else.

    Returned as written, or as a browser would request it if two parsers could read it as two URLs.
    """
    if not isinstance(value, str) or len(value) > MAX_URL_LENGTH:
        return None
    text = value.strip()
    try:
        url = URL(text) if _HTTP_START.match(text) else None
    except ValueError:
        return None
    if url is None or url.username or url.password:
        return None
    if text.isascii() and _PLAIN_URL.fullmatch(text):
        return text
    return url.href if len(url.href) <= MAX_URL_LENGTH else None


def parse_date(value: Any) -> str | None:
    """Parse a full or partial date in ISO 8601, as precise as it was written, and in UTC if it has an offset;
    None if invalid.
    """
    text = value.strip() if isinstance(value, str) else ""
    parts = _DATE.fullmatch(text)
    if not parts or int(parts[1]) < _OLDEST_YEAR:
        return None
    date = text.upper().replace(" ", "T")
    try:
        moment = datetime.fromisoformat(date + _DATE_COMPLETIONS.get(len(date), ""))
        if moment.tzinfo and not date.endswith("Z"):
            date = format_timestamp(moment)
    except (ValueError, OverflowError):
        return None
    return None if date.startswith(_EPOCH) else date


def parse_line(value: Any, length: int) -> str | None:
    """Clean a text to one line of at most `length` characters; None if nothing is left."""
    return clean_line(value, length) if isinstance(value, str) else None


def parse_language(value: Any) -> str | None:
    """Parse a language tag of BCP 47; None if the text is not a language tag."""
    tag = value.strip().replace("_", "-") if isinstance(value, str) else ""
    return tag if _LANGUAGE.fullmatch(tag) else None


def parse_engines(value: Any) -> tuple[str, ...]:
    """Parse the names of search engines; at most `MAX_ENGINES`, each once."""
    names = [name for each in as_list(value)[:MAX_ROWS] if (name := as_clean_name(each))]
    return tuple(dict.fromkeys(names))[:MAX_ENGINES]


def add_operator(query: str, category: str | None) -> str:
    """Add the search operator of a category to a query, if there is one."""
    return f"{query} {OPERATORS[category]}" if category in OPERATORS else query


def is_of_category(url: str, category: str | None) -> bool:
    """True if a URL belongs to a category, or the category has no operator."""
    parts = URL(url)
    host, path = parts.hostname, parts.pathname.lower()
    if category == "github":
        return f".{host}".endswith(".github.com")
    if category == "pdf":
        return path.endswith(".pdf") or (host in _PDF_HOSTS and path.startswith("/pdf"))
    return True


def omission_warning(
    label: str, hits: Sequence[Hit], kept: Sequence[Hit], category: str | None
) -> str | None:
    """Return the warning that results of other categories were omitted; None if all were kept."""
    if len(kept) == len(hits):
        return None
    omitted = f"{len(hits) - len(kept)} of {len(hits)} results"
    return f"{label}: {omitted} are not of the category '{category}' and are left out"


def distinct_hits(hits: Iterable[Hit], limit: int) -> tuple[Hit, ...]:
    """Return the first `limit` hits of different pages."""
    first: dict[Hashable, Hit] = {}
    for hit in hits:
        first.setdefault(_page_key(hit.url), hit)
        if len(first) == limit:
            break
    return tuple(first.values())


def _page_key(url: str) -> Hashable:
    """Return the key of a page, which engines name with and without `www.`, tracking or a place in it."""
    page, fragment = parse_page_url(url), URL(url).hash
    route = fragment if fragment.startswith(("#/", "#!")) else ""
    return page.key if page and not route else normalize_escapes(URL(url).href)
