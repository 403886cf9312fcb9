"""Markdown as HTML: headings that can be linked to, tables and code that can be scrolled, no inline style."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from centgate.faces.site.highlighting import highlighted, language_name

STATES = {"up": "up", "down": "down", "not reachable": "lost"}
"""Words that, where they stand **alone in bold**, tell how a thing is: each gets a shape by its class."""


@dataclass(frozen=True)
class Section:
    """What stands under one heading of the second level, with the heading."""

    id: str
    title: str
    html: Markup


@dataclass(frozen=True)
class Document:
    """A page's content: what stands before the first section, and the sections."""

    lead: Markup
    sections: tuple[Section, ...]

    def __html__(self) -> str:
        return "".join((self.lead, *(section.html for section in self.sections)))


def document(markdown: str, href: Callable[[str], str]) -> Document:
    """Render Markdown; `href` gives the address that a link leads to in HTML.

    The caption of a table and the name of a block of code are those of the heading they stand under; a block
    of code can have its own after its language: ```` ```bash The terms ````. HTML in the Markdown stays text.
    """
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    for rule, render in (("fence", _code), ("table_open", _table), ("table_close", _table_end)):
        reader.add_render_rule(rule, render)
    tokens = reader.parse(markdown)
    _Annotating(href).annotate(tokens)
    lead, *parts = _parts(tokens)

    def html(part: Sequence[Token]) -> Markup:
        return Markup(reader.renderer.render(part, reader.options, {}))

    sections = (Section(str(part[0].attrs["id"]), _text(part[1]), html(part)) for part in parts)
    return Document(html(lead), tuple(sections))


def anchor(title: str) -> str:
    """The id of a heading."""
    return re.sub(r"[^a-z0-9_]+", "-", title.lower()).strip("-") or "part"


def _parts(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens before the first heading of the second level, then those of each such section."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.type == "heading_open" and token.tag == "h2":
            parts.append([])
        parts[-1].append(token)
    return parts


def _text(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())


@dataclass
class _Annotating:
    """One walk over a page's tokens, which gives them what their HTML needs."""

    href: Callable[[str], str]
    heading: str = ""
    ids: Counter[str] = field(default_factory=Counter[str])
    labels: Counter[str] = field(default_factory=Counter[str])

    def annotate(self, tokens: list[Token]) -> None:
        first = False
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                self._open_heading(token, tokens[at + 1])
            elif token.type in ("table_open", "fence"):
                self._name(token)
            elif token.type == "tr_open":
                first = True
            elif token.type in ("td_open", "th_open"):
                _turn_cell(token, tokens[at + 2], first=first)
                first = False
            elif token.type == "inline":
                self._inline(token)

    def _open_heading(self, token: Token, inline: Token) -> None:
        self.heading = _text(inline)
        if token.tag == "h1":
            return
        token.attrs["id"] = self._once(self.ids, anchor(self.heading), "-")
        link = Token("link_open", "a", 1, attrs={"href": f"#{token.attrs['id']}"})
        inline.children = [link, *(inline.children or ()), Token("link_close", "a", -1)]

    def _name(self, token: Token) -> None:
        """Names have to differ, since what can be scrolled is a landmark."""
        language, _, label = token.info.strip().partition(" ")
        kind = "Code" if token.type == "fence" else "Table"
        name = self._once(self.labels, f"{kind}: {label or self.heading}", ", ")
        token.meta = {"language": language, "label": label, "name": name, "caption": self.heading}

    def _once(self, seen: Counter[str], name: str, joint: str) -> str:
        seen[name] += 1
        return name if seen[name] == 1 else f"{name}{joint}{seen[name]}"

    def _inline(self, inline: Token) -> None:
        children = inline.children or []
        for child in children:
            if child.type == "link_open":
                _lead_on(child, self.href)
        for opening, word in pairwise(children):
            if opening.type == "strong_open" and word.content in STATES:
                opening.attrs["class"] = f"state {STATES[word.content]}"


def _lead_on(link: Token, href: Callable[[str], str]) -> None:
    target = href(str(link.attrs["href"]))
    link.attrs["href"] = target
    if target.startswith(("http:", "https:")):
        link.attrs["rel"] = "external noopener"


def _turn_cell(opening: Token, closing: Token, *, first: bool) -> None:
    """A row's first cell is its heading; alignment is a class, as the policy allows no inline style."""
    head = opening.type == "th_open"
    style = str(opening.attrs.pop("style", ""))
    if "right" in style:
        opening.attrs["class"] = "right"
    if head or first:
        opening.tag = closing.tag = "th"
        opening.attrs["scope"] = "col" if head else "row"


def _table(_renderer: Any, tokens: Sequence[Token], at: int, *_rest: Any) -> str:
    meta = tokens[at].meta
    return (
        f'<div class="table" role="region" aria-label="{escape(meta["name"])}" tabindex="0">\n'
        f'<table>\n<caption class="unseen">{escape(meta["caption"])}</caption>\n'
    )


def _table_end(*_rest: Any) -> str:
    return "</table>\n</div>\n"


def _code(_renderer: Any, tokens: Sequence[Token], at: int, *_rest: Any) -> str:
    meta = tokens[at].meta
    return "".join(_block(tokens[at].content, **meta))


def _block(content: str, *, language: str, label: str, name: str, caption: str) -> Iterator[str]:
    yield '<div class="code">\n'
    if label or language:
        yield f'<p class="label">{escape(label or language_name(language))}</p>\n'
    yield f'<pre role="region" aria-label="{escape(name)}" tabindex="0">'
    yield f'<code class="language-{escape(language or "text")}">{highlighted(content, language)}</code>'
    yield "</pre>\n</div>\n"
