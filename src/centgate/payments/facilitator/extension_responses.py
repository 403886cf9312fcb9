"""A facilitator's word on the extensions of a payment, such as why a directory does not list a service.

The header `EXTENSION-RESPONSES` of a settlement is base64 of a JSON object with one member per extension,
as in `{"bazaar": {"status": "rejected", "rejectedReason": "...", "code": "..."}}`.
It has no effect on the payment: anything unreadable counts as absent, and buyers never see it.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import orjson
import structlog
from msgspec import Struct

from centgate.coercion import get_path
from centgate.instrumentation import NULL_METER, ListingStatus, Meter
from centgate.sanitize import clean_line

DIRECTORY_EXTENSION = "bazaar"
MAX_HEADER = 8192
"""Maximum characters of a header that is read."""
MAX_TEXT = 300
"""Maximum characters of a text of the facilitator that is kept."""
_STATUSES: dict[str, ListingStatus] = {
    "success": "success",
    "processing": "processing",
    "rejected": "rejected",
}


class DirectoryResponse(Struct, frozen=True):
    """The directory's response to one payment; the texts are the facilitator's own, and untrusted."""

    status: ListingStatus
    reason: str | None
    code: str | None


def parse_directory_response(header: str | None) -> DirectoryResponse | None:
    """Parse the directory's member of an `EXTENSION-RESPONSES` header; None if there is no readable one."""
    if not header or len(header) > MAX_HEADER:
        return None
    try:
        content = orjson.loads(b64decode(header, validate=True))
    except ValueError:
        return None
    member = get_path(content, DIRECTORY_EXTENSION)
    status = get_path(member, "status")
    if not isinstance(status, str):
        return None
    reason = _clean(get_path(member, "rejectedReason")) or _clean(get_path(member, "reason"))
    return DirectoryResponse(_STATUSES.get(status, "other"), reason, _clean(get_path(member, "code")))


class DirectoryResponses:
    """The latest response of the directory for each service, in this process; counted and logged."""

    def __init__(self, meter: Meter = NULL_METER) -> None:
        self._meter = meter
        self._latest: dict[str, DirectoryResponse] = {}

    def record(self, service: str, header: str | None) -> None:
        """Record the header of a settlement; a changed response is logged, a repeated one only counted."""
        response = parse_directory_response(header)
        if response is None:
            return
        earlier, self._latest[service] = self._latest.get(service), response
        self._meter.record_directory_response(service, response.status)
        if response != earlier:
            log = structlog.get_logger()
            write = log.warning if response.status == "rejected" else log.info
            write(
                "a directory response was received",
                service=service,
                status=response.status,
                reason=response.reason,
                code=response.code,
            )


def _clean(text: Any) -> str | None:
    """Return a text as one clean line, None for anything else."""
    return clean_line(text, MAX_TEXT) if isinstance(text, str) else None
