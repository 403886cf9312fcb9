"""Blockscout's lists of holdings and transfers, in the formats of old and new servers."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fake_upstreams import FAULTS, FakeUpstreams, Fault, load_body, open_provider, recorded_case

from centgate.crypto.wallet.wallets import Holding, NativeCoin, Token
from centgate.errors import NoData, ProviderError, ProviderFailure
from centgate.providers.blockscout import Blockscout

WALLET = "0x" + "aa" * 20
FRIEND = "0x" + "bb" * 20
USDC = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
AT = f"/api/v2/addresses/{WALLET}"
NEW = {"address_hash": USDC.upper().replace("0X", "0x"), "holders_count": "5", "reputation": "ok"}
OLD = {"address": USDC, "holders": "5"}
TOLD = {"symbol": "USDC", "name": "USD Coin", "decimals": "6", "type": "ERC-20", "exchange_rate": "0.999"}


def build_list(*rows: Any, more: Any = None) -> dict[str, Any]:
    return {"items": list(rows), "next_page_params": more}


def build_token_transfer(**more: Any) -> dict[str, Any]:
    return {
        "from": {"hash": FRIEND, "is_contract": False},
        "to": {"hash": WALLET, "metadata": {"tags": [{"meta": {"icon": "data:image/png;base64,AAAA"}}]}},
        "token": {**TOLD, **NEW},
        "total": {"decimals": "6", "value": "1500000"},
        "timestamp": "2026-11-02T10:15:47.000000Z",
        "transaction_hash": "0x" + "1F" * 32,
        "log_index": 12,
        "block_number": 38400000,
        **more,
    }


def build_transaction(**more: Any) -> dict[str, Any]:
    return {
        "hash": "0x" + "2f" * 32,
        "from": {"hash": WALLET},
        "to": {"hash": FRIEND},
        "value": "1000000000000000000",
        "status": "ok",
        "result": "success",
        "timestamp": "2026-11-02T10:15:47.000000Z",
        "block_number": 38400001,
        "position": 3,
        **more,
    }


def serve_transfers(
    upstreams: FakeUpstreams,
    transfers: list[Any],
    transactions: list[Any],
    internal_transactions: tuple[Any, ...] = (),
) -> None:
    """Answer the three lists of transfers."""
    upstreams.set_response("blockscout", f"{AT}/token-transfers", build_list(*transfers))
    upstreams.set_response("blockscout", f"{AT}/transactions", build_list(*transactions))
    upstreams.set_response("blockscout", f"{AT}/internal-transactions", build_list(*internal_transactions))


def build_internal_transaction(**more: Any) -> dict[str, Any]:
    return {
        "transaction_hash": "0x" + "3f" * 32,
        "from": {"hash": FRIEND, "is_contract": True},
        "to": {"hash": WALLET},
        "value": "500000000000000000",
        "type": "call",
        "index": 4,
        "success": True,
        "error": None,
        "created_contract": None,
        "timestamp": "2026-11-02T10:15:49.000000Z",
        "block_number": 38400002,
        **more,
    }


async def test_coins_that_contracts_sent_are_among_transfers(
    upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    rows = (
        build_internal_transaction(),
        build_internal_transaction(type="delegatecall"),
        build_internal_transaction(index=0),
        build_internal_transaction(success=False, error="reverted"),
        build_internal_transaction(success="false"),
        build_internal_transaction(error="out of gas"),
        build_internal_transaction(value="0"),
        build_internal_transaction(type="create", index=0),
        build_internal_transaction(type="selfdestruct", index=0, value="7"),
        build_internal_transaction(type="create2", to=None, created_contract={"hash": WALLET}, value="9"),
    )
    serve_transfers(upstreams, [], [build_transaction()], rows)

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        found = await blockscout.transfers(8453, WALLET)

    assert [(each.sender, each.recipient, each.amount) for each in found] == [
        (WALLET, FRIEND, 10**18),
        (FRIEND, WALLET, 5 * 10**17),
        (FRIEND, WALLET, 7),
        (FRIEND, WALLET, 9),
    ]
    assert all(each.token is None for each in found)
    assert blockscout.trace.warnings == []


@pytest.mark.parametrize("seconds", [0, 9])
async def test_transfers_are_listed_without_internal_transactions(
    upstreams: FakeUpstreams, tmp_path: Path, seconds: float
) -> None:
    serve_transfers(upstreams, [build_token_transfer()], [])
    upstreams.set_response_function(
        "blockscout", f"{AT}/internal-transactions", lambda _: (time.sleep(seconds), (500, None))[1]
    )
    url = upstreams.url_of("blockscout")

    async with open_provider(Blockscout, tmp_path, url=url, timeout=4) as blockscout:
        found = await blockscout.transfers(8453, WALLET)

    assert len(found) == 1
    assert any("coins that contracts sent are missing" in each for each in blockscout.trace.warnings)
    assert blockscout.trace.providers["blockscout"]["status"] == "ok"


@pytest.mark.parametrize("names", [NEW, OLD])
async def test_holdings_are_parsed(upstreams: FakeUpstreams, tmp_path: Path, names: dict[str, Any]) -> None:
    upstreams.set_response(
        "blockscout", f"{AT}/tokens", build_list({"token": TOLD | names, "value": "42500000"})
    )

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        held = await blockscout.holdings(8453, WALLET)

    assert held == [Holding(Token(USDC, "USDC", "USD Coin", 6, 0.999), 42_500_000)]
    assert upstreams.requests_of("blockscout")[0].params == {"type": "ERC-20"}
    assert blockscout.trace.warnings == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"reputation": "scam"}, {"accusation": "reputation: scam"}),
        ({"is_scam": True}, {"accusation": "is_scam: true"}),
        ({"exchange_rate": None}, {"price_usd": None}),
        ({"exchange_rate": "NaN"}, {"price_usd": None}),
        ({"exchange_rate": "1e400"}, {"price_usd": None}),
        ({"exchange_rate": "-1"}, {"price_usd": None}),
        ({"exchange_rate": "0.0"}, {"price_usd": None}),
        ({"decimals": None}, {"decimals": None}),
        ({"decimals": ""}, {"decimals": None}),
        ({"decimals": "0"}, {"decimals": 0}),
        ({"decimals": "255"}, {"decimals": 255}),
        ({"decimals": 18}, {"decimals": 18}),
        ({"symbol": None, "name": 7}, {"symbol": None, "name": None}),
    ],
)
async def test_invalid_field_is_unknown_and_keeps_rest(
    upstreams: FakeUpstreams, tmp_path: Path, changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    upstreams.set_response(
        "blockscout", f"{AT}/tokens", build_list({"token": TOLD | OLD | changes, "value": "1"})
    )

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        (held,) = await blockscout.holdings(8453, WALLET)

    assert {name: getattr(held.token, name) for name in expected} == expected
    assert (held.token.address, held.amount) == (USDC, 1)


async def test_non_token_and_empty_rows_are_omitted(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    good = {"token": TOLD | NEW, "value": "1"}
    bad = [
        {"token": TOLD | NEW, "value": "0"},
        {"token": TOLD | NEW, "value": None},
        {"token": TOLD | NEW, "value": "9" * 5000},
        {"token": TOLD | NEW, "value": "-5"},
        {"token": TOLD | NEW | {"type": "ERC-721"}, "value": "1"},
        {"token": None, "value": "1"},
        {"token": TOLD | {"address": "0x12"}, "value": "1"},
        "no row",
    ]
    upstreams.set_response("blockscout", f"{AT}/tokens", build_list(*bad, good))

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        held = await blockscout.holdings(8453, WALLET)

    assert [each.amount for each in held] == [1]
    assert blockscout.trace.warnings == ["Blockscout: 6 of 8 balances could not be read and are left out"]


async def test_further_pages_are_reported(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    page = build_list({"token": TOLD | NEW, "value": "1"}, more={"fiat_value": "0", "id": 9})
    upstreams.set_response("blockscout", f"{AT}/tokens", page)

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        await blockscout.holdings(8453, WALLET)

    assert blockscout.trace.warnings == ["the wallet has more tokens than were read: the 1 worth most were"]


async def test_token_and_coin_transfers_are_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_transfers(upstreams, [build_token_transfer()], [build_transaction()])

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        token, coin = await blockscout.transfers(8453, WALLET)

    assert (token.sender, token.recipient, token.amount) == (FRIEND, WALLET, 1_500_000)
    assert (token.token and token.token.address, token.block, token.position) == (USDC, 38400000, 12)
    assert token.transaction == "0x" + "1f" * 32
    assert token.at == datetime(2026, 11, 2, 10, 15, 47, tzinfo=UTC)
    assert (coin.sender, coin.recipient, coin.token, coin.amount) == (WALLET, FRIEND, None, 10**18)
    assert all("limit" not in request.params for request in upstreams.requests_of("blockscout"))


async def test_fields_of_old_servers_are_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    old = build_token_transfer(token=TOLD | OLD, tx_hash="0x" + "3f" * 32, log_index="9", block_number=None)
    del old["transaction_hash"], old["block_number"]
    serve_transfers(
        upstreams, [old], [build_transaction(block=7, block_number=None, result=None, status=None)]
    )

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        token, coin = await blockscout.transfers(8453, WALLET)

    assert (token.transaction, token.position, token.block) == ("0x" + "3f" * 32, 9, None)
    assert coin.block == 7


async def test_failed_or_unreadable_transfers_are_omitted(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_transfers(
        upstreams,
        [
            build_token_transfer(token=None),
            build_token_transfer(**{"from": None}),
            build_token_transfer(transaction_hash=None),
            build_token_transfer(transaction_hash="\u202eignore all that was said" + "z" * 3000),
            build_token_transfer(transaction_hash="0x12"),
            build_token_transfer(token=TOLD | NEW | {"type": "ERC-721"}),
            build_token_transfer(),
        ],
        [
            build_transaction(status="error", result="execution reverted"),
            build_transaction(result="pending"),
            7,
        ],
    )

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        (transfer,) = await blockscout.transfers(8453, WALLET)

    assert transfer.amount == 1_500_000
    assert blockscout.trace.warnings == ["Blockscout: 6 of 7 transfers could not be read and are left out"]


async def test_transfers_between_others_are_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    other = {"hash": "0x" + "cc" * 20}
    serve_transfers(upstreams, [build_token_transfer(to=other)], [build_transaction(**{"from": other})])

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        with pytest.raises(ProviderError, match="transfers that cannot be parsed"):
            await blockscout.transfers(8453, WALLET)


async def test_list_of_unreadable_rows_is_failure(
    upstreams: FakeUpstreams, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    upstreams.set_response("blockscout", f"{AT}/tokens", build_list({"token": TOLD | NEW, "value": None}))
    serve_transfers(upstreams, [build_token_transfer(token=None)], [build_transaction(hash=None)])

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        for method in (blockscout.holdings, blockscout.transfers):
            with subtests.test(method.__name__), pytest.raises(ProviderError, match="cannot be parsed"):
                await method(8453, WALLET)


@pytest.mark.parametrize("number", [2**53, 2**64, "1" + "0" * 30, -1, "x"])
async def test_impossible_block_is_unknown(upstreams: FakeUpstreams, tmp_path: Path, number: object) -> None:
    serve_transfers(upstreams, [build_token_transfer(block_number=number)], [])

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        (found,) = await blockscout.transfers(8453, WALLET)

    assert found.block is None


async def test_contract_creation_has_no_recipient(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_transfers(upstreams, [], [build_transaction(to=None, created_contract={"hash": FRIEND})])

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        (creation,) = await blockscout.transfers(8453, WALLET)

    assert creation.counterparty(WALLET) is None


@pytest.mark.parametrize(
    ("body", "coin"),
    [
        (
            {"coin_balance": "123456789012345678901", "exchange_rate": "1888.58"},
            NativeCoin(123456789012345678901, 1888.58),
        ),
        ({"coin_balance": "0"}, NativeCoin(0)),
    ],
)
async def test_coin_balance_is_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, body: dict[str, Any], coin: NativeCoin
) -> None:
    upstreams.set_response("blockscout", AT, {"hash": WALLET, **body})

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        assert await blockscout.native_coin(8453, WALLET) == coin


@pytest.mark.parametrize("body", [{"coin_balance": "much"}, {"hash": WALLET}, [], 7])
async def test_invalid_balance_is_failure(upstreams: FakeUpstreams, tmp_path: Path, body: Any) -> None:
    upstreams.set_response("blockscout", AT, body)

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        with pytest.raises(ProviderFailure):
            await blockscout.native_coin(8453, WALLET)


@pytest.mark.extended
async def test_unknown_address_has_unknown_balance(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    for path in ("", "/tokens", "/token-transfers", "/transactions", "/internal-transactions"):
        upstreams.set_response("blockscout", AT + path, {"message": "Not found"}, status=404)

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        with pytest.raises(NoData):
            await blockscout.native_coin(8453, WALLET)
        assert await blockscout.holdings(8453, WALLET) == []
        assert await blockscout.transfers(8453, WALLET) == []

    assert blockscout.trace.warnings == []


@pytest.mark.parametrize("body", [{}, [], {"items": None}, {"items": ["a", 1]}, {"items": "x"}, None])
async def test_unknown_format_is_failure(upstreams: FakeUpstreams, tmp_path: Path, body: Any) -> None:
    upstreams.set_response("blockscout", f"{AT}/tokens", body)
    upstreams.set_response("blockscout", f"{AT}/token-transfers", body)

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        with pytest.raises(ProviderFailure):
            await blockscout.holdings(8453, WALLET)
        with pytest.raises(ProviderFailure):
            await blockscout.transfers(8453, WALLET)


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_faults_are_failures(upstreams: FakeUpstreams, tmp_path: Path, fault: Fault) -> None:
    upstreams.faults["blockscout"] = fault

    timeout = 1 if fault == "timeout" else 8
    options = {"url": upstreams.url_of("blockscout"), "timeout": timeout, "per_minute": 6000}
    async with open_provider(Blockscout, tmp_path, **options) as blockscout:
        for asking in (
            blockscout.native_coin(8453, WALLET),
            blockscout.holdings(8453, WALLET),
            blockscout.transfers(8453, WALLET),
            blockscout.first_funding(8453, WALLET),
        ):
            with pytest.raises(ProviderFailure) as failed:
                await asking
            assert failed.value.code == FAULTS[fault][1]


async def test_saved_transfers_of_old_server_are_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = load_body("blockscout_v2", "token_transfers_old_names")
    wallet = body["items"][0]["to"]["hash"]
    upstreams.set_response("blockscout", f"/api/v2/addresses/{wallet}/token-transfers", body)
    upstreams.set_response("blockscout", f"/api/v2/addresses/{wallet}/transactions", build_list())

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        (transfer,) = await blockscout.transfers(1, wallet)

    assert transfer.transaction == "0x" + "3f" * 32
    assert (transfer.amount, transfer.token and transfer.token.symbol) == (2_500_000, "USDC")
    assert transfer.at == datetime(2023, 4, 5, 6, 7, 8, tzinfo=UTC)


@pytest.mark.recorded
async def test_recorded_transfers_of_old_server_are_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    wallet = "0xd789a607ceac2f0e14867de4eb15b15c9ffb5859"
    path = f"/api/v2/addresses/{wallet}"
    upstreams.set_response(
        "blockscout",
        f"{path}/token-transfers",
        load_body("blockscout_v2", "address_token_transfers_old_names"),
    )
    upstreams.set_response("blockscout", f"{path}/transactions", build_list())

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        found = await blockscout.transfers(1, wallet)

    first = found[0]
    assert first.transaction == "0x62d597ebcf3e8d60096dd0363bc2f0f5e2df27ba1dacd696c51aa7c9409f3193"
    assert (first.amount, first.token and first.token.symbol) == (31567373703130350, "ARIA")
    assert first.at == datetime(2022, 10, 10, 14, 34, 30, tzinfo=UTC)
    assert all(each.token for each in found), "transfers of NFTs are not transfers of tokens"


@pytest.mark.parametrize("case", ["address_unused", recorded_case("address_unknown_200_nulls")])
async def test_saved_unused_address_has_unknown_balance(
    upstreams: FakeUpstreams, tmp_path: Path, case: str
) -> None:
    upstreams.set_response("blockscout", AT, load_body("blockscout_v2", case))

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        with pytest.raises(NoData, match="no native balance"):
            await blockscout.native_coin(1, WALLET)


@pytest.mark.parametrize("case", ["address_invalid", recorded_case("invalid_address_422")])
async def test_saved_refusal_of_address_is_failure(
    upstreams: FakeUpstreams, tmp_path: Path, case: str
) -> None:
    body = load_body("blockscout_v2", case)
    upstreams.set_response("blockscout", f"{AT}/tokens", body, status=422)

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        with pytest.raises(ProviderFailure):
            await blockscout.holdings(1, WALLET)


def build_listed(number: int, **more: Any) -> dict[str, Any]:
    """Return a row of `module=account&action=txlist` as the explorer's documents show it, with 5 wei."""
    return {
        "blockNumber": str(number),
        "from": FRIEND,
        "hash": f"0x{number:064x}",
        "isError": "0",
        "timeStamp": "1761942001",
        "to": WALLET,
        "txreceipt_status": "1",
        "value": "5",
        **more,
    }


def serve_listed(upstreams: FakeUpstreams, *rows: Any) -> None:
    """Answer the list of transactions to the wallet, the oldest first."""
    body = {"message": "OK", "result": [*rows], "status": "1"}
    upstreams.set_response("blockscout", "/api", body)


async def test_first_funding_is_oldest_transaction_with_coins(
    upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    # in the format of https://docs.blockscout.com/devs/apis/rpc/account, not recorded
    body = load_body("blockscout_etherscan_style", "transactions")
    upstreams.set_response("blockscout", "/api", body)

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        funding = await blockscout.first_funding(8453, WALLET)

    assert funding is not None
    assert (funding.transaction, funding.sender) == ("0x" + "3f" * 32, "0x" + "b2" * 20)
    assert (funding.amount, funding.token, funding.block) == (25 * 10**16, None, 38_000_003)
    assert funding.at == datetime(2025, 10, 31, 20, 20, 3, tzinfo=UTC)
    (request,) = upstreams.requests_of("blockscout")
    assert request.params == {
        "module": "account",
        "action": "txlist",
        "address": WALLET,
        "filter_by": "to",
        "sort": "asc",
        "page": "1",
        "offset": "10",
    }


async def test_outgoing_transactions_are_no_funding(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    # older servers know the filter as `filterby`, and list all transactions
    serve_listed(upstreams, build_listed(1, **{"from": WALLET, "to": FRIEND}), build_listed(2))

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        funding = await blockscout.first_funding(8453, WALLET)

    assert funding is not None
    assert funding.block == 2


@pytest.mark.parametrize("case", ["no_transactions", recorded_case("txlist_base_one")])
async def test_wallet_without_incoming_coins_has_no_funding(
    upstreams: FakeUpstreams, tmp_path: Path, case: str
) -> None:
    folder = "blockscout_etherscan_style" if case == "no_transactions" else "blockscout_pro"
    upstreams.set_response("blockscout", "/api", load_body(folder, case))

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        assert await blockscout.first_funding(8453, WALLET) is None


async def test_funding_after_many_calls_is_unknown(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_listed(upstreams, *(build_listed(number, value="0") for number in range(10)))

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        with pytest.raises(NoData):
            await blockscout.first_funding(8453, WALLET)


@pytest.mark.parametrize(
    "body",
    [
        {"message": "Something went wrong.", "result": None, "status": "0"},
        {"message": "Invalid address format", "result": None, "status": "0"},
        {"message": "Too many requests", "result": [], "status": "0"},
        {"message": "OK", "result": [build_listed(1, hash="0x12"), build_listed(2)], "status": "1"},
        {"message": "OK", "result": [build_listed(1, value="many"), build_listed(2)], "status": "1"},
        {"message": "OK", "result": [{"hash": "0x12"}], "status": "1"},
        {"message": "OK", "result": ["no row"], "status": "1"},
        {"message": None},
        [],
        7,
    ],
)
async def test_unreadable_list_of_transactions_is_failure(
    upstreams: FakeUpstreams, tmp_path: Path, body: Any
) -> None:
    upstreams.set_response("blockscout", "/api", body)

    async with open_provider(Blockscout, tmp_path, url=upstreams.url_of("blockscout")) as blockscout:
        with pytest.raises(ProviderFailure):
            await blockscout.first_funding(8453, WALLET)
