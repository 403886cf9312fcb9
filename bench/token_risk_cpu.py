"""CPU time of one uncached token-risk response: from third parties alone, from the chain alone, from both.

    PYTHONPATH=src:tests:tests/payments .venv/bin/python bench/token_risk_cpu.py [shared]

The sources run in another process and respond after 20 ms each; the node's responses are recorded from a real
EVM and replayed. Each run asks about another token: the sources respond as for the recorded one, but with the
other address, and with code that no run had before. With `shared` all tokens have the same code, as those of
a launchpad do. The service runs without payment, journal and cache, which token_risk.py measures; logging and
garbage collection are as in a server. The processor time of the sandbox's processes is shown apart.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import re
import secrets
import sys
import time
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from statistics import median
from typing import Any, Literal

import uvloop
from eth_typing import Address
from lookups.token_cases import CASES
from lookups.token_world import create_world
from server_process import read_cpu_seconds

from centgate.devchain.http_server import serve_app, silence_libraries
from centgate.devchain.rpc import create_rpc_app
from centgate.devchain.token import CHAIN_ID
from centgate.errors import ProviderFailure
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
CodeKind = Literal["fresh", "shared"]
SOURCES = "sources"
UNCOUNTED = ROUNDS // 4
ALIAS_DIGITS = 8
"""Hexadecimal digits at the end of the token's address in which the tokens of the runs differ."""
_ALIAS_NUMBERS = itertools.count(1)


class RandomDigits:
    """Stands for `secrets.token_hex`: other digits at each call of a run, and the same ones in each run."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, size: int | None = None) -> str:
        self.calls += 1
        return f"{self.calls:02x}" * (size or 32)


def choose_middle(self: object, a: int, b: int) -> int:
    """Stand for `SystemRandom.randint`."""
    return (a + b) // 2


RANDOM_DIGITS = RandomDigits()
V4_POOL, V4_NO_POOL = re.compile(b"c815641c[0-9a-f]{64}"), b"c815641c" + b"0" * 64
"""Calls of getSlot0(bytes32): the id of a v4 pool is a hash of the token's address. There is no such pool."""
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
    # no response to a random request could be replayed
    secrets.token_hex, secrets.randbelow = RANDOM_DIGITS, lambda limit: limit // 2
    secrets.SystemRandom.randint = choose_middle
    code_kind: CodeKind = "shared" if sys.argv[1:] == ["shared"] else "fresh"
    with start_sources(code_kind) as (url, token):
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
            cpu, sandbox, wall = uvloop.run(measure_service(chain_id, token, providers))
            figures = f"CPU {cpu * 1e3:5.2f} ms  sandbox {sandbox * 1e3:4.1f} ms  wall {wall * 1e3:5.1f} ms"
            sys.stdout.write(f"{label:15} {figures}\n")


async def measure_service(
    chain_id: int, token: str, providers: Mapping[str, ProviderSettings]
) -> tuple[float, float, float]:
    """Return the seconds of a run: median of CPU, mean of the sandbox's CPU, and median of wall time.

    Runs are sequential; the first quarter does not count.
    """
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}", providers=dict(providers))
    seconds: list[tuple[float, float]] = []
    async with open_resources(settings) as resources:
        service_providers: dict[str, Provider] = {
            source.info.name: source.provider(settings, resources) for source in token_risk.sources
        }
        resume_garbage_collection()
        sandbox = 0.0
        for run in range(ROUNDS):
            if run == UNCOUNTED:
                sandbox = read_sandbox_seconds()
            request = TokenRiskRequest.model_construct(
                chain=None, chain_id=chain_id, token_address=rename_token(token)
            )
            RANDOM_DIGITS.calls = 0
            cpu, wall = time.process_time(), time.perf_counter()
            # the first responses are not recorded yet, and on a busy machine the EVM takes too long
            with suppress(ProviderFailure) if run < UNCOUNTED else nullcontext():
                await token_risk.run(request, service_providers)
            seconds.append((time.process_time() - cpu, time.perf_counter() - wall))
        sandbox = (read_sandbox_seconds() - sandbox) / (ROUNDS - UNCOUNTED)
    counted = seconds[UNCOUNTED:]
    return median(cpu for cpu, _ in counted), sandbox, median(wall for _, wall in counted)


def rename_token(token: str) -> str:
    """Return an address that no run had before; its start keeps the order of tokens in pools."""
    return token[:-ALIAS_DIGITS] + f"{next(_ALIAS_NUMBERS):0{ALIAS_DIGITS}x}"


def read_sandbox_seconds() -> float:
    """Return the processor time that the processes of sandboxes have taken so far."""
    processes = multiprocessing.active_children()
    return sum(read_cpu_seconds(each.pid) for each in processes if each.pid and each.name != SOURCES)


@contextmanager
def start_sources(code_kind: CodeKind) -> Generator[tuple[str, str]]:
    """Run the sources in a process of their own; yields their URL and the token's address."""
    receiver, sender = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=run_sources, args=(sender, code_kind), name=SOURCES, daemon=True
    )
    process.start()
    try:
        yield receiver.recv()
    finally:
        process.terminate()
        process.join()


def run_sources(sender: Connection, code_kind: CodeKind) -> None:
    """Serve the sources until the process ends; send their URL and the token's address first."""
    world = create_world()
    case = next(case for case in CASES if case.name == "tax on both")
    token = world.add(case)[0].lower()
    code = world.owner.chain.state_at().get_code(Address(bytes.fromhex(token[2:]))).hex().encode()
    with silence_libraries(), serve_app(create_rpc_app(world.owner.chain), 0) as node:
        server = ThreadingHTTPServer(
            ("127.0.0.1", 0), create_handler(node, token, code if code_kind == "fresh" else b"")
        )
        sender.send((f"http://127.0.0.1:{server.server_address[1]}", token))
        server.serve_forever()


def create_handler(node_url: str, token: str, code: bytes) -> type[BaseHTTPRequestHandler]:
    """Create a request handler that responds for all sources after the delay.

    It takes each alias for the token, and puts the alias into the response, also behind `code` if that is not
    empty.
    """
    recorded: dict[bytes, bytes] = {}
    alias_pattern = re.compile(token[2:-ALIAS_DIGITS].encode() + b"[0-9a-f]{%d}" % ALIAS_DIGITS)
    token_digits = token[2:].encode()
    alias = token_digits
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
            self.recognize_alias(self.path.encode())
            time.sleep(DELAY)
            self.send_body(json.dumps(bodies[self.path.split("/")[1]]).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.recognize_alias(body)
            body = V4_POOL.sub(V4_NO_POOL, alias_pattern.sub(token_digits, body))
            if body not in recorded:
                request = urllib.request.Request(node_url, body, {"Content-Type": "application/json"})
                with urllib.request.urlopen(request) as response:
                    recorded[body] = response.read()
            time.sleep(DELAY)
            self.send_body(recorded[body])

        def recognize_alias(self, text: bytes) -> None:
            nonlocal alias
            if found := alias_pattern.search(text):
                alias = found[0]

        def send_body(self, body: bytes) -> None:
            body = body.replace(token_digits, alias)
            if code:
                body = body.replace(code, code + alias)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return SourceHandler


if __name__ == "__main__":
    main()
