"""Table of truth of simulated trades: what each kind of token is, and what is found; with its cost.

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

from centgate.crypto.token.chain_pools import PoolKey
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
class TruthRow:
    """Result for one token."""

    case: TokenCase
    found: Simulation
    errors: list[str]
    cpu_ms: float


def main() -> None:
    configure_logging("error")
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    node = context.Process(target=serve_tokens, args=(theirs,), daemon=True)
    node.start()
    try:
        url, pools = ours.recv()
        rows = asyncio.run(simulate_all(url, pools))
    finally:
        node.terminate()
        node.join()
    print_rows(rows)
    sys.exit(1 if any(row.errors for row in rows) else 0)


def serve_tokens(pipe: Connection) -> None:
    """Deploy every token, and serve the chain until the process is ended."""
    world = create_world()
    for case in CASES:
        world.add(case)
    with silence_libraries(), serve_app(create_rpc_app(world.owner.chain), 0) as url:
        pipe.send((url, world.pools))
        pipe.recv()


async def simulate_all(url: str, pools: dict[str, tuple[str, PoolKey]]) -> list[TruthRow]:
    """Simulate trades of each token, after one whose figures do not count."""
    node = {f"rpc_{CHAIN_ID}": ProviderSettings(url=url)}
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}", providers=node)
    async with open_resources(settings) as resources:
        rpc = Rpc(settings, resources)
        rows = [
            await _simulate(rpc.bind(RequestTrace()), case, *pools[case.name]) for case in CASES[:1] + CASES
        ]
    return rows[1:]


async def _simulate(rpc: Rpc, case: TokenCase, token: str, pool: PoolKey) -> TruthRow:
    started = time.process_time()
    found = await simulate_on_chain(rpc, CHAIN_ID, token, [pool], [])
    cpu_ms = (time.process_time() - started) * 1000
    return TruthRow(case, found, find_errors(case, found), cpu_ms)


def print_rows(rows: list[TruthRow]) -> None:
    """Print the table, and the sums."""
    table = Table(
        "token", "honest", "honeypot", "buy %", "sell %", "holders", "explanation", "CPU ms", "errors"
    )
    for row in rows:
        sales, found = row.found.holder_sales, row.found
        table.add_row(
            row.case.name,
            _text(row.case.honest),
            _text(found.honeypot),
            _text(found.buy_tax),
            _text(found.sell_tax),
            "-" if sales is None else f"{sales.failed} of {sales.tested} fail",
            found.explanation or found.reason or "",
            f"{row.cpu_ms:.1f}",
            "; ".join(row.errors),
        )
    console = Console(highlight=False, width=200)
    console.print(table)
    errors = sum(bool(row.errors) for row in rows)
    false_alarms = sum(row.case.honest and row.found.honeypot is True for row in rows)
    cost = median(row.cpu_ms for row in rows)
    console.print(
        f"{len(rows)} tokens, {errors} errors, {false_alarms} false alarms, {cost:.1f} ms CPU (median), "
        "with HTTP and JSON"
    )


def _text(value: object) -> str:
    return "unknown" if value is None else f"{value:g}" if isinstance(value, float) else str(value).lower()


if __name__ == "__main__":
    main()
