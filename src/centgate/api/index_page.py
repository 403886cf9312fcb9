"""The API's index page at `/`: JSON, and a small HTML page for browsers."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import Any

from centgate.settings import Settings

PRODUCT_NAME = "Centgate"
TAGLINE = (
    "Facts for software agents at one cent a call, paid per request in USDC by x402: no accounts, no keys."
)
ICONS = {"/favicon.svg": "image/svg+xml", "/favicon.ico": "image/x-icon"}
INDEX_CSP = "default-src 'none'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Content-Security-Policy: the page may load its icon and nothing else."""


def index_document(settings: Settings) -> dict[str, Any]:
    """Return the JSON of `GET /`: name, tagline and links."""
    address, site = settings.base_url, settings.site_url
    links = {name: f"{address}{path}" for name, path in _LINKS.items()}
    if site:
        links |= {"website": site, "llms": f"{site}/llms.txt"}
    return {"name": PRODUCT_NAME, "tagline": TAGLINE, "links": links}


def render_index_page(settings: Settings) -> str:
    """Return the index as HTML."""
    content = index_document(settings)
    items = "".join(f'<li><a href="{escape(to)}">{name}</a></li>' for name, to in content["links"].items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{PRODUCT_NAME}: an API for software agents</title>"
        f'<meta name="description" content="{escape(TAGLINE)}">'
        f'<meta property="og:title" content="{PRODUCT_NAME}">'
        f'<meta property="og:description" content="{escape(TAGLINE)}">'
        f"{_image_meta(settings.site_url)}"
        f'<link rel="canonical" href="{escape(settings.base_url)}/">'
        '<link rel="icon" type="image/svg+xml" href="/favicon.svg">'
        f"</head><body><main><h1>{PRODUCT_NAME}</h1><p>{escape(TAGLINE)}</p>"
        f"<ul>{items}</ul></main></body></html>\n"
    )


def _image_meta(site: str | None) -> str:
    """Return the preview image's `<meta>` element, or "" if no website serves the image."""
    return f'<meta property="og:image" content="{escape(site)}/social.png">' if site else ""


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
