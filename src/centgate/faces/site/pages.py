"""All pages of the website. Each page is Markdown, for agents; its HTML for people is made from that."""

from __future__ import annotations

from typing import Any

from centgate.client.catalog import Entry
from centgate.faces.site.deployment import Deployment
from centgate.faces.site.forms import form_of
from centgate.faces.site.guides import first_service, guides
from centgate.faces.site.page import Page
from centgate.faces.site.schema_tables import table
from centgate.faces.site.snippets import snippets
from centgate.faces.site.telling import errors_of_a_call, failures, kept, sample_answer


def all_pages(deployment: Deployment) -> tuple[Page, ...]:
    """Return all pages in the order of the sitemap."""
    return (
        _home_page(deployment),
        *(_service_page(each, deployment) for each in deployment.services),
        *guides(deployment),
    )


def apologies() -> tuple[Page, Page]:
    """Return the 404 and 500 pages, which are not in the sitemap."""
    return (
        Page("/404", "Page not found", "There is no page at this address.", "not_found", "not_found.html.j2"),
        Page(
            "/500", "Internal error", "The website failed to create this page.", "failed", "not_found.html.j2"
        ),
    )


def _home_page(deployment: Deployment) -> Page:
    first = first_service(deployment)
    sample = sample_answer(first, deployment)
    return Page(
        "/",
        "Facts for software agents at one cent a call",
        "Services for software agents at one cent a call, paid per request in USDC by x402.",
        "home",
        layout="home.html.j2",
        facts={
            "first": first,
            "question": next(each for each in snippets(first, deployment) if each.label == "Command line"),
            "answer": {part: sample[part] for part in ("providers", "warnings", "data") if part in sample},
            "price": first.price,
            "up": sum(map(deployment.is_up, deployment.services)),
            "guides": guides(deployment),
        },
    )


def _service_page(service: Entry, deployment: Deployment) -> Page:
    return Page(
        f"/services/{service.slug}",
        service.title,
        service.summary,
        "service",
        layout="service.html.j2",
        facts=_service_context(service, deployment),
    )


def _service_context(service: Entry, deployment: Deployment) -> dict[str, Any]:
    siblings = deployment.categories[service.category]
    return {
        "service": service,
        "form": form_of(service, deployment),
        "trouble": deployment.trouble(service),
        "input": table(service.input_schema),
        "output": table(service.output_schema),
        "sample": sample_answer(service, deployment),
        "snippets": snippets(service, deployment),
        "sources": {source.name: source for source in service.sources},
        "failures": list(failures(service)),
        "errors": errors_of_a_call(),
        "cache_note": kept(service),
        "related": [each for each in siblings if each.slug != service.slug],
    }
