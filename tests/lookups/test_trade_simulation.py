"""Simulated trades: the table of cases on a real EVM, other exchanges, and nodes with fewer features."""

from __future__ import annotations

import dataclasses
import itertools
import json
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest
from fake_upstreams import FakeUpstreams, RecordedRequest
from lookups.pool_market import LAUNCHPAD_HOOKS, REFUSE, create_fee_hooks
from lookups.token_cases import CASES, TokenCase
from lookups.token_world import (
    ETHER,
    ETHEREUM,
    POOL_COINS,
    POOL_TOKENS,
    WETH,
    TokenWorld,
    create_world,
    find_errors,
    v2_key,
)
from msgspec.structs import replace
from tampering_proxy import Interceptor, forward_to_node, rpc_error, start_proxy

from centgate.crypto.token.pools import DYNAMIC_FEE, PoolKey, PoolKind
from centgate.crypto.token.security import Simulation
from centgate.crypto.token.trade_verdict import CODE_REFUSED, CODE_UNTRIED, WALLET_FAILS
from centgate.devchain.http_server import serve_app, silence_libraries
from centgate.devchain.rpc import create_rpc_app
from centgate.devchain.token import CHAIN_ID
from centgate.errors import ProviderFailure
from centgate.lookups.chain_pools import find_pools
from centgate.lookups.trade_simulation import simulate_on_chain
from centgate.provider import RequestTrace
from centgate.providers.jsonrpc.simulated_calls import SimulatedCall
from centgate.providers.rpc import Rpc
from centgate.resources import open_resources
from centgate.settings import ProviderSettings, Settings

CASE_BY_NAME = {case.name: case for case in CASES}
ESSENTIAL = {"tax on both", "pause between trades", "revert on sale", "blocked after some blocks"}
"""Cases of `make test`: each needs another part of the rules."""
SELL_TOKENS = "0x9b4db972"
"""Selector of a sale at a holder."""
TRADE_FOR = "0xd5e38bd2"
"""Selector of the trades of a wallet."""
BUY_AND_SELL = "0xbf553a3c"
"""Selector of the trades of the transaction's sender."""
TRANSFER = "0xa9059cbb"
"""Selector of `transfer`, which the wallets of holders call."""
NO_POOL = "0x" + "12" * 20
"""Address of a pool in which nobody can buy."""


@dataclass
class ServedWorld:
    """Chain with tokens, and the URL of its node."""

    world: TokenWorld
    url: str

    def token(self, name: str) -> tuple[str, PoolKey]:
        """Return token and v2 pool of a case, which is deployed at its first use."""
        return self.world.pools.get(name) or self.world.add(CASE_BY_NAME[name])


@pytest.fixture(scope="module")
def market() -> Generator[ServedWorld]:
    """One chain for all tests of this file."""
    world = create_world()
    with serve_app(create_rpc_app(world.owner.chain), 0) as url:
        yield ServedWorld(world, url)


@pytest.fixture(autouse=True)
def quiet_chain() -> Generator[None]:
    """Silence the log of the chain's server."""
    with silence_libraries():
        yield


@asynccontextmanager
async def open_rpc(url: str) -> AsyncGenerator[Rpc]:
    """Open the provider with one node."""
    node = {f"rpc_{CHAIN_ID}": ProviderSettings(url=url)}
    settings = Settings(port=0, network=f"eip155:{CHAIN_ID}", providers=node)
    async with open_resources(settings) as resources:
        yield Rpc(settings, resources).bind(RequestTrace())


async def simulate(url: str, token: str, pools: Sequence[PoolKey], holders: Sequence[str] = ()) -> Simulation:
    """Simulate trades on the node at a URL."""
    async with open_rpc(url) as rpc:
        return await simulate_on_chain(rpc, CHAIN_ID, token, pools, holders)


def case_parameters() -> list[Any]:
    """Return every case; most of them only for `make test-all`."""
    marks = {case.name: [] if case.name in ESSENTIAL else [pytest.mark.extended] for case in CASES}
    return [pytest.param(case, id=case.name, marks=marks[case.name]) for case in CASES]


@pytest.mark.extended
@pytest.mark.parametrize("case", case_parameters())
async def test_case_has_its_verdict(market: ServedWorld, case: TokenCase):
    token, pool = market.token(case.name)

    found = await simulate(market.url, token, [pool])

    assert find_errors(case, found) == []


def test_honest_token_is_never_a_honeypot():
    assert len({case.kind for case in CASES}) >= 25
    assert [case.name for case in CASES if case.honest and case.honeypot] == []


@pytest.mark.extended
@pytest.mark.parametrize(
    ("kind", "token_kind", "expected"),
    [
        ("v3", "RevertOnSell", (True, None)),
        ("v4", "TaxOnBoth", (False, 10)),
        *(
            pytest.param(*case, marks=pytest.mark.extended)
            for case in [
                ("solidly", "TaxOnBoth", (False, 10)),
                ("solidly", "Plain", (False, 0)),
                ("solidly", "SilentZero", (True, None)),
                ("v3", "Plain", (False, 0)),
                # ordinary routers cannot sell it, but a seller who pays the tax in addition can
                ("v3", "TaxOnSell", (None, 10)),
                ("algebra", "Plain", (False, 0)),
                ("algebra", "RevertOnSell", (True, None)),
                ("v4", "Plain", (False, 0)),
                ("v4", "RevertOnSell", (True, None)),
                ("v4", "GasBomb", (True, None)),
                ("v4", "Cooldown", (False, 0)),
            ]
        ),
    ],
)
async def test_case_has_its_verdict_on_other_exchanges(
    market: ServedWorld, kind: PoolKind, token_kind: str, expected: tuple[bool | None, float | None]
):
    token = market.world.deploy(token_kind)
    pool = market.world.open_pool(token, kind)
    holders = market.world.give(token)

    found = await simulate(market.url, token, [pool], holders)

    assert (found.honeypot, found.sell_tax) == expected, found
    assert found.pair_address == pool.address
    assert found.holder_sales is not None
    assert found.holder_sales.tested == len(holders)


@pytest.mark.extended
async def test_quote_token_is_bought_for_the_trade(market: ServedWorld):
    world = market.world
    usdc = world.exchanges.stablecoin("USDC", 2_000_000 * 10**6)
    world.exchanges.wrap(500 * ETHER)
    world.exchanges.add_v2_pool({usdc: 1_000_000 * 10**6, ETHEREUM.wrapped_native: 500 * ETHER})
    token = world.deploy("TaxOnBoth")
    pair = world.exchanges.add_v2_pool({token: POOL_TOKENS, usdc: 100_000 * 10**6}).lower()
    world.owner.send(token, "addPool(address,address)", pair, usdc)
    first, second = sorted((token.lower(), usdc.lower()))

    found = await simulate(market.url, token, [PoolKey("v2", pair, first, second, "Uniswap v2", 3000)])

    assert (found.honeypot, found.buy_tax, found.sell_tax) == (False, 5, 10), found


@pytest.mark.extended
async def test_largest_sale_and_purchase_are_found(market: ServedWorld):
    seller, wallet = market.token("largest sale"), market.token("largest wallet")

    sold = await simulate(market.url, seller[0], [seller[1]])
    bought = await simulate(market.url, wallet[0], [wallet[1]])

    assert sold.max_sell is not None
    assert sold.max_sell.tokens is not None
    assert bought.max_buy is not None
    assert bought.max_buy.tokens is not None
    # the limits are 500,000 and 2,500,000 tokens, found within two percent of the largest trade
    assert 400_000 <= sold.max_sell.tokens <= 500_000
    assert 2_400_000 <= bought.max_buy.tokens <= 2_500_000


async def test_empty_pool_has_no_verdict(market: ServedWorld):
    token = market.world.deploy("Plain")

    found = await simulate(market.url, token, [v2_key(token, "0x" + "ab" * 20)])

    assert (found.succeeded, found.honeypot, found.pair_empty) == (False, None, True)


@pytest.mark.extended
async def test_second_pool_is_used_if_first_is_empty(market: ServedWorld):
    token, pool = market.token("tax on both")

    found = await simulate(market.url, token, [v2_key(token, "0x" + "ab" * 20), pool])

    assert (found.honeypot, found.sell_tax, found.pair_address) == (False, 10, pool.address)


@pytest.mark.extended
async def test_deepest_pool_decides(market: ServedWorld):
    token, trap = market.token("revert on sale")
    # a pool of another exchange, which the token does not know
    other = market.world.open_pool(token, "solidly", known=False)

    assert (await simulate(market.url, token, [trap, other])).honeypot is True
    assert (await simulate(market.url, token, [other, trap])).honeypot is False


async def test_token_is_traded_in_pool_with_hooks_of_launchpad(market: ServedWorld):
    world = market.world
    hooks = create_fee_hooks(world.exchanges, LAUNCHPAD_HOOKS)
    token = world.deploy("TaxOnBoth")
    world.exchanges.wrap(POOL_COINS)
    world.exchanges.add_v4_pool(
        {token: POOL_TOKENS, WETH: POOL_COINS}, fee=DYNAMIC_FEE, tick_spacing=200, hooks=hooks
    )
    world.owner.send(hooks, "set(uint24,bool)", 30_000, not REFUSE)
    async with open_rpc(market.url) as rpc:
        (pool,) = await find_pools(rpc, CHAIN_ID, token.lower())
    world.owner.send(token, "addPool(address,address)", pool.key.address, WETH)

    found = await simulate(market.url, token, [pool.key])

    assert (found.honeypot, found.buy_tax, found.sell_tax) == (False, 5, 10), found


@pytest.mark.extended
async def test_v4_pool_with_most_coins_decides(market: ServedWorld):
    token = market.world.deploy("RevertOnSell")
    thin = market.world.open_pool(token, "solidly", known=False, part=100)
    trap = market.world.open_pool(token, "v4", part=2)

    found = await simulate(market.url, token, [thin, trap])

    # the pools are listed without the depth of v4; no holder was tried in that one
    assert (found.honeypot, found.sell_tax, found.pair_address) == (None, None, trap.address)


@pytest.mark.extended
async def test_v4_pool_is_tried_behind_many_others(market: ServedWorld):
    token = market.world.deploy("RevertOnSell")
    thin = [
        market.world.open_pool(token, kind, known=False, part=100) for kind in ("solidly", "v3", "algebra")
    ]
    trap = market.world.open_pool(token, "v4", part=2)

    found = await simulate(market.url, token, [*thin, trap])

    assert (found.honeypot, found.pair_address) == (None, trap.address), found


@pytest.mark.extended
async def test_narrow_v4_pool_does_not_clear_a_trap(market: ServedWorld):
    world = market.world
    # a token of its own: other tests spend what the owner has of the shared one
    token, trap = world.add(dataclasses.replace(CASE_BY_NAME["revert on sale"], name="beside a narrow pool"))
    narrow = world.open_narrow_v4_pool(token)

    found = await simulate(market.url, token, [trap, narrow])
    behind = await simulate(market.url, token, [replace(trap, address=NO_POOL), trap, narrow])

    assert (found.honeypot, found.pair_address) == (True, trap.address), found
    # no holder is known, as nobody bought in the first pool
    assert (behind.honeypot, behind.pair_address) == (None, trap.address), behind


@pytest.mark.extended
async def test_sender_counts_in_pool_behind_one_without_purchase(market: ServedWorld):
    token, pool = market.token("sells without code if others send")

    found = await simulate(market.url, token, [replace(pool, address=NO_POOL), pool])

    assert (found.honeypot, found.explanation) == (None, CODE_REFUSED), found


@pytest.mark.extended
async def test_wallet_trades_in_pool_behind_one_without_purchase(market: ServedWorld):
    token, pool = market.token("tax on wallets' own sales")

    found = await simulate(market.url, token, [replace(pool, address=NO_POOL), pool])

    assert (found.honeypot, found.explanation) == (None, WALLET_FAILS), found


@pytest.mark.extended
async def test_holders_of_dust_prove_nothing(market: ServedWorld):
    world = market.world
    token = world.deploy("Plain")
    pair = world.open_pair(token)
    for buyer in world.buyers:
        buyer.send(world.router, "buy(address,address)", WETH, pair, value=ETHER // 50)
        balance = world.owner.read(token, "balanceOf(address)", buyer.address)
        buyer.send(token, "transfer(address,uint256)", world.owner.address, balance - 1)

    found = await simulate(market.url, token, [v2_key(token, pair)])

    # a pair pays nothing for one base unit
    assert (found.honeypot, found.holder_sales) == (False, None), found


async def test_node_behind_the_purchases_shows_no_theft(market: ServedWorld, upstreams: FakeUpstreams):
    world = market.world
    token = world.deploy("Plain")
    pair = world.open_pair(token)
    before = world.owner.chain.height
    for buyer in world.buyers:
        buyer.send(world.router, "buy(address,address)", WETH, pair, value=ETHER // 50)

    def answer(request: RecordedRequest) -> tuple[int, Any]:
        body = json.dumps(request.body)
        if SELL_TOKENS not in body:
            return 200, forward_to_node(market.url, request.body)
        entries = forward_to_node(market.url, json.loads(body.replace('"latest"', f'"{before:#x}"')))
        methods = {each["id"]: each["method"] for each in json.loads(body)}
        heights = [each for each in entries if methods[each["id"]] == "eth_blockNumber"]
        for each in heights:
            each["result"] = hex(before)
        return 200, entries

    upstreams.set_response_function("node", "/", answer, method="POST")

    async with open_rpc(upstreams.url_of("node")) as rpc:
        found = await simulate_on_chain(rpc, CHAIN_ID, token, [v2_key(token, pair)], [])

    assert (found.honeypot, found.holder_sales) == (False, None), found
    assert any(each.startswith("sales at 3 of 3 holders gave no result") for each in rpc.trace.warnings)


@pytest.mark.parametrize("result", ["0x", "0x" + "00" * (3 * 32 + 3 * 512), "0x01"], ids=len)
async def test_unreadable_sale_of_holder_is_reported(
    market: ServedWorld, upstreams: FakeUpstreams, result: str
):
    token, pool = market.token("revert on sale")

    def answer(request: RecordedRequest) -> tuple[int, Any]:
        body: Any = request.body
        reply = forward_to_node(market.url, body)
        if isinstance(body, list):
            sales = [each["id"] for each in cast(list[Any], body) if SELL_TOKENS in str(each)]
            for each in reply:
                each["result"] = result if each["id"] in sales[:1] else each["result"]
        return 200, reply

    upstreams.set_response_function("node", "/", answer, method="POST")
    async with open_rpc(upstreams.url_of("node")) as rpc:
        found = await simulate_on_chain(rpc, CHAIN_ID, token, [pool], [])

    assert (found.honeypot, found.holder_sales and found.holder_sales.tested) == (None, 2)
    assert any(each.startswith("sales at 1 of 3 holders gave no result") for each in rpc.trace.warnings)


def is_trade_of_sender(request: dict[str, Any]) -> bool:
    """True for the purchase and sale by the sender of the transaction."""
    return request["method"] == "eth_call" and request["params"][0]["data"].startswith(BUY_AND_SELL)


def is_trade_of_wallet(request: dict[str, Any]) -> bool:
    """True for trades of a wallet by a router."""
    return request["method"] == "eth_call" and request["params"][0]["data"].startswith(TRADE_FOR)


def is_access_list(request: dict[str, Any]) -> bool:
    return request["method"] == "eth_createAccessList"


def is_trade_of_contract(request: dict[str, Any]) -> bool:
    """True for trades of new accounts in a transaction that a contract sends."""
    return is_trade_of_new_account(request) and len(request["params"]) == 2


def is_transfer_of_wallet(request: dict[str, Any]) -> bool:
    """True for a transfer to the pool that a holder's wallet sends."""
    return request["method"] == "eth_call" and request["params"][0]["data"].startswith(TRANSFER)


def is_price_of_gas(request: dict[str, Any]) -> bool:
    return request["method"] == "eth_gasPrice"


def is_paid_call(request: dict[str, Any]) -> bool:
    return request["method"] == "eth_call" and "gasPrice" in request["params"][0]


def is_swap_log(request: dict[str, Any]) -> bool:
    return request["method"] == "eth_getLogs" and isinstance(request["params"][0]["topics"][0], list)


def is_trade_of_new_account(request: dict[str, Any]) -> bool:
    """True for trades of new accounts, whoever sends the transaction."""
    is_creation = request["method"] == "eth_call" and "to" not in request["params"][0]
    # probes of what the node can do are short
    return is_creation and len(request["params"][0]["data"]) > 2_000


async def simulate_without(
    market: ServedWorld, upstreams: FakeUpstreams, name: str, is_lost: Callable[[dict[str, Any]], bool]
) -> tuple[Simulation, Sequence[str]]:
    """Simulate a case's trades at a node that loses some answers, also in a batch. Returns warnings too."""
    token, pool = market.token(name)

    def answer(request: RecordedRequest) -> tuple[int, Any]:
        body: Any = request.body
        reply = forward_to_node(market.url, body)
        is_batch = isinstance(body, list)
        sent = cast(list[Any], body if is_batch else [body])
        lost = {each["id"] for each in sent if is_lost(each)}
        replies = [
            rpc_error(-32000, "header not found") | {"id": each["id"]} if each["id"] in lost else each
            for each in cast(list[Any], reply if is_batch else [reply])
        ]
        return 200, replies if is_batch else replies[0]

    upstreams.set_response_function("node", "/", answer, method="POST")
    async with open_rpc(upstreams.url_of("node")) as rpc:
        found = await simulate_on_chain(rpc, CHAIN_ID, token, [pool], [])
    return found, rpc.trace.warnings


@pytest.mark.extended
@pytest.mark.parametrize(
    ("case", "is_lost", "warning"),
    [
        ("sells without code if others send", is_trade_of_sender, "a check of the transaction's sender"),
        ("sells if a contract sends", is_trade_of_contract, "whether the token lets only simulations sell"),
    ],
)
async def test_lost_call_clears_no_trap(
    market: ServedWorld,
    upstreams: FakeUpstreams,
    case: str,
    is_lost: Callable[[dict[str, Any]], bool],
    warning: str,
):
    found, warnings = await simulate_without(market, upstreams, case, is_lost)

    assert found.honeypot is None, found
    assert [each for each in warnings if each.endswith(f"not checked on the chain: {warning}")]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("case", "is_lost", "warning"),
    [
        (
            "sells if the sender has code",
            is_transfer_of_wallet,
            "not checked on the chain: whether holders can sell without code at their address",
        ),
        (
            "sells in free transactions",
            is_price_of_gas,
            "not checked on the chain: whether the token lets only these sell",
        ),
        (
            "sells if a contract sends",
            is_paid_call,
            "not checked on the chain: whether the token lets only these sell",
        ),
        (
            "tax on wallets' own sales",
            is_trade_of_wallet,
            "not checked on the chain: whether the token treats what wallets sell themselves in another way",
        ),
        ("plain", is_swap_log, "not checked at others on the chain: failed sales, holdings taken away"),
    ],
)
async def test_check_that_was_lost_is_named(
    market: ServedWorld,
    upstreams: FakeUpstreams,
    case: str,
    is_lost: Callable[[dict[str, Any]], bool],
    warning: str,
):
    _, warnings = await simulate_without(market, upstreams, case, is_lost)

    assert [each for each in warnings if warning in each], warnings


@pytest.mark.extended
async def test_refused_trades_make_no_trap_of_a_token_that_refuses_code(
    market: ServedWorld, upstreams: FakeUpstreams
):
    """Some nodes refuse calls with as much gas as the trades of new accounts have."""
    found, warnings = await simulate_without(
        market, upstreams, "no contracts as sellers", is_trade_of_new_account
    )

    assert (found.honeypot, found.explanation) == (None, CODE_UNTRIED), found
    assert any(each.startswith("trades of new accounts in 1 of 1 pools gave no result") for each in warnings)


@pytest.mark.extended
async def test_node_without_access_lists_has_other_trades(market: ServedWorld, upstreams: FakeUpstreams):
    found, warnings = await simulate_without(market, upstreams, "tax on both", is_access_list)

    assert (found.honeypot, found.buy_tax, found.sell_tax) == (False, 5, 10)
    assert [each.partition(";")[0] for each in warnings] == [
        "no trade in a wallet's own transaction could be made"
    ]


@pytest.mark.extended
async def test_node_that_keeps_storage_has_other_trades(market: ServedWorld, upstreams: FakeUpstreams):
    token, pool = market.token("plain")

    def answer(request: RecordedRequest) -> tuple[int, Any]:
        body: Any = request.body
        for each in cast(list[Any], body if isinstance(body, list) else [body]):
            for state in [state for overrides in each["params"][2:] for state in overrides.values()]:
                state.pop("stateDiff", None)
        return 200, forward_to_node(market.url, body)

    upstreams.set_response_function("node", "/", answer, method="POST")
    async with open_rpc(upstreams.url_of("node")) as rpc:
        found = await simulate_on_chain(rpc, CHAIN_ID, token, [pool], [])

    assert found.honeypot is False, found
    assert any(
        each.startswith("no trade in a wallet's own transaction could be made") for each in rpc.trace.warnings
    )


async def test_complete_simulation_has_no_warning(market: ServedWorld, upstreams: FakeUpstreams):
    _, warnings = await simulate_without(market, upstreams, "pause between trades", lambda _request: False)

    assert warnings == []


@pytest.mark.extended
@pytest.mark.parametrize("exchange", ["pancakeswap", "slipstream"])
async def test_callbacks_of_other_v3_pools_are_served(market: ServedWorld, exchange: str):
    world = market.world
    token = world.deploy("Plain")
    world.exchanges.wrap(POOL_COINS)
    amounts = {token: POOL_TOKENS, WETH: POOL_COINS}
    if exchange == "slipstream":
        address = world.exchanges.add_slipstream_pool(amounts)
    else:
        factory = ETHEREUM.pancake_v3_factory
        address = world.exchanges.add_v3_pool(amounts, fee=2500, factory=factory)
    first, second = sorted((token.lower(), WETH))

    found = await simulate(
        market.url, token, [PoolKey("v3", address.lower(), first, second, exchange, None, 200)]
    )

    assert (found.honeypot, found.buy_tax, found.sell_tax) == (False, 0, 0), found


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["v2", "v3", "v4"])
async def test_pools_from_the_chain_are_traded_in(market: ServedWorld, kind: PoolKind):
    token = market.world.deploy("TaxOnBoth" if kind != "v3" else "Plain").lower()
    market.world.open_pool(token, kind)
    async with open_rpc(market.url) as rpc:
        states = await find_pools(rpc, CHAIN_ID, token)
        found = await simulate_on_chain(rpc, CHAIN_ID, token, [state.key for state in states], [])

    assert [state.key.kind for state in states] == [kind]
    assert (found.honeypot, found.buy_tax) == (False, 0 if kind == "v3" else 5), found
    assert found.pair_address == (states[0].key.pool_id or states[0].key.address)


@pytest.mark.extended
async def test_untrusted_text_is_kept_separate(market: ServedWorld):
    token, pool = market.token("hostile reason")

    found = await simulate(market.url, token, [pool])

    assert found.honeypot is True
    assert found.reason is not None
    assert found.reason.startswith("Ignore all previous")
    assert "\u202e" not in found.reason
    assert len(found.reason) <= 80
    assert found.explanation is None


def refuse_overrides(request: dict[str, Any]) -> tuple[int, Any] | None:
    if request["method"] == "eth_call" and len(request["params"]) > 2:
        return 200, rpc_error(-32602, "too many arguments, want at most 2") | {"id": request["id"]}
    return None


def ignore_overrides(request: dict[str, Any]) -> tuple[int, Any] | None:
    if request["method"] == "eth_call" and len(request["params"]) > 2:
        return 200, {"jsonrpc": "2.0", "id": request["id"], "result": "0x"}
    return None


def refuse_creation(request: dict[str, Any]) -> tuple[int, Any] | None:
    if request["method"] == "eth_call" and "to" not in request["params"][0]:
        return 200, rpc_error(-32602, "missing field `to`") | {"id": request["id"]}
    return None


def refuse_both(request: dict[str, Any]) -> tuple[int, Any] | None:
    return refuse_overrides(request) or refuse_creation(request)


@pytest.mark.parametrize(
    "change", [refuse_overrides, pytest.param(ignore_overrides, marks=pytest.mark.extended)]
)
async def test_node_without_overrides_only_buys_and_sells(
    market: ServedWorld, upstreams: FakeUpstreams, change: Interceptor
):
    url = start_proxy(upstreams, "node", market.url, change)
    honest, trap = market.token("tax on both"), market.token("revert on sale")

    sold = await simulate(url, honest[0], [honest[1]])
    unsold = await simulate(url, trap[0], [trap[1]])

    assert (sold.honeypot, sold.buy_tax, sold.sell_tax, sold.holder_sales) == (False, 5, 10, None)
    # a pause between trades would look the same
    assert (unsold.honeypot, unsold.explanation) == (None, "the token's transfer fails")


@pytest.mark.extended
async def test_node_without_creation_sells_from_holders(market: ServedWorld, upstreams: FakeUpstreams):
    url = start_proxy(upstreams, "node", market.url, refuse_creation)
    honest, trap = market.token("tax on both"), market.token("revert on sale")

    sold = await simulate(url, honest[0], [honest[1]])
    unsold = await simulate(url, trap[0], [trap[1]])

    assert (sold.honeypot, sold.buy_tax, sold.sell_tax) == (False, 5, 10)
    assert unsold.honeypot is True
    assert unsold.holder_sales is not None
    assert unsold.holder_sales.failed == unsold.holder_sales.tested == 3


async def test_node_without_both_is_reported(market: ServedWorld, upstreams: FakeUpstreams):
    url = start_proxy(upstreams, "node", market.url, refuse_both)
    token, pool = market.token("tax on both")

    found = await simulate(url, token, [pool])

    assert (found.succeeded, found.honeypot, found.buy_tax) == (False, None, None)
    assert found.explanation == "no node of this chain can simulate calls"


@pytest.mark.extended
async def test_free_calls_replace_refused_paid_calls(market: ServedWorld, upstreams: FakeUpstreams):
    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_call" and "gasPrice" in request["params"][0]:
            return 200, rpc_error(-32000, "insufficient funds for gas * price + value") | {
                "id": request["id"]
            }
        return None

    token, pool = market.token("tax on both")

    found = await simulate(start_proxy(upstreams, "node", market.url, change), token, [pool])

    assert (found.honeypot, found.buy_tax, found.sell_tax) == (False, 5, 10)
    assert found.holder_sales is not None
    assert (found.holder_sales.tested, found.holder_sales.failed) == (3, 0)


@pytest.mark.extended
async def test_unread_sales_are_not_called_lost_tokens(market: ServedWorld, upstreams: FakeUpstreams):
    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_getLogs" and isinstance(request["params"][0]["topics"][1], list):
            return 200, rpc_error(-32000, "query timeout") | {"id": request["id"]}
        return None

    token, pool = market.token("balances are taken later")

    found = await simulate(start_proxy(upstreams, "node", market.url, change), token, [pool])

    assert found.holder_sales is None or not found.holder_sales.siphoned


@pytest.mark.parametrize("lost", ["all events", "one sale"])
async def test_node_without_events_shows_no_theft(market: ServedWorld, upstreams: FakeUpstreams, lost: str):
    """A node whose index of events is behind gives none, and no error; another gives nonsense for one."""
    world = market.world
    token, pool = world.add(dataclasses.replace(CASE_BY_NAME["plain"], name="sold out"))
    for buyer in world.buyers:
        balance = world.owner.read(token, "balanceOf(address)", buyer.address)
        buyer.send(token, "transfer(address,uint256)", world.owner.address, balance)

    def answer(request: RecordedRequest) -> tuple[int, Any]:
        body: Any = request.body
        reply = forward_to_node(market.url, body)
        topics = cast(list[Any], body["params"][0]["topics"] if "eth_getLogs" in str(body) else [])
        # those of holders, which are read last
        if lost == "all events" and any(isinstance(topic, list) for topic in topics[1:]):
            reply["result"] = []
        elif lost == "one sale" and topics[1:] and isinstance(topics[1], list):
            reply["result"][0] = {}
        return 200, reply

    upstreams.set_response_function("node", "/", answer, method="POST")
    async with open_rpc(upstreams.url_of("node")) as rpc:
        found = await simulate_on_chain(rpc, CHAIN_ID, token, [pool], [])

    assert (found.honeypot, found.holder_sales) == (False, None), found
    assert any(
        each.endswith("not checked at them on the chain: holdings taken away") for each in rpc.trace.warnings
    )


@pytest.mark.extended
async def test_garbage_of_node_is_no_verdict(market: ServedWorld, upstreams: FakeUpstreams):
    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_call" and len(str(request["params"])) > 2_000:
            return 200, {"jsonrpc": "2.0", "id": request["id"], "result": "0x" + "ff" * 640}
        return None

    token, pool = market.token("tax on both")

    found = await simulate(start_proxy(upstreams, "node", market.url, change), token, [pool])

    assert (found.succeeded, found.honeypot, found.holder_sales) == (False, None, None)


@pytest.mark.extended
async def test_nodes_with_one_feature_each_are_combined(market: ServedWorld, upstreams: FakeUpstreams):
    creating = start_proxy(upstreams, "creating", market.url, refuse_overrides)
    overriding = start_proxy(upstreams, "overriding", market.url, refuse_creation)
    token, pool = market.token("revert on sale")

    found = await simulate(f"{creating},{overriding}", token, [pool])

    assert (found.honeypot, found.buy_tax, found.pair_empty) == (True, 0, False)


@pytest.mark.extended
async def test_silent_nodes_are_a_failure(market: ServedWorld):
    token, pool = market.token("tax on both")

    with pytest.raises(ProviderFailure):
        await simulate("http://127.0.0.1:9", token, [pool])


@pytest.mark.extended
async def test_refused_call_does_not_affect_others(market: ServedWorld, upstreams: FakeUpstreams):
    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_call" and int(request["params"][0]["gas"], 16) > 20_000_000:
            return 200, rpc_error(-32000, "gas limit is too high") | {"id": request["id"]}
        return None

    token, pool = market.token("revert on sale")

    found = await simulate(start_proxy(upstreams, "node", market.url, change), token, [pool])

    assert (found.honeypot, found.pair_empty) == (True, None)  # no purchase told of the pair


async def test_revert_data_is_returned(market: ServedWorld):
    revert = SimulatedCall(bytes.fromhex("602a60005260206000fd"), 100_000)
    async with open_rpc(market.url) as rpc:
        await rpc.call_features(CHAIN_ID)
        (outcome,) = await rpc.simulate_calls(CHAIN_ID, [revert])

    assert (outcome.succeeded, outcome.data) == (False, (42).to_bytes(32, "big"))


@pytest.mark.extended
async def test_features_are_probed_once(market: ServedWorld, upstreams: FakeUpstreams):
    probes: list[str] = []

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_getBalance":
            probes.append(request["method"])
        return None

    token, pool = market.token("tax on both")
    async with open_rpc(start_proxy(upstreams, "node", market.url, change)) as rpc:
        for _ in range(2):
            await simulate_on_chain(rpc, CHAIN_ID, token, [pool], ["0x" + "12" * 20])

    assert len(probes) == 1


@pytest.mark.extended
async def test_simulation_takes_three_rounds(market: ServedWorld, upstreams: FakeUpstreams):
    starts: list[float] = []

    def change(_request: dict[str, Any]) -> tuple[int, Any] | None:
        starts.append(time.monotonic())
        return None

    token, pool = market.token("tax on both")
    upstreams.delay = 1.0  # on a busy machine the requests of one round start far apart

    found = await simulate(start_proxy(upstreams, "node", market.url, change), token, [pool])

    rounds = count_rounds(starts, upstreams.delay)
    assert found.holder_sales is not None
    assert (rounds, len(starts)) <= (3, 23)


def count_rounds(starts: Sequence[float], delay: float) -> int:
    """Count groups of requests: the next one starts only after an answer, so after the delay."""
    ordered = sorted(starts)
    return 1 + sum(later - earlier > delay * 0.75 for earlier, later in itertools.pairwise(ordered))


@pytest.mark.extended
async def test_contracts_are_no_holders(market: ServedWorld):
    token, pool = market.token("tax on both")
    contracts = [market.world.router, ETHEREUM.wrapped_native]

    found = await simulate(market.url, token, [pool], contracts)

    assert found.holder_sales is None
