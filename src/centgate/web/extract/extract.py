"""Extract a fetched document as Markdown. The input is hostile, so this runs in a sandbox process.

The server only references `extract_page` and receives its result. The larger parsers are imported where they
are used, so that the server process does not load them.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from centgate.sanitize import clean_line, quote_line, strip_invisible
from centgate.web.extract.charset import decode_text
from centgate.web.extract.content_type import (
    CODE_LANGUAGES,
    XML_TYPES,
    DocumentKind,
    detect_kind,
    is_page_list,
    parse_media_type,
)
from centgate.web.extract.dom import MAX_BYTES, close_empty_elements
from centgate.web.extract.html_readings import (
    parse_visible,
    read_body,
    read_main_content,
    read_shell,
)
from centgate.web.extract.interstitials import (
    find_refresh_target,
    find_unloaded_part,
    has_scripts,
    is_interstitial,
    needs_scripts,
)
from centgate.web.extract.markdown_syntax import format_code_block
from centgate.web.extract.metadata import DocumentMetadata
from centgate.web.extract.notices import find_notice
from centgate.web.extract.plaintext import convert_json, convert_markdown, convert_text, find_heading
from centgate.web.extract.script_frames import has_only_frame
from centgate.web.extract.truncate import truncate

MAX_MARKDOWN = 400_000
_TRUNCATED_WARNING = f"the page is longer than {MAX_BYTES >> 20} MB, and only its beginning was read"
_CUT_WARNING = f"the page's text is longer than {MAX_MARKDOWN:,} characters, and the rest cannot be read here"
_SHELL_WARNING = "the page is built by its scripts, and its HTML contains only {} characters of text"
_UNLOADED_WARNING = (
    "the page says {}, which may stand for a part that its scripts fetch and that was not read"
)


class ExtractedPage(Struct, frozen=True):
    """Content of a document."""

    kind: DocumentKind
    markdown: str
    """At most `MAX_MARKDOWN` characters."""
    metadata: DocumentMetadata = field(default_factory=DocumentMetadata)
    warnings: tuple[str, ...] = ()
    """Limits of the extraction, as sentences for the reader."""
    needs_scripts: bool = False
    """True if the page is built by its scripts, which were not run."""
    blocked: bool = False
    """True for a bot check or a refusal in place of the page."""
    refresh_target: str | None = None
    """Target of an immediate `refresh`."""
    length: int = 0
    """Characters of the Markdown before truncation."""
    is_list: bool = False
    """True for a sitemap or a feed, which names pages and is none."""


def extract_page(body: bytes, content_type: str | None, url: str, only_main_content: bool) -> ExtractedPage:  # noqa: FBT001
    """Extract a body as Markdown. `content_type` is the raw header; `url` is the body's own URL.

    Raises Unsupported if the body is not text, and Unreadable for a PDF without extractable text.
    """
    page = _extract_by_kind(body, content_type, url, only_main_content=only_main_content)
    markdown, is_cut = truncate(page.markdown, MAX_MARKDOWN)
    warnings = (*page.warnings, _CUT_WARNING) if is_cut else page.warnings
    is_list = is_page_list(body[:MAX_BYTES], page.kind)
    return replace(page, markdown=markdown, warnings=warnings, length=len(page.markdown), is_list=is_list)


def _extract_by_kind(
    body: bytes, content_type: str | None, url: str, *, only_main_content: bool
) -> ExtractedPage:
    kind = detect_kind(body, content_type, urlsplit(url).path)
    if kind == "pdf":
        from centgate.web.extract.pdf import convert_pdf

        markdown, metadata, warnings = convert_pdf(body)
        return ExtractedPage("pdf", markdown, metadata, warnings)
    warnings = (_TRUNCATED_WARNING,) if len(body) > MAX_BYTES else ()
    body = body[:MAX_BYTES]
    if kind == "feed":
        from centgate.web.extract.feeds import convert_feed

        if feed := convert_feed(body, content_type, url):
            return ExtractedPage("feed", feed[0], feed[1], (*warnings, *feed[2]))
    text = decode_text(body, content_type)
    if kind == "html":
        if parse_media_type(content_type) in XML_TYPES:
            text = close_empty_elements(text)
        return _extract_html(text, url, warnings, only_main_content=only_main_content)
    return _extract_text(kind, text, content_type, url, warnings)


def _extract_text(
    kind: DocumentKind, text: str, content_type: str | None, url: str, warnings: tuple[str, ...]
) -> ExtractedPage:
    if kind == "json":
        return ExtractedPage("json", convert_json(text), warnings=warnings)
    if kind == "markdown":
        markdown = convert_markdown(text, url)
        return ExtractedPage(
            "markdown", markdown, DocumentMetadata(title=clean_line(find_heading(markdown), 300)), warnings
        )
    if kind == "text":
        return ExtractedPage("text", convert_text(text), warnings=warnings)
    language = (
        CODE_LANGUAGES.get(parse_media_type(content_type).partition("/")[2], "") if kind == "code" else "xml"
    )
    return ExtractedPage(
        kind,
        format_code_block(strip_invisible(text).strip("\n"), language) if text.strip() else "",
        warnings=warnings,
    )


def _extract_html(
    text: str, url: str, warnings: tuple[str, ...], *, only_main_content: bool
) -> ExtractedPage:
    page = parse_visible(text, url, only_main_content=only_main_content)
    if page is None:
        return ExtractedPage("html", "", warnings=warnings)
    if is_interstitial(text.encode(), page.metadata.title, page.visible):
        return ExtractedPage("html", page.visible, page.metadata, warnings, blocked=True)
    if notice := find_notice(page.root, page.metadata.title, page.visible):
        warnings += (notice,)
    redirect = find_refresh_target(page.root, page.base, page.visible)
    is_shell = needs_scripts(page.root, page.visible) or has_only_frame(page.root)
    is_scripted = has_scripts(page.root)
    if is_shell:
        warnings += (_SHELL_WARNING.format(len(page.visible)),)
        reading = read_shell(page, only_main_content=only_main_content)
    elif only_main_content:
        reading = read_main_content(page)
    else:
        reading = read_body(page, only_main_content=False)
    if is_scripted and (unloaded := find_unloaded_part(reading.markdown)):
        warnings += (_UNLOADED_WARNING.format(quote_line(unloaded)),)
    return ExtractedPage(
        "html",
        reading.markdown,
        page.metadata,
        (*warnings, *reading.warnings),
        needs_scripts=is_shell,
        refresh_target=redirect,
    )
