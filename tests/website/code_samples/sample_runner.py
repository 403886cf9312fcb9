"""Fake upstreams with minimal data for the services' own examples, and the payer."""

from __future__ import annotations

from typing import Any

from fake_upstreams import FakeUpstreams, RecordedRequest
from pydantic import SecretStr

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.settings import ProviderSettings

PAYER = BUYER_ACCOUNTS[3]
USDC = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
WETH = "0x4200000000000000000000000000000000000006"
PAIR = "0x" + "ab" * 20
ELSEWHERE = ("geckoterminal", "honeypotis", "etherscan", "blockscout", "alchemy", "brave")
"""Providers without data."""
NODE: dict[str, Any] = {
    "eth_chainId": hex(8453),
    "eth_blockNumber": "0x1000000",
    "eth_getBalance": hex(2 * 10**18),
    "eth_getCode": "0x6001",
    "eth_getStorageAt": "0x" + "00" * 32,
    "eth_getTransactionCount": "0x1",
    "eth_getLogs": [],
    "eth_call": "0x",
    "eth_getBlockByNumber": {"number": "0x1000000", "timestamp": "0x69200000", "hash": "0x" + "11" * 32},
}


def fill_upstreams(upstreams: FakeUpstreams) -> dict[str, ProviderSettings]:
    """Fill the fake upstreams, and return the settings with their URLs."""
    _tokens(upstreams)
    _contracts(upstreams)
    _protocols(upstreams)
    _web(upstreams)
    _documentation(upstreams)
    names = ("goplus", "dexscreener", "sourcify", "defillama", *ELSEWHERE)
    keyed = upstreams.provider_settings("exa", "firecrawl", "context7", key=SecretStr("a-key"))
    return {**upstreams.provider_settings(*names), **keyed, **upstreams.provider_settings("rpc_8453")}


def _tokens(upstreams: FakeUpstreams) -> None:
    facts = {"is_open_source": "1", "is_honeypot": "0", "buy_tax": "0", "sell_tax": "0", "holder_count": "9"}
    row = {
        "chainId": "base",
        "dexId": "uniswap",
        "url": f"https://dexscreener.com/base/{PAIR}",
        "pairAddress": PAIR,
        "baseToken": {"address": USDC, "symbol": "USDC"},
        "quoteToken": {"address": WETH, "symbol": "WETH"},
        "priceUsd": "1",
        "priceNative": "0.0005",
        "txns": {"h24": {"buys": 12, "sells": 9}},
        "volume": {"h24": 34_000},
        "liquidity": {"usd": 1_000_000, "base": 500_000, "quote": 250},
        "fdv": 5_000_000,
        "pairCreatedAt": 1_692_212_700_000,
    }
    upstreams.set_response("goplus", "/api/v1/token_security/8453", {"code": 1, "result": {USDC: facts}})
    upstreams.set_response("dexscreener", f"/token-pairs/v1/base/{USDC}", [row])


def _contracts(upstreams: FakeUpstreams) -> None:
    match: dict[str, Any] = {
        "match": "match",
        "runtimeMatch": "match",
        "chainId": "8453",
        "address": USDC,
        "compilation": {"name": "FiatTokenProxy", "language": "Solidity"},
        "proxyResolution": {"isProxy": False, "proxyType": None, "implementations": []},
    }
    upstreams.set_response("sourcify", f"/server/v2/contract/8453/{USDC}", match)
    upstreams.set_response_function("rpc_8453", "/", _node, method="POST")


def _node(asked: RecordedRequest) -> tuple[int, Any]:
    messages: list[dict[str, Any]] | dict[str, Any] = asked.body
    if isinstance(messages, list):
        return 200, [_result(each) for each in messages]
    return 200, _result(messages)


def _result(message: dict[str, Any]) -> dict[str, Any]:
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] not in NODE:
        return {**head, "error": {"code": -32601, "message": "the method does not exist"}}
    return {**head, "result": NODE[message["method"]]}


def _protocols(upstreams: FakeUpstreams) -> None:
    row = {"slug": "aave-v3", "name": "Aave V3", "category": "Lending", "chains": ["Base"], "tvl": 300}
    upstreams.set_response("defillama", "/protocols", [row])


def _web(upstreams: FakeUpstreams) -> None:
    found = {"title": "A page", "url": "https://example.com/", "description": "What it is about."}
    page = {"id": found["url"], "url": found["url"], "title": found["title"], "text": "Text of the page."}
    scraped = {"markdown": "# A page\n\nText of it.", "metadata": {"title": "A page", "statusCode": 200}}
    read = {"results": [page], "statuses": [{"id": found["url"], "status": "success"}]}
    upstreams.set_response(
        "exa", "/search", {"results": [page], "resolvedSearchType": "neural"}, method="POST"
    )
    upstreams.set_response("exa", "/contents", read, method="POST")
    for path, body in {
        "/v2/map": {"success": True, "links": [{"url": "https://docs.python.org/3/library/asyncio.html"}]},
        "/v2/search": {"success": True, "data": {"web": [found]}},
        "/v2/scrape": {"success": True, "data": scraped},
    }.items():
        upstreams.set_response("firecrawl", path, body, method="POST")


def _documentation(upstreams: FakeUpstreams) -> None:
    library = {
        "id": "/fastapi/fastapi",
        "title": "FastAPI",
        "description": "A framework.",
        "totalSnippets": 7,
    }
    snippet = {
        "codeTitle": "Dependencies",
        "codeDescription": "How they are declared.",
        "codeLanguage": "python",
        "codeTokens": 10,
        "codeId": "https://github.com/fastapi/fastapi/blob/master/docs/dependencies.md",
        "pageTitle": "Dependencies",
        "codeList": [{"language": "python", "code": "Depends(f)"}],
    }
    upstreams.set_response("context7", "/api/v2/libs/search", {"results": [library]})
    upstreams.set_response("context7", "/api/v2/context", {"codeSnippets": [snippet], "infoSnippets": []})
