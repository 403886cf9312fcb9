"""wallet-brief on a development chain: holdings, transfers and scams of the holder."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from lookups.chain_world import ETHER, World

from centgate.devchain.rpc_client import call_rpc
from centgate.sanitize import has_invisible
from centgate.timestamps import format_timestamp

BuyAnswer = Callable[..., dict[str, Any]]
RECENT = 10


@pytest.fixture
def brief(world: World, buy_answer: BuyAnswer) -> dict[str, Any]:
    """Return the data about the holder."""
    return buy_answer("wallet-brief", walletAddress=world.people["holder"].address)


def note_ids(row: dict[str, Any], field: str = "notes") -> set[str]:
    """Return the ids of the notes on a transfer or a token."""
    return {each["id"] for each in row[field]}


@pytest.mark.extended
def test_native_balance_is_exact(world: World, brief: dict[str, Any]):
    held = int(call_rpc(world.chain.rpc_url, "eth_getBalance", world.people["holder"].address, "latest"), 16)

    native = brief["data"]["nativeBalance"]

    assert (native["amountBaseUnits"], native["decimals"], native["source"]) == (str(held), 18, "rpc")
    assert native["amount"] == pytest.approx(101.5, abs=0.01)
    assert native["worth"] is None


def test_honest_tokens_have_their_balances(world: World, brief: dict[str, Any]):
    names = {address: name for name, address in world.tokens.items()}

    found = {
        names[each["tokenAddress"]]: (
            each["symbol"],
            each["amountBaseUnits"],
            each["decimals"],
            each["amount"],
        )
        for each in brief["data"]["tokenBalances"]
    }

    assert found == {
        "plain": ("PLAIN", str(960 * ETHER), 18, 960),
        "bytes32": ("MKR", str(5 * ETHER), 18, 5),
        "tax": ("TAX", str(95 * ETHER), 18, 95),
        "whole": ("WHOLE", "7", 0, 7),
        "shy": ("SHY", "123", None, None),
        "talking": ("TALK", "2500000", 6, 2.5),
    }


def test_bait_and_forgery_are_separated_with_reasons(world: World, brief: dict[str, Any]):
    found = {
        each["tokenAddress"]: note_ids(each, "reasons") for each in brief["data"]["suspiciousTokenNotes"]
    }

    assert found[world.tokens["bait"]] >= {"link_in_name", "unusual_characters"}
    assert found[world.tokens["lying"]] == {"more_than_exists"}
    assert "imitates_known_symbol" in found[world.tokens["false usdc"]]
    assert not found.keys() & {world.tokens[name] for name in ("plain", "bytes32", "tax", "whole", "shy")}


def test_token_text_contains_nothing_invisible(brief: dict[str, Any]):
    def texts(value: Any) -> list[str]:
        match value:
            case str():
                return [value]
            case dict():
                parts = list(cast(dict[str, Any], value).values())
            case list():
                parts = cast(list[Any], value)
            case _:
                parts = []
        return [text for part in parts for text in texts(part)]

    assert any("claim-reward.example" in text for text in texts(brief["data"]))
    assert not [text for text in texts(brief) if has_invisible(text)]


def test_latest_transfers_have_direction_and_counterparty(world: World, brief: dict[str, Any]):
    holder = world.people["holder"].address
    tokens = [moved for moved in world.transfers if moved.token]

    found = brief["data"]["recentTransfers"]

    assert [
        (
            each["transactionHash"],
            each["blockNumber"],
            each["at"],
            each["tokenAddress"],
            each["direction"],
            each["counterparty"],
            each["amountBaseUnits"],
        )
        for each in found
    ] == [
        (
            moved.transaction,
            moved.block,
            format_timestamp(datetime.fromtimestamp(world.times[moved.block], UTC)),
            moved.token,
            "out" if moved.sender == holder else "in",
            moved.receiver if moved.sender == holder else moved.sender,
            str(moved.amount),
        )
        for moved in reversed(tokens[-RECENT:])
    ]


def test_poisoned_transfers_alone_are_marked(world: World, brief: dict[str, Any]):
    friend = world.people["friend"].address

    by_hash = {each["transactionHash"]: each for each in brief["data"]["recentTransfers"]}
    poison = [by_hash[moved.transaction] for moved in world.transfers[-2:]]
    honest = [
        by_hash[moved.transaction]
        for moved in world.transfers
        if moved.transaction in by_hash and moved.token == world.tokens["plain"] and moved.amount
    ]

    assert [note_ids(each) for each in poison] == [{"zero_value", "lookalike_counterparty"}] * 2
    assert {
        note["value"] for each in poison for note in each["notes"] if note["id"] == "lookalike_counterparty"
    } == {friend}
    assert honest
    assert all(note_ids(each) == set() for each in honest)


@pytest.mark.extended
def test_warning_names_what_the_chain_does_not_show(brief: dict[str, Any]):
    assert any("partial" in each for each in brief["warnings"])
    assert {each["name"]: each["status"] for each in brief["providers"]}["rpc"] == "ok"


@pytest.mark.extended
def test_empty_wallet_has_empty_lists(world: World, buy_answer: BuyAnswer):
    data = buy_answer("wallet-brief", walletAddress=world.people["newcomer"].address)["data"]

    assert data["nativeBalance"]["amountBaseUnits"] == "0"
    assert data["tokenBalances"] == data["recentTransfers"] == data["suspiciousTokenNotes"] == []
