"""GoPlus Security: flags of tokens and approvals."""

from __future__ import annotations

from centgate.provider import About, Announced


class GoPlus(Announced):
    """Token security flags and token approvals, from contract analysis."""

    about = About(
        "goplus",
        "GoPlus Security",
        docs_url="https://docs.gopluslabs.io",
        url="https://api.gopluslabs.io",
        terms="Free tier without a key; commercial use needs an agreement, see its terms of service.",
        key="optional",
    )
