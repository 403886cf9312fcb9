"""Readings of an HTML page: its main content, all that it shows, or what it hides."""

from __future__ import annotations

import copy

from msgspec import Struct

from centgate.web.extract.boilerplate import (
    drop_certain_banners,
    drop_consent_banners,
    drop_tagged_boilerplate,
)
from centgate.web.extract.code_blocks import mark_code_lines
from centgate.web.extract.dom import Element, find_body, parse_html
from centgate.web.extract.elements import (
    extract_text,
    has_readable_text,
    name_cell_symbols,
    show_controls,
    show_drawings,
    show_line_breaks,
    show_symbols,
)
from centgate.web.extract.form_fields import show_form_fields
from centgate.web.extract.formulas import show_tex_scripts
from centgate.web.extract.hidden import drop_hidden
from centgate.web.extract.interstitials import has_empty_app_root, has_scripts, is_placeholder
from centgate.web.extract.links import find_base_url
from centgate.web.extract.main_content import extract_main_content
from centgate.web.extract.markdown import render_markdown
from centgate.web.extract.metadata import DocumentMetadata, extract_metadata
from centgate.web.extract.script_frames import MAX_FRAME_REST, has_only_frame
from centgate.web.extract.text_density import TextDensity

MIN_MAIN_CONTENT = 100
"""Characters below which a page's main content is considered wrong."""
MAX_COVER_TEXT, MIN_HIDDEN_TEXT, MIN_HIDDEN_FACTOR = 200, 400, 5
"""Characters of a message that covers a page; characters that are hidden under it, and per visible one."""
MIN_STATED_SHARE = 0.5
"""Share of the visible text below which a reading says how much it returns."""
MIN_CONTAINER_SHARE = 0.7
"""Share of the text in the page's only `main` or `article` below which a reading says so, too."""
_WHOLE_PAGE_WARNING = (
    "the main content could not be separated from the rest of the page, so its menus are returned as well"
)
_FULLER_WARNING = (
    "the main content could not be separated without losing much of the page's text, so a fuller reading is "
    "returned, which may contain other parts of the page"
)
_SHARE_WARNING = (
    "about {} % of the page's visible text outside links is returned; the rest was taken for menus and boxes"
)
_HIDDEN_TEXT_WARNING = "the page hides its text; the hidden text is returned"
_SCRIPT_TEXT_WARNING = "the page hides its text until its scripts have run; the hidden text is returned"


class HtmlPage(Struct, frozen=True):
    """A parsed page without its hidden elements. Readings modify its tree."""

    text: str
    """Its HTML, which a reading that needs the whole page parses again."""
    root: Element
    base: str
    metadata: DocumentMetadata
    visible: str

    @property
    def body(self) -> Element:
        return find_body(self.root)


class Reading(Struct, frozen=True):
    """Markdown of a page in one of the ways to read it, with the warnings about that way."""

    markdown: str
    warnings: tuple[str, ...] = ()


def parse_visible(text: str, url: str, *, only_main_content: bool) -> HtmlPage | None:
    """Parse a page and drop its hidden elements; None if nothing is left of it.

    Words of symbols are shown beside the main content only, and never count as visible text.
    """
    root = _parse_page(text)
    if root is None:
        return None
    base = find_base_url(root, url)
    metadata = extract_metadata(root, base)
    drop_hidden(root)
    symbols = show_drawings(find_body(root))
    visible = " ".join(extract_text(find_body(root)).split())
    if not only_main_content:
        show_symbols(symbols)
    return HtmlPage(text, root, base, metadata, visible)


def read_shell(page: HtmlPage, *, only_main_content: bool) -> Reading:
    """Read a page that its scripts build: the text that it covers with a message, else what it shows."""
    covered = _find_covered_text(page)
    if covered is not None:
        return covered
    if _is_unfilled(page.root, page.visible):
        return Reading("")
    return read_body(page, only_main_content=only_main_content)


def read_main_content(page: HtmlPage) -> Reading:
    """Read the main content; the whole page if hardly anything is in it, and else what the page hides."""
    mark_code_lines(page.body)
    show_controls(page.body, only_main_content=True)
    reading = _convert_main_content(page)
    if len(reading.markdown) < min(MIN_MAIN_CONTENT, len(page.visible) // 3):
        reading = _convert_whole_page(page)
    return _replace_empty(reading, page)


def read_body(page: HtmlPage, *, only_main_content: bool) -> Reading:
    """Read all that a page shows; if that is nothing, what it hides."""
    mark_code_lines(page.body)
    if not only_main_content:
        show_form_fields(page.body)
    show_controls(page.body, only_main_content=only_main_content)
    return _replace_empty(Reading(_render_text(page.body, page.base)), page)


def _render_text(element: Element, base: str) -> str:
    """Render an element as Markdown; empty without text, whatever the names of its picture files."""
    return render_markdown(element, base) if has_readable_text(element) else ""


def _replace_empty(reading: Reading, page: HtmlPage) -> Reading:
    """Return a reading, or the page's hidden text if the reading is empty."""
    if reading.markdown:
        return reading
    hidden = _convert_hidden_text(page)
    return Reading(hidden.markdown, (*reading.warnings, *hidden.warnings))


def _parse_page(text: str) -> Element | None:
    """Parse a page, with elements for what only scripts and styles show of it."""
    root = parse_html(text)
    if root is not None:
        show_tex_scripts(root)
        show_line_breaks(find_body(root))
        name_cell_symbols(find_body(root))
    return root


def _is_unfilled(root: Element, visible: str) -> bool:
    """True if a shell has no text of its page: only menus and banners, or a word that it is loading."""
    if is_placeholder(visible) and next(find_body(root).iter("a"), None) is None:
        return True
    return has_only_frame(root) or (has_empty_app_root(root) and _has_only_menus(find_body(root)))


def _find_covered_text(page: HtmlPage) -> Reading | None:
    """Return the text that a shell hides behind a message, if it is many times what the shell shows."""
    visible = len(page.visible)
    if not 0 < visible < MAX_COVER_TEXT:
        return None
    root = _parse_page(page.text)
    if root is None:
        return None
    body = find_body(root)
    drop_consent_banners(body)
    drop_tagged_boilerplate(body)
    if TextDensity(body).unlinked_length(body) < MIN_HIDDEN_TEXT + visible * MIN_HIDDEN_FACTOR:
        return None
    return _convert_hidden_text(page)


def _has_only_menus(body: Element) -> bool:
    """True if a page has hardly any text outside links, consent banners and what HTML calls navigation."""
    rest = copy.deepcopy(body)
    drop_certain_banners(rest)
    drop_tagged_boilerplate(rest)
    return TextDensity(rest).unlinked_length(rest) < MAX_FRAME_REST


def _convert_main_content(page: HtmlPage) -> Reading:
    main = extract_main_content(page.body, is_article=page.metadata.is_article)
    warnings: tuple[str, ...] = (_FULLER_WARNING,) if main.is_fuller else ()
    is_partial = main.share < MIN_STATED_SHARE or main.container_share < MIN_CONTAINER_SHARE
    if is_partial and main.visible >= MIN_MAIN_CONTENT:
        warnings += (_SHARE_WARNING.format(max(1, round(main.share * 100))),)
    return Reading(_render_text(main.element, page.base), warnings)


def _convert_whole_page(page: HtmlPage) -> Reading:
    """Convert the whole page, for pages whose main content is almost empty."""
    root = _parse_page(page.text)
    if root is None:
        return Reading("")
    drop_hidden(root)
    show_drawings(find_body(root))
    mark_code_lines(find_body(root))
    show_controls(find_body(root), only_main_content=False)
    return Reading(_render_text(find_body(root), page.base), (_WHOLE_PAGE_WARNING,))


def _convert_hidden_text(page: HtmlPage) -> Reading:
    """Convert a page that shows nothing, including its hidden elements."""
    root = _parse_page(page.text)
    markdown = _render_text(find_body(root), page.base) if root is not None else ""
    if root is None or not markdown:
        return Reading("")
    return Reading(markdown, (_SCRIPT_TEXT_WARNING if has_scripts(root) else _HIDDEN_TEXT_WARNING,))
