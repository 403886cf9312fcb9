"""Alchemy: token balances and transfers of a wallet."""

from __future__ import annotations

from centgate.provider import About, Announced


class Alchemy(Announced):
    """A wallet's token balances with metadata, and its latest transfers."""

    about = About(
        "alchemy",
        "Alchemy",
        docs_url="https://www.alchemy.com/docs",
        url="https://api.g.alchemy.com",
        terms="Needs a key, and every call is counted in compute units against its plan.",
        key="required",
    )
