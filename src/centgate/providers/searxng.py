"""SearXNG: a metasearch engine that an operator runs."""

from __future__ import annotations

from centgate.provider import About, Announced


class SearXNG(Announced):
    """Web search through an instance of one's own; it has no address until the settings name one."""

    about = About(
        "searxng",
        "SearXNG",
        docs_url="https://docs.searxng.org",
        terms="A separate program under the AGPL-3.0, spoken to over HTTP and not part of this server.",
        key="optional",
    )
