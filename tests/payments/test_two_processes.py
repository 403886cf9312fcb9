"""Several processes on one journal: whichever of them a payment reaches, it is worked on by one."""

from __future__ import annotations

import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest
from buyer import PHISHING, QUESTION, Buyer, note, pay, payment_for
from facilitators import StubFacilitator, said
from houses import Process, running

from centgate.settings import Settings

OTHER = {"url": "https://example.com/"}


@pytest.fixture
def processes(settings: Settings) -> Generator[tuple[Process, Process]]:
    """Two of them."""
    with running(settings) as one, running(settings) as other:
        yield one, other


@pytest.fixture
def client() -> Generator[httpx.Client]:
    """A client of both."""
    with httpx.Client(timeout=30) as client:
        yield client


def test_two_processes_sent_one_payment_settle_it_once(
    processes: tuple[Process, Process], client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payment = payment_for(client, buyer, processes[0].url + PHISHING)
    addresses = [process.url + PHISHING for process in processes] * 10

    with ThreadPoolExecutor(20) as pool:
        responses = list(pool.map(partial(pay, client, payment), addresses))

    assert {response.status_code for response in responses} == {200}
    assert len({response.content for response in responses}) == 1
    assert facilitator.asked == 1


def test_one_waits_for_the_answer_the_other_works_on(
    processes: tuple[Process, Process], client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    one, other = (process.url + PHISHING for process in processes)
    payment = payment_for(client, buyer, one)
    arrived, release = threading.Event(), threading.Event()
    facilitator.next.append(facilitator.held(arrived, release))

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(pay, client, payment, one)
        arrived.wait(10)
        second = pool.submit(pay, client, payment, other)
        different = pay(client, payment, other, OTHER)
        release.set()

    assert (different.status_code, note(different)["state"]) == (402, "in_flight")
    assert second.result().content == first.result().content
    assert facilitator.asked == 1


def test_what_one_leaves_open_the_other_takes_up_at_once(
    processes: tuple[Process, Process], client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    one, other = (process.url + PHISHING for process in processes)
    payment = payment_for(client, buyer, one)
    facilitator.next.append(said(500, ""))
    pay(client, payment, one)

    response = client.post(other, json=QUESTION, headers={"PAYMENT-SIGNATURE": payment}, timeout=2)

    assert response.status_code == 200
    assert list(facilitator.moved.values()) == [1]


def test_what_one_delivered_the_other_delivers_again(
    processes: tuple[Process, Process], client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    one, other = (process.url + PHISHING for process in processes)
    payment = payment_for(client, buyer, one)
    first = pay(client, payment, one)

    again = pay(client, payment, other)

    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
    assert facilitator.asked == 1
