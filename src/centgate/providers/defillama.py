"""DefiLlama: the directory of DeFi protocols, and prices of tokens."""

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

COINS = "https://coins.llama.fi"
"""Where prices are, unless `CENTGATE_DEFILLAMA_URL` says otherwise for the whole of DefiLlama."""
PRICES_AT_ONCE = 100
"""Tokens in one call: their names are in its address, which stays under 8 kB."""

_ABSENT = frozenset(range(400, 500)) - {401, 402, 403, 407, 408, 425, 429}
"""Statuses that say, by release, that there is no such thing; the others are about who asks, or how often."""
_NOT_FOUND = (b"not found", b"not in our database", b"no recorded tvl")


@dataclass(frozen=True, slots=True)
class Totals:
    """US dollars over three spans up to now; None for a span that is not measured.

    `is_current` is False where DefiLlama could not fetch the latest figures of the protocol.
    """

    day_usd: float | None
    week_usd: float | None
    month_usd: float | None
    is_current: bool = True


class DefiLlama(Provider):
    """A protocol's value locked, fees and links, and what a token costs."""

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
        self.shelf = Shelf(self._list)

    def upstreams_for(self, chain_id: int | None, asked: Mapping[str, Any]) -> Sequence[Upstream]:
        return () if self.shelf.is_usable else (self.upstream,)

    @reported
    async def directory(self) -> Directory:
        """All protocols there are. The list is kept for a while; an old one is used, with a warning, when no
        newer one can be had.
        """
        kept = await self.shelf.get(self.left / 2)
        self.report("ok", fetchedAt=timestamp(kept.at))
        if kept.stale:
            self.record.provisional = True
            self.record.warn(
                f"{self.about.label}'s list of protocols cannot be renewed now: figures are those of "
                f"{timestamp(kept.at)}"
            )
        return kept.thing

    @reported
    async def protocol(self, slug: str) -> Protocol:
        """A protocol by its own page, for what the list does not have."""
        url = self.url(f"/protocol/{quote(slug, safe='')}")
        reply = await self.upstream.get(url, accept={*_ABSENT, 502})
        if reply.status != 200 and _is_page(reply):
            raise self.upstream.failure(reply)
        known = None if reply.status != 200 or _not_found(reply) else parse_protocol(slug, _json(reply))
        if known is None:
            raise self.nothing(f"no protocol {cleaned(slug)}")
        return known

    @reported
    async def fees(self, slug: str) -> Totals:
        """What users of a protocol paid."""
        return await self._totals(slug, "dailyFees", "fees")

    @reported
    async def revenue(self, slug: str) -> Totals:
        """What a protocol kept of the fees."""
        return await self._totals(slug, "dailyRevenue", "revenue")

    @reported
    async def prices(self, chain_id: int, tokens: Sequence[str]) -> dict[str, Price]:
        """Prices by token address in lower case; tokens without one are absent.

        The chain's own coin is the zero address.
        """
        if chain_id not in CHAIN_BY_ID:
            raise self.nothing(f"no prices on chain {chain_id}")
        slug = CHAIN_BY_ID[chain_id].slug
        names = list(dict.fromkeys(f"{slug}:{token.lower()}" for token in tokens))
        async with together() as group:
            asked = [
                group.create_task(self._coins(names[start : start + PRICES_AT_ONCE]))
                for start in range(0, len(names), PRICES_AT_ONCE)
            ]
        coins = {name.lower(): coin for task in asked for name, coin in task.result().items()}
        priced = {name.partition(":")[2]: _price(coins.get(name)) for name in names}
        return {token: price for token, price in priced.items() if price}

    async def _list(self) -> Directory:
        return await parse_directory(_json(await self.upstream.get(self.url("/protocols"))))

    async def _totals(self, slug: str, kind: Literal["dailyFees", "dailyRevenue"], what: str) -> Totals:
        params = {
            "dataType": kind,
            "excludeTotalDataChart": "true",
            "excludeTotalDataChartBreakdown": "true",
        }
        url = self.url(f"/summary/fees/{quote(slug, safe='')}")
        reply = await self.upstream.get(url, params=params, accept={*_ABSENT, 500})
        if reply.status != 200 and (_is_page(reply) or not reply.body):
            raise self.upstream.failure(reply)
        unmeasured = self.nothing(
            f"no {what} of {cleaned(slug)}: {'it is' if what == 'revenue' else 'they are'} not measured"
        )
        if reply.status in _ABSENT or _not_found(reply):
            raise unmeasured
        if reply.status == 500:
            self.record.provisional = True
            raise self.nothing(f"no {what} of {cleaned(slug)}: it answers as for what it does not measure")
        body = cast(dict[str, Any], reply.json())
        day, week, month = (_flow(body.get(span)) for span in ("total24h", "total7d", "total30d"))
        if day is None and week is None and month is None:
            raise unmeasured
        return Totals(day, week, month, is_current=body.get("latestFetchIsOk") is not False)

    async def _coins(self, names: Sequence[str]) -> dict[str, Any]:
        base = self.settings.url or COINS
        reply = await self.upstream.get(joined(base, "/prices/current/" + ",".join(names)))
        return dict(cast(Mapping[str, Any], reply.json()["coins"]).items())


def _flow(value: Any) -> float | None:
    """US dollars that came in, or, on a bad day, went out."""
    figure = number(value)
    return figure if figure is not None and abs(figure) <= MOST_USD else None


def _price(coin: Any) -> Price | None:
    """The price in an entry; None where there is none that makes sense."""
    if not isinstance(coin, dict):
        return None
    entry = cast(dict[str, Any], coin)
    usd = price(entry.get("price"))
    if usd is None:
        return None
    symbol, decimals, seen = (
        entry.get("symbol"),
        number(entry.get("decimals")),
        entry.get("timestamp"),
    )
    return Price(
        usd=usd,
        confidence=number(entry.get("confidence")),
        symbol=cleaned(symbol) if isinstance(symbol, str) else None,
        decimals=int(decimals) if decimals is not None and 0 <= decimals < 256 else None,
        at=since_1970(seen),
    )


def _not_found(reply: Reply) -> bool:
    """Whether a short answer says so in words, which it does under many a status."""
    words = reply.body[:400].lower()
    return len(reply.body) < 400 and not _is_page(reply) and any(each in words for each in _NOT_FOUND)


def _is_page(reply: Reply) -> bool:
    return reply.body[:100].lstrip()[:1] == b"<"


def _json(reply: Reply) -> bytes:
    """The body; ProviderError where it does not even begin like a list or an object."""
    if reply.body[:100].lstrip()[:1] not in (b"[", b"{"):
        reply.json()
    return reply.body
