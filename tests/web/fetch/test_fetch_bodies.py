"""Bodies of responses: content codings, bombs, sizes and content types."""

from __future__ import annotations

import asyncio
import gzip
import random
import tracemalloc
import zlib
from collections.abc import AsyncGenerator, Callable

import pytest
from hostile_site import Web, format_head, format_response, send_endlessly
from hypothesis import given
from hypothesis import strategies as st

from centgate.web.fetch.content_coding import CHUNK_BYTES, ContentCoding, Inflater, read_body
from centgate.web.fetch.failure import FetchFailed
from centgate.web.fetch.fairness import CooperativeScheduler

pytestmark = pytest.mark.extended

TEXT = b"<p>" + bytes(random.Random(7).choices(b"abcdefgh <>", k=300_000)) + b"</p>"


def bare_deflate(data: bytes) -> bytes:
    """Return data compressed as deflate without the zlib header."""
    deflater = zlib.compressobj(wbits=-15)
    return deflater.compress(data) + deflater.flush()


def gzip_bomb(megabytes: int) -> bytes:
    """Return megabytes of zeros, compressed to a thousandth."""
    deflater = zlib.compressobj(9, wbits=31)
    return b"".join([*(deflater.compress(bytes(1 << 20)) for _ in range(megabytes)), deflater.flush()])


CODED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-GZIP", gzip.compress),
    "gzip in members": ("gzip", lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:])),
    "gzip with padding": ("gzip", lambda data: gzip.compress(data) + bytes(1000)),
    "zlib": ("deflate", zlib.compress),
    "bare deflate": ("deflate", bare_deflate),
    "identity": ("identity", bytes),
    "nothing": ("", bytes),
}


@pytest.mark.parametrize("how", CODED)
async def test_accepted_content_codings_are_decoded(how: str, web: Web) -> None:
    name, code = CODED[how]
    web.site.set_response("/", format_response(code(TEXT), Content_Encoding=name))

    fetched = await web.fetch()

    assert fetched.body == TEXT


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_empty_body_may_declare_coding(coding: str, web: Web) -> None:
    web.site.set_response("/", format_response(b"", Content_Encoding=coding))

    fetched = await web.fetch()

    assert fetched.body == b""


@pytest.mark.parametrize(
    "coding",
    ["br", "zstd", "compress", "gzip, gzip", "gzip,br", "deflate, gzip", "identity, gzip", "aes128gcm", "?"],
)
async def test_other_and_stacked_codings_are_refused(coding: str, web: Web) -> None:
    # the first bytes of a brotli bomb, which is not decoded
    web.site.set_response("/", format_response(b"\xcf\xff\xff\xff" * 1000, Content_Encoding=coding))

    failed = await web.fetch_failure()

    assert failed.reason == "unsupported"
    assert failed.message == f'site.test answered with an unsupported content coding: "{coding}"'


async def test_two_coding_headers_are_stacked_codings(web: Web) -> None:
    fields = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Encoding: gzip\r\n\r\n"
    web.site.set_response("/", fields, gzip.compress(gzip.compress(TEXT)))

    failed = await web.fetch_failure()

    assert failed.reason == "unsupported"


PACKED = gzip.compress(TEXT)
BROKEN: dict[str, tuple[str, bytes]] = {
    "gzip cut short": ("gzip", PACKED[:-2000]),
    "gzip without its checksum": ("gzip", PACKED[:-8]),
    "gzip's head alone": ("gzip", PACKED[:5]),
    "gzip with a wrong checksum": ("gzip", PACKED[:-8] + b"12345678"),
    "a second member cut short": ("gzip", PACKED + PACKED[:-1]),
    "html in place of gzip": ("gzip", TEXT),
    "zlib cut short": ("deflate", zlib.compress(TEXT)[:-1]),
    "bare deflate cut short": ("deflate", bare_deflate(TEXT)[:-10]),
    "html in place of deflate": ("deflate", TEXT),
    "gzip in place of deflate": ("deflate", PACKED),
}


@pytest.mark.parametrize("how", BROKEN)
async def test_broken_compressed_body_is_a_failure(how: str, web: Web) -> None:
    name, body = BROKEN[how]
    web.site.set_response("/", format_response(body, Content_Encoding=name))

    failed = await web.fetch_failure()

    assert failed.reason == "failed"
    assert "compressed body" in failed.message


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_bombs_are_cut_off_in_little_memory(coding: ContentCoding, web: Web) -> None:
    bomb = gzip_bomb(400) if coding == "gzip" else zlib.compress(bytes(400 << 20))
    web.site.set_response("/", format_response(bomb, Content_Encoding=coding))

    tracemalloc.start()
    failed = await web.fetch_failure()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (failed.reason, failed.message) == ("too_large", "site.test answered with more than 5 MB")
    assert most < 16 << 20


async def test_bomb_of_many_members_is_cut_off(web: Web) -> None:
    web.site.set_response(
        "/", format_response(gzip.compress(bytes(100_000)) * 10_000, Content_Encoding="gzip")
    )

    failed = await web.fetch_failure()

    assert failed.reason == "too_large"


async def test_empty_members_are_limited(web: Web) -> None:
    web.site.set_response("/", format_head({"Content-Encoding": "gzip"}), gzip.compress(b"") * 100_000)

    failed = await web.fetch_failure()

    assert failed.reason == "failed"


@pytest.mark.parametrize("size", [99_999, 100_000, 100_001])
@pytest.mark.parametrize("coding", ["gzip", "identity"])
async def test_limit_is_exact_to_the_byte(size: int, coding: str, web: Web) -> None:
    body = bytes(size)
    web.site.set_response(
        "/", format_response(gzip.compress(body) if coding == "gzip" else body, Content_Encoding=coding)
    )

    reading = web.fetch(most_bytes=100_000)

    if size > 100_000:
        with pytest.raises(FetchFailed, match=r"more than 97 KB|announces 100,001 bytes"):
            await reading
    else:
        assert (await reading).body == body


async def test_limit_applies_before_decompression(web: Web) -> None:
    web.site.set_response(
        "/", format_head({"Content-Encoding": "gzip"}), gzip.compress(b"little") + bytes(200_000)
    )

    failed = await web.fetch_failure(most_bytes=100_000)

    assert failed.reason == "too_large"


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("text/html", ("text/html",)),
        ("Text/HTML ; charset=x", ("text/html",)),
        ("text/markdown", ("text/*",)),
        ("application/json", ("text/*", "Application/JSON")),
        ("image/png", ()),
    ],
)
async def test_accepted_types_are_read(kind: str, types: tuple[str, ...], web: Web) -> None:
    web.site.set_response("/", format_response(b"content", kind=kind))

    assert (await web.fetch(types=types)).body == b"content"


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("image/png", ("text/*",)),
        ("application/xhtml+xml", ("application/xml",)),
        ("textual/html", ("text/*",)),
        ("text/html, image/png", ("text/html",)),
        ("*/*", ("text/html",)),
        ("html", ("text/html",)),
    ],
)
async def test_other_types_are_refused(kind: str, types: tuple[str, ...], web: Web) -> None:
    web.site.set_handler("/", send_endlessly(format_head({"Content-Type": kind}), then=b"x" * 65536))

    failed = await web.fetch_failure(types=types)

    assert (failed.reason, failed.message) == ("unsupported", f'site.test answered with "{kind}"')


@pytest.mark.parametrize("fields", [b"", b"Content-Type:\r\n", b"Content-Type:  \r\n"])
async def test_missing_type_is_accepted(fields: bytes, web: Web) -> None:
    web.site.set_response("/", b"HTTP/1.1 200 OK\r\n", fields, b"\r\ncontent")

    fetched = await web.fetch(types=("text/html",))

    assert (fetched.content_type, fetched.body) == (None, b"content")


async def test_wrong_type_is_returned_as_declared(web: Web) -> None:
    web.site.set_response("/", format_response(b"\x89PNG\r\n\x1a\n", kind="text/html"))

    fetched = await web.fetch(types=("text/html",))

    assert fetched.body.startswith(b"\x89PNG")


@pytest.mark.parametrize("status", [400, 404, 410, 429, 500, 503])
async def test_error_status_has_short_body(status: int, web: Web) -> None:
    web.site.set_response("/", format_response(b"gone" * 50_000, status=status))

    fetched = await web.fetch(types=("text/html",))

    assert fetched.status == status
    assert fetched.body.startswith(b"gonegone")
    assert len(fetched.body) <= 64 * 1024


@pytest.mark.parametrize(
    "answer",
    [
        format_response(b"\x89PNG", status=404, kind="image/png"),
        format_response(b"x", status=404, Content_Encoding="br"),
        format_response(b"x", status=404, Content_Encoding="gzip"),
        format_response(gzip_bomb(20), status=404, Content_Encoding="gzip"),
    ],
    ids=["type", "coding", "broken", "bomb"],
)
async def test_error_status_with_unreadable_body_is_kept(answer: bytes, web: Web) -> None:
    web.site.set_response("/", answer)

    fetched = await web.fetch(types=("text/html",))

    assert fetched.status == 404
    assert len(fetched.body) <= 64 * 1024


@given(
    data=st.binary(max_size=300_000) | st.integers(0, 400_000).map(bytes),
    how=st.sampled_from(sorted(set(CODED) - {"identity", "nothing", "x-gzip"})),
    size=st.integers(1, 5000),
)
def test_body_is_independent_of_chunk_sizes(data: bytes, how: str, size: int) -> None:
    name, code = CODED[how]
    coded = code(data)
    inflater = Inflater("gzip" if name == "gzip" else "deflate")

    parts = [part for at in range(0, len(coded), size) for part in inflater.inflate(coded[at : at + size])]

    assert b"".join(parts) == data
    assert inflater.is_complete
    assert max(map(len, parts), default=0) <= CHUNK_BYTES


async def test_other_tasks_run_during_decompression() -> None:
    async def pieces() -> AsyncGenerator[bytes]:
        yield gzip_bomb(50)

    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    with pytest.raises(FetchFailed):
        await read_body(
            pieces(), "gzip", 20 << 20, buffer=bytearray(), host="site.test", scheduler=CooperativeScheduler()
        )
    task.cancel()

    assert turns >= (20 << 20) // CHUNK_BYTES
