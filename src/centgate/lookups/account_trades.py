"""Trades of accounts without a history: new ones, the transaction's sender, and a wallet by a router."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from centgate.crypto.token.trade_records import (
    PurchaseProbe,
    TradeRecord,
    parse_purchase_and_sale,
    parse_purchase_probe,
)
from centgate.errors import NoData, ProviderFailure
from centgate.fallback import attempt
from centgate.lookups import erc20
from centgate.lookups.trade_calls import (
    TokenAllowance,
    TokenMarket,
    TransactionSender,
    create_random_address,
    create_sender,
    parse_outcome,
)
from centgate.providers.jsonrpc.client import CallFeatures
from centgate.providers.jsonrpc.simulated_calls import CallOutcome, SimulatedCall
from centgate.providers.rpc import Rpc

_RANDOM = secrets.SystemRandom()


class NewAccountTrades(Struct, frozen=True):
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
    def first_traded(self) -> int:
        """Position of the first pool where new accounts can buy; 0 if there is none."""
        return next((number for number, each in enumerate(self.purchases) if each and each.has_bought), 0)

    @property
    def has_sold(self) -> bool:
        """True if a new account or the sender could sell."""
        first, (_, sold) = self.purchases[self.first_traded], self.origin or (None, None)
        return (first is not None and first.has_sold) or (sold is not None and sold.has_sold)


class AccountTrader(Struct, frozen=True):
    """Trades of one token in its pools, the deepest first. Failed calls give no result, and no error."""

    rpc: Rpc
    markets: Sequence[TokenMarket]

    async def trade_as_new_accounts(self, features: CallFeatures, gas_price: int) -> NewAccountTrades:
        """Buy and sell in each pool by new accounts, and in the first by the transaction's sender."""
        contract = TransactionSender(self.markets[0].funding.wrapped, 0, features.coins, {})
        sender = create_sender(gas_price) if features.overrides else contract
        trades = await self._trade_as(sender, features)
        if sender is not contract and not any(trades.purchases):
            sender = contract
            trades = await self._trade_as(sender, features)
        first = trades.purchases[0]
        if sender is contract or first is None or not first.has_bought or first.has_sold:
            return trades
        (outcome,) = await self._run_calls([self.markets[0].purchase_call(contract)])
        by_contract = parse_outcome(parse_purchase_probe, outcome)
        return replace(trades, by_contract=by_contract, is_contract_lost=by_contract is None)

    async def find_allowance(self) -> TokenAllowance | None:
        """Return where the token keeps an allowance of two random accounts; None if that is not known.

        Reading it touches one slot that reading another allowance does not. If there were several, a token
        could tell by one of them that it is simulated.
        """
        market = self.markets[0]
        owner, spender = create_random_address(), create_random_address()
        reads = (
            erc20.allowance_call(market.token, *pair).data for pair in ((owner, spender), (spender, owner))
        )
        touched = await asyncio.gather(
            *(attempt(self.rpc.called_slots, market.chain_id, market.token, [data]) for data in reads)
        )
        own, other = (each if isinstance(each, frozenset) else None for each in touched)
        slots = own - other if own is not None and other is not None else ()
        return TokenAllowance(owner, spender, *slots) if len(slots) == 1 else None

    async def trade_as_wallet(
        self, trades: NewAccountTrades, allowance: TokenAllowance | None, gas_price: int
    ) -> NewAccountTrades:
        """Add a trade as people make it: their wallet, without code, sends it, and a router takes the tokens.

        Left out where nobody sold, which says enough.
        """
        if not trades.has_sold:
            return trades
        is_lost = replace(trades, is_wallet_lost=True)
        if allowance is None:
            return is_lost
        first = trades.purchases[trades.first_traded]
        # amounts that no other trade has; no larger ones where a limit may be what refuses them
        times = _RANDOM.randint(4, 9) if first and first.large and first.large.has_sold else 1
        # twice the gas that the sale needs: a token may know a simulation by ample gas
        transfer_gas = 2 * first.small.gas_used if first and first.small and first.has_sold else 0
        market = self.markets[trades.first_traded]
        trade = partial(market.wallet_call, allowance, gas_price, transfer_gas=transfer_gas)
        percent = _RANDOM.randint(45, 90)
        wallet = await self._run_trade(trade(sender=allowance.owner, times=times, percent=percent))
        if wallet is None or wallet[1] is None:
            return is_lost
        if not wallet[1].has_sold:
            # the override itself may be why, as where a slot has more than the allowance
            other = await self._run_trade(trade(sender=create_random_address(), times=1, percent=100))
            if other is None or other[1] is None or not other[1].has_sold:
                return is_lost
        return replace(trades, wallet=wallet)

    async def _trade_as(self, sender: TransactionSender, features: CallFeatures) -> NewAccountTrades:
        markets = self.markets if features.create_calls else ()
        calls = [market.purchase_call(sender) for market in markets]
        if features.overrides:
            calls.append(self.markets[0].origin_call(sender.gas_price))
        outcomes = await self._run_calls(calls)
        origin = parse_outcome(parse_purchase_and_sale, outcomes.pop()) if features.overrides else None
        purchases = [parse_outcome(parse_purchase_probe, outcome) for outcome in outcomes]
        return NewAccountTrades(
            purchases or [None for _ in self.markets],
            origin,
            is_origin_lost=features.overrides and origin is None,
            as_wallet=bool(sender.gas_price) and sender.address in sender.overrides,
        )

    async def _run_trade(self, call: SimulatedCall) -> tuple[TradeRecord | None, TradeRecord | None] | None:
        """Run a call that buys and sells; return both records, None without a result."""
        (outcome,) = await self._run_calls([call])
        return parse_outcome(parse_purchase_and_sale, outcome)

    async def _run_calls(self, calls: Sequence[SimulatedCall]) -> list[CallOutcome | None]:
        """Run calls together, or each by itself if a node refuses one; None for those that it refuses."""
        outcomes = await attempt(self.rpc.simulate_calls, self.markets[0].chain_id, calls)
        if not isinstance(outcomes, NoData | ProviderFailure):
            return list(outcomes)
        if len(calls) == 1:
            return [None]
        single = await asyncio.gather(*(self._run_calls([call]) for call in calls))
        return [outcome for (outcome,) in single]
