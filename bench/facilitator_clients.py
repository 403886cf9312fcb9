"""Processor time of one call to a facilitator with aiohttp, httpx2 and Centgate's connection pool.

    .venv/bin/python bench/facilitator_clients.py

Each client posts the body of a settlement over concurrent connections to a stub without delay. Slices of the
clients alternate in a shuffled order. The figure is the caller's processor time in microseconds per call, as
the median over slices.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from statistics import median

import aiohttp
import httpx2
import orjson
import uvloop
from rich.console import Console
from rich.table import Table
from server_process import build_script_command, read_cpu_seconds, run_server
from yarl import URL

from centgate.payments.facilitator.facilitator_http import FacilitatorPool

CONCURRENCY = 16
CALLS = 1500
"""Calls per slice."""
SLICES = 9
SEED = 20261121
HEADERS = {"Content-Type": "application/json"}
AUTHORIZATION = {"from": "0x" + "11" * 20, "nonce": "0x" + "33" * 32}
BODY = orjson.dumps(
    {
        "x402Version": 2,
        "paymentPayload": {"payload": {"authorization": AUTHORIZATION}, "echoed": "x" * 2000},
        "paymentRequirements": {},
    }
)

Call = Callable[[], Awaitable[bytes]]


def main() -> None:
    """Measure all clients and print a table."""
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as name,
        run_server(build_script_command("facilitator_stub.py"), Path(name)) as facilitator,
    ):
        costs = uvloop.run(measure_clients(facilitator.url + "/settle"))
    table = Table(title=f"one call to a facilitator, {CONCURRENCY} concurrent, median of {SLICES} slices")
    table.add_column("client")
    table.add_column("CPU us/call", justify="right")
    table.add_column("to Centgate", justify="right")
    for client, cost in costs.items():
        table.add_row(client, f"{cost:,.0f}", f"x {cost / costs['Centgate']:.2f}")
    Console(width=None if sys.stdout.isatty() else 120).print(table)


async def measure_clients(url: str) -> dict[str, float]:
    """Return the processor time in microseconds per call, by client name."""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        )
        client = await stack.enter_async_context(httpx2.AsyncClient(timeout=30))
        pool = stack.enter_context(closing(FacilitatorPool(url, max_bytes=64 * 1024)))

        async def post_with_aiohttp() -> bytes:
            async with session.post(URL(url), data=BODY, headers=HEADERS) as response:
                return await response.read()

        async def post_with_httpx2() -> bytes:
            return (await client.post(url, content=BODY, headers=HEADERS)).content

        async def post_with_pool() -> bytes:
            return (await pool.post(BODY, {})).content

        calls: dict[str, Call] = {
            "aiohttp": post_with_aiohttp,
            "httpx2": post_with_httpx2,
            "Centgate": post_with_pool,
        }
        return await measure_calls(calls)


async def measure_calls(calls: dict[str, Call]) -> dict[str, float]:
    """Return the median processor time in microseconds per call, by client name."""
    costs: dict[str, list[float]] = {name: [] for name in calls}
    rng, order = random.Random(SEED), list(calls)
    for name in order:
        await measure_slice(calls[name])
    for _ in range(SLICES):
        rng.shuffle(order)
        for name in order:
            costs[name].append(await measure_slice(calls[name]))
    return {name: median(values) for name, values in costs.items()}


async def measure_slice(call: Call) -> float:
    """Return the processor time of one slice in microseconds per call."""

    async def repeat_call() -> None:
        for _ in range(CALLS // CONCURRENCY):
            assert b'"success":true' in await call()

    before = read_cpu_seconds(os.getpid())
    await asyncio.gather(*(repeat_call() for _ in range(CONCURRENCY)))
    return (read_cpu_seconds(os.getpid()) - before) / (CALLS // CONCURRENCY * CONCURRENCY) * 1e6


if __name__ == "__main__":
    main()
