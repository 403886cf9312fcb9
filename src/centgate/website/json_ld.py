"""Structured data for search engines: JSON-LD with schema.org's vocabulary."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup

from centgate.api.index_page import PRODUCT_NAME, build_tagline
from centgate.client.catalog import ServiceDetail
from centgate.website.api_snapshot import ApiSnapshot
from centgate.website.page import SitePage


def build_json_ld(page: SitePage, deployment: ApiSnapshot) -> Markup:
    """Return the page's JSON-LD, escaped so that it cannot end the `<script>` element around it."""
    graph = [_website_entry(deployment) if page.path == "/" else _breadcrumbs(page, deployment)]
    service = page.context.get("service") if page.path.startswith("/services/") else None
    if isinstance(service, ServiceDetail):
        graph.append(_service_offer(service, page, deployment))
    content = json.dumps({"@context": "https://schema.org", "@graph": graph}, ensure_ascii=False)
    return Markup(content.replace("<", "\\u003c"))


def _website_entry(deployment: ApiSnapshot) -> dict[str, Any]:
    return {
        "@type": "WebSite",
        "name": PRODUCT_NAME,
        "url": f"{deployment.site}/",
        "description": build_tagline(deployment.prices),
    }


def _breadcrumbs(page: SitePage, deployment: ApiSnapshot) -> dict[str, Any]:
    """Return the breadcrumb list from the home page to this page."""
    steps = ((PRODUCT_NAME, f"{deployment.site}/"), (page.title, deployment.site + page.path))
    return {
        "@type": "BreadcrumbList",
        "itemListElement": [
            {"@type": "ListItem", "position": at, "name": name, "item": item}
            for at, (name, item) in enumerate(steps, 1)
        ],
    }


def _service_offer(service: ServiceDetail, page: SitePage, deployment: ApiSnapshot) -> dict[str, Any]:
    """Return the service and its price per call."""
    return {
        "@type": "WebAPI",
        "name": service.title,
        "description": service.summary,
        "url": deployment.api + service.path,
        "documentation": deployment.site + page.path,
        "termsOfService": f"{deployment.site}/trust",
        "category": deployment.category_title(service.category),
        "keywords": list(service.tags),
        "offers": {
            "@type": "Offer",
            "price": service.price.removeprefix("$"),
            "priceCurrency": "USD",
            "description": service.pricing_note,
            "url": deployment.site + page.path,
        },
    }
