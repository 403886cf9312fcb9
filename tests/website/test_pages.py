"""Content and accessibility of the pages."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from itertools import pairwise
from typing import Any, cast

import pytest
from browser_session import ServedSite
from hypothesis import given
from hypothesis import strategies as st
from lxml import html as lxml
from markupsafe import Markup
from msgspec.structs import replace

from centgate.catalog import all_services
from centgate.client.catalog import CatalogUnavailable
from centgate.envelope import ERROR_SPECS
from centgate.json_schema import parse_schema
from centgate.website.api_snapshot import ApiSnapshot
from centgate.website.markdown import render_document
from centgate.website.pages import build_pages
from centgate.website.rendering import render_html, render_markdown
from centgate.website.schema_tables import build_schema_table

Tree = Any
"""An element of a page; lxml's types do not declare the result of an XPath."""
READER: Any = lxml
SLUGS = [service.slug for service in all_services()]
PAGE_BYTES, SCRIPT_BYTES = 20 * 1024, 18 * 1024
"""Most bytes of a page, compressed as it is sent, and of its scripts."""


@pytest.fixture(scope="session")
def deployment(shop: ServedSite) -> ApiSnapshot:
    """Snapshot of a healthy API."""
    return shop.deployment


@pytest.fixture(scope="session")
def trees(shop: ServedSite) -> dict[str, Tree]:
    """Parsed HTML of every page by path, with the error pages."""
    return {
        file.path: READER.document_fromstring(file.content.decode())
        for file in shop.files.values()
        if file.media_type.startswith("text/html")
    }


def read_page(shop: ServedSite, path: str) -> str:
    """Return a page's Markdown as it is served."""
    return shop.files[path].content.decode()


def render_page(deployment: ApiSnapshot, path: str) -> str:
    """Return the Markdown of a page of a changed deployment."""
    return next(render_markdown(page, deployment) for page in build_pages(deployment) if page.path == path)


def test_pages_are_small(shop: ServedSite) -> None:
    sizes = {
        file.path: len(gzip.compress(file.content))
        for file in shop.files.values()
        if file.media_type.startswith("text/html")
    }

    assert {path: size for path, size in sizes.items() if size > PAGE_BYTES} == {}


def test_scripts_of_pages_are_small(shop: ServedSite, trees: dict[str, Tree]) -> None:
    for path, tree in trees.items():
        sources: list[str] = tree.xpath("//script/@src")
        assert sum(len(shop.files[source].content) for source in sources) <= SCRIPT_BYTES, path


def test_page_complies_with_its_policy(trees: dict[str, Tree]) -> None:
    inline = "//@style | //style | //@*[starts-with(name(), 'on')] | //script[not(@src) and not(@type)]"

    assert {path: tree.xpath(inline) for path, tree in trees.items() if tree.xpath(inline)} == {}


def test_page_contains_its_policy(trees: dict[str, Tree]) -> None:
    for path, tree in trees.items():
        (policy,) = tree.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
        assert "default-src 'none'" in policy, path
        assert "unsafe" not in policy, path


def test_ids_are_unique(trees: dict[str, Tree]) -> None:
    for path, tree in trees.items():
        ids: list[str] = tree.xpath("//@id")
        assert len(ids) == len(set(ids)), path


def test_headings_skip_no_level(trees: dict[str, Tree]) -> None:
    for path, tree in trees.items():
        levels = [int(each.tag[1]) for each in tree.xpath("//main//*[self::h1 or self::h2 or self::h3]")]
        assert levels[0] == 1, path
        assert levels.count(1) == 1, path
        assert all(after - before <= 1 for before, after in pairwise(levels)), path


def test_tables_have_captions_and_header_scopes(trees: dict[str, Tree]) -> None:
    for path, tree in trees.items():
        for each in tree.xpath("//table"):
            assert each.xpath("string(caption)"), path
            assert not each.xpath(".//th[not(@scope)]"), path
            assert len(each.xpath(".//tbody/tr")) == len(each.xpath(".//tbody/tr/th[@scope='row']")), path


def test_scrollable_regions_are_focusable_and_named(trees: dict[str, Tree]) -> None:
    for path, tree in trees.items():
        blocks: list[Tree] = tree.xpath("//*[@role='region']")
        names = [block.get("aria-label") for block in blocks]
        assert all(block.get("tabindex") == "0" for block in blocks), path
        assert len(names) == len(set(names)), path
        assert not tree.xpath("//table[not(parent::*[@role='region'])]"), path


@pytest.mark.extended
def test_internal_links_lead_somewhere(shop: ServedSite, trees: dict[str, Tree]) -> None:
    for path, tree in trees.items():
        for link in tree.xpath("//a/@href | //link/@href | //script/@src | //img/@src"):
            target, _, fragment = link.removeprefix(shop.deployment.site).partition("#")
            if target.startswith(("http:", "https:", "mailto:", "cursor:", "vscode:")):
                continue
            assert (target or path) in shop.files, f"{path}: {link}"
            if fragment and (target or path) in trees:
                assert trees[target or path].xpath("//*[@id=$id]", id=fragment), f"{path}: {link}"


def test_no_page_loads_external_resources(trees: dict[str, Tree]) -> None:
    loaded = "//script/@src | //img/@src | //link[@rel='stylesheet' or @rel='icon']/@href"

    for path, tree in trees.items():
        assert all(source.startswith("/") for source in tree.xpath(loaded)), path


def test_first_page_lists_services_with_state(shop: ServedSite, deployment: ApiSnapshot) -> None:
    text = read_page(shop, "/index.md")

    for service in deployment.services:
        line = next(each for each in text.splitlines() if f"[{service.title}]" in each)
        assert f"**{deployment.state(service)}**" in line
    assert "curl -si -X POST " + deployment.api in text
    assert deployment.services[0].price in text


def test_first_page_says_that_money_is_worthless(shop: ServedSite) -> None:
    text = read_page(shop, "/index.md")

    assert "runs on a test network" in text


def test_first_page_says_that_nothing_is_sold(deployment: ApiSnapshot) -> None:
    text = render_page(remove_payee(deployment), "/")

    assert "Payments are disabled" in text
    assert "**up**" not in text


def remove_payee(deployment: ApiSnapshot) -> ApiSnapshot:
    """Snapshot of the same API without a payee."""
    services = tuple(
        each.model_copy(update={"payment": each.payment.model_copy(update={"enforced": False})})
        for each in deployment.services
    )
    return replace(deployment, services=services, terms=None)


def test_unreachable_api_is_reported_on_pages_with_state(
    deployment: ApiSnapshot,
) -> None:
    lost = deployment.as_unreachable(datetime(2026, 11, 20, 9, 5, tzinfo=UTC))

    texts = [render_page(lost, "/"), render_page(lost, "/services/token-risk")]

    assert all("2026-11-20 09:05 UTC" in text and "**not reachable**" in text for text in texts)


def test_api_is_unreachable_since_its_first_failure(deployment: ApiSnapshot) -> None:
    first, later = datetime(2026, 11, 20, 9, 5, tzinfo=UTC), datetime(2026, 11, 20, 9, 6, tzinfo=UTC)

    again = deployment.as_unreachable(first).as_unreachable(later)

    assert again.unreachable_since == first


def test_unavailable_service_names_its_missing_sources(shop: ServedSite, deployment: ApiSnapshot) -> None:
    service = next(each for each in deployment.services if each.slug == "crawler-search")

    text = read_page(shop, "/services/crawler-search.md")

    assert not service.available
    assert all(lead.label in text for lead in service.leads)
    assert "which is not configured on this deployment" in text


@pytest.mark.extended
def test_older_api_without_sources_is_shown(
    deployment: ApiSnapshot,
) -> None:
    services = tuple(each.model_copy(update={"sources": ()}) for each in deployment.services)

    text = render_page(replace(deployment, services=services, measured=None), "/services/crawler-search")

    assert "**not known**" in text


def test_missing_sample_answers_are_reported(deployment: ApiSnapshot) -> None:
    others = {path: each for path, each in deployment.openapi["paths"].items() if "token-risk" not in path}
    bare = replace(deployment, openapi={**deployment.openapi, "paths": others})

    with pytest.raises(CatalogUnavailable, match="has no sample answer of token-risk"):
        build_pages(bare)


@pytest.mark.extended
@pytest.mark.parametrize("slug", SLUGS)
def test_service_page_is_complete(shop: ServedSite, deployment: ApiSnapshot, slug: str) -> None:
    service = next(each for each in deployment.services if each.slug == slug)

    text = read_page(shop, f"/services/{slug}.md")

    texts = [service.price, service.summary, deployment.api + service.path, *service.guardrails]
    texts += [f"[{each.label}]({each.docs_url}) | {each.role}" for each in service.providers]
    texts += [f"| `{code}` | {ERROR_SPECS[code].status} |" for code in ERROR_SPECS if code != "not_found"]
    texts.remove("| `method_not_allowed` | 405 |")
    assert [each for each in texts if each not in text] == []


@pytest.mark.extended
@pytest.mark.parametrize("slug", SLUGS)
def test_fields_of_sample_answer_are_in_table(deployment: ApiSnapshot, slug: str) -> None:
    service = next(each for each in deployment.services if each.slug == slug)

    names = {row.name for row in build_schema_table(parse_schema(service.output_schema)).rows}

    assert set(list_paths(service.output_example)) <= names
    assert {row.name for row in build_schema_table(parse_schema(service.input_schema)).rows} >= set(
        service.input_example
    )


@pytest.mark.extended
@pytest.mark.parametrize("slug", SLUGS)
def test_null_fields_of_sample_answer_are_nullable(deployment: ApiSnapshot, slug: str) -> None:
    service = next(each for each in deployment.services if each.slug == slug)

    rows = {row.name: row for row in build_schema_table(parse_schema(service.output_schema)).rows}

    assert all(rows[path].nullable for path in list_null_paths(service.output_example))


def list_paths(value: Any, above: str = "") -> Iterator[str]:
    """Yield the path of every field inside a value, as tables write it."""
    if isinstance(value, dict):
        for name, inner in cast(dict[str, Any], value).items():
            yield above + name
            yield from list_paths(inner, f"{above}{name}.")
    elif isinstance(value, list):
        for inner in cast(list[Any], value):
            yield from list_paths(inner, f"{above.removesuffix('.')}[].")


def list_null_paths(value: Any, above: str = "") -> Iterator[str]:
    """Yield the path of every null field inside a value."""
    if isinstance(value, dict):
        for name, inner in cast(dict[str, Any], value).items():
            if inner is None:
                yield above + name
            yield from list_null_paths(inner, f"{above}{name}.")
    elif isinstance(value, list):
        for inner in cast(list[Any], value):
            yield from list_null_paths(inner, f"{above.removesuffix('.')}[].")


NAMES = st.text("abcXYZ", min_size=1, max_size=4)
PLAIN = st.sampled_from([{"type": "string"}, {"type": "integer"}, {"const": "x"}, {"enum": ["a", None]}])


def make_nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that accepts null as well."""
    return {"anyOf": [schema, {"type": "null"}]}


def combine_schemas(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Generate objects, arrays and nullable values of other schemas."""
    objects = st.dictionaries(NAMES, inner, max_size=3).map(
        lambda each: {"type": "object", "properties": each}
    )
    arrays = inner.map(lambda each: {"type": "array", "items": each})
    return st.one_of(objects, arrays, inner.map(make_nullable))


SCHEMAS = st.dictionaries(NAMES, st.recursive(PLAIN, combine_schemas, max_leaves=8), max_size=4).map(
    lambda each: {"type": "object", "properties": each}
)


def list_schema_paths(schema: dict[str, Any], above: str = "") -> Iterator[str]:
    """Yield the paths of a generated schema."""
    if "anyOf" in schema:
        yield from list_schema_paths(schema["anyOf"][0], above)
    elif schema.get("type") == "array":
        yield from list_schema_paths(schema["items"], f"{above.removesuffix('.')}[].")
    for name, inner in schema.get("properties", {}).items():
        yield above + name
        yield from list_schema_paths(inner, f"{above}{name}.")


@given(SCHEMAS)
def test_table_has_every_field_once_in_order(schema: dict[str, Any]) -> None:
    rows = build_schema_table(parse_schema(schema)).rows

    assert [row.name for row in rows] == list(list_schema_paths(schema))


@pytest.mark.extended
@given(SCHEMAS)
def test_definition_is_shown_like_inline_schema(schema: dict[str, Any]) -> None:
    referring = {"type": "object", "properties": {"it": {"$ref": "#/$defs/It"}}, "$defs": {"It": schema}}
    whole = {"type": "object", "properties": {"it": schema}}

    assert build_schema_table(parse_schema(referring)) == build_schema_table(parse_schema(whole))


def test_recursive_schema_ends() -> None:
    node = {"type": "object", "properties": {"next": make_nullable({"$ref": "#/$defs/Node"})}}

    rows = build_schema_table(parse_schema({"$ref": "#/$defs/Node", **node, "$defs": {"Node": node}})).rows

    assert rows[0].nullable
    assert 1 < len(rows) < 30


@pytest.mark.parametrize(
    ("schema", "limits"),
    [
        ({"type": "integer", "minimum": 500, "maximum": 5000}, ("500 to 5,000",)),
        ({"type": "integer", "exclusiveMinimum": 0, "maximum": 2**53 - 1}, ("above 0",)),
        ({"type": "string", "minLength": 2, "maxLength": 500}, ("2 to 500 characters",)),
        ({"type": "string", "pattern": "^a|b$"}, ("matches `^a|b$`",)),
        ({"enum": ["a b", 1, True]}, ("one of `a b`, `1`, `true`",)),
        ({"const": "x"}, ("always `x`",)),
        ({"type": "array", "items": {"type": "string", "maxLength": 9}, "maxItems": 5},
         ("at most 5 items", "each at most 9 characters")),
        ({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}, ("one of `a`",)),
        ({"type": "string", "not": {"pattern": "z"}}, ("does not match `z`",)),
        ({"type": "string"}, ()),
    ],
)  # fmt: skip
def test_limits_of_values_are_described(schema: dict[str, Any], limits: tuple[str, ...]) -> None:
    (row,) = build_schema_table(parse_schema({"type": "object", "properties": {"it": schema}})).rows

    assert row.limits == limits


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (
            {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            "array of array of integer",
        ),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}, "string or integer"),
        ({"type": ["string", "null"]}, "string"),
        ({"enum": ["a"]}, "string"),
        ({}, "any"),
    ],
)
def test_types_are_described(schema: dict[str, Any], words: str) -> None:
    (row,) = build_schema_table(parse_schema({"type": "object", "properties": {"it": schema}})).rows

    assert row.type == words


def test_alternative_fields_are_described() -> None:
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in "abcd"},
        "allOf": [
            {"anyOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"enum": ["x"]}}}]}
        ],
        "oneOf": [{"required": ["c"]}, {"required": ["d"]}],
        "additionalProperties": False,
    }

    read = build_schema_table(parse_schema(schema))

    assert set(read.rules) == {
        "At least one of `a` and `b` is required.",
        "Exactly one of `c` and `d` is required.",
        "Unknown fields are refused.",
    }
    assert read.rows[1].limits == ("one of `x`",)


def test_patterns_are_shown_unchanged(deployment: ApiSnapshot, trees: dict[str, Tree]) -> None:
    for service in deployment.services:
        shown = trees[f"/services/{service.slug}"].xpath(
            "//table//code/text() | //*[@class='limits']/code/text()"
        )
        for field in service.input_schema["properties"].values():
            if "pattern" in field:
                assert field["pattern"] in shown


def parse_rendered(text: str) -> Tree:
    """Return Markdown as parsed HTML, with unchanged links."""
    return READER.fragment_fromstring(str(Markup(render_document(text, str))), create_parent="div")


def test_html_in_markdown_stays_text() -> None:
    tree = parse_rendered("a <script>alert(1)</script>\n\n<img src=x onerror=y>\n\n```html\n<b>\n```\n")

    assert not tree.xpath("//script | //img | //b")


def test_script_link_is_no_link() -> None:
    tree = parse_rendered("[a](javascript:alert(1)) [b](data:text/html,x)")

    assert not tree.xpath("//a")


def test_external_links_are_marked() -> None:
    tree = parse_rendered("[a](https://example.org) [b](/here)")

    assert tree.xpath("//a/@rel") == ["external noopener"]


def test_equal_headings_have_distinct_anchors() -> None:
    tree = parse_rendered("## Same\n\n## Same\n\n### `a_b` & c\n")

    assert tree.xpath("//@id") == ["same", "same-2", "a_b-c"]
    assert tree.xpath("//h2/a/@href") == ["#same", "#same-2"]


def test_table_alignment_is_no_inline_style() -> None:
    tree = parse_rendered("# T\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n")

    assert not tree.xpath("//@style")
    assert tree.xpath("//td/@class") == ["right"]


def test_only_state_words_get_shape() -> None:
    tree = parse_rendered("**up** **down** **not reachable** **other**")

    assert tree.xpath("//strong/@class") == ["state up", "state down", "state lost"]


@given(st.text(), st.sampled_from(["json", "python", "sh", "nonsense", ""]))
def test_code_is_shown_unchanged(code: str, language: str) -> None:
    text = re.sub(r"[\x00-\x1f`~\x7f-\x9f\u2028\u2029]|[\ud800-\udfff]|[\ufffe\uffff]", "", code)

    tree = parse_rendered(f"```{language}\n{text}\n```\n")

    assert tree.xpath("string(//code)") == f"{text}\n"


@pytest.mark.extended
def test_page_links_to_pages_and_markdown_to_markdown(deployment: ApiSnapshot) -> None:
    pages = build_pages(deployment)
    first = pages[0]

    tree = READER.document_fromstring(render_html(first, deployment, pages))

    assert f"]({deployment.site}/services/token-risk.md)" in render_markdown(first, deployment)
    assert "/services/token-risk" in tree.xpath("//main//li//a/@href")


COLOURS = re.findall(
    r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)",
    (files("centgate.website") / "assets" / "site.css").read_text(),
)
TEXT = ("text", "quiet", "accent", "good", "bad", "string", "number", "keyword")
LEVELS = ("critical", "high", "medium", "low", "info", "unknown")


@pytest.mark.extended
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("shown", "ground", "ratio"),
    [
        *((name, ground, 4.5) for name in TEXT for ground in ("ground", "surface", "raised")),
        *((name, f"{name}-tint", 4.5) for name in LEVELS),
        ("accent", "accent-tint", 4.5),
        ("on-accent", "accent", 4.5),
        ("control", "ground", 3.0),
        ("control", "raised", 3.0),
        ("control", "surface", 3.0),
    ],
)
def test_colours_have_sufficient_contrast(shown: str, ground: str, ratio: float, theme: int) -> None:
    colours = {name: pair[theme] for name, *pair in COLOURS}

    assert contrast_ratio(colours[shown], colours[ground]) >= ratio


def contrast_ratio(one: str, other: str) -> float:
    """Return WCAG 2.2's contrast ratio of two colours."""
    dark, light = sorted((relative_luminance(one), relative_luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def relative_luminance(colour: str) -> float:
    """Return WCAG 2.2's relative luminance of `#rrggbb`."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))
