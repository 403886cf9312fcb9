"""Etherscan: verified source code, on every chain with one key."""

from __future__ import annotations

from centgate.provider import About, Announced


class Etherscan(Announced):
    """Contract source and ABI; account and log data on the chains that the key's plan covers."""

    about = About(
        "etherscan",
        "Etherscan",
        docs_url="https://docs.etherscan.io",
        url="https://api.etherscan.io/v2/api",
        terms="Needs a key; a free one allows 3 requests a second and 100,000 a day, and gives source and "
        "ABI on all six chains but account and log data only on ethereum, polygon and arbitrum.",
        key="required",
    )
