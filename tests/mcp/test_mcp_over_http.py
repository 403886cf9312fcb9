"""A tool call over HTTP goes the way of a paid request: the same checks, journal, answer and errors."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import httpx
import pytest
from buyer import (
    PHISHING,
    QUESTION,
    ApiFactory,
    Buyer,
    decode_header,
    encode_header,
    fetch_terms,
    pay,
    sign_payload,
)
from facilitators import StubFacilitator, refuse_with
from facilitators import reply_with as answers
from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError
from speaking import PAIR, POOL, RECEIPT, Speak, meta, paid, payload_of, said, text
from standins import FakeUpstreams, send_paid

from centgate.dev import MERCHANT
from centgate.devchain.house import DevChain
from centgate.settings import Settings
from centgate.upstream import CircuitBreaker

SLUG = "phishing-check"
POOL_PATH = "/services/pool-snapshot"
CENT = 10_000
PAGE = {"url": "https://example.org/"}


def posted(client: httpx.Client, body: dict[str, Any]) -> dict[str, Any]:
    """Return the paid route's response without a payment."""
    return client.post(PHISHING, json=body).json()


async def test_an_unpaid_call_is_answered_with_the_terms_of_the_route(
    speak: Speak, reader: httpx.Client
) -> None:
    async with speak(reader) as mcp:
        result = await mcp.call_tool(SLUG, QUESTION)

    assert result.is_error
    assert said(result) == decode_header(fetch_terms(reader))
    assert json.loads(text(result)) == said(result)


async def test_a_call_without_arguments_asks_for_the_terms(speak: Speak, reader: httpx.Client) -> None:
    async with speak(reader) as mcp:
        result = await mcp.call_tool(SLUG)

    assert said(result)["accepts"]


async def test_a_paid_call_moves_one_cent_and_is_answered(
    speak: Speak, chained: httpx.Client, devchain: DevChain, buyer: Buyer
) -> None:
    before = devchain.balance(buyer.address), devchain.balance(MERCHANT)

    async with speak(chained) as mcp:
        payment = payload_of(await mcp.call_tool(SLUG, QUESTION), buyer)
        result = await paid(mcp, SLUG, QUESTION, payment)
        schemas = {tool.name: tool.output_schema for tool in (await mcp.list_tools()).tools}

    after = devchain.balance(buyer.address), devchain.balance(MERCHANT)
    assert (before[0] - after[0], after[1] - before[1]) == (CENT, CENT)
    assert not result.is_error
    assert said(result)["data"]["status"] == "blocked"
    assert json.loads(text(result)) == said(result)
    Draft202012Validator(schemas[SLUG] or False).validate(said(result))  # pyright: ignore[reportUnknownMemberType]
    assert meta(result)[RECEIPT]["success"] is True
    assert meta(result)["centgate/request-id"] == said(result)["requestId"]


async def test_the_same_payment_again_is_the_same_answer_and_no_second_charge(
    speak: Speak, chained: httpx.Client, devchain: DevChain, buyer: Buyer
) -> None:
    async with speak(chained) as mcp:
        payment = payload_of(await mcp.call_tool(SLUG, QUESTION), buyer)
        first = await paid(mcp, SLUG, QUESTION, payment)
        before = devchain.balance(buyer.address)
        again = await paid(mcp, SLUG, QUESTION, payment)

    assert text(again) == text(first)
    assert meta(again)[RECEIPT] == meta(first)[RECEIPT]
    assert meta(again)["centgate/replayed"] is True
    assert devchain.balance(buyer.address) == before


async def test_what_was_paid_over_mcp_is_redeemed_over_http(
    speak: Speak, chained: httpx.Client, devchain: DevChain, buyer: Buyer
) -> None:
    async with speak(chained) as mcp:
        payment = payload_of(await mcp.call_tool(SLUG, QUESTION), buyer)
        first = await paid(mcp, SLUG, QUESTION, payment)
    before = devchain.balance(buyer.address)

    response = pay(chained, encode_header(payment))

    assert response.text == text(first)
    assert response.headers["Idempotent-Replayed"] == "true"
    assert decode_header(response.headers["PAYMENT-RESPONSE"]) == meta(first)[RECEIPT]
    assert devchain.balance(buyer.address) == before


async def test_what_was_paid_over_http_is_redeemed_over_mcp(
    speak: Speak, client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payment = sign_payload(client, buyer)
    response = pay(client, encode_header(payment))

    async with speak(client) as mcp:
        result = await paid(mcp, SLUG, QUESTION, payment)

    assert text(result) == response.text
    assert facilitator.asked == 1


async def test_a_payment_as_the_header_spells_it_is_taken(
    speak: Speak, client: httpx.Client, buyer: Buyer
) -> None:
    async with speak(client) as mcp:
        result = await paid(mcp, SLUG, QUESTION, encode_header(sign_payload(client, buyer)))

    assert said(result)["data"]["status"] == "blocked"


async def test_a_payment_is_good_for_one_tool_only(
    speak: Speak, client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    async with speak(client) as mcp:
        payment = sign_payload(client, buyer)
        await paid(mcp, SLUG, QUESTION, payment)
        result = await paid(mcp, "crawler-scrape", PAGE, payment)

    assert result.is_error
    assert said(result)["error"] == "payment_already_used"
    assert facilitator.asked == 1


@pytest.mark.parametrize("arguments", [{}, {"url": 1}, {"url": "x" * 70_000}], ids=["empty", "wrong", "long"])
async def test_arguments_are_refused_as_the_body_would_be(
    speak: Speak,
    reader: httpx.Client,
    idle_facilitator: StubFacilitator,
    buyer: Buyer,
    arguments: dict[str, Any],
) -> None:
    over_http = posted(reader, arguments)

    async with speak(reader) as mcp:
        unpaid = await mcp.call_tool(SLUG, arguments)
        charged = await paid(mcp, SLUG, arguments, sign_payload(reader, buyer))

    assert said(unpaid)["error"] == said(charged)["error"] == over_http["error"]
    assert unpaid.is_error
    assert charged.is_error
    assert idle_facilitator.asked == 0


async def test_an_option_beyond_one_cent_is_refused_by_name(speak: Speak, reader: httpx.Client) -> None:
    async with speak(reader) as mcp:
        result = await mcp.call_tool("crawler-scrape", {**PAGE, "actions": []})

    assert said(result)["error"]["code"] == "unsupported_options"
    assert said(result)["error"]["details"]["options"] == ["actions"]


async def test_an_unknown_tool_is_an_error_of_the_protocol(speak: Speak, reader: httpx.Client) -> None:
    async with speak(reader) as mcp:
        with pytest.raises(MCPError, match="no tool 'token-rsik'") as failed:
            await mcp.call_tool("token-rsik", {})

    assert failed.value.code == -32602


@pytest.mark.parametrize(
    "broken", [7, "!", [], {}, {"x402Version": 1}, "x" * 20_000], ids=["7", "!", "[]", "{}", "v1", "long"]
)
async def test_a_payment_that_is_none_is_answered_with_the_terms(
    speak: Speak, reader: httpx.Client, idle_facilitator: StubFacilitator, broken: Any
) -> None:
    async with speak(reader) as mcp:
        result = await paid(mcp, SLUG, QUESTION, broken)

    assert result.is_error
    assert said(result)["error"] in ("invalid_payload", "invalid_x402_version")
    assert said(result)["accepts"]
    assert meta(result)["centgate/error"]["details"]["payment"]["charged"] is False
    assert idle_facilitator.asked == 0


async def test_an_unknown_outcome_is_no_fresh_demand(
    speak: Speak, client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    facilitator.next.append(facilitator.move_then_reply(answers(502, "")))

    async with speak(client) as mcp:
        payment = sign_payload(client, buyer)
        result = await paid(mcp, SLUG, QUESTION, payment)
        again = await paid(mcp, SLUG, QUESTION, payment)

    assert result.is_error
    assert "accepts" not in said(result)
    error = said(result)["error"]
    assert (error["code"], error["provider"]) == ("provider_error", "facilitator")
    assert error["details"]["payment"] == {"state": "in_flight", "charged": False, "retry": "same_payment"}
    assert said(again)["data"]["status"] == "blocked"
    assert list(facilitator.moved.values()) == [1]


async def test_a_refused_payment_is_a_demand_with_the_reason(
    speak: Speak, client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    facilitator.next.append(refuse_with("insufficient_funds"))

    async with speak(client) as mcp:
        result = await paid(mcp, SLUG, QUESTION, sign_payload(client, buyer))

    assert said(result)["error"] == "insufficient_funds"
    assert meta(result)[RECEIPT]["success"] is False
    assert meta(result)["centgate/error"]["details"]["payment"]["state"] == "refused"


async def test_that_nothing_is_known_is_an_error_that_was_charged(
    speak: Speak, unlisted: httpx.Client, buyer: Buyer
) -> None:
    async with speak(unlisted) as mcp:
        result = await paid(mcp, POOL, PAIR, sign_payload(unlisted, buyer, f"/services/{POOL}"))

    assert result.is_error
    error = said(result)["error"]
    assert error["code"] == "no_data"
    assert error["details"]["payment"]["state"] == "delivered"
    assert meta(result)[RECEIPT]["success"] is True


async def test_a_payment_that_bought_nothing_yet_buys_the_answer_later(
    speak: Speak, unlisted: httpx.Client, upstreams: FakeUpstreams, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payment = sign_payload(unlisted, buyer, f"/services/{POOL}")
    upstreams.faults |= {"dexscreener": "500", "geckoterminal": "500"}

    async with speak(unlisted) as mcp:
        failed = await paid(mcp, POOL, PAIR, payment)
        upstreams.faults.clear()
        later = await paid(mcp, POOL, PAIR, payment)

    error = said(failed)["error"]
    assert failed.is_error
    assert (error["code"], error["provider"]) == ("provider_error", "dexscreener")
    assert error["details"]["payment"]["retry"] == "same_payment"
    assert said(later)["error"]["code"] == "no_data"
    assert facilitator.asked == 1


async def test_new_payment_while_all_sources_are_down_is_not_settled(
    speak: Speak,
    unlisted: httpx.Client,
    upstreams: FakeUpstreams,
    facilitator: StubFacilitator,
    buyer: Buyer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CircuitBreaker, "PAUSE", 60.0)
    upstreams.faults |= {"dexscreener": "500", "geckoterminal": "500"}
    for _ in range(3 * CircuitBreaker.FAILURE_LIMIT):
        send_paid(unlisted, POOL_PATH, PAIR)
    charged = facilitator.asked

    async with speak(unlisted) as mcp:
        payment = payload_of(await mcp.call_tool(POOL, PAIR), buyer)
        result = await paid(mcp, POOL, PAIR, payment)

    error = said(result)["error"]
    assert (error["code"], error["provider"]) == ("provider_error", "dexscreener")
    assert error["details"]["payment"] == {"state": "unused", "charged": False, "retry": "same_payment"}
    assert facilitator.asked == charged


async def test_a_deployment_that_takes_no_payments_says_so(
    speak: Speak, api: ApiFactory, settings: Settings
) -> None:
    client = api(settings.model_copy(update={"pay_to": None}))

    async with speak(client) as mcp:
        result = await mcp.call_tool(SLUG, QUESTION)

    assert result.is_error
    assert said(result)["error"]["code"] == "payment_not_configured"


async def test_a_buyer_who_hangs_up_finds_the_answer_later(
    speak: Speak, client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    arrived, release = threading.Event(), threading.Event()
    facilitator.next.append(facilitator.reply_when_released(arrived, release))
    payment = sign_payload(client, buyer)

    async with speak(client) as mcp:
        call = asyncio.create_task(paid(mcp, SLUG, QUESTION, payment))
        await asyncio.to_thread(arrived.wait, 30)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    release.set()
    response = pay(client, encode_header(payment))

    assert response.status_code == 200
    assert list(facilitator.moved.values()) == [1]
