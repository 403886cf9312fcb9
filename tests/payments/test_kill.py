"""A payment is charged once and delivered once, at whatever step a server dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import Buyer, pay, sign_payment
from facilitators import StubFacilitator
from starlette.responses import Response

from centgate.devchain.environment import DEFAULT_PAYEE

STEPS = ("claimed", "settled", "produced", "delivered")
PATIENCE = 20.0


@contextmanager
def served(journal: Path, facilitator: StubFacilitator, **more: str) -> Generator[tuple[Any, httpx.Client]]:
    """A real server process on a journal, and a client of it."""
    environment = {
        **os.environ,
        "CENTGATE_PAY_TO": DEFAULT_PAYEE,
        "CENTGATE_NETWORK": "eip155:84532",
        "CENTGATE_FACILITATOR_URL": facilitator.url,
        "CENTGATE_DATABASE_URL": f"sqlite:///{journal}",
        **more,
    }
    command = [sys.executable, "-m", "centgate", "serve", "--port", "0"]
    with (
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process,
        ExitStack() as at_end,
    ):
        at_end.callback(process.kill)
        assert process.stdout
        url = process.stdout.readline().removeprefix("ready ").strip()
        yield process, at_end.enter_context(httpx.Client(base_url=url, timeout=30))


def paid_in_the_end(client: httpx.Client, payment: str) -> httpx.Response:
    """What a patient buyer gets, who sends the same payment until there is an answer."""
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
def test_a_payment_survives_the_death_of_its_server_at_each_step(
    step: str, tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with served(tmp_path / "journal.db", facilitator, CENTGATE_FAULT=step) as (process, client):
        payment = sign_payment(client, buyer)
        with pytest.raises(httpx.TransportError):
            pay(client, payment)
        assert process.wait(PATIENCE) == -signal.SIGKILL

    with served(tmp_path / "journal.db", facilitator) as (_, client):
        first = paid_in_the_end(client, payment)
        again = pay(client, payment)

    assert first.json()["data"]["status"] == "blocked"
    assert again.content == first.content
    assert list(facilitator.moved.values()) == [1]


@pytest.mark.extended
@pytest.mark.parametrize("moved", [False, True], ids=["before-the-money-moved", "after-the-money-moved"])
def test_a_payment_survives_the_death_of_its_server_while_it_settles(
    moved: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    facilitator: StubFacilitator,
    buyer: Buyer,
) -> None:
    with served(tmp_path / "journal.db", facilitator) as (process, client):
        payment = sign_payment(client, buyer)
        facilitator.next = [killing(process.kill, facilitator if moved else None)]
        with pytest.raises(httpx.TransportError):
            pay(client, payment)

    with served(tmp_path / "journal.db", facilitator) as (_, client):
        first = paid_in_the_end(client, payment)

    assert first.json()["data"]["status"] == "blocked"
    assert list(facilitator.moved.values()) == [1]


@pytest.mark.extended
def test_what_is_in_flight_is_finished_when_the_server_is_asked_to_end(
    tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with served(tmp_path / "journal.db", facilitator) as (process, client):
        payment = sign_payment(client, buyer)
        facilitator.next = [ending(process.terminate, facilitator)]

        response = pay(client, payment)

        assert response.status_code == 200
        process.wait(PATIENCE)


@pytest.mark.extended
def test_what_takes_too_long_when_the_server_is_asked_to_end_can_be_sent_again(
    tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with served(tmp_path / "journal.db", facilitator) as (process, client):
        payment = sign_payment(client, buyer)
        facilitator.next = [ending(process.terminate, facilitator, seconds=60)]
        refused = pay(client, payment)
        process.wait(PATIENCE)

    with served(tmp_path / "journal.db", facilitator) as (_, client):
        assert refused.json()["error"]["details"]["payment"]["retry"] == "same_payment"
        assert paid_in_the_end(client, payment).json()["data"]["status"] == "blocked"
    assert list(facilitator.moved.values()) == [1]


def killing(kill: Callable[[], None], facilitator: StubFacilitator | None) -> Any:
    """Ends the server that asks, and moves the money first if there is a facilitator to do it."""

    async def reply(body: dict[str, Any]) -> Response:
        if facilitator:
            facilitator.move(body)
        kill()
        return Response(status_code=500)

    return reply


def ending(terminate: Callable[[], None], facilitator: StubFacilitator, *, seconds: float = 0.5) -> Any:
    """Asks the server that asks to end, and settles later."""

    async def reply(body: dict[str, Any]) -> Response:
        terminate()
        return await facilitator.reply_slowly(seconds)(body)

    return reply
