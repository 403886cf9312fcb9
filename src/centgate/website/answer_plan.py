"""Plan how answers of a service are drawn, from the schema of its `data`, and draw its sample by this plan.

The page's script draws paid answers by the same plan, so that both look alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import islice
from typing import Any, Final, Literal

from msgspec import Struct

from centgate.coercion import as_list, get_path
from centgate.website.schema_tables import SchemaRow

Unit = Literal["usd", "percent", "number", "flag", "text"]
Tone = Literal["critical", "high", "medium", "low", "info", "unknown"]

TONES: Final[Mapping[str, Tone]] = {
    "critical": "critical",
    "danger": "critical",
    "blocked": "critical",
    "high": "high",
    "medium": "medium",
    "warning": "medium",
    "lookalike": "medium",
    "low": "low",
    "allowed": "low",
    "info": "info",
    "unknown": "unknown",
}
"""Tone of each word for a level; worst first. The style sheet has a colour for each tone."""
_LEVEL_WORDS = frozenset({"critical", "high", "medium", "low", "danger", "warning"})
_MAX_FACTS, _MAX_FACTS_OF_OBJECT, _MAX_LISTED = 12, 3, 5
_MAX_CHARACTERS = 160
"""Characters of one value that are shown; the complete answer is below the drawing."""
_MAX_EXCERPT = 600
_ACRONYMS = {"tvl": "TVL", "abi": "ABI", "fdv": "FDV", "id": "ID", "usd": "USD"}
_FACT_TYPES: Final[Mapping[str, Unit]] = {
    "number": "number",
    "integer": "number",
    "boolean": "flag",
    "string": "text",
}
_LINK_FIELDS = ("url", "sourceUrl", "id")
_TEXT_FIELDS = ("description", "text", "code")


class FactPlan(Struct, frozen=True):
    """One figure of an answer."""

    path: str
    """Path below `data`: `taxes.buy.percent`."""
    label: str
    unit: Unit


class AnswerPlan(Struct, frozen=True):
    """The fields of `data` that are drawn, and as what."""

    level: str
    """Name of the field with the level; "" if the level is the worst severity of the findings, or missing."""
    findings: tuple[str, ...]
    """Paths of lists of findings, with severity and explanation: `approvals[].findings[]`."""
    listed: str
    """Name of the list of results with titles; "" if there is none."""
    excerpt: str
    """Name of the field with a long text, of which the beginning is shown; "" if there is none."""
    facts: tuple[FactPlan, ...]


class LevelWord(Struct, frozen=True):
    """A level or severity, as a word with its tone."""

    word: str
    tone: Tone


class DrawnAnswer(Struct, frozen=True):
    """An answer by its plan, as texts."""

    level: LevelWord | None
    findings: tuple[tuple[LevelWord, str], ...]
    facts: tuple[tuple[str, str], ...]
    """Label and value."""
    listed: tuple[tuple[str, str, str], ...]
    """Title, address and text of each result."""
    sources: tuple[tuple[str, str], ...]
    """Name and status."""
    excerpt: str
    warnings: tuple[str, ...]


def plan_answer(rows: Sequence[SchemaRow]) -> AnswerPlan:
    """Choose what is drawn of a service's answers, from the fields of `data`."""
    names = {row.name for row in rows}
    listed = next(
        (
            name.removesuffix("[].title")
            for name in names
            if name.count(".") == 1 and name.endswith("[].title")
        ),
        "",
    )
    return AnswerPlan(
        level=next((row.name for row in rows if _is_level(row)), ""),
        findings=tuple(
            name.removesuffix(".severity")
            for name in dict.fromkeys(row.name for row in rows)
            if name.endswith("[].severity") and name.replace(".severity", ".explanation") in names
        ),
        listed=listed,
        excerpt="markdown" if "markdown" in names else "",
        facts=tuple(islice(_choose_facts(rows), _MAX_FACTS)),
    )


def _is_level(row: SchemaRow) -> bool:
    """Return True for a field of `data` itself whose values are levels."""
    words = set(re.findall(r"`(\w+)`", " ".join(row.limits)))
    return "." not in row.name and "[" not in row.name and len(words & _LEVEL_WORDS) > 1


def _choose_facts(rows: Sequence[SchemaRow]) -> Iterator[FactPlan]:
    """Yield single values: those of `data`, and the first few of each object in it."""
    counts: dict[str, int] = {}
    labels: set[str] = set()
    for row in rows:
        kind = _FACT_TYPES.get(row.type)
        if kind is None or "[" in row.name or _is_level(row) or _is_secondary(row.name):
            continue
        owner, inside, _ = row.name.partition(".")
        counts[owner] = counts.get(owner, 0) + 1
        if (inside and (kind == "text" or counts[owner] > _MAX_FACTS_OF_OBJECT)) or row.name.count(".") > 2:
            continue
        label = _fact_label(row.name)
        if label not in labels:
            labels.add(label)
            yield FactPlan(row.name, label, _fact_unit(row.name, kind))


def _is_secondary(name: str) -> bool:
    """Return True for a value that repeats the request, or is too long for a figure."""
    return bool(
        re.search(r"(?i)(address|hash|baseUnits|sha256|version|url|decimals|block|slug|markdown)$", name)
    )


def _fact_unit(name: str, kind: Unit) -> Unit:
    if kind == "number" and re.search(r"(?i)usd$", name):
        return "usd"
    return "percent" if kind == "number" and re.search(r"(?i)percent$", name) else kind


def _fact_label(path: str) -> str:
    """Return the label of a value: `liquidity.totalUsd` is `Liquidity: total`."""
    *owners, name = path.split(".")
    name = re.sub(r"^is(?=[A-Z])|(Usd|Percent)$|^(usd|percent)$", "", name)
    owner_words = _split_words(" ".join(owners))
    own_words = [word for word in _split_words(name) if word not in owner_words]
    text = ": ".join(" ".join(words) for words in (owner_words, own_words) if words)
    return text[:1].upper() + text[1:]


def _split_words(name: str) -> list[str]:
    """Return the different words of a name in camelCase, in lower case but for acronyms."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z0-9])", " ", name).lower().split()
    return [_ACRONYMS.get(word, word) for word in dict.fromkeys(words)]


def draw_answer(plan: AnswerPlan, answer: Mapping[str, Any]) -> DrawnAnswer:
    """Draw an answer with its envelope; what has another form than the schema says is left out."""
    data = answer.get("data")
    findings = tuple(_find_findings(plan, data))
    level = make_level(value) if isinstance(value := _follow(data, plan.level), str) else None
    worst = min((word for word, _ in findings), key=_rank, default=None)
    return DrawnAnswer(
        level=level or worst,
        findings=findings[:_MAX_LISTED],
        facts=tuple(
            (fact.label, format_fact(fact, value))
            for fact in plan.facts
            if (value := _follow(data, fact.path)) is not None
        ),
        listed=tuple(islice(_read_listed(plan, data), _MAX_LISTED)),
        sources=tuple(
            (str(each.get("name")), str(each.get("status"))) for each in _objects(answer.get("providers"))
        ),
        excerpt=value[:_MAX_EXCERPT] if isinstance(value := _follow(data, plan.excerpt), str) else "",
        warnings=tuple(each for each in as_list(answer.get("warnings")) if isinstance(each, str)),
    )


def make_level(word: str) -> LevelWord:
    """Return a word for a level with its tone; an unknown word gets the neutral tone."""
    return LevelWord(word[:_MAX_CHARACTERS], TONES.get(word, "unknown"))


def _rank(level: LevelWord) -> int:
    return list(TONES.values()).index(level.tone)


def _find_findings(plan: AnswerPlan, data: Any) -> Iterator[tuple[LevelWord, str]]:
    """Yield findings, worst first."""
    found = [
        (make_level(str(each.get("severity"))), str(each.get("explanation")))
        for path in plan.findings
        for each in _spread(data, path.split("."))
    ]
    yield from sorted(found, key=lambda each: _rank(each[0]))


def _spread(node: Any, steps: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects at a path, those of every list on its way."""
    if not steps:
        yield from _objects([node])
        return
    step, *rest = steps
    value = _follow(node, step.removesuffix("[]"))
    for each in as_list(value) if step.endswith("[]") else [value]:
        yield from _spread(each, rest)


def _read_listed(plan: AnswerPlan, data: Any) -> Iterator[tuple[str, str, str]]:
    for each in _objects(_follow(data, plan.listed)):
        texts = [
            next((str(each[name]) for name in names if isinstance(each.get(name), str)), "")
            for names in (("title",), _LINK_FIELDS, _TEXT_FIELDS)
        ]
        title, address, text = (part[:_MAX_CHARACTERS] for part in texts)
        yield title or address, address if title else "", text


def _follow(node: Any, path: str) -> Any:
    """Return the value at a path of objects; None if it is missing."""
    return get_path(node, *path.split("."))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in as_list(value) if isinstance(each, dict)]


def format_fact(fact: FactPlan, value: Any) -> str:
    """Format a value by its unit: `$98.0M`, `0.05 %`, `yes`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) and fact.unit in ("usd", "percent", "number"):
        return _format_number(value, fact.unit)
    return str(value)[:_MAX_CHARACTERS]


def _format_number(value: float, unit: Unit) -> str:
    if unit == "percent":
        return f"{_format_significant(value)} %"
    sign = "$" if unit == "usd" else ""
    for limit, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if abs(value) >= limit:
            return f"{sign}{_format_significant(value / limit)}{letter}"
    if abs(value) < 1:
        # prices of some tokens have more zeros than digits that would be kept
        return f"{sign}{_format_significant(value)}"
    return f"{sign}{_format_decimal(Decimal(repr(value)).quantize(Decimal('0.0001'), ROUND_HALF_UP))}"


def _format_significant(value: float) -> str:
    """Format a number with at most four significant digits, rounded like JavaScript does: half up."""
    return _format_decimal(Context(prec=4, rounding=ROUND_HALF_UP).create_decimal(repr(value)))


def _format_decimal(value: Decimal) -> str:
    return f"{value.normalize():,f}"
