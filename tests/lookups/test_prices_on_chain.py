"""Dollar values of wallet-brief, approval-risk and contract-explain by the prices that the chain tells."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from buyer import ApiFactory
from fake_upstreams import FakeUpstreams, configure_providers, send_paid, serve_prices
from lookups.pool_market import COIN, DOLLAR, TOKEN, Market

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.deployer import Deployer
from centgate.settings import ProviderSettings, Settings

HOLDER, SPENDER = BUYER_ACCOUNTS[0], "0x" + "5e" * 20
WALLET = HOLDER.address.lower()
WETH = "0x4200000000000000000000000000000000000006"
USDC = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
NATIVE = "0x" + "00" * 20
OTHER_SOURCES = ("alchemy", "blockscout", "goplus", "etherscan", "sourcify", "bytecode")
SUBJECT = {"contract-explain": "contractAddress"}
"""Name of the address in requests, where it is no wallet's."""
DOLLARS = (
    "known dollar stablecoins that no explorer prices count as one dollar, whatever they are worth, and no "
    "other token is priced in this way"
)
CHAIN_PRICES = f"without DefiLlama, the native coin and its wrapped form have Chainlink's price, {DOLLARS}"
DOLLARS_ALONE = f"without DefiLlama, {DOLLARS}"

BuyOnChain = Callable[..., dict[str, Any]]


@pytest.fixture
def buy_on_chain(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, base_market: Market
) -> BuyOnChain:
    """Function that buys an answer about a holder of 2 coins, 3 wrapped, 50 USDC and 7 of another token.

    The keywords are changed settings.
    """
    exchanges, operator = base_market.exchanges, base_market.exchanges.operator
    held = {exchanges.wrap(3 * COIN): 3 * COIN, exchanges.stablecoin("USDC", 50 * DOLLAR): 50 * DOLLAR}
    operator.transfer_native(WALLET, 2 * COIN)
    for token, amount in {**held, base_market.token: 7 * TOKEN}.items():
        operator.send(token, "transfer(address,uint256)", WALLET, amount)

    def buy(service: str, **changes: Any) -> dict[str, Any]:
        providers = {name: ProviderSettings(enabled=False) for name in OTHER_SOURCES}
        providers |= upstreams.provider_settings("defillama")
        providers["rpc_8453"] = ProviderSettings(url=base_market.url)
        configured = configure_providers(settings, providers).model_copy(update=changes)
        body = {"chainId": 8453, SUBJECT.get(service, "walletAddress"): WALLET}
        response = send_paid(api(configured), f"/services/{service}", body)
        assert response.status_code == 200, response.text
        return response.json()

    return buy


def price_of(row: dict[str, Any]) -> tuple[float, str] | None:
    """Return the price of a balance and its source."""
    worth = row["worth"]
    return worth and (worth["priceUsd"], worth["source"])


def token_prices(brief: dict[str, Any]) -> dict[str, tuple[float, str] | None]:
    """Return the prices of the token balances by address."""
    return {each["tokenAddress"]: price_of(each) for each in brief["data"]["tokenBalances"]}


def price_warnings(answer: dict[str, Any]) -> list[str]:
    """Return the warnings on the prices of the chain."""
    return [each for each in answer["warnings"] if "without DefiLlama" in each or "Chainlink" in each]


@pytest.mark.parametrize("way", ["resale", "down"])
async def test_brief_has_chain_prices_without_defillama(
    buy_on_chain: BuyOnChain, upstreams: FakeUpstreams, base_market: Market, way: str
) -> None:
    upstreams.faults["defillama"] = "500"

    brief = buy_on_chain("wallet-brief", resale_permitted_only=way == "resale")

    native, total = brief["data"]["nativeBalance"], brief["data"]["total"]
    assert price_of(native) == (2000, "chainlink")
    assert native["worth"]["pricedAt"] is not None
    assert (native["worth"]["confidence"], native["worth"]["doubtful"]) == (None, False)
    assert token_prices(brief) == {
        WETH: (2000, "chainlink"),
        USDC: (1, "peg"),
        base_market.token.lower(): None,
    }
    assert (total["usd"], total["doubtfulUsd"], total["unpricedCount"]) == (10_050, 0, 1)
    assert price_warnings(brief) == [CHAIN_PRICES]


async def test_prices_of_defillama_are_preferred(
    buy_on_chain: BuyOnChain, upstreams: FakeUpstreams, base_market: Market
) -> None:
    serve_prices(upstreams, {NATIVE: 1990, USDC: 0.5}, chain="base")
    base_market.exchanges.set_feed(base_market.exchanges.addresses.native_feed, 1, updated_at=1)

    brief = buy_on_chain("wallet-brief")

    assert price_of(brief["data"]["nativeBalance"]) == (1990, "defillama")
    assert token_prices(brief)[USDC] == (0.5, "defillama")
    assert price_warnings(brief) == []


@pytest.mark.parametrize("trouble", ["stale", pytest.param("sequencer", marks=pytest.mark.extended)])
async def test_unreliable_feed_prices_no_coin(
    buy_on_chain: BuyOnChain, base_market: Market, trouble: str
) -> None:
    exchanges, now = base_market.exchanges, int(time.time())
    addresses = exchanges.addresses
    if trouble == "stale":
        exchanges.set_feed(addresses.native_feed, 3_000 * 10**8, updated_at=now - 3 * 3600)
    else:
        exchanges.set_feed(addresses.sequencer_feed, 1, started_at=now - 10**6, updated_at=now)

    brief = buy_on_chain("wallet-brief", resale_permitted_only=True)

    assert brief["data"]["nativeBalance"]["worth"] is None
    assert token_prices(brief) == {WETH: None, USDC: (1, "peg"), base_market.token.lower(): None}
    assert brief["data"]["total"]["usd"] == 50
    reason, source = price_warnings(brief)
    assert "Chainlink's price" in reason
    assert source == DOLLARS_ALONE


async def test_value_at_risk_has_chain_prices_without_defillama(
    buy_on_chain: BuyOnChain, upstreams: FakeUpstreams, base_market: Market
) -> None:
    upstreams.faults["defillama"] = "500"
    holder = Deployer(base_market.exchanges.operator.chain, HOLDER)
    for token, amount in {WETH: COIN, USDC: 20 * DOLLAR, base_market.token: TOKEN}.items():
        holder.send(token, "approve(address,uint256)", SPENDER, amount)

    answer = buy_on_chain("approval-risk")

    at_risk = {
        each["token"]["address"]: each["allowance"]["exposedUsd"] for each in answer["data"]["approvals"]
    }
    assert at_risk == {WETH: 2000, USDC: 20, base_market.token.lower(): None}
    assert answer["data"]["exposure"] == {"usd": 2020, "unpricedTokens": 1}
    assert price_warnings(answer) == [CHAIN_PRICES]


@pytest.mark.parametrize("is_stale", [False, True])
async def test_balance_of_contract_has_chain_price(
    buy_on_chain: BuyOnChain, base_market: Market, *, is_stale: bool
) -> None:
    if is_stale:
        feed, old = base_market.exchanges.addresses.native_feed, int(time.time()) - 3 * 3600
        base_market.exchanges.set_feed(feed, 2_000 * 10**8, updated_at=old)

    balance = buy_on_chain("contract-explain")["data"]["nativeBalance"]

    assert (balance["symbol"], balance["amountBaseUnits"], balance["source"]) == ("ETH", str(2 * COIN), "rpc")
    assert price_of(balance) == (None if is_stale else (2000, "chainlink"))
    assert is_stale or balance["worth"]["valueUsd"] == 4000
