"""Split JavaScript and TypeScript files into chunks: their exports, with comments and types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from textwrap import indent

from msgspec import Struct
from msgspec.structs import replace

from centgate.libdocs.parse.chunk import Chunk, finalize_chunks, link_to_lines, name_variants
from centgate.libdocs.parse.code_check import SCRIPT_LANGUAGES, comment_out, is_complete
from centgate.libdocs.parse.docstrings import add_signature, split_examples
from centgate.libdocs.parse.documents import PackageDocument, is_example
from centgate.libdocs.parse.js_declarations import Declaration, parse_declarations
from centgate.libdocs.parse.jsdoc import is_private, render_jsdoc
from centgate.libdocs.parse.python import REFERENCE_WEIGHT, UNDOCUMENTED_WEIGHT
from centgate.libdocs.parse.sections import Excerpt, page_name

MAX_SIGNATURE = 900
"""Maximum characters of a signature."""
MAX_OUTLINE = 1400
"""Maximum characters of an interface's members."""
MAX_MEMBERS = 400
"""Maximum number of members read from one interface or class."""
MAX_OVERLOADS = 4
TYPE_WEIGHT = 0.75
MEMBER_WEIGHT = 0.85
PROPERTY_WEIGHT = 0.6
"""Weights of matches in types, in methods and in other members, compared with functions."""
INTERNAL_FACTOR = 0.6
"""Factor for what is mostly internal to a library, such as names with a dollar sign."""
MAX_LINE_LENGTH = 2000
"""Maximum characters of a handwritten line."""
MINIFIED_SHARE = 0.3
"""Share of longer lines above which a file counts as machine-written."""
MAX_EXAMPLE_LENGTH = 3_000
"""Characters of an example with documented parts above which the parts are shown instead of the whole."""
CUT_MARK = "// ..."
"""Last line of a shortened signature, or of the members shown."""
_CUT = re.compile(rf"^[ \t]*{re.escape(CUT_MARK)}$", re.MULTILINE)
_KEYWORDS = r"(?:(?:export|declare|default|abstract|async|public|static|readonly|override|protected)\s+)*"
_DECLARATION = re.compile(
    _KEYWORDS
    + r"(?P<kind>function\s*\*?|class|interface|type|enum|const\s+enum|const|let|var)\s+(?P<name>[\w$]+)"
)
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_$][\w$]*(?:\.[\w$]+){1,4})\s*=(?!=)")
_MEMBER = re.compile(
    _KEYWORDS + r"(?:(?:get|set)\s+)?(?P<name>[A-Za-z_$][\w$]*|\"[^\"\n]+\"|'[^'\n]+')\s*(?:\?\s*)?[(:<=?]"
)
_EXPORT = re.compile(r"export\b")
_EXPORT_LIST = re.compile(
    r"^export[ \t]{1,9}(?:default[ \t]{1,9}([\w$]{1,200})[ \t]*;?[ \t]*$|\{([^{}]{0,9000})\})", re.MULTILINE
)
_COMMONJS_EXPORT = re.compile(
    r"^(?:exports[ \t]{0,9}=[ \t]{0,9})?(?:module\.)?exports(?:\.([\w$]{1,200}))?[ \t]{0,9}=[ \t]{0,9}"
    r"(?:([\w$]{1,200})[ \t]*;?[ \t]*$|\{([^{}]{0,9000})\})",
    re.MULTILINE,
)
"""Exports of declarations by the module systems of the language and of Node.js."""
_NO_NAMES = re.compile(
    r"/\*.*?(?:\*/|\Z)|//[^\n]*|(?:\"[^\"\n]*\"|'[^'\n]*')(?!\s*:)|\([^()]*\)|\[[^\[\]]*\]", re.DOTALL
)
"""Parts of an object whose names are not exported: comments, texts, arguments and arrays."""
_PRIVATE_FILE = re.compile(r"(?:^|/)(?:_|internals?/)")
"""Modules that packages share among their own files: `_root.js`, `internal/re.js`."""
_EXPORTED_MEMBER = re.compile(r"\s*(?:[\"']?([\w$]{1,200})[\"']?\s*:\s*)?([\w$]{1,200})\s*")
_METHOD = re.compile(r"[\"']?\??\s*(?:[<(]|:\s*(?:<|\([^()]*\)\s*=>))")
_IMPORT_TYPE = re.compile(r"\bimport\((?:\"[^\"\n]{1,200}\"|'[^'\n]{1,200}')\)\.(?=[A-Za-z_$])")
"""The file of a type, before its name."""
_CLASS = re.compile(_KEYWORDS + r"class\b")
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_EXPORT_LINE = re.compile(r"^export\b", re.MULTILINE)


class _Symbol(Struct, frozen=True):
    name: str
    declaration: Declaration
    code: str
    comment: str | None
    weight: float = 1.0
    owner: str | None = None
    """Head of the interface or class that it is a member of, without parameters."""
    is_whole: bool = False
    """True if its code is the whole declaration, not a signature without the body."""


def split_javascript(document: PackageDocument) -> list[Chunk]:
    """Return the chunks of a file; none if it was generated or minified."""
    if is_minified(document.text):
        return []
    text = _blank_long_lines(document.text)
    language = document.path[-3:] if document.path.endswith((".tsx", ".jsx")) else document.kind
    ambient = document.path.endswith((".d.ts", ".d.mts", ".d.cts"))
    if is_example(document.path) and not ambient and not _is_module(text):
        name, url = page_name(document.path), document.source_url
        return finalize_chunks(Chunk(name, (), text, language, None, url, document.path))
    symbols = _merge_overloads(_iter_symbols(document, text, ambient=ambient))
    return [chunk for symbol in symbols for chunk in _split_symbol(document, symbol, language)]


def is_minified(text: str) -> bool:
    """True if a file was written for machines only. One long line, as a list of exports, is not enough."""
    long = sum(len(line) for line in text.splitlines() if len(line) > MAX_LINE_LENGTH)
    return long > len(text) * MINIFIED_SHARE


def _blank_long_lines(text: str) -> str:
    """Blank the lines that machines wrote; these also take long to search."""
    return "\n".join(line if len(line) <= MAX_LINE_LENGTH else "" for line in text.split("\n"))


def _is_module(text: str) -> bool:
    """True if a file in an examples folder is part of the library, shipped with the examples."""
    return len(text) > MAX_EXAMPLE_LENGTH and "/**" in text and _EXPORT_LINE.search(text) is not None


def _find_names(text: str) -> frozenset[str]:
    """Return the names that are exported separately from their declarations."""
    return frozenset(
        name for exports_text in _EXPORT_LIST.findall(text) for name in _NAME.findall(" ".join(exports_text))
    )


def _find_shared(text: str) -> dict[str, str]:
    """Return the names of declarations that Node's own form exports, with those that users import."""
    shared: dict[str, str] = {}
    for member, name, members in _COMMONJS_EXPORT.findall(text):
        parts = _NO_NAMES.sub("()", members).split(",")
        pairs = [each.groups("") for part in parts if (each := _EXPORTED_MEMBER.fullmatch(part))]
        for exported, declared in [(member, name)] if name else pairs:
            if exported in ("", "default", declared):
                shared[declared] = declared
            else:
                shared.setdefault(declared, exported)
    return shared


def _iter_symbols(document: PackageDocument, text: str, *, ambient: bool) -> Iterator[_Symbol]:
    exports = _find_names(text)
    shared = {} if _PRIVATE_FILE.search(document.path) else _find_shared(text)
    for declaration in parse_declarations(text):
        if declaration.comment and is_private(declaration.comment):
            continue
        match = _DECLARATION.match(declaration.head)
        if match and _is_public(match["name"]):
            kind, name = re.sub(r"\W+", "", match["kind"]), match["name"]
            if ambient or _EXPORT.match(declaration.head) or name in exports:
                yield from _declaration_symbols(declaration, kind, name, ambient=ambient)
            elif declaration.comment and _is_public(shared.get(name, "_")):
                # in Node's own form each file exports something; those of folders are mostly for the package
                factor = INTERNAL_FACTOR if "/" in document.path else 1.0
                start, end = match.span("name")
                head = f"{declaration.head[:start]}{shared[name]}{declaration.head[end:]}"
                shown = replace(declaration, head=head)
                for symbol in _declaration_symbols(shown, kind, shared[name], ambient=ambient):
                    yield replace(symbol, weight=symbol.weight * factor)
        elif not match and declaration.comment and (assignment := _ASSIGNMENT.match(declaration.head)):
            name = re.sub(r"^(?:module\.)?exports\.|\.prototype(?=\.)", "", assignment["name"])
            if _is_public(name.split(".")[-1]) and name != "exports":
                yield _Symbol(name, declaration, _shorten_signature(declaration.head), declaration.comment)


def _declaration_symbols(
    declaration: Declaration, kind: str, name: str, *, ambient: bool
) -> Iterator[_Symbol]:
    qualified = f"{declaration.container}.{name}" if declaration.container else name
    comment, has_body = declaration.comment, declaration.body is not None
    if kind in ("interface", "class", "type", "enum", "constenum") and has_body:
        is_whole = kind != "class" or not ambient  # the methods of an ambient class have no bodies
        outline = _format_outline(declaration)
        yield _Symbol(qualified, declaration, outline, comment, TYPE_WEIGHT, is_whole=is_whole)
        if kind in ("interface", "class"):
            yield from _iter_members(declaration, qualified)
    else:
        is_object = has_body and declaration.head.endswith(":")
        code = _format_outline(declaration) if is_object else _shorten_signature(declaration.head)
        weight = TYPE_WEIGHT if kind == "type" else 1.0
        is_whole = kind != "function" and (is_object or not has_body)
        yield _Symbol(qualified, declaration, code, comment, weight, is_whole=is_whole)


def _iter_members(declaration: Declaration, owner: str) -> Iterator[_Symbol]:
    """Yield the documented members."""
    found = parse_declarations(declaration.body or "", first_line=declaration.line)
    kind = "declare class" if _CLASS.match(declaration.head) else "interface"
    owner_head = f"{kind} {owner.split('.')[-1]}"
    for _, member in zip(range(MAX_MEMBERS), found, strict=False):
        match = _MEMBER.match(member.head)
        if match is None or member.comment is None or is_private(member.comment):
            continue
        name = match["name"].strip("\"'")
        if _is_public(name):
            yield _Symbol(
                f"{owner}.{name}",
                member,
                _shorten_signature(member.head),
                member.comment,
                MEMBER_WEIGHT if _METHOD.match(member.head, match.end("name")) else PROPERTY_WEIGHT,
                owner_head,
            )


def _merge_overloads(symbols: Iterable[_Symbol]) -> list[_Symbol]:
    """Merge overloads: their signatures below each other, with the first comment found.

    Deprecated overloads are dropped if there are others.
    """
    merged: dict[str, _Symbol] = {}
    for symbol in symbols:
        previous = merged.get(symbol.name)
        if previous is None or (_is_deprecated(previous) and not _is_deprecated(symbol)):
            merged[symbol.name] = symbol
        elif _is_deprecated(symbol):
            continue
        elif (
            symbol.code not in previous.code
            and previous.code.count("\n;") + previous.code.count(";\n") < MAX_OVERLOADS
        ):
            code = f"{previous.code};\n{symbol.code}" if len(previous.code) < MAX_SIGNATURE else previous.code
            merged[symbol.name] = replace(previous, code=code, comment=previous.comment or symbol.comment)
    return list(merged.values())


def _is_deprecated(symbol: _Symbol) -> bool:
    return "@deprecated" in (symbol.comment or "")


def _split_symbol(document: PackageDocument, symbol: _Symbol, language: str) -> Iterator[Chunk]:
    text = render_jsdoc(symbol.comment, language) if symbol.comment else ""
    url = link_to_lines(document.source_url, symbol.declaration.line, symbol.declaration.last_line)
    weight = (
        (REFERENCE_WEIGHT if text else UNDOCUMENTED_WEIGHT)
        * symbol.weight
        * (INTERNAL_FACTOR if "$" in symbol.name else 1.0)
    )
    if not text and symbol.code.endswith("{}"):
        return
    examples = split_examples(text, language=language)
    signature = _complete_signature(symbol, language)
    is_whole = symbol.is_whole
    if examples and examples[0].code:
        # in a form that lets the example below it parse
        is_statement = is_complete(signature, language)
        signature = _end_statement(signature) if is_statement else comment_out(signature)
        is_whole = is_whole or not is_statement
    # what is shortened or has no body may parse all the same; it is in the first excerpt
    complete = None if is_whole and not _CUT.search(symbol.code) else False
    for excerpt in add_signature(signature, examples, language=language, is_joinable=_is_script):
        trail, names = (_module_name(document.path),), name_variants(symbol.name)
        chunk = Chunk(symbol.name, trail, *excerpt, url, document.path, names, weight, complete)
        yield from finalize_chunks(chunk)
        complete = None


def _end_statement(code: str) -> str:
    return code if code.endswith(("}", ";")) else f"{code};"


def _complete_signature(symbol: _Symbol, language: str) -> str:
    """Return a signature in a form that parses, if any: inside its interface, or with a body."""
    forms = [symbol.code, f"{symbol.code} {{ /* ... */ }}"]
    if symbol.owner:
        forms = [f"{symbol.owner} {{\n{indent(symbol.code, '  ')};\n}}"]
    return next((form for form in forms if is_complete(form, language)), symbol.code)


def _is_script(_: str, example: Excerpt) -> bool:
    return example.language in SCRIPT_LANGUAGES


def _format_outline(declaration: Declaration) -> str:
    """Return the head and the members without their comments, up to the length limit."""
    body = re.sub(r"/\*.*?(?:\*/|\Z)|(?<![:'\"`])//[^\n]*", "", declaration.body or "", flags=re.DOTALL)
    lines = [line.rstrip() for line in body.split("\n") if line.strip()]
    lines_shown: list[str] = []
    for line in lines:
        if sum(map(len, lines_shown)) + len(line) > MAX_OUTLINE:
            lines_shown.append(f"    {CUT_MARK}")
            break
        lines_shown.append(line)
    head = _IMPORT_TYPE.sub("", declaration.head.strip())
    # a type may go on after its first brace was closed
    end = "" if body.count("}") > body.count("{") and len(lines_shown) == len(lines) else "\n}"
    return f"{head} {{\n" + "\n".join(lines_shown) + end if lines_shown else f"{head} {{}}"


def _shorten_signature(head: str) -> str:
    head = _IMPORT_TYPE.sub("", head)
    lines = [line.rstrip() for line in head.strip().removesuffix("=>").rstrip().split("\n")]
    indent = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
    code = "\n".join([lines[0], *(line[indent:] for line in lines[1:])])
    return code if len(code) <= MAX_SIGNATURE else code[:MAX_SIGNATURE].rsplit("\n", 1)[0] + f"\n{CUT_MARK}"


def _module_name(path: str) -> str:
    return re.sub(r"(?:\.d)?\.[cm]?[jt]sx?$", "", path)


def _is_public(name: str) -> bool:
    return not name.startswith("_")
