"""Extract a fetched document as Markdown. The input is hostile, so this runs in a sandbox process.

The server only references `extract_page` and receives its result. The larger parsers are imported where they
are used, so that the server process does not load them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from centgate.sanitize import clean_line, strip_invisible
from centgate.web.extract.boilerplate import drop_consent_banners, drop_tagged_boilerplate
from centgate.web.extract.charset import decode_text
from centgate.web.extract.code_blocks import mark_code_lines
from centgate.web.extract.content_type import (
    CODE_LANGUAGES,
    DocumentKind,
    detect_kind,
    is_page_list,
    parse_media_type,
)
from centgate.web.extract.dom import MAX_BYTES, Element, find_body, parse_html
from centgate.web.extract.elements import extract_text, show_controls, show_drawings, show_line_breaks
from centgate.web.extract.formulas import show_tex_scripts
from centgate.web.extract.hidden import drop_hidden
from centgate.web.extract.interstitials import (
    find_refresh_target,
    has_empty_app_root,
    has_scripts,
    is_interstitial,
    is_placeholder,
    is_soft_404,
    needs_scripts,
)
from centgate.web.extract.links import find_base_url
from centgate.web.extract.main_content import extract_main_content
from centgate.web.extract.markdown import render_markdown
from centgate.web.extract.markdown_syntax import format_code_block
from centgate.web.extract.metadata import DocumentMetadata, extract_metadata
from centgate.web.extract.plaintext import convert_json, convert_markdown, convert_text, find_heading
from centgate.web.extract.text_density import TextDensity
from centgate.web.extract.truncate import truncate

MAX_MARKDOWN = 400_000
MIN_MAIN_CONTENT = 100
"""Characters below which a page's main content is considered wrong."""
MAX_FRAME_REST = 60
"""Characters outside menus below which a page whose application is empty has no text."""
MAX_COVER_TEXT, MIN_HIDDEN_TEXT, MIN_HIDDEN_FACTOR = 200, 400, 5
"""Characters of a message that covers a page; characters that are hidden under it, and per visible one."""
_TRUNCATED_WARNING = f"the page is longer than {MAX_BYTES >> 20} MB, and only its beginning was read"
_CUT_WARNING = f"the page's text is longer than {MAX_MARKDOWN:,} characters, and the rest cannot be read here"
_WHOLE_PAGE_WARNING = (
    "the main content could not be separated from the rest of the page, so its menus are returned as well"
)
_FULLER_WARNING = (
    "the main content could not be separated without losing much of the page's text, so a fuller reading is "
    "returned, which may contain other parts of the page"
)
MIN_STATED_SHARE = 0.5
"""Share of the visible text below which a reading says how much it returns."""
MIN_CONTAINER_SHARE = 0.7
"""Share of the text in the page's only `main` or `article` below which a reading says so, too."""
_SHARE_WARNING = (
    "about {} % of the page's visible text outside links is returned; the rest was taken for menus and boxes"
)
_SOFT_404_WARNING = "the page says that this address does not exist"
_HIDDEN_TEXT_WARNING = "the page hides its text; the hidden text is returned"
_SCRIPT_TEXT_WARNING = "the page hides its text until its scripts have run; the hidden text is returned"


@dataclass(frozen=True, slots=True)
class ExtractedPage:
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
    root = _parse_page(text)
    if root is None:
        return ExtractedPage("html", "", warnings=warnings)
    base = find_base_url(root, url)
    metadata = extract_metadata(root, base)
    drop_hidden(root)
    show_drawings(find_body(root))
    visible = " ".join(extract_text(find_body(root)).split())
    if is_interstitial(text.encode(), metadata.title, visible):
        return ExtractedPage("html", visible, metadata, warnings, blocked=True)
    if is_soft_404(metadata.title, visible):
        warnings += (_SOFT_404_WARNING,)
    redirect = find_refresh_target(root, base, visible)
    is_shell = needs_scripts(root, visible)
    if is_shell:
        warnings += (
            f"the page is built by its scripts, and its HTML contains only {len(visible)} characters of text",
        )
    if is_shell and (hidden := _find_hidden_text(text, base, len(visible))):
        main, extra = hidden
        warnings += extra
        return ExtractedPage("html", main, metadata, warnings, needs_scripts=True, refresh_target=redirect)
    if is_shell and _is_unfilled(root, visible):
        return ExtractedPage("html", "", metadata, warnings, needs_scripts=True, refresh_target=redirect)
    mark_code_lines(find_body(root))
    show_controls(find_body(root), only_main_content=only_main_content)
    if only_main_content and not is_shell:
        main, extra = _convert_main_content(find_body(root), base, is_article=metadata.is_article)
        if len(main) < min(MIN_MAIN_CONTENT, len(visible) // 3):
            main, extra = _convert_whole_page(text, base)
        warnings += extra
    else:
        main = render_markdown(find_body(root), base)
    if not main:
        main, extra = _convert_hidden_text(text, base)
        warnings += extra
    return ExtractedPage("html", main, metadata, warnings, needs_scripts=is_shell, refresh_target=redirect)


def _parse_page(text: str) -> Element | None:
    """Parse a page, with elements for what only scripts and styles show of it."""
    root = parse_html(text)
    if root is not None:
        show_tex_scripts(root)
        show_line_breaks(find_body(root))
    return root


def _is_unfilled(root: Element, visible: str) -> bool:
    """True if a shell has no text of its page: nothing but menus, or a word that it is loading."""
    if is_placeholder(visible) and next(find_body(root).iter("a"), None) is None:
        return True
    return has_empty_app_root(root) and _has_only_menus(find_body(root))


def _find_hidden_text(text: str, base: str, visible: int) -> tuple[str, tuple[str, ...]] | None:
    """Return the text that a shell hides behind a message, if it is many times what the shell shows."""
    if not 0 < visible < MAX_COVER_TEXT:
        return None
    root = _parse_page(text)
    if root is None:
        return None
    body = find_body(root)
    drop_consent_banners(body)
    drop_tagged_boilerplate(body)
    if TextDensity(body).unlinked_length(body) < MIN_HIDDEN_TEXT + visible * MIN_HIDDEN_FACTOR:
        return None
    return _convert_hidden_text(text, base)


def _has_only_menus(body: Element) -> bool:
    """True if a page has hardly any text outside links and what HTML calls navigation."""
    rest = copy.deepcopy(body)
    drop_tagged_boilerplate(rest)
    return TextDensity(rest).unlinked_length(rest) < MAX_FRAME_REST


def _convert_main_content(body: Element, base: str, *, is_article: bool) -> tuple[str, tuple[str, ...]]:
    main = extract_main_content(body, is_article=is_article)
    warnings: tuple[str, ...] = (_FULLER_WARNING,) if main.is_fuller else ()
    is_partial = main.share < MIN_STATED_SHARE or main.container_share < MIN_CONTAINER_SHARE
    if is_partial and main.visible >= MIN_MAIN_CONTENT:
        warnings += (_SHARE_WARNING.format(max(1, round(main.share * 100))),)
    return render_markdown(main.element, base), warnings


def _convert_whole_page(text: str, base: str) -> tuple[str, tuple[str, ...]]:
    """Convert the whole page, for pages whose main content is almost empty."""
    root = _parse_page(text)
    if root is None:
        return "", ()
    drop_hidden(root)
    show_drawings(find_body(root))
    mark_code_lines(find_body(root))
    show_controls(find_body(root), only_main_content=False)
    return render_markdown(find_body(root), base), (_WHOLE_PAGE_WARNING,)


def _convert_hidden_text(text: str, base: str) -> tuple[str, tuple[str, ...]]:
    """Convert a page that shows nothing, including its hidden elements."""
    root = _parse_page(text)
    markdown = render_markdown(find_body(root), base) if root is not None else ""
    if root is None or not markdown:
        return "", ()
    return markdown, (_SCRIPT_TEXT_WARNING if has_scripts(root) else _HIDDEN_TEXT_WARNING,)
