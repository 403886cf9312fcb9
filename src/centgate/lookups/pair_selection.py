"""Select the pair that answers for a token or an address: from two exchange indexes, else from the chain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NoReturn, TypeVar

from msgspec import Struct

from centgate.crypto.token.pairs import Pair, PairToken
from centgate.crypto.token.top_pair import choose_top_pair, describe_choice, describe_price_spread
from centgate.errors import NoData, ProviderFailure, ProviderUnconfigured
from centgate.fallback import attempt, first_concurrent, first_of
from centgate.lookups.chain_pools import ChainIndex
from centgate.provider import RequestTrace
from centgate.providers.dexscreener import DexScreener
from centgate.providers.geckoterminal import GeckoTerminal

T = TypeVar("T")


class SelectedPair(Struct, frozen=True):
    """The pair that answers a request, and how it was chosen."""

    pair: Pair
    priced: PairToken
    pairs: Sequence[Pair]
    """All pairs of the token that the source lists."""
    reason: str

    @property
    def is_base_priced(self) -> bool:
        """True if the priced token is the pair's base token."""
        return self.priced is self.pair.base


class PairSources(Struct, frozen=True):
    """Sources of a chain's pairs, in the order in which they are asked."""

    chain_id: int
    first: DexScreener
    second: GeckoTerminal
    chain: ChainIndex

    async def select_token_pair(self, token: str, trace: RequestTrace) -> SelectedPair:
        """Select the pair of a token, or the pair whose address was sent as a token."""
        try:
            pairs = await self._find_pairs(token)
        except NoData as no_data:
            raise NoData(
                f"{no_data.message}, nor a pair at that address; it may be on another chain"
            ) from None
        if not pairs[0].has_token(token):
            trace.add_warning(
                f"{token} is not a token with pairs but a pair, and was answered as pairAddress"
            )
            return SelectedPair(
                pairs[0], pairs[0].base, pairs[:1], "The pair at the address that was sent as a token"
            )
        choice = choose_top_pair(pairs, token)
        if warning := describe_price_spread(choice, token):
            trace.add_warning(warning)
        priced = choice.pair.base if token == choice.pair.base.address else choice.pair.quote
        return SelectedPair(choice.pair, priced, pairs, describe_choice(choice))

    async def select_pair(self, address: str) -> SelectedPair:
        """Select the pair at an address; its base token is priced."""
        first, second, chain = (
            partial(source.pair, self.chain_id, address) for source in (self.first, self.second, self.chain)
        )
        try:
            pair = await _query_chain_last(first_of(first, second), chain)
        except NoData as no_data:
            raise NoData(f"{no_data.message}; if it is a token, send it as tokenAddress") from None
        return SelectedPair(pair, pair.base, [pair], "The requested pair")

    async def _find_pairs(self, token: str) -> list[Pair]:
        """Return a token's pairs, else the pair at that address, since callers mix them up.

        A known token costs one call. For a token that the first source does not know, all other calls run
        concurrently, so that slow sources do not add up. While it fails, the second source, which has a far
        lower rate limit, is called sequentially. The chain comes last.
        """
        result = await attempt(self.first.pairs, self.chain_id, token)
        if isinstance(result, list):
            return result
        second_pairs, second_pair = self._list_queries(self.second, token)
        if isinstance(result, NoData):
            _, first_pair = self._list_queries(self.first, token)
            rest = first_concurrent(first_pair, second_pairs, second_pair)
        else:
            rest = first_of(second_pairs, second_pair)
        return await _query_chain_last(
            first_of(partial(_raise_again, result), rest), *self._list_queries(self.chain, token)
        )

    def _list_queries(
        self, source: DexScreener | GeckoTerminal | ChainIndex, address: str
    ) -> tuple[Callable[[], Awaitable[list[Pair]]], Callable[[], Awaitable[list[Pair]]]]:
        """Return the queries for a token's pairs, and for the pair at that address."""
        return (
            partial(source.pairs, self.chain_id, address),
            partial(_find_single_pair, source, self.chain_id, address),
        )


async def _query_chain_last(
    query_indexes: Callable[[], Awaitable[T]], *query_chain: Callable[[], Awaitable[T]]
) -> T:
    """Return what the exchange indexes list, else what the chain shows.

    If the indexes have no data and the node fails, the result is still "no pair": the indexes have answered,
    and the chain only shows the pools of a few exchanges. If an index failed, the chain's failure counts as
    well.
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


async def _find_single_pair(
    source: DexScreener | GeckoTerminal | ChainIndex, chain_id: int, address: str
) -> list[Pair]:
    """Return the pair at an address that was sent as a token. A failure becomes NoData without a source.

    A source that was not asked knows nothing about the token: that it is left out is no answer.
    """
    pair = await attempt(source.pair, chain_id, address)
    if isinstance(pair, ProviderUnconfigured):
        raise pair
    if not isinstance(pair, Pair):
        raise NoData(pair.message)
    return [pair]
