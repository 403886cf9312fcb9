"""A reference server: one uvicorn worker on a free loopback port, which says when it answers."""

from __future__ import annotations

import socket
from typing import Any

import uvicorn


class Announced(uvicorn.Server):
    """A server that says `ready http://...` on a line of its own once it answers."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"ready http://127.0.0.1:{port}", flush=True)  # noqa: T201


def serve(application: Any) -> None:
    """Serve until ended, with what the API runs on: uvloop and httptools."""
    config = uvicorn.Config(
        application,
        port=0,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
    )
    Announced(config).run()
