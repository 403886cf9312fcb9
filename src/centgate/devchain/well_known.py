"""Addresses at which a development chain has its stand-ins of well-known contracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field


class WellKnownAddresses(Struct, frozen=True):
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
    slipstream_factory: str
    slipstream_quoter: str
    algebra_factory: str
    algebra_quoter: str
    sanctions_list: str
    stablecoins: Mapping[str, tuple[str, int]]
    """Address and decimals by symbol."""
    v2_forks: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """Factories with the interface of Uniswap v2 and their fee in hundredths of a percent, by exchange."""
    ens_resolver: str = ""
    basename_registry: str = ""
    basename_resolvers: tuple[str, ...] = ()
    l2_reverse_registrar: str = ""
    pancake_v3_factory: str = "0x0BFbCF9fa4f9C56B0F40a671Ad40E0805A091865"
    pancake_v3_quoter: str = "0xB048Bbc1Ee6b733FFfCFb9e9CeF7375518e25997"
    multicall: str = "0xcA11bde05977b3631167028862bE2a173976CA11"
    permit2: str = "0x000000000022D473030F116dDEE9F6B43aC78BA3"


# sources: docs.uniswap.org, developer.pancakeswap.finance, docs.sushi.com, aerodrome-finance,
# docs.chain.link, go.chainalysis.com, docs.ens.domains, github.com/base/basenames,
# github.com/ensdomains/ens-contracts
ETHEREUM: Final = WellKnownAddresses(
    wrapped_native="0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2",
    native_feed="0x5f4eC3Df9cbd43714FE2740f5E3616155c5b8419",
    sequencer_feed="",
    v2_factory="0x5C69bEe701ef814a2B6a3EDD4B1652CB9cc5aA6f",
    v3_factory="0x1F98431c8aD98523631AE4a59f267346ea31F984",
    v3_quoter="0x61fFE014bA17989E743c5F6cB21bF9697530B21e",
    v4_manager="0x000000000004444c5dc75cB358380D2e3dE08A90",
    v4_state_view="0x7fFE42C4a5DEeA5b0feC41C94C136Cf115597227",
    v4_quoter="0x52F0E24D1c21C8A0cB1e5a5dD6198556BD9E1203",
    solidly_factory="",
    slipstream_factory="",
    slipstream_quoter="",
    algebra_factory="",
    algebra_quoter="",
    sanctions_list="0x40C57923924B5c5c5455c48D93317139ADDaC8fb",
    stablecoins={
        "USDC": ("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", 6),
        "USDT": ("0xdAC17F958D2ee523a2206206994597C13D831ec7", 6),
        "DAI": ("0x6B175474E89094C44Da98b954EedeAC495271d0F", 18),
    },
    v2_forks={
        "PancakeSwap": ("0x1097053Fd2ea711dad45caCcc45EfF7548fCB362", 25),
        "SushiSwap": ("0xC0AEe478e3658e2610c5F7A4A2E1777cE9e4f2Ac", 30),
    },
    ens_resolver="0xeEeEEEeE14D718C2B47D9923Deab1335E144EeEe",
)
BASE: Final = WellKnownAddresses(
    wrapped_native="0x4200000000000000000000000000000000000006",
    native_feed="0x71041dddad3595F9CEd3DcCFBe3D1F4b0a16Bb70",
    sequencer_feed="0xBCF85224fc0756B9Fa45aA7892530B47e10b6433",
    v2_factory="0x8909Dc15e40173Ff4699343b6eB8132c65e18eC6",
    v3_factory="0x33128a8fC17869897dcE68Ed026d694621f6FDfD",
    v3_quoter="0x3d4e44Eb1374240CE5F1B871ab261CD16335B76a",
    v4_manager="0x498581fF718922c3f8e6A244956aF099B2652b2b",
    v4_state_view="0xA3c0c9b65baD0b08107Aa264b0f3dB444b867A71",
    v4_quoter="0x0d5e0F971ED27FBfF6c2837bf31316121532048D",
    solidly_factory="0x420DD381b31aEf6683db6B902084cB0FFECe40Da",
    slipstream_factory="0x5e7BB104d84c7CB9B682AaC2F3d509f5F406809A",
    slipstream_quoter="0x254cF9E1E6e233aa1AC962CB9B05b2cfeAaE15b0",
    algebra_factory="",
    algebra_quoter="",
    sanctions_list="0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B",
    stablecoins={
        "USDC": ("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", 6),
        "USDbC": ("0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA", 6),
        "DAI": ("0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb", 18),
    },
    v2_forks={"PancakeSwap": ("0x02a84c1b3BBD7401a5f7fa98a384EBC70bB5749E", 25)},
    basename_registry="0xB94704422c2a1E396835A571837Aa5AE53285a95",
    basename_resolvers=(
        "0xC6d566A56A1aFf6508b41f6c90ff131615583BCD",
        "0x426fA03fB86E510d0Dd9F70335Cf102a98b10875",
    ),
    l2_reverse_registrar="0x0000000000D8e504002cC26E3Ec46D81971C1664",
)

POLYGON: Final = WellKnownAddresses(
    wrapped_native="0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270",
    native_feed="0xAB594600376Ec9fD91F8e885dADF0CE036862dE0",
    sequencer_feed="",
    v2_factory="0x9e5A52f57b3038F1B8EeE45F28b3C1967e22799C",
    v3_factory="0x1F98431c8aD98523631AE4a59f267346ea31F984",
    v3_quoter="0x61fFE014bA17989E743c5F6cB21bF9697530B21e",
    pancake_v3_factory="",
    pancake_v3_quoter="",
    v4_manager="0x67366782805870060151383F4BbFF9daB53e5cD6",
    v4_state_view="0x5eA1bD7974c8A611cBAB0bDCAFcB1D9CC9b3BA5a",
    v4_quoter="0xb3d5c3Dfc3a7aEbFF71895A7191796BFFc2c81b9",
    solidly_factory="",
    slipstream_factory="",
    slipstream_quoter="",
    algebra_factory="0x411b0fAcC3489691f28ad58c47006AF5E3Ab3A28",
    algebra_quoter="0xa15F0D7377B2A0C0c10db057f641beD21028FC89",
    sanctions_list="0x40C57923924B5c5c5455c48D93317139ADDaC8fb",
    stablecoins={
        "USDC": ("0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", 6),
        "USDC.e": ("0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174", 6),
        "USDT": ("0xc2132D05D31c914a87C6611C10748AEb04B58e8F", 6),
    },
    v2_forks={
        "QuickSwap": ("0x5757371414417b8C6CAad45bAeF941aBc7d3Ab32", 30),
        "SushiSwap": ("0xc35DADB65012eC5796536bD9864eD8773aBc74C4", 30),
    },
)
