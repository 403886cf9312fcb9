"""DEX Screener: pairs of decentralised exchanges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from centgate.chains import from_chain_seconds
from centgate.coercion import (
    as_amount,
    as_clean_name,
    as_count,
    as_list,
    as_number,
    as_pool_id,
    as_price,
    as_usd,
    get_path,
)
from centgate.crypto.token.pairs import Pair, PairToken, PairWindow, collect_windows, multiply_known
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.rate_limiter import RateLimit

CHAIN_NAMES = {
    1: "ethereum",
    8453: "base",
    56: "bsc",
    137: "polygon",
    42161: "arbitrum",
    10: "optimism",
}
"""Chain names of the API."""
_VERSION = re.compile(r"v[0-9](\.[0-9])?")
_PAIR_PAGE = re.compile(r"https://dexscreener\.com/(?P<chain>[\w-]{1,40})/[\w-]{1,100}")


class DexScreener(Provider):
    """Price, liquidity and volume of a token's pairs."""

    info = ProviderInfo(
        "dexscreener",
        "DEX Screener",
        docs_url="https://docs.dexscreener.com/api/reference",
        url="https://api.dexscreener.com",
        terms="Free without a key under fair use: 300 requests a minute for pairs and tokens.",
        rate_limit=RateLimit(300),
        timeout=6,
    )

    @instrumented
    async def pairs(self, chain_id: int, token: str) -> list[Pair]:
        """Return all pairs of a token (lower case) on a chain, in the upstream's order.

        Rows that cannot be parsed are left out with a warning; NoData if the token has no pair.
        """
        chain = CHAIN_NAMES[chain_id]
        reply = await self.upstream.get(self.url(f"/token-pairs/v1/{chain}/{token}"))
        found = [
            pair
            for pair in self._parse_rows(_pair_rows(reply.parse_json()), chain_id)
            if pair.has_token(token)
        ]
        if not found:
            raise self.no_data(f"no pair of token {token} on {chain}")
        return list(dict.fromkeys(found))  # a repeated row would count twice

    @instrumented
    async def pair(self, chain_id: int, address: str) -> Pair:
        """Return the pair at an address (lower case); NoData if it does not exist."""
        chain = CHAIN_NAMES[chain_id]
        reply = await self.upstream.get(self.url(f"/latest/dex/pairs/{chain}/{address}"))
        body = reply.parse_json()
        rows = _pair_rows(body) or [row for row in [get_path(body, "pair")] if row]
        for pair in self._parse_rows(rows, chain_id):
            if pair.address == address:
                return pair
        raise self.no_data(f"no pair at {address} on {chain}")

    def _parse_rows(self, rows: Sequence[Any], chain_id: int) -> list[Pair]:
        """Parse the rows of this chain; ProviderError if all are of other chains or not one can be parsed."""
        chain = CHAIN_NAMES[chain_id]
        chain_rows = [row for row in rows if _named_chains(row) <= {chain}]
        if rows and not chain_rows:
            raise self.invalid_response(f"returned pairs of another chain than {chain}")
        return self.parse_each(chain_rows, partial(parse_pair, chain_id=chain_id), "pairs")


def _pair_rows(body: Any) -> list[Any]:
    """Return the pairs of a body: a bare list, or under `pairs`, where null means an empty list.

    A bare null is no list: it is not documented, and "no pairs" would be a finding about the token.
    """
    rows = cast(Any, body["pairs"] if isinstance(body, dict) else body)
    if rows is None and isinstance(body, dict):
        return []
    if not isinstance(rows, list):
        raise TypeError("pairs are no list")
    return cast(list[Any], rows)


def parse_pair(row: Any, chain_id: int) -> Pair | None:
    """Parse a pair; None without its address or base token.

    Its price is the base token's, in dollars (`priceUsd`) and in quote tokens (`priceNative`), so the quote
    token's is their quotient.
    """
    pair_address, base, quote = (
        as_pool_id(get_path(row, "pairAddress")),
        _parse_side(row, "base"),
        _parse_side(row, "quote"),
    )
    if not pair_address or not base.address:
        return None
    price_usd, price_in_quote = as_price(get_path(row, "priceUsd")), as_amount(get_path(row, "priceNative"))
    quote_price = as_price(price_usd / price_in_quote) if price_usd and price_in_quote else None
    return Pair(
        address=pair_address,
        dex=as_clean_name(get_path(row, "dexId")),
        base=base,
        quote=quote,
        price_usd=price_usd,
        quote_price_usd=quote_price,
        liquidity_usd=as_usd(get_path(row, "liquidity", "usd")),
        base_side_usd=as_usd(multiply_known(as_amount(get_path(row, "liquidity", "base")), price_usd)),
        quote_side_usd=as_usd(multiply_known(as_amount(get_path(row, "liquidity", "quote")), quote_price)),
        volume24h_usd=as_usd(get_path(row, "volume", "h24")),
        fdv_usd=as_price(get_path(row, "fdv")),
        created_at=from_chain_seconds((as_amount(get_path(row, "pairCreatedAt")) or 0) / 1000, chain_id),
        buys24h=as_count(get_path(row, "txns", "h24", "buys")),
        sells24h=as_count(get_path(row, "txns", "h24", "sells")),
        url=_pair_page(get_path(row, "url"), CHAIN_NAMES[chain_id], pair_address),
        source="dexscreener",
        version=_parse_version(get_path(row, "labels")),
        base_amount=as_amount(get_path(row, "liquidity", "base")),
        quote_amount=as_amount(get_path(row, "liquidity", "quote")),
        market_cap_usd=as_price(get_path(row, "marketCap")),
        windows=collect_windows(partial(_parse_window, row)),
    )


def _parse_version(labels: Any) -> str | None:
    """Return the first label that is a version, such as `v3`; others name kinds of pools."""
    return next(
        (each for each in as_list(labels) if isinstance(each, str) and _VERSION.fullmatch(each)), None
    )


def _parse_window(row: Any, name: str) -> PairWindow:
    return PairWindow(
        as_number(get_path(row, "priceChange", name)),
        as_usd(get_path(row, "volume", name)),
        as_count(get_path(row, "txns", name, "buys")),
        as_count(get_path(row, "txns", name, "sells")),
    )


def _parse_side(row: Any, which: str) -> PairToken:
    token = get_path(row, f"{which}Token")
    return PairToken(as_pool_id(get_path(token, "address")), as_clean_name(get_path(token, "symbol")))


def _named_chains(row: Any) -> set[str]:
    """Return the chains that a row names, itself and in the address of its page.

    Of a row that names two, no one can tell which its figures are of.
    """
    named, url = get_path(row, "chainId"), get_path(row, "url")
    page = _PAIR_PAGE.fullmatch(url) if isinstance(url, str) else None
    return {str(each) for each in (named, page and page["chain"]) if each is not None}


def _pair_page(url: Any, chain: str, pair_address: str) -> str:
    """Return the web page named by the upstream if it is on its own site, else build its URL."""
    if isinstance(url, str) and _PAIR_PAGE.fullmatch(url):
        return url
    return f"https://dexscreener.com/{chain}/{pair_address}"
