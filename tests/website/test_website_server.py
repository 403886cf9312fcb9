"""The website as a server: in which form, with which headers, and what it does when the API is gone."""

from __future__ import annotations

import asyncio
import gzip
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
import uvicorn
from browser_session import ServedSite
from databases import reserve_port
from facilitators import StubFacilitator, build_settings
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from centgate.cli.website import parse_api_address
from centgate.client.catalog import CatalogUnavailable
from centgate.server import local_url, open_listener, run_in_thread
from centgate.settings import Settings
from centgate.website.api_snapshot import ApiSnapshot, read_snapshot
from centgate.website.server import create_site_app

SAFETY = (
    "content-security-policy",
    "x-content-type-options",
    "x-frame-options",
    "referrer-policy",
    "permissions-policy",
    "cross-origin-opener-policy",
)
CENTGATE = Path(sys.executable).with_name("centgate")
WAIT = 30.0


@pytest.fixture(scope="session")
def visitor(shop: ServedSite) -> Generator[httpx.Client]:
    """A client of the website that follows nothing by itself."""
    with httpx.Client(base_url=shop.url, timeout=WAIT) as client:
        yield client


@contextmanager
def served(api: str, deployment: ApiSnapshot, every: float) -> Generator[httpx.Client]:
    """A website that reads its API again every so many seconds."""
    listener, listening = open_listener(Settings(port=0))
    config = uvicorn.Config(create_site_app(api, deployment, interval=every), log_config=None, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    with httpx.Client(base_url=local_url(listening), timeout=WAIT) as client:
        yield client
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.mark.extended
@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
        ("*/*", "text/html"),
        ("", "text/html"),
        ("text/plain", "text/html"),
        ("text/markdown", "text/markdown"),
        ("text/markdown, text/html, */*", "text/markdown"),
        ("text/markdown;q=1.0, text/plain;q=0.8, text/html;q=0.7", "text/markdown"),
        ("text/html, text/markdown;q=0.5", "text/html"),
        ("text/markdown;q=0, */*", "text/html"),
        ("text/markdown;q=nonsense", "text/html"),
    ],
)
def test_a_page_comes_in_the_form_that_is_liked_best(visitor: httpx.Client, accept: str, form: str) -> None:
    response = visitor.get("/services/token-risk", headers={"Accept": accept})

    assert response.headers["content-type"].startswith(form)
    assert "Accept" in response.headers["vary"]


def test_markdown_by_accept_is_the_twin_byte_for_byte(visitor: httpx.Client) -> None:
    asked = visitor.get("/services/token-risk", headers={"Accept": "text/markdown"})

    assert asked.content == visitor.get("/services/token-risk.md").content


def test_a_file_that_has_one_form_does_not_vary(visitor: httpx.Client) -> None:
    response = visitor.get("/site.css", headers={"Accept": "text/markdown"})

    assert response.headers["content-type"] == "text/css"
    assert "Accept," not in response.headers["vary"] + ","


def test_every_file_is_served_with_its_type(shop: ServedSite, visitor: httpx.Client) -> None:
    for path, file in shop.files.items():
        response = visitor.get(path)
        expected = 404 if path in ("/404.html", "/500.html") else 200
        assert response.status_code == expected, path
        if expected == 200:
            assert response.headers["content-type"] == file.media_type, path


@pytest.mark.parametrize("path", ["/", "/services/token-risk", "/site.css", "/nothing"])
def test_head_answers_like_get_without_a_body(visitor: httpx.Client, path: str) -> None:
    head, get = visitor.head(path), visitor.get(path)

    assert head.status_code == get.status_code
    assert head.content == b""
    assert {**head.headers, "date": ""} == {**get.headers, "date": ""}


@pytest.mark.parametrize("tag", ["{}", '"other", {}', "*", "strong"])
def test_what_the_client_has_is_not_sent_again(visitor: httpx.Client, tag: str) -> None:
    known = visitor.get("/paying").headers["etag"]
    tag = known.removeprefix("W/") if tag == "strong" else tag.format(known)

    response = visitor.get("/paying", headers={"If-None-Match": tag})

    assert (response.status_code, response.content) == (304, b"")
    assert response.headers["etag"] == known


def test_another_form_has_another_tag(visitor: httpx.Client) -> None:
    known = visitor.get("/paying").headers["etag"]

    response = visitor.get("/paying", headers={"If-None-Match": known, "Accept": "text/markdown"})

    assert response.status_code == 200


def test_pages_are_compressed_for_who_can_read_it(visitor: httpx.Client) -> None:
    with visitor.stream("GET", "/services/token-risk", headers={"Accept-Encoding": "gzip"}) as response:
        raw = b"".join(response.iter_raw())

    assert response.headers["content-encoding"] == "gzip"
    assert len(raw) < len(gzip.decompress(raw)) / 2


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("text/html,*/*;q=0.8", "text/html; charset=utf-8"),
        ("text/markdown, */*", "text/markdown; charset=utf-8"),
        ("*/*", "text/plain; charset=utf-8"),
    ],
)
def test_what_is_not_there_is_said_in_the_clients_form(visitor: httpx.Client, accept: str, form: str) -> None:
    response = visitor.get("/nothing/here", headers={"Accept": accept})

    assert (response.status_code, response.headers["content-type"]) == (404, form)
    assert "Page not found" in response.text
    assert "/#services" in response.text or "/index.md#services" in response.text


def test_the_page_for_what_is_not_there_is_no_page(visitor: httpx.Client) -> None:
    assert visitor.get("/404.html").status_code == 404


@pytest.mark.extended
@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("/services/token-risk/", "/services/token-risk"),
        ("/services/token-risk/index.html", "/services/token-risk"),
        ("/index.html", "/"),
        ("/paying//", "/paying"),
        ("/paying/?a=b&c=%20", "/paying?a=b&c=%20"),
        ("/llms.txt/", "/llms.txt"),
    ],
)
def test_other_ways_to_write_an_address_lead_to_the_one(
    visitor: httpx.Client, path: str, canonical: str
) -> None:
    response = visitor.get(path)

    assert (response.status_code, response.headers["location"]) == (308, canonical)


def test_no_address_leads_to_another_host(shop: ServedSite) -> None:
    answer = raw(shop, "GET //evil.example/paying/ HTTP/1.1")

    assert answer.startswith("HTTP/1.1 404")


@pytest.mark.extended
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/nothing"])
def test_only_get_and_head_are_answered(visitor: httpx.Client, method: str, path: str) -> None:
    response = visitor.request(method, path)

    assert response.status_code == 405
    assert response.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/llms.txt"), ("GET", "/nothing"), ("POST", "/"), ("HEAD", "/site.css")],
)
def test_every_response_is_safe(visitor: httpx.Client, method: str, path: str) -> None:
    response = visitor.request(method, path)

    assert [name for name in SAFETY if name not in response.headers] == []
    assert "unsafe" not in response.headers["content-security-policy"]


def test_a_page_names_its_twin_and_the_address_it_goes_by(shop: ServedSite, visitor: httpx.Client) -> None:
    page, twin = visitor.get("/paying"), visitor.get("/paying.md")

    assert '</paying.md>; rel="alternate"; type="text/markdown"' in page.headers["link"]
    assert f'<{shop.deployment.site}/paying>; rel="canonical"' in page.headers["link"]
    assert f'<{shop.deployment.site}/paying>; rel="canonical"' in twin.headers["link"]
    assert 'rel="alternate"' not in twin.headers["link"]


@pytest.mark.extended
@pytest.mark.parametrize(
    "line",
    [
        "GET /%ff%fe HTTP/1.1",
        "GET /%00 HTTP/1.1",
        "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1",
        "GET /../../etc/passwd HTTP/1.1",
        "GET /services%2ftoken-risk%0d%0aSet-Cookie:%20a=b HTTP/1.1",
        "GET /paying/%0d%0aSet-Cookie:%20a=b/ HTTP/1.1",
        "GET http://elsewhere.example/paying HTTP/1.1",
        "GET /?" + "a" * 5000 + " HTTP/1.1",
        "GET * HTTP/1.1",
        "GET paying HTTP/1.1",
    ],
)
def test_odd_requests_do_not_break_it(shop: ServedSite, line: str) -> None:
    answer = raw(shop, line)

    assert int(answer.split()[1]) in (200, 308, 400, 404)
    assert "set-cookie" not in answer.partition("\r\n\r\n")[0].lower()


def raw(shop: ServedSite, line: str) -> str:
    """Return the response to a raw request line."""
    host, port = shop.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=WAIT) as connection:
        connection.sendall(f"{line}\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        chunks = iter(lambda: connection.recv(65536), b"")
        return b"".join(chunks).decode("utf-8", "replace")


@pytest.fixture(scope="session")
def app(shop: ServedSite) -> Starlette:
    """The website itself, without a server before it."""
    return create_site_app(shop.deployment.api, shop.deployment)


@given(st.text(max_size=40), st.binary(max_size=40), st.binary(max_size=40))
@settings(max_examples=200, deadline=None)
def test_no_path_and_no_header_breaks_it(app: Starlette, path: str, accept: bytes, tag: bytes) -> None:
    headers = [(b"accept", accept), (b"if-none-match", tag)]
    scope = {"type": "http", "method": "GET", "path": f"/{path}", "query_string": accept, "headers": headers}

    status = asyncio.run(answered(app, scope))

    assert status in (200, 304, 308, 404)


async def answered(app: Starlette, scope: dict[str, Any]) -> int:
    """The status that an ASGI request is answered with."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"]


def test_a_failure_of_its_own_is_an_apology(shop: ServedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_site_app(shop.deployment.api, shop.deployment)
    client = TestClient(app, raise_server_exceptions=False)

    def broken(*_given: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("centgate.website.server.response_headers", broken)
    response = client.get("/", headers={"Accept": "text/html"})

    assert response.status_code == 500
    assert "The website failed" in response.text
    assert "secret" not in response.text
    assert [name for name in SAFETY if name not in response.headers] == []


@pytest.mark.extended
def test_pages_stay_when_the_api_goes_and_say_since_when(
    tmp_path: Path, facilitator: StubFacilitator
) -> None:
    with run_in_thread(build_settings(tmp_path, facilitator.url)) as api:
        deployment = read_snapshot(api, "https://site.example")
        assert "**no recent calls**" in page(api, deployment)

    with served(api, deployment, every=0.05) as client:
        text = until(client, "**not reachable** since")
        guide = client.get("/paying")

    assert "**no recent calls**" not in text
    assert guide.status_code == 200


@pytest.mark.extended
def test_an_api_that_comes_back_is_reachable_again(tmp_path: Path, facilitator: StubFacilitator) -> None:
    with reserve_port() as port:
        api_settings = build_settings(tmp_path, facilitator.url, port=port)
        with run_in_thread(api_settings) as api:
            deployment = read_snapshot(api, "https://site.example")

        with served(api, deployment, every=0.05) as client:
            until(client, "**not reachable** since")
            with run_in_thread(api_settings):
                text = until(client, "**no recent calls**")

    assert "not reachable" not in text


def page(api: str, deployment: ApiSnapshot) -> str:
    """The first page as Markdown, as it is before the API is read again."""
    return TestClient(create_site_app(api, deployment)).get("/index.md").text


def until(client: httpx.Client, said: str) -> str:
    """The first page's Markdown once it says so."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        text = client.get("/index.md").text
        if said in text:
            return text
    raise AssertionError(f"the first page does not come to say {said!r}")


def test_the_command_serves_and_says_when_it_is_ready(shop: ServedSite) -> None:
    command = [CENTGATE, "site", "--api", shop.deployment.api + "/", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().removeprefix("ready ").strip()

    response = httpx.get(url, timeout=WAIT)
    too_large = httpx.get(url, timeout=WAIT, headers={"A": "a" * 70_000})

    process.send_signal(signal.SIGTERM)
    process.wait(WAIT)
    process.stdout.close()
    assert (response.status_code, too_large.status_code) == (200, 431)
    assert f'<link rel="canonical" href="{url}/">' in response.text


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`centgate site` with arguments, to its end."""
    return subprocess.run(
        [CENTGATE, "site", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.extended
@pytest.mark.parametrize("command", [[], ["build", "--out", "out"]], ids=["serve", "build"])
def test_without_the_api_there_is_a_sentence(command: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"

    done = run(*command, "--api", nobody)

    assert done.returncode == 1
    assert done.stderr.startswith(f"centgate: {nobody}")
    assert "cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "api",
    [
        "api.example.com",
        "ftp://api.example.com",
        "http://",
        "http://[::1",
        "http://host:port",
        "http://a b",
        "",
        "https://user:secret@api.example.com",
        "https://api.example.com?a=b",
        "http://api.example.com:99999",
    ],
)
def test_what_is_no_address_is_said_to_be_none(api: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        parse_api_address(api)

    said = capsys.readouterr().err
    assert ended.value.exit_code == 2
    assert said.startswith("centgate: ")
    assert "is not an API address" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "api", ["http://127.0.0.1:8402", "https://api.example.com", "https://example.com/api"]
)
def test_an_address_may_end_in_a_slash(api: str) -> None:
    assert parse_api_address(api) == parse_api_address(f"{api}/") == api


@pytest.mark.extended
@pytest.mark.parametrize(
    "content", ["nothing", "[]", '{"openapi": "3.1.0"}', '{"servers": []}', '{"servers": [7]}']
)
def test_another_server_than_ours_is_said_to_be_another(tmp_path: Path, content: str) -> None:
    (tmp_path / "openapi.json").write_text(content)
    (tmp_path / "services").mkdir()
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    other = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert other.stdout is not None
    port = other.stdout.readline().split(" port ")[1].split()[0]

    with pytest.raises(CatalogUnavailable, match=f"http://127.0.0.1:{port}"):
        read_snapshot(f"http://127.0.0.1:{port}", None)

    other.terminate()
    other.wait(WAIT)
    other.stdout.close()


def test_a_query_is_shown_as_text_with_what_it_finds(visitor: httpx.Client) -> None:
    response = visitor.get("/search", params={"q": '"><script>alert(1)</script>'})

    assert response.status_code == 200
    assert "<script>alert" not in response.text
    assert "&#34;&gt;&lt;script" in response.text
    found = visitor.get("/search", params={"q": "honeypot"}, headers={"Accept": "text/html"}).text
    assert 'href="/services/token-risk"' in found.partition('id="found"')[2]


def test_a_page_that_is_missing_offers_the_search(visitor: httpx.Client) -> None:
    response = visitor.get("/nothing", headers={"Accept": "text/html"})

    assert response.status_code == 404
    assert 'action="/search"' in response.text
