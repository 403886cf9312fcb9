"""Where machines read on: the discovery files as a table, as a linkset and as a `Link` header."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from centgate.faces.site.deployment import Deployment

API_CATALOG = "/.well-known/api-catalog"
LINKSET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
SECURITY_TXT = "/.well-known/security.txt"
GOOD_FOR = timedelta(days=180)
"""How long the contact is to be believed; RFC 9116 wants less than a year."""
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Linked:
    """An address that others find us by."""

    href: str
    rel: str
    """Its relation to the API (RFC 8288); empty where it has none that is registered."""
    media_type: str
    what: str


def discovery(deployment: Deployment) -> tuple[Linked, ...]:
    """Every file that machines look for, the website's first."""
    site, api = deployment.site, deployment.api
    return (
        Linked(f"{site}/llms.txt", "describedby", "text/plain", "Every service and page in one short list."),
        Linked(f"{site}/llms-full.txt", "", "text/plain", "Every page in one file."),
        Linked(f"{site}{API_CATALOG}", "api-catalog", "application/linkset+json", "This list as RFC 9727."),
        Linked(f"{site}/.well-known/agent-skills/index.json", "", _JSON, "A skill that says how to buy."),
        Linked(f"{site}/reference.md", "service-doc", "text/markdown", "The API reference."),
        Linked(f"{api}/openapi.json", "service-desc", _JSON, "OpenAPI 3.1: every operation, with prices."),
        Linked(
            f"{api}/services", "service-meta", _JSON, "The catalogue; `/services/{slug}` has the schemas."
        ),
        Linked(f"{api}/.well-known/x402", "service-meta", _JSON, "The terms of every route."),
        Linked(f"{api}/.well-known/ai-catalog.json", "", _JSON, "Where the MCP server is."),
        Linked(f"{api}/health", "status", _JSON, "Whether the API works."),
    )


def api_catalog(deployment: Deployment) -> dict[str, Any]:
    """The linkset of RFC 9727: the catalogue has one item, the API, and what is said of it elsewhere."""
    said: dict[str, Any] = {"anchor": deployment.api}
    for each in discovery(deployment):
        if each.rel and each.rel != "api-catalog":
            said.setdefault(each.rel, []).append({"href": each.href, "type": each.media_type})
    catalogue = {"anchor": deployment.site + API_CATALOG, "item": [{"href": deployment.api}]}
    return {"linkset": [catalogue, said]}


def link_header(deployment: Deployment) -> str:
    """`Link` of every page (RFC 8288)."""
    return ", ".join(
        f'<{each.href}>; rel="{each.rel}"; type="{each.media_type}"'
        for each in discovery(deployment)
        if each.rel and each.rel != "service-meta"
    )


def reportable(deployment: Deployment) -> bool:
    """Whether the operator gave a contact that security.txt may name: by mail, or a page by https."""
    return (deployment.contact or "").startswith(("mailto:", "https://"))


def security_txt(deployment: Deployment) -> str:
    """Whom to report weaknesses to (RFC 9116)."""
    expires = (deployment.read_at + GOOD_FOR).strftime("%Y-%m-%dT00:00:00Z")
    return (
        f"Contact: {deployment.contact}\n"
        f"Expires: {expires}\n"
        "Preferred-Languages: en\n"
        f"Canonical: {deployment.site}{SECURITY_TXT}\n"
        f"Policy: {deployment.site}/trust#security\n"
    )
