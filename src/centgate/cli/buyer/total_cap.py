"""`centgate wallet cap`: the total counted towards the cap, and a node's view of expired payments."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import partial
from pathlib import Path

import anyio

from centgate.cli.buyer.exit_codes import ExitCode, read_buyer_settings, reports_errors, require_wallet
from centgate.cli.buyer.render import render_pairs
from centgate.cli.terminal import create_console, print_json
from centgate.client import Ledger
from centgate.client.caps import Spent
from centgate.client.node import NonceStates, release_unused_payments
from centgate.client.payment import Payment
from centgate.client.settings import BuyerSettings


@reports_errors
def show_cap(path: Path | None, rpc: str | None, *, reset: bool, json: bool) -> ExitCode:
    """Print the count; before that, query the node and reset the count if requested."""
    settings = read_buyer_settings(wallet=path, wallet_rpc=rpc)
    wallet, ledger = require_wallet(settings), Ledger(settings.ledger)
    nonces = NonceStates()
    if settings.wallet_rpc:
        nonces = anyio.run(partial(release_unused_payments, ledger, wallet.address, settings.wallet_rpc))
    with ledger.entry() as entry:
        if reset:
            entry.reset_cap(wallet.address)
        spent = entry.spent(wallet.address)
    if json:
        print_json(_describe_as_json(settings, wallet.address, spent, nonces))
    else:
        lines = _describe_as_lines(settings, wallet.address, spent, nonces)
        create_console().print(render_pairs(lines), soft_wrap=True)
    return 0


def _describe_as_json(
    settings: BuyerSettings, payer: str, spent: Spent, nonces: NonceStates
) -> dict[str, str | list[str] | None]:
    """Return the count as members of JSON; amounts are US dollars as decimal text, None for no cap."""
    return {
        "payer": payer,
        "ledger": str(settings.ledger),
        "signedUsd": str(spent.total),
        "capUsd": str(settings.cap_total),
        "leftUsd": str(_subtract_from_cap(settings, spent)),
        "lastHourUsd": str(spent.last_hour),
        "capPerHourUsd": _as_text(settings.cap_per_hour),
        "lastDayUsd": str(spent.last_day),
        "capPerDayUsd": _as_text(settings.cap_per_day),
        "unused": _list_nonces(nonces.unused),
        "used": _list_nonces(nonces.used),
    }


def _describe_as_lines(
    settings: BuyerSettings, payer: str, spent: Spent, nonces: NonceStates
) -> dict[str, str]:
    """Return the count as a text for each label."""
    lines = {
        "address": payer,
        "ledger": str(settings.ledger),
        "signed for": f"${spent.total}, which counts towards the cap",
        "cap in all": f"${settings.cap_total} (CENTGATE_CAP_TOTAL)",
        "left in all": f"${_subtract_from_cap(settings, spent)}",
        "last hour": _format_period(spent.last_hour, settings.cap_per_hour, "CENTGATE_CAP_PER_HOUR"),
        "last day": _format_period(spent.last_day, settings.cap_per_day, "CENTGATE_CAP_PER_DAY"),
    }
    if nonces.unused:
        lines["returned"] = (
            f"{_format_sum(nonces.unused)}: the node shows these payments unused after their window"
        )
    if nonces.used:
        lines["used"] = (
            f"{_format_sum(nonces.used)}: the node shows these nonces used: "
            f"{', '.join(_list_nonces(nonces.used))}"
        )
    return lines


def _subtract_from_cap(settings: BuyerSettings, spent: Spent) -> Decimal:
    """Return the US dollars that the total cap leaves; 0 if it is exceeded."""
    return max(settings.cap_total - spent.total, Decimal(0))


def _as_text(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount)


def _format_period(spent: Decimal, cap: Decimal | None, setting: str) -> str:
    return f"${spent}, no cap ({setting})" if cap is None else f"${spent} of ${cap} ({setting})"


def _format_sum(payments: Iterable[Payment]) -> str:
    return f"${sum((each.usd for each in payments), Decimal(0))}"


def _list_nonces(payments: Iterable[Payment]) -> list[str]:
    return [each.nonce for each in payments]
