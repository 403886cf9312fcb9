"""Render Markdown as HTML: headings with links, scrollable tables, highlighted code, no inline styles."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import groupby, pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from msgspec import Struct, field
from pygments import lex
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]
from pygments.token import Comment, Keyword, Name, Number, String
from pygments.util import ClassNotFound

STATE_CLASSES = {
    "up": "up",
    "degraded": "degraded",
    "outage": "down",
    "down": "down",
    "no recent calls": "lost",
    "not known": "lost",
    "not reachable": "lost",
}
"""CSS class of each state; applied to these words if they are **bold and alone**."""
_TOKEN_CLASSES = (
    (Comment, "c"),
    (Keyword, "k"),
    (Name.Builtin, "k"),
    (String, "s"),
    (Number, "n"),
)
"""Tokens of code that the style sheet colours."""


class Section(Struct, frozen=True):
    """One second-level heading and the content below it."""

    id: str
    title: str
    html: Markup


class RenderedDocument(Struct, frozen=True):
    """A page's content: the part before the first section, and the sections."""

    lead: Markup
    sections: tuple[Section, ...]

    def __html__(self) -> str:
        return "".join((self.lead, *(section.html for section in self.sections)))


@lru_cache(maxsize=64)  # of a website that is built again, most pages say the same
def render_document(markdown: str, href: Callable[[str], str]) -> RenderedDocument:
    """Render Markdown; `href` converts each link target to its target in HTML.

    Tables and code blocks are named after the heading above them; a code block can have a name of its own
    after its language: ```` ```bash The terms ````. HTML in the Markdown stays text.
    """
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    for rule, render in (
        ("fence", _render_code),
        ("table_open", _render_table_open),
        ("table_close", _render_table_close),
    ):
        reader.add_render_rule(rule, render)
    tokens = reader.parse(markdown)
    _TokenAnnotator(href).annotate(tokens)
    lead, *parts = _split_sections(tokens)

    def html(part: Sequence[Token]) -> Markup:
        return Markup(reader.renderer.render(part, reader.options, {}))

    sections = (Section(str(part[0].attrs["id"]), _inline_text(part[1]), html(part)) for part in parts)
    return RenderedDocument(html(lead), tuple(sections))


@lru_cache(maxsize=4096)
def render_inline(markdown: str) -> Markup:
    """Render one line of Markdown; HTML in it stays text, and it has no links."""
    return Markup(_inline_reader().renderInline(markdown))


@cache
def _inline_reader() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).disable(["link", "autolink", "image"])


def heading_id(title: str) -> str:
    """Return the id of a heading."""
    return re.sub(r"[^a-z0-9_]+", "-", title.lower()).strip("-") or "part"


def _split_sections(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split tokens at second-level headings; the first list precedes the first such heading."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.type == "heading_open" and token.tag == "h2":
            parts.append([])
        parts[-1].append(token)
    return parts


def _inline_text(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())


class _TokenAnnotator(Struct):
    """Adds ids, names and classes to a page's tokens in one pass."""

    href: Callable[[str], str]
    heading: str = ""
    ids: Counter[str] = field(default_factory=Counter[str])
    labels: Counter[str] = field(default_factory=Counter[str])
    columns: list[str] = field(default_factory=list[str])
    """Headings of the current table."""
    column: int = 0

    def annotate(self, tokens: list[Token]) -> None:
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                self._open_heading(token, tokens[at + 1])
            elif token.type in ("table_open", "fence"):
                self._name_block(token)
            elif token.type in ("tr_open", "thead_open"):
                self.column = 0
                self.columns = [] if token.type == "thead_open" else self.columns
            elif token.type in ("td_open", "th_open"):
                self._annotate_cell(tokens[at : at + 3])
            elif token.type == "inline":
                self._annotate_inline(token)

    def _annotate_cell(self, cell: Sequence[Token]) -> None:
        """Convert a cell; name its column, which narrow windows show beside it."""
        opening, inline, closing = cell
        if opening.type == "th_open":
            self.columns.append(_inline_text(inline))
        elif 0 < self.column < len(self.columns):
            opening.attrs["data-label"] = self.columns[self.column]
        _convert_cell(opening, closing, first=self.column == 0)
        self.column += 1

    def _open_heading(self, token: Token, inline: Token) -> None:
        self.heading = _inline_text(inline)
        if token.tag == "h1":
            return
        token.attrs["id"] = self._unique_name(self.ids, heading_id(self.heading), "-")
        link = Token("link_open", "a", 1, attrs={"href": f"#{token.attrs['id']}"})
        inline.children = [link, *(inline.children or ()), Token("link_close", "a", -1)]

    def _name_block(self, token: Token) -> None:
        """Name a scrollable block; names must be unique, since each block is an ARIA landmark."""
        language, _, label = token.info.strip().partition(" ")
        kind = "Code" if token.type == "fence" else "Table"
        name = self._unique_name(self.labels, f"{kind}: {label or self.heading}", ", ")
        token.meta = {"language": language, "label": label, "name": name, "caption": self.heading}

    def _unique_name(self, counts: Counter[str], name: str, joint: str) -> str:
        counts[name] += 1
        return name if counts[name] == 1 else f"{name}{joint}{counts[name]}"

    def _annotate_inline(self, inline: Token) -> None:
        children = inline.children or []
        for child in children:
            if child.type == "link_open":
                _rewrite_link(child, self.href)
        for opening, word in pairwise(children):
            if opening.type == "strong_open" and word.content in STATE_CLASSES:
                opening.attrs["class"] = f"state {STATE_CLASSES[word.content]}"


def _rewrite_link(link: Token, href: Callable[[str], str]) -> None:
    target = href(str(link.attrs["href"]))
    link.attrs["href"] = target
    if target.startswith(("http:", "https:")):
        link.attrs["rel"] = "external noopener"


def _convert_cell(opening: Token, closing: Token, *, first: bool) -> None:
    """Make a row's first cell its header; turn alignment into a class, as the CSP forbids inline styles."""
    head = opening.type == "th_open"
    style = str(opening.attrs.pop("style", ""))
    if "right" in style:
        opening.attrs["class"] = "right"
    if head or first:
        opening.tag = closing.tag = "th"
        opening.attrs["scope"] = "col" if head else "row"


def _render_table_open(_renderer: Any, tokens: Sequence[Token], at: int, *_rest: Any) -> str:
    meta = tokens[at].meta
    return (
        f'<div class="table" role="region" aria-label="{escape(meta["name"])}" tabindex="0">\n'
        f'<table>\n<caption class="unseen">{escape(meta["caption"])}</caption>\n'
    )


def _render_table_close(*_rest: Any) -> str:
    return "</table>\n</div>\n"


def _render_code(_renderer: Any, tokens: Sequence[Token], at: int, *_rest: Any) -> str:
    meta = tokens[at].meta
    return "".join(_code_block(tokens[at].content, meta["language"], label=meta["label"], name=meta["name"]))


def _code_block(content: str, language: str, *, label: str, name: str) -> Iterator[str]:
    """Yield the HTML of a code block; `name` is that of its scrollable region."""
    yield '<div class="code">\n'
    if label or language:
        yield f'<p class="label">{escape(label or _language_name(language))}</p>\n'
    yield f'<pre role="region" aria-label="{escape(name)}" tabindex="0">'
    yield f'<code class="language-{escape(language or "text")}">{_highlight_code(content, language)}</code>'
    yield "</pre>\n</div>\n"


@lru_cache(maxsize=256)
def _highlight_code(code: str, language: str) -> Markup:
    """Return the code escaped, with `<span class>` around tokens; without spans for an unknown language."""
    lexer = _find_lexer(language)
    if lexer is None:
        return escape(code)
    tokens = ((_class_of(kind), text) for kind, text in lex(code, lexer))
    runs = groupby(tokens, key=lambda each: each[0])
    return Markup("").join(_wrap_span(name, "".join(text for _, text in run)) for name, run in runs)


def _language_name(language: str) -> str:
    """Return the display name of a language: `sh` is Bash."""
    lexer = _find_lexer(language)
    return lexer.name if lexer else language


@lru_cache(maxsize=64)
def _find_lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _class_of(kind: Any) -> str:
    return next((name for parent, name in _TOKEN_CLASSES if kind in parent), "")


def _wrap_span(name: str, text: str) -> Markup:
    return Markup('<span class="{}">{}</span>').format(name, text) if name and text.strip() else escape(text)
