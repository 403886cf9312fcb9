"""phishing-check: look up a web address in a phishing list, and detect lookalikes of known names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from centgate.errors import Issue
from centgate.phishing.collection import ListVerdict, PhishingRisk
from centgate.phishing.detector import MatchedList, PhishingStatus
from centgate.phishing.published import ListName
from centgate.phishing.url import InvalidAddress, parse_address
from centgate.provider import Primary
from centgate.providers.phishinglist import PhishingList
from centgate.schema import Data, Request, hide_rule
from centgate.service import service

_LETTERS = (
    "A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u038e-\u03a1\u03a3-\u03ce\u0400-\u0481\u048a-\u04ff"
    + ("\u0905-\u0939\u0e01-\u0e30\u0e40-\u0e46\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3")
)
"""Letters that are valid anywhere in a host: Latin, Greek, Cyrillic, Devanagari, Thai, kana, Han and Hangul
(UTS 46).
"""
_MARKS = "\u093e-\u094d\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
"""Vowel signs and tones, which begin no label."""
_RIGHT_TO_LEFT = "\u05d0-\u05ea\u0621-\u063a\u0641-\u064a"
"""Hebrew and Arabic letters; a label of these alone is valid beside Latin letters (RFC 5893)."""
_NAME = rf"([0-9{_LETTERS}-][0-9{_LETTERS}{_MARKS}-]*\.)*[{_LETTERS}][0-9{_LETTERS}{_MARKS}-]*\.?"
_RIGHT_TO_LEFT_NAME = rf"([{_RIGHT_TO_LEFT}]+\.)+([{_RIGHT_TO_LEFT}]+|[A-Za-z]+)"
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"({_BYTE}\.){{3}}{_BYTE}"
_GROUP = "[0-9A-Fa-f]{1,4}"
_IPV6 = (
    rf"\[(({_GROUP}:){{7}}{_GROUP}|::({_GROUP}(:{_GROUP}){{0,5}})?|({_GROUP}:){{1,3}}(:{_GROUP}){{1,4}})\]"
)
_PORT = "[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
READABLE_ADDRESS_RULE = hide_rule(
    {
        "pattern": rf"^(([hH][tT][tT][pP]|[wW][sS])[sS]?://([A-Za-z0-9._~-]+(:[A-Za-z0-9._~-]*)?@)?)?"
        rf"({_NAME}|{_RIGHT_TO_LEFT_NAME}|{_IPV4}|{_IPV6})(:({_PORT}))?([/?#]|$)"
    },
    value_type="string",
)
"""JSON Schema of addresses that are valid for certain: narrower than the validation, which maps all scripts
to ASCII as browsers do. Not known to it: invalid punycode after `xn--`.
"""


class PhishingCheckRequest(Request):
    """The address to check."""

    url: str = Field(
        min_length=3,
        max_length=2000,
        description="A URL or a bare domain, read as a browser reads its address bar.",
        json_schema_extra=READABLE_ADDRESS_RULE,
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


class PhishingListHit(Data):
    """Verdict of one list on the address."""

    name: ListName = Field(
        description="The list. `metamask` is the one that leads, which the operator may replace."
    )
    source: str = Field(description="The list as its source names it.")
    status: PhishingStatus = Field(description="The verdict of this list alone.")
    match: str | None = Field(description="The entry of this list that matches; null without one.")
    date: str | None = Field(
        description="Date of the list (YYYY-MM-DD): its own, or the day on which its content last changed "
        "here; null if unknown."
    )
    age_days: int | None = Field(
        description="Age of the list in days at the time of the answer; null if unknown."
    )
    fetched_at: str | None = Field(
        description="Time in UTC of the last successful fetch; null for a list from a file or the package."
    )
    entries: int = Field(description="Number of blocked names and paths in the list.")
    sha256: str = Field(description="SHA-256 of the list's content, in hexadecimal.")
    licence: str | None = Field(description="Licence of the list; null if unknown.")


class PhishingCheck(Data):
    """Result of the lookup of an address in the lists."""

    domain: str = Field(description="The host that a browser would open, in ASCII and lower case.")
    status: PhishingStatus = Field(
        description="`allowed`: known good; `blocked`: known phishing; `lookalike`: spelled almost like a "
        "protected name; `unknown`: on no list, which does not mean safe."
    )
    matched_list: MatchedList | None = Field(
        description="The list that decided; null when no list has the address."
    )
    match: str | None = Field(
        description="The entry that decided: the listed host with its path, or the imitated name."
    )
    homograph_of: str | None = Field(
        description="The protected name that the address imitates with lookalike characters of other "
        "scripts, such as a Cyrillic `a`; null without one. It does not change `status`.",
    )
    risk: PhishingRisk | None = Field(
        description="`high`: blocked, or lookalike characters; `medium`: spelled almost like a protected "
        "name; `low`: known good; `unknown`: no list has it, which does not mean safe.",
    )
    lists: list[PhishingListHit] = Field(
        description="Every list that was consulted, in their order, with its own verdict. The allowlist of "
        "the first decides first, then a block by any list, then a lookalike, then other allowlists.",
    )


@service(
    order=50,
    title="Phishing check",
    category="crypto-context",
    tags=("phishing", "security", "url", "domain", "wallet-safety"),
    guardrails=(
        "Deterministic: the same lists give the same verdict; no network access, the page is never opened.",
        "`unknown` means that no list has the address, not that it is safe.",
        "The answer names each list, its date, hash and licence; an old list causes a warning.",
        "Lookalike characters of other scripts do not change `status`: `homographOf` and `risk` tell them.",
    ),
    input_example=PhishingCheckRequest(url="https://myetherwallet.cx/login"),
    output_example=PhishingCheck(
        domain="myetherwallet.cx",
        status="lookalike",
        matched_list="fuzzylist",
        match="myetherwallet.com",
        homograph_of=None,
        risk="medium",
        lists=[
            PhishingListHit(
                name="metamask",
                source="npm eth-phishing-detect@1.2.0",
                status="lookalike",
                match="myetherwallet.com",
                date="2022-04-19",
                age_days=1679,
                fetched_at=None,
                entries=13752,
                sha256="052ba48105ce331f259df8706bc142f4354143f8c74eec920e529faaa9dc4232",
                licence="DBAD",
            )
        ],
    ),
)
async def phishing_check(request: PhishingCheckRequest, phishinglist: Primary[PhishingList]) -> PhishingCheck:
    """Check if a URL or domain is known phishing, known good, or imitates a known name.

    Uses public phishing lists mirrored in the server: allowlist, blocklist with subdomains, paths and IPFS
    content identifiers, and near-misses of protected names. No remote lookups.
    """
    verdict = phishinglist.check_address(parse_address(request.url))
    return PhishingCheck(
        domain=verdict.domain,
        status=verdict.status,
        matched_list=verdict.matched_list,
        match=verdict.match,
        homograph_of=verdict.homograph_of,
        risk=verdict.risk,
        lists=[describe_hit(each) for each in verdict.by_list],
    )


def describe_hit(hit: ListVerdict) -> PhishingListHit:
    """Return what one list says, with the list's provenance."""
    loaded, header = hit.loaded, hit.loaded.header
    return PhishingListHit(
        name=loaded.name,
        source=header.source,
        status=hit.verdict.status,
        match=hit.verdict.match,
        date=header.date,
        age_days=loaded.age_days(),
        fetched_at=header.fetched_at,
        entries=header.blocklist + header.paths,
        sha256=header.sha256,
        licence=loaded.licence,
    )
