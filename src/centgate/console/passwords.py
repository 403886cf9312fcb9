"""The hash of the console's password: scrypt (RFC 7914), as one line for a setting."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode

LOG_N, BLOCK_SIZE, PARALLELISM = 15, 8, 1
"""Cost of a new hash: 32 MB and about a tenth of a second."""
MAX_LOG_N = 20
"""Largest accepted cost: 1 GB with a block size of 8."""
SALT_BYTES, HASH_BYTES = 16, 32
MIN_PASSWORD_LENGTH = 12
"""Minimum number of characters of a password: guesses are limited, but a stolen hash can be tried offline."""
MAX_PASSWORD_LENGTH = 1024


def hash_password(password: str) -> str:
    """Return the value of `CENTGATE_CONSOLE_PASSWORD_HASH`. Raises ValueError for a short password."""
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        raise ValueError(f"a password needs {MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters")
    salt = secrets.token_bytes(SALT_BYTES)
    digest = _derive_hash(password, salt, LOG_N, BLOCK_SIZE, PARALLELISM)
    return f"scrypt:{LOG_N}:{BLOCK_SIZE}:{PARALLELISM}:{_encode(salt)}:{_encode(digest)}"


def is_password_correct(password: str, password_hash: str) -> bool:
    """True if a password has this hash. Blocks for about a tenth of a second: call it in a thread."""
    _, log_n, block_size, parallelism, salt, digest = password_hash.split(":")
    if len(password) > MAX_PASSWORD_LENGTH or not 1 <= int(log_n) <= MAX_LOG_N:
        return False
    found = _derive_hash(password, _decode(salt), int(log_n), int(block_size), int(parallelism))
    return hmac.compare_digest(found, _decode(digest))


def _derive_hash(password: str, salt: bytes, log_n: int, block_size: int, parallelism: int) -> bytes:
    n = 1 << log_n
    memory = 128 * block_size * (n + parallelism + 2)
    data = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(data, salt=salt, n=n, r=block_size, p=parallelism, maxmem=memory, dklen=HASH_BYTES)


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
