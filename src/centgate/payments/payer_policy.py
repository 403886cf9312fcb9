"""Payers that the operator sells to, and payers it refuses.

Both are lists of addresses, in a setting or in a file, or in both. A file is read again when it changes, by
each server process on its own; if it is wrong then, the last valid list stays in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import structlog

from centgate.environment import PREFIX
from centgate.errors import PaymentNote, PaymentRequired
from centgate.settings import Settings
from centgate.signing.evm import parse_address

PAYER_REFUSED_REASON = "invalid_exact_evm_payload_authorization_from_address_kyt"
"""x402's reason for a payer that is refused by policy; no other names the payer."""
CHECK_INTERVAL = 1.0
"""Seconds between two looks at the files."""

_FileVersion = tuple[int, int, int, int]


class PayerFile:
    """A file with one address per line; empty lines and what follows a `#` are ignored."""

    def __init__(self, path: Path, setting: str) -> None:
        """Read the file. Raises ValueError, which names the setting, if it is missing or not valid."""
        self._path = path
        self._setting = PREFIX + setting.upper()
        self._problem: str | None = None
        self._version, self.payers = self._read()

    def reload_if_changed(self) -> None:
        """Read the file again if it was changed; log what happened, once. Raises nothing."""
        log = structlog.get_logger().bind(setting=self._setting, path=str(self._path))
        try:
            if self._find_version() == self._version:
                return
            version, payers = self._read()
            if version != self._find_version():
                return  # somebody still writes to it
        except ValueError as error:
            if str(error) != self._problem:
                log.error("a list of payers is not valid: the last valid one stays", error=str(error))
            self._problem = str(error)
            return
        self._version, self.payers, self._problem = version, payers, None
        log.info("a list of payers was read again", payers=len(payers))

    def _read(self) -> tuple[_FileVersion, frozenset[bytes]]:
        """Read the version and the addresses. Raises ValueError."""
        version = self._find_version()
        try:
            lines = self._path.read_text(encoding="utf-8-sig").splitlines()
        except OSError as error:
            raise ValueError(f"{self._setting}: cannot read {self._path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"{self._setting}: {self._path} is not text in UTF-8") from error
        return version, frozenset(self._parse(lines))

    def _parse(self, lines: Iterable[str]) -> Iterator[bytes]:
        for number, line in enumerate(lines, 1):
            if address := line.partition("#")[0].strip():
                try:
                    yield encode_payer(address)
                except ValueError as error:
                    raise ValueError(f"{self._setting}: {self._path}, line {number}: {error}") from error

    def _find_version(self) -> _FileVersion:
        """Return what tells two versions of the file apart. Raises ValueError."""
        try:
            found = self._path.stat()  # of the target of a link: mounted configuration is linked
        except OSError as error:
            raise ValueError(f"{self._setting}: cannot read {self._path}: {error.strerror}") from error
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class PayerPolicy:
    """Decides if new payments of a payer are accepted: not if denied, or not on a list of allowed ones."""

    def __init__(self, settings: Settings) -> None:
        """Read the lists. Raises ValueError for a file that cannot be read or is not valid."""
        self._allowed = frozenset(map(encode_payer, settings.payers_allowed))
        self._denied = frozenset(map(encode_payer, settings.payers_denied))
        self._allowed_file = _open_file(settings.payers_allowed_file, "payers_allowed_file")
        self._denied_file = _open_file(settings.payers_denied_file, "payers_denied_file")
        self._has_lists = any((self._allowed, self._denied, self._allowed_file, self._denied_file))

    def find_refusal(self, payer: str) -> PaymentRequired | None:
        """Return the error for a new payment of a payer, None if it is accepted."""
        if not self._has_lists:
            return None
        address = encode_payer(payer)
        if address in self._denied or (self._denied_file and address in self._denied_file.payers):
            return _refuse(f"this API accepts no payments from {payer}")
        lists = [self._allowed] if self._allowed else []
        lists += [self._allowed_file.payers] if self._allowed_file else []
        if lists and not any(address in each for each in lists):
            return _refuse(f"this API accepts payments of certain payers only, and {payer} is none of them")
        return None

    @asynccontextmanager
    async def run_in_background(self) -> AsyncGenerator[None]:
        """Follow changes of the files while the context is open."""
        files = [each for each in (self._allowed_file, self._denied_file) if each]
        task = asyncio.create_task(_follow(files)) if files else None
        try:
            yield
        finally:
            if task:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


def encode_payer(address: str) -> bytes:
    """Return the 20 bytes of an address. Raises ValueError."""
    return bytes.fromhex(parse_address(address)[2:])


def _open_file(path: Path | None, setting: str) -> PayerFile | None:
    return PayerFile(path, setting) if path else None


async def _follow(files: list[PayerFile]) -> None:
    while True:
        await asyncio.sleep(CHECK_INTERVAL)
        for file in files:
            await asyncio.to_thread(file.reload_if_changed)


def _refuse(message: str) -> PaymentRequired:
    note = PaymentNote("unused", charged=False, retry="none")
    return PaymentRequired(
        f"{message}: nothing was charged, and another signature does not help",
        reason=PAYER_REFUSED_REASON,
        payment=note,
    )
