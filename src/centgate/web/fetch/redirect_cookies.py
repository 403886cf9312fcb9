"""Cookies of one fetch: what its redirects set is sent with its later requests, and forgotten afterwards.

Some sites redirect until the cookie that they set comes back, and would redirect forever without it.
"""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import CookieJar
from yarl import URL

from centgate.web.fetch.site import find_site
from centgate.web.fetch.url import Target


class RedirectCookies:
    """Cookies, in a jar for each site: none reaches another site, whatever domain it names."""

    def __init__(self) -> None:
        self._jars: dict[str, CookieJar] = {}

    def store(self, target: Target, headers: Mapping[str, str]) -> None:
        """Store the cookies of a response, and forget those that it ends."""
        if fields := headers.get("Set-Cookie", "").splitlines():
            # `unsafe` admits hosts that are addresses, as browsers do
            jar = self._jars.setdefault(find_site(target.url), CookieJar(unsafe=True))
            jar.update_cookies_from_headers(fields, URL(target.url))

    def headers_for(self, target: Target) -> Mapping[str, str]:
        """Return the field of a request with the cookies for its URL, or nothing."""
        jar = self._jars.get(find_site(target.url)) if self._jars else None
        cookies = jar.filter_cookies(URL(target.url)).values() if jar else ()
        text = "; ".join(f"{each.key}={each.coded_value}" for each in cookies)
        return {"Cookie": text} if text else {}
