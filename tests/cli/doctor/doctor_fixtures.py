"""Deployments for the doctor's tests: a healthy one, and parts that can be broken individually."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from fake_upstreams import FakeUpstreams, RecordedRequest, ResponseFunction
from msgspec.structs import replace
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tampering_proxy import Interceptor, start_proxy

from centgate.catalog import all_providers, all_services
from centgate.cli.doctor.check import run_checks
from centgate.cli.doctor.context import open_context
from centgate.cli.doctor.registry import select_checks
from centgate.devchain.http_server import serve_app
from centgate.findings import Finding
from centgate.phishing.rules import PhishingRules
from centgate.phishing.snapshot import make_snapshot, pack_snapshot
from centgate.provider import Provider
from centgate.providers.rpc import PUBLIC_NODES
from centgate.settings import ProviderSettings, Settings

NETWORK = "eip155:84532"
KIND = {"x402Version": 2, "scheme": "exact", "network": NETWORK}
UNREACHABLE_URL = "http://127.0.0.1:9"
"""URL without a listener."""
PATIENCE = 120.0
"""Seconds for a check: on a busy machine a process may take longer to start than an operator would wait."""
METHODS = ["GET", "POST", "OPTIONS"]


async def run_named_checks(
    settings: Settings, *names: str, send_test_alert: bool = False
) -> dict[str, Finding]:
    """Run the checks with these names, or all, and return their findings."""
    async with open_context(settings, send_test_alert=send_test_alert) as deployment:
        checks = [replace(each, timeout=PATIENCE) for each in select_checks(names)]
        results = await run_checks(deployment, checks)
    return {result.name: result.finding for result in results}


async def run_check(settings: Settings, name: str, *, send_test_alert: bool = False) -> Finding:
    """Run one check and return its finding."""
    return (await run_named_checks(settings, name, send_test_alert=send_test_alert))[name]


def with_changes(settings: Settings, **changes: Any) -> Settings:
    """Return a copy of the settings with changes."""
    return settings.model_copy(update=changes)


def with_provider(settings: Settings, name: str, *, key: str | None = None, **values: Any) -> Settings:
    """Return a copy of the settings with other settings of one provider."""
    provider = ProviderSettings(key=SecretStr(key) if key else None, **values)
    return with_changes(settings, providers={**settings.providers, name: provider})


def with_node_proxy(upstreams: FakeUpstreams, settings: Settings, change: Interceptor) -> Settings:
    """Return settings with a proxy before the payment network's node that changes its responses."""
    real = settings.rpc_url
    assert real
    return with_provider(
        settings, f"rpc_{settings.chain_id}", url=start_proxy(upstreams, "node", real, change)
    )


def replace_result(method: str, result: Any, *, data: str = "") -> Interceptor:
    """Replace the result of a method; of calls only those whose data has this prefix."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] != method:
            return None
        if data and not str(request["params"][0].get("data", "")).startswith(data):
            return None
        return 200, {"jsonrpc": "2.0", "id": request["id"], "result": result}

    return change


def facilitator_supporting(
    upstreams: FakeUpstreams, *kinds: Any, status: int = 200, verify: int = 400
) -> str:
    """Serve a facilitator that supports these kinds, and return its URL."""
    upstreams.set_response(
        "facilitator", "/supported", {"kinds": list(kinds), "extensions": []}, status=status
    )
    upstreams.set_response("facilitator", "/verify", {"error": "no payment"}, status=verify, method="POST")
    return upstreams.url_of("facilitator")


def healthy_providers(upstreams: FakeUpstreams) -> dict[str, ProviderSettings]:
    """Return settings of every provider, each with a healthy fake upstream and the consent of its owner."""
    upstreams.set_response("etherscan", "/v2/api", {"status": "1", "result": {"creditsAvailable": 9}})
    upstreams.set_response(
        "firecrawl", "/v2/team/credit-usage", {"success": True, "data": {"remainingCredits": 7}}
    )
    upstreams.set_response("goplus", "/api/v1/supported_chains", {"code": 1, "result": []})
    upstreams.set_response("searxng", "/search", {"error": "No query"}, status=400)
    for chain in PUBLIC_NODES:
        upstreams.set_response_function("rpc", f"/{chain}", _chain_id_handler(chain), method="POST")
    settings = {
        name: ProviderSettings(url=upstreams.url_of(name), resale_permitted=True)
        for name, kind in all_providers(all_services()).items()
        if _has_upstream(kind)
    }
    parts = {
        f"packagedocs_{part}": ProviderSettings(url=upstreams.url_of(part))
        for part in ("pypi", "npm", "crates", "go", "gosums")
    }
    gateway = ProviderSettings(url=upstreams.url_of("rpc") + "/{chain_id}")
    disabled = dict.fromkeys(("alchemy", "rpc_84532"), ProviderSettings(enabled=False))
    return {**settings, **parts, "rpc": gateway, **disabled}


def _has_upstream(kind: type[Provider]) -> bool:
    """Return True for a provider that has a URL, or that is configured once the operator gives it one."""
    by_operator = Settings(providers={kind.info.name: ProviderSettings(url=UNREACHABLE_URL)})
    return bool(kind.info.url) or (not kind(Settings()).is_configured and kind(by_operator).is_configured)


def _chain_id_handler(chain: int) -> ResponseFunction:
    """Return a handler that responds with the chain ID, and to the probes of simulated calls."""

    def answer(asked: RecordedRequest) -> tuple[int, Any]:
        request = asked.body
        result = hex(chain)
        if request["method"] == "eth_call":
            # the sent value, or the overridden balance
            result = f"0x{42 if len(request['params']) == 3 else 1:064x}"
        return 200, {"jsonrpc": "2.0", "id": request["id"], "result": result}

    return answer


def write_phishing_list(folder: Path, day: str | None, **provenance: str) -> Path:
    """Write a phishing list with a date and its source."""
    rules = PhishingRules((), ("phishing.example",), (), tolerance=1, name="test", version="1")
    path = folder / "list.xz"
    path.write_bytes(pack_snapshot(make_snapshot(rules, source="test", date=day, **provenance)))
    return path


def today() -> str:
    """Return today's date."""
    return datetime.now(UTC).date().isoformat()


@contextmanager
def serve_skewed_facilitator(ahead: float) -> Generator[str]:
    """Serve a facilitator whose clock is `ahead` seconds ahead, and yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the server's own names
            pass

        def date_time_string(self, timestamp: Any = None) -> str:
            return format_datetime(datetime.now(UTC) + timedelta(seconds=ahead), usegmt=True)

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


ResponseChange = Callable[[dict[str, str], int, dict[str, str]], int]
"""Change of a response by a bad proxy: gets the request's headers, the status and the response's headers,
changes the latter, and returns a status."""


@contextmanager
def serve_proxy(port: int, mangle: ResponseChange, *, drop: str = "") -> Generator[str]:
    """Serve a proxy before the API on a port that changes responses and drops a request header."""

    async def forward(request: Request) -> Response:
        headers = {name: value for name, value in request.headers.items() if name not in (drop, "host")}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            body = await request.body()
            answer = await client.request(request.method, request.url.path, headers=headers, content=body)
        headers_back = {name: value for name, value in answer.headers.items() if name != "content-length"}
        status = mangle(dict(request.headers), answer.status_code, headers_back)
        return Response(answer.content, status, headers_back)

    with serve_app(Starlette(routes=[Route("/{path:path}", forward, methods=METHODS)]), 0) as url:
        yield url
