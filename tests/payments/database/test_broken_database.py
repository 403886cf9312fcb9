"""Journal failures: the API takes no payments without its journal, and recovers with it."""

from __future__ import annotations

import resource
import sqlite3
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import PHISHING, QUESTION, ApiFactory, Buyer, pay, payment_note, sign_payment
from facilitators import StubFacilitator
from fake_upstreams import FakeUpstreams, RecordedRequest
from served_api import ApiProcess, run_api_process
from starlette.responses import Response

from centgate.payments.journal.journal import MAX_UNWRITTEN_SECONDS
from centgate.settings import Settings

UNKNOWN = {"state": "in_flight", "charged": False, "retry": "same_payment"}


def make_directory(file: Path) -> None:
    file.mkdir()


def write_junk(file: Path) -> None:
    file.write_bytes(b"something else " * 1000)


each_ruin = pytest.mark.parametrize("ruin", [make_directory, write_junk])


@pytest.fixture
def file(settings: Settings) -> Path:
    """Path of a journal that does not exist yet."""
    file = Path(settings.database_url.removeprefix("sqlite:///"))
    file.unlink()
    return file


def wait_until_settled(file: Path) -> None:
    """Wait until the journal's only payment is settled on the disk."""
    deadline = time.monotonic() + 20
    with closing(sqlite3.connect(file)) as reader:
        while reader.execute("SELECT state FROM payments").fetchone() != ("settled",):
            assert time.monotonic() < deadline
            time.sleep(0.01)


@each_ruin
def test_health_reports_unusable_database(
    api: ApiFactory, settings: Settings, file: Path, ruin: Callable[[Path], None]
) -> None:
    ruin(file)

    response = api(settings).get("/health")

    assert (response.status_code, response.json()["db"]) == (503, "unavailable")


def test_health_reports_removed_database(api: ApiFactory, settings: Settings, file: Path) -> None:
    client = api(settings)
    healthy = client.get("/health")
    file.unlink()

    response = client.get("/health")

    assert (healthy.status_code, response.status_code) == (200, 503)
    assert client.get("/readyz").status_code == 503


@each_ruin
def test_unrecorded_payment_is_not_taken(
    api: ApiFactory,
    settings: Settings,
    file: Path,
    facilitator: StubFacilitator,
    buyer: Buyer,
    ruin: Callable[[Path], None],
) -> None:
    ruin(file)
    client = api(settings)

    response = pay(client, sign_payment(client, buyer))

    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")
    assert payment_note(response) == UNKNOWN
    assert "PAYMENT-REQUIRED" not in response.headers
    assert facilitator.settle_calls == 0


@each_ruin
def test_free_routes_work_without_database(
    api: ApiFactory, settings: Settings, file: Path, ruin: Callable[[Path], None]
) -> None:
    ruin(file)
    client = api(settings)

    responses = [client.get("/services"), client.get("/livez"), client.post(PHISHING, json=QUESTION)]

    assert [response.status_code for response in responses] == [200, 200, 402]


def test_payment_is_accepted_once_database_is_back(
    api: ApiFactory, settings: Settings, file: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    file.mkdir()
    client = api(settings)
    payment = sign_payment(client, buyer)
    pay(client, payment)
    file.rmdir()

    response = pay(client, payment)

    assert response.status_code == 200
    assert client.get("/health").status_code == 200
    assert facilitator.settle_calls == 1


def fill_disk(process: ApiProcess, *, full: bool) -> None:
    """Limit the process to files of one byte, or remove the limit."""
    _, hard = resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, (1 if full else hard, hard))


@pytest.mark.extended
def test_full_disk_stops_payments_before_settlement(
    settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with run_api_process(settings) as process, httpx.Client(base_url=process.url, timeout=30) as client:
        payment = sign_payment(client, buyer)
        fill_disk(process, full=True)
        refused, health = pay(client, payment), client.get("/health")
        calls = facilitator.settle_calls
        fill_disk(process, full=False)
        served = pay(client, payment)

    assert (refused.status_code, payment_note(refused), health.status_code) == (500, UNKNOWN, 503)
    assert calls == 0
    assert served.status_code == 200


@pytest.mark.extended
def test_disk_full_during_settlement_loses_nothing(
    settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with run_api_process(settings) as process, httpx.Client(base_url=process.url, timeout=30) as client:
        payment = sign_payment(client, buyer)

        async def settle_and_fill(body: dict[str, Any]) -> Response:
            fill_disk(process, full=True)
            return await facilitator.settle(body)

        facilitator.next.append(settle_and_fill)
        failed = pay(client, payment)
        fill_disk(process, full=False)
        served, again = pay(client, payment), pay(client, payment)

    assert (failed.status_code, payment_note(failed)["retry"]) == (500, "same_payment")
    assert (served.status_code, again.content) == (200, served.content)
    assert list(facilitator.moved.values()) == [1]


@pytest.mark.extended
def test_disk_full_before_answer_is_stored_loses_nothing(
    settings: Settings,
    file: Path,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    buyer: Buyer,
) -> None:
    path, question = "/services/protocol-context", {"protocol": "lido"}
    lido = {"slug": "lido", "name": "Lido", "category": "Liquid Staking", "chains": ["Ethereum"], "tvl": 9}
    with (
        run_api_process(settings, DEFILLAMA_URL=upstreams.url_of("defillama")) as process,
        httpx.Client(base_url=process.url, timeout=30) as client,
    ):
        payment = sign_payment(client, buyer, path, question)

        def fill_disk_and_answer(_request: RecordedRequest) -> tuple[int, Any]:
            wait_until_settled(file)
            fill_disk(process, full=True)
            return 200, [lido]

        upstreams.set_response_function("defillama", "/protocols", fill_disk_and_answer)
        failed = pay(client, payment, path, question)
        fill_disk(process, full=False)
        served, again = pay(client, payment, path, question), pay(client, payment, path, question)

    assert (failed.status_code, int(failed.headers["Retry-After"])) == (500, 5)
    assert (payment_note(failed)["state"], payment_note(failed)["charged"]) == ("settled", True)
    assert (served.status_code, again.content) == (200, served.content)
    assert facilitator.settle_calls == 1


@contextmanager
def lock_file(file: Path) -> Generator[None]:
    """Hold the write lock of a journal, as another process does."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.mark.parametrize("path", ["/health", "/readyz"])
def test_health_does_not_wait_for_foreign_lock(
    api: ApiFactory, settings: Settings, file: Path, path: str
) -> None:
    client = api(settings)
    client.get(path)
    with lock_file(file), ThreadPoolExecutor(4) as pool:
        started = time.monotonic()
        responses = list(pool.map(client.get, [path] * 4))
        seconds = time.monotonic() - started
    after = client.get(path)

    assert [response.status_code for response in responses] == [200] * 4
    assert seconds < 1.5
    assert after.status_code == 200


@pytest.mark.extended
def test_health_reports_lock_that_lasts(api: ApiFactory, settings: Settings, file: Path) -> None:
    client = api(settings)
    client.get("/health")
    with lock_file(file):
        time.sleep(MAX_UNWRITTEN_SECONDS + 1)
        started = time.monotonic()
        response = client.get("/health")
        seconds = time.monotonic() - started
    deadline = time.monotonic() + 10
    while (after := client.get("/health")).status_code != 200 and time.monotonic() < deadline:
        time.sleep(0.1)

    assert (response.status_code, seconds < 1.5) == (503, True)
    assert after.status_code == 200


@pytest.mark.extended
def test_foreign_lock_is_waited_for(api: ApiFactory, settings: Settings, file: Path, buyer: Buyer) -> None:
    client = api(settings)
    client.get("/health")
    payment = sign_payment(client, buyer)
    with sqlite3.connect(file, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(httpx.ReadTimeout):
            client.post(PHISHING, json=QUESTION, headers={"PAYMENT-SIGNATURE": payment}, timeout=0.3)
        other.execute("ROLLBACK")
    other.close()

    assert pay(client, payment).status_code == 200
