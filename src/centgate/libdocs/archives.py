"""Reading a package's archives, which strangers made: in memory, to bounds, and never onto the disk.

To be run in a process that may be killed. What goes beyond a bound is not read; what was read before counts.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.parser import HeaderParser
from pathlib import PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import quote

from centgate.libdocs.documents import Document
from centgate.libdocs.packages import Archive, ArchiveKind
from centgate.libdocs.selection import kind_of, worthwhile

MEGABYTE = 1 << 20
LONGEST_FILE = MEGABYTE
LARGEST_UNPACKED = 300 * MEGABYTE
"""Of an archive, unpacked and passed over; it costs time alone."""
LARGEST_KEPT = 100 * MEGABYTE
"""Of those of its files that may be documentation, which are all kept until the best of them are known."""
MOST_MEMBERS = 20_000
LONGEST_PATH = 400
MOST_EMPTY = 3
"""Reads at the end of a tar; more come of a size that is a lie, and would not end for years."""
CHUNK = 64 * 1024
GZIP = b"\x1f"
Member: TypeAlias = tuple[str, bytes]
Wanted: TypeAlias = Callable[[str], bool]
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RecursionError,
    RuntimeError,  # an encrypted member
    UnicodeError,
    ValueError,
    OverflowError,
)
"""What Python's readers raise for archives that are not what they say."""


class BadArchive(Exception):
    """An archive that is not what its registry says, or not an archive; the message is a clause."""


class _Enough(Exception):
    """A bound was reached."""


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of an archive."""

    documents: list[Document] = field(default_factory=list[Document])
    incomplete: str | None = None
    """Why there may be more, as a clause; None when all of it was read."""


def read(content: bytes, archive: Archive, inside: str = "") -> Read:
    """The documentation in an archive; BadArchive when its digest or its form is wrong.

    `inside` precedes each path, with a slash at its end: the name of a package that belongs to another.
    """
    if not hmac.compare_digest(hashlib.new(archive.algorithm, content).digest(), archive.digest):
        raise BadArchive("its digest is not the published one")
    documents, incomplete = list[Document](), None
    metadata: Member | None = None
    try:
        for path, body in _within(_members(content, archive.kind)):
            if _is_metadata(path, archive.kind):
                metadata = metadata or (path, body)
            elif document := _document(path, body, archive, inside):
                documents.append(document)
    except _Enough as bound:
        incomplete = str(bound)
    except _BROKEN as error:
        if not documents:
            raise BadArchive("it is no archive of its kind, or it is broken") from error
        incomplete = "the archive is broken"
    if metadata and not any(PurePosixPath(each.path).stem.lower() == "readme" for each in documents):
        documents += _described(*metadata, archive)
    return Read(worthwhile(documents, archive.kind), incomplete)


def _members(content: bytes, kind: ArchiveKind) -> Iterator[Member]:
    """The files that may be documentation, by their paths in the archive."""

    def wanted(path: str) -> bool:
        return _is_metadata(path, kind) or kind_of(_below_root(path, kind), kind) is not None

    return _zipped(content, wanted) if content[:2] == b"PK" else _tarred(content, wanted)


def _within(members: Iterator[Member]) -> Iterator[Member]:
    kept = 0
    for path, body in members:
        kept += len(body)
        if kept > LARGEST_KEPT:
            raise _Enough(f"only the first {LARGEST_KEPT // MEGABYTE} MB of its documentation were read")
        yield path, body


def _tarred(content: bytes, wanted: Wanted) -> Iterator[Member]:
    """A gzipped tar, read as a stream: nothing in it can ask for more than its own bytes."""
    stream = _Bounded(io.BytesIO(content))
    with tarfile.open(fileobj=stream, mode="r|", encoding="utf-8", errors="replace") as archive:
        for count, member in enumerate(archive):
            if count >= MOST_MEMBERS:
                raise _Enough(f"only its first {MOST_MEMBERS:,} files were read")
            if member.isreg() and member.size <= LONGEST_FILE and safe(member.name) and wanted(member.name):
                file = archive.extractfile(member)
                yield member.name, file.read(LONGEST_FILE) if file else b""


class _Bounded(io.RawIOBase):
    """What is inside a gzip stream, up to the bound."""

    def __init__(self, packed: io.BytesIO) -> None:
        super().__init__()
        self._packed = packed
        self._unzip = _unzip()
        self._ready = bytearray()
        self._given = self._empty = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; fewer only at the end."""
        while len(self._ready) < size and (more := self._more()):
            self._ready += more
        if size > 0 and not self._ready:
            self._empty += 1
            if self._empty > MOST_EMPTY:
                raise EOFError("a member is larger than the archive")
        part = bytes(self._ready[:size])
        del self._ready[:size]
        self._given += len(part)
        if self._given > LARGEST_UNPACKED:
            raise _Enough(f"only its first {LARGEST_UNPACKED // MEGABYTE} MB were read")
        return part

    def _more(self) -> bytes:
        while True:
            if self._unzip.eof:
                packed = self._unzip.unused_data or self._packed.read(CHUNK)
                if packed[:1] != GZIP:
                    return b""
                self._unzip = _unzip()  # a further part of the same stream
            else:
                packed = self._unzip.unconsumed_tail or self._packed.read(CHUNK)
                if not packed:
                    raise EOFError("cut short")
            if unpacked := self._unzip.decompress(packed, CHUNK):
                return unpacked


def _unzip() -> Any:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


def _zipped(content: bytes, wanted: Wanted) -> Iterator[Member]:
    """A zip or a wheel; its directory may say what it likes, only what is unpacked counts."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for count, member in enumerate(archive.infolist()):
            if count >= MOST_MEMBERS:
                raise _Enough(f"only its first {MOST_MEMBERS:,} files were read")
            linked = stat.S_ISLNK(member.external_attr >> 16)
            plain = not member.is_dir() and not linked and member.compress_type in (0, zipfile.ZIP_DEFLATED)
            if not plain or member.file_size > LONGEST_FILE or not safe(member.filename):
                continue
            if wanted(member.filename):
                with archive.open(member) as file:
                    body = file.read(LONGEST_FILE)
                yield member.filename, body


def safe(path: str) -> bool:
    """Whether a member's path is one inside the archive: relative, without a way up, and printable."""
    parts = path.split("/")
    return (
        len(path) <= LONGEST_PATH
        and path.isprintable()
        and "\\" not in path
        and ":" not in parts[0]
        and not {"", ".", ".."} & set(parts)
    )


def _document(path: str, body: bytes, archive: Archive, inside: str) -> Document | None:
    below = _below_root(path, archive.kind)
    kind = kind_of(below, archive.kind)
    if kind is None or b"\0" in body[:CHUNK]:
        return None
    if inside and PurePosixPath(below).stem.lower() == "readme":
        return None  # it introduces a part that nobody asked for by its name
    shown = below if archive.kind == "npm" else path
    url = archive.shown_at + quote(shown) if archive.shown_at else None
    return Document(inside + below, body.decode("utf-8-sig", "replace"), kind, url)


def _below_root(path: str, kind: ArchiveKind) -> str:
    """A path without the directory that holds the whole release, and, in a source, without `src`."""
    if kind == "wheel":
        return path
    below = path.partition("/")[2]
    return below.removeprefix("src/") if kind == "sdist" else below


def _is_metadata(path: str, kind: ArchiveKind) -> bool:
    folder, _, name = path.rpartition("/")
    if "/" in folder:
        return False
    return name == "PKG-INFO" if kind == "sdist" else kind == "wheel" and name == "METADATA"


def _described(path: str, body: bytes, archive: Archive) -> Iterator[Document]:
    """The description in a package's core metadata, which is its README mostly."""
    message = HeaderParser().parsestr(body.decode("utf-8", "replace"))
    description = str(message.get_payload() or "").strip() or str(message.get("Description") or "").strip()
    if len(description) > 40:
        written = str(message.get("Description-Content-Type") or "")
        url = archive.shown_at + quote(path) if archive.shown_at else None
        yield Document("README", description, "markdown" if "markdown" in written else "rst", url)
