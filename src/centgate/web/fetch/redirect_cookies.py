"""Cookies of one fetch: what its redirects set is sent with its later requests, and forgotten afterwards.

Some sites redirect until the cookie that they set comes back, and would redirect forever without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from centgate.web.fetch.url import Target

MAX_COOKIES = 32
MAX_LENGTH = 4096
"""Maximum characters of a cookie, as in browsers."""
_COOKIE = re.compile(r"([!#-'*+\-.\w^`|~]+)=([ !-:<-~]*)", re.ASCII)
"""Name and value without control characters and semicolons, and without those that a request cannot hold."""


class _Cookie(Struct, frozen=True):
    value: str
    is_secure: bool

    def may_be_sent_to(self, target: Target) -> bool:
        return target.scheme == "https" or not self.is_secure


class RedirectCookies:
    """Cookies by the domain that they are for and their name; their paths and dates are ignored."""

    def __init__(self) -> None:
        self._cookies: dict[tuple[str, str], _Cookie] = {}

    def store(self, target: Target, headers: Mapping[str, str]) -> None:
        """Store the cookies of a response."""
        for line in headers.get("Set-Cookie", "").splitlines()[:MAX_COOKIES]:
            pair, *attributes = (part.strip() for part in line.split(";"))
            match = _COOKIE.fullmatch(pair)
            domain = _find_domain(target, attributes)
            if match is None or domain is None or len(pair) > MAX_LENGTH:
                continue
            is_secure = any(each.lower() == "secure" for each in attributes)
            if len(self._cookies) < MAX_COOKIES:
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
    named = (attribute.partition("=") for attribute in attributes)
    domain = next((value for name, _, value in named if name.strip().lower() == "domain"), "")
    domain = domain.strip().lower().lstrip(".")
    if not domain or target.address is not None:
        return target.host if domain in ("", target.host) else None
    return f".{domain}" if "." in domain and f".{target.host}".endswith(f".{domain}") else None


def _covers(domain: str, host: str) -> bool:
    return host == domain or (domain.startswith(".") and f".{host}".endswith(domain))
