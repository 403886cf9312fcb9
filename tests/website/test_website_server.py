"""Website server: content negotiation, headers, and pages while the API is unreachable."""

from __future__ import annotations

import asyncio
import gzip
import os
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
from centgate_process import run_centgate
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
from centgate.website.server import SiteState, create_site_app

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
    """Client of the website that follows no redirects."""
    with httpx.Client(base_url=shop.url, timeout=WAIT) as client:
        yield client


@contextmanager
def open_site(api: str, deployment: ApiSnapshot, every: float) -> Generator[httpx.Client]:
    """Serve a website that reads its API again at this interval in seconds."""
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
def test_preferred_form_is_served(visitor: httpx.Client, accept: str, form: str) -> None:
    response = visitor.get("/services/token-risk", headers={"Accept": accept})

    assert response.headers["content-type"].startswith(form)
    assert "Accept" in response.headers["vary"]


def test_website_loads_nothing_of_running_server() -> None:
    loaded = "import sys, centgate.website.server; print('centgate.runtime' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.returncode) == ("False\n", 0)


def test_negotiated_markdown_equals_markdown_file(visitor: httpx.Client) -> None:
    response = visitor.get("/services/token-risk", headers={"Accept": "text/markdown"})

    assert response.content == visitor.get("/services/token-risk.md").content


def test_file_with_one_form_does_not_vary(visitor: httpx.Client) -> None:
    response = visitor.get("/site.css", headers={"Accept": "text/markdown"})

    assert response.headers["content-type"] == "text/css"
    assert "Accept," not in response.headers["vary"] + ","


def test_files_have_their_types(shop: ServedSite, visitor: httpx.Client) -> None:
    for path, file in shop.files.items():
        response = visitor.get(path)
        expected = 404 if path in ("/404.html", "/500.html") else 200
        assert response.status_code == expected, path
        if expected == 200:
            assert response.headers["content-type"] == file.media_type, path


@pytest.mark.parametrize("path", ["/", "/services/token-risk", "/site.css", "/nothing"])
def test_head_equals_get_without_body(visitor: httpx.Client, path: str) -> None:
    head, get = visitor.head(path), visitor.get(path)

    assert head.status_code == get.status_code
    assert head.content == b""
    assert {**head.headers, "date": ""} == {**get.headers, "date": ""}


@pytest.mark.parametrize("tag", ["{}", '"other", {}', "*", "strong"])
def test_cached_file_is_not_sent_again(visitor: httpx.Client, tag: str) -> None:
    known = visitor.get("/paying").headers["etag"]
    tag = known.removeprefix("W/") if tag == "strong" else tag.format(known)

    response = visitor.get("/paying", headers={"If-None-Match": tag})

    assert (response.status_code, response.content) == (304, b"")
    assert response.headers["etag"] == known


def test_each_form_has_its_etag(visitor: httpx.Client) -> None:
    known = visitor.get("/paying").headers["etag"]

    response = visitor.get("/paying", headers={"If-None-Match": known, "Accept": "text/markdown"})

    assert response.status_code == 200


def test_pages_are_compressed_on_request(visitor: httpx.Client) -> None:
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
def test_not_found_is_in_requested_form(visitor: httpx.Client, accept: str, form: str) -> None:
    response = visitor.get("/nothing/here", headers={"Accept": accept})

    assert (response.status_code, response.headers["content-type"]) == (404, form)
    assert "Page not found" in response.text
    assert "/#services" in response.text or "/index.md#services" in response.text


def test_not_found_page_has_status_404(visitor: httpx.Client) -> None:
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
def test_other_spellings_redirect_to_canonical_path(visitor: httpx.Client, path: str, canonical: str) -> None:
    response = visitor.get(path)

    assert (response.status_code, response.headers["location"]) == (308, canonical)


def test_no_path_redirects_to_other_host(shop: ServedSite) -> None:
    answer = send_raw(shop, "GET //evil.example/paying/ HTTP/1.1")

    assert answer.startswith("HTTP/1.1 404")


@pytest.mark.extended
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/nothing"])
def test_only_get_and_head_are_allowed(visitor: httpx.Client, method: str, path: str) -> None:
    response = visitor.request(method, path)

    assert response.status_code == 405
    assert response.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/llms.txt"), ("GET", "/nothing"), ("POST", "/"), ("HEAD", "/site.css")],
)
def test_responses_have_security_headers(visitor: httpx.Client, method: str, path: str) -> None:
    response = visitor.request(method, path)

    assert [name for name in SAFETY if name not in response.headers] == []
    assert "unsafe" not in response.headers["content-security-policy"]


def test_page_names_its_markdown_and_canonical_url(shop: ServedSite, visitor: httpx.Client) -> None:
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
def test_malformed_requests_do_not_break_server(shop: ServedSite, line: str) -> None:
    answer = send_raw(shop, line)

    assert int(answer.split()[1]) in (200, 308, 400, 404)
    assert "set-cookie" not in answer.partition("\r\n\r\n")[0].lower()


def send_raw(shop: ServedSite, line: str) -> str:
    """Return the response to a raw request line."""
    host, port = shop.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=WAIT) as connection:
        connection.sendall(f"{line}\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        chunks = iter(lambda: connection.recv(65536), b"")
        return b"".join(chunks).decode("utf-8", "replace")


@pytest.fixture(scope="session")
def site_app(shop: ServedSite) -> Starlette:
    """The ASGI application of the website, without a server."""
    return create_site_app(shop.deployment.api, shop.deployment)


@pytest.mark.extended
@given(st.text(max_size=40), st.binary(max_size=40), st.binary(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_path_and_headers_are_answered(site_app: Starlette, path: str, accept: bytes, tag: bytes) -> None:
    headers = [(b"accept", accept), (b"if-none-match", tag)]
    scope = {"type": "http", "method": "GET", "path": f"/{path}", "query_string": accept, "headers": headers}

    status = asyncio.run(request_status(site_app, scope))

    assert status in (200, 304, 308, 404)


async def request_status(site_app: Starlette, scope: dict[str, Any]) -> int:
    """Return the status of an ASGI request."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await site_app(scope, receive, send)
    return sent[0]["status"]


def test_internal_error_gives_error_page(shop: ServedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    site_app = create_site_app(shop.deployment.api, shop.deployment)
    client = TestClient(site_app, raise_server_exceptions=False)

    def broken(*_given: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("centgate.website.server.response_headers", broken)
    response = client.get("/", headers={"Accept": "text/html"})

    assert response.status_code == 500
    assert "The website failed" in response.text
    assert "secret" not in response.text
    assert [name for name in SAFETY if name not in response.headers] == []


@pytest.mark.extended
def test_pages_stay_during_api_outage_with_its_start(tmp_path: Path, facilitator: StubFacilitator) -> None:
    with run_in_thread(build_settings(tmp_path, facilitator.url)) as api:
        deployment = read_snapshot(api, "https://site.example")
        assert "**no recent calls**" in read_first_page(api, deployment)

    with open_site(api, deployment, every=0.05) as client:
        text = wait_for_text(client, "**not reachable** since")
        guide = client.get("/paying")

    assert "**no recent calls**" not in text
    assert guide.status_code == 200


@pytest.mark.extended
def test_returning_api_is_reachable_again(tmp_path: Path, facilitator: StubFacilitator) -> None:
    with reserve_port() as port:
        api_settings = build_settings(tmp_path, facilitator.url, port=port)
        with run_in_thread(api_settings) as api:
            deployment = read_snapshot(api, "https://site.example")

        with open_site(api, deployment, every=0.05) as client:
            wait_for_text(client, "**not reachable** since")
            with run_in_thread(api_settings):
                text = wait_for_text(client, "**no recent calls**")

    assert "not reachable" not in text


@pytest.mark.extended
def test_pages_of_lost_api_are_built_once(shop: ServedSite) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    state = SiteState(nobody, shop.deployment, ())

    state.refresh()
    site = state.site
    state.refresh()

    assert b"**not reachable**" in state.files["/status.md"].content
    assert state.site is site


def read_first_page(api: str, deployment: ApiSnapshot) -> str:
    """Return the first page as Markdown, before the API is read again."""
    return TestClient(create_site_app(api, deployment)).get("/index.md").text


def wait_for_text(client: httpx.Client, said: str) -> str:
    """Return the first page's Markdown as soon as it contains a text."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        text = client.get("/index.md").text
        if said in text:
            return text
    raise AssertionError(f"the first page does not come to say {said!r}")


@pytest.mark.extended
def test_command_serves_and_prints_ready(shop: ServedSite) -> None:
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


def run_site(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `centgate site` with arguments to its end."""
    return run_centgate(["site", *arguments], env=os.environ)


@pytest.mark.extended
@pytest.mark.parametrize("command", [[], ["build", "--out", "out"]], ids=["serve", "build"])
def test_unreachable_api_ends_with_a_sentence(command: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"

    done = run_site(*command, "--api", nobody)

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
def test_invalid_url_is_refused(api: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        parse_api_address(api)

    output = capsys.readouterr().err
    assert ended.value.exit_code == 2
    assert output.startswith("centgate: ")
    assert "is not an API address" in output
    assert len(output.splitlines()) == 1


@pytest.mark.parametrize(
    "api", ["http://127.0.0.1:8402", "https://api.example.com", "https://example.com/api"]
)
def test_url_may_end_with_slash(api: str) -> None:
    assert parse_api_address(api) == parse_api_address(f"{api}/") == api


@pytest.mark.extended
@pytest.mark.parametrize(
    "content", ["nothing", "[]", '{"openapi": "3.1.0"}', '{"servers": []}', '{"servers": [7]}']
)
def test_other_server_is_detected(tmp_path: Path, content: str) -> None:
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


def test_query_is_shown_as_text_with_results(visitor: httpx.Client) -> None:
    response = visitor.get("/search", params={"q": '"><script>alert(1)</script>'})

    assert response.status_code == 200
    assert "<script>alert" not in response.text
    assert "&#34;&gt;&lt;script" in response.text
    found = visitor.get("/search", params={"q": "honeypot"}, headers={"Accept": "text/html"}).text
    assert 'href="/services/token-risk"' in found.partition('id="found"')[2]


def test_not_found_page_offers_search(visitor: httpx.Client) -> None:
    response = visitor.get("/nothing", headers={"Accept": "text/html"})

    assert response.status_code == 404
    assert 'action="/search"' in response.text
