"""Every page of the website. A page is Markdown, which agents read; HTML is how people see it."""

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
    """The pages in the order of the site's map."""
    return (
        _home(deployment),
        *(_service(each, deployment) for each in deployment.services),
        *guides(deployment),
    )


def apologies() -> tuple[Page, Page]:
    """What is shown where there is no page, and where the site fails; on no map."""
    return (
        Page(
            "/404", "There is no such page", "Nothing is at this address.", "not_found", "not_found.html.j2"
        ),
        Page("/500", "The website failed", "Something failed here.", "failed", "not_found.html.j2"),
    )


def _home(deployment: Deployment) -> Page:
    first = first_service(deployment)
    sample = sample_answer(first, deployment)
    return Page(
        "/",
        "Facts for software agents at one cent a call",
        "Services that answer software agents for one cent a call, paid per request in USDC by x402.",
        "home",
        layout="home.html.j2",
        facts={
            "first": first,
            "question": next(each for each in snippets(first, deployment) if each.label == "Command line"),
            "answer": {part: sample[part] for part in ("providers", "warnings", "data") if part in sample},
            "price": first.price,
            "up": sum(map(deployment.up, deployment.services)),
            "guides": guides(deployment),
        },
    )


def _service(service: Entry, deployment: Deployment) -> Page:
    return Page(
        f"/services/{service.slug}",
        service.title,
        service.summary,
        "service",
        layout="service.html.j2",
        facts=_of_service(service, deployment),
    )


def _of_service(service: Entry, deployment: Deployment) -> dict[str, Any]:
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
        "kept": kept(service),
        "related": [each for each in siblings if each.slug != service.slug],
    }
