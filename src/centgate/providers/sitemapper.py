"""The built-in site mapper: a site's own sitemaps and the links of one page."""

from __future__ import annotations

from centgate.provider import About, Announced


class SiteMapper(Announced):
    """Links of a site, from what the site itself publishes."""

    about = About("sitemapper", "Built-in site mapper", docs_url="https://www.sitemaps.org/protocol.html")
