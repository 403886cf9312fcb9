"""Small website on loopback, for the demo's scrape and map calls."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GUIDE_PATH = "/guide"
_FRAME = """<!doctype html><html lang="en"><head><title>{title}</title>
<meta name="description" content="{title}, of a small site about itself"></head><body>
<div class="cookie-consent"><p>We value your privacy.</p><button>Accept all cookies</button></div>
<nav><a href="/">Home</a> <a href="/guide">Guide</a> <a href="/about">About</a></nav>
<main>{main}</main><footer>Made for a demonstration</footer></body></html>"""
PAGES = {
    "/": (
        "Home",
        "<h1>A small site</h1><p>It has three pages, a sitemap and a robots.txt, and lives as long as the "
        'demonstration. Start with <a href="/guide">the guide</a>.</p>',
    ),
    GUIDE_PATH: (
        "Guide to addresses",
        "<h1>Guide to addresses</h1><p>A reader that fetches what strangers name must know where it "
        "goes.</p><h2>Kinds of addresses</h2><table><tr><th>kind</th><th>example</th><th>fetched</th></tr>"
        "<tr><td>public</td><td>198.41.0.4</td><td>yes</td></tr>"
        "<tr><td>loopback</td><td>127.0.0.1</td><td>only if the operator allows it</td></tr></table>"
        '<h2>In code</h2><pre><code class="language-python">policy.admits("127.0.0.1", 80)</code></pre>',
    ),
    "/about": ("About", "<h1>About</h1><p>Nobody will read this page but a machine.</p>"),
}
"""Title and main content, by path."""


@contextmanager
def serve_site() -> Generator[str]:
    """Serve the site on a free port; yields its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class _Site(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the server's own names
        pass

    def do_GET(self) -> None:
        site = f"http://{self.headers['Host']}"
        if self.path in PAGES:
            title, main = PAGES[self.path]
            self._send(200, "text/html; charset=utf-8", _FRAME.format(title=title, main=main))
        elif self.path == "/robots.txt":
            self._send(200, "text/plain", f"User-agent: *\nAllow: /\nSitemap: {site}/sitemap.xml\n")
        elif self.path == "/sitemap.xml":
            urls = "".join(f"<url><loc>{site}{path}</loc></url>" for path in PAGES)
            schema = "http://www.sitemaps.org/schemas/sitemap/0.9"
            self._send(200, "application/xml", f'<urlset xmlns="{schema}">{urls}</urlset>')
        else:
            self._send(404, "text/plain", "there is no such page")

    def _send(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
