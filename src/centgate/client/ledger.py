"""What was signed, and what came of it: one JSON object a line, appended, never changed.

A payment that was signed and has neither been delivered nor refused is pending: the next call for the same
request sends it again. Several processes may share a file; each entry is made under its lock.

What was signed counts against the total cap, for all who share the file, until a record says that a node
shows it unused after its window, or that a new count begins.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from centgate.client.caps import SignedAmounts
from centgate.client.errors import LedgerUnwritable, Money
from centgate.client.payment import Order, Payment

REDEEMABLE = 24 * 3600
"""Seconds after its window in which a payment may still buy its answer: as long as an API keeps it."""

PATIENCE = 10.0
"""Seconds that a ledger is waited for which others hold."""

Event = Literal["signed", "delivered", "refused", "unresolved", "unused"]
"""`unused`: its window has ended, and a node shows that its nonce was not used."""
_log = logging.getLogger(__name__)


class Record(BaseModel):
    """One line."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    time: datetime
    event: Event
    payment: Payment
    money: Money
    transaction: str | None = None
    request_id: str | None = None
    why: str | None = None
    """What went wrong, if anything did."""
    receipt: str | None = None
    """PAYMENT-RESPONSE as it came, where its receipt is signed."""


class CapReset(BaseModel):
    """The line after which a new count begins for a payer's total cap."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    time: datetime
    event: Literal["cap_reset"]
    payer: str


class Ledger:
    """A file of records, or a ledger that ends with the process where there is no path."""

    def __init__(self, path: str | Path | None = None, *, patience: float = PATIENCE) -> None:
        """`patience` is how long it waits while others hold the file, in seconds."""
        self.path = Path(path).expanduser() if path is not None else None
        self._patience = patience
        self._pages = _Pages(keep=self.path is None)
        self._lock = threading.Lock()

    def entry(self) -> Entry:
        """The right to read and to append, held by one thread of one process at a time: for a `with`.

        LedgerUnwritable when the file cannot be opened, locked or read, or is held by others for too long.
        """
        waiting = self.waiting()
        while True:
            try:
                seconds = next(waiting)
            except StopIteration as held:
                return held.value
            time.sleep(seconds)

    def waiting(self) -> Generator[float, None, Entry]:
        """`entry` for who does not sleep here: yields for how many seconds to let others go on."""
        until, pause = time.monotonic() + self._patience, 0.002
        while (entry := self._taken()) is None:
            if time.monotonic() >= until:
                raise LedgerUnwritable(
                    f"the ledger {self.path or 'of this client'} has been held by others for "
                    f"{self._patience:.0f} seconds, and what is not written down could be paid twice: end "
                    "what holds it and call again"
                )
            yield pause
            pause = min(2 * pause, 0.05)
        return entry

    def records(self) -> list[Record]:
        """Every record that can be read, oldest first."""
        with self.entry() as entry:
            return entry.records()

    def _taken(self) -> Entry | None:
        """The ledger, unless somebody holds it."""
        if not self._lock.acquire(blocking=False):
            return None
        entry = None
        try:
            entry = self._opened()
        finally:
            if entry is None:
                self._lock.release()
        return entry

    def _opened(self) -> Entry | None:
        if self.path is None:
            return Entry(self._pages, None, self._lock)
        with _failing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                if _locked(handle):
                    self._pages.read(handle, self.path)
                    return Entry(self._pages, (handle, self.path), self._lock)
            except BaseException:
                _let_go(handle)
                raise
            os.close(handle)
            return None


class Entry:
    """What can be asked and written while the ledger is held; the end of its `with` lets it go."""

    def __init__(self, pages: _Pages, file: tuple[int, Path] | None, lock: threading.Lock) -> None:
        self._pages = pages
        self._file = file
        self._lock = lock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._file is not None:
                _let_go(self._file[0])
        finally:
            self._lock.release()

    def records(self) -> list[Record]:
        """Every record that can be read, oldest first."""
        if self._file is None:
            return list(self._pages.records)
        handle, path = self._file
        pages = _Pages(keep=True)
        with _failing(path):
            pages.read(handle, path)
        return pages.records

    def pending(self, order: Order, *, payer: str | None, now: float) -> Payment | None:
        """The payment that was signed for a request and can still buy its answer; by this payer, if given."""
        for payment in self._pages.pending.values():
            alive = now < payment.valid_before + REDEEMABLE
            if alive and payment.fits(order) and payer in (None, payment.payer):
                return payment
        return None

    def payee(self, api: str) -> str | None:
        """Who was paid last at an API."""
        return self._pages.payees.get(api)

    def signed_usd(self, payer: str | None) -> Decimal:
        """Return the US dollars that count against a payer's total cap; for None the most of any payer."""
        return self._pages.signed.total(payer)

    def counted(self, payer: str) -> frozenset[str]:
        """Return the nonces of the payments that count against a payer's total cap."""
        return self._pages.signed.nonces(payer)

    def reset_cap(self, payer: str) -> None:
        """Begin a new count for a payer's total cap; LedgerUnwritable when that is not on the disk."""
        self._append(CapReset(time=datetime.now(UTC), event="cap_reset", payer=payer))

    def write(
        self,
        event: Event,
        payment: Payment,
        money: Money,
        *,
        transaction: str | None = None,
        request_id: str | None = None,
        why: str | None = None,
        receipt: str | None = None,
    ) -> None:
        """Append a record, on the disk when this returns; LedgerUnwritable when it is not."""
        record = Record(
            time=datetime.now(UTC),
            event=event,
            payment=payment if event == "signed" else payment.model_copy(update={"header": ""}),
            money=money,
            transaction=transaction,
            request_id=request_id,
            why=why,
            receipt=receipt,
        )
        self._append(record)

    def _append(self, record: Record | CapReset) -> None:
        if self._file is None:
            self._pages.add(record)
            return
        handle, path = self._file
        with _failing(path):
            _append(handle, _line(record))
            self._pages.read(handle, path)


class _Pages:
    """What has been read of a ledger so far."""

    def __init__(self, *, keep: bool) -> None:
        self.records: list[Record] = []
        """Every record, where they are kept."""
        self.pending: dict[str, Payment] = {}
        self.payees: dict[str, str] = {}
        self.signed = SignedAmounts()
        """What counts against total caps; kept when the file is removed, so that the cap is not lost."""
        self._keep = keep
        self._file: tuple[int, int] | None = None
        self._read_to = 0
        self._lines = 0

    def read(self, handle: int, path: Path) -> None:
        """Take in what has been appended since; all of it when the file is another one."""
        status = os.fstat(handle)
        if self._file != (status.st_dev, status.st_ino) or status.st_size < self._read_to:
            self._begin((status.st_dev, status.st_ino))
        # nobody writes while the file is ours: a last line without an end is all that will come of it
        added = _read_at(handle, self._read_to, status.st_size - self._read_to)
        self._read_to += len(added)
        self._take(added, path)

    def _begin(self, file: tuple[int, int]) -> None:
        self.records, self.pending, self.payees = [], {}, {}
        self._file, self._read_to, self._lines = file, 0, 0

    def add(self, record: Record | CapReset) -> None:
        """Take in one record."""
        if isinstance(record, CapReset):
            self.signed.reset(record.payer)
            return
        payment = record.payment
        if self._keep:
            self.records.append(record)
        match record.event:
            case "signed":
                self.pending[payment.nonce] = payment
                self.payees[payment.api] = payment.payee
                self.signed.add(payment.payer, payment.nonce, payment.usd)
            case "delivered" | "refused":
                self.pending.pop(payment.nonce, None)
            case "unused":
                self.pending.pop(payment.nonce, None)
                self.signed.remove(payment.payer, payment.nonce)
            case "unresolved":
                pass

    def _take(self, lines: bytes, path: Path) -> None:
        for line in lines.splitlines():
            self._lines += 1
            if not line.strip():
                continue
            try:
                self.add(_LINE.validate_json(line))
            except ValidationError:
                _log.warning("line %d of the ledger %s is no record, and is passed over", self._lines, path)


_LINE: TypeAdapter[Record | CapReset] = TypeAdapter(Record | CapReset)


def _line(record: Record | CapReset) -> bytes:
    content: dict[str, Any] = record.model_dump(mode="json", exclude_none=True)
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def _append(handle: int, line: bytes) -> None:
    """Write a line of its own, after whatever a process that died has left; all of it, or nothing."""
    size = os.fstat(handle).st_size
    if size and _read_at(handle, size - 1, 1) != b"\n":
        line = b"\n" + line
    try:
        written = os.write(handle, line)
        if written < len(line):
            raise OSError(28, "the disk is full")
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise


def _read_at(handle: int, start: int, count: int) -> bytes:
    os.lseek(handle, start, os.SEEK_SET)
    parts: list[bytes] = []
    while count > 0 and (part := os.read(handle, count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _locked(handle: int) -> bool:
    """Make the file ours, unless it is somebody else's just now."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(handle, 1 << 40, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # as POSIX and as Windows say it
        return False
    return True


def _let_go(handle: int) -> None:
    """Close the file, and let the lock go before: a process forked meanwhile has the handle too."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


@contextmanager
def _failing(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise LedgerUnwritable(
            f"the ledger {path} cannot be written ({error.strerror or error}), and what is not written down "
            "could be paid twice: make room for it, or name another file with CENTGATE_LEDGER"
        ) from error
