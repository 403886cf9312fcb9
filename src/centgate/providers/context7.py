"""Context7: documentation of software libraries."""

from __future__ import annotations

from centgate.provider import About, Announced


class Context7(Announced):
    """Library names resolved to ids, and snippets of their documentation."""

    about = About(
        "context7",
        "Context7",
        docs_url="https://context7.com/docs",
        url="https://context7.com/api",
        terms="Without a key its limits are low; calls beyond a plan's quota are billed by plan.",
        key="optional",
    )
