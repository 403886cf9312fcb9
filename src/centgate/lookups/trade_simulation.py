"""Simulate buying and selling a token on the chain's own pools, by calls to a node that change nothing.

There are at most three rounds of requests. The first reads the features of the node, the price of gas and the
latest block, unless the caller has them already. The second simulates trades of new accounts, and reads where
the token keeps allowances and, if no holder is known, the pool's recent buyers. The third simulates sales of
holders, and a trade as a wallet makes it. More follow if a node refuses the transactions, a new account or
the wallet cannot sell, or holders cannot send or have no tokens left.

A token may let simulated trades pass and refuse others. So a simulated transaction looks like one of a
wallet. Its sender is an account without code or history that pays for its gas, and has another address each
time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from centgate.crypto.token.pools import PoolKey
from centgate.crypto.token.security import Simulation
from centgate.crypto.token.token_rule import SALE_SUBJECT
from centgate.crypto.token.trade_probes import TradeProbes
from centgate.crypto.token.trade_records import HolderProbe, PurchaseProbe
from centgate.crypto.token.trade_result import summarise_trades
from centgate.crypto.token.trade_verdict import NO_FEATURES, NOT_RUN
from centgate.errors import NoData, ProviderFailure
from centgate.fallback import attempt
from centgate.lookups.account_trades import AccountTrader, NewAccountTrades
from centgate.lookups.holder_sales import HolderSeller
from centgate.lookups.pool_buyers import choose_buyers, find_purchases
from centgate.lookups.trade_calls import TokenMarket
from centgate.providers.jsonrpc.client import CallFeatures
from centgate.providers.rpc import Rpc

MAX_POOLS = 3
"""Pools in which new accounts trade, the deepest first; one of Uniswap v4 is among them if there is any."""
MAX_GAS_PRICE = 10_000 * 10**9
"""Wei; a higher answer of a node is cut to it."""


class NodeState(Struct, frozen=True):
    """What a simulation has to know of the node and its chain."""

    features: CallFeatures
    height: int | None
    """Number of the latest block; None if it is not known."""
    gas_price: int
    """In wei; 0 if the node does not tell one."""


async def read_node_state(rpc: Rpc, chain_id: int) -> NodeState:
    """Read the state in one round. Raises ProviderFailure if no node answers."""
    features, block, price = await asyncio.gather(
        rpc.call_features(chain_id),
        attempt(rpc.latest_block, chain_id),
        attempt(rpc.gas_price, chain_id),
    )
    return NodeState(
        features,
        None if isinstance(block, NoData | ProviderFailure) else block.number,
        0 if isinstance(price, NoData | ProviderFailure) else max(0, min(price, MAX_GAS_PRICE)),
    )


async def simulate_on_chain(
    rpc: Rpc,
    chain_id: int,
    token: str,
    pools: Sequence[PoolKey],
    holders: Sequence[str],
    *,
    node_state: NodeState | None = None,
) -> Simulation:
    """Return the result of buying and selling a token in its pools, the deepest first, and at real holders.

    Without `holders` they are looked for among the recent buyers; without `node_state` it is read. If the
    node can run no simulation, or none ran, the result has no verdict and says why. Raises ProviderFailure if
    no node answers.
    """
    if not pools:
        return Simulation(explanation="no pool of this token is known")
    markets = [TokenMarket(chain_id, token.lower(), pool) for pool in _choose_pools(pools)]
    simulation = _TradeSimulation(rpc, markets)
    state = node_state or await read_node_state(rpc, chain_id)
    return await simulation.run([holder.lower() for holder in holders], state)


def _choose_pools(pools: Sequence[PoolKey]) -> list[PoolKey]:
    """Return the deepest pools, and one of v4, whose depth a list of pools does not show."""
    chosen, others = list(pools[:MAX_POOLS]), pools[MAX_POOLS:]
    manager_pool = next((pool for pool in others if pool.kind == "v4"), None)
    if manager_pool is not None and all(pool.kind != "v4" for pool in chosen):
        chosen[-1] = manager_pool
    return chosen


class _TradeSimulation(Struct, frozen=True):
    rpc: Rpc
    markets: Sequence[TokenMarket]

    async def run(self, holders: Sequence[str], state: NodeState) -> Simulation:
        features, price = state.features, state.gas_price
        trader, seller = AccountTrader(self.rpc, self.markets), HolderSeller(self.rpc, self.markets[0])
        if not features.create_calls and not features.overrides:
            return Simulation(explanation=NO_FEATURES)
        if not features.overrides:
            trades, tested = await trader.trade_as_new_accounts(features, price), []
        elif holders:
            trades, allowance, tested = await asyncio.gather(
                trader.trade_as_new_accounts(features, price),
                trader.find_allowance(),
                seller.sell_at(holders, price),
            )
            trades = await trader.trade_as_wallet(trades, allowance, price)
        else:
            trades, allowance, purchases = await asyncio.gather(
                trader.trade_as_new_accounts(features, price),
                trader.find_allowance(),
                find_purchases(self.rpc, self.markets[0], state.height),
            )
            first = trades.purchases[0]
            buyers = choose_buyers(purchases, state.height or 0, first.tokens if first else 0)
            told = {buyer for buyer in buyers if buyer in purchases.told}
            trades, tested = await asyncio.gather(
                trader.trade_as_wallet(trades, allowance, price),
                seller.sell_at(list(buyers), price, received=buyers, told=told, height=state.height),
            )
        self._warn_of_gaps(trades, tested)
        return self._summarise(trades, tested)

    def _warn_of_gaps(self, trades: NewAccountTrades, tested: Sequence[HolderProbe]) -> None:
        """Name the checks that lost calls leave out, without which a trap can look as if it could be sold."""
        warn = self.rpc.trace.add_warning
        lost = sum(purchase is None for purchase in trades.purchases)
        if lost and (lost < len(self.markets) or trades.origin or tested):
            warn(
                f"trades of new accounts in {lost} of {len(self.markets)} pools gave no result; not checked "
                f"in them on the chain: {SALE_SUBJECT}, its taxes"
            )
        if any(trades.purchases) and not trades.as_wallet:
            warn(
                "trades were simulated only in transactions that no wallet sends, free ones or those of a "
                "contract; not checked on the chain: whether the token lets only these sell"
            )
        if any(trades.purchases) and trades.is_origin_lost:
            warn(
                "a trade by the transaction's sender gave no result; not checked on the chain: a check of "
                "the transaction's sender"
            )
        if trades.is_wallet_lost:
            warn(
                "no trade in a wallet's own transaction could be made; not checked on the chain: whether the "
                "token treats what wallets sell themselves in another way"
            )
        if trades.is_contract_lost:
            warn(
                "a sale in a transaction of a contract gave no result; not checked on the chain: whether the "
                "token lets only simulations sell"
            )
        if any(each.can_sell for each in tested) and all(each.can_send is None for each in tested):
            warn(
                "the transfers of holders' wallets gave no result; not checked on the chain: whether holders "
                "can sell without code at their address"
            )

    def _summarise(self, trades: NewAccountTrades, holders: Sequence[HolderProbe]) -> Simulation:
        """Summarise the deepest pool that has a verdict, else the deepest that is not empty."""
        purchases = trades.purchases
        if not any(purchases) and trades.origin is None and not holders:
            return Simulation(explanation=NOT_RUN)
        first = purchases[0]
        is_pair = self.markets[0].pool.kind == "v2"
        priced = [each.priced_by(first.small if first else None, is_pair=is_pair) for each in holders]
        simulations: list[Simulation] = []
        for number in self._order_by_depth(purchases):
            simulation, purchase = self._summarise_pool(number, trades, priced), purchases[number]
            if purchase is not None and purchase.has_bought:
                # a pool that sells and does not buy back is not outweighed by a smaller one that does, nor by
                # one of v4, of which a narrow range makes any depth for little money
                if number != trades.first_traded and simulation.honeypot is False:
                    traded = self._summarise_pool(trades.first_traded, trades, priced)
                    return simulation if traded.honeypot is False else traded
                return simulation
            simulations.append(simulation)
        decided = (each for each in simulations if each.honeypot is not None)
        filled = (each for each in simulations if each.pair_empty is not True)
        return next(decided, None) or next(filled, simulations[0])

    def _summarise_pool(
        self, number: int, trades: NewAccountTrades, holders: Sequence[HolderProbe]
    ) -> Simulation:
        """Summarise the trades in the pool at a position.

        Holders, sender and wallet count for the first pool where one can buy, and for those before it.
        """
        counts = number <= trades.first_traded
        probes = TradeProbes(
            self.markets[number].pool,
            trades.purchases[number],
            trades.origin if counts else None,
            holders if counts else (),
            by_contract=trades.by_contract if number == 0 else None,
            is_origin_lost=counts and trades.is_origin_lost,
            wallet=trades.wallet if counts else None,
        )
        return summarise_trades(probes)

    def _order_by_depth(self, purchases: Sequence[PurchaseProbe | None]) -> list[int]:
        """Return the positions of the pools, the deepest first.

        They already have this order, except pools of Uniswap v4. Only the trade shows the depth of these, and
        it is compared if both pools have the native coin.
        """
        depths = {
            number: purchase.quotes
            for number, (market, purchase) in enumerate(zip(self.markets, purchases, strict=True))
            if purchase is not None and market.has_native_quote
        }
        deeper = [
            number
            for number, depth in depths.items()
            if self.markets[number].pool.kind == "v4" and depth > depths.get(0, depth)
        ]
        first = max(deeper, key=depths.__getitem__, default=0)
        return sorted(range(len(self.markets)), key=lambda number: number != first)
