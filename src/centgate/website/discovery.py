"""Discovery files for machines, as a table, as a linkset and as a `Link` header."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec import Struct

from centgate.website.api_snapshot import ApiSnapshot

API_CATALOG = "/.well-known/api-catalog"
LINKSET_TYPE = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
SECURITY_TXT = "/.well-known/security.txt"
CONTACT_VALIDITY = timedelta(days=180)
"""Validity of the contact in security.txt; RFC 9116 recommends less than a year."""
_JSON = "application/json"


class DiscoveryFile(Struct, frozen=True):
    """One discovery file: its address and description."""

    href: str
    rel: str
    """Its registered link relation to the API (RFC 8288), or ""."""
    media_type: str
    what: str


def list_discovery_files(deployment: ApiSnapshot) -> tuple[DiscoveryFile, ...]:
    """Return all discovery files, the website's first."""
    site, api = deployment.site, deployment.api
    return (
        DiscoveryFile(
            f"{site}/llms.txt", "describedby", "text/plain", "Short list of all services and pages."
        ),
        DiscoveryFile(f"{site}/llms-full.txt", "", "text/plain", "All pages in one file."),
        DiscoveryFile(
            f"{site}{API_CATALOG}",
            "api-catalog",
            "application/linkset+json",
            "This list as an RFC 9727 API catalog.",
        ),
        DiscoveryFile(
            f"{site}/.well-known/agent-skills/index.json",
            "",
            _JSON,
            "An agent skill that explains how to buy.",
        ),
        DiscoveryFile(f"{site}/reference.md", "service-doc", "text/markdown", "The API reference."),
        DiscoveryFile(
            f"{api}/openapi.json", "service-desc", _JSON, "OpenAPI 3.1: all operations, with prices."
        ),
        DiscoveryFile(
            f"{api}/services", "service-meta", _JSON, "The catalogue; `/services/{slug}` has the schemas."
        ),
        DiscoveryFile(f"{api}/.well-known/x402", "service-meta", _JSON, "The payment terms of every route."),
        DiscoveryFile(f"{api}/.well-known/ai-catalog.json", "", _JSON, "The address of the MCP server."),
        DiscoveryFile(f"{api}/health", "status", _JSON, "The health of the API."),
    )


def api_catalog(deployment: ApiSnapshot) -> dict[str, Any]:
    """Return the linkset of RFC 9727: a catalogue with one item, the API, and the links that describe it."""
    links: dict[str, Any] = {"anchor": deployment.api}
    for each in list_discovery_files(deployment):
        if each.rel and each.rel != "api-catalog":
            links.setdefault(each.rel, []).append({"href": each.href, "type": each.media_type})
    catalogue = {"anchor": deployment.site + API_CATALOG, "item": [{"href": deployment.api}]}
    return {"linkset": [catalogue, links]}


def site_link_header(deployment: ApiSnapshot) -> str:
    """Return the `Link` header of every page (RFC 8288)."""
    return ", ".join(
        f'<{each.href}>; rel="{each.rel}"; type="{each.media_type}"'
        for each in list_discovery_files(deployment)
        if each.rel and each.rel != "service-meta"
    )


def has_security_contact(deployment: ApiSnapshot) -> bool:
    """Return True if the operator's contact is allowed in security.txt: a mailto or https URL."""
    return (deployment.contact or "").startswith(("mailto:", "https://"))


def security_txt(deployment: ApiSnapshot) -> str:
    """Return security.txt, the contact for vulnerability reports (RFC 9116)."""
    expires = (deployment.read_at + CONTACT_VALIDITY).strftime("%Y-%m-%dT00:00:00Z")
    return (
        f"Contact: {deployment.contact}\n"
        f"Expires: {expires}\n"
        "Preferred-Languages: en\n"
        f"Canonical: {deployment.site}{SECURITY_TXT}\n"
        f"Policy: {deployment.site}/trust#security\n"
    )
