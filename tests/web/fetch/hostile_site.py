"""Sites on loopback addresses that send any bytes a test sets, and a resolver for their names."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from centgate.web.fetch.fetcher import Fetcher, FetchFailed, FetchResult
from centgate.web.fetch.policy import FetchPolicy

ALLOWED = "127.0.0.2"
ALLOWED_TOO = "127.0.0.3"
FORBIDDEN = "127.0.0.1"
ConnectionHandler = Callable[[socket.socket], None]
"""Function that handles a connection after the request was read."""


@dataclass
class HostileSite:
    """Server on one address; unknown paths give 404."""

    address: str
    handlers: dict[str, ConnectionHandler] = field(default_factory=dict[str, ConnectionHandler])
    requests: list[str] = field(default_factory=list[str])
    """Heads of all requests."""
    connections: int = 0

    def set_response(self, path: str, *parts: bytes) -> None:
        """Set the bytes to send for a path before the connection is closed."""
        self.set_handler(path, lambda connection: send_all(connection, parts))

    def set_handler(self, path: str, handler: ConnectionHandler) -> None:
        """Set the handler of a path."""
        self.handlers[path] = handler

    def set_redirect(self, path: str, location: str, status: int = 302) -> None:
        """Set a redirect for a path."""
        self.set_response(path, format_head({"Location": location, "Content-Length": "0"}, status))

    def serve(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Handle one connection until the client closes it."""
        with contextlib.suppress(OSError), contextlib.ExitStack() as ends:
            ends.enter_context(connection)
            connection.settimeout(20)
            if tls:
                connection = ends.enter_context(tls.wrap_socket(connection, server_side=True))
            request = read_request(connection)
            self.requests.append(request)
            path = request.partition(" ")[2].partition(" ")[0].partition("?")[0]
            self.handlers.get(path, lambda it: send_all(it, [format_response(b"nothing here", status=404)]))(
                connection
            )


def read_request(connection: socket.socket) -> str:
    """Read the head of a request."""
    read = b""
    while b"\r\n\r\n" not in read and b"GET ".startswith(read[:4]) and (more := connection.recv(65536)):
        read += more
    return read.decode("latin-1")


def send_all(connection: socket.socket, parts: Iterable[bytes]) -> None:
    """Send all parts."""
    for part in parts:
        connection.sendall(part)


def send_endlessly(*first: bytes, then: bytes) -> ConnectionHandler:
    """Return a handler that sends the same bytes endlessly."""

    def handler(connection: socket.socket) -> None:
        send_all(connection, first)
        while True:
            connection.sendall(then)

    return handler


def send_slowly(first: bytes, then: bytes, pause: float = 0.05) -> ConnectionHandler:
    """Return a handler that sends the same bytes slowly and endlessly."""

    def handler(connection: socket.socket) -> None:
        connection.sendall(first)
        while True:
            time.sleep(pause)
            connection.sendall(then)

    return handler


def stay_silent(connection: socket.socket) -> None:
    """Send nothing until the client closes the connection."""
    connection.recv(1)


def format_head(fields: Mapping[str, str], status: int = 200) -> bytes:
    """Return the head of a response."""
    lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode()


def format_response(body: bytes, *, status: int = 200, kind: str = "text/html", **fields: str) -> bytes:
    """Return a valid response; `fields` have underscores for hyphens."""
    more = {name.replace("_", "-"): value for name, value in fields.items()}
    return format_head({"Content-Type": kind, "Content-Length": str(len(body)), **more}, status) + body


@dataclass
class FakeResolver:
    """Resolver that returns each name's answers in turn, then the last one repeatedly."""

    answers: dict[str, list[Sequence[str]]] = field(default_factory=dict[str, list[Sequence[str]]])
    queries: list[str] = field(default_factory=list[str])

    async def __call__(self, host: str) -> Sequence[str]:
        self.queries.append(host)
        answers = self.answers.get(host)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]


@dataclass
class Web:
    """Three sites on one port: two that may be fetched, and a private one that may not."""

    port: int
    site: HostileSite
    other: HostileSite
    private: HostileSite
    resolver: FakeResolver = field(default_factory=FakeResolver)

    def url(self, path: str = "/", host: str = "site.test", scheme: str = "http") -> str:
        """Return a URL of one of the sites."""
        return f"{scheme}://{host}:{self.port}{path}"

    @property
    def policy(self) -> FetchPolicy:
        """Policy that allows two of the three sites."""
        return FetchPolicy(frozenset({80, 443, self.port}), (ALLOWED, ALLOWED_TOO))

    def fetcher(self, tls: ssl.SSLContext | None = None) -> Fetcher:
        """Return a fetcher with the fake resolver."""
        return Fetcher(self.policy, "Tester/1 (+https://operator.test)", resolve=self.resolver, tls=tls)

    async def fetch(
        self,
        path: str = "/",
        host: str = "site.test",
        *,
        seconds: float = 20,
        most_bytes: int = 5 << 20,
        types: Sequence[str] = (),
    ) -> FetchResult:
        """Fetch a path."""
        url = self.url(path, host)
        return await fetch(self.fetcher(), url, seconds, most_bytes=most_bytes, types=types)

    async def fetch_failure(
        self,
        path: str = "/",
        host: str = "site.test",
        *,
        seconds: float = 20,
        most_bytes: int = 5 << 20,
        types: Sequence[str] = (),
    ) -> FetchFailed:
        """Fetch a path and return its failure."""
        try:
            fetched = await self.fetch(path, host, seconds=seconds, most_bytes=most_bytes, types=types)
        except FetchFailed as failed:
            return failed
        raise AssertionError(f"the fetch succeeded: {fetched}")


async def fetch(
    fetcher: Fetcher, url: str, seconds: float, *, most_bytes: int = 5 << 20, types: Sequence[str] = ()
) -> FetchResult:
    """Fetch a URL and close the fetcher."""
    try:
        return await fetcher.fetch(url, timeout=seconds, max_bytes=most_bytes, media_types=types)
    finally:
        await fetcher.close()


@contextmanager
def serve_web(tls: ssl.SSLContext | None = None) -> Generator[Web]:
    """Serve the three sites, on one port that is free on all their addresses."""
    addresses = (ALLOWED, ALLOWED_TOO, FORBIDDEN)
    with ExitStack() as ends:
        listeners = _listeners(addresses)
        sites = [HostileSite(address) for address in addresses]
        for listener, site in zip(listeners, sites, strict=True):
            ends.callback(listener.close)
            ends.callback(listener.shutdown, socket.SHUT_RDWR)
            threading.Thread(target=_accept_connections, args=(listener, site, tls), daemon=True).start()
        web = Web(listeners[0].getsockname()[1], sites[0], sites[1], sites[2])
        web.resolver.answers = {"site.test": [[ALLOWED]], "other.test": [[ALLOWED_TOO]]}
        yield web


def _listeners(addresses: Sequence[str]) -> list[socket.socket]:
    for _ in range(50):
        first = socket.create_server((addresses[0], 0), backlog=512)
        opened = [first]
        try:
            for address in addresses[1:]:
                opened.append(socket.create_server((address, first.getsockname()[1])))  # noqa: PERF401
        except OSError:
            for each in opened:
                each.close()
        else:
            return opened
    raise AssertionError("no port is free on all addresses")


def _accept_connections(listener: socket.socket, site: HostileSite, tls: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            site.connections += 1
            threading.Thread(target=site.serve, args=(connection, tls), daemon=True).start()
