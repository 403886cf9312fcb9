"""Check a newly published list before it replaces the previous one, and apply a hotlist to it.

Runs in a `Sandbox` process, because the document comes from the network and takes seconds to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace
from tld.utils import is_tld

from centgate.phishing.detector import PhishingDetector
from centgate.phishing.normalize import DroppedEntry, has_path
from centgate.phishing.path_rules import PathTree
from centgate.phishing.published import PublishedList
from centgate.phishing.rules import (
    WELL_KNOWN_NAMES,
    InvalidPhishingList,
    PhishingRules,
    is_array,
    is_object,
)
from centgate.phishing.snapshot import (
    Snapshot,
    import_list,
    make_snapshot,
    pack_snapshot,
    unpack_snapshot,
)

MIN_ENTRIES: Final = 100
"""Minimum number of blocked names; every published list has over a thousand."""
MIN_KEPT: Final = 0.9
"""Size of a list, as a share of the list that it replaces, that it has to exceed unless it lost nothing."""
MAX_DROPPED: Final = 0.1
"""Maximum share of a list's entries that cannot be used; the published lists stay below one percent."""
MAX_ALLOWED: Final = 0.01
"""Maximum share of the previously blocked names that a list may newly allow."""
MAX_CORRECTIONS: Final = 20
"""Number of blocked names that a list may newly allow, whatever its size."""
MAX_TOLERANCE: Final = 3
"""Maximum tolerance of a fuzzylist: MetaMask's is 1; with 5, ordinary names are lookalikes."""
HOTLIST_PREFIX: Final = "eth_phishing_detect_config."


class FetchedDocument(Struct, frozen=True):
    """A list as it was fetched."""

    published: PublishedList
    body: bytes
    url: str
    fetched_at: datetime
    modified: str | None = None
    """Date of the server's `Last-Modified`, if it sends one, in the form YYYY-MM-DD."""
    min_kept: float = MIN_KEPT
    """Size, as a share of the list that it replaces, that it has to exceed unless it lost nothing."""


def build_update(document: FetchedDocument, previous: bytes | None) -> bytes:
    """Return the packed snapshot of a fetched list. `previous` is the packed snapshot that it replaces.

    Raises `InvalidPhishingList` for a list that is not accepted.
    """
    today = document.fetched_at.date().isoformat()
    imported = import_list(document.body, source=document.published.label, date=document.modified or today)
    rules, suffixes = drop_public_suffixes(imported.snapshot.rules)
    old = unpack_previous(previous)
    check_dropped(rules, (*imported.dropped, *suffixes))
    check_rules(rules, old.rules if old else None, min_kept=document.min_kept)
    # a date in the future would hide how old the list is
    date = min(imported.snapshot.header.date or today, today)
    if old and old.header.date and is_same_content(rules, old.rules) and not document.modified:
        # the list states no date and did not change since
        date = min(date, old.header.date)
    snapshot = make_snapshot(
        rules,
        source=document.published.label,
        date=date,
        licence=document.published.licence,
        url=document.url,
        fetched_at=format_time(document.fetched_at),
        updated_seconds=read_seconds(document),
    )
    return pack_snapshot(snapshot)


def unpack_previous(packed: bytes | None) -> Snapshot | None:
    """Return the list to compare with; None for a damaged one, which must not stop its replacement."""
    try:
        return unpack_snapshot(packed) if packed else None
    except InvalidPhishingList:
        return None


def read_seconds(document: FetchedDocument) -> int | None:
    """Return `lastUpdated` of a stalelist, at most the time of the fetch; None for lists without it."""
    try:
        parsed: Any = orjson.loads(document.body)
    except orjson.JSONDecodeError:
        return None
    inner: Any = parsed.get("data", parsed) if is_object(parsed) else None
    seconds = inner.get("lastUpdated") if is_object(inner) else None
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds <= 0:
        return None
    return min(int(seconds), int(document.fetched_at.timestamp()))


def is_same_content(rules: PhishingRules, other: PhishingRules) -> bool:
    return replace(rules, name=None, version=None) == replace(other, name=None, version=None)


def format_time(time: datetime) -> str:
    return time.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def drop_public_suffixes(rules: PhishingRules) -> tuple[PhishingRules, tuple[DroppedEntry, ...]]:
    """Drop names below which anyone may register a site (https://publicsuffix.org): `com.br`, `pages.dev`."""
    found = frozenset(name for name in (*rules.allowlist, *rules.blocklist) if is_public_suffix(name))
    if not found:
        return rules, ()
    kept = replace(
        rules,
        allowlist=tuple(name for name in rules.allowlist if name not in found),
        blocklist=tuple(name for name in rules.blocklist if name not in found),
    )
    return kept, tuple(DroppedEntry(name, "hosting platform") for name in sorted(found))


def is_public_suffix(name: str) -> bool:
    return bool(is_tld(name))


def check_dropped(rules: PhishingRules, dropped: Sequence[DroppedEntry]) -> None:
    """Refuse a list of which many entries cannot be used: it is damaged, or of an unknown format."""
    unusable = [entry for entry in dropped if entry.reason != "repeated"]
    total = len(rules.allowlist) + count_blocked(rules) + len(unusable)
    if unusable and len(unusable) > total * MAX_DROPPED:
        raise InvalidPhishingList(f"{len(unusable):,} of its {total:,} entries cannot be used")


def check_rules(rules: PhishingRules, previous: PhishingRules | None, *, min_kept: float = MIN_KEPT) -> None:
    """Refuse a list that is too short, shrank, blocks well-known sites, or allows what was blocked."""
    count = count_blocked(rules)
    if count < MIN_ENTRIES:
        raise InvalidPhishingList(f"it blocks {count:,} names; a list has at least {MIN_ENTRIES}")
    allowed = frozenset(rules.allowlist)
    blocked = frozenset(rules.blocklist)
    for name in WELL_KNOWN_NAMES:
        if is_covered(name, blocked) and not is_covered(name, allowed):
            raise InvalidPhishingList(f"it blocks {name}")
    check_allowed(allowed, rules.blocklist)
    check_lookalikes(rules)
    if previous is None:
        return
    before = count_blocked(previous)
    if has_shrunk(before, count, min_kept):
        raise InvalidPhishingList(f"it shrank from {before:,} to {count:,} names")
    was_allowed = frozenset(previous.allowlist)
    check_allowed(allowed, [name for name in previous.blocklist if not is_covered(name, was_allowed)])


def has_shrunk(before: int, count: int, min_kept: float) -> bool:
    # rounded, because 0.9 of a number of entries may come out a little below the whole number that it is
    return count < before and count <= round(before * min_kept, 6)


def check_lookalikes(rules: PhishingRules) -> None:
    """Refuse a list that makes lookalikes of ordinary names, or of well-known ones that it does not allow."""
    if rules.tolerance > MAX_TOLERANCE:
        raise InvalidPhishingList(f"its tolerance of {rules.tolerance} makes lookalikes of ordinary names")
    detector = PhishingDetector(replace(rules, blocklist=(), paths=PathTree()))
    for name in WELL_KNOWN_NAMES:
        if detector.check_domain(name).status == "lookalike":
            raise InvalidPhishingList(f"it calls {name} a lookalike")


def check_allowed(allowed: frozenset[str], blocklist: Sequence[str]) -> None:
    covered = sum(is_covered(name, allowed) for name in blocklist)
    if covered > max(MAX_CORRECTIONS, len(blocklist) * MAX_ALLOWED):
        raise InvalidPhishingList(f"its allowlist covers {covered:,} blocked names")


def count_blocked(rules: PhishingRules) -> int:
    return len(rules.blocklist) + sum(1 for _ in rules.paths.iter_lines())


def is_covered(name: str, names: frozenset[str]) -> bool:
    """True if the name or a domain above it is among the names."""
    suffix, dot = name, "."
    while dot:
        if suffix in names:
            return True
        _, dot, suffix = suffix.partition(".")
    return False


def apply_hotlist(packed: bytes, body: bytes, *, fetched_at: datetime) -> bytes:
    """Apply the changes of a hotlist to a packed stalelist, and return the packed result.

    A hotlist is an array of `{url, timestamp, targetList, isRemoval}`, possibly in a `data` envelope; changes
    before the list's own time, and those of other lists, are ignored, as MetaMask's wallets do. Raises
    `InvalidPhishingList`.
    """
    old = unpack_snapshot(packed)
    since, until = old.header.updated_seconds or 0, int((fetched_at + timedelta(minutes=5)).timestamp())
    changes = [change for change in parse_hotlist(body) if since < change.seconds <= until]
    rules = change_rules(old.rules, changes)
    check_rules(rules, old.rules)
    updated = max([since, *(change.seconds for change in changes)])
    snapshot = make_snapshot(
        rules,
        source=old.header.source,
        date=max(
            old.header.date or "",
            min(datetime.fromtimestamp(updated, UTC), fetched_at).date().isoformat(),
        ),
        licence=old.header.licence,
        url=old.header.url,
        fetched_at=old.header.fetched_at,
        updated_seconds=updated,
    )
    return pack_snapshot(snapshot)


class HotlistChange(Struct, frozen=True):
    """A change of one entry."""

    entry: str
    target: str
    """`allowlist`, `blocklist`, `blocklistPaths` or `fuzzylist`."""
    seconds: int
    is_removal: bool


def parse_hotlist(body: bytes) -> Iterator[HotlistChange]:
    """Yield the changes of MetaMask's list; those of other lists are skipped."""
    try:
        document: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise InvalidPhishingList("the hotlist is not JSON") from None
    changes = document.get("data") if is_object(document) else document
    if not is_array(changes):
        raise InvalidPhishingList("the hotlist is not an array of changes")
    for change in changes:
        if not is_object(change):
            raise InvalidPhishingList("the hotlist contains a change that is not an object")
        entry, target, seconds = (change.get(key) for key in ("url", "targetList", "timestamp"))
        if not isinstance(entry, str) or not isinstance(target, str):
            raise InvalidPhishingList("the hotlist contains a change without a url or a targetList")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool):
            raise InvalidPhishingList("the hotlist contains a change without a timestamp")
        if target.startswith(HOTLIST_PREFIX):
            is_removal = change.get("isRemoval") is True
            yield HotlistChange(entry, target.removeprefix(HOTLIST_PREFIX), int(seconds), is_removal)


def change_rules(rules: PhishingRules, changes: Sequence[HotlistChange]) -> PhishingRules:
    """Return the rules with the changes applied in their order; new entries are normalised as in a list."""
    names: dict[str, dict[str, None]] = {
        "allowlist": dict.fromkeys(rules.allowlist),
        "blocklist": dict.fromkeys(rules.blocklist),
        "fuzzylist": dict.fromkeys(rules.fuzzylist),
    }
    paths = PathTree.from_entries(rules.paths.iter_lines())
    for change in changes:
        is_path = change.target == "blocklist" and has_path(change.entry)
        if is_path or change.target == "blocklistPaths":
            (paths.discard if change.is_removal else paths.add)(change.entry)
        elif change.target in names:
            for name in normalize_change(change, rules.tolerance):
                if change.is_removal:
                    names[change.target].pop(name, None)
                else:
                    names[change.target][name] = None
    return replace(
        rules,
        allowlist=tuple(names["allowlist"]),
        blocklist=tuple(names["blocklist"]),
        fuzzylist=tuple(names["fuzzylist"]),
        paths=paths,
    )


def normalize_change(change: HotlistChange, tolerance: int) -> Sequence[str]:
    """Return the entry as it stands in a list; empty for an entry that a list would drop."""
    document: dict[str, Any] = {"blocklist": [], change.target: [change.entry]}
    if change.target == "fuzzylist":
        document["tolerance"] = tolerance
    rules = import_list(orjson.dumps(document), source="hotlist").snapshot.rules
    names: Sequence[str] = getattr(rules, change.target)
    return [name for name in names if not is_public_suffix(name)]
