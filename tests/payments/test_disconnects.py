"""Disconnecting buyers are charged at most once; repeating the request returns the answer."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from buyer import PHISHING, QUESTION, SHARED, Buyer, pay, sign_payment
from facilitators import StubFacilitator, build_settings
from fake_upstreams import FakeUpstreams, RecordedRequest

from centgate.server import run_in_thread

pytestmark = pytest.mark.extended

POOL = "/services/pool-snapshot"
TOKEN = {"chain": "base", "tokenAddress": "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"}
PATIENCE = 20.0


@dataclass(frozen=True)
class Shop:
    """An API with a client, and scripted facilitator and upstreams."""

    client: httpx.Client
    facilitator: StubFacilitator
    upstreams: FakeUpstreams


@pytest.fixture
def shop(
    database_url: str, tmp_path: Path, facilitator: StubFacilitator, upstreams: FakeUpstreams
) -> Generator[Shop]:
    """An API that accepts payments, on either database."""
    settings = build_settings(
        tmp_path,
        facilitator.url,
        database_url=database_url,
        providers=upstreams.provider_settings("dexscreener"),
        pinned=("pool-snapshot=dexscreener",),
    )
    with run_in_thread(settings) as url, httpx.Client(base_url=url, timeout=30, limits=SHARED) as client:
        yield Shop(client, facilitator, upstreams)


def connect(shop: Shop) -> socket.socket:
    """Open a bare connection to the API."""
    parts = urlsplit(str(shop.client.base_url))
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30)


def send_request(shop: Shop, path: str, body: Any, payment: str) -> socket.socket:
    """Send a paid request on a new connection, and return the connection."""
    connection = connect(shop)
    content = json.dumps(body).encode()
    head = [f"POST {path} HTTP/1.1", "Host: a", "Content-Type: application/json"]
    head += [f"PAYMENT-SIGNATURE: {payment}", f"Content-Length: {len(content)}", "", ""]
    connection.sendall("\r\n".join(head).encode() + content)
    return connection


def close_connection(connection: socket.socket) -> None:
    connection.close()


def reset_connection(connection: socket.socket) -> None:
    """Reset the connection (TCP RST)."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def half_close(connection: socket.socket) -> None:
    """Shut down the sending side, and close."""
    connection.shutdown(socket.SHUT_WR)
    connection.close()


each_end = pytest.mark.parametrize("end", [close_connection, reset_connection, half_close])


@each_end
def test_disconnect_during_settlement_keeps_answer(
    shop: Shop, buyer: Buyer, end: Callable[[socket.socket], None]
) -> None:
    arrived, release = threading.Event(), threading.Event()
    shop.facilitator.next.append(shop.facilitator.reply_when_released(arrived, release))
    payment = sign_payment(shop.client, buyer)

    connection = send_request(shop, PHISHING, QUESTION, payment)
    assert arrived.wait(PATIENCE)
    end(connection)
    release.set()
    first, again = pay(shop.client, payment), pay(shop.client, payment)

    assert (first.status_code, again.content) == (200, first.content)
    assert shop.facilitator.settle_calls == 1


@each_end
def test_disconnect_during_service_keeps_answer(
    shop: Shop, buyer: Buyer, end: Callable[[socket.socket], None]
) -> None:
    arrived, release = threading.Event(), threading.Event()
    shop.upstreams.set_response_function(
        "dexscreener",
        f"/token-pairs/v1/base/{TOKEN['tokenAddress']}",
        partial(_hold_answer, arrived, release),
    )
    payment = sign_payment(shop.client, buyer, POOL, TOKEN)

    connection = send_request(shop, POOL, TOKEN, payment)
    assert arrived.wait(PATIENCE)
    end(connection)
    release.set()
    first, again = [pay(shop.client, payment, POOL, TOKEN) for _ in range(2)]

    assert (first.status_code, again.content) == (404, first.content)  # no data: an answer
    assert shop.facilitator.settle_calls == 1
    paths = [call.path for call in shop.upstreams.requests_of("dexscreener")]
    assert sorted(paths) == sorted(set(paths))  # the service has run once


def test_missing_body_costs_nothing(shop: Shop, buyer: Buyer) -> None:
    payment = sign_payment(shop.client, buyer)
    with connect(shop) as connection:
        head = [f"POST {PHISHING} HTTP/1.1", "Host: a", f"PAYMENT-SIGNATURE: {payment}", "Content-Length: 99"]
        connection.sendall("\r\n".join([*head, "", '{"url":']).encode())

    response = pay(shop.client, payment)

    assert "Idempotent-Replayed" not in response.headers
    assert shop.facilitator.settle_calls == 1


def test_fifty_disconnects_are_charged_once_each(shop: Shop) -> None:
    shop.facilitator.usually = shop.facilitator.reply_erratically(seed=1, seconds=0.1)
    payments = [sign_payment(shop.client, Buyer(number % 10)) for number in range(50)]

    def hang_up(number: int) -> None:
        connection = send_request(shop, PHISHING, QUESTION, payments[number])
        time.sleep(number * 0.005)
        (close_connection, reset_connection, half_close)[number % 3](connection)

    with ThreadPoolExecutor(25) as pool:
        list(pool.map(hang_up, range(50)))
        answers = list(pool.map(partial(pay, shop.client), payments))
    again = [pay(shop.client, payment) for payment in payments]

    assert {answer.status_code for answer in answers} == {200}
    assert [answer.content for answer in again] == [answer.content for answer in answers]
    assert shop.facilitator.moved.total() == shop.facilitator.settle_calls == 50


def _hold_answer(
    arrived: threading.Event, release: threading.Event, _request: RecordedRequest
) -> tuple[int, Any]:
    arrived.set()
    release.wait(PATIENCE)
    return 200, []
