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

from centgate.safefetch.fetcher import Fetched, Fetcher, FetchFailed
from centgate.safefetch.policy import Policy

ALLOWED = "127.0.0.2"
ALLOWED_TOO = "127.0.0.3"
FORBIDDEN = "127.0.0.1"
Deed = Callable[[socket.socket], None]
"""Function that handles a connection after the request was read."""


@dataclass
class Site:
    """Server on one address; unknown paths give 404."""

    address: str
    deeds: dict[str, Deed] = field(default_factory=dict[str, Deed])
    asked: list[str] = field(default_factory=list[str])
    """Heads of all requests."""
    connections: int = 0

    def sends(self, path: str, *parts: bytes) -> None:
        """Set the bytes to send for a path before the connection is closed."""
        self.does(path, lambda connection: sent(connection, parts))

    def does(self, path: str, handler: Deed) -> None:
        """Set the handler of a path."""
        self.deeds[path] = handler

    def redirects(self, path: str, location: str, status: int = 302) -> None:
        """Redirect a path."""
        self.sends(path, head({"Location": location, "Content-Length": "0"}, status))

    def serve(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Handle one connection until the client closes it."""
        with contextlib.suppress(OSError), contextlib.ExitStack() as ends:
            ends.enter_context(connection)
            connection.settimeout(20)
            if tls:
                connection = ends.enter_context(tls.wrap_socket(connection, server_side=True))
            asked = request_from(connection)
            self.asked.append(asked)
            path = asked.partition(" ")[2].partition(" ")[0].partition("?")[0]
            self.deeds.get(path, lambda it: sent(it, [page(b"nothing here", status=404)]))(connection)


def request_from(connection: socket.socket) -> str:
    """Read the head of a request."""
    read = b""
    while b"\r\n\r\n" not in read and b"GET ".startswith(read[:4]) and (more := connection.recv(65536)):
        read += more
    return read.decode("latin-1")


def sent(connection: socket.socket, parts: Iterable[bytes]) -> None:
    """Send all parts."""
    for part in parts:
        connection.sendall(part)


def endlessly(*first: bytes, then: bytes) -> Deed:
    """Return a handler that sends the same bytes endlessly."""

    def handler(connection: socket.socket) -> None:
        sent(connection, first)
        while True:
            connection.sendall(then)

    return handler


def dripping(first: bytes, then: bytes, pause: float = 0.05) -> Deed:
    """Return a handler that sends the same bytes slowly and endlessly."""

    def handler(connection: socket.socket) -> None:
        connection.sendall(first)
        while True:
            time.sleep(pause)
            connection.sendall(then)

    return handler


def silence(connection: socket.socket) -> None:
    """Send nothing until the client closes the connection."""
    connection.recv(1)


def head(fields: Mapping[str, str], status: int = 200) -> bytes:
    """Return the head of a response."""
    lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode()


def page(body: bytes, *, status: int = 200, kind: str = "text/html", **fields: str) -> bytes:
    """Return a valid response; `fields` have underscores for hyphens."""
    more = {name.replace("_", "-"): value for name, value in fields.items()}
    return head({"Content-Type": kind, "Content-Length": str(len(body)), **more}, status) + body


@dataclass
class Names:
    """Resolver that gives each name's answers in turn, then the last one repeatedly."""

    answers: dict[str, list[Sequence[str]]] = field(default_factory=dict[str, list[Sequence[str]]])
    asked: list[str] = field(default_factory=list[str])

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        answers = self.answers.get(host)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]


@dataclass
class Web:
    """Three sites on one port: two that may be fetched, and a private one that may not."""

    port: int
    site: Site
    other: Site
    private: Site
    names: Names = field(default_factory=Names)

    def url(self, path: str = "/", host: str = "site.test", scheme: str = "http") -> str:
        """Return a URL of one of the sites."""
        return f"{scheme}://{host}:{self.port}{path}"

    @property
    def policy(self) -> Policy:
        """Policy that allows two of the three sites."""
        return Policy(frozenset({80, 443, self.port}), (ALLOWED, ALLOWED_TOO))

    def fetcher(self, tls: ssl.SSLContext | None = None) -> Fetcher:
        """Return a fetcher with the fake resolver."""
        return Fetcher(self.policy, "Tester/1 (+https://operator.test)", resolve=self.names, tls=tls)

    async def fetch(
        self,
        path: str = "/",
        host: str = "site.test",
        *,
        seconds: float = 20,
        most_bytes: int = 5 << 20,
        types: Sequence[str] = (),
    ) -> Fetched:
        """Fetch a path."""
        url = self.url(path, host)
        return await fetch(self.fetcher(), url, seconds, most_bytes=most_bytes, types=types)

    async def failure(
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
) -> Fetched:
    """Fetch a URL and close the fetcher."""
    try:
        return await fetcher.fetch(url, seconds=seconds, most_bytes=most_bytes, types=types)
    finally:
        await fetcher.close()


@contextmanager
def small_web(tls: ssl.SSLContext | None = None) -> Generator[Web]:
    """Serve the three sites, on one port that is free on all their addresses."""
    addresses = (ALLOWED, ALLOWED_TOO, FORBIDDEN)
    with ExitStack() as ends:
        listeners = _listeners(addresses)
        sites = [Site(address) for address in addresses]
        for listener, site in zip(listeners, sites, strict=True):
            ends.callback(listener.close)
            ends.callback(listener.shutdown, socket.SHUT_RDWR)
            threading.Thread(target=_accept_connections, args=(listener, site, tls), daemon=True).start()
        web = Web(listeners[0].getsockname()[1], sites[0], sites[1], sites[2])
        web.names.answers = {"site.test": [[ALLOWED]], "other.test": [[ALLOWED_TOO]]}
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


def _accept_connections(listener: socket.socket, site: Site, tls: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            site.connections += 1
            threading.Thread(target=site.serve, args=(connection, tls), daemon=True).start()
