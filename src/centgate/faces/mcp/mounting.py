"""Where MCP hangs in the API: `/mcp`, loaded by its first request, and the documents that point to it."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import orjson
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from centgate.service import AnyService
from centgate.settings import Settings

PATH = "/mcp"
CARD_PATH = f"{PATH}/server-card"
CARD_TYPE = "application/mcp-server-card+json"
CATALOG_TYPE = "application/ai-catalog+json"
VERSIONS = ("2026-07-28", "2025-11-25")
"""The versions of the protocol that are promised; older ones work as far as the SDK speaks them."""


class Mcp:
    """`/mcp`, loaded by its first request: what speaks the protocol takes nearly as long as all the rest."""

    def __init__(self, catalog: tuple[AnyService, ...], settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings
        self._loading: asyncio.Task[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One POST; the route lets nothing else through."""
        origin = Headers(scope=scope).get("origin")
        if origin is not None and not _admits(self._settings, origin):
            message = f"pages of {origin[:200]} may not call this server; its operator can allow them"
            await refusal(403, message)(scope, receive, send)
            return
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(_load, self._catalog, self._settings))
        speaking = await asyncio.shield(self._loading)
        await speaking(scope, receive, send)


def _load(catalog: tuple[AnyService, ...], settings: Settings) -> ASGIApp:
    from centgate.faces.mcp.over_http import mcp_over_http

    return mcp_over_http(catalog, settings)


def _admits(settings: Settings, origin: str) -> bool:
    """Whether a page of this origin may speak to the server."""
    if "*" in settings.allowed_origins:
        return True
    address = urlsplit(settings.address)
    return origin in (*settings.allowed_origins, f"{address.scheme}://{address.netloc}")


def refusal(status: int, message: str) -> Response:
    """A message that is not looked at; the protocol's error has no id then."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}
    return Response(orjson.dumps(error), status, media_type="application/json")


def server_card(settings: Settings, tagline: str) -> dict[str, Any]:
    """Who serves MCP here and where: an MCP server card (SEP-2127)."""
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": f"{_reversed(settings)}/centgate",
        "version": version("centgate"),
        "title": "Centgate",
        "description": tagline,
        "remotes": [
            {
                "type": "streamable-http",
                "url": settings.address + PATH,
                "supportedProtocolVersions": list(VERSIONS),
            }
        ],
    }


def ai_catalog(settings: Settings) -> dict[str, Any]:
    """`/.well-known/ai-catalog.json`, which names the card; its drafts differ in what they call the type."""
    entry = {
        "identifier": f"urn:air:{_host(settings)}:mcp:centgate",
        "displayName": "Centgate",
        "type": CARD_TYPE,
        "mediaType": CARD_TYPE,
        "url": settings.address + CARD_PATH,
    }
    return {"specVersion": "1.0", "host": {"displayName": "Centgate"}, "entries": [entry]}


def _host(settings: Settings) -> str:
    return urlsplit(settings.address).hostname or "localhost"


def _reversed(settings: Settings) -> str:
    """The host as a reversed domain name; an address of numbers has none."""
    host = _host(settings)
    return (
        "localhost" if ":" in host or host.replace(".", "").isdigit() else ".".join(reversed(host.split(".")))
    )
