"""DEX Screener: pairs of decentralised exchanges."""

from __future__ import annotations

from centgate.provider import About, Announced


class DexScreener(Announced):
    """Price, liquidity and volume of a token's pairs."""

    about = About(
        "dexscreener",
        "DEX Screener",
        docs_url="https://docs.dexscreener.com/api/reference",
        url="https://api.dexscreener.com",
        terms="Free without a key under fair use: 300 requests a minute for pairs and tokens.",
    )
