"""The built-in package documentation: what package registries carry about a library."""

from __future__ import annotations

from centgate.provider import About, Announced


class PackageDocs(Announced):
    """Documentation found in published packages, read inside the server."""

    about = About(
        "packagedocs",
        "Built-in package documentation",
        docs_url="https://packaging.python.org/en/latest/specifications/simple-repository-api/",
    )
