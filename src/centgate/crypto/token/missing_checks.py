"""Warnings of a token's verdict about checks that were not made, by what would have made them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from centgate.crypto.contract.contracts import REGISTRY_LABELS
from centgate.crypto.token.citations import FIELD_BY_SOURCE_NAME, cite_field, list_evidence_fields
from centgate.crypto.token.evidence.contract import ContractEvidence
from centgate.crypto.token.evidence.market import MarketEvidence
from centgate.crypto.token.evidence.simulations import SimulationEvidence
from centgate.crypto.token.liquidity_shares import LiquidityShares
from centgate.crypto.token.security import SOURCE_LABELS
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_liquidity import Liquidity
from centgate.crypto.token.token_rule import (
    FAILED_SALES,
    HOLDER_CHECKS,
    HOLDER_TAXES,
    SALE_SUBJECT,
    SELL_LIMITS,
    TAKEN_AWAY,
)
from centgate.crypto.token.token_rules import TOKEN_RULES
from centgate.crypto.token.trades import SimulatedTrade

ONE_SIDED_SUBJECT = "whether its pairs are one-sided"
"""A check without a flag of its own: one-sided pairs count as low liquidity."""
MIN_LISTED_PERCENT = 50
"""Percent of the liquidity below which a list of its holders tells little."""


def warn_missing_checks(evidence: TokenEvidence) -> Iterator[str]:
    """Yield the checks that were not made, as a source or its value is missing."""
    if evidence.analysis is None:
        yield f"not checked by {SOURCE_LABELS['goplus']}: {', '.join(_CHECKS_BY_SOURCE['goplus'])}"
    elif unchecked := _analysis_checks_without_evidence(evidence):
        closed = " (its source is not published)" if evidence.flags.open_source is False else ""
        yield f"not checked, as {SOURCE_LABELS['goplus']} gives no value{closed}: {', '.join(unchecked)}"
    yield from _warn_missing_sale(evidence.simulations)
    yield from _warn_unread_chain(evidence)
    if evidence.simulations.own_trade is not None:
        yield from _warn_open_trade(evidence.simulations.own_trade)
    if evidence.lp_holders.shares is not None:
        yield from _warn_unlisted_liquidity(evidence.lp_holders.shares)
    yield from _warn_unread_source(evidence.contract)
    if unrated := _simulation_checks_without_result(evidence.simulations):
        where = " on a pair with liquidity" if evidence.simulations.is_service_pair_empty else ""
        yield f"not checked, as {SOURCE_LABELS['honeypotis']} gives no value{where}: {', '.join(unrated)}"
    if unchecked := _liquidity_checks_without_evidence(evidence.market):
        yield f"not checked, as no source gives a value: {', '.join(unchecked)}"
    yield from _warn_unmeasured_pools(evidence.market.liquidity)


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


# says nothing of other simulations: Centgate may have made one
_NO_SIMULATION = {
    "chain_not_covered": "honeypot.is simulated no trade, as it does not cover this chain",
    "no_pair": "honeypot.is simulated no trade, as it has no pair to simulate it on",
    "source_unavailable": "honeypot.is simulated no trade, as it did not answer or is not in use here",
    None: "honeypot.is simulated no trade",
}


def _warn_missing_sale(simulations: SimulationEvidence) -> Iterator[str]:
    """Yield why the simulation service does not tell how a sale goes."""
    if simulations.of_service is None:
        checks = ", ".join(_CHECKS_BY_SOURCE["honeypotis"])
        yield f"{_NO_SIMULATION[simulations.no_service_reason]}; not checked by it: {checks}"
    elif not simulations.has_service_sale:
        label = SOURCE_LABELS["honeypotis"]
        yield f"{label} could not simulate a sale; not checked by it: {SALE_SUBJECT}, its taxes"
    elif simulations.is_service_pair_empty:
        yield (
            "the sale was simulated on an empty pair, so its result says nothing; not checked by it: "
            f"{SALE_SUBJECT}, its taxes"
        )


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
    is_read = {
        "onchain:simulation": evidence.simulations.own_trade is not None,
        "onchain:bytecode": evidence.contract.is_bytecode_read,
        "onchain:owner": evidence.owner is not None and evidence.owner.kind != "unknown",
    }
    if unread := [part for part, is_known in is_read.items() if not is_known]:
        what = ", ".join(_describe_unread_part(evidence, part) for part in unread)
        checks = ", ".join(dict.fromkeys(each for part in unread for each in _unread_checks(evidence, part)))
        reason = _UNREAD_REASONS[evidence.no_own_simulation_reason]
        yield f"on the chain itself {what}{reason}; not checked there: {checks}"


def _describe_unread_part(evidence: TokenEvidence, part: str) -> str:
    if part == "onchain:bytecode" and evidence.contract.is_bytecode_read_in_part:
        return "its bytecode does not tell everything"
    return _UNREAD_PARTS[part]


def _unread_checks(evidence: TokenEvidence, part: str) -> list[str]:
    """Return the checks of a part that was not read, or not in full: bytecode may answer some."""
    if part != "onchain:bytecode":
        return _CHECKS_BY_SOURCE[part]
    open_subjects = {
        rule.subject
        for rule in TOKEN_RULES
        for name in list_evidence_fields(rule)
        if name.startswith(part) and not any(each.value for each in cite_field(evidence, name))
    }
    return [check for check in _CHECKS_BY_SOURCE[part] if check in open_subjects]


def _warn_open_trade(trade: SimulatedTrade) -> Iterator[str]:
    """Yield what our own simulation left open."""
    reason = f" ({trade.result.explanation})" if trade.result.explanation else ""
    if not trade.has_result or trade.is_pair_empty:
        checks = ", ".join(_CHECKS_BY_SOURCE["onchain:simulation"])
        yield f"the simulation on the chain itself has no result{reason}; not checked there: {checks}"
        return
    if trade.result.buy_tax is None:  # holders may sell nevertheless
        yield (
            f"no purchase succeeded in the simulation on the chain itself{reason}; not checked there: "
            "whether it can be bought, the buy tax"
        )
    if trade.result.holder_sales is None:
        # holders that the token refuses for the simulator's code count as little as none
        yield f"no sale at a holder could be judged; not checked on the chain: {HOLDER_CHECKS}"
    # a transfer that was refused with words of a pause, or by an account that cannot sell, says nothing
    if trade.result.transfer_blocked is None and trade.result.transfer_tax is None:
        yield (
            "the simulation on the chain itself does not tell whether holders can send it to one another; "
            "not checked there: blocked transfers"
        )


def _warn_unlisted_liquidity(shares: LiquidityShares) -> Iterator[str]:
    """Yield what is not known of those who hold the liquidity."""
    if not shares.lists_hands:
        yield (
            "of the liquidity's holders only burn addresses and known lockers were looked for; not checked: "
            "who holds the rest, when locks end"
        )
    elif shares.listed_percent < MIN_LISTED_PERCENT:
        yield (
            f"only the holders of {shares.listed_percent:.4g} % of the liquidity are listed; not known to be "
            f"locked: {100 - shares.locked_percent:.4g} %"
        )
    if shares.doubtful_percent:
        yield f"{shares.doubtful_percent:.4g} % of the liquidity is in locks whose end is not known"
    if shares.lists_hands and shares.undated_percent:
        yield (
            f"{shares.undated_percent:.4g} % of the liquidity is called locked, and no source tells until "
            "when: the lock may end at any time"
        )


def _warn_unread_source(contract: ContractEvidence) -> Iterator[str]:
    """Yield that the code behind a proxy or a clone was not checked."""
    kind = "clone" if contract.is_pinned_clone else "proxy"
    source = contract.implementation
    if source is not None and source.unread and contract.is_implementation_open is None:
        without = " and ".join(REGISTRY_LABELS[record.registry] for record in source.records)
        found = f" ({without} found none)" if without else ""
        yield (
            f"the source of the code behind the {kind}, {source.address}, was not checked by "
            f"{', '.join(source.unread)}{found}"
        )
    elif contract.runs_other_code and contract.is_source_verified is None:
        yield f"the source of the code behind the {kind} was not checked"
    if contract.is_implementation_open and contract.is_own_source_open is None:
        yield "the source of the proxy's own code was not checked"
    if contract.may_run_other_code and contract.simulation.all_open_source is False:
        yield (
            f"{SOURCE_LABELS['honeypotis']} finds code without a published source among the contracts it "
            "calls; whether it is a proxy or a clone of that code was not checked"
        )
    elif contract.may_run_other_code and contract.flags.open_source:
        yield "whether it is a proxy or a clone of code without a published source was not checked"


def _simulation_checks_without_result(simulations: SimulationEvidence) -> list[str]:
    """Return the simulation service's checks besides the sale for which it gives no result."""
    if simulations.of_service is None:
        return []
    is_rated = simulations.of_service.risk_level is not None
    rating = [] if is_rated else _checks_with_first_field("honeypotis:summary.riskLevel")
    if simulations.of_service.summarised:
        return rating
    known = set(_list_known_subjects(simulations))
    flag_checks = _checks_with_first_field("honeypotis:summary.flags")
    return [check for check in flag_checks if check not in known] + rating


def _list_known_subjects(simulations: SimulationEvidence) -> Iterator[str]:
    """Yield the checks that the sales of holders answer without the simulation's own flags."""
    for trade in simulations.trades:
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


def _liquidity_checks_without_evidence(market: MarketEvidence) -> list[str]:
    """Return the liquidity checks without evidence; [] if it is known that there is no pair."""
    if market.has_no_pair:
        return []
    if market.liquidity is None:
        return _CHECKS_BY_SOURCE["liquidity"]
    has_value = {
        "liquidity": market.usable_usd is not None,
        ONE_SIDED_SUBJECT: market.liquidity.other_side_usd is not None,
        "how long it has been traded": market.trading_age is not None,
    }
    return [check for check, is_known in has_value.items() if not is_known]


def _warn_unmeasured_pools(liquidity: Liquidity | None) -> Iterator[str]:
    """Yield that the liquidity is that of a part of the pools, as the deepest may be missing."""
    if liquidity and liquidity.unmeasured_count and liquidity.total_usd is not None:
        yield (
            f"liquidity leaves out {liquidity.unmeasured_count} of {liquidity.pair_count} pools: the chain "
            "does not tell what they hold in US dollars"
        )


_CHECKS_BY_SOURCE = {
    source: list_subjects(source) for source in ("goplus", "honeypotis", "liquidity", *_UNREAD_PARTS)
}
_CHECKS_BY_SOURCE["liquidity"].append(ONE_SIDED_SUBJECT)
