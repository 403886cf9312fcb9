"""Stand-ins of well-known contracts on a development chain: exchanges, stablecoins, price feeds.

They have the published interfaces and honest maths, and are at the addresses that the real ones have on
Ethereum or Base, so that nothing has to be configured to find them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from math import isqrt
from typing import Any, Final

from eth.abc import StateAPI
from eth_abi.abi import encode
from eth_utils.address import to_canonical_address

from centgate.devchain.accounts import Account
from centgate.devchain.chain import EvmChain, create_contract_at
from centgate.devchain.deployer import CONTRACTS, Deployer
from centgate.signing.evm import keccak
from centgate.solidity import load_contract

# its key is the sha256 of "centgate devchain exchange operator"
OPERATOR: Final = Account(
    "0x73AaA636c642E50Ad9284f34640FCDfe038cD37c",
    "0x25b04aac75921c4b7b19ad7a39bbf96020d22a8638456c9a54dd892dbb66c22f",
)
"""Account that deploys, owns the stablecoins and has all the liquidity."""
OPERATOR_BALANCE: Final = 10**9 * 10**18
NATIVE_PRICE: Final = 2_000 * 10**8
"""Dollars for a native coin in the price feed, with 8 decimals."""
NATIVE_COIN: Final = "0x0000000000000000000000000000000000000000"
"""Native coin as a currency of Uniswap v4."""
NO_HOOKS: Final = NATIVE_COIN
TICK_LIMIT: Final = 887_272
DYNAMIC_FEE: Final = 0x800000
"""Fee of a v4 pool whose hooks decide it."""
_UNLIMITED: Final = 2**256 - 1
_V4_KEY: Final = "(address,address,uint24,int24,address)"


@dataclass(frozen=True)
class WellKnownAddresses:
    """Addresses of the contracts that a chain's readers know. An empty address: the chain has none."""

    wrapped_native: str
    native_feed: str
    sequencer_feed: str
    v2_factory: str
    v3_factory: str
    v3_quoter: str
    v4_manager: str
    v4_state_view: str
    v4_quoter: str
    solidly_factory: str
    sanctions_list: str
    stablecoins: Mapping[str, tuple[str, int]]
    """Address and decimals by symbol."""
    pancake_v3_factory: str = "0x0BFbCF9fa4f9C56B0F40a671Ad40E0805A091865"
    pancake_v3_quoter: str = "0xB048Bbc1Ee6b733FFfCFb9e9CeF7375518e25997"
    multicall: str = "0xcA11bde05977b3631167028862bE2a173976CA11"
    permit2: str = "0x000000000022D473030F116dDEE9F6B43aC78BA3"


# sources: docs.uniswap.org, aerodrome-finance, docs.chain.link, go.chainalysis.com
ETHEREUM: Final = WellKnownAddresses(
    wrapped_native="0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2",
    native_feed="0x5f4eC3Df9cbd43714FE2740f5E3616155c5b8419",
    sequencer_feed="",
    v2_factory="0x5C69bEe701ef814a2B6a3EDD4B1652CB9cc5aA6f",
    v3_factory="0x1F98431c8aD98523631AE4a59f267346ea31F984",
    v3_quoter="0x61fFE014bA17989E743c5F6cB21bF9697530B21e",
    v4_manager="0x000000000004444c5dc75cB358380D2e3dE08A90",
    v4_state_view="0x7ffe42c4a5deea5b0fec41c94c136cf115597227",
    v4_quoter="0x52f0e24d1c21c8a0cb1e5a5dd6198556bd9e1203",
    solidly_factory="",
    sanctions_list="0x40C57923924B5c5c5455c48D93317139ADDaC8fb",
    stablecoins={
        "USDC": ("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", 6),
        "USDT": ("0xdAC17F958D2ee523a2206206994597C13D831ec7", 6),
        "DAI": ("0x6B175474E89094C44Da98b954EedeAC495271d0F", 18),
    },
)
BASE: Final = WellKnownAddresses(
    wrapped_native="0x4200000000000000000000000000000000000006",
    native_feed="0x71041dddad3595F9CEd3DcCFBe3D1F4b0a16Bb70",
    sequencer_feed="0xBCF85224fc0756B9Fa45aA7892530B47e10b6433",
    v2_factory="0x8909Dc15e40173Ff4699343b6eB8132c65e18eC6",
    v3_factory="0x33128a8fC17869897dcE68Ed026d694621f6FDfD",
    v3_quoter="0x3d4e44Eb1374240CE5F1B871ab261CD16335B76a",
    v4_manager="0x498581ff718922c3f8e6a244956af099b2652b2b",
    v4_state_view="0xa3c0c9b65bad0b08107aa264b0f3db444b867a71",
    v4_quoter="0x0d5e0f971ed27fbff6c2837bf31316121532048d",
    solidly_factory="0x420DD381b31aEf6683db6B902084cB0FFECe40Da",
    sanctions_list="0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B",
    stablecoins={
        "USDC": ("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", 6),
        "DAI": ("0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb", 18),
    },
)


@dataclass(frozen=True)
class V4Pool:
    """Pool of Uniswap v4, which has no address: its id in hex, and its key as the contracts take it."""

    id: str
    key: tuple[str, str, int, int, str]


@dataclass
class Exchanges:
    """Well-known contracts on a chain, and what is done with them in the operator's name."""

    operator: Deployer
    addresses: WellKnownAddresses
    _deployed: dict[str, str] = field(default_factory=dict[str, str])

    def create_token(self, name: str, symbol: str, *, decimals: int = 18, supply: int) -> str:
        """Deploy a plain token whose supply (in base units) the operator gets. Returns its address."""
        return self.operator.deploy_named("Erc20", "Erc20", name, symbol, decimals, supply)

    def wrap(self, amount: int) -> str:
        """Wrap native coin, in wei. Returns the address of the wrapped coin."""
        self.operator.send(self.addresses.wrapped_native, "deposit()", value=amount)
        return self.addresses.wrapped_native

    def stablecoin(self, symbol: str, amount: int) -> str:
        """Mint a stablecoin (in base units) to the operator. Returns its address."""
        address, _ = self.addresses.stablecoins[symbol]
        self.operator.send(address, "mint(address,uint256)", self.operator.address, amount)
        return address

    def set_feed(self, feed: str, answer: int, *, started_at: int = 0, updated_at: int = 0) -> None:
        """Set the answer of a price or sequencer feed. Times in seconds since 1970; 0 is always now."""
        self.operator.send(feed, "set(int256,uint256,uint256)", answer, started_at, updated_at)

    def add_v2_pool(self, amounts: Mapping[str, int]) -> str:
        """Create a Uniswap v2 pair with these amounts of two tokens, in base units. Returns its address."""
        token_a, token_b = amounts
        factory = self.addresses.v2_factory
        self.operator.send(factory, "createPair(address,address)", token_a, token_b)
        pair = self.operator.read(factory, "getPair(address,address)", token_a, token_b, returns="address")
        self._fill(pair, amounts)
        return pair

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
        lower, upper = ticks or _widest_ticks(operator.read(pool, "tickSpacing()", returns="int24"))
        ratio, liquidity = _price_and_liquidity([amounts[token] for token in pair], lower, upper)
        operator.send(pool, "initialize(uint160)", ratio)
        for token in pair:
            operator.send(token, "approve(address,uint256)", pool, _UNLIMITED)
        operator.send(pool, "addLiquidity(int24,int24,uint128)", lower, upper, liquidity)
        return pool

    def add_v4_pool(
        self, amounts: Mapping[str, int], *, fee: int = 3000, tick_spacing: int = 60, hooks: str = NO_HOOKS
    ) -> V4Pool:
        """Create a Uniswap v4 pool with about these amounts of two currencies, over the widest range."""
        pair, operator = sorted(amounts, key=_address_number), self.operator
        key = (pair[0], pair[1], fee, tick_spacing, hooks)
        lower, upper = _widest_ticks(tick_spacing)
        ratio, liquidity = _price_and_liquidity([amounts[currency] for currency in pair], lower, upper)
        operator.send(self.addresses.v4_manager, f"initialize({_V4_KEY},uint160)", key, ratio)
        for token in pair:
            if token != NATIVE_COIN:
                operator.send(token, "approve(address,uint256)", self.v4_router, _UNLIMITED)
        add = f"addLiquidity({_V4_KEY},int24,int24,uint128)"
        native = amounts.get(NATIVE_COIN, 0)
        operator.send(self.v4_router, add, key, lower, upper, liquidity, value=native)
        return V4Pool("0x" + keccak(encode([_V4_KEY], [key])).hex(), key)

    def swap_v2(self, pair: str, token_in: str, amount: int, recipient: str) -> int:
        """Sell tokens of the operator to a Uniswap v2 pair. Returns what the pair gave to the recipient."""
        operator = self.operator
        token0 = operator.read(pair, "token0()", returns="address")
        reserves = operator.read(pair, "getReserves()", returns="uint112,uint112,uint32")[:2]
        sells_first = _address_number(token_in) == _address_number(token0)
        reserve_in, reserve_out = reserves if sells_first else reversed(reserves)
        operator.send(token_in, "transfer(address,uint256)", pair, amount)
        received = operator.read(token_in, "balanceOf(address)", pair) - reserve_in
        out = received * 997 * reserve_out // (reserve_in * 1000 + received * 997)
        outputs = (0, out) if sells_first else (out, 0)
        operator.send(pair, "swap(uint256,uint256,address,bytes)", *outputs, recipient, b"")
        return out

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

    def _deploy_once(self, source: str, name: str, *values: Any) -> str:
        if name not in self._deployed:
            self._deployed[name] = self.operator.deploy_named(source, name, *values)
        return self._deployed[name]

    def _fill(self, pool: str, amounts: Mapping[str, int]) -> None:
        """Transfer tokens to a pool that mints liquidity for what it has got."""
        for token, amount in amounts.items():
            self.operator.send(token, "transfer(address,uint256)", pool, amount)
        self.operator.send(pool, "mint(address)", self.operator.address)


def install_exchanges(chain: EvmChain, addresses: WellKnownAddresses = ETHEREUM) -> Exchanges:
    """Put the well-known contracts on a chain, in one block, and give the operator native coin."""

    def change(state: StateAPI) -> None:
        state.set_balance(to_canonical_address(OPERATOR.address), OPERATOR_BALANCE)
        for address, (source, name, *values) in _list_contracts(addresses).items():
            contract = load_contract(CONTRACTS, source, name)
            initcode = contract.initcode + encode(contract.constructor_types, values)
            create_contract_at(state, address, initcode, sender=OPERATOR.address)

    chain.change_state(change)
    return Exchanges(Deployer(chain, OPERATOR), addresses)


def _list_contracts(addresses: WellKnownAddresses) -> dict[str, tuple[Any, ...]]:
    """Return source, name and constructor's arguments of each contract by its address."""
    contracts: dict[str, tuple[Any, ...]] = {
        addresses.wrapped_native: ("WrappedNative", "WrappedNative"),
        addresses.multicall: ("Infrastructure", "Multicall3"),
        addresses.native_feed: ("Infrastructure", "PriceFeed", "ETH / USD", 8, NATIVE_PRICE),
        addresses.sequencer_feed: ("Infrastructure", "PriceFeed", "L2 Sequencer Uptime Status Feed", 0, 0),
        addresses.sanctions_list: ("Infrastructure", "SanctionsList"),
        addresses.permit2: ("Permit2", "Permit2"),
        addresses.v2_factory: ("UniswapV2", "UniswapV2Factory"),
        addresses.v3_factory: ("UniswapV3", "UniswapV3Factory"),
        addresses.v3_quoter: ("UniswapV3", "QuoterV2", addresses.v3_factory),
        addresses.pancake_v3_factory: ("UniswapV3", "PancakeV3Factory"),
        addresses.pancake_v3_quoter: ("UniswapV3", "QuoterV2", addresses.pancake_v3_factory),
        addresses.v4_manager: ("UniswapV4", "PoolManager"),
        addresses.v4_state_view: ("UniswapV4Periphery", "StateView", addresses.v4_manager),
        addresses.v4_quoter: ("UniswapV4Periphery", "V4Quoter", addresses.v4_manager),
        addresses.solidly_factory: ("Solidly", "SolidlyFactory"),
    }
    for symbol, (address, decimals) in addresses.stablecoins.items():
        contracts[address] = ("Erc20", "Erc20", symbol, symbol, decimals, 0)
    return {address: contract for address, contract in contracts.items() if address}


def _address_number(address: str) -> int:
    return int(address, 16)


def _widest_ticks(spacing: int) -> tuple[int, int]:
    limit = TICK_LIMIT // spacing * spacing
    return -limit, limit


def _price_and_liquidity(amounts: list[int], lower: int, upper: int) -> tuple[int, int]:
    """Return the root of the price (with 96 binary places), and the liquidity that the amounts back."""
    amount0, amount1 = amounts
    ratio, low, high = isqrt((amount1 << 192) // amount0), _ratio_at(lower), _ratio_at(upper)
    by0 = amount0 * (ratio * high >> 96) // (high - ratio)
    by1 = (amount1 << 96) // (ratio - low)
    # a little less, since the pool rounds what it takes up
    return ratio, min(by0, by1) * (10**12 - 1) // 10**12


def _ratio_at(tick: int) -> int:
    with localcontext(prec=60):
        return int((Decimal("1.0001") ** tick).sqrt() * 2**96)
