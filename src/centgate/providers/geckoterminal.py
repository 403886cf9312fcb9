"""GeckoTerminal: pools of decentralised exchanges."""

from __future__ import annotations

from centgate.provider import About, Announced


class GeckoTerminal(Announced):
    """Price, liquidity and volume of a token's pools."""

    about = About(
        "geckoterminal",
        "GeckoTerminal",
        docs_url="https://apiguide.geckoterminal.com",
        url="https://api.geckoterminal.com/api/v2",
        terms="Free without a key under fair use: 30 requests a minute.",
    )
