"""pool-snapshot: price, liquidity, volume and age of a token's deepest pair, or of a given pair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, cast

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from centgate.chains import Address, NamedChainRequest
from centgate.crypto.token.pairs import Pair, PairToken
from centgate.crypto.token.top_pair import (
    PairChoice,
    choose_top_pair,
    describe_price_spread,
    list_pair_warnings,
)
from centgate.errors import Issue, NoData, ProviderFailure
from centgate.fallback import attempt, first_concurrent, first_of
from centgate.provider import Fallback, Primary, RequestTrace
from centgate.providers.dexscreener import DexScreener
from centgate.providers.geckoterminal import GeckoTerminal
from centgate.schema import Data, Omittable, to_camel_case
from centgate.service import service
from centgate.timestamps import format_timestamp

Source = DexScreener | GeckoTerminal


class PoolSnapshotRequest(NamedChainRequest):
    """A token, or one of its pairs, on a chain."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                cast(JsonDict, NamedChainRequest.model_config.get("json_schema_extra")),
                {"oneOf": [{"required": ["tokenAddress"]}, {"required": ["pairAddress"]}]},
            ]
        }
    )

    token_address: Omittable[Address] = Field(
        default=None, description="A token, answered with its deepest pair; not together with `pairAddress`."
    )
    pair_address: Omittable[Address] = Field(
        default=None, description="A pair's own contract; not together with `tokenAddress`."
    )

    @classmethod
    def check_cross_field_rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """Require a named chain and exactly one of token and pair."""
        yield from super().check_cross_field_rules(body, context)
        if ("tokenAddress" in body) == ("pairAddress" in body):
            yield Issue("", "exactly one of tokenAddress or pairAddress is required")


class TradeCounts(Data):
    """Trades of the last 24 hours."""

    buys: int
    sells: int


class PoolSnapshot(Data):
    """Current state of a pair."""

    pair_address: str = Field(
        description="Lower case; a 32-byte pool id on exchanges whose pools have no contract of their own."
    )
    price_usd: float | None = Field(
        description="US dollars for one unit of the requested token; for a pair, of its base token."
    )
    liquidity_usd: float | None = Field(description="US dollars in the pool, both sides together.")
    volume24h_usd: float | None = Field(
        description="US dollars traded in the last 24 hours.",
    )
    fdv_usd: float | None = Field(
        description="US dollars for the whole supply of the priced token at this price."
    )
    pair_created_at: str | None = Field(description="ISO 8601, UTC.")
    txns24h: TradeCounts | None
    url: str | None = Field(description="The pair's page at the source that answered.")


@service(
    order=20,
    title="Pool snapshot",
    category="crypto-context",
    fixed_roles=True,
    tags=("token", "price", "liquidity", "dex", "evm"),
    guardrails=(
        "One token or one pair per request.",
        "A token is answered with its deepest pair by liquidity on the requested chain.",
        "Prices are those of one pair at one moment, not an average over exchanges.",
        "A figure that the source does not give is null, never 0.",
        "Read-only: nothing is signed or sent.",
    ),
    cache_ttl=timedelta(minutes=1),
    input_example=PoolSnapshotRequest(
        chain="base", token_address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
    ),
    output_example=PoolSnapshot(
        pair_address="0xd0b53d9277642d899df5c87a3966a349a798f224",
        price_usd=0.9998,
        liquidity_usd=98_000_000,
        volume24h_usd=143_500_000,
        fdv_usd=None,
        pair_created_at="2023-08-16T19:05:00Z",
        txns24h=TradeCounts(buys=41_200, sells=39_800),
        url="https://dexscreener.com/base/0xd0b53d9277642d899df5c87a3966a349a798f224",
    ),
)
async def pool_snapshot(
    request: PoolSnapshotRequest,
    dexscreener: Primary[DexScreener],
    geckoterminal: Fallback[GeckoTerminal],
) -> PoolSnapshot:
    """Return price, liquidity, volume and age of a token's deepest pair, or of a given pair.

    Reads one pair of a decentralised exchange: its price in US dollars, the liquidity of the pool, the volume
    of the last 24 hours and the creation time. If the first source does not answer, a second one does.
    """
    if request.pair_address:
        return await _snapshot_pair(request.target_chain_id, request.pair_address, dexscreener, geckoterminal)
    return await _snapshot_token(
        request.target_chain_id, request.token_address or "", dexscreener, geckoterminal
    )


async def _snapshot_token(chain_id: int, token: str, first: Source, second: Source) -> PoolSnapshot:
    """Return the snapshot of a token, or of a pair whose address was sent as a token."""
    record = first.trace
    try:
        pairs = await _find_pairs(chain_id, token, first, second)
    except NoData as no_data:
        raise NoData(f"{no_data.message}, nor a pair at that address; is it on another chain?") from None
    if not pairs[0].has_token(token):
        record.add_warning(f"{token} is not a token with pairs but a pair, and was answered as pairAddress")
        return _build_snapshot(
            pairs[0], pairs[0].base, 1, "The pair at the address that was sent as a token", record
        )
    choice = choose_top_pair(pairs, token)
    if warning := describe_price_spread(choice, token):
        record.add_warning(warning)
    priced = choice.pair.base if token == choice.pair.base.address else choice.pair.quote
    return _build_snapshot(choice.pair, priced, choice.considered, _selection_reason(choice), record)


async def _snapshot_pair(chain_id: int, address: str, *sources: Source) -> PoolSnapshot:
    """Return the snapshot of a pair, with the price of its base token."""
    try:
        pair = await first_of(*(source.pair for source in sources))(chain_id, address)
    except NoData as no_data:
        raise NoData(f"{no_data.message}; if it is a token, send it as tokenAddress") from None
    return _build_snapshot(pair, pair.base, 1, "The requested pair", sources[0].trace)


async def _find_pairs(chain_id: int, token: str, first: Source, second: Source) -> list[Pair]:
    """Return a token's pairs, else the pair at that address, since callers mix them up.

    A known token costs one call. For a token that the first source does not know, all other calls run
    concurrently, so that slow sources do not add up. While it fails, the second source, which has a far lower
    rate limit, is called sequentially.
    """
    result = await attempt(first.pairs, chain_id, token)
    if isinstance(result, list):
        return result
    second_pairs, second_pair = (
        partial(second.pairs, chain_id, token),
        partial(_find_single_pair, second, chain_id, token),
    )
    if isinstance(result, NoData):
        rest = first_concurrent(partial(_find_single_pair, first, chain_id, token), second_pairs, second_pair)
    else:
        rest = first_of(second_pairs, second_pair)
    return await first_of(partial(_raise_again, result), rest)()


async def _raise_again(error: NoData | ProviderFailure) -> list[Pair]:
    """Raise the first source's error again, so that it is ranked with the errors of the others."""
    raise error


async def _find_single_pair(source: Source, chain_id: int, address: str) -> list[Pair]:
    """Return the pair at an address that was sent as a token. Any error becomes NoData without a source."""
    pair = await attempt(source.pair, chain_id, address)
    if not isinstance(pair, Pair):
        raise NoData(pair.message)
    return [pair]


def _selection_reason(choice: PairChoice) -> str:
    """Return the reason for choosing this pair."""
    if choice.considered == 1:
        return "The only pair of the token"
    reason = f"The deepest of {choice.considered} pairs by liquidity"
    if choice.pair.liquidity_usd is None:
        reason = f"The most traded of {choice.considered} pairs, without a figure for its liquidity"
    if choice.price_outliers:
        reason += f"; rejected: {len(choice.price_outliers)} whose price is far from that of the deep pairs"
    if choice.nearly_empty:
        reason += (
            f"; rejected: {len(choice.nearly_empty)} with a larger figure that hides an almost empty side"
        )
    return reason


def _build_snapshot(
    pair: Pair, priced: PairToken, considered: int, reason: str, record: RequestTrace
) -> PoolSnapshot:
    """Build the snapshot of a pair with the price of one of its tokens; add its warnings to the record."""
    is_base = priced is pair.base
    snapshot = PoolSnapshot(
        pair_address=pair.address,
        price_usd=pair.price_usd if is_base else pair.quote_price_usd,
        liquidity_usd=pair.liquidity_usd,
        volume24h_usd=pair.volume24h_usd,
        fdv_usd=pair.fdv_usd if is_base else None,
        pair_created_at=format_timestamp(pair.created_at) if pair.created_at else None,
        txns24h=_build_trade_counts(pair),
        url=pair.url,
    )
    # the selection is not part of `data` in the service's contract, so it is reported with the provider
    record.record(pair.source, "ok", selection=_describe_selection(pair, considered, reason, is_base=is_base))
    for warning in (
        *_list_fallback_warnings(pair, record),
        *_list_missing_fields(snapshot, is_base=is_base),
        *list_pair_warnings(pair),
    ):
        record.add_warning(warning)
    return snapshot


def _describe_selection(pair: Pair, considered: int, reason: str, *, is_base: bool) -> dict[str, Any]:
    """Describe the chosen pair: the reason, the number of candidates and the priced token."""
    side = "base token" if is_base else "quote token, so fdvUsd does not apply"
    return {
        "pairsConsidered": considered,
        "reason": f"{reason}. priceUsd is for its {side}.",
        "baseToken": {"address": pair.base.address, "symbol": pair.base.symbol},
        "quoteToken": {"address": pair.quote.address, "symbol": pair.quote.symbol},
        "dex": pair.dex,
    }


def _build_trade_counts(pair: Pair) -> TradeCounts | None:
    if pair.buys24h is None or pair.sells24h is None:
        return None
    return TradeCounts(buys=pair.buys24h, sells=pair.sells24h)


def _list_fallback_warnings(pair: Pair, record: RequestTrace) -> Iterable[str]:
    """Yield the warnings for a response from the second source."""
    if pair.source == GeckoTerminal.info.name:
        first = record.providers.get(DexScreener.info.name, {})
        reason = "has no such pair" if first.get("status") == "no_data" else "did not answer"
        yield f"{GeckoTerminal.info.label} is used instead of {DexScreener.info.label}, which {reason}"
        if pair.created_at:
            yield (
                f"pairCreatedAt is from {GeckoTerminal.info.label}: for an older pair it may be the day "
                "on which the pair was first listed there"
            )


def _list_missing_fields(snapshot: PoolSnapshot, *, is_base: bool) -> Iterable[str]:
    """Yield a warning about missing fields; missing liquidity has its own warning elsewhere."""
    expected = ["price_usd", "volume24h_usd", "pair_created_at", "txns24h", *(["fdv_usd"] if is_base else [])]
    missing = [to_camel_case(name) for name in expected if getattr(snapshot, name) is None]
    if missing:
        yield f"the source gives no {', '.join(missing)} for this pair"
