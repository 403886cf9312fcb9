"""Random replies, true or false: at most one payment per request, and no false statement about the money."""

from __future__ import annotations

import re
from collections.abc import Generator
from decimal import Decimal
from functools import partial
from typing import Any

import anyio
import pytest
from hostile import SLUG, HostileApi, hostile_api
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reply_plans import BODIES, CODES, HEADERS, REASONS, RECEIPTS, RETRIES, TERMS, VOCABULARY, build_reply
from shopping import NO_AUTHORITIES, SHORT_TIMEOUTS

from centgate.client.async_client import AsyncCentgate
from centgate.client.errors import BuyerError
from centgate.client.ledger import Ledger
from centgate.client.responses import Answer
from centgate.client.sync_client import Centgate
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS

pytestmark = pytest.mark.extended

TEXT_HEADERS = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in HEADERS.items()}
)


@st.composite
def draw_reply(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the plan of a reply, from which `build_reply` makes one."""
    return {
        "status": draw(st.sampled_from(VOCABULARY["status"])),
        "takes": draw(st.booleans()),
        "fault": draw(st.sampled_from(VOCABULARY["fault"])),
        "body": draw(st.sampled_from(BODIES)),
        "junk": draw(st.binary(max_size=20)),
        "code": draw(st.sampled_from(CODES)),
        "reason": draw(st.sampled_from(REASONS)),
        "note": draw(st.integers(0, 2)),
        "retry": draw(st.sampled_from(RETRIES)),
        "receipt": draw(st.sampled_from(RECEIPTS)),
        "terms": draw(st.sampled_from(TERMS)),
        "headers": draw(TEXT_HEADERS),
    }


@pytest.fixture(scope="module")
def api() -> Generator[HostileApi]:
    """One API for all examples."""
    with hostile_api() as hostile:
        yield hostile


def run_call(kind: str, url: str, ledger: Ledger) -> Answer | BuyerError:
    """Return the answer or error of one call."""
    wallet = Wallet.from_key(BUYER_ACCOUNTS[0].private_key)

    async def call_async() -> Answer:
        async with AsyncCentgate(
            url, wallet, ledger=ledger, patience=SHORT_TIMEOUTS, tls=NO_AUTHORITIES
        ) as client:
            return await client.call(SLUG, {})

    try:
        if kind == "async":
            return anyio.run(call_async)
        with Centgate(url, wallet, ledger=ledger, patience=SHORT_TIMEOUTS, tls=NO_AUTHORITIES) as client:
            return client.call(SLUG, {})
    except BuyerError as error:
        return error


@pytest.mark.parametrize("kind", ["sync", "async"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(unpaid=st.lists(draw_reply(), max_size=1), paid=st.lists(draw_reply(), max_size=6))
def test_random_replies_cause_one_payment_and_true_statements(
    kind: str, api: HostileApi, unpaid: list[dict[str, Any]], paid: list[dict[str, Any]]
) -> None:
    api.requests.clear()
    api.accepted_nonces.clear()
    api.unpaid = [partial(build_reply, api, plan) for plan in unpaid]
    api.paid = [partial(build_reply, api, plan) for plan in paid]
    ledger = Ledger()

    first = run_call(kind, api.url, ledger)

    assert len(set(api.payments)) <= 1
    assert len({asked.body for asked in api.requests if asked.method == "POST"}) <= 1
    if first.money in ("not_moved", "reported_not_moved"):
        assert not api.accepted_nonces
    if first.money == "moved":
        assert api.accepted_nonces
    if isinstance(first, BuyerError):
        assert str(first)

    api.unpaid, api.paid = [], []
    still_open = [record.event for record in ledger.records()][-1:] in (["signed"], ["unresolved"])
    second = run_call(kind, api.url, ledger)

    assert isinstance(second, Answer)
    if still_open:
        assert len(api.accepted_nonces) == len(set(api.payments)) == 1


UNCHARGED = re.compile("no money moved|nothing (moved|was charged)|not charged", re.IGNORECASE)


@pytest.mark.parametrize("kind", ["sync", "async"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(paid=st.lists(draw_reply(), min_size=1, max_size=6))
def test_false_statement_is_attributed_to_api(kind: str, api: HostileApi, paid: list[dict[str, Any]]) -> None:
    api.requests.clear()
    api.accepted_nonces.clear()
    api.unpaid, api.paid = [], [partial(build_reply, api, plan, lies=True) for plan in paid]
    ledger = Ledger()

    first = run_call(kind, api.url, ledger)

    assert len(set(api.payments)) == 1
    assert first.money != "not_moved"
    assert {record.money for record in ledger.records()} & {"not_moved"} == set()
    if isinstance(first, BuyerError) and (claim := UNCHARGED.search(str(first))):
        assert "the api" in str(first)[: claim.start()].lower()
    with ledger.entry() as entry:
        assert entry.total_signed_usd(None) == Decimal("0.01")
