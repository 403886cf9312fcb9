"""Append-only ledger of signed payments and their outcomes: one JSON object per line.

A signed payment that was neither delivered nor refused is pending: the next call for the same request sends
it again. Several processes may share a file; each append holds the file's lock.

Signed payments count towards the total cap of every process that shares the file, until a record states
that a node shows the payment unused after its window, or that the count was reset.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import anyio
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from centgate.client.caps import SignedAmounts, Spent
from centgate.client.errors import LedgerUnwritable, Money
from centgate.client.payment import Payment, PurchaseOrder

REDEEMABLE_SECONDS = 24 * 3600
"""Seconds after its window in which a payment can still buy its answer: the API's retention time."""

DEFAULT_MAX_WAIT = 10.0
"""Default maximum wait for the ledger's lock, in seconds."""
LOCK_RETRY_DELAY = 0.01
"""Seconds between two attempts to lock the ledger."""

LedgerEvent = Literal["signed", "delivered", "refused", "unanswered", "unresolved", "unused"]
"""Events of a payment. `unanswered`: the API says that it was charged, and that it buys nothing any more.
`unused`: its window has ended, and a node shows that its nonce was not used."""
_log = logging.getLogger(__name__)


class LedgerRecord(BaseModel):
    """Line of the ledger about one payment."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    time: datetime
    event: LedgerEvent
    payment: Payment
    money: Money
    transaction: str | None = None
    request_id: str | None = None
    why: str | None = None
    """Error message; None if there was no error."""
    receipt: str | None = None
    """PAYMENT-RESPONSE, unchanged, if its receipt is signed."""


class CapReset(BaseModel):
    """Line that resets what counts towards a payer's caps: in all, per hour and per day."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    time: datetime
    event: Literal["cap_reset"]
    payer: str


class Ledger:
    """Ledger file, or an in-memory ledger if there is no path."""

    def __init__(self, path: str | Path | None = None, *, patience: float = DEFAULT_MAX_WAIT) -> None:
        """Create a ledger; `patience` is the maximum wait for the file's lock, in seconds."""
        self.path = Path(path).expanduser() if path is not None else None
        self._patience = patience
        self._state = _LedgerState(keep=self.path is None)
        self._lock = threading.Lock()

    def entry(self) -> LockedLedger:
        """Lock the ledger for reading and appending; use it in a `with` statement.

        One thread of one process holds the lock at a time. Raises LedgerUnwritable if the file cannot be
        opened, locked or read, or if others hold the lock for too long.
        """
        deadline = time.monotonic() + self._patience
        while (entry := self._try_lock(deadline)) is None:
            time.sleep(LOCK_RETRY_DELAY)
        return entry

    async def async_entry(self) -> LockedLedger:
        """Lock the ledger as `entry` does, but let the event loop run. Do not await while it is locked."""
        deadline = time.monotonic() + self._patience
        while True:
            if (entry := self._try_lock(deadline)) is not None:
                return entry
            await anyio.sleep(LOCK_RETRY_DELAY)

    def records(self) -> list[LedgerRecord]:
        """Return every readable record, oldest first."""
        with self.entry() as entry:
            return entry.records()

    def _try_lock(self, deadline: float) -> LockedLedger | None:
        """Return the locked ledger, or None if another process or thread holds it.

        Raises LedgerUnwritable if they still hold it at `deadline`.
        """
        entry = None
        if self._lock.acquire(blocking=False):
            try:
                entry = self._open_entry()
            finally:
                if entry is None:
                    self._lock.release()
        if entry is None and time.monotonic() >= deadline:
            raise LedgerUnwritable(
                f"the ledger {self.path or 'of this client'} has been locked by other processes for "
                f"{self._patience:.0f} seconds, and an unrecorded payment could be made twice: end the "
                "process that holds the lock and call again"
            )
        return entry

    def _open_entry(self) -> LockedLedger | None:
        if self.path is None:
            return LockedLedger(self._state, None, self._lock)
        with _reports_write_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                if _lock_file(handle):
                    self._state.read(handle, self.path)
                    return LockedLedger(self._state, (handle, self.path), self._lock)
            except BaseException:
                _unlock_and_close(handle)
                raise
            os.close(handle)
            return None


class LockedLedger:
    """Locked ledger, for queries and appends; leaving its `with` statement unlocks it."""

    def __init__(self, state: _LedgerState, file: tuple[int, Path] | None, lock: threading.Lock) -> None:
        self._state = state
        self._file = file
        self._lock = lock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._file is not None:
                _unlock_and_close(self._file[0])
        finally:
            self._lock.release()

    def records(self) -> list[LedgerRecord]:
        """Return every readable record, oldest first."""
        if self._file is None:
            return list(self._state.records)
        handle, path = self._file
        state = _LedgerState(keep=True)
        with _reports_write_errors(path):
            state.read(handle, path)
        return state.records

    def find_pending(self, order: PurchaseOrder, *, payer: str | None, now: float) -> Payment | None:
        """Find the signed payment of a request that can still buy its answer, optionally by payer."""
        for payment in self._state.pending.values():
            alive = now < payment.valid_before + REDEEMABLE_SECONDS
            if alive and payment.is_for(order) and payer in (None, payment.payer):
                return payment
        return None

    def find_signed(self, nonce: str) -> Payment | None:
        """Find a payment as it was signed, by its nonce; reads the whole file."""
        signed = (each.payment for each in self.records() if each.event == "signed")
        return next((payment for payment in signed if payment.nonce == nonce), None)

    def last_payees(self, api: str) -> Mapping[str, str]:
        """Return the addresses last paid at an API, by network (CAIP-2)."""
        return self._state.payees.get(api, {})

    def total_signed_usd(self, payer: str | None) -> Decimal:
        """Return the US dollars that count towards a payer's total cap; for None the largest of any payer."""
        return self._state.signed.total(payer)

    def spent(self, payer: str | None) -> Spent:
        """Return what counts towards a payer's caps; for None the largest sums of any payer."""
        return self._state.signed.spent(payer, datetime.now(UTC))

    def counted_nonces(self, payer: str) -> frozenset[str]:
        """Return the nonces of the payments that count towards a payer's total cap."""
        return self._state.signed.nonces(payer)

    def reset_cap(self, payer: str) -> None:
        """Reset what counts towards all caps of a payer. Raises LedgerUnwritable if it is not on disk."""
        self._append(CapReset(time=datetime.now(UTC), event="cap_reset", payer=payer))

    def write_record(
        self,
        event: LedgerEvent,
        payment: Payment,
        money: Money,
        *,
        transaction: str | None = None,
        request_id: str | None = None,
        why: str | None = None,
        receipt: str | None = None,
    ) -> None:
        """Append a record and sync it to disk. Raises LedgerUnwritable."""
        record = LedgerRecord(
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

    def _append(self, record: LedgerRecord | CapReset) -> None:
        if self._file is None:
            self._state.add(record)
            return
        handle, path = self._file
        with _reports_write_errors(path):
            _append(handle, _line(record))
            self._state.read(handle, path)


class _LedgerState:
    """State built from the lines of a ledger read so far."""

    def __init__(self, *, keep: bool) -> None:
        self.records: list[LedgerRecord] = []
        """Every record, if `keep` is set."""
        self.pending: dict[str, Payment] = {}
        self.payees: dict[str, dict[str, str]] = {}
        """Address last paid at each API, by network."""
        self.signed = SignedAmounts()
        """Amounts that count towards total caps; kept if the file is removed, so that the cap still holds."""
        self._keep = keep
        self._file: tuple[int, int] | None = None
        self._offset = 0
        self._line_count = 0

    def read(self, handle: int, path: Path) -> None:
        """Read the lines appended since the last call; the whole file if it was replaced."""
        status = os.fstat(handle)
        if self._file != (status.st_dev, status.st_ino) or status.st_size < self._offset:
            self._reset((status.st_dev, status.st_ino))
        # no other process writes while we hold the lock: a last line without a newline stays incomplete
        added = _read_at(handle, self._offset, status.st_size - self._offset)
        self._offset += len(added)
        self._add_lines(added, path)

    def _reset(self, file: tuple[int, int]) -> None:
        self.records, self.pending, self.payees = [], {}, {}
        self._file, self._offset, self._line_count = file, 0, 0

    def add(self, record: LedgerRecord | CapReset) -> None:
        """Apply one record to the state."""
        if isinstance(record, CapReset):
            self.signed.reset(record.payer)
            return
        payment = record.payment
        if self._keep:
            self.records.append(record)
        match record.event:
            case "signed":
                self.pending[payment.nonce] = payment
                self.payees.setdefault(payment.api, {})[payment.network] = payment.payee
                self.signed.add(payment.payer, payment.nonce, payment.usd, time=record.time)
            case "delivered" | "refused" | "unanswered":
                self.pending.pop(payment.nonce, None)
            case "unused":
                self.pending.pop(payment.nonce, None)
                self.signed.remove(payment.payer, payment.nonce)
            case "unresolved":
                pass

    def _add_lines(self, lines: bytes, path: Path) -> None:
        for line in lines.splitlines():
            self._line_count += 1
            if not line.strip():
                continue
            try:
                self.add(_LINE.validate_json(line))
            except ValidationError:
                _log.warning("line %d of the ledger %s is not a record; skipped", self._line_count, path)


_LINE: TypeAdapter[LedgerRecord | CapReset] = TypeAdapter(
    LedgerRecord | CapReset, config=ConfigDict(defer_build=True)
)


def _line(record: LedgerRecord | CapReset) -> bytes:
    content: dict[str, Any] = record.model_dump(mode="json", exclude_none=True)
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def _append(handle: int, line: bytes) -> None:
    """Append a complete line, or nothing; starts a new line after an incomplete one of a crashed process."""
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


def _lock_file(handle: int) -> bool:
    """Lock the file without waiting. Returns False if another process holds the lock."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(handle, 1 << 40, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # POSIX and Windows, respectively
        return False
    return True


def _unlock_and_close(handle: int) -> None:
    """Unlock the file, then close it: a process forked meanwhile also has the handle."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


@contextmanager
def _reports_write_errors(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise LedgerUnwritable(
            f"the ledger {path} cannot be written ({error.strerror or error}), and an unrecorded payment "
            "could be made twice: free disk space, or set CENTGATE_LEDGER to another file"
        ) from error
