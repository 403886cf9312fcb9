"""Find a DeFi protocol in the directory, its figures, or else pages about it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from centgate.crypto.protocol.directory import DefiProtocol, Incident, ProtocolDirectory
from centgate.crypto.protocol.name_match import (
    ProtocolMatch,
    match_exact,
    match_similar,
    match_without_ending,
    parse_slug,
    suggest_slugs,
)
from centgate.errors import NoData, ProviderFailure, ProviderUnconfigured
from centgate.fallback import attempt, open_task_group
from centgate.providers.defillama import DefiLlama, FlowTotals
from centgate.providers.exa import Exa
from centgate.sanitize import quote_line

MAX_RESULTS = 5
"""Results requested from the fallback web search."""


class ProtocolFigures(Struct, frozen=True):
    """What the directory has on pages of their own about a protocol: figures, or why there are none."""

    totals: Mapping[str, FlowTotals | NoData | ProviderFailure]
    """`fees` and `revenue`."""
    incidents: list[Incident] | NoData | ProviderFailure | None
    """The latest first; None for a protocol without the identifier by which they are listed."""


async def find_protocol(query: str, defillama: DefiLlama) -> DefiProtocol:
    """Find the requested protocol in the directory's list, else on its own page.

    Without the list only a slug can be looked up: for any other name the failure of the list is raised.
    """
    directory = await attempt(defillama.directory)
    if isinstance(directory, ProtocolDirectory) and (match := match_exact(directory, query)):
        return _accept_match(match, defillama)
    slug = parse_slug(query)
    page = await attempt(defillama.protocol, slug) if slug else None
    if isinstance(page, DefiProtocol):
        return page
    if not isinstance(directory, ProtocolDirectory):
        raise directory
    if match := match_without_ending(directory, query) or match_similar(directory, query):
        return _accept_match(match, defillama)
    if isinstance(page, ProviderFailure):
        raise page
    suggestions = suggest_slugs(directory, query)
    hint = f"; did you mean {', '.join(suggestions)}?" if suggestions else ""
    defillama.trace.mark_no_data(defillama.info.name)
    raise defillama.no_data(f"no protocol named {quote_line(query) or 'like this'}{hint}")


async def read_figures(protocol: DefiProtocol, defillama: DefiLlama) -> ProtocolFigures:
    """Read fees, revenue and incidents of a protocol, at once."""
    async with open_task_group() as group:
        fees = group.create_task(attempt(defillama.fees, protocol.slug))
        revenue = group.create_task(attempt(defillama.revenue, protocol.slug))
        incidents = (
            group.create_task(attempt(defillama.incidents, protocol.details.ids))
            if protocol.details.ids
            else None
        )
    return ProtocolFigures(
        {"fees": fees.result(), "revenue": revenue.result()}, incidents and incidents.result()
    )


async def find_pages(name: str, missing: NoData | ProviderUnconfigured, exa: Exa) -> list[str]:
    """Return links of one web search, for an unknown protocol or without a directory.

    Raises `missing`, or NoData, if the search finds nothing either.
    """
    if not exa.is_configured:
        raise missing
    found = await exa.search(f"{name} DeFi protocol official site", MAX_RESULTS)
    links = [hit.url for hit in found.hits if hit.url.lower().startswith("https://")]
    if not links:
        raise missing if isinstance(missing, NoData) else exa.no_data(f"no page about {quote_line(name)}")
    exa.trace.add_warning(missing.message)
    exa.trace.add_warning(
        f"a fallback source was used: the links are from {exa.info.label}'s web search, and no source "
        "confirms that they are the protocol's; nothing else about it is known"
    )
    return links


def _accept_match(match: ProtocolMatch, defillama: DefiLlama) -> DefiProtocol:
    """Return the protocol of a match; warn if another one may have been meant."""
    if match.warning:
        defillama.trace.add_warning(match.warning)
    return match.protocol
