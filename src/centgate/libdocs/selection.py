"""Which files of a package are its documentation, and in which order they count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from centgate.libdocs.documents import Document, Kind
from centgate.libdocs.packages import ArchiveKind

LONGEST_TEXT = 24 << 20
"""Characters of one package that are indexed."""
MOST_DOCUMENTS = 4_000
LONGEST_LINE = 5_000
"""Characters a line of what a person wrote has at most."""
MACHINE_MADE = 0.3
"""Share of a file in longer lines from which it was made by a machine."""

_KINDS: Mapping[str, Kind] = {
    ".md": "markdown",
    ".mdx": "markdown",
    ".markdown": "markdown",
    ".rst": "rst",
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascript",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".txt": "text",
}
_PROSE = frozenset({"markdown", "rst", "text"})
_DOCS = frozenset({"doc", "docs", "documentation", "guide", "guides", "manual", "website", "site"})
_EXAMPLES = frozenset(
    {
        "docs_src",
        "doc_src",
        "example",
        "examples",
        "sample",
        "samples",
        "tutorial",
        "tutorials",
        "demo",
        "demos",
    }
)
_NEVER = re.compile(
    r"__mocks__|__pycache__|__tests__|announce(?:ments)?|_build|_exte?r?n?s?|_static|_templates|_themes|_?vendor(?:ed|s)?(?:-\w+)?|asv_bench\w*|"
    r"bench(?:marks?)?|bower_components|change(?:s|logs?)|ci|codemods?|compiled|coverage|e2e|extern(?:al)?|fixtures?|"
    r"flow-typed|fuzz|i18n|locales?|minified|newsfragments|node_modules|releases?|release-notes|scripts|specs?|"
    r"subprojects|t|testdata|tests?|third[-_]party|tools|translations|ts[0-9]+\.[0-9]+|umd|upcoming_changes|whatsnew"
)
_TOLD = frozenset({".agents", ".claude"})
"""Hidden folders with prose that is there to be read: what coding agents are told of a library."""
_LANGUAGES = re.compile(
    r"a[rz]|bn|c[as]|d[ae]|e[lmst]|f[air]|fil|h[eiru]|i[dt]|ja|ko|l[tv]|ms|n[blo]|pl|pt(?:[-_]br)?|r[ou]|"
    r"s[klrv]|t[hr]|u[krz]|vi|yo|zh(?:[-_]\w{2,4})?"
)
_CHORES = re.compile(
    r"(?:change(?:s|log)|history|news|whats?[-_]?new.*|release[-_]?notes|releases|authors|contribut\w*|code[-_]of[-_]conduct|"
    r"security|licen[sc]es?|copying|notice|third[-_]?party\w*|maintainers|governance|thanks|todo|acknowledg\w*|"
    r"requirements\S*|top_level|sources|entry_points|setup|conftest|noxfile|conf|versioneer|_version)",
    re.IGNORECASE,
)
_BUILT = frozenset({"build", "dist", "cjs", "esm", "es", "es5", "es6", "bundles", "bundle", "browser"})


def kind_of(path: str, archive: ArchiveKind) -> Kind | None:
    """What a file is read as when it may be documentation; None for all others.

    `path` is below the archive's root directory.
    """
    file, kind = PurePosixPath(path), _KINDS.get(PurePosixPath(path).suffix.lower())
    folders = [part.lower() for part in file.parts[:-1]]
    if file.name == "README" and not folders:
        return "rst"
    if kind is None or _left_out(file, folders):
        return None
    return _javascript(file, folders, kind) if archive == "npm" else _python(file, folders, kind)


def worthwhile(documents: Iterable[Document], archive: ArchiveKind) -> list[Document]:
    """The documents that are indexed, the most important first, none said twice."""
    found = [document for document in documents if document.text.strip() and not _machine_made(document)]
    paths = {document.path for document in found}
    typed = archive == "npm" and any(path.endswith((".d.ts", ".d.mts", ".d.cts")) for path in paths)
    kept = [
        document
        for document in found
        if not _repeated(document.path, paths)
        and not (typed and rank(document.path) == 3 and _untyped(document.path))
    ]
    kept.sort(key=lambda document: (rank(document.path), document.path.count("/"), document.path))
    return _within(kept[:MOST_DOCUMENTS])


def rank(path: str) -> int:
    """0 for the README, 1 for documentation, 2 for examples, 3 for source."""
    file = PurePosixPath(path)
    folders = {part.lower() for part in file.parts[:-1]}
    if not folders and file.stem.lower() == "readme":
        return 0
    if folders & _EXAMPLES:
        return 2
    return 1 if _KINDS.get(file.suffix.lower(), "text") in _PROSE or folders & _DOCS else 3


def _left_out(file: PurePosixPath, folders: list[str]) -> bool:
    stem = file.name.split(".")[0]
    return (
        any(
            (folder.startswith(".") and folder not in _TOLD) or _NEVER.fullmatch(folder) for folder in folders
        )
        or bool(_CHORES.fullmatch(stem))
        or _translated(file, folders)
        or file.name.startswith((".", "test_", "test."))
        or re.search(r"\.(?:min|test|spec|stories|bundle|prod|production)\.", file.name) is not None
    )


def _translated(file: PurePosixPath, folders: list[str]) -> bool:
    """Documentation in a language other than English, by its folder or by `README.zh-CN.md`."""
    suffix = re.fullmatch(r"readme[._-]([a-z]{2}(?:[-_][a-z]{2,4})?)\.\w+", file.name.lower())
    if suffix and suffix[1] != "en":
        return True
    return any(
        _LANGUAGES.fullmatch(folder) and (position == 0 or folders[position - 1] in _DOCS)
        for position, folder in enumerate(folders)
    )


def _python(file: PurePosixPath, folders: list[str], kind: Kind) -> Kind | None:
    if kind == "python":
        return kind
    if kind == "text":
        # some projects, Django the largest of them, write reStructuredText in files of text
        return "rst" if set(folders) & _DOCS else None
    if kind in _PROSE:
        return (
            kind if folders or file.stem.lower() in ("readme", "index", "usage", "api", "tutorial") else None
        )
    return None


def _javascript(file: PurePosixPath, folders: list[str], kind: Kind) -> Kind | None:
    if kind in _PROSE:
        return "markdown" if kind == "text" and file.stem.lower().startswith("llms") else _but(kind, "text")
    if re.search(r"\.d\.[cm]?ts$", file.name):
        return "typescript"
    if kind == "python" or set(folders) & _BUILT:
        return None
    return kind


def _but(kind: Kind, never: Kind) -> Kind | None:
    return None if kind == never else kind


def _repeated(path: str, paths: set[str]) -> bool:
    """Whether the same is said by another file: stubs beside their source, declarations by module system."""
    if path.endswith(".pyi"):
        return path[:-1] in paths
    for ending in (".d.mts", ".d.cts"):
        if path.endswith(ending):
            return path.removesuffix(ending) + ".d.ts" in paths or (
                ending == ".d.cts" and path.removesuffix(ending) + ".d.mts" in paths
            )
    for ending in (".mjs", ".cjs"):
        if path.endswith(ending):
            return path.removesuffix(ending) + ".js" in paths
    return False


def _untyped(path: str) -> bool:
    """Whether it is source whose declarations stand in files of their own."""
    return not re.search(r"\.d\.[cm]?ts$", path)


def _machine_made(document: Document) -> bool:
    if document.kind in _PROSE:
        return False
    start = document.text[:200_000]
    long = sum(len(line) for line in start.split("\n") if len(line) > LONGEST_LINE)
    return long > len(start) * MACHINE_MADE


def _within(documents: list[Document]) -> list[Document]:
    kept, length = list[Document](), 0
    for document in documents:
        length += len(document.text)
        if length > LONGEST_TEXT:
            break
        kept.append(document)
    return kept
