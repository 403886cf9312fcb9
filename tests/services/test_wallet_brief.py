"""wallet-brief through the paid API: every chain and source, and failures of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import httpx
import pytest
from buyer import ApiFactory, Buyer
from fake_upstreams import (
    FAULTS,
    FakeUpstreams,
    Fault,
    RecordedRequest,
    configure_providers,
    send_paid,
    serve_prices,
)
from pydantic import SecretStr

from centgate.devchain.devnet import DevChain
from centgate.devchain.rpc_client import call_rpc
from centgate.settings import ProviderSettings, Settings

BRIEF = "/services/wallet-brief"
KEY = "sk-alchemy-1234567890"
WALLET = "0x" + "aa" * 20
FRIEND = "0xb0b1" + "00" * 16 + "c0c1"
IMPOSTOR = "0xb0b1" + "77" * 16 + "c0c1"
ZERO = "0x" + "00" * 20
SPAM = "0x" + "5c" * 20
GEM = "0x" + "9e" * 20
SLUGS = {1: "ethereum", 8453: "base", 56: "bsc", 137: "polygon", 42161: "arbitrum", 10: "optimism"}
NATIVE = {1: "ETH", 8453: "ETH", 56: "BNB", 137: "POL", 42161: "ETH", 10: "ETH"}
USDC = {
    1: "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48",
    8453: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
    56: "0x8ac76a51cc950d9822d68b83fe1ad97b32cd580d",
    137: "0x3c499c542cef5e3811e1192ce70d8cc03d5c3359",
    42161: "0xaf88d065e77c8cc2239327c5edb3a432268e5831",
    10: "0x0b2c639c533813f4aa9d7837caf62653d097ff85",
}
MULTICALL = "0xca11bde05977b3631167028862be2a173976ca11"
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
SOME_FAULTS: tuple[Fault, ...] = ("timeout", "429", "403 page", "wrong types", "reset")
"""One fault of each kind; the tests of the providers use all."""

Result = Callable[[list[Any]], Any]


class MethodError(Exception):
    """Error of a JSON-RPC method."""


def serve_rpc(upstreams: FakeUpstreams, name: str, path: str, methods: Mapping[str, Result]) -> None:
    """Answer JSON-RPC requests, single and in batches."""

    def one(request: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            return answer | {"result": methods[request["method"]](request["params"])}
        except (MethodError, KeyError) as refused:
            return answer | {"error": {"code": -32000, "message": f"not here: {refused}"}}

    def answer(asked: RecordedRequest) -> tuple[int, Any]:
        if isinstance(asked.body, list):
            return 200, [one(request) for request in cast(list[dict[str, Any]], asked.body)]
        return 200, one(asked.body)

    upstreams.set_response_function(name, path, answer, method="POST")


def encode_word(value: int | str) -> str:
    """Return 32 bytes as hex digits."""
    number = int(value, 16) if isinstance(value, str) else value
    return f"{number:064x}"


def encode_string(text: str) -> str:
    """Return the ABI encoding of a token's name."""
    raw = text.encode().hex()
    return "0x" + encode_word(32) + encode_word(len(text.encode())) + raw.ljust(-(-len(raw) // 64) * 64, "0")


def alchemy_balances(amounts: Mapping[str, int]) -> dict[str, Result]:
    """Return Alchemy's response on the tokens of a wallet."""
    rows = [
        {"contractAddress": token, "tokenBalance": "0x" + encode_word(amount)}
        for token, amount in amounts.items()
    ]
    return {"alchemy_getTokenBalances": lambda _params: {"address": WALLET, "tokenBalances": rows}}


def alchemy_transfer(number: int, **more: Any) -> dict[str, Any]:
    """Return a transfer in Alchemy's format: 1 USDC from a friend."""
    return {
        "blockNum": hex(number),
        "uniqueId": f"0x{number:064x}:log:0x1",
        "hash": f"0x{number:064x}",
        "from": FRIEND,
        "to": WALLET,
        "asset": "USDC",
        "category": "erc20",
        "rawContract": {"value": hex(10**6), "address": USDC[1], "decimal": "0x6"},
        "metadata": {"blockTimestamp": f"2026-11-02T10:15:{number % 60:02}.000Z"},
    } | more


def alchemy_coin_transfer(number: int, wei: int, **more: Any) -> dict[str, Any]:
    """Return a transfer of the native coin in Alchemy's format."""
    raw = {"value": hex(wei), "address": None, "decimal": "0x12"}
    return alchemy_transfer(number, category="external", asset="ETH", rawContract=raw, **more)


def moves_any(row: dict[str, Any]) -> bool:
    """True if a transfer in Alchemy's format is not of 0."""
    return int(row["rawContract"]["value"], 16) > 0


def serve_alchemy(
    upstreams: FakeUpstreams,
    amounts: Mapping[str, int] | None = None,
    transfers: list[dict[str, Any]] | None = None,
    names: Mapping[str, tuple[str | None, str | None, int | None]] | None = None,
    **methods: Result,
) -> None:
    """Serve Alchemy's data about the wallet: 1.25 of the native coin, and the given data."""

    def metadata(params: list[Any]) -> Any:
        symbol, name, decimals = (names or {})[params[0]]
        return {"symbol": symbol, "name": name, "decimals": decimals, "logo": None}

    def side(params: list[Any]) -> Any:
        (query,) = params
        (own,) = {"fromAddress", "toAddress"} & query.keys()
        rows = [row for row in transfers or [] if row[own.removesuffix("Address")] == query[own]]
        if query["order"] == "desc":
            return {"transfers": rows}
        coins = [row for row in rows if row["category"] in query["category"] and moves_any(row)]
        return {"transfers": sorted(coins, key=lambda row: int(row["blockNum"], 16))[:1]}

    known: dict[str, Result] = {
        "eth_getBalance": lambda _params: hex(125 * 10**16),
        "alchemy_getTokenMetadata": metadata,
        "alchemy_getAssetTransfers": side,
        **alchemy_balances(amounts or {}),
        **methods,
    }
    serve_rpc(upstreams, "alchemy", f"/v2/{KEY}", known)


def serve_blockscout(
    upstreams: FakeUpstreams,
    tokens: list[dict[str, Any]] | None = None,
    transfers: list[dict[str, Any]] | None = None,
    transactions: list[dict[str, Any]] | None = None,
    oldest: list[dict[str, Any]] | None = None,
    **more: Any,
) -> None:
    """Serve Blockscout's lists of the wallet; `oldest` are the first transactions to it."""
    listed = (
        {"message": "OK", "status": "1"} if oldest else {"message": "No transactions found", "status": "0"}
    )
    upstreams.set_response("blockscout", "/api", listed | {"result": oldest or []})
    at = f"/api/v2/addresses/{WALLET}"
    upstreams.set_response(
        "blockscout", at, {"hash": WALLET, "coin_balance": "77", "exchange_rate": "2000.5"}
    )
    upstreams.set_response(
        "blockscout", f"{at}/tokens", {"items": tokens or [], "next_page_params": None, **more}
    )
    upstreams.set_response(
        "blockscout", f"{at}/token-transfers", {"items": transfers or [], "next_page_params": None}
    )
    upstreams.set_response(
        "blockscout", f"{at}/transactions", {"items": transactions or [], "next_page_params": None}
    )
    upstreams.set_response(
        "blockscout", f"{at}/internal-transactions", {"items": [], "next_page_params": None}
    )


def blockscout_token(token: str, amount: int, **more: Any) -> dict[str, Any]:
    """Return a token row in Blockscout's format."""
    told = {
        "address_hash": token,
        "symbol": "USDC",
        "name": "USD Coin",
        "decimals": "6",
        "type": "ERC-20",
        **more,
    }
    return {"token": told, "value": str(amount), "token_id": None}


class Node:
    """Fake JSON-RPC node with balances and events set by a test."""

    def __init__(self, upstreams: FakeUpstreams, *, name: str = "rpc") -> None:
        self.wei = 3 * 10**18
        self.code = "0x"
        self.sanctioned = 0
        self.has_calls = True
        self.height = 60_000
        self.balances: dict[str, int | None] = {}
        self.names: dict[str, tuple[str, str, int]] = {}
        self.logs: list[dict[str, Any]] = []
        self.gives_logs = True
        methods: dict[str, Result] = {
            "eth_getBalance": lambda _params: hex(self.wei),
            "eth_blockNumber": lambda _params: hex(self.height),
            "eth_getCode": lambda _params: self.code,
            "eth_getTransactionCount": lambda _params: "0x7",
            "eth_getStorageAt": lambda _params: "0x" + encode_word(0),
            "eth_getBlockByNumber": self._block,
            "eth_call": self._call,
            "eth_getLogs": self._logs,
        }
        serve_rpc(upstreams, name, "/", methods)

    def add_transfer(self, token: str, sender: str, recipient: str, amount: int, *, block: int) -> None:
        """Add the event of a transfer."""
        self.logs.append(
            {
                "address": token,
                "topics": [TRANSFER, "0x" + encode_word(sender), "0x" + encode_word(recipient)],
                "data": "0x" + encode_word(amount),
                "blockNumber": hex(block),
                "logIndex": hex(len(self.logs)),
                "transactionHash": "0x" + encode_word(block),
            }
        )

    def _block(self, params: list[Any]) -> Any:
        if params[0] == "latest":
            return {"number": hex(self.height), "timestamp": hex(int(time.time()))}
        number = int(params[0], 16)
        return {"number": hex(number), "timestamp": hex(1_790_000_000 + number)}

    def _call(self, params: list[Any]) -> Any:
        if not self.has_calls:
            return 5
        token, data = params[0]["to"], params[0]["data"]
        if token == MULTICALL:
            return "0x"
        if data.startswith("0x70a08231"):
            if (balance := self.balances.get(token, 0)) is None:
                raise MethodError("execution reverted")
            return "0x" + encode_word(balance)
        if data.startswith("0xdf592f7d"):
            return "0x" + encode_word(self.sanctioned)
        if data.startswith("0x0178b8bf"):  # resolver(bytes32): no address has a Basename
            return "0x" + encode_word(0)
        if data.startswith("0x4ec3bd23"):  # nameForAddr(address), at ENS' registrar
            return encode_string("")
        if token not in self.names:
            raise MethodError("execution reverted")
        symbol, name, decimals = self.names[token]
        return {
            "0x95d89b41": encode_string(symbol),
            "0x06fdde03": encode_string(name),
            "0x313ce567": "0x" + encode_word(decimals),
            "0x18160ddd": "0x" + encode_word(2**256 - 1),
        }[data]

    def _logs(self, params: list[Any]) -> Any:
        if not self.gives_logs:
            raise MethodError("this node has no logs")
        query = params[0]
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        return [
            log
            for log in self.logs
            if first <= int(log["blockNumber"], 16) <= last
            and all(want in (None, has) for want, has in zip(query["topics"], log["topics"], strict=False))
        ]


def configure_sources(upstreams: FakeUpstreams, settings: Settings, *names: str) -> Settings:
    """Return settings with fake upstreams for these sources only; no others can be reached."""
    nodes = {
        f"rpc_{chain}": ProviderSettings(url="http://127.0.0.1:9", enabled="rpc" in names) for chain in SLUGS
    }
    if "rpc" in names:
        nodes = upstreams.provider_settings(*nodes) and {
            name: ProviderSettings(url=upstreams.url_of("rpc") + "/") for name in nodes
        }
    off = {
        name: ProviderSettings(enabled=False)
        for name in ("alchemy", "blockscout", "defillama")
        if name not in names
    }
    there = upstreams.provider_settings(*names)
    if "alchemy" in names:
        there |= upstreams.provider_settings("alchemy", key=SecretStr(KEY))
    there["rpc"] = ProviderSettings(**upstreams.time_limit("rpc"))
    return configure_providers(settings, {**off, **there, **nodes})


def buy_brief(client: httpx.Client, chain: int, wallet: str = WALLET) -> dict[str, Any]:
    """Buy the answer about a wallet and return its envelope."""
    response = send_paid(client, BRIEF, {"chainId": chain, "walletAddress": wallet})
    assert response.status_code == 200, response.text
    return response.json()


def provider_statuses(answer: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["status"] for each in answer["providers"]}


@pytest.mark.parametrize(
    ("age", "warned"), [(3500, False), (3700, True)], ids=["within the hour", "older than an hour"]
)
def test_old_price_is_reported(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, *, age: int, warned: bool
) -> None:
    serve_alchemy(upstreams, {GEM: 10**18}, [], {GEM: ("GEM", "A gem", 18)})
    serve_prices(upstreams, {ZERO: 3000, GEM: 100}, quoted_at=time.time() - age, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "defillama"))

    warnings = buy_brief(client, 1)["warnings"]

    old = [each for each in warnings if "older than an hour" in each]
    assert bool(old) is warned
    assert all("the native coin" in each and GEM in each for each in old)


def test_alchemy_with_key_gives_all_data(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    Node(upstreams)
    serve_alchemy(
        upstreams,
        {SPAM: 10**24, GEM: 5 * 10**18, USDC[1]: 42_500_000},
        [alchemy_transfer(1), alchemy_coin_transfer(2, 10**18, **{"from": WALLET, "to": FRIEND})],
        {SPAM: ("GIFT", "Visit example.com to claim", 18), GEM: ("GEM", "A gem\n", 18)},
    )
    quoted_at = datetime.now(UTC).replace(microsecond=0)
    serve_prices(
        upstreams,
        {ZERO: 3000, USDC[1]: 1, GEM: 100, SPAM: 50},
        quoted_at=quoted_at.timestamp(),
        chain=SLUGS[1],
    )
    client = api(configure_sources(upstreams, settings, "alchemy", "rpc", "defillama"))

    answer = buy_brief(client, 1)

    data = answer["data"]
    assert list(data) == [
        "nativeBalance",
        "tokenBalances",
        "recentTransfers",
        "suspiciousTokenNotes",
        "account",
        "total",
    ]
    assert data["account"] == {
        "kind": "wallet",
        "delegateAddress": None,
        "safeThreshold": None,
        "safeOwners": None,
        "safeHasModules": None,
        "transactionCount": 7,
        "name": None,
        "sanctioned": False,
        "firstFunding": None,
    }
    assert data["nativeBalance"] == {
        "symbol": "ETH",
        "amountBaseUnits": "1250000000000000000",
        "decimals": 18,
        "amount": 1.25,
        "worth": {
            "priceUsd": 3000,
            "valueUsd": 3750,
            "confidence": 0.99,
            "doubtful": False,
            "pricedAt": quoted_at.isoformat().replace("+00:00", "Z"),
            "source": "defillama",
        },
        "source": "alchemy",
    }
    gem, usdc = data["tokenBalances"]
    assert (gem["symbol"], gem["name"], gem["worth"]["valueUsd"]) == ("GEM", "A gem", 500)
    assert (usdc["symbol"], usdc["amountBaseUnits"], usdc["amount"]) == ("USDC", "42500000", 42.5)
    out, into = data["recentTransfers"]
    assert (out["direction"], out["counterparty"], out["symbol"], out["amount"]) == ("out", FRIEND, "ETH", 1)
    assert (into["direction"], into["tokenAddress"], into["amountBaseUnits"]) == ("in", USDC[1], "1000000")
    assert into["at"] == "2026-11-02T10:15:01Z"
    total = data["total"]
    assert (total["usd"], total["suspiciousCount"], total["unpricedCount"]) == (4292.5, 1, 0)
    (spam,) = data["suspiciousTokenNotes"]
    assert (spam["tokenAddress"], spam["symbol"]) == (SPAM, "GIFT")
    assert {reason["id"] for reason in spam["reasons"]} == {"link_in_name", "reward_bait"}
    assert answer["warnings"] == []
    assert provider_statuses(answer) == {
        "alchemy": "ok",
        "blockscout": "unconfigured",
        "rpc": "ok",
        "defillama": "ok",
    }
    assert len(upstreams.requests_of("defillama")) == 1


def test_first_funding_is_oldest_transfer_of_coins(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    serve_alchemy(
        upstreams,
        transfers=[
            alchemy_coin_transfer(5, 10**18, **{"from": IMPOSTOR}),
            alchemy_coin_transfer(4, 25 * 10**16),
            alchemy_coin_transfer(3, 0, **{"from": IMPOSTOR}),
            alchemy_transfer(2, **{"from": IMPOSTOR}),
        ],
    )
    serve_prices(upstreams, {}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "defillama"))

    account = buy_brief(client, 1)["data"]["account"]

    assert account["firstFunding"] == {
        "at": "2026-11-02T10:15:04Z",
        "transactionHash": f"0x{4:064x}",
        "blockNumber": 4,
        "fromAddress": FRIEND,
        "amountBaseUnits": "250000000000000000",
        "amount": 0.25,
        "source": "alchemy",
    }
    assert account["kind"] == "unknown", "no node is needed"


@pytest.mark.parametrize("alchemy", ["unconfigured", "down"])
def test_blockscout_tells_first_funding_without_alchemy(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, alchemy: str
) -> None:
    Node(upstreams)
    funding = {
        "blockNumber": "7",
        "from": FRIEND,
        "hash": "0x" + "4f" * 32,
        "isError": "0",
        "timeStamp": "1761942001",
        "to": WALLET,
        "value": "5",
    }
    serve_blockscout(upstreams, oldest=[funding])
    serve_prices(upstreams, {}, chain=SLUGS[8453])
    names = ("blockscout", "rpc", "defillama", *(["alchemy"] if alchemy == "down" else []))
    upstreams.faults["alchemy"] = "500"
    client = api(configure_sources(upstreams, settings, *names))

    answer = buy_brief(client, 8453)

    found = answer["data"]["account"]["firstFunding"]
    assert (found["fromAddress"], found["amountBaseUnits"], found["source"]) == (FRIEND, "5", "blockscout")
    assert found["at"] == "2025-10-31T20:20:01Z"
    replaced = "a fallback source was used: the first funding is from Blockscout"
    assert (replaced in answer["warnings"]) == (alchemy == "down")
    assert provider_statuses(answer)["blockscout"] == "ok"
    assert len([each for each in upstreams.requests_of("blockscout") if each.path == "/api"]) == 1


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [("refused", "no source returned it"), ("slow", "no source answered within 0.5 s")],
)
def test_unknown_first_funding_affects_nothing_else(
    api: ApiFactory,
    settings: Settings,
    upstreams: FakeUpstreams,
    monkeypatch: pytest.MonkeyPatch,
    trouble: str,
    reason: str,
) -> None:
    def list_transfers(params: list[Any]) -> Any:
        if params[0]["order"] == "desc":
            return {"transfers": [alchemy_transfer(1)] if "toAddress" in params[0] else []}
        if trouble == "refused":
            raise MethodError("too expensive")
        time.sleep(3)
        return {"transfers": []}

    if trouble == "slow":
        monkeypatch.setattr("centgate.services.wallet_brief.MAX_ACCOUNT_SECONDS", 0.5)
    serve_alchemy(upstreams, {USDC[1]: 5}, alchemy_getAssetTransfers=list_transfers)
    serve_prices(upstreams, {USDC[1]: 1}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "defillama"))

    answer = buy_brief(client, 1)

    assert answer["data"]["account"]["firstFunding"] is None
    assert len(answer["data"]["recentTransfers"]) == len(answer["data"]["tokenBalances"]) == 1
    assert f"the first funding of the wallet is unknown: {reason}" in answer["warnings"]
    assert provider_statuses(answer)["alchemy"] == "ok", "the rest of the answer is complete"


def test_poisoned_history_is_marked(api: ApiFactory, settings: Settings, upstreams: FakeUpstreams) -> None:
    nothing = {"value": "0x0", "address": USDC[1], "decimal": "0x6"}
    counterfeit = {"value": hex(10**9), "address": SPAM, "decimal": "0x6"}
    serve_alchemy(
        upstreams,
        transfers=[
            alchemy_transfer(5, asset="USDC", rawContract=counterfeit, **{"from": IMPOSTOR}),
            alchemy_transfer(4, rawContract=nothing, **{"from": IMPOSTOR}),
            alchemy_coin_transfer(3, 0, **{"from": IMPOSTOR}),
            alchemy_coin_transfer(2, 0, **{"from": WALLET, "to": GEM}),
            alchemy_transfer(1, **{"from": WALLET, "to": FRIEND}),
        ],
    )
    serve_prices(upstreams, {USDC[1]: 1}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "defillama"))

    transfers = buy_brief(client, 1)["data"]["recentTransfers"]

    assert [each["blockNumber"] for each in transfers] == [5, 4, 3, 1], "a call without value is no transfer"
    notes = [{note["id"]: note["value"] for note in each["notes"]} for each in transfers]
    assert notes[0] == {"lookalike_counterparty": FRIEND, "imitates_known_symbol": "USDC"}
    assert notes[1] == {"lookalike_counterparty": FRIEND, "zero_value": "0"}
    assert notes[2] == {"lookalike_counterparty": FRIEND, "zero_value": "0"}
    assert notes[3] == {}


@pytest.mark.extended
def test_ten_best_of_each_are_returned(api: ApiFactory, settings: Settings, upstreams: FakeUpstreams) -> None:
    tokens = [f"0x{number:040x}" for number in range(0x2000, 0x2000 + 15)]
    Node(upstreams)
    serve_alchemy(
        upstreams,
        dict.fromkeys(tokens, 10**18),
        [alchemy_transfer(number) for number in range(1, 16)],
        {token: (f"T{place:02}", "Token", 18) for place, token in enumerate(tokens)},
    )
    usd: dict[str, Any] = {token: place for place, token in enumerate(tokens[:8], start=1)}
    serve_prices(
        upstreams,
        usd | {ZERO: 3000, tokens[8]: (10**6, 0.3), tokens[9]: ("NaN", 0.99), tokens[10]: -1},
        chain=SLUGS[1],
    )
    client = api(configure_sources(upstreams, settings, "alchemy", "rpc", "defillama"))

    answer = buy_brief(client, 1)

    balances = answer["data"]["tokenBalances"]
    assert [each["symbol"] for each in balances] == [
        *("T07", "T06", "T05", "T04", "T03", "T02", "T01", "T00"),
        *("T08", "T09"),
    ], "doubtful values follow confident ones, then tokens without a price by symbol"
    assert (balances[8]["worth"]["doubtful"], balances[8]["worth"]["confidence"]) == (True, 0.3)
    assert balances[9]["worth"] is None
    assert answer["warnings"] == [f"doubtful prices, ranked after the others: {tokens[8]}"]
    assert answer["data"]["total"] == {
        "usd": 3750 + sum(range(1, 9)),
        "doubtfulUsd": 10**6,
        "unpricedCount": 6,
        "unlistedCount": 5,
        "unlistedUsd": None,
        "uncheckedCount": 0,
        "suspiciousCount": 0,
    }
    assert [each["blockNumber"] for each in answer["data"]["recentTransfers"]] == list(range(15, 5, -1))


@pytest.mark.extended
def test_tokens_without_metadata_are_counted(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    tokens = [f"0x{number:040x}" for number in range(0x2000, 0x2000 + 40)]
    Node(upstreams)
    serve_alchemy(
        upstreams,
        dict.fromkeys([*tokens, USDC[1]], 10**18),
        names=dict.fromkeys(tokens, ("TKN", "Token", 18)),
    )
    serve_prices(upstreams, {ZERO: 3000, tokens[-1]: 7}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "rpc", "defillama"))

    answer = buy_brief(client, 1)

    assert answer["warnings"] == ["10 further tokens of the wallet were not checked"]
    assert answer["data"]["tokenBalances"][0]["tokenAddress"] == tokens[-1], (
        "metadata of a priced token is read"
    )
    assert answer["data"]["total"]["uncheckedCount"] == 10
    batches = [each.body for each in upstreams.requests_of("alchemy") if not isinstance(each.body, dict)]
    assert [len(batch) for batch in batches] == [30]


@pytest.mark.extended
def test_any_amount_is_answered(api: ApiFactory, settings: Settings, upstreams: FakeUpstreams) -> None:
    tokens: dict[str, int | None] = {GEM: 0, SPAM: 255, FRIEND: None}
    serve_alchemy(
        upstreams,
        dict.fromkeys(tokens, 2**256 - 1),
        names={token: ("GEM", "Gem", decimals) for token, decimals in tokens.items()},
    )
    serve_prices(upstreams, dict.fromkeys(tokens, 1e15), chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "defillama"))

    balances = buy_brief(client, 1)["data"]["tokenBalances"]

    assert {each["tokenAddress"]: each["decimals"] for each in balances} == tokens
    for each in balances:
        assert each["amountBaseUnits"] == str(2**256 - 1)
        assert (each["amount"] is None) == (each["decimals"] is None)
        assert (each["worth"] is None) == (each["decimals"] != 255), "no value exceeds all wealth"


@pytest.mark.extended
def test_blockscout_and_node_answer_without_key(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    Node(upstreams)
    serve_blockscout(
        upstreams,
        [
            blockscout_token(USDC[8453], 42_500_000, exchange_rate="0.9"),
            blockscout_token(GEM, 2, symbol="GEM", name="Gem", decimals="0", exchange_rate="30"),
            blockscout_token(SPAM, 5, symbol="OK", name="Okay", reputation="scam"),
            blockscout_token(IMPOSTOR, 5, type="ERC-721"),
            {"token": None, "value": "1"},
        ],
        [
            {
                "from": {"hash": FRIEND},
                "to": {"hash": WALLET.upper().replace("0X", "0x")},
                "token": {"address": USDC[8453], "symbol": "USDC", "decimals": "6", "type": "ERC-20"},
                "total": {"decimals": "6", "value": "1000000"},
                "tx_hash": "0x" + "1f" * 32,
                "timestamp": "2026-11-02T10:15:47.000000Z",
                "log_index": "7",
            }
        ],
        [
            {
                "hash": "0x" + "2f" * 32,
                "from": {"hash": WALLET},
                "to": {"hash": FRIEND},
                "value": "1000",
                "status": "ok",
                "result": "success",
                "timestamp": "2026-11-03T10:15:47.000000Z",
                "block_number": 12,
            },
            {"hash": "0x" + "3f" * 32, "from": {"hash": WALLET}, "to": None, "value": "5", "status": "error"},
        ],
    )
    serve_prices(upstreams, {ZERO: 3000, USDC[8453]: 1}, chain=SLUGS[8453])
    client = api(configure_sources(upstreams, settings, "blockscout", "rpc", "defillama"))

    answer = buy_brief(client, 8453)

    data = answer["data"]
    assert (data["nativeBalance"]["amountBaseUnits"], data["nativeBalance"]["source"]) == (
        str(3 * 10**18),
        "rpc",
    )
    gem, usdc = [
        (each["symbol"], each["worth"]["valueUsd"], each["worth"]["source"]) for each in data["tokenBalances"]
    ][::-1]
    assert (usdc, gem) == (("GEM", 60, "blockscout"), ("USDC", 42.5, "defillama"))
    assert [each["amountBaseUnits"] for each in data["recentTransfers"]] == ["1000", "1000000"]
    assert data["recentTransfers"][1]["at"] == "2026-11-02T10:15:47Z"
    (spam,) = data["suspiciousTokenNotes"]
    assert spam["reasons"][0]["id"] == "flagged_by_source"
    assert spam["reasons"][0]["source"] == "blockscout"
    assert answer["warnings"] == ["Blockscout: 1 of 4 balances could not be read and are left out"]
    assert provider_statuses(answer) == {
        "alchemy": "unconfigured",
        "blockscout": "ok",
        "rpc": "ok",
        "defillama": "ok",
    }


@pytest.mark.extended
def test_wallet_unknown_to_blockscout_has_no_invented_data(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    at = f"/api/v2/addresses/{WALLET}"
    for path in (at, f"{at}/tokens", f"{at}/token-transfers", f"{at}/transactions"):
        upstreams.set_response("blockscout", path, {"message": "Not found"}, status=404)
    serve_prices(upstreams, {}, chain=SLUGS[8453])
    client = api(configure_sources(upstreams, settings, "blockscout", "defillama"))

    answer = buy_brief(client, 8453)

    data = answer["data"]
    native = data["nativeBalance"]
    assert [native[name] for name in ("amountBaseUnits", "amount", "worth", "source")] == [None] * 4
    assert "the native balance is unknown: no source returned it" in answer["warnings"]
    assert data["tokenBalances"] == data["recentTransfers"] == data["suspiciousTokenNotes"] == []


@pytest.mark.extended
def test_bsc_is_read_from_chain_with_coverage(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    node = Node(upstreams)
    node.balances = {USDC[56]: 25 * 10**17, GEM: 10**18, SPAM: 10**18}
    node.names = {GEM: ("GEM", "Gem", 18), SPAM: ("FREE", "claim at t.me/free", 18)}
    node.add_transfer(GEM, FRIEND, WALLET, 10**18, block=59_000)
    node.add_transfer(SPAM, FRIEND, WALLET, 10**18, block=59_001)
    node.add_transfer(USDC[56], WALLET, WALLET, 5, block=59_002)
    node.add_transfer(IMPOSTOR, WALLET, FRIEND, 9, block=59_003)
    node.add_transfer(GEM, FRIEND, WALLET, 10**18, block=50_000)
    serve_prices(upstreams, {ZERO: 600, USDC[56]: 1}, chain=SLUGS[56])
    client = api(configure_sources(upstreams, settings, "rpc", "defillama"))

    answer = buy_brief(client, 56)

    data = answer["data"]
    assert (data["nativeBalance"]["symbol"], data["nativeBalance"]["worth"]["valueUsd"]) == ("BNB", 1800)
    assert [(each["symbol"], each["amount"]) for each in data["tokenBalances"]] == [("USDC", 2.5), ("GEM", 1)]
    rows = [(each["blockNumber"], each["direction"], each["symbol"]) for each in data["recentTransfers"]]
    assert rows == [
        (59_003, "out", None),
        (59_002, "self", "USDC"),
        (59_001, "in", "FREE"),
        (59_000, "in", "GEM"),
    ]
    assert data["recentTransfers"][0]["at"] == "2026-09-22T06:36:43Z"
    assert [each["tokenAddress"] for each in data["suspiciousTokenNotes"]] == [SPAM]
    funding, *partial, nameless = answer["warnings"]
    assert funding.startswith("the first funding of the wallet is unknown: neither Alchemy nor Blockscout is")
    assert data["account"]["firstFunding"] is None
    assert ["blocks 55001 to 60000" in warning for warning in partial] == [True, True]
    assert nameless.startswith("1 tokens have neither a known name nor a symbol")
    assert provider_statuses(answer)["blockscout"] == "unconfigured"


def test_tokens_that_were_not_read_are_warned_of(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    node = Node(upstreams)
    node.balances = {USDC[56]: None, GEM: 10**18}
    node.add_transfer(GEM, FRIEND, WALLET, 10**18, block=59_000)
    for number in range(102):
        node.add_transfer(f"0x{number + 0x10000:040x}", FRIEND, WALLET, 1, block=59_001)
    serve_prices(upstreams, {}, chain=SLUGS[56])
    client = api(configure_sources(upstreams, settings, "rpc", "defillama"))

    answer = buy_brief(client, 56)

    assert answer["data"]["tokenBalances"] == []
    assert "the balances of 3 tokens were not read: those that moved longest ago" in answer["warnings"]
    assert "the balances of 1 tokens could not be read from the chain" in answer["warnings"]


@pytest.mark.extended
def test_node_without_logs_gives_known_tokens(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    node = Node(upstreams)
    node.balances = {USDC[56]: 25 * 10**17}
    node.gives_logs = False
    serve_prices(upstreams, {}, chain=SLUGS[56])
    client = api(configure_sources(upstreams, settings, "rpc", "defillama"))

    answer = buy_brief(client, 56)

    assert [each["symbol"] for each in answer["data"]["tokenBalances"]] == ["USDC"]
    assert answer["data"]["recentTransfers"] == []
    assert any("no event logs" in warning for warning in answer["warnings"])
    assert any("recent transfers are unknown" in warning for warning in answer["warnings"])


@pytest.mark.extended
def test_every_chain_is_answered_by_node_alone(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    node = Node(upstreams)
    client = api(configure_sources(upstreams, settings, "rpc", "defillama"))
    for chain, usdc in USDC.items():
        node.balances = {usdc: 10**18}
        serve_prices(upstreams, {ZERO: 2}, chain=SLUGS[chain])

        data = buy_brief(client, chain)["data"]

        native = data["nativeBalance"]
        assert (native["symbol"], native["worth"]["valueUsd"]) == (NATIVE[chain], 6)
        assert [each["tokenAddress"] for each in data["tokenBalances"]] == [usdc]


@pytest.mark.extended
@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_failed_primary_is_replaced_by_next_source(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, fault: Fault
) -> None:
    upstreams.faults["alchemy"] = fault
    Node(upstreams)
    serve_blockscout(upstreams, [blockscout_token(USDC[1], 5)])
    serve_prices(upstreams, {}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "blockscout", "rpc", "defillama"))

    answer = buy_brief(client, 1)

    data = answer["data"]
    assert (data["nativeBalance"]["source"], data["tokenBalances"][0]["source"]) == ("rpc", "blockscout")
    warnings = " ".join(answer["warnings"])
    assert "Alchemy" in warnings
    assert "token balances are from Blockscout" in warnings
    assert "the native balance is from JSON-RPC node" in warnings
    assert KEY not in warnings
    assert provider_statuses(answer)["alchemy"] in ("error", "timeout", "rate_limited")


def test_failed_transfers_alone_are_read_from_next_source(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    def refuse(_params: list[Any]) -> Any:
        raise MethodError("too expensive")

    serve_alchemy(upstreams, {USDC[1]: 5}, alchemy_getAssetTransfers=refuse)
    serve_blockscout(upstreams)
    serve_prices(upstreams, {}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "blockscout", "defillama"))

    answer = buy_brief(client, 1)

    assert answer["data"]["tokenBalances"][0]["source"] == "alchemy"
    assert any("transfers are from Blockscout" in warning for warning in answer["warnings"])


@pytest.mark.extended
@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_answer_works_without_prices(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, fault: Fault
) -> None:
    upstreams.faults["defillama"] = fault
    serve_alchemy(upstreams, {GEM: 5}, names={GEM: ("GEM", "Gem", 18)})
    client = api(configure_sources(upstreams, settings, "alchemy", "defillama"))

    answer = buy_brief(client, 1)

    assert answer["data"]["tokenBalances"][0]["worth"] is None
    assert answer["data"]["nativeBalance"]["worth"] is None
    assert (answer["data"]["total"]["usd"], answer["data"]["total"]["unpricedCount"]) == (None, 2)
    assert any("DefiLlama" in warning for warning in answer["warnings"])


@pytest.mark.extended
@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_first_failure_is_reported_and_payment_stays_redeemable(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, fault: Fault
) -> None:
    upstreams.faults |= {"alchemy": fault, "blockscout": "500", "rpc": "500"}
    client = api(configure_sources(upstreams, settings, "alchemy", "blockscout", "rpc", "defillama"))

    response = send_paid(client, BRIEF, {"chainId": 1, "walletAddress": WALLET})

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == FAULTS[fault]
    assert error["provider"] == "alchemy"
    assert error["details"]["payment"]["retry"] == "same_payment"
    assert KEY not in response.text


def test_request_without_sources_is_unconfigured_and_free(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    client = api(configure_sources(upstreams, settings, "defillama"))

    response = send_paid(client, BRIEF, {"chainId": 56, "walletAddress": WALLET})

    assert (response.status_code, response.json()["error"]["code"]) == (503, "provider_unconfigured")
    assert response.json()["error"]["details"]["payment"]["charged"] is False


def test_repeated_request_is_served_from_cache(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    serve_alchemy(upstreams)
    serve_prices(upstreams, {}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "defillama"))
    buy_brief(client, 1)
    calls = len(upstreams.requests)

    answer = buy_brief(client, 1, WALLET.upper().replace("0X", "0x"))

    assert answer["cache"]["hit"] is True
    assert len(upstreams.requests) == calls


def test_invalid_request_is_free(client: httpx.Client) -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"walletAddress": WALLET}, "chainId"),
        ({"chainId": 5, "walletAddress": WALLET}, "chainId"),
        ({"chainId": 1, "walletAddress": "vitalik.eth"}, "walletAddress"),
        ({"chainId": 1}, "walletAddress"),
    ]
    for body, path in bad:
        response = client.post(BRIEF, json=body)

        assert response.status_code == 400
        assert [issue["path"] for issue in response.json()["error"]["details"]["issues"]] == [path]


@pytest.mark.extended
def test_buyer_sees_own_payment_on_development_chain(
    api: ApiFactory, chain_settings: Settings, devchain: DevChain
) -> None:
    client = api(chain_settings)
    chain, buyer = chain_settings.chain_id, Buyer(3)
    first = send_paid(client, BRIEF, {"chainId": chain, "walletAddress": Buyer(4).address}, buyer)
    assert first.status_code == 200, first.text

    response = send_paid(client, BRIEF, {"chainId": chain, "walletAddress": buyer.address}, buyer)

    answer = response.json()
    data = answer["data"]
    held = int(call_rpc(devchain.rpc_url, "eth_getBalance", buyer.address, "latest"), 16)
    assert data["nativeBalance"]["amountBaseUnits"] == str(held)
    (usdc,) = data["tokenBalances"]
    assert (usdc["tokenAddress"], usdc["symbol"]) == (devchain.token.lower(), "USDC")
    assert usdc["amountBaseUnits"] == str(devchain.token_balance(buyer.address))
    paid = data["recentTransfers"][0]
    assert (paid["direction"], paid["amountBaseUnits"], paid["amount"]) == ("out", "10000", 0.01)
    assert paid["counterparty"] == (chain_settings.pay_to or "").lower()
    assert paid["at"]
    assert "there are no prices on a development chain" in answer["warnings"]
    assert provider_statuses(answer) == {
        "alchemy": "unconfigured",
        "blockscout": "skipped",
        "rpc": "ok",
        "defillama": "skipped",
    }


def test_unrequested_data_of_node_is_ignored(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    node = Node(upstreams)
    node.add_transfer(GEM, FRIEND, WALLET, 10**18, block=59_000)
    (good,) = node.logs
    node.logs += [
        good | {"transactionHash": None, "logIndex": "0x11"},
        good | {"data": "0x", "logIndex": "0x12"},
        good | {"data": "0xzz", "logIndex": "0x13"},
        good | {"data": None, "logIndex": "0x14"},
        good | {"address": "0x12", "logIndex": "0x15"},
        good
        | {
            "topics": [
                TRANSFER,
                "0x" + encode_word(FRIEND),
                "0x" + encode_word(WALLET),
                "0x" + encode_word(7),
            ],
            "logIndex": "0x16",
        },
        good | {"blockNumber": hex(59_500), "logIndex": "0x17"},
    ]
    node.names = {GEM: ("GEM\0\u202e" + "g" * 5000, "\U0001f48e" * 300, 255)}
    node.balances = {GEM: 2**256 - 1}
    serve_prices(upstreams, {}, chain=SLUGS[56])
    client = api(configure_sources(upstreams, settings, "rpc", "defillama"))

    data = buy_brief(client, 56)["data"]

    rows = [(each["blockNumber"], each["amountBaseUnits"]) for each in data["recentTransfers"]]
    assert rows == [(59_500, str(10**18)), (59_000, None), (59_000, str(10**18))]
    (gem,) = data["suspiciousTokenNotes"]
    assert (len(gem["symbol"]), len(gem["name"])) == (64, 64)
    assert gem["symbol"].startswith("GEMg")
    assert [reason["id"] for reason in gem["reasons"]] == ["unusual_characters"]


def test_impossible_balance_is_failure(api: ApiFactory, settings: Settings, upstreams: FakeUpstreams) -> None:
    Node(upstreams).wei = 2**20_000
    client = api(configure_sources(upstreams, settings, "rpc"))

    response = send_paid(client, BRIEF, {"chainId": 56, "walletAddress": WALLET})

    assert (response.status_code, response.json()["error"]["code"]) == (502, "provider_error")


def test_native_coin_among_tokens_is_not_counted_twice(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    coin = "0x0000000000000000000000000000000000001010"
    serve_alchemy(upstreams, {coin: 125 * 10**16, USDC[137]: 5})
    serve_prices(upstreams, {ZERO: 1}, chain=SLUGS[137])
    client = api(configure_sources(upstreams, settings, "alchemy", "defillama"))

    data = buy_brief(client, 137)["data"]

    assert data["nativeBalance"]["worth"]["valueUsd"] == 1.25
    assert [each["tokenAddress"] for each in data["tokenBalances"]] == [USDC[137]]


def test_unknown_balance_is_not_zero(api: ApiFactory, settings: Settings, upstreams: FakeUpstreams) -> None:
    serve_blockscout(upstreams, [blockscout_token(USDC[8453], 5)])
    upstreams.set_response(
        "blockscout", f"/api/v2/addresses/{WALLET}", {"hash": WALLET, "coin_balance": None}
    )
    upstreams.faults["rpc"] = "500"
    serve_prices(upstreams, {ZERO: 3000}, chain=SLUGS[8453])
    client = api(configure_sources(upstreams, settings, "blockscout", "rpc", "defillama"))

    response = send_paid(client, BRIEF, {"chainId": 8453, "walletAddress": WALLET})

    assert (response.status_code, response.json()["error"]["code"]) == (502, "provider_error")
    assert response.json()["error"]["details"]["payment"]["retry"] == "same_payment"


def test_missing_names_are_reported_with_skipped_checks(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    def fail_as_busy(_params: list[Any]) -> Any:
        raise MethodError("429 too many requests")

    serve_alchemy(upstreams, {GEM: 5, SPAM: 6, USDC[1]: 7}, alchemy_getTokenMetadata=fail_as_busy)
    serve_prices(upstreams, {ZERO: 3000}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "defillama"))

    warnings = buy_brief(client, 1)["warnings"]

    assert any("2 tokens have neither a known name nor a symbol" in warning for warning in warnings)


def test_tokens_with_null_metadata_are_reported(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    Node(upstreams)
    serve_alchemy(upstreams, {GEM: 5}, names={GEM: (None, None, None)})
    serve_prices(upstreams, {}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "rpc", "defillama"))

    answer = buy_brief(client, 1)

    assert answer["data"]["nativeBalance"]["worth"] is None
    assert [warning.partition(",")[0] for warning in answer["warnings"]] == [
        "the price of the native coin is unknown",
        "1 tokens have neither a known name nor a symbol",
    ]


def test_notes_are_limited_and_rest_is_counted(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    scams = [
        blockscout_token(f"0x{number:040x}", 1, reputation="scam") for number in range(0x2000, 0x2000 + 60)
    ]
    Node(upstreams)
    serve_blockscout(upstreams, scams)
    serve_prices(upstreams, {ZERO: 3000}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "blockscout", "rpc", "defillama"))

    answer = buy_brief(client, 1)

    assert len(answer["data"]["suspiciousTokenNotes"]) == 50
    assert answer["warnings"] == ["10 further suspicious tokens are not listed"]


def test_any_number_of_source_is_answered(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    serve_alchemy(upstreams, transfers=[alchemy_transfer(2**64), alchemy_transfer(7)])
    serve_prices(upstreams, {ZERO: 3000}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "defillama"))

    transfers = buy_brief(client, 1)["data"]["recentTransfers"]

    assert sorted(str(each["blockNumber"]) for each in transfers) == ["7", "None"]


def test_traded_token_named_after_site_is_listed(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    serve_alchemy(
        upstreams,
        {GEM: 10**18, SPAM: 10**18},
        names={GEM: ("LP", "Curve.fi pool", 18), SPAM: ("X", "gift.fi pool", 18)},
    )
    serve_prices(upstreams, {ZERO: 3000, GEM: 2, SPAM: (5, 0.5)}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "defillama"))

    data = buy_brief(client, 1)["data"]

    assert [each["tokenAddress"] for each in data["tokenBalances"]] == [GEM]
    assert [each["tokenAddress"] for each in data["suspiciousTokenNotes"]] == [SPAM]


def test_two_lookalike_counterparties_are_reported(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    gem = {"value": hex(10**21), "address": GEM, "decimal": None}
    serve_alchemy(
        upstreams,
        transfers=[
            alchemy_transfer(3, asset=None, rawContract=gem, **{"from": WALLET, "to": IMPOSTOR}),
            alchemy_transfer(2, **{"from": WALLET, "to": FRIEND}),
        ],
        names={GEM: ("GEM", "Gem", None)},
    )
    serve_prices(upstreams, {ZERO: 3000, USDC[1]: 1}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "defillama"))

    bait, honest = buy_brief(client, 1)["data"]["recentTransfers"]

    assert [(note["id"], note["value"]) for note in bait["notes"]] == [("lookalike_counterparty", FRIEND)]
    assert honest["notes"] == []


def test_delegation_and_sanctions_are_first_warnings(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    node = Node(upstreams)
    node.code, node.sanctioned = "0xef0100" + GEM[2:], 1
    client = api(configure_sources(upstreams, settings, "rpc", "defillama"))

    answer = buy_brief(client, 56)

    account, (delegation, sanctions, *rest) = answer["data"]["account"], answer["warnings"]
    assert (account["kind"], account["delegateAddress"]) == ("delegated_wallet", GEM)
    assert f"runs the code of {GEM}" in delegation
    assert "OFAC" in sanctions
    assert rest


@pytest.mark.parametrize("fault", ["500", "wrong types", None])
def test_failing_node_leaves_account_unknown(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, fault: Fault | None
) -> None:
    serve_alchemy(upstreams, {USDC[1]: 5})
    serve_prices(upstreams, {ZERO: 3000}, chain=SLUGS[1])
    if fault:
        upstreams.faults["rpc"] = fault
    nodes = ["rpc"] if fault else []
    client = api(configure_sources(upstreams, settings, "alchemy", *nodes, "defillama"))

    answer = buy_brief(client, 1)

    account = answer["data"]["account"]
    assert account.pop("kind") == "unknown"
    assert set(account.values()) == {None}
    assert len(answer["data"]["tokenBalances"]) == 1
    (warning,) = [each for each in answer["warnings"] if "sanctions of the account are unknown" in each]
    assert warning.startswith("kind, delegation, transactions, name and sanctions of the account are unknown")


@pytest.mark.parametrize(("code", "kind"), [("0xef0100" + GEM[2:], "delegated_wallet"), ("0x60", "unknown")])
def test_failed_calls_hide_no_delegation(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, code: str, kind: str
) -> None:
    serve_alchemy(upstreams)
    node = Node(upstreams)
    node.code, node.has_calls = code, False
    client = api(configure_sources(upstreams, settings, "alchemy", "rpc", "defillama"))

    answer = buy_brief(client, 1)

    assert (answer["data"]["account"]["kind"], answer["data"]["account"]["sanctioned"]) == (kind, None)
    assert ("EIP-7702" in answer["warnings"][0]) is (kind == "delegated_wallet")
    assert any("sanctions of the account are unknown" in each for each in answer["warnings"])


def test_crossing_transfers_are_swap_unless_fabricated(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams
) -> None:
    one, other = {"hash": "0x" + "1f" * 32}, {"hash": "0x" + "2f" * 32}
    gem = {"value": hex(10**21), "address": GEM, "decimal": "0x12"}
    dust = {"value": "0x1", "address": USDC[1], "decimal": "0x6"}
    serve_alchemy(
        upstreams,
        transfers=[
            alchemy_transfer(4, rawContract=gem, **other, **{"from": WALLET, "to": FRIEND}),
            alchemy_transfer(3, rawContract=dust, **other),
            alchemy_transfer(2, **one),
            alchemy_coin_transfer(1, 10**15, **one, **{"from": WALLET, "to": FRIEND}),
        ],
        names={GEM: ("GEM", "Gem", 18)},
    )
    serve_prices(upstreams, {ZERO: 3000, USDC[1]: 1}, chain=SLUGS[1])
    client = api(configure_sources(upstreams, settings, "alchemy", "defillama"))

    transfers = buy_brief(client, 1)["data"]["recentTransfers"]

    assert [each["kind"] for each in transfers] == ["send", "receive", "swap", "swap"]
