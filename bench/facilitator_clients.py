"""Processor time of one call to a facilitator: by aiohttp, by httpx2, and by the connection pool of the API.

    .venv/bin/python bench/facilitator_clients.py

Each client posts the body of a settlement, so many at once, to a stub that answers at once. Slices go round
the clients in a shuffled order; microseconds of the caller's processor time a call, the median over slices.
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
from processes import cpu_seconds, python, running
from rich.console import Console
from rich.table import Table
from yarl import URL

from centgate.payments.facilitator_http import FacilitatorPool

AT_ONCE = 16
CALLS = 1500
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
    """Measure and print."""
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as name,
        running(python("facilitator_stub.py"), Path(name)) as facilitator,
    ):
        costs = uvloop.run(measured(facilitator.url + "/settle"))
    table = Table(title=f"one call to a facilitator, {AT_ONCE} at once, median of {SLICES} slices")
    table.add_column("client")
    table.add_column("CPU us/call", justify="right")
    table.add_column("to ours", justify="right")
    for client, cost in costs.items():
        table.add_row(client, f"{cost:,.0f}", f"x {cost / costs['ours']:.2f}")
    Console(width=None if sys.stdout.isatty() else 120).print(table)


async def measured(url: str) -> dict[str, float]:
    """Microseconds a call, by client."""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        )
        client = await stack.enter_async_context(httpx2.AsyncClient(timeout=30))
        wire = stack.enter_context(closing(FacilitatorPool(url, max_bytes=64 * 1024)))

        async def by_aiohttp() -> bytes:
            async with session.post(URL(url), data=BODY, headers=HEADERS) as response:
                return await response.read()

        async def by_httpx2() -> bytes:
            return (await client.post(url, content=BODY, headers=HEADERS)).content

        async def by_wire() -> bytes:
            return (await wire.post(BODY, {})).content

        calls: dict[str, Call] = {"aiohttp": by_aiohttp, "httpx2": by_httpx2, "ours": by_wire}
        return await compared(calls)


async def compared(calls: dict[str, Call]) -> dict[str, float]:
    slices: dict[str, list[float]] = {name: [] for name in calls}
    shuffled, order = random.Random(SEED), list(calls)
    for name in order:
        await sliced(calls[name])
    for _ in range(SLICES):
        shuffled.shuffle(order)
        for name in order:
            slices[name].append(await sliced(calls[name]))
    return {name: median(found) for name, found in slices.items()}


async def sliced(call: Call) -> float:
    """Microseconds of processor time a call."""

    async def several() -> None:
        for _ in range(CALLS // AT_ONCE):
            assert b'"success":true' in await call()

    before = cpu_seconds(os.getpid())
    await asyncio.gather(*(several() for _ in range(AT_ONCE)))
    return (cpu_seconds(os.getpid()) - before) / (CALLS // AT_ONCE * AT_ONCE) * 1e6


if __name__ == "__main__":
    main()
