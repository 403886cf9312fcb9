"""Requests behind a proxy: no response shows the internal address, whatever headers a client sends."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from buyer import decode_header

from centgate.api.app import create_routes
from centgate.catalog import all_services
from centgate.server import run_in_thread
from centgate.service import AnyService
from centgate.settings import Settings

PUBLIC = "https://api.shop.example"
SAID = {
    "Host": "evil.example:666",
    "Forwarded": "for=192.0.2.1;host=evil.example;proto=gopher",
    "X-Forwarded-For": "192.0.2.66",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Port": "666",
    "X-Forwarded-Proto": "gopher",
    "X-Forwarded-Prefix": "/evil-prefix",
    "X-Original-URL": "/evil-url",
    "X-Rewrite-URL": "/evil-url",
    "X-Real-IP": "192.0.2.66",
    "Referer": "https://evil.example/",
}
"""Forwarding headers that a client, or a proxy that passes them on, can forge."""
CLAIMED = ("evil", "gopher", "192.0.2.")

each_service = pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)


@pytest.fixture(scope="module")
def proxied_client(api_settings: Settings) -> Generator[httpx.Client]:
    """A client of an API behind a proxy, sent to its internal address."""
    settings = api_settings.model_copy(update={"public_url": PUBLIC, "operator": "desk@shop.example"})
    with ExitStack() as open_parts:
        url = open_parts.enter_context(run_in_thread(settings))
        yield open_parts.enter_context(httpx.Client(base_url=url, timeout=30))


def response_text(response: httpx.Response) -> str:
    """Return everything that a client sees, with x402's headers decoded."""
    clear = [
        json.dumps(decode_header(value))
        for name, value in response.headers.items()
        if name in ("payment-required", "payment-response")
    ]
    return "\n".join([str(response.headers), response.text, *clear])


def inner(client: httpx.Client) -> tuple[str, ...]:
    """Return strings that would reveal the internal address."""
    where = urlsplit(str(client.base_url))
    return (where.netloc, f":{where.port}", "127.0.0.1", "localhost")


def check_hidden(client: httpx.Client, response: httpx.Response) -> None:
    seen = response_text(response)
    assert not [word for word in inner(client) if word in seen]
    assert not [word for word in CLAIMED if word in seen]


def list_free_paths(settings: Settings) -> list[str]:
    return [route.path for route in create_routes(settings)]


@pytest.mark.extended
@pytest.mark.parametrize("accept", ["*/*", "text/html"])
@pytest.mark.parametrize("headers", [{}, SAID], ids=["plain", "claiming"])
def test_free_routes_hide_internal_address(
    proxied_client: httpx.Client, api_settings: Settings, headers: dict[str, str], accept: str
) -> None:
    paths = list_free_paths(api_settings)

    for path in [*paths, "/nowhere"]:
        check_hidden(proxied_client, proxied_client.get(path, headers={**headers, "Accept": accept}))
    assert len(paths) > 30


@each_service
@pytest.mark.parametrize("headers", [{}, SAID], ids=["plain", "claiming"])
def test_terms_hide_internal_address(
    proxied_client: httpx.Client, service: AnyService, headers: dict[str, str]
) -> None:
    response = proxied_client.post(service.path, json=service.input_example, headers=headers)

    check_hidden(proxied_client, response)
    assert decode_header(response.headers["PAYMENT-REQUIRED"])["resource"]["url"] == PUBLIC + service.path


@pytest.mark.parametrize("headers", [{}, SAID], ids=["plain", "claiming"])
def test_refusals_hide_internal_address(proxied_client: httpx.Client, headers: dict[str, str]) -> None:
    path = all_services()[0].path

    for response in (
        proxied_client.post(path, content=b"{", headers=headers),
        proxied_client.post(path, json={"x": 1}, headers=headers),
        proxied_client.post(path, json={}, headers={**headers, "PAYMENT-SIGNATURE": "nonsense"}),
        proxied_client.delete(path, headers=headers),
        proxied_client.options(
            path, headers={**headers, "Origin": PUBLIC, "Access-Control-Request-Method": "POST"}
        ),
    ):
        check_hidden(proxied_client, response)


@pytest.mark.parametrize("headers", [{}, SAID], ids=["plain", "claiming"])
def test_mcp_hides_internal_address(proxied_client: httpx.Client, headers: dict[str, str]) -> None:
    service = all_services()[0]
    calling = {"name": service.slug, "arguments": service.input_example}

    asked: dict[str, dict[str, Any]] = {"tools/list": {}, "tools/call": calling}
    for number, (method, params) in enumerate(asked.items()):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        accepted = {"Accept": "application/json, text/event-stream"}
        response = proxied_client.post("/mcp", json=message, headers={**headers, **accepted})
        assert response.status_code == 200
        assert "result" in response.json(), response.text
        check_hidden(proxied_client, response)


@pytest.mark.extended
def test_internal_address_would_be_detected(reader: httpx.Client) -> None:
    with pytest.raises(AssertionError):
        check_hidden(reader, reader.get("/openapi.json"))
