"""Headers of all responses, conditional requests, and compression."""

from __future__ import annotations

import gzip

import httpx
import pytest
from buyer import PHISHING, ApiFactory, Buyer, pay, sign_payment

from centgate.settings import Settings


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/services", 200),
        ("GET", "/nowhere", 404),
        ("DELETE", "/services", 405),
        ("POST", PHISHING, 402),
        ("GET", "/health", 200),
    ],
)
def test_no_response_is_sniffed(reader: httpx.Client, method: str, path: str, status: int) -> None:
    response = reader.request(method, path)

    assert response.status_code == status
    assert response.headers.get_list("X-Content-Type-Options") == ["nosniff"]
    assert "Strict-Transport-Security" not in response.headers


def test_hsts_is_sent_behind_tls(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"public_url": "https://api.example.org"}))

    values = [client.get(path).headers["Strict-Transport-Security"] for path in ("/services", "/nowhere")]

    assert values == ["max-age=31536000"] * 2


DOCUMENTS = (
    "/",
    "/services",
    "/services?format=openai",
    "/openapi.json",
    "/services/crawler-map",
    "/services/token-risk",
    "/.well-known/x402",
    "/mcp/server-card",
    "/favicon.svg",
)


@pytest.mark.parametrize("path", DOCUMENTS)
@pytest.mark.parametrize("spelling", ["{tag}", "W/{tag}", '"other", {tag}', "*"])
def test_unchanged_document_is_304(reader: httpx.Client, path: str, spelling: str) -> None:
    tag = reader.get(path).headers["ETag"]

    response = reader.get(path, headers={"If-None-Match": spelling.format(tag=tag)})

    assert (response.status_code, response.content, response.headers["ETag"]) == (304, b"", tag)


def test_changed_document_is_sent(reader: httpx.Client) -> None:
    assert reader.get("/services", headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize("path", [*DOCUMENTS, "/status.json", "/favicon.ico"])
def test_head_is_get_without_content(reader: httpx.Client, path: str, coding: str) -> None:
    headers = {"Accept-Encoding": coding, "If-None-Match": '"other"'}

    got, head = reader.get(path, headers=headers), reader.head(path, headers=headers)

    assert head.content == b""
    assert (head.status_code, *select_headers(head)) == (200, *select_headers(got))


def select_headers(response: httpx.Response) -> list[tuple[str, str]]:
    """Return the headers that do not change with time."""
    return [(name, value) for name, value in response.headers.items() if name not in ("date", "x-request-id")]


def fetch_raw(reader: httpx.Client, path: str, **headers: str) -> tuple[httpx.Response, bytes]:
    """Return a response with its bytes before decompression."""
    with reader.stream("GET", path, headers=headers) as response:
        return response, b"".join(response.iter_raw())


@pytest.mark.parametrize("path", ["/services", "/openapi.json", "/services/token-risk", "/status.json"])
def test_large_documents_are_compressed(reader: httpx.Client, path: str) -> None:
    plain, whole = fetch_raw(reader, path, **{"Accept-Encoding": "identity"})
    response, sent = fetch_raw(reader, path, **{"Accept-Encoding": "br, gzip;q=0.5"})

    assert response.headers["Content-Encoding"] == "gzip"
    assert int(response.headers["Content-Length"]) == len(sent) < len(whole)
    assert gzip.decompress(sent) == whole
    assert response.headers["ETag"] != plain.headers["ETag"]
    assert all("Accept-Encoding" in each.headers["Vary"] for each in (plain, response))


@pytest.mark.parametrize("accepted", ["", "identity", "br", "gzip;q=0", "*;q=0", "gzip;q=0, *"])
def test_compression_needs_accept_encoding(reader: httpx.Client, accepted: str) -> None:
    response, _ = fetch_raw(reader, "/openapi.json", **{"Accept-Encoding": accepted})

    assert "Content-Encoding" not in response.headers


def test_each_coding_has_its_own_etag(reader: httpx.Client) -> None:
    tag = reader.get("/services", headers={"Accept-Encoding": "gzip"}).headers["ETag"]

    known = reader.get("/services", headers={"Accept-Encoding": "gzip", "If-None-Match": tag})
    other = reader.get("/services", headers={"Accept-Encoding": "identity", "If-None-Match": tag})

    assert (known.status_code, other.status_code) == (304, 200)
    assert "Accept-Encoding" in known.headers["Vary"]


def test_index_varies_by_type_and_is_small(reader: httpx.Client) -> None:
    index, page = (reader.get("/", headers={"Accept": kind}) for kind in ("*/*", "text/html"))

    assert index.headers["ETag"] != page.headers["ETag"]
    assert index.headers["Vary"].split(", ")[0] == "Accept"
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"


def test_paid_answers_are_sent_as_stored(client: httpx.Client, buyer: Buyer) -> None:
    response = pay(client, sign_payment(client, buyer))

    assert "gzip" in response.request.headers["Accept-Encoding"]
    assert response.status_code == 200
    assert "Content-Encoding" not in response.headers
    assert int(response.headers["Content-Length"]) == len(response.content)
