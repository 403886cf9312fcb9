"""The parts of a page that are not its content: menus, banners, forms, boxes around the text."""

from __future__ import annotations

import re
from itertools import islice

from lxml import etree

from centgate.pages.document import Element, beginning_of, remove
from centgate.pages.elements import names
from centgate.pages.weights import Weights

_TAGS = names("nav footer header aside form dialog menu search")
_ROLES = names(
    "navigation banner contentinfo complementary search dialog alertdialog menu menubar toolbar tooltip"
)
_SURE = names(
    "cookie cookies consent gdpr ccpa onetrust cookiebot cmp newsletter breadcrumb breadcrumbs share "
    "sharing sharebar social advert advertisement adsbygoogle ad ads sponsored outbrain taboola skiplink "
    "skip disqus paywall printfooter catlinks navbox editsection noprint headerlink permalink feedback "
    "pagination pager prevnext"
)
"""Words in a class or an id that say what a part is."""
_LIKELY = names(
    "sidebar related recommended recommendation recommendations promo promotion menu nav navbar "
    "navigation footer banner comments comment toc toctree masthead popular trending subscribe "
    "subscription signup login modal popup overlay widget widgets tags teaser teasers readnext "
    "morestories copyright colophon toolbar dropdown mostread tooltip notification alertbar topbar subnav "
    "submenu sitemap backlinks rail"
)
"""The same, of parts that may be content where they are large."""
_PAIRS = re.compile(
    r"\b(?:read|more|also|most)-(?:more|next|also|read|popular|stories|posts|articles)\b|\bauthor-(?:bio|box|card)\b|"
    r"\bsite-(?:header|footer|nav)|\bpage-(?:header|footer)\b|\btable-of-contents\b|\bcall-to-action\b|\bskip-to\b"
)
_NOTES = re.compile(
    r"note|tip|warning|caution|danger|important|admonition|callout|info|aside--|starlight|alert"
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_AGREE = re.compile(
    r"\b(?:accept|agree|allow|consent|reject|decline|got it|ok|okay|understand|manage|akzeptieren|zustimmen|"
    r"ablehnen|einverstanden|accepter|refuser|aceptar|rechazar|accetta|rifiuta|aceitar|accepteren|godk\u00e4nn)\b|\u540c\u610f",
    re.IGNORECASE,
)
_COOKIES = re.compile(r"cookie|consent|gdpr|datenschutz|privacy|tracking", re.IGNORECASE)
_LONGEST_BANNER, _LONGEST_BUTTON, _MOST_BUTTONS = 2000, 60, 200
_NEVER = names("main article pre code tr td th dt dd h1 h2 h3 h4 h5 h6")
"""Elements that are not boilerplate themselves, whatever they are called."""
_CONTENT = ("h1", "article", "main")
_TEXT_LEVEL = names("p h1 h2 h3 pre blockquote")
_BOXES = names("div section aside ul ol td table center tr tbody span font a")
_HEAVY = 0.6
"""The share of the prose that one part must hold for those beside it to be doubted."""
_SHORT = 160
_MOST_SURE, _MOST_LIKELY, _MOST_TAGGED = 0.5, 0.3, 0.5
"""Shares of the page's text above which a part is left, whatever it is called."""


def drop_consent(root: Element) -> None:
    """Remove banners that ask to accept cookies, by what they say and not by what they are called."""
    buttons = (each for each in root.iter("button", "a", "input") if _AGREE.search(_said(each)))
    for button in list(islice(buttons, _MOST_BUTTONS)):
        banner = _banner(button)
        if banner is not None:
            remove(banner)


def _said(button: Element) -> str:
    """What a button reads; nothing where that is long."""
    text = beginning_of(button, _LONGEST_BUTTON + 1) or button.get("value") or ""
    return text if len(text) <= _LONGEST_BUTTON else ""


def _banner(button: Element) -> Element | None:
    """The largest small part around a button that speaks of cookies and holds no content."""
    found, part = None, button.getparent()
    for _ in range(8):
        if part is None or part.tag in ("body", "html", "main", "article"):
            break
        text = beginning_of(part, _LONGEST_BANNER + 1)
        if len(text) > _LONGEST_BANNER or next(part.iter(*_CONTENT), None) is not None:
            break
        found = part if _COOKIES.search(text) else found
        part = part.getparent()
    return found


def drop_boilerplate(body: Element, weights: Weights) -> None:
    """Remove what tags, roles and names say is no content; large parts and those with the title stay."""
    whole = max(1, weights.text(body))
    frequent = _frequent(body, weights, whole)
    for element in list(body.iterdescendants(etree.Element)):
        if element.tag in _NEVER:
            continue
        most = _most(element, frequent)
        if weights.text(element) / whole <= most and most and _is_dispensable(element):
            remove(element)


def _frequent(body: Element, weights: Weights, whole: int) -> frozenset[str]:
    """The words by which much of the page is called, so that they say nothing: the comments of a forum."""
    shares: dict[str, float] = {}
    counted: dict[str, set[Element]] = {}
    for element in body.iterdescendants(etree.Element):
        for word in _words(element) & _LIKELY:
            inside = counted.setdefault(word, set())
            if not any(each in inside for each in element.iterancestors()):
                shares[word] = shares.get(word, 0) + weights.text(element) / whole
            inside.add(element)
    return frozenset(word for word, share in shares.items() if share > _MOST_TAGGED)


def _is_dispensable(element: Element) -> bool:
    """Whether a part holds no title, and is not the head of a text in a list of them."""
    if element.tag == "header" and next(element.iter("h2", "h3"), None) is not None:
        inner = any(each.tag in ("article", "section", "li") for each in element.iterancestors())
        return not inner
    return element.tag == "nav" or next(element.iter(*_CONTENT), None) is None


def _most(element: Element, frequent: frozenset[str]) -> float:
    """The share of the page up to which an element is boilerplate; 0 for what is content."""
    tag, parent = element.tag, element.getparent()
    if tag == "aside" and _NOTES.search(_called(element).lower()):
        return 0
    if tag == "footer" and parent is not None and parent.tag in ("blockquote", "figure"):
        return 0
    if tag == "nav":
        return 1
    if tag in _TAGS or element.get("role") in _ROLES:
        return _MOST_TAGGED
    words = _words(element)
    if words & _SURE:
        return _MOST_SURE
    if words & (_LIKELY - frequent) or _PAIRS.search(_called(element).lower().replace("_", "-")):
        return _MOST_LIKELY
    return 0


def _called(element: Element) -> str:
    """The class and the id of an element; nothing where they are too long to be names."""
    called = f"{element.get('class') or ''} {element.get('id') or ''}"
    return called if 3 <= len(called) <= 400 else ""


def _words(element: Element) -> set[str]:
    called = _called(element)
    return {word.lower() for word in _WORDS.findall(called)} if called else set()


def drop_beside(body: Element, weights: Weights) -> None:
    """Remove boxes beside the part that holds most of a page's prose, whatever they are called.

    Goes down from the body as long as one part holds most of it, and stops where paragraphs themselves begin.
    """
    part = body
    while weights.in_links(body) <= 0.5 and not _is_text_level(part):
        heavy = max(part, key=weights.prose, default=None)
        if heavy is None or weights.prose(heavy) < weights.prose(part) * _HEAVY:
            return
        for other in list(part):
            if other is not heavy and _is_beside(other, weights, weights.text(body)):
                remove(other)
        part = heavy


def _is_text_level(part: Element) -> bool:
    return sum(1 for each in part if each.tag in _TEXT_LEVEL) >= 2


def _is_beside(element: Element, weights: Weights, whole: int) -> bool:
    """Whether a part is a box of links, or a few words without a heading."""
    if element.tag not in _BOXES or next(element.iter("h1", "pre"), None) is not None:
        return False
    text, linked = weights.text(element), weights.in_links(element)
    short = text < _SHORT and next(element.iter("h2", "table", "dl", "img"), None) is None
    return text < whole * _MOST_LIKELY and (short or linked >= 0.2)


def drop_link_lists(body: Element, weights: Weights) -> None:
    """Remove lists that are links only, unless links are what the page is about."""
    if weights.in_links(body) > 0.5:
        return
    for element in list(body.iter("ul", "ol", "div", "section", "p")):
        links = sum(1 for _ in islice(element.iter("a"), 4))
        if links < 4 or weights.in_links(element) < 0.85 or weights.text(element) > 3000:
            continue
        if next(element.iter("pre", "h1", "img"), None) is None:
            remove(element)
