"""`centgate wallet cap`: the count against the total cap, and what a node says of expired payments."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from centgate.client import Ledger
from centgate.client.errors import Drift, NoWallet
from centgate.client.exchange import Way
from centgate.client.payment import Payment
from centgate.client.settings import BuyerSettings
from centgate.client.shell.node import call_node, parse_number, read_network, run_at_node
from centgate.client.shell.printing import as_json, console, line
from centgate.client.shell.showing import last_of_each, pairs_page
from centgate.client.shell.telling import ExitCode, settings_given, told

AUTHORIZATION_STATE = "0xe94a0102"
"""The first four bytes of `authorizationState(address,bytes32)`, as EIP-3009 has it."""
MARGIN = 600
"""Seconds after the end of a window, by our clock and by the chain's, since clocks differ."""


@dataclass(frozen=True, slots=True)
class NodeFindings:
    """Payments whose nonces a node shows unused after their windows, and those whose nonces it shows used."""

    unused: tuple[Payment, ...] = ()
    used: tuple[Payment, ...] = ()


@told
def show_cap(path: Path | None, rpc: str | None, *, reset: bool, json: bool) -> ExitCode:
    """Show the count; before that, begin a new one or ask the node."""
    settings = settings_given(wallet=path)
    wallet, ledger = settings.open_wallet(), Ledger(settings.ledger)
    if wallet is None:
        raise NoWallet(f"there is no wallet: make one with `centgate wallet new` ({settings.wallet})")
    found = _release(ledger, wallet.address, rpc) if rpc else NodeFindings()
    with ledger.entry() as entry:
        if reset:
            entry.reset_cap(wallet.address)
        signed = entry.signed_usd(wallet.address)
    _show(settings, wallet.address, signed, found, json=json)
    return 0


def _release(ledger: Ledger, payer: str, rpc: str) -> NodeFindings:
    """Ask the node for payments that can no longer move, and stop counting those that did not."""
    with ledger.entry() as entry:
        counted = entry.counted(payer)
        latest = last_of_each(entry.records())
    ended = time.time() - MARGIN
    doubtful = [
        each.payment
        for each in latest
        if each.payment.nonce in counted and each.money != "moved" and each.payment.valid_before < ended
    ]
    found = run_at_node(rpc, _ask(rpc, doubtful))
    with ledger.entry() as entry:
        for payment in found.unused:
            why = "its window has ended, and a node of the wallet's owner shows its nonce unused"
            entry.write("unused", payment, "not_moved", why=why)
    return found


def _ask(rpc: str, payments: Sequence[Payment]) -> Way[NodeFindings]:
    network = yield from read_network(rpc)
    block: Any = yield from call_node(rpc, "eth_getBlockByNumber", ["latest", False])
    number, timestamp = str(block["number"]), parse_number(block["timestamp"])
    unused: list[Payment] = []
    used: list[Payment] = []
    for payment in payments:
        # a node that lags behind the window knows nothing of its end
        if payment.network != network or timestamp < payment.valid_before + MARGIN:
            continue
        data = AUTHORIZATION_STATE + _word(payment.payer) + _word(payment.nonce)
        call = {"to": payment.asset, "data": data}
        state = str((yield from call_node(rpc, "eth_call", [call, number])))
        if parse_number(state) not in (0, 1) or len(state) != len("0x") + 64:
            raise Drift(f"{rpc} does not say whether the nonce {payment.nonce} was used")
        (used if parse_number(state) else unused).append(payment)
    return NodeFindings(tuple(unused), tuple(used))


def _word(value: str) -> str:
    """Encode an address or a nonce as a word of 32 bytes in hex."""
    return value.removeprefix("0x").lower().rjust(64, "0")


def _show(settings: BuyerSettings, payer: str, signed: Decimal, found: NodeFindings, *, json: bool) -> None:
    left = max(settings.cap_total - signed, Decimal(0))
    if json:
        content: dict[str, Any] = {
            "payer": payer,
            "ledger": str(settings.ledger),
            "signedUsd": str(signed),
            "capUsd": str(settings.cap_total),
            "leftUsd": str(left),
            "unused": _nonces(found.unused),
            "used": _nonces(found.used),
        }
        console().print(line(as_json(content)), soft_wrap=True)
        return
    lines = {
        "address": payer,
        "ledger": str(settings.ledger),
        "signed for": f"${signed}, which counts against the cap",
        "cap in all": f"${settings.cap_total} (CENTGATE_CAP_TOTAL)",
        "left": f"${left}",
    }
    if found.unused:
        lines["returned"] = f"{_sum(found.unused)}: the node shows these payments unused after their window"
    if found.used:
        lines["used"] = (
            f"{_sum(found.used)}: the node shows these nonces used: {', '.join(_nonces(found.used))}"
        )
    console().print(pairs_page(lines), soft_wrap=True)


def _sum(payments: Iterable[Payment]) -> str:
    return f"${sum((each.usd for each in payments), Decimal(0))}"


def _nonces(payments: Iterable[Payment]) -> list[str]:
    return [each.nonce for each in payments]
