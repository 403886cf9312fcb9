"""MCP tool calls over HTTP: the same checks, journal, answers and errors as paid requests."""

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
from fake_upstreams import FakeUpstreams, send_paid
from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError
from mcp_clients import (
    PAIR,
    POOL,
    RECEIPT,
    ConnectClient,
    call_with_payment,
    payload_of,
    result_meta,
    result_text,
    structured_content,
)

from centgate.circuit_breaker import CircuitBreaker
from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.settings import Settings

SLUG = "phishing-check"
POOL_PATH = "/services/pool-snapshot"
CENT = 10_000
PAGE = {"url": "https://example.org/"}


def post_unpaid(client: httpx.Client, body: dict[str, Any]) -> dict[str, Any]:
    """Return the paid route's response without a payment."""
    return client.post(PHISHING, json=body).json()


@pytest.mark.extended
async def test_unpaid_call_gets_terms_of_route(connect_client: ConnectClient, reader: httpx.Client) -> None:
    async with connect_client(reader) as mcp:
        result = await mcp.call_tool(SLUG, QUESTION)

    assert result.is_error
    assert structured_content(result) == decode_header(fetch_terms(reader))
    assert json.loads(result_text(result)) == structured_content(result)


async def test_call_without_arguments_gets_terms(connect_client: ConnectClient, reader: httpx.Client) -> None:
    async with connect_client(reader) as mcp:
        result = await mcp.call_tool(SLUG)

    assert structured_content(result)["accepts"]


async def test_paid_call_moves_one_cent_and_is_answered(
    connect_client: ConnectClient, chain_client: httpx.Client, devchain: DevChain, buyer: Buyer
) -> None:
    before = devchain.token_balance(buyer.address), devchain.token_balance(DEFAULT_PAYEE)

    async with connect_client(chain_client) as mcp:
        payment = payload_of(await mcp.call_tool(SLUG, QUESTION), buyer)
        result = await call_with_payment(mcp, SLUG, QUESTION, payment)
        schemas = {tool.name: tool.output_schema for tool in (await mcp.list_tools()).tools}

    after = devchain.token_balance(buyer.address), devchain.token_balance(DEFAULT_PAYEE)
    assert (before[0] - after[0], after[1] - before[1]) == (CENT, CENT)
    assert not result.is_error
    assert structured_content(result)["data"]["status"] == "blocked"
    assert json.loads(result_text(result)) == structured_content(result)
    Draft202012Validator(schemas[SLUG] or False).validate(structured_content(result))  # pyright: ignore[reportUnknownMemberType]
    assert result_meta(result)[RECEIPT]["success"] is True
    assert result_meta(result)["centgate/request-id"] == structured_content(result)["requestId"]


async def test_same_payment_gets_same_answer_without_second_charge(
    connect_client: ConnectClient, chain_client: httpx.Client, devchain: DevChain, buyer: Buyer
) -> None:
    async with connect_client(chain_client) as mcp:
        payment = payload_of(await mcp.call_tool(SLUG, QUESTION), buyer)
        first = await call_with_payment(mcp, SLUG, QUESTION, payment)
        before = devchain.token_balance(buyer.address)
        again = await call_with_payment(mcp, SLUG, QUESTION, payment)

    assert result_text(again) == result_text(first)
    assert result_meta(again)[RECEIPT] == result_meta(first)[RECEIPT]
    assert result_meta(again)["centgate/replayed"] is True
    assert devchain.token_balance(buyer.address) == before


@pytest.mark.extended
async def test_payment_over_mcp_is_redeemed_over_http(
    connect_client: ConnectClient, chain_client: httpx.Client, devchain: DevChain, buyer: Buyer
) -> None:
    async with connect_client(chain_client) as mcp:
        payment = payload_of(await mcp.call_tool(SLUG, QUESTION), buyer)
        first = await call_with_payment(mcp, SLUG, QUESTION, payment)
    before = devchain.token_balance(buyer.address)

    response = pay(chain_client, encode_header(payment))

    assert response.text == result_text(first)
    assert response.headers["Idempotent-Replayed"] == "true"
    assert decode_header(response.headers["PAYMENT-RESPONSE"]) == result_meta(first)[RECEIPT]
    assert devchain.token_balance(buyer.address) == before


@pytest.mark.extended
async def test_payment_over_http_is_redeemed_over_mcp(
    connect_client: ConnectClient, client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payment = sign_payload(client, buyer)
    response = pay(client, encode_header(payment))

    async with connect_client(client) as mcp:
        result = await call_with_payment(mcp, SLUG, QUESTION, payment)

    assert result_text(result) == response.text
    assert facilitator.settle_calls == 1


@pytest.mark.extended
async def test_payment_as_header_text_is_accepted(
    connect_client: ConnectClient, client: httpx.Client, buyer: Buyer
) -> None:
    async with connect_client(client) as mcp:
        result = await call_with_payment(mcp, SLUG, QUESTION, encode_header(sign_payload(client, buyer)))

    assert structured_content(result)["data"]["status"] == "blocked"


@pytest.mark.extended
async def test_payment_is_valid_for_one_tool(
    connect_client: ConnectClient, client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    async with connect_client(client) as mcp:
        payment = sign_payload(client, buyer)
        await call_with_payment(mcp, SLUG, QUESTION, payment)
        result = await call_with_payment(mcp, "crawler-scrape", PAGE, payment)

    assert result.is_error
    assert structured_content(result)["error"] == "payment_already_used"
    assert facilitator.settle_calls == 1


async def test_call_without_arguments_names_needed_ones(
    connect_client: ConnectClient, reader: httpx.Client
) -> None:
    async with connect_client(reader) as mcp:
        unpaid = await mcp.call_tool(SLUG, {})

    assert structured_content(unpaid)["accepts"]
    issues = (unpaid.meta or {})["centgate/error"]["details"]["issues"]
    assert issues == [{"path": "url", "message": "is required"}]


@pytest.mark.parametrize("arguments", [{"url": 1}, {"url": "x" * 70_000}], ids=["wrong", "long"])
async def test_arguments_are_validated_like_body(
    connect_client: ConnectClient,
    reader: httpx.Client,
    idle_facilitator: StubFacilitator,
    buyer: Buyer,
    arguments: dict[str, Any],
) -> None:
    over_http = post_unpaid(reader, arguments)

    async with connect_client(reader) as mcp:
        unpaid = await mcp.call_tool(SLUG, arguments)
        charged = await call_with_payment(mcp, SLUG, arguments, sign_payload(reader, buyer))

    assert structured_content(unpaid)["error"] == structured_content(charged)["error"] == over_http["error"]
    assert unpaid.is_error
    assert charged.is_error
    assert idle_facilitator.settle_calls == 0


async def test_option_over_one_cent_is_refused_by_name(
    connect_client: ConnectClient, reader: httpx.Client
) -> None:
    async with connect_client(reader) as mcp:
        result = await mcp.call_tool("crawler-scrape", {**PAGE, "actions": []})

    assert structured_content(result)["error"]["code"] == "unsupported_options"
    assert structured_content(result)["error"]["details"]["options"] == ["actions"]


async def test_unknown_tool_is_protocol_error(connect_client: ConnectClient, reader: httpx.Client) -> None:
    async with connect_client(reader) as mcp:
        with pytest.raises(MCPError, match="no tool 'token-rsik'") as failed:
            await mcp.call_tool("token-rsik", {})

    assert failed.value.code == -32602


@pytest.mark.extended
@pytest.mark.parametrize(
    "broken", [7, "!", [], {}, {"x402Version": 1}, "x" * 20_000], ids=["7", "!", "[]", "{}", "v1", "long"]
)
async def test_invalid_payment_gets_terms(
    connect_client: ConnectClient, reader: httpx.Client, idle_facilitator: StubFacilitator, broken: Any
) -> None:
    async with connect_client(reader) as mcp:
        result = await call_with_payment(mcp, SLUG, QUESTION, broken)

    assert result.is_error
    assert structured_content(result)["error"] in ("invalid_payload", "invalid_x402_version")
    assert structured_content(result)["accepts"]
    assert result_meta(result)["centgate/error"]["details"]["payment"]["charged"] is False
    assert idle_facilitator.settle_calls == 0


@pytest.mark.extended
async def test_unknown_outcome_is_no_new_payment_request(
    connect_client: ConnectClient, client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    facilitator.next.append(facilitator.move_then_reply(answers(502, "")))

    async with connect_client(client) as mcp:
        payment = sign_payload(client, buyer)
        result = await call_with_payment(mcp, SLUG, QUESTION, payment)
        again = await call_with_payment(mcp, SLUG, QUESTION, payment)

    assert result.is_error
    assert "accepts" not in structured_content(result)
    error = structured_content(result)["error"]
    assert (error["code"], error["provider"]) == ("provider_error", "facilitator")
    assert error["details"]["payment"] == {"state": "in_flight", "charged": False, "retry": "same_payment"}
    assert structured_content(again)["data"]["status"] == "blocked"
    assert list(facilitator.moved.values()) == [1]


@pytest.mark.extended
async def test_refused_payment_gets_terms_with_reason(
    connect_client: ConnectClient, client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    facilitator.next.append(refuse_with("insufficient_funds"))

    async with connect_client(client) as mcp:
        result = await call_with_payment(mcp, SLUG, QUESTION, sign_payload(client, buyer))

    assert structured_content(result)["error"] == "insufficient_funds"
    assert result_meta(result)[RECEIPT]["success"] is False
    assert result_meta(result)["centgate/error"]["details"]["payment"]["state"] == "refused"


@pytest.mark.extended
async def test_no_data_is_charged_error(
    connect_client: ConnectClient, no_data_client: httpx.Client, buyer: Buyer
) -> None:
    async with connect_client(no_data_client) as mcp:
        result = await call_with_payment(
            mcp, POOL, PAIR, sign_payload(no_data_client, buyer, f"/services/{POOL}")
        )

    assert result.is_error
    error = structured_content(result)["error"]
    assert error["code"] == "no_data"
    assert error["details"]["payment"]["state"] == "delivered"
    assert result_meta(result)[RECEIPT]["success"] is True


@pytest.mark.extended
async def test_undelivered_payment_buys_answer_later(
    connect_client: ConnectClient,
    no_data_client: httpx.Client,
    upstreams: FakeUpstreams,
    facilitator: StubFacilitator,
    buyer: Buyer,
) -> None:
    payment = sign_payload(no_data_client, buyer, f"/services/{POOL}")
    upstreams.faults |= {"dexscreener": "500", "geckoterminal": "500"}

    async with connect_client(no_data_client) as mcp:
        failed = await call_with_payment(mcp, POOL, PAIR, payment)
        upstreams.faults.clear()
        later = await call_with_payment(mcp, POOL, PAIR, payment)

    error = structured_content(failed)["error"]
    assert failed.is_error
    assert (error["code"], error["provider"]) == ("provider_error", "dexscreener")
    assert error["details"]["payment"]["retry"] == "same_payment"
    assert structured_content(later)["error"]["code"] == "no_data"
    assert facilitator.settle_calls == 1


@pytest.mark.extended
async def test_payment_is_not_settled_while_all_sources_are_down(
    connect_client: ConnectClient,
    no_data_client: httpx.Client,
    upstreams: FakeUpstreams,
    facilitator: StubFacilitator,
    buyer: Buyer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CircuitBreaker, "PAUSE_SECONDS", 60.0)
    upstreams.faults |= {"dexscreener": "500", "geckoterminal": "500"}
    for _ in range(3 * CircuitBreaker.FAILURE_LIMIT):
        send_paid(no_data_client, POOL_PATH, PAIR)
    charged = facilitator.settle_calls

    async with connect_client(no_data_client) as mcp:
        payment = payload_of(await mcp.call_tool(POOL, PAIR), buyer)
        result = await call_with_payment(mcp, POOL, PAIR, payment)

    error = structured_content(result)["error"]
    assert (error["code"], error["provider"]) == ("provider_error", "dexscreener")
    assert error["details"]["payment"] == {"state": "unused", "charged": False, "retry": "same_payment"}
    assert facilitator.settle_calls == charged


@pytest.mark.extended
async def test_deployment_without_payments_says_so(
    connect_client: ConnectClient, api: ApiFactory, settings: Settings
) -> None:
    client = api(settings.model_copy(update={"pay_to": None}))

    async with connect_client(client) as mcp:
        result = await mcp.call_tool(SLUG, QUESTION)

    assert result.is_error
    assert structured_content(result)["error"]["code"] == "payment_not_configured"


@pytest.mark.extended
async def test_disconnected_buyer_gets_answer_later(
    connect_client: ConnectClient, client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    arrived, release = threading.Event(), threading.Event()
    facilitator.next.append(facilitator.reply_when_released(arrived, release))
    payment = sign_payload(client, buyer)

    async with connect_client(client) as mcp:
        call = asyncio.create_task(call_with_payment(mcp, SLUG, QUESTION, payment))
        await asyncio.to_thread(arrived.wait, 30)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    release.set()
    response = pay(client, encode_header(payment))

    assert response.status_code == 200
    assert list(facilitator.moved.values()) == [1]
