"""Query the sources of a wallet's data in order: the best first, the next when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from centgate.crypto.wallet.known_tokens import NATIVE_COIN_ADDRESSES, find_known_token
from centgate.crypto.wallet.valuation import rank_holdings, value_holding
from centgate.crypto.wallet.wallets import (
    Holding,
    NativeCoin,
    Price,
    Token,
    Transfer,
    WalletSource,
    sort_newest_first,
)
from centgate.errors import NoData, ProviderFailure, ProviderUnconfigured
from centgate.fallback import attempt, open_task_group
from centgate.lookups.token_prices import NATIVE_COIN, fetch_token_prices
from centgate.lookups.wallet_on_chain import OnchainWallet
from centgate.provider import Provider, RequestTrace
from centgate.providers.alchemy import Alchemy
from centgate.providers.blockscout import Blockscout
from centgate.providers.defillama import DefiLlama
from centgate.providers.rpc import Rpc

MAX_METADATA_TOKENS = 30
"""Tokens whose metadata is queried."""
MAX_RECENT_TRANSFERS = 10
"""Transfers in a response."""
T = TypeVar("T")
SourceQuery = tuple[Provider, Callable[[], Awaitable[T]]]
"""A provider and a query to it that has not been sent."""
MetadataSource = Callable[[Sequence[str]], Awaitable[dict[str, Token]]]


class WalletSnapshot(Struct, frozen=True):
    """Balance, holdings and transfers of a wallet, with their sources."""

    chain_id: int
    wallet: str
    coin: NativeCoin
    coin_source: WalletSource | None
    holdings: list[Holding]
    holdings_source: WalletSource
    transfers: list[Transfer]
    """The latest first."""
    transfers_source: WalletSource


class WalletSources:
    """Sources that can be queried about one wallet."""

    def __init__(
        self, chain_id: int, wallet: str, alchemy: Alchemy, blockscout: Blockscout, rpc: Rpc
    ) -> None:
        self._chain_id, self._wallet = chain_id, wallet
        self._alchemy, self._blockscout, self._rpc = alchemy, blockscout, rpc
        self._on_chain = OnchainWallet(rpc, chain_id, wallet)
        self._trace = rpc.trace

    async def fetch_snapshot(self) -> WalletSnapshot:
        """Return balance, tokens and transfers, each from the first source that has them.

        Raises the first source's failure if none returns the balance or the tokens. Missing transfers are
        only warned of, and so is a balance that the sources report as unknown.
        """
        async with open_task_group() as group:
            coin_task = group.create_task(self._fetch_native_balance())
            holdings_task = group.create_task(
                self._first_answer("token balances are", self._holdings_queries())
            )
            transfers_task = group.create_task(
                attempt(self._first_answer, "transfers are", self._transfer_queries())
            )
        movements = transfers_task.result()
        if isinstance(movements, NoData | ProviderFailure):
            self._trace.add_warning("recent transfers are unknown: no source returned them")
            movements = (list[Transfer](), holdings_task.result()[1])
        return _build_snapshot(
            self._chain_id, self._wallet, coin_task.result(), holdings_task.result(), movements
        )

    async def _fetch_native_balance(self) -> tuple[NativeCoin, WalletSource | None]:
        try:
            return await self._first_answer("the native balance is", self._balance_queries())
        except NoData:
            self._trace.add_warning("the native balance is unknown: no source returned it")
            return NativeCoin(None), None

    async def fetch_first_funding(self, *, max_wait: float) -> tuple[Transfer, WalletSource] | None:
        """Return the first transfer of native coins to the wallet with its source, or None without any.

        None, with a warning, also if no source tells it within `max_wait` seconds. Nothing is raised, and a
        failure leaves the status of the source that gives the rest of the answer as it is.
        """
        own = RequestTrace(self._trace.until)
        try:
            async with asyncio.timeout(max_wait):
                transfer, source = await self._first_answer(
                    "the first funding is", self._funding_queries(own)
                )
        except ProviderUnconfigured:
            reason = "neither Alchemy nor Blockscout is configured for the chain"
        except (NoData, ProviderFailure):
            reason = "no source returned it"
        except TimeoutError:
            reason = f"no source answered within {max_wait:g} s"
        else:
            self._trace.record(source, "ok", fetchedAt=own.providers[source]["fetchedAt"])
            return (transfer, source) if transfer else None
        self._trace.add_warning(f"the first funding of the wallet is unknown: {reason}")
        return None

    async def add_metadata(self, snapshot: WalletSnapshot, prices: Mapping[str, Price]) -> WalletSnapshot:
        """Add symbols, names and decimals of the relevant tokens; warn of tokens that were skipped."""
        in_order = rank_holdings(
            value_holding(each, prices.get(each.token.address)) for each in snapshot.holdings
        )
        # tokens with a price come first even if their decimals, and so their value, are not known yet
        in_order.sort(key=lambda each: each.holding.token.address not in prices)
        unnamed = [each.holding.token.address for each in in_order if _is_unnamed(each.holding.token)]
        source = self._metadata_source(snapshot.holdings_source)
        if source is None:
            unnamed = []
        metadata = await self._fetch_metadata(source, unnamed[:MAX_METADATA_TOKENS])
        moved_tokens = [
            each.token.address
            for each in snapshot.transfers[:MAX_RECENT_TRANSFERS]
            if each.token and _is_unnamed(each.token)
        ]
        missing = [token for token in dict.fromkeys(moved_tokens) if token not in metadata]
        metadata |= await self._fetch_metadata(self._metadata_source(snapshot.transfers_source), missing)
        if skipped := set(unnamed[MAX_METADATA_TOKENS:]) - metadata.keys():
            self._trace.add_warning(f"{len(skipped)} further tokens of the wallet were not checked")
        holdings = [each.holding for each in in_order if each.holding.token.address not in skipped]
        complete = replace(
            snapshot,
            holdings=[
                replace(each, token=each.token.fill_missing(metadata.get(each.token.address)))
                for each in holdings
            ],
            transfers=[_with_metadata(each, metadata) for each in snapshot.transfers],
        )
        self._warn_unnamed(complete)
        return complete

    def _warn_unnamed(self, snapshot: WalletSnapshot) -> None:
        """Warn of tokens whose names could not be checked."""
        tokens = [
            *(each.token for each in snapshot.holdings),
            *(each.token for each in snapshot.transfers[:MAX_RECENT_TRANSFERS] if each.token),
        ]
        if unnamed := {token.address for token in tokens if _is_unnamed(token)}:
            self._trace.add_warning(
                f"{len(unnamed)} tokens have neither a known name nor a symbol, so these were not checked "
                "for bait, links and imitation"
            )

    async def _fetch_metadata(self, source: MetadataSource | None, tokens: Sequence[str]) -> dict[str, Token]:
        metadata = await attempt(source, tokens) if source and tokens else {}
        return metadata if isinstance(metadata, dict) else {}

    def _metadata_source(self, source: WalletSource) -> MetadataSource | None:
        """Return the metadata query for tokens that a source lists by address alone, or None."""
        if source == "alchemy":
            return partial(self._alchemy.token_metadata, self._chain_id)
        return self._on_chain.token_metadata if source == "rpc" else None

    def _balance_queries(self) -> list[SourceQuery[NativeCoin]]:
        # an explorer's balance can lag behind the chain
        return [
            (self._alchemy, partial(_fetch_native_balance, self._alchemy, self._chain_id, self._wallet)),
            (self._rpc, partial(_fetch_native_balance, self._rpc, self._chain_id, self._wallet)),
            (self._blockscout, partial(self._blockscout.native_coin, self._chain_id, self._wallet)),
        ]

    def _holdings_queries(self) -> list[SourceQuery[list[Holding]]]:
        return [
            (self._alchemy, partial(self._alchemy.holdings, self._chain_id, self._wallet)),
            (self._blockscout, partial(self._blockscout.holdings, self._chain_id, self._wallet)),
            (self._rpc, self._on_chain.holdings),
        ]

    def _transfer_queries(self) -> list[SourceQuery[list[Transfer]]]:
        return [
            (self._alchemy, partial(self._alchemy.transfers, self._chain_id, self._wallet)),
            (self._blockscout, partial(self._blockscout.transfers, self._chain_id, self._wallet)),
            (self._rpc, self._on_chain.transfers),
        ]

    def _funding_queries(self, trace: RequestTrace) -> list[SourceQuery[Transfer | None]]:
        # a node would have to be asked for block after block
        sources = self._alchemy.bind(trace), self._blockscout.bind(trace)
        return [(each, partial(each.first_funding, self._chain_id, self._wallet)) for each in sources]

    async def _first_answer(self, subject: str, queries: Sequence[SourceQuery[T]]) -> tuple[T, WalletSource]:
        """Return the first answer and its source's name; warn if an earlier source failed."""
        failures: list[NoData | ProviderFailure] = []
        for provider, ask in queries:
            if not provider.is_available(self._chain_id):
                continue
            answer = await attempt(ask)
            if isinstance(answer, NoData | ProviderFailure):
                failures.append(answer)
                continue
            if failures:
                self._trace.add_warning(f"a fallback source was used: {subject} from {provider.info.label}")
            return answer, cast(WalletSource, provider.info.name)
        raise (
            failures[0]
            if failures
            else ProviderUnconfigured("alchemy", f"no source covers chain {self._chain_id}")
        )


async def fetch_prices(snapshot: WalletSnapshot, defillama: DefiLlama) -> Mapping[str, Price] | None:
    """Fetch prices of the native coin (as the zero address), of tokens held and of tokens moved.

    None without an answer of DefiLlama.
    """
    moved_tokens = [each.token.address for each in snapshot.transfers[:MAX_RECENT_TRANSFERS] if each.token]
    held_tokens = [each.token.address for each in snapshot.holdings]
    known_tokens = [token for token in held_tokens if find_known_token(snapshot.chain_id, token)]
    tokens = [
        token
        for token in dict.fromkeys([*known_tokens, *moved_tokens, *held_tokens])
        if token not in NATIVE_COIN_ADDRESSES
    ]
    prices = await fetch_token_prices(defillama, snapshot.chain_id, [NATIVE_COIN, *tokens])
    if prices is not None and NATIVE_COIN not in prices and snapshot.coin.price_usd is None:
        defillama.trace.add_warning(
            "the price of the native coin is unknown, and so is the value of the native balance"
        )
    return prices


async def _fetch_native_balance(provider: Alchemy | Rpc, chain_id: int, wallet: str) -> NativeCoin:
    return NativeCoin(await provider.native_balance(chain_id, wallet))


def _build_snapshot(
    chain_id: int,
    wallet: str,
    coin: tuple[NativeCoin, WalletSource | None],
    held: tuple[list[Holding], WalletSource],
    moved: tuple[list[Transfer], WalletSource],
) -> WalletSnapshot:
    """Combine the results, with metadata of well-known tokens and of those held filled in."""
    by_token = {
        each.token.address: replace(
            each, token=each.token.fill_missing(_lookup_metadata(chain_id, each.token.address))
        )
        for each in held[0]
        if each.token.address not in NATIVE_COIN_ADDRESSES
    }
    holdings = [*by_token.values()]
    metadata = {each.token.address: each.token for each in holdings}
    metadata |= {
        token: known
        for each in moved[0]
        if each.token and (known := _lookup_metadata(chain_id, token := each.token.address))
    }
    movements = [_with_metadata(each, metadata) for each in sort_newest_first(moved[0])]
    return WalletSnapshot(chain_id, wallet, *coin, holdings, held[1], movements, moved[1])


def _with_metadata(movement: Transfer, metadata: Mapping[str, Token]) -> Transfer:
    token = movement.token
    return replace(movement, token=token.fill_missing(metadata.get(token.address))) if token else movement


def _lookup_metadata(chain_id: int, address: str) -> Token | None:
    known = find_known_token(chain_id, address)
    return Token(address, known.symbol, known.name, known.decimals) if known else None


def _is_unnamed(token: Token) -> bool:
    return token.symbol is None and token.name is None
