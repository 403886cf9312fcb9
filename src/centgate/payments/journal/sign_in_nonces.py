"""Nonces of sign-ins: issued without a write, accepted once by all servers that share the journal.

A nonce carries a code (HMAC) of the resource and the times that it was issued for, under a key that the
servers share in the database. So no server has to store what it issued, and only a signed request writes.
"""

from __future__ import annotations

import hmac
import secrets
import time
from functools import partial
from hashlib import sha256

from msgspec import Struct
from sqlalchemy import Float, LargeBinary, String, bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.elements import literal_column

from centgate.payments.database.sql import (
    AFFECTED_ROW,
    NO_OFFSET,
    BoundStatement,
    UnitOfWork,
    compile_statement,
    now,
)
from centgate.payments.database.store import Store
from centgate.payments.database.tables import server_keys, sign_in_nonces
from centgate.payments.journal.pruning import PRUNE_BATCH

KEY_NAME = "sign_in"
KEY_BYTES = 32
KEY_TTL = 60.0
"""Seconds for which a server keeps the key in memory, in case the database is replaced by a backup."""
RANDOM_DIGITS = 32
"""Hexadecimal digits of a nonce that are random; as many again are its code."""
PRUNE_GRACE = 86_400
"""Seconds after its expiry in which a used nonce is kept, in case the database's clock is set back."""


class IssuedFor(Struct, frozen=True):
    """Request that a nonce was issued for; the times are texts, exactly as they are signed."""

    uri: str
    issued_at: str
    expiration_time: str


class SignInNonces:
    """The nonces of one deployment."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._key = b""
        self._key_read_at = -KEY_TTL
        """Monotonic time."""

    async def issue(self, issued_for: IssuedFor) -> str:
        """Return a new nonce of letters and digits. Raises JournalUnavailable."""
        random = secrets.token_hex(RANDOM_DIGITS // 2)
        return random + _code(await self._read_key(), random, issued_for)

    async def is_issued(self, nonce: str, issued_for: IssuedFor) -> bool:
        """Return True if a server of this deployment issued the nonce for this. Raises JournalUnavailable."""
        expected = _code(await self._read_key(), nonce[:RANDOM_DIGITS], issued_for)
        return hmac.compare_digest(nonce[RANDOM_DIGITS:].encode(), expected.encode())

    async def use(self, nonce: str, request_id: str, expires_at: float) -> bool:
        """Use a nonce; False if another request, at any server, has used it. Raises JournalUnavailable."""
        return await self._store.run(partial(_use_nonce, nonce[:RANDOM_DIGITS], request_id, expires_at))

    async def _read_key(self) -> bytes:
        if time.monotonic() - self._key_read_at >= KEY_TTL:
            self._key = await self._store.run(partial(_read_or_create_key, secrets.token_bytes(KEY_BYTES)))
            self._key_read_at = time.monotonic()
        return self._key


def _code(key: bytes, random: str, issued_for: IssuedFor) -> str:
    content = "\n".join((random, issued_for.uri, issued_for.issued_at, issued_for.expiration_time))
    return hmac.new(key, content.encode(), sha256).hexdigest()[:RANDOM_DIGITS]


_FIND_KEY = compile_statement(select(server_keys.c.value).where(server_keys.c.name == bindparam("key")))
_CREATE_KEY = compile_statement(
    insert(server_keys)
    .from_select(
        ["name", "value", "created_at"],
        select(bindparam("key", type_=String), bindparam("value", type_=LargeBinary), now()).where(
            AFFECTED_ROW == AFFECTED_ROW
        ),
    )
    .on_conflict_do_nothing()
    .returning(AFFECTED_ROW)
)
_USE = compile_statement(
    insert(sign_in_nonces)
    .values(
        nonce=bindparam("nonce"),
        request_id=bindparam("request_id"),
        expires_at=bindparam("expires_at", type_=Float),
    )
    .on_conflict_do_nothing()
    .returning(AFFECTED_ROW)
)
_FIND_USE = compile_statement(
    select(sign_in_nonces.c.request_id).where(sign_in_nonces.c.nonce == bindparam("nonce"))
)
_OLD = sign_in_nonces.alias("old")
_PRUNE = compile_statement(
    delete(sign_in_nonces)
    .where(
        sign_in_nonces.c.nonce.in_(
            select(_OLD.c.nonce)
            .where(_OLD.c.expires_at < now() - literal_column(str(PRUNE_GRACE)))
            .order_by(_OLD.c.expires_at)
            .limit(literal_column(str(PRUNE_BATCH)))
            .offset(NO_OFFSET)
        )
    )
    .returning(AFFECTED_ROW)
)


def _read_or_create_key(value: bytes) -> UnitOfWork[bytes]:
    """Return the key that the servers share; it is `value` if there is none yet."""
    rows = yield BoundStatement(_FIND_KEY, {"key": KEY_NAME})
    if not rows:
        yield BoundStatement(_CREATE_KEY, {"key": KEY_NAME, "value": value})
        rows = yield BoundStatement(_FIND_KEY, {"key": KEY_NAME})
    return bytes(rows[0]["value"])


def _use_nonce(nonce: str, request_id: str, expires_at: float) -> UnitOfWork[bool]:
    parameters = {"nonce": nonce, "request_id": request_id, "expires_at": expires_at}
    if (yield BoundStatement(_USE, parameters)):
        return True
    rows = yield BoundStatement(_FIND_USE, {"nonce": nonce})
    return bool(rows) and rows[0]["request_id"] == request_id  # else an earlier try of this unit used it


def prune_nonces() -> UnitOfWork[int]:
    """Remove some used nonces that have expired; return the number."""
    return len((yield BoundStatement(_PRUNE, {})))
