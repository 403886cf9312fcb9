"""Commands of `centgate wallet`: generate a key, show its balance and its payments."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from pathlib import Path

from centgate.cli.buyer.console import create_console, format_json, text_line
from centgate.cli.buyer.exit_codes import ExitCode, read_buyer_settings, reports_errors
from centgate.cli.buyer.node import Node, parse_number, query_node
from centgate.cli.buyer.render import receipts_json, render_pairs, render_receipts
from centgate.client import BuyerError, Centgate, Ledger, Wallet
from centgate.client.errors import Drift, NoWallet
from centgate.client.settings import BuyerSettings
from centgate.signing.assets import USDC, Asset
from centgate.signing.evm import encode_word

BALANCE_OF_SELECTOR = "0x70a08231"
"""Selector of ERC-20's `balanceOf(address)`."""


@reports_errors
def make_wallet(path: Path | None) -> ExitCode:
    """Generate a key in a new file."""
    file = read_buyer_settings(wallet=path).wallet.expanduser()
    wallet = Wallet.new(file)
    out = create_console()
    out.print(render_pairs({"address": wallet.address, "key file": str(file)}), soft_wrap=True)
    out.print(
        text_line(
            "Back up the file: anyone who has it can spend the money. Send USDC to the address, on the "
            "network that `centgate wallet show` names; no other coin is needed."
        )
    )
    return 0


@reports_errors
def show_wallet(path: Path | None, api: str | None, rpc: str | None) -> ExitCode:
    """Print the address, the API's payment network, and the balance if a node is given."""
    settings = read_buyer_settings(wallet=path, api_url=api)
    wallet = settings.open_wallet()
    if wallet is None:
        raise NoWallet(f"there is no wallet: make one with `centgate wallet new` ({settings.wallet})")
    network, problem = _payment_network(settings)
    lines = {
        "address": wallet.address,
        "key": "CENTGATE_WALLET_KEY" if settings.wallet_key else str(settings.wallet.expanduser()),
        "network": network or f"unknown: {problem}",
        "may be paid on": ", ".join(settings.networks) or "test networks only (CENTGATE_NETWORKS)",
        "balance": _format_balance(wallet, rpc) if rpc else "not read: name a node with --rpc",
        "to fund it": f"send USDC on {network or 'its network'} to the address; no other coin is needed",
    }
    create_console().print(render_pairs(lines), soft_wrap=True)
    return 0


@reports_errors
def show_receipts(*, json: bool) -> ExitCode:
    """Print the current state of every payment in the ledger."""
    records = Ledger(read_buyer_settings().ledger).records()
    out = create_console()
    if json:
        out.print(text_line(format_json(receipts_json(records))), soft_wrap=True)
    else:
        out.print(render_receipts(records) if records else text_line("No payments yet."), soft_wrap=True)
    return 0


def _payment_network(settings: BuyerSettings) -> tuple[str | None, str]:
    """Return the API's payment network, or None and the reason why it is unknown."""
    try:
        with Centgate.from_settings(settings) as client:
            return client.services()[0].payment.network or None, f"{settings.api_url} does not say"
    except BuyerError as error:
        return None, str(error)
    except IndexError:
        return None, f"{settings.api_url} sells nothing"


def _format_balance(wallet: Wallet, rpc: str) -> str:
    network, usd = query_node(rpc, partial(_query_balance, address=wallet.address))
    return f"{usd} USDC on {network}"


async def _query_balance(node: Node, address: str) -> tuple[str, Decimal]:
    """Return the node's network, and the USDC balance of an address on it."""
    network = await node.read_network()
    token = _usdc_of(network)
    call = {"to": token.address, "data": BALANCE_OF_SELECTOR + encode_word(address)}
    base_units = parse_number(await node.call("eth_call", [call, "latest"]))
    return network, Decimal(base_units) / 10**token.decimals


def _usdc_of(network: str) -> Asset:
    if network not in USDC:
        raise Drift(
            f"the node is on {network}, for which this client has no USDC; supported: {', '.join(USDC)}"
        )
    return USDC[network]
