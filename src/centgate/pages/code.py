"""A page's blocks of code: their lines, and the language they are in."""

from __future__ import annotations

import re

from centgate.pages.document import Element, remove, text_of
from centgate.pages.elements import names

_PREFIXED = re.compile(
    r"(?:^|[\s;])(?:language|lang|highlight-source|highlight|brush|syntax|code|prism)[-:]\s*([a-z0-9+#.-]{1,20})",
    re.IGNORECASE,
)
_NAMES = names(
    "asm awk bash bat c clojure cmake cmd console cpp cs csharp css csv cxx dart diff docker dockerfile "
    "elixir elm erlang f90 fish fortran fsharp go golang graphql groovy haskell hcl html http ini java "
    "javascript jinja js json json5 jsonc jsx julia kotlin kt latex less lisp lua make makefile markdown "
    "matlab md mermaid nginx nim nix objc objectivec ocaml pascal perl php php+html pl powershell prolog "
    "promql protobuf ps1 pwsh py pycon pytb python python3 r rb regex rs rst ruby rust sass scala scheme "
    "scss sh shell shell-session sol solidity sql svelte swift tcl terraform tex toml ts tsx typescript "
    "vb vim vue wasm xml yaml yml zig zsh"
)
"""What classes must say when nothing before it says that it is a language."""
_NOT_NAMES = names("none default text txt plain plaintext nohighlight notranslate block code example copy")
_NUMBERS = re.compile(
    r"(^|[\s_-])(line-?numbers?(-rows)?|linenos?|gutter|lnt|blob-num|copy-?btn|copy-?button)([\s_]|$)"
)
_BREAKING = names("div p li tr")
_UNREAD = names("button script style template select input svg")
_OUTER = 3
"""Elements around a block in which its language may be said."""


def code_of(pre: Element) -> str:
    """The lines of a block, without their numbers and without buttons."""
    parts: list[str] = []
    _collect(pre, parts, 0)
    text = "".join(parts).replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    lines = [line.rstrip() for line in text.rstrip().split("\n")]
    first = next((at for at, line in enumerate(lines) if line), len(lines))
    return "\n".join(lines[first:])


def _collect(element: Element, parts: list[str], depth: int) -> None:
    if depth > 60:
        parts.extend(str(text) for text in element.itertext())
        return
    if element.text:
        parts.append(element.text)
    for child in element:
        tag = child.tag
        if tag == "br":
            parts.append("\n")
        elif tag not in _UNREAD and not _is_number(child):
            if tag in _BREAKING:
                _break(parts)
            _collect(child, parts, depth + 1)
            if tag in _BREAKING:
                _break(parts)
        if child.tail:
            parts.append(child.tail)


def _break(parts: list[str]) -> None:
    """A line that is an element of its own ends with it; many have their line feed as well."""
    if parts and not parts[-1].endswith("\n"):
        parts.append("\n")


def _is_number(element: Element) -> bool:
    names = element.get("class")
    return bool(names) and _NUMBERS.search(names) is not None


def drop_labels(root: Element) -> None:
    """Remove the names of languages that are written above blocks of code."""
    for pre in list(root.iter("pre")):
        label = pre.getprevious()
        if label is None or label.tag not in ("div", "span", "p", "figcaption"):
            continue
        text = text_of(label).replace("Copy code", "").replace("Copy", "").strip().lower()
        if text in _NAMES:
            remove(label)


def language_of(pre: Element) -> str:
    """The language of a block in lower case, as its classes or those around it say; empty when unsaid."""
    inner = next(pre.iter("code"), None)
    around = [
        each
        for each, _ in zip(pre.iterancestors("div", "figure", "td", "section"), range(_OUTER), strict=False)
    ]
    for element in (*(() if inner is None else (inner,)), pre, *around):
        if name := _said(element, loose=element in (inner, pre)):
            return name
    return ""


def _said(element: Element, *, loose: bool) -> str:
    for attribute in ("data-lang", "data-language", "data-code-language", "lang"):
        if attribute != "lang" and (name := _language(element.get(attribute))):
            return name
    classes = element.get("class") or ""
    for found in _PREFIXED.finditer(classes):
        if name := _language(found[1]):
            return name
    words = classes.lower().split()
    known = [word for word in words if word in _NAMES]
    return known[0] if known and (loose or {"highlight", "sourcecode"} & set(words)) else ""


def _language(text: str | None) -> str:
    name = (text or "").strip().lower()
    fits = re.fullmatch(r"[a-z0-9+#.-]{1,20}", name) is not None
    return name.rstrip(".-") if fits and name not in _NOT_NAMES else ""
