"""Extract a fetched document as Markdown. The input is hostile, so this runs in a sandbox process.

The server only references `extract_page` and receives its result. The larger parsers are imported where they
are used, so that the server process does not load them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from centgate.pages.addresses import base_of
from centgate.pages.cutting import cut
from centgate.pages.decoding import decoded
from centgate.pages.document import MOST_BYTES, body_of, drop_unseen, parsed
from centgate.pages.elements import text_in
from centgate.pages.kinds import LANGUAGES, Kind, kind_of, media_type
from centgate.pages.main_content import main_content
from centgate.pages.markdown import markdown_of
from centgate.pages.marks import fenced
from centgate.pages.metadata import Metadata, metadata_of
from centgate.pages.plaintext import json_text, markdown_text, text_of, title_of
from centgate.pages.walls import is_wall, leads_to, needs_scripts, says_missing
from centgate.text import clean_line, strip_invisible

MAX_MARKDOWN = 400_000
MIN_MAIN_CONTENT = 100
"""Characters below which a page's main content is considered wrong."""
_TRUNCATED_WARNING = f"the page is longer than {MOST_BYTES >> 20} MB, and only its beginning was read"
_WHOLE_PAGE_WARNING = (
    "the main content could not be separated from the rest of the page, so the whole page is returned"
)
_SOFT_404_WARNING = "the page says that this address does not exist"
_HIDDEN_TEXT_WARNING = "the page hides its text until its scripts have run; the hidden text is returned"


@dataclass(frozen=True, slots=True)
class Reading:
    """Content of a document."""

    kind: Kind
    markdown: str
    """At most `MAX_MARKDOWN` characters."""
    metadata: Metadata = field(default_factory=Metadata)
    warnings: tuple[str, ...] = ()
    """Limits of the extraction, as sentences for the reader."""
    needs_scripts: bool = False
    """True if the page is built by its scripts, which were not run."""
    blocked: bool = False
    """True for a bot check or a refusal in place of the page."""
    leads_to: str | None = None
    """Target of an immediate `refresh`."""
    length: int = 0
    """Characters of the Markdown before truncation."""


def read(body: bytes, content_type: str | None, url: str, only_main_content: bool) -> Reading:  # noqa: FBT001
    """Extract a body as Markdown. `content_type` is the raw header; `url` is the body's own URL.

    Raises Unsupported if the body is not text, and Unreadable for a PDF without extractable text.
    """
    page = _extract_by_kind(body, content_type, url, only_main_content=only_main_content)
    markdown, _ = cut(page.markdown, MAX_MARKDOWN)
    return replace(page, markdown=markdown, length=len(page.markdown))


def _extract_by_kind(body: bytes, content_type: str | None, url: str, *, only_main_content: bool) -> Reading:
    kind = kind_of(body, content_type, urlsplit(url).path)
    if kind == "pdf":
        from centgate.pages.pdf import pdf_of

        markdown, metadata, warnings = pdf_of(body)
        return Reading("pdf", markdown, metadata, warnings)
    warnings = (_TRUNCATED_WARNING,) if len(body) > MOST_BYTES else ()
    body = body[:MOST_BYTES]
    if kind == "feed":
        from centgate.pages.feeds import feed_of

        if feed := feed_of(body, content_type, url):
            return Reading("feed", feed[0], feed[1], (*warnings, *feed[2]))
    text = decoded(body, content_type)
    if kind == "html":
        return _extract_html(text, url, warnings, only_main_content=only_main_content)
    return _extract_text(kind, text, content_type, url, warnings)


def _extract_text(
    kind: Kind, text: str, content_type: str | None, url: str, warnings: tuple[str, ...]
) -> Reading:
    if kind == "json":
        return Reading("json", json_text(text), warnings=warnings)
    if kind == "markdown":
        markdown = markdown_text(text, url)
        return Reading("markdown", markdown, Metadata(title=clean_line(title_of(markdown), 300)), warnings)
    if kind == "text":
        return Reading("text", text_of(text), warnings=warnings)
    language = LANGUAGES.get(media_type(content_type).partition("/")[2], "") if kind == "code" else "xml"
    return Reading(
        kind, fenced(strip_invisible(text).strip("\n"), language) if text.strip() else "", warnings=warnings
    )


def _extract_html(text: str, url: str, warnings: tuple[str, ...], *, only_main_content: bool) -> Reading:
    root = parsed(text)
    if root is None:
        return Reading("html", "", warnings=warnings)
    base = base_of(root, url)
    metadata = metadata_of(root, base)
    drop_unseen(root)
    visible = " ".join(text_in(body_of(root)).split())
    if is_wall(text.encode(), metadata.title, visible):
        return Reading("html", visible, metadata, warnings, blocked=True)
    if says_missing(metadata.title, visible):
        warnings += (_SOFT_404_WARNING,)
    redirect = leads_to(root, base, visible)
    is_shell = needs_scripts(root, visible)
    if is_shell:
        warnings += (
            f"the page is built by its scripts, and its HTML contains only {len(visible)} characters of text",
        )
    main = markdown_of(
        main_content(body_of(root)) if only_main_content and not is_shell else body_of(root), base
    )
    if only_main_content and len(main) < min(MIN_MAIN_CONTENT, len(visible) // 3):
        main, extra = _convert_whole_page(text, base)
        warnings += extra
    if not main:
        main, extra = _convert_hidden_text(text, base)
        warnings += extra
    return Reading("html", main, metadata, warnings, needs_scripts=is_shell, leads_to=redirect)


def _convert_whole_page(text: str, base: str) -> tuple[str, tuple[str, ...]]:
    """Convert the whole page, for pages whose main content is almost empty."""
    root = parsed(text)
    if root is None:
        return "", ()
    drop_unseen(root)
    return markdown_of(body_of(root), base), (_WHOLE_PAGE_WARNING,)


def _convert_hidden_text(text: str, base: str) -> tuple[str, tuple[str, ...]]:
    """Convert a page that shows nothing, including its hidden elements."""
    root = parsed(text)
    markdown = markdown_of(body_of(root), base) if root is not None else ""
    return markdown, (_HIDDEN_TEXT_WARNING,) if markdown else ()
