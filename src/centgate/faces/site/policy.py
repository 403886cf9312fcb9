"""The headers of safety: what a page may load and call, told by the server and by the page itself."""

from __future__ import annotations

from urllib.parse import urlsplit

from centgate.faces.site.deployment import Deployment


def policy(deployment: Deployment) -> str:
    """The Content-Security-Policy: a page loads what the site has, and calls the site and its API."""
    return f"{policy_in_page(deployment)}; frame-ancestors 'none'"


def policy_in_page(deployment: Deployment) -> str:
    """The same without what a `<meta>` element must not say, for hosts that set no headers."""
    return (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
        f"connect-src 'self' {origin(deployment.api)}; form-action 'self'; base-uri 'none'"
    )


def offline_policy() -> str:
    """The same for a page that sends nothing to anybody; it holds beside what the server's header says."""
    return (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
        "connect-src 'none'; form-action 'none'; base-uri 'none'"
    )


def safety(deployment: Deployment) -> dict[str, str]:
    """The headers of every response; wallets open windows of their own, so openers are kept for pop-ups."""
    return {
        "Content-Security-Policy": policy(deployment),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "strict-origin-when-cross-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Cross-Origin-Opener-Policy": "same-origin-allow-popups",
    }


def origin(address: str) -> str:
    """Scheme and host of an address: a policy's source with a path would match that path alone."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
