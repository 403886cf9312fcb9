"""pool-snapshot: what a token or a pair trades at, and how deep its pool is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, cast

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from centgate.chains import Address, OnNamedChain
from centgate.errors import Issue, ProviderUnconfigured
from centgate.provider import Fallback, Primary
from centgate.providers.dexscreener import DexScreener
from centgate.providers.geckoterminal import GeckoTerminal
from centgate.schema import Data, Omittable
from centgate.service import service


class PoolSnapshotRequest(OnNamedChain):
    """A token, or one of its pairs, on a chain."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                cast(JsonDict, OnNamedChain.model_config.get("json_schema_extra")),
                {"oneOf": [{"required": ["tokenAddress"]}, {"required": ["pairAddress"]}]},
            ]
        }
    )

    token_address: Omittable[Address] = Field(
        default=None, description="A token, to be answered with its deepest pair; not with `pairAddress`."
    )
    pair_address: Omittable[Address] = Field(
        default=None, description="A pair's own contract; not with `tokenAddress`."
    )

    @classmethod
    def rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """The chain's rules, and one of token and pair but not both."""
        yield from super().rules(body, context)
        if ("tokenAddress" in body) == ("pairAddress" in body):
            yield Issue("", "exactly one of tokenAddress or pairAddress is required")


class TradeCounts(Data):
    """Trades of the last 24 hours."""

    buys: int
    sells: int


class PoolSnapshot(Data):
    """A pair as it stands now."""

    pair_address: str = Field(
        description="Lower case; a 32-byte pool id on exchanges whose pools have no contract of their own."
    )
    price_usd: float | None = Field(
        description="US dollars for one unit of the token asked about; of the pair's base token for a pair."
    )
    liquidity_usd: float | None = Field(description="US dollars in the pool, both sides together.")
    volume24h_usd: float | None = Field(
        description="US dollars traded in the last 24 hours.",
    )
    fdv_usd: float | None = Field(
        description="US dollars for the whole supply of the priced token at this price."
    )
    pair_created_at: str | None = Field(description="ISO 8601, UTC.")
    txns24h: TradeCounts | None
    url: str | None = Field(description="The pair's page at the source that answered.")


@service(
    order=20,
    title="Pool snapshot",
    category="crypto-context",
    tags=("token", "price", "liquidity", "dex", "evm"),
    guardrails=(
        "One token or one pair per request.",
        "A token is answered with its deepest pair by liquidity on the chain asked about.",
        "Prices are those of one pair at one moment; no average over exchanges is made.",
        "A figure that the source does not give is null, never 0.",
        "Read-only: nothing is signed or sent.",
    ),
    fresh_for=timedelta(minutes=1),
    example=PoolSnapshotRequest(chain="base", token_address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"),
    sample=PoolSnapshot(
        pair_address="0xd0b53d9277642d899df5c87a3966a349a798f224",
        price_usd=0.9998,
        liquidity_usd=98_000_000,
        volume24h_usd=143_500_000,
        fdv_usd=None,
        pair_created_at="2023-08-16T19:05:00Z",
        txns24h=TradeCounts(buys=41_200, sells=39_800),
        url="https://dexscreener.com/base/0xd0b53d9277642d899df5c87a3966a349a798f224",
    ),
)
async def pool_snapshot(
    request: PoolSnapshotRequest,
    dexscreener: Primary[DexScreener],
    geckoterminal: Fallback[GeckoTerminal],
) -> PoolSnapshot:
    """Price, liquidity, volume and age of a token's deepest pair, or of a given pair.

    Reads one pair of a decentralised exchange: its price in US dollars, how much is in the pool, what was
    traded in the last 24 hours and since when it exists. A second source stands in when the first does not
    answer.
    """
    raise ProviderUnconfigured(
        dexscreener.about.name, f"this build has no adapter for {dexscreener.about.name}"
    )
