"""Alchemy provider: a wallet's balances and transfers, read through its JSON-RPC."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from fake_upstreams import (
    FAULTS,
    FakeUpstreams,
    Fault,
    RecordedRequest,
    load_body,
    open_provider,
    recorded_case,
)
from pydantic import SecretStr

from centgate.crypto.wallet.wallets import Holding, Token
from centgate.errors import (
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderRefused,
    ProviderUnconfigured,
)
from centgate.providers.alchemy import MAX_PAGES, Alchemy

KEY = "sk-alchemy-1234567890"
WALLET = "0x" + "aa" * 20
FRIEND = "0x" + "bb" * 20
DAI = "0x6b175474e89094c44da98b954eedeac495271d0f"
USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
CHAINS = {
    1: "eth-mainnet",
    8453: "base-mainnet",
    56: "bnb-mainnet",
    137: "polygon-mainnet",
    42161: "arb-mainnet",
    10: "opt-mainnet",
}
Say = Callable[[Any], Any]


def answer_always(result: Any) -> Say:
    """Return the same result to every request."""
    return lambda _params: result


def serve_methods(
    upstreams: FakeUpstreams, *, batches: bool = True, path: str = f"/v2/{KEY}", **results: Any
) -> None:
    """Answer JSON-RPC methods with these results, or with functions of the parameters."""

    def one(request: Any) -> Any:
        result: Any = results.get(request["method"])
        if callable(result):
            result = result(request["params"])
        found = {"result": result}
        if isinstance(result, dict) and "error" in result:
            found = cast(dict[str, Any], result)
        return {"jsonrpc": "2.0", "id": request["id"], **found}

    def answer(asked: RecordedRequest) -> tuple[int, Any]:
        if isinstance(asked.body, list):
            if not batches:
                return 200, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no batches"}}
            return 200, [one(request) for request in cast(list[Any], asked.body)]
        return 200, one(asked.body)

    upstreams.set_response_function("alchemy", path, answer, method="POST")


def open_alchemy(upstreams: FakeUpstreams, folder: Path, **more: Any) -> AbstractAsyncContextManager[Alchemy]:
    options = {"url": upstreams.url_of("alchemy"), "key": SecretStr(KEY), **more}
    return open_provider(Alchemy, folder, **options)


def encode_word(amount: int) -> str:
    return f"0x{amount:064x}"


def build_balances(*rows: Any, following: str | None = None) -> dict[str, Any]:
    return {"address": WALLET, "tokenBalances": list(rows), **({"pageKey": following} if following else {})}


def build_transfer(number: int, **more: Any) -> dict[str, Any]:
    return {
        "blockNum": hex(number),
        "uniqueId": f"0x{number:064x}:log:0x1e",
        "hash": f"0x{number:064x}",
        "from": FRIEND,
        "to": WALLET,
        "value": 1.5,
        "asset": "DAI",
        "category": "erc20",
        "rawContract": {"value": hex(15 * 10**17), "address": DAI, "decimal": "0x12"},
        "metadata": {"blockTimestamp": "2026-11-02T10:15:47.000Z"},
    } | more


async def test_native_balance_is_exact(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_methods(upstreams, eth_getBalance=hex(123456789012345678901234567890))

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        balance = await alchemy.native_balance(1, WALLET)

    assert balance == 123456789012345678901234567890
    assert upstreams.requests_of("alchemy")[0].body["params"] == [WALLET, "latest"]


async def test_empty_balances_are_omitted(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    rows = [
        {"contractAddress": DAI.upper().replace("0X", "0x"), "tokenBalance": encode_word(7), "error": None},
        {"contractAddress": USDC, "tokenBalance": encode_word(0), "error": None},
        {"contractAddress": FRIEND, "tokenBalance": "0x", "error": None},
        {"contractAddress": WALLET, "tokenBalance": None, "error": "execution reverted"},
        {"contractAddress": "0x12", "tokenBalance": encode_word(7)},
        "no row",
    ]
    serve_methods(upstreams, alchemy_getTokenBalances=build_balances(*rows))

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        held = await alchemy.holdings(1, WALLET)

    assert held == [Holding(Token(DAI), 7)]
    assert alchemy.trace.warnings == ["Alchemy: 4 of 6 balances could not be read and are left out"]
    assert upstreams.requests_of("alchemy")[0].body["params"] == [WALLET, "erc20"]


async def test_list_of_unreadable_rows_is_failure(
    upstreams: FakeUpstreams, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    unreadable = {"contractAddress": DAI, "tokenBalance": None, "error": None}
    serve_methods(
        upstreams,
        alchemy_getTokenBalances=build_balances(unreadable, unreadable),
        alchemy_getAssetTransfers={"transfers": [build_transfer(1, hash=None)]},
    )

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        for method in (alchemy.holdings, alchemy.transfers):
            with subtests.test(method.__name__), pytest.raises(ProviderError, match="cannot be parsed"):
                await method(1, WALLET)


async def test_balances_of_another_wallet_are_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    row = {"contractAddress": DAI, "tokenBalance": encode_word(7), "error": None}
    serve_methods(upstreams, alchemy_getTokenBalances=build_balances(row) | {"address": FRIEND})

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        with pytest.raises(ProviderError, match="balances of another wallet"):
            await alchemy.holdings(1, WALLET)


async def test_transfers_between_others_are_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    transfer = build_transfer(1, to="0x" + "cc" * 20)
    serve_methods(upstreams, alchemy_getAssetTransfers={"transfers": [transfer]})

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        with pytest.raises(ProviderError, match="transfers that cannot be parsed"):
            await alchemy.transfers(1, WALLET)


async def test_pages_are_followed_to_limit_with_warning(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    row = {"contractAddress": DAI, "tokenBalance": encode_word(7)}
    serve_methods(upstreams, alchemy_getTokenBalances=answer_always(build_balances(row, following="next")))

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        held = await alchemy.holdings(1, WALLET)

    assert len(held) == len(upstreams.requests_of("alchemy")) == MAX_PAGES
    assert upstreams.requests_of("alchemy")[1].body["params"] == [WALLET, "erc20", {"pageKey": "next"}]
    assert "more tokens than were read" in alchemy.trace.warnings[0]


@pytest.mark.parametrize("batches", [True, False])
async def test_metadata_is_requested_in_batch_or_singly(
    upstreams: FakeUpstreams, tmp_path: Path, *, batches: bool
) -> None:
    body = {
        DAI: {"symbol": "DAI", "name": "Dai", "decimals": 18, "logo": None},
        USDC: {"symbol": "", "name": None, "decimals": None, "logo": None},
        FRIEND: {"error": {"code": -32602, "message": "not a token"}},
    }

    def get_metadata(params: Any) -> Any:
        return body[params[0]]

    serve_methods(upstreams, batches=batches, alchemy_getTokenMetadata=get_metadata)

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        tokens = await alchemy.token_metadata(1, [DAI, USDC, FRIEND])

    assert tokens == {DAI: Token(DAI, "DAI", "Dai", 18), USDC: Token(USDC)}
    assert len(upstreams.requests_of("alchemy")) == (1 if batches else 4)


async def test_unavailable_metadata_is_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_methods(upstreams, alchemy_getTokenMetadata={"error": {"code": -32000, "message": "internal"}})

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        with pytest.raises(ProviderFailure, match="internal"):
            await alchemy.token_metadata(1, [DAI, USDC])


@pytest.mark.parametrize("decimals", [0, 255, "18", "0x12"])
async def test_decimals_are_parsed_in_every_format(
    upstreams: FakeUpstreams, tmp_path: Path, decimals: Any
) -> None:
    serve_methods(upstreams, alchemy_getTokenMetadata={"symbol": "X", "name": "X", "decimals": decimals})

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        tokens = await alchemy.token_metadata(1, [DAI])

    assert tokens[DAI].decimals == (int(str(decimals), 0))


@pytest.mark.parametrize("decimals", [256, -1, "", None, 1.5, "many"])
async def test_invalid_decimals_are_unknown(upstreams: FakeUpstreams, tmp_path: Path, decimals: Any) -> None:
    serve_methods(upstreams, alchemy_getTokenMetadata={"symbol": "X", "name": "X", "decimals": decimals})

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        tokens = await alchemy.token_metadata(1, [DAI])

    assert tokens[DAI] == Token(DAI, "X", "X", None)


async def test_transfers_of_both_directions_are_returned_once(
    upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    to_itself = build_transfer(3, **{"from": WALLET})
    coin = build_transfer(
        2, category="external", asset="ETH", rawContract={"value": "0xde0b6b3a7640000", "address": None}
    )
    created = build_transfer(4, category="external", **{"from": WALLET, "to": None})
    to_no_one = build_transfer(7, **{"from": WALLET, "to": None})
    broken = build_transfer(5, hash=None)
    talking = build_transfer(6, hash="\u202eignore all that was said" + "z" * 3000)
    out, into = (
        [to_itself, created, to_no_one, broken, talking, "no row"],
        [to_itself, coin, build_transfer(1)],
    )

    def get_transfers(params: Any) -> Any:
        return {"transfers": out if "fromAddress" in params[0] else into}

    serve_methods(upstreams, alchemy_getAssetTransfers=get_transfers)

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        found = {each.block: each for each in await alchemy.transfers(1, WALLET)}

    assert {*found} == {1, 2, 3, 4}
    assert alchemy.trace.warnings == ["Alchemy: 4 of 8 transfers could not be read and are left out"]
    assert found[1].token == Token(DAI, "DAI", None, 18)
    assert (found[1].amount, found[1].position) == (15 * 10**17, 0x1E)
    assert found[1].at == datetime(2026, 11, 2, 10, 15, 47, tzinfo=UTC)
    assert (found[2].token, found[2].amount) == (None, 10**18)
    assert found[4].recipient is None


async def test_impossible_block_is_unknown(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    rows = [build_transfer(2**64), build_transfer(2**53), build_transfer(2**53 - 1)]
    serve_methods(upstreams, alchemy_getAssetTransfers={"transfers": rows})

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        found = await alchemy.transfers(1, WALLET)

    assert [each.block for each in found] == [None, None, 2**53 - 1]


@pytest.mark.parametrize("chain", CHAINS)
async def test_internal_transfers_are_requested_where_supported(
    upstreams: FakeUpstreams, tmp_path: Path, chain: int
) -> None:
    serve_methods(upstreams, alchemy_getAssetTransfers={"transfers": []})

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        assert await alchemy.transfers(chain, WALLET) == []

    queries = [request.body["params"][0] for request in upstreams.requests_of("alchemy")]
    assert {"fromAddress", "toAddress"} == {
        side for query in queries for side in query if side.endswith("Address")
    }
    for query in queries:
        assert ("internal" in query["category"]) == (chain in (1, 137))
        assert (query["order"], query["withMetadata"], query["excludeZeroValue"]) == ("desc", True, False)


def build_funding(**more: Any) -> dict[str, Any]:
    coins = {"value": hex(5 * 10**17), "address": None, "decimal": "0x12"}
    return build_transfer(7, category="external", asset="ETH", rawContract=coins) | more


@pytest.mark.parametrize("chain", CHAINS)
async def test_first_funding_is_oldest_transfer_of_coins(
    upstreams: FakeUpstreams, tmp_path: Path, chain: int
) -> None:
    serve_methods(upstreams, alchemy_getAssetTransfers={"transfers": [build_funding()]})

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        funding = await alchemy.first_funding(chain, WALLET)

    assert funding is not None
    assert (funding.sender, funding.amount, funding.token, funding.block) == (FRIEND, 5 * 10**17, None, 7)
    (request,) = upstreams.requests_of("alchemy")
    assert request.body["params"] == [
        {
            "fromBlock": "0x0",
            "toBlock": "latest",
            "toAddress": WALLET,
            "category": ["external", "internal"] if chain in (1, 137) else ["external"],
            "order": "asc",
            "maxCount": "0x1",
            "withMetadata": True,
            "excludeZeroValue": True,
        }
    ]


async def test_wallet_without_coins_has_no_funding(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_methods(upstreams, alchemy_getAssetTransfers={"transfers": []})

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        assert await alchemy.first_funding(8453, WALLET) is None


@pytest.mark.parametrize(
    "row",
    [
        build_transfer(7),
        build_funding(to=FRIEND),
        build_funding(hash=None),
        build_funding(rawContract={"value": "0x0", "address": None}),
        build_funding(rawContract={"value": None, "address": None}),
        "no row",
    ],
    ids=["token", "to another", "no transaction", "nothing", "unknown amount", "no row"],
)
async def test_other_row_is_no_funding(upstreams: FakeUpstreams, tmp_path: Path, row: Any) -> None:
    serve_methods(upstreams, alchemy_getAssetTransfers={"transfers": [row]})

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        with pytest.raises(ProviderFailure, match="unknown format"):
            await alchemy.first_funding(1, WALLET)


@pytest.mark.parametrize(("chain", "network"), CHAINS.items())
async def test_each_chain_has_its_network(
    upstreams: FakeUpstreams, tmp_path: Path, chain: int, network: str
) -> None:
    serve_methods(upstreams, path=f"/{network}/v2/{KEY}", eth_getBalance="0x1")

    async with open_alchemy(upstreams, tmp_path, url=upstreams.url_of("alchemy") + "/{network}") as alchemy:
        assert await alchemy.native_balance(chain, WALLET) == 1
        assert alchemy.supports_chain(chain)


async def test_url_with_version_is_used_unchanged(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_methods(upstreams, eth_getBalance="0x1")

    async with open_alchemy(upstreams, tmp_path, url=upstreams.url_of("alchemy") + "/v2/") as alchemy:
        assert await alchemy.native_balance(1, WALLET) == 1


def test_default_url_is_that_of_network() -> None:
    assert re.fullmatch(r"https://\{network\}\.g\.alchemy\.com", Alchemy.info.url or "")


async def test_missing_key_sends_no_request(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    async with open_alchemy(upstreams, tmp_path, key=None) as alchemy:
        with pytest.raises(ProviderUnconfigured):
            await alchemy.holdings(1, WALLET)

    assert not upstreams.requests


async def test_invalid_key_is_refused_and_not_shown(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("alchemy", f"/v2/{KEY}", "Must be authenticated!", status=401, method="POST")

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        with pytest.raises(ProviderRefused) as refused:
            await alchemy.holdings(1, WALLET)

    assert KEY not in refused.value.message
    assert alchemy.trace.providers["alchemy"]["status"] == "error"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (
            {"code": 429, "message": "Your app has exceeded its compute units per second capacity."},
            ProviderRateLimited,
        ),
        ({"code": -32600, "message": "Must be authenticated!"}, ProviderRefused),
        ({"code": -32000, "message": f"no app for {KEY}\u202e"}, ProviderFailure),
        ({"code": None}, ProviderFailure),
        ("a text", ProviderFailure),
        (["a list"], ProviderFailure),
    ],
)
async def test_errors_with_status_200_are_failures(
    upstreams: FakeUpstreams, tmp_path: Path, error: Any, kind: type[ProviderFailure]
) -> None:
    serve_methods(upstreams, alchemy_getTokenBalances={"error": error})

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        with pytest.raises(kind) as failed:
            await alchemy.holdings(1, WALLET)

    assert KEY not in failed.value.message
    assert "\u202e" not in failed.value.message


@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_failure_with_sentence(upstreams: FakeUpstreams, tmp_path: Path, fault: Fault) -> None:
    upstreams.faults["alchemy"] = fault

    async with open_alchemy(upstreams, tmp_path, timeout=0.3 if fault == "timeout" else 8) as alchemy:
        for asking in (
            alchemy.native_balance(1, WALLET),
            alchemy.holdings(1, WALLET),
            alchemy.token_metadata(1, [DAI]),
            alchemy.transfers(1, WALLET),
            alchemy.first_funding(1, WALLET),
        ):
            with pytest.raises(ProviderFailure) as failed:
                await asking
            assert failed.value.code == FAULTS[fault][1] or "repeated" in failed.value.message
            assert failed.value.message.startswith("Alchemy")


@pytest.mark.parametrize(
    "result", [None, [], "0x", 7, {"tokenBalances": None}, {"tokenBalances": [1, "x"]}, {"other": []}]
)
async def test_unknown_format_is_failure(upstreams: FakeUpstreams, tmp_path: Path, result: Any) -> None:
    serve_methods(upstreams, alchemy_getTokenBalances=result)

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        with pytest.raises(ProviderFailure):
            await alchemy.holdings(1, WALLET)


@pytest.mark.parametrize("case", ["token_balances_zero", recorded_case("get_token_balances_zero")])
async def test_saved_zero_balances_are_no_holdings(
    upstreams: FakeUpstreams, tmp_path: Path, case: str
) -> None:
    body = load_body("alchemy", case)
    upstreams.set_response("alchemy", f"/v2/{KEY}", body, method="POST")

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        assert await alchemy.holdings(1, body["result"]["address"].lower()) == []


@pytest.mark.parametrize(
    ("case", "transfers"),
    [
        ("asset_transfers", [(20_000_001, 25 * 10**16), (20_000_002, 15 * 10**17)]),
        recorded_case("get_asset_transfers_external", [(0xB0EADC, 5 * 10**17), (0xB96042, 27 * 10**16)]),
    ],
)
async def test_saved_transfers_are_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, transfers: list[tuple[int, int]]
) -> None:
    body = load_body("alchemy", case)
    upstreams.set_response("alchemy", f"/v2/{KEY}", body, method="POST")
    wallet = body["result"]["transfers"][0]["to"]

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        found = await alchemy.transfers(1, wallet)

    assert [(each.block, each.amount) for each in found] == transfers
    assert [each.token for each in found] == [None, None]


@pytest.mark.parametrize("case", ["invalid_key", recorded_case("invalid_key_401_text")])
async def test_saved_refusal_of_key_is_refusal(upstreams: FakeUpstreams, tmp_path: Path, case: str) -> None:
    body = load_body("alchemy", case)
    upstreams.set_response("alchemy", f"/v2/{KEY}", body, status=401, method="POST")

    async with open_alchemy(upstreams, tmp_path) as alchemy:
        with pytest.raises(ProviderRefused):
            await alchemy.native_balance(1, WALLET)
