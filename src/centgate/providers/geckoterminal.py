"""GeckoTerminal: pools of decentralised exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from centgate.facts.pairs import Pair, Side, listed_since
from centgate.provider import About, Provider, reported
from centgate.readings import at, count, name, pool, price, usd
from centgate.upstream import Rate, Reply

NAMES = {
    1: "eth",
    8453: "base",
    56: "bsc",
    137: "polygon_pos",
    42161: "arbitrum",
    10: "optimism",
}
"""What it calls the chains."""
INDEXED = datetime(2022, 2, 1, tzinfo=UTC)
"""A pool's date before this is the day it was indexed, months after it was made."""
_VERSION = {"Accept": "application/json;version=20230302"}
_SYMBOLS = {"include": "base_token,quote_token"}


class GeckoTerminal(Provider):
    """Price, liquidity and volume of a token's pools."""

    about = About(
        "geckoterminal",
        "GeckoTerminal",
        docs_url="https://apiguide.geckoterminal.com",
        url="https://api.geckoterminal.com",
        terms="Free without a key under fair use: 30 requests a minute.",
        rate=Rate(30),
        timeout=6,
    )

    @reported
    async def pairs(self, chain_id: int, token: str) -> list[Pair]:
        """A token's (lower case) best twenty pools on a chain, in the upstream's order.

        Pools of three tokens in which it is neither base nor quote are left out, and so, with a warning, are
        rows that cannot be read; NoData when there are none at all.
        """
        network = NAMES[chain_id]
        body = await self._ask(
            f"/networks/{network}/tokens/{token}/pools", f"no pool of token {token} on {network}"
        )
        rows = body["data"]
        if not isinstance(rows, list):
            raise TypeError("data is no list")
        found = [pair for pair in self._read(cast(list[Any], rows), body, network) if pair.has(token)]
        if not found:
            raise self.nothing(f"no pool of token {token} on {network}")
        # here `fdv_usd` is the asked token's in every row, also where it is the quote (recorded for WETH)
        return [pair if token == pair.base.address else replace(pair, fdv_usd=None) for pair in found]

    @reported
    async def pair(self, chain_id: int, address: str) -> Pair:
        """The pool at an address (lower case); NoData when there is none."""
        network = NAMES[chain_id]
        none = f"no pool at {address} on {network}"
        body = await self._ask(f"/networks/{network}/pools/{address}", none)
        if body["data"] is None:
            raise self.nothing(none)
        (pair,) = self._read([body["data"]], body, network)
        if pair.address != address:
            raise self.nothing(none)
        return pair

    async def _ask(self, path: str, none: str) -> Any:
        reply = await self.upstream.get(
            self.url(f"/api/v2{path}"), params=_SYMBOLS, headers=_VERSION, accept={404}
        )
        if reply.status == 404:
            raise self.nothing(none) if _says_unknown(reply) else self.upstream.failure(reply)
        return reply.json()

    def _read(self, rows: list[Any], body: Any, network: str) -> list[Pair]:
        """The rows as pairs; ProviderError when not one row can be read."""
        symbols = _symbols(body)
        found = [pair for row in rows if (pair := read_pool(row, network, symbols))]
        if rows and not found:
            raise self.failed("answered with pools that cannot be read")
        if lost := len(rows) - len(found):
            self.record.warn(
                f"{self.about.label}: {lost} of {len(rows)} pools could not be read and are left out"
            )
        return found


def _says_unknown(reply: Reply) -> bool:
    """Whether a 404 is the API's own word, which is an object, not a missing page."""
    return reply.body.lstrip().startswith(b"{") and isinstance(reply.json(), dict)


def _symbols(body: Any) -> Mapping[str, str | None]:
    """Symbols by token id, where the answer includes its tokens."""
    included = at(body, "included")
    tokens = cast(list[Any], included) if isinstance(included, list) else []
    return {str(at(token, "id")): name(at(token, "attributes", "symbol")) for token in tokens}


def read_pool(row: Any, network: str, symbols: Mapping[str, str | None]) -> Pair | None:
    """A row in our words; None when it lacks what every pool has.

    `fdv_usd` is the base token's where a single pool is told; see `pairs` for the pools of a token.
    """
    told = at(row, "attributes")
    pool_address, base, quote = (
        pool(at(told, "address")),
        _side(row, "base", symbols),
        _side(row, "quote", symbols),
    )
    if not pool_address or not base.address:
        return None
    return Pair(
        address=pool_address,
        dex=name(at(row, "relationships", "dex", "data", "id")),
        base=base,
        quote=quote,
        price_usd=price(at(told, "base_token_price_usd")),
        quote_price_usd=price(at(told, "quote_token_price_usd")),
        liquidity_usd=usd(at(told, "reserve_in_usd")),
        base_side_usd=None,
        quote_side_usd=None,
        volume24h_usd=usd(at(told, "volume_usd", "h24")),
        fdv_usd=price(at(told, "fdv_usd")),
        created_at=_created(at(told, "pool_created_at")),
        buys24h=count(at(told, "transactions", "h24", "buys")),
        sells24h=count(at(told, "transactions", "h24", "sells")),
        url=f"https://www.geckoterminal.com/{network}/pools/{pool_address}",
        source="geckoterminal",
    )


def _side(row: Any, which: str, symbols: Mapping[str, str | None]) -> Side:
    """A token named by an id such as `polygon_pos_0x…`."""
    token = str(at(row, "relationships", f"{which}_token", "data", "id") or "")
    return Side(pool(token.rpartition("_")[2]), symbols.get(token))


def _created(told: Any) -> datetime | None:
    """When a pool was made; None where the date is the one of the index."""
    try:
        date = datetime.fromisoformat(told)
    except (TypeError, ValueError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return listed_since(date.timestamp()) if date >= INDEXED else None
