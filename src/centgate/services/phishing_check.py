"""phishing-check: look up a web address in a phishing list, and detect lookalikes of known names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field

from centgate.errors import Issue
from centgate.phishing.url import InvalidAddress, parse_address
from centgate.provider import Primary
from centgate.providers.phishinglist import PhishingList
from centgate.schema import Data, Request
from centgate.service import service


class PhishingCheckRequest(Request):
    """The address to check."""

    url: str = Field(
        min_length=3,
        max_length=2000,
        description="A URL or a bare domain, read as a browser reads its address bar.",
        json_schema_extra={"format": "web-address"},
    )

    @classmethod
    def check_cross_field_rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """Require an address that a browser could open."""
        url = body.get("url")
        if isinstance(url, str) and 3 <= len(url) <= 2000:
            try:
                parse_address(url)
            except InvalidAddress as error:
                yield Issue("url", str(error))


class PhishingCheck(Data):
    """Result of the lookup of an address in the list."""

    domain: str = Field(description="The host that a browser would open, in ASCII and lower case.")
    status: Literal["allowed", "blocked", "lookalike", "unknown"] = Field(
        description="`allowed`: known good; `blocked`: known phishing; `lookalike`: spelled almost like a "
        "protected name; `unknown`: on no list, which does not mean safe."
    )
    matched_list: Literal["allowlist", "blocklist", "fuzzylist"] | None = Field(
        description="The list that decided; null when no list has the address."
    )
    match: str | None = Field(
        description="The entry that decided: the listed host with its path, or the imitated name."
    )


@service(
    order=50,
    title="Phishing check",
    category="crypto-context",
    tags=("phishing", "security", "url", "domain", "wallet-safety"),
    guardrails=(
        "Deterministic: the same list gives the same verdict; no network access, the page is never opened.",
        "`unknown` means that no list has the address, not that it is safe.",
        "The answer names the list, its version and date; an old list causes a warning.",
        "Lookalike characters of other scripts cause a warning and do not change the verdict.",
    ),
    input_example=PhishingCheckRequest(url="https://myetherwallet.cx/login"),
    output_example=PhishingCheck(
        domain="myetherwallet.cx", status="lookalike", matched_list="fuzzylist", match="myetherwallet.com"
    ),
)
async def phishing_check(request: PhishingCheckRequest, phishinglist: Primary[PhishingList]) -> PhishingCheck:
    """Check if a URL or domain is known phishing, known good, or imitates a known name.

    Uses a public phishing list mirrored in the server: allowlist, blocklist with subdomains, paths and IPFS
    content identifiers, and near-misses of protected names. No remote lookups.
    """
    verdict = phishinglist.check_address(parse_address(request.url))
    return PhishingCheck(
        domain=verdict.domain,
        status=verdict.status,
        matched_list=verdict.matched_list,
        match=verdict.match,
    )
