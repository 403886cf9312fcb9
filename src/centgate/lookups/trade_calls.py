"""Simulated calls of trades: who sends them, their gas and coins, and the simulator's arguments. No I/O."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from centgate.chains import ZERO_ADDRESS
from centgate.crypto.abi import WORD, encode_address, encode_uint, function_selector
from centgate.crypto.token.pools import DYNAMIC_FEE, PoolKey, PoolKind
from centgate.crypto.token.trade_funding import TradeFunding, trade_funding
from centgate.providers.jsonrpc.simulated_calls import AccountState, CallOutcome, SimulatedCall
from centgate.solidity import load_contract

MAX_COINS = 10_000 * 10**18
"""Native coins for a simulated trade, in wei, at most; the simulator spends one percent of the pool."""
PURCHASE_GAS, HOLDER_GAS = 25_000_000, 16_000_000
"""Gas of a call: enough for every attempt, and below the limits of public nodes."""
TRANSFER_GAS = 4_000_000
"""Gas of a transfer to the pool, as in the simulator: a token may use it to sell its fees."""
MAX_SPARE_GAS = 1_000_000
"""Gas that is added at random, so that a token does not know a simulation by it."""
CONTRACTS = Path(__file__).with_name("contracts")
_KIND_NUMBERS: Mapping[PoolKind, int] = {"v2": 0, "solidly": 1, "v3": 2, "algebra": 2, "v4": 3}
_MARKET = "(uint256,address,address,address,uint256,int256,address)"
_PLAN = f"({_MARKET},address,address,address)"
_TRANSFER = function_selector("transfer(address,uint256)")
_SELL_TOKENS = function_selector(f"sellTokens({_MARKET})")
_BUY_AND_SELL = function_selector(f"buyAndSell({_PLAN})")
_TRADE_FOR = function_selector(f"tradeFor(address,{_PLAN},uint256,uint256,uint256)")
_GAS_SHIFT = 32
"""Bits of the simulator's flags above which they tell the gas for a transfer of the token."""
_UNLIMITED = "0x" + "f" * 64
"""Word of an allowance without limit."""
T = TypeVar("T")


class TransactionSender(Struct, frozen=True):
    """Sender of a simulated transaction."""

    address: str
    gas_price: int
    """In wei; 0 is a free transaction."""
    coins: int
    """Native coins that it can spend, in wei."""
    overrides: Mapping[str, AccountState]


class TokenAllowance(Struct, frozen=True):
    """Allowance of two random accounts, and the slot in which the token keeps it."""

    owner: str
    spender: str
    slot: str


def create_sender(gas_price: int) -> TransactionSender:
    """Return a sender as a wallet is one: without code, paying for its gas, with few coins to spare."""
    address = create_random_address()
    balance = MAX_COINS + (PURCHASE_GAS + MAX_SPARE_GAS) * gas_price + _wallet_coins()
    return TransactionSender(address, gas_price, 2 * MAX_COINS, {address: AccountState(balance=balance)})


def create_random_address() -> str:
    """Return an address that has no code and no history."""
    return "0x" + secrets.token_hex(20)


class TokenMarket(Struct, frozen=True):
    """Token in one of its pools, and the calls that trade it there. Addresses are in lower case."""

    chain_id: int
    token: str
    pool: PoolKey

    @property
    def funding(self) -> TradeFunding:
        """Contracts of the chain that pay for a trade."""
        return trade_funding(self.chain_id)

    @property
    def quote(self) -> str:
        """Address of the pool's other token."""
        return self.pool.token1 if self.pool.token0 == self.token else self.pool.token0

    @property
    def has_native_quote(self) -> bool:
        """True if the other token is the native coin or its wrapped form."""
        return self.quote in (self.funding.wrapped, ZERO_ADDRESS)

    def purchase_call(self, sender: TransactionSender) -> SimulatedCall:
        """Return a call in which new accounts trade, sent by another account."""
        return SimulatedCall(
            load_contract(CONTRACTS, "TradeSimulator").initcode + self._encode_plan(),
            PURCHASE_GAS + secrets.randbelow(MAX_SPARE_GAS),
            sender=sender.address,
            value=min(sender.coins // 2, MAX_COINS),
            gas_price=sender.gas_price,
            overrides=sender.overrides,
        )

    def origin_call(self, gas_price: int) -> SimulatedCall:
        """Return a purchase and a sale by the transaction's sender, which is another address each time."""
        data = _BUY_AND_SELL + self._encode_plan()
        return _call_own_code(create_random_address(), data, gas_price, coins=MAX_COINS)

    def holder_call(self, holder: str, gas_price: int) -> SimulatedCall:
        """Return sales that a holder makes with the simulator's code at its address."""
        return _call_own_code(holder, _SELL_TOKENS + self._encode_market(), gas_price)

    def transfer_call(self, holder: str, amount: int, gas_price: int) -> SimulatedCall:
        """Return a transfer to the pool that a holder's wallet sends, with its own code or none."""
        data = _TRANSFER + encode_address(self.pool.address) + encode_uint(amount)
        gas = TRANSFER_GAS + secrets.randbelow(MAX_SPARE_GAS)
        coins = {holder: AccountState(balance=gas * gas_price + _wallet_coins())}
        return SimulatedCall(data, gas, to=self.token, sender=holder, gas_price=gas_price, overrides=coins)

    def wallet_call(
        self,
        allowance: TokenAllowance,
        gas_price: int,
        *,
        sender: str,
        times: int,
        percent: int,
        transfer_gas: int,
    ) -> SimulatedCall:
        """Return a trade for the owner of an allowance, sent by this account or another one.

        It buys `times` as much as a small trade, and sells `percent` of that. `transfer_gas` limits the
        sale's transfer of the token; at 0 the simulator's own limit holds.
        """
        flags = transfer_gas << _GAS_SHIFT
        numbers = b"".join(map(encode_uint, (times, percent, flags)))
        data = _TRADE_FOR + encode_address(allowance.owner) + self._encode_plan() + numbers
        gas = HOLDER_GAS + secrets.randbelow(MAX_SPARE_GAS)
        overrides = {
            sender: AccountState(balance=gas * gas_price + _wallet_coins()),
            allowance.spender: AccountState(_load_code("WalletTrader"), MAX_COINS),
            self.token: AccountState(slots={allowance.slot: _UNLIMITED}),
        }
        return SimulatedCall(data, gas, allowance.spender, sender, 0, gas_price, overrides)

    def _encode_plan(self) -> bytes:
        funding = self.funding
        contracts = (funding.wrapped, funding.v2_factory, funding.v3_factory)
        return self._encode_market() + b"".join(map(encode_address, contracts))

    def _encode_market(self) -> bytes:
        """Encode the struct `Market` of the simulator."""
        pool = self.pool
        fee = pool.fee if pool.fee is not None else DYNAMIC_FEE if pool.kind == "v4" else 0
        words = [
            encode_uint(_KIND_NUMBERS[pool.kind]),
            encode_address(pool.address),
            encode_address(self.token),
            encode_address(self.quote),
            encode_uint(fee),
            (pool.tick_spacing or 0).to_bytes(WORD, "big", signed=True),
            encode_address(pool.hooks or ZERO_ADDRESS),
        ]
        return b"".join(words)


def _call_own_code(account: str, data: bytes, gas_price: int, *, coins: int = 0) -> SimulatedCall:
    """Return a call of an account to itself, with the code of the simulator, and coins to spend."""
    gas = HOLDER_GAS + secrets.randbelow(MAX_SPARE_GAS)
    state = AccountState(_load_code("HolderTrader"), coins + gas * gas_price + _wallet_coins())
    overrides = {account: state}
    return SimulatedCall(data, gas, to=account, sender=account, gas_price=gas_price, overrides=overrides)


def _wallet_coins() -> int:
    """Return a balance that a wallet may have, in wei: a token may tell a simulation by its riches."""
    return 10**17 + secrets.randbelow(10**18)


def _load_code(contract: str) -> bytes:
    return load_contract(CONTRACTS, "TradeSimulator", contract).runtime_code


def parse_outcome(parse: Callable[[bytes], T], outcome: CallOutcome | None) -> T | None:
    """Parse the result of a call; None if it failed as a whole, or `parse` raises ValueError."""
    try:
        return parse(outcome.data) if outcome is not None and outcome.succeeded else None
    except ValueError:
        return None
