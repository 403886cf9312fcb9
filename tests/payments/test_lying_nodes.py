"""Answers of RPC nodes are accepted if they are consistent, and final only from safe blocks."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Generator
from copy import deepcopy
from typing import Any

import httpx
import pytest
from buyer import Buyer, encode_header
from chain_actions import cancel_authorization
from facilitators import StubFacilitator, reply_with
from fake_upstreams import FakeUpstreams
from seeded_journals import read_row, record_open_payment
from tampering_proxy import Interceptor, forward_to_node, start_proxy

from centgate.devchain.devnet import DevChain
from centgate.devchain.rpc_client import call_rpc
from centgate.payments.authorization import build_settle_request, read_payment
from centgate.payments.reconciler import ReconcileResult, reconcile_all
from centgate.payments.terms import build_terms
from centgate.services.phishing_check import phishing_check
from centgate.settings import ProviderSettings, Settings

Payload = dict[str, Any]
Edit = Callable[[Any], Any]
JSON = {"Content-Type": "application/json"}
ELSEWHERE = "0x" + "33".rjust(64, "0")


@pytest.fixture
def stubbed(chain_settings: Settings, facilitator: StubFacilitator) -> Settings:
    """A deployment on the development chain whose facilitator says nothing certain."""
    facilitator.usually = reply_with(502, "")
    return chain_settings.model_copy(update={"facilitator_url": facilitator.url})


@pytest.fixture
def asking(
    stubbed: Settings, devchain: DevChain, upstreams: FakeUpstreams
) -> Callable[[Interceptor], Settings]:
    """The deployment with something between it and its node."""

    def through(change: Interceptor) -> Settings:
        return with_nodes(stubbed, start_proxy(upstreams, "node", devchain.rpc_url, change) + "/")

    return through


def with_nodes(settings: Settings, *urls: str) -> Settings:
    return settings.model_copy(update={"providers": {"rpc_84532": ProviderSettings(url=",".join(urls))}})


def answering(method: str, result: Any) -> Interceptor:
    """One method is answered with this."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == method:
            return 200, {"jsonrpc": "2.0", "id": request["id"], "result": result}
        return None

    return change


def edited(devchain: DevChain, method: str, edit: Edit) -> Interceptor:
    """One method's true result is changed on its way."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == method:
            answer = forward_to_node(devchain.rpc_url, request)
            return 200, {**answer, "result": edit(deepcopy(answer["result"]))}
        return None

    return change


def settle(devchain: DevChain, settings: Settings, payload: Payload) -> None:
    """Have a payment settled on the chain."""
    payment = read_payment(encode_header(payload), build_terms(phishing_check, settings), 0)
    body = build_settle_request(payment)
    answer = httpx.post(devchain.facilitator_url + "/settle", content=body, timeout=30, headers=JSON)
    assert answer.json()["success"]


async def paid(devchain: DevChain, settings: Settings, buyer: Buyer) -> Payload:
    """A payment that has been left open, and has reached us."""
    payload = await record_open_payment(settings, buyer, ago=20)
    settle(devchain, settings, payload)
    return payload


async def resolution_of(settings: Settings) -> ReconcileResult:
    (resolution,) = await reconcile_all(settings)
    return resolution


def without_its_transfer(receipt: Any) -> Any:
    return {**receipt, "logs": receipt["logs"][:1]}


def of_another_token(receipt: Any) -> Any:
    receipt["logs"][1]["address"] = "0x" + "11" * 20
    return receipt


def of_another_amount(receipt: Any) -> Any:
    receipt["logs"][1]["data"] = "0x" + f"{9_999:064x}"
    return receipt


def to_another(receipt: Any) -> Any:
    receipt["logs"][1]["topics"][2] = ELSEWHERE
    return receipt


def from_another(receipt: Any) -> Any:
    receipt["logs"][1]["topics"][1] = ELSEWHERE
    return receipt


def beside_another_payment_to_us(receipt: Any) -> Any:
    """One transaction uses this nonce for another recipient and another nonce for the seller."""
    used, moved = receipt["logs"]
    other = {**used, "topics": [*used["topics"][:2], "0x" + "77" * 32]}
    away = {**moved, "topics": [*moved["topics"][:2], ELSEWHERE]}
    return {**receipt, "logs": [used, away, other, moved]}


def cancelled_beside_another_payment_to_us(receipt: Any) -> Any:
    used, moved = receipt["logs"]
    ended = {**used, "topics": [CANCELED, *used["topics"][1:]]}
    return {**receipt, "logs": [ended, moved]}


CANCELED = "0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81"
LOST: dict[str, Edit] = {
    "no transfer": without_its_transfer,
    "another token": of_another_token,
    "another amount": of_another_amount,
    "another recipient": to_another,
    "another payer": from_another,
    "another nonce paid us in the same transaction": beside_another_payment_to_us,
    "cancelled where another nonce paid us": cancelled_beside_another_payment_to_us,
}


@pytest.mark.parametrize("edit", LOST.values(), ids=LOST.keys())
async def test_a_used_nonce_counts_only_with_its_own_transfer_to_us(
    asking: Callable[[Interceptor], Settings], devchain: DevChain, stubbed: Settings, buyer: Buyer, edit: Edit
) -> None:
    await paid(devchain, stubbed, buyer)

    resolution = await resolution_of(asking(edited(devchain, "eth_getTransactionReceipt", edit)))

    assert (resolution.state_after, resolution.reason) == ("refused", "invalid_transaction_state")


async def test_other_events_beside_it_do_no_harm(
    asking: Callable[[Interceptor], Settings], devchain: DevChain, stubbed: Settings, buyer: Buyer
) -> None:
    def crowded(receipt: Any) -> Any:
        used, moved = receipt["logs"]
        fee = {**moved, "address": "0x" + "11" * 20}
        nameless: dict[str, Any] = {**used, "topics": []}
        return {**receipt, "logs": [fee, nameless, used, fee, moved, fee]}

    await paid(devchain, stubbed, buyer)

    resolution = await resolution_of(asking(edited(devchain, "eth_getTransactionReceipt", crowded)))

    assert resolution.state_after == "settled"


def removed(logs: Any) -> Any:
    return [{**log, "removed": True} for log in logs]


def of_others(logs: Any) -> Any:
    return [{**log, "topics": [*log["topics"][:2], "0x" + "77" * 32]} for log in logs]


def of_a_token_of_the_same_words(logs: Any) -> Any:
    return [{**log, "address": "0x" + "11" * 20} for log in logs]


def failed(receipt: Any) -> Any:
    return {**receipt, "status": "0x0"}


def of_nothing(_result: Any) -> Any:
    return None


def of_other_nonces(receipt: Any) -> Any:
    return {**receipt, "logs": of_others(receipt["logs"])}


OPEN: dict[str, tuple[str, Edit]] = {
    "no event": ("eth_getLogs", lambda _logs: []),
    "an event that was undone": ("eth_getLogs", removed),
    "an event of another nonce": ("eth_getLogs", of_others),
    "an event of another token": ("eth_getLogs", of_a_token_of_the_same_words),
    "null for events": ("eth_getLogs", of_nothing),
    "no transaction": ("eth_getTransactionReceipt", of_nothing),
    "a transaction that failed": ("eth_getTransactionReceipt", failed),
    "a transaction without the event": ("eth_getTransactionReceipt", of_other_nonces),
    "null for the newest block": ("eth_getBlockByNumber", of_nothing),
    "another chain": ("eth_chainId", lambda _id: "0x1"),
    "no token there": ("eth_call", lambda _state: "0x"),
}


@pytest.mark.extended
@pytest.mark.parametrize(("method", "edit"), OPEN.values(), ids=OPEN.keys())
async def test_a_node_that_contradicts_itself_leaves_the_outcome_open(
    asking: Callable[[Interceptor], Settings],
    devchain: DevChain,
    stubbed: Settings,
    facilitator: StubFacilitator,
    buyer: Buyer,
    method: str,
    edit: Edit,
) -> None:
    payload = await paid(devchain, stubbed, buyer)

    resolution = await resolution_of(asking(edited(devchain, method, edit)))

    assert resolution.state_after == "settling"
    assert facilitator.asked == 1  # with the same bytes: its success would settle the payment
    assert (await read_row(stubbed, payload))["state"] == "settling"


def lagging(devchain: DevChain, block: Any) -> Interceptor:
    """A node whose safe block is an older one."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_getBlockByNumber" and request["params"][0] == "safe":
            return 200, {"jsonrpc": "2.0", "id": request["id"], "result": block}
        return None

    return change


def newest(devchain: DevChain) -> Any:
    return call_rpc(devchain.rpc_url, "eth_getBlockByNumber", "latest", *[False])


async def test_a_cancellation_that_may_be_undone_is_not_final(
    asking: Callable[[Interceptor], Settings], devchain: DevChain, stubbed: Settings, buyer: Buyer
) -> None:
    payload = await record_open_payment(stubbed, buyer, ago=20)
    before = newest(devchain)
    cancel_authorization(devchain, buyer, payload["payload"]["authorization"]["nonce"])

    early = await resolution_of(asking(lagging(devchain, before)))
    late = await resolution_of(asking(lagging(devchain, newest(devchain))))

    assert (early.state_after, late.state_after) == ("settling", "refused")


async def test_an_end_that_may_be_undone_is_not_final(
    asking: Callable[[Interceptor], Settings], devchain: DevChain, stubbed: Settings, buyer: Buyer
) -> None:
    payload = await record_open_payment(stubbed, buyer, ago=3600)
    cancel_authorization(devchain, Buyer(8), "0x" + secrets.token_hex(32))
    end = int(payload["payload"]["authorization"]["validBefore"])
    older = {**newest(devchain), "timestamp": hex(end - 1)}

    early = await resolution_of(asking(lagging(devchain, older)))
    late = await resolution_of(asking(lagging(devchain, {**older, "timestamp": hex(end)})))

    assert (early.state_after, late.state_after) == ("settling", "refused")


@pytest.mark.extended
async def test_where_no_block_is_called_safe_an_older_one_is_taken(
    asking: Callable[[Interceptor], Settings], devchain: DevChain, stubbed: Settings, buyer: Buyer
) -> None:
    payload = await record_open_payment(stubbed, buyer, ago=20)
    cancel_authorization(devchain, buyer, payload["payload"]["authorization"]["nonce"])

    early = await resolution_of(asking(lagging(devchain, None)))
    for _ in range(32):
        cancel_authorization(devchain, Buyer(8), "0x" + secrets.token_hex(32))
    late = await resolution_of(asking(lagging(devchain, None)))

    assert (early.state_after, late.state_after) == ("settling", "refused")


async def test_a_node_that_has_fallen_behind_refuses_nobody(
    asking: Callable[[Interceptor], Settings],
    devchain: DevChain,
    stubbed: Settings,
    facilitator: StubFacilitator,
    buyer: Buyer,
) -> None:
    await record_open_payment(stubbed, buyer, ago=1300, seconds=700)
    cancel_authorization(devchain, Buyer(8), "0x" + secrets.token_hex(32))
    behind = {**newest(devchain), "timestamp": "0x5f5e100"}

    resolution = await resolution_of(asking(answering("eth_getBlockByNumber", behind)))

    assert resolution.state_after == "settling"
    assert facilitator.asked == 1


@pytest.mark.parametrize("first", ["unreachable", "of another chain", "contradicting itself"])
async def test_the_next_node_is_asked_when_one_fails(
    devchain: DevChain, stubbed: Settings, upstreams: FakeUpstreams, buyer: Buyer, first: str
) -> None:
    await paid(devchain, stubbed, buyer)
    wrong = answering("eth_chainId", "0x1") if first == "of another chain" else answering("eth_getLogs", [])
    url = start_proxy(upstreams, "node", devchain.rpc_url, wrong) + "/"
    nodes = with_nodes(stubbed, "http://127.0.0.1:9" if first == "unreachable" else url, devchain.rpc_url)

    resolution = await resolution_of(nodes)

    assert resolution.state_after == "settled"


DEEP = b"[" * 1000 + b"]" * 1000
NESTED: dict[str, bytes] = {
    "error": b'{"id": 0, "error": %b}' % DEEP,
    "error beside a result": b'{"id": 0, "result": "0x14a34", "error": {"message": %b}}' % DEEP,
    "result": b'{"id": 0, "result": %b}' % DEEP,
}


@pytest.fixture
def default_recursion_limit() -> Generator[None]:
    """The limit that servers run with: packages that only tests import raise it."""
    raised = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(raised)


@pytest.mark.extended
@pytest.mark.usefixtures("default_recursion_limit")
@pytest.mark.parametrize("method", ["eth_chainId", "eth_getBlockByNumber"])
@pytest.mark.parametrize("body", NESTED.values(), ids=NESTED.keys())
async def test_deeply_nested_response_is_no_answer(
    devchain: DevChain, stubbed: Settings, upstreams: FakeUpstreams, buyer: Buyer, body: bytes, method: str
) -> None:
    payload = await paid(devchain, stubbed, buyer)

    def nested(request: dict[str, Any]) -> tuple[int, Any] | None:
        return (200, body) if request["method"] == method else None

    url = start_proxy(upstreams, "node", devchain.rpc_url, nested) + "/"

    resolution = await resolution_of(with_nodes(stubbed, url, devchain.rpc_url))

    assert resolution.state_after == "settled"
    assert (await read_row(stubbed, payload))["state"] == "settled"


async def test_an_old_payment_is_found_where_logs_are_given_by_the_span(
    asking: Callable[[Interceptor], Settings], devchain: DevChain, stubbed: Settings, buyer: Buyer
) -> None:
    """The chain is said to be 50,000 blocks longer than it is, a second each."""
    await paid(devchain, stubbed, buyer)
    last = newest(devchain)
    length, time = int(last["number"], 16), int(last["timestamp"], 16)
    spans: list[int] = []

    def longer(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_getBlockByNumber":
            wanted = request["params"][0]
            number = length + 50_000 if wanted in ("latest", "safe") else int(wanted, 16)
            block = {**last, "number": hex(number), "timestamp": hex(time + number - length)}
            return 200, {"jsonrpc": "2.0", "id": request["id"], "result": block}
        if request["method"] == "eth_getLogs":
            query = request["params"][0]
            spans.append(int(query["toBlock"], 16) - int(query["fromBlock"], 16) + 1)
        return None

    resolution = await resolution_of(asking(longer))

    assert resolution.state_after == "settled"
    assert len(spans) <= 3
    assert max(spans) <= 2000
