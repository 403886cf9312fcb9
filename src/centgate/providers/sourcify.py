"""Sourcify: the public registry of verified sources."""

from __future__ import annotations

from centgate.provider import About, Announced


class Sourcify(Announced):
    """How closely a contract's source matches its byte code, and what a proxy points to."""

    about = About(
        "sourcify",
        "Sourcify",
        docs_url="https://docs.sourcify.dev/docs/api",
        url="https://sourcify.dev/server",
        terms="Free without a key.",
    )
