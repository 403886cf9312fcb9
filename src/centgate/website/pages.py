"""All pages of the website. Each page is Markdown, for agents; its HTML for people is made from that."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, to_builtins

from centgate.api.index_page import build_title
from centgate.client.catalog import ServiceDetail
from centgate.json_schema import parse_schema
from centgate.prices import describe_prices
from centgate.website.answer_plan import TONES, AnswerPlan, DrawnAnswer, draw_answer, plan_answer
from centgate.website.api_snapshot import ApiSnapshot
from centgate.website.code_samples import build_samples
from centgate.website.failure_notes import call_errors, describe_caching, failure_notes, sample_answer
from centgate.website.field_tree import build_field_tree
from centgate.website.guides import build_guides, first_service
from centgate.website.markdown import STATE_CLASSES
from centgate.website.page import SitePage
from centgate.website.rendering import render_template
from centgate.website.schema_tables import SchemaTable, build_schema_table
from centgate.website.search_index import drop_repeated, index_page
from centgate.website.try_form import build_form


class ServiceCard(Struct, frozen=True):
    """A service with the fields of its answers, and its example, drawn."""

    service: ServiceDetail
    output: SchemaTable
    plan: AnswerPlan
    sample: dict[str, Any]
    drawn: DrawnAnswer

    @property
    def question(self) -> str:
        """The example's request as JSON."""
        return json.dumps(self.service.input_example, ensure_ascii=False)


def build_pages(deployment: ApiSnapshot) -> tuple[SitePage, ...]:
    """Return all pages in the order of the sitemap."""
    cards = tuple(_service_card(each, deployment) for each in deployment.services)
    guides = build_guides(deployment)
    pages = (
        _home_page(cards, guides, deployment),
        *(_service_page(each, deployment) for each in cards),
        _examples_page(cards),
        *guides,
    )
    return (*pages, _search_page(pages, deployment))


def _examples_page(cards: Sequence[ServiceCard]) -> SitePage:
    return SitePage(
        "/examples",
        "Examples",
        "A question and an answer of every service.",
        "examples",
        layout="examples.html.j2",
        context={"cards": cards},
    )


def _search_page(pages: Sequence[SitePage], deployment: ApiSnapshot) -> SitePage:
    """Return the page that searches all others, with a list of their sections."""
    groups = [
        list(index_page(page.title, page.path, page.description, render_template(page, deployment)))
        for page in pages
    ]
    return SitePage(
        "/search",
        "Search",
        "All pages and their sections, to search or to read through.",
        "search",
        layout="search.html.j2",
        is_index=True,
        context={
            "groups": groups,
            "entries": drop_repeated(entry for entries in groups for entry in entries),
            "query": "",
            "results": [],
        },
    )


def error_pages() -> tuple[SitePage, SitePage]:
    """Return the 404 and 500 pages, which are not in the sitemap."""
    return (
        SitePage(
            "/404",
            "Page not found",
            "There is no page at this address.",
            "not_found",
            "not_found.html.j2",
            context={"query": "", "results": []},
        ),
        SitePage(
            "/500", "Internal error", "The website failed to create this page.", "failed", "failed.html.j2"
        ),
    )


def _home_page(cards: Sequence[ServiceCard], guides: Sequence[SitePage], deployment: ApiSnapshot) -> SitePage:
    first = first_service(deployment)
    sample = sample_answer(first, deployment)
    samples = {each.label: each for each in build_samples(first, deployment)}
    by_category = {
        category: [card for card in cards if card.service.category == category]
        for category in deployment.categories
    }
    return SitePage(
        "/",
        build_title(deployment.prices),
        f"Services for software agents at {describe_prices(deployment.prices)} a call, paid per request in "
        "USDC by x402.",
        "home",
        layout="home.html.j2",
        context={
            "first": first,
            "question": samples["Command line"],
            "code": samples,
            "answer": {part: sample[part] for part in ("providers", "warnings", "data") if part in sample},
            "price": deployment.price_range,
            "first_price": first.price,
            "up": sum(map(deployment.is_up, deployment.services)),
            "source_count": _count_sources(deployment),
            "cards": by_category,
            "shown": _most_telling(cards),
            "state_classes": STATE_CLASSES,
            "guides": guides,
        },
    )


def _service_card(service: ServiceDetail, deployment: ApiSnapshot) -> ServiceCard:
    output = build_schema_table(parse_schema(service.output_schema))
    plan, sample = plan_answer(output.rows), sample_answer(service, deployment)
    return ServiceCard(service, output, plan, sample, draw_answer(plan, sample))


def _most_telling(cards: Sequence[ServiceCard]) -> ServiceCard:
    """Return the card whose example has a level, findings and the most figures; the first on a tie."""
    return max(
        cards, key=lambda card: (bool(card.drawn.level), bool(card.drawn.findings), len(card.drawn.facts))
    )


def _count_sources(deployment: ApiSnapshot) -> int:
    """Return the number of different sources that are configured."""
    return len(
        {source.name for service in deployment.services for source in service.sources if source.configured}
    )


def _service_page(card: ServiceCard, deployment: ApiSnapshot) -> SitePage:
    service = card.service
    return SitePage(
        f"/services/{service.slug}",
        service.title,
        service.summary,
        "service",
        layout="service.html.j2",
        context=_service_context(card, deployment),
    )


def _service_context(card: ServiceCard, deployment: ApiSnapshot) -> dict[str, Any]:
    service = card.service
    siblings = deployment.categories[service.category]
    fields = build_schema_table(parse_schema(service.input_schema))
    return {
        "service": service,
        "form": build_form(service, deployment),
        "state_class": STATE_CLASSES[deployment.state(service)],
        "trouble": deployment.unavailable_reason(service),
        "input": fields,
        "output": card.output,
        "input_tree": build_field_tree(fields.rows),
        "output_tree": build_field_tree(card.output.rows),
        "sample": card.sample,
        "drawn": card.drawn,
        "drawing": {"plan": to_builtins(card.plan), "tones": dict(TONES)},
        "code_samples": build_samples(service, deployment),
        "sources": {source.name: source for source in service.sources},
        "failures": list(failure_notes(service)),
        "errors": call_errors(),
        "cache_note": describe_caching(service),
        "related": [each for each in siblings if each.slug != service.slug],
    }
