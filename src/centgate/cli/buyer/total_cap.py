"""`centgate wallet cap`: the total counted towards the cap, and a node's view of expired payments."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from centgate.cli.buyer.console import create_console, format_json, text_line
from centgate.cli.buyer.exit_codes import ExitCode, read_buyer_settings, reports_errors
from centgate.cli.buyer.node import Node, parse_number, query_node
from centgate.cli.buyer.render import latest_records, render_pairs
from centgate.client import Ledger
from centgate.client.errors import Drift, NoWallet
from centgate.client.payment import Payment
from centgate.client.settings import BuyerSettings
from centgate.signing.evm import encode_word

AUTHORIZATION_STATE_SELECTOR = "0xe94a0102"
"""Selector of EIP-3009's `authorizationState(address,bytes32)`."""
EXPIRY_MARGIN = 600
"""Seconds to wait after the end of a window, by the local clock and the chain's, since clocks differ."""


@dataclass(frozen=True, slots=True)
class NonceStates:
    """Expired payments by the state of their nonces on a node: unused or used."""

    unused: tuple[Payment, ...] = ()
    used: tuple[Payment, ...] = ()


@reports_errors
def show_cap(path: Path | None, rpc: str | None, *, reset: bool, json: bool) -> ExitCode:
    """Print the count; before that, query the node and reset the count if requested."""
    settings = read_buyer_settings(wallet=path)
    wallet, ledger = settings.open_wallet(), Ledger(settings.ledger)
    if wallet is None:
        raise NoWallet(f"there is no wallet: make one with `centgate wallet new` ({settings.wallet})")
    findings = _release_unused(ledger, wallet.address, rpc) if rpc else NonceStates()
    with ledger.entry() as entry:
        if reset:
            entry.reset_cap(wallet.address)
        signed = entry.total_signed_usd(wallet.address)
    _print_cap(settings, wallet.address, signed, findings, json=json)
    return 0


def _release_unused(ledger: Ledger, payer: str, rpc: str) -> NonceStates:
    """Query the node for expired payments, and stop counting those whose nonces are unused."""
    with ledger.entry() as entry:
        counted = entry.counted_nonces(payer)
        latest = latest_records(entry.records())
    latest_end = time.time() - EXPIRY_MARGIN
    expired = [
        each.payment
        for each in latest
        if each.payment.nonce in counted and each.money != "moved" and each.payment.valid_before < latest_end
    ]
    findings = query_node(rpc, partial(_query_nonces, payments=expired))
    with ledger.entry() as entry:
        for payment in findings.unused:
            why = "its window has ended, and the wallet owner's node shows its nonce unused"
            entry.write_record("unused", payment, "not_moved", why=why)
    return findings


async def _query_nonces(node: Node, payments: Sequence[Payment]) -> NonceStates:
    network = await node.read_network()
    block: Any = await node.call("eth_getBlockByNumber", ["latest", False])
    number, timestamp = str(block["number"]), parse_number(block["timestamp"])
    unused: list[Payment] = []
    used: list[Payment] = []
    for payment in payments:
        # a node that has not reached the end of the window cannot confirm the state
        if payment.network != network or timestamp < payment.valid_before + EXPIRY_MARGIN:
            continue
        data = AUTHORIZATION_STATE_SELECTOR + encode_word(payment.payer) + encode_word(payment.nonce)
        call = {"to": payment.asset, "data": data}
        state = str(await node.call("eth_call", [call, number]))
        if parse_number(state) not in (0, 1) or len(state) != len("0x") + 64:
            raise Drift(f"{node.rpc} returned no valid state of the nonce {payment.nonce}")
        (used if parse_number(state) else unused).append(payment)
    return NonceStates(tuple(unused), tuple(used))


def _print_cap(
    settings: BuyerSettings, payer: str, signed: Decimal, findings: NonceStates, *, json: bool
) -> None:
    remaining = max(settings.cap_total - signed, Decimal(0))
    if json:
        content: dict[str, Any] = {
            "payer": payer,
            "ledger": str(settings.ledger),
            "signedUsd": str(signed),
            "capUsd": str(settings.cap_total),
            "leftUsd": str(remaining),
            "unused": _nonces(findings.unused),
            "used": _nonces(findings.used),
        }
        create_console().print(text_line(format_json(content)), soft_wrap=True)
        return
    lines = {
        "address": payer,
        "ledger": str(settings.ledger),
        "signed for": f"${signed}, which counts towards the cap",
        "cap in all": f"${settings.cap_total} (CENTGATE_CAP_TOTAL)",
        "left": f"${remaining}",
    }
    if findings.unused:
        lines["returned"] = (
            f"{_format_sum(findings.unused)}: the node shows these payments unused after their window"
        )
    if findings.used:
        lines["used"] = (
            f"{_format_sum(findings.used)}: the node shows these nonces used: "
            f"{', '.join(_nonces(findings.used))}"
        )
    create_console().print(render_pairs(lines), soft_wrap=True)


def _format_sum(payments: Iterable[Payment]) -> str:
    return f"${sum((each.usd for each in payments), Decimal(0))}"


def _nonces(payments: Iterable[Payment]) -> list[str]:
    return [each.nonce for each in payments]
