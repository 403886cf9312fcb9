"""JavaScript and TypeScript files cut into pieces: what they export, by its comments and types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from centgate.libdocs.declarations import Declaration, declarations
from centgate.libdocs.docstrings import examples_and_text
from centgate.libdocs.documents import Document
from centgate.libdocs.jsdoc import is_private, markdown
from centgate.libdocs.pieces import Piece, anchored, finished, names_of
from centgate.libdocs.python_pieces import REFERENCE, UNDOCUMENTED, is_example
from centgate.libdocs.sections import Shown, page_name

HEAD = 900
"""Characters of a signature that are shown."""
OUTLINE = 1400
"""Characters of an interface's members that are shown."""
MEMBERS = 400
"""Members of one interface or class that are looked at."""
OVERLOADS = 4
TYPE = 0.75
MEMBER = 0.85
"""What matches in types and in members are worth beside those in functions."""
INTERNAL = 0.6
"""For names with a dollar, which libraries keep for themselves mostly."""
LONGEST_LINE = 2000
"""Characters of a line that only a machine writes."""
MINIFIED = 0.3
"""Share of a file in such lines from which it was written for machines."""
LONGEST_EXAMPLE = 3_000
"""Characters of an example with documented parts, above which those are shown rather than the whole."""
_KEYWORDS = r"(?:(?:export|declare|default|abstract|async|public|static|readonly|override|protected)\s+)*"
_DECLARED = re.compile(
    _KEYWORDS
    + r"(?P<kind>function\s*\*?|class|interface|type|enum|const\s+enum|const|let|var)\s+(?P<name>[\w$]+)"
)
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_$][\w$]*(?:\.[\w$]+){1,4})\s*=(?!=)")
_MEMBER = re.compile(
    _KEYWORDS + r"(?:(?:get|set)\s+)?(?P<name>[A-Za-z_$][\w$]*|\"[^\"\n]+\"|'[^'\n]+')\s*(?:\?\s*)?[(:<=?]"
)
_SCRIPTS = ("javascript", "typescript", "jsx", "tsx")
_EXPORTED = re.compile(r"export\b")
_LISTED = re.compile(
    r"^export[ \t]{1,9}(?:default[ \t]{1,9}([\w$]{1,200})[ \t]*;?[ \t]*$|\{([^{}]{0,9000})\})", re.MULTILINE
)
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_EXPORTED_LINE = re.compile(r"^export\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    declaration: Declaration
    code: str
    comment: str | None
    weight: float = 1.0


def pieces(document: Document) -> list[Piece]:
    """A file's pieces; none of what a machine wrote or shortened."""
    if is_minified(document.text):
        return []
    text = _without_long_lines(document.text)
    language = document.path[-3:] if document.path.endswith((".tsx", ".jsx")) else document.kind
    ambient = document.path.endswith((".d.ts", ".d.mts", ".d.cts"))
    if is_example(document.path) and not ambient and not _is_module(text):
        name, url = page_name(document.path), document.source_url
        return finished(Piece(name, (), text, language, None, url, document.path))
    symbols = _merged(_symbols(declarations(text), _offered(text), ambient=ambient))
    return [piece for symbol in symbols for piece in _pieces_of(document, symbol, language)]


def is_minified(text: str) -> bool:
    """Whether a file was written for machines only; one long line, a list of exports, does not make it so."""
    long = sum(len(line) for line in text.splitlines() if len(line) > LONGEST_LINE)
    return long > len(text) * MINIFIED


def _without_long_lines(text: str) -> str:
    """With empty lines in place of those that machines wrote, which also take long to look through."""
    return "\n".join(line if len(line) <= LONGEST_LINE else "" for line in text.split("\n"))


def _is_module(text: str) -> bool:
    """Whether a file among examples is a part of the library that is shipped with them."""
    return len(text) > LONGEST_EXAMPLE and "/**" in text and _EXPORTED_LINE.search(text) is not None


def _offered(text: str) -> frozenset[str]:
    """The names that are exported apart from their declarations."""
    return frozenset(name for listed in _LISTED.findall(text) for name in _NAME.findall(" ".join(listed)))


def _symbols(found: Iterable[Declaration], offered: frozenset[str], *, ambient: bool) -> Iterator[_Symbol]:
    for declaration in found:
        if declaration.comment and is_private(declaration.comment):
            continue
        declared = _DECLARED.match(declaration.head)
        if declared and _is_public(declared["name"]):
            if ambient or _EXPORTED.match(declaration.head) or declared["name"] in offered:
                yield from _declared(declaration, re.sub(r"\W+", "", declared["kind"]), declared["name"])
        elif not declared and declaration.comment and (assigned := _ASSIGNED.match(declaration.head)):
            name = re.sub(r"^(?:module\.)?exports\.|\.prototype(?=\.)", "", assigned["name"])
            if _is_public(name.split(".")[-1]) and name != "exports":
                yield _Symbol(name, declaration, _shortened(declaration.head), declaration.comment)


def _declared(declaration: Declaration, kind: str, name: str) -> Iterator[_Symbol]:
    qualified = f"{declaration.container}.{name}" if declaration.container else name
    if kind in ("interface", "class") and declaration.body is not None:
        yield _Symbol(qualified, declaration, _outline(declaration), declaration.comment, TYPE)
        yield from _members(declaration, qualified)
    elif kind in ("type", "enum", "constenum") and declaration.body is not None:
        yield _Symbol(qualified, declaration, _outline(declaration), declaration.comment, TYPE)
    else:
        weight = TYPE if kind == "type" else 1.0
        yield _Symbol(qualified, declaration, _shortened(declaration.head), declaration.comment, weight)


def _members(declaration: Declaration, owner: str) -> Iterator[_Symbol]:
    """Members that are documented."""
    found = declarations(declaration.body or "", first_line=declaration.line)
    for _, member in zip(range(MEMBERS), found, strict=False):
        named = _MEMBER.match(member.head)
        if named is None or member.comment is None or is_private(member.comment):
            continue
        name = named["name"].strip("\"'")
        if _is_public(name):
            yield _Symbol(f"{owner}.{name}", member, _shortened(member.head), member.comment, MEMBER)


def _merged(symbols: Iterable[_Symbol]) -> list[_Symbol]:
    """Overloads made one: their signatures below each other, the first comment there is.

    Those that should not be used any more are left out where there are others.
    """
    merged: dict[str, _Symbol] = {}
    for symbol in symbols:
        above = merged.get(symbol.name)
        if above is None or (_is_deprecated(above) and not _is_deprecated(symbol)):
            merged[symbol.name] = symbol
        elif _is_deprecated(symbol):
            continue
        elif symbol.code not in above.code and above.code.count("\n;") + above.code.count(";\n") < OVERLOADS:
            code = f"{above.code};\n{symbol.code}" if len(above.code) < HEAD else above.code
            merged[symbol.name] = replace(above, code=code, comment=above.comment or symbol.comment)
    return list(merged.values())


def _is_deprecated(symbol: _Symbol) -> bool:
    return "@deprecated" in (symbol.comment or "")


def _pieces_of(document: Document, symbol: _Symbol, language: str) -> Iterator[Piece]:
    text = markdown(symbol.comment, language) if symbol.comment else ""
    url = anchored(document.source_url, symbol.declaration.line, symbol.declaration.last)
    weight = (REFERENCE if text else UNDOCUMENTED) * symbol.weight * (INTERNAL if "$" in symbol.name else 1.0)
    if not text and symbol.code.endswith("{}"):
        return
    for shown in _with_signature(symbol.code, examples_and_text(text, language=language), language):
        trail, names = (_module(document.path),), names_of(symbol.name)
        yield from finished(Piece(symbol.name, trail, *shown, url, document.path, names, weight))


def _with_signature(code: str, examples: list[Shown], language: str) -> list[Shown]:
    """The signature put above the first example, or before it when that is in another language."""
    first, *rest = examples or [Shown(None, None, None)]
    if first.code is None:
        return [Shown(code, language, first.text), *rest]
    if first.language in _SCRIPTS:
        return [Shown(f"{code}\n\n{first.code}", first.language, first.text), *rest]
    return [Shown(code, language, first.text), first._replace(text=None), *rest]


def _outline(declaration: Declaration) -> str:
    """The head and the members without their comments, as many as can be shown."""
    body = re.sub(r"/\*.*?(?:\*/|\Z)|(?<![:'\"`])//[^\n]*", "", declaration.body or "", flags=re.DOTALL)
    lines = [line.rstrip() for line in body.split("\n") if line.strip()]
    kept: list[str] = []
    for line in lines:
        if sum(map(len, kept)) + len(line) > OUTLINE:
            kept.append("    // ...")
            break
        kept.append(line)
    return (
        f"{declaration.head.strip()} {{\n" + "\n".join(kept) + "\n}"
        if kept
        else f"{declaration.head.strip()} {{}}"
    )


def _shortened(head: str) -> str:
    lines = [line.rstrip() for line in head.strip().removesuffix("=>").rstrip().split("\n")]
    indent = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
    code = "\n".join([lines[0], *(line[indent:] for line in lines[1:])])
    return code if len(code) <= HEAD else code[:HEAD].rsplit("\n", 1)[0] + "\n// ..."


def _module(path: str) -> str:
    return re.sub(r"(?:\.d)?\.[cm]?[jt]sx?$", "", path)


def _is_public(name: str) -> bool:
    return not name.startswith("_")
