"""Parse Firecrawl's pages: markdown, `metadata` and the reason of a failure."""

from __future__ import annotations

import re
from typing import Any

from centgate.coercion import as_count, as_list, get_path
from centgate.errors import UnreadReason
from centgate.sanitize import strip_invisible
from centgate.web.extract.metadata import MAX_NAME_LENGTH, split_keywords
from centgate.web.fetch.failure import classify_status
from centgate.web.results import WebPage
from centgate.web.sanitize_markdown import sanitize_markdown
from centgate.web.search_results import (
    MAX_AUTHOR_LENGTH,
    MAX_DESCRIPTION_LENGTH,
    MAX_TITLE_LENGTH,
    parse_date,
    parse_line,
    parse_url,
)

MAX_CHARACTERS = 200_000
"""Characters read of a page: ten times what is returned."""
MAX_RAW_CHARACTERS = 1_000_000
"""Characters before images embedded as data are removed."""
MAX_LANGUAGE_LENGTH = 35
MAX_CONTENT_TYPE_LENGTH = 100

_TITLE_NAMES = ("title", "og:title", "ogTitle", "twitter:title")
_DESCRIPTION_NAMES = ("description", "og:description", "ogDescription", "twitter:description")
_LANGUAGE_NAMES = ("language", "og:locale", "ogLocale")
_AUTHOR_NAMES = ("author", "article:author", "dc.creator", "dcCreator")
_IMAGE_NAMES = ("og:image", "ogImage", "twitter:image")
_SITE_NAMES = ("og:site_name", "ogSiteName", "application-name")
_CANONICAL_NAMES = ("canonical", "canonicalUrl", "canonicalURL")
_PUBLISHED_NAMES = (
    "article:published_time",
    "publishedTime",
    "og:published_time",
    "published_time",
    "datePublished",
    "dcDateCreated",
    "dcTermsCreated",
    "dcDate",
    "date",
)
_MODIFIED_NAMES = (
    "article:modified_time",
    "modifiedTime",
    "og:updated_time",
    "og:modified_time",
    "modified_time",
    "dateModified",
)
"""Metadata names for the contents of a page's head, best first."""

_REASONS: tuple[tuple[UnreadReason, re.Pattern[str]], ...] = (
    ("dns", re.compile(r"DNS|NAME_NOT_RESOLVED")),
    ("timeout", re.compile(r"TIME_?OUT|TIMED[ _]OUT|INSUFFICIENT_TIME")),
    ("tls", re.compile(r"\bSSL|_SSL|\bTLS|CERT")),
    ("unsupported", re.compile(r"UNSUPPORTED|OCR_REQUIRED")),
    ("blocked", re.compile(r"ANTIBOT|BLOCKED|BLOCKLIST|SITE_NOT_ALLOWED")),
    ("too_large", re.compile(r"TOO_LARGE|TOO_BIG")),
    ("unreachable", re.compile(r"CONNECTION_|ADDRESS_UNREACHABLE|ECONNREFUSED|EMPTY_RESPONSE")),
)
_UNSPECIFIC_CODES = frozenset({"", "SCRAPE_SITE_ERROR", "SCRAPE_ALL_ENGINES_FAILED", "UNKNOWN_ERROR"})
"""Codes whose cause is given in the message, if at all."""
_NET_ERROR = re.compile(r"\b(?:ERR|SSL|SEC)_[A-Z_]+|\bECONN[A-Z]+|\bDNS\b|\btimed out\b", re.IGNORECASE)
_PAGE_CODE = re.compile(r"(?:SCRAPE|MAP|CRAWL)_[A-Z_]{1,60}")


def parse_page(url: str, data: Any) -> WebPage | None:
    """Parse a page; None if it has no text."""
    source = _parse_markdown(data)
    text = sanitize_markdown(strip_invisible(source[:MAX_RAW_CHARACTERS]))
    markdown = text[:MAX_CHARACTERS].strip()
    if not markdown:
        return None
    metadata = get_path(data, "metadata")
    content_type = parse_line(first_value(metadata, "contentType"), MAX_CONTENT_TYPE_LENGTH)
    truncated = len(text) > MAX_CHARACTERS
    pdf_warning = _pdf_warning(metadata, content_type)
    return WebPage(
        url=url,
        markdown=markdown,
        length=None
        if pdf_warning or len(source) > MAX_RAW_CHARACTERS
        else len(text)
        if truncated
        else len(markdown),
        title=parse_line(first_value(metadata, *_TITLE_NAMES), MAX_TITLE_LENGTH),
        description=parse_line(first_value(metadata, *_DESCRIPTION_NAMES), MAX_DESCRIPTION_LENGTH),
        language=parse_line(first_value(metadata, *_LANGUAGE_NAMES), MAX_LANGUAGE_LENGTH),
        canonical=parse_url(first_value(metadata, *_CANONICAL_NAMES)),
        author=_parse_author(metadata),
        published=_parse_date(metadata, _PUBLISHED_NAMES),
        modified=_parse_date(metadata, _MODIFIED_NAMES),
        status=page_status(data),
        content_type=content_type,
        final_url=parse_url(first_value(metadata, "url")),
        image=parse_url(first_value(metadata, *_IMAGE_NAMES)),
        site_name=parse_line(first_value(metadata, *_SITE_NAMES), MAX_NAME_LENGTH),
        keywords=split_keywords(_join_texts(metadata, "keywords")),
        warnings=(pdf_warning,) if pdf_warning else (),
    )


def page_status(data: Any) -> int | None:
    """Return the HTTP status of the site."""
    status = as_count(first_value(get_path(data, "metadata"), "statusCode"))
    return status if status and 100 <= status <= 599 else None


def status_failure_reason(status: int | None) -> UnreadReason | None:
    """Return the failure reason for an HTTP status; None if the page may be valid."""
    if status is None or status < 400:
        return None
    return "timeout" if status == 408 else classify_status(status)


def failure_code(body: Any) -> str | None:
    """Return Firecrawl's error code if it concerns a page, such as SCRAPE_DNS_RESOLUTION_ERROR."""
    code = _error_code(body)
    return code if _PAGE_CODE.fullmatch(code) else None


def failure_reason(body: Any) -> UnreadReason | None:
    """Return the failure reason from an error's body; None if the error does not concern a page."""
    code, text = _error_code(body), get_path(body, "error")
    net_errors = " ".join(_NET_ERROR.findall(text[:2000])).upper() if isinstance(text, str) else ""
    for text_part in (code, net_errors if code in _UNSPECIFIC_CODES else ""):
        for reason, pattern in _REASONS:
            if text_part and pattern.search(text_part):
                return reason
    return "failed" if _PAGE_CODE.fullmatch(code) else None


def _error_code(body: Any) -> str:
    code = get_path(body, "code")
    return code.strip().upper()[:100] if isinstance(code, str) else ""


def first_value(metadata: Any, *names: str) -> Any:
    """Return the first text or number under these names; a value may be a list of them."""
    for name in names:
        value = get_path(metadata, name)
        for each in as_list(value) or [value]:
            if (isinstance(each, str) and each.strip()) or (
                isinstance(each, int) and not isinstance(each, bool)
            ):
                return each
    return None


def _join_texts(metadata: Any, name: str) -> str:
    """Return the texts under a name, separated by commas: a value or a list of them."""
    value = get_path(metadata, name)
    return ",".join(each for each in as_list(value) or [value] if isinstance(each, str))


def _parse_markdown(data: Any) -> str:
    """Return the markdown; TypeError if it is not text."""
    markdown = get_path(data, "markdown")
    if markdown is not None and not isinstance(markdown, str):
        raise TypeError("markdown is not text")
    return markdown or ""


def _parse_author(metadata: Any) -> str | None:
    """Return the author's name; skip URLs of profiles, which some sites give instead."""
    for name in _AUTHOR_NAMES:
        author = parse_line(first_value(metadata, name), MAX_AUTHOR_LENGTH)
        if author and not parse_url(author):
            return author
    return None


def _parse_date(metadata: Any, names: tuple[str, ...]) -> str | None:
    return next((date for name in names if (date := parse_date(first_value(metadata, name)))), None)


def _pdf_warning(metadata: Any, content_type: str | None) -> str | None:
    """Return a warning for a PDF, of which one page is read: each further one is billed."""
    pages_read, total = (
        as_count(first_value(metadata, "numPages")),
        as_count(first_value(metadata, "totalPages")),
    )
    if total and total > 1 and total > (pages_read or 1):
        return f"only the first page of this PDF was read; it has {total}"
    if total is None and content_type and "application/pdf" in content_type.lower():
        return "at most the first page of this PDF was read"
    return None
