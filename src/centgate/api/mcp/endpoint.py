"""The API's MCP endpoint `/mcp`, loaded by its first request, and its discovery documents."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from centgate import __version__
from centgate.api.http_requests import jsonrpc_error
from centgate.service import AnyService
from centgate.settings import Settings

MCP_PATH = "/mcp"
CARD_PATH = f"{MCP_PATH}/server-card"
WELL_KNOWN_CARD_PATHS = ("/.well-known/mcp.json", "/.well-known/mcp/server-card.json")
"""Where clients look for the card: the paths of SEP-1649 and of its successor SEP-2127, both drafts."""
CARD_TYPE = "application/mcp-server-card+json"
CATALOG_TYPE = "application/ai-catalog+json"
PROTOCOL_VERSIONS = ("2026-07-28", "2025-11-25")
"""Supported protocol versions; older ones work as far as the SDK supports them."""


class McpEndpoint:
    """The endpoint `/mcp`, loaded by its first request: importing the SDK nearly doubles start-up time."""

    def __init__(self, catalog: tuple[AnyService, ...], settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings
        self._loading: asyncio.Task[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one POST; the route admits no other method."""
        origin = Headers(scope=scope).get("origin")
        if origin is not None and not _is_origin_allowed(self._settings, origin):
            message = f"origin {origin[:200]} is not allowed to call this server; its operator can allow it"
            await jsonrpc_error(403, message)(scope, receive, send)
            return
        if self._loading is None or _has_failed(self._loading):
            self._loading = asyncio.create_task(
                asyncio.to_thread(_load_endpoint, self._catalog, self._settings)
            )
        endpoint = await asyncio.shield(self._loading)
        await endpoint(scope, receive, send)


def _has_failed(loading: asyncio.Task[ASGIApp]) -> bool:
    return loading.done() and (loading.cancelled() or loading.exception() is not None)


def _load_endpoint(catalog: tuple[AnyService, ...], settings: Settings) -> ASGIApp:
    from centgate.api.mcp.http_transport import create_mcp_endpoint

    return create_mcp_endpoint(catalog, settings)


def _is_origin_allowed(settings: Settings, origin: str) -> bool:
    """Return True if pages of this origin may call the server: its own, the website's, or one that is named.

    A `*` for CORS names none: the specification demands the check against DNS rebinding (MCP 2025-11-25,
    "Streamable HTTP", security warning).
    """
    addresses = [urlsplit(url) for url in (settings.base_url, settings.site_url) if url]
    own = [f"{address.scheme}://{address.netloc}" for address in addresses]
    return origin != "*" and origin in (*settings.allowed_origins, *own)


def server_card(settings: Settings, tagline: str) -> dict[str, Any]:
    """Return the MCP server card (SEP-2127): name, version and address of the server."""
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": f"{_reverse_host(settings)}/centgate",
        "version": __version__,
        "title": "Centgate",
        "description": tagline,
        "remotes": [
            {
                "type": "streamable-http",
                "url": settings.base_url + MCP_PATH,
                "supportedProtocolVersions": list(PROTOCOL_VERSIONS),
            }
        ],
    }


def ai_catalog(settings: Settings) -> dict[str, Any]:
    """Return `/.well-known/ai-catalog.json`, with a link to the card. Drafts differ in the type's key."""
    entry = {
        "identifier": f"urn:air:{_host_of(settings)}:mcp:centgate",
        "displayName": "Centgate",
        "type": CARD_TYPE,
        "mediaType": CARD_TYPE,
        "url": settings.base_url + CARD_PATH,
    }
    return {"specVersion": "1.0", "host": {"displayName": "Centgate"}, "entries": [entry]}


def _host_of(settings: Settings) -> str:
    return urlsplit(settings.base_url).hostname or "localhost"


def _reverse_host(settings: Settings) -> str:
    """Return the host as a reversed domain name, or `localhost` for an IP address."""
    host = _host_of(settings)
    return (
        "localhost" if ":" in host or host.replace(".", "").isdigit() else ".".join(reversed(host.split(".")))
    )
