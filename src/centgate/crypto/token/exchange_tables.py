"""Exchanges, quote tokens and price feeds by chain: the contracts from which pools and prices are read.

Addresses were compared with a second source: Uniswap's, PancakeSwap's and Sushi's npm packages, else several
independent public repositories. The few with one source only are marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from centgate.crypto.token.pools import PoolKind, QuoteToken

FactoryKind = Literal["v2", "solidly", "v3", "slipstream", "algebra", "v4"]
"""How pools are looked up: v2 by pair; Solidly by pair and curve; v3 by pair and fee; Slipstream, which is a
v3 otherwise, by pair and tick spacing; Algebra by pair; v4 by the hash of the pool's key.
"""
POOL_KINDS: Mapping[FactoryKind, PoolKind] = {
    "v2": "v2",
    "solidly": "solidly",
    "v3": "v3",
    "slipstream": "v3",
    "algebra": "algebra",
    "v4": "v4",
}

UNISWAP_TIERS = ((100, 1), (500, 10), (3000, 60), (10000, 200))
"""Fee in millionths and tick spacing of each pool that Uniswap v3 creates by default; usual in v4."""
PANCAKE_TIERS = ((100, 1), (500, 10), (2500, 50), (10000, 200))
SLIPSTREAM_TIERS = ((None, 1), (None, 50), (None, 100), (None, 200), (None, 2000))
HOOKED_TIER = (None, 200)
"""Tier of the pools with `Exchange.hooks`, which decide the fee."""


class Exchange(Struct, frozen=True):
    """One deployment of an exchange. Addresses are in lower case."""

    name: str
    kind: FactoryKind
    factory: str
    """For v4 the StateView contract, which reads the pools of the manager."""
    fee: int | None = None
    """Millionths, where all pools have the same fee."""
    tiers: tuple[tuple[int | None, int], ...] = ()
    """Fee in millionths and tick spacing of the pools to look up."""
    quoter: str | None = None
    manager: str | None = None
    """v4's PoolManager."""
    hooks: tuple[str, ...] = ()
    """Hooks of the launchpad Clanker, whose tokens have their only pool with one of them.

    By npm's `clanker-sdk` 4.2.18 and its contracts, compared with the lists of hooks of two routers.
    """
    is_verified: bool = True
    """False if only one source was found for its addresses."""


class PriceFeeds(Struct, frozen=True):
    """Chainlink feeds of a chain (docs.chain.link)."""

    native_usd: str
    heartbeat: int
    """Seconds after which the feed is updated at the latest."""
    sequencer: str | None = None
    """Uptime feed of a rollup's sequencer."""


def _uniswap(
    v2_factory: str, v3_factory: str, v3_quoter: str, v4: tuple[str, str, str], *, hooks: tuple[str, ...] = ()
) -> tuple[Exchange, ...]:
    manager, state_view, v4_quoter = v4
    return (
        Exchange("Uniswap v2", "v2", v2_factory, fee=3000),
        Exchange("Uniswap v3", "v3", v3_factory, tiers=UNISWAP_TIERS, quoter=v3_quoter),
        Exchange(
            "Uniswap v4",
            "v4",
            state_view,
            tiers=UNISWAP_TIERS,
            quoter=v4_quoter,
            manager=manager,
            hooks=hooks,
        ),
    )


def _pancake(v2_factory: str) -> tuple[Exchange, ...]:
    return (
        Exchange("PancakeSwap v2", "v2", v2_factory, fee=2500),
        Exchange(
            "PancakeSwap v3",
            "v3",
            "0x0bfbcf9fa4f9c56b0f40a671ad40e0805a091865",
            tiers=PANCAKE_TIERS,
            quoter="0xb048bbc1ee6b733fffcfb9e9cef7375518e25997",
        ),
    )


_V3_FACTORY = "0x1f98431c8ad98523631ae4a59f267346ea31f984"
_V3_QUOTER = "0x61ffe014ba17989e743c5f6cb21bf9697530b21e"
_PANCAKE_L2_V2 = "0x02a84c1b3bbd7401a5f7fa98a384ebc70bb5749e"

EXCHANGES: Mapping[int, tuple[Exchange, ...]] = {
    1: (
        *_uniswap(
            "0x5c69bee701ef814a2b6a3edd4b1652cb9cc5aa6f",
            _V3_FACTORY,
            _V3_QUOTER,
            (
                "0x000000000004444c5dc75cb358380d2e3de08a90",
                "0x7ffe42c4a5deea5b0fec41c94c136cf115597227",
                "0x52f0e24d1c21c8a0cb1e5a5dd6198556bd9e1203",
            ),
            hooks=("0x6c24d0bcc264ef6a740754a11ca579b9d225e8cc",),
        ),
        *_pancake("0x1097053fd2ea711dad45caccc45eff7548fcb362"),
    ),
    8453: (
        *_uniswap(
            "0x8909dc15e40173ff4699343b6eb8132c65e18ec6",
            "0x33128a8fc17869897dce68ed026d694621f6fdfd",
            "0x3d4e44eb1374240ce5f1b871ab261cd16335b76a",
            (
                "0x498581ff718922c3f8e6a244956af099b2652b2b",
                "0xa3c0c9b65bad0b08107aa264b0f3db444b867a71",
                "0x0d5e0f971ed27fbff6c2837bf31316121532048d",
            ),
            hooks=(
                "0xb429d62f8f3bffb98cdb9569533ea23bf0ba28cc",
                "0xd60d6b218116cfd801e28f78d011a203d2b068cc",
                "0xdd5eeaff7bd481ad55db083062b13a3cdf0a68cc",
                "0x34a45c6b61876d739400bd71228cbcbd4f53e8cc",
            ),
        ),
        *_pancake(_PANCAKE_L2_V2),
        Exchange("Aerodrome", "solidly", "0x420dd381b31aef6683db6b902084cb0ffece40da"),
        Exchange(
            "Aerodrome Slipstream",
            "slipstream",
            "0x5e7bb104d84c7cb9b682aac2f3d509f5f406809a",
            tiers=SLIPSTREAM_TIERS,
            quoter="0x254cf9e1e6e233aa1ac962cb9b05b2cfeaae15b0",
        ),
    ),
    56: (
        *_uniswap(
            "0x8909dc15e40173ff4699343b6eb8132c65e18ec6",
            "0xdb1d10011ad0ff90774d0c6bb92e5c5c8b4461f7",
            "0x78d78e420da98ad378d7799be8f4af69033eb077",
            (
                "0x28e2ea090877bf75740558f6bfb36a5ffee9e9df",
                "0xd13dd3d6e93f276fafc9db9e6bb47c1180aee0c4",
                "0x9f75dd27d6664c475b90e105573e550ff69437b0",
            ),
            hooks=(
                "0xc5d309026bcab6630888d51ce21154ad2f4828cc",
                "0x011a8ed40095f2d7e9c19125b8254b19678d68cc",
            ),
        ),
        *_pancake("0xca143ce32fe78f1f7019d7d551a6402fc5350c73"),
    ),
    137: (
        *_uniswap(
            "0x9e5a52f57b3038f1b8eee45f28b3c1967e22799c",
            _V3_FACTORY,
            _V3_QUOTER,
            (
                "0x67366782805870060151383f4bbff9dab53e5cd6",
                "0x5ea1bd7974c8a611cbab0bdcafcb1d9cc9b3ba5a",
                "0xb3d5c3dfc3a7aebff71895a7191796bffc2c81b9",
            ),
        ),
        Exchange("QuickSwap v2", "v2", "0x5757371414417b8c6caad45baef941abc7d3ab32", fee=3000),
        Exchange(
            "QuickSwap v3",
            "algebra",
            "0x411b0facc3489691f28ad58c47006af5e3ab3a28",
            quoter="0xa15f0d7377b2a0c0c10db057f641bed21028fc89",
        ),
        Exchange("SushiSwap v2", "v2", "0xc35dadb65012ec5796536bd9864ed8773abc74c4", fee=3000),
    ),
    42161: (
        *_uniswap(
            "0xf1d7cc64fb4452f05c498126312ebe29f30fbcf9",
            _V3_FACTORY,
            _V3_QUOTER,
            (
                "0x360e68faccca8ca495c1b759fd9eee466db9fb32",
                "0x76fd297e2d437cd7f76d50f01afe6160f86e9990",
                "0x3972c00f7ed4885e145823eb7c655375d275a1c5",
            ),
            hooks=(
                "0xf7ac669593d2d9d01026fa5b756dd5b4f7aaa8cc",
                "0xfd213be7883db36e1049dc42f5bd6a0ec66b68cc",
            ),
        ),
        *_pancake(_PANCAKE_L2_V2),
        Exchange("Camelot v2", "v2", "0x6eccab422d763ac031210895c81787e87b43a652"),
        Exchange(
            "Camelot v3",
            "algebra",
            "0x1a3c9b1d2f0529d97f2afc5136cc23e58f1fd35b",
            quoter="0x0fc73040b26e9bc8514fa028d998e73a254fa76e",
            is_verified=False,  # the quoter
        ),
    ),
    10: (
        *_uniswap(
            "0x0c3c1c532f1e39edf36be9fe0be1410313e074bf",
            _V3_FACTORY,
            _V3_QUOTER,
            (
                "0x9a13f98cb987694c9f086b1f5eb990eea8264ec3",
                "0xc18a3169788f4f75a170290584eca6395c75ecdb",
                "0x1f3131a13296fb91c90870043742c3cdbff1a8d7",
            ),
        ),
        Exchange("Velodrome v2", "solidly", "0xf1046053aa5682b4f9a81b5481394da16be5ff5a"),
        Exchange(
            "Velodrome Slipstream",
            "slipstream",
            "0x548118c7e0b865c2cfa94d15ec86b666468ac758",
            tiers=SLIPSTREAM_TIERS,
            quoter="0xa2decf05c16537c702779083fe067e308463ce45",
            is_verified=False,  # the quoter
        ),
        Exchange(
            "Velodrome Slipstream (first)",
            "slipstream",
            "0xcc0bddb707055e04e497ab22a59c2af4391cd12f",
            tiers=SLIPSTREAM_TIERS,
            quoter="0x89d8218ed5ff1e46d8dcd33fb0bbee3be1621466",
            is_verified=False,  # the quoter
        ),
    ),
}

_WETH_L2 = "0x4200000000000000000000000000000000000006"
_DAI_L2 = "0xda10009cbd5d07dd0cecc66161fc93d7c9000da1"

QUOTE_TOKENS: Mapping[int, tuple[QuoteToken, ...]] = {
    1: (
        QuoteToken("0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2", "WETH", 18, is_native=True),
        QuoteToken("0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", "USDC", 6),
        QuoteToken("0xdac17f958d2ee523a2206206994597c13d831ec7", "USDT", 6),
        QuoteToken("0x6b175474e89094c44da98b954eedeac495271d0f", "DAI", 18),
    ),
    8453: (
        QuoteToken(_WETH_L2, "WETH", 18, is_native=True),
        QuoteToken("0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", "USDC", 6),
        QuoteToken("0xd9aaec86b65d86f6a7b5b1b0c42ffa531710b6ca", "USDbC", 6),
        QuoteToken("0x50c5725949a6f0c72e6c4a641f24049a917db0cb", "DAI", 18),
    ),
    56: (
        QuoteToken("0xbb4cdb9cbd36b01bd1cbaebf2de08d9173bc095c", "WBNB", 18, is_native=True),
        QuoteToken("0x55d398326f99059ff775485246999027b3197955", "USDT", 18),
        QuoteToken("0x8ac76a51cc950d9822d68b83fe1ad97b32cd580d", "USDC", 18),
    ),
    137: (
        QuoteToken("0x0d500b1d8e8ef31e21c99d1db9a6444d3adf1270", "WPOL", 18, is_native=True),
        QuoteToken("0x3c499c542cef5e3811e1192ce70d8cc03d5c3359", "USDC", 6),
        QuoteToken("0x2791bca1f2de4661ed88a30c99a7a9449aa84174", "USDC.e", 6),
        QuoteToken("0xc2132d05d31c914a87c6611c10748aeb04b58e8f", "USDT", 6),
    ),
    42161: (
        QuoteToken("0x82af49447d8a07e3bd95bd0d56f35241523fbab1", "WETH", 18, is_native=True),
        QuoteToken("0xaf88d065e77c8cc2239327c5edb3a432268e5831", "USDC", 6),
        QuoteToken("0xff970a61a04b1ca14834a43f5de4533ebddb5cc8", "USDC.e", 6),
        QuoteToken("0xfd086bc7cd5c481dcc9c85ebe478a1c0b69fcbb9", "USDT", 6),
        QuoteToken(_DAI_L2, "DAI", 18),
    ),
    10: (
        QuoteToken(_WETH_L2, "WETH", 18, is_native=True),
        QuoteToken("0x0b2c639c533813f4aa9d7837caf62653d097ff85", "USDC", 6),
        QuoteToken("0x7f5c764cbc14f9669b88837ca1490cca17c31607", "USDC.e", 6),
        QuoteToken("0x94b008aa00579c1307b0ef2c499ad98a8ce58e58", "USDT", 6),
        QuoteToken(_DAI_L2, "DAI", 18),
    ),
}

PRICE_FEEDS: Mapping[int, PriceFeeds] = {
    1: PriceFeeds("0x5f4ec3df9cbd43714fe2740f5e3616155c5b8419", 3600),
    8453: PriceFeeds(
        "0x71041dddad3595f9ced3dccfbe3d1f4b0a16bb70", 1200, "0xbcf85224fc0756b9fa45aa7892530b47e10b6433"
    ),
    56: PriceFeeds("0x0567f2323251f0aab15c8dfb1967e4e8a7d42aee", 60),
    137: PriceFeeds("0xab594600376ec9fd91f8e885dadf0ce036862de0", 30),
    42161: PriceFeeds(
        "0x639fe6ab55c921f74e7fac1ee960c0b6293ba612", 86_400, "0xfdb631f5ee196f0ed6faa767959853a9f217697d"
    ),
    10: PriceFeeds(
        "0x13e3ee699d1909e989722e753853ae30b17e08c5", 1200, "0x371ead81c9102c9bf4874a9075ffff170f2ee389"
    ),
}
MAX_FEED_AGE = 2
"""Heartbeats after which an answer of a feed is stale."""
MIN_FEED_AGE = 3600
"""Seconds that an answer may be old in any case: a node's clock and block times differ."""
SEQUENCER_GRACE = 3600
"""Seconds after a restart of the sequencer in which prices are not used, as Chainlink advises."""
