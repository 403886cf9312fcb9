"""Who is asked about a wallet: the best source there is, and the next one when it fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar, cast

from centgate.chains import CHAIN_BY_ID
from centgate.errors import NoData, ProviderFailure, ProviderUnconfigured
from centgate.facts.known_tokens import NATIVE_AS_TOKEN, known_token
from centgate.facts.wallets import Coin, Holding, Movement, Price, Token, WalletSource, newest_first
from centgate.inquiries.wallet_on_chain import WalletOnChain
from centgate.provider import Provider
from centgate.providers.alchemy import Alchemy
from centgate.providers.blockscout import Blockscout
from centgate.providers.defillama import DefiLlama
from centgate.providers.rpc import Rpc
from centgate.readings import MOST_UNITS
from centgate.sources import attempt, together
from centgate.verdicts.valuation import ranked, valued

NATIVE = "0x0000000000000000000000000000000000000000"
"""The chain's own coin, where prices are asked for."""
PRICED = 99
"""Tokens whose price is asked for, in one call with that of the chain's own coin."""
UNNAMED = 30
"""Tokens whose metadata is asked for."""
RECENT = 10
"""Transfers in an answer."""

T = TypeVar("T")
Asking = tuple[Provider, Callable[[], Awaitable[T]]]
"""A question to one provider, not yet asked."""
Naming = Callable[[Sequence[str]], Awaitable[dict[str, Token]]]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was told of a wallet, and by whom."""

    chain_id: int
    wallet: str
    coin: Coin
    coin_source: WalletSource | None
    holdings: list[Holding]
    holdings_source: WalletSource
    movements: list[Movement]
    """The latest first."""
    movements_source: WalletSource


class WalletSources:
    """The sources that can be asked about one wallet."""

    def __init__(
        self, chain_id: int, wallet: str, alchemy: Alchemy, blockscout: Blockscout, rpc: Rpc
    ) -> None:
        self._chain_id, self._wallet = chain_id, wallet
        self._alchemy, self._blockscout, self._rpc = alchemy, blockscout, rpc
        self._on_chain = WalletOnChain(rpc, chain_id, wallet)
        self._record = rpc.record

    async def seen(self) -> Seen:
        """Balance, tokens and transfers, each from the first source that tells it.

        Raises the first source's failure when none tells the balance or the tokens. Without transfers there
        is an answer, with a warning, and so there is where the sources answer that they know no balance.
        """
        async with together() as group:
            coin = group.create_task(self._coin())
            held = group.create_task(self._first("token balances are", self._for_holdings()))
            moved = group.create_task(attempt(self._first, "transfers are", self._for_movements()))
        movements = moved.result()
        if isinstance(movements, NoData | ProviderFailure):
            self._record.warn("recent transfers are not known, since no source told them")
            movements = (list[Movement](), held.result()[1])
        return _joined(self._chain_id, self._wallet, coin.result(), held.result(), movements)

    async def _coin(self) -> tuple[Coin, WalletSource | None]:
        try:
            return await self._first("the native balance is", self._for_coin())
        except NoData:
            self._record.warn("the native balance is not known, since no source told it")
            return Coin(None), None

    async def completed(self, seen: Seen, prices: Mapping[str, Price]) -> Seen:
        """With symbols, names and decimals of the tokens that matter; warns of tokens nobody looked at."""
        in_order = ranked(valued(each, prices.get(each.token.address)) for each in seen.holdings)
        # whoever has a price is worth a look even where its decimals, and so its worth, are not known yet
        in_order.sort(key=lambda each: each.holding.token.address not in prices)
        unnamed = [each.holding.token.address for each in in_order if _unnamed(each.holding.token)]
        naming = self._naming(seen.holdings_source)
        if naming is None:
            unnamed = []
        names = await self._named(naming, unnamed[:UNNAMED])
        moved = [
            each.token.address for each in seen.movements[:RECENT] if each.token and _unnamed(each.token)
        ]
        unknown = [token for token in dict.fromkeys(moved) if token not in names]
        names |= await self._named(self._naming(seen.movements_source), unknown)
        if left := set(unnamed[UNNAMED:]) - names.keys():
            self._record.warn(f"{len(left)} further tokens of the wallet were not looked at")
        holdings = [each.holding for each in in_order if each.holding.token.address not in left]
        complete = replace(
            seen,
            holdings=[
                replace(each, token=each.token.completed(names.get(each.token.address))) for each in holdings
            ],
            movements=[_with_names(each, names) for each in seen.movements],
        )
        self._tell_nameless(complete)
        return complete

    def _tell_nameless(self, seen: Seen) -> None:
        """Warn of tokens that the checks on names were not made of."""
        tokens = [
            *(each.token for each in seen.holdings),
            *(each.token for each in seen.movements[:RECENT] if each.token),
        ]
        if nameless := {token.address for token in tokens if _unnamed(token)}:
            self._record.warn(
                f"neither name nor symbol is known of {len(nameless)} tokens, so these were not checked for "
                "bait, links and imitation"
            )

    async def _named(self, naming: Naming | None, tokens: Sequence[str]) -> dict[str, Token]:
        names = await attempt(naming, tokens) if naming and tokens else {}
        return names if isinstance(names, dict) else {}

    def _naming(self, source: WalletSource) -> Naming | None:
        """Who tells the names of tokens that a source gives by address alone."""
        if source == "alchemy":
            return partial(self._alchemy.tokens, self._chain_id)
        return self._on_chain.tokens if source == "rpc" else None

    def _for_coin(self) -> list[Asking[Coin]]:
        # an explorer's balance can lag behind the chain
        return [
            (self._alchemy, partial(_coin, self._alchemy, self._chain_id, self._wallet)),
            (self._rpc, partial(_coin, self._rpc, self._chain_id, self._wallet)),
            (self._blockscout, partial(self._blockscout.coin, self._chain_id, self._wallet)),
        ]

    def _for_holdings(self) -> list[Asking[list[Holding]]]:
        return [
            (self._alchemy, partial(self._alchemy.holdings, self._chain_id, self._wallet)),
            (self._blockscout, partial(self._blockscout.holdings, self._chain_id, self._wallet)),
            (self._rpc, self._on_chain.holdings),
        ]

    def _for_movements(self) -> list[Asking[list[Movement]]]:
        return [
            (self._alchemy, partial(self._alchemy.movements, self._chain_id, self._wallet)),
            (self._blockscout, partial(self._blockscout.movements, self._chain_id, self._wallet)),
            (self._rpc, self._on_chain.movements),
        ]

    async def _first(self, what: str, askings: Sequence[Asking[T]]) -> tuple[T, WalletSource]:
        """The answer of the first that answers, and its name; handing over is a degradation to be told."""
        missing: list[NoData | ProviderFailure] = []
        for provider, ask in askings:
            if not (provider.configured and provider.covers(self._chain_id)):
                continue
            answer = await attempt(ask)
            if isinstance(answer, NoData | ProviderFailure):
                missing.append(answer)
                continue
            if missing:
                self._record.warn(f"{what} from {provider.about.label}, since a better source failed")
            return answer, cast(WalletSource, provider.about.name)
        raise (
            missing[0] if missing else ProviderUnconfigured("alchemy", f"nobody knows chain {self._chain_id}")
        )


async def priced(seen: Seen, defillama: DefiLlama) -> Mapping[str, Price]:
    """Prices of the chain's own coin (as the zero address), of tokens held and of tokens moved."""
    if seen.chain_id not in CHAIN_BY_ID:
        defillama.record.warn("there are no prices on a development chain")
        return {}
    if not defillama.configured:
        defillama.record.warn(
            f"{defillama.about.label} is not set up on this deployment, so prices are missing"
        )
        return {}
    moved = [each.token.address for each in seen.movements[:RECENT] if each.token]
    held = [each.token.address for each in seen.holdings]
    known = [token for token in held if known_token(seen.chain_id, token)]
    tokens = [token for token in dict.fromkeys([*known, *moved, *held]) if token not in NATIVE_AS_TOKEN]
    prices = await attempt(defillama.prices, seen.chain_id, [NATIVE, *tokens[:PRICED]])
    if not isinstance(prices, dict):
        return {}
    if len(tokens) > PRICED:
        defillama.record.warn(f"the prices of {len(tokens) - PRICED} tokens were not asked for")
    if NATIVE not in prices and seen.coin.price_usd is None:
        defillama.record.warn("no price is known of the chain's own coin, so what it is worth is not either")
    return prices


async def _coin(provider: Alchemy | Rpc, chain_id: int, wallet: str) -> Coin:
    amount = await provider.native_balance(chain_id, wallet)
    if not 0 <= amount <= MOST_UNITS:
        raise provider.failed("answered with a balance that no chain has")
    return Coin(amount)


def _joined(
    chain_id: int,
    wallet: str,
    coin: tuple[Coin, WalletSource | None],
    held: tuple[list[Holding], WalletSource],
    moved: tuple[list[Movement], WalletSource],
) -> Seen:
    """All of it together, with what is known of well-known tokens, and of those held, filled in."""
    by_token = {
        each.token.address: replace(each, token=each.token.completed(_known(chain_id, each.token.address)))
        for each in held[0]
        if each.token.address not in NATIVE_AS_TOKEN
    }
    holdings = [*by_token.values()]
    names = {each.token.address: each.token for each in holdings}
    names |= {
        token: known
        for each in moved[0]
        if each.token and (known := _known(chain_id, token := each.token.address))
    }
    movements = [_with_names(each, names) for each in newest_first(moved[0])]
    return Seen(chain_id, wallet, *coin, holdings, held[1], movements, moved[1])


def _with_names(movement: Movement, names: Mapping[str, Token]) -> Movement:
    token = movement.token
    return replace(movement, token=token.completed(names.get(token.address))) if token else movement


def _known(chain_id: int, address: str) -> Token | None:
    known = known_token(chain_id, address)
    return Token(address, known.symbol, known.name, known.decimals) if known else None


def _unnamed(token: Token) -> bool:
    return token.symbol is None and token.name is None
