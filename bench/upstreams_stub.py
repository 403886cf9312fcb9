"""The upstreams of token-risk on loopback: each answers for any token, after the delay it is given.

    python bench/upstreams_stub.py MILLISECONDS

Listens on a free loopback port and says `ready http://...` on a line of its own. `/<name>/...` answers as the
upstream of that name; `/counts` says how often each was asked since it was asked last.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import orjson
import uvloop
from facilitator_stub import content_length

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


def goplus(path: str, query: dict[str, str]) -> Any:
    """Token security flags."""
    return {"code": 1, "message": "OK", "result": {query["contract_addresses"].lower(): FLAGS}}


def honeypotis(path: str, query: dict[str, str]) -> Any:
    """A simulated buy and sell."""
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


def dexscreener(path: str, query: dict[str, str]) -> Any:
    """The token's pairs."""
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


ANSWERS = {"goplus": goplus, "honeypotis": honeypotis, "dexscreener": dexscreener}


class Stub(asyncio.Protocol):
    """HTTP/1.1 GET with kept-alive connections, one request at a time on each."""

    def __init__(self, delay: float, asked: Counter[str]) -> None:
        self._received = b""
        self._delay, self._asked = delay, asked

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0 or len(self._received) < end + 4 + content_length(self._received[:end]):
            return
        url = urlsplit(self._received.split(b" ", 2)[1].decode())
        self._received = b""
        if url.path == "/counts":
            self._say(dict(self._asked))
            self._asked.clear()
            return
        name, _, path = url.path.lstrip("/").partition("/")
        self._asked[name] += 1
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        asyncio.get_running_loop().call_later(self._delay, self._say, ANSWERS[name]("/" + path, query))

    def _say(self, content: Any) -> None:
        body = orjson.dumps(content)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


async def main() -> None:
    """Listen until ended."""
    delay, asked = int(sys.argv[1]) / 1e3, Counter[str]()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Stub(delay, asked), "127.0.0.1", 0, backlog=2048)
    print(f"ready http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)  # noqa: T201
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
