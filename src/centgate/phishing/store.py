"""Phishing lists of a deployment: the operator's file, the folder of fetched lists, and the shipped list."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import ClassVar, Final

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from centgate.files import Fingerprint, find_fingerprint, replace_file
from centgate.phishing.collection import ListCollection, LoadedList, load_list
from centgate.phishing.published import LEAD, PUBLISHED_LISTS, ListName
from centgate.phishing.rules import InvalidPhishingList
from centgate.phishing.snapshot import SHIPPED_FILE, Snapshot, load_shipped, load_snapshot

TEMPORARY_PREFIX: Final = ".new-"
STALE_TEMPORARY_SECONDS: Final = 3600.0
"""Age after which a file of an interrupted write is removed."""


class FetchState(BaseModel):
    """State of the attempts to fetch a list."""

    model_config: ClassVar = ConfigDict(frozen=True)

    url: str
    attempted_at: float
    """Seconds since 1970."""
    next_at: float
    failures: int = 0
    """Consecutive failures."""
    error: str | None = None

    def is_due(self, url: str, now: float) -> bool:
        """True if a fetch is due: its time has come, the address changed, or the clock was set back."""
        return now >= self.next_at or now < self.attempted_at or url != self.url


class ListFolder:
    """Folder of fetched lists: one snapshot per list, and the state of its fetches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def snapshot_file(self, name: str) -> Path:
        """Return the file of a list."""
        return self.folder / f"{name}.xz"

    def read_packed(self, name: str) -> bytes | None:
        """Return the packed list that a fetched one would replace: the stored one, or the shipped one."""
        with contextlib.suppress(OSError):
            return self.snapshot_file(name).read_bytes()
        return files("centgate.phishing").joinpath(SHIPPED_FILE).read_bytes() if name == LEAD else None

    def store_packed(self, name: str, packed: bytes) -> None:
        """Store a packed list in one step. Raises OSError."""
        write_atomically(self.snapshot_file(name), packed)

    def read_state(self, key: str) -> FetchState | None:
        """Return the state of a list's fetches; None without a readable one."""
        try:
            return FetchState.model_validate_json(self._state_file(key).read_bytes())
        except (OSError, ValidationError):
            return None

    def store_state(self, key: str, state: FetchState) -> None:
        """Store the state of a list's fetches. Raises OSError."""
        write_atomically(self._state_file(key), state.model_dump_json().encode())

    def _state_file(self, key: str) -> Path:
        return self.folder / f"{key}.state.json"

    @contextmanager
    def lock(self) -> Generator[bool]:
        """Yield True if no other process fetches lists; the lock ends with the process. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            self._remove_interrupted_writes()
            yield True

    def _remove_interrupted_writes(self) -> None:
        for path in self.folder.glob(f"{TEMPORARY_PREFIX}*"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > STALE_TEMPORARY_SECONDS:
                    path.unlink()


class ListStore:
    """The lists that answers are made of; they are replaced when a file changes."""

    def __init__(self, folder: ListFolder, lead_file: Path | None) -> None:
        """`lead_file` is the operator's list; it leads instead of a fetched or the shipped one.

        Raises `InvalidPhishingList` or OSError if it cannot be read.
        """
        self._folder = folder
        self._lead_file = lead_file
        self._loaded: dict[ListName, tuple[Fingerprint, LoadedList | None]] = {}
        # before the file is read: one that replaces it meanwhile differs, and is loaded later
        self._own_print = find_fingerprint(lead_file) if lead_file else None
        lead = load_list(LEAD, load_snapshot(lead_file)) if lead_file else open_shipped()
        self._shipped_or_own = lead
        self.collection = ListCollection([lead], open_shipped().detector.lists[0])

    def reload(self) -> bool:
        """Load the files that are new or changed; return True if there were any. Takes a second for large
        lists and may run in a thread.
        """
        changed = [name for name in self._stored_names() if self._load_changed(name)]
        if self._reload_own() or changed:
            self.collection = ListCollection(list(self._order()), open_shipped().detector.lists[0])
            return True
        return False

    def _stored_names(self) -> Iterator[ListName]:
        return (
            each.name for each in PUBLISHED_LISTS.values() if each.name != LEAD or self._lead_file is None
        )

    def _load_changed(self, name: ListName) -> bool:
        path = self._folder.snapshot_file(name)
        fingerprint = find_fingerprint(path)
        known, before = self._loaded.get(name, (None, None))
        if fingerprint == known:
            return False
        loaded = _load_or_log(name, path) if fingerprint else None
        if fingerprint and loaded is None:
            loaded = before  # the last good list stays in use
        self._loaded[name] = (fingerprint, loaded)
        return loaded is not before

    def _reload_own(self) -> bool:
        fingerprint = find_fingerprint(self._lead_file) if self._lead_file else None
        if self._lead_file is None or fingerprint in (None, self._own_print):
            return False
        self._own_print = fingerprint
        loaded = _load_or_log(LEAD, self._lead_file)
        if loaded is None:
            return False
        self._shipped_or_own = loaded
        return True

    def _order(self) -> Iterator[LoadedList]:
        stored = {name: loaded for name, (_, loaded) in self._loaded.items() if loaded}
        lead = self._shipped_or_own
        fetched = stored.pop(LEAD, None)
        # a new version of the package may ship a newer list than an old folder has
        if fetched and (fetched.header.date or "") >= (lead.header.date or ""):
            lead = fetched
        yield lead
        yield from (stored[each.name] for each in PUBLISHED_LISTS.values() if each.name in stored)


def _load_or_log(name: ListName, path: Path) -> LoadedList | None:
    try:
        loaded = load_list(name, load_snapshot(path))
    except (OSError, InvalidPhishingList) as error:
        structlog.get_logger().warning("a phishing list cannot be read", list=name, error=str(error))
        return None
    structlog.get_logger().info(
        "a phishing list is loaded", list=name, date=loaded.header.date, names=loaded.header.blocklist
    )
    return loaded


@cache
def open_shipped() -> LoadedList:
    """Open the shipped list once: it takes longer to unpack than everything else at the start."""
    snapshot: Snapshot = load_shipped()
    return load_list(LEAD, snapshot, is_shipped=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one step, so that no reader ever sees a part of it. Raises OSError."""
    with replace_file(path, prefix=TEMPORARY_PREFIX, mode=0o644) as part, part.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
