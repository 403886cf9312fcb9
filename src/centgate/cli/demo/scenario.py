"""Scenario of the demo: all steps in order."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import httpx
from rich.console import Console

from centgate import server
from centgate.cli.demo import money, wallet, web
from centgate.cli.demo.buyer import DemoBuyer, DemoFailed
from centgate.cli.demo.site import serve_site
from centgate.devchain.environment import DevEnvironment, open_dev_environment
from centgate.prices import DEFAULT_PRICE
from centgate.settings import Settings


def run_demo(settings: Settings) -> None:
    """Run every step. Raises DemoFailed for the first step that fails."""
    console = Console(highlight=False, soft_wrap=True)
    console.rule("[bold]Centgate: facts for agents at one cent a call")
    with ExitStack() as stack:
        site = stack.enter_context(serve_site())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="centgate-demo-")))
        own = _with_demo_settings(settings, site, folder)
        development_chain = stack.enter_context(open_dev_environment(own))
        url = stack.enter_context(server.run_in_thread(development_chain.settings))
        http = stack.enter_context(httpx.Client(base_url=url, timeout=30))
        console.print(
            f"chain [cyan]{development_chain.chain.rpc_url}[/] ({development_chain.chain.kind}), facilitator "
            f"[cyan]{development_chain.chain.facilitator_url}[/], API [cyan]{url}[/]\n"
        )
        try:
            paid_count = _run_steps(
                DemoBuyer(console, development_chain.chain, development_chain.settings, http),
                development_chain,
                site=site,
                api=url,
            )
        except httpx.HTTPError as error:
            raise DemoFailed(f"the API could not be reached: {error}") from error
    console.print(f"\n[bold green]Done.[/] {paid_count} answers for {paid_count} cents, and one free replay.")


def _with_demo_settings(settings: Settings, site: str, folder: Path) -> Settings:
    """Return settings with the demo's own site, prices and indexes; the operator's are not used."""
    address = site.removeprefix("http://")
    allowed = (*settings.fetch_allowed, address)
    return settings.model_copy(
        update={
            "fetch_allowed": allowed,
            "packagedocs_folder": folder / "docs",
            "siteindex_folder": folder / "index",
            "phishing_list_url": ("off",),
            "price": DEFAULT_PRICE,
            "service_prices": {},
        }
    )


def _run_steps(buyer: DemoBuyer, development_chain: DevEnvironment, *, site: str, api: str) -> int:
    """Run every step. Returns the number of paid answers."""
    before = money.read_balances(buyer, development_chain)
    money.ask_and_pay(buyer)
    wallet.inspect_wallet(buyer)
    web.read_site(buyer, site)
    web.read_documentation(buyer, development_chain.settings)
    money.buy_under_caps(buyer, api)
    money.show_balances(buyer, before, money.read_balances(buyer, development_chain))
    return buyer.paid_count
