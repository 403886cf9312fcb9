"""How long the event loop stands still while a list of protocols is read, in one run.

    .venv/bin/python bench/protocols.py

The list is invented, with rows of the genuine shape and size: one of 10 MB, as the real one is, and one of
32 MB, the most that is read. Beside it, a protocol's own page with 20 MB of daily figures. A task that sleeps
5 ms again and again measures by how much it is late; the figure is the worst of five readings. As in the
server, what is there at the start is kept from the garbage collector.
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
READINGS: Final = 5
TICK: Final = 0.005
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

Reader = Callable[[bytes], Awaitable[Any]]


def main() -> None:
    gc.collect()
    gc.freeze()
    table = Table("body", "how it is read", "worst stall", "whole reading")
    rows = {"list, 10 MB": protocols(10 << 20), "list, 32 MB": protocols(32 << 20)}
    for name, body in rows.items():
        add(table, name, "json.loads", body, plain)
        add(table, name, "orjson in a thread", body, in_a_thread)
        add(table, name, "slices (chosen)", body, parse_directory)
    add(table, "page, 20 MB", "json.loads", page(20 << 20), plain)
    add(table, "page, 20 MB", "orjson in a thread", page(20 << 20), in_a_thread)
    add(table, "page, 20 MB", "members (chosen)", page(20 << 20), members)
    Console().print(table)


def add(table: Table, name: str, way: str, body: bytes, reader: Reader) -> None:
    stall, whole = asyncio.run(measured(body, reader))
    table.add_row(name, way, f"{stall * 1000:,.0f} ms", f"{whole * 1000:,.0f} ms")


async def plain(body: bytes) -> Any:
    return json.loads(body)


async def in_a_thread(body: bytes) -> Any:
    return await asyncio.to_thread(orjson.loads, body)


async def members(body: bytes) -> Any:
    return parse_protocol("invented", body)


async def measured(body: bytes, reader: Reader) -> tuple[float, float]:
    """The worst delay of the meter, and the median time to read the body, in seconds."""
    late: list[float] = [0.0]
    meter = asyncio.create_task(tick(late))
    took: list[float] = []
    await asyncio.sleep(TICK * 4)
    late.clear()
    for _ in range(READINGS):
        start = time.perf_counter()
        await reader(body)
        took.append(time.perf_counter() - start)
        await asyncio.sleep(TICK * 4)
    meter.cancel()
    return max(late), sorted(took)[READINGS // 2]


async def tick(late: list[float]) -> None:
    while True:
        start = time.perf_counter()
        await asyncio.sleep(TICK)
        late.append(time.perf_counter() - start - TICK)


def protocols(size: int) -> bytes:
    """A list of protocols of about this many bytes."""
    chance = random.Random(SEED)
    rows: list[bytes] = []
    while size > 0:
        rows.append(orjson.dumps(protocol(chance, len(rows))))
        size -= len(rows[-1]) + 1
    return b"[" + b",".join(rows) + b"]"


def protocol(chance: random.Random, number: int) -> dict[str, Any]:
    chains = chance.sample(CHAINS, chance.choice((1, 1, 1, 2, 3, 9)))
    tvls = {chain: chance.random() * 1e8 for chain in chains}
    return {
        "id": str(number),
        "name": f"Invented Protocol {number}",
        "address": f"0x{chance.getrandbits(160):040x}",
        "symbol": chance.choice(("-", f"INV{number}")),
        "url": f"https://protocol-{number}.example/",
        "description": "A protocol that does something with tokens, for which users pay a fee. "
        * chance.randint(1, 8),
        "chain": chains[0] if len(chains) == 1 else "Multi-Chain",
        "logo": f"https://icons.example/invented-protocol-{number}.png",
        "audits": "2",
        "audit_note": None,
        "gecko_id": f"invented-{number}" if chance.random() < 0.3 else None,
        "cmcId": None,
        "category": chance.choice(("Lending", "Dexs", "Yield", "Liquid Staking")),
        "chains": chains,
        "oracles": [],
        "forkedFrom": [],
        "module": f"invented-{number}/index.js",
        "twitter": f"invented_{number}",
        "parentProtocol": f"parent#invented-{number // 3}" if chance.random() < 0.3 else None,
        "audit_links": [f"https://protocol-{number}.example/audit.pdf"],
        "github": [f"invented-{number}"],
        "listedAt": 1_669_265_429,
        "slug": f"invented-protocol-{number}",
        "tvl": sum(tvls.values()),
        "chainTvls": {**tvls, **{f"{chain}-borrowed": 1.5 for chain in chains}, "borrowed": 1.5},
        "change_1h": chance.random(),
        "change_1d": chance.random(),
        "change_7d": chance.random(),
        "tokenBreakdowns": {},
        "mcap": None,
    }


def page(size: int) -> bytes:
    """A protocol's own page, about this many bytes of it daily figures."""
    chance = random.Random(SEED)
    days = [{"date": 1_741_842_011, "totalLiquidityUSD": chance.random() * 1e9} for _ in range(1000)]
    one = len(orjson.dumps(days))
    series = {f"Chain {number}": {"tvl": days} for number in range(size // one)}
    return orjson.dumps({"name": "Invented", "chainTvls": series, "currentChainTvls": {"Ethereum": 1.0}})


if __name__ == "__main__":
    main()
