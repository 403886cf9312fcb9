"""Choose the pair that represents a token, and list warnings about a pair. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from centgate.crypto.token.pairs import Pair

MIN_LIQUIDITY_USD = 1_000
"""Liquidity in US dollars below which a price is not reliable."""
MAX_PRICE_FACTOR = 2.0
"""Prices of one token that differ by more than this factor cannot both be right."""
MAX_PRICE_SPREAD = 0.10
"""Share by which prices of deep pairs may differ; arbitrage closes larger gaps."""
VOTING_DEPTH_SHARE = 0.10
"""Share of the deepest pair's depth from which a pair counts for the reference price."""
MAX_VOTERS = 20
"""Most pairs, deepest first, that count for the reference price."""
TIE_DEPTH_SHARE = 0.90
"""Share of the deepest pair's depth from which a pair counts as equally deep."""
EMPTY_SIDE_SHARE = 0.01
"""Share of the liquidity: with less on the smaller side, the liquidity figure is worthless."""
ONE_SIDED_SHARE = 0.05
"""Share of the liquidity: with less on the smaller side, the pair gets a warning."""
DAY = timedelta(days=1)


class PairChoice(Struct, frozen=True):
    """The pair that represents a token, and the pairs it was chosen from."""

    pair: Pair
    considered: int
    """Number of pairs that the source listed."""
    price_outliers: tuple[Pair, ...]
    """Pairs rejected because their price is far from that of the deep pairs."""
    nearly_empty: tuple[Pair, ...]
    """Pairs rejected despite a larger liquidity figure, because one of their sides is almost empty."""
    deep_pairs: tuple[Pair, ...]
    """Pairs deep enough to compare prices with, deepest first."""


def pair_depth(pair: Pair) -> float | None:
    """Return the US dollars that back a pair's price; None if unknown.

    This is the liquidity, unless one side is almost empty. Then most of the figure is worthless tokens, or
    nothing, and only twice the smaller side can be traded.
    """
    return 2 * (pair.lesser_side_usd or 0) if _has_empty_side(pair) else pair.liquidity_usd


def choose_top_pair(pairs: Sequence[Pair], token: str) -> PairChoice:
    """Choose the pair that represents a token from one or more pairs that all contain it, in any order.

    1. Pairs without a price of the token count only when no pair has one.
    2. The deepest pairs vote on the reference price. The weight of a pair is its depth, at most that of the
       second deepest pair. The price with the most weight within a factor of two wins. Pairs further from it
       than that factor are rejected.
    3. Of the others the deepest is chosen. Within a tenth of its depth, a pair with the token as base
       precedes one with the token as quote. Ties go to the higher volume of 24 hours.
    """
    priced = [pair for pair in pairs if pair.price_of(token)] or list(pairs)
    ranked = sorted(priced, key=_sort_key)
    voters = _list_voters(ranked)
    reference = _reference_price(voters, token)
    near = [pair for pair in ranked if not _is_price_far(pair, reference, token)]
    min_depth = TIE_DEPTH_SHARE * (pair_depth(near[0]) or 0)
    rivals = [pair for pair in near if (pair_depth(pair) or 0) >= min_depth]
    chosen = min(rivals, key=lambda pair: (pair.base.address != token, _sort_key(pair)))
    figure = chosen.liquidity_usd or 0
    return PairChoice(
        chosen,
        considered=len(pairs),
        price_outliers=tuple(pair for pair in ranked if _is_price_far(pair, reference, token)),
        nearly_empty=tuple(
            pair for pair in near if _has_empty_side(pair) and (pair.liquidity_usd or 0) > figure
        ),
        deep_pairs=tuple(voters),
    )


def describe_choice(choice: PairChoice) -> str:
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


def list_pair_warnings(pair: Pair, now: datetime | None = None) -> Iterable[str]:
    """Yield one sentence for each reason to doubt a pair's figures."""
    liquidity, lesser = pair.liquidity_usd, pair.lesser_side_usd
    if liquidity is None:
        yield "no figure is given for the pair's liquidity, so its price may move with any trade"
    elif liquidity < MIN_LIQUIDITY_USD:
        yield f"the pair holds only ${liquidity:,.2f}, so a small trade moves its price"
    if liquidity and lesser is not None and lesser < ONE_SIDED_SHARE * liquidity:
        yield (
            f"the pair is one-sided: of its ${liquidity:,.0f} one side holds only ${lesser:,.2f}, so trades "
            "in one direction move its price far"
        )
    if pair.created_at and (age := (now or datetime.now(UTC)) - pair.created_at) < 7 * DAY:
        yield f"the pair is {'less than 24 hours' if age < DAY else 'less than 7 days'} old"


def describe_price_spread(choice: PairChoice, token: str) -> str | None:
    """Return a warning if the prices in the deep pairs differ by more than a tenth, else None."""
    prices = [price for pair in (choice.pair, *choice.deep_pairs) if (price := pair.price_of(token))]
    if not prices or max(prices) <= (1 + MAX_PRICE_SPREAD) * min(prices):
        return None
    return (
        f"prices of the token's deepest pairs differ by more than {MAX_PRICE_SPREAD:.0%}: "
        f"from ${min(prices):.6g} to ${max(prices):.6g}"
    )


def _has_empty_side(pair: Pair) -> bool:
    liquidity, lesser = pair.liquidity_usd, pair.lesser_side_usd
    return bool(liquidity) and lesser is not None and lesser < EMPTY_SIDE_SHARE * liquidity


def _sort_key(pair: Pair) -> tuple[float | str, ...]:
    """Sort key: deepest first, then by volume; the rest makes the order independent of the source's."""
    figures = (pair_depth(pair), pair.volume24h_usd, pair.price_usd, pair.quote_price_usd, pair.liquidity_usd)
    return (*(-(figure or 0) for figure in figures), pair.address)


def _list_voters(ranked: Sequence[Pair]) -> list[Pair]:
    min_depth = VOTING_DEPTH_SHARE * (pair_depth(ranked[0]) or 0)
    return [pair for pair in ranked[:MAX_VOTERS] if (value := pair_depth(pair)) and value >= min_depth]


def _reference_price(voters: Sequence[Pair], token: str) -> float | None:
    """Return the price that most of the depth supports; None without a voting pair."""
    if not voters:
        return None
    max_weight = pair_depth(voters[min(1, len(voters) - 1)]) or 0
    weights = [min(pair_depth(pair) or 0, max_weight) for pair in voters]

    def support(candidate: Pair) -> float:
        price = candidate.price_of(token)
        return sum(
            weight
            for pair, weight in zip(voters, weights, strict=True)
            if not _is_price_far(pair, price, token)
        )

    return max(voters, key=support).price_of(token)  # of equals, the deepest


def _is_price_far(pair: Pair, reference: float | None, token: str) -> bool:
    price = pair.price_of(token)
    if not reference or not price:
        return False
    return max(price, reference) > MAX_PRICE_FACTOR * min(price, reference)
