"""Website of a hostile or broken API: no script runs, no markup escapes, and no request hangs."""

# lxml is typed in part
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import copy
import json
import os
import socket
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from browser_session import ServedSite, serve_site
from centgate_process import run_centgate
from markdown_it import MarkdownIt
from playwright.sync_api import Page
from site_fixtures import xpath

from centgate.client import catalog
from centgate.client.catalog import CatalogUnavailable
from centgate.website.api_snapshot import ApiSnapshot, read_snapshot
from centgate.website.file import SiteFile
from centgate.website.files import build_files
from centgate.website.markdown_escape import (
    code_block,
    escape_cell,
    escape_line,
    escape_name,
    external_link,
    inline_code,
)
from centgate.website.security_headers import content_security_policy
from centgate.website.server import SiteState
from centgate.website.static_build import write_site

pytestmark = pytest.mark.extended

SITE = "https://www.shop.example"
WAIT = 60.0
CATALOGUE, OPENAPI, TERMS, HEALTH = "/services", "/openapi.json", "/.well-known/x402", "/health"
ATTACK = (
    "\n\n# Owned\n\n```\n\n| a | b |\n|---|---|\n| c | d |\n\n<script>owned = 1</script></script><img src=x "
    "onerror='owned=1'> [x](javascript:owned=1) ![i](https://evil.example/i.png) <https://evil.example> "
    "`` [y](https://evil.example) ` \\` [z](https://evil.example) `\n\n[a]: https://evil.example\n"
)
WORDS = ("title", "summary", "description", "pricingNote", "label", "terms", "docsUrl")
"""Members that hold text; their values are attacked wherever they are."""

FEW = ("token-risk", "phishing-check", "crawler-map")
Bodies = dict[str, Any]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = cast(_Api, self.server).bodies.get(self.path)
        status = 404 if body is None else 200
        if isinstance(body, tuple):
            status, body = cast(tuple[int, Any], body)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        del code, size


class _Api(ThreadingHTTPServer):
    bodies: Bodies
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


@contextmanager
def serve_api(bodies: Bodies) -> Generator[str]:
    """Serve an API with these bodies by path: JSON, bytes, or a status with either."""
    server = _Api(("127.0.0.1", 0), _Handler)
    server.bodies = bodies
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def honest_bodies(shop: ServedSite) -> Bodies:
    """Public documents of an honest API with a few services."""
    with httpx.Client(base_url=shop.deployment.api, timeout=WAIT) as http:
        paths = [CATALOGUE, OPENAPI, TERMS, HEALTH]
        paths += [f"{CATALOGUE}/{slug}" for slug in FEW]
        bodies = {path: http.get(path).json() for path in paths}
    bodies[CATALOGUE]["services"] = [each for each in bodies[CATALOGUE]["services"] if each["slug"] in FEW]
    return bodies


@pytest.fixture
def bodies(honest_bodies: Bodies) -> Bodies:
    """Copy of these documents, for changes."""
    return copy.deepcopy(honest_bodies)


def inject_attack(node: Any, key: str = "") -> Any:
    """Return JSON whose texts contain attacks."""
    if isinstance(node, dict):
        return {name: inject_attack(each, name) for name, each in cast(dict[str, Any], node).items()}
    if isinstance(node, list):
        return [inject_attack(each, key) for each in cast(list[Any], node)]
    if not isinstance(node, str) or key not in (*WORDS, "tags", "guardrails", "db"):
        return node
    return f"javascript:owned=1//{ATTACK}" if key == "docsUrl" else f"{ATTACK}{node}{ATTACK}"


def build_site(bodies: Bodies) -> tuple[ApiSnapshot, dict[str, SiteFile]]:
    """Build the website of an API with these documents."""
    with serve_api(bodies) as api:
        deployment = read_snapshot(api, SITE)
        return deployment, build_files(deployment)


def list_headings(markdown: str) -> list[str]:
    """Return the headings below the title, as levels and titles."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    found = [(head.tag, text.content) for head, text in pairwise(tokens) if head.type == "heading_open"]
    return [f"{tag} {text}" for tag, text in found if tag != "h1"]


@pytest.fixture(scope="module")
def hostile_files(honest_bodies: Bodies) -> dict[str, SiteFile]:
    """The website of an API whose texts all contain attacks."""
    return build_site({path: inject_attack(body) for path, body in honest_bodies.items()})[1]


def test_attacking_texts_add_nothing_to_pages(hostile_files: dict[str, SiteFile]) -> None:
    for path, file in hostile_files.items():
        if not file.media_type.startswith("text/html"):
            continue
        page = file.content.decode()
        assert xpath(page, "//img | //iframe | //object | //embed | //style | //@style") == [], path
        assert [at for at in xpath(page, "//@*") if at.attrname.startswith("on")] == [], path
        assert xpath(page, "//script[not(@src) and not(contains(@type, 'json'))]") == [], path
        assert [to for to in xpath(page, "//@href") if "javascript" in to or "evil" in to] == [], path


def test_attacking_texts_change_only_text_of_markdown(
    honest_bodies: Bodies, hostile_files: dict[str, SiteFile]
) -> None:
    honest = build_site(honest_bodies)[1]
    for path, file in hostile_files.items():
        if path.endswith(".md") and path != "/changelog.md":
            expected = list_headings(honest[path].content.decode())
            assert len(list_headings(file.content.decode())) == len(expected), path
            assert not any(
                "Owned" in each and "#" in each for each in list_headings(file.content.decode())
            ), path


@pytest.mark.parametrize(
    "path", ["/llms.txt", "/services/token-risk.md", "/index.md", "/trust.md", "/search.md"]
)
def test_attacking_texts_make_no_markdown_link(hostile_files: dict[str, SiteFile], path: str) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(hostile_files[path].content.decode())
    links = [
        str(child.attrs.get("href") or child.attrs.get("src"))
        for token in tokens
        for child in token.children or ()
        if child.type in ("link_open", "image")
    ]

    assert links
    assert [link for link in links if "evil" in link or "javascript" in link] == []


def test_attacking_texts_run_nothing_in_browser(page: Page, honest_bodies: Bodies) -> None:
    with (
        serve_api({path: inject_attack(body) for path, body in honest_bodies.items()}) as api,
        serve_site(api) as site,
    ):
        for path in ("/", "/services/token-risk", "/trust", "/reference", "/status"):
            page.goto(site.url + path)

            assert page.evaluate("typeof owned") == "undefined"
            assert page.locator("#content h1").count() == 1


def test_unknown_services_and_fields_are_shown(bodies: Bodies) -> None:
    new = bodies[f"{CATALOGUE}/token-risk"] | {
        "slug": "weather",
        "path": "/services/weather",
        "title": "Rain",
    }
    bodies[f"{CATALOGUE}/weather"] = new | {"aFieldOfTomorrow": {"deep": [1, 2]}}
    bodies[CATALOGUE]["services"].append(new)
    paths = bodies[OPENAPI]["paths"]
    paths["/services/weather"] = paths["/services/token-risk"]

    files = build_site(bodies)[1]

    assert b"Rain" in files["/services/weather"].content
    assert b"Rain" in files["/llms.txt"].content


Spoil = Callable[[Bodies], object]


def set_value(path: str, *keys: str | int, value: Any) -> Spoil:
    """Return a change that sets a value in the document at a path."""

    def spoil(bodies: Bodies) -> None:
        node = bodies[path]
        for key in keys[:-1]:
            node = node[key]
        node[keys[-1]] = value

    return spoil


def replace_document(path: str, value: Any) -> Spoil:
    """Return a change that replaces the document at a path."""
    return lambda bodies: bodies.__setitem__(path, value)


def rename_service(slug: str) -> Spoil:
    """Return a change of a service's slug, in the list and in its entry."""

    def spoil(bodies: Bodies) -> None:
        bodies[CATALOGUE]["services"][0]["slug"] = slug
        bodies[ONE]["slug"] = slug

    return spoil


def nest_objects(deep: int) -> dict[str, Any]:
    """Return objects nested to this depth."""
    node: dict[str, Any] = {}
    for _ in range(deep):
        node = {"not": node}
    return node


ONE = f"{CATALOGUE}/token-risk"
SELF: Mapping[str, Any] = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}
BROKEN: dict[str, Spoil] = {
    "a redirection": replace_document(OPENAPI, (302, {})),
    "an error": replace_document(CATALOGUE, (500, {})),
    "no JSON": replace_document(CATALOGUE, b"<html>"),
    "half of a JSON": replace_document(OPENAPI, b'{"servers": [{"url'),
    "too deep": replace_document(OPENAPI, b"[" * 100_000),
    "too large": replace_document(OPENAPI, b'"' + b" " * (catalog.MAX_RESPONSE_BYTES + 1) + b'"'),
    "no bytes of text": replace_document(CATALOGUE, b"\xff\xfe\x00"),
    "a list for an object": replace_document(OPENAPI, []),
    "null for everything": replace_document(CATALOGUE, None),
    "no services": replace_document(CATALOGUE, {"services": []}),
    "services without an end": lambda bodies: bodies[CATALOGUE].update(
        services=bodies[CATALOGUE]["services"] * 1000
    ),
    "an address with a policy": set_value(OPENAPI, "servers", 0, "url", value="https://x;script-src-elem *"),
    "an address with a header": set_value(OPENAPI, "servers", 0, "url", value="https://x\r\nX-Owned: 1"),
    "an address of scripts": set_value(OPENAPI, "servers", 0, "url", value="javascript:owned=1"),
    "an address of nobody's alphabet": set_value(
        OPENAPI, "servers", 0, "url", value="https://\u00fc\u4e2d.example"
    ),
    "no version": lambda bodies: bodies[OPENAPI].pop("info"),
    "no paths": lambda bodies: bodies[OPENAPI].pop("paths"),
    "no components": lambda bodies: bodies[OPENAPI].pop("components"),
    "a version that is a list": set_value(OPENAPI, "info", "version", value=[]),
    "a slug that climbs": rename_service("../../../../etc/cron.d/owned"),
    "a slug that overwrites": rename_service("../llms.txt"),
    "a slug that is a tag": rename_service("<script>"),
    "a slug without an end": rename_service("a" * 300),
    "another slug than the list's": set_value(ONE, "slug", value="/etc/passwd"),
    "a path to another host": set_value(ONE, "path", value="@evil.example/"),
    "a path that ends the shell's word": set_value(ONE, "path", value="/x; rm -rf ~"),
    "a price that is none": set_value(ONE, "price", value="cheap"),
    "a price without an end": set_value(ONE, "price", value="$1e999999999"),
    "no sources": set_value(ONE, "providers", value=[]),
    "no fields": set_value(ONE, "outputFields", value=[]),
    "a field that is code": set_value(ONE, "inputExample", value={"x=1); import os #": 1}),
    "a schema without fields": set_value(ONE, "inputSchema", value={}),
    "a schema of other types": set_value(ONE, "inputSchema", value={"properties": {"a": 7}}),
    "a schema that is itself": set_value(
        ONE, "inputSchema", value={**SELF, "$defs": {"a": {"$ref": "#/$defs/a"}}}
    ),
    "alternatives that multiply": set_value(
        ONE, "outputSchema", value={**SELF, "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 20}}}
    ),
    "a schema without a bottom": set_value(ONE, "outputSchema", value=nest_objects(900)),
    "a schema of a number": set_value(ONE, "inputSchema", value={"properties": 7}),
    "bounds of other types": set_value(
        ONE, "inputSchema", value={"properties": {"a": {"minimum": "x", "maximum": "y"}}}
    ),
    "a document that is itself": set_value(
        OPENAPI, "components", "schemas", "Error", value={"$ref": "#/components/schemas/Error"}
    ),
    "half a character": set_value(ONE, "inputExample", value={"chain": "\ud800"}),
    "terms of another chain": set_value(TERMS, "products", 0, "accepts", 0, "network", value="solana:5eykt4"),
    "terms for a tag": set_value(TERMS, "products", 0, "accepts", 0, "payTo", value="<b>"),
    "terms without words": lambda bodies: bodies[TERMS].pop("products"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_broken_api_ends_with_one_sentence(bodies: Bodies, how: str) -> None:
    BROKEN[how](bodies)

    with pytest.raises(CatalogUnavailable) as raised:
        build_site(bodies)

    assert len(str(raised.value)) < 500
    assert str(raised.value).isprintable()


SHOWN: dict[str, Spoil] = {
    "no health": lambda bodies: bodies.pop(HEALTH),
    "health of other types": replace_document(HEALTH, [1]),
    "a contact of scripts": set_value(OPENAPI, "info", "contact", value={"url": "javascript:owned=1"}),
    "a contact of two lines": set_value(
        OPENAPI, "info", "contact", value={"email": "a@b\nPolicy: https://evil"}
    ),
    "proofs that are code": set_value(TERMS, "ownershipProofs", value=['"); import os; ("', 7]),
    "tags of words": set_value(OPENAPI, "tags", value=[]),
    "a field that holds itself": set_value(
        ONE, "outputSchema", value={**SELF, "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}}
    ),
    "fields that multiply": set_value(
        ONE,
        "outputSchema",
        value={
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"properties": {f"m{at}": {"$ref": "#/$defs/a"} for at in range(20)}}},
        },
    ),
    "a word with a fence in it": set_value(ONE, "inputExample", value={"chain": "a\n```\n# Owned\n\n````\n"}),
    "a path of the document that is a table": lambda bodies: bodies[OPENAPI]["paths"].update(
        {"/x | y\n# Owned": bodies[OPENAPI]["paths"]["/health"]}
    ),
}


@pytest.mark.parametrize("how", SHOWN)
def test_optional_parts_are_omitted(bodies: Bodies, how: str) -> None:
    SHOWN[how](bodies)

    files = build_site(bodies)[1]

    content = b"".join(file.content for file in files.values() if file.path.endswith((".md", ".txt")))
    assert b'"); import os' not in content
    assert b"javascript:" not in content
    assert b"Policy: https://evil" not in content
    page = files["/services/token-risk.md"].content.decode()
    assert "h2 Related" in list_headings(page)
    assert not any(
        "Owned" in each
        for each in list_headings(page) + list_headings(files["/reference.md"].content.decode())
    )


def test_slow_api_is_abandoned(bodies: Bodies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "REQUEST_TIMEOUT", 0.2)
    enough = threading.Event()

    class Dripping(_Handler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            with suppress(ConnectionError):
                while not enough.wait(0.02):
                    self.wfile.write(b" ")
            self.close_connection = True

    with _Api(("127.0.0.1", 0), Dripping) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        with pytest.raises(CatalogUnavailable, match="takes longer"):
            read_snapshot(f"http://127.0.0.1:{server.server_address[1]}", SITE)
        enough.set()
        server.shutdown()


@pytest.mark.parametrize("command", ["serve", "build"])
def test_commands_report_error_and_write_nothing(bodies: Bodies, tmp_path: Path, command: str) -> None:
    rename_service("../../owned")(bodies)
    bodies[f"{CATALOGUE}/..%2F..%2Fowned"] = bodies[ONE]
    out = tmp_path / "out"

    with serve_api(bodies) as api:
        arguments = ["build", "--api", api, "--out", str(out)] if command == "build" else ["--api", api]
        port = ["--port", "0"] if command == "serve" else []
        done = run_centgate(["site", *arguments, *port], env=os.environ, timeout=WAIT)

    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "slug" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_broken_api_keeps_previous_pages(bodies: Bodies) -> None:
    with serve_api(bodies) as api:
        state = SiteState(api, read_snapshot(api, SITE), ())
        before = set(state.files)
        bodies[ONE]["inputSchema"] = {"properties": 7}
        state.refresh()

        assert set(state.files) == before
        assert b"not reachable" in state.files["/status.md"].content


def test_files_of_hostile_api_stay_in_folder(honest_bodies: Bodies, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    deployment = build_site({path: inject_attack(body) for path, body in honest_bodies.items()})[0]

    written = write_site(deployment, out)

    assert all(path.resolve().is_relative_to(out.resolve()) for path in written)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]
    assert content_security_policy(deployment).count("script-src") == 1


def test_foreign_text_stays_in_its_place() -> None:
    assert escape_name(ATTACK).count("\n") == 0
    assert not set(escape_name(ATTACK)) & set("[]<>`|*#")
    for text in (ATTACK, "- a", "> a", "# a", "```sh", "~~~", "| a |", "=== b", "[a]: https://evil.example"):
        tokens = MarkdownIt("commonmark").enable("table").parse(escape_line(text))
        assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"], text
        assert {child.type for child in tokens[1].children or ()} <= {"text", "code_inline", "text_special"}
    assert escape_cell("a|b\nc") == "a\\|b c"
    assert inline_code("a`b") == "``a`b``"
    assert code_block("```\n````", "sh").startswith("`````sh")
    assert external_link("A", "javascript:x") == "A"
    assert external_link("A]", "https://a.example/x") == "[A](https://a.example/x)"


ODD = [
    b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1",
    b"GET /../../etc/passwd HTTP/1.1",
    b"GET //evil.example/ HTTP/1.1",
    b"GET /\\evil.example HTTP/1.1",
    b"GET /services//token-risk// HTTP/1.1",
    b"GET /%00 HTTP/1.1",
    b"GET /%ff%fe HTTP/1.1",
    b"GET /%0d%0aX-Owned:%201 HTTP/1.1",
    b"GET /paying/?%0d%0aX-Owned:%201 HTTP/1.1",
    b"GET /paying/?\xe4\xb8 HTTP/1.1",
    b"GET http://evil.example/paying/ HTTP/1.1",
    b"OPTIONS * HTTP/1.1",
    b"BREW / HTTP/1.1",
    b"POST / HTTP/1.1",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1",
]
HEADERS = [
    b"Accept: ;;;q=,,*/*;q=nan,text/markdown;q=1e999",
    b"Accept: " + b"a/b," * 5_000,
    b"Accept: \xff\xfe",
    b"Range: bytes=5-1",
    b"Range: bytes=0-99999999999999999999",
    b'If-None-Match: ",,,W/"',
    b"If-Modified-Since: not a date",
    b"Accept-Encoding: gzip;q=0, br, identity;q=0",
    b"X-Large: " + b"x" * 200_000,
    b"Content-Length: -1",
]


def send_raw(site: ServedSite, head: bytes) -> bytes:
    """Return the response to raw bytes."""
    port, answer = int(site.url.rpartition(":")[2]), b""
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as connection, suppress(ConnectionError):
        connection.sendall(head + b"\r\nHost: x\r\nConnection: close\r\n\r\n")
        while chunk := connection.recv(65536):
            answer += chunk
    return answer


@pytest.mark.parametrize("head", [*ODD, *(b"GET / HTTP/1.1\r\n" + each for each in HEADERS)], ids=range(25))
def test_malformed_request_is_answered_or_refused(shop: ServedSite, head: bytes) -> None:
    answer = send_raw(shop, head)

    status = int(answer.split(b" ", 2)[1]) if answer else 400
    fields = answer.partition(b"\r\n\r\n")[0].lower()
    assert status < 500
    assert b"\nx-owned" not in fields
    assert b"location: //" not in fields
    assert b"location: http" not in fields
    assert b"root:" not in answer
    again = send_raw(shop, b"GET /paying HTTP/1.1")
    assert again.startswith(b"HTTP/1.1 200")
