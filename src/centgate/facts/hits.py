"""Reading what search engines list: addresses, dates and words that strangers wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, cast

from ada_url import URL

from centgate.facts.web import Hit
from centgate.text import cleaned

TITLE = 300
"""Characters that are left of a title."""
AUTHOR = 200
DESCRIPTION = 1000
LONGEST_URL = 2048
MOST_ROWS = 1000
"""Entries of a list that are looked at: many more than are ever asked for."""
OPERATORS = {"github": "site:github.com", "pdf": "filetype:pdf"}
"""Kinds of pages that the operators of web search narrow a query to; engines may pass over an operator, so
`of_kind` looks at what came.
"""

_PDF_HOSTS = {"arxiv.org", "www.arxiv.org", "openreview.net"}
"""Sites whose addresses under /pdf are PDF, whatever they end in."""
_PLAIN = re.compile(
    r"https?://[^\x00-\x20\x7f\"<>\\^`{|}/?#]+([/?#][^\x00-\x20\x7f\"<>\\^`{|}]*)?", re.IGNORECASE
)
_WEB = re.compile(r"https?://[^/\\]", re.IGNORECASE)
_DATE = re.compile(
    r"(\d{4})(?:-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_REST = {len("2000"): "-01-01", len("2000-01"): "-01"}
_OLDEST_YEAR = 1000
_ZERO = "1970-01-01T00:00:00"
"""What a missing date becomes on its way through some programs."""


def rows(value: Any) -> list[Any]:
    """What an engine lists, the first thousand. TypeError for no list, or one without any object."""
    if not isinstance(value, list):
        raise TypeError("results are no list")
    listed = cast(list[Any], value)[:MOST_ROWS]
    if listed and not any(isinstance(each, dict) for each in listed):
        raise TypeError("no result is an object")
    return listed


def unaddressed(listed: Sequence[Any]) -> bool:
    """Whether there are entries and none has a place for an address: then they are in another shape.

    An address that is null, or that cannot be opened, is one that is passed over.
    """
    places = [cast(dict[str, Any], row).get("url", 0) for row in listed if isinstance(row, dict)]
    return bool(listed) and not any(place is None or isinstance(place, str) for place in places)


def address(value: Any) -> str | None:
    """An http or https URL with a host and without credentials; None for anything else.

    As it was written, or, where two readers could take that for two addresses, as a browser would ask for it.
    """
    if not isinstance(value, str) or len(value) > LONGEST_URL:
        return None
    written = value.strip()
    try:
        url = URL(written) if _WEB.match(written) else None
    except ValueError:
        return None
    if url is None or url.username or url.password:
        return None
    if written.isascii() and _PLAIN.fullmatch(written):
        return written
    return url.href if len(url.href) <= LONGEST_URL else None


def published(value: Any) -> str | None:
    """A date, or a part of one, in ISO 8601 as exactly as it was given; None for what is none."""
    stated = value.strip() if isinstance(value, str) else ""
    parts = _DATE.fullmatch(stated)
    if not parts or int(parts[1]) < _OLDEST_YEAR:
        return None
    date = stated.upper().replace(" ", "T")
    try:
        datetime.fromisoformat(date + _REST.get(len(date), ""))
    except ValueError:
        return None
    return None if date.startswith(_ZERO) else date


def line(value: Any, length: int) -> str | None:
    """One legible line of at most `length` characters; None where nothing is left."""
    return cleaned(value, length) if isinstance(value, str) else None


def narrowed(query: str, category: str | None) -> str:
    """A query with the operator for a kind of page, where there is one."""
    return f"{query} {OPERATORS[category]}" if category in OPERATORS else query


def of_kind(url: str, category: str | None) -> bool:
    """Whether an address is of the kind that an operator narrows to; of any kind without one."""
    parts = URL(url)
    host, path = parts.hostname, parts.pathname.lower()
    if category == "github":
        return f".{host}".endswith(".github.com")
    if category == "pdf":
        return path.endswith(".pdf") or (host in _PDF_HOSTS and path.startswith("/pdf"))
    return True


def left_out(label: str, found: Sequence[Hit], kept: Sequence[Hit], category: str | None) -> str | None:
    """That results not of the kind asked for are left out, as a sentence; None when all are kept."""
    if len(kept) == len(found):
        return None
    lost = f"{len(found) - len(kept)} of {len(found)} results"
    return f"{label}: {lost} are not of the category '{category}' and are left out"


def distinct(hits: Iterable[Hit], most: int) -> tuple[Hit, ...]:
    """The first `most` hits, each address once."""
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(URL(hit.url).href, hit)
        if len(first) == most:
            break
    return tuple(first.values())
