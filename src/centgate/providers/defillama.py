"""DefiLlama: directory of DeFi protocols, and prices of tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote

from msgspec import Struct

from centgate.cache.stale_while_revalidate import CacheEntry, StaleWhileRevalidate
from centgate.chains import CHAIN_BY_ID, from_chain_seconds
from centgate.coercion import MAX_USD, as_number, as_price
from centgate.crypto.protocol.directory import DefiProtocol, Incident, ProtocolDirectory
from centgate.crypto.wallet.wallets import Price
from centgate.errors import ProviderTimeout
from centgate.fallback import open_task_group
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.providers.defillama_directory import parse_directory, parse_incidents, parse_protocol
from centgate.rate_limiter import RateLimit
from centgate.sanitize import clean_line
from centgate.timestamps import format_timestamp
from centgate.upstream import Upstream, UpstreamResponse, join_url

if TYPE_CHECKING:
    from centgate.resources import Resources
    from centgate.settings import Settings

API_URL, COINS_URL = "https://api.llama.fi", "https://coins.llama.fi"
"""Hosts of the directory and of the prices. A paid plan has both below one host, with the key in the path:
`https://pro-api.llama.fi/<key>/api` and `…/coins` (https://api-docs.defillama.com).
"""
INCIDENTS_SECONDS = 3.0
"""Time that an answer waits for the list of incidents, which it can do without."""
PRICE_BATCH = 100
"""Tokens in one call: their names are in the URL, which stays under 8 kB."""

_NOT_FOUND_STATUSES = frozenset(range(400, 500)) - {401, 402, 403, 407, 408, 425, 429}
"""Statuses that mean "not found", depending on the release; the others concern access or rate limits."""
_NOT_FOUND_WORDS = (b"not found", b"not in our database", b"no recorded tvl")


class FlowTotals(Struct, frozen=True):
    """US dollars over three periods up to now; None for a period that is not measured.

    `is_current` is False if DefiLlama could not fetch the latest figures of the protocol.
    """

    day_usd: float | None
    week_usd: float | None
    month_usd: float | None
    is_current: bool = True


class DefiLlama(Provider):
    """TVL, fees and links of protocols, and prices of tokens."""

    info = ProviderInfo(
        "defillama",
        "DefiLlama",
        docs_url="https://api-docs.defillama.com",
        url=API_URL,
        part_urls=(("api", API_URL), ("coins", COINS_URL)),
        terms="Free without a key under fair use.",
        rate_limit=RateLimit(300),
        timeout=10,
        max_bytes=32 << 20,
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        api, coins = (settings.provider_settings(f"defillama_{part}").url for part in ("api", "coins"))
        self._coins_url = coins or self.settings.url or COINS_URL
        self.settings = replace(self.settings, url=api or self.settings.url)
        self.directory_cache = StaleWhileRevalidate(self._fetch_directory)
        self.incidents_cache = StaleWhileRevalidate(self._fetch_incidents)

    def upstreams_for(self, chain_id: int | None, options: Mapping[str, Any]) -> Sequence[Upstream]:
        return () if self.directory_cache.is_usable else (self.upstream,)

    @instrumented
    async def directory(self) -> ProtocolDirectory:
        """Return the directory of all protocols, cached; a stale one is used, with a warning, if the refresh
        fails.
        """
        entry = await self.directory_cache.get(self.remaining_seconds / 2)
        self._record_age(entry, "protocols", "figures are those")
        return entry.value

    @instrumented
    async def incidents(self, ids: Iterable[str]) -> list[Incident]:
        """Return the incidents of the protocols with these identifiers, the latest first.

        Their list is cached like the directory. Raises ProviderTimeout if it does not come in time.
        """
        max_wait = min(self.remaining_seconds / 2, INCIDENTS_SECONDS)
        try:
            async with asyncio.timeout(max_wait):
                entry = await self.incidents_cache.get(max_wait / 2)
        except TimeoutError:
            raise ProviderTimeout(
                self.info.name,
                f"{self.info.label} did not send its list of incidents within {max_wait:.3g} s",
            ) from None
        self._record_age(entry, "incidents", "incidents are those")
        found = {incident for each in ids for incident in entry.value.get(each, ())}
        return sorted(found, key=lambda each: each.at.timestamp() if each.at else 0, reverse=True)

    def _record_age(self, entry: CacheEntry[Any], contents: str, figures: str) -> None:
        """Record when a list was fetched; warn if it is old and could not be refreshed."""
        fetched_at = format_timestamp(entry.fetched_at)
        self.record_status("ok", fetchedAt=fetched_at)
        if entry.is_stale:
            self.trace.is_provisional = True
            self.trace.add_warning(
                f"{self.info.label}'s list of {contents} cannot be refreshed now: {figures} of {fetched_at}"
            )

    @instrumented
    async def protocol(self, slug: str) -> DefiProtocol:
        """Fetch a single protocol, for slugs that are missing in the list."""
        url = self.url(f"/protocol/{quote(slug, safe='')}")
        reply = await self.upstream.get(url, accept={*_NOT_FOUND_STATUSES, 502})
        is_gateway_error = reply.status >= 500 and not _says_not_found(reply)
        if reply.status != 200 and (_is_html(reply) or is_gateway_error):
            raise self.upstream.error_for_status(reply)
        protocol = (
            None
            if reply.status != 200 or _says_not_found(reply)
            else parse_protocol(slug, _require_json(reply))
        )
        if protocol is None:
            raise self.no_data(f"no protocol {clean_line(slug)}")
        return protocol

    @instrumented
    async def fees(self, slug: str) -> FlowTotals:
        """Return the fees that users of a protocol paid."""
        return await self._fetch_totals(slug, "dailyFees", "fees")

    @instrumented
    async def revenue(self, slug: str) -> FlowTotals:
        """Return the part of the fees that a protocol kept."""
        return await self._fetch_totals(slug, "dailyRevenue", "revenue")

    @instrumented
    async def token_prices(self, chain_id: int, tokens: Sequence[str]) -> dict[str, Price]:
        """Return prices by token address in lower case; tokens without a price are missing.

        The zero address stands for the native coin.
        """
        if chain_id not in CHAIN_BY_ID:
            raise self.no_data(f"no prices on chain {chain_id}")
        slug = CHAIN_BY_ID[chain_id].slug
        names = list(dict.fromkeys(f"{slug}:{token.lower()}" for token in tokens))
        async with open_task_group() as group:
            tasks = [
                group.create_task(self._fetch_coins(names[start : start + PRICE_BATCH]))
                for start in range(0, len(names), PRICE_BATCH)
            ]
        coins = {name.lower(): coin for task in tasks for name, coin in task.result().items()}
        prices = {name.partition(":")[2]: _parse_price(coins.get(name)) for name in names}
        return {token: price for token, price in prices.items() if price}

    async def _fetch_directory(self) -> ProtocolDirectory:
        return await parse_directory(_require_json(await self.upstream.get(self.url("/protocols"))))

    async def _fetch_incidents(self) -> Mapping[str, Sequence[Incident]]:
        return await parse_incidents(_require_json(await self.upstream.get(self.url("/hacks"))))

    async def _fetch_totals(
        self, slug: str, kind: Literal["dailyFees", "dailyRevenue"], figure: str
    ) -> FlowTotals:
        params = {
            "dataType": kind,
            "excludeTotalDataChart": "true",
            "excludeTotalDataChartBreakdown": "true",
        }
        url = self.url(f"/summary/fees/{quote(slug, safe='')}")
        reply = await self.upstream.get(url, params=params, accept={*_NOT_FOUND_STATUSES, 500})
        if reply.status != 200 and (_is_html(reply) or not reply.body):
            raise self.upstream.error_for_status(reply)
        not_measured = self.no_data(
            f"no {figure} of {clean_line(slug)}: "
            f"{'it is' if figure == 'revenue' else 'they are'} not measured"
        )
        if reply.status in _NOT_FOUND_STATUSES or _says_not_found(reply):
            raise not_measured
        if reply.status == 500:
            self.trace.is_provisional = True
            raise self.no_data(
                f"no {figure} of {clean_line(slug)}: the reply is the one for figures that are not measured"
            )
        body = reply.parse_object()
        day, week, month = (_parse_flow(body.get(span)) for span in ("total24h", "total7d", "total30d"))
        if day is None and week is None and month is None:
            raise not_measured
        return FlowTotals(day, week, month, is_current=body.get("latestFetchIsOk") is not False)

    async def _fetch_coins(self, names: Sequence[str]) -> dict[str, Any]:
        path = "/prices/current/" + ",".join(names)
        reply = await self.upstream.get(join_url(self._coins_url, path))
        return dict(cast(Mapping[str, Any], reply.parse_object()["coins"]).items())


def _parse_flow(value: Any) -> float | None:
    """Parse a flow in US dollars, which may be negative."""
    figure = as_number(value)
    return figure if figure is not None and abs(figure) <= MAX_USD else None


def _parse_price(coin: Any) -> Price | None:
    """Parse a price; None if it is missing or invalid."""
    if not isinstance(coin, dict):
        return None
    entry = cast(dict[str, Any], coin)
    usd = as_price(entry.get("price"))
    if usd is None:
        return None
    symbol, quoted_at = entry.get("symbol"), entry.get("timestamp")
    decimals, confidence = as_number(entry.get("decimals")), as_number(entry.get("confidence"))
    return Price(
        usd=usd,
        confidence=confidence if confidence is not None and 0 <= confidence <= 1 else None,
        symbol=clean_line(symbol) if isinstance(symbol, str) else None,
        decimals=int(decimals) if decimals is not None and 0 <= decimals < 256 else None,
        at=from_chain_seconds(quoted_at, None),
    )


def _says_not_found(reply: UpstreamResponse) -> bool:
    """True if a short reply says "not found" in words, which happens with various statuses."""
    text = reply.body[:400].lower()
    return (
        len(reply.body) < 400 and not _is_html(reply) and any(phrase in text for phrase in _NOT_FOUND_WORDS)
    )


def _is_html(reply: UpstreamResponse) -> bool:
    return reply.body[:100].lstrip()[:1] == b"<"


def _require_json(reply: UpstreamResponse) -> bytes:
    """Return the body; ProviderError if it does not start like a list or an object."""
    if reply.body[:100].lstrip()[:1] not in (b"[", b"{"):
        reply.parse_json()
    return reply.body
