"""Plans of answers: the fields of a schema that are drawn, and the format of values."""

from __future__ import annotations

from typing import Any

import pytest

from centgate.catalog import all_services
from centgate.json_schema import parse_schema
from centgate.website.answer_plan import TONES, AnswerPlan, FactPlan, draw_answer, format_fact, plan_answer
from centgate.website.field_tree import FieldNode, build_field_tree
from centgate.website.schema_tables import SchemaRow, build_schema_table
from centgate.website.search_index import drop_repeated, index_page, search

LEVELS = {"type": "string", "enum": ["critical", "high", "low", "unknown"]}
FINDING = {
    "type": "object",
    "properties": {"severity": LEVELS, "explanation": {"type": "string"}},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "risk": LEVELS,
        "flags": {"type": "array", "items": FINDING},
        "totalUsd": {"type": "number"},
        "isOpen": {"type": "boolean"},
        "ownerAddress": {"type": "string"},
        "tax": {"type": "object", "properties": {"percent": {"type": "number"}}},
    },
}


def build_plan(schema: dict[str, Any]) -> AnswerPlan:
    """Return the plan of a service with this schema of `data`."""
    return plan_answer(build_schema_table(parse_schema(schema)).rows)


def test_level_findings_and_figures_are_found_in_schema() -> None:
    plan = build_plan(SCHEMA)

    assert plan.level == "risk"
    assert plan.findings == ("flags[]",)
    assert plan.facts == (
        FactPlan("totalUsd", "Total", "usd"),
        FactPlan("isOpen", "Open", "flag"),
        FactPlan("tax.percent", "Tax", "percent"),
    )


def test_label_of_inner_value_names_its_object_once() -> None:
    figure = {"type": "number"}
    names = ("isHoneypot", "buyTaxPercent", "tvlUsd")
    inner = {"type": "object", "properties": dict.fromkeys(names, figure)}

    plan = build_plan({"type": "object", "properties": {"honeypot": inner}})

    assert [fact.label for fact in plan.facts] == ["Honeypot", "Honeypot: buy tax", "Honeypot: TVL"]


def test_findings_are_drawn_worst_first_without_missing_values() -> None:
    flags = [
        {"severity": "low", "explanation": "a little"},
        {"severity": "critical", "explanation": "a lot"},
        "odd",
    ]

    drawn = draw_answer(build_plan(SCHEMA), {"data": {"flags": flags, "totalUsd": None}, "providers": None})

    assert [(level.word, text) for level, text in drawn.findings] == [
        ("critical", "a lot"),
        ("low", "a little"),
    ]
    assert drawn.level is not None
    assert drawn.level.word == "critical"
    assert drawn.facts == ()


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("usd", 98_000_000.0, "$98M"),
        ("usd", 0.9998, "$0.9998"),
        ("usd", 31_400_000_000, "$31.4B"),
        ("usd", 0.00001234, "$0.00001234"),
        ("usd", -0.00001, "$-0.00001"),
        ("number", 0.0123456, "0.01235"),
        ("number", 0, "0"),
        ("percent", 0.05, "0.05 %"),
        ("percent", 12345.6, "12,350 %"),
        ("usd", 1.5e16, "$15,000T"),
        ("number", 1234.56785, "1,234.5679"),
        ("number", 41200, "41,200"),
        ("flag", False, "no"),
        ("text", "x" * 999, "x" * 160),
        ("usd", "n/a", "n/a"),
    ],
)
def test_values_are_formatted_by_unit(unit: Any, value: Any, text: str) -> None:
    assert format_fact(FactPlan("a", "A", unit), value) == text


@pytest.mark.parametrize("service", all_services(), ids=lambda each: each.slug)
def test_every_example_has_something_to_draw(service: Any) -> None:
    plan = build_plan(service.output_schema)
    drawn = draw_answer(plan, {"data": service.output_example})

    assert drawn.facts or drawn.listed or drawn.excerpt
    assert all(level.tone in TONES.values() for level, _ in drawn.findings)


def test_tree_has_every_row_once() -> None:
    names = ["a", "a.b", "a.b[].c", "ab", "d[].e"]
    rows = [SchemaRow(name, "string", (), None, required=True, nullable=False, meaning="") for name in names]

    def list_names(nodes: list[FieldNode]) -> list[str]:
        return [name for node in nodes for name in (node.row.name, *list_names(node.children))]

    roots = build_field_tree(rows)

    assert [node.name for node in roots] == ["a", "ab", "d[].e"]
    assert list_names(roots) == names


def test_common_section_of_pages_is_found_once() -> None:
    pages = [
        entry
        for name in ("A", "B")
        for entry in index_page(name, f"/{name}", name, f"# {name}\n\n## Errors\n\nThe same.\n")
    ]

    assert [each.path for each in search(drop_repeated(pages), "same")] == ["/A#errors"]


def test_search_requires_all_words_and_ranks_titles_first() -> None:
    markdown = (
        "# Paying\n\n## Caps\n\nLimits of a wallet.\n\n```sh\n## no heading\n```\n\n## Wallet\n\nA key.\n"
    )
    entries = list(index_page("Paying", "/paying", "How to pay.", markdown))

    assert [each.path for each in entries] == ["/paying", "/paying#caps", "/paying#wallet"]
    assert [each.path for each in search(entries, "wall")] == ["/paying#wallet", "/paying#caps"]
    assert search(entries, "wallet zebra") == []
    assert search(entries, "  ") == []
