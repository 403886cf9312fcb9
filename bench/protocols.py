"""Benchmark of event loop stalls while a list of protocols is parsed.

    .venv/bin/python bench/protocols.py

The list is synthetic, with rows of realistic shape and size: one of 10 MB, like the real one, and one of 32
MB, the read limit. Also a protocol's own page with 20 MB of daily figures. A task that sleeps for 5 ms in a
loop measures its delay; the figure is the worst of five runs. As in the server, objects that exist at the
start are excluded from garbage collection.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson
from rich.console import Console
from rich.table import Table

from centgate.providers.defillama_directory import parse_directory, parse_protocol

SEED: Final = 20261121
RUNS: Final = 5
TICK_SECONDS: Final = 0.005
CHAINS: Final = (
    "Ethereum",
    "Base",
    "Arbitrum",
    "OP Mainnet",
    "Polygon",
    "BSC",
    "Avalanche",
    "Solana",
    "Sonic",
)

Parser = Callable[[bytes], Awaitable[Any]]


def main() -> None:
    """Measure all parsers and print a table."""
    gc.collect()
    gc.freeze()
    table = Table("body", "parser", "worst stall", "total time")
    rows = {"list, 10 MB": build_list(10 << 20), "list, 32 MB": build_list(32 << 20)}
    for name, body in rows.items():
        add_row(table, name, "json.loads", body, parse_stdlib)
        add_row(table, name, "orjson in a thread", body, parse_in_thread)
        add_row(table, name, "slices (chosen)", body, parse_directory)
    add_row(table, "page, 20 MB", "json.loads", build_page(20 << 20), parse_stdlib)
    add_row(table, "page, 20 MB", "orjson in a thread", build_page(20 << 20), parse_in_thread)
    add_row(table, "page, 20 MB", "members (chosen)", build_page(20 << 20), parse_members)
    Console().print(table)


def add_row(table: Table, name: str, parser: str, body: bytes, parse: Parser) -> None:
    """Measure a parser on a body, and add a row."""
    stall, total = asyncio.run(measure_stall(body, parse))
    table.add_row(name, parser, f"{stall * 1000:,.0f} ms", f"{total * 1000:,.0f} ms")


async def parse_stdlib(body: bytes) -> Any:
    return json.loads(body)


async def parse_in_thread(body: bytes) -> Any:
    return await asyncio.to_thread(orjson.loads, body)


async def parse_members(body: bytes) -> Any:
    return parse_protocol("invented", body)


async def measure_stall(body: bytes, parse: Parser) -> tuple[float, float]:
    """Return the worst delay of the event loop and the median time to parse the body, in seconds."""
    delays: list[float] = [0.0]
    recorder = asyncio.create_task(record_delays(delays))
    durations: list[float] = []
    await asyncio.sleep(TICK_SECONDS * 4)
    delays.clear()
    for _ in range(RUNS):
        start = time.perf_counter()
        await parse(body)
        durations.append(time.perf_counter() - start)
        await asyncio.sleep(TICK_SECONDS * 4)
    recorder.cancel()
    return max(delays), sorted(durations)[RUNS // 2]


async def record_delays(delays: list[float]) -> None:
    """Append the delay in seconds of each tick, until cancelled."""
    while True:
        start = time.perf_counter()
        await asyncio.sleep(TICK_SECONDS)
        delays.append(time.perf_counter() - start - TICK_SECONDS)


def build_list(size: int) -> bytes:
    """Return a list of protocols of about `size` bytes."""
    rng = random.Random(SEED)
    rows: list[bytes] = []
    while size > 0:
        rows.append(orjson.dumps(build_protocol(rng, len(rows))))
        size -= len(rows[-1]) + 1
    return b"[" + b",".join(rows) + b"]"


def build_protocol(rng: random.Random, number: int) -> dict[str, Any]:
    """Return one row of the list."""
    chains = rng.sample(CHAINS, rng.choice((1, 1, 1, 2, 3, 9)))
    tvls = {chain: rng.random() * 1e8 for chain in chains}
    return {
        "id": str(number),
        "name": f"Invented Protocol {number}",
        "address": f"0x{rng.getrandbits(160):040x}",
        "symbol": rng.choice(("-", f"INV{number}")),
        "url": f"https://protocol-{number}.example/",
        "description": "A protocol that does something with tokens, for which users pay a fee. "
        * rng.randint(1, 8),
        "chain": chains[0] if len(chains) == 1 else "Multi-Chain",
        "logo": f"https://icons.example/invented-protocol-{number}.png",
        "audits": "2",
        "audit_note": None,
        "gecko_id": f"invented-{number}" if rng.random() < 0.3 else None,
        "cmcId": None,
        "category": rng.choice(("Lending", "Dexs", "Yield", "Liquid Staking")),
        "chains": chains,
        "oracles": [],
        "forkedFrom": [],
        "module": f"invented-{number}/index.js",
        "twitter": f"invented_{number}",
        "parentProtocol": f"parent#invented-{number // 3}" if rng.random() < 0.3 else None,
        "audit_links": [f"https://protocol-{number}.example/audit.pdf"],
        "github": [f"invented-{number}"],
        "listedAt": 1_669_265_429,
        "slug": f"invented-protocol-{number}",
        "tvl": sum(tvls.values()),
        "chainTvls": {**tvls, **{f"{chain}-borrowed": 1.5 for chain in chains}, "borrowed": 1.5},
        "change_1h": rng.random(),
        "change_1d": rng.random(),
        "change_7d": rng.random(),
        "tokenBreakdowns": {},
        "mcap": None,
    }


def build_page(size: int) -> bytes:
    """Return a protocol's own page with about `size` bytes of daily figures."""
    rng = random.Random(SEED)
    days = [{"date": 1_741_842_011, "totalLiquidityUSD": rng.random() * 1e9} for _ in range(1000)]
    chain_size = len(orjson.dumps(days))
    series = {f"Chain {number}": {"tvl": days} for number in range(size // chain_size)}
    return orjson.dumps({"name": "Invented", "chainTvls": series, "currentChainTvls": {"Ethereum": 1.0}})


if __name__ == "__main__":
    main()
