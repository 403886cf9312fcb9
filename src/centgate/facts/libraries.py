"""Libraries and their documentation, as every source of documentation tells them.

Text in these values is a stranger's, made legible by `text.py` where it was read.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Documented:
    """A library with documentation. None is what the source does not say."""

    id: str
    """`/<org>/<project>`, what documentation is asked for by."""
    title: str | None
    description: str | None
    snippet_count: int | None
    version: str | None
    """The newest that is documented."""
    score: float | None
    """Higher is better; comparable within one answer."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of documentation: an explanation, code, or both."""

    title: str | None
    source_url: str | None
    language: str | None
    """Of the code, in lower case; None without code."""
    code: str | None
    text: str | None
    tokens: int
    """As `tokens.count` counts code and text together."""
