"""Whatever an API answers, true or not: one payment a request, and no false word on the money."""

from __future__ import annotations

import base64
import re
from collections.abc import Generator
from decimal import Decimal
from functools import partial
from typing import Any, get_args

import anyio
import pytest
from buyer import encode_header
from hostile import (
    SLUG,
    Fault,
    HostileApi,
    PlannedResponse,
    ReceivedRequest,
    answer_body,
    build_offer,
    hostile_api,
    payment_response,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shopping import NO_AUTHORITIES, SHORT_TIMEOUTS

from centgate.client.async_client import AsyncCentgate
from centgate.client.errors import BuyerError
from centgate.client.ledger import Ledger
from centgate.client.responses import Answer
from centgate.client.sync_client import Centgate
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS

pytestmark = pytest.mark.extended

STATUSES = (200, 201, 204, 206, 301, 304, 307, 400, 401, 402, 403, 404, 405, 408, 409, 418, 425, 429)
FAILURES = (500, 502, 503, 504, 511, 599)
CODES = (
    "validation_error",
    "unsupported_options",
    "payment_required",
    "payment_not_configured",
    "not_found",
    "no_data",
    "payment_conflict",
    "provider_rate_limited",
    "internal_error",
    "provider_error",
    "provider_unconfigured",
    "provider_timeout",
    "rate_limited",
    "something_else",
)
REASONS = (
    None,
    "insufficient_funds",
    "invalid_exact_evm_payload_authorization_valid_before",
    "invalid_payment_requirements",
    7,
)
TAKEN: tuple[tuple[str, bool], ...] = (("in_flight", False), ("settled", True), ("delivered", True))
UNTAKEN: tuple[tuple[str, bool], ...] = (("unused", False), ("refused", False), ("in_flight", False))
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "Retry-After": st.sampled_from(["0", "-1", "soon", "99999999999", "Wed, 21 Oct 2015 07:28:00 GMT"]),
        "Content-Encoding": st.sampled_from(["gzip", "identity"]),
        "Location": st.sampled_from(["/", "http://127.0.0.1:9/", "javascript:1"]),
        "Set-Cookie": st.just("a=b"),
    },
)


@st.composite
def replies(draw: st.DrawFn) -> dict[str, Any]:
    """A reply in plain words, of which `said` makes one."""
    return {
        "status": draw(st.sampled_from(STATUSES + FAILURES)),
        "takes": draw(st.booleans()),
        "fault": draw(st.sampled_from(["none", "none", "none", *get_args(Fault)])),
        "body": draw(
            st.sampled_from(["answer", "error", "noted", "noted", "junk", "list", "empty", "shape"])
        ),
        "junk": draw(st.binary(max_size=20)),
        "code": draw(st.sampled_from(CODES)),
        "reason": draw(st.sampled_from(REASONS)),
        "note": draw(st.integers(0, 2)),
        "retry": draw(st.sampled_from(["same_payment", "new_payment", "none", "perhaps"])),
        "receipt": draw(st.sampled_from(["true", "none", "junk", "failed"])),
        "terms": draw(st.sampled_from(["none", "good", "junk", "bad"])),
        "headers": draw(HEADERS),
    }


def said(
    api: HostileApi, plan: dict[str, Any], asked: ReceivedRequest, *, lies: bool = False
) -> PlannedResponse:
    """The reply that was drawn, to this request; what it says of the money is true unless it `lies`."""
    taken = bool(asked.payment) and (plan["takes"] or asked.nonce in api.accepted_nonces)
    headers = dict(plan["headers"])
    if plan["terms"] != "none":
        bad = {"amount": "99999999"} if plan["terms"] == "bad" else {}
        terms = encode_header(build_offer(api.url, **bad))
        headers["PAYMENT-REQUIRED"] = (
            base64.b64encode(plan["junk"]).decode() if plan["terms"] == "junk" else terms
        )
    if asked.payment and plan["receipt"] != "none":
        true = payment_response(asked, success=taken and plan["receipt"] == "true")
        headers["PAYMENT-RESPONSE"] = "=" if plan["receipt"] == "junk" else true
    body = content(plan, taken=taken != lies, message="nothing was charged" if lies else "so")
    return PlannedResponse(plan["status"], body, headers, plan["fault"], accepts_payment=plan["takes"])


def content(plan: dict[str, Any], *, taken: bool, message: str) -> Any:
    """A body; its `details.payment` says what was `taken`."""
    which: int = plan["note"]
    state, charged = (TAKEN if taken else UNTAKEN)[which]
    note: dict[str, Any] = {"state": state, "charged": charged, "retry": plan["retry"]}
    details: dict[str, Any] = {"payment": note} if plan["body"] == "noted" else {}
    if plan["reason"]:
        details["reason"] = plan["reason"]
    told: dict[str, Any] = {"code": plan["code"], "message": message, "details": details}
    error: dict[str, Any] = {"error": told, "requestId": "req_1"}
    bodies: dict[str, Any] = {
        "answer": answer_body(),
        "junk": plan["junk"],
        "list": [],
        "empty": b"",
        "shape": {"data": {}},
    }
    return bodies.get(plan["body"], error)


@pytest.fixture(scope="module")
def api() -> Generator[HostileApi]:
    """One API for all examples."""
    with hostile_api() as hostile:
        yield hostile


def bought(kind: str, url: str, ledger: Ledger) -> Answer | BuyerError:
    """What one call comes to."""
    wallet = Wallet.from_key(BUYER_ACCOUNTS[0].private_key)

    async def asynchronously() -> Answer:
        async with AsyncCentgate(
            url, wallet, ledger=ledger, patience=SHORT_TIMEOUTS, tls=NO_AUTHORITIES
        ) as client:
            return await client.call(SLUG, {})

    try:
        if kind == "async":
            return anyio.run(asynchronously)
        with Centgate(url, wallet, ledger=ledger, patience=SHORT_TIMEOUTS, tls=NO_AUTHORITIES) as client:
            return client.call(SLUG, {})
    except BuyerError as error:
        return error


@pytest.mark.parametrize("kind", ["sync", "async"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(unpaid=st.lists(replies(), max_size=1), paid=st.lists(replies(), max_size=6))
def test_one_payment_a_request_and_no_false_word_on_the_money(
    kind: str, api: HostileApi, unpaid: list[dict[str, Any]], paid: list[dict[str, Any]]
) -> None:
    api.requests.clear()
    api.accepted_nonces.clear()
    api.unpaid = [partial(said, api, plan) for plan in unpaid]
    api.paid = [partial(said, api, plan) for plan in paid]
    ledger = Ledger()

    first = bought(kind, api.url, ledger)

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
    second = bought(kind, api.url, ledger)

    assert isinstance(second, Answer)
    if still_open:
        assert len(api.accepted_nonces) == len(set(api.payments)) == 1


UNCHARGED = re.compile("no money moved|nothing (moved|was charged)|not charged", re.IGNORECASE)


@pytest.mark.parametrize("kind", ["sync", "async"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(paid=st.lists(replies(), min_size=1, max_size=6))
def test_a_lie_about_the_money_is_told_as_the_word_of_the_api(
    kind: str, api: HostileApi, paid: list[dict[str, Any]]
) -> None:
    api.requests.clear()
    api.accepted_nonces.clear()
    api.unpaid, api.paid = [], [partial(said, api, plan, lies=True) for plan in paid]
    ledger = Ledger()

    first = bought(kind, api.url, ledger)

    assert len(set(api.payments)) == 1
    assert first.money != "not_moved"
    assert {record.money for record in ledger.records()} & {"not_moved"} == set()
    if isinstance(first, BuyerError) and (claim := UNCHARGED.search(str(first))):
        assert "the api" in str(first)[: claim.start()].lower()
    with ledger.entry() as entry:
        assert entry.total_signed_usd(None) == Decimal("0.01")
