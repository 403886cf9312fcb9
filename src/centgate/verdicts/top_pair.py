"""Which of a token's pairs stands for it, and what is odd about a pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from centgate.facts.pairs import Pair

SMALL_USD = 1_000
"""Liquidity under which a price says little."""
FAR = 2.0
"""Prices of one token that differ by more than this factor cannot both be right."""
APART = 0.10
"""Share by which prices of deep pairs may differ; arbitrage closes larger gaps."""
DEEP = 0.10
"""Share of the deepest pair's depth from which a pair has a say in what the price is."""
VOICES = 20
"""Pairs, deepest first, that are heard."""
NEAR_TIE = 0.90
"""Share of the deepest pair's depth from which a pair counts as equally deep."""
HOLLOW = 0.01
"""Share of the liquidity under which the lesser side makes the figure worthless."""
ONE_SIDED = 0.05
"""Share of the liquidity under which the lesser side is worth a warning."""
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Choice:
    """The pair that stands for a token, and those it was chosen from."""

    pair: Pair
    considered: int
    """Pairs that the source listed."""
    far: tuple[Pair, ...]
    """Pairs passed over because their price is far from that of the deep ones."""
    hollow: tuple[Pair, ...]
    """Pairs passed over although their liquidity reads larger, since one of their sides is next to empty."""
    deep: tuple[Pair, ...]
    """Pairs deep enough to compare prices with, deepest first."""


def depth(pair: Pair) -> float | None:
    """US dollars that stand behind a pair's price.

    Its liquidity, unless a side is next to empty beside that figure: then a pile of worthless tokens makes it
    up, or nothing does, and what can be traded is twice the lesser side.
    """
    return 2 * (pair.lesser_side_usd or 0) if _is_hollow(pair) else pair.liquidity_usd


def top_pair(pairs: Sequence[Pair], token: str) -> Choice:
    """The pair that stands for a token, of one or more pairs that all have it, in any order.

    1. Pairs without a price of the token count only when no pair has one.
    2. The deepest pairs settle what the price is: each has a voice as large as its depth, but none a larger
       one than the second deepest, and the price with the largest following (within a factor of two) is the
       reference. Pairs further from it than that factor are passed over.
    3. Of the others the deepest is chosen. Within a tenth of its depth, a pair with the token as base goes
       before one with the token as quote. Ties go to the higher volume of 24 hours.
    """
    priced = [pair for pair in pairs if pair.price_of(token)] or list(pairs)
    ranked = sorted(priced, key=_rank)
    voices = _voices(ranked)
    reference = _reference(voices, token)
    near = [pair for pair in ranked if not _far(pair, reference, token)]
    enough = NEAR_TIE * (depth(near[0]) or 0)
    rivals = [pair for pair in near if (depth(pair) or 0) >= enough]
    chosen = min(rivals, key=lambda pair: (pair.base.address != token, _rank(pair)))
    figure = chosen.liquidity_usd or 0
    return Choice(
        chosen,
        considered=len(pairs),
        far=tuple(pair for pair in ranked if _far(pair, reference, token)),
        hollow=tuple(pair for pair in near if _is_hollow(pair) and (pair.liquidity_usd or 0) > figure),
        deep=tuple(voices),
    )


def suspicions(pair: Pair, now: datetime | None = None) -> Iterable[str]:
    """What makes a pair's figures doubtful, a sentence each; nothing for a sound pair."""
    liquidity, lesser = pair.liquidity_usd, pair.lesser_side_usd
    if liquidity is None:
        yield "no figure is given for the pair's liquidity, so its price may move with any trade"
    elif liquidity < SMALL_USD:
        yield f"the pair holds only ${liquidity:,.2f}, so a small trade moves its price"
    if liquidity and lesser is not None and lesser < ONE_SIDED * liquidity:
        yield (
            f"the pair is one-sided: of its ${liquidity:,.0f} one side holds only ${lesser:,.2f}, so trades "
            "in one direction move its price far"
        )
    if pair.created_at and (age := (now or datetime.now(UTC)) - pair.created_at) < 7 * DAY:
        yield f"the pair is {'less than 24 hours' if age < DAY else 'less than 7 days'} old"


def disagreement(choice: Choice, token: str) -> str | None:
    """A sentence where the deep pairs differ in the token's price by more than a tenth."""
    prices = [price for pair in (choice.pair, *choice.deep) if (price := pair.price_of(token))]
    if not prices or max(prices) <= (1 + APART) * min(prices):
        return None
    return (
        f"prices of the token's deepest pairs differ by more than {APART:.0%}: from ${min(prices):.6g} to "
        f"${max(prices):.6g}"
    )


def _is_hollow(pair: Pair) -> bool:
    liquidity, lesser = pair.liquidity_usd, pair.lesser_side_usd
    return bool(liquidity) and lesser is not None and lesser < HOLLOW * liquidity


def _rank(pair: Pair) -> tuple[float | str, ...]:
    """Deepest first, then by volume; the rest only makes the order independent of the source's."""
    figures = (depth(pair), pair.volume24h_usd, pair.price_usd, pair.quote_price_usd, pair.liquidity_usd)
    return (*(-(figure or 0) for figure in figures), pair.address)


def _voices(ranked: Sequence[Pair]) -> list[Pair]:
    least = DEEP * (depth(ranked[0]) or 0)
    return [pair for pair in ranked[:VOICES] if (deep := depth(pair)) and deep >= least]


def _reference(voices: Sequence[Pair], token: str) -> float | None:
    """The price that most of the depth stands behind; None when no pair has a say."""
    if not voices:
        return None
    most = depth(voices[min(1, len(voices) - 1)]) or 0

    weights = [min(depth(pair) or 0, most) for pair in voices]

    def following(voice: Pair) -> float:
        price = voice.price_of(token)
        return sum(
            weight for pair, weight in zip(voices, weights, strict=True) if not _far(pair, price, token)
        )

    return max(voices, key=following).price_of(token)  # of equals, the deepest


def _far(pair: Pair, reference: float | None, token: str) -> bool:
    price = pair.price_of(token)
    if not reference or not price:
        return False
    return max(price, reference) > FAR * min(price, reference)
