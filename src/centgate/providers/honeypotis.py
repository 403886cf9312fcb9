"""honeypot.is: simulated buys and sells of a token."""

from __future__ import annotations

from centgate.provider import About, Announced


class HoneypotIs(Announced):
    """Whether a token can be sold, tried out on a simulated pool; ethereum, base and bsc only."""

    about = About(
        "honeypotis",
        "honeypot.is",
        docs_url="https://docs.honeypot.is",
        url="https://api.honeypot.is",
        terms="Free without a key; its terms of 2023-12-05 forbid reselling the API or giving it to third "
        "parties, so switch it off where that applies.",
    )
