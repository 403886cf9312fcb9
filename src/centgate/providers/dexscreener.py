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
"""Chain names of the API."""
_PAIR_PAGE = re.compile(r"https://dexscreener\.com/[\w/-]{1,200}")


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
        """Return all pairs of a token (lower case) on a chain, in the upstream's order.

        Rows that cannot be parsed are left out with a warning; NoData if the token has no pair.
        """
        chain = NAMES[chain_id]
        reply = await self.upstream.get(self.url(f"/token-pairs/v1/{chain}/{token}"))
        found = [pair for pair in self._parse_rows(_pair_rows(reply.json()), chain) if pair.has(token)]
        if not found:
            raise self.nothing(f"no pair of token {token} on {chain}")
        return found

    @reported
    async def pair(self, chain_id: int, address: str) -> Pair:
        """Return the pair at an address (lower case); NoData if it does not exist."""
        chain = NAMES[chain_id]
        reply = await self.upstream.get(self.url(f"/latest/dex/pairs/{chain}/{address}"))
        body = reply.json()
        rows = _pair_rows(body) or [row for row in [at(body, "pair")] if row]
        for pair in self._parse_rows(rows, chain):
            if pair.address == address:
                return pair
        raise self.nothing(f"no pair at {address} on {chain}")

    def _parse_rows(self, rows: Sequence[Any], chain: str) -> list[Pair]:
        """Parse the rows of this chain; ProviderError if not one can be parsed."""
        chain_rows = [row for row in rows if at(row, "chainId") in (chain, None)]
        pairs = [pair for row in chain_rows if (pair := read_pair(row, chain))]
        if chain_rows and not pairs:
            raise self.failed("returned pairs that cannot be parsed")
        if unreadable := len(chain_rows) - len(pairs):
            self.record.warn(
                f"{self.about.label}: {unreadable} of {len(chain_rows)} pairs could not be read "
                "and are left out"
            )
        return pairs


def _pair_rows(body: Any) -> list[Any]:
    """Return the pairs of a body: a bare list, or under `pairs`, where null means an empty list."""
    rows = cast(Any, body["pairs"] if isinstance(body, dict) else body)
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise TypeError("pairs are no list")
    return cast(list[Any], rows)


def read_pair(row: Any, chain: str) -> Pair | None:
    """Parse a pair; None without its address or base token.

    Its price is the base token's, in dollars (`priceUsd`) and in quote tokens (`priceNative`), so the quote
    token's is their quotient.
    """
    pair_address, base, quote = (
        pool(at(row, "pairAddress")),
        _parse_side(row, "base"),
        _parse_side(row, "quote"),
    )
    if not pair_address or not base.address:
        return None
    price_usd, price_in_quote = price(at(row, "priceUsd")), amount(at(row, "priceNative"))
    quote_price = price(price_usd / price_in_quote) if price_usd and price_in_quote else None
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
        url=_pair_page(at(row, "url"), chain, pair_address),
        source="dexscreener",
    )


def _parse_side(row: Any, which: str) -> Side:
    token = at(row, f"{which}Token")
    return Side(pool(at(token, "address")), name(at(token, "symbol")))


def _pair_page(url: Any, chain: str, pair_address: str) -> str:
    """Return the web page named by the upstream if it is on its own site, else build its URL."""
    if isinstance(url, str) and _PAIR_PAGE.fullmatch(url):
        return url
    return f"https://dexscreener.com/{chain}/{pair_address}"
