"""Demo of the crypto services without any third-party source: a node of a development chain tells it all."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from msgspec import Struct, field
from rich.console import Console
from rich.table import Column, Table

from centgate import server
from centgate.catalog import all_providers, all_services
from centgate.cli.demo import wallet
from centgate.cli.demo.buyer import DemoBuyer, expect
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.chain import EvmChain
from centgate.devchain.devnet import open_devchain
from centgate.devchain.environment import devchain_settings
from centgate.devchain.exchanges import Exchanges, install_exchanges
from centgate.lookups.chain_evidence import BURN_ADDRESSES
from centgate.settings import Settings

OWN_SOURCES = {"rpc", "bytecode", "phishinglist"}
"""Sources that are no third party: the operator's node, and code and data of this program."""
COIN = 10**18
SUPPLY = 10**6 * COIN
POOL_COINS = 10 * COIN
"""Native coin in each pool, worth 20,000 dollars by the development chain's price feed."""
HOLDERS = tuple(account.address for account in BUYER_ACCOUNTS[5:8])
LINKS = ("https://wallet-ethereum.net/unlock", "https://metamask.io")


class SampleToken(Struct, frozen=True):
    """A token of the demo, and what the chain has to show of it."""

    name: str
    symbol: str
    is_honeypot: bool
    sale_tax: int
    """Percent."""


SAMPLES = (
    SampleToken("Plain Token", "PLAIN", is_honeypot=False, sale_tax=0),
    SampleToken("Taxed Token", "TAXED", is_honeypot=False, sale_tax=12),
    SampleToken("Trap Token", "TRAP", is_honeypot=True, sale_tax=0),
)


class Market(Struct):
    """The tokens' addresses by symbol; filled when the chain starts."""

    tokens: dict[str, str] = field(default_factory=dict[str, str])

    def create(self, chain: EvmChain) -> None:
        """Deploy the tokens, each with a pool and holders who bought some."""
        exchanges = install_exchanges(chain)
        for sample in SAMPLES:
            self.tokens[sample.symbol] = _deploy_token(exchanges, sample)


def run_crypto_demo(settings: Settings) -> None:
    """Buy six crypto services from the chain alone. Raises DemoFailed for the first answer that is wrong."""
    console, market = Console(highlight=False, soft_wrap=True), Market()
    console.rule("[bold]Centgate: crypto verdicts from nothing but a node")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="centgate-demo-")))
        chain = stack.enter_context(open_devchain(prepare=market.create))
        own = _without_third_parties(devchain_settings(chain, settings, folder))
        url = stack.enter_context(server.run_in_thread(own))
        http = stack.enter_context(httpx.Client(base_url=url, timeout=30))
        buyer = DemoBuyer(console, chain, own, http)
        _judge_tokens(buyer, market)
        _show_pool(buyer, market.tokens["PLAIN"])
        _explain_contract(buyer, market.tokens["TRAP"])
        _check_links(buyer)
        wallet.inspect_wallet(buyer)
        _ask_for_protocol(buyer)
    console.print(f"[bold green]Done.[/] {buyer.paid_count} answers, and no third party was asked.")


def _deploy_token(exchanges: Exchanges, sample: SampleToken) -> str:
    """Deploy a token with a pool of half its supply; some accounts buy. Returns its address.

    The shares of an honest token's pool are burned.
    """
    operator = exchanges.operator
    token = operator.deploy_named(
        "RestrictedToken",
        "RestrictedToken",
        *(sample.name, sample.symbol, SUPPLY, sample.sale_tax, sample.is_honeypot),
    )
    coin = exchanges.wrap(POOL_COINS + len(HOLDERS) * COIN // 10)
    pair = exchanges.add_v2_pool({token: SUPPLY // 2, coin: POOL_COINS})
    operator.send(token, "addPool(address)", pair)
    for holder in HOLDERS:
        exchanges.swap_v2(pair, coin, COIN // 10, holder)
    if not sample.is_honeypot:
        shares = operator.read(pair, "balanceOf(address)", operator.address, returns="uint256")
        operator.send(pair, "transfer(address,uint256)", BURN_ADDRESSES[1], shares)
    return token.lower()


def _without_third_parties(settings: Settings) -> Settings:
    """Return settings in which only the node and this program's own data answer."""
    others = [name for name in all_providers(all_services()) if name not in OWN_SOURCES]
    disabled = {name: replace(settings.provider_settings(name), enabled=False) for name in others}
    return settings.model_copy(
        update={"phishing_list_url": ("off",), "providers": {**settings.providers, **disabled}}
    )


def _judge_tokens(buyer: DemoBuyer, market: Market) -> None:
    buyer.print_line(
        "[bold]1. Three tokens[/]  token-risk buys and sells each in its own pool, in one call\n"
    )
    table = Table("token", "level", "score", "honeypot", "sell tax", Column("worst finding", overflow="fold"))
    for sample in SAMPLES:
        data = _buy(buyer, "token-risk", tokenAddress=market.tokens[sample.symbol])["data"]
        _expect_verdict(sample, data)
        worst = data["riskFlags"][0]
        tax = data["taxes"]["sell"]["percent"]
        table.add_row(
            data["token"]["symbol"],
            data["riskLevel"],
            str(data["riskScore"]["score"]),
            json.dumps(data["honeypot"]["isHoneypot"]),
            "unknown" if tax is None else f"{tax:.4g} %",
            f"{worst['id']}: {worst['explanation']}",
        )
    buyer.print_line(table)
    buyer.print_line()


def _expect_verdict(sample: SampleToken, data: dict[str, Any]) -> None:
    """Check the answer against what the token was made to do."""
    honeypot, tax = data["honeypot"]["isHoneypot"], data["taxes"]["sell"]["percent"]
    expect(honeypot is sample.is_honeypot, f"{sample.symbol}: isHoneypot is {honeypot}")
    if not sample.is_honeypot:
        expect(abs(tax - sample.sale_tax) < 0.01, f"{sample.symbol}: the sell tax is {tax} %")


def _show_pool(buyer: DemoBuyer, token: str) -> None:
    data = _buy(buyer, "pool-snapshot", tokenAddress=token)["data"]
    buyer.print_line(
        f"[bold]2. A pool[/]  pool-snapshot: {data['dex']}, ${data['priceUsd']:.4f}, "
        f"${data['liquidityUsd']:,.0f} of liquidity"
    )
    for impact in data["saleImpacts"]:
        buyer.print_line(f"   a sale of ${impact['usd']:,} loses {impact['lossPercent']} %")
    buyer.print_line()
    expect(len(data["saleImpacts"]) == 3, "the chain quoted no sales")


def _explain_contract(buyer: DemoBuyer, token: str) -> None:
    data = _buy(buyer, "contract-explain", contractAddress=token)["data"]
    proxy, verified = data["proxy"], json.dumps(data["verified"])
    buyer.print_line(
        f"[bold]3. A contract[/]  contract-explain: TRAP is a {proxy['accountKind']}, isProxy is "
        f"{json.dumps(proxy['isProxy'])}, verified is {verified}: a node has no source code\n"
    )
    expect(proxy["accountKind"] == "contract", "the token was not found to be a contract")


def _check_links(buyer: DemoBuyer) -> None:
    statuses = [_buy(buyer, "phishing-check", url=url)["data"]["status"] for url in LINKS]
    rows = ", ".join(f"{url} is {status}" for url, status in zip(LINKS, statuses, strict=True))
    buyer.print_line(f"[bold]4. Links[/]  phishing-check: {rows}\n")
    expect(statuses == ["blocked", "allowed"], f"the links are {statuses}")


def _ask_for_protocol(buyer: DemoBuyer) -> None:
    """Ask the one service that has no source of its own: it says so and costs nothing."""
    body = {"protocol": "aave-v3"}
    path = "/services/protocol-context"
    terms = buyer.request_terms(path, body)
    code = buyer.refuse(path, body, terms)["code"]
    buyer.print_line(f"[bold]6. What a node cannot tell[/]  protocol-context answers {code}, uncharged\n")
    expect(code == "provider_unconfigured", f"protocol-context answered {code}")


def _buy(buyer: DemoBuyer, service: str, **body: Any) -> dict[str, Any]:
    """Buy an answer, and check that only own sources were asked."""
    chain = {} if service == "phishing-check" else {"chainId": buyer.chain.chain_id}
    answer = buyer.buy(f"/services/{service}", {**chain, **body}).json()
    expect(_used_sources(answer["providers"]) <= OWN_SOURCES, f"{service} used a third party")
    return answer


def _used_sources(providers: Iterable[dict[str, Any]]) -> set[str]:
    return {each["name"] for each in providers if each["status"] not in ("skipped", "unconfigured")}
