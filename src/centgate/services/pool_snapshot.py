"""pool-snapshot: what a token or a pair trades at, and how deep its pool is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, cast

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from centgate.chains import Address, OnNamedChain
from centgate.errors import Issue, NoData, ProviderFailure
from centgate.facts.pairs import Pair, Side
from centgate.provider import Fallback, Primary, Record
from centgate.providers.dexscreener import DexScreener
from centgate.providers.geckoterminal import GeckoTerminal
from centgate.schema import Data, Omittable, camel
from centgate.service import service
from centgate.sources import attempt, first_at_once, first_of
from centgate.text import timestamp
from centgate.verdicts.top_pair import Choice, disagreement, suspicions, top_pair

Source = DexScreener | GeckoTerminal
BASE_PRICED = "priceUsd is its base token's."
QUOTE_PRICED = "priceUsd is its quote token's, so fdvUsd does not apply."


class PoolSnapshotRequest(OnNamedChain):
    """A token, or one of its pairs, on a chain."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                cast(JsonDict, OnNamedChain.model_config.get("json_schema_extra")),
                {"oneOf": [{"required": ["tokenAddress"]}, {"required": ["pairAddress"]}]},
            ]
        }
    )

    token_address: Omittable[Address] = Field(
        default=None, description="A token, to be answered with its deepest pair; not with `pairAddress`."
    )
    pair_address: Omittable[Address] = Field(
        default=None, description="A pair's own contract; not with `tokenAddress`."
    )

    @classmethod
    def rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """The chain's rules, and one of token and pair but not both."""
        yield from super().rules(body, context)
        if ("tokenAddress" in body) == ("pairAddress" in body):
            yield Issue("", "exactly one of tokenAddress or pairAddress is required")


class TradeCounts(Data):
    """Trades of the last 24 hours."""

    buys: int
    sells: int


class PoolSnapshot(Data):
    """A pair as it stands now."""

    pair_address: str = Field(
        description="Lower case; a 32-byte pool id on exchanges whose pools have no contract of their own."
    )
    price_usd: float | None = Field(
        description="US dollars for one unit of the token asked about; of the pair's base token for a pair."
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
    tags=("token", "price", "liquidity", "dex", "evm"),
    guardrails=(
        "One token or one pair per request.",
        "A token is answered with its deepest pair by liquidity on the chain asked about.",
        "Prices are those of one pair at one moment; no average over exchanges is made.",
        "A figure that the source does not give is null, never 0.",
        "Read-only: nothing is signed or sent.",
    ),
    fresh_for=timedelta(minutes=1),
    example=PoolSnapshotRequest(chain="base", token_address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"),
    sample=PoolSnapshot(
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
    """Price, liquidity, volume and age of a token's deepest pair, or of a given pair.

    Reads one pair of a decentralised exchange: its price in US dollars, how much is in the pool, what was
    traded in the last 24 hours and since when it exists. A second source stands in when the first does not
    answer.
    """
    if request.pair_address:
        return await _of_pair(request.on, request.pair_address, dexscreener, geckoterminal)
    return await _of_token(request.on, request.token_address or "", dexscreener, geckoterminal)


async def _of_token(chain_id: int, token: str, first: Source, second: Source) -> PoolSnapshot:
    """The snapshot of a token; of a pair where a pair's address was sent as a token."""
    record = first.record
    try:
        pairs = await _pairs(chain_id, token, first, second)
    except NoData as nothing:
        raise NoData(f"{nothing.message}, nor a pair at that address; is it on another chain?") from None
    if not pairs[0].has(token):
        record.warn(f"{token} is no token with pairs but a pair, and answered as such (pairAddress)")
        return _snapshot(
            pairs[0], pairs[0].base, 1, "The pair at the address that was sent as a token", record
        )
    choice = top_pair(pairs, token)
    if sentence := disagreement(choice, token):
        record.warn(sentence)
    priced = choice.pair.base if token == choice.pair.base.address else choice.pair.quote
    return _snapshot(choice.pair, priced, choice.considered, _why(choice), record)


async def _of_pair(chain_id: int, address: str, *sources: Source) -> PoolSnapshot:
    """The snapshot of a pair, priced in its base token."""
    try:
        pair = await first_of(*(source.pair for source in sources))(chain_id, address)
    except NoData as nothing:
        raise NoData(f"{nothing.message}; if it is a token, send it as tokenAddress") from None
    return _snapshot(pair, pair.base, 1, "The pair asked for", sources[0].record)


async def _pairs(chain_id: int, token: str, first: Source, second: Source) -> list[Pair]:
    """A token's pairs; where none are known, the pair at that address, since callers mix them up.

    A known token costs one question. What the first source does not know is asked of all else at once, lest
    slow sources add up. While it fails, the second, which may be asked far less often, is asked in turn.
    """
    known = await attempt(first.pairs, chain_id, token)
    if isinstance(known, list):
        return known
    others, other = partial(second.pairs, chain_id, token), partial(_lone, second, chain_id, token)
    if isinstance(known, NoData):
        rest = first_at_once(partial(_lone, first, chain_id, token), others, other)
    else:
        rest = first_of(others, other)
    return await first_of(partial(_missed, known), rest)()


async def _missed(why: NoData | ProviderFailure) -> list[Pair]:
    """The first source's word once more, to be weighed with those of the rest."""
    raise why


async def _lone(source: Source, chain_id: int, address: str) -> list[Pair]:
    """The pair at an address that was sent as a token; whether the token is known is not its to say."""
    pair = await attempt(source.pair, chain_id, address)
    if not isinstance(pair, Pair):
        raise NoData(pair.message)
    return [pair]


def _why(choice: Choice) -> str:
    """Why this pair of all."""
    if choice.considered == 1:
        return "The only pair of the token"
    how = f"The deepest of {choice.considered} pairs by liquidity"
    if choice.pair.liquidity_usd is None:
        how = f"The most traded of {choice.considered} pairs, without a figure for its liquidity"
    if choice.far:
        how += f"; passed over: {len(choice.far)} whose price is far from that of the deep pairs"
    if choice.hollow:
        how += f"; passed over: {len(choice.hollow)} with a larger figure that hides a nearly empty side"
    return how


def _snapshot(pair: Pair, priced: Side, considered: int, why: str, record: Record) -> PoolSnapshot:
    """A pair in the contract's words, priced in one of its two tokens; its doubts go to the warnings."""
    is_base = priced is pair.base
    snapshot = PoolSnapshot(
        pair_address=pair.address,
        price_usd=pair.price_usd if is_base else pair.quote_price_usd,
        liquidity_usd=pair.liquidity_usd,
        volume24h_usd=pair.volume24h_usd,
        fdv_usd=pair.fdv_usd if is_base else None,
        pair_created_at=timestamp(pair.created_at) if pair.created_at else None,
        txns24h=_trades(pair),
        url=pair.url,
    )
    # which pair and why is no field of the contract's `data`, so it stands with the source
    record.note(pair.source, "ok", selection=_selection(pair, considered, why, is_base=is_base))
    for sentence in (*_fallback(pair, record), *_missing(snapshot, is_base=is_base), *suspicions(pair)):
        record.warn(sentence)
    return snapshot


def _selection(pair: Pair, considered: int, why: str, *, is_base: bool) -> dict[str, Any]:
    """Which pair this is, of how many, and whose price is given."""
    whose = "base token's" if is_base else "quote token's, so fdvUsd does not apply"
    return {
        "pairsConsidered": considered,
        "reason": f"{why}. priceUsd is its {whose}.",
        "baseToken": {"address": pair.base.address, "symbol": pair.base.symbol},
        "quoteToken": {"address": pair.quote.address, "symbol": pair.quote.symbol},
        "dex": pair.dex,
    }


def _trades(pair: Pair) -> TradeCounts | None:
    if pair.buys24h is None or pair.sells24h is None:
        return None
    return TradeCounts(buys=pair.buys24h, sells=pair.sells24h)


def _fallback(pair: Pair, record: Record) -> Iterable[str]:
    """What to know of an answer that is not the first source's."""
    if pair.source == GeckoTerminal.about.name:
        first = record.providers.get(DexScreener.about.name, {})
        why = "knows no such pair" if first.get("status") == "no_data" else "gave no answer"
        yield f"{GeckoTerminal.about.label} stands in for {DexScreener.about.label}, which {why}"
        if pair.created_at:
            yield (
                f"pairCreatedAt is {GeckoTerminal.about.label}'s: for an older pair it may be the day "
                "on which the pair was first listed there"
            )


def _missing(snapshot: PoolSnapshot, *, is_base: bool) -> Iterable[str]:
    """The facts that the source did not give; a missing liquidity has a sentence of its own."""
    expected = ["price_usd", "volume24h_usd", "pair_created_at", "txns24h", *(["fdv_usd"] if is_base else [])]
    missing = [camel(name) for name in expected if getattr(snapshot, name) is None]
    if missing:
        yield f"the source gives no {', '.join(missing)} for this pair"
