"""pool-snapshot of pools whose contracts return impossible values, on a fake node."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from buyer import ApiFactory
from fake_upstreams import FakeUpstreams, RecordedRequest, configure_providers, send_paid

from centgate.chains import CHAINS
from centgate.crypto.abi import encode_address, function_selector
from centgate.crypto.token.exchange_tables import EXCHANGES, PRICE_FEEDS, FactoryKind
from centgate.lookups.erc20 import balance_of_call
from centgate.settings import ProviderSettings, Settings

PATH = "/services/pool-snapshot"
POOL, TOKEN = "0x" + "d1" * 20, "0x" + "a1" * 20
WETH = "0x4200000000000000000000000000000000000006"
CODE = "0x6000"


def encode_words(*numbers: int) -> str:
    return "0x" + b"".join(number.to_bytes(32, "big") for number in numbers).hex()


def encode_address_word(address: str) -> int:
    return int(address, 16)


def first_factory(kind: FactoryKind) -> str:
    """Return the first factory of a kind on Base."""
    return next(each.factory for each in EXCHANGES[8453] if each.kind == kind)


@dataclass
class Node:
    """Fake node of Base with these call results, and a price of 2,000 dollars for the native coin."""

    answers: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    codes: dict[str, str] = field(default_factory=dict[str, str])
    delay: float = 0
    """Delay of each answer in seconds."""

    def __post_init__(self) -> None:
        feeds, now = PRICE_FEEDS[8453], int(time.time())
        self.answer(feeds.native_usd, "latestRoundData()", 1, 2_000 * 10**8, now, now, 1)
        self.answer(feeds.sequencer or "", "latestRoundData()", 1, 0, now - 10**6, now, 1)

    def answer(self, to: str, function: str, *numbers: int, arguments: bytes = b"") -> None:
        self.answers[to, "0x" + (function_selector(function) + arguments).hex()] = encode_words(*numbers)

    def set_balances(self, *, tokens: int, coins: int) -> None:
        """Set the pool's balances of tokens and coins."""
        self.answer(TOKEN, "decimals()", 18)
        for token, units in ((TOKEN, tokens), (WETH, coins)):
            call = balance_of_call(token, POOL)
            self.answers[token, "0x" + call.data.hex()] = encode_words(units)

    def add_pair(self, kind: FactoryKind, *, tokens: int, coins: int) -> None:
        """Add a pair with reserves whose contract names the first factory of a kind."""
        self.add_pool(kind, tokens=tokens, coins=coins)
        reserves = (tokens, coins) if TOKEN < WETH else (coins, tokens)
        self.answer(POOL, "getReserves()", *reserves, 0)

    def add_pool(self, kind: FactoryKind, *, tokens: int, coins: int) -> None:
        token0, token1 = sorted((TOKEN, WETH))
        self.answer(POOL, "token0()", encode_address_word(token0))
        self.answer(POOL, "token1()", encode_address_word(token1))
        self.answer(POOL, "factory()", encode_address_word(first_factory(kind)))
        self.set_balances(tokens=tokens, coins=coins)

    def register(self, kind: FactoryKind, function: str, *terms: int, pool: str = POOL) -> None:
        """Let the factory return the pool for its tokens; a real one returns the address 0 if it has none."""
        pair = b"".join(map(encode_address, sorted((TOKEN, WETH))))
        arguments = pair + bytes.fromhex(encode_words(*terms)[2:])
        self.answer(first_factory(kind), function, encode_address_word(pool), arguments=arguments)

    def __call__(self, asked: RecordedRequest) -> tuple[int, Any]:
        time.sleep(self.delay)
        if isinstance(asked.body, dict):
            return 200, self.answer_request(cast(dict[str, Any], asked.body))
        return 200, [self.answer_request(each) for each in cast(list[dict[str, Any]], asked.body)]

    def answer_request(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": request["id"]} | {
            "result": self.result(request["method"], request["params"])
        }

    def result(self, method: str, params: list[Any]) -> str:
        match method:
            case "eth_chainId":
                return hex(8453)
            case "eth_getCode":
                return self.codes.get(params[0], "0x")
            case "eth_call":
                return self.answers.get((params[0]["to"].lower(), params[0]["data"]), "0x")
            case _:
                raise AssertionError(method)


@pytest.fixture
def node(upstreams: FakeUpstreams) -> Node:
    """A fake node without pools."""
    node = Node()
    upstreams.set_response_function("rpc", "/*", node, method="POST")
    return node


@pytest.fixture
def buy(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, node: Node
) -> Callable[..., dict[str, Any]]:
    """Function that buys a snapshot from the chain alone; returns the envelope."""
    nodes = {f"rpc_{chain.id}": ProviderSettings(enabled=False) for chain in CHAINS}
    nodes["rpc_8453"] = ProviderSettings(url=upstreams.url_of("rpc") + "/")
    indexes = {name: ProviderSettings(enabled=False) for name in ("dexscreener", "geckoterminal")}
    client = api(configure_providers(settings, nodes | indexes))

    def buy(**body: Any) -> dict[str, Any]:
        return send_paid(client, PATH, {"chain": "base", **body}).json()

    return buy


def test_impossible_amounts_are_not_quoted(buy: Callable[..., dict[str, Any]], node: Node) -> None:
    node.add_pair("solidly", tokens=10**72, coins=10**5)
    node.answer(POOL, "stable()", 0)
    node.register("solidly", "getPool(address,address,bool)", 0)

    for body in (buy(pairAddress=POOL), buy(tokenAddress=TOKEN)):
        assert body["data"]["pairAddress"] == POOL
        assert body["data"]["saleImpacts"] == [
            {"usd": usd, "lossPercent": None} for usd in (100, 1_000, 10_000)
        ]


def test_pools_with_impossible_terms_are_omitted(buy: Callable[..., dict[str, Any]], node: Node) -> None:
    node.add_pair("solidly", tokens=10**24, coins=10**21)
    node.answer(POOL, "stable()", 0)
    node.answer(
        first_factory("solidly"),
        "getFee(address,bool)",
        2**256 - 1,
        arguments=encode_address(POOL) + bytes(32),
    )
    node.register("solidly", "getPool(address,address,bool)", 0)

    assert buy(pairAddress=POOL)["data"]["feePercent"] is None


def test_contract_unknown_to_its_factory_is_no_pool(buy: Callable[..., dict[str, Any]], node: Node) -> None:
    node.add_pair("v2", tokens=10**18, coins=10**21)

    node.register("v2", "getPair(address,address)", pool="0x0")
    error = buy(pairAddress=POOL)["error"]
    node.register("v2", "getPair(address,address)")
    known = buy(pairAddress=POOL)

    assert error["code"] == "no_data"
    assert known["data"]["pairAddress"] == POOL


@pytest.mark.parametrize("code", ["0x", CODE])
def test_missing_quoter_does_not_mean_impossible_sales(
    buy: Callable[..., dict[str, Any]], node: Node, code: str
) -> None:
    node.add_pool("v3", tokens=10**21, coins=10**21)
    node.answer(POOL, "fee()", 3000)
    node.answer(POOL, "slot0()", 2**96, 0)
    node.register("v3", "getPool(address,address,uint24)", 3000)
    quoter = next(each.quoter for each in EXCHANGES[8453] if each.kind == "v3")
    node.codes[quoter or ""] = code

    body = buy(pairAddress=POOL)

    assert [each["lossPercent"] for each in body["data"]["saleImpacts"]] == (
        [] if code == "0x" else [None] * 3
    )
    warning = "sales could not be quoted: Uniswap v3's quoter is not at this node"
    assert (warning in body["warnings"]) is (code == "0x")


@pytest.mark.parametrize(
    ("delay", "status", "reason"),
    [(0.5, "timeout", "the node did not answer in time"), (0, "error", "the node failed")],
)
def test_missing_confirmation_is_named_with_reason(
    api: ApiFactory,
    settings: Settings,
    upstreams: FakeUpstreams,
    node: Node,
    monkeypatch: pytest.MonkeyPatch,
    *,
    delay: float,
    status: str,
    reason: str,
) -> None:
    if delay:
        monkeypatch.setattr("centgate.lookups.pair_confirmation.MAX_CHAIN_SECONDS", 0.1)
        node.delay = delay
    else:
        upstreams.faults["rpc"] = "500"
    row = {
        "chainId": "base",
        "pairAddress": POOL,
        "baseToken": {"address": TOKEN, "symbol": "TKN"},
        "quoteToken": {"address": WETH, "symbol": "WETH"},
        "priceUsd": "1",
    }
    upstreams.set_response("dexscreener", f"/token-pairs/v1/base/{TOKEN}", [row])
    nodes = {"rpc_8453": ProviderSettings(url=upstreams.url_of("rpc") + "/")}
    client = api(configure_providers(settings, nodes | upstreams.provider_settings("dexscreener")))

    body = send_paid(client, PATH, {"chain": "base", "tokenAddress": TOKEN}).json()

    (source,) = [each for each in body["providers"] if each["name"] == "rpc"]
    assert source["status"] == status
    assert f"chainPriceUsd, saleImpacts and feePercent are not known: {reason}" in body["warnings"]
