"""Stand-ins of well-known contracts on a development chain: exchanges, stablecoins, price feeds.

They have the published interfaces and honest maths, and are at the addresses that the real ones have on
Ethereum or Base, so that nothing has to be configured to find them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from eth.abc import StateAPI
from eth_abi.abi import encode
from eth_utils.address import to_canonical_address
from msgspec import Struct

from centgate.devchain.accounts import Account
from centgate.devchain.chain import EvmChain, create_contract_at
from centgate.devchain.deployer import CONTRACTS, Deployer
from centgate.devchain.well_known import ETHEREUM, WellKnownAddresses
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
UNISWAP_V2_FEE: Final = 30  # hundredths of a percent


class Exchanges(Struct):
    """Well-known contracts on a chain, and what is done with them in the operator's name."""

    operator: Deployer
    addresses: WellKnownAddresses

    def wrap(self, amount: int) -> str:
        """Wrap native coin, in wei. Returns the address of the wrapped coin."""
        self.operator.send(self.addresses.wrapped_native, "deposit()", value=amount)
        return self.addresses.wrapped_native

    def add_v2_pool(self, amounts: Mapping[str, int], *, factory: str | None = None) -> str:
        """Create a Uniswap v2 pair with these amounts of two tokens, in base units. Returns its address.

        `factory` may be that of a fork.
        """
        token_a, token_b = amounts
        factory = factory or self.addresses.v2_factory
        self.operator.send(factory, "createPair(address,address)", token_a, token_b)
        pair = self.operator.read(factory, "getPair(address,address)", token_a, token_b, returns="address")
        self._fill(pair, amounts)
        return pair

    def swap_v2(
        self, pair: str, token_in: str, amount: int, recipient: str, *, fee: int = UNISWAP_V2_FEE
    ) -> int:
        """Sell tokens of the operator to a v2 pair, whose fee is in hundredths of a percent.

        Returns what the pair gave to the recipient.
        """
        operator = self.operator
        token0 = operator.read(pair, "token0()", returns="address")
        reserves = operator.read(pair, "getReserves()", returns="uint112,uint112,uint32")[:2]
        sells_first = _address_number(token_in) == _address_number(token0)
        reserve_in, reserve_out = reserves if sells_first else reversed(reserves)
        operator.send(token_in, "transfer(address,uint256)", pair, amount)
        received = operator.read(token_in, "balanceOf(address)", pair) - reserve_in
        net = received * (10_000 - fee)
        out = net * reserve_out // (reserve_in * 10_000 + net)
        outputs = (0, out) if sells_first else (out, 0)
        operator.send(pair, "swap(uint256,uint256,address,bytes)", *outputs, recipient, b"")
        return out

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
        addresses.native_feed: ("Infrastructure", "PriceFeed", "Native / USD", 8, NATIVE_PRICE, 0),
        addresses.sequencer_feed: ("Infrastructure", "PriceFeed", "L2 Sequencer Uptime", 0, 0, 1),
        addresses.sanctions_list: ("Infrastructure", "SanctionsList"),
        addresses.ens_resolver: ("Infrastructure", "UniversalResolver"),
        addresses.basename_registry: ("Infrastructure", "BasenameRegistry"),
        addresses.l2_reverse_registrar: ("Infrastructure", "L2ReverseRegistrar"),
        addresses.permit2: ("Permit2", "Permit2"),
        addresses.v2_factory: ("UniswapV2", "UniswapV2Factory", UNISWAP_V2_FEE),
        addresses.v3_factory: ("UniswapV3", "UniswapV3Factory"),
        addresses.v3_quoter: ("UniswapV3", "QuoterV2", addresses.v3_factory),
        addresses.pancake_v3_factory: ("UniswapV3", "PancakeV3Factory"),
        addresses.pancake_v3_quoter: ("UniswapV3", "QuoterV2", addresses.pancake_v3_factory),
        addresses.v4_manager: ("UniswapV4", "PoolManager"),
        addresses.v4_state_view: ("UniswapV4Periphery", "StateView", addresses.v4_manager),
        addresses.v4_quoter: ("UniswapV4Periphery", "V4Quoter", addresses.v4_manager),
        addresses.solidly_factory: ("Solidly", "SolidlyFactory"),
        addresses.slipstream_factory: ("ConcentratedForks", "SlipstreamFactory"),
        addresses.slipstream_quoter: ("ConcentratedForks", "SlipstreamQuoter", addresses.slipstream_factory),
        addresses.algebra_factory: ("ConcentratedForks", "AlgebraFactory"),
        addresses.algebra_quoter: ("ConcentratedForks", "AlgebraQuoter", addresses.algebra_factory),
    }
    for resolver in addresses.basename_resolvers:
        contracts[resolver] = ("Infrastructure", "BasenameResolver")
    for factory, fee in addresses.v2_forks.values():
        contracts[factory] = ("UniswapV2", "UniswapV2Factory", fee)
    for symbol, (address, decimals) in addresses.stablecoins.items():
        contracts[address] = ("Erc20", "Erc20", symbol, symbol, decimals, 0)
    return {address: contract for address, contract in contracts.items() if address}


def _address_number(address: str) -> int:
    return int(address, 16)
