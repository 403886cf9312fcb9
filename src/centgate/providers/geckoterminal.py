"""GeckoTerminal: pools of decentralised exchanges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from centgate.chains import from_chain_seconds
from centgate.coercion import (
    as_amount,
    as_clean_name,
    as_count,
    as_number,
    as_pool_id,
    as_price,
    as_usd,
    get_path,
)
from centgate.crypto.token.pairs import Pair, PairToken, PairWindow, collect_windows
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.rate_limiter import RateLimit
from centgate.upstream import UpstreamResponse

CHAIN_NAMES = {
    1: "eth",
    8453: "base",
    56: "bsc",
    137: "polygon_pos",
    42161: "arbitrum",
    10: "optimism",
}
"""Chain names of the API."""
INDEXED = datetime(2022, 2, 1, tzinfo=UTC)
"""A pool's date before this is the day of indexing, months after its creation."""
_VERSIONS = re.compile(r"(?<![^_-])v[234](?![^_-])")
"""A version between the separators of an exchange's id."""
_HEADERS = {"Accept": "application/json;version=20230302"}
_PARAMS = {"include": "base_token,quote_token"}


class GeckoTerminal(Provider):
    """Price, liquidity and volume of a token's pools."""

    info = ProviderInfo(
        "geckoterminal",
        "GeckoTerminal",
        docs_url="https://apiguide.geckoterminal.com",
        url="https://api.geckoterminal.com",
        terms="Free without a key under fair use: 30 requests a minute.",
        rate_limit=RateLimit(30),
        timeout=6,
    )

    @instrumented
    async def pairs(self, chain_id: int, token: str) -> list[Pair]:
        """Return a token's (lower case) best twenty pools on a chain, in the upstream's order.

        Pools of three tokens in which it is neither base nor quote are left out. Rows that cannot be parsed
        are left out too, with a warning. NoData if no pool is left.
        """
        network = CHAIN_NAMES[chain_id]
        body = await self._get_json(
            f"/networks/{network}/tokens/{token}/pools", f"no pool of token {token} on {network}"
        )
        rows = body["data"]
        if not isinstance(rows, list):
            raise TypeError("data is not a list")
        found = [
            pair for pair in self._parse_rows(cast(list[Any], rows), body, chain_id) if pair.has_token(token)
        ]
        if not found:
            raise self.no_data(f"no pool of token {token} on {network}")
        # here `fdv_usd` is the requested token's in every row, even if it is the quote (recorded for WETH)
        return [
            pair if token == pair.base.address else replace(pair, fdv_usd=None, market_cap_usd=None)
            for pair in dict.fromkeys(found)  # a repeated row would count twice
        ]

    @instrumented
    async def pair(self, chain_id: int, address: str) -> Pair:
        """Return the pool at an address (lower case); NoData if it does not exist."""
        network = CHAIN_NAMES[chain_id]
        no_data_message = f"no pool at {address} on {network}"
        body = await self._get_json(f"/networks/{network}/pools/{address}", no_data_message)
        if body["data"] is None:
            raise self.no_data(no_data_message)
        (pair,) = self._parse_rows([body["data"]], body, chain_id)
        if pair.address != address:
            raise self.no_data(no_data_message)
        return pair

    async def _get_json(self, path: str, no_data_message: str) -> Any:
        reply = await self.upstream.get(
            self.url(f"/api/v2{path}"), params=_PARAMS, headers=_HEADERS, accept={404}
        )
        if reply.status == 404:
            raise (
                self.no_data(no_data_message)
                if _is_api_reply(reply)
                else self.upstream.error_for_status(reply)
            )
        return reply.parse_json()

    def _parse_rows(self, rows: list[Any], body: Any, chain_id: int) -> list[Pair]:
        """Parse the rows; ProviderError if one is of another chain, or if not one can be parsed."""
        network = CHAIN_NAMES[chain_id]
        if any(_is_foreign(row, network) for row in rows):
            raise self.invalid_response(f"returned pools of another chain than {network}")
        parse = partial(parse_pool, chain_id=chain_id, symbols=_parse_symbols(body))
        return self.parse_each(rows, parse, "pools")


def _is_api_reply(reply: UpstreamResponse) -> bool:
    """True if a 404 is the API's own, which is an object, and not a missing page."""
    return reply.body.lstrip().startswith(b"{") and isinstance(reply.parse_json(), dict)


def _is_foreign(row: Any, network: str) -> bool:
    """True if the id of a pool or of one of its tokens, such as `polygon_pos_0x…`, names another chain."""
    tokens = (get_path(row, "relationships", f"{which}_token", "data", "id") for which in ("base", "quote"))
    parts = [str(named or "").rpartition("_") for named in (get_path(row, "id"), *tokens)]
    return any(separator and named_network != network for named_network, separator, _ in parts)


def _parse_symbols(body: Any) -> Mapping[str, str | None]:
    """Return symbols by token id, if the response includes its tokens."""
    included = get_path(body, "included")
    tokens = cast(list[Any], included) if isinstance(included, list) else []
    return {
        str(get_path(token, "id")): as_clean_name(get_path(token, "attributes", "symbol")) for token in tokens
    }


def parse_pool(row: Any, chain_id: int, symbols: Mapping[str, str | None]) -> Pair | None:
    """Parse a pool; None without its address or base token.

    `fdv_usd` is the base token's in the response for a single pool; see `pairs` for the pools of a token.
    """
    attributes = get_path(row, "attributes")
    pool_address, base, quote = (
        as_pool_id(get_path(attributes, "address")),
        _parse_side(row, "base", symbols),
        _parse_side(row, "quote", symbols),
    )
    if not pool_address or not base.address:
        return None
    dex = as_clean_name(get_path(row, "relationships", "dex", "data", "id"))
    dated = _parse_date(get_path(attributes, "pool_created_at"))
    is_indexing = dated is not None and dated < INDEXED
    return Pair(
        address=pool_address,
        dex=dex,
        base=base,
        quote=quote,
        price_usd=as_price(get_path(attributes, "base_token_price_usd")),
        quote_price_usd=as_price(get_path(attributes, "quote_token_price_usd")),
        liquidity_usd=as_usd(get_path(attributes, "reserve_in_usd")),
        base_side_usd=None,
        quote_side_usd=None,
        volume24h_usd=as_usd(get_path(attributes, "volume_usd", "h24")),
        fdv_usd=as_price(get_path(attributes, "fdv_usd")),
        created_at=None if is_indexing or not dated else from_chain_seconds(dated.timestamp(), chain_id),
        buys24h=as_count(get_path(attributes, "transactions", "h24", "buys")),
        sells24h=as_count(get_path(attributes, "transactions", "h24", "sells")),
        url=f"https://www.geckoterminal.com/{CHAIN_NAMES[chain_id]}/pools/{pool_address}",
        source="geckoterminal",
        fee_percent=as_amount(get_path(attributes, "pool_fee_percentage")),
        version=_parse_version(dex),
        market_cap_usd=as_price(get_path(attributes, "market_cap_usd")),
        windows=collect_windows(partial(_parse_window, attributes)),
        indexed_at=dated if is_indexing else None,
    )


def _parse_window(attributes: Any, name: str) -> PairWindow:
    return PairWindow(
        as_number(get_path(attributes, "price_change_percentage", name)),
        as_usd(get_path(attributes, "volume_usd", name)),
        as_count(get_path(attributes, "transactions", name, "buys")),
        as_count(get_path(attributes, "transactions", name, "sells")),
    )


def _parse_side(row: Any, which: str, symbols: Mapping[str, str | None]) -> PairToken:
    """Parse a token from an id such as `polygon_pos_0x…`."""
    token = str(get_path(row, "relationships", f"{which}_token", "data", "id") or "")
    return PairToken(as_pool_id(token.rpartition("_")[2]), symbols.get(token))


def _parse_version(dex: str | None) -> str | None:
    """Return the version in the id of an exchange, such as `uniswap_v3`; None unless it names exactly one."""
    named = _VERSIONS.findall(dex or "")
    return named[0] if len(named) == 1 else None


def _parse_date(value: Any) -> datetime | None:
    """Parse the date of a pool, which is in UTC unless it says otherwise."""
    try:
        date = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
