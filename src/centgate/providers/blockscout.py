"""Blockscout: an explorer of accounts, contracts and transfers, every chain but bsc."""

from __future__ import annotations

from centgate.provider import About, Announced


class Blockscout(Announced):
    """Accounts, token balances, transfers and verified contracts."""

    about = About(
        "blockscout",
        "Blockscout",
        docs_url="https://docs.blockscout.com",
        url="https://api.blockscout.com",
        terms="Its own hosts answer without a key at about 3 requests a second; the gateway needs one, and a "
        "free key has 100,000 credits a day at 20 a request.",
        key="optional",
    )
