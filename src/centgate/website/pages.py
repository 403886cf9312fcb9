"""All pages of the website. Each page is Markdown, for agents; its HTML for people is made from that."""

from __future__ import annotations

from typing import Any

from centgate.client.catalog import ServiceDetail
from centgate.json_schema import parse_schema
from centgate.website.api_snapshot import ApiSnapshot
from centgate.website.code_samples import build_samples
from centgate.website.failure_notes import call_errors, describe_caching, failure_notes, sample_answer
from centgate.website.guides import build_guides, first_service
from centgate.website.page import SitePage
from centgate.website.schema_tables import build_schema_table
from centgate.website.try_form import build_form


def build_pages(deployment: ApiSnapshot) -> tuple[SitePage, ...]:
    """Return all pages in the order of the sitemap."""
    return (
        _home_page(deployment),
        *(_service_page(each, deployment) for each in deployment.services),
        *build_guides(deployment),
    )


def error_pages() -> tuple[SitePage, SitePage]:
    """Return the 404 and 500 pages, which are not in the sitemap."""
    return (
        SitePage(
            "/404", "Page not found", "There is no page at this address.", "not_found", "not_found.html.j2"
        ),
        SitePage(
            "/500", "Internal error", "The website failed to create this page.", "failed", "not_found.html.j2"
        ),
    )


def _home_page(deployment: ApiSnapshot) -> SitePage:
    first = first_service(deployment)
    sample = sample_answer(first, deployment)
    return SitePage(
        "/",
        "Facts for software agents at one cent a call",
        "Services for software agents at one cent a call, paid per request in USDC by x402.",
        "home",
        layout="home.html.j2",
        context={
            "first": first,
            "question": next(
                each for each in build_samples(first, deployment) if each.label == "Command line"
            ),
            "answer": {part: sample[part] for part in ("providers", "warnings", "data") if part in sample},
            "price": first.price,
            "up": sum(map(deployment.is_up, deployment.services)),
            "guides": build_guides(deployment),
        },
    )


def _service_page(service: ServiceDetail, deployment: ApiSnapshot) -> SitePage:
    return SitePage(
        f"/services/{service.slug}",
        service.title,
        service.summary,
        "service",
        layout="service.html.j2",
        context=_service_context(service, deployment),
    )


def _service_context(service: ServiceDetail, deployment: ApiSnapshot) -> dict[str, Any]:
    siblings = deployment.categories[service.category]
    return {
        "service": service,
        "form": build_form(service, deployment),
        "trouble": deployment.unavailable_reason(service),
        "input": build_schema_table(parse_schema(service.input_schema)),
        "output": build_schema_table(parse_schema(service.output_schema)),
        "sample": sample_answer(service, deployment),
        "snippets": build_samples(service, deployment),
        "sources": {source.name: source for source in service.sources},
        "failures": list(failure_notes(service)),
        "errors": call_errors(),
        "cache_note": describe_caching(service),
        "related": [each for each in siblings if each.slug != service.slug],
    }
