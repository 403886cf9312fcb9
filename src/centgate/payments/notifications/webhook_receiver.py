"""Receiver of webhooks: where an operator's events are posted, and what an answer means.

The address is the operator's setting, so private addresses are allowed. Redirects are not followed, since
they could lead elsewhere, and the body of an answer is not read.
"""

from __future__ import annotations

import time
from hashlib import sha256
from typing import Literal
from urllib.parse import urlsplit

import aiohttp
from msgspec import Struct

from centgate.payments.facilitator.facilitator_http import AGENT
from centgate.settings import Settings
from centgate.signing.webhook_signature import sign_webhook
from centgate.timestamps import parse_retry_after

TIMEOUT = aiohttp.ClientTimeout(total=15)
"""Timeout of one attempt."""
MAX_RETRY_AFTER = 86_400.0
"""Maximum seconds that a receiver's `Retry-After` can ask for."""
GONE = 410
"""Status by which a receiver says that it wants no more webhooks."""


class SendResult(Struct, frozen=True):
    """Result of one attempt to send an event."""

    outcome: Literal["accepted", "failed", "gone"]
    error: str | None = None
    """Why it failed; it never contains the URL."""
    retry_after: float = 0.0
    """Seconds that the receiver asks to wait, 0 if it does not."""


class Receiver(Struct, frozen=True):
    """The operator's receiver: its URL, and the secrets that sign what is sent there."""

    url: str
    secrets: tuple[bytes, ...]

    @property
    def digest(self) -> str:
        """Name of the receiver in the journal: its URL may contain a secret."""
        return sha256(self.url.encode()).hexdigest()

    @property
    def origin(self) -> str:
        """Scheme, host and port of its URL, without what may be a secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    async def send(self, session: aiohttp.ClientSession, event_id: str, body: bytes) -> SendResult:
        """Send a body under an id, once."""
        timestamp = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": AGENT,
            "webhook-id": event_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": sign_webhook(self.secrets, event_id, timestamp, body),
        }
        try:
            async with session.post(
                self.url, data=body, headers=headers, timeout=TIMEOUT, allow_redirects=False
            ) as response:
                return _judge_response(response.status, response.headers.get("Retry-After"))
        except TimeoutError:
            return SendResult("failed", f"no answer within {TIMEOUT.total:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return SendResult("failed", type(error).__name__)  # its message may contain the URL


def create_receiver(settings: Settings) -> Receiver | None:
    """Return the receiver of a deployment, None if none is set."""
    url = settings.webhook_url
    return Receiver(url, settings.webhook_secrets) if url else None


def _judge_response(status: int, retry_after: str | None) -> SendResult:
    if 200 <= status < 300:
        return SendResult("accepted")
    error = f"status {status}" + (", a redirect, which is not followed" if 300 <= status < 400 else "")
    if status == GONE:
        return SendResult("gone", error)
    return SendResult("failed", error, min(parse_retry_after(retry_after), MAX_RETRY_AFTER))
