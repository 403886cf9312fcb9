"""Tokens of the cases on a development chain, with pools and holders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isqrt
from pathlib import Path

from eth_abi.abi import encode
from exchange_market import NATIVE_COIN, ExchangeMarket, install_market
from lookups.token_cases import TokenCase
from msgspec.structs import replace

from centgate.crypto.token.pools import PoolKey, PoolKind
from centgate.crypto.token.security import Simulation
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.chain import EvmChain
from centgate.devchain.deployer import Deployer, encode_call
from centgate.devchain.exchanges import ETHEREUM
from centgate.devchain.token import CHAIN_ID
from centgate.signing.evm import keccak
from centgate.solidity import load_contract

TOKENS = Path(__file__).parents[1] / "contracts" / "tokens"
ETHER = 10**18
SUPPLY = 10**9 * ETHER
POOL_TOKENS, POOL_COINS = SUPPLY // 2, 100 * ETHER
HOLDERS = 3
WETH = ETHEREUM.wrapped_native.lower()
V4_KEY = "(address,address,uint24,int24,address)"


@cache
def kind_number(kind: str) -> int:
    """Return the number of a member of the contract's `Kind`."""
    found = re.search(r"enum Kind \{(.*?)\}", (TOKENS / "HostileToken.sol").read_text(), re.DOTALL)
    assert found
    return [name.strip() for name in found[1].split(",")].index(kind)


@dataclass
class TokenWorld:
    """Chain with the exchanges, and accounts that buy."""

    exchanges: ExchangeMarket
    buyers: Sequence[Deployer]
    router: str
    pools: dict[str, tuple[str, PoolKey]] = field(default_factory=dict[str, tuple[str, PoolKey]])
    """Token and pool by the name of the case."""

    @property
    def owner(self) -> Deployer:
        return self.exchanges.operator

    def add(self, case: TokenCase) -> tuple[str, PoolKey]:
        """Deploy a case's token with a v2 pair and holders. Returns token and pool."""
        token = self.deploy(case.kind)
        pair = self.open_pair(token)
        if case.opens:
            self.owner.send(token, "flip()")
        for buyer in self.buyers:
            buyer.send(self.router, "buy(address,address)", WETH, pair, value=ETHER // 50)
        if case.opens:
            self.owner.send(token, "flip()")
        self._act(case, token)
        self.pools[case.name] = token, v2_key(token, pair)
        return self.pools[case.name]

    def deploy(self, kind: str) -> str:
        """Deploy a token of a kind; the operator gets the supply."""
        if kind in ("Proxy", "EndlessReads"):
            implementation = self._deploy_plain("Plain")
            set_up = encode_call("initialize(uint256)", SUPPLY)
            name = "ChangeableProxy" if kind == "Proxy" else kind
            proxy = load_contract(TOKENS, "HostileToken", name)
            return self.owner.deploy(proxy, implementation, set_up)
        return self._deploy_plain(kind)

    def open_pair(self, token: str) -> str:
        """Create the token's v2 pair with the wrapped coin."""
        factory = ETHEREUM.v2_factory
        self.exchanges.wrap(POOL_COINS)
        self.owner.send(factory, "createPair(address,address)", token, WETH)
        pair = self.owner.read(factory, "getPair(address,address)", token, WETH, returns="address")
        self.owner.send(token, "transfer(address,uint256)", pair, POOL_TOKENS)
        self.owner.send(WETH, "transfer(address,uint256)", pair, POOL_COINS)
        self.owner.send(pair, "mint(address)", self.owner.address)
        self.owner.send(token, "addPool(address,address)", pair, WETH)
        return pair.lower()

    def open_pool(self, token: str, kind: PoolKind, *, known: bool = True, part: int = 1) -> PoolKey:
        """Create a pool of another exchange with the wrapped coin, or with the coin itself on v4.

        `known`: the token knows that it is a pool. Its depth is one `part`th of the usual one.
        """
        exchanges = self.exchanges
        exchanges.wrap(POOL_COINS // part)
        amounts = {token: POOL_TOKENS // part, WETH: POOL_COINS // part}
        first, second = sorted((token.lower(), WETH))
        key = PoolKey(kind, "", first, second, kind, 3000, 60)
        match kind:
            case "v2":
                key = v2_key(token, self.open_pair(token))
            case "solidly":
                key = replace(
                    key, address=exchanges.add_solidly_pool(amounts, stable=False).lower(), fee=None
                )
            case "v3":
                key = replace(key, address=exchanges.add_v3_pool(amounts).lower())
            case "algebra":
                key = replace(key, address=exchanges.add_algebra_pool(amounts).lower(), fee=None)
            case "v4":
                exchanges.add_v4_pool({NATIVE_COIN: POOL_COINS // part, token: POOL_TOKENS // part})
                manager = ETHEREUM.v4_manager.lower()
                key = replace(key, address=manager, token0=NATIVE_COIN, token1=token.lower())
        if known:
            self.owner.send(token, "addPool(address,address)", key.address, WETH)
        return key

    def open_narrow_v4_pool(self, token: str) -> PoolKey:
        """Create a v4 pool that looks deep and holds next to nothing, and of which the token does not know.

        Its liquidity is in one step of ticks at the price. The manager holds the coins of another pool.
        """
        exchanges, other = self.exchanges, self.deploy("Plain")
        exchanges.add_v4_pool({NATIVE_COIN: 3 * POOL_COINS, other: POOL_TOKENS})
        key = (NATIVE_COIN, token, 100, 1, NATIVE_COIN)
        ratio = isqrt((POOL_TOKENS << 192) // POOL_COINS)
        self.owner.send(ETHEREUM.v4_manager, f"initialize({V4_KEY},uint160)", key, ratio)
        slot, view = "uint160,int24,uint24,uint24", ETHEREUM.v4_state_view
        pool_id = keccak(encode([V4_KEY], [key]))
        _, tick, _, _ = self.owner.read(view, "getSlot0(bytes32)", pool_id, returns=slot)
        add = f"addLiquidity({V4_KEY},int24,int24,uint128)"
        self.owner.send(token, "approve(address,uint256)", exchanges.v4_router, 2**256 - 1)
        self.owner.send(exchanges.v4_router, add, key, tick, tick + 1, 10**24, value=ETHER)
        return PoolKey("v4", ETHEREUM.v4_manager.lower(), NATIVE_COIN, token.lower(), "v4", 100, 1)

    def give(self, token: str) -> list[str]:
        """Give tokens to the buyers. Returns their addresses."""
        holders = [buyer.address.lower() for buyer in self.buyers]
        for holder in holders:
            self.owner.send(token, "transfer(address,uint256)", holder, SUPPLY // 10_000)
        return holders

    def _deploy_plain(self, kind: str) -> str:
        return self.owner.deploy(load_contract(TOKENS, "HostileToken"), kind_number(kind), SUPPLY)

    def _act(self, case: TokenCase, token: str) -> None:
        """Make the changes of the token's owner after holders have bought."""
        match case.later:
            case "flip":
                self.owner.send(token, "flip()")
            case "rebase":
                self.owner.send(token, "rebase(uint256)", SUPPLY * 11 // 10)
            case "drain":
                self.owner.send(token, "drain(address[])", [buyer.address for buyer in self.buyers])
            case "change":
                self.owner.send(token, "change(address)", self._deploy_plain("RevertOnSell"))
            case "wait":
                for _ in range(3):
                    self.owner.transfer_native(self.owner.address, 1)
            case "nothing":
                pass


def create_world() -> TokenWorld:
    """Create a chain with exchanges and funded buyers, and no tokens yet."""
    exchanges = install_market(EvmChain(CHAIN_ID, {}))
    router = exchanges.operator.deploy(load_contract(TOKENS, "TestRouter"))
    # the wrapped coins of others, which a simulated trade spends
    exchanges.wrap(1_000 * ETHER)
    buyers = [Deployer(exchanges.operator.chain, account) for account in BUYER_ACCOUNTS[:HOLDERS]]
    for buyer in buyers:
        exchanges.operator.transfer_native(buyer.address, 100 * ETHER)
    return TokenWorld(exchanges, buyers, router)


def v2_key(token: str, pair: str) -> PoolKey:
    """Return the key of a v2 pair with the wrapped coin."""
    first, second = sorted((token.lower(), WETH))
    return PoolKey("v2", pair, first, second, "Uniswap v2", 3000)


def find_errors(case: TokenCase, found: Simulation) -> list[str]:
    """Compare a simulation with the truth. Returns each difference as text."""
    sales = found.holder_sales
    failed = None if sales is None else sales.failed
    facts = {
        "honeypot": (found.honeypot, case.honeypot),
        "buy tax": (_round_tax(found.buy_tax), case.buy_tax),
        "sell tax": (_round_tax(found.sell_tax), case.sell_tax),
        "cooldown": (bool(found.cooldown), case.cooldown),
        "origin check": (bool(found.origin_check), case.origin_check),
        "largest purchase": (found.max_buy is not None, case.has_max_buy),
        "largest sale": (found.max_sell is not None, case.has_max_sell),
        "transfers are blocked": (bool(found.transfer_blocked), case.transfer_blocked),
        "not all can be sold": (bool(found.cannot_sell_all), case.cannot_sell_all),
        "siphoned": (bool(sales and sales.siphoned), case.siphoned),
        "holders that fail": (bool(failed), not case.all_holders_sell),
    }
    if found.transfer_tax is not None:
        facts["transfer tax"] = (_round_tax(found.transfer_tax), case.transfer_tax)
    errors = [f"{name}: {is_} instead of {truth}" for name, (is_, truth) in facts.items() if is_ != truth]
    if case.explanation and case.explanation not in (found.explanation or ""):
        errors.append(f"explanation: {found.explanation!r} without {case.explanation!r}")
    return errors


def _round_tax(tax: float | None) -> float | None:
    return None if tax is None else round(tax, 2)
