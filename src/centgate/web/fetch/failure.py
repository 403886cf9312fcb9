"""Error of a failed fetch."""

from __future__ import annotations

from centgate.errors import UnreadReason


class FetchFailed(Exception):
    """A failed fetch; `message` is a clause that names the host.

    It never contains the addresses that a name resolved to: callers must not learn what is in our network.
    """

    def __init__(self, reason: UnreadReason, message: str) -> None:
        super().__init__(message)
        self.reason: UnreadReason = reason
        self.message = message
