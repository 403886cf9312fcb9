"""The API's index page at `/`: JSON, and a small HTML page for browsers."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from html import escape
from importlib.resources import files
from typing import Any

from centgate.catalog import list_prices
from centgate.prices import DEFAULT_PRICE, describe_prices
from centgate.service import AnyService
from centgate.settings import Settings

PRODUCT_NAME = "Centgate"
ICONS = {"/favicon.svg": "image/svg+xml", "/favicon.ico": "image/x-icon"}
INDEX_CSP = "default-src 'none'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Content-Security-Policy: the page may load its icon and nothing else."""


def build_title(prices: Iterable[Decimal]) -> str:
    """Return what is sold, at which price; `prices` are those of the services in dollars per call."""
    return f"Facts for software agents at {describe_prices(prices)} a call"


def build_tagline(prices: Iterable[Decimal]) -> str:
    """Return what is sold, at which price and how it is paid, as a sentence."""
    return f"{build_title(prices)}, paid per request in USDC by x402: no accounts, no keys."


def index_document(catalog: tuple[AnyService, ...], settings: Settings) -> dict[str, Any]:
    """Return the JSON of `GET /`: name, tagline and links."""
    address, site = settings.base_url, settings.site_url
    links = {name: f"{address}{path}" for name, path in _LINKS.items()}
    if site:
        links |= {"website": site, "llms": f"{site}/llms.txt"}
    return {"name": PRODUCT_NAME, "tagline": build_tagline(list_prices(catalog, settings)), "links": links}


def render_index_page(catalog: tuple[AnyService, ...], settings: Settings) -> str:
    """Return the index as HTML."""
    content = index_document(catalog, settings)
    tagline = escape(content["tagline"])
    items = "".join(f'<li><a href="{escape(to)}">{name}</a></li>' for name, to in content["links"].items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{PRODUCT_NAME}: an API for software agents</title>"
        f'<meta name="description" content="{tagline}">'
        f'<meta property="og:title" content="{PRODUCT_NAME}">'
        f'<meta property="og:description" content="{tagline}">'
        f"{_image_meta(settings.site_url) if shows_price(list_prices(catalog, settings)) else ''}"
        f'<link rel="canonical" href="{escape(settings.base_url)}/">'
        '<link rel="icon" type="image/svg+xml" href="/favicon.svg">'
        f"</head><body><main><h1>{PRODUCT_NAME}</h1><p>{tagline}</p>"
        f"<ul>{items}</ul></main></body></html>\n"
    )


def shows_price(prices: Iterable[Decimal]) -> bool:
    """Return True if the price in the preview image, one cent, is that of every service."""
    return set(prices) == {DEFAULT_PRICE}


def _image_meta(site: str | None) -> str:
    """Return the preview image's `<meta>` element, or "" if no website serves the image."""
    return f'<meta property="og:image" content="{escape(site)}/social/home.png">' if site else ""


def index_link_header(settings: Settings) -> str:
    """Return the `Link` header of `GET /` (RFC 8288): related documents for machines and people."""
    address, site = settings.base_url, settings.site_url
    links = [
        f'<{address}/openapi.json>; rel="service-desc"; type="application/json"',
        f'<{address}/health>; rel="status"; type="application/json"',
    ]
    if site:
        links += [
            f'<{site}/llms.txt>; rel="describedby"; type="text/plain"',
            f'<{site}/.well-known/api-catalog>; rel="api-catalog"; type="application/linkset+json"',
            f'<{site}/>; rel="service-doc"; type="text/html"',
        ]
    return ", ".join(links)


def read_icon(path: str) -> bytes:
    """Return the bytes of one of `ICONS`."""
    return (files("centgate.website") / "assets" / path[1:]).read_bytes()


_LINKS = {"services": "/services", "openapi": "/openapi.json", "health": "/health"}
