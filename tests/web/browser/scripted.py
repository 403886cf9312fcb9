"""Web site on loopback whose pages have scripts, with all ways for a script to reach another server."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

HOLD_SECONDS = 60.0

# ways for a page to load a resource, by the requested path
ATTACKS = {
    "fetch": "await fetch(T + 'fetch', {mode: 'no-cors'}).catch(() => 0)",
    "xhr": "await new Promise(r => {const x = new XMLHttpRequest(); x.onloadend = r; "
    "x.open('GET', T + 'xhr'); x.send()})",
    "beacon": "navigator.sendBeacon(T + 'beacon', 'x')",
    "events": "new EventSource(T + 'events')",
    "iframe": "add('iframe', {src: T + 'iframe'})",
    "script": "add('script', {src: T + 'script'})",
    "style": "add('link', {rel: 'stylesheet', href: T + 'style'})",
    "image": "add('img', {src: T + 'image'}); new Image().src = T + 'image'",
    "video": "add('video', {src: T + 'video', autoplay: true, muted: true})",
    "object": "add('object', {data: T + 'object'})",
    "embed": "add('embed', {src: T + 'embed'})",
    "prefetch": "add('link', {rel: 'prefetch', href: T + 'prefetch'})",
    "preload": "add('link', {rel: 'preload', as: 'fetch', href: T + 'preload'})",
    "preconnect": "add('link', {rel: 'preconnect', href: T}); add('link', {rel: 'dns-prefetch', href: T})",
    "prerender": "add('script', {type: 'speculationrules', textContent: JSON.stringify("
    "{prerender: [{urls: [T + 'prerender'], eagerness: 'immediate'}]})})",
    "import": "await import(T + 'import').catch(() => 0)",
    "worker": "new Worker(URL.createObjectURL(new Blob([`fetch('${T}worker', {mode: 'no-cors'})`])))",
    "shared": "new SharedWorker(URL.createObjectURL(new Blob([`fetch('${T}shared', {mode: 'no-cors'})`])))",
    "form": "add('iframe', {name: 'f'});"
    "add('form', {action: T + 'form', target: 'f', method: 'post'}).submit()",
    "refresh": "add('iframe', {srcdoc: `<meta http-equiv=refresh content='0;url=${T}refresh'>`})",
    "redirect": "await fetch('/to?' + encodeURIComponent(T + 'redirect'), {mode: 'no-cors'}).catch(() => 0)",
    "popup": "window.open(T + 'popup')",
    "socket": "new WebSocket(T.replace('http', 'ws') + 'socket')",
    "tls-socket": "new WebSocket(T.replace('http', 'wss') + 'tls-socket')",
    "transport": "try {new WebTransport(T.replace('http', 'https') + 'transport')} catch {}",
    "rtc": "const R = window.RTCPeerConnection || add('iframe', {}).contentWindow.RTCPeerConnection;"
    "const rtc = new R({iceServers: [{urls: H.map(h => `stun:${h}`)},"
    "{urls: H.flatMap(h => [`turn:${h}?transport=tcp`, `turn:${h}`]), username: 'u', credential: 'c'}]});"
    "rtc.createDataChannel('x'); await rtc.setLocalDescription();"
    "await new Promise(r => setTimeout(r, 1000))",
    "css": "add('style', {textContent: `@import '${T}css'; @font-face {font-family: x; src: url(${T}font)}"
    " body {font-family: x; background: url(${T}background)}`})",
}
NEVER_REACHED = {"image", "popup", "socket", "tls-socket", "transport", "rtc", "preconnect", "prerender"}
"""Attacks that do not reach even an address that may be fetched."""


@dataclass
class ScriptedSite:
    """Web site on a loopback address; it listens on the same UDP port as well."""

    host: str
    url: str = ""
    pages: dict[str, str] = field(default_factory=dict[str, str])
    connections: list[str] = field(default_factory=list[str])
    """The path of each request, and an empty text for each connection."""
    user_agents: list[str] = field(default_factory=list[str])
    packets: list[bytes] = field(default_factory=list[bytes])
    port: int = 0
    ending: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serve_site(host: str, port: int = 0, tls: ssl.SSLContext | None = None) -> Generator[ScriptedSite]:
    """Serve a site, with some paths that never end."""
    site = ScriptedSite(host)
    server = _Server((host, port), _handler(site))
    server.site = site
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    site.port = server.server_address[1]
    site.url = f"{'http' if tls is None else 'https'}://{host}:{site.port}/"
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((host, site.port))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    threading.Thread(target=_listen, args=(udp, site), daemon=True).start()
    try:
        yield site
    finally:
        site.ending.set()
        udp.sendto(b"", (host, site.port))
        server.shutdown()
        server.server_close()


def create_self_signed_tls(host: str, folder: Path) -> ssl.SSLContext:
    """Create a TLS context with a self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256())
    file = folder / "certificate.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def _listen(udp: socket.socket, site: ScriptedSite) -> None:
    with udp:
        while not site.ending.is_set():
            packet = udp.recv(2000)
            if packet:
                site.packets.append(packet)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    site: ScriptedSite

    def get_request(self) -> Any:
        """Record a connection before its request is read."""
        request = super().get_request()
        self.site.connections.append("")
        return request

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of connections that the browser closed."""


def _handler(site: ScriptedSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.connections.append(self.path.removeprefix("/"))
            site.user_agents.append(self.headers["user-agent"])
            path, _, query = self.path.partition("?")
            if path == "/to":
                self.answer(302, "", location=unquote(query))
            elif path == "/hold":  # a frame that delays the load event of its page
                site.released.wait(HOLD_SECONDS)
                self.answer(200, "held")
            elif path == "/release":
                site.released.set()
                self.answer(200, "")
            elif path == "/drip":
                self.drip()
            elif path == "/file":
                self.answer(200, "x" * 1000, content_disposition="attachment; filename=x.zip")
            elif path == "/text":
                self.answer(200, "plain", content_type="application/json")
            else:
                page = site.pages.get(path.removeprefix("/"))
                self.answer(404 if page is None else 200, page or "nothing here")

        do_POST = do_GET  # noqa: N815

        def answer(self, status: int, body: str, **headers: str) -> None:
            encoded = body.encode()
            self.send_response(status)
            for name, value in {"content_type": "text/html; charset=utf-8", **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("content-length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def drip(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            while not site.ending.wait(0.2):
                self.wfile.write(b"<p>and on")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    return Handler


def render_attack_page(hosts: Sequence[str], names: Sequence[str] = tuple(ATTACKS)) -> str:
    """Return a page that runs these attacks on each host, and then writes `all tried`."""
    attacks = "\n".join(f"try {{ {ATTACKS[name]} }} catch {{}}" for name in names)
    return f"""<!doctype html><body><iframe src=/hold></iframe><script type=module>
        const add = (tag, what) => document.body.appendChild(Object.assign(document.createElement(tag), what))
        const H = {list(hosts)!r}
        for (const host of H) {{
            const T = `http://${{host}}/`
            {attacks}
        }}
        await new Promise(r => setTimeout(r, 500))
        await fetch("/release")
        document.body.append("all " + "tried")
    </script>"""
