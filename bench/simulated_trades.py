"""Table of simulated trades: the known properties of each kind of token, the result, and its CPU time.

    PYTHONPATH=tests .venv/bin/python bench/simulated_trades.py

The node is a development chain in a process of its own, so that the CPU time is that of the simulation alone.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from statistics import median

from lookups.token_cases import CASES, TokenCase
from lookups.token_world import create_world, find_errors
from rich.console import Console
from rich.table import Table

from centgate.crypto.token.pools import PoolKey
from centgate.crypto.token.security import Simulation
from centgate.devchain.http_server import serve_app, silence_libraries
from centgate.devchain.rpc import create_rpc_app
from centgate.devchain.token import CHAIN_ID
from centgate.log import configure_logging
from centgate.lookups.trade_simulation import simulate_on_chain
from centgate.provider import RequestTrace
from centgate.provider_settings import ProviderSettings
from centgate.providers.rpc import Rpc
from centgate.resources import open_resources
from centgate.settings import Settings


@dataclass(frozen=True)
class TradeResult:
    """Simulation of one token, its errors, and its CPU time in milliseconds."""

    case: TokenCase
    simulation: Simulation
    errors: list[str]
    cpu_ms: float


def main() -> None:
    configure_logging("error")
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe()
    node = context.Process(target=serve_tokens, args=(sender,), daemon=True)
    node.start()
    try:
        url, pools = receiver.recv()
        results = asyncio.run(simulate_all_tokens(url, pools))
    finally:
        node.terminate()
        node.join()
    print_results(results)
    sys.exit(1 if any(result.errors for result in results) else 0)


def serve_tokens(sender: Connection) -> None:
    """Deploy all tokens, send the node's URL and the pools, and serve the chain until the process ends."""
    world = create_world()
    for case in CASES:
        world.add(case)
    with silence_libraries(), serve_app(create_rpc_app(world.owner.chain), 0) as url:
        sender.send((url, world.pools))
        sender.recv()


async def simulate_all_tokens(url: str, pools: dict[str, tuple[str, PoolKey]]) -> list[TradeResult]:
    """Simulate trades of each token.

    `pools` are the address and the pool of each token by its name. The first token is simulated twice, and
    the first of the two results is dropped: a warm-up.
    """
    node = {f"rpc_{CHAIN_ID}": ProviderSettings(url=url)}
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}", providers=node)
    async with open_resources(settings) as resources:
        rpc = Rpc(settings, resources)
        results = [
            await _simulate_token(rpc.bind(RequestTrace()), case, *pools[case.name])
            for case in CASES[:1] + CASES
        ]
    return results[1:]


async def _simulate_token(rpc: Rpc, case: TokenCase, token: str, pool: PoolKey) -> TradeResult:
    start = time.process_time()
    simulation = await simulate_on_chain(rpc, CHAIN_ID, token, [pool], [])
    cpu_ms = (time.process_time() - start) * 1000
    return TradeResult(case, simulation, find_errors(case, simulation), cpu_ms)


def print_results(results: list[TradeResult]) -> None:
    """Print a table of the results, and a summary."""
    table = Table(
        "token", "honest", "honeypot", "buy %", "sell %", "holders", "explanation", "CPU ms", "errors"
    )
    for result in results:
        simulation = result.simulation
        sales = simulation.holder_sales
        table.add_row(
            result.case.name,
            _format_value(result.case.honest),
            _format_value(simulation.honeypot),
            _format_value(simulation.buy_tax),
            _format_value(simulation.sell_tax),
            "-" if sales is None else f"{sales.failed} of {sales.tested} fail",
            simulation.explanation or simulation.reason or "",
            f"{result.cpu_ms:.1f}",
            "; ".join(result.errors),
        )
    console = Console(highlight=False, width=200)
    console.print(table)
    errors = sum(bool(result.errors) for result in results)
    false_alarms = sum(result.case.honest and result.simulation.honeypot is True for result in results)
    cpu_ms = median(result.cpu_ms for result in results)
    console.print(
        f"{len(results)} tokens, {errors} errors, {false_alarms} false alarms, {cpu_ms:.1f} ms CPU (median), "
        "with HTTP and JSON"
    )


def _format_value(value: object) -> str:
    return "unknown" if value is None else f"{value:g}" if isinstance(value, float) else str(value).lower()


if __name__ == "__main__":
    main()
