"""Reference server: one uvicorn worker on a free loopback port, which prints its URL once it is ready."""

from __future__ import annotations

import socket
from typing import Any

import uvicorn


class ReferenceServer(uvicorn.Server):
    """Server that prints `ready http://...` on a line of its own once it accepts connections."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"ready http://127.0.0.1:{port}", flush=True)  # noqa: T201


def serve_application(application: Any) -> None:
    """Serve an ASGI application until terminated.

    The event loop and the HTTP parser are those of the API: uvloop and httptools.
    """
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
    ReferenceServer(config).run()
