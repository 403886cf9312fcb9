"""JSON-RPC errors of the MCP endpoint for messages that were not parsed."""

from __future__ import annotations

import orjson
from starlette.responses import Response


def jsonrpc_error(status: int, message: str) -> Response:
    """Return a JSON-RPC error for a message that was not parsed; its id is null."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}
    return Response(orjson.dumps(error), status, media_type="application/json")
