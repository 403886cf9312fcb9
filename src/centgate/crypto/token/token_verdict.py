"""Evaluate the token rules: risk level, flags with citations, and warnings about missing checks.

The level is that of the worst flag after the adjustments. A missing fact neither raises nor lowers a flag: it
is listed among the checks that were not made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from centgate.crypto.token.evidence import TokenEvidence, TokenSource
from centgate.crypto.token.security import GOPLUS_FIELDS, Holder
from centgate.crypto.token.token_rules import (
    RULES_VERSION,
    SALE_SUBJECT,
    SEVERITY_LIMITS,
    SEVERITY_RANK,
    TOKEN_RULES,
    FlagSeverity,
    TokenRule,
)
from centgate.timestamps import format_timestamp

RiskLevel = Literal["critical", "high", "medium", "low", "unknown"]
LABELS: dict[TokenSource, str] = {
    "goplus": "GoPlus Security",
    "honeypotis": "honeypot.is",
    "dexscreener": "DexScreener",
    "geckoterminal": "GeckoTerminal",
}
ONE_SIDED_SUBJECT = "whether its pairs are one-sided"
"""A check without a flag of its own: one-sided pairs count as low liquidity."""
_MAX_NAMES = 12
"""Most flag names in one citation."""
_LINK = re.compile(r"https?:|www\.|\b[\w-]+\.[a-z]{2,}\b", re.IGNORECASE)
_FIELD_BY_SOURCE_NAME = {source_name: field for field, source_name in GOPLUS_FIELDS.items()}


@dataclass(frozen=True, slots=True)
class Citation:
    """A value cited from a source: the source's own field name, and the value as text."""

    source: TokenSource
    field: str
    value: str | None


@dataclass(frozen=True, slots=True)
class VerdictFlag:
    """A reason for the risk level."""

    id: str
    severity: FlagSeverity
    explanation: str
    evidence: tuple[Citation, ...]
    rules_version: str = RULES_VERSION


@dataclass(frozen=True, slots=True)
class TokenVerdict:
    """The risk level of a token, its flags (the worst first), and the warnings."""

    level: RiskLevel
    flags: tuple[VerdictFlag, ...]
    warnings: tuple[str, ...]


def evaluate_token(evidence: TokenEvidence) -> TokenVerdict:
    """Apply the rules to the evidence."""
    flags = sorted(raise_flags(evidence), key=lambda flag: -SEVERITY_RANK[flag.severity])
    return TokenVerdict(overall_level(evidence, flags), tuple(flags), tuple(collect_warnings(evidence)))


def overall_level(evidence: TokenEvidence, flags: Sequence[VerdictFlag]) -> RiskLevel:
    """Return the level of the worst flag; `unknown` if the evidence is too thin to rate it mild."""
    if evidence.flags is None and evidence.simulation is None:
        return "unknown"
    worst = max((SEVERITY_RANK[flag.severity] for flag in flags), default=0)
    significant = SEVERITY_RANK["medium"] if evidence.is_analysed else SEVERITY_RANK["high"]
    if worst < significant and not _can_rate_mild(evidence):
        return "unknown"
    levels: tuple[RiskLevel, ...] = ("low", "low", "medium", "high", "critical")
    return levels[worst]


def _can_rate_mild(evidence: TokenEvidence) -> bool:
    return (
        evidence.is_well_known
        or evidence.sale_succeeded
        or (evidence.is_analysed and evidence.is_honeypot is not None)
    )


def raise_flags(evidence: TokenEvidence) -> list[VerdictFlag]:
    """Return one adjusted flag per rule that applies."""
    flags = [_build_flag(evidence, rule) for rule in TOKEN_RULES if rule.condition(evidence)]
    if any(SEVERITY_RANK[flag.severity] >= SEVERITY_RANK["high"] for flag in flags):
        return [_raise_serial_creator(flag) for flag in flags]
    return flags


def _build_flag(evidence: TokenEvidence, rule: TokenRule) -> VerdictFlag:
    severity, message = rule.severity, rule.message.format(evidence=evidence)
    for each in SEVERITY_LIMITS:
        if (
            rule.kind in each.kinds
            and SEVERITY_RANK[each.max_severity] < SEVERITY_RANK[severity]
            and each.condition(evidence)
        ):
            severity, message = each.max_severity, f"{message} {each.message}"
    return VerdictFlag(rule.id, severity, message, _cite_rule(evidence, rule))


def _raise_serial_creator(flag: VerdictFlag) -> VerdictFlag:
    """Raise `serial_creator` to high when another flag is at least high."""
    if flag.id != "serial_creator":
        return flag
    return replace(flag, severity="high", explanation=f"{flag.explanation} Other findings here are serious.")


def _cite_rule(evidence: TokenEvidence, rule: TokenRule) -> tuple[Citation, ...]:
    """Cite the sources' values for a rule; without any value, its first field."""
    citations = [each for name in rule.evidence_fields for each in cite_field(evidence, name)]
    return tuple(each for each in citations if each.value is not None) or tuple(citations[:1])


def cite_field(evidence: TokenEvidence, name: str) -> list[Citation]:
    """Return the citations for a field name as used in the rules, `<source>:<field>`."""
    source, _, field = name.partition(":")
    match source, field:
        case "liquidity", _:
            return _cite_liquidity(evidence, field)
        case "goplus", "holders" | "lp_holders":
            rows = evidence.token_flags.holders if field == "holders" else evidence.token_flags.lp_holders
            return [Citation("goplus", field, _format_largest(rows or ()))]
        case "honeypotis", "summary.flags":
            names = ", ".join(flag.name for flag in evidence.simulation_result.flags[:_MAX_NAMES])
            return [Citation("honeypotis", field, names or None)]
        case "goplus", _:
            return [Citation("goplus", field, evidence.token_flags.raw.get(field))]
        case _:
            return [Citation("honeypotis", field, evidence.simulation_result.raw.get(field))]


def _format_largest(holders: Iterable[Holder]) -> str | None:
    shares = [f"{row.address} {row.percent:g} %" for row in holders if row.percent is not None]
    return ", ".join(shares[:3]) or None


_DEXSCREENER_FIELDS = {
    "totalUsd": "liquidity.usd",
    "otherSideUsd": "liquidity.quote",
    "tradedSince": "pairCreatedAt",
    "pairs": "pairs",
}
_GECKOTERMINAL_FIELDS = {
    "totalUsd": "reserve_in_usd",
    "otherSideUsd": "reserve_in_usd",
    "tradedSince": "pool_created_at",
    "pairs": "data",
}


def _cite_liquidity(evidence: TokenEvidence, field: str) -> list[Citation]:
    names = {"dexscreener": _DEXSCREENER_FIELDS, "geckoterminal": _GECKOTERMINAL_FIELDS}
    if field == "pairs":
        return [Citation(source, names[source][field], "none") for source in evidence.sources_without_pair]
    liquidity = evidence.liquidity
    if not liquidity:
        return []
    if liquidity.source == "goplus":
        return [Citation("goplus", "dex.liquidity", f"{liquidity.total_usd}")] if field == "totalUsd" else []
    values = {
        "totalUsd": liquidity.total_usd,
        "otherSideUsd": liquidity.other_side_usd,
        "tradedSince": liquidity.trading_since and format_timestamp(liquidity.trading_since),
    }
    value = values[field]
    return (
        [Citation(liquidity.source, names[liquidity.source][field], str(value))] if value is not None else []
    )


def collect_warnings(evidence: TokenEvidence) -> Iterator[str]:
    """Yield the checks that were not made, the disagreements of sources and their invalid values."""
    yield from _warn_unchecked(evidence)
    yield from _warn_disagreements(evidence)
    yield from _warn_unreadable(evidence)
    if evidence.token_flags.note:
        yield f"{LABELS['goplus']} notes{_quote_unless_link(evidence.token_flags.note) or ' further risks'}"


def list_subjects(source: str) -> list[str]:
    """Return the checks that use a source (`liquidity` for the exchange indexes)."""
    rules = [
        rule for rule in TOKEN_RULES if any(cite.startswith(f"{source}:") for cite in rule.evidence_fields)
    ]
    return list(dict.fromkeys(rule.subject for rule in rules))


def _checks_with_first_field(name: str) -> list[str]:
    """Return the checks of the rules whose first field is `name`."""
    return list(dict.fromkeys(rule.subject for rule in TOKEN_RULES if rule.evidence_fields[0] == name))


def _quote_unless_link(text: str | None) -> str:
    """Format a source's text for the end of a sentence; "" if it contains a link."""
    return f" ({text})" if text and not _LINK.search(text) else ""


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
        ("goplus", evidence.token_flags.unreadable),
        ("honeypotis", evidence.simulation_result.unreadable),
    )
    for source, names in unreadable:
        if taxes := [_TAX_LABELS[name] for name in names if name in _TAX_LABELS]:
            names_text = ", ".join(taxes)
            yield f"unreadable: {LABELS[source]} gives impossible taxes; not checked by it: {names_text}"
    others = [name for name in evidence.token_flags.unreadable if name not in _TAX_LABELS]
    if shares := [name for name in others if name.endswith("percent")]:
        yield (
            f"balance forged or unreadable: {LABELS['goplus']} gives impossible figures for "
            f"{', '.join(shares)}"
        )
    if addresses := [name for name in others if name.endswith("address")]:
        yield f"unreadable: {LABELS['goplus']} gives no address as {', '.join(addresses)}"


def _warn_unchecked(evidence: TokenEvidence) -> Iterator[str]:
    if evidence.flags is None:
        yield f"not checked by {LABELS['goplus']}: {', '.join(_CHECKS_BY_SOURCE['goplus'])}"
    elif unchecked := _analysis_checks_without_evidence(evidence):
        closed = " (its source is not published)" if evidence.token_flags.open_source is False else ""
        yield f"not checked, as {LABELS['goplus']} gives no value{closed}: {', '.join(unchecked)}"
    if evidence.simulation is None:
        checks = ", ".join(_CHECKS_BY_SOURCE["honeypotis"])
        yield f"{_NO_SIMULATION[evidence.no_simulation_reason]}; not checked by it: {checks}"
    elif not evidence.simulation_result.succeeded:
        reason = _quote_unless_link(evidence.simulation_result.reason)
        yield (
            f"{LABELS['honeypotis']} could not simulate a sale{reason}; "
            f"not checked by it: {SALE_SUBJECT}, its taxes"
        )
    elif evidence.is_pair_empty:
        yield (
            "the sale was simulated on an empty pair, so its result says nothing; not checked by it: "
            f"{SALE_SUBJECT}, its taxes"
        )
    if unrated := _simulation_checks_without_result(evidence):
        yield f"not checked, as {LABELS['honeypotis']} gives no value: {', '.join(unrated)}"
    if unchecked := _liquidity_checks_without_evidence(evidence):
        yield f"not checked, as no source gives a value: {', '.join(unchecked)}"


_NO_SIMULATION = {
    "chain_not_covered": "no buy/sell simulation was made: honeypot.is does not cover this chain",
    "no_pair": "no buy/sell simulation was made: honeypot.is has no pair to simulate it on",
    "source_unavailable": "no buy/sell simulation was made: honeypot.is did not answer",
    None: "no buy/sell simulation was made",
}


def _simulation_checks_without_result(evidence: TokenEvidence) -> list[str]:
    """Return the simulation's checks besides the sale for which it gives no result."""
    if evidence.simulation is None:
        return []
    flag_checks = (
        [] if evidence.simulation_result.summarised else _checks_with_first_field("honeypotis:summary.flags")
    )
    is_rated = evidence.simulation_result.risk_level is not None
    return (
        flag_checks if is_rated else [*flag_checks, *_checks_with_first_field("honeypotis:summary.riskLevel")]
    )


def _analysis_checks_without_evidence(evidence: TokenEvidence) -> list[str]:
    """Return the checks without evidence: neither the analysis nor the simulation has the value."""
    unchecked = [
        rule
        for rule in TOKEN_RULES
        if rule.kind not in ("gap", "merit") and not _has_evidence(evidence, rule)
    ]
    return list(dict.fromkeys(rule.subject for rule in unchecked))


def _has_evidence(evidence: TokenEvidence, rule: TokenRule) -> bool:
    first, *others = rule.evidence_fields
    if not first.startswith("goplus:"):
        return True
    names = [first, *(name for name in others if name.startswith("honeypotis:"))]
    return any(_has_value(evidence, name) for name in names)


def _has_value(evidence: TokenEvidence, name: str) -> bool:
    """True if the source gives a usable value for a field name."""
    source, _, field = name.partition(":")
    if source == "goplus" and not field.endswith("holders"):
        return getattr(evidence.token_flags, _FIELD_BY_SOURCE_NAME.get(field, field)) is not None
    return field not in evidence.simulation_result.unreadable and any(
        each.value for each in cite_field(evidence, name)
    )


def _liquidity_checks_without_evidence(evidence: TokenEvidence) -> list[str]:
    """Return the liquidity checks without evidence; [] if it is known that there is no pair."""
    if evidence.has_no_pair:
        return []
    if evidence.liquidity is None:
        return _CHECKS_BY_SOURCE["liquidity"]
    has_value = {
        "liquidity": evidence.usable_usd is not None,
        ONE_SIDED_SUBJECT: evidence.liquidity.other_side_usd is not None,
        "how long it has been traded": evidence.trading_age is not None,
    }
    return [check for check, is_known in has_value.items() if not is_known]


def _warn_disagreements(evidence: TokenEvidence) -> Iterator[str]:
    if evidence.sources_agree is False:
        reported, outcome = (
            evidence.token_flags.raw.get("is_honeypot"),
            "could not sell" if evidence.sale_failed else "sold",
        )
        yield (
            f"sources disagree: {LABELS['goplus']} says is_honeypot {reported}, the simulation by "
            f"{LABELS['honeypotis']} {outcome}"
        )
    for name, flagged, simulated in (
        ("buy", evidence.token_flags.buy_tax, evidence.simulation_buy_tax),
        ("sell", evidence.token_flags.sell_tax, evidence.simulation_sell_tax),
        ("transfer", evidence.token_flags.transfer_tax, evidence.simulation_transfer_tax),
    ):
        if flagged is not None and simulated is not None and abs(flagged - simulated) >= 5:
            yield (
                f"sources disagree on the {name} tax: {LABELS['goplus']} says {flagged:.4g} %, the "
                f"simulation by {LABELS['honeypotis']} {simulated:.4g} %; the higher counts"
            )
    if (evidence.token_flags.sell_tax or 0) >= 100 and (
        evidence.token_flags.trading_cooldown or evidence.token_flags.cannot_buy
    ):
        yield (
            f"the sell tax of 100 % at {LABELS['goplus']} may result from trading limits that kept it from "
            "testing a sale, such as a pause between trades"
        )
    if evidence.sources_without_pair and evidence.liquidity is None and evidence.token_flags.in_dex:
        names = " and ".join(LABELS[source] for source in evidence.sources_without_pair)
        verb = "list" if len(evidence.sources_without_pair) > 1 else "lists"
        yield f"sources disagree: {LABELS['goplus']} says that it is traded, {names} {verb} no pair"
    if evidence.is_pair_empty and evidence.liquidity and evidence.has_other_liquidity:
        yield (
            f"sources disagree: the pair that {LABELS['honeypotis']} used is empty, "
            f"{LABELS[evidence.liquidity.source]} lists ${evidence.usable_usd:,.0f} in pairs on this chain"
        )


_CHECKS_BY_SOURCE = {source: list_subjects(source) for source in ("goplus", "honeypotis", "liquidity")}
_CHECKS_BY_SOURCE["liquidity"].append(ONE_SIDED_SUBJECT)
