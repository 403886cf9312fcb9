"""The whole story, step by step."""

from __future__ import annotations

from contextlib import ExitStack

import httpx
from rich.console import Console

from centgate import server
from centgate.demo import client, money, wallet, web
from centgate.demo.shopper import DemoFailed, Shopper
from centgate.demo.site import serving_site
from centgate.dev import Development, development
from centgate.settings import Settings


def run_demo(settings: Settings) -> None:
    """Run every step; DemoFailed names the first that went wrong."""
    console = Console(highlight=False, soft_wrap=True)
    console.rule("[bold]Centgate: facts for agents at one cent a call")
    with ExitStack() as running:
        site = running.enter_context(serving_site())
        house = running.enter_context(development(_reading(settings, site)))
        url = running.enter_context(server.serving(house.settings))
        http = running.enter_context(httpx.Client(base_url=url, timeout=30))
        console.print(
            f"chain [cyan]{house.chain.rpc_url}[/] ({house.chain.kind}), facilitator "
            f"[cyan]{house.chain.facilitator_url}[/], API [cyan]{url}[/]\n"
        )
        try:
            paid = _shop(Shopper(console, house.chain, house.settings, http), house, site=site, api=url)
        except httpx.HTTPError as error:
            raise DemoFailed(f"the API could not be reached: {error}") from error
    console.print(f"\n[bold green]Done.[/] {paid} answers for {paid} cents, and a repetition for nothing.")


def _reading(settings: Settings, site: str) -> Settings:
    """Settings by which the demonstration's own site may be fetched."""
    address = site.removeprefix("http://")
    return settings.model_copy(update={"fetch_allowed": (*settings.fetch_allowed, address)})


def _shop(buyer: Shopper, house: Development, *, site: str, api: str) -> int:
    """Every step; gives the number of answers that were paid for."""
    before = money.balances(buyer, house)
    money.ask_and_pay(buyer)
    wallet.look_at(buyer)
    web.read_site(buyer, site)
    web.read_documentation(buyer, house.settings)
    client.buy_under_caps(buyer, api)
    money.show_balances(buyer, before, money.balances(buyer, house))
    return buyer.paid
