"""Filtering proxy of the browser, used over plain sockets."""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from centgate.web.browser import proxy
from centgate.web.browser.proxy import (
    MAX_CONNECTIONS,
    MAX_HEAD,
    MAX_PAGE_CONNECTIONS,
    FilteringProxy,
    ProxyGrant,
)
from centgate.web.fetch.policy import FetchPolicy

SECONDS = 20.0
HELLO = b"\x16\x03\x01\x00\x05hello"
NAMES_OF = {
    "ours.example": ["127.0.0.1"],
    "inside.example": ["127.0.0.2"],
    "mixed.example": ["127.0.0.1", "127.0.0.2"],
    "nothing.example": [],
}


@dataclass
class World:
    """Proxy, and on one port a site that it may reach (127.0.0.1) and one that it may not (127.0.0.2)."""

    proxy: FilteringProxy
    port: int
    site_port: int
    received: list[bytes] = field(default_factory=list[bytes])
    """Bytes received by the site, by connection."""
    inside: list[bytes] = field(default_factory=list[bytes])
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    async def exchange(
        self, request: str | bytes, holder: ProxyGrant | None = None, rest: bytes = b""
    ) -> bytes:
        """Send a request and return the proxy's response up to the end of the connection."""
        reader, writer = await self.connect()
        try:
            writer.write(self.format_request(request, holder) + rest)
            async with asyncio.timeout(SECONDS):
                return await _read_all(reader)
        finally:
            writer.transport.abort()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to the proxy."""
        return await asyncio.open_connection("127.0.0.1", self.port)

    def format_request(self, request: str | bytes, holder: ProxyGrant | None) -> bytes:
        """Return the head of a request, with the credentials of a grant."""
        start = request.encode() if isinstance(request, str) else request
        start = start.replace(b"PORT", str(self.site_port).encode())
        if holder is None:
            return start + b"\r\n\r\n"
        return (
            start
            + b"\r\nProxy-Authorization: Basic "
            + _basic(holder.username, holder.password)
            + b"\r\n\r\n"
        )


def _basic(username: str, password: str) -> bytes:
    return b64encode(f"{username}:{password}".encode())


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    read = bytearray()
    try:
        while data := await reader.read(65536):
            read += data
    except ConnectionError:
        pass
    return bytes(read)


async def wait_until(condition: Callable[[], bool]) -> bool:
    """Wait for a condition; True if it became true."""
    for _ in range(2000):
        if condition():
            return True
        await asyncio.sleep(0.01)
    return False


async def resolve_host(host: str) -> Sequence[str]:
    """Resolve the names used in the tests."""
    if host not in NAMES_OF:
        raise socket.gaierror(socket.EAI_NONAME, "not known")
    return NAMES_OF[host]


@asynccontextmanager
async def open_world() -> AsyncGenerator[World]:
    """Open a proxy between two sites."""
    world: World | None = None

    async def site(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert world is not None
        try:
            head = await reader.readuntil(b"\n" if world.answer == b"echo" else b"\r\n\r\n")
            body = await reader.readexactly(4) if b"Content-Length: 4\r\n" in head else b""
            world.received.append(head + body)
            writer.write(head if world.answer == b"echo" else world.answer)
            await writer.drain()
            if b"keep-alive" in world.answer:
                await reader.read()
        except (OSError, EOFError):
            world.received.append(b"")
        finally:
            writer.close()

    def inside(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert world is not None
        world.inside.append(b"reached")
        writer.transport.abort()

    server = await asyncio.start_server(site, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    forbidden = await asyncio.start_server(inside, "127.0.0.2", port)
    proxy = FilteringProxy(FetchPolicy(allowed_networks=(f"127.0.0.1:{port}",)), resolve_host)
    url = await proxy.start()
    world = World(proxy, int(url.rpartition(":")[2]), port)
    try:
        yield world
    finally:
        await proxy.close()
        server.close()
        forbidden.close()


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Run with the event loop of the server, and with that of the standard library."""
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


@pytest.fixture
async def world() -> AsyncGenerator[World]:
    """A proxy between two sites."""
    async with open_world() as world:
        yield world


async def test_request_reaches_site_without_proxy_headers(world: World) -> None:
    with world.proxy.grant_access() as holder:
        answer = await world.exchange(
            "GET http://127.0.0.1:PORT/a?b HTTP/1.1\r\nHost: other.example\r\nConnection: keep-alive\r\n"
            "Proxy-Connection: keep-alive\r\nAccept: text/html",
            holder,
        )

    assert answer == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    assert world.received == [
        f"GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:{world.site_port}\r\nAccept: text/html\r\n"
        "Connection: close\r\n\r\n".encode()
    ]


async def test_tunnel_carries_tls_both_ways(world: World) -> None:
    world.answer = b"echo"

    with world.proxy.grant_access() as holder:
        answer = await world.exchange("CONNECT ours.example:PORT HTTP/1.1", holder, HELLO + b"\n")

    assert answer.partition(b"\r\n\r\n")[::2] == (b"HTTP/1.1 200 Connection established", HELLO + b"\n")


async def test_request_body_is_forwarded(world: World) -> None:
    with world.proxy.grant_access() as holder:
        await world.exchange(
            "POST http://127.0.0.1:PORT/ HTTP/1.1\r\nContent-Length: 4", holder, b"body and more"
        )

    assert world.received[0].endswith(b"\r\n\r\nbody")


@pytest.mark.parametrize("start", ["GET http://127.0.0.1:PORT/ HTTP/1.1", "CONNECT 127.0.0.1:PORT HTTP/1.1"])
@pytest.mark.parametrize("wrong", ["none", "password", "username", "ended", "scheme", "nonsense"])
async def test_request_without_grant_is_refused(world: World, start: str, wrong: str) -> None:
    with world.proxy.grant_access() as holder:
        ended = _basic(holder.username, holder.password)
    with world.proxy.grant_access() as holder:
        credential = {
            "none": b"",
            "password": b"Basic " + _basic(holder.username, "x"),
            "username": b"Basic " + _basic("x", holder.password),
            "ended": b"Basic " + ended,
            "scheme": b"Bearer " + _basic(holder.username, holder.password),
            "nonsense": b"Basic \xff\xfe",
        }[wrong]
        field = b"\r\nProxy-Authorization: " + credential if credential else b""
        answer = await world.exchange(start.encode() + field)

    assert answer.startswith(b"HTTP/1.1 407 ")
    assert b"Proxy-Authenticate: Basic" in answer
    assert not world.received


@pytest.mark.extended
@pytest.mark.parametrize(
    "where",
    [
        "127.0.0.2:PORT",
        "2130706434:PORT",
        "0x7f.0.0.2:PORT",
        "0177.2:PORT",
        "[::ffff:127.0.0.2]:PORT",
        "[::ffff:7f00:2]:PORT",
        "[64:ff9b::7f00:2]:PORT",
        "[::1]:PORT",
        "localhost:PORT",
        "inside.example:PORT",
        "inside.example.:PORT",
        "mixed.example:PORT",
        "nothing.example:PORT",
        "unknown.example:PORT",
        "127.0.0.1:22",
        "127.0.0.1:80",
        "ours.example:1",
        "169.254.169.254:80",
        "10.0.0.1:443",
        "8.8.8.8:25",
        "user:word@127.0.0.1:PORT",
    ],
)
@pytest.mark.parametrize(("start", "refusal"), [("CONNECT {}", b"HTTP/1.1 4"), ("GET http://{}/", b"")])
async def test_refused_target_is_not_reached(world: World, where: str, start: str, refusal: bytes) -> None:

    with world.proxy.grant_access() as holder:
        answer = await world.exchange(f"{start.format(where)} HTTP/1.1", holder, HELLO)

    assert answer[:10] == refusal
    assert not world.inside
    assert not world.received


async def test_reason_of_unreached_host_is_kept(world: World) -> None:
    with world.proxy.grant_access() as holder:
        await world.exchange("CONNECT inside.example:PORT HTTP/1.1", holder)
        await world.exchange("GET http://unknown.example:PORT/ HTTP/1.1", holder)
        await world.exchange("GET http://ours.example:PORT/ HTTP/1.1", holder)

    reasons = [
        refusal.reason if (refusal := holder.find_failure(f"http://{host}:{world.site_port}/x")) else None
        for host in ("inside.example", "unknown.example", "ours.example")
    ]
    assert reasons == ["blocked_address", "dns", None]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET / HTTP/1.1", b"400"),
        ("GET https://127.0.0.1:PORT/ HTTP/1.1", b"400"),
        ("GET ftp://127.0.0.1:PORT/ HTTP/1.1", b"400"),
        ("GET file:///etc/passwd HTTP/1.1", b"400"),
        ("GET http://127.0.0.1:PORT/ HTTP/2.0", b"400"),
        ("GET http://127.0.0.1:PORT/", b"400"),
        ("get http://127.0.0.1:PORT/ HTTP/1.1", b"400"),
        ("GET http://127.0.0.1:PORT/a b HTTP/1.1", b"400"),
        ("GET http://127.0.0.1:PORT/ HTTP/1.1\r\nA: b\nB: c", b"400"),
        ("GET http://127.0.0.1:PORT/ HTTP/1.1\r\nA: b\0", b"400"),
        ("GET http://127.0.0.1:PORT/ HTTP/1.1\r\nA : b", b"400"),
        ("GET http://127.0.0.1:PORT/ HTTP/1.1\r\nA: b\r\n folded", b"400"),
        ("TRACE http://127.0.0.1:PORT/ HTTP/1.1", b"405"),
        ("DELETE http://127.0.0.1:PORT/ HTTP/1.1", b"405"),
        ("GET http://127.0.0.1:PORT/ HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade", b"501"),
        ("POST http://127.0.0.1:PORT/ HTTP/1.1\r\nTransfer-Encoding: chunked", b"501"),
        ("CONNECT 127.0.0.1 HTTP/1.1", b"400"),
        ("CONNECT 127.0.0.1:99999 HTTP/1.1", b"400"),
        ("CONNECT http://127.0.0.1:PORT/ HTTP/1.1", b"400"),
        ("CONNECT 127.0.0.1:PORT/x HTTP/1.1", b"400"),
    ],
)
async def test_malformed_request_is_refused(world: World, request_: str, status: bytes) -> None:
    with world.proxy.grant_access() as holder:
        # the credentials come last, so the invalid field is before them
        answer = await world.exchange(request_, holder)

    assert answer.startswith(b"HTTP/1.1 " + status)
    assert not world.received


@pytest.mark.parametrize("size", ["-1", "x", "99999999", "1_0", "9" * 4000])
async def test_too_long_request_body_is_not_forwarded(world: World, size: str) -> None:
    with world.proxy.grant_access() as holder:
        answer = await world.exchange(
            f"POST http://127.0.0.1:PORT/ HTTP/1.1\r\nContent-Length: {size}", holder
        )

    assert answer == b""


async def test_tunnel_without_tls_is_closed(world: World) -> None:
    with world.proxy.grant_access() as holder:
        answer = await world.exchange("CONNECT 127.0.0.1:PORT HTTP/1.1", holder, b"GET / HTTP/1.1\r\n\r\n")

    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n"
    assert world.received in ([], [b""])


@pytest.mark.parametrize("flood", [b"A: b\r\n" * MAX_HEAD, b"A" * 3 * MAX_HEAD], ids=["fields", "line"])
async def test_flood_of_headers_is_cut_off(world: World, flood: bytes) -> None:
    with world.proxy.grant_access() as holder:
        answer = await world.exchange(b"GET http://127.0.0.1:PORT/ HTTP/1.1\r\n" + flood, holder)

    assert answer.startswith(b"HTTP/1.1 431") or not answer
    assert not world.received


@pytest.mark.extended
@pytest.mark.parametrize("head", [b"", b"GET http://127.0.0.1/ HTTP/1.1\r\nA"], ids=["silent", "slow"])
async def test_slow_request_is_cut_off(world: World, head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "HEAD_SECONDS", 0.1)
    reader, writer = await world.connect()
    writer.write(head)

    async with asyncio.timeout(SECONDS):
        answer = await _read_all(reader)
    writer.transport.abort()

    assert answer == b""


@pytest.mark.extended
async def test_slow_reader_is_cut_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "MAX_CONNECTION_SECONDS", 2.5)
    world.answer = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (15 << 20)

    with world.proxy.grant_access() as holder:
        _, writer = await world.connect()
        writer.write(world.format_request("GET http://127.0.0.1:PORT/ HTTP/1.1", holder))
        assert await wait_until(lambda: bool(holder.connections))
        ended = await wait_until(lambda: not holder.connections)
        writer.transport.abort()

    assert ended


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
        b"no HTTP at all\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 20,
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 100_000,
        b"\x16\x03\x01",
        b"",
    ],
    ids=["upgrade", "text", "interim", "flood", "bytes", "nothing"],
)
async def test_invalid_response_is_not_forwarded(world: World, answer: bytes) -> None:
    world.answer = answer

    with world.proxy.grant_access() as holder:
        given = await _send_while_open(world, holder)

    assert given == b""


async def _send_while_open(world: World, holder: ProxyGrant) -> bytes:
    reader, writer = await world.connect()
    writer.write(world.format_request("GET http://127.0.0.1:PORT/ HTTP/1.1", holder))
    writer.write_eof()
    async with asyncio.timeout(3 * SECONDS):
        answer = await _read_all(reader)
    writer.transport.abort()
    return answer


async def test_open_connection_of_site_does_not_delay_ours(world: World) -> None:
    world.answer = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\nKeep-Alive: max=9\r\n\r\nhi"
    )

    with world.proxy.grant_access() as holder:
        reader, writer = await world.connect()
        writer.write(world.format_request("GET http://127.0.0.1:PORT/ HTTP/1.1", holder))
        async with asyncio.timeout(SECONDS):
            answer = await reader.readexactly(59)
        writer.write(world.format_request("GET http://inside.example:PORT/ HTTP/1.1", holder))
        await writer.drain()
        writer.close()
        await _read_all(reader)

    assert answer == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    assert not world.inside


async def test_bytes_per_page_are_limited(world: World) -> None:
    world.answer = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (8 << 20)

    with world.proxy.grant_access(max_bytes=1 << 20) as holder:
        first = await world.exchange("GET http://127.0.0.1:PORT/ HTTP/1.1", holder)
        second = await world.exchange("GET http://127.0.0.1:PORT/ HTTP/1.1", holder)

    assert len(first.partition(b"\r\n\r\n")[2]) < 1 << 20  # the head of the site's response counts as well
    assert second == b""
    assert holder.exhausted.is_set()


async def test_requests_per_page_are_limited(world: World) -> None:
    with world.proxy.grant_access(max_requests=2) as holder:
        answers = [await world.exchange("GET http://127.0.0.1:PORT/ HTTP/1.1", holder) for _ in range(4)]

    assert [bool(answer) for answer in answers] == [True, True, False, False]
    assert holder.exhausted.is_set()


async def test_connections_per_page_are_limited(world: World) -> None:
    with world.proxy.grant_access() as holder:
        open_world = [await world.connect() for _ in range(MAX_PAGE_CONNECTIONS)]
        for reader, writer in open_world:
            writer.write(world.format_request("CONNECT 127.0.0.1:PORT HTTP/1.1", holder))
            await reader.readuntil(b"\r\n\r\n")
        answer = await world.exchange("GET http://127.0.0.1:PORT/ HTTP/1.1", holder)
        for _, writer in open_world:
            writer.transport.abort()

    assert answer == b""


async def test_connections_of_all_pages_are_limited(world: World) -> None:
    open_world = [await world.connect() for _ in range(MAX_CONNECTIONS)]

    with world.proxy.grant_access() as holder:
        answer = await world.exchange("GET http://127.0.0.1:PORT/ HTTP/1.1", holder)

    assert answer == b""
    for _, writer in open_world:
        writer.transport.abort()


async def test_finished_page_is_cut_off(world: World) -> None:
    with world.proxy.grant_access() as holder:
        reader, writer = await world.connect()
        writer.write(world.format_request("CONNECT 127.0.0.1:PORT HTTP/1.1", holder) + HELLO)
        await reader.readuntil(b"\r\n\r\n")

    async with asyncio.timeout(SECONDS):
        assert await _read_all(reader) == b""
    writer.transport.abort()


@pytest.mark.extended
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.sampled_from([b"GET ", b"CONNECT ", b"POST http://", b"GET http://127.0.0.1:", b""]),
    noise=st.binary(max_size=300),
)
def test_random_bytes_reach_no_site(start: bytes, noise: bytes) -> None:
    async def generate_noise() -> None:
        async with open_world() as world:
            with world.proxy.grant_access() as holder:
                reader, writer = await world.connect()
                writer.write(world.format_request(start + noise, holder))
                writer.write_eof()
                async with asyncio.timeout(SECONDS):
                    await _read_all(reader)
                writer.transport.abort()
            assert not world.inside

    asyncio.run(generate_noise())
