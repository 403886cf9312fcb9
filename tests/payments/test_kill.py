"""Server crashes: a payment is charged once and delivered once, at whatever step a server dies."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import Buyer, pay, sign_payment
from centgate_process import CentgateProcess
from facilitators import StubFacilitator
from starlette.responses import Response

from centgate.devchain.environment import DEFAULT_PAYEE

STEPS = ("claimed", "settled", "produced", "delivered")
PATIENCE = 20.0


@contextmanager
def run_server(
    journal: Path, facilitator: StubFacilitator, **more: str
) -> Generator[tuple[Any, httpx.Client]]:
    """Run a server process on a journal, and yield a client of it."""
    environment = {
        **os.environ,
        "CENTGATE_PAY_TO": DEFAULT_PAYEE,
        "CENTGATE_NETWORK": "eip155:84532",
        "CENTGATE_FACILITATOR_URL": facilitator.url,
        "CENTGATE_DATABASE_URL": f"sqlite:///{journal}",
        **more,
    }
    with (
        CentgateProcess(["serve", "--port", "0"], env=environment) as process,
        ExitStack() as at_end,
    ):
        at_end.callback(process.kill)
        assert process.stdout
        url = process.stdout.readline().removeprefix("ready ").strip()
        yield process, at_end.enter_context(httpx.Client(base_url=url, timeout=30))


def pay_until_answered(client: httpx.Client, payment: str) -> httpx.Response:
    """Send the same payment until there is an answer, and return it."""
    deadline = time.monotonic() + PATIENCE
    while (response := pay(client, payment)).status_code != 200:
        assert response.status_code in (500, 502, 504), response.text
        assert response.json()["error"]["details"]["payment"]["retry"] == "same_payment"
        assert time.monotonic() < deadline, response.text
        time.sleep(0.2)
    return response


@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=() if step == "settled" else pytest.mark.extended) for step in STEPS]
)
def test_payment_survives_crash_at_each_step(
    step: str, tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with run_server(tmp_path / "journal.db", facilitator, CENTGATE_FAULT=step) as (process, client):
        payment = sign_payment(client, buyer)
        with pytest.raises(httpx.TransportError):
            pay(client, payment)
        assert process.wait(PATIENCE) == -signal.SIGKILL

    with run_server(tmp_path / "journal.db", facilitator) as (_, client):
        first = pay_until_answered(client, payment)
        again = pay(client, payment)

    assert first.json()["data"]["status"] == "blocked"
    assert again.content == first.content
    assert list(facilitator.moved.values()) == [1]


@pytest.mark.extended
@pytest.mark.parametrize("moved", [False, True], ids=["before-the-money-moved", "after-the-money-moved"])
def test_payment_survives_crash_during_settlement(
    moved: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    facilitator: StubFacilitator,
    buyer: Buyer,
) -> None:
    with run_server(tmp_path / "journal.db", facilitator) as (process, client):
        payment = sign_payment(client, buyer)
        facilitator.next = [kill_on_settle(process.kill, facilitator if moved else None)]
        with pytest.raises(httpx.TransportError):
            pay(client, payment)

    with run_server(tmp_path / "journal.db", facilitator) as (_, client):
        first = pay_until_answered(client, payment)

    assert first.json()["data"]["status"] == "blocked"
    assert list(facilitator.moved.values()) == [1]


@pytest.mark.extended
def test_running_requests_finish_on_shutdown(
    tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with run_server(tmp_path / "journal.db", facilitator) as (process, client):
        payment = sign_payment(client, buyer)
        facilitator.next = [terminate_on_settle(process.terminate, facilitator)]

        response = pay(client, payment)

        assert response.status_code == 200
        process.wait(PATIENCE)


@pytest.mark.extended
def test_request_cut_off_by_shutdown_can_be_resent(
    tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with run_server(tmp_path / "journal.db", facilitator) as (process, client):
        payment = sign_payment(client, buyer)
        facilitator.next = [terminate_on_settle(process.terminate, facilitator, seconds=60)]
        refused = pay(client, payment)
        process.wait(PATIENCE)

    with run_server(tmp_path / "journal.db", facilitator) as (_, client):
        assert refused.json()["error"]["details"]["payment"]["retry"] == "same_payment"
        assert pay_until_answered(client, payment).json()["data"]["status"] == "blocked"
    assert list(facilitator.moved.values()) == [1]


@pytest.mark.extended
def test_request_cut_off_during_service_says_settled(
    tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    path, body = "/services/crawler/search", {"query": "uniswap docs"}
    with socket.create_server(("127.0.0.1", 0)) as upstream:  # it accepts connections and says nothing
        settings = {
            "CENTGATE_BRAVE_KEY": "key",
            "CENTGATE_BRAVE_URL": f"http://127.0.0.1:{upstream.getsockname()[1]}",
            "CENTGATE_BRAVE_TIMEOUT": "25",
        }
        with run_server(tmp_path / "journal.db", facilitator, **settings) as (process, client):
            payment = sign_payment(client, buyer, path, body)
            with ThreadPoolExecutor() as pool:
                paid = pool.submit(pay, client, payment, path, body)
                with upstream.accept()[0]:
                    process.terminate()
                    answer = paid.result()
            process.wait(PATIENCE)

    note = answer.json()["error"]["details"]["payment"]
    assert answer.status_code == 500
    assert (note["state"], note["charged"], note["retry"]) == ("settled", True, "same_payment")
    assert note["transaction"]
    assert answer.headers["Retry-After"]
    assert list(facilitator.moved.values()) == [1]


def kill_on_settle(kill: Callable[[], None], facilitator: StubFacilitator | None) -> Any:
    """Return a reply that kills the calling server, and settles first if there is a facilitator."""

    async def reply(body: dict[str, Any]) -> Response:
        if facilitator:
            facilitator.move(body)
        kill()
        return Response(status_code=500)

    return reply


def terminate_on_settle(
    terminate: Callable[[], None], facilitator: StubFacilitator, *, seconds: float = 0.5
) -> Any:
    """Return a reply that terminates the calling server, and settles later."""

    async def reply(body: dict[str, Any]) -> Response:
        terminate()
        return await facilitator.reply_slowly(seconds)(body)

    return reply
