"""`FacilitatorPool`: a request returns its own complete response or an error, whatever the server does."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from certificates import Authority

from centgate.payments.facilitator import facilitator_http
from centgate.payments.facilitator.facilitator_http import (
    FacilitatorPool,
    FacilitatorResponse,
    NoResponse,
    NotConnected,
)

MOST = 1000
WHOLE = b'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n{"a"'
CHUNKED = b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\n{"a\r\n1\r\n"\r\n0\r\nx: y\r\n\r\n'
ENDLESS = b'HTTP/1.1 200 OK\r\n\r\n{"a"'
ANSWER = FacilitatorResponse(200, b'{"a"')

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@dataclass
class ScriptedServer:
    """HTTP server that gives each request the next of its replies, and records the requests."""

    responses: list[bytes | None]
    """Replies in order; for None the server waits until the client disconnects."""
    hangs_up: bool = False
    url: str = ""
    requests: list[bytes] = field(default_factory=list[bytes])
    connections: int = 0
    open: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        with closing(writer):
            while head := await _head(reader):
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                response = self.responses[min(len(self.requests), len(self.responses)) - 1]
                if response is None:
                    await reader.read()
                    break
                writer.write(response)
                await writer.drain()
                if self.hangs_up:
                    break
        self.open -= 1


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


@asynccontextmanager
async def listen(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    """Serve a scripted HTTP server and return its URL; at the end all clients must have disconnected."""
    at_work = set[asyncio.Task[None]]()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        at_work.add(asyncio.ensure_future(serve(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    yield f"{'https' if tls else 'http'}://127.0.0.1:{port}/facilitator/settle"
    server.close()
    await asyncio.gather(*at_work)


@asynccontextmanager
async def open_pool(
    *says: bytes | None,
    hangs_up: bool = False,
    tls: ssl.SSLContext | None = None,
    trusted: ssl.SSLContext | None = None,
) -> AsyncGenerator[tuple[ScriptedServer, FacilitatorPool]]:
    """Open a scripted server, and a pool that is connected to it."""
    server = ScriptedServer(list(says), hangs_up)
    async with listen(server.serve, tls) as server.url:
        with closing(FacilitatorPool(server.url, MOST, tls=trusted)) as pool:
            yield server, pool


async def test_request_is_sent_unchanged() -> None:
    async with open_pool(WHOLE) as (server, pool):
        assert await pool.post(b'{"x402Version":2}', {"Authorization": "Bearer t"}) == ANSWER

    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /facilitator/settle HTTP/1.1"
    assert f"Host: {server.url.split('/')[2]}" in lines
    assert {"Content-Type: application/json", "Authorization: Bearer t", "Content-Length: 17"} <= set(lines)
    assert body == b'{"x402Version":2}'


async def test_credentials_in_url_are_sent_as_header() -> None:
    async with open_pool(WHOLE) as (server, _):
        with closing(FacilitatorPool(server.url.replace("//", "//us%40er:pass@"), MOST)) as pool:
            await pool.post(b"{}", {})

    assert b"\r\nAuthorization: Basic dXNAZXI6cGFzcw==\r\n" in server.requests[0]
    assert b"\r\nHost: 127.0.0.1:" in server.requests[0]


@pytest.mark.parametrize(
    "response",
    [
        WHOLE,
        CHUNKED,
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + WHOLE,
        WHOLE.replace(b"\r\n", b"\n"),
        WHOLE.replace(b"content-length", b"CONTENT-LENGTH"),
    ],
    ids=["length", "chunks", "interim", "newlines", "case"],
)
async def test_all_response_forms_are_read_and_connection_reused(response: bytes) -> None:
    async with open_pool(response) as (server, pool):
        answers = [await pool.post(b"{}", {}) for _ in range(3)]

    assert answers == [ANSWER] * 3
    assert server.connections == 1


@pytest.mark.parametrize("response", [ENDLESS, b"HTTP/1.0 200 OK\r\n\r\n" + b'{"a"'], ids=["1.1", "1.0"])
async def test_body_may_end_with_connection(response: bytes) -> None:
    async with open_pool(response, hangs_up=True) as (server, pool):
        assert await pool.post(b"{}", {}) == ANSWER
        assert await pool.post(b"{}", {}) == ANSWER

    assert server.connections == 2


@pytest.mark.parametrize("response", [WHOLE, CHUNKED])
async def test_response_may_arrive_byte_by_byte(response: bytes) -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _head(reader)
        for byte in response:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    async with listen(trickle) as url:
        with closing(FacilitatorPool(url, MOST)) as pool:
            assert await pool.post(b"", {}) == ANSWER


@pytest.mark.parametrize(
    "response",
    [
        b"",
        WHOLE[:-1],
        WHOLE[:30],
        CHUNKED[:-30],
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n{}",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MOST + 1),
        b"HTTP/1.1 200 OK\r\ncontent-length: 90000\r\n\r\n" + b"x" * (MOST + 1),
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000,
    ],
    ids=[
        *("nothing", "cut", "cut head", "cut chunks", "no length", "two lengths", "upgrade", "no HTTP"),
        *("endless", "long", "headers", "interim responses"),
    ],
)
async def test_invalid_response_closes_connection(response: bytes) -> None:
    async with open_pool(response, WHOLE, hangs_up=True) as (server, pool):
        with pytest.raises(NoResponse):
            await pool.post(b"{}", {})

        assert await pool.post(b"{}", {}) == ANSWER
        assert server.connections == 2


async def test_surplus_response_is_discarded() -> None:
    async with open_pool(WHOLE + WHOLE.replace(b'{"a"', b"evil"), WHOLE) as (server, pool):
        answers = [await pool.post(b"{}", {}) for _ in range(2)]

    assert answers == [ANSWER] * 2
    assert server.connections == 2


async def test_unsolicited_response_is_discarded() -> None:
    went = asyncio.Event()

    async def send_unsolicited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await _head(reader):
            writer.write(WHOLE)
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.write(WHOLE.replace(b'{"a"', b"evil"))
            await writer.drain()
            went.set()
        writer.close()

    async with listen(send_unsolicited) as url:
        with closing(FacilitatorPool(url, MOST)) as pool:
            first = await pool.post(b"", {})
            await went.wait()
            await asyncio.sleep(0.05)

            assert [first, await pool.post(b"", {})] == [ANSWER] * 2


async def test_cancelled_request_closes_connection() -> None:
    async with open_pool(None, WHOLE) as (server, pool):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await pool.post(b"{}", {})

        assert await pool.post(b"{}", {}) == ANSWER
        assert server.connections == 2


async def test_concurrent_requests_share_pooled_connections() -> None:
    async with open_pool(WHOLE) as (server, pool):
        answers = await asyncio.gather(*(pool.post(b"{}", {}) for _ in range(40)))
        await asyncio.gather(*(pool.post(b"{}", {}) for _ in range(40)))

    assert answers == [ANSWER] * 40
    assert server.connections <= 40


async def test_idle_connection_is_not_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_pool(WHOLE) as (server, pool):
        await pool.post(b"{}", {})
        monkeypatch.setattr(facilitator_http, "MAX_IDLE_SECONDS", -1.0)
        await pool.post(b"{}", {})

    assert server.connections == 2


async def test_surplus_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_pool(WHOLE) as (server, pool):
        await asyncio.gather(*(pool.post(b"{}", {}) for _ in range(20)))
        monkeypatch.setattr(facilitator_http, "MAX_IDLE_SECONDS", 0.05)
        await asyncio.sleep(0.1)
        await pool.post(b"{}", {})
        async with asyncio.timeout(10):
            while server.open > 1:  # noqa: ASYNC110 - the other side has no event
                await asyncio.sleep(0.01)


async def test_response_after_close_leaves_nothing_open() -> None:
    async with open_pool(WHOLE) as (server, pool):
        task = asyncio.ensure_future(pool.post(b"{}", {}))
        await asyncio.sleep(0)
        pool.close()

        assert await task == ANSWER
        async with asyncio.timeout(10):
            while server.open:  # noqa: ASYNC110 - the other side has no event
                await asyncio.sleep(0.01)


async def test_closed_connection_is_not_reused() -> None:
    async with open_pool(WHOLE, hangs_up=True) as (server, pool):
        for _ in range(3):
            assert await pool.post(b"{}", {}) == ANSWER
            await asyncio.sleep(0.05)

    assert server.connections == 3


async def test_unreachable_server_is_error() -> None:
    async with open_pool(WHOLE) as (server, _):
        pass
    with (
        closing(FacilitatorPool(server.url, MOST)) as pool,
        pytest.raises(NotConnected, match="ConnectionRefusedError"),
    ):
        await pool.post(b"{}", {})


@pytest.mark.parametrize(
    ("name", "vouched"),
    [("127.0.0.1", "for"), ("127.0.0.1", "not for"), ("another.example", "for")],
    ids=["trusted", "untrusted", "another host"],
)
async def test_tls_certificate_is_verified(name: str, vouched: str) -> None:
    authority, good = Authority(), (name, vouched) == ("127.0.0.1", "for")
    trusted = authority.client() if vouched == "for" else None
    async with open_pool(WHOLE, tls=authority.server(name), trusted=trusted) as (server, pool):
        if good:
            assert [await pool.post(b"{}", {}) for _ in range(2)] == [ANSWER] * 2
        else:
            with pytest.raises(NotConnected, match="SSLCertVerificationError"):
                await pool.post(b"{}", {})

    assert len(server.requests) == (2 if good else 0)
