"""Exa: neural web search and the text of pages."""

from __future__ import annotations

from centgate.provider import About, Announced


class Exa(Announced):
    """Search by meaning over its own index, and the parsed text of pages."""

    about = About(
        "exa",
        "Exa",
        docs_url="https://exa.ai/docs",
        url="https://api.exa.ai",
        terms="Billed by the operator's own account for each search and each page read.",
        key="required",
    )
