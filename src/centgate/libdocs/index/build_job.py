"""Build the index of one library from its archives. Runs in a process that may be killed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from centgate.libdocs.archive.archives import ArchiveContents, read_archive
from centgate.libdocs.index import search_index
from centgate.libdocs.index.index_file import REPOSITORY_FOLDER
from centgate.libdocs.index.site_pages import load_pages, split_site
from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.js_exports import find_reexported_packages, find_used_parts
from centgate.libdocs.registry.npm import TYPES_SCOPE
from centgate.libdocs.registry.packages import BadArchive, DownloadedArchive

INDEX_SECONDS = 25
"""Time limit for indexing the documents; the most important files come first."""


class BuildOutcome(Struct, frozen=True):
    """Result of a build."""

    chunks: int
    """Number of chunks; 0 means that no file was written."""


def build_index(
    file: str,
    archives: Sequence[DownloadedArchive],
    metadata: Mapping[str, str],
    readme: str | None,
    site_file: Path | None = None,
) -> BuildOutcome:
    """Write the index of the given archives. Raises BadArchive if an archive of the package is invalid.

    `readme` and the pages of its site are indexed in addition to the archives. If there may be more
    documentation, the reason is stored as `incomplete` in the metadata of the index.
    """
    documents, index_metadata, entries = list[PackageDocument](), dict(metadata), list[str]()
    if readme:
        documents.append(PackageDocument("README", readme, "markdown", None))
    site_pages = split_site(load_pages(site_file)) if site_file else []
    read = {each.path_prefix: _read_contents(each) for each in archives}
    foreign = [each.path_prefix for each in archives if each.archive.kind == "npm" and each.path_prefix]
    for contents in _drop_unused_parts(read, [*documents, *site_pages], foreign):
        documents += _drop_known(contents.documents, documents)
        entries += contents.entries
        if contents.incomplete:
            index_metadata.setdefault("incomplete", contents.incomplete)
    documents = _drop_introductions([*documents, *site_pages], foreign)
    if not documents:
        return BuildOutcome(0)
    built = search_index.write_index(
        Path(file), documents, index_metadata, entries=entries, max_seconds=INDEX_SECONDS
    )
    if not built.chunks:
        Path(file).unlink()
    return BuildOutcome(built.chunks)


def _read_contents(downloaded: DownloadedArchive) -> ArchiveContents:
    """Return the documents of an archive; none of a repository's that is invalid, which is optional."""
    try:
        return read_archive(downloaded.file.read_bytes(), downloaded.archive, downloaded.path_prefix)
    except BadArchive:
        if downloaded.archive.kind != "repository":
            raise
        return ArchiveContents(incomplete="the archive of its repository could not be read")


def _drop_unused_parts(
    read: Mapping[str, ArchiveContents], others: Sequence[PackageDocument], prefixes: Sequence[str]
) -> list[ArchiveContents]:
    """Return the contents without those of parts that the library uses inside, by the prefixes of parts.

    `others` are documents of the library from elsewhere. Its types are no part of it but its declarations.
    """
    parts = {
        prefix.rstrip("/"): read[prefix].documents
        for prefix in prefixes
        if not prefix.startswith(TYPES_SCOPE)
    }
    own = [
        document
        for prefix, contents in read.items()
        if prefix.rstrip("/") not in parts
        for document in contents.documents
    ]
    unused = parts.keys() - find_used_parts([*others, *own], parts)
    return [contents for prefix, contents in read.items() if prefix.rstrip("/") not in unused]


def _drop_known(found: Sequence[PackageDocument], known: Sequence[PackageDocument]) -> list[PackageDocument]:
    """Return documents that are not read yet; a repository has many files of its package, and its README."""
    texts = {document.text for document in known}
    has_readme = any(_is_readme(document.path) for document in known)
    return [
        document
        for document in found
        if document.text not in texts
        and not (has_readme and _is_readme(document.path.removeprefix(REPOSITORY_FOLDER)))
    ]


def _drop_introductions(
    documents: Sequence[PackageDocument], prefixes: Sequence[str]
) -> list[PackageDocument]:
    """Return documents without the READMEs of dependencies, which introduce other libraries.

    What the library's own files re-export is its own, though, and often documented nowhere else.
    """
    own = [document for document in documents if not document.path.startswith(tuple(prefixes))]
    reexported = find_reexported_packages(own)
    foreign = tuple(prefix for prefix in prefixes if prefix.rstrip("/") not in reexported)
    return [
        document
        for document in documents
        if not (document.path.startswith(foreign) and PurePosixPath(document.path).stem.lower() == "readme")
    ]


def _is_readme(path: str) -> bool:
    return "/" not in path and path.lower().startswith("readme")
