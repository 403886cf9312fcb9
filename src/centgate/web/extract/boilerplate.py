"""Remove the parts of a page that are not its content: menus, banners, forms, boxes around the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice

from lxml import etree

from centgate.web.extract.dom import (
    Element,
    extract_all_text,
    extract_beginning,
    find_ancestors,
    find_container,
    find_neighbours,
    remove_element,
)
from centgate.web.extract.elements import has_blocks, name_set
from centgate.web.extract.headings import (
    find_first_heading,
    find_first_heading_tag,
    is_promotion_heading,
    lists_texts,
    reduce_to_letters,
)
from centgate.web.extract.text_density import TextDensity

_BOILERPLATE_TAGS = name_set("nav footer header aside form dialog menu search")
_BOILERPLATE_ROLES = name_set(
    "navigation banner contentinfo complementary search dialog alertdialog menu menubar toolbar tooltip"
)
_CONSENT_WORDS = name_set("cookie cookies consent gdpr ccpa onetrust cookiebot")
_CERTAIN_WORDS = _CONSENT_WORDS | name_set(
    "cmp newsletter breadcrumb breadcrumbs share "
    "sharing sharebar social advert advertisement adsbygoogle ad ads sponsored outbrain taboola skiplink "
    "skip disqus paywall printfooter catlinks navbox editsection noprint headerlink permalink feedback "
    "pagination pager prevnext navheader navfooter docnav"
)
"""Words in a class or an id that mark a part as boilerplate."""
_LIKELY_WORDS = name_set(
    "sidebar related recommended recommendation recommendations promo promotion menu nav navbar "
    "navigation footer banner comments comment toc toctree masthead popular trending subscribe "
    "subscription signup login modal popup overlay widget widgets tags teaser teasers readnext "
    "morestories copyright colophon toolbar dropdown mostread tooltip notification alertbar topbar subnav "
    "submenu sitemap backlinks rail"
)
"""Words of parts that are boilerplate unless they are large."""
_UNCERTAIN_WORDS = (_CERTAIN_WORDS - _CONSENT_WORDS) | _LIKELY_WORDS
_FOOTER_WORDS = name_set("footer copyright colophon tags")
_NOTE_WORDS = name_set("notification")
_NO_PROSE_WORDS = _CONSENT_WORDS | name_set("comment comments")
"""Words of parts that are not the page's content even where they are told in sentences."""
_DESCRIBED_WORDS = re.compile(
    r"\b(?:no|not|has|have|with|without|is|hide|hides|hidden|show|shows|after|before|above|below|beside|main)"
    r"[-_](?:left[-_]|right[-_])?[a-zA-Z]+",
    re.IGNORECASE,
)
"""Words that say what a part has beside it, such as `has-sidebar` or `no-ads`, and not what it is."""
_WORD_PAIRS = re.compile(
    r"\b(?:read|more|also|most)-(?:more|next|also|read|popular|stories|posts|articles)\b|\bauthor-(?:bio|box|card)\b|"
    r"\bsite-(?:header|footer|nav)|\bpage-(?:header|footer)\b|\btable-of-contents\b|\bcall-to-action\b|\bskip-to\b"
)
_NOTE_CLASSES = re.compile(
    r"note|tip|warning|caution|danger|important|admonition|callout|info|aside--|starlight|alert"
)
_NOTE_NAMES = name_set("note tip warning caution danger important admonition callout info alert")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CONSENT_BUTTON = re.compile(
    r"\b(?:accept|agree|allow|consent|reject|decline|got it|ok|okay|understand|manage|akzeptieren|zustimmen|"
    r"ablehnen|einverstanden|accepter|refuser|aceptar|rechazar|accetta|rifiuta|aceitar|accepteren|godk\u00e4nn)\b|\u540c\u610f",
    re.IGNORECASE,
)
_BUTTON_CLASS = re.compile(r"btn|button|accept|agree|consent", re.IGNORECASE)
_CONSENT_TOPIC = re.compile(r"cookie|consent|gdpr|datenschutz|privacy|tracking", re.IGNORECASE)
_CONSENT_NOTICE = re.compile(
    r"\b(?:uses?|using|utili[sz]\w+|verwende\w+|(?:be)?nutz\w+|usa\w*)\W+(?:\w+\W+){0,3}cookies",
    re.IGNORECASE,
)
_MAX_NOTICE_LENGTH = 500
_MAX_BANNER_LENGTH, _MAX_BUTTON_LENGTH, _MAX_BUTTONS = 2000, 60, 200
_NEVER_BOILERPLATE = name_set("main article pre code tr td th dt dd h1 h2 h3 h4 h5 h6")
"""Elements that are never boilerplate themselves, whatever their class or id."""
_CONTENT_TAGS = ("h1", "article", "main")
_TEXT_TAGS = name_set("p h1 h2 h3 pre blockquote")
_BOX_TAGS = name_set("div section aside ul ol td table center tr tbody span font a")
_DOMINANT_SHARE = 0.6
"""Share of the unlinked text that one part must hold before the parts beside it are examined."""
_MIN_BOX_LINKS = 0.2
"""Share of links in the text of a box beside the text of the page."""
_SHORT_TEXT, _MAX_ID_LENGTH = 160, 200
_PARAGRAPH, _MIN_PARAGRAPHS, _MAX_PROSE_SHARE = 80, 3, 0.2
"""Unlinked characters of a paragraph; paragraphs from which a part is prose, and its share of the page."""
_MIN_SECTION_TEXT = 80
"""Unlinked characters of a section."""
_MIN_NOTE_TEXTS = 2
"""Paragraphs, headings and the like near a note in a text."""
_FORM_TEXT, _MENU_TEXT = 150, 80
"""Unlinked characters that are text of the page: of a form, for itself and each of its fields; of a menu."""
_NO_FIELDS = name_set("hidden submit button image reset")
_MAX_NEIGHBOURS = 8
"""Elements on each side of a part with which it is compared."""
_MAX_CERTAIN_SHARE, _MAX_LIKELY_SHARE, _MAX_TAGGED_SHARE = 0.45, 0.3, 0.5
"""Shares of the page's text above which a part stays, whatever its class or id."""


def drop_consent_banners(root: Element) -> None:
    """Remove cookie banners, recognised by their text and not by their class names."""
    _drop_banners(root, _find_banner)


def drop_certain_banners(root: Element) -> None:
    """Remove cookie banners by name or by saying that cookies are used, without the text beside them."""
    _drop_banners(root, _find_certain_banner)


def _drop_banners(root: Element, find_banner: Callable[[Element], Element | None]) -> None:
    buttons = (each for each in root.iter("button", "a", "input") if _is_consent_button(each))
    for button in list(islice(buttons, _MAX_BUTTONS)):
        if (banner := find_banner(button)) is not None:
            remove_element(banner)


def _has_consent_button(element: Element) -> bool:
    buttons = islice(element.iter("button", "a", "input"), _MAX_BUTTONS)
    return any(_is_consent_button(each) for each in buttons)


def _is_consent_button(element: Element) -> bool:
    """True for a button, or a link that looks or acts like one, whose label agrees or declines."""
    if element.tag == "a" and not _is_button(element):
        return False
    return _CONSENT_BUTTON.search(_button_label(element)) is not None


def _is_button(link: Element) -> bool:
    """True if a link leads nowhere, or looks like a button; a page about HTTP has links named "Accept"."""
    href = (link.get("href") or "").strip().lower()
    is_styled = _BUTTON_CLASS.search(link.get("class") or "") is not None
    return is_styled or link.get("role") == "button" or not href or href.startswith(("#", "javascript:"))


def _button_label(button: Element) -> str:
    """Return the text of a button; empty if it is long."""
    text = extract_beginning(button, _MAX_BUTTON_LENGTH + 1) or button.get("value") or ""
    return text if len(text) <= _MAX_BUTTON_LENGTH else ""


def _find_banner(button: Element) -> Element | None:
    """Return the largest small part around a button that mentions cookies and holds no content."""
    banner = None
    for part, text in _iterate_small_parts(button):
        banner = part if _CONSENT_TOPIC.search(text) else banner
    return banner


def _find_certain_banner(button: Element) -> Element | None:
    """Return the smallest part around a button that says that cookies are used, or a larger one named so."""
    banner, is_worded = None, False
    for part, text in _iterate_small_parts(button):
        is_notice = _CONSENT_NOTICE.search(text) is not None
        is_dialog = part.tag == "dialog" or part.get("role") in ("dialog", "alertdialog")
        is_named = bool(split_names(_class_and_id(part)) & _CONSENT_WORDS)
        if is_named or (is_dialog and _CONSENT_TOPIC.search(text)) or (is_notice and not is_worded):
            banner = part
        is_worded = is_worded or is_notice
    return banner


def _iterate_small_parts(button: Element) -> Iterator[tuple[Element, str]]:
    """Yield the parts around a button and their texts, from the inside; none that is large or has content."""
    part = button.getparent()
    for _ in range(8):
        if part is None or part.tag in ("body", "html", "main", "article"):
            return
        text = extract_beginning(part, _MAX_BANNER_LENGTH + 1)
        if len(text) > _MAX_BANNER_LENGTH or next(part.iter(*_CONTENT_TAGS), None) is not None:
            return
        if _is_topic_section(part):
            return
        yield part, text
        part = part.getparent()


def _is_topic_section(part: Element) -> bool:
    """True if a part is a text about cookies: with headings and code or prose, and not named as a banner."""
    if next(part.iter("h2", "h3"), None) is None or part.get("role") in ("dialog", "alertdialog", "region"):
        return False
    if part.tag == "dialog" or split_names(_class_and_id(part)) & _CONSENT_WORDS:
        return False
    paragraphs = sum(1 for each in part.iter("p") if len(extract_beginning(each, _PARAGRAPH)) >= _PARAGRAPH)
    return paragraphs >= _MIN_PARAGRAPHS or next(part.iter("pre", "table"), None) is not None


def drop_tagged_boilerplate(body: Element) -> None:
    """Remove only what HTML itself calls navigation, and what holds neither titles nor the page's text."""
    for element in list(body.iter("nav", "footer", "aside", "header", "menu", "search")):
        if element.getparent() is not None and _is_removable(element):
            remove_element(element)


def open_content_forms(body: Element, weights: TextDensity) -> None:
    """Turn forms and menus that hold text of the page into divisions and lists.

    ASP.NET has the whole page in a form. Labels of fields, and menus of links or buttons, are no such text.
    """
    for element in list(body.iter("form", "menu")):
        length = weights.unlinked_length(element)
        if element.tag == "form" and length >= _FORM_TEXT * (1 + _count_fields(element)):
            element.tag = "div"
        elif element.tag == "menu" and length >= _MENU_TEXT and weights.link_share(element) <= 0.4:
            element.tag = "ul"


def open_notes(body: Element, weights: TextDensity) -> None:
    """Turn asides that are notes between the paragraphs of a text into divisions, without their names."""
    for element in list(body.iter("aside")):
        if split_names(_class_and_id(element)) & _NOTE_NAMES and weights.link_share(element) <= 0.4:
            texts = sum(each.tag in _TEXT_TAGS for each in find_neighbours(element, _MAX_NEIGHBOURS))
            if texts >= _MIN_NOTE_TEXTS:
                element.tag = "div"
                element.attrib.clear()


def _count_fields(form: Element) -> int:
    fields = form.iter("input", "select", "textarea")
    return sum((each.get("type") or "").lower() not in _NO_FIELDS for each in fields)


def drop_section_names(body: Element, weights: TextDensity) -> None:
    """Remove the ids that say what the heading of their section says, such as `cookies` or `login`."""
    for element in body.iterdescendants(etree.Element):
        own = element.get("id")
        words = split_names(own) if own and len(own) <= _MAX_ID_LENGTH else frozenset[str]()
        marks = words & (_CERTAIN_WORDS | _LIKELY_WORDS)
        if marks and _is_section(element, marks, weights):
            del element.attrib["id"]


def drop_boilerplate(body: Element, weights: TextDensity) -> None:
    """Remove what tags, roles and names mark as boilerplate; large parts and those with the title stay."""
    page_length = max(1, weights.text_length(body))
    names = _read_names(body, weights)
    frequent = _frequent_words(names, weights, page_length)
    for element, words in names.items():
        if element.tag in _NEVER_BOILERPLATE:
            continue
        max_share = _max_share(element, words - frequent, weights)
        share = weights.text_length(element) / page_length
        if not max_share or share > max_share or not _is_removable(element):
            continue
        if max_share in (_MAX_CERTAIN_SHARE, _MAX_LIKELY_SHARE) and _is_prose(
            element, words, weights, page_length
        ):
            continue
        remove_element(element)


def _is_prose(element: Element, words: frozenset[str], weights: TextDensity, page_length: int) -> bool:
    """True if an element holds text that is told in sentences, unless it asks for consent.

    Sites give the names of their advertisements, payment walls and newsletters to the text around them, too.
    """
    if element.tag in _BOILERPLATE_TAGS or element.get("role") in _BOILERPLATE_ROLES:
        return False
    if words & _NO_PROSE_WORDS or weights.link_share(element) > 0.4:
        return False
    if words & _LIKELY_WORDS and lists_texts(element, None, weights):
        return False
    paragraphs = sum(1 for each in element.iter("p") if weights.unlinked_length(each) >= _PARAGRAPH)
    is_large = weights.unlinked_length(element) > page_length * _MAX_PROSE_SHARE
    return paragraphs >= _MIN_PARAGRAPHS or (is_large and weights.unlinked_length(element) > 3 * _PARAGRAPH)


def _frequent_words(
    names: Mapping[Element, frozenset[str]], weights: TextDensity, page_length: int
) -> frozenset[str]:
    """Return the class words used by so much of the page that they do not mark boilerplate.

    In a forum, for example, the comments are the content.

    Some sites give such a class to each paragraph behind a payment wall, or to each one that an
    advertisement may follow.
    """
    shares: dict[str, float] = {}
    elements_by_word: dict[str, set[Element]] = {}
    for element, words in names.items():
        for word in words & _UNCERTAIN_WORDS:
            inside = elements_by_word.setdefault(word, set())
            if not any(each in inside for each in element.iterancestors()):
                shares[word] = shares.get(word, 0) + weights.text_length(element) / page_length
            inside.add(element)
    return frozenset(
        word
        for word, share in shares.items()
        if share > (_MAX_TAGGED_SHARE if word in _LIKELY_WORDS else _MAX_LIKELY_SHARE)
    )


def _is_removable(element: Element) -> bool:
    """True if the element has no title and is not the heading of one article in a list."""
    if element.tag == "header" and next(element.iter("h2", "h3"), None) is not None:
        inner = any(each.tag in ("article", "section", "li") for each in element.iterancestors())
        return not inner
    return element.tag == "nav" or next(element.iter(*_CONTENT_TAGS), None) is None


def _max_share(element: Element, words: frozenset[str], weights: TextDensity) -> float:
    """Return the share of the page up to which an element of these names is boilerplate; 0 for content."""
    tag, parent = element.tag, element.getparent()
    if tag == "aside" and _NOTE_CLASSES.search(_class_and_id(element).lower()):
        return 0
    if tag == "footer" and parent is not None and parent.tag in ("blockquote", "figure"):
        return 0
    if tag == "nav":
        return 1
    if tag in _BOILERPLATE_TAGS or element.get("role") in _BOILERPLATE_ROLES:
        return _MAX_TAGGED_SHARE
    pairs = _WORD_PAIRS.search(_class_and_id(element).lower().replace("_", "-"))
    if not pairs and not words & (_CERTAIN_WORDS | _LIKELY_WORDS):
        return 0
    if _is_variant(element, weights) or (words & _UNCERTAIN_WORDS == _NOTE_WORDS and _is_note(element)):
        return 0
    return _MAX_CERTAIN_SHARE if pairs or words & _CERTAIN_WORDS else _MAX_LIKELY_SHARE


def _is_variant(element: Element, weights: TextDensity) -> bool:
    """True for one of several alike parts with a heading, such as the recommended one of a list of plans."""
    tag, classes = find_first_heading_tag(element), set((element.get("class") or "").split())
    if not tag or weights.link_share(element) > 0.4:
        return False
    return any(
        each.tag == element.tag
        and classes & set((each.get("class") or "").split())
        and not split_names(_class_and_id(each)) & (_CERTAIN_WORDS | _LIKELY_WORDS)
        and find_first_heading_tag(each) == tag
        for each in find_neighbours(element, _MAX_NEIGHBOURS)
    )


def _is_note(element: Element) -> bool:
    """True if a part is a sentence between the paragraphs of a text, and no message of the site."""
    if next(element.iter("a", "button"), None) is not None:
        return False
    text = extract_beginning(element, _MAX_BANNER_LENGTH)
    paragraphs = sum(each.tag == "p" for each in find_neighbours(element, _MAX_NEIGHBOURS))
    return text.endswith((".", "!", "?", ":")) and paragraphs >= 2


def _class_and_id(element: Element) -> str:
    """Return the class and the id of an element; empty if they are too long to be names."""
    class_and_id = f"{element.get('class') or ''} {element.get('id') or ''}"
    return class_and_id if 3 <= len(class_and_id) <= 400 else ""


def _is_section(element: Element, marks: frozenset[str], weights: TextDensity) -> bool:
    """True if an element is a section of the page's text whose heading has these words of its id.

    Forms, lists of links and lists of other texts have such headings, too.
    """
    heading = find_first_heading(element)
    if heading is None or weights.link_share(element) > 0.4:
        return False
    if not marks <= split_names(extract_beginning(heading, _SHORT_TEXT)):
        return False
    if weights.unlinked_length(element) - weights.text_length(heading) < _MIN_SECTION_TEXT:
        return False
    if next(element.iter("form", "textarea", "input"), None) is not None:
        return False
    return not lists_texts(element, heading, weights) and not _has_consent_button(element)


def _read_names(body: Element, weights: TextDensity) -> dict[Element, frozenset[str]]:
    """Return the words of each element's class and id; those of consent only in a banner.

    Elements in code have none: their classes tell the colours of comments, tags and the like.
    """
    buttons = {each for each in body.iter("button", "a", "input") if _is_consent_button(each)}
    asking = buttons | find_ancestors(buttons)
    names: dict[Element, frozenset[str]] = {}
    coloured = {inner for code in body.iter("pre", "code") for inner in code.iterdescendants()}
    for element in body.iterdescendants(etree.Element):
        if element in coloured:
            continue
        words = split_names(_class_and_id(element))
        keeps_all = not words & _CONSENT_WORDS or element in asking or _is_notice(element, weights)
        names[element] = words if keeps_all else words - _CONSENT_WORDS
    return names


def _is_notice(element: Element, weights: TextDensity) -> bool:
    """True if an element says in few words that the site uses cookies."""
    if weights.text_length(element) > _MAX_NOTICE_LENGTH:
        return False
    return _CONSENT_NOTICE.search(extract_beginning(element, _MAX_NOTICE_LENGTH)) is not None


def is_named_extra(element: Element) -> bool:
    """True if names say that a part is no content of its page, such as a comment or an advertisement.

    A footer may be that of an article.
    """
    return bool(split_names(_class_and_id(element)) & (_UNCERTAIN_WORDS - _FOOTER_WORDS))


@lru_cache(maxsize=4096)
def split_names(class_and_id: str) -> frozenset[str]:
    """Return the words of names in lower case; names repeat within a page."""
    return frozenset(word.lower() for word in _WORD.findall(_DESCRIBED_WORDS.sub(" ", class_and_id)))


def drop_side_boxes(body: Element, weights: TextDensity) -> None:
    """Remove boxes beside the part that holds most of a page's unlinked text, whatever their names.

    Descends from the body while one part holds most of that text, and stops at code and at the level of
    paragraphs or of sections: a manual may have one long section among short ones, of which some consist of
    links. In the page's only main part, and beside a single paragraph, only boxes of links are removed:
    short ones without them state facts.
    """
    part, container = body, find_container(body)
    is_inside = False
    while weights.link_share(body) <= 0.5 and not _is_text_level(part):
        dominant = max(part, key=weights.unlinked_length, default=None)
        if (
            dominant is None
            or weights.unlinked_length(dominant) < weights.unlinked_length(part) * _DOMINANT_SHARE
        ):
            return
        # a short page may have one long paragraph, between its title and its price
        is_inside = is_inside or part is container or not has_blocks(dominant)
        sections = _find_alike_sections(part, dominant, weights)
        for other in list(part):
            is_fact = is_inside and weights.link_share(other) < _MIN_BOX_LINKS
            if (
                other is not dominant
                and other not in sections
                and not is_fact
                and _is_beside(other, weights, weights.text_length(body))
            ):
                remove_element(other)
        if sections:
            return
        part = dominant


def _find_alike_sections(part: Element, dominant: Element, weights: TextDensity) -> set[Element]:
    """Return the sections of a part with the tag, class and level of heading of its dominant one.

    Lists of other texts have such headings, too.
    """
    tag = find_first_heading_tag(dominant)
    if not tag or dominant.tag == "article":  # which is complete in itself
        return set()
    return {
        each
        for each in part
        if each is not dominant
        and each.tag == dominant.tag
        and each.get("class") == dominant.get("class")
        and (heading := find_first_heading(each)) is not None
        and heading.tag == tag
        and not is_promotion_heading(reduce_to_letters(extract_all_text(heading)))
        and not lists_texts(each, heading, weights)
    }


def _is_text_level(part: Element) -> bool:
    """True for code, whose coloured words are no boxes, and for a part with paragraphs or headings."""
    return part.tag == "pre" or sum(1 for each in part if each.tag in _TEXT_TAGS) >= 2


def _is_beside(element: Element, weights: TextDensity, page_length: int) -> bool:
    """True if a part is a box of links, or a few words without a heading."""
    if element.tag not in _BOX_TAGS or next(element.iter("h1", "pre"), None) is not None:
        return False
    text, linked = weights.text_length(element), weights.link_share(element)
    short = text < _SHORT_TEXT and next(element.iter("h2", "table", "dl", "img"), None) is None
    return text < page_length * _MAX_LIKELY_SHARE and (short or linked >= _MIN_BOX_LINKS)


def drop_link_lists(body: Element, weights: TextDensity) -> None:
    """Remove lists that consist of links, unless most of the page's text is links."""
    if weights.link_share(body) > 0.5:
        return
    for element in list(body.iter("ul", "ol", "div", "section", "p")):
        links = sum(1 for _ in islice(element.iter("a"), 4))
        if links < 4 or weights.link_share(element) < 0.85 or weights.text_length(element) > 3000:
            continue
        if next(element.iter("pre", "h1", "img"), None) is None:
            remove_element(element)
