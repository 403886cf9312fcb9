"""Normalise the URLs of one site: duplicates, tracking parameters, and files that are not pages."""

from __future__ import annotations

import re

import ada_url
from msgspec import Struct

from centgate.web.fetch.url import MAX_URL_LENGTH, normalize_escapes
from centgate.web.results import PageSource

_HTTP_URL = re.compile(r"https?://([^/?#@]+)(/[^?#]*)(?:\?([^#]*))?(?:#.*)?")
_TRACKING_KEY = re.compile(
    r"utm_\w*|gclid|gclsrc|dclid|gbraid|wbraid|fbclid|msclkid|yclid|twclid|ttclid|li_fat_id|igshid"
    r"|mc_[ce]id|_hs(?:enc|mi)|mkt_tok|vero_id|oly_(?:anon|enc)_id|_ga|_gl|ref_src",
    re.IGNORECASE,
)
_SESSION_PART = re.compile(
    r"(?:(?:php|asp|j)sess(?:ion)?id|aspsessionid\w*|session_?id|cfid|cftoken|zenid|oscsid)(?:=.*)?"
    r"|(?:sid|session)=(?:(?=[a-z]*\d)[a-z\d]{16,}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})",
    re.IGNORECASE,
)
"""Ids of sessions; `sid` and `session` name other things too, unless the value looks like an id."""
_VIEW_PART = re.compile(
    r"(?:sort(?:[_-]?(?:by|order|dir|direction|field))?(?:\[[^\]]*\]|%5b.*?%5d)?|order[_-]?(?:by|dir)|ordering"
    r"|product_list_(?:order|dir|mode|limit)|view_?mode"
    r"|per_?page|page_?size|limit|print(?:able)?|replytocom)(?:=.*)?"
    r"|(?:order|dir|direction)=(?:asc(?:ending)?|desc(?:ending)?)"
    r"|order=[-+]?(?:price|name|title|date|newest|oldest|rating|relevance|popularity)(?:[_.:-](?:asc|desc))?"
    r"|(?:order|view|display|layout)=(?:grid|list|table|tiles?|compact|mobile|print)",
    re.IGNORECASE,
)
"""Parameters that show the same page in another way: order, layout, length of its list."""
_PATH_SESSION = re.compile(r";jsessionid=[^/?#]*|/\((?:[a-z]\([\w-]+\))+\)(?=/)", re.IGNORECASE)
"""Ids of sessions in a path, the second of ASP.NET."""
_ASSET_EXTENSION = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|avif|ico|bmp|tiff?|css|m?js|map|json|wasm|woff2?|ttf|otf|eot"
    r"|mp[34]|m4[av]|webm|og[gv]|wav|flac|avi|mov|zip|gz|tgz|bz2|xz|7z|rar|exe|dmg|msi|deb|rpm|apk|iso|whl|jar)",
    re.IGNORECASE,
)


class PageEntry(Struct, frozen=True):
    """Page named by a link, a sitemap or a feed; None if the source does not state it."""

    url: str
    title: str | None = None
    description: str | None = None
    modified: str | None = None
    """Time of the last change, ISO 8601."""
    source: PageSource | None = None
    alternates: tuple[str, ...] = ()
    """URLs of the page in other languages (hreflang)."""


class PageUrl(Struct, frozen=True):
    """URL normalised by the URL Standard, without fragment and tracking parameters."""

    url: str
    host: str
    """With the port unless it is the scheme's default; without `www.`."""
    path: str
    """Without needless escapes, as the query: `/~user` for `/%7Euser`."""
    query: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Key that ignores the differences http or https, with or without `www.` or a final slash.

        Parameters that only order or lay out a page do not count, nor does the order of different parameters.
        """
        parts = (part for part in self.query.split("&") if not _VIEW_PART.fullmatch(part))
        return self.host, self.path.rstrip("/"), "&".join(sorted(parts, key=_key_of))

    @property
    def segments(self) -> list[str]:
        """Non-empty segments of the path."""
        return [part for part in self.path.split("/") if part]

    @property
    def is_page(self) -> bool:
        """True unless the file extension is one of an image, a script, an archive or another asset."""
        return not _ASSET_EXTENSION.fullmatch(self.path, max(0, self.path.rfind(".")))


def parse_page_url(url: str) -> PageUrl | None:
    """Parse a page's URL; None unless it is http or https, short enough and without credentials."""
    if len(url) > MAX_URL_LENGTH:
        return None
    try:
        parts = _HTTP_URL.fullmatch(ada_url.normalize_url(url))
    except ValueError:
        return None
    if parts is None:
        return None
    host, path, query = parts[1], _PATH_SESSION.sub("", parts[2]), _strip_tracking(parts[3] or "")
    normalized = f"{parts[0].partition('://')[0]}://{host}{path}" + (f"?{query}" if query else "")
    return (
        PageUrl(normalized, host.removeprefix("www."), normalize_escapes(path), normalize_escapes(query))
        if len(normalized) <= MAX_URL_LENGTH
        else None
    )


def _strip_tracking(query: str) -> str:
    """Remove known tracking parameters and session ids from a query; the rest is unchanged."""
    if not query:
        return query
    return "&".join(
        part
        for part in query.split("&")
        if part and not (_TRACKING_KEY.fullmatch(_key_of(part)) or _SESSION_PART.fullmatch(part))
    )


def _key_of(part: str) -> str:
    return part.partition("=")[0]
