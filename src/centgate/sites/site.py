"""Addresses of one site: which of them are the same page, and which are pages at all."""

from __future__ import annotations

import re
from dataclasses import dataclass

import ada_url

LONGEST_URL = 2048
_PARTS = re.compile(r"https?://([^/?#@]+)(/[^?#]*)(?:\?([^#]*))?(?:#.*)?")
_TRACKING = re.compile(
    r"utm_\w*|gclid|gclsrc|dclid|gbraid|wbraid|fbclid|msclkid|yclid|twclid|ttclid|li_fat_id|igshid"
    r"|mc_[ce]id|_hs(?:enc|mi)|mkt_tok|vero_id|oly_(?:anon|enc)_id|_ga|_gl|ref_src",
    re.IGNORECASE,
)
_ASSET = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|avif|ico|bmp|tiff?|css|m?js|map|json|wasm|woff2?|ttf|otf|eot"
    r"|mp[34]|m4[av]|webm|og[gv]|wav|flac|avi|mov|zip|gz|tgz|bz2|xz|7z|rar|exe|dmg|msi|deb|rpm|apk|iso|whl|jar)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A page that something names. None is what it does not say."""

    url: str
    title: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """A URL as the URL Standard writes it, without its fragment and what only tracks visitors."""

    url: str
    host: str
    """With its port unless that is its scheme's own; without `www.`."""
    path: str
    query: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Equal for what counts as one page: http and https, with `www.` and without, a slash at the end."""
        return self.host, self.path.rstrip("/"), self.query

    @property
    def segments(self) -> list[str]:
        """The parts of the path."""
        return [part for part in self.path.split("/") if part]

    @property
    def is_page(self) -> bool:
        """Whether its name is not that of an image, a script, an archive and the like."""
        return not _ASSET.fullmatch(self.path, max(0, self.path.rfind(".")))


def address(url: str) -> Address | None:
    """The address that a URL is; None unless it is http or https, short enough and without credentials."""
    if len(url) > LONGEST_URL:
        return None
    try:
        parts = _PARTS.fullmatch(ada_url.normalize_url(url))
    except ValueError:
        return None
    if parts is None:
        return None
    host, path, query = parts[1], parts[2], _untracked(parts[3] or "")
    written = f"{parts[0].partition('://')[0]}://{host}{path}" + (f"?{query}" if query else "")
    return Address(written, host.removeprefix("www."), path, query) if len(written) <= LONGEST_URL else None


def joined(base: str, url: str) -> str | None:
    """A URL that may be relative, made absolute; None when it cannot be."""
    if len(url) > LONGEST_URL:
        return None
    try:
        return ada_url.join_url(base, url)
    except ValueError:
        return None


def _untracked(query: str) -> str:
    """A query without known tracking keys; the rest stays as it is written."""
    if not query:
        return query
    return "&".join(
        part for part in query.split("&") if part and not _TRACKING.fullmatch(part.partition("=")[0])
    )
