"""Cookies of one fetch: what its redirects set is sent with its later requests, and forgotten afterwards.

Some sites redirect until the cookie that they set comes back, and would redirect forever without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from msgspec import Struct

from centgate.web.fetch.site import find_site
from centgate.web.fetch.url import Target

MAX_COOKIES = 32
MAX_LENGTH = 4096
"""Maximum characters of a cookie, as in browsers."""
_COOKIE = re.compile(r"([!#-'*+\-.\w^`|~]+)=([ !-:<-~]*)", re.ASCII)
"""Name and value without control characters and semicolons, and without those that a request cannot hold."""
_ENDED_AGE = re.compile(r"-\d+|0+")


class _Cookie(Struct, frozen=True):
    value: str
    is_secure: bool

    def may_be_sent_to(self, target: Target) -> bool:
        return target.scheme == "https" or not self.is_secure


class RedirectCookies:
    """Cookies by the domain that they are for and their name; their paths are ignored."""

    def __init__(self) -> None:
        self._cookies: dict[tuple[str, str], _Cookie] = {}

    def store(self, target: Target, headers: Mapping[str, str]) -> None:
        """Store the cookies of a response, and forget those that it ends."""
        for line in headers.get("Set-Cookie", "").splitlines()[:MAX_COOKIES]:
            pair, *attributes = (part.strip() for part in line.split(";"))
            match = _COOKIE.fullmatch(pair)
            domain = _find_domain(target, attributes)
            if match is None or domain is None or len(pair) > MAX_LENGTH:
                continue
            self._cookies.pop((domain, match[1]), None)
            if len(self._cookies) < MAX_COOKIES and not _has_ended(attributes):
                is_secure = any(each.lower() == "secure" for each in attributes)
                self._cookies[domain, match[1]] = _Cookie(match[2], is_secure)

    def headers_for(self, target: Target) -> Mapping[str, str]:
        """Return the field of a request with the cookies for its host, or nothing."""
        pairs = [
            f"{name}={cookie.value}"
            for (domain, name), cookie in self._cookies.items()
            if _covers(domain, target.host) and cookie.may_be_sent_to(target)
        ]
        return {"Cookie": "; ".join(pairs)} if pairs else {}


def _find_domain(target: Target, attributes: list[str]) -> str | None:
    """Return the domain of a cookie, with a dot before it if it has subdomains; None if it is foreign."""
    domain = _read_attribute(attributes, "domain").lower().lstrip(".")
    if not domain or target.address is not None:
        return target.host if domain in ("", target.host) else None
    # no cookie for all sites of a public suffix, such as `co.uk`
    is_own = f".{domain}".endswith(f".{find_site(target.url)}") and f".{target.host}".endswith(f".{domain}")
    return f".{domain}" if is_own else None


def _has_ended(attributes: list[str]) -> bool:
    """True if a site ends a cookie: by an age of 0, or by a date in the past."""
    if age := _read_attribute(attributes, "max-age"):
        return _ENDED_AGE.fullmatch(age) is not None
    try:
        ends_at = parsedate_to_datetime(_read_attribute(attributes, "expires"))
    except (ValueError, OverflowError):
        return False
    return ends_at.replace(tzinfo=UTC) <= datetime.now(UTC)


def _read_attribute(attributes: list[str], name: str) -> str:
    """Return the value of an attribute; empty without it."""
    fields = (attribute.partition("=") for attribute in attributes)
    return next((value.strip() for key, _, value in fields if key.strip().lower() == name), "")


def _covers(domain: str, host: str) -> bool:
    return host == domain or (domain.startswith(".") and f".{host}".endswith(domain))
