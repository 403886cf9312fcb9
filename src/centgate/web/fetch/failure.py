"""Error of a failed fetch, and what the status of a failed response means."""

from __future__ import annotations

from centgate.errors import UnreadReason

_NOT_FOUND_STATUSES = frozenset({404, 410})
_BLOCKED_STATUSES = frozenset({401, 402, 403, 407, 429, 451})


def classify_status(status: float | None) -> UnreadReason:
    """Return the reason why a page was not read whose site answered with this status, other than success."""
    if status in _NOT_FOUND_STATUSES:
        return "not_found"
    return "blocked" if status in _BLOCKED_STATUSES else "failed"


class FetchFailed(Exception):
    """A failed fetch; `message` is a clause that names the host.

    It never contains the addresses that a name resolved to: callers must not learn what is in our network.
    """

    def __init__(self, reason: UnreadReason, message: str) -> None:
        super().__init__(message)
        self.reason: UnreadReason = reason
        self.message = message
