"""protocol-context: what a DeFi protocol is, and how much runs through it."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from centgate.errors import ProviderUnconfigured
from centgate.provider import Fallback, Primary
from centgate.providers.defillama import DefiLlama
from centgate.providers.exa import Exa
from centgate.schema import Data, Request
from centgate.service import service


class ProtocolContextRequest(Request):
    """A protocol, by slug or name."""

    protocol: str = Field(
        min_length=1, max_length=100, description="A directory slug (`aave-v3`) or a human name (`Aave V3`)."
    )


class Flow(Data):
    """US dollars over three spans up to now."""

    day_usd: float | None = Field(description="The last 24 hours.")
    week_usd: float | None = Field(description="The last 7 days.")
    month_usd: float | None = Field(description="The last 30 days.")


class ProtocolFees(Data):
    """What users paid, and what the protocol kept of it."""

    fees: Flow | None = Field(description="Paid by users; null where it is not measured.")
    revenue: Flow | None = Field(description="Kept by the protocol; null where it is not measured.")
    source: Literal["defillama"]


class ProtocolLink(Data):
    """A page about the protocol."""

    kind: Literal["website", "social", "code", "audit", "directory", "web_result"] = Field(
        description="`web_result` is a page that a web search found and nobody vouched for."
    )
    url: str = Field(description="https only.")
    source: Literal["defillama", "exa"]


class ProtocolContext(Data):
    """A protocol's fundamentals."""

    name: str
    slug: str | None = Field(
        description="The directory's slug that matched; null when only a web search did."
    )
    category: str | None = Field(description="In the directory's words, e.g. `Lending`.")
    chains: list[str] = Field(description="In the directory's words; empty when unknown.")
    tvl_usd: float | None = Field(
        description="US dollars locked on all its chains, borrowed and staked ones aside."
    )
    fees: ProtocolFees | None = Field(description="Null where neither fees nor revenue are measured.")
    urls: list[ProtocolLink]


@service(
    order=40,
    title="Protocol context",
    category="crypto-context",
    tags=("defi", "protocol", "tvl", "fees"),
    guardrails=(
        "One protocol per request.",
        "Fees and revenue only where the directory measures them; null means not measured, never 0.",
        "When the directory has no such protocol a web search stands in; it gives links, no figures.",
        "A protocol that neither knows is answered with no_data.",
    ),
    fresh_for=timedelta(minutes=10),
    example=ProtocolContextRequest(protocol="aave-v3"),
    sample=ProtocolContext(
        name="Aave V3",
        slug="aave-v3",
        category="Lending",
        chains=["Ethereum", "Base", "Arbitrum"],
        tvl_usd=31_400_000_000,
        fees=ProtocolFees(
            fees=Flow(day_usd=2_100_000, week_usd=14_900_000, month_usd=63_000_000),
            revenue=Flow(day_usd=280_000, week_usd=1_950_000, month_usd=8_300_000),
            source="defillama",
        ),
        urls=[
            ProtocolLink(kind="website", url="https://aave.com", source="defillama"),
            ProtocolLink(kind="directory", url="https://defillama.com/protocol/aave-v3", source="defillama"),
        ],
    ),
)
async def protocol_context(
    request: ProtocolContextRequest,
    defillama: Primary[DefiLlama],
    exa: Fallback[Exa],
) -> ProtocolContext:
    """Category, chains, value locked, fees and links of a DeFi protocol.

    Finds the protocol in a directory by slug or by name and answers with its fundamentals, the value locked
    without double counting. A web search stands in for a protocol that the directory does not know.
    """
    raise ProviderUnconfigured(defillama.about.name, f"this build has no adapter for {defillama.about.name}")
