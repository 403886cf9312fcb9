"""Accounts as the development chain shows them."""

from __future__ import annotations

from eth_abi.abi import encode
from lookups.chain_providers import CHAIN_ID, open_providers

from centgate.crypto.contract.owners import Owner
from centgate.crypto.wallet.accounts import classify_account_owner, parse_primary_name
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.chain import EvmChain
from centgate.devchain.exchanges import install_exchanges
from centgate.devchain.http_server import serve_app
from centgate.devchain.rpc import create_rpc_app
from centgate.lookups.accounts import read_account
from centgate.settings import Settings

ZERO = "0x" + "0" * 40


async def test_name_and_sanctions_are_read_from_the_chain(chain_settings: Settings) -> None:
    exchanges = install_exchanges(EvmChain(CHAIN_ID, {}))
    alice, bob, thief = (account.address.lower() for account in BUYER_ACCOUNTS[:3])
    exchanges.set_ens_name(alice, "alice.eth")
    exchanges.set_ens_name(thief, "alice.eth", owner=alice)
    sanctions_list = exchanges.addresses.sanctions_list
    exchanges.operator.send(sanctions_list, "addToSanctionsList(address[])", [thief])
    token = exchanges.stablecoin("USDC", 5).lower()
    with serve_app(create_rpc_app(exchanges.operator.chain), 0) as url:
        async with open_providers(chain_settings, url) as (rpc, _):
            found = [await read_account(rpc, CHAIN_ID, each) for each in (alice, bob, thief, token)]

    assert [each.kind for each in found] == ["wallet", "wallet", "wallet", "contract"]
    assert [each.name for each in found] == ["alice.eth", None, None, None]
    assert [each.is_sanctioned for each in found] == [False, False, True, False]
    assert [each.transaction_count for each in found] == [0, 0, 0, None]


async def test_a_chain_without_these_contracts_leaves_them_unknown(chain_settings: Settings) -> None:
    with serve_app(create_rpc_app(EvmChain(CHAIN_ID, {})), 0) as url:
        async with open_providers(chain_settings, url) as (rpc, _):
            found = await read_account(rpc, CHAIN_ID, BUYER_ACCOUNTS[0].address.lower())

    assert (found.kind, found.name, found.is_sanctioned) == ("wallet", None, None)


async def test_without_a_node_everything_is_unknown(chain_settings: Settings) -> None:
    async with open_providers(chain_settings, "http://127.0.0.1:9") as (rpc, _):
        found = await read_account(rpc, CHAIN_ID, BUYER_ACCOUNTS[0].address.lower())

    assert (found.kind, found.transaction_count, found.is_sanctioned) == ("unknown", None, None)


def test_a_delegated_wallet_names_its_contract() -> None:
    owner = Owner(ZERO, "wallet", delegate_address="0x" + "de" * 20)

    account = classify_account_owner(owner, transaction_count=3, name=None, is_sanctioned=None)

    assert (account.kind, account.delegate_address, account.transaction_count) == (
        "delegated_wallet",
        owner.delegate_address,
        3,
    )


def test_only_names_without_lookalikes_are_given() -> None:
    def parse(name: bytes) -> str | None:
        return parse_primary_name(encode(["bytes", "address", "address"], [name, ZERO, ZERO]))

    assert [parse(name) for name in (b"alice.eth", b"pay.alice.eth", b"my-name.cb.id")] == [
        "alice.eth",
        "pay.alice.eth",
        "my-name.cb.id",
    ]
    hostile = [
        "\u0430lice.eth".encode(),
        b"Alice.eth",
        b"a\nb.eth",
        b"x" * 300 + b".eth",
        b"",
        b"eth",
        b"\xff.eth",
    ]
    assert [parse(name) for name in hostile] == [None] * len(hostile)
    assert parse_primary_name(b"\xff" * 96) is None
