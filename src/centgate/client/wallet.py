"""Private key that signs payments, and its key file."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from pathlib import Path

from centgate.client.errors import WalletUnreadable
from centgate.signing.eip3009 import derive_address, sign
from centgate.signing.evm import to_checksum_address

MAX_FILE_BYTES = 1024
"""Maximum bytes of a key file."""


class Wallet:
    """Private key. It is never printed, and signs only digests."""

    __slots__ = ("_key", "address")

    def __init__(self, key: bytes) -> None:
        try:
            self.address = to_checksum_address(derive_address(key))
        except ValueError:
            advice = "" if len(key) == 32 else "; use Wallet.from_key for one of 64 hex digits"
            message = f"the wallet's key is not a secp256k1 private key of 32 bytes{advice}"
            raise WalletUnreadable(message) from None
        self._key = key

    def __repr__(self) -> str:
        return f"Wallet({self.address})"

    def __reduce__(self) -> str:
        raise TypeError("a wallet cannot be pickled, because that would write its key")

    def sign(self, digest: bytes) -> bytes:
        """Sign a digest of 32 bytes; returns a signature of 65 bytes."""
        return sign(digest, self._key)

    @classmethod
    def from_key(cls, key: str) -> Wallet:
        """Create a wallet from a key of 64 hex digits, with or without 0x. Raises WalletUnreadable."""
        return cls(_parse_key(key, "the wallet's key"))

    @classmethod
    def from_file(cls, path: str | Path) -> Wallet:
        """Create a wallet from a key file of one line that only its owner can read.

        Raises WalletUnreadable with the problem; the file's content is never quoted.
        """
        if is_key(str(path)):
            raise WalletUnreadable("a key was given in place of the path of its file: use Wallet.from_key")
        file = Path(path).expanduser()
        return cls(_parse_key(_read_key_file(file), f"the key file {file}"))

    @classmethod
    def new(cls, path: str | Path) -> Wallet:
        """Generate a key and write it to a new file with mode 0600. Raises WalletUnreadable if it exists."""
        file = Path(path).expanduser()
        key, handle = _generate_key(), _create_private_file(file)
        with os.fdopen(handle, "w", encoding="ascii") as out:
            out.write("0x" + key.hex() + "\n")
            out.flush()
            os.fsync(out.fileno())
        return cls(key)


def is_key(text: str) -> bool:
    """True if a text has the form of a key: 64 hex digits, with or without 0x."""
    return re.fullmatch(r"(0x)?[0-9a-fA-F]{64}", text.strip()) is not None


def _generate_key() -> bytes:
    while True:
        key = secrets.token_bytes(32)
        try:
            derive_address(key)
        except ValueError:  # once in 2**128
            continue
        return key


def _create_private_file(file: Path) -> int:
    """Create a file that only its owner can open, and return its handle."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        if os.path.lexists(file):
            raise WalletUnreadable(
                f"{file} already exists, and a key is never overwritten: choose another path"
            ) from None
        raise WalletUnreadable(f"{file} cannot be written: {error.strerror}") from error


def _read_key_file(file: Path) -> str:
    try:
        # do not block if it is a pipe
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise WalletUnreadable(
            f"there is no key file {file}: make one with `centgate wallet new`, or set CENTGATE_WALLET"
        ) from None
    except OSError as error:
        raise WalletUnreadable(f"the key file {file} cannot be read: {error.strerror}") from error
    try:
        _check_mode(file, os.fstat(handle).st_mode)
        return os.read(handle, MAX_FILE_BYTES).decode("ascii")
    except (OSError, UnicodeDecodeError):
        raise WalletUnreadable(f"the key file {file} does not hold a key: one line of hex") from None
    finally:
        os.close(handle)


def _check_mode(file: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise WalletUnreadable(f"{file} is not a file: CENTGATE_WALLET names the file that holds the key")
    if sys.platform != "win32" and mode & 0o077:
        raise WalletUnreadable(
            f"the key file {file} can be read or written by others (mode {stat.S_IMODE(mode):04o}): "
            f"run `chmod 600 {file}`, and use a new key if others may have read it"
        )


def _parse_key(text: str, what: str) -> bytes:
    """Parse 32 bytes from one line of hex. Errors do not quote the text: it may be almost a key."""
    line = text.strip()
    if not line:
        raise WalletUnreadable(f"{what} is empty: it must be 64 hex digits")
    if not is_key(line):
        raise WalletUnreadable(f"{what} is not one line of 64 hex digits")
    return bytes.fromhex(line.removeprefix("0x"))
