"""Reference server: the official x402 middleware for FastAPI around an empty handler.

    python bench/middleware_server.py upfront|authorization FACILITATOR_URL

Prints `ready http://...` on a line of its own once it is ready.
"""

from __future__ import annotations

import sys
from typing import Any

from fastapi import FastAPI
from reference_server import serve_application
from x402 import x402ResourceServer
from x402.http import FacilitatorConfig, HTTPFacilitatorClient
from x402.http.middleware.fastapi import PaymentMiddlewareASGI
from x402.http.types import PaymentOption, RouteConfig
from x402.mechanisms.evm.exact import register_exact_evm_server

NETWORK = "eip155:84532"
PAY_TO = "0x" + "22" * 20


def create_app(flow: str, facilitator_url: str) -> FastAPI:
    """Create an application with one route at one cent.

    `flow` is `upfront` (settle, work) or `authorization` (verify, work, settle).
    """
    server = x402ResourceServer(HTTPFacilitatorClient(FacilitatorConfig(url=facilitator_url)))
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
    async def check_url(body: dict[str, Any]) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        return {"data": {"domain": body["url"], "status": "unknown"}}

    return application


def main() -> None:
    """Serve until terminated."""
    flow, facilitator_url = sys.argv[1:]
    serve_application(create_app(flow, facilitator_url))


if __name__ == "__main__":
    main()
