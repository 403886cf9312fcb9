"""The built-in page reader: fetches a page over HTTP and keeps its text."""

from __future__ import annotations

from centgate.provider import About, Announced


class PageReader(Announced):
    """Pages fetched and read inside the server."""

    about = About("pagereader", "Built-in page reader", docs_url="https://www.rfc-editor.org/rfc/rfc9110")
