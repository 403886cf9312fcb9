"""Libraries and their documentation, in one form for every source of documentation.

Text in these values comes from third parties; it was sanitised when it was read.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

LIBRARY_ID = r"(/\.?[A-Za-z0-9_@-][A-Za-z0-9._@~+-]*){2,3}"
"""Pattern of an ID. No segment is of dots only: an ID must not traverse an upstream's path."""
SnippetOrigin: TypeAlias = Literal["package", "website", "repository"]


class DocumentedLibrary(Struct, frozen=True):
    """A library with documentation. None means that the source does not say."""

    id: str
    """`/<org>/<project>`, the ID to request its documentation by."""
    title: str | None
    description: str | None
    snippet_count: int | None
    version: str | None
    """The newest documented version."""
    score: float | None
    """Higher is better; comparable within one answer."""


class DocSnippet(Struct, frozen=True):
    """An excerpt of documentation: an explanation, code, or both."""

    title: str | None
    source_url: str | None
    language: str | None
    """Language of the code, in lower case; None without code."""
    code: str | None
    text: str | None
    tokens: int
    """Tokens of title, text and code together, as `snippet_tokens` counts them."""
    complete: bool | None = None
    """True if the code parses by itself, False if it is a fragment; None without code, and if unchecked."""
    headings: tuple[str, ...] = ()
    """Headings above the snippet, or its module and classes, outermost first; its own heading is the last."""
    library: str | None = None
    """ID of the library."""
    version: str | None = None
    """The release that the snippet belongs to; None for text of a website, which does not say."""
    origin: SnippetOrigin | None = None
    """Where the text was found."""
    retrieved_at: str | None = None
    """ISO 8601 time at which it was read there."""
