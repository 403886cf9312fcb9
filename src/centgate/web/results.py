"""Values for search results and pages, common to all search engines, readers and mappers.

Text in these values is untrusted; `sanitize.py` cleaned it where it was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from centgate.errors import UnreadReason
from centgate.web.fetch.validators import Validators

SearchType = Literal["auto", "fast"]
PageSource = Literal["link", "sitemap", "feed"]
_PASSING_REASONS: frozenset[UnreadReason] = frozenset({"dns", "unreachable", "timeout", "failed"})
"""Reasons that may be gone a moment later."""
UNREAD_MESSAGES: Mapping[UnreadReason, str] = {
    "not_found": "there is no such page",
    "blocked": "the site refuses access to the page",
    "dns": "the site's name cannot be resolved",
    "tls": "the site's certificate is not valid",
    "unreachable": "the site could not be reached",
    "timeout": "the page took too long",
    "unsupported": "the content cannot be read as text",
    "too_large": "the page is too large",
    "failed": "the page could not be read",
}
"""Messages for the reasons that other readers give, who name neither robots.txt nor addresses."""


class Hit(Struct, frozen=True):
    """Page named by a search or a site; None if the source does not state it."""

    url: str
    title: str | None = None
    description: str | None = None
    published: str | None = None
    """ISO 8601, as precise as the source states it."""
    author: str | None = None
    score: float | None = None
    """Higher is better; comparable within one response."""
    modified: str | None = None
    """Time of the last change, ISO 8601, as precise as the source states it."""
    found_in: PageSource | None = None
    """Where a site names the page."""
    site_name: str | None = None
    image: str | None = None
    """URL of a picture of the page."""
    language: str | None = None
    """BCP 47, as the source states it."""
    engines: tuple[str, ...] = ()
    """Names of the search engines that found the page, if the source asks several."""
    indexed: str | None = None
    """Time at which the source read the page, ISO 8601."""


class SearchResults(Struct, frozen=True):
    """Results of a search, best first."""

    hits: tuple[Hit, ...]
    search_type: SearchType = "auto"
    """Kind of search that was run."""
    by_meaning: bool = False
    """True if pages were compared by meaning, not by the words of the query alone."""


class WebPage(Struct, frozen=True):
    """Page that was read; None for unknown fields."""

    url: str
    """As requested."""
    markdown: str
    """Complete text that was read, before a service truncates it."""
    length: int | None
    """Characters of the page's text; None if the source truncated it without stating its length."""
    title: str | None = None
    description: str | None = None
    language: str | None = None
    canonical: str | None = None
    author: str | None = None
    published: str | None = None
    """ISO 8601, as precise as the source states it."""
    modified: str | None = None
    """ISO 8601, as precise as the source states it."""
    status: int | None = None
    """HTTP status of the site's response."""
    content_type: str | None = None
    final_url: str | None = None
    """URL after redirects."""
    image: str | None = None
    """URL of the picture that the page gives for previews."""
    site_name: str | None = None
    keywords: tuple[str, ...] = ()
    is_indexable: bool = True
    """False if the page or its response asks search engines to leave it out."""
    is_list: bool = False
    """True for a sitemap or a feed, which names pages and is none."""
    warnings: tuple[str, ...] = ()
    """Limits of the extraction, as sentences for the reader."""
    validators: Validators | None = None
    """What the site says of this version; None if it says nothing, or if the text is not of the address."""


class UnchangedPage(Struct, frozen=True):
    """Page that is still of the version that was read before."""

    url: str
    """As requested."""
    is_indexable: bool
    """False if the response asks search engines to leave it out."""


class UnreadPage(Struct, frozen=True):
    """Page that could not be read."""

    url: str
    """As requested."""
    reason: UnreadReason
    message: str
    """The reason as a sentence."""
    is_temporary: bool = False
    """True if the reason may be gone soon although it is another one."""
    status: int | None = None
    """HTTP status of the site's response; None without one."""
    final_url: str | None = None
    """URL of that response, after redirects."""

    @property
    def may_be_read_soon(self) -> bool:
        """True if the page may be there a moment later."""
        return self.is_temporary or self.reason in _PASSING_REASONS
