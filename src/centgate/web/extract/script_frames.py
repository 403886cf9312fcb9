"""Detect pages of which the server sends a frame only: menus, a heading and a footer around what scripts add.

Honest short pages have a heading, a footer and scripts as well. What tells them apart is an empty place in
the middle: one that a script names, or that an application's scripts are likely to fill.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from itertools import islice

from lxml import etree

from centgate.web.extract.boilerplate import drop_certain_banners, split_names
from centgate.web.extract.dom import Element, extract_all_text, find_body, remove_element
from centgate.web.extract.elements import HEADING_LEVELS, extract_text, is_tracking_pixel, name_set
from centgate.web.extract.interstitials import is_placeholder

MAX_FRAME_REST = 60
"""Characters outside menus and headings below which a page has no text."""
MAX_FRAME_HEADINGS = 80
"""Characters of headings above which they are the text of a page, such as a list of dates."""
MAX_FRAME_LINKS = 1
"""Links outside menus above which a page is a list of links."""
MAX_ELEMENTS, MAX_HEADINGS = 5000, 50
"""Elements and headings of a page above which it is not looked at: it shows more than a frame."""
_MAX_CODE, _MAX_PLACES, _MAX_CLASSES = 200_000, 50, 5
_FRAME_TAGS = name_set(
    "nav footer header aside menu search dialog button script style noscript template link meta"
)
_FRAME_ROLES = name_set("navigation banner contentinfo complementary search dialog menu menubar toolbar")
_FRAME_NAMES = name_set(
    "nav navbar navigation menu topbar subnav footer header masthead copyright colophon breadcrumb "
    "breadcrumbs skip skiplink sidebar social"
)
"""Words in a class or an id of what is around a page's content."""
_MEDIA_TAGS = (
    *("img", "picture", "video", "audio", "canvas", "iframe", "object", "embed", "math"),
    *("form", "input", "select", "textarea", "pre"),
)
"""Elements that show something without text."""
_PLACE_TAGS = name_set("div main section article ul ol dl table tbody")
_OTHER_NAMES = name_set(
    "map maps ad ads advert adverts advertisement banner google gtm fb captcha recaptcha comment comments "
    "disqus slider carousel swiper slideshow modal dialog cookie cookies consent player video audio widget "
    "chat toast toasts overlay portal portals tooltip top back scroll share newsletter popup popups toc "
    "announcer announcement progress backdrop lightbox gallery hero background bg particles image images "
    "picture photo photos logo icon clear clearfix spacer decoration separator divider countdown clock timer "
    "weather calendar feed instagram twitter facebook language translate notification notifications alert "
    "alerts messages status error errors animation lottie sentinel pixel analytics tracking debug"
)
"""Words in names of places that are no text of the page, or of a page that is complete without them."""
_SPINNER = re.compile(r"load|spin|progress|placeholder|skeleton|blank|pixel", re.IGNORECASE)
_APPLICATION_SCRIPT = re.compile(
    r"(?:^|[/._-])(?:bundles?|chunks?|runtime|vendors?|main|app|application|index|client|polyfills?|webpack)"
    r"(?:[.~_-][\w~.-]*)?\.m?js(?:[?#]|$)|/_next/|/_nuxt/|/_app/|/assets/[\w-]+[.-][\w-]{6,}\.m?js",
    re.IGNORECASE,
)
_BUILDING_CALL = re.compile(
    r"\.(?:innerHTML|outerHTML|textContent)\b|\.(?:append|prepend|replaceChildren|replaceWith|appendChild|"
    r"insertAdjacent\w+|insertBefore|html|render|mount|hydrate|createRoot)\s*\(|\b(?:render|createRoot|hydrate)\s*\("
)


def has_only_frame(root: Element) -> bool:
    """True if a page has no text beside menus, headings and footer, and a place that scripts fill."""
    scripts = [each for each in root.iter("script") if "json" not in (each.get("type") or "")]
    body = find_body(root)
    if not scripts or next(islice(body.iter(), MAX_ELEMENTS, None), None) is not None:
        return False
    content = copy.deepcopy(body)
    drop_certain_banners(content)
    _drop_frame(content)
    if any(not _is_spinner(each) for each in content.iter(*_MEDIA_TAGS)):
        return False
    if next(islice(content.iter(*HEADING_LEVELS), MAX_HEADINGS, None), None) is not None:
        return False
    # before places are searched, as the text of each element around it is read again there
    rest = _measure_rest(content)
    if rest >= MAX_FRAME_REST or _measure_headings(content) > MAX_FRAME_HEADINGS:
        return False
    places = list(islice(filter(_is_place, content.iterdescendants(etree.Element)), _MAX_PLACES))
    if not places or _count_links(content) > MAX_FRAME_LINKS:
        return False
    return _names_place(places, scripts) or (not rest and _has_application(places, scripts))


def _drop_frame(body: Element) -> None:
    """Remove menus, headers and footers; the header of an article, which may have its lead, stays."""
    for element in list(body.iterdescendants(etree.Element)):
        in_content = any(each.tag in ("main", "article") for each in element.iterancestors())
        is_frame = (
            element.tag in _FRAME_TAGS
            or element.get("role") in _FRAME_ROLES
            or bool(_names_of(element) & _FRAME_NAMES and element.tag not in HEADING_LEVELS)
        )
        if is_frame and not (in_content and element.tag in ("header", "aside")):
            remove_element(element)


def _is_spinner(element: Element) -> bool:
    """True for a picture that only says that something is loading, or that only counts visitors."""
    if element.tag == "img" and is_tracking_pixel(element):
        return True
    within = (element, *islice(element.iterancestors(), 2))
    marks = " ".join(each.get(name) or "" for each in within for name in ("class", "id"))
    return element.tag == "img" and bool(_SPINNER.search(f"{marks} {element.get('src') or ''}"))


def _is_place(element: Element) -> bool:
    """True for an empty element, or one that says that it is loading, which has no name of an extra."""
    if _names_of(element) & _OTHER_NAMES:
        return False
    if element.tag not in _PLACE_TAGS and "-" not in element.tag:
        return False
    text = extract_text(element).strip()
    return not text or is_placeholder(text) or _measure_rest(element) == 0


def _measure_rest(element: Element) -> int:
    """Return the characters of an element's text outside headings and notes that it is loading."""
    text = extract_text(element).strip()
    rest = max(0, _count_letters(text) - _measure_headings(element))
    return 0 if is_placeholder(text) else rest


def _measure_headings(element: Element) -> int:
    return sum(
        _count_letters(extract_text(each))
        for each in element.iter(*HEADING_LEVELS)
        if not any(above.tag in HEADING_LEVELS for above in each.iterancestors())
    )


def _count_letters(text: str) -> int:
    return len("".join(text.split()))


def _count_links(content: Element) -> int:
    return sum(1 for each in content.iter("a") if each.get("href") and extract_text(each).strip())


def _names_place(places: Sequence[Element], scripts: Sequence[Element]) -> bool:
    """True if a script builds a part of the page and names a place."""
    code = "\n".join(extract_all_text(each)[:_MAX_CODE] for each in scripts if not each.get("src"))[
        :_MAX_CODE
    ]
    return bool(_BUILDING_CALL.search(code)) and any(_is_named(place, code) for place in places)


def _has_application(places: Sequence[Element], scripts: Sequence[Element]) -> bool:
    """True if an application is likely to fill an empty place; many complete pages have both, too."""
    has_script = any(
        (each.get("type") == "module" and each.get("src"))
        or _APPLICATION_SCRIPT.search(each.get("src") or "")
        for each in scripts
    )
    return has_script and any(_is_mount(place) for place in places)


def _is_named(place: Element, code: str) -> bool:
    """True if code has the id, a class or the tag of a place as a selector or in quotes."""
    names = [place.get("id") or "", *(place.get("class") or "").split()[:_MAX_CLASSES]]
    if place.tag in ("main", "article") or "-" in place.tag:
        names.append(place.tag)
    return any(
        re.search(rf"[\"'`#.\s]{re.escape(name)}[\"'`\s>:\[]", code) is not None
        for name in names
        if len(name) >= 2
    )


def _is_mount(place: Element) -> bool:
    """True for an empty element with an id or data for scripts, an element of their own, or a `main`."""
    if extract_text(place).strip() and not is_placeholder(extract_text(place).strip()):
        return False
    return bool(
        place.get("id")
        or place.tag in ("main", "article")
        or "-" in place.tag
        or any(str(name).startswith("data-") for name in place.attrib)
    )


def _names_of(element: Element) -> frozenset[str]:
    """Return the words of an element's class and id, and of its tag if it is an element of the page's own."""
    tag = element.tag if "-" in element.tag else ""
    return split_names(f"{tag} {element.get('class') or ''} {element.get('id') or ''}"[:400])
