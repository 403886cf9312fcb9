"""Warnings of a token's verdict: checks that were not made, disagreements of sources, invalid values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from centgate.crypto.token.citations import FIELD_BY_SOURCE_NAME, cite_field, list_evidence_fields
from centgate.crypto.token.powers import POWER_FLAGS
from centgate.crypto.token.security import BYTECODE_FLAGS, GOPLUS_FIELDS, TokenFlags, TokenSource
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_rule import SALE_SUBJECT
from centgate.crypto.token.token_rules import TOKEN_RULES
from centgate.crypto.token.trade_rules import (
    FAILED_SALES,
    HOLDER_CHECKS,
    HOLDER_TAXES,
    SELL_LIMITS,
    TAKEN_AWAY,
)
from centgate.crypto.token.trades import SimulatedTrade, TaxName

LABELS: dict[TokenSource, str] = {
    "goplus": "GoPlus Security",
    "honeypotis": "honeypot.is",
    "onchain": "the chain",
    "dexscreener": "DEX Screener",
    "geckoterminal": "GeckoTerminal",
}
ONE_SIDED_SUBJECT = "whether its pairs are one-sided"
"""A check without a flag of its own: one-sided pairs count as low liquidity."""
MIN_LISTED_PERCENT = 50
"""Percent of the liquidity below which a list of its holders tells little."""
MAX_LISTED_PERCENT = 101
"""Percent that shares of one whole may add up to; a source rounds, and reads them at different times."""
DEEPER_FACTOR = 2
"""Times the listed liquidity from which a source that shows more of it disagrees."""
DIFFERENT_TAX = 5
"""Percentage points from which two readings of a tax disagree."""


def collect_warnings(evidence: TokenEvidence) -> Iterator[str]:
    """Yield the checks that were not made, the disagreements of sources and their invalid values."""
    yield from _warn_unchecked(evidence)
    yield from _warn_disagreements(evidence)
    yield from _warn_unreadable(evidence)
    if evidence.flags.note:
        yield f"{LABELS['goplus']} notes further risks, in words of its own: see sourceNote"


def list_subjects(source: str) -> list[str]:
    """Return the checks that use a source.

    `liquidity` stands for the exchange indexes, `onchain:simulation` and `onchain:bytecode` for parts of what
    the chain tells.
    """
    start = source if ":" in source else f"{source}:"
    rules = [
        rule for rule in TOKEN_RULES if any(cite.startswith(start) for cite in list_evidence_fields(rule))
    ]
    return list(dict.fromkeys(rule.subject for rule in rules))


def _checks_with_first_field(name: str) -> list[str]:
    """Return the checks of the rules whose first field is `name`."""
    return list(dict.fromkeys(rule.subject for rule in TOKEN_RULES if rule.evidence_fields[0] == name))


_TAX_LABELS = {
    "buy_tax": "the buy tax",
    "sell_tax": "the sell tax",
    "transfer_tax": "the transfer tax",
    "simulationResult.buyTax": "the buy tax",
    "simulationResult.sellTax": "the sell tax",
    "simulationResult.transferTax": "the transfer tax",
}


def _warn_unreadable(evidence: TokenEvidence) -> Iterator[str]:
    unreadable: tuple[tuple[TokenSource, tuple[str, ...]], ...] = (
        ("goplus", evidence.flags.unreadable),
        ("honeypotis", evidence.simulations.service_result.unreadable),
    )
    for source, names in unreadable:
        if taxes := [_TAX_LABELS[name] for name in names if name in _TAX_LABELS]:
            names_text = ", ".join(taxes)
            yield f"unreadable: {LABELS[source]} gives impossible taxes; not checked by it: {names_text}"
    if "honeypotResult.isHoneypot" in evidence.simulations.service_result.unreadable:
        label = LABELS["honeypotis"]
        yield f"unreadable: {label} gives no boolean as isHoneypot; not checked by it: {SALE_SUBJECT}"
    if "flags" in evidence.simulations.service_result.unreadable:
        yield f"unreadable: {LABELS['honeypotis']} raises a flag without a name, which does not count"
    others = [name for name in evidence.flags.unreadable if name not in _TAX_LABELS]
    if shares := [name for name in others if name.endswith("percent")]:
        yield (
            f"balance forged or unreadable: {LABELS['goplus']} gives impossible figures for "
            f"{', '.join(shares)}"
        )
    flags = evidence.flags
    for name, rows in (("holders", flags.holders), ("lp_holders", flags.lp_holders)):
        percent = sum(row.percent or 0 for row in rows or ())
        if percent > MAX_LISTED_PERCENT:
            yield (
                f"balance forged or unreadable: {LABELS['goplus']} lists shares in {name} that add up to "
                f"{percent:.4g} %"
            )
    if locks := [name for name in others if name.endswith("locked_detail")]:
        yield (
            f"unreadable: {LABELS['goplus']} gives locks in {', '.join(locks)} whose end cannot be read, so "
            "they may have ended"
        )
    if lists := [name.removesuffix("[]") for name in others if name.endswith("[]")]:
        yield (
            f"unreadable: {LABELS['goplus']} gives entries in {', '.join(lists)} that cannot be read, so "
            "what they hold is not counted"
        )
    if addresses := [name for name in others if name.endswith("address")]:
        yield f"unreadable: {LABELS['goplus']} gives no address as {', '.join(addresses)}"


def _warn_unchecked(evidence: TokenEvidence) -> Iterator[str]:
    if evidence.analysis is None:
        yield f"not checked by {LABELS['goplus']}: {', '.join(_CHECKS_BY_SOURCE['goplus'])}"
    elif unchecked := _analysis_checks_without_evidence(evidence):
        closed = " (its source is not published)" if evidence.flags.open_source is False else ""
        yield f"not checked, as {LABELS['goplus']} gives no value{closed}: {', '.join(unchecked)}"
    if evidence.simulation is None:
        checks = ", ".join(_CHECKS_BY_SOURCE["honeypotis"])
        yield f"{_NO_SIMULATION[evidence.no_simulation_reason]}; not checked by it: {checks}"
    elif not evidence.simulations.has_service_sale:
        label = LABELS["honeypotis"]
        yield f"{label} could not simulate a sale; not checked by it: {SALE_SUBJECT}, its taxes"
    elif evidence.simulations.is_service_pair_empty:
        yield (
            "the sale was simulated on an empty pair, so its result says nothing; not checked by it: "
            f"{SALE_SUBJECT}, its taxes"
        )
    yield from _warn_unread_chain(evidence)
    if unrated := _simulation_checks_without_result(evidence):
        where = " on a pair with liquidity" if evidence.simulations.is_service_pair_empty else ""
        yield f"not checked, as {LABELS['honeypotis']} gives no value{where}: {', '.join(unrated)}"
    if unchecked := _liquidity_checks_without_evidence(evidence):
        yield f"not checked, as no source gives a value: {', '.join(unchecked)}"


_NO_SIMULATION = {
    "chain_not_covered": "no buy/sell simulation was made: honeypot.is does not cover this chain",
    "no_pair": "no buy/sell simulation was made: honeypot.is has no pair to simulate it on",
    "source_unavailable": "no buy/sell simulation was made: honeypot.is did not answer",
    None: "no buy/sell simulation was made by honeypot.is",
}
_UNREAD_PARTS = {
    "onchain:simulation": "no trade was simulated",
    "onchain:bytecode": "its bytecode was not read",
    "onchain:owner": "its owner was not read",
}
_UNREAD_REASONS = {
    "chain_not_covered": " (no node of this chain is configured)",
    "no_contract": " (the node shows no contract at this address)",
    "no_pair": " (no pool of a known exchange was found to simulate a trade in)",
    "source_unavailable": " (the chain was not read in full)",
    None: "",
}


def _warn_unread_chain(evidence: TokenEvidence) -> Iterator[str]:
    """Yield what was not read from the chain."""
    trade = next((trade for trade in evidence.simulations.trades if trade.source == "onchain"), None)
    is_read = {
        "onchain:simulation": trade is not None,
        "onchain:bytecode": evidence.contract.is_bytecode_read,
        "onchain:owner": evidence.owner is not None and evidence.owner.kind != "unknown",
    }
    if unread := [part for part, is_known in is_read.items() if not is_known]:
        what = ", ".join(_UNREAD_PARTS[part] for part in unread)
        checks = ", ".join(dict.fromkeys(check for part in unread for check in _CHECKS_BY_SOURCE[part]))
        reason = _UNREAD_REASONS[evidence.no_own_simulation_reason]
        yield f"on the chain itself {what}{reason}; not checked there: {checks}"
    if trade is not None:
        yield from _warn_open_trade(trade)
    shares = evidence.lp_holders.shares
    if shares and not shares.lists_hands:
        yield (
            "of the liquidity's holders only burn addresses and known lockers were looked for; not checked: "
            "who holds the rest, when locks end"
        )
    if shares and shares.lists_hands and shares.listed_percent < MIN_LISTED_PERCENT:
        yield (
            f"only the holders of {shares.listed_percent:.4g} % of the liquidity are listed; not known to be "
            f"locked: {100 - shares.locked_percent:.4g} %"
        )
    if shares and shares.doubtful_percent:
        yield f"{shares.doubtful_percent:.4g} % of the liquidity is in locks whose end is not known"
    if shares and shares.lists_hands and shares.undated_percent:
        yield (
            f"{shares.undated_percent:.4g} % of the liquidity is called locked, and no source tells until "
            "when: the lock may end at any time"
        )
    if evidence.contract.runs_other_code and evidence.contract.is_source_verified is None:
        kind = "clone" if evidence.contract.is_pinned_clone else "proxy"
        yield f"the source of the code behind the {kind} was not checked"
    if evidence.contract.may_run_other_code and evidence.simulations.service_result.all_open_source is False:
        yield (
            f"{LABELS['honeypotis']} finds code without a published source among the contracts it calls; "
            "whether it is a proxy or a clone of that code was not checked"
        )
    elif evidence.contract.may_run_other_code and evidence.flags.open_source:
        yield "whether it is a proxy or a clone of code without a published source was not checked"


def _warn_open_trade(trade: SimulatedTrade) -> Iterator[str]:
    """Yield what our own simulation left open."""
    if not trade.has_result or trade.is_pair_empty:
        reason = f" ({trade.result.explanation})" if trade.result.explanation else ""
        checks = ", ".join(_CHECKS_BY_SOURCE["onchain:simulation"])
        yield f"the simulation on the chain itself has no result{reason}; not checked there: {checks}"
    elif trade.result.holder_sales is None:
        yield f"no holder was found to sell at; not checked on the chain: {HOLDER_CHECKS}"


def _simulation_checks_without_result(evidence: TokenEvidence) -> list[str]:
    """Return the simulation service's checks besides the sale for which it gives no result."""
    if evidence.simulation is None:
        return []
    is_rated = evidence.simulations.service_result.risk_level is not None
    rating = [] if is_rated else _checks_with_first_field("honeypotis:summary.riskLevel")
    if evidence.simulations.service_result.summarised:
        return rating
    known = set(_list_known_subjects(evidence))
    flag_checks = _checks_with_first_field("honeypotis:summary.flags")
    return [check for check in flag_checks if check not in known] + rating


def _list_known_subjects(evidence: TokenEvidence) -> Iterator[str]:
    """Yield the checks that the sales of holders answer without the simulation's own flags."""
    for trade in evidence.simulations.trades:
        sales = trade.holder_sales
        answered = {
            FAILED_SALES: sales.failed,
            TAKEN_AWAY: sales.siphoned,
            HOLDER_TAXES: sales.average_tax,
            SELL_LIMITS: trade.result.max_sell,
        }
        yield from (check for check, value in answered.items() if value is not None)


def _analysis_checks_without_evidence(evidence: TokenEvidence) -> list[str]:
    """Return the checks without evidence: neither the analysis nor the simulation has the value."""
    unchecked = [
        subject
        for subject, names in _list_analysis_checks()
        if not any(_has_value(evidence, name) for name in names)
    ]
    return list(dict.fromkeys(unchecked))


@cache
def _list_analysis_checks() -> list[tuple[str, tuple[str, ...]]]:
    """Return the checks that need the analysis, each with the fields of which one is enough."""
    checks: list[tuple[str, tuple[str, ...]]] = []
    for rule in TOKEN_RULES:
        first, *others = list_evidence_fields(rule)
        if rule.kind not in ("gap", "merit") and first.startswith("goplus:"):
            simulated = (name for name in others if name.startswith(("honeypotis:", "onchain:")))
            checks.append((rule.subject, (first, *simulated)))
    return checks


def _has_value(evidence: TokenEvidence, name: str) -> bool:
    """True if the source gives a usable value for a field name."""
    source, _, field = name.partition(":")
    if source == "onchain" and field.startswith("owner"):
        return False
    if source == "goplus" and not field.endswith("holders"):
        return getattr(evidence.flags, FIELD_BY_SOURCE_NAME.get(field, field)) is not None
    return field not in evidence.simulations.service_result.unreadable and any(
        each.value for each in cite_field(evidence, name)
    )


def _liquidity_checks_without_evidence(evidence: TokenEvidence) -> list[str]:
    """Return the liquidity checks without evidence; [] if it is known that there is no pair."""
    if evidence.market.has_no_pair:
        return []
    if evidence.liquidity is None:
        return _CHECKS_BY_SOURCE["liquidity"]
    has_value = {
        "liquidity": evidence.market.usable_usd is not None,
        ONE_SIDED_SUBJECT: evidence.liquidity.other_side_usd is not None,
        "how long it has been traded": evidence.market.trading_age is not None,
    }
    return [check for check, is_known in has_value.items() if not is_known]


def _warn_disagreements(evidence: TokenEvidence) -> Iterator[str]:
    if evidence.trade.sources_agree is False:
        yield f"sources disagree: {', '.join(_describe_sales(evidence))}"
    for trade in evidence.simulations.trades:
        if trade.is_unproven and evidence.simulations.sale_succeeded:
            yield (
                f"a simulated sale went through, but {_name_maker(trade)} found: "
                f"{trade.result.explanation or 'no sale succeeded'}; isHoneypot is not known"
            )
        if trade.do_most_holders_fail and evidence.simulations.sale_succeeded:
            failed = trade.holder_sales.failed or 0
            yield (
                f"a simulated sale went through, but {failed} of "
                f"{max(trade.holder_sales.tested or 0, failed)} holders that {LABELS[trade.source]} tried "
                "could not sell: isHoneypot and canSell are not known"
            )
    taxes: tuple[tuple[str, TaxName], ...] = (
        ("buy", "buy_tax"),
        ("sell", "sell_tax"),
        ("transfer", "transfer_tax"),
    )
    for word, name in taxes:
        readings = evidence.trade.list_tax_readings(name)
        amounts = [tax for _, tax in readings]
        if amounts and max(amounts) - min(amounts) >= DIFFERENT_TAX:
            said = ", ".join(f"{LABELS[source]} {tax:.4g} %" for source, tax in readings)
            yield f"sources disagree on the {word} tax: {said}; the highest counts"
    yield from _warn_other_bytecode(evidence)
    if (evidence.flags.sell_tax or 0) >= 100 and (
        evidence.flags.trading_cooldown or evidence.flags.cannot_buy
    ):
        yield (
            f"the sell tax of 100 % at {LABELS['goplus']} may result from trading limits that kept it from "
            "testing a sale, such as a pause between trades"
        )
    if evidence.sources_without_pair and (other := _describe_other_pair(evidence)):
        names = " and ".join(LABELS[source] for source in evidence.sources_without_pair)
        verb = "list" if len(evidence.sources_without_pair) > 1 else "lists"
        yield f"sources disagree: {other}, {names} {verb} no pair"
    if refuted := evidence.refuted_liquidity:
        yield (
            f"sources disagree: {LABELS[refuted.source]} lists ${refuted.top_usd or 0:,.0f} in the pair "
            f"{refuted.top_pair}, which holds less than half of it on the chain: the chain's pools count"
        )
    market = evidence.market
    if evidence.simulations.is_service_pair_empty and market.liquidity and market.is_sellable:
        yield (
            f"sources disagree: the pair that {LABELS['honeypotis']} used is empty, "
            f"{LABELS[market.liquidity.source]} lists ${market.usable_usd:,.0f} in pairs on this chain"
        )
    yield from _warn_deeper_pairs(evidence)


def _describe_sales(evidence: TokenEvidence) -> Iterator[str]:
    """Yield a clause for each source that says whether it can be sold."""
    if evidence.flags.honeypot is not None:
        yield f"{LABELS['goplus']} says is_honeypot {evidence.flags.raw.get('is_honeypot')}"
    for trade in evidence.simulations.trades:
        if trade.has_failed or trade.has_sold:
            outcome = "could not sell" if trade.has_failed else "sold"
            yield f"the simulation by {_name_maker(trade)} {outcome}"


def _name_maker(trade: SimulatedTrade) -> str:
    return "Centgate on the chain" if trade.source == "onchain" else LABELS[trade.source]


def _warn_deeper_pairs(evidence: TokenEvidence) -> Iterator[str]:
    """Yield the sources that show far more liquidity than the one that counts."""
    counted, listed = evidence.liquidity, evidence.market.usable_usd
    if counted is None or listed is None:
        return
    trade = next((trade for trade in evidence.simulations.trades if trade.source == "honeypotis"), None)
    in_trade = trade.result.liquidity_usd if trade and not trade.is_pair_empty else None
    on_chain = evidence.chain_liquidity and evidence.chain_liquidity.usable_usd
    clauses: tuple[tuple[TokenSource, str, float | None], ...] = (
        ("honeypotis", "simulated trades in a pair with", in_trade),
        ("onchain", "shows pools with", on_chain),
    )
    for source, clause, usd in clauses:
        if usd is not None and source != counted.source and usd > DEEPER_FACTOR * listed:
            yield (
                f"sources disagree: {LABELS[source]} {clause} ${usd:,.0f}, {LABELS[counted.source]} lists "
                f"${listed:,.0f} in all pairs on this chain, which counts"
            )


def _describe_other_pair(evidence: TokenEvidence) -> str | None:
    """Return a clause on a source that knows a pair, beside exchange indexes that know none."""
    if evidence.liquidity is None:
        if evidence.simulations.sale_succeeded:
            return "a simulated sale went through"
        if simulated := evidence.simulations.pair_sources:
            return f"a trade was simulated in a pair by {' and '.join(LABELS[each] for each in simulated)}"
        return f"{LABELS['goplus']} says that it is traded" if evidence.flags.in_dex else None
    source = evidence.liquidity.source
    if source in ("dexscreener", "geckoterminal"):
        return None
    if evidence.liquidity.total_usd is None:
        return f"{LABELS[source]} shows a pair of unknown depth"
    return f"{LABELS[source]} shows ${evidence.liquidity.total_usd:,.0f} in pairs"


def _warn_other_bytecode(evidence: TokenEvidence) -> Iterator[str]:
    """Yield where the bytecode shows other powers than the contract analysis, or another owner."""
    if evidence.analysis is None:
        return
    inferred, powers = evidence.bytecode_flags or TokenFlags(), evidence.bytecode_powers
    denied = {
        POWER_FLAGS[power.kind]: power.signature
        for power in reversed(powers)
        if power.kind in POWER_FLAGS and getattr(evidence.analysis, POWER_FLAGS[power.kind]) is False
    }
    if denied:
        said = ", ".join(f"{GOPLUS_FIELDS[name]} 0" for name in reversed(denied))
        yield (
            f"sources disagree: the bytecode has {', '.join(reversed(denied.values()))}, {LABELS['goplus']} "
            f"says {said}"
        )
    others = [
        GOPLUS_FIELDS[name]
        for name in BYTECODE_FLAGS
        if name not in denied
        and (seen := getattr(inferred, name)) is not None
        and (said := getattr(evidence.analysis, name)) is not None
        and seen != said
    ]
    if others:
        yield (
            f"sources disagree: the bytecode shows the opposite of what {LABELS['goplus']} says for "
            f"{', '.join(others)}"
        )
    said_owner, owner = evidence.analysis.owner_address, evidence.owner
    if evidence.ownership.is_unlisted and owner and not said_owner:
        yield (
            f"sources disagree: the owner on the chain is {owner.address}, {LABELS['goplus']} names none; "
            "the chain counts"
        )
    elif said_owner and owner and owner.address and owner.address != said_owner:
        counts = "; the chain counts" if evidence.ownership.is_unlisted else ""
        yield f"sources disagree: the owner on the chain is {owner.address}, not {said_owner}{counts}"


_CHECKS_BY_SOURCE = {
    source: list_subjects(source) for source in ("goplus", "honeypotis", "liquidity", *_UNREAD_PARTS)
}
_CHECKS_BY_SOURCE["liquidity"].append(ONE_SIDED_SUBJECT)
