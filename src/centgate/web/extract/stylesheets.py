"""Apply the rules of a page's own style sheets that hide elements by their tag, classes or id.

Sheets hide text that no reader is to see, but also panels, menus and answers that scripts open, which are
content. So an element stays if anything in the page may show it: another rule of its class, for example in an
open parent or a wider window, an animation, a script that names its class or id, or a button before it. A
sheet that hides most of a page with scripts is one that these undo. Only `display`, `visibility`, `font-size`
and offsets from the page are read: transparent text is mostly text that fades in, and clipped or indented
text stands for a picture. Rules for other windows than the usual one, and for print, hide nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from itertools import islice

from lxml import etree
from msgspec import Struct, field

from centgate.web.extract.dom import Element, extract_all_text, extract_beginning
from centgate.web.extract.elements import TITLE_TAGS, has_blocks, name_set
from centgate.web.extract.shadow_roots import find_shadow_elements
from centgate.web.extract.styles import HIDDEN_SIZE, OUT_OF_FLOW, clean_css, normalize_style
from centgate.web.extract.text_density import TextDensity

MAX_CSS, MAX_RULES = 500_000, 5_000
"""Characters and rules above which the sheets are not read: a part of the rules may hide what others show."""
MAX_SELECTORS = 50
"""Selectors of one rule that are read."""
MAX_MATCHES = 8
"""Rules of one class that are applied, the last ones."""
MAX_CLASSES = 20
MAX_SCRIPTS = 500_000
"""Characters of scripts in which classes and ids are looked for."""
MAX_SHEET_SHARE = 0.5
"""Share of the page's text from which on scripts are believed to show what the sheets hide."""
MAX_QUESTION = 300
_BRACE = re.compile(r"([^{}]*)([{}])")
_SIMPLE_SELECTOR = re.compile(r"([a-z][\w-]*)?((?:[.#][\w-]+)*)", re.IGNORECASE)
_NAME = re.compile(r"[.#][\w-]+")
_ARGUMENTS = re.compile(r"\([^()]*\)")
_COMBINATOR = re.compile(r"[\s>+~]+")
_STRING = re.compile(r"""["'`]([^"'`\n]{1,200})["'`]""")
_WORD = re.compile(r"[\w-]+")
_SHEET_NAMES = name_set(
    "display visibility font font-size position left top right inset inset-inline inset-inline-start "
    "inset-block animation animation-name -webkit-animation"
)
_MAY_HIDE = re.compile(r"display\s*:\s*none|visibility\s*:|font(?:-size)?\s*:|-\d{4}", re.IGNORECASE)
_HIDING = {
    "display": re.compile(r"display:none"),
    "visibility": re.compile(r"visibility:(?:hidden|collapse)"),
    "font-size": HIDDEN_SIZE,
    "offset": re.compile(r"(?:left|top|right):-\d{4}"),
}
_SHOWING = {
    "display": re.compile(r"display:(?!none)"),
    "visibility": re.compile(r"visibility:visible"),
    "font-size": re.compile(r"font-size:(?!0)"),
    "offset": re.compile(r"(?:left|top|right):(?!-)|position:(?!absolute|fixed)"),
}
_INHERITED = re.compile(r"visibility|font", re.IGNORECASE)
"""Properties by which an element is shown in a hidden one."""


class _Rule(Struct, frozen=True):
    """Rule with a selector without combinators, as its declarations are written."""

    weight: tuple[int, int, int, int]
    """Number of ids, classes and tags in the selector, and the place of the rule: the highest counts."""
    tag: str | None
    names: frozenset[str]
    declarations: str


class _Sheet(Struct):
    """Rules of the sheets of a page."""

    rules: defaultdict[str, deque[_Rule]] = field(
        default_factory=lambda: defaultdict[str, deque[_Rule]](lambda: deque(maxlen=MAX_MATCHES))
    )
    """By a class, id or tag of their selector."""
    shown: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Classes and ids that a rule shows under some condition, and the kind of declaration."""


def apply_sheets(root: Element, styles: dict[Element, str]) -> None:
    """Add what the page's sheets declare for elements to the styles written in these."""
    css = _read_css(root)
    if not _MAY_HIDE.search(css):
        return
    sheet = _parse_sheet(css)
    if not any(_hides(rule) for rules in sheet.rules.values() for rule in rules):
        return
    merged = dict(_iter_merged_styles(root, sheet))
    hidden = {
        element: kinds
        for element, style in merged.items()
        if (kinds := _find_hiding_kinds(style) - _find_hiding_kinds(styles.get(element, "")))
    }
    for element in _find_shown(root, hidden, merged, sheet):
        del merged[element]
    styles.update(merged)


def _iter_merged_styles(root: Element, sheet: _Sheet) -> Iterator[tuple[Element, str]]:
    """Yield the elements that rules hide or show, with these and their own declarations as one style."""
    found: dict[tuple[str, str | None, str | None], list[_Rule]] = {}
    shadows = find_shadow_elements(root)
    for element in root.iterdescendants(etree.Element):
        if element in shadows:
            continue
        own = element.get("id")
        key = (element.tag, element.get("class"), own if f"#{own}" in sheet.rules else None)
        rules = found.get(key)
        if rules is None:
            rules = found[key] = _find_rules(*key, sheet) if key[0] not in ("html", "head", "body") else []
        if rules:
            declarations = [*(rule.declarations for rule in rules), element.get("style") or ""]
            yield element, normalize_style(";".join(declarations))


def _read_css(root: Element) -> str:
    """Return the page's sheets without comments; empty if they are too long."""
    parts, length = list[str](), 0
    for each in root.iter("style"):
        if each.get("type", "text/css").lower() != "text/css" or _is_elsewhere(each):
            continue
        media = each.get("media")
        text = extract_all_text(each)
        parts.append(f"@media {media} {{{text}}}" if media else text)
        length += len(parts[-1])
        if length > MAX_CSS:
            return ""
    return clean_css("\n".join(parts).replace("<!--", "").replace("-->", ""))


def _is_elsewhere(sheet: Element) -> bool:
    """True for the sheet of a part that is not shown, or of a shadow root, which holds for this alone."""
    around = sheet.iterancestors("noscript", "template", "svg", "div")
    return any(each.tag != "div" or each.get("shadowrootmode") for each in around)


def _parse_sheet(css: str) -> _Sheet:
    """Return the rules that are read; none if they are too many."""
    sheet = _Sheet()
    for place, (selectors, text, condition) in enumerate(_iter_rules(css)):
        if place >= MAX_RULES:
            return _Sheet()
        declarations = _select_declarations(text)
        if not declarations or condition == "never":
            continue
        style = normalize_style(declarations)
        for selector in islice(selectors.split(","), MAX_SELECTORS):
            match = _SIMPLE_SELECTOR.fullmatch(selector.strip())
            names = frozenset(_NAME.findall(match[2])) if match else frozenset[str]()
            if match and condition == "always" and (names or match[1]):
                _add_rule(sheet, match[1], names, place, declarations)
            if not match or condition != "always" or len(names) > 1:
                _add_shown(sheet, selector, style)
    return sheet


def _iter_rules(css: str) -> Iterator[tuple[str, str, str]]:
    """Yield selectors and declarations of each rule, and when it holds: always, sometimes or never."""
    blocks: list[list[str]] = []
    for text, brace in _BRACE.findall(css + "}" * 3):
        if brace == "{":
            before, _, prelude = text.rpartition(";")
            if blocks:
                blocks[-1][1] += before + ";"
            blocks.append([prelude.strip(), ""])
        elif blocks:
            prelude, before = blocks.pop()
            if prelude and not prelude.startswith("@"):
                yield prelude, before + text, _classify_condition([block[0] for block in blocks[:5]])


def _classify_condition(preludes: list[str]) -> str:
    """Return when the rules within some blocks hold, by the words with which these begin."""
    conditions = {_classify_prelude(each.lower()) for each in preludes}
    return next((each for each in ("never", "sometimes") if each in conditions), "always")


def _classify_prelude(prelude: str) -> str:
    if prelude.startswith("@layer"):
        return "always"
    if not prelude.startswith("@media"):
        return "never" if prelude.startswith("@") and "keyframes" in prelude else "sometimes"
    queries = [" ".join(each.split()) for each in prelude.removeprefix("@media").split(",")]
    if any(each in ("all", "screen", "only screen", "") for each in queries):
        return "always"
    is_other = all(each.removeprefix("only ").startswith(("print", "speech")) for each in queries)
    return "never" if is_other else "sometimes"


def _select_declarations(text: str) -> str:
    parts = (part for part in text.split(";") if part.partition(":")[0].strip().lower() in _SHEET_NAMES)
    return ";".join(parts)


def _add_rule(sheet: _Sheet, tag: str | None, names: frozenset[str], place: int, declarations: str) -> None:
    ids = sum(name[0] == "#" for name in names)
    weight = (ids, len(names) - ids, int(tag is not None), place)
    tag = tag.lower() if tag else None
    sheet.rules[min(names, default=tag or "")].append(_Rule(weight, tag, names, declarations))


def _add_shown(sheet: _Sheet, selector: str, style: str) -> None:
    """Add the names of the elements that a selector means, without those around them."""
    element = _COMBINATOR.split(_ARGUMENTS.sub("", selector).strip())[-1]
    kinds = [kind for kind, pattern in _SHOWING.items() if pattern.search(style)]
    sheet.shown.update((name, kind) for name in _NAME.findall(element) for kind in kinds)


def _hides(rule: _Rule) -> bool:
    style = normalize_style(rule.declarations)
    return any(pattern.search(style) for pattern in _HIDING.values())


def _find_rules(tag: str, classes: str | None, own: str | None, sheet: _Sheet) -> list[_Rule]:
    """Return the rules for an element of these names, the most important last; none if they hide nothing."""
    names = {f".{each}" for each in (classes or "").split()[:MAX_CLASSES]}
    names |= {f"#{own}"} if own else set()
    rules = [
        rule
        for key in (*names, tag)
        for rule in sheet.rules.get(key, ())
        if rule.names <= names and rule.tag in (None, tag)
    ]
    matters = any(_hides(rule) or _INHERITED.search(rule.declarations) for rule in rules)
    return sorted(rules, key=lambda rule: rule.weight) if matters else []


def _find_hiding_kinds(style: str) -> frozenset[str]:
    """Return the kinds of declarations by which a style hides an element."""
    kinds = {kind for kind, pattern in _HIDING.items() if pattern.search(style)}
    return frozenset(kinds if OUT_OF_FLOW.search(style) else kinds - {"offset"})


def _find_shown(
    root: Element, hidden: Mapping[Element, frozenset[str]], styles: Mapping[Element, str], sheet: _Sheet
) -> list[Element]:
    """Return the hidden elements that something in the page may show."""
    if not hidden:
        return []
    scripts = _read_script_words(root)
    if scripts is not None and _hides_most(root, hidden):
        return list(hidden)
    counts: dict[str, int] = defaultdict(int)
    for element in hidden:
        counts[element.get("class") or ""] += 1
    return [
        element
        for element, kinds in hidden.items()
        if "animation" in styles[element]
        or any((name, kind) in sheet.shown for name in _list_names(element) for kind in kinds)
        or (scripts is not None and any(name[1:] in scripts for name in _list_names(element)))
        or (kinds == frozenset({"font-size"}) and _may_have_sizes(element))
        or _is_opened(element, is_repeated=scripts is not None and counts[element.get("class") or ""] > 1)
    ]


def _list_names(element: Element) -> list[str]:
    own = element.get("id")
    classes = [f".{each}" for each in (element.get("class") or "").split()[:MAX_CLASSES]]
    return [*classes, f"#{own}"] if own else classes


def _read_script_words(root: Element) -> set[str] | None:
    """Return the words in the strings of the page's scripts; None if it has no scripts."""
    scripts = [each for each in root.iter("script") if "json" not in (each.get("type") or "")]
    text = "\n".join(map(extract_all_text, scripts))[:MAX_SCRIPTS]
    words = {word for string in _STRING.findall(text) for word in _WORD.findall(string)}
    return words if scripts else None


def _hides_most(root: Element, hidden: Mapping[Element, frozenset[str]]) -> bool:
    weights = TextDensity(root)
    outer = [each for each in hidden if not any(around in hidden for around in each.iterancestors())]
    return sum(map(weights.text_length, outer)) >= weights.text_length(root) * MAX_SHEET_SHARE


def _may_have_sizes(element: Element) -> bool:
    """True if elements in another may have a size of their own, as in a row without gaps."""
    inner = element.iterdescendants(etree.Element)
    return has_blocks(element) or any(each.get("class") or each.get("style") for each in inner)


def _is_opened(element: Element, *, is_repeated: bool) -> bool:
    """True if a button stands before an element, or, before several alike ones, a title or a question."""
    before = element.getprevious()
    if before is None:
        return False
    if (
        before.tag in ("button", "label", "summary")
        or before.get("role") == "button"
        or before.get("onclick")
    ):
        return True
    if next(before.iter("button"), None) is not None and before.tag in TITLE_TAGS:
        return True
    is_question = extract_beginning(before, MAX_QUESTION).endswith("?")
    return is_repeated and (before.tag in TITLE_TAGS or is_question)
