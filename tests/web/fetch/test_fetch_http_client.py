"""HTTP client of the fetcher: valid sites, and sites that violate HTTP."""

from __future__ import annotations

import socket
import struct

import pytest
from hostile_site import ConnectionHandler, Web, format_head, format_response, send_endlessly, send_slowly

pytestmark = pytest.mark.extended

CHUNKED = format_head({"Transfer-Encoding": "chunked"})


async def test_page_is_fetched(web: Web) -> None:
    web.site.set_response(
        "/page", format_response(b"<p>hello", kind="text/html; charset=utf-8", X_Robots_Tag="noindex")
    )

    fetched = await web.fetch("/page?q=1#part")

    assert (fetched.status, fetched.body) == (200, b"<p>hello")
    assert fetched.url == web.url("/page?q=1")
    assert fetched.content_type == "text/html; charset=utf-8"
    assert fetched.headers["x-robots-tag"] == fetched.headers["X-Robots-Tag"] == "noindex"


async def test_request_has_user_agent_and_few_headers(web: Web) -> None:
    web.site.set_response("/a", format_response(b"x"))

    await web.fetch("/a%20b/../a?x=\u00e4 b#c", types=("text/html", "text/*"))

    assert web.site.requests[0].split("\r\n") == [
        "GET /a?x=%C3%A4%20b HTTP/1.1",
        f"Host: site.test:{web.port}",
        "User-Agent: Tester/1 (+https://operator.test)",
        "Accept: text/html, text/*, */*;q=0.1",
        "Accept-Encoding: gzip, deflate",
        "Connection: close",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 200\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nab", b"ab"),
        (
            CHUNKED + b"2\r\nab\r\n1;ext=1\r\nc\r\n0\r\nT: x\r\n\r\n",
            b"abc",
        ),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2  \r\nab\r\n0\r\n\r\n", b"ab"),
        (b"HTTP/1.1 103 Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b"x"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdefgh", b"abc"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 500 Second\r\n\r\nsecond", b"x"),
        (b"HTTP/1.1 204 None\r\nContent-Length: 5\r\n\r\nextra", b""),
        (b"HTTP/1.1 205 Reset\r\nContent-Length: 5\r\n\r\nextra", b""),
        (b"HTTP/1.1 304 Same\r\nContent-Length: 5\r\n\r\n", b""),
        (b"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nno", b"no"),
    ],
)
async def test_response_framings_are_understood(answer: bytes, body: bytes, web: Web) -> None:
    web.site.set_response("/", answer)

    fetched = await web.fetch()

    assert fetched.body == body


async def test_trailers_are_no_headers(web: Web) -> None:
    chunks = b"1\r\nx\r\n0\r\nContent-Type: application/evil\r\n\r\n"
    web.site.set_response(
        "/", format_head({"Content-Type": "text/plain", "Transfer-Encoding": "chunked"}), chunks
    )

    fetched = await web.fetch()

    assert fetched.content_type == "text/plain"


async def test_interim_response_is_ignored(web: Web) -> None:
    web.site.set_response(
        "/",
        b"HTTP/1.1 103 Hints\r\nContent-Type: image/png\r\n\r\n",
        format_response(b"x", kind="text/plain"),
    )

    fetched = await web.fetch(types=("text/*",))

    assert fetched.content_type == "text/plain"


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>HTTP/0.9 has no head</html>",
        b"",
        b"HTTP/1.1",
        b"HTTP/1.1 200 OK\r\nContent-Ty",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 000 Zero\r\n\r\n",
        b"HTTP/1.1 -20 Less\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"\0" * 4096,
        b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nraw",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        CHUNKED + b"zz\r\nab\r\n0\r\n\r\n",
        CHUNKED + b"-2\r\nab\r\n0\r\n\r\n",
        CHUNKED + b"ffffffffffffffffff\r\nab\r\n",
        CHUNKED + b"5\r\nab\r\n0\r\n\r\n",
        CHUNKED + b"2\r\nab\r\n",
        CHUNKED + b"",
        b"HTTP/1.1 200 OK\r\nno colon in here\r\n\r\nab",
    ],
)
async def test_invalid_http_is_a_failure(answer: bytes, web: Web) -> None:
    web.site.set_response("/", answer)

    failed = await web.fetch_failure()

    assert failed.reason in ("failed", "unreachable")
    assert "site.test" in failed.message


@pytest.mark.parametrize("coding", ["gzip", "gzip, chunked", "identity", "chunked, chunked", "x"])
async def test_other_transfer_codings_are_refused(coding: str, web: Web) -> None:
    web.site.set_response("/", format_head({"Transfer-Encoding": coding}), b"2\r\nab\r\n0\r\n\r\n")

    failed = await web.fetch_failure()

    assert failed.reason in ("unsupported", "failed")


ENDLESS: dict[str, tuple[ConnectionHandler, str]] = {
    "header fields": (send_endlessly(b"HTTP/1.1 200 OK\r\n", then=b"a: b\r\n" * 1000), "too_large"),
    "one field": (send_endlessly(b"HTTP/1.1 200 OK\r\nlong: ", then=b"x" * 65536), "too_large"),
    "one field's name": (send_endlessly(b"HTTP/1.1 200 OK\r\n", then=b"x" * 65536), "too_large"),
    "status line": (send_endlessly(b"HTTP/1.1 200 ", then=b"x" * 65536), "too_large"),
    "empty lines": (send_endlessly(then=b"\r\n" * 10000), "too_large"),
    "continue": (send_endlessly(then=b"HTTP/1.1 100 Continue\r\n\r\n" * 1000), "too_large"),
    "hints": (send_endlessly(then=b"HTTP/1.1 103 Hints\r\nLink: <a>\r\n\r\n" * 1000), "too_large"),
    "chunk's extension": (send_endlessly(CHUNKED, b"1;", then=b"x" * 65536), "too_large"),
    "chunk's size": (send_endlessly(CHUNKED, then=b"0" * 65536), "too_large"),
    "trailers": (send_endlessly(CHUNKED, b"0\r\n", then=b"a: b\r\n" * 1000), "too_large"),
    "one trailer": (send_endlessly(CHUNKED, b"0\r\nlong: ", then=b"x" * 65536), "too_large"),
    "tiny chunks": (send_endlessly(CHUNKED, then=b"1\r\nx\r\n" * 1000), "too_large"),
    "chunks": (send_endlessly(CHUNKED, then=b"10000\r\n" + b"x" * 65536 + b"\r\n"), "too_large"),
    "page": (send_endlessly(format_head({"Content-Type": "text/html"}), then=b"<p>" * 10000), "too_large"),
    "zeros": (send_endlessly(then=b"\0" * 65536), "failed"),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_endless_response_is_cut_off(what: str, web: Web) -> None:
    deed, reason = ENDLESS[what]
    web.site.set_handler("/", deed)

    failed = await web.fetch_failure()

    assert failed.reason == reason


async def test_number_of_headers_is_limited(web: Web) -> None:
    fields = b"".join(b"X-%d: value\r\n" % number for number in range(200_000))
    web.site.set_response("/", b"HTTP/1.1 200 OK\r\n", fields, b"Content-Length: 0\r\n\r\n")

    failed = await web.fetch_failure()

    assert failed.reason == "too_large"


async def test_length_of_html_is_limited(web: Web) -> None:
    size = 100_000_000
    web.site.set_response(
        "/", format_head({"Content-Type": "text/html"}), *([b"<p>x</p>" * 12_500] * (size // 100_000))
    )

    failed = await web.fetch_failure()

    assert (failed.reason, failed.message) == ("too_large", "site.test answered with more than 5 MB")


async def test_declared_length_is_checked_before_reading(web: Web) -> None:
    web.site.set_handler("/", send_slowly(format_head({"Content-Length": "100000000"}), b""))

    failed = await web.fetch_failure()

    assert failed.reason == "too_large"


SLOW: dict[str, ConnectionHandler] = {
    "status line": send_slowly(b"HTTP/1.1 200 ", b"x"),
    "header field": send_slowly(b"HTTP/1.1 200 OK\r\nx: ", b"y"),
    "header fields": send_slowly(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"),
    "interim responses": send_slowly(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": send_slowly(format_head({"Content-Length": "10000"}), b"x"),
    "chunks": send_slowly(CHUNKED, b"1\r\nx\r\n"),
    "a chunk's extension": send_slowly(CHUNKED + b"1;", b"x"),
    "no body": send_slowly(format_head({}), b""),
    "nothing": send_slowly(b"", b""),
    "body of an error": send_slowly(format_head({"Content-Length": "10000"}, 500), b"x"),
}


@pytest.mark.parametrize("what", SLOW)
async def test_slow_response_ends_at_deadline(what: str, web: Web) -> None:
    web.site.set_handler("/", SLOW[what])

    failed = await web.fetch_failure(seconds=0.5)

    assert (failed.reason, failed.message) == ("timeout", "site.test did not answer within 0.5 s")


async def test_reset_connection_is_unreachable(web: Web) -> None:
    def reset(connection: socket.socket) -> None:
        connection.sendall(format_head({"Content-Length": "10"}) + b"x")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    web.site.set_handler("/", reset)

    failed = await web.fetch_failure()

    assert failed.reason in ("unreachable", "failed")


async def test_requests_are_never_repeated(web: Web) -> None:
    web.site.set_response("/", b"")

    await web.fetch_failure()

    assert web.site.connections == 1
