"""Read a page's code blocks: their lines and their language."""

from __future__ import annotations

import re

from centgate.web.extract.dom import Element, extract_all_text, remove_element
from centgate.web.extract.elements import HEADING_LEVELS, PRESERVED_SPACE, name_set

_LANGUAGE_CLASS = re.compile(
    r"(?:^|[\s;])(language|lang|highlight-source|highlight|brush|syntax|code|prism)[-:]\s*([a-z0-9+#.-]{1,20})",
    re.IGNORECASE,
)
_LANGUAGE_PREFIXES = frozenset({"language", "brush", "highlight-source"})
"""Prefixes after which only a language stands; others also begin names of boxes: `code-wrapper`."""
_LANGUAGES = name_set(
    "asm awk bash bat c clojure cmake cmd console cpp cs csharp css csv cxx dart diff docker dockerfile "
    "elixir elm erlang f90 fish fortran fsharp go golang graphql groovy haskell hcl html http ini java "
    "javascript jinja js json json5 jsonc jsx julia kotlin kt latex less lisp lua make makefile markdown "
    "matlab md mermaid nginx nim nix objc objectivec ocaml pascal perl php php+html pl powershell prolog "
    "promql protobuf ps1 pwsh py pycon pytb python python3 r rb regex rs rst ruby rust sass scala scheme "
    "scss sh shell shell-session sol solidity sql svelte swift tcl terraform tex toml ts tsx typescript "
    "vb vim vue wasm xml yaml yml zig zsh"
)
"""Classes accepted as a language without a prefix such as `language-`."""
_PREFIXED_LANGUAGES = _LANGUAGES | name_set(
    "ada apl applescript arduino asciidoc batch batchfile c++ cobol coq crystal cuda cython d django f# "
    "fortran77 gherkin html+django html+jinja ipython ipython3 ipythonconsole jsonnet julia-repl "
    "lean lean4 llvm mysql nasm objective-c octave plpgsql postgresql puppet pug purescript pycon3 qml "
    "racket razor rest restructuredtext robotframework sas sparql stata systemverilog thrift tsql twig "
    "udiff vala vbnet verilog vhdl wat wgsl"
)
"""Names accepted as a language after any prefix; without one, some are ambiguous."""
_NATURAL_LANGUAGES = name_set(
    "ar be bg bn ca cs da de en es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja ka kk kn ko lt lv mk "
    "mn mr ms nb ne nl nn no pa pl pt ro ru sk sl sq sr sv sw ta te th tl tr uk ur uz vi zh"
)
"""Codes of natural languages, which stand after `lang-` as well."""
_NOT_LANGUAGES = name_set(
    "none default text txt plain plaintext nohighlight notranslate block code example copy"
)
_LINE_NUMBER_CLASS = re.compile(
    r"(^|[\s_-])(line-?numbers?(-rows)?|linenos?|gutter|lnt|blob-num|copy-?btn|copy-?button)([\s_]|$)"
)
_SPACES = re.compile(r"[ \t\r\n\f]+")
_LINE_TAGS = name_set("div p li tr")
_LINE_STYLE = re.compile(
    r"(?<![-\w])display\s*:\s*(?:block|flex|grid|list-item|table-row)\b(?!-)", re.IGNORECASE
)
_NUMBERS = re.compile(r"[\d\s]+")
_SKIPPED_TAGS = name_set("button script style template select input svg")
_MAX_ANCESTORS = 3
"""Number of elements around a block that are searched for its language."""


def extract_code(pre: Element) -> str:
    """Return the lines of a block, without line numbers and buttons; empty for a column of line numbers."""
    if _is_number_column(pre):
        return ""
    parts: list[str] = []
    _collect_text(pre, parts, 0)
    text = "".join(parts).replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    lines = [line.rstrip() for line in text.rstrip().split("\n")]
    first_line = next((number for number, line in enumerate(lines) if line), len(lines))
    return "\n".join(lines[first_line:])


def mark_code_lines(root: Element) -> None:
    """Turn code of several lines that stands outside of `pre` into code blocks, as browsers show it."""
    for part in list(root.iter("div")):
        if _is_listing(part):
            _join_lines(part)
    for code in list(root.iter("code")):
        if next(code.iterancestors("pre", "code", "td", "th", *HEADING_LEVELS), None) is not None:
            continue
        has_breaks = next(code.iter("br"), None) is not None
        is_preserved = PRESERVED_SPACE.search(code.get("style") or "") is not None or _fills_box(code)
        if not has_breaks and not (is_preserved and "\n" in extract_all_text(code).strip()):
            continue
        if not is_preserved:
            _collapse_spaces(code)
        code.tag = "pre"


def _is_listing(part: Element) -> bool:
    """True for code as Doxygen writes it: a division per line, whose spaces a sheet of styles preserves."""
    return (
        part.get("class") == "fragment"
        and len(part) > 0
        and all(line.tag == "div" and line.get("class") in ("line", "ttc") for line in part)
    )


def _join_lines(listing: Element) -> None:
    """Turn a listing into a code block, without the spaces between its lines and without its tips.

    A tip is shown beside a name while the mouse is over it.
    """
    for tip in listing.findall("div[@class='ttc']"):
        remove_element(tip)
    for line in listing:
        line.tail = None
    listing.tag, listing.text = "pre", None


def _fills_box(code: Element) -> bool:
    """True if code without `br` is all that a division holds, which then most likely shows its lines."""
    parent = code.getparent()
    if parent is None or parent.tag not in ("div", "figure") or len(parent) > 1:
        return False
    beside = (parent.text or "") + (code.tail or "")
    return not beside.strip() and next(code.iter("br"), None) is None


def _collapse_spaces(code: Element) -> None:
    """Collapse white space as outside of `pre`, where only `br` ends a line; no-break spaces stay."""
    for each in code.iter():
        each.text = _SPACES.sub(" ", each.text) if each.text else each.text
        if each is not code and each.tail:
            each.tail = _SPACES.sub(" ", each.tail)
        if each.tag == "br" and each.tail:
            each.tail = each.tail.lstrip(" ")


def _collect_text(element: Element, parts: list[str], depth: int) -> None:
    if depth > 60:
        parts.extend(str(text) for text in element.itertext())
        return
    if element.text:
        parts.append(element.text)
    for child in element:
        tag = child.tag
        if tag == "br":
            parts.append("\n")
        elif tag not in _SKIPPED_TAGS and not _is_line_number(child):
            _collect_line(child, parts, depth + 1)
        if child.tail:
            parts.append(child.tail)


def _collect_line(element: Element, parts: list[str], depth: int) -> None:
    """Collect the text of an element, as lines of its own if it is shown so."""
    if element.tag not in _LINE_TAGS and not _LINE_STYLE.search(element.get("style") or ""):
        _collect_text(element, parts, depth)
        return
    _end_line(parts)
    before = len(parts)
    _collect_text(element, parts, depth)
    if element.tag == "li" and len(parts) == before:  # shown with its number
        parts.append("\n")
    elif element.tag in _LINE_TAGS or not (element.tail or "").startswith(("\n", "\r")):
        _end_line(parts)


def _end_line(parts: list[str]) -> None:
    """End a line after the element that holds it, unless it ends with a line feed already."""
    if parts and not parts[-1].endswith("\n"):
        parts.append("\n")


def _is_line_number(element: Element) -> bool:
    classes = element.get("class")
    return bool(classes) and _LINE_NUMBER_CLASS.search(classes) is not None


def _is_number_column(pre: Element) -> bool:
    """True if a block is a cell with the line numbers of the code in the next one."""
    cell = next(pre.iterancestors("td"), None)
    if cell is None or not _is_line_number(cell):
        return False
    return _NUMBERS.fullmatch(extract_all_text(pre)) is not None


def drop_language_labels(root: Element) -> None:
    """Remove the language names written above code blocks."""
    for pre in list(root.iter("pre")):
        label = pre.getprevious()
        if label is None or label.tag not in ("div", "span", "p", "figcaption"):
            continue
        text = extract_all_text(label).replace("Copy code", "").replace("Copy", "").strip().lower()
        if text in _LANGUAGES:
            remove_element(label)


def detect_language(pre: Element) -> str:
    """Return a block's language in lower case, by its classes or those around it; empty if unknown."""
    inner = next(pre.iter("code"), None)
    around = [
        each
        for each, _ in zip(
            pre.iterancestors("div", "figure", "td", "section"), range(_MAX_ANCESTORS), strict=False
        )
    ]
    for element in (*(() if inner is None else (inner,)), pre, *around):
        if name := _find_language(element, allow_bare_names=element in (inner, pre)):
            return name
    return ""


def _find_language(element: Element, *, allow_bare_names: bool) -> str:
    for attribute in ("data-lang", "data-language", "data-code-language", "lang"):
        if attribute != "lang" and (name := _normalize_language(element.get(attribute))):
            return name
    classes = element.get("class") or ""
    found = [(match[1].lower(), _normalize_language(match[2])) for match in _LANGUAGE_CLASS.finditer(classes)]
    for prefix, name in sorted(found, key=lambda each: each[0] != "language"):
        if name and _is_language(prefix, name):
            return name
    words = classes.lower().split()
    languages = [word for word in words if word in _LANGUAGES]
    return (
        languages[0] if languages and (allow_bare_names or {"highlight", "sourcecode"} & set(words)) else ""
    )


def _is_language(prefix: str, name: str) -> bool:
    """True if a name after a prefix in a class is that of a programming language."""
    if prefix == "lang":
        return name in _LANGUAGES or name.partition("-")[0] not in _NATURAL_LANGUAGES
    return prefix in _LANGUAGE_PREFIXES or name in _PREFIXED_LANGUAGES


def _normalize_language(text: str | None) -> str:
    name = (text or "").strip().lower()
    is_valid = re.fullmatch(r"[a-z0-9+#.-]{1,20}", name) is not None
    return name.rstrip(".-") if is_valid and name not in _NOT_LANGUAGES else ""
