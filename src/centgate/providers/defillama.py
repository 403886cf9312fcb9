"""DefiLlama: the directory of DeFi protocols, and prices of tokens."""

from __future__ import annotations

from centgate.provider import About, Announced


class DefiLlama(Announced):
    """A protocol's value locked, fees and links, and what a token costs."""

    about = About(
        "defillama",
        "DefiLlama",
        docs_url="https://api-docs.defillama.com",
        url="https://api.llama.fi",
        terms="Free without a key under fair use.",
    )
