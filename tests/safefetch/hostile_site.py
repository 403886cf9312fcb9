"""Sites on loopback addresses that send whatever a test says; and the names that lead to them."""

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
"""What a site does with a connection after the request was read."""


@dataclass
class Site:
    """A server on one address; unknown paths are answered with 404."""

    address: str
    deeds: dict[str, Deed] = field(default_factory=dict[str, Deed])
    asked: list[str] = field(default_factory=list[str])
    """The heads of all requests."""
    connections: int = 0

    def sends(self, path: str, *parts: bytes) -> None:
        """Send these bytes for a path, then hang up."""
        self.does(path, lambda connection: sent(connection, parts))

    def does(self, path: str, deed: Deed) -> None:
        """Do something of its own for a path."""
        self.deeds[path] = deed

    def redirects(self, path: str, location: str, status: int = 302) -> None:
        """Lead on."""
        self.sends(path, head({"Location": location, "Content-Length": "0"}, status))

    def serve(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Answer one connection, as long as the other side listens."""
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
    """The head of a request."""
    read = b""
    while b"\r\n\r\n" not in read and b"GET ".startswith(read[:4]) and (more := connection.recv(65536)):
        read += more
    return read.decode("latin-1")


def sent(connection: socket.socket, parts: Iterable[bytes]) -> None:
    """Send all parts."""
    for part in parts:
        connection.sendall(part)


def endlessly(*first: bytes, then: bytes) -> Deed:
    """Send something without end."""

    def deed(connection: socket.socket) -> None:
        sent(connection, first)
        while True:
            connection.sendall(then)

    return deed


def dripping(first: bytes, then: bytes, pause: float = 0.05) -> Deed:
    """Send one piece after another, slowly and without end."""

    def deed(connection: socket.socket) -> None:
        connection.sendall(first)
        while True:
            time.sleep(pause)
            connection.sendall(then)

    return deed


def silence(connection: socket.socket) -> None:
    """Say nothing until the other side hangs up."""
    connection.recv(1)


def head(fields: Mapping[str, str], status: int = 200) -> bytes:
    """The head of an answer."""
    lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode()


def page(body: bytes, *, status: int = 200, kind: str = "text/html", **fields: str) -> bytes:
    """An answer with everything as it should be; `fields` with underscores for hyphens."""
    more = {name.replace("_", "-"): value for name, value in fields.items()}
    return head({"Content-Type": kind, "Content-Length": str(len(body)), **more}, status) + body


@dataclass
class Names:
    """A resolver: each name's answers in turn, the last one again and again."""

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
    """A small web: a site that may be fetched, another, and one that never may, on the same port."""

    port: int
    site: Site
    other: Site
    private: Site
    names: Names = field(default_factory=Names)

    def url(self, path: str = "/", host: str = "site.test", scheme: str = "http") -> str:
        """An address of this web."""
        return f"{scheme}://{host}:{self.port}{path}"

    @property
    def policy(self) -> Policy:
        """Allows two of the three sites."""
        return Policy(frozenset({80, 443, self.port}), (ALLOWED, ALLOWED_TOO))

    def fetcher(self, tls: ssl.SSLContext | None = None) -> Fetcher:
        """A fetcher that asks this web's names."""
        return Fetcher(self.policy, "Tester/1 (+https://operator.test)", resolve=self.names, tls=tls)

    async def fetch(
        self, path: str = "/", host: str = "site.test", *, seconds: float = 20, **more: int | Sequence[str]
    ) -> Fetched:
        """What one fetch gives."""
        return await fetch(self.fetcher(), self.url(path, host), seconds, more)

    async def failure(
        self, path: str = "/", host: str = "site.test", *, seconds: float = 20, **more: int | Sequence[str]
    ) -> FetchFailed:
        """How one fetch fails."""
        try:
            fetched = await self.fetch(path, host, seconds=seconds, **more)
        except FetchFailed as failed:
            return failed
        raise AssertionError(f"was fetched: {fetched}")


async def fetch(fetcher: Fetcher, url: str, seconds: float, more: Mapping[str, object]) -> Fetched:
    """One fetch, and an end to the fetcher."""
    try:
        return await fetcher.fetch(url, seconds=seconds, **more)  # pyright: ignore[reportArgumentType]
    finally:
        await fetcher.close()


@contextmanager
def small_web(tls: ssl.SSLContext | None = None) -> Generator[Web]:
    """The three sites, on one port that is free on all their addresses."""
    addresses = (ALLOWED, ALLOWED_TOO, FORBIDDEN)
    with ExitStack() as ends:
        listeners = _listeners(addresses)
        sites = [Site(address) for address in addresses]
        for listener, site in zip(listeners, sites, strict=True):
            ends.callback(listener.close)
            ends.callback(listener.shutdown, socket.SHUT_RDWR)
            threading.Thread(target=_accepting, args=(listener, site, tls), daemon=True).start()
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


def _accepting(listener: socket.socket, site: Site, tls: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            site.connections += 1
            threading.Thread(target=site.serve, args=(connection, tls), daemon=True).start()
