"""CPU time of one uncached token-risk: third parties alone, the chain alone, and both.

    PYTHONPATH=src:tests:tests/payments .venv/bin/python bench/token_risk_cpu.py

The sources run in another process, each answer after 20 ms; the node's answers are recorded from a real EVM
and replayed. The service runs without payment, journal and cache: these are measured by token_risk.py.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import time
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import structlog
from lookups.token_cases import CASES
from lookups.token_world import create_world

from centgate.devchain.http_server import serve_app, silence_libraries
from centgate.devchain.rpc import create_rpc_app
from centgate.devchain.token import CHAIN_ID
from centgate.provider import Provider
from centgate.provider_settings import ProviderSettings
from centgate.resources import open_resources
from centgate.services.token_risk import TokenRiskRequest, token_risk
from centgate.settings import Settings

DELAY = 0.02
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
    """Measure and print."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with start_sources() as (url, token):
        node = {f"rpc_{CHAIN_ID}": ProviderSettings(url=f"{url}/node")}
        others = {name: ProviderSettings(url=f"{url}/{name}", per_minute=10**6) for name in NAMES}
        no_node = {f"rpc_{number}": ProviderSettings(enabled=False) for number in (1, CHAIN_ID)}
        off = {name: ProviderSettings(enabled=False) for name in NAMES}
        cases: dict[str, tuple[int, dict[str, ProviderSettings]]] = {
            "third parties": (1, {**others, **no_node}),
            "the chain": (CHAIN_ID, {**node, **off}),
            "both": (1, {**others, "rpc_1": ProviderSettings(url=f"{url}/node")}),
        }
        for label, (chain_id, providers) in cases.items():
            cpu, wall = asyncio.run(measure(chain_id, token, providers))
            sys.stdout.write(f"{label:15} CPU {cpu * 1e3:5.2f} ms  wall {wall * 1e3:6.1f} ms\n")


async def measure(
    chain_id: int, token: str, providers: Mapping[str, ProviderSettings]
) -> tuple[float, float]:
    """Return the median CPU and wall time in seconds of one answer, one by one."""
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}", providers=dict(providers))
    seconds: list[tuple[float, float]] = []
    async with open_resources(settings) as resources:
        opened: dict[str, Provider] = {
            source.info.name: source.provider(settings, resources) for source in token_risk.sources
        }
        request = TokenRiskRequest.model_construct(chain=None, chain_id=chain_id, token_address=token)
        for _ in range(ROUNDS):
            cpu, wall = time.process_time(), time.perf_counter()
            await token_risk.run(request, opened)
            seconds.append((time.process_time() - cpu, time.perf_counter() - wall))
    done = seconds[ROUNDS // 4 :]
    return median(cpu for cpu, _ in done), median(wall for _, wall in done)


@contextmanager
def start_sources() -> Generator[tuple[str, str]]:
    """Run the sources in a process. Yield their URL and the token's address."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=run_sources, args=(there,), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


def run_sources(connection: Connection) -> None:
    """Serve the sources until the process ends."""
    world = create_world()
    case = next(case for case in CASES if case.name == "tax on both")
    token = world.add(case)[0].lower()
    with silence_libraries(), serve_app(create_rpc_app(world.owner.chain), 0) as node:
        server = ThreadingHTTPServer(("127.0.0.1", 0), create_handler(node, token))
        connection.send((f"http://127.0.0.1:{server.server_address[1]}", token))
        server.serve_forever()


def create_handler(node: str, token: str) -> type[BaseHTTPRequestHandler]:
    """Return a handler that answers for all sources after the delay."""
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

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the server's own names
            pass

        def do_GET(self) -> None:
            time.sleep(DELAY)
            self.reply(json.dumps(bodies[self.path.split("/")[1]]).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if body not in recorded:
                ask = urllib.request.Request(node, body, {"Content-Type": "application/json"})
                with urllib.request.urlopen(ask) as answer:
                    recorded[body] = answer.read()
            time.sleep(DELAY)
            self.reply(recorded[body])

        def reply(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


if __name__ == "__main__":
    main()
