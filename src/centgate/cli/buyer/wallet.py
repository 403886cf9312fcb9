"""Commands of `centgate wallet`: generate a key, show its balance and its payments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

from centgate.cli.buyer.exit_codes import ExitCode, read_buyer_settings, reports_errors, require_wallet
from centgate.cli.buyer.render import receipts_json, render_pairs, render_receipts
from centgate.cli.terminal import create_console, print_json, text_line
from centgate.client import BuyerError, Centgate, Ledger, Wallet
from centgate.client.node import Balance, open_node
from centgate.client.settings import BuyerSettings
from centgate.environment import node_variable
from centgate.signing.assets import Asset, describe_token


@reports_errors
def make_wallet(path: Path | None, *, json: bool, quiet: bool) -> ExitCode:
    """Generate a key in a new file."""
    file = read_buyer_settings(wallet=path).wallet.expanduser()
    wallet = Wallet.new(file)
    out = create_console()
    if json:
        content = {"address": wallet.address, "keyFile": str(file)}
        print_json(content)
        return 0
    out.print(render_pairs({"address": wallet.address, "key file": str(file)}), soft_wrap=True)
    if not quiet:
        out.print(
            text_line(
                "Back up the file: anyone who has it can spend the money. Send USDC to the address, on the "
                "network that `centgate wallet show` names; no other coin is needed."
            )
        )
    return 0


@reports_errors
def show_wallet(path: Path | None, api: str | None, rpc: str | None, *, json: bool) -> ExitCode:
    """Print the address, the API's payment network, and the balance if a node is given."""
    settings = read_buyer_settings(wallet=path, api_url=api, wallet_rpc=rpc)
    wallet = require_wallet(settings)
    networks, problem = _payment_networks(settings)
    network = " or ".join(networks)
    assets = settings.allowed.assets
    balance = _read_balance(wallet, settings.wallet_rpc, assets) or _read_configured_balance(
        wallet, networks, assets
    )
    key = "CENTGATE_WALLET_KEY" if settings.wallet_key else str(settings.wallet.expanduser())
    if json:
        content: dict[str, Any] = {
            "address": wallet.address,
            "key": key,
            "api": settings.api_url,
            "network": networks[0] if networks else None,
            "networks": networks,
            "problem": None if networks else problem,
            "mayBePaidOn": list(settings.networks),
            "balanceUsd": str(balance.usd) if balance else None,
            "balanceNetwork": balance.network if balance else None,
        }
        print_json(content)
        return 0
    lines = {
        "address": wallet.address,
        "key": key,
        "network": network or f"unknown: {problem}",
        "may be paid on": ", ".join(settings.networks)
        or ", ".join(("test networks only (CENTGATE_NETWORKS)", *assets)),
        "balance": f"{balance.usd} {describe_token(balance.network, balance.asset)} on {balance.network}"
        if balance
        else "not read: name a node with --rpc or CENTGATE_WALLET_RPC",
        "to fund it": f"send {_describe_tokens(networks, assets)} to the address; no other coin is needed",
    }
    create_console().print(render_pairs(lines), soft_wrap=True)
    return 0


@reports_errors
def show_receipts(*, json: bool) -> ExitCode:
    """Print the current state of every payment in the ledger."""
    records = Ledger(read_buyer_settings().ledger).records()
    out = create_console()
    if json:
        print_json(receipts_json(records))
    else:
        out.print(render_receipts(records) if records else text_line("No payments yet."), soft_wrap=True)
    return 0


def _describe_tokens(networks: list[str], assets: Mapping[str, Asset]) -> str:
    """Name the token that is paid with on each network."""
    names = (
        f"{describe_token(network, assets[network].address) if network in assets else 'USDC'} on {network}"
        for network in networks
    )
    return " or ".join(names) or "USDC on its network"


def _payment_networks(settings: BuyerSettings) -> tuple[list[str], str]:
    """Return the API's payment networks, in its order; if there are none, also the reason."""
    try:
        with Centgate.from_settings(settings) as client:
            payment = client.services()[0].payment
    except BuyerError as error:
        return [], str(error)
    except IndexError:
        return [], f"{settings.api_url} sells nothing"
    networks = [each.network for each in payment.accepts] or [payment.network]
    return list(dict.fromkeys(filter(None, networks))), f"{settings.api_url} does not say"


def _read_configured_balance(
    wallet: Wallet, networks: list[str], assets: Mapping[str, Asset]
) -> Balance | None:
    """Return the balance by a node that the environment sets for servers on one of these networks.

    None without such a node, or if it cannot be asked: nobody named it for this wallet.
    """
    for network in networks:
        urls = os.environ.get(node_variable(network), "")
        with suppress(BuyerError):
            if balance := _read_balance(wallet, urls.split(",")[0].strip() or None, assets):
                return balance
    return None


def _read_balance(wallet: Wallet, rpc: str | None, assets: Mapping[str, Asset]) -> Balance | None:
    async def ask(url: str) -> Balance:
        async with open_node(url) as node:
            return await node.read_balance(wallet.address, assets)

    return anyio.run(ask, rpc) if rpc else None
