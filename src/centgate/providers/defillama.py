"""DefiLlama: directory of DeFi protocols, and prices of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote

from centgate.chains import CHAIN_BY_ID
from centgate.facts.directory import Directory, Protocol
from centgate.facts.wallets import Price
from centgate.provider import About, Provider, reported
from centgate.providers.defillama_directory import parse_directory, parse_protocol
from centgate.readings import MOST_USD, number, price, since_1970
from centgate.shelf import Shelf
from centgate.sources import together
from centgate.text import cleaned, timestamp
from centgate.upstream import Rate, Reply, Upstream, joined

if TYPE_CHECKING:
    from centgate.resources import Resources
    from centgate.settings import Settings

COINS_URL = "https://coins.llama.fi"
"""Host of the price API; `CENTGATE_DEFILLAMA_URL` replaces both hosts."""
PRICE_BATCH = 100
"""Tokens in one call: their names are in the URL, which stays under 8 kB."""

_NOT_FOUND_STATUSES = frozenset(range(400, 500)) - {401, 402, 403, 407, 408, 425, 429}
"""Statuses that mean "not found", depending on the release; the others concern access or rate limits."""
_NOT_FOUND_WORDS = (b"not found", b"not in our database", b"no recorded tvl")


@dataclass(frozen=True, slots=True)
class Totals:
    """US dollars over three periods up to now; None for a period that is not measured.

    `is_current` is False if DefiLlama could not fetch the latest figures of the protocol.
    """

    day_usd: float | None
    week_usd: float | None
    month_usd: float | None
    is_current: bool = True


class DefiLlama(Provider):
    """TVL, fees and links of protocols, and prices of tokens."""

    about = About(
        "defillama",
        "DefiLlama",
        docs_url="https://api-docs.defillama.com",
        url="https://api.llama.fi",
        terms="Free without a key under fair use.",
        rate=Rate(300),
        timeout=10,
        max_bytes=32 << 20,
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        self.shelf = Shelf(self._fetch_directory)

    def upstreams_for(self, chain_id: int | None, asked: Mapping[str, Any]) -> Sequence[Upstream]:
        return () if self.shelf.is_usable else (self.upstream,)

    @reported
    async def directory(self) -> Directory:
        """Return the directory of all protocols, cached; a stale one is used, with a warning, if the refresh
        fails.
        """
        entry = await self.shelf.get(self.left / 2)
        self.report("ok", fetchedAt=timestamp(entry.at))
        if entry.stale:
            self.record.provisional = True
            self.record.warn(
                f"{self.about.label}'s list of protocols cannot be refreshed now: figures are those of "
                f"{timestamp(entry.at)}"
            )
        return entry.thing

    @reported
    async def protocol(self, slug: str) -> Protocol:
        """Fetch a single protocol, for slugs that are missing in the list."""
        url = self.url(f"/protocol/{quote(slug, safe='')}")
        reply = await self.upstream.get(url, accept={*_NOT_FOUND_STATUSES, 502})
        if reply.status != 200 and _is_html(reply):
            raise self.upstream.failure(reply)
        protocol = (
            None
            if reply.status != 200 or _says_not_found(reply)
            else parse_protocol(slug, _require_json(reply))
        )
        if protocol is None:
            raise self.nothing(f"no protocol {cleaned(slug)}")
        return protocol

    @reported
    async def fees(self, slug: str) -> Totals:
        """Return the fees that users of a protocol paid."""
        return await self._fetch_totals(slug, "dailyFees", "fees")

    @reported
    async def revenue(self, slug: str) -> Totals:
        """Return the part of the fees that a protocol kept."""
        return await self._fetch_totals(slug, "dailyRevenue", "revenue")

    @reported
    async def prices(self, chain_id: int, tokens: Sequence[str]) -> dict[str, Price]:
        """Return prices by token address in lower case; tokens without a price are missing.

        The zero address stands for the native coin.
        """
        if chain_id not in CHAIN_BY_ID:
            raise self.nothing(f"no prices on chain {chain_id}")
        slug = CHAIN_BY_ID[chain_id].slug
        names = list(dict.fromkeys(f"{slug}:{token.lower()}" for token in tokens))
        async with together() as group:
            tasks = [
                group.create_task(self._fetch_coins(names[start : start + PRICE_BATCH]))
                for start in range(0, len(names), PRICE_BATCH)
            ]
        coins = {name.lower(): coin for task in tasks for name, coin in task.result().items()}
        prices = {name.partition(":")[2]: _parse_price(coins.get(name)) for name in names}
        return {token: price for token, price in prices.items() if price}

    async def _fetch_directory(self) -> Directory:
        return await parse_directory(_require_json(await self.upstream.get(self.url("/protocols"))))

    async def _fetch_totals(
        self, slug: str, kind: Literal["dailyFees", "dailyRevenue"], figure: str
    ) -> Totals:
        params = {
            "dataType": kind,
            "excludeTotalDataChart": "true",
            "excludeTotalDataChartBreakdown": "true",
        }
        url = self.url(f"/summary/fees/{quote(slug, safe='')}")
        reply = await self.upstream.get(url, params=params, accept={*_NOT_FOUND_STATUSES, 500})
        if reply.status != 200 and (_is_html(reply) or not reply.body):
            raise self.upstream.failure(reply)
        not_measured = self.nothing(
            f"no {figure} of {cleaned(slug)}: {'it is' if figure == 'revenue' else 'they are'} not measured"
        )
        if reply.status in _NOT_FOUND_STATUSES or _says_not_found(reply):
            raise not_measured
        if reply.status == 500:
            self.record.provisional = True
            raise self.nothing(
                f"no {figure} of {cleaned(slug)}: the reply is the one for figures that are not measured"
            )
        body = cast(dict[str, Any], reply.json())
        day, week, month = (_parse_flow(body.get(span)) for span in ("total24h", "total7d", "total30d"))
        if day is None and week is None and month is None:
            raise not_measured
        return Totals(day, week, month, is_current=body.get("latestFetchIsOk") is not False)

    async def _fetch_coins(self, names: Sequence[str]) -> dict[str, Any]:
        base = self.settings.url or COINS_URL
        reply = await self.upstream.get(joined(base, "/prices/current/" + ",".join(names)))
        return dict(cast(Mapping[str, Any], reply.json()["coins"]).items())


def _parse_flow(value: Any) -> float | None:
    """Parse a flow in US dollars, which may be negative."""
    figure = number(value)
    return figure if figure is not None and abs(figure) <= MOST_USD else None


def _parse_price(coin: Any) -> Price | None:
    """Parse a price; None if it is missing or invalid."""
    if not isinstance(coin, dict):
        return None
    entry = cast(dict[str, Any], coin)
    usd = price(entry.get("price"))
    if usd is None:
        return None
    symbol, decimals, quoted_at = (
        entry.get("symbol"),
        number(entry.get("decimals")),
        entry.get("timestamp"),
    )
    return Price(
        usd=usd,
        confidence=number(entry.get("confidence")),
        symbol=cleaned(symbol) if isinstance(symbol, str) else None,
        decimals=int(decimals) if decimals is not None and 0 <= decimals < 256 else None,
        at=since_1970(quoted_at),
    )


def _says_not_found(reply: Reply) -> bool:
    """True if a short reply says "not found" in words, which happens with various statuses."""
    text = reply.body[:400].lower()
    return (
        len(reply.body) < 400 and not _is_html(reply) and any(phrase in text for phrase in _NOT_FOUND_WORDS)
    )


def _is_html(reply: Reply) -> bool:
    return reply.body[:100].lstrip()[:1] == b"<"


def _require_json(reply: Reply) -> bytes:
    """Return the body; ProviderError if it does not start like a list or an object."""
    if reply.body[:100].lstrip()[:1] not in (b"[", b"{"):
        reply.json()
    return reply.body
