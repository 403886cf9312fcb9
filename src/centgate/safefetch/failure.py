"""How a fetch fails."""

from __future__ import annotations

from centgate.facts.web import UnreadReason


class FetchFailed(Exception):
    """Nothing was fetched; `message` is a sentence's clause that names the host.

    It never says which addresses a name led to: whoever asks must not learn what lies in our network.
    """

    def __init__(self, reason: UnreadReason, message: str) -> None:
        super().__init__(message)
        self.reason: UnreadReason = reason
        self.message = message
