"""Read package archives, which are untrusted: in memory, within limits, and never onto disk.

Runs in a process that may be killed. Data beyond a limit is not read; what was read before it is used.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from email.parser import HeaderParser
from pathlib import PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import quote

from msgspec import Struct, field

from centgate.libdocs.archive.file_selection import document_kind, select_documents
from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.js_exports import find_entries
from centgate.libdocs.registry.packages import Archive, ArchiveKind, BadArchive

MEGABYTE = 1 << 20
MAX_FILE_BYTES = MEGABYTE
MAX_UNPACKED_BYTES = 300 * MEGABYTE
"""Maximum unpacked size of an archive, including skipped files, which cost only time."""
MAX_DOCUMENT_BYTES = 100 * MEGABYTE
"""Maximum size of all possible documentation files, which are held in memory until the best are selected."""
MAX_MEMBERS = 20_000
MAX_PATH_LENGTH = 400
MAX_EMPTY_READS = 3
"""Empty reads allowed at the end of a tar. A false member size causes more, and they would go on for
years."""
READ_SIZE = 64 * 1024
GZIP_MAGIC = b"\x1f"
Member: TypeAlias = tuple[str, bytes]
PathFilter: TypeAlias = Callable[[str], bool]
_INLINE_SOURCE_MAP = re.compile(r"^//[#@] sourceMappingURL=data:.*", re.MULTILINE)
_ARCHIVE_ERRORS = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RecursionError,
    RuntimeError,  # for an encrypted member
    UnicodeError,
    ValueError,
    OverflowError,
)
"""Exceptions that Python's readers raise for malformed archives."""


class _SizeLimitReached(Exception):
    """A limit was reached."""


class ArchiveContents(Struct, frozen=True):
    """Documents read from an archive."""

    documents: list[PackageDocument] = field(default_factory=list[PackageDocument])
    incomplete: str | None = None
    """Reason why there may be more documents, as a clause; None if everything was read."""
    entries: list[str] = field(default_factory=list[str])
    """Paths of the files that an npm package names as its entry points, which may be patterns."""


def read_archive(content: bytes, archive: Archive, path_prefix: str = "") -> ArchiveContents:
    """Return the documentation in an archive. Raises BadArchive if its digest or its format is wrong.

    `path_prefix` precedes each path and ends in a slash: the name of a package that belongs to another one.
    """
    if archive.digest and not hmac.compare_digest(_hash(content, archive.algorithm), archive.digest):
        raise BadArchive("its digest differs from the published one")
    documents, incomplete = list[PackageDocument](), None
    metadata: Member | None = None
    try:
        for path, body in _limit_total_size(_iter_members(content, archive.kind)):
            if _is_metadata(path, archive.kind):
                metadata = metadata or (path, body)
            elif document := _make_document(path, body, archive, path_prefix):
                documents.append(document)
    except _SizeLimitReached as limit:
        incomplete = str(limit)
    except _ARCHIVE_ERRORS as error:
        if not documents:
            raise BadArchive("it is not a valid archive of its kind") from error
        incomplete = "the archive is damaged"
    entries: list[str] = []
    if archive.kind == "npm":
        entries = find_entries(metadata[1].decode("utf-8", "replace")) if metadata else []
    elif metadata and not any(PurePosixPath(each.path).stem.lower() == "readme" for each in documents):
        documents += _read_description(*metadata, archive)
    selected = select_documents(documents, archive.kind)
    return ArchiveContents(selected, incomplete, [f"{path_prefix}{entry}" for entry in entries])


def _hash(content: bytes, algorithm: str) -> bytes:
    if algorithm != "h1":
        return hashlib.new(algorithm, content).digest()
    try:
        return hash_files(content)
    except _ARCHIVE_ERRORS as error:
        raise BadArchive("it is not a valid archive of its kind") from error


def hash_files(content: bytes) -> bytes:
    """Return Go's hash `h1` of a zip (golang.org/x/mod/sumdb/dirhash): of its paths and their contents."""
    lines: list[str] = []
    total = 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in sorted(archive.infolist(), key=lambda each: each.filename):
            digest = hashlib.sha256()
            with archive.open(member) as file:
                while part := file.read(READ_SIZE):
                    digest.update(part)
                    total += len(part)
                    if total > MAX_UNPACKED_BYTES:
                        raise BadArchive(f"it has more than {MAX_UNPACKED_BYTES // MEGABYTE} MB")
            lines.append(f"{digest.hexdigest()}  {member.filename}\n")
    return hashlib.sha256("".join(lines).encode()).digest()


def _iter_members(content: bytes, kind: ArchiveKind) -> Iterator[Member]:
    """Yield the files that may be documentation, with their paths in the archive."""

    def is_wanted(path: str) -> bool:
        return _is_metadata(path, kind) or document_kind(_strip_root(path, kind), kind) is not None

    return _read_zip(content, is_wanted) if content[:2] == b"PK" else _read_tar(content, is_wanted)


def _limit_total_size(members: Iterator[Member]) -> Iterator[Member]:
    total = 0
    for path, body in members:
        total += len(body)
        if total > MAX_DOCUMENT_BYTES:
            raise _SizeLimitReached(
                f"only the first {MAX_DOCUMENT_BYTES // MEGABYTE} MB of its documentation were read"
            )
        yield path, body


def _read_tar(content: bytes, is_wanted: PathFilter) -> Iterator[Member]:
    """Yield the files of a gzipped tar, read as a stream: no member can yield more than the archive's own
    bytes.
    """
    stream = _BoundedGzipStream(io.BytesIO(content))
    with tarfile.open(fileobj=stream, mode="r|", encoding="utf-8", errors="replace") as archive:
        for count, member in enumerate(archive):
            if count >= MAX_MEMBERS:
                raise _SizeLimitReached(f"only its first {MAX_MEMBERS:,} files were read")
            if (
                member.isreg()
                and member.size <= MAX_FILE_BYTES
                and is_safe_path(member.name)
                and is_wanted(member.name)
            ):
                file = archive.extractfile(member)
                yield member.name, file.read(MAX_FILE_BYTES) if file else b""


class _BoundedGzipStream(io.RawIOBase):
    """Decompressed content of a gzip stream, up to the limit."""

    def __init__(self, compressed: io.BytesIO) -> None:
        super().__init__()
        self._compressed = compressed
        self._decompressor = _new_decompressor()
        self._buffer = bytearray()
        self._bytes_returned = self._empty_reads = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes; fewer only at the end."""
        while len(self._buffer) < size and (decompressed := self._decompress_next()):
            self._buffer += decompressed
        if size > 0 and not self._buffer:
            self._empty_reads += 1
            if self._empty_reads > MAX_EMPTY_READS:
                raise EOFError("a member is larger than the archive")
        part = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._bytes_returned += len(part)
        if self._bytes_returned > MAX_UNPACKED_BYTES:
            raise _SizeLimitReached(f"only its first {MAX_UNPACKED_BYTES // MEGABYTE} MB were read")
        return part

    def _decompress_next(self) -> bytes:
        while True:
            if self._decompressor.eof:
                compressed = self._decompressor.unused_data or self._compressed.read(READ_SIZE)
                if compressed[:1] != GZIP_MAGIC:
                    return b""
                self._decompressor = _new_decompressor()  # a further member of the same gzip stream
            else:
                compressed = self._decompressor.unconsumed_tail or self._compressed.read(READ_SIZE)
                if not compressed:
                    raise EOFError("the archive is truncated")
            if unpacked := self._decompressor.decompress(compressed, READ_SIZE):
                return unpacked


def _new_decompressor() -> Any:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


def _read_zip(content: bytes, is_wanted: PathFilter) -> Iterator[Member]:
    """Yield the files of a zip or a wheel that are not too long by its directory, which may be false."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for count, member in enumerate(archive.infolist()):
            if count >= MAX_MEMBERS:
                raise _SizeLimitReached(f"only its first {MAX_MEMBERS:,} files were read")
            is_symlink = stat.S_ISLNK(member.external_attr >> 16)
            is_regular = (
                not member.is_dir() and not is_symlink and member.compress_type in (0, zipfile.ZIP_DEFLATED)
            )
            if not is_regular or member.file_size > MAX_FILE_BYTES or not is_safe_path(member.filename):
                continue
            if is_wanted(member.filename):
                with archive.open(member) as file:
                    body = file.read(MAX_FILE_BYTES)
                yield member.filename, body


def is_safe_path(path: str) -> bool:
    """True if a member's path stays inside the archive: relative, without `..`, and printable."""
    parts = path.split("/")
    return (
        len(path) <= MAX_PATH_LENGTH
        and path.isprintable()
        and "\\" not in path
        and ":" not in parts[0]
        and not {"", ".", ".."} & set(parts)
    )


def _make_document(path: str, body: bytes, archive: Archive, inside: str) -> PackageDocument | None:
    below = _strip_root(path, archive.kind)
    kind = document_kind(below, archive.kind)
    if kind is None or b"\0" in body[:READ_SIZE]:
        return None
    url = _page_url(archive, path, below)
    text = body.decode("utf-8-sig", "replace")
    if kind in ("javascript", "typescript"):
        text = _INLINE_SOURCE_MAP.sub("", text)  # longer than the code, it would look written by a machine
    return PackageDocument(inside + below, text, kind, url)


def _page_url(archive: Archive, path: str, below: str) -> str | None:
    """Return the URL of a page that shows a file; of its package, for Go, whose pages show no files."""
    if archive.viewer_url is None:
        return None
    if archive.kind != "go":
        return archive.viewer_url + quote(path if archive.kind in ("sdist", "wheel") else below)
    folder = below.rpartition("/")[0]
    if below.endswith(".go"):
        return archive.viewer_url + (f"/{quote(folder)}" if folder else "")
    return None if folder else f"{archive.viewer_url}#section-readme"


def _strip_root(path: str, kind: ArchiveKind) -> str:
    """Return a path without the release's root directory and, in a source distribution, without `src`."""
    if kind == "wheel":
        return path
    if kind == "go":
        return path.partition("@")[2].partition("/")[2]
    below = path.partition("/")[2]
    return below.removeprefix("src/") if kind == "sdist" else below


def _is_metadata(path: str, kind: ArchiveKind) -> bool:
    folder, _, name = path.rpartition("/")
    if "/" in folder:
        return False
    if kind == "npm":
        return name == "package.json" and bool(folder)
    return name == "PKG-INFO" if kind == "sdist" else kind == "wheel" and name == "METADATA"


def _read_description(path: str, body: bytes, archive: Archive) -> Iterator[PackageDocument]:
    """Yield the description in a package's core metadata, which is usually its README."""
    message = HeaderParser().parsestr(body.decode("utf-8", "replace"))
    description = str(message.get_payload() or "").strip() or str(message.get("Description") or "").strip()
    if len(description) > 40:
        content_type = str(message.get("Description-Content-Type") or "")
        url = archive.viewer_url + quote(path) if archive.viewer_url else None
        yield PackageDocument("README", description, "markdown" if "markdown" in content_type else "rst", url)
