"""The verdict on a token: its level, its reasons with their evidence, and what could not be checked.

The level of a token is that of its worst flag after the adjustments. A fact that is not known raises no flag
and lowers none: it is named among the checks that could not be made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from centgate.facts.tokens import FLAGS, Holder
from centgate.text import timestamp
from centgate.verdicts.token_facts import Facts, Source
from centgate.verdicts.token_rules import ADJUSTMENTS, RANK, RULES, RULES_VERSION, SALE, Rule, Severity

Level = Literal["critical", "high", "medium", "low", "unknown"]
LABELS: dict[Source, str] = {
    "goplus": "GoPlus Security",
    "honeypotis": "honeypot.is",
    "dexscreener": "DexScreener",
    "geckoterminal": "GeckoTerminal",
}
ONE_SIDED = "whether its pairs are one-sided"
"""A check that has no flag of its own: one-sided pairs count as little liquidity."""
_MOST_NAMES = 12
"""Names of flags that are cited."""
_LINK = re.compile(r"https?:|www\.|\b[\w-]+\.[a-z]{2,}\b", re.IGNORECASE)
_OURS = {theirs: ours for ours, theirs in FLAGS.items()}


@dataclass(frozen=True, slots=True)
class Cited:
    """What a source said: its own name for the fact, and its value as text."""

    source: Source
    field: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Flag:
    """A reason behind the verdict."""

    id: str
    severity: Severity
    explanation: str
    evidence: tuple[Cited, ...]
    rules_version: str = RULES_VERSION


@dataclass(frozen=True, slots=True)
class Verdict:
    """The level of a token, its reasons (the worst first), and what speaks against relying on them."""

    level: Level
    flags: tuple[Flag, ...]
    warnings: tuple[str, ...]


def judge(f: Facts) -> Verdict:
    """What the rules make of the facts."""
    flags = sorted(flags_of(f), key=lambda flag: -RANK[flag.severity])
    return Verdict(level_of(f, flags), tuple(flags), tuple(warnings_of(f)))


def level_of(f: Facts, flags: Sequence[Flag]) -> Level:
    """That of the worst flag; unknown where too little is known for a mild one to mean anything."""
    if f.flags is None and f.simulation is None:
        return "unknown"
    worst = max((RANK[flag.severity] for flag in flags), default=0)
    telling = RANK["medium"] if f.analysed else RANK["high"]
    if worst < telling and not _may_be_mild(f):
        return "unknown"
    levels: tuple[Level, ...] = ("low", "low", "medium", "high", "critical")
    return levels[worst]


def _may_be_mild(f: Facts) -> bool:
    return f.well_known or f.sale_worked or (f.analysed and f.honeypot is not None)


def flags_of(f: Facts) -> list[Flag]:
    """A flag for each rule that applies, adjusted."""
    flags = [_adjusted(f, rule) for rule in RULES if rule.when(f)]
    if any(RANK[flag.severity] >= RANK["high"] for flag in flags):
        return [_in_company(flag) for flag in flags]
    return flags


def _adjusted(f: Facts, rule: Rule) -> Flag:
    severity, says = rule.severity, rule.says.format(f=f)
    for each in ADJUSTMENTS:
        if rule.kind in each.kinds and RANK[each.most] < RANK[severity] and each.when(f):
            severity, says = each.most, f"{says} {each.says}"
    return Flag(rule.id, severity, says, evidence(f, rule))


def _in_company(flag: Flag) -> Flag:
    """A creator with a past weighs more where something else is seriously wrong."""
    if flag.id != "serial_creator":
        return flag
    return replace(flag, severity="high", explanation=f"{flag.explanation} Other findings here are serious.")


def evidence(f: Facts, rule: Rule) -> tuple[Cited, ...]:
    """What the sources said of a rule's facts; what decides the rule first where they said nothing."""
    found = [each for name in rule.cites for each in cited(f, name)]
    return tuple(each for each in found if each.value is not None) or tuple(found[:1])


def cited(f: Facts, name: str) -> list[Cited]:
    """What stands under one of the names that rules cite."""
    source, _, field = name.partition(":")
    match source, field:
        case "liquidity", _:
            return _cited_liquidity(f, field)
        case "goplus", "holders" | "lp_holders":
            rows = f.known.holders if field == "holders" else f.known.lp_holders
            return [Cited("goplus", field, _largest(rows or ()))]
        case "honeypotis", "summary.flags":
            names = ", ".join(flag.name for flag in f.simulated.flags[:_MOST_NAMES])
            return [Cited("honeypotis", field, names or None)]
        case "goplus", _:
            return [Cited("goplus", field, f.known.raw.get(field))]
        case _:
            return [Cited("honeypotis", field, f.simulated.raw.get(field))]


def _largest(holders: Iterable[Holder]) -> str | None:
    told = [f"{row.address} {row.percent:g} %" for row in holders if row.percent is not None]
    return ", ".join(told[:3]) or None


_IN_DEXSCREENER = {
    "totalUsd": "liquidity.usd",
    "otherSideUsd": "liquidity.quote",
    "tradedSince": "pairCreatedAt",
    "pairs": "pairs",
}
_IN_GECKOTERMINAL = {
    "totalUsd": "reserve_in_usd",
    "otherSideUsd": "reserve_in_usd",
    "tradedSince": "pool_created_at",
    "pairs": "data",
}


def _cited_liquidity(f: Facts, field: str) -> list[Cited]:
    names = {"dexscreener": _IN_DEXSCREENER, "geckoterminal": _IN_GECKOTERMINAL}
    if field == "pairs":
        return [Cited(source, names[source][field], "none") for source in f.no_pair_in]
    found = f.liquidity
    if not found:
        return []
    if found.source == "goplus":
        return [Cited("goplus", "dex.liquidity", f"{found.total_usd}")] if field == "totalUsd" else []
    values = {
        "totalUsd": found.total_usd,
        "otherSideUsd": found.other_side_usd,
        "tradedSince": found.traded_since and timestamp(found.traded_since),
    }
    value = values[field]
    return [Cited(found.source, names[found.source][field], str(value))] if value is not None else []


def warnings_of(f: Facts) -> Iterator[str]:
    """Which checks could not be made, and where sources disagree or cannot be believed."""
    yield from _unmade(f)
    yield from _disagreements(f)
    yield from _unreadable(f)
    if f.known.note:
        yield f"{LABELS['goplus']} notes{_quoted(f.known.note) or ' further risks'}"


def checks_of(source: str) -> list[str]:
    """What the rules look into with the help of a source (`liquidity` for the indexes of exchanges)."""
    rules = [rule for rule in RULES if any(cite.startswith(f"{source}:") for cite in rule.cites)]
    return list(dict.fromkeys(rule.check for rule in rules))


def _first_looked_up(name: str) -> list[str]:
    """What the rules look into that rest on one name first."""
    return list(dict.fromkeys(rule.check for rule in RULES if rule.cites[0] == name))


def _quoted(said: str | None) -> str:
    """What a source said, to go on with in a sentence; nothing where it would send the reader elsewhere."""
    return f" ({said})" if said and not _LINK.search(said) else ""


_TAXES = {
    "buy_tax": "the buy tax",
    "sell_tax": "the sell tax",
    "transfer_tax": "the transfer tax",
    "simulationResult.buyTax": "the buy tax",
    "simulationResult.sellTax": "the sell tax",
    "simulationResult.transferTax": "the transfer tax",
}


def _unreadable(f: Facts) -> Iterator[str]:
    told: tuple[tuple[Source, tuple[str, ...]], ...] = (
        ("goplus", f.known.unreadable),
        ("honeypotis", f.simulated.unreadable),
    )
    for source, names in told:
        if taxes := [_TAXES[name] for name in names if name in _TAXES]:
            unmade = ", ".join(taxes)
            yield f"unreadable: {LABELS[source]} gives taxes that cannot be; not checked by it: {unmade}"
    others = [name for name in f.known.unreadable if name not in _TAXES]
    if shares := [name for name in others if name.endswith("percent")]:
        yield (
            f"balance forged or unreadable: {LABELS['goplus']} gives impossible figures for "
            f"{', '.join(shares)}"
        )
    if addresses := [name for name in others if name.endswith("address")]:
        yield f"unreadable: {LABELS['goplus']} gives no address as {', '.join(addresses)}"


def _unmade(f: Facts) -> Iterator[str]:
    if f.flags is None:
        yield f"not checked by {LABELS['goplus']}: {', '.join(_CHECKS['goplus'])}"
    elif absent := _absent(f):
        closed = " (its source is not published)" if f.known.open_source is False else ""
        yield f"not checked, as {LABELS['goplus']} gives no value{closed}: {', '.join(absent)}"
    if f.simulation is None:
        yield f"{_WITHOUT[f.simulation_gap]}; not checked by it: {', '.join(_CHECKS['honeypotis'])}"
    elif not f.simulated.succeeded:
        why = _quoted(f.simulated.reason)
        yield f"{LABELS['honeypotis']} could not simulate a sale{why}; not checked by it: {SALE}, its taxes"
    elif f.pair_is_empty:
        yield (
            "the sale was simulated on an empty pair, which says nothing of it; not checked by it: "
            f"{SALE}, its taxes"
        )
    if unrated := _unrated(f):
        yield f"not checked, as {LABELS['honeypotis']} does not tell: {', '.join(unrated)}"
    if unmade := _unmade_of_liquidity(f):
        yield f"not checked, as no source tells: {', '.join(unmade)}"


_WITHOUT = {
    "chain_not_covered": "no buy/sell simulation was made: honeypot.is does not cover this chain",
    "no_pair": "no buy/sell simulation was made: honeypot.is knows no pair to simulate it on",
    "source_unavailable": "no buy/sell simulation was made: honeypot.is gave no answer to it",
    None: "no buy/sell simulation was made",
}


def _unrated(f: Facts) -> list[str]:
    """The checks of a simulation beside the sale, where it does not tell what came of them."""
    if f.simulation is None:
        return []
    flags = [] if f.simulated.summarised else _first_looked_up("honeypotis:summary.flags")
    rated = f.simulated.risk_level is not None
    return flags if rated else [*flags, *_first_looked_up("honeypotis:summary.riskLevel")]


def _absent(f: Facts) -> list[str]:
    """The checks that rest on a fact which the analysis leaves out and the simulation does not give."""
    unfounded = [rule for rule in RULES if rule.kind not in ("gap", "merit") and not _founded(f, rule)]
    return list(dict.fromkeys(rule.check for rule in unfounded))


def _founded(f: Facts, rule: Rule) -> bool:
    first, *others = rule.cites
    if not first.startswith("goplus:"):
        return True
    told = [first, *(name for name in others if name.startswith("honeypotis:"))]
    return any(_told(f, name) for name in told)


def _told(f: Facts, name: str) -> bool:
    """Whether something can be made of what a source says under a name."""
    source, _, field = name.partition(":")
    if source == "goplus" and not field.endswith("holders"):
        return getattr(f.known, _OURS.get(field, field)) is not None
    return field not in f.simulated.unreadable and any(each.value for each in cited(f, name))


def _unmade_of_liquidity(f: Facts) -> list[str]:
    """The checks that no source's pairs allow; where there is no pair, that is what was found."""
    if f.no_pair:
        return []
    if f.liquidity is None:
        return _CHECKS["liquidity"]
    known = {
        "liquidity": f.usable_usd is not None,
        ONE_SIDED: f.liquidity.other_side_usd is not None,
        "how long it has been traded": f.age is not None,
    }
    return [check for check, told in known.items() if not told]


def _disagreements(f: Facts) -> Iterator[str]:
    if f.sources_agree is False:
        said, tried = f.known.raw.get("is_honeypot"), "could not sell" if f.sale_failed else "sold"
        yield (
            f"sources disagree: {LABELS['goplus']} says is_honeypot {said}, the simulation by "
            f"{LABELS['honeypotis']} {tried}"
        )
    for name, flagged, simulated in (
        ("buy", f.known.buy_tax, f.simulated_buy_tax),
        ("sell", f.known.sell_tax, f.simulated_sell_tax),
        ("transfer", f.known.transfer_tax, f.simulated_transfer_tax),
    ):
        if flagged is not None and simulated is not None and abs(flagged - simulated) >= 5:
            yield (
                f"sources disagree on the {name} tax: {LABELS['goplus']} says {flagged:.4g} %, the "
                f"simulation by {LABELS['honeypotis']} {simulated:.4g} %; the higher counts"
            )
    if (f.known.sell_tax or 0) >= 100 and (f.known.trading_cooldown or f.known.cannot_buy):
        yield (
            f"the sell tax of 100 % at {LABELS['goplus']} may come of limits on trading that kept it from "
            "testing a sale, such as a pause between trades"
        )
    if f.no_pair_in and f.liquidity is None and f.known.in_dex:
        names = " and ".join(LABELS[source] for source in f.no_pair_in)
        know = "know" if len(f.no_pair_in) > 1 else "knows"
        yield f"sources disagree: {LABELS['goplus']} says that it is traded, {names} {know} no pair"
    if f.pair_is_empty and f.liquidity and f.traded_elsewhere:
        yield (
            f"sources disagree: the pair that {LABELS['honeypotis']} took is empty, "
            f"{LABELS[f.liquidity.source]} lists ${f.usable_usd:,.0f} in pairs on this chain"
        )


_CHECKS = {source: checks_of(source) for source in ("goplus", "honeypotis", "liquidity")}
_CHECKS["liquidity"].append(ONE_SIDED)
