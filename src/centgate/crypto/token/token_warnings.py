"""Warnings of a token's verdict: missing checks, sources that disagree, and values that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from centgate.crypto.token.missing_checks import warn_missing_checks
from centgate.crypto.token.security import SOURCE_LABELS, Simulation, TokenFlags, TokenSource
from centgate.crypto.token.source_disagreements import warn_disagreements
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_rule import SALE_SUBJECT

MAX_LISTED_PERCENT = 101
"""Percent that shares of one whole may add up to; a source rounds, and reads them at different times."""


def collect_warnings(evidence: TokenEvidence) -> Iterator[str]:
    """Yield the checks that were not made, the disagreements of sources and their invalid values."""
    flags, simulation = evidence.flags, evidence.simulations.service_result
    yield from warn_missing_checks(evidence)
    yield from warn_disagreements(evidence)
    yield from _warn_impossible_taxes("goplus", flags.unreadable)
    yield from _warn_impossible_taxes("honeypotis", simulation.unreadable)
    yield from _warn_unreadable_simulation(simulation)
    yield from _warn_unreadable_analysis(flags)
    if flags.note:
        yield f"{SOURCE_LABELS['goplus']} notes further risks, in words of its own: see sourceNote"


_TAX_LABELS = {
    "buy_tax": "the buy tax",
    "sell_tax": "the sell tax",
    "transfer_tax": "the transfer tax",
    "simulationResult.buyTax": "the buy tax",
    "simulationResult.sellTax": "the sell tax",
    "simulationResult.transferTax": "the transfer tax",
}


def _warn_impossible_taxes(source: TokenSource, unreadable: tuple[str, ...]) -> Iterator[str]:
    if taxes := [_TAX_LABELS[name] for name in unreadable if name in _TAX_LABELS]:
        names, label = ", ".join(taxes), SOURCE_LABELS[source]
        yield f"unreadable: {label} gives impossible taxes; not checked by it: {names}"


def _warn_unreadable_simulation(simulation: Simulation) -> Iterator[str]:
    label = SOURCE_LABELS["honeypotis"]
    if "honeypotResult.isHoneypot" in simulation.unreadable:
        yield f"unreadable: {label} gives no boolean as isHoneypot; not checked by it: {SALE_SUBJECT}"
    if "flags" in simulation.unreadable:
        yield f"unreadable: {label} raises a flag without a name, which does not count"


def _warn_unreadable_analysis(flags: TokenFlags) -> Iterator[str]:
    label = SOURCE_LABELS["goplus"]
    names = [name for name in flags.unreadable if name not in _TAX_LABELS]
    if shares := [name for name in names if name.endswith("percent")]:
        figures = ", ".join(shares)
        yield f"balance forged or unreadable: {label} gives impossible figures for {figures}"
    for name, rows in (("holders", flags.holders), ("lp_holders", flags.lp_holders)):
        percent = sum(row.percent or 0 for row in rows or ())
        if percent > MAX_LISTED_PERCENT:
            yield (
                f"balance forged or unreadable: {label} lists shares in {name} that add up to {percent:.4g} %"
            )
    if locks := [name for name in names if name.endswith("locked_detail")]:
        yield (
            f"unreadable: {label} gives locks in {', '.join(locks)} whose end cannot be read, so they may "
            "have ended"
        )
    if lists := [name.removesuffix("[]") for name in names if name.endswith("[]")]:
        yield (
            f"unreadable: {label} gives entries in {', '.join(lists)} that cannot be read, so what they hold "
            "is not counted"
        )
    if addresses := [name for name in names if name.endswith("address")]:
        yield f"unreadable: {label} gives no address as {', '.join(addresses)}"
