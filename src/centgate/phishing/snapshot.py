"""A list as it is shipped and loaded: one compressed file of lines that carries its own provenance.

The first line is a header in JSON; then come the fuzzylist, the allowlist, the blocklist and the blocked
paths, one entry a line, each part as long as the header says.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from centgate.phishing.entries import Dropped, Intake
from centgate.phishing.paths import PathTree
from centgate.phishing.rules import Rules, UnreadableList, is_array, is_object, rules_of

FORMAT: Final = 1
SHIPPED: Final = "data/phishing-list.xz"
# a window of 8 MiB, which is also what reading takes; the greater presets ask for 64
COMPRESSION: Final = 6 | lzma.PRESET_EXTREME


class Header(BaseModel):
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
    """Of everything else: the header without this, and all entries."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A list, where it comes from, and as of when it speaks."""

    header: Header
    rules: Rules

    @property
    def id(self) -> str:
        """What names this list and no other: the SHA-256 of its content, however it is compressed."""
        return self.header.sha256


@dataclass(frozen=True, slots=True)
class Imported:
    """A snapshot made of a published list, and the entries that were left behind."""

    snapshot: Snapshot
    dropped: tuple[Dropped, ...]


def shipped() -> Snapshot:
    """The list that comes with the package; `data/ORIGIN.md` tells its story."""
    return unpacked(files("centgate.phishing").joinpath(SHIPPED).read_bytes())


def load(path: Path) -> Snapshot:
    """The list in a file that `packed` wrote. Raises `UnreadableList`, or `OSError` if there is none."""
    try:
        return unpacked(path.read_bytes())
    except UnreadableList as error:
        raise UnreadableList(f"{path}: {error}") from None


def unpacked(data: bytes) -> Snapshot:
    """Read a snapshot and check that it is whole. Raises `UnreadableList`."""
    try:
        head, *lines = lzma.decompress(data).decode().split("\n")
        header = Header.model_validate_json(head)
    except (lzma.LZMAError, UnicodeDecodeError, ValidationError):
        raise UnreadableList("this is no phishing list snapshot, or a damaged one") from None
    if header.format != FORMAT:
        raise UnreadableList(f"the snapshot has format {header.format}, and format {FORMAT} is what is read")
    entries = iter(lines)
    fuzzylist, allowlist, blocklist, paths = (
        tuple(islice(entries, count))
        for count in (header.fuzzylist, header.allowlist, header.blocklist, header.paths)
    )
    if digest(header, lines) != header.sha256:
        raise UnreadableList("the snapshot's content does not match its SHA-256")
    rules = Rules(
        allowlist,
        blocklist,
        fuzzylist,
        tolerance=header.tolerance,
        paths=PathTree.of(paths),
        name=header.source,
        version=header.version,
    )
    return Snapshot(header, rules)


def packed(snapshot: Snapshot) -> bytes:
    """The bytes of a snapshot's file; the same list always makes the same bytes."""
    text = "\n".join([snapshot.header.model_dump_json(), *lines_of(snapshot.rules)])
    return lzma.compress(text.encode(), preset=COMPRESSION)


def snapshot_of(rules: Rules, *, source: str, date: str | None) -> Snapshot:
    """Give a list its header. The entries are taken as they are."""
    lines = list(lines_of(rules))
    header = Header(
        source=source,
        version=rules.version,
        date=date,
        tolerance=rules.tolerance,
        fuzzylist=len(rules.fuzzylist),
        allowlist=len(rules.allowlist),
        blocklist=len(rules.blocklist),
        paths=len(lines) - len(rules.fuzzylist) - len(rules.allowlist) - len(rules.blocklist),
    )
    return Snapshot(header.model_copy(update={"sha256": digest(header, lines)}), replace(rules, name=source))


def import_list(
    text: bytes | str, *, source: str, date: str | None = None, keep: Collection[str] = ()
) -> Imported:
    """Read a published list, keeping its order, each entry in the spelling that addresses are read in.

    Takes the `config.json` of eth-phishing-detect and the stalelist that MetaMask's wallets download, the
    latter with or without its `data` envelope. `date` is for lists that have none of their own. `keep` names
    single labels that are known to be no top-level domains. Raises `UnreadableList`.
    """
    config = config_in(text)
    raw = rules_of(config)
    intake = Intake(keep=keep)
    allowlist, blocklist = intake.allowed(raw.allowlist), intake.blocked(raw.blocklist)
    fuzzylist = intake.protected(raw.fuzzylist, raw.tolerance)
    intake.blocked_paths(path_entries(config))
    rules = Rules(
        allowlist,
        blocklist,
        fuzzylist,
        tolerance=raw.tolerance,
        paths=intake.paths,
        version=raw.version,
    )
    snapshot = snapshot_of(rules, source=source, date=updated(config) or date)
    return Imported(snapshot, tuple(intake.dropped))


def config_in(text: bytes | str) -> dict[str, Any]:
    try:
        document: Any = json.loads(text)
    except ValueError:
        raise UnreadableList("the file is not JSON") from None
    if is_object(document) and is_object(document.get("data")):
        document = document["data"]
    if is_object(document) and (is_array(document.get("blocklist")) or is_array(document.get("blacklist"))):
        return document
    raise UnreadableList(
        "the file is neither a config.json of eth-phishing-detect (whitelist and blacklist, or allowlist and"
        " blocklist) nor a stalelist (allowlist, blocklist, fuzzylist, tolerance)"
    )


def path_entries(config: Mapping[str, Any]) -> Iterator[str]:
    """Blocked paths as written, so that those which cannot be read are counted."""
    paths: Any = config.get("blocklistPaths")
    if is_array(paths):
        return (entry for entry in paths if isinstance(entry, str))
    return rules_of({"blocklistPaths": paths}).paths.lines()


def updated(config: Mapping[str, Any]) -> str | None:
    """The day of a stalelist's `lastUpdated`, which counts seconds."""
    seconds = config.get("lastUpdated")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise UnreadableList(f"'lastUpdated' is {seconds}, which is no time in seconds") from None


def digest(header: Header, lines: Collection[str]) -> str:
    text = "\n".join([header.model_dump_json(exclude={"sha256"}), *lines])
    return sha256(text.encode()).hexdigest()


def lines_of(rules: Rules) -> Iterator[str]:
    yield from rules.fuzzylist
    yield from rules.allowlist
    yield from rules.blocklist
    yield from rules.paths.lines()
