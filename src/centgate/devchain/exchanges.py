"""Stand-ins of well-known contracts on a development chain: exchanges, stablecoins, price feeds.

They have the published interfaces and honest maths, and are at the addresses that the real ones have on
Ethereum or Base, so that nothing has to be configured to find them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from eth.abc import StateAPI
from eth_abi.abi import encode
from eth_utils.address import to_canonical_address

from centgate.devchain.accounts import Account
from centgate.devchain.chain import EvmChain, create_contract_at
from centgate.devchain.deployer import CONTRACTS, Deployer
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


@dataclass(frozen=True)
class WellKnownAddresses:
    """Addresses of the contracts that a chain's readers know. An empty address: the chain has none."""

    wrapped_native: str
    native_feed: str
    sequencer_feed: str
    v2_factory: str
    solidly_factory: str
    sanctions_list: str
    stablecoins: Mapping[str, tuple[str, int]]
    """Address and decimals by symbol."""
    multicall: str = "0xcA11bde05977b3631167028862bE2a173976CA11"
    permit2: str = "0x000000000022D473030F116dDEE9F6B43aC78BA3"


# sources: docs.uniswap.org, aerodrome-finance, docs.chain.link, go.chainalysis.com
ETHEREUM: Final = WellKnownAddresses(
    wrapped_native="0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2",
    native_feed="0x5f4eC3Df9cbd43714FE2740f5E3616155c5b8419",
    sequencer_feed="",
    v2_factory="0x5C69bEe701ef814a2B6a3EDD4B1652CB9cc5aA6f",
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
    solidly_factory="0x420DD381b31aEf6683db6B902084cB0FFECe40Da",
    sanctions_list="0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B",
    stablecoins={
        "USDC": ("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", 6),
        "DAI": ("0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb", 18),
    },
)


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

    @property
    def solidly_factory(self) -> str:
        """The chain's factory of Solidly pools; deployed at first use where there is no well-known one."""
        return self.addresses.solidly_factory or self._deploy_once("Solidly", "SolidlyFactory")

    def _deploy_once(self, source: str, name: str) -> str:
        if name not in self._deployed:
            self._deployed[name] = self.operator.deploy_named(source, name)
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
        addresses.solidly_factory: ("Solidly", "SolidlyFactory"),
    }
    for symbol, (address, decimals) in addresses.stablecoins.items():
        contracts[address] = ("Erc20", "Erc20", symbol, symbol, decimals, 0)
    return {address: contract for address, contract in contracts.items() if address}
