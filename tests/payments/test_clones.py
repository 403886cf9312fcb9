"""Worker identity on cloned machines: processes are distinguished, and only leases keep claims."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest
from buyer import Buyer, encode_header, pay, sign_payment
from facilitators import StubFacilitator, build_settings
from served_api import run_api_process

from centgate.payments.authorization import Payment, read_payment
from centgate.payments.claim_values import RequestBinding
from centgate.payments.database.store import Store
from centgate.payments.database.store_factory import open_store
from centgate.payments.journal.journal import Journal
from centgate.payments.terms import build_terms
from centgate.payments.worker_id import LEASE_SECONDS, Worker
from centgate.services.phishing_check import phishing_check
from centgate.settings import Settings

ORDER = RequestBinding(phishing_check.slug, "binding")
NAME = "from centgate.payments.worker_id import create_worker; print(create_worker().process)"


@pytest.fixture
async def store(database_url: str) -> AsyncGenerator[Store]:
    store = open_store(database_url)
    yield store
    await store.close()


@pytest.fixture
def payment(buyer: Buyer) -> Payment:
    """A payment for the usual question."""
    terms = build_terms(phishing_check, build_settings(Path(), "http://127.0.0.1:9"))
    payload = buyer.payload(terms.header, now=int(time.time()))
    return read_payment(encode_header(payload), terms, time.time())


@pytest.fixture
def clone() -> Worker:
    """A worker of another machine: same host name, and a process number without meaning here."""
    ended = subprocess.run([sys.executable, "-c", NAME], capture_output=True, text=True, check=True)
    return Worker(ended.stdout.strip(), ended.stdout.strip())


async def test_running_process_on_clone_keeps_claim(store: Store, payment: Payment, clone: Worker) -> None:
    elsewhere = Journal(store, keep_seconds=3600, worker=clone)
    here = Journal(store, keep_seconds=3600)
    await elsewhere.heartbeat()

    async with elsewhere.claim(payment, ORDER), here.claim_open_payment(payment.key) as taken:
        assert taken is None


async def test_process_keeps_claim_before_first_heartbeat(
    store: Store, payment: Payment, clone: Worker
) -> None:
    elsewhere = Journal(store, keep_seconds=3600, worker=clone)
    here = Journal(store, keep_seconds=3600)

    async with elsewhere.claim(payment, ORDER), here.claim_open_payment(payment.key) as taken:
        assert taken is None


async def test_claim_under_unknown_name_is_kept_by_heartbeat(store: Store, payment: Payment) -> None:
    named = Worker("host:4026531836/17/0123456789abcdef", "host:4026531836/17/0123456789abcdef")
    earlier = Journal(store, keep_seconds=3600, worker=named)
    here = Journal(store, keep_seconds=3600)
    await earlier.heartbeat()

    async with earlier.claim(payment, ORDER), here.claim_open_payment(payment.key) as taken:
        assert taken is None


@pytest.mark.extended
def test_claim_of_killed_server_is_taken_over_after_lease(
    settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with run_api_process(settings, FAULT="settled") as doomed, httpx.Client(base_url=doomed.url) as client:
        payment = sign_payment(client, buyer)
        with pytest.raises(httpx.TransportError):
            pay(client, payment)
        killed = time.monotonic()

    with run_api_process(settings) as restarted, httpx.Client(base_url=restarted.url, timeout=30) as client:
        started = time.monotonic()
        response = pay(client, payment)
        answered = time.monotonic()

    assert response.status_code == 200
    assert answered < max(started, killed + LEASE_SECONDS) + 3
    assert list(facilitator.moved.values()) == [1]
