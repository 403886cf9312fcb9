"""Select the files of a package that are documentation, and order them by importance."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import PurePosixPath

from centgate.libdocs.parse.documents import TEST_FOLDERS, FileKind, PackageDocument, is_test
from centgate.libdocs.registry.packages import ArchiveKind

MAX_TEXT_LENGTH = 24 << 20
"""Maximum characters indexed of one package."""
MAX_DOCUMENTS = 4_000
MAX_UNDOCUMENTED = 100_000
"""Characters of documentation and examples above which tests are not read."""
MAX_LINE_LENGTH = 5_000
"""Maximum characters of a line in a handwritten file."""
MACHINE_MADE_SHARE = 0.3
"""Share of longer lines above which a file counts as machine-made."""

_KINDS: Mapping[str, FileKind] = {
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
    ".rs": "rust",
    ".go": "go",
    ".txt": "text",
}
_PROSE = frozenset({"markdown", "rst", "text"})
_DOCS = frozenset({"doc", "docs", "documentation", "guide", "guides", "manual", "website", "site"})
_WRITES_DOCS = re.compile(r"docstring|docutils|sphinx|restructuredtext|restdoc", re.IGNORECASE)
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
_EXCLUDED_FOLDERS = re.compile(
    r"__mocks__|__pycache__|__tests__|announce(?:ments)?|blog|_build|_exte?r?n?s?|_static|_templates|_themes|_?vendor(?:ed|s)?(?:-\w+)?|asv_bench\w*|"
    r"bench(?:marks?)?|bower_components|change(?:s|logs?)|ci|codemods?|compiled|coverage|e2e|extern(?:al)?|fixtures?|"
    r"flow-typed|fuzz|i18n|locales?|minified|newsfragments|node_modules|releases?|release[-_]?notes|scripts|specs?|"
    r"subprojects|testdata|third[-_]party|tools|translations|ts[0-9]+\.[0-9]+|umd|upcoming_changes|versioned[-_]\w+|"
    r"whatsnew"
)
_AGENT_FOLDERS = frozenset({".agents", ".claude"})
"""Hidden folders with useful prose: instructions about a library for coding agents."""
_LANGUAGES = re.compile(
    r"a[rz]|bn|c[as]|d[ae]|e[lmst]|f[air]|fil|h[eiru]|i[dt]|ja|ko|l[tv]|ms|n[blo]|pl|pt(?:[-_]?br)?|r[ou]|"
    r"s[klrv]|t[hr]|u[krz]|vi|yo|zh(?:[-_]\w{2,4})?"
)
_TRANSLATED_FOLDER = re.compile(rf"docs?[._-](?:{_LANGUAGES.pattern})")
_EXCLUDED_PROSE = re.compile(
    r"(?:change(?:s|log)|(?:version[-_]?)?history|news|whats?[-_]?new.*|release[-_]?notes|releases|authors|"
    r"contribut\w*|code[-_]of[-_]conduct|security|licen[sc]es?|copying|notice|third[-_]?party\w*|maintainers|governance|"
    r"thanks|todo|acknowledg\w*|requirements\S*|top_level|sources|entry_points)",
    re.IGNORECASE,
)
_EXCLUDED_SOURCE = re.compile(r"setup|conftest|noxfile|conf|versioneer|_version", re.IGNORECASE)
_BUILD_FOLDERS = frozenset(
    {"build", "dist", "cjs", "esm", "es", "es5", "es6", "bundles", "bundle", "browser"}
)


def document_kind(path: str, archive: ArchiveKind) -> FileKind | None:
    """Return the kind of a file that may be documentation; None for all others.

    `path` is below the archive's root directory.
    """
    file, kind = PurePosixPath(path), _KINDS.get(PurePosixPath(path).suffix.lower())
    folders = [part.lower() for part in file.parts[:-1]]
    if file.name == "README" and not folders:
        return "rst"
    if kind is None or _is_excluded(file, folders):
        return None
    if archive == "repository":
        return _repository_kind(file, folders, kind)
    if archive in ("crate", "go", "npm") and TEST_FOLDERS.intersection(folders):
        return None
    if archive == "crate" or kind == "rust":
        return kind if archive == "crate" and kind in ("rust", "markdown") else None
    if archive == "go" or kind == "go":
        # what is in a folder `internal` cannot be imported
        is_public = archive == "go" and "internal" not in folders
        return kind if is_public and kind in ("go", "markdown") else None
    return _npm_kind(file, folders, kind) if archive == "npm" else _python_kind(file, folders, kind)


def select_documents(documents: Iterable[PackageDocument], archive: ArchiveKind) -> list[PackageDocument]:
    """Return the documents to index, most important first, without repetitions."""
    every = list(documents)
    modules = {document.path: document for document in every if document.kind == "python"}
    writers = _find_docs_writers(modules)
    found = [
        document
        for document in every
        if document.text.strip()
        and not (
            _is_machine_made(document)
            or _is_plain_go_test(document)
            or (document.path in modules and not writers.isdisjoint(_list_folders(document.path)))
        )
    ]
    if sum(len(each.text) for each in found if importance_rank(each.path) < 3) > MAX_UNDOCUMENTED:
        found = [document for document in found if not is_test(document.path)]
    paths = {document.path for document in found}
    has_declarations = archive == "npm" and any(
        path.endswith((".d.ts", ".d.mts", ".d.cts")) for path in paths
    )
    selected = [
        document
        for document in found
        if not _is_repetition(document.path, paths)
        and not (has_declarations and importance_rank(document.path) == 3 and _is_source(document.path))
    ]
    selected.sort(
        key=lambda document: (importance_rank(document.path), document.path.count("/"), document.path)
    )
    return _limit_total_length(selected[:MAX_DOCUMENTS])


def importance_rank(path: str) -> int:
    """Return 0 for the README, 1 for documentation, 2 for examples, 3 for source, 4 for tests."""
    file = PurePosixPath(path)
    folders = {part.lower() for part in file.parts[:-1]}
    if not folders and file.stem.lower() == "readme":
        return 0
    if is_test(path):
        return 4
    if folders & _EXAMPLES or file.name.endswith("_test.go"):
        return 2
    return 1 if _KINDS.get(file.suffix.lower(), "text") in _PROSE or folders & _DOCS else 3


def _is_excluded(file: PurePosixPath, folders: list[str]) -> bool:
    stem = file.name.split(".")[0]
    excluded = _EXCLUDED_PROSE if _KINDS[file.suffix.lower()] in _PROSE else _EXCLUDED_SOURCE
    is_python = file.suffix == ".py"
    return (
        any(
            (folder.startswith(".") and folder not in _AGENT_FOLDERS) or _EXCLUDED_FOLDERS.fullmatch(folder)
            for folder in folders
        )
        or bool(excluded.fullmatch(stem))
        or _is_translation(file, folders)
        or file.name.startswith(".")
        or (not is_python and file.name.startswith(("test_", "test.")))
        or re.search(r"\.(?:min|test|spec|stories|bundle|prod|production)\.", file.name) is not None
    )


def _is_translation(file: PurePosixPath, folders: list[str]) -> bool:
    """True for documentation in another language than English: `docs/de/`, `doc.zh/`, `README.zh-CN.md`."""
    suffix = re.fullmatch(r"readme[._-]([a-z]{2}(?:[-_][a-z]{2,4})?)\.\w+", file.name.lower())
    if suffix and suffix[1] != "en":
        return True
    if any(_TRANSLATED_FOLDER.fullmatch(folder) for folder in folders):
        return True
    return any(
        _LANGUAGES.fullmatch(folder) and (position == 0 or folders[position - 1] in _DOCS)
        for position, folder in enumerate(folders)
    )


def _python_kind(file: PurePosixPath, folders: list[str], kind: FileKind) -> FileKind | None:
    if kind == "python":
        # `quill/test/` is for users of the library, `quill/tests/` is not
        return None if {"tests", "t"} & set(folders[1:]) else kind
    if set(folders) & TEST_FOLDERS:
        return None
    if kind == "text":
        # some projects, Django the largest of them, write reStructuredText in files of text
        return "rst" if set(folders) & _DOCS else None
    if kind in _PROSE:
        return (
            kind if folders or file.stem.lower() in ("readme", "index", "usage", "api", "tutorial") else None
        )
    return None


def _npm_kind(file: PurePosixPath, folders: list[str], kind: FileKind) -> FileKind | None:
    if kind in _PROSE:
        return "markdown" if kind == "text" and file.stem.lower().startswith("llms") else _unless_text(kind)
    if re.search(r"\.d\.[cm]?ts$", file.name):
        return "typescript"
    if kind == "python" or set(folders) & _BUILD_FOLDERS:
        return None
    return kind


def _unless_text(kind: FileKind) -> FileKind | None:
    return None if kind == "text" else kind


def _repository_kind(file: PurePosixPath, folders: list[str], kind: FileKind) -> FileKind | None:
    """Return the kind of the README, of prose in folders of documentation, and of examples."""
    if kind in _PROSE:
        is_shown = file.stem.lower() == "readme" if not folders else set(folders) & _DOCS
        return _unless_text(kind) if is_shown else None
    return kind if set(folders) & _EXAMPLES else None


def _is_plain_go_test(document: PackageDocument) -> bool:
    """True for tests in Go without an example; examples of Go are in the files of its tests."""
    return document.path.endswith("_test.go") and "\nfunc Example" not in document.text


def _find_docs_writers(modules: Mapping[str, PackageDocument]) -> set[str]:
    """Return the folders of packages `docs` inside other ones that write documentation, and are none.

    Those that name nothing which documentation is written with are an interface to documents of users.
    """
    return {
        folder
        for path, document in modules.items()
        if not _DOCS.isdisjoint(path.split("/")) and _WRITES_DOCS.search(document.text)
        for folder, above in pairwise(_list_folders(path))
        if folder.rpartition("/")[2] in _DOCS
        and f"{folder}/__init__.py" in modules
        and f"{above}/__init__.py" in modules
    }


def _list_folders(path: str) -> list[str]:
    """Return the folders that a file is in, innermost first."""
    return [str(folder) for folder in PurePosixPath(path).parents]


def _is_repetition(path: str, paths: set[str]) -> bool:
    """True if another file has the same content: stubs and their source, declarations per module system."""
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


def _is_source(path: str) -> bool:
    """True for source code, whose declarations are in separate files."""
    return not re.search(r"\.d\.[cm]?ts$", path)


def _is_machine_made(document: PackageDocument) -> bool:
    if document.kind in _PROSE:
        return False
    start = document.text[:200_000]
    long = sum(len(line) for line in start.split("\n") if len(line) > MAX_LINE_LENGTH)
    return long > len(start) * MACHINE_MADE_SHARE


def _limit_total_length(documents: list[PackageDocument]) -> list[PackageDocument]:
    selected, length = list[PackageDocument](), 0
    for document in documents:
        length += len(document.text)
        if length > MAX_TEXT_LENGTH:
            break
        selected.append(document)
    return selected
