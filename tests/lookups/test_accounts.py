"""Kind, name and sanctions of accounts, read from a development chain."""

from __future__ import annotations

from eth.abc import StateAPI
from eth_abi.abi import encode
from eth_utils.address import to_canonical_address
from exchange_market import TEST_CONTRACTS, install_market
from lookups.chain_providers import CHAIN_ID, open_providers
from starlette.types import ASGIApp, Receive, Scope, Send

from centgate.crypto.contract.owner_kinds import SAFE_PROXY_CODE, SAFE_SINGLETONS
from centgate.crypto.contract.owners import Owner
from centgate.crypto.wallet.accounts import Account, classify_account_owner
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.chain import EvmChain, create_contract_at
from centgate.devchain.exchanges import OPERATOR
from centgate.devchain.http_server import serve_app
from centgate.devchain.rpc import create_rpc_app
from centgate.lookups.accounts import read_account
from centgate.settings import Settings
from centgate.solidity import load_contract

ZERO = "0x" + "0" * 40
SAFE, EXTENDED_SAFE, DELEGATED = "0x" + "5a" * 20, "0x" + "5b" * 20, "0x" + "de" * 20


async def test_name_and_sanctions_are_read(chain_settings: Settings) -> None:
    exchanges = install_market(EvmChain(CHAIN_ID, {}))
    alice, bob, thief = (account.address.lower() for account in BUYER_ACCOUNTS[:3])
    exchanges.set_ens_name(alice, "alice.eth")
    exchanges.set_ens_name(thief, "alice.eth", owner=alice)
    sanctions_list = exchanges.addresses.sanctions_list
    exchanges.operator.send(sanctions_list, "addToSanctionsList(address[])", [thief])
    token = exchanges.stablecoin("USDC", 5).lower()
    with serve_app(create_rpc_app(exchanges.operator.chain), 0) as url:
        async with open_providers(chain_settings, url) as (rpc, _):
            found = [
                (await read_account(rpc, CHAIN_ID, each, max_wait=9))[0]
                for each in (alice, bob, thief, token)
            ]

    assert [each.kind for each in found] == ["wallet", "wallet", "wallet", "contract"]
    assert [each.name for each in found] == ["alice.eth", None, None, None]
    assert [each.is_sanctioned for each in found] == [False, False, True, False]
    assert [each.transaction_count for each in found] == [0, 0, 0, None]


async def test_name_and_sanctions_are_unknown_without_contracts(chain_settings: Settings) -> None:
    with serve_app(create_rpc_app(EvmChain(CHAIN_ID, {})), 0) as url:
        async with open_providers(chain_settings, url) as (rpc, _):
            found, _ = await read_account(rpc, CHAIN_ID, BUYER_ACCOUNTS[0].address.lower(), max_wait=9)

    assert (found.kind, found.name, found.is_sanctioned) == ("wallet", None, None)
    assert [each for each in rpc.trace.warnings if each.startswith("sanctions of the account are unknown")]


async def test_everything_is_unknown_without_node(chain_settings: Settings) -> None:
    async with open_providers(chain_settings, "http://127.0.0.1:9") as (rpc, _):
        found, _ = await read_account(rpc, CHAIN_ID, BUYER_ACCOUNTS[0].address.lower(), max_wait=9)

    assert (found.kind, found.transaction_count, found.is_sanctioned) == ("unknown", None, None)


async def test_slow_node_is_abandoned(chain_settings: Settings) -> None:
    async with open_providers(chain_settings, "http://127.0.0.1:9") as (rpc, _):
        found, _ = await read_account(rpc, CHAIN_ID, BUYER_ACCOUNTS[0].address.lower(), max_wait=0)

    assert found == Account("unknown")
    assert "did not answer within 0 s" in rpc.trace.warnings[0]
    assert rpc.trace.providers["rpc"]["status"] == "timeout"


class RequestCounter:
    """Middleware that lists the paths of requests."""

    def __init__(self, app: ASGIApp, requests: list[str]) -> None:
        self.app, self.requests = app, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.extend([scope["path"]] if scope["type"] == "http" else [])
        await self.app(scope, receive, send)


async def test_safe_and_delegation_are_identified_by_code(chain_settings: Settings) -> None:
    exchanges = install_market(EvmChain(CHAIN_ID, {}))
    exchanges.operator.chain.change_state(_put_accounts)
    exchanges.set_ens_name(SAFE, "p\u0430y.eth")
    app, requests = create_rpc_app(exchanges.operator.chain), list[str]()
    app.add_middleware(RequestCounter, requests=requests)
    with serve_app(app, 0) as url:
        async with open_providers(chain_settings, url) as (rpc, _):
            addresses = (SAFE, EXTENDED_SAFE, DELEGATED)
            found = [(await read_account(rpc, CHAIN_ID, each, max_wait=9))[0] for each in addresses]

    assert found == [
        Account("safe", threshold=2, owner_count=3, has_modules=False, is_sanctioned=False),
        Account("safe", threshold=2, owner_count=3, has_modules=True, is_sanctioned=False),
        Account(
            "delegated_wallet", delegate_address="0x" + "7e" * 20, transaction_count=9, is_sanctioned=False
        ),
    ]
    assert len(requests) == len(found)
    (warning,) = rpc.trace.warnings
    assert warning.startswith("the ENS name of the address is left out")


def _put_accounts(state: StateAPI) -> None:
    """Put a Safe, one with modules, and a delegated wallet at their addresses."""
    safe, extended, delegated = map(to_canonical_address, (SAFE, EXTENDED_SAFE, DELEGATED))
    singleton = min(SAFE_SINGLETONS)
    # the layout of the fake Safe: its nonce is where the proxy keeps the address of its code
    for address, modules in ((safe, 0), (extended, 2)):
        state.set_code(address, SAFE_PROXY_CODE)
        for slot, value in enumerate((int(singleton, 16), 2, 3, 0, modules)):
            state.set_storage(address, slot, value)
    code = load_contract(TEST_CONTRACTS, "Owners", "Safe").initcode + encode(
        ["address[]", "uint256"], [[ZERO], 1]
    )
    create_contract_at(state, singleton, code, sender=OPERATOR.address)
    state.set_code(delegated, bytes.fromhex("ef0100" + "7e" * 20))
    state.set_nonce(delegated, 9)


def test_delegated_wallet_names_its_contract() -> None:
    owner = Owner(ZERO, "wallet", delegate_address="0x" + "de" * 20)

    account = classify_account_owner(owner, transaction_count=3, name=None, is_sanctioned=None)

    assert (account.kind, account.delegate_address, account.transaction_count) == (
        "delegated_wallet",
        owner.delegate_address,
        3,
    )
