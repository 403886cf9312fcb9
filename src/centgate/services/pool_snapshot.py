"""pool-snapshot: price, liquidity, volume and age of a token's deepest pair, or of a given pair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from pydantic import ConfigDict, Field

from centgate.answers.pool_snapshot import (
    OtherPair,
    PoolSnapshot,
    PoolToken,
    SaleImpact,
    TradeCounts,
    TradeWindow,
    build_pool_snapshot,
    describe_selection,
    list_snapshot_warnings,
)
from centgate.chains import NAMED_CHAIN_RULE, Address, NamedChainRequest
from centgate.errors import Issue
from centgate.lookups.chain_pools import ChainIndex
from centgate.lookups.pair_confirmation import confirm_pair
from centgate.lookups.pair_selection import PairSources
from centgate.provider import Fallback, Primary
from centgate.providers.dexscreener import DexScreener
from centgate.providers.geckoterminal import GeckoTerminal
from centgate.providers.rpc import Rpc
from centgate.schema import Omittable, hide_rule, require_text
from centgate.service import service


class PoolSnapshotRequest(NamedChainRequest):
    """A token, or one of its pairs, on a chain."""

    model_config = ConfigDict(
        json_schema_extra=hide_rule(
            NAMED_CHAIN_RULE, {"oneOf": [require_text("tokenAddress"), require_text("pairAddress")]}
        )
    )

    token_address: Omittable[Address] = Field(
        default=None, description="A token, answered with its deepest pair; not together with `pairAddress`."
    )
    pair_address: Omittable[Address] = Field(
        default=None, description="A pair's own contract; not together with `tokenAddress`."
    )

    @classmethod
    def check_cross_field_rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """Require a named chain and exactly one of token and pair."""
        yield from super().check_cross_field_rules(body, context)
        if ("tokenAddress" in body) == ("pairAddress" in body):
            yield Issue("", "exactly one of tokenAddress or pairAddress is required")


@service(
    order=20,
    title="Pool snapshot",
    category="crypto-context",
    fixed_roles=True,
    tags=("token", "price", "liquidity", "dex", "evm"),
    guardrails=(
        "One token or one pair per request.",
        "A token is answered with its deepest pair by liquidity on the requested chain.",
        "Prices are those of one pair at one moment, not an average over exchanges.",
        "A pair is asked for by its own contract; the id of a v4 pool is not accepted.",
        "A figure that the source does not give is null, never 0.",
        "If no exchange index answers, the chain does: price, reserves and depth, no figures of 24 hours.",
        "Read-only: nothing is signed or sent.",
    ),
    cache_ttl=timedelta(minutes=1),
    input_example=PoolSnapshotRequest(
        chain="base", token_address="0x4200000000000000000000000000000000000006"
    ),
    output_example=PoolSnapshot(
        pair_address="0xd0b53d9277642d899df5c87a3966a349a798f224",
        price_usd=3_000,
        liquidity_usd=98_000_000,
        volume24h_usd=143_500_000,
        fdv_usd=721_500_000,
        pair_created_at="2023-08-16T19:05:00Z",
        txns24h=TradeCounts(buys=41_200, sells=39_800),
        url="https://dexscreener.com/base/0xd0b53d9277642d899df5c87a3966a349a798f224",
        dex="uniswap",
        dex_version="v3",
        fee_percent=0.05,
        base_token=PoolToken(
            address="0x4200000000000000000000000000000000000006",
            symbol="WETH",
            reserve=16_300,
            reserve_usd=48_900_000,
        ),
        quote_token=PoolToken(
            address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
            symbol="USDC",
            reserve=49_100_000,
            reserve_usd=49_100_000,
        ),
        market_cap_usd=721_500_000,
        windows=[
            TradeWindow(
                window="24h", price_change_percent=1.8, volume_usd=143_500_000, buys=41_200, sells=39_800
            )
        ],
        pair_count=2,
        other_pairs=[
            OtherPair(
                pair_address="0xcdac0d6c6c59727a65f871236188350531885c43",
                dex="aerodrome",
                price_usd=3_001.5,
                liquidity_usd=42_000_000,
                liquidity_share=30,
            )
        ],
        chain_price_usd=2_999.4,
        sale_impacts=[
            SaleImpact(usd=100, loss_percent=0.05),
            SaleImpact(usd=1_000, loss_percent=0.0501),
            SaleImpact(usd=10_000, loss_percent=0.0512),
        ],
    ),
)
async def pool_snapshot(
    request: PoolSnapshotRequest,
    dexscreener: Primary[DexScreener],
    geckoterminal: Fallback[GeckoTerminal],
    rpc: Fallback[Rpc],
) -> PoolSnapshot:
    """Return price, liquidity, volume and age of a token's deepest pair, or of a given pair.

    Reads one pair of a decentralised exchange: its price in US dollars, the liquidity of the pool, the volume
    of the last 24 hours and the creation time. If the first source does not answer, a second one does, and
    at last the chain itself, which also confirms the price and quotes what a sale would lose.
    """
    chain_id, chain, trace = request.target_chain_id, ChainIndex(rpc), rpc.trace
    sources = PairSources(chain_id, dexscreener, geckoterminal, chain)
    if request.pair_address:
        selected = await sources.select_pair(request.pair_address)
    else:
        selected = await sources.select_token_pair(request.token_address or "", trace)
    confirmation = await confirm_pair(chain, chain_id, selected, trace)
    snapshot = build_pool_snapshot(selected, confirmation)
    # the selection is not part of `data` in the service's contract, so it is reported with the provider
    trace.record(selected.pair.source, "ok", selection=describe_selection(selected))
    primary_status = trace.status_of(dexscreener.info.name)
    for warning in list_snapshot_warnings(snapshot, selected, confirmation, primary_status):
        trace.add_warning(warning)
    return snapshot
