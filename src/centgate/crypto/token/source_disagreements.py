"""Warnings of a token's verdict about sources that disagree, by subject."""

from __future__ import annotations

from collections.abc import Iterator

from centgate.crypto.contract.contracts import REGISTRY_LABELS
from centgate.crypto.token.evidence.contract import ContractEvidence
from centgate.crypto.token.evidence.ownership import OwnershipEvidence
from centgate.crypto.token.evidence.trade import TradeEvidence
from centgate.crypto.token.powers import POWER_FLAGS
from centgate.crypto.token.security import (
    BYTECODE_FLAGS,
    GOPLUS_FIELDS,
    SOURCE_LABELS,
    TokenFlags,
    TokenSource,
)
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.trades import SimulatedTrade, TaxName

DEEPER_FACTOR = 2
"""Times the listed liquidity from which a source that shows more of it disagrees."""
DIFFERENT_TAX = 5
"""Percentage points from which two readings of a tax disagree."""
_TAXES: tuple[tuple[str, TaxName], ...] = (
    ("buy", "buy_tax"),
    ("sell", "sell_tax"),
    ("transfer", "transfer_tax"),
)


def warn_disagreements(evidence: TokenEvidence) -> Iterator[str]:
    """Yield the facts on which sources disagree, and which of them counts."""
    yield from _warn_other_sales(evidence.trade)
    yield from _warn_other_taxes(evidence.trade)
    if evidence.analysis is not None:
        yield from _warn_other_bytecode(evidence, evidence.analysis)
        yield from _warn_other_owner(evidence.ownership, evidence.analysis.owner_address)
    yield from _warn_other_source(evidence.contract)
    yield from _warn_untested_tax(evidence.flags)
    yield from _warn_other_pairs(evidence)
    yield from _warn_deeper_pairs(evidence)
    if (shares := evidence.lp_holders.shares) and shares.refuted_percent:
        yield (
            f"{SOURCE_LABELS['goplus']} calls {shares.refuted_percent:.4g} % of the liquidity locked that is "
            "in wallets, which cannot lock it: it counts as unlocked"
        )


# trade


def _warn_other_sales(trade: TradeEvidence) -> Iterator[str]:
    if trade.sources_agree is False:
        yield f"sources disagree: {', '.join(_describe_sales(trade))}"
    if not trade.simulations.sale_succeeded:
        return
    for each in trade.simulations.trades:
        if each.is_unproven:
            yield (
                f"a simulated sale went through, but {_name_maker(each)} found: "
                f"{each.result.explanation or 'no sale succeeded'}; isHoneypot is not known"
            )
        if each.do_most_holders_fail:
            failed = each.holder_sales.failed or 0
            yield (
                f"a simulated sale went through, but {failed} of "
                f"{max(each.holder_sales.tested or 0, failed)} holders that {SOURCE_LABELS[each.source]} "
                "tried could not sell: isHoneypot and canSell are not known"
            )


def _describe_sales(trade: TradeEvidence) -> Iterator[str]:
    """Yield a clause for each source that says whether it can be sold."""
    if trade.flags.honeypot is not None:
        yield f"{SOURCE_LABELS['goplus']} says is_honeypot {trade.flags.raw.get('is_honeypot')}"
    for each in trade.simulations.trades:
        if each.has_failed or each.has_sold:
            outcome = "could not sell" if each.has_failed else "sold"
            yield f"the simulation by {_name_maker(each)} {outcome}"


def _name_maker(trade: SimulatedTrade) -> str:
    return "Centgate on the chain" if trade.source == "onchain" else SOURCE_LABELS[trade.source]


def _warn_other_taxes(trade: TradeEvidence) -> Iterator[str]:
    for word, name in _TAXES:
        readings = trade.list_tax_readings(name)
        amounts = [tax for _, tax in readings]
        if amounts and max(amounts) - min(amounts) >= DIFFERENT_TAX:
            clauses = ", ".join(f"{SOURCE_LABELS[source]} {tax:.4g} %" for source, tax in readings)
            yield f"sources disagree on the {word} tax: {clauses}; the highest counts"


def _warn_untested_tax(flags: TokenFlags) -> Iterator[str]:
    if (flags.sell_tax or 0) >= 100 and (flags.trading_cooldown or flags.cannot_buy):
        yield (
            f"the sell tax of 100 % at {SOURCE_LABELS['goplus']} may result from trading limits that kept it "
            "from testing a sale, such as a pause between trades"
        )


# contract and owner


def _warn_other_bytecode(evidence: TokenEvidence, analysis: TokenFlags) -> Iterator[str]:
    """Yield where the bytecode shows other powers than the contract analysis."""
    inferred, label = evidence.bytecode_flags or TokenFlags(), SOURCE_LABELS["goplus"]
    denied = {
        POWER_FLAGS[power.kind]: power.signature
        for power in reversed(evidence.bytecode_powers)
        if power.kind in POWER_FLAGS and getattr(analysis, POWER_FLAGS[power.kind]) is False
    }
    if denied:
        answers = ", ".join(f"{GOPLUS_FIELDS[name]} 0" for name in reversed(denied))
        functions = ", ".join(reversed(denied.values()))
        yield f"sources disagree: the bytecode has {functions}, {label} says {answers}"
    others = [
        GOPLUS_FIELDS[name]
        for name in BYTECODE_FLAGS
        if name not in denied
        and (seen := getattr(inferred, name)) is not None
        and (listed := getattr(analysis, name)) is not None
        and seen != listed
    ]
    if others:
        names = ", ".join(others)
        yield f"sources disagree: the bytecode shows the opposite of what {label} says for {names}"


def _warn_other_source(contract: ContractEvidence) -> Iterator[str]:
    """Yield that sources disagree on whether the source code is published."""
    answers = {
        f"{SOURCE_LABELS['goplus']} says that its source": contract.flags.open_source,
        f"{SOURCE_LABELS['honeypotis']} says that its source": contract.simulated_open_source,
    }
    if source := contract.implementation:
        names = ", ".join(
            REGISTRY_LABELS[record.registry]
            for record in source.records
            if record.is_verified or not source.verified
        )
        answers[f"by {names} that of the code behind it, {source.address},"] = source.verified
    clauses = [
        f"{clause} is {'published' if is_open else 'not published'}"
        for clause, is_open in answers.items()
        if is_open is not None
    ]
    if len({is_open for is_open in answers.values() if is_open is not None}) > 1:
        verdict = "not published" if contract.is_closed_source else "published"
        yield f"sources disagree: {', '.join(clauses)}; it counts as {verdict}"


def _warn_other_owner(ownership: OwnershipEvidence, listed: str | None) -> Iterator[str]:
    """Yield that the chain shows another owner than the contract analysis lists."""
    shown = ownership.owner.address if ownership.owner else None
    if not shown:
        return
    if ownership.is_unlisted and not listed:
        yield (
            f"sources disagree: the owner on the chain is {shown}, {SOURCE_LABELS['goplus']} names none; the "
            "chain counts"
        )
    elif listed and shown != listed:
        counts = "; the chain counts" if ownership.is_unlisted else ""
        yield f"sources disagree: the owner on the chain is {shown}, not {listed}{counts}"


# pairs


def _warn_other_pairs(evidence: TokenEvidence) -> Iterator[str]:
    """Yield pairs that not all sources see, or that are empty by one of them."""
    if evidence.sources_without_pair and (other := _describe_other_pair(evidence)):
        names = " and ".join(SOURCE_LABELS[source] for source in evidence.sources_without_pair)
        verb = "list" if len(evidence.sources_without_pair) > 1 else "lists"
        yield f"sources disagree: {other}, {names} {verb} no pair"
    if refuted := evidence.refuted_liquidity:
        yield (
            f"sources disagree: {SOURCE_LABELS[refuted.source]} lists ${refuted.top_usd or 0:,.0f} in the "
            f"pair {refuted.top_pair}, which holds less than half of it on the chain: the chain's pools count"
        )
    market = evidence.market
    if evidence.simulations.is_service_pair_empty and market.liquidity and market.is_sellable:
        yield (
            f"sources disagree: the pair that {SOURCE_LABELS['honeypotis']} used is empty, "
            f"{SOURCE_LABELS[market.liquidity.source]} lists ${market.usable_usd:,.0f} in pairs on this chain"
        )


def _describe_other_pair(evidence: TokenEvidence) -> str | None:
    """Return a clause on a source that knows a pair, beside exchange indexes that know none."""
    if evidence.liquidity is None:
        if evidence.simulations.sale_succeeded:
            return "a simulated sale went through"
        if simulated := evidence.simulations.pair_sources:
            names = " and ".join(SOURCE_LABELS[each] for each in simulated)
            return f"a trade was simulated in a pair by {names}"
        return f"{SOURCE_LABELS['goplus']} says that it is traded" if evidence.flags.in_dex else None
    source = evidence.liquidity.source
    if source in ("dexscreener", "geckoterminal"):
        return None
    if evidence.liquidity.total_usd is None:
        return f"{SOURCE_LABELS[source]} shows a pair of unknown depth"
    return f"{SOURCE_LABELS[source]} shows ${evidence.liquidity.total_usd:,.0f} in pairs"


def _warn_deeper_pairs(evidence: TokenEvidence) -> Iterator[str]:
    """Yield the sources that show far more liquidity than the one that counts."""
    counted, listed = evidence.liquidity, evidence.market.usable_usd
    if counted is None or listed is None:
        return
    trade = evidence.simulations.service_trade
    in_trade = trade.result.liquidity_usd if trade and not trade.is_pair_empty else None
    on_chain = evidence.chain_liquidity and evidence.chain_liquidity.usable_usd
    clauses: tuple[tuple[TokenSource, str, float | None], ...] = (
        ("honeypotis", "simulated trades in a pair with", in_trade),
        ("onchain", "shows pools with", on_chain),
    )
    for source, clause, usd in clauses:
        if usd is not None and source != counted.source and usd > DEEPER_FACTOR * listed:
            yield (
                f"sources disagree: {SOURCE_LABELS[source]} {clause} ${usd:,.0f}, "
                f"{SOURCE_LABELS[counted.source]} lists ${listed:,.0f} in all pairs on this chain, which "
                "counts"
            )
