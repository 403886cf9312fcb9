"""Several processes on one journal: one of them works on a payment, whichever it reaches."""

from __future__ import annotations

import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import pytest
from buyer import PHISHING, QUESTION, SHARED, Buyer, pay, payment_note, sign_payment
from databases import Postgres
from facilitators import StubFacilitator, build_settings, open_stub_facilitator, reply_with
from served_api import ApiProcess, run_api_processes

OTHER = {"url": "https://example.com/"}


@dataclass(frozen=True)
class ProcessPair:
    """Two processes on one database, and their facilitator."""

    processes: tuple[ApiProcess, ApiProcess]
    facilitator: StubFacilitator
    client: httpx.Client

    @property
    def addresses(self) -> tuple[str, str]:
        """URLs of both servers."""
        one, other = self.processes
        return one.url + PHISHING, other.url + PHISHING


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[ProcessPair]:
    """Two processes that start at once on an empty database."""
    folder: Path = tmp_path_factory.mktemp("pair")
    url = f"sqlite:///{folder / 'journal.db'}"
    if request.param == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.new_database()
    with (
        open_stub_facilitator() as facilitator,
        run_api_processes(build_settings(folder, facilitator.url), DATABASE_URL=url) as processes,
        httpx.Client(timeout=30, limits=SHARED) as client,
    ):
        yield ProcessPair(processes, facilitator, client)


@pytest.fixture
def pair(shared_pair: ProcessPair) -> ProcessPair:
    """The same, with the counters of the facilitator at zero."""
    shared_pair.facilitator.settle_calls = 0
    shared_pair.facilitator.moved.clear()
    return shared_pair


@pytest.mark.extended
def test_both_start_on_empty_database(pair: ProcessPair) -> None:
    ready = [pair.client.get(process.url + "/readyz").status_code for process in pair.processes]

    assert ready == [200, 200]


def test_hundred_requests_with_one_payment_are_settled_once(pair: ProcessPair, buyer: Buyer) -> None:
    payment = sign_payment(pair.client, buyer, pair.addresses[0])

    with ThreadPoolExecutor(50) as pool:
        responses = list(pool.map(partial(pay, pair.client, payment), pair.addresses * 50))

    assert {response.status_code for response in responses} == {200}
    assert len({response.content for response in responses}) == 1
    assert pair.facilitator.settle_calls == 1


def test_second_process_waits_for_answer_of_first(pair: ProcessPair, buyer: Buyer) -> None:
    one, other = pair.addresses
    payment = sign_payment(pair.client, buyer, one)
    arrived, release = threading.Event(), threading.Event()
    pair.facilitator.next.append(pair.facilitator.reply_when_released(arrived, release))

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(pay, pair.client, payment, one)
        arrived.wait(10)
        second = pool.submit(pay, pair.client, payment, other)
        different = pay(pair.client, payment, other, OTHER)
        release.set()

    assert (different.status_code, payment_note(different)["state"]) == (402, "in_flight")
    assert second.result().content == first.result().content
    assert pair.facilitator.settle_calls == 1


def test_second_process_takes_over_open_payment(pair: ProcessPair, buyer: Buyer) -> None:
    one, other = pair.addresses
    payment = sign_payment(pair.client, buyer, one)
    pair.facilitator.next.append(reply_with(500, ""))
    pay(pair.client, payment, one)

    response = pair.client.post(other, json=QUESTION, headers={"PAYMENT-SIGNATURE": payment}, timeout=2)

    assert response.status_code == 200
    assert list(pair.facilitator.moved.values()) == [1]


def test_second_process_replays_answer_of_first(pair: ProcessPair, buyer: Buyer) -> None:
    one, other = pair.addresses
    payment = sign_payment(pair.client, buyer, one)
    first = pay(pair.client, payment, one)

    again = pay(pair.client, payment, other)

    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
    assert pair.facilitator.settle_calls == 1
