"""Stub of the upstreams of token-risk: each responds for any token after a delay.

    python bench/upstreams_stub.py MILLISECONDS

Listens on a free loopback port and prints `ready http://...` on a line of its own. `/<name>/...` responds as
the upstream of that name; `/counts` returns the number of requests by upstream, and resets it.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import orjson
import uvloop
from facilitator_stub import parse_content_length

OWNER = "0x" + "5a" * 20
POOL = "0x" + "6b" * 20
WETH = "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"
HOLDERS = [
    {
        "address": f"0x{number:040x}",
        "tag": "",
        "is_contract": number % 2,
        "balance": "1000",
        "percent": "0.02",
    }
    for number in range(1, 11)
]
FLAGS: dict[str, Any] = {
    **dict.fromkeys(
        ("is_honeypot", "hidden_owner", "can_take_back_ownership", "owner_change_balance", "selfdestruct"),
        "0",
    ),
    **dict.fromkeys(("external_call", "gas_abuse", "cannot_buy", "cannot_sell_all", "is_airdrop_scam"), "0"),
    **dict.fromkeys(("slippage_modifiable", "transfer_pausable", "is_blacklisted", "is_mintable"), "1"),
    **dict.fromkeys(("trading_cooldown", "personal_slippage_modifiable", "anti_whale_modifiable"), "0"),
    **dict.fromkeys(("is_open_source", "is_in_dex"), "1"),
    **dict.fromkeys(("is_proxy", "is_whitelisted", "is_anti_whale", "honeypot_with_same_creator"), "0"),
    **dict.fromkeys(("buy_tax", "sell_tax", "transfer_tax"), "0.03"),
    "owner_address": OWNER,
    "owner_percent": "0.01",
    "owner_balance": "100",
    "creator_address": OWNER,
    "creator_percent": "0.01",
    "creator_balance": "100",
    "holder_count": "4321",
    "total_supply": "10000",
    "token_name": "Benchmark",
    "token_symbol": "BNCH",
    "lp_holder_count": "2",
    "lp_total_supply": "10",
    "holders": HOLDERS,
    "lp_holders": [{**HOLDERS[0], "is_locked": 1, "percent": "0.97"}],
    "dex": [{"liquidity_type": "UniV2", "name": "UniswapV2", "liquidity": "250000", "pair": POOL}],
}


def build_goplus_body(path: str, query: dict[str, str]) -> Any:
    """Return the security flags of a token."""
    return {"code": 1, "message": "OK", "result": {query["contract_addresses"].lower(): FLAGS}}


def build_honeypotis_body(path: str, query: dict[str, str]) -> Any:
    """Return the result of a simulated purchase and sale."""
    return {
        "token": {"name": "Benchmark", "symbol": "BNCH", "decimals": 18, "address": query["address"]},
        "withToken": {"name": "Wrapped Ether", "symbol": "WETH", "decimals": 18, "address": WETH},
        "summary": {"risk": "low", "riskLevel": 5, "flags": []},
        "simulationSuccess": True,
        "honeypotResult": {"isHoneypot": False},
        "simulationResult": {
            "buyTax": 3.01,
            "sellTax": 2.99,
            "transferTax": 0,
            "buyGas": "150000",
            "sellGas": "120000",
        },
        "contractCode": {
            "openSource": True,
            "rootOpenSource": True,
            "isProxy": False,
            "hasProxyCalls": False,
        },
        "pair": {"pair": {"name": "Uniswap V2", "address": POOL}, "liquidity": 250000.5},
        "pairAddress": POOL,
    }


def build_dexscreener_body(path: str, query: dict[str, str]) -> Any:
    """Return five pairs of a token."""
    *_, chain, token = path.split("/")
    return [
        {
            "chainId": chain,
            "dexId": "uniswap",
            "url": f"https://dexscreener.com/{chain}/{POOL}",
            "pairAddress": POOL[:-2] + f"{number:02x}",
            "labels": ["v2"],
            "baseToken": {"address": token, "name": "Benchmark", "symbol": "BNCH"},
            "quoteToken": {"address": WETH, "name": "Wrapped Ether", "symbol": "WETH"},
            "priceNative": "0.0005",
            "priceUsd": "1.25",
            "txns": {"h24": {"buys": 120, "sells": 110}},
            "volume": {"h24": 54321.5},
            "liquidity": {"usd": 250000 / number, "base": 100000 / number, "quote": 50 / number},
            "fdv": 12500,
            "marketCap": 12500,
            "pairCreatedAt": 1704067200000,
        }
        for number in range(1, 6)
    ]


BODY_BUILDERS = {
    "goplus": build_goplus_body,
    "honeypotis": build_honeypotis_body,
    "dexscreener": build_dexscreener_body,
}


class UpstreamConnection(asyncio.Protocol):
    """HTTP/1.1 connection with keep-alive, for GET requests without pipelining."""

    def __init__(self, delay: float, call_counts: Counter[str]) -> None:
        self._buffer = b""
        self._delay, self._call_counts = delay, call_counts

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or len(self._buffer) < end + 4 + parse_content_length(self._buffer[:end]):
            return
        url = urlsplit(self._buffer.split(b" ", 2)[1].decode())
        self._buffer = b""
        if url.path == "/counts":
            self._send_json(dict(self._call_counts))
            self._call_counts.clear()
            return
        name, _, path = url.path.lstrip("/").partition("/")
        self._call_counts[name] += 1
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        body = BODY_BUILDERS[name]("/" + path, query)
        asyncio.get_running_loop().call_later(self._delay, self._send_json, body)

    def _send_json(self, content: Any) -> None:
        body = orjson.dumps(content)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


async def main() -> None:
    """Serve until terminated."""
    delay, call_counts = int(sys.argv[1]) / 1e3, Counter[str]()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: UpstreamConnection(delay, call_counts), "127.0.0.1", 0, backlog=2048
    )
    print(f"ready http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)  # noqa: T201
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
