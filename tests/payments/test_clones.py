"""Processes on cloned machines are distinguished, and live by their lease alone."""

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
from centgate.payments.claims import RequestBinding
from centgate.payments.journal import Journal
from centgate.payments.store import Store
from centgate.payments.store_factory import open_store
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
    """A process that lives elsewhere: its host's name is ours, and its number means nothing here."""
    ended = subprocess.run([sys.executable, "-c", NAME], capture_output=True, text=True, check=True)
    return Worker(ended.stdout.strip(), ended.stdout.strip())


async def test_a_living_process_on_a_clone_keeps_its_claim(
    store: Store, payment: Payment, clone: Worker
) -> None:
    elsewhere = Journal(store, keep_seconds=3600, worker=clone)
    here = Journal(store, keep_seconds=3600)
    await elsewhere.heartbeat()

    async with elsewhere.claim(payment, ORDER), here.claim_unresolved(payment.key) as taken:
        assert taken is None


async def test_a_process_that_claims_before_its_first_beat_keeps_its_claim(
    store: Store, payment: Payment, clone: Worker
) -> None:
    elsewhere = Journal(store, keep_seconds=3600, worker=clone)
    here = Journal(store, keep_seconds=3600)

    async with elsewhere.claim(payment, ORDER), here.claim_unresolved(payment.key) as taken:
        assert taken is None


async def test_a_claim_under_a_name_of_another_form_is_held_by_its_beat(
    store: Store, payment: Payment
) -> None:
    named = Worker("host:4026531836/17/0123456789abcdef", "host:4026531836/17/0123456789abcdef")
    earlier = Journal(store, keep_seconds=3600, worker=named)
    here = Journal(store, keep_seconds=3600)
    await earlier.heartbeat()

    async with earlier.claim(payment, ORDER), here.claim_unresolved(payment.key) as taken:
        assert taken is None


@pytest.mark.extended
def test_what_a_killed_server_held_is_taken_up_within_its_lease(
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
