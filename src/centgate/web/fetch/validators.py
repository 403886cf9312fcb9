"""Validators of a response: what a site says of the version of a page (RFC 9110, 8.8)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from msgspec import Struct

_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]{0,512}"')
"""Entity tag of ASCII only: a request can have no other characters."""
_MAX_DATE_LENGTH = 64


class Validators(Struct, frozen=True):
    """Entity tag and date of a version, by which its site can tell later if the page has changed."""

    url: str
    """URL of the response; another one, such as that of a redirect, has versions of its own."""
    etag: str | None = None
    last_modified: str | None = None

    @property
    def request_headers(self) -> Mapping[str, str]:
        """Fields of a request for the page if it has changed (RFC 9110, 13.1)."""
        fields = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in fields.items() if value}


def parse_validators(url: str, headers: Mapping[str, str]) -> Validators | None:
    """Return the validators of a response; None if it has no usable ones."""
    etag, modified = headers.get("ETag", ""), headers.get("Last-Modified", "")
    found = Validators(
        url,
        etag if _ETAG.fullmatch(etag) else None,
        modified if _is_http_date(modified) else None,
    )
    return found if found.request_headers else None


def _is_http_date(text: str) -> bool:
    if not (text.isascii() and text.isprintable() and len(text) <= _MAX_DATE_LENGTH):
        return False
    try:
        return bool(parsedate_to_datetime(text))
    except (ValueError, TypeError, IndexError, OverflowError):
        return False
