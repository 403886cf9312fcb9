"""Simulate buying and selling a token on the chain's own pools, by calls to a node that change nothing.

At most three rounds of requests: features of the node, the price of gas and the latest block, which a caller
may have read before; trades of new accounts, where the token keeps allowances and, if no holder is known, the
pool's recent buyers; sales of holders, and a trade as a wallet makes it. More follow if a node refuses the
transactions, a new account or the wallet cannot sell, or holders cannot send or have no tokens left.

A token may let simulated trades pass and refuse others. So a simulated transaction looks like one of a
wallet: its sender is an account without code or history, with another address each time, which pays for its
gas.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from centgate.chains import is_burn_address
from centgate.crypto.event_logs import EventLog, EventLogs
from centgate.crypto.token.pools import PoolKey, PoolKind
from centgate.crypto.token.security import Simulation
from centgate.crypto.token.token_rule import SALE_SUBJECT
from centgate.crypto.token.trade_funding import TradeFunding, trade_funding
from centgate.crypto.token.trade_records import (
    MIN_HOLDING,
    HolderProbe,
    PurchaseProbe,
    TradeRecord,
    parse_holder_probe,
    parse_purchase_and_sale,
    parse_purchase_probe,
)
from centgate.crypto.token.trade_result import (
    FEW_HOLDERS,
    NO_FEATURES,
    NOT_RUN,
    TradeProbes,
    summarise_trades,
)
from centgate.crypto.token.trade_rules import FAILED_SALES, HOLDER_TAXES, TAKEN_AWAY
from centgate.errors import NoData, ProviderFailure
from centgate.fallback import attempt
from centgate.lookups import erc20
from centgate.providers.jsonrpc.client import CallFeatures
from centgate.providers.jsonrpc.simulated_calls import AccountState, CallOutcome, SimulatedCall
from centgate.providers.rpc import Rpc
from centgate.solidity import load_contract

MAX_POOLS = 3
"""Pools in which new accounts trade, the deepest first; one of Uniswap v4 is among them if there is any."""
MAX_HOLDERS = 8
"""Holders that are tried: each call carries 15 KB of code."""
HOLDER_BLOCKS = 10_000
"""Blocks in which buyers are looked for."""
HOLDER_LOG_REQUESTS = 2
MAX_PROVEN_HOLDERS = 5
"""Of the holders, those that the pool itself names as buyers, if the token names others."""
SETTLED_BLOCKS = 5
"""Blocks after which a buyer is preferred: a token may demand a pause between two trades."""
MAX_GAS_PRICE = 10_000 * 10**9
"""Wei; above it a node's answer is no price."""
MAX_COINS = 10_000 * 10**18
"""Native coins for a simulated trade, in wei, at most; the simulator spends one percent of the pool."""
PURCHASE_GAS, HOLDER_GAS = 25_000_000, 16_000_000
"""Gas of a call: enough for every attempt, and below the limits of public nodes."""
MAX_SPARE_GAS = 1_000_000
"""Gas that is added at random, so that a token does not know a simulation by it."""
CONTRACTS = Path(__file__).with_name("contracts")
_KIND_NUMBERS: Mapping[PoolKind, int] = {"v2": 0, "solidly": 1, "v3": 2, "algebra": 2, "v4": 3}
_DYNAMIC_FEE = 0x800000
"""Fee in the key of a v4 pool whose hook decides it."""
_HOLDER_CHECKS = ", ".join((FAILED_SALES, TAKEN_AWAY, HOLDER_TAXES))
"""Checks that sales at holders make."""
T = TypeVar("T")
_RANDOM = secrets.SystemRandom()
_ZERO = "0x" + "0" * 40
SWAP_TOPICS = (
    "0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822",
    "0xb3e2773606abfd36b5bd91394b3a54d1398336c65005baf7bf7a05efeffaf75b",
    "0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67",
    "0x19b47279256b2a23a1665c810c8d55a1758940ee09377d4f8d26497a3577dc83",
)
"""Topics of Swap of pairs (Uniswap v2; Velodrome) and of pools with ranges (Uniswap v3; PancakeSwap v3). The
second indexed argument is the recipient."""
_TRANSFER = bytes.fromhex("a9059cbb")
"""transfer(address,uint256)"""
TRANSFER_GAS = 4_000_000
"""Gas of a transfer to the pool, as in the simulator: a token may use it to sell its fees."""
TRANSFER_SECONDS = 3.0
"""Seconds for the transfers of holders, without which the rest has its verdict."""
_REFUSALS = ("revert", "invalid opcode", "out of gas", "bad instruction", "stack")
"""Words of nodes on a call that the contract ended; others are failures of the node."""
_SELL_TOKENS = bytes.fromhex("9b4db972")
"""sellTokens((uint256,address,address,address,uint256,int256,address))"""
_BUY_AND_SELL = bytes.fromhex("bf553a3c")
"""buyAndSell(((uint256,address,address,address,uint256,int256,address),address,address,address))"""
_TRADE_FOR = bytes.fromhex("d5e38bd2")
"""tradeFor(address,((uint256,address,address,address,uint256,int256,address),address,address,address),uint256,
uint256,uint256)"""
_GAS_SHIFT = 32
"""Bits of the simulator's flags above which they tell the gas for a transfer of the token."""
_UNLIMITED = "0x" + "f" * 64
"""Word of an allowance without limit."""
_DELEGATION = bytes.fromhex("ef0100")
"""Start of the code of a wallet that delegates to a contract (EIP-7702)."""


@dataclass(frozen=True, slots=True)
class NodeState:
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
    simulation = _TradeSimulation(rpc, chain_id, token.lower(), _choose_pools(pools))
    state = node_state or await read_node_state(rpc, chain_id)
    return await simulation.run([holder.lower() for holder in holders], state)


@dataclass(frozen=True, slots=True)
class _NewAccountTrades:
    """Trades of accounts without a history."""

    purchases: Sequence[PurchaseProbe | None]
    """By pool."""
    origin: tuple[TradeRecord | None, TradeRecord | None] | None
    """Of the transaction's sender, in the first pool."""
    by_contract: PurchaseProbe | None = None
    """In the first pool, in a transaction that a contract sends; tried if an ordinary one failed."""
    is_origin_lost: bool = False
    """True if the sender's trade was asked for, and gave no result."""
    is_contract_lost: bool = False
    """True if `by_contract` was asked for, and gave no result."""
    as_wallet: bool = True
    """False if a contract sent the transactions, or they were free: no wallet sends such."""
    wallet: tuple[TradeRecord | None, TradeRecord | None] | None = None
    """Of a sender without code whose tokens a router takes, in the first pool where new accounts can buy."""
    is_wallet_lost: bool = False
    """True if `wallet` would tell more, and could not be tried."""

    @property
    def deepest(self) -> int:
        """Position of the first pool where new accounts can buy; 0 if there is none."""
        return next((number for number, each in enumerate(self.purchases) if each and each.has_bought), 0)

    @property
    def has_sold(self) -> bool:
        """True if a new account or the sender could sell."""
        first, (_, sold) = self.purchases[self.deepest], self.origin or (None, None)
        return (first is not None and first.has_sold) or (sold is not None and sold.has_sold)


@dataclass(frozen=True, slots=True)
class _Allowance:
    """Allowance of two random accounts, and the slot in which the token keeps it."""

    owner: str
    spender: str
    slot: str


@dataclass(frozen=True, slots=True)
class _Sender:
    """Sender of a simulated transaction."""

    address: str
    gas_price: int
    """In wei; 0 is a free transaction."""
    coins: int
    """Native coins that it can spend, in wei."""
    overrides: Mapping[str, AccountState]


@dataclass(frozen=True, slots=True)
class _TradeSimulation:
    rpc: Rpc
    chain_id: int
    token: str
    pools: Sequence[PoolKey]

    @property
    def funding(self) -> TradeFunding:
        return trade_funding(self.chain_id)

    async def run(self, holders: Sequence[str], state: NodeState) -> Simulation:
        features, price = state.features, state.gas_price
        if not features.create_calls and not features.overrides:
            return Simulation(explanation=NO_FEATURES)
        if not features.overrides:
            trades, tested = await self._trade(features, price), []
        elif holders:
            trades, allowance, tested = await asyncio.gather(
                self._trade(features, price),
                self._find_allowance(),
                self._sell_at_holders(holders, price),
            )
            trades = await self._trade_as_wallet(trades, allowance, price)
        else:
            trades, allowance, purchases = await asyncio.gather(
                self._trade(features, price),
                self._find_allowance(),
                self._find_purchases(state.height),
            )
            first = trades.purchases[0]
            buyers = _choose_buyers(purchases, state.height or 0, first.tokens if first else 0)
            told = {buyer for buyer in buyers if buyer in purchases.told}
            trades, tested = await asyncio.gather(
                self._trade_as_wallet(trades, allowance, price),
                self._sell_at_holders(list(buyers), price, received=buyers, told=told, height=state.height),
            )
        self._warn_of_gaps(trades, tested)
        return self._summarise(trades, tested)

    def _warn_of_gaps(self, trades: _NewAccountTrades, tested: Sequence[HolderProbe]) -> None:
        """Name the checks that lost calls leave out, without which a trap can look as if it could be sold."""
        warn = self.rpc.trace.add_warning
        lost = sum(purchase is None for purchase in trades.purchases)
        if lost and (lost < len(self.pools) or trades.origin or tested):
            warn(
                f"trades of new accounts in {lost} of {len(self.pools)} pools gave no result; not checked in "
                f"them on the chain: {SALE_SUBJECT}, its taxes"
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

    def _summarise(self, trades: _NewAccountTrades, holders: Sequence[HolderProbe]) -> Simulation:
        """Summarise the deepest pool that has a verdict, else the deepest that is not empty.

        Holders and the sender count where they were tried, and for a pool that stands in for one where nobody
        could buy.
        """
        purchases = trades.purchases
        if not any(purchases) and trades.origin is None and not holders:
            return Simulation(explanation=NOT_RUN)
        first = purchases[0]
        is_pair = self.pools[0].kind == "v2"
        priced = [each.priced_by(first.small if first else None, is_pair=is_pair) for each in holders]
        simulations: list[Simulation] = []
        deepest = trades.deepest

        def judge(number: int) -> Simulation:
            counts = number <= deepest
            probes = TradeProbes(
                self.pools[number],
                purchases[number],
                trades.origin if counts else None,
                priced if counts else (),
                by_contract=trades.by_contract if number == 0 else None,
                is_origin_lost=counts and trades.is_origin_lost,
                wallet=trades.wallet if counts else None,
            )
            return summarise_trades(probes)

        for number in self._order_by_depth(purchases):
            simulation, purchase = judge(number), purchases[number]
            # a pool that sells and does not buy back is not outweighed by a smaller one that does, nor by one
            # of v4, of which a narrow range makes any depth for little money
            if purchase is not None and purchase.has_bought:
                is_cleared = number != deepest and simulation.honeypot is False
                return _choose_unsold(judge(deepest), simulation) if is_cleared else simulation
            simulations.append(simulation)
        decided = (each for each in simulations if each.honeypot is not None)
        filled = (each for each in simulations if each.pair_empty is not True)
        return next(decided, None) or next(filled, simulations[0])

    def _order_by_depth(self, purchases: Sequence[PurchaseProbe | None]) -> list[int]:
        """Return the positions of the pools, the deepest first.

        They are in this order, except for pools of Uniswap v4: only the trade shows their depth, which is
        compared if both pools have the native coin.
        """
        coins = (self.funding.wrapped, _ZERO)
        depths = {
            number: purchase.quotes
            for number, (pool, purchase) in enumerate(zip(self.pools, purchases, strict=True))
            if purchase is not None and _quote_of(pool, self.token) in coins
        }
        deeper = [
            number
            for number, depth in depths.items()
            if self.pools[number].kind == "v4" and depth > depths.get(0, depth)
        ]
        first = max(deeper, key=depths.__getitem__, default=0)
        return sorted(range(len(self.pools)), key=lambda number: number != first)

    async def _trade(self, features: CallFeatures, price: int) -> _NewAccountTrades:
        """Buy and sell in each pool by new accounts, and in the first by the transaction's sender."""
        contract = _Sender(self.funding.wrapped, 0, features.coins, {})
        sender = _create_sender(price) if features.overrides else contract
        trades = await self._trade_as(sender, features)
        if sender is not contract and not any(trades.purchases):
            trades = await self._trade_as(replace(contract, gas_price=0), features)
        first = trades.purchases[0]
        if sender is contract or first is None or not first.has_bought or first.has_sold:
            return trades
        (outcome,) = await self._run_calls([self._purchase_call(self.pools[0], contract)])
        by_contract = _parse(parse_purchase_probe, outcome)
        return replace(trades, by_contract=by_contract, is_contract_lost=by_contract is None)

    async def _trade_as(self, sender: _Sender, features: CallFeatures) -> _NewAccountTrades:
        pools = self.pools if features.create_calls else ()
        calls = [self._purchase_call(pool, sender) for pool in pools]
        if features.overrides:
            calls.append(self._origin_call(self.pools[0], sender.gas_price))
        outcomes = await self._run_calls(calls)
        origin = _parse(parse_purchase_and_sale, outcomes.pop()) if features.overrides else None
        purchases = [_parse(parse_purchase_probe, outcome) for outcome in outcomes]
        return _NewAccountTrades(
            purchases or [None for _ in self.pools],
            origin,
            is_origin_lost=features.overrides and origin is None,
            as_wallet=bool(sender.gas_price) and sender.address in sender.overrides,
        )

    async def _find_allowance(self) -> _Allowance | None:
        """Return where the token keeps an allowance of two random accounts; None if that is not known.

        Reading it touches one slot that reading another allowance does not. If there were several, a token
        could tell by one of them that it is simulated.
        """
        owner, spender = _random_address(), _random_address()
        reads = (
            erc20.allowance_call(self.token, *pair).data for pair in ((owner, spender), (spender, owner))
        )
        touched = await asyncio.gather(
            *(attempt(self.rpc.called_slots, self.chain_id, self.token, [data]) for data in reads)
        )
        own, other = (each if isinstance(each, frozenset) else None for each in touched)
        slots = own - other if own is not None and other is not None else ()
        return _Allowance(owner, spender, *slots) if len(slots) == 1 else None

    async def _trade_as_wallet(
        self, trades: _NewAccountTrades, allowance: _Allowance | None, price: int
    ) -> _NewAccountTrades:
        """Add a trade as people make it: their wallet, without code, sends it, and a router takes the tokens.

        Left out where nobody sold, which says enough.
        """
        if not trades.has_sold:
            return trades
        is_lost = replace(trades, is_wallet_lost=True)
        if allowance is None:
            return is_lost
        first = trades.purchases[trades.deepest]
        # amounts that no other trade has; no larger ones where a limit may be what refuses them
        times = _RANDOM.randint(4, 9) if first and first.large and first.large.has_sold else 1
        # twice the gas that the sale needs: a token may know a simulation by ample gas
        flags = 2 * first.small.gas_used << _GAS_SHIFT if first and first.small and first.has_sold else 0
        trade = partial(self._wallet_call, self.pools[trades.deepest], allowance, price, flags)
        wallet = await self._run_trade(trade(allowance.owner, times, _RANDOM.randint(45, 90)))
        if wallet is None or wallet[1] is None or wallet[1].lacks_allowance:
            return is_lost
        if not wallet[1].has_sold:
            # the override itself may be why, as where a slot has more than the allowance
            other = await self._run_trade(trade(_random_address(), 1, 100))
            if other is None or other[1] is None or not other[1].has_sold:
                return is_lost
        return replace(trades, wallet=wallet)

    def _wallet_call(
        self,
        pool: PoolKey,
        allowance: _Allowance,
        price: int,
        flags: int,
        sender: str,
        times: int,
        percent: int,
    ) -> SimulatedCall:
        """Return a trade for the owner of an allowance, sent by this account or another one."""
        numbers = b"".join(each.to_bytes(32, "big") for each in (times, percent, flags))
        data = _TRADE_FOR + _address_word(allowance.owner) + self._encode_plan(pool) + numbers
        gas = HOLDER_GAS + secrets.randbelow(MAX_SPARE_GAS)
        overrides = {
            sender: AccountState(balance=gas * price + _wallet_coins()),
            allowance.spender: AccountState(_wallet_trader_code(), MAX_COINS),
            self.token: AccountState(slots={allowance.slot: _UNLIMITED}),
        }
        return SimulatedCall(data, gas, allowance.spender, sender, 0, price, overrides)

    async def _run_trade(self, call: SimulatedCall) -> tuple[TradeRecord | None, TradeRecord | None] | None:
        """Run a call that buys and sells; return both records, None without a result."""
        (outcome,) = await self._run_calls([call])
        return _parse(parse_purchase_and_sale, outcome)

    async def _run_calls(self, calls: Sequence[SimulatedCall]) -> list[CallOutcome | None]:
        """Run calls together, or each by itself if a node refuses one; None for those that it refuses."""
        outcomes = await attempt(self.rpc.simulate_calls, self.chain_id, calls)
        if not isinstance(outcomes, NoData | ProviderFailure):
            return list(outcomes)
        if len(calls) == 1:
            return [None]
        single = await asyncio.gather(*(self._run_calls([call]) for call in calls))
        return [outcome for (outcome,) in single]

    def _purchase_call(self, pool: PoolKey, sender: _Sender) -> SimulatedCall:
        content = self._encode_plan(pool)
        return SimulatedCall(
            load_contract(CONTRACTS, "TradeSimulator").initcode + content,
            PURCHASE_GAS + secrets.randbelow(MAX_SPARE_GAS),
            sender=sender.address,
            value=min(sender.coins // 2, MAX_COINS),
            gas_price=sender.gas_price,
            overrides=sender.overrides,
        )

    def _origin_call(self, pool: PoolKey, price: int) -> SimulatedCall:
        data = _BUY_AND_SELL + self._encode_plan(pool)
        return _call_own_code(_random_address(), data, price, coins=MAX_COINS)

    def _holder_call(self, pool: PoolKey, holder: str, price: int) -> SimulatedCall:
        return _call_own_code(holder, _SELL_TOKENS + self._encode_market(pool), price)

    def _transfer_call(self, holder: str, amount: int, price: int) -> SimulatedCall:
        """Return a transfer to the first pool that a holder's wallet sends, with its own code or none."""
        data = _TRANSFER + _address_word(self.pools[0].address) + amount.to_bytes(32, "big")
        gas = TRANSFER_GAS + secrets.randbelow(MAX_SPARE_GAS)
        coins = {holder: AccountState(balance=gas * price + _wallet_coins())}
        return SimulatedCall(data, gas, to=self.token, sender=holder, gas_price=price, overrides=coins)

    async def _find_purchases(self, height: int | None) -> _PoolPurchases:
        """Return recent purchases in the first pool, as the pool and as the token tell them."""
        if height is None:
            return _PoolPurchases({}, {})
        pool = self.pools[0]
        swaps, transfers = await asyncio.gather(
            self._read_logs([SWAP_TOPICS], height, pool.address),
            self._read_logs([erc20.TRANSFER_TOPIC, erc20.encode_topic(pool.address)], height, self.token),
        )
        if swaps is None and transfers is not None:
            self.rpc.trace.add_warning(
                "the pool's own events were not read, so that only the token told of its buyers, which it "
                f"can make up; not checked at others on the chain: {_HOLDER_CHECKS}"
            )
        position = 0 if pool.token0 == self.token else 1
        return _PoolPurchases(
            proven=self._list_purchases(swaps, partial(_amount_bought, position=position)),
            told=self._list_purchases(transfers, _amount_of),
        )

    def _list_purchases(
        self, logs: EventLogs | None, read_amount: Callable[[EventLog], int]
    ) -> dict[str, _Purchases]:
        """Return the purchases by their recipient, which is the last indexed argument."""
        purchases: dict[str, _Purchases] = {}
        for log in logs.entries if logs else ():
            buyer, amount = erc20.decode_address(log.topics[2]), read_amount(log)
            if amount and not is_burn_address(buyer) and buyer not in (self.token, self.pools[0].address):
                earlier = purchases[buyer].amount if buyer in purchases else 0
                purchases[buyer] = _Purchases(earlier + amount, log.block)
        return purchases

    async def _read_logs(
        self, topics: Sequence[str | Sequence[str] | None], height: int, address: str
    ) -> EventLogs | None:
        """Return a contract's recent logs with two indexed arguments; None if they cannot be read."""
        logs = await attempt(
            self.rpc.event_logs,
            self.chain_id,
            topics,
            to_block=height,
            blocks=HOLDER_BLOCKS,
            requests=HOLDER_LOG_REQUESTS,
            address=address,
        )
        if isinstance(logs, NoData | ProviderFailure):
            return None
        return replace(logs, entries=tuple(log for log in logs.entries if len(log.topics) == 3))

    async def _sell_at_holders(
        self,
        holders: Sequence[str],
        price: int,
        *,
        received: Mapping[str, int] | None = None,
        told: Set[str] = frozenset(),
        height: int | None = None,
    ) -> list[HolderProbe]:
        """Sell at each holder that is a wallet. `received` tells whose tokens vanished without a transfer.

        `told` are the holders whose purchases the token's own events show.
        """
        chosen = [each for each in dict.fromkeys(holders) if each != self.pools[0].address][:MAX_HOLDERS]
        if not chosen:
            return []
        (node_height, outcomes), sent, sends = await asyncio.gather(
            self._run_at_holders(chosen, price),
            self._read_sent(chosen, height),
            self._send_from(dict.fromkeys(chosen, 1), price),
        )
        is_behind = height is not None and node_height < height
        if is_behind:
            sent = None  # what was bought since is not there yet, rather than gone
        probes: list[HolderProbe] = []
        missing = 0
        for holder, (code, outcome) in outcomes.items():
            if code and not code.startswith(_DELEGATION):
                continue
            probe = _parse(partial(parse_holder_probe, holder), outcome)
            if probe is None or not probe.depth or (is_behind and not probe.balance):
                missing += 1
                continue
            probes.append(replace(probe, can_send=sends.get(holder)))
        gone = {each.holder for each in probes if _is_gone(each, (received or {}).get(each.holder, 0))}
        drained = await self._find_drained(gone, told, sent, height)
        probes = [replace(each, drained=each.holder in drained) for each in probes]
        if missing:
            self.rpc.trace.add_warning(
                f"sales at {missing} of {len(chosen)} holders gave no result; not checked at them on the "
                f"chain: {_HOLDER_CHECKS}"
            )
        tested = [probe for probe in probes if probe.is_tested]
        # a token may refuse so small an amount
        refused = {
            each.holder: each.small.amount
            for each in tested
            if each.can_send is False and each.can_sell and each.small is not None
        }
        if not refused:
            return tested
        again = await self._send_from(refused, price)
        return [replace(each, can_send=again.get(each.holder, each.can_send)) for each in tested]

    async def _send_from(self, amounts: Mapping[str, int], price: int) -> Mapping[str, bool]:
        """Return which holders can send an amount to the pool in a transaction of their own, where known."""
        calls = [self._transfer_call(holder, amount, price) for holder, amount in amounts.items()]
        try:
            async with asyncio.timeout(TRANSFER_SECONDS):
                outcomes = await attempt(self.rpc.simulate_calls, self.chain_id, calls)
        except TimeoutError:
            return {}
        if isinstance(outcomes, NoData | ProviderFailure):
            return {}
        return {
            holder: outcome.succeeded and (not outcome.data or any(outcome.data))
            for holder, outcome in zip(amounts, outcomes, strict=True)
            if outcome.succeeded or outcome.data or _is_refusal(outcome.message or "")
        }

    async def _run_at_holders(
        self, holders: Sequence[str], price: int
    ) -> tuple[int, Mapping[str, tuple[bytes, CallOutcome]]]:
        """Run the sale of each holder; without a price of gas if the node runs none of them with it.

        Return the node's latest block with their code and results.
        """
        calls = {holder: self._holder_call(self.pools[0], holder, price) for holder in holders}
        found = await attempt(self.rpc.simulate_at_accounts, self.chain_id, calls)
        is_run = not isinstance(found, NoData | ProviderFailure)
        if is_run and any(outcome.succeeded for _, outcome in found[1].values()):
            return found
        if price:
            return await self._run_at_holders(holders, 0)
        return found if is_run else (0, {})

    async def _read_sent(self, holders: Sequence[str], height: int | None) -> set[str] | None:
        """Return the holders that sent tokens themselves; None if that is not known."""
        if height is None:
            return None
        topics = [erc20.TRANSFER_TOPIC, [erc20.encode_topic(holder) for holder in holders]]
        logs = await self._read_logs(topics, height, self.token)
        # a shorter range than that of the purchases may lack sales, as does a failure
        if logs is None or logs.from_block > max(0, height - HOLDER_BLOCKS + 1):
            return None
        sent = (log for log in logs.entries if _amount_of(log) and log.topics[1] != log.topics[2])
        return {erc20.decode_address(log.topics[1]) for log in sent}

    async def _find_drained(
        self, gone: Set[str], told: Set[str], sent: Set[str] | None, height: int | None
    ) -> Set[str]:
        """Return those holders without tokens, of whom `sent` are known to have sent some, that sent none."""
        suspects = gone - (sent or set())
        if not suspects:
            return suspects
        if sent is not None and await self._has_events_of(suspects & told, height):
            return suspects
        self.rpc.trace.add_warning(
            f"{len(suspects)} holders have no tokens left, and what they sent was not read; not checked at "
            f"them on the chain: {TAKEN_AWAY}"
        )
        return set()

    async def _has_events_of(self, buyers: Set[str], height: int | None) -> bool:
        """True if a node still shows events of these buyers, whose purchases had some.

        One that has not indexed the blocks gives no events, and no error.
        """
        if not buyers or height is None:
            return True
        topics = [erc20.TRANSFER_TOPIC, None, [erc20.encode_topic(buyer) for buyer in buyers]]
        logs = await self._read_logs(topics, height, self.token)
        return logs is not None and buyers <= {erc20.decode_address(log.topics[2]) for log in logs.entries}

    def _encode_plan(self, pool: PoolKey) -> bytes:
        funding = self.funding
        factories = [
            _address_word(each) for each in (funding.wrapped, funding.v2_factory, funding.v3_factory)
        ]
        return self._encode_market(pool) + b"".join(factories)

    def _encode_market(self, pool: PoolKey) -> bytes:
        """Encode the struct `Market` of the simulator."""
        quote = _quote_of(pool, self.token)
        fee = pool.fee if pool.fee is not None else _DYNAMIC_FEE if pool.kind == "v4" else 0
        words = [
            _KIND_NUMBERS[pool.kind].to_bytes(32, "big"),
            _address_word(pool.address),
            _address_word(self.token),
            _address_word(quote),
            fee.to_bytes(32, "big"),
            (pool.tick_spacing or 0).to_bytes(32, "big", signed=True),
            _address_word(pool.hooks or _ZERO),
        ]
        return b"".join(words)


def _choose_pools(pools: Sequence[PoolKey]) -> list[PoolKey]:
    """Return the deepest pools, and one of v4, whose depth a list of pools does not show."""
    chosen, others = list(pools[:MAX_POOLS]), pools[MAX_POOLS:]
    manager_pool = next((pool for pool in others if pool.kind == "v4"), None)
    if manager_pool is not None and all(pool.kind != "v4" for pool in chosen):
        chosen[-1] = manager_pool
    return chosen


def _choose_unsold(first: Simulation, sold: Simulation) -> Simulation:
    """Return the first simulation unless the token can be sold by it as well, else the second."""
    return sold if first.honeypot is False else first


def _quote_of(pool: PoolKey, token: str) -> str:
    return pool.token1 if pool.token0 == token else pool.token0


def _create_sender(price: int) -> _Sender:
    """Return a sender as a wallet is one: without code, paying for its gas, with few coins to spare."""
    address = _random_address()
    balance = MAX_COINS + (PURCHASE_GAS + MAX_SPARE_GAS) * price + _wallet_coins()
    return _Sender(address, price, 2 * MAX_COINS, {address: AccountState(balance=balance)})


def _call_own_code(account: str, data: bytes, price: int, *, coins: int = 0) -> SimulatedCall:
    """Return a call of an account to itself, with the code of the simulator, and coins to spend."""
    gas = HOLDER_GAS + secrets.randbelow(MAX_SPARE_GAS)
    state = AccountState(_holder_code(), coins + gas * price + _wallet_coins())
    return SimulatedCall(data, gas, to=account, sender=account, gas_price=price, overrides={account: state})


def _wallet_coins() -> int:
    """Return a balance that a wallet may have, in wei: a token may tell a simulation by its riches."""
    return 10**17 + secrets.randbelow(10**18)


def _random_address() -> str:
    return "0x" + secrets.token_hex(20)


def _parse(parse: Callable[[bytes], T], outcome: CallOutcome | None) -> T | None:
    """Parse the result of a call; None if it failed as a whole."""
    try:
        return parse(outcome.data) if outcome is not None and outcome.succeeded else None
    except ValueError:
        return None


def _is_gone(probe: HolderProbe, received: int) -> bool:
    """True if a holder has at most a hundredth of what it bought; False if that is not known (0)."""
    return probe.balance * 100 < received


@dataclass(frozen=True, slots=True)
class _Purchases:
    """Purchases of one buyer."""

    amount: int
    """Base units of the token."""
    last_block: int


@dataclass(frozen=True, slots=True)
class _PoolPurchases:
    """Purchases in one pool, by buyer."""

    proven: Mapping[str, _Purchases]
    """As the pool itself tells them."""
    told: Mapping[str, _Purchases]
    """As the token tells them, which can make them up, or leave them out."""


def _choose_buyers(purchases: _PoolPurchases, height: int, depth: int) -> dict[str, int]:
    """Return the buyers to try, with the amounts they bought. `depth` is what the pool has of the token."""
    limit = MAX_PROVEN_HOLDERS if purchases.told else MAX_HOLDERS
    chosen = _pick_buyers(purchases.proven, height, depth, limit)
    others = {buyer: each for buyer, each in purchases.told.items() if buyer not in chosen}
    chosen += _pick_buyers(others, height, depth, MAX_HOLDERS - len(chosen))
    return {buyer: (purchases.proven.get(buyer) or purchases.told[buyer]).amount for buyer in chosen}


def _pick_buyers(purchases: Mapping[str, _Purchases], height: int, depth: int, limit: int) -> list[str]:
    """Return at most `limit` buyers of more than dust, settled ones if these are not too few.

    Half of them bought most, so that many small purchases do not hide them; the others are taken at random.
    """
    buyers = [buyer for buyer, each in purchases.items() if each.amount >= depth * MIN_HOLDING]
    settled = [buyer for buyer in buyers if purchases[buyer].last_block <= height - SETTLED_BLOCKS]
    candidates = settled if len(settled) >= FEW_HOLDERS else buyers
    candidates = sorted(candidates, key=lambda buyer: -purchases[buyer].amount)
    largest, others = candidates[: (limit + 1) // 2], candidates[(limit + 1) // 2 :]
    return [*largest, *_RANDOM.sample(others, min(len(others), limit - len(largest)))]


def _is_refusal(message: str) -> bool:
    """True if a node says that the contract ended a call."""
    return any(word in message.lower() for word in _REFUSALS)


def _amount_of(log: EventLog) -> int:
    return int(log.data[2:66] or "0", 16)


def _amount_bought(log: EventLog, *, position: int) -> int:
    """Return the tokens that a pool paid in a swap; 0 if it took them. `position` is that of the token.

    Pairs give both amounts in, then both out; pools with ranges the changes of their own two balances.
    """
    words = [int(log.data[at : at + 64], 16) for at in range(2, len(log.data) - 63, 64)]
    if log.topics[0] in SWAP_TOPICS[:2]:
        return words[2 + position] if len(words) >= 4 else 0
    change = words[position] if len(words) > position else 0
    return 2**256 - change if change >= 2**255 else 0


def _address_word(address: str) -> bytes:
    return bytes(12) + bytes.fromhex(address[2:])


@cache
def _holder_code() -> bytes:
    return load_contract(CONTRACTS, "TradeSimulator", "HolderTrader").runtime_code


@cache
def _wallet_trader_code() -> bytes:
    return load_contract(CONTRACTS, "TradeSimulator", "WalletTrader").runtime_code
