"""protocol-context: what a DeFi protocol is, and how much runs through it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Literal
from urllib.parse import quote

from pydantic import Field

from centgate.errors import NoData, ProviderFailure, ProviderUnconfigured
from centgate.facts.directory import Directory, Protocol
from centgate.provider import GapFallback, Primary, Record
from centgate.providers.defillama import DefiLlama, Totals
from centgate.providers.exa import Exa
from centgate.schema import Data, Request, camel
from centgate.service import service
from centgate.sources import attempt, together
from centgate.text import cleaned
from centgate.verdicts.protocol_names import Match, kindred, matched, near, similar, slug_in

MOST_NAME = 100
MOST_RESULTS = 5
"""Results of the web search that stands in."""


class ProtocolContextRequest(Request):
    """A protocol, by slug or name."""

    protocol: str = Field(
        min_length=1,
        max_length=MOST_NAME,
        description="A directory slug (`aave-v3`) or a human name (`Aave V3`).",
    )


class Flow(Data):
    """US dollars over three spans up to now."""

    day_usd: float | None = Field(description="The last 24 hours.")
    week_usd: float | None = Field(description="The last 7 days.")
    month_usd: float | None = Field(description="The last 30 days.")


class ProtocolFees(Data):
    """What users paid, and what the protocol kept of it."""

    fees: Flow | None = Field(description="Paid by users; null where it is not known.")
    revenue: Flow | None = Field(description="Kept by the protocol; null where it is not known.")
    source: Literal["defillama"]


class ProtocolLink(Data):
    """A page about the protocol."""

    kind: Literal["website", "social", "code", "audit", "directory", "web_result"] = Field(
        description="`web_result` is a page that a web search found and nobody vouched for."
    )
    url: str = Field(description="https only.")
    source: Literal["defillama", "exa"]


class ProtocolContext(Data):
    """A protocol's fundamentals."""

    name: str
    slug: str | None = Field(
        description="The directory's slug that matched, of a parent where that is what was asked for; null "
        "when only a web search matched. A match by anything but slug or name is said in the envelope's "
        "`warnings`."
    )
    category: str | None = Field(
        description="In the directory's words, e.g. `Lending`; a parent's is that of its largest child."
    )
    chains: list[str] = Field(
        description="In the directory's words, a parent's are those of its children, at most 200 in all; "
        "empty when unknown."
    )
    tvl_usd: float | None = Field(
        description="US dollars locked on all its chains, borrowed and staked ones aside; a parent's is the "
        "sum of its children's."
    )
    fees: ProtocolFees | None = Field(
        description="Null where neither fees nor revenue are known. The envelope's `warnings` say of each "
        "that is missing whether it is not measured or could not be had."
    )
    urls: list[ProtocolLink]


@service(
    order=40,
    title="Protocol context",
    category="crypto-context",
    tags=("defi", "protocol", "tvl", "fees"),
    guardrails=(
        "One protocol per request.",
        "Fees and revenue only where the directory measures them; null means not measured, never 0.",
        "When the directory has no such protocol a web search stands in; it gives links, no figures.",
        "A protocol that neither knows is answered with no_data.",
    ),
    fresh_for=timedelta(minutes=10),
    example=ProtocolContextRequest(protocol="aave-v3"),
    sample=ProtocolContext(
        name="Aave V3",
        slug="aave-v3",
        category="Lending",
        chains=["Ethereum", "Base", "Arbitrum"],
        tvl_usd=31_400_000_000,
        fees=ProtocolFees(
            fees=Flow(day_usd=2_100_000, week_usd=14_900_000, month_usd=63_000_000),
            revenue=Flow(day_usd=280_000, week_usd=1_950_000, month_usd=8_300_000),
            source="defillama",
        ),
        urls=[
            ProtocolLink(kind="website", url="https://aave.com", source="defillama"),
            ProtocolLink(kind="directory", url="https://defillama.com/protocol/aave-v3", source="defillama"),
        ],
    ),
)
async def protocol_context(
    request: ProtocolContextRequest,
    defillama: Primary[DefiLlama],
    exa: GapFallback[Exa],
) -> ProtocolContext:
    """Category, chains, value locked, fees and links of a DeFi protocol.

    Finds the protocol in a directory by slug or by name and answers with its fundamentals, the value locked
    without double counting. A web search stands in for a protocol that the directory does not know.
    """
    protocol = await attempt(_found, request.protocol, defillama)
    if isinstance(protocol, NoData | ProviderUnconfigured):
        return await _searched(request.protocol, protocol, exa)
    if isinstance(protocol, ProviderFailure):
        raise protocol
    if missing := _missing(protocol):
        defillama.record.warn(f"{defillama.about.label} gives no {', '.join(missing)} for {protocol.slug}")
    async with together() as group:
        fees = group.create_task(attempt(defillama.fees, protocol.slug))
        revenue = group.create_task(attempt(defillama.revenue, protocol.slug))
    return ProtocolContext(
        name=protocol.name,
        slug=protocol.slug,
        category=protocol.category,
        chains=list(protocol.chains),
        tvl_usd=protocol.tvl_usd,
        fees=_fees({"fees": fees.result(), "revenue": revenue.result()}, protocol.slug, defillama.record),
        urls=_urls(protocol),
    )


async def _found(asked: str, defillama: DefiLlama) -> Protocol:
    """The protocol that was asked for, from the list, or, what that does not have, from a page of its own.

    Without the list a name that is no slug cannot be looked up: then nothing is known for certain.
    """
    directory = await attempt(defillama.directory)
    if isinstance(directory, Directory) and (match := matched(directory, asked)):
        return _certain(match, defillama)
    slug = slug_in(asked)
    page = await attempt(defillama.protocol, slug) if slug else None
    if isinstance(page, Protocol):
        return page
    if not isinstance(directory, Directory):
        raise directory
    if match := kindred(directory, asked) or similar(directory, asked):
        return _certain(match, defillama)
    if isinstance(page, ProviderFailure):
        raise page
    meant = near(directory, asked)
    hint = f"; did you mean {', '.join(meant)}?" if meant else ""
    raise defillama.nothing(f"no protocol named {cleaned(asked) or 'so'}{hint}")


async def _searched(asked: str, missing: NoData | ProviderUnconfigured, exa: Exa) -> ProtocolContext:
    """Links of a web search for what the directory does not know, or where there is no directory.

    Costs one search. Where it finds nothing either, nothing is known.
    """
    name = cleaned(asked, MOST_NAME)
    if not exa.configured or name is None:
        raise missing
    found = await exa.search(f"{name} DeFi protocol official site", MOST_RESULTS)
    links = [hit.url for hit in found.hits if hit.url.lower().startswith("https://")]
    if not links:
        raise missing if isinstance(missing, NoData) else exa.nothing(f"no page about {name}")
    exa.record.warn(missing.message)
    exa.record.warn(
        f"a fallback source was used: the links are those of {exa.about.label}'s web search, and nobody "
        "vouched that they are the protocol's"
    )
    return ProtocolContext(
        name=name,
        slug=None,
        category=None,
        chains=[],
        tvl_usd=None,
        fees=None,
        urls=[ProtocolLink(kind="web_result", url=link, source="exa") for link in links],
    )


def _certain(match: Match, defillama: DefiLlama) -> Protocol:
    """The protocol of a match, with a warning where it may be another than was meant."""
    if match.doubt:
        defillama.record.warn(match.doubt)
    return match.protocol


def _missing(protocol: Protocol) -> list[str]:
    """The fields that the directory leaves empty."""
    known = {"category": protocol.category, "chains": protocol.chains or None, "tvlUsd": protocol.tvl_usd}
    return [name for name, value in known.items() if value is None]


def _fees(
    told: Mapping[str, Totals | NoData | ProviderFailure], slug: str, record: Record
) -> ProtocolFees | None:
    """What is known of `fees` and `revenue`; what is not is said."""
    flows = {what: _flow(totals) for what, totals in told.items() if isinstance(totals, Totals)}
    for what, totals in told.items():
        if isinstance(totals, NoData):
            record.warn(totals.message)
        elif isinstance(totals, ProviderFailure):
            record.warn(f"the {what} of {slug} could not be had")
        elif not totals.is_current:
            record.warn(f"{DefiLlama.about.label} could not update the {what} of {slug} lately")
    for what, flow in flows.items():
        spans = [camel(span) for span, figure in flow if figure is None]
        if spans:
            record.warn(f"{DefiLlama.about.label} gives no {', '.join(spans)} for the {what} of {slug}")
    if not flows:
        return None
    return ProtocolFees(fees=flows.get("fees"), revenue=flows.get("revenue"), source="defillama")


def _flow(totals: Totals) -> Flow:
    return Flow(day_usd=totals.day_usd, week_usd=totals.week_usd, month_usd=totals.month_usd)


def _urls(protocol: Protocol) -> list[ProtocolLink]:
    links = [ProtocolLink(kind=link.kind, url=link.url, source="defillama") for link in protocol.links]
    page = f"https://defillama.com/protocol/{quote(protocol.slug, safe='')}"
    return [*links, ProtocolLink(kind="directory", url=page, source="defillama")]
