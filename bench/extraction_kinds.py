"""Pages of seven kinds for the extraction benchmark with the text of their content, and loaders of public sets.

The text consists of sentences from the READMEs of installed packages. Each kind has designs on which the
extraction was tuned, and designs that are held apart: no rule was fitted to them.
"""

# ruff: noqa: E501 - the designs are easier to read on one line each

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

from lxml import etree

SEED: Final = 1123
PAGES_PER_DESIGN: Final = 6
PAGE_KINDS: Final = ("article", "documentation", "forum", "listing", "collection", "product", "service")
_SENTENCE_END: Final = re.compile(r"(?<=[.])\s")
_MARKUP: Final = re.compile(r"[\[\]<>`*_&|\\]")

Split = Literal["tuned", "held apart"]


@dataclass(frozen=True, slots=True)
class KindSample:
    """Page of one kind, and the text of its content as the expected output."""

    kind: str
    split: str
    """`tuned`, `held apart`, or the name of a public set."""
    name: str
    html: bytes
    gold: str


@dataclass(frozen=True, slots=True)
class Design:
    """Page design: the HTML around the content, and the HTML of a part that repeats in it.

    Placeholders are `{title}` and `{content}` in the frame, `{text}`, `{name}` and `{n}` in a part. The text of a
    part outside tags is content. `parts` and `sentences` are the minimum and maximum number of parts per page
    and of sentences per part.
    """

    kind: str
    split: Split
    frame: str
    part: str
    parts: tuple[int, int]
    sentences: tuple[int, int] = (1, 3)


_MENU = "".join(
    f"<li><a href=/m{n}>{word}</a></li>" for n, word in enumerate(("Home", "Shop", "About", "Help", "Jobs"))
)
_TEASERS = "".join(
    f"<div class=teaser><a href=/t{n}><img src=/t{n}.jpg><b>{title}</b></a><p>{title}, as told by our staff.</p></div>"
    for n, title in enumerate(
        ("The oldest lift of the harbour", "What bakers do at night", "A walk to the lighthouse")
    )
)
_CONSENT = (
    "<div class=cc><p>This site uses cookies to remember you and to measure its audience.</p>"
    "<button>Accept all</button><button>Decline</button></div>"
)
_TOP = f"<header class=top><a href=/>Logo</a><nav><ul>{_MENU}</ul></nav></header>"
_BOTTOM = f"<footer><p>All rights reserved 2026.</p><ul>{_MENU}</ul></footer>"
_PLAIN = f"<div class=b1><a href=/>Start</a> <a href=/x>Search</a></div><div class=b2>{{content}}</div><div class=b3>{_TEASERS}</div><div class=b4>Imprint and terms of use</div>"

DESIGNS: Final = (
    Design(
        "article",
        "tuned",
        f"{_TOP}<main><article><h1>{{title}}</h1>{{content}}</article>{_TEASERS}</main>{_BOTTOM}",
        "<p>{text}</p>",
        (6, 14),
    ),
    Design(
        "article",
        "tuned",
        f"{_TOP}<div><button><div>Menu</button></div><div class=story><h1>{{title}}</h1>{{content}}</div>{_BOTTOM}",
        "<p class=paywall>{text}</p>",
        (6, 14),
    ),
    Design(
        "article",
        "held apart",
        f"<div id=hd>{_MENU}</div><div class='grid has-ads'><h1>{{title}}</h1>{{content}}</div><div class=more>{_TEASERS}</div>{_BOTTOM}",
        "<div class=chunk>{text}<img src=/{n}.jpg></div>",
        (6, 14),
        (2, 4),
    ),
    Design(
        "article",
        "held apart",
        f"{_TOP}<table><tr><td>{_MENU}<td><h1>{{title}}</h1>{{content}}<td>{_TEASERS}</table>",
        "{text}<br><br>",
        (6, 14),
        (2, 4),
    ),
    Design(
        "documentation",
        "tuned",
        f"{_TOP}<div class=sidebar><ul>{_MENU}</ul></div><main><h1>{{title}}</h1>{{content}}</main>{_BOTTOM}",
        "<h2>{name}</h2><p>{text}</p><pre><code class=language-py>{name} = {n}</code></pre>",
        (4, 9),
    ),
    Design(
        "documentation",
        "tuned",
        f"<div role=main><h1>{{title}}</h1><dl>{{content}}</dl></div><div class=sphinxsidebar>{_MENU}</div>",
        "<dt>{name}</dt><dd><p>{text}</p></dd>",
        (8, 16),
    ),
    Design(
        "documentation",
        "held apart",
        f"{_TOP}<aside class=toc><ul>{_MENU}</ul></aside><section class=body><h1>{{title}}</h1>{{content}}</section>{_BOTTOM}",
        "<h3>{name}</h3><div class=note>{text}</div><table><tr><th>Name<th>Value<tr><td>{name}<td>{n}</table>",
        (4, 9),
    ),
    Design(
        "documentation",
        "held apart",
        _PLAIN.replace("{content}", "<h1>{title}</h1>{content}"),
        "<h4>{name}</h4>{text}<div class=hl><pre>run {name} {n}</pre></div>",
        (4, 9),
    ),
    Design(
        "forum",
        "tuned",
        f"{_TOP}<h1>{{title}}</h1><div class=comments>{{content}}</div>{_BOTTOM}",
        "<div class=comment><p>{text}</p></div>",
        (5, 12),
    ),
    Design(
        "forum",
        "tuned",
        f"{_TOP}<main><h1>{{title}}</h1>{{content}}</main><div class=sidebar>{_TEASERS}</div>",
        "<article class=post><div class=body><p>{text}</p></div><div class=social><a href=/l>Like</a></div></article>",
        (5, 12),
    ),
    Design(
        "forum",
        "held apart",
        f"<div class=nav>{_MENU}</div><h2>{{title}}</h2><table>{{content}}</table>{_BOTTOM}",
        "<tr><td class=who><a href=/u>u{n}</a><td class=msg>{text}",
        (5, 12),
        (2, 4),
    ),
    Design(
        "forum",
        "held apart",
        f"{_TOP}<div id=q><h1>{{title}}</h1></div><ul class=replies>{{content}}</ul>{_TEASERS}{_BOTTOM}",
        "<li><div>{text}<blockquote>{name}</blockquote></div></li>",
        (5, 12),
        (2, 4),
    ),
    Design(
        "listing",
        "tuned",
        f"{_TOP}<main><h1>{{title}}</h1>{{content}}</main><div class=pagination><a href=2>2</a></div>{_BOTTOM}",
        "<article><h2><a href=/p{n}>{name}</a></h2><p>{text}</p></article>",
        (8, 16),
        (1, 1),
    ),
    Design(
        "listing",
        "tuned",
        f"{_TOP}<h1>{{title}}</h1><ul class=results>{{content}}</ul>{_BOTTOM}",
        "<li><a href=/p{n}>{name}</a><p>{text}</p></li>",
        (8, 16),
        (1, 1),
    ),
    Design(
        "listing",
        "held apart",
        _PLAIN.replace("{content}", "<h1>{title}</h1>{content}"),
        "<div class=row><a href=/p{n}><h3>{name}</h3></a><span>{text}</span></div>",
        (8, 16),
        (1, 1),
    ),
    Design(
        "listing",
        "held apart",
        f"{_TOP}<section><h1>{{title}}</h1>{{content}}</section>{_BOTTOM}",
        "<div class=teaser><a href=/p{n}>{name}</a><div>{text}</div></div>",
        (8, 16),
        (1, 1),
    ),
    Design(
        "collection",
        "tuned",
        f"{_TOP}<main><h1>{{title}}</h1><div class=grid>{{content}}</div></main>{_BOTTOM}",
        "<div class=card><a href=/p{n}><img src=/{n}.jpg><h3>{name}</h3></a><span class=price>{n}.90 EUR</span></div>",
        (12, 24),
    ),
    Design(
        "collection",
        "tuned",
        f"{_TOP}<div class=products><h1>{{title}}</h1><ul>{{content}}</ul></div>{_BOTTOM}",
        "<li><a href=/p{n}>{name}</a> <b>{n}.90 EUR</b><p>{text}</p></li>",
        (12, 24),
        (1, 1),
    ),
    Design(
        "collection",
        "held apart",
        f"<div class=head>{_MENU}</div><div class=list><h2>{{title}}</h2>{{content}}</div><div class=foot>{_TEASERS}</div>",
        "<figure><a href=/p{n}><img src=/{n}.webp></a><figcaption><a href=/p{n}>{name}</a> {n} EUR</figcaption></figure>",
        (12, 24),
    ),
    Design(
        "collection",
        "tuned",
        _PLAIN.replace("{content}", "<h1>{title}</h1>{content}"),
        "<div><a href=/p{n}><img src=/{n}.png>{name}</a><div>{n}.90 EUR</div></div>",
        (12, 24),
    ),
    Design(
        "collection",
        "held apart",
        f"{_TOP}<h1>{{title}}</h1><section class=tiles>{{content}}</section>{_BOTTOM}",
        "<article><a href=/p{n}><h2>{name}</h2></a><p>{text}</p><span>{n} EUR</span></article>",
        (12, 24),
        (1, 1),
    ),
    Design(
        "product",
        "tuned",
        f"{_TOP}<main><h1>{{title}}</h1><p class=price>49.90 EUR</p>{{content}}<button>Add to cart</button></main><div class=related>{_TEASERS}</div>{_BOTTOM}",
        "<h2>{name}</h2><p>{text}</p>",
        (3, 5),
    ),
    Design(
        "product",
        "tuned",
        f"{_TOP}<div class=detail><h1>{{title}}</h1><table>{{content}}</table></div><div class=recommended>{_TEASERS}</div>{_BOTTOM}",
        "<tr><th>{name}<td>{text}</tr>",
        (5, 9),
        (1, 1),
    ),
    Design(
        "product",
        "held apart",
        _PLAIN.replace("{content}", "<h1>{title}</h1><ul>{content}</ul>"),
        "<li><b>{name}</b> {text}</li>",
        (4, 8),
        (1, 2),
    ),
    Design(
        "product",
        "held apart",
        f"{_TOP}<div class=product><h1>{{title}}</h1>{{content}}</div><div class=upsell>{_TEASERS}</div>{_BOTTOM}",
        "<details><summary>{name}</summary>{text}</details>",
        (3, 6),
        (2, 3),
    ),
    Design(
        "service",
        "tuned",
        f"{_CONSENT}{_TOP}<main><section><h1>{{title}}</h1></section>{{content}}</main>{_BOTTOM}",
        "<section class=feature><h2>{name}</h2><p>{text}</p></section>",
        (4, 8),
    ),
    Design(
        "service",
        "tuned",
        f"{_TOP}<div class=hero><h1>{{title}}</h1></div>{{content}}{_BOTTOM}",
        "<h3><button aria-expanded=false>{name}?</button></h3><div><p>{text}</p></div>",
        (4, 8),
    ),
    Design(
        "service",
        "held apart",
        f"{_CONSENT}<div class=bar>{_MENU}</div><h1>{{title}}</h1><div class=cols>{{content}}</div>{_BOTTOM}",
        "<div class=col><img src=/i{n}.svg><h4>{name}</h4>{text}</div>",
        (4, 8),
    ),
    Design(
        "service",
        "held apart",
        f"{_TOP}<div class=wrap><h1>{{title}}</h1>{{content}}</div><div class=newsletter><p>Get our letter.</p></div>{_BOTTOM}",
        "<div class='box social-proof'><p>{text}</p><cite>{name}</cite></div>",
        (5, 8),
    ),
)


def make_kind_samples(paragraphs: Iterable[str]) -> Iterator[KindSample]:
    """Yield `PAGES_PER_DESIGN` pages of each design, filled with the plain sentences of paragraphs."""
    split = (sentence for paragraph in paragraphs for sentence in _SENTENCE_END.split(paragraph))
    sentences = sorted({each for each in split if 40 < len(each) < 300 and not _MARKUP.search(each)})
    rng = random.Random(SEED)
    for number, design in enumerate(DESIGNS):
        for page in range(PAGES_PER_DESIGN):
            yield _make_page(design, f"{design.kind}-{number}-{page}", rng, sentences)


def _make_page(design: Design, name: str, rng: random.Random, sentences: list[str]) -> KindSample:
    title = _make_title(rng, sentences)
    html, gold = list[str](), [title]
    for index in range(rng.randint(*design.parts)):
        values = {
            "{text}": " ".join(rng.sample(sentences, rng.randint(*design.sentences))),
            "{name}": _make_title(rng, sentences),
            "{n}": str(index + 11),
        }
        part = design.part
        for placeholder, value in values.items():
            part = part.replace(placeholder, value)
        html.append(part)
        gold.append(_strip_tags(part))
    body = design.frame.replace("{title}", title).replace("{content}", "".join(html))
    page = f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title></head><body>{body}</body></html>"
    return KindSample(design.kind, design.split, name, page.encode(), "\n".join(gold))


def _make_title(rng: random.Random, sentences: list[str]) -> str:
    words = [word for word in rng.choice(sentences).split() if word.isalpha()]
    return " ".join(words[: rng.randint(3, 6)]).capitalize() or "Notes"


def _strip_tags(part: str) -> str:
    """Return the text of a part without the label of a Like link, which is no content."""
    part = part.replace("<a href=/l>Like</a>", "")
    root = etree.fromstring(f"<table>{part}</table>" if part.startswith("<tr") else part, etree.HTMLParser())
    return " ".join(" ".join(map(str, root.itertext())).split())


def load_public_set(folder: Path) -> list[KindSample]:
    """Load the pages of a public benchmark from a local folder.

    It is the article extraction benchmark of Scrapinghub (`ground-truth.json`, `html/ID.html.gz`) or a set like
    WCXB: a JSON file for each page with its kind and text, and the page under the same name in `html/`.
    """
    if (truth := folder / "ground-truth.json").exists():
        pages = cast("dict[str, dict[str, Any]]", json.loads(truth.read_text()))
        truths = ((name, "article", str(page["articleBody"])) for name, page in sorted(pages.items()))
    else:
        truths = _iter_truth_files(folder)
    samples = ((name, kind, text, _find_html(folder, name)) for name, kind, text in truths)
    return [KindSample(kind, folder.name, name, html, text) for name, kind, text, html in samples if html]


def _iter_truth_files(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield name, kind and text of each page in a set like WCXB."""
    for path in sorted(folder.rglob("*.json")):
        page = json.loads(path.read_text())
        if not isinstance(page, dict):
            continue
        page = cast("dict[str, Any]", page)
        truth = page.get("ground_truth", page)
        text = truth.get("main_content") or truth.get("content") or truth.get("text")
        kind: Any = page.get("page_type") or page.get("_internal", {}).get("page_type") or "page"
        if isinstance(kind, dict):
            kind = cast("dict[str, Any]", kind).get("primary", "page")
        if isinstance(text, str) and text.strip():
            yield path.stem, str(kind), text


def _find_html(folder: Path, name: str) -> bytes | None:
    for path in (*folder.rglob(f"{name}.html"), *folder.rglob(f"{name}.html.gz")):
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return None
