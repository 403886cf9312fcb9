"""MCP protocol apart from tool calls: methods, versions, origins, malformed messages, the log."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from buyer import QUESTION, ApiFactory, Buyer, decode_header, sign_payload
from facilitators import build_settings, open_stub_facilitator
from mcp_clients import PAYMENT, build_request, post_message

from centgate.api.app import create_app
from centgate.log import configure_logging
from centgate.server import run_in_thread
from centgate.settings import Settings

SLUG = "phishing-check"
CALL = {"name": SLUG, "arguments": QUESTION}
PAGE = "https://page.test"


def previous_version_request(method: str, **params: Any) -> dict[str, Any]:
    """Return a request of the previous version, which needs no envelope."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def test_server_info_needs_no_handshake(reader: httpx.Client) -> None:
    response = post_message(
        reader,
        build_request("server/discover"),
        mcp_protocol_version="2026-07-28",
        mcp_method="server/discover",
    )

    result = response.json()["result"]
    assert result["resultType"] == "complete"
    assert result["supportedVersions"] == ["2026-07-28"]
    assert list(result["capabilities"]) == ["tools"]
    assert (result["ttlMs"], result["cacheScope"]) == (60_000, "public")


@pytest.mark.extended
def test_protocol_packages_are_not_loaded_at_start() -> None:
    loaded = "import sys, centgate.api.app; print('mcp' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.returncode) == ("False\n", 0)


def test_endpoint_is_loaded_again_after_failure(
    unopened_api_client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "centgate.api.mcp.http_transport", None)  # its import fails
        failed = post_message(unopened_api_client, previous_version_request("tools/list"))

    again = post_message(unopened_api_client, previous_version_request("tools/list"))

    assert (failed.status_code, again.status_code) == (500, 200)


def test_list_states_cache_time(reader: httpx.Client) -> None:
    response = post_message(
        reader, build_request("tools/list"), mcp_protocol_version="2026-07-28", mcp_method="tools/list"
    )

    result = response.json()["result"]
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 60_000, "public")


def test_unknown_version_gets_supported_ones(reader: httpx.Client) -> None:
    message = build_request("tools/list", version="2099-01-01")

    response = post_message(reader, message, mcp_protocol_version="2099-01-01", mcp_method="tools/list")

    assert response.status_code == 400
    error = response.json()["error"]
    assert "2099-01-01" in json.dumps(error)
    assert "2026-07-28" in error["data"]["supported"]


def test_handshake_in_unknown_version_gets_supported_one(reader: httpx.Client) -> None:
    who = {"name": "somebody", "version": "1"}
    message = previous_version_request(
        "initialize", protocolVersion="1999-01-01", capabilities={}, clientInfo=who
    )

    response = post_message(reader, message)

    assert response.json()["result"]["protocolVersion"] == "2025-11-25"


def test_no_session_is_opened(reader: httpx.Client) -> None:
    response = post_message(reader, previous_version_request("tools/list"), mcp_protocol_version="2025-11-25")

    assert response.status_code == 200
    assert "mcp-session-id" not in response.headers
    assert response.headers["content-type"] == "application/json"
    assert response.headers["X-Request-Id"].startswith("req_")


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT"])
def test_stream_and_session_end_are_not_supported(reader: httpx.Client, method: str) -> None:
    response = reader.request(method, "/mcp")

    assert response.status_code == 405
    assert response.headers["Allow"] == "POST"


@pytest.mark.parametrize(
    "message",
    ["", "{", "[]", "7", '{"jsonrpc":"2.0","id":1}', '{"id":1,"method":"tools/list"}', '"' + "[" * 5_000],
    ids=["nothing", "half", "list", "number", "no-method", "no-version", "deep"],
)
@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_invalid_message_is_protocol_error(reader: httpx.Client, message: str, version: str) -> None:
    response = post_message(reader, message, mcp_protocol_version=version)

    assert response.status_code == 400
    assert response.json()["error"]["code"] in (-32700, -32600, -32602)


@pytest.mark.parametrize("content_type", ["text/plain", "", "application/jsonp"])
def test_other_content_type_is_protocol_error(reader: httpx.Client, content_type: str) -> None:
    response = post_message(reader, previous_version_request("tools/list"), Content_Type=content_type)

    assert response.status_code == 415
    assert response.json()["error"] == {
        "code": -32600,
        "message": "send the message as Content-Type: application/json",
    }


@pytest.mark.parametrize("message_id", [None, True, 1.5, {}, []], ids=repr)
def test_request_with_odd_id_is_protocol_error(reader: httpx.Client, message_id: Any) -> None:
    response = post_message(reader, {**previous_version_request("tools/list"), "id": message_id})

    assert (response.status_code, response.json()["error"]["code"]) == (400, -32600)


def test_too_long_message_is_not_read(reader: httpx.Client) -> None:
    response = post_message(
        reader, previous_version_request("tools/call", name=SLUG, arguments={"url": "x" * 200_000})
    )

    assert response.status_code == 413
    assert "longer than 98304 bytes" in response.json()["error"]["message"]


@pytest.mark.extended
@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_disconnect_within_message_logs_one_line(
    settings: Settings, capfd: pytest.CaptureFixture[str], version: str
) -> None:
    configure_logging("info")
    try:
        with run_in_thread(settings) as url:
            address = httpx.URL(url)
            with socket.create_connection((address.host, address.port or 0)) as connection:
                head = (
                    f"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: */*\r\n"
                    f"MCP-Protocol-Version: {version}\r\nContent-Length: 100\r\n\r\n"
                )
                connection.sendall(head.encode() + b'{"jsonrpc"')
    finally:
        configure_logging("error")

    written = capfd.readouterr().err
    (line,) = [json.loads(line) for line in written.splitlines()]
    assert (line["path"], line["code"]) == ("/mcp", "client_disconnected")


@pytest.mark.parametrize("number", ["1e999", "NaN", "-Infinity", "1" * 400])
def test_non_json_numbers_are_refused_uncharged(reader: httpx.Client, number: str) -> None:
    message = json.dumps(previous_version_request("tools/call", **CALL)).replace(
        json.dumps(QUESTION), f'{{"url": {number}}}'
    )

    response = post_message(reader, message)

    error = response.json()["result"]["structuredContent"]["error"]
    assert error["code"] == "validation_error"


def test_notification_gets_no_response(reader: httpx.Client) -> None:
    response = post_message(reader, {"jsonrpc": "2.0", "method": "notifications/initialized"})

    assert (response.status_code, response.content) == (202, b"")


@pytest.fixture
def restricted_client(api: ApiFactory, settings: Settings) -> httpx.Client:
    """A client of an API that pages of one origin may call."""
    return api(settings.model_copy(update={"allowed_origins": (PAGE,)}))


@pytest.mark.extended
@pytest.mark.parametrize("origin", ["https://evil.test", "null", f"{PAGE}.evil.test", "http://page.test"])
def test_foreign_origin_is_refused(restricted_client: httpx.Client, origin: str) -> None:
    response = post_message(restricted_client, previous_version_request("tools/list"), origin=origin)

    assert response.status_code == 403
    assert response.json()["error"]["message"].startswith(f"origin {origin} is not allowed to call")
    assert response.json()["id"] is None


def test_allowed_and_own_origins_are_accepted(restricted_client: httpx.Client) -> None:
    own = str(restricted_client.base_url).rstrip("/")

    origins = [PAGE, own]
    statuses = [
        post_message(restricted_client, previous_version_request("tools/list"), origin=origin).status_code
        for origin in origins
    ]

    assert statuses == [200, 200]
    assert post_message(restricted_client, previous_version_request("tools/list")).status_code == 200


def test_cors_for_all_origins_allows_no_page(reader: httpx.Client) -> None:
    response = post_message(reader, previous_version_request("tools/list"), origin="https://anybody.test")

    assert response.status_code == 403
    assert response.headers["Access-Control-Allow-Origin"] == "*"  # so that the page can read the reason


def test_pages_of_website_may_call(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"site_url": "https://docs.example.org/centgate"}))

    response = post_message(client, previous_version_request("tools/list"), origin="https://docs.example.org")

    assert response.status_code == 200


def test_preflight_is_answered(reader: httpx.Client) -> None:
    asked = {
        "Origin": "https://anybody.test",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,mcp-protocol-version,mcp-method,mcp-name",
    }

    response = reader.options("/mcp", headers=asked)

    assert response.status_code == 200
    assert "mcp-protocol-version" in response.headers["Access-Control-Allow-Headers"]


def test_card_and_catalog_link_server(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"public_url": "https://api.example.org"}))

    card = client.get("/mcp/server-card")
    catalog = client.get("/.well-known/ai-catalog.json")

    assert card.headers["content-type"] == "application/mcp-server-card+json"
    assert card.json() == client.get("/.well-known/mcp/server-card.json").json()
    assert card.json() == client.get("/.well-known/mcp.json").json()
    assert card.json()["name"] == "org.example.api/centgate"
    assert card.json()["remotes"][0]["url"] == "https://api.example.org/mcp"
    (listed,) = catalog.json()["entries"]
    assert listed["url"] == "https://api.example.org/mcp/server-card"
    assert listed["identifier"] == "urn:air:api.example.org:mcp:centgate"
    assert listed["type"] == listed["mediaType"] == card.headers["content-type"]


@pytest.mark.extended
def test_call_logs_one_line_with_service_code_and_payment(
    tmp_path: Path, buyer: Buyer, capfd: pytest.CaptureFixture[str]
) -> None:
    configure_logging("info")
    try:
        with (
            open_stub_facilitator() as stub,
            run_in_thread(build_settings(tmp_path, stub.url)) as url,
            httpx.Client(base_url=url, timeout=30) as client,
        ):
            unpaid = post_message(client, previous_version_request("tools/call", **CALL)).json()["result"][
                "structuredContent"
            ]
            assert unpaid == decode_header(client.post(f"/services/{SLUG}").headers["PAYMENT-REQUIRED"])
            payment = sign_payload(client, buyer, nonce="0x" + "5e" * 32)
            post_message(client, previous_version_request("tools/call", **CALL, _meta={PAYMENT: payment}))
            broken = payment | {"payload": payment["payload"] | {"signature": "0x" + "5e" * 65}}
            post_message(client, previous_version_request("tools/call", **CALL, _meta={PAYMENT: broken}))
    finally:
        configure_logging("error")

    written = capfd.readouterr().err
    lines = [json.loads(line) for line in written.splitlines() if '"/mcp"' in line]
    entries = [
        (line["service"], line.get("code"), line.get("payment"), line.get("replayed")) for line in lines
    ]
    assert entries == [
        (SLUG, "payment_required", None, None),
        (SLUG, None, None, False),
        (SLUG, "payment_required", "unused", None),
    ]
    assert "5e" * 32 not in written


@pytest.fixture
def unopened_api_client(settings: Settings) -> Generator[httpx.Client]:
    """A client of an API that was never opened, so that every call fails unexpectedly."""
    configure_logging("critical")
    server = uvicorn.Server(uvicorn.Config(create_app(settings), port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        yield client
    server.should_exit = True
    thread.join()
    configure_logging("error")


def test_unexpected_error_hides_internals(unopened_api_client: httpx.Client) -> None:
    response = post_message(unopened_api_client, previous_version_request("tools/call", **CALL))

    result = response.json()["result"]
    assert result["isError"] is True
    assert result["structuredContent"] == {
        "error": {"code": "internal_error", "message": "unexpected server error; report the requestId"},
        "requestId": response.headers["X-Request-Id"],
    }


@pytest.fixture
def limited_client(api: ApiFactory, settings: Settings) -> httpx.Client:
    """A client with one token left, and none back while a test runs."""
    client = api(settings.model_copy(update={"free_per_minute": 1, "free_burst": 3}))
    for _ in range(2):
        client.get("/services")
    return client


def test_limited_tool_call_returns_error_result(limited_client: httpx.Client) -> None:
    messages = [
        post_message(limited_client, previous_version_request("tools/call", **CALL)).json()["result"]
        for _ in range(2)
    ]

    assert [message["structuredContent"].get("x402Version") for message in messages] == [2, None]
    refused = messages[1]
    assert refused["isError"] is True
    assert refused["structuredContent"]["error"]["code"] == "rate_limited"
    assert "details" not in refused["structuredContent"]["error"]
    assert json.loads(refused["content"][0]["text"]) == refused["structuredContent"]


def test_limited_call_leaves_unknown_payment_unused(limited_client: httpx.Client) -> None:
    payload = sign_payload(limited_client, Buyer())

    response = post_message(
        limited_client, previous_version_request("tools/call", **CALL, _meta={PAYMENT: payload})
    )

    error = response.json()["result"]["structuredContent"]["error"]
    unused = {"state": "unused", "charged": False, "retry": "same_payment"}
    assert (error["code"], error["details"]["payment"]) == ("rate_limited", unused)


def test_payment_returns_its_token_and_is_never_limited(api: ApiFactory, settings: Settings) -> None:
    client = api(settings.model_copy(update={"free_per_minute": 1, "free_burst": 2}))
    payload = sign_payload(client, Buyer())
    call = previous_version_request("tools/call", **CALL, _meta={PAYMENT: payload})

    bought = post_message(client, call).json()["result"]
    free = [client.get("/services").status_code for _ in range(3)]
    again = post_message(client, call).json()["result"]

    assert bought["isError"] is False
    assert free == [200, 200, 429]
    assert again["structuredContent"] == bought["structuredContent"]


@pytest.mark.extended
@pytest.mark.parametrize("method", ["tools/list", "ping", "tools/nothing"])
def test_limited_other_message_is_http_error(limited_client: httpx.Client, method: str) -> None:
    limited_client.get("/services")

    response = post_message(limited_client, previous_version_request(method))

    assert response.status_code == 429
    assert int(response.headers["Retry-After"]) > 0
    assert "too many requests" in response.json()["error"]["message"]
