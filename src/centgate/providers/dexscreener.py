"""DEX Screener: pairs of decentralised exchanges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from centgate.facts.pairs import Pair, Side, listed_since, product
from centgate.provider import About, Provider, reported
from centgate.readings import amount, at, count, name, pool, price, usd
from centgate.upstream import Rate

NAMES = {
    1: "ethereum",
    8453: "base",
    56: "bsc",
    137: "polygon",
    42161: "arbitrum",
    10: "optimism",
}
"""What it calls the chains."""
_PAGE = re.compile(r"https://dexscreener\.com/[\w/-]{1,200}")


class DexScreener(Provider):
    """Price, liquidity and volume of a token's pairs."""

    about = About(
        "dexscreener",
        "DEX Screener",
        docs_url="https://docs.dexscreener.com/api/reference",
        url="https://api.dexscreener.com",
        terms="Free without a key under fair use: 300 requests a minute for pairs and tokens.",
        rate=Rate(300),
        timeout=6,
    )

    @reported
    async def pairs(self, chain_id: int, token: str) -> list[Pair]:
        """All pairs of a token (lower case) on a chain, in the upstream's order.

        Rows that cannot be read are left out with a warning; NoData when there are none at all.
        """
        chain = NAMES[chain_id]
        reply = await self.upstream.get(self.url(f"/token-pairs/v1/{chain}/{token}"))
        found = [pair for pair in self._read(_rows(reply.json()), chain) if pair.has(token)]
        if not found:
            raise self.nothing(f"no pair of token {token} on {chain}")
        return found

    @reported
    async def pair(self, chain_id: int, address: str) -> Pair:
        """The pair at an address (lower case); NoData when there is none."""
        chain = NAMES[chain_id]
        reply = await self.upstream.get(self.url(f"/latest/dex/pairs/{chain}/{address}"))
        body = reply.json()
        rows = _rows(body) or [row for row in [at(body, "pair")] if row]
        for pair in self._read(rows, chain):
            if pair.address == address:
                return pair
        raise self.nothing(f"no pair at {address} on {chain}")

    def _read(self, rows: Sequence[Any], chain: str) -> list[Pair]:
        """The rows of this chain as pairs; ProviderError when not one row can be read."""
        ours = [row for row in rows if at(row, "chainId") in (chain, None)]
        found = [pair for row in ours if (pair := read_pair(row, chain))]
        if ours and not found:
            raise self.failed("answered with pairs that cannot be read")
        if lost := len(ours) - len(found):
            self.record.warn(
                f"{self.about.label}: {lost} of {len(ours)} pairs could not be read and are left out"
            )
        return found


def _rows(body: Any) -> list[Any]:
    """The pairs in a body: bare, or under `pairs`, where null says that there are none."""
    rows = cast(Any, body["pairs"] if isinstance(body, dict) else body)
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise TypeError("pairs are no list")
    return cast(list[Any], rows)


def read_pair(row: Any, chain: str) -> Pair | None:
    """A row in our words; None when it lacks what every pair has.

    Its price is the base token's, in dollars (`priceUsd`) and in quote tokens (`priceNative`), so the quote
    token's is their quotient.
    """
    pair_address, base, quote = pool(at(row, "pairAddress")), _side(row, "base"), _side(row, "quote")
    if not pair_address or not base.address:
        return None
    price_usd, in_quote = price(at(row, "priceUsd")), amount(at(row, "priceNative"))
    quote_price = price(price_usd / in_quote) if price_usd and in_quote else None
    return Pair(
        address=pair_address,
        dex=name(at(row, "dexId")),
        base=base,
        quote=quote,
        price_usd=price_usd,
        quote_price_usd=quote_price,
        liquidity_usd=usd(at(row, "liquidity", "usd")),
        base_side_usd=usd(product(amount(at(row, "liquidity", "base")), price_usd)),
        quote_side_usd=usd(product(amount(at(row, "liquidity", "quote")), quote_price)),
        volume24h_usd=usd(at(row, "volume", "h24")),
        fdv_usd=price(at(row, "fdv")),
        created_at=listed_since((amount(at(row, "pairCreatedAt")) or 0) / 1000),
        buys24h=count(at(row, "txns", "h24", "buys")),
        sells24h=count(at(row, "txns", "h24", "sells")),
        url=_page(at(row, "url"), chain, pair_address),
        source="dexscreener",
    )


def _side(row: Any, which: str) -> Side:
    token = at(row, f"{which}Token")
    return Side(pool(at(token, "address")), name(at(token, "symbol")))


def _page(url: Any, chain: str, pair_address: str) -> str:
    """The page that the upstream names, if it is one of its own."""
    if isinstance(url, str) and _PAGE.fullmatch(url):
        return url
    return f"https://dexscreener.com/{chain}/{pair_address}"
