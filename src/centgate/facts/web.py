"""What is found on the web, as every search engine, reader and mapper tells it.

Text in these values is a stranger's, made legible by `text.py` where it was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SearchType = Literal["auto", "fast"]
UnreadReason = Literal[
    "not_found",
    "blocked",
    "robots",
    "blocked_address",
    "dns",
    "tls",
    "unreachable",
    "timeout",
    "unsupported",
    "too_large",
    "failed",
]
"""Why a page could not be read."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A page that a search or a site names. None is what the source does not say."""

    url: str
    title: str | None = None
    description: str | None = None
    published: str | None = None
    """ISO 8601, as exactly as the source knows."""
    author: str | None = None
    score: float | None = None
    """Higher is better; comparable within one answer."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, best first."""

    hits: tuple[Hit, ...]
    search_type: SearchType = "auto"
    """The kind of search that was made."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was read. None is what is not known."""

    url: str
    """As it was asked for."""
    markdown: str
    """The whole of what was read, not yet cut to what a service hands on."""
    length: int | None
    """Characters the page's text has; None where the source cut it without saying how long it was."""
    title: str | None = None
    description: str | None = None
    language: str | None = None
    canonical: str | None = None
    author: str | None = None
    published: str | None = None
    """ISO 8601, as exactly as the source knows."""
    modified: str | None = None
    """ISO 8601, as exactly as the source knows."""
    status: int | None = None
    """What the site answered with."""
    content_type: str | None = None
    final_url: str | None = None
    """After redirects."""
    warnings: tuple[str, ...] = ()
    """What a reader should know of how it was read, as sentences."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A page that could not be read."""

    url: str
    """As it was asked for."""
    reason: UnreadReason
    message: str
    """The same as a sentence."""
