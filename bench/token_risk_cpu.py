"""CPU time of one uncached token-risk response: from third parties alone, from the chain alone, from both.

    PYTHONPATH=src:tests:tests/payments .venv/bin/python bench/token_risk_cpu.py

The sources run in another process and respond after 20 ms each; the node's responses are recorded from a real
EVM and replayed. The service runs without payment, journal and cache, which token_risk.py measures; logging
and garbage collection are as in a server.
"""

from __future__ import annotations

import json
import multiprocessing
import secrets
import sys
import time
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import uvloop
from lookups.token_cases import CASES
from lookups.token_world import create_world

from centgate.devchain.http_server import serve_app, silence_libraries
from centgate.devchain.rpc import create_rpc_app
from centgate.devchain.token import CHAIN_ID
from centgate.garbage_collection import resume_garbage_collection
from centgate.log import configure_logging
from centgate.provider import Provider
from centgate.provider_settings import ProviderSettings
from centgate.resources import open_resources
from centgate.services.token_risk import TokenRiskRequest, token_risk
from centgate.settings import Settings

DELAY = 0.02
"""Seconds until a source responds."""
ROUNDS = 60
NAMES = ("goplus", "honeypotis", "dexscreener", "geckoterminal")
ANALYSIS = dict.fromkeys(("is_proxy", "is_mintable", "hidden_owner", "is_honeypot", "sell_tax"), "0") | {
    "holders": [
        {"address": f"0x{number:040x}", "percent": "0.01", "is_contract": 0} for number in range(500, 510)
    ],
    "lp_holders": [{"address": "0x" + "77" * 20, "percent": "0.4", "is_contract": 0, "is_locked": 0}],
    "is_open_source": "1",
    "owner_address": "",
}


def main() -> None:
    """Measure each combination of sources and print a line."""
    configure_logging("critical")
    # no response to a random sender could be replayed
    secrets.token_hex, secrets.randbelow = lambda size: "c7" * (size or 32), lambda limit: limit // 2
    with start_sources() as (url, token):
        node = {f"rpc_{CHAIN_ID}": ProviderSettings(url=f"{url}/node")}
        third_parties = {name: ProviderSettings(url=f"{url}/{name}", per_minute=10**6) for name in NAMES}
        no_node = {f"rpc_{number}": ProviderSettings(enabled=False) for number in (1, CHAIN_ID)}
        no_third_parties = {name: ProviderSettings(enabled=False) for name in NAMES}
        cases: dict[str, tuple[int, dict[str, ProviderSettings]]] = {
            "third parties": (1, {**third_parties, **no_node}),
            "the chain": (CHAIN_ID, {**node, **no_third_parties}),
            "both": (1, {**third_parties, "rpc_1": ProviderSettings(url=f"{url}/node")}),
        }
        for label, (chain_id, providers) in cases.items():
            cpu, wall = uvloop.run(measure_service(chain_id, token, providers))
            sys.stdout.write(f"{label:15} CPU {cpu * 1e3:5.2f} ms  wall {wall * 1e3:6.1f} ms\n")


async def measure_service(
    chain_id: int, token: str, providers: Mapping[str, ProviderSettings]
) -> tuple[float, float]:
    """Return the median CPU and wall time in seconds of sequential runs; the first quarter does not count."""
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}", providers=dict(providers))
    seconds: list[tuple[float, float]] = []
    async with open_resources(settings) as resources:
        service_providers: dict[str, Provider] = {
            source.info.name: source.provider(settings, resources) for source in token_risk.sources
        }
        resume_garbage_collection()
        request = TokenRiskRequest.model_construct(chain=None, chain_id=chain_id, token_address=token)
        for _ in range(ROUNDS):
            cpu, wall = time.process_time(), time.perf_counter()
            await token_risk.run(request, service_providers)
            seconds.append((time.process_time() - cpu, time.perf_counter() - wall))
    counted = seconds[ROUNDS // 4 :]
    return median(cpu for cpu, _ in counted), median(wall for _, wall in counted)


@contextmanager
def start_sources() -> Generator[tuple[str, str]]:
    """Run the sources in a process of their own; yields their URL and the token's address."""
    receiver, sender = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=run_sources, args=(sender,), daemon=True)
    process.start()
    try:
        yield receiver.recv()
    finally:
        process.terminate()
        process.join()


def run_sources(sender: Connection) -> None:
    """Serve the sources until the process ends; send their URL and the token's address first."""
    world = create_world()
    case = next(case for case in CASES if case.name == "tax on both")
    token = world.add(case)[0].lower()
    with silence_libraries(), serve_app(create_rpc_app(world.owner.chain), 0) as node:
        server = ThreadingHTTPServer(("127.0.0.1", 0), create_handler(node, token))
        sender.send((f"http://127.0.0.1:{server.server_address[1]}", token))
        server.serve_forever()


def create_handler(node_url: str, token: str) -> type[BaseHTTPRequestHandler]:
    """Create a request handler that responds for all sources after the delay."""
    recorded: dict[bytes, Any] = {}
    pair = "0x" + "66" * 20
    bodies: dict[str, Any] = {
        "goplus": {"code": 1, "message": "OK", "result": {token: ANALYSIS}},
        "honeypotis": {
            "simulationSuccess": True,
            "honeypotResult": {"isHoneypot": False},
            "simulationResult": {"buyTax": 5, "sellTax": 10, "transferTax": 0},
        },
        "dexscreener": [
            {
                "chainId": "ethereum",
                "pairAddress": pair,
                "baseToken": {"address": token},
                "quoteToken": {"address": "0x" + "55" * 20},
                "priceUsd": "1",
                "liquidity": {"usd": 90_000},
            }
        ],
    }

    class SourceHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
            pass

        def do_GET(self) -> None:
            time.sleep(DELAY)
            self.send_body(json.dumps(bodies[self.path.split("/")[1]]).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if body not in recorded:
                request = urllib.request.Request(node_url, body, {"Content-Type": "application/json"})
                with urllib.request.urlopen(request) as response:
                    recorded[body] = response.read()
            time.sleep(DELAY)
            self.send_body(recorded[body])

        def send_body(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return SourceHandler


if __name__ == "__main__":
    main()
