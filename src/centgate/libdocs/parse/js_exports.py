"""Find what an npm package exports: what its entry points reach by exports and by imports of types."""

from __future__ import annotations

import posixpath
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias, cast

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from centgate.libdocs.parse.chunk import Chunk
from centgate.libdocs.parse.documents import PackageDocument, is_example

INNER_WEIGHT = 0.6
"""Factor for a declaration that no entry point of its package reaches."""
MAX_ENTRIES = 5_000
MAX_DEPTH = 8
"""Nesting of the conditions of an entry point."""
EVERYTHING = "*"
_SCRIPT = re.compile(r"(?:\.d)?\.[cm]?[jt]sx?$")
_DECLARATIONS = re.compile(r"\.d\.[cm]?ts$")
_FROM = r"\s{0,99}from\s{0,99}[\"']([^\"'\n]{1,300})[\"']"
_REEXPORT = re.compile(
    r"^[ \t]*export\s{1,9}(?:type\s{1,9})?(?:(\*)(?:\s{1,9}as\s{1,9}[\w$]{1,99})?|\{([^{}]{0,9000})\})"
    + _FROM,
    re.MULTILINE,
)
_IMPORT = re.compile(
    # ends at the next import: a hostile text of imports would be searched in quadratic time
    r"^[ \t]*import\s{1,9}(?:type\s{1,9})?((?:(?!\bimport\b)[\w$*{},\s]){1,3000}?)" + _FROM,
    re.MULTILINE,
)
_INLINE_IMPORT = re.compile(r"\bimport\([\"']([^\"'\n]{1,300})[\"']\)\.([\w$]{1,99})")
_REQUIRE = re.compile(r"\bexports\b[^;\n]{0,200}=\s{0,9}require\([\"']([^\"'\n]{1,300})[\"']\)")
_BOUND_REQUIRE = re.compile(
    r"^[ \t]*(?:const|let|var)\s{1,9}([\w$]{1,99}|\{[\w$,:\s]{0,3000}\})\s{0,9}=\s{0,9}"
    r"require\([\"']([^\"'\n]{1,300})[\"']\)",
    re.MULTILINE,
)
_REQUIRED = re.compile(r"\brequire\([\"']([^\"'\n]{1,300})[\"']\)")
_EXPORT_STAR = re.compile(
    r"\b(?:__exportStar|__reExport)\((?:[\w$]{1,99},\s{0,9})?require\([\"']([^\"'\n]{1,300})[\"']\)"
)
"""What TypeScript and its `tslib`, and esbuild, write for `export *` in Node's own form."""
_COPIED_EXPORTS = re.compile(r"\bObject\.keys\(([\w$]{1,99})\)\.forEach\(")
"""What Babel writes for `export *` in Node's own form, with the name that the module is bound to."""
_EXPORT_GETTER = re.compile(
    r"\bget\b:?\s{0,9}(?:function)?\s{0,9}\(\)\s{0,9}(?:=>|\{\s{0,99}return\b)\s{0,9}([\w$]{1,99})"
)
"""What all three write for one export of another module."""
_NODE_EXPORT = re.compile(
    r"^[ \t]*(?:module\.)?exports(?:\.[\w$]{1,99})?\s{0,9}=\s{0,9}"
    r"(?:([\w$]{1,99})(?![\w$(])|\{([^{}]{0,9000})\})",
    re.MULTILINE,
)
_NAMED_MODULE = re.compile(r"\b(?:from|import|require)\s{0,9}\(?\s{0,9}[\"']([^\"'\n]{1,300})[\"']")
_NAME = re.compile(r"[\w$]{1,99}")
_EXPORT_LIST = re.compile(
    r"^[ \t]*export\s{1,9}(?:type\s{1,9})?\{([^{}]{0,9000})\}(?!\s{0,99}from)", re.MULTILINE
)
_EXPORT_VALUE = re.compile(
    r"^[ \t]*export\s{1,9}(?:default\b|=)\s{0,9}([\w$]{1,99})[ \t]*;?[ \t]*$", re.MULTILINE
)
_SPECIFIER = re.compile(r"(?:type\s{1,9})?([\w$]{1,99})(?:\s{1,9}as\s{1,9}([\w$]{1,99}))?")
Symbol: TypeAlias = tuple[str, str]
"""A module and the name of its export."""


class _Module(Struct):
    """Exports and imports of one file."""

    is_ambient: bool
    stars: list[str] = field(default_factory=list[str])
    """Modules whose exports are all exported."""
    named: dict[str, Symbol | str] = field(default_factory=dict[str, "Symbol | str"])
    """Exported names, with their source: another module's, or a name here."""
    imports: dict[str, Symbol] = field(default_factory=dict[str, Symbol])
    others: list[Symbol] = field(default_factory=list[Symbol])
    """What is used or exported without a name here."""


class PackageExports(Struct, frozen=True):
    """What the entry points of a package reach."""

    modules: frozenset[str]
    """Modules of which everything is exported."""
    symbols: frozenset[Symbol]

    def has(self, path: str, name: str) -> bool:
        """True if a declaration is exported, or if no entry point was found."""
        module = module_path(path)
        return not self.modules or module in self.modules or (module, name) in self.symbols


def find_entries(manifest: str) -> list[str]:
    """Return the files that a package.json names as entry points, which may be patterns."""
    try:
        loaded = orjson.loads(manifest)
    except ValueError:
        return []
    if not isinstance(loaded, dict):
        return []
    members = cast(dict[str, Any], loaded)
    values = (members.get(key) for key in ("types", "typings", "main", "module", "exports"))
    found = [posixpath.normpath(each) for value in values for each in _iter_files(value, MAX_DEPTH)]
    return list(dict.fromkeys(found))[:MAX_ENTRIES] or ["index.js"]


def collect_exports(documents: Iterable[PackageDocument], entries: Sequence[str]) -> PackageExports:
    """Return what can be imported by way of the entry points; nothing is known without any."""
    scripts = [
        each for each in documents if each.kind in ("javascript", "typescript") and not is_example(each.path)
    ]
    scripts.sort(key=lambda each: _DECLARATIONS.search(each.path) is not None)
    texts = {module_path(each.path): each for each in scripts}  # of a script and its declarations, these
    starts = _match_entries(entries, texts)
    return _reach(starts, texts) if starts else PackageExports(frozenset(), frozenset())


def find_reexported_packages(documents: Iterable[PackageDocument]) -> frozenset[str]:
    """Return the names of other packages whose exports are exported again."""
    return frozenset(
        _package_name(target)
        for document in documents
        if document.kind in ("javascript", "typescript")
        for target in _iter_reexported(document.text)
        if not target.startswith(".")
    )


def find_used_parts(
    own: Sequence[PackageDocument], parts: Mapping[str, Sequence[PackageDocument]]
) -> frozenset[str]:
    """Return the parts of a library that its users meet, of packages with their documents.

    It exports them again, or its declarations or its documentation name them. Of such a part is followed only
    what it exports again: its own types and texts name what it is made of.
    """
    if not parts:
        return frozenset()
    used = found = parts.keys() & (find_reexported_packages(own) | _find_named(own, parts))
    while found:
        inner = (document for part in found for document in parts[part])
        found = (parts.keys() & find_reexported_packages(inner)) - used
        used |= found
    return frozenset(used)


def _find_named(documents: Iterable[PackageDocument], names: Iterable[str]) -> set[str]:
    """Return the packages that declarations import, and those of some names that are in prose."""
    in_prose = re.compile(rf"(?<![\w@/.-])(?:{'|'.join(map(re.escape, names))})(?![\w-])")
    named: set[str] = set()
    for document in documents:
        if document.kind not in ("javascript", "typescript"):
            named.update(in_prose.findall(document.text))
        elif _DECLARATIONS.search(document.path):
            named.update(map(_package_name, _NAMED_MODULE.findall(document.text)))
    return named


def _iter_reexported(text: str) -> Iterator[str]:
    """Yield the modules that a script exports again, at once or after it has bound them to names."""
    yield from (target for _, _, target in _REEXPORT.findall(text))
    yield from _REQUIRE.findall(text)
    yield from _EXPORT_STAR.findall(text)
    members = [*_NODE_EXPORT.findall(text), *(("", names) for names in _EXPORT_LIST.findall(text))]
    yield from (target for _, names in members for target in _REQUIRED.findall(names))
    exported = {*_EXPORT_VALUE.findall(text), *_COPIED_EXPORTS.findall(text)}
    if "defineProperty(exports" in text:
        exported.update(_EXPORT_GETTER.findall(text))
    exported.update(name for each in members for part in each for name in _NAME.findall(part))
    exported -= {"as", "default", "type"}
    for names, target in (*_IMPORT.findall(text), *_BOUND_REQUIRE.findall(text)):
        if not exported.isdisjoint(_NAME.findall(names)):
            yield target


def _package_name(target: str) -> str:
    """Return the package of a module: `@quill/ink` of `@quill/ink/blue`."""
    return "/".join(target.split("/")[: 2 if target.startswith("@") else 1])


def lower_internals(chunks: Iterable[Chunk], exports: PackageExports) -> Iterator[Chunk]:
    """Yield chunks; types in files of declarations that nobody can import have a lower weight."""
    for chunk in chunks:
        is_inner = (
            bool(chunk.names)
            and _DECLARATIONS.search(chunk.path) is not None
            and not exports.has(chunk.path, chunk.names[0].split(".")[0])
        )
        yield replace(chunk, weight=chunk.weight * INNER_WEIGHT) if is_inner else chunk


def module_path(path: str) -> str:
    """Return the path of a script without its ending; a module and its declarations have the same."""
    return _SCRIPT.sub("", path)


def _iter_files(value: Any, depth: int) -> Iterator[str]:
    """Yield the files in a member of a package.json."""
    if isinstance(value, str):
        if len(value) < 400 and not value.endswith((".json", ".css")):
            yield value
    elif isinstance(value, dict | list) and depth:
        inner = cast(dict[str, Any], value).values() if isinstance(value, dict) else cast(list[Any], value)
        for each in inner:
            yield from _iter_files(each, depth - 1)


def _match_entries(entries: Sequence[str], modules: Mapping[str, Any]) -> list[str]:
    found: dict[str, None] = {}
    for entry in entries:
        wanted = module_path(entry)
        names = (
            [module for module in modules if fnmatchcase(module, wanted)]
            if "*" in wanted
            else [each for each in (wanted, posixpath.join(wanted, "index")) if each in modules]
        )
        found |= dict.fromkeys(names)
    return list(found)


def _reach(starts: Sequence[str], texts: Mapping[str, PackageDocument]) -> PackageExports:
    parsed: dict[str, _Module] = {}
    queue = deque[Symbol]((start, EVERYTHING) for start in starts)
    seen = set(queue)
    while queue:
        module, name = queue.popleft()
        if module not in parsed:
            parsed[module] = _parse_module(module, texts)
        for following in _follow(parsed[module], module, name):
            if following not in seen:
                seen.add(following)
                queue.append(following)
    modules = frozenset(module for module, name in seen if name == EVERYTHING)
    return PackageExports(modules, frozenset(seen))


def _follow(module: _Module, path: str, name: str) -> Iterator[Symbol]:
    """Yield what an export of a module leads to."""
    if name == EVERYTHING:
        yield from ((star, EVERYTHING) for star in module.stars)
        yield from module.others
        exported = list(module.named.values())
    elif name in module.named:
        exported = [module.named[name]]
    else:
        exported = []
        yield from ((star, name) for star in module.stars)
    for each in exported:
        if isinstance(each, tuple):
            yield each
        else:
            yield module.imports.get(each, (path, each))
    if module.is_ambient:  # declarations import only the types of what they declare
        yield from module.imports.values()
        yield from module.others


def _parse_module(path: str, texts: Mapping[str, PackageDocument]) -> _Module:
    document = texts[path]
    text = document.text
    module = _Module(_DECLARATIONS.search(document.path) is not None)

    def resolve(target: str) -> str | None:
        return _resolve(path, target, texts)

    for star, names, target in _REEXPORT.findall(text):
        source = resolve(target)
        if source and star:
            module.stars.append(source)
        elif source:
            module.named |= {new: (source, old) for old, new in _iter_specifiers(names)}
    for names, target in _IMPORT.findall(text):
        if source := resolve(target):
            module.imports |= dict(_iter_imports(names, source))
    for names in _EXPORT_LIST.findall(text):
        module.named |= {new: old for old, new in _iter_specifiers(names)}
    module.named |= {name: name for name in _EXPORT_VALUE.findall(text)}
    module.others += [
        (source, EVERYTHING) for target in _REQUIRE.findall(text) if (source := resolve(target))
    ]
    inline = _INLINE_IMPORT.findall(text) if module.is_ambient else ()
    module.others += [(source, name) for target, name in inline if (source := resolve(target))]
    return module


def _iter_specifiers(names: str) -> Iterator[tuple[str, str]]:
    """Yield each name of a list in braces with the name that it is exported or imported as."""
    for part in names.split(","):
        if found := _SPECIFIER.fullmatch(part.strip()):
            yield found[1], found[2] or found[1]


def _iter_imports(clause: str, source: str) -> Iterator[tuple[str, Symbol]]:
    """Yield the local names of an import clause; a default import stands for its whole module."""
    outside, _, inside = clause.partition("{")
    for old, new in _iter_specifiers(inside.partition("}")[0]):
        yield new, (source, EVERYTHING if old == "default" else old)
    for part in outside.split(","):
        name = part.split()[-1] if part.strip() else ""
        if name:
            yield name, (source, EVERYTHING)


def _resolve(path: str, target: str, modules: Mapping[str, Any]) -> str | None:
    if not target.startswith("."):
        return None
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    candidates = (joined, module_path(joined), posixpath.join(joined, "index"))
    return next((each for each in candidates if each in modules), None)
