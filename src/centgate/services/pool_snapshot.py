"""pool-snapshot: price, liquidity, volume and age of a token's deepest pair, or of a given pair."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Literal, NoReturn, TypeVar

from pydantic import ConfigDict, Field

from centgate.chains import NAMED_CHAIN_RULE, Address, NamedChainRequest
from centgate.crypto.token.pairs import WINDOWS, Pair, PairToken, PairWindow
from centgate.crypto.token.pools import PriceImpact
from centgate.crypto.token.top_pair import (
    PairChoice,
    choose_top_pair,
    describe_price_spread,
    list_pair_warnings,
    pair_depth,
)
from centgate.errors import Issue, NoData, ProviderFailure
from centgate.fallback import attempt, first_concurrent, first_of
from centgate.lookups.chain_pools import ChainIndex
from centgate.provider import Fallback, Primary, RequestTrace
from centgate.providers.dexscreener import DexScreener
from centgate.providers.geckoterminal import GeckoTerminal
from centgate.providers.rpc import Rpc
from centgate.schema import Data, Omittable, hide_rule, require_text, to_camel_case
from centgate.service import service
from centgate.timestamps import format_timestamp

T = TypeVar("T")
Source = DexScreener | GeckoTerminal | ChainIndex

ADDRESS_LENGTH = 42
"""Characters of an address; the ids of v4 pools are longer."""
MAX_OTHER_PAIRS = 5
"""Other pairs of the token in an answer."""
MAX_CHAIN_SECONDS = 3.0
"""Time in which the chain has to confirm an index's price; the answer does not wait longer."""
MAX_DIFFERENCE = 5.0
"""Percent by which the chain's price and liquidity may differ from the index's."""
_UNKNOWN_TO_CHAIN = "chainPriceUsd and saleImpacts are not known"


class PoolSnapshotRequest(NamedChainRequest):
    """A token, or one of its pairs, on a chain."""

    model_config = ConfigDict(
        json_schema_extra=hide_rule(
            NAMED_CHAIN_RULE, {"oneOf": [require_text("tokenAddress"), require_text("pairAddress")]}
        )
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

    buys: int = Field(description="Number of purchases of the priced token.")
    sells: int = Field(description="Number of its sales.")


class PoolToken(Data):
    """One of the pair's two tokens."""

    address: str | None = Field(description="Lower case.")
    symbol: str | None = Field(description="As its contract gives it: untrusted text; null when unknown.")
    reserve: float | None = Field(description="Whole tokens in the pool.")
    reserve_usd: float | None = Field(description="US dollars of this token in the pool.")


class TradeWindow(Data):
    """Trading of the priced token in this pair in one period up to now."""

    window: Literal["5m", "1h", "6h", "24h"]
    price_change_percent: float | None = Field(
        description="Change of the price in US dollars, in percent; null if the priced token is the quote."
    )
    volume_usd: float | None = Field(description="US dollars traded.")
    buys: int | None = Field(description="Number of purchases; null when unknown.")
    sells: int | None = Field(description="Number of sales; null when unknown.")


class OtherPair(Data):
    """Another pair of the token on this chain."""

    pair_address: str = Field(description="Lower case.")
    dex: str | None = Field(
        description="The exchange, as the source names it: untrusted text; null when unknown."
    )
    price_usd: float | None = Field(description="US dollars for one unit of the token in this pair.")
    liquidity_usd: float | None = Field(
        description="US dollars in this pair, both sides together; null when unknown."
    )
    liquidity_share: float | None = Field(
        description="Percent of the liquidity of all pairs that the source lists."
    )


class SaleImpact(Data):
    """Loss of a sale of the priced token in this pair, as quoted by the chain now."""

    usd: int = Field(description="US dollars of the token sold, at the spot price.")
    loss_percent: float | None = Field(
        description="Percent less than at the spot price, the pool's fee included; null if the pool cannot "
        "take the amount."
    )


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
    txns24h: TradeCounts | None = Field(
        description="Trades of the priced token in this pair in the last 24 hours; null when unknown."
    )
    url: str | None = Field(description="The pair's page at the source that answered.")
    dex: str | None = Field(description="The exchange, as the source names it: untrusted text.")
    dex_version: str | None = Field(description="Version of the exchange, such as `v3`; null if not named.")
    fee_percent: float | None = Field(description="The pool's fee in percent of a trade.")
    base_token: PoolToken
    quote_token: PoolToken
    market_cap_usd: float | None = Field(
        description="US dollars for the circulating supply of the priced token, as the source counts it."
    )
    windows: list[TradeWindow] = Field(description="Empty if the source gives no figures by period.")
    pair_count: int = Field(description="Pairs of the token that the source lists on this chain.")
    other_pairs: list[OtherPair] = Field(
        description="The deepest other pairs of the token, at most five; empty for a request by pair."
    )
    chain_price_usd: float | None = Field(
        description="The same price read from the pool's contract, with Chainlink's dollar price of the "
        "native coin, stablecoins counted as one dollar; null if no node could read it, and where the chain "
        "is not asked: v4 pools that an index lists, exchanges that this service does not know, and the "
        "price of the pool's quote token."
    )
    sale_impacts: list[SaleImpact] = Field(
        description="Sales of 100, 1,000 and 10,000 dollars, quoted by the chain; empty if no node could, "
        "where `chainPriceUsd` is null, and if the priced token is the pool's quote token on the chain."
    )


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
        "A pair is asked for by its own contract; the id of a v4 pool is not accepted.",
        "A figure that the source does not give is null, never 0.",
        "If no exchange index answers, the chain does: price, reserves and depth, no figures of 24 hours.",
        "Read-only: nothing is signed or sent.",
    ),
    cache_ttl=timedelta(minutes=1),
    input_example=PoolSnapshotRequest(
        chain="base", token_address="0x4200000000000000000000000000000000000006"
    ),
    output_example=PoolSnapshot(
        pair_address="0xd0b53d9277642d899df5c87a3966a349a798f224",
        price_usd=3_000,
        liquidity_usd=98_000_000,
        volume24h_usd=143_500_000,
        fdv_usd=721_500_000,
        pair_created_at="2023-08-16T19:05:00Z",
        txns24h=TradeCounts(buys=41_200, sells=39_800),
        url="https://dexscreener.com/base/0xd0b53d9277642d899df5c87a3966a349a798f224",
        dex="uniswap",
        dex_version="v3",
        fee_percent=0.05,
        base_token=PoolToken(
            address="0x4200000000000000000000000000000000000006",
            symbol="WETH",
            reserve=16_300,
            reserve_usd=48_900_000,
        ),
        quote_token=PoolToken(
            address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
            symbol="USDC",
            reserve=49_100_000,
            reserve_usd=49_100_000,
        ),
        market_cap_usd=721_500_000,
        windows=[
            TradeWindow(
                window="24h", price_change_percent=1.8, volume_usd=143_500_000, buys=41_200, sells=39_800
            )
        ],
        pair_count=2,
        other_pairs=[
            OtherPair(
                pair_address="0xcdac0d6c6c59727a65f871236188350531885c43",
                dex="aerodrome",
                price_usd=3_001.5,
                liquidity_usd=42_000_000,
                liquidity_share=30,
            )
        ],
        chain_price_usd=2_999.4,
        sale_impacts=[
            SaleImpact(usd=100, loss_percent=0.05),
            SaleImpact(usd=1_000, loss_percent=0.0501),
            SaleImpact(usd=10_000, loss_percent=0.0512),
        ],
    ),
)
async def pool_snapshot(
    request: PoolSnapshotRequest,
    dexscreener: Primary[DexScreener],
    geckoterminal: Fallback[GeckoTerminal],
    rpc: Fallback[Rpc],
) -> PoolSnapshot:
    """Return price, liquidity, volume and age of a token's deepest pair, or of a given pair.

    Reads one pair of a decentralised exchange: its price in US dollars, the liquidity of the pool, the volume
    of the last 24 hours and the creation time. If the first source does not answer, a second one does, and
    at last the chain itself, which also confirms the price and quotes what a sale would lose.
    """
    chain_id, chain = request.target_chain_id, ChainIndex(rpc)
    sources: tuple[Source, ...] = (dexscreener, geckoterminal, chain)
    if request.pair_address:
        subject = await _select_pair(chain_id, request.pair_address, *sources)
    else:
        subject = await _select_token_pair(chain_id, request.token_address or "", *sources)
    return await _build_snapshot(subject, chain_id, chain)


@dataclass(frozen=True, slots=True)
class _Subject:
    """The pair that answers a request, and how it was chosen."""

    pair: Pair
    priced: PairToken
    pairs: Sequence[Pair]
    """All pairs of the token that the source lists."""
    reason: str


async def _select_token_pair(
    chain_id: int, token: str, first: Source, second: Source, last: Source
) -> _Subject:
    """Select the pair of a token, or the pair whose address was sent as a token."""
    trace = first.trace
    try:
        pairs = await _find_pairs(chain_id, token, first, second, last)
    except NoData as no_data:
        raise NoData(f"{no_data.message}, nor a pair at that address; it may be on another chain") from None
    if not pairs[0].has_token(token):
        trace.add_warning(f"{token} is not a token with pairs but a pair, and was answered as pairAddress")
        return _Subject(
            pairs[0], pairs[0].base, pairs[:1], "The pair at the address that was sent as a token"
        )
    choice = choose_top_pair(pairs, token)
    if warning := describe_price_spread(choice, token):
        trace.add_warning(warning)
    priced = choice.pair.base if token == choice.pair.base.address else choice.pair.quote
    return _Subject(choice.pair, priced, pairs, _selection_reason(choice))


async def _select_pair(chain_id: int, address: str, first: Source, second: Source, last: Source) -> _Subject:
    """Select the pair at an address; its base token is priced."""
    try:
        pair = await _query_chain_last(
            first_of(partial(first.pair, chain_id, address), partial(second.pair, chain_id, address)),
            partial(last.pair, chain_id, address),
        )
    except NoData as no_data:
        raise NoData(f"{no_data.message}; if it is a token, send it as tokenAddress") from None
    return _Subject(pair, pair.base, [pair], "The requested pair")


async def _find_pairs(chain_id: int, token: str, first: Source, second: Source, last: Source) -> list[Pair]:
    """Return a token's pairs, else the pair at that address, since callers mix them up.

    A known token costs one call. For a token that the first source does not know, all other calls run
    concurrently, so that slow sources do not add up. While it fails, the second source, which has a far lower
    rate limit, is called sequentially. The chain comes last.
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
    on_chain = (partial(last.pairs, chain_id, token), partial(_find_single_pair, last, chain_id, token))
    return await _query_chain_last(first_of(partial(_raise_again, result), rest), *on_chain)


async def _query_chain_last(
    query_indexes: Callable[[], Awaitable[T]], *query_chain: Callable[[], Awaitable[T]]
) -> T:
    """Return what the exchange indexes list, else what the chain shows.

    If the indexes have no data, a node that fails does not change that: "no pair" is their answer, and the
    chain knows the pools of a few exchanges only. If an index failed, the chain's failure counts as well.
    """
    try:
        return await query_indexes()
    except ProviderFailure as failure:
        methods: Sequence[Callable[[], Awaitable[T]]] = (partial(_raise_again, failure), *query_chain)
        return await first_of(*methods)()
    except NoData as no_data:
        try:
            return await first_of(*query_chain)()
        except (NoData, ProviderFailure):
            raise no_data from None


async def _raise_again(error: NoData | ProviderFailure) -> NoReturn:
    """Raise an earlier source's error again, so that it is ranked with the errors of the others."""
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


async def _build_snapshot(subject: _Subject, chain_id: int, chain: ChainIndex) -> PoolSnapshot:
    """Build the snapshot of a pair with the price of one of its tokens; add its warnings to the trace."""
    pair, trace = subject.pair, chain.trace
    is_base = subject.priced is pair.base
    confirmed, impacts = await _ask_chain(subject, chain_id, chain)
    snapshot = PoolSnapshot(
        pair_address=pair.address,
        price_usd=pair.price_of(subject.priced.address or ""),
        liquidity_usd=pair.liquidity_usd,
        volume24h_usd=pair.volume24h_usd,
        fdv_usd=pair.fdv_usd if is_base else None,
        pair_created_at=format_timestamp(pair.created_at) if pair.created_at else None,
        txns24h=_build_trade_counts(pair, is_base=is_base),
        url=pair.url,
        dex=pair.dex,
        dex_version=pair.version,
        fee_percent=confirmed.fee_percent if confirmed and pair.fee_percent is None else pair.fee_percent,
        base_token=_build_token(pair.base, pair.base_amount, pair.base_side_usd),
        quote_token=_build_token(pair.quote, pair.quote_amount, pair.quote_side_usd),
        market_cap_usd=pair.market_cap_usd if is_base else None,
        windows=_build_windows(pair, is_base=is_base),
        pair_count=len(subject.pairs),
        other_pairs=_build_other_pairs(subject),
        chain_price_usd=(
            confirmed.price_usd if confirmed and confirmed.base.address == subject.priced.address else None
        ),
        sale_impacts=[SaleImpact(usd=each.usd, loss_percent=each.percent) for each in impacts],
    )
    # the selection is not part of `data` in the service's contract, so it is reported with the provider
    trace.record(pair.source, "ok", selection=_describe_selection(subject, is_base=is_base))
    for warning in (
        *_list_fallback_warnings(pair, trace),
        *_list_missing_fields(snapshot, is_base=is_base),
        *_list_unread_fee(snapshot, confirmed, chain),
        *_list_quote_gaps(pair, is_base=is_base),
        *_compare_prices(snapshot),
        *_compare_liquidity(snapshot, confirmed),
        *list_pair_warnings(pair),
    ):
        trace.add_warning(warning)
    return snapshot


async def _ask_chain(
    subject: _Subject, chain_id: int, chain: ChainIndex
) -> tuple[Pair | None, Sequence[PriceImpact]]:
    """Return the pair as the chain shows it, and what sales of the priced token would lose.

    The answer stands without it: failures and slow nodes are warnings.
    """
    pair = subject.pair
    is_from_chain = pair.source == Rpc.info.name
    if not (is_from_chain or chain.can_read(chain_id)):
        chain.trace.add_warning(f"{_UNKNOWN_TO_CHAIN}: no node is configured for the chain")
        return None, ()
    if not is_from_chain and len(pair.address) > ADDRESS_LENGTH:
        chain.trace.add_warning(f"{_UNKNOWN_TO_CHAIN}: a pool without a contract of its own is not looked up")
        return None, ()
    reason = "the chain could not confirm the price in time"
    try:
        async with asyncio.timeout(MAX_CHAIN_SECONDS):
            known = pair if is_from_chain else await chain.pair(chain_id, pair.address)
            return known, await _quote_impacts(subject, known, chain_id, chain)
    except NoData as no_data:
        reason = f"{_UNKNOWN_TO_CHAIN}: {no_data.message}"
    except TimeoutError:
        chain.record_timeout()
    except ProviderFailure:
        pass  # recorded by the provider
    chain.trace.add_warning(reason)
    return None, ()


async def _quote_impacts(
    subject: _Subject, known: Pair, chain_id: int, chain: ChainIndex
) -> Sequence[PriceImpact]:
    """Quote sales of the priced token in a pool that was read; none if it is the pool's quote token."""
    if known.base.address == subject.priced.address:
        return await chain.impacts(chain_id, known)
    chain.trace.add_warning(
        "chainPriceUsd is null and saleImpacts empty: the chain prices and quotes the pool's base token "
        f"{known.base.address} alone"
    )
    return ()


def _build_token(token: PairToken, amount: float | None, side_usd: float | None) -> PoolToken:
    return PoolToken(address=token.address, symbol=token.symbol, reserve=amount, reserve_usd=side_usd)


def _build_windows(pair: Pair, *, is_base: bool) -> list[TradeWindow]:
    """Build the periods, shortest first, as seen from the priced token."""
    figures: list[TradeWindow] = []
    for window in WINDOWS:
        each = pair.windows.get(window, PairWindow())
        seen = each if is_base else each.for_quote()
        if not seen.is_empty:
            figures.append(
                TradeWindow(
                    window=window,
                    price_change_percent=seen.price_change,
                    volume_usd=seen.volume_usd,
                    buys=seen.buys,
                    sells=seen.sells,
                )
            )
    return figures


def _build_other_pairs(subject: _Subject) -> list[OtherPair]:
    """Build the deepest other pairs, each with its share of the liquidity of all."""
    total = sum(pair.liquidity_usd or 0 for pair in subject.pairs)
    others = sorted(
        (pair for pair in subject.pairs if pair.address != subject.pair.address),
        key=lambda pair: -(pair_depth(pair) or 0),
    )
    return [
        OtherPair(
            pair_address=pair.address,
            dex=pair.dex,
            price_usd=pair.price_of(subject.priced.address or ""),
            liquidity_usd=pair.liquidity_usd,
            liquidity_share=round(100 * pair.liquidity_usd / total, 2)
            if pair.liquidity_usd is not None and total
            else None,
        )
        for pair in others[:MAX_OTHER_PAIRS]
    ]


def _compare_prices(snapshot: PoolSnapshot) -> Iterable[str]:
    """Yield a warning if the chain's price differs from the source's."""
    listed, shown = snapshot.price_usd, snapshot.chain_price_usd
    if listed and shown and (difference := 100 * abs(listed - shown) / shown) > MAX_DIFFERENCE:
        yield (
            f"the source's price of ${listed:.6g} differs by {difference:.0f} % from the ${shown:.6g} that "
            "the pool's contract shows"
        )


def _compare_liquidity(snapshot: PoolSnapshot, confirmed: Pair | None) -> Iterable[str]:
    """Yield a warning if the pool holds other amounts on the chain than the source says."""
    listed, shown = snapshot.liquidity_usd, confirmed.liquidity_usd if confirmed else None
    if listed is None or shown is None:
        return
    difference = 100 * abs(listed - shown) / max(listed, shown, 1)
    if difference > MAX_DIFFERENCE:
        yield (
            f"the source's liquidity of ${listed:,.0f} differs by {difference:.0f} % from the ${shown:,.0f} "
            "that the pool's contract holds"
        )


def _describe_selection(subject: _Subject, *, is_base: bool) -> dict[str, Any]:
    """Describe the chosen pair: the reason, the number of candidates and the priced token."""
    pair = subject.pair
    side = "base token" if is_base else "quote token, so fdvUsd does not apply"
    return {
        "pairsConsidered": len(subject.pairs),
        "reason": f"{subject.reason}. priceUsd is for its {side}.",
        "baseToken": {"address": pair.base.address, "symbol": pair.base.symbol},
        "quoteToken": {"address": pair.quote.address, "symbol": pair.quote.symbol},
        "dex": pair.dex,
    }


def _build_trade_counts(pair: Pair, *, is_base: bool) -> TradeCounts | None:
    """Build the trades of the priced token: who buys the base token sells the quote token."""
    if pair.buys24h is None or pair.sells24h is None:
        return None
    buys, sells = (pair.buys24h, pair.sells24h) if is_base else (pair.sells24h, pair.buys24h)
    return TradeCounts(buys=buys, sells=sells)


def _list_fallback_warnings(pair: Pair, trace: RequestTrace) -> Iterable[str]:
    """Yield the warnings for a response from the second source, or from the chain."""
    if pair.source == Rpc.info.name:
        yield (
            "a fallback source was used: no exchange index answered, so the figures are read from the chain, "
            "which has none of 24 hours"
        )
        if pair.quote_price_usd == 1:
            yield f"priceUsd counts the stablecoin {pair.quote.address} as one dollar, whatever it is worth"
    if pair.source == GeckoTerminal.info.name:
        first = trace.providers.get(DexScreener.info.name, {})
        reason = "has no such pair" if first.get("status") == "no_data" else "did not answer"
        yield (
            f"a fallback source was used: {GeckoTerminal.info.label} instead of {DexScreener.info.label}, "
            f"which {reason}"
        )
        if pair.created_at:
            yield (
                f"pairCreatedAt is from {GeckoTerminal.info.label}: for an older pair it may be the day "
                "on which the pair was first listed there"
            )


def _list_unread_fee(snapshot: PoolSnapshot, confirmed: Pair | None, chain: ChainIndex) -> Iterable[str]:
    """Yield a warning if no source told the pool's fee, and the chain did not although it knows the pool."""
    if snapshot.fee_percent is None and confirmed is not None and chain.is_fee_unread(confirmed):
        yield f"feePercent is not known: the fee of the pool {confirmed.address} could not be read"


def _list_quote_gaps(pair: Pair, *, is_base: bool) -> Iterable[str]:
    """Yield a warning about the figures that a quote token lacks; the chain has none of them at all."""
    if not is_base and pair.source != Rpc.info.name:
        yield (
            "the priced token is the pair's quote token, for which fdvUsd, marketCapUsd and "
            "windows.priceChangePercent are not known"
        )


def _list_missing_fields(snapshot: PoolSnapshot, *, is_base: bool) -> Iterable[str]:
    """Yield a warning about missing fields; missing liquidity has its own warning elsewhere."""
    expected = ["price_usd", "volume24h_usd", "pair_created_at", "txns24h", *(["fdv_usd"] if is_base else [])]
    missing = [to_camel_case(name) for name in expected if getattr(snapshot, name) is None]
    if missing:
        yield f"the source gives no {', '.join(missing)} for this pair"
