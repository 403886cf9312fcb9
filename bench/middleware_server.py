"""The reference: the official x402 middleware around a FastAPI handler that does nothing.

    python bench/middleware_server.py upfront|authorization FACILITATOR_URL

One uvicorn worker with uvloop and httptools on a free loopback port; says `ready http://...` once it answers.
"""

from __future__ import annotations

import socket
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI
from x402 import x402ResourceServer
from x402.http import FacilitatorConfig, HTTPFacilitatorClient
from x402.http.middleware.fastapi import PaymentMiddlewareASGI
from x402.http.types import PaymentOption, RouteConfig
from x402.mechanisms.evm.exact import register_exact_evm_server

NETWORK = "eip155:84532"
PAY_TO = "0x" + "22" * 20


def app(flow: str, facilitator: str) -> FastAPI:
    """One route at one cent; `flow` is `upfront` (settle, work) or `authorization` (verify, work, settle)."""
    server = x402ResourceServer(HTTPFacilitatorClient(FacilitatorConfig(url=facilitator)))
    register_exact_evm_server(server, NETWORK)
    price = PaymentOption(
        scheme="exact",
        pay_to=PAY_TO,
        price="$0.01",
        network=NETWORK,
        max_timeout_seconds=120,
        extra={"paymentFlow": flow} if flow != "authorization" else None,
    )
    routes = {"POST /services/phishing-check": RouteConfig(accepts=price, mime_type="application/json")}
    application = FastAPI()
    application.add_middleware(PaymentMiddlewareASGI, routes=routes, server=server)

    @application.post("/services/phishing-check")
    async def handler(question: dict[str, Any]) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        return {"data": {"domain": question["url"], "status": "unknown"}}

    return application


class Announced(uvicorn.Server):
    """A server that says `ready` once it answers."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"ready http://127.0.0.1:{port}", flush=True)  # noqa: T201


def main() -> None:
    """Serve until ended."""
    flow, facilitator = sys.argv[1:]
    config = uvicorn.Config(
        app(flow, facilitator),
        port=0,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
        server_header=False,
    )
    Announced(config).run()


if __name__ == "__main__":
    main()
