"""Sessions of the console, in the memory of its process, and the secrets that start one."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

from msgspec import Struct, field

COOKIE = "centgate_console"
VISITOR_COOKIE = "centgate_console_visitor"
"""Cookie of a browser without a session: the form of the login page belongs to it."""
IDLE_SECONDS = 30 * 60
"""Seconds without a click after which a session ends; a page that refreshes itself does not count."""
MAX_SECONDS = 12 * 3600
"""Seconds after which a session ends in any case."""
MAX_SESSIONS = 20
"""Maximum number of sessions; beyond it the one used longest ago ends."""
LINK_SECONDS = 15 * 60
"""Seconds for which the one-time link is valid."""


class ConsoleSession(Struct):
    """A browser that is logged in. Times are on the monotonic clock."""

    started_at: float
    used_at: float
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """Token of every form, against requests that other sites make the browser send (CSRF)."""
    refreshes: bool = True
    """True if pages refresh themselves."""
    notice: str | None = None
    """Message for the next page, shown once."""

    def notify(self, clause: str) -> None:
        """Show a clause on the next page, as a sentence."""
        self.notice = f"{clause[0].upper()}{clause[1:]}."


class SessionStore:
    """Sessions by the digest of their cookie: the cookie itself is not kept."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: dict[str, ConsoleSession] = {}

    def start(self) -> str:
        """Start a session and return its cookie."""
        now = self._clock()
        self._remove_ended(now)
        if len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[min(self._sessions, key=lambda each: self._sessions[each].used_at)]
        cookie = secrets.token_urlsafe(32)
        self._sessions[_digest(cookie)] = ConsoleSession(now, now)
        return cookie

    def find(self, cookie: str | None, *, is_refresh: bool) -> ConsoleSession | None:
        """Return the live session of a cookie; `is_refresh` requests do not prolong it."""
        now = self._clock()
        session = self._sessions.get(_digest(cookie)) if cookie else None
        if session is None or _has_ended(session, now):
            return None
        if not is_refresh:
            session.used_at = now
        return session

    def end(self, cookie: str | None) -> None:
        """End the session of a cookie."""
        if cookie:
            self._sessions.pop(_digest(cookie), None)

    def _remove_ended(self, now: float) -> None:
        self._sessions = {key: each for key, each in self._sessions.items() if not _has_ended(each, now)}


class OneTimeLink:
    """A token that is printed at the start and starts one session; then, or after a while, it is void."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.token = secrets.token_urlsafe(32)
        self._clock = clock
        self._valid_until = clock() + LINK_SECONDS
        self._is_used = False

    @property
    def is_valid(self) -> bool:
        """True until it was used or has expired."""
        return not self._is_used and self._clock() < self._valid_until

    def use(self, token: str) -> bool:
        """Return True the first time that it is called with the token, in time."""
        if not self.is_valid or not hmac.compare_digest(token.encode(), self.token.encode()):
            return False
        self._is_used = True
        return True


class VisitorTokens:
    """Form tokens of the login page, derived from a cookie: nothing is kept for visitors."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def create_cookie(self) -> str:
        """Return the cookie of a new visitor."""
        return secrets.token_urlsafe(32)

    def form_token(self, cookie: str) -> str:
        """Return the form token of a visitor."""
        return hmac.new(self._key, cookie.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def is_same_token(found: str, expected: str) -> bool:
    """Compare two tokens in constant time."""
    return hmac.compare_digest(found.encode("utf-8", "replace"), expected.encode())


def _has_ended(session: ConsoleSession, now: float) -> bool:
    return now - session.used_at > IDLE_SECONDS or now - session.started_at > MAX_SECONDS


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()
