"""Fields of a pool-snapshot answer, filled from the selected pair and from what the chain shows of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import Field

from centgate.crypto.token.pairs import WINDOWS, Pair, PairToken, PairWindow, Window
from centgate.crypto.token.top_pair import list_pair_warnings, pair_depth
from centgate.envelope import Status
from centgate.lookups.pair_confirmation import PairConfirmation
from centgate.lookups.pair_selection import SelectedPair
from centgate.provider import describe_fallback
from centgate.providers.dexscreener import DexScreener
from centgate.providers.geckoterminal import GeckoTerminal
from centgate.schema import Data, to_camel_case
from centgate.timestamps import format_timestamp

MAX_OTHER_PAIRS = 5
"""Other pairs of the token in an answer."""
MAX_DIFFERENCE = 5.0
"""Percent by which the chain's price and liquidity may differ from the index's."""


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

    window: Window = Field(description="Minutes or hours up to now.")
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


def build_pool_snapshot(selected: SelectedPair, confirmation: PairConfirmation) -> PoolSnapshot:
    """Build the snapshot of a pair with the price of one of its tokens."""
    pair, priced, is_base = selected.pair, selected.priced, selected.is_base_priced
    confirmed = confirmation.pair
    return PoolSnapshot(
        pair_address=pair.address,
        price_usd=pair.price_of(priced.address or ""),
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
        pair_count=len(selected.pairs),
        other_pairs=_build_other_pairs(selected),
        chain_price_usd=confirmed.price_usd
        if confirmed and confirmed.base.address == priced.address
        else None,
        sale_impacts=[SaleImpact(usd=each.usd, loss_percent=each.percent) for each in confirmation.impacts],
    )


def list_snapshot_warnings(
    snapshot: PoolSnapshot,
    selected: SelectedPair,
    confirmation: PairConfirmation,
    primary_status: Status | None,
) -> Iterator[str]:
    """Yield the warnings about a snapshot; the primary's status tells why a fallback answered."""
    pair, is_base = selected.pair, selected.is_base_priced
    yield from _list_fallback_warnings(pair, primary_status)
    yield from _list_unmeasured_pools(selected)
    yield from _list_missing_fields(snapshot, pair, is_base=is_base)
    yield from _list_unread_fee(snapshot, confirmation)
    yield from _list_quote_gaps(pair, is_base=is_base)
    yield from _compare_prices(snapshot)
    yield from _compare_liquidity(snapshot, confirmation.pair)
    yield from list_pair_warnings(pair)


def describe_selection(selected: SelectedPair) -> dict[str, Any]:
    """Describe the chosen pair: the reason, the number of candidates and the priced token."""
    pair = selected.pair
    side = "base token" if selected.is_base_priced else "quote token, so fdvUsd does not apply"
    return {
        "pairsConsidered": len(selected.pairs),
        "reason": f"{selected.reason}. priceUsd is for its {side}.",
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


def _build_other_pairs(selected: SelectedPair) -> list[OtherPair]:
    """Build the deepest other pairs, each with its share of the liquidity of all."""
    total = sum(pair.liquidity_usd or 0 for pair in selected.pairs)
    others = sorted(
        (pair for pair in selected.pairs if pair.address != selected.pair.address),
        key=lambda pair: -(pair_depth(pair) or 0),
    )
    return [
        OtherPair(
            pair_address=pair.address,
            dex=pair.dex,
            price_usd=pair.price_of(selected.priced.address or ""),
            liquidity_usd=pair.liquidity_usd,
            liquidity_share=round(100 * pair.liquidity_usd / total, 2)
            if pair.liquidity_usd is not None and total
            else None,
        )
        for pair in others[:MAX_OTHER_PAIRS]
    ]


def _list_fallback_warnings(pair: Pair, primary_status: Status | None) -> Iterable[str]:
    """Yield the warnings for a response from the second source, or from the chain."""
    if pair.source == "rpc":
        yield (
            "a fallback source was used: no exchange index gave this pair, so the figures are read from the "
            "chain, which has none of 24 hours"
        )
        if pair.quote_price_usd == 1:
            yield f"priceUsd counts the stablecoin {pair.quote.address} as one dollar, whatever it is worth"
    if pair.source == "geckoterminal":
        reason = "has no such pair" if primary_status == "no_data" else "gave no usable answer"
        yield describe_fallback(GeckoTerminal.info.label, DexScreener.info, reason)
        if pair.created_at:
            yield (
                f"pairCreatedAt is from {GeckoTerminal.info.label}: for an older pair it may be the day "
                "on which the pair was first listed there"
            )


def _list_unmeasured_pools(selected: SelectedPair) -> Iterable[str]:
    """Yield a warning if the chain shows pools of the token that were not compared with the chosen one."""
    pairs, chosen = selected.pairs, selected.pair
    unmeasured = sum(pair.liquidity_usd is None for pair in pairs)
    if chosen.source == "rpc" and chosen.liquidity_usd is not None and unmeasured:
        yield (
            f"{unmeasured} of the token's {len(pairs)} pools may be deeper than this one: the chain does not "
            "tell what they hold in US dollars"
        )


def _list_missing_fields(snapshot: PoolSnapshot, pair: Pair, *, is_base: bool) -> Iterable[str]:
    """Yield warnings about missing fields; missing liquidity has its own warning elsewhere."""
    if pair.indexed_at:
        yield (
            f"pairCreatedAt is null: {GeckoTerminal.info.label} gives {pair.indexed_at:%Y-%m-%d}, which is "
            "the day on which the pair was first listed there, not that of its creation"
        )
    expected = [
        "price_usd",
        "volume24h_usd",
        *([] if pair.indexed_at else ["pair_created_at"]),
        "txns24h",
        *(["fdv_usd", "market_cap_usd"] if is_base else []),
    ]
    missing = [to_camel_case(name) for name in expected if getattr(snapshot, name) is None]
    if missing:
        yield f"the source gives no {', '.join(missing)} for this pair"


def _list_unread_fee(snapshot: PoolSnapshot, confirmation: PairConfirmation) -> Iterable[str]:
    """Yield a warning if no source told the pool's fee, and the chain did not although it knows the pool."""
    if snapshot.fee_percent is None and confirmation.pair is not None and confirmation.is_fee_unread:
        yield f"feePercent is not known: the fee of the pool {confirmation.pair.address} could not be read"


def _list_quote_gaps(pair: Pair, *, is_base: bool) -> Iterable[str]:
    """Yield a warning about the figures that a quote token lacks; the chain has none of them at all."""
    if not is_base and pair.source != "rpc":
        yield (
            "the priced token is the pair's quote token, for which fdvUsd, marketCapUsd and "
            "windows.priceChangePercent are not known"
        )


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
