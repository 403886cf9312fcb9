"""Reading what Firecrawl tells of a page: its markdown, what its `metadata` says, and why it failed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from centgate.facts.foreign_markdown import harmless
from centgate.facts.hits import AUTHOR, DESCRIPTION, TITLE, address, line, published
from centgate.facts.web import Page, UnreadReason
from centgate.readings import at, count, items
from centgate.text import legible

MOST_CHARACTERS = 200_000
"""What is read of a page: ten times what is handed on."""
MOST_LOOKED_AT = 1_000_000
"""What is looked at, since images that stand in a page as data are taken out of it."""
LANGUAGE = 35
CONTENT_TYPE = 100

_TITLE = ("title", "og:title", "ogTitle", "twitter:title")
_DESCRIPTION = ("description", "og:description", "ogDescription", "twitter:description")
_LANGUAGE = ("language", "og:locale", "ogLocale")
_AUTHOR = ("author", "article:author", "dc.creator", "dcCreator")
_CANONICAL = ("canonical", "canonicalUrl", "canonicalURL")
_PUBLISHED = (
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
_MODIFIED = (
    "article:modified_time",
    "modifiedTime",
    "og:updated_time",
    "og:modified_time",
    "modified_time",
    "dateModified",
)
"""The names under which it hands on what a page's head says, best first."""

_REASONS: tuple[tuple[UnreadReason, re.Pattern[str]], ...] = (
    ("dns", re.compile(r"DNS|NAME_NOT_RESOLVED")),
    ("timeout", re.compile(r"TIME_?OUT|TIMED[ _]OUT|INSUFFICIENT_TIME")),
    ("tls", re.compile(r"\bSSL|_SSL|\bTLS|CERT")),
    ("unsupported", re.compile(r"UNSUPPORTED|OCR_REQUIRED")),
    ("blocked", re.compile(r"ANTIBOT|BLOCKED|BLOCKLIST|SITE_NOT_ALLOWED")),
    ("too_large", re.compile(r"TOO_LARGE|TOO_BIG")),
    ("unreachable", re.compile(r"CONNECTION_|ADDRESS_UNREACHABLE|ECONNREFUSED|EMPTY_RESPONSE")),
)
_SAYS_LITTLE = frozenset({"", "SCRAPE_SITE_ERROR", "SCRAPE_ALL_ENGINES_FAILED", "UNKNOWN_ERROR"})
"""Codes whose cause stands in the text beside them, if anywhere."""
_NET_ERROR = re.compile(r"\b(?:ERR|SSL|SEC)_[A-Z_]+|\bECONN[A-Z]+|\bDNS\b|\btimed out\b", re.IGNORECASE)
_OF_A_PAGE = re.compile(r"(?:SCRAPE|MAP|CRAWL)_[A-Z_]{1,60}")

SENTENCES: Mapping[UnreadReason, str] = {
    "not_found": "there is no such page",
    "blocked": "the site refuses to hand out the page",
    "dns": "the site's name leads nowhere",
    "tls": "the site's certificate is not good",
    "unreachable": "the site could not be reached",
    "timeout": "the page took too long",
    "unsupported": "there is nothing that can be read as text",
    "too_large": "the page is too large",
    "failed": "the page could not be read",
}


def read_page(url: str, data: Any) -> Page | None:
    """A page in our words; None where there is no text at all."""
    whole = _markdown(data)
    raw = harmless(legible(whole[:MOST_LOOKED_AT]))
    markdown = raw[:MOST_CHARACTERS].strip()
    if not markdown:
        return None
    said = at(data, "metadata")
    content_type = line(first(said, "contentType"), CONTENT_TYPE)
    cut = len(raw) > MOST_CHARACTERS
    partly = _partly_read(said, content_type)
    return Page(
        url=url,
        markdown=markdown,
        length=None if partly or len(whole) > MOST_LOOKED_AT else len(raw) if cut else len(markdown),
        title=line(first(said, *_TITLE), TITLE),
        description=line(first(said, *_DESCRIPTION), DESCRIPTION),
        language=line(first(said, *_LANGUAGE), LANGUAGE),
        canonical=address(first(said, *_CANONICAL)),
        author=_author(said),
        published=_date(said, _PUBLISHED),
        modified=_date(said, _MODIFIED),
        status=page_status(data),
        content_type=content_type,
        final_url=address(first(said, "url")),
        warnings=(partly,) if partly else (),
    )


def page_status(data: Any) -> int | None:
    """What the site answered with."""
    status = count(first(at(data, "metadata"), "statusCode"))
    return status if status and 100 <= status <= 599 else None


def site_refusal(status: int | None) -> UnreadReason | None:
    """Why a page with this status is none; None where it may be one."""
    if status in (401, 402, 403, 407, 429, 451):
        return "blocked"
    if status == 408:
        return "timeout"
    return "failed" if status and status >= 400 else None


def failure_code(body: Any) -> str | None:
    """Its own word for an error that is about a page, such as SCRAPE_DNS_RESOLUTION_ERROR."""
    code = _code(body)
    return code if _OF_A_PAGE.fullmatch(code) else None


def failure_reason(body: Any) -> UnreadReason | None:
    """Why a page was not read, by what an error's body says; None where that is not about a page."""
    code, text = _code(body), at(body, "error")
    named = " ".join(_NET_ERROR.findall(text[:2000])).upper() if isinstance(text, str) else ""
    for said in (code, named if code in _SAYS_LITTLE else ""):
        for reason, words in _REASONS:
            if said and words.search(said):
                return reason
    return "failed" if _OF_A_PAGE.fullmatch(code) else None


def _code(body: Any) -> str:
    code = at(body, "code")
    return code.strip().upper()[:100] if isinstance(code, str) else ""


def first(said: Any, *names: str) -> Any:
    """The first text or number under these names; a value may be one, or a list of them."""
    for name in names:
        value = at(said, name)
        for each in items(value) or [value]:
            if (isinstance(each, str) and each.strip()) or (
                isinstance(each, int) and not isinstance(each, bool)
            ):
                return each
    return None


def _markdown(data: Any) -> str:
    """TypeError where there is something else than text."""
    markdown = at(data, "markdown")
    if markdown is not None and not isinstance(markdown, str):
        raise TypeError("markdown is no text")
    return markdown or ""


def _author(said: Any) -> str | None:
    """Who wrote it; some sites give the address of a profile in place of a name."""
    for name in _AUTHOR:
        author = line(first(said, name), AUTHOR)
        if author and not address(author):
            return author
    return None


def _date(said: Any, names: tuple[str, ...]) -> str | None:
    return next((date for name in names if (date := published(first(said, name)))), None)


def _partly_read(said: Any, content_type: str | None) -> str | None:
    """What a reader should know of a PDF, of which one page is read: each further one is billed."""
    read, total = count(first(said, "numPages")), count(first(said, "totalPages"))
    if total and total > 1 and total > (read or 1):
        return f"only the first page of this PDF was read; it has {total}"
    if total is None and content_type and "application/pdf" in content_type.lower():
        return "at most the first page of this PDF was read"
    return None
