"""Security headers, and the Content-Security-Policy sent by the server and repeated in each page."""

from __future__ import annotations

from urllib.parse import urlsplit

from centgate.website.api_snapshot import ApiSnapshot

_OWN_FILES = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; font-src 'self'"
"""Part of the policy of every page: files of the website alone."""


def content_security_policy(deployment: ApiSnapshot) -> str:
    """Return the Content-Security-Policy: load from the site only, connect to the site and its API."""
    return f"{meta_policy(deployment)}; frame-ancestors 'none'"


def meta_policy(deployment: ApiSnapshot) -> str:
    """Return the policy for a `<meta>` element (no `frame-ancestors`), for hosts that set no headers."""
    api = url_origin(deployment.api)
    return f"{_OWN_FILES}; connect-src 'self' {api}; form-action 'self'; base-uri 'none'"


def offline_meta_policy() -> str:
    """Return the `<meta>` policy of a page that may not connect; it applies in addition to the header."""
    return f"{_OWN_FILES}; connect-src 'none'; form-action 'none'; base-uri 'none'"


def security_headers(deployment: ApiSnapshot) -> dict[str, str]:
    """Return the security headers of every response. Pop-ups keep their opener, as wallets open windows."""
    return {
        "Content-Security-Policy": content_security_policy(deployment),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "strict-origin-when-cross-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Cross-Origin-Opener-Policy": "same-origin-allow-popups",
    }


def url_origin(address: str) -> str:
    """Return scheme and host of a URL: a CSP source with a path would match only that path."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
