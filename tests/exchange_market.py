"""Exchanges of a development chain with pools of every kind, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, localcontext
from math import isqrt
from pathlib import Path
from typing import Any, Final

from eth_abi.abi import encode
from msgspec import Struct, field

from centgate.devchain.chain import EvmChain
from centgate.devchain.deployer import Deployer
from centgate.devchain.exchanges import Exchanges, install_exchanges
from centgate.devchain.well_known import ETHEREUM, WellKnownAddresses
from centgate.signing.evm import keccak
from centgate.solidity import load_contract

TEST_CONTRACTS: Final = Path(__file__).parent / "contracts" / "devchain"
"""Folder of Solidity sources and artefacts that only tests deploy."""
NATIVE_COIN: Final = "0x0000000000000000000000000000000000000000"
"""Native coin as a currency of Uniswap v4."""
NO_HOOKS: Final = NATIVE_COIN
TICK_LIMIT: Final = 887_272
DYNAMIC_FEE: Final = 0x800000
"""Fee of a v4 pool whose hooks decide it."""
_UNLIMITED: Final = 2**256 - 1
_V4_KEY: Final = "(address,address,uint24,int24,address)"


class V4Pool(Struct, frozen=True):
    """Pool of Uniswap v4, which has no address: its id in hex, and its key as the contracts take it."""

    id: str
    key: tuple[str, str, int, int, str]


class ExchangeMarket(Exchanges):
    """The well-known exchanges with tokens, feeds, names and pools that tests add."""

    _deployed: dict[str, str] = field(default_factory=dict[str, str])

    def create_token(self, name: str, symbol: str, *, decimals: int = 18, supply: int) -> str:
        """Deploy a plain token whose supply (in base units) the operator gets. Returns its address."""
        return self.operator.deploy_named("Erc20", "Erc20", name, symbol, decimals, supply)

    def stablecoin(self, symbol: str, amount: int) -> str:
        """Mint a stablecoin (in base units) to the operator. Returns its address."""
        address, _ = self.addresses.stablecoins[symbol]
        self.operator.send(address, "mint(address,uint256)", self.operator.address, amount)
        return address

    def set_feed(self, feed: str, answer: int, *, started_at: int = 0, updated_at: int = 0) -> None:
        """Set the answer of a price or sequencer feed. Times in seconds since 1970; 0 is always now."""
        self.operator.send(feed, "set(int256,uint256,uint256)", answer, started_at, updated_at)

    def set_ens_name(self, account: str, name: str, *, owner: str | None = None) -> None:
        """Give an address an ENS name. It is false if the name's owner is another address."""
        resolver = self.addresses.ens_resolver
        self.operator.send(resolver, "setName(address,string,address)", account, name, owner or account)

    def add_solidly_pool(self, amounts: Mapping[str, int], *, stable: bool) -> str:
        """Create a Solidly pool with these amounts of two tokens, in base units. Returns its address."""
        pair = (*amounts, stable)
        factory = self.solidly_factory
        self.operator.send(factory, "createPool(address,address,bool)", *pair)
        pool = self.operator.read(factory, "getPool(address,address,bool)", *pair, returns="address")
        self._fill(pool, amounts)
        return pool

    def add_v3_pool(
        self,
        amounts: Mapping[str, int],
        *,
        fee: int = 3000,
        ticks: tuple[int, int] | None = None,
        factory: str | None = None,
    ) -> str:
        """Create a Uniswap v3 pool with about these amounts of two tokens, in base units.

        Returns its address. The liquidity is in a range of ticks, by default the widest. `factory` may be
        PancakeSwap's.
        """
        factory = factory or self.addresses.v3_factory
        pair, operator = sorted(amounts, key=_address_number), self.operator
        operator.send(factory, "createPool(address,address,uint24)", *pair, fee)
        pool = operator.read(factory, "getPool(address,address,uint24)", *pair, fee, returns="address")
        operator.send(pool, "initialize(uint160)", _price_root([amounts[token] for token in pair]))
        self._add_range(pool, amounts, ticks)
        return pool

    def add_slipstream_pool(self, amounts: Mapping[str, int], *, tick_spacing: int = 200) -> str:
        """Create a Slipstream pool with about these amounts of two tokens. Returns its address."""
        pair, operator = sorted(amounts, key=_address_number), self.operator
        factory, ratio = self.slipstream_factory, _price_root([amounts[token] for token in pair])
        operator.send(factory, "createPool(address,address,int24,uint160)", *pair, tick_spacing, ratio)
        find = "getPool(address,address,int24)"
        pool = operator.read(factory, find, *pair, tick_spacing, returns="address")
        self._add_range(pool, amounts, None)
        return pool

    def add_algebra_pool(self, amounts: Mapping[str, int], *, fee: int = 100) -> str:
        """Create an Algebra pool with about these amounts of two tokens. Returns its address."""
        pair, operator = sorted(amounts, key=_address_number), self.operator
        factory = self.algebra_factory
        operator.send(factory, "createPool(address,address)", *pair)
        pool = operator.read(factory, "poolByPair(address,address)", *pair, returns="address")
        operator.send(pool, "initialize(uint160)", _price_root([amounts[token] for token in pair]))
        operator.send(pool, "setFee(uint16)", fee)
        self._add_range(pool, amounts, None)
        return pool

    def add_v4_pool(
        self, amounts: Mapping[str, int], *, fee: int = 3000, tick_spacing: int = 60, hooks: str = NO_HOOKS
    ) -> V4Pool:
        """Create a Uniswap v4 pool with about these amounts of two currencies, over the widest range."""
        pair, operator = sorted(amounts, key=_address_number), self.operator
        key = (pair[0], pair[1], fee, tick_spacing, hooks)
        lower, upper = _widest_ticks(tick_spacing)
        held = [amounts[currency] for currency in pair]
        ratio, liquidity = _price_root(held), _liquidity(held, lower, upper)
        operator.send(self.addresses.v4_manager, f"initialize({_V4_KEY},uint160)", key, ratio)
        for token in pair:
            if token != NATIVE_COIN:
                operator.send(token, "approve(address,uint256)", self.v4_router, _UNLIMITED)
        add = f"addLiquidity({_V4_KEY},int24,int24,uint128)"
        native = amounts.get(NATIVE_COIN, 0)
        operator.send(self.v4_router, add, key, lower, upper, liquidity, value=native)
        return V4Pool("0x" + keccak(encode([_V4_KEY], [key])).hex(), key)

    @property
    def v3_router(self) -> str:
        """A router to v3 pools for swaps, at most of what it is allowed; deployed at first use."""
        return self._deploy_once("UniswapV3", "V3Router")

    @property
    def v4_router(self) -> str:
        """A router to PoolManager for liquidity and swaps; deployed at first use."""
        return self._deploy_once("UniswapV4Periphery", "V4Router", self.addresses.v4_manager)

    @property
    def solidly_factory(self) -> str:
        """The chain's factory of Solidly pools; deployed at first use where there is no well-known one."""
        return self.addresses.solidly_factory or self._deploy_once("Solidly", "SolidlyFactory")

    @property
    def slipstream_factory(self) -> str:
        """The chain's factory of Slipstream pools; deployed at first use where there is no well-known one."""
        return self.addresses.slipstream_factory or self._deploy_once(
            "ConcentratedForks", "SlipstreamFactory"
        )

    @property
    def algebra_factory(self) -> str:
        """The chain's factory of Algebra pools; deployed at first use where there is no well-known one."""
        return self.addresses.algebra_factory or self._deploy_once("ConcentratedForks", "AlgebraFactory")

    def _deploy_once(self, source: str, name: str, *values: Any) -> str:
        if name not in self._deployed:
            self._deployed[name] = self.operator.deploy_named(source, name, *values)
        return self._deployed[name]

    def _add_range(self, pool: str, amounts: Mapping[str, int], ticks: tuple[int, int] | None) -> None:
        """Add liquidity between two ticks, by default the widest, to a pool like those of Uniswap v3."""
        operator = self.operator
        lower, upper = ticks or _widest_ticks(operator.read(pool, "tickSpacing()", returns="int24"))
        for token in amounts:
            operator.send(token, "approve(address,uint256)", pool, _UNLIMITED)
        liquidity = _liquidity(
            [amounts[token] for token in sorted(amounts, key=_address_number)], lower, upper
        )
        operator.send(pool, "addLiquidity(int24,int24,uint128)", lower, upper, liquidity)


def install_market(chain: EvmChain, addresses: WellKnownAddresses = ETHEREUM) -> ExchangeMarket:
    """Put the well-known contracts on a chain, as `install_exchanges` does."""
    return ExchangeMarket(install_exchanges(chain, addresses).operator, addresses)


def deploy_owner(operator: Deployer, name: str, *values: Any) -> str:
    """Deploy a contract that can own others: `Safe`, `TimelockController` or `Governor`."""
    return operator.deploy(load_contract(TEST_CONTRACTS, "Owners", name), *values)


def _address_number(address: str) -> int:
    return int(address, 16)


def _widest_ticks(spacing: int) -> tuple[int, int]:
    limit = TICK_LIMIT // spacing * spacing
    return -limit, limit


def _price_root(amounts: list[int]) -> int:
    """Return the root of the price at which two amounts are worth the same, with 96 binary places."""
    amount0, amount1 = amounts
    return isqrt((amount1 << 192) // amount0)


def _liquidity(amounts: list[int], lower: int, upper: int) -> int:
    """Return the liquidity that two amounts back between two ticks."""
    amount0, amount1 = amounts
    ratio, low, high = _price_root(amounts), _ratio_at(lower), _ratio_at(upper)
    by0 = amount0 * (ratio * high >> 96) // (high - ratio)
    by1 = (amount1 << 96) // (ratio - low)
    # a little less, since the pool rounds what it takes up
    return min(by0, by1) * (10**12 - 1) // 10**12


def _ratio_at(tick: int) -> int:
    with localcontext(prec=60):
        return int((Decimal("1.0001") ** tick).sqrt() * 2**96)
