"""Discovery files for machines, as a table, as a linkset and as a `Link` header."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from centgate.faces.site.deployment import Deployment

API_CATALOG = "/.well-known/api-catalog"
LINKSET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
SECURITY_TXT = "/.well-known/security.txt"
GOOD_FOR = timedelta(days=180)
"""Validity of the contact in security.txt; RFC 9116 recommends less than a year."""
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Linked:
    """One discovery file: its address and description."""

    href: str
    rel: str
    """Its registered link relation to the API (RFC 8288), or ""."""
    media_type: str
    what: str


def discovery(deployment: Deployment) -> tuple[Linked, ...]:
    """Return all discovery files, the website's first."""
    site, api = deployment.site, deployment.api
    return (
        Linked(f"{site}/llms.txt", "describedby", "text/plain", "Short list of all services and pages."),
        Linked(f"{site}/llms-full.txt", "", "text/plain", "All pages in one file."),
        Linked(
            f"{site}{API_CATALOG}",
            "api-catalog",
            "application/linkset+json",
            "This list as an RFC 9727 API catalog.",
        ),
        Linked(
            f"{site}/.well-known/agent-skills/index.json",
            "",
            _JSON,
            "An agent skill that explains how to buy.",
        ),
        Linked(f"{site}/reference.md", "service-doc", "text/markdown", "The API reference."),
        Linked(f"{api}/openapi.json", "service-desc", _JSON, "OpenAPI 3.1: all operations, with prices."),
        Linked(
            f"{api}/services", "service-meta", _JSON, "The catalogue; `/services/{slug}` has the schemas."
        ),
        Linked(f"{api}/.well-known/x402", "service-meta", _JSON, "The payment terms of every route."),
        Linked(f"{api}/.well-known/ai-catalog.json", "", _JSON, "The address of the MCP server."),
        Linked(f"{api}/health", "status", _JSON, "The health of the API."),
    )


def api_catalog(deployment: Deployment) -> dict[str, Any]:
    """Return the linkset of RFC 9727: a catalogue with one item, the API, and the links that describe it."""
    links: dict[str, Any] = {"anchor": deployment.api}
    for each in discovery(deployment):
        if each.rel and each.rel != "api-catalog":
            links.setdefault(each.rel, []).append({"href": each.href, "type": each.media_type})
    catalogue = {"anchor": deployment.site + API_CATALOG, "item": [{"href": deployment.api}]}
    return {"linkset": [catalogue, links]}


def link_header(deployment: Deployment) -> str:
    """Return the `Link` header of every page (RFC 8288)."""
    return ", ".join(
        f'<{each.href}>; rel="{each.rel}"; type="{each.media_type}"'
        for each in discovery(deployment)
        if each.rel and each.rel != "service-meta"
    )


def reportable(deployment: Deployment) -> bool:
    """Return True if the operator's contact is allowed in security.txt: a mailto or https URL."""
    return (deployment.contact or "").startswith(("mailto:", "https://"))


def security_txt(deployment: Deployment) -> str:
    """Return security.txt, the contact for vulnerability reports (RFC 9116)."""
    expires = (deployment.read_at + GOOD_FOR).strftime("%Y-%m-%dT00:00:00Z")
    return (
        f"Contact: {deployment.contact}\n"
        f"Expires: {expires}\n"
        "Preferred-Languages: en\n"
        f"Canonical: {deployment.site}{SECURITY_TXT}\n"
        f"Policy: {deployment.site}/trust#security\n"
    )
