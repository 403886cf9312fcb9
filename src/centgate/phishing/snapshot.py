"""A phishing list as it is shipped and loaded: one compressed text file with its own provenance.

The first line is a JSON header; then follow the fuzzylist, the allowlist, the blocklist and the blocked
paths, one entry per line. The header gives the length of each part.
"""

from __future__ import annotations

import lzma
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from centgate.phishing.normalize import DroppedEntry, EntryNormalizer
from centgate.phishing.path_rules import PathTree
from centgate.phishing.published import parse_document
from centgate.phishing.rules import InvalidPhishingList, PhishingRules, is_array, parse_rules

FORMAT: Final = 1
SHIPPED_FILE: Final = "data/phishing-list.xz"
SHIPPED_LICENCE: Final = "DBAD"
"""Licence of the shipped list, whose file does not state it."""
OPTIONAL_FIELDS: Final = ("licence", "url", "fetched_at", "updated_seconds")
"""Fields of the header that a snapshot of a published package lacks."""
# a window of 8 MiB, which decompression also needs; the higher presets need 64
COMPRESSION: Final = 6 | lzma.PRESET_EXTREME


class SnapshotHeader(BaseModel):
    """The first line of a snapshot."""

    model_config: ClassVar = ConfigDict(frozen=True, strict=True, extra="forbid")

    format: int = FORMAT
    source: str
    version: str | None
    date: str | None
    tolerance: NonNegativeInt
    fuzzylist: NonNegativeInt
    allowlist: NonNegativeInt
    blocklist: NonNegativeInt
    paths: NonNegativeInt
    sha256: str = ""
    """Digest of the header without this field and the time of the fetch, and of all entries."""
    licence: str | None = None
    url: str | None = None
    """Address that the list was fetched from; None for a list from a file."""
    fetched_at: str | None = None
    """Time of the last successful fetch, in UTC, in the format of ISO 8601."""
    updated_seconds: int | None = None
    """`lastUpdated` of a stalelist or of the hotlist applied to it, in seconds since 1970."""

    def to_json(self, *, exclude: Collection[str] = ()) -> str:
        """Return the header's line; fields that older files lack are left out if they are null."""
        empty = {name for name in OPTIONAL_FIELDS if getattr(self, name) is None}
        return self.model_dump_json(exclude=empty | set(exclude))


class Snapshot(Struct, frozen=True):
    """A list with its source and its date."""

    header: SnapshotHeader
    rules: PhishingRules

    @property
    def id(self) -> str:
        """SHA-256 of the list's content, which does not depend on the compression."""
        return self.header.sha256


class ImportedList(Struct, frozen=True):
    """A snapshot of a published list, and the entries that were dropped."""

    snapshot: Snapshot
    dropped: tuple[DroppedEntry, ...]


def load_shipped() -> Snapshot:
    """Return the list that comes with the package; `data/ORIGIN.md` describes its origin."""
    return unpack_snapshot(files("centgate.phishing").joinpath(SHIPPED_FILE).read_bytes())


def load_snapshot(path: Path) -> Snapshot:
    """Load a list from a file written by `pack_snapshot`. Raises `InvalidPhishingList`, or `OSError` without
    a file.
    """
    try:
        return unpack_snapshot(path.read_bytes())
    except InvalidPhishingList as error:
        raise InvalidPhishingList(f"{path}: {error}") from None


def unpack_snapshot(data: bytes) -> Snapshot:
    """Decompress a snapshot and check that it is complete. Raises `InvalidPhishingList`."""
    try:
        head, *lines = lzma.decompress(data).decode().split("\n")
        header = SnapshotHeader.model_validate_json(head)
    except (lzma.LZMAError, UnicodeDecodeError, ValidationError):
        raise InvalidPhishingList("the file is not a phishing list snapshot, or it is damaged") from None
    if header.format != FORMAT:
        raise InvalidPhishingList(
            f"the snapshot has format {header.format}, but only format {FORMAT} is supported"
        )
    entries = iter(lines)
    fuzzylist, allowlist, blocklist, paths = (
        tuple(islice(entries, count))
        for count in (header.fuzzylist, header.allowlist, header.blocklist, header.paths)
    )
    if content_digest(header, lines) != header.sha256:
        raise InvalidPhishingList("the snapshot's content does not match its SHA-256")
    rules = PhishingRules(
        allowlist,
        blocklist,
        fuzzylist,
        tolerance=header.tolerance,
        paths=PathTree.from_entries(paths),
        name=header.source,
        version=header.version,
    )
    return Snapshot(header, rules)


def pack_snapshot(snapshot: Snapshot) -> bytes:
    """Return the bytes of a snapshot's file; the same list always makes the same bytes."""
    text = "\n".join([snapshot.header.to_json(), *iter_lines(snapshot.rules)])
    return lzma.compress(text.encode(), preset=COMPRESSION)


def make_snapshot(rules: PhishingRules, *, source: str, date: str | None, **provenance: Any) -> Snapshot:
    """Create a snapshot of a list by adding the header. The entries are not changed.

    `provenance` are the optional fields of the header.
    """
    lines = list(iter_lines(rules))
    header = SnapshotHeader(
        source=source,
        version=rules.version,
        date=date,
        tolerance=rules.tolerance,
        fuzzylist=len(rules.fuzzylist),
        allowlist=len(rules.allowlist),
        blocklist=len(rules.blocklist),
        paths=len(lines) - len(rules.fuzzylist) - len(rules.allowlist) - len(rules.blocklist),
        **provenance,
    )
    return Snapshot(
        header.model_copy(update={"sha256": content_digest(header, lines)}), replace(rules, name=source)
    )


def import_list(
    text: bytes | str, *, source: str, date: str | None = None, single_labels: Collection[str] = ()
) -> ImportedList:
    """Import a published list in its order, with each entry in the spelling that addresses are parsed to.

    Accepts the formats of `parse_document`. `date` is used for lists without a date. `single_labels`
    contains single labels that are known not to be top-level domains. Raises `InvalidPhishingList`.
    """
    config = parse_document(text)
    raw = parse_rules(config)
    normalizer = EntryNormalizer(single_labels=single_labels)
    allowlist, blocklist = (
        normalizer.normalize_allowlist(raw.allowlist),
        normalizer.normalize_blocklist(raw.blocklist),
    )
    fuzzylist = normalizer.normalize_fuzzylist(raw.fuzzylist, raw.tolerance)
    normalizer.add_blocked_paths(path_entries(config))
    rules = PhishingRules(
        allowlist,
        blocklist,
        fuzzylist,
        tolerance=raw.tolerance,
        paths=normalizer.paths,
        version=raw.version,
    )
    snapshot = make_snapshot(rules, source=source, date=parse_date(config) or date)
    return ImportedList(snapshot, tuple(normalizer.dropped))


def path_entries(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield blocked paths as written, so that unreadable ones are counted as dropped."""
    paths: Any = config.get("blocklistPaths")
    if is_array(paths):
        return (entry for entry in paths if isinstance(entry, str))
    return parse_rules({"blocklistPaths": paths}).paths.iter_lines()


def parse_date(config: Mapping[str, Any]) -> str | None:
    """Return the date of a stalelist's `lastUpdated`, which is in seconds."""
    seconds = config.get("lastUpdated")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise InvalidPhishingList(f"'lastUpdated' is {seconds}, which is not a time in seconds") from None


def content_digest(header: SnapshotHeader, lines: Collection[str]) -> str:
    text = "\n".join([header.to_json(exclude={"sha256", "fetched_at"}), *lines])
    return sha256(text.encode()).hexdigest()


def iter_lines(rules: PhishingRules) -> Iterator[str]:
    yield from rules.fuzzylist
    yield from rules.allowlist
    yield from rules.blocklist
    yield from rules.paths.iter_lines()
