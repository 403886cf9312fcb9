"""Payments that certainly never reached the facilitator stay unused."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import closing

import httpx
import pytest
from buyer import Buyer, encode_header, pay, payment_note, sign_payload, sign_payment
from facilitators import StubFacilitator, refuse_with, reply_with
from seeded_journals import prune_rows, read_row
from served_api import ServedApi, serve_api

from centgate.settings import Settings

OTHER = {"url": "https://example.com/"}
NOT_SENT = (401, 403, 404, 405, 411, 413, 414, 415, 429, 431)


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that accepts payments and has no node."""
    with serve_api(tmp_path_factory.mktemp("served_api")) as served_api:
        yield served_api


@pytest.mark.parametrize("status", NOT_SENT)
def test_status_that_refuses_request_leaves_payment_unused(
    served_api: ServedApi, buyer: Buyer, status: int
) -> None:
    served_api.facilitator.next.append(reply_with(status, {"errorType": "rate_limit_exceeded"}))

    response = pay(served_api.client, sign_payment(served_api.client, buyer))

    _is_unused(response)


@pytest.mark.extended
@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9", "http://facilitator.invalid", "https://127.0.0.1:{port}"],
    ids=["connection refused", "name not resolved", "failed TLS handshake"],
)
def test_unreachable_facilitator_leaves_payment_unused(
    tmp_path_factory: pytest.TempPathFactory, buyer: Buyer, url: str
) -> None:
    with closing(_serve_without_tls()) as port_of:
        address = url.format(port=port_of.getsockname()[1])
        with serve_api(tmp_path_factory.mktemp("alone"), facilitator_url=address) as served_api:
            response = pay(served_api.client, sign_payment(served_api.client, buyer))

    _is_unused(response)


def test_bare_400_leaves_payment_in_doubt(served_api: ServedApi, buyer: Buyer) -> None:
    served_api.facilitator.next.append(reply_with(400, {"errorType": "invalid_request"}))

    response = pay(served_api.client, sign_payment(served_api.client, buyer))

    assert payment_note(response)["state"] == "in_flight"


def test_unused_payment_buys_another_request(served_api: ServedApi, buyer: Buyer) -> None:
    payment = sign_payment(served_api.client, buyer)
    served_api.facilitator.next.append(reply_with(429, {}))
    pay(served_api.client, payment)

    response = pay(served_api.client, payment, body=OTHER)

    assert response.status_code == 200


def test_unused_payment_may_be_refused(served_api: ServedApi, buyer: Buyer) -> None:
    payment = sign_payment(served_api.client, buyer)
    served_api.facilitator.next += [reply_with(429, {}), refuse_with("insufficient_funds")]
    pay(served_api.client, payment)

    response = pay(served_api.client, payment)

    assert (response.status_code, payment_note(response)["state"]) == (402, "refused")


async def test_unused_payment_keeps_its_first_submission(
    client: httpx.Client, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payload = sign_payload(client, buyer)
    facilitator.usually = reply_with(429, {})
    pay(client, encode_header(payload))
    first = await read_row(settings, payload)
    pay(client, encode_header(payload))

    again = await read_row(settings, payload)

    assert (first["state"], again["state"]) == ("unused", "unused")
    assert again["created_at"] == first["created_at"]
    assert again["updated_at"] > first["updated_at"]


@pytest.mark.extended
async def test_unused_payment_is_pruned_after_its_end(
    client: httpx.Client, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    facilitator.usually = reply_with(429, {})
    pay(client, sign_payment(client, buyer))

    early = await prune_rows(settings, "unused")
    late = await prune_rows(settings, "unused", ended=True)

    assert (early, late) == (0, 1)


def _is_unused(response: httpx.Response) -> None:
    assert response.status_code in (502, 504)
    assert response.json()["error"]["provider"] == "facilitator"
    assert payment_note(response) == {"state": "unused", "charged": False, "retry": "same_payment"}
    assert int(response.headers["Retry-After"]) >= 1
    assert "PAYMENT-REQUIRED" not in response.headers


def _serve_without_tls() -> socket.socket:
    """Open a listening socket that closes every connection."""
    listening = socket.create_server(("127.0.0.1", 0))

    def close_connections() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connection.close()

    threading.Thread(target=close_connections, daemon=True).start()
    return listening
