"""Inconsistent and lagging RPC nodes: only consistent answers count, and only safe blocks are final."""

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
from centgate.payments.authorization import read_payment
from centgate.payments.reconciler import ReconcileResult, reconcile_all
from centgate.payments.settle_request import build_settle_request
from centgate.payments.terms import build_terms
from centgate.services.phishing_check import phishing_check
from centgate.settings import ProviderSettings, Settings

Payload = dict[str, Any]
Edit = Callable[[Any], Any]
JSON = {"Content-Type": "application/json"}
ELSEWHERE = "0x" + "33".rjust(64, "0")


@pytest.fixture
def stubbed(chain_settings: Settings, facilitator: StubFacilitator) -> Settings:
    """A deployment on the development chain whose facilitator gives no certain answer."""
    facilitator.usually = reply_with(502, "")
    return chain_settings.model_copy(update={"facilitator_url": facilitator.url})


@pytest.fixture
def intercept_node(
    stubbed: Settings, devchain: DevChain, upstreams: FakeUpstreams
) -> Callable[[Interceptor], Settings]:
    """Return a function that puts an interceptor between the deployment and its node."""

    def build_intercepted(change: Interceptor) -> Settings:
        return set_nodes(stubbed, start_proxy(upstreams, "node", devchain.rpc_url, change) + "/")

    return build_intercepted


def set_nodes(settings: Settings, *urls: str) -> Settings:
    return settings.model_copy(update={"providers": {"rpc_84532": ProviderSettings(url=",".join(urls))}})


def answer_method(method: str, result: Any) -> Interceptor:
    """Return an interceptor that answers one method with a fixed result."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == method:
            return 200, {"jsonrpc": "2.0", "id": request["id"], "result": result}
        return None

    return change


def edit_result(devchain: DevChain, method: str, edit: Edit) -> Interceptor:
    """Return an interceptor that edits the true result of one method."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == method:
            answer = forward_to_node(devchain.rpc_url, request)
            return 200, {**answer, "result": edit(deepcopy(answer["result"]))}
        return None

    return change


def settle_payment(devchain: DevChain, settings: Settings, payload: Payload) -> None:
    """Settle a payment on the chain."""
    payment = read_payment(encode_header(payload), build_terms(phishing_check, settings), 0)
    body = build_settle_request(payment.key, payment.terms, payment.resubmission)
    answer = httpx.post(devchain.facilitator_url + "/settle", content=body, timeout=30, headers=JSON)
    assert answer.json()["success"]


async def record_paid(devchain: DevChain, settings: Settings, buyer: Buyer) -> Payload:
    """Record an open payment that was settled on the chain."""
    payload = await record_open_payment(settings, buyer, ago=20)
    settle_payment(devchain, settings, payload)
    return payload


async def reconcile_one(settings: Settings) -> ReconcileResult:
    (resolution,) = await reconcile_all(settings)
    return resolution


def drop_transfer(receipt: Any) -> Any:
    return {**receipt, "logs": receipt["logs"][:1]}


def change_token(receipt: Any) -> Any:
    receipt["logs"][1]["address"] = "0x" + "11" * 20
    return receipt


def change_amount(receipt: Any) -> Any:
    receipt["logs"][1]["data"] = "0x" + f"{9_999:064x}"
    return receipt


def change_recipient(receipt: Any) -> Any:
    receipt["logs"][1]["topics"][2] = ELSEWHERE
    return receipt


def change_sender(receipt: Any) -> Any:
    receipt["logs"][1]["topics"][1] = ELSEWHERE
    return receipt


def add_other_payment(receipt: Any) -> Any:
    """Return a receipt in which this nonce pays another recipient, and another nonce the seller."""
    used, moved = receipt["logs"]
    other = {**used, "topics": [*used["topics"][:2], "0x" + "77" * 32]}
    away = {**moved, "topics": [*moved["topics"][:2], ELSEWHERE]}
    return {**receipt, "logs": [used, away, other, moved]}


def add_cancellation(receipt: Any) -> Any:
    used, moved = receipt["logs"]
    ended = {**used, "topics": [CANCELED, *used["topics"][1:]]}
    return {**receipt, "logs": [ended, moved]}


CANCELED = "0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81"
LOST: dict[str, Edit] = {
    "no transfer": drop_transfer,
    "another token": change_token,
    "another amount": change_amount,
    "another recipient": change_recipient,
    "another payer": change_sender,
    "another nonce paid us in the same transaction": add_other_payment,
    "cancelled where another nonce paid us": add_cancellation,
}
ESSENTIAL = {"no transfer", "another recipient", "another nonce paid us in the same transaction"}
"""Cases of `make test`."""


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(edit, id=name, marks=[] if name in ESSENTIAL else [pytest.mark.extended])
        for name, edit in LOST.items()
    ],
)
async def test_used_nonce_needs_its_own_transfer(
    intercept_node: Callable[[Interceptor], Settings],
    devchain: DevChain,
    stubbed: Settings,
    buyer: Buyer,
    edit: Edit,
) -> None:
    await record_paid(devchain, stubbed, buyer)

    resolution = await reconcile_one(intercept_node(edit_result(devchain, "eth_getTransactionReceipt", edit)))

    assert (resolution.state_after, resolution.reason) == ("refused", "invalid_transaction_state")


async def test_unrelated_events_are_ignored(
    intercept_node: Callable[[Interceptor], Settings], devchain: DevChain, stubbed: Settings, buyer: Buyer
) -> None:
    def add_events(receipt: Any) -> Any:
        used, moved = receipt["logs"]
        fee = {**moved, "address": "0x" + "11" * 20}
        nameless: dict[str, Any] = {**used, "topics": []}
        return {**receipt, "logs": [fee, nameless, used, fee, moved, fee]}

    await record_paid(devchain, stubbed, buyer)

    resolution = await reconcile_one(
        intercept_node(edit_result(devchain, "eth_getTransactionReceipt", add_events))
    )

    assert resolution.state_after == "settled"


def mark_removed(logs: Any) -> Any:
    return [{**log, "removed": True} for log in logs]


def change_nonces(logs: Any) -> Any:
    return [{**log, "topics": [*log["topics"][:2], "0x" + "77" * 32]} for log in logs]


def add_similar_event(logs: Any) -> Any:
    return [{**log, "address": "0x" + "11" * 20} for log in logs]


def mark_failed(receipt: Any) -> Any:
    return {**receipt, "status": "0x0"}


def drop_result(_result: Any) -> Any:
    return None


def change_receipt_nonces(receipt: Any) -> Any:
    return {**receipt, "logs": change_nonces(receipt["logs"])}


OPEN: dict[str, tuple[str, Edit]] = {
    "no event": ("eth_getLogs", lambda _logs: []),
    "an event that was undone": ("eth_getLogs", mark_removed),
    "an event of another nonce": ("eth_getLogs", change_nonces),
    "an event of another token": ("eth_getLogs", add_similar_event),
    "null for events": ("eth_getLogs", drop_result),
    "no transaction": ("eth_getTransactionReceipt", drop_result),
    "a transaction that failed": ("eth_getTransactionReceipt", mark_failed),
    "a transaction without the event": ("eth_getTransactionReceipt", change_receipt_nonces),
    "null for the newest block": ("eth_getBlockByNumber", drop_result),
    "another chain": ("eth_chainId", lambda _id: "0x1"),
    "no token there": ("eth_call", lambda _state: "0x"),
}


@pytest.mark.extended
@pytest.mark.parametrize(("method", "edit"), OPEN.values(), ids=OPEN.keys())
async def test_contradictory_node_leaves_outcome_open(
    intercept_node: Callable[[Interceptor], Settings],
    devchain: DevChain,
    stubbed: Settings,
    facilitator: StubFacilitator,
    buyer: Buyer,
    method: str,
    edit: Edit,
) -> None:
    payload = await record_paid(devchain, stubbed, buyer)

    resolution = await reconcile_one(intercept_node(edit_result(devchain, method, edit)))

    assert resolution.state_after == "settling"
    assert facilitator.settle_calls == 1  # with the same bytes: its success would settle the payment
    assert (await read_row(stubbed, payload))["state"] == "settling"


def lag_safe_block(devchain: DevChain, block: Any) -> Interceptor:
    """Return an interceptor whose safe block is an older one."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_getBlockByNumber" and request["params"][0] == "safe":
            return 200, {"jsonrpc": "2.0", "id": request["id"], "result": block}
        return None

    return change


def read_newest_block(devchain: DevChain) -> Any:
    return call_rpc(devchain.rpc_url, "eth_getBlockByNumber", "latest", *[False])


@pytest.mark.extended
async def test_unsafe_cancellation_is_not_final(
    intercept_node: Callable[[Interceptor], Settings], devchain: DevChain, stubbed: Settings, buyer: Buyer
) -> None:
    payload = await record_open_payment(stubbed, buyer, ago=20)
    before = read_newest_block(devchain)
    cancel_authorization(devchain, buyer, payload["payload"]["authorization"]["nonce"])

    early = await reconcile_one(intercept_node(lag_safe_block(devchain, before)))
    late = await reconcile_one(intercept_node(lag_safe_block(devchain, read_newest_block(devchain))))

    assert (early.state_after, late.state_after) == ("settling", "refused")


async def test_unsafe_expiry_is_not_final(
    intercept_node: Callable[[Interceptor], Settings], devchain: DevChain, stubbed: Settings, buyer: Buyer
) -> None:
    payload = await record_open_payment(stubbed, buyer, ago=3600)
    cancel_authorization(devchain, Buyer(8), "0x" + secrets.token_hex(32))
    end = int(payload["payload"]["authorization"]["validBefore"])
    older = {**read_newest_block(devchain), "timestamp": hex(end - 1)}

    early = await reconcile_one(intercept_node(lag_safe_block(devchain, older)))
    late = await reconcile_one(intercept_node(lag_safe_block(devchain, {**older, "timestamp": hex(end)})))

    assert (early.state_after, late.state_after) == ("settling", "refused")


@pytest.mark.extended
async def test_older_block_replaces_missing_safe_block(
    intercept_node: Callable[[Interceptor], Settings], devchain: DevChain, stubbed: Settings, buyer: Buyer
) -> None:
    payload = await record_open_payment(stubbed, buyer, ago=20)
    cancel_authorization(devchain, buyer, payload["payload"]["authorization"]["nonce"])

    early = await reconcile_one(intercept_node(lag_safe_block(devchain, None)))
    for _ in range(32):
        cancel_authorization(devchain, Buyer(8), "0x" + secrets.token_hex(32))
    late = await reconcile_one(intercept_node(lag_safe_block(devchain, None)))

    assert (early.state_after, late.state_after) == ("settling", "refused")


async def test_lagging_node_refuses_no_payment(
    intercept_node: Callable[[Interceptor], Settings],
    devchain: DevChain,
    stubbed: Settings,
    facilitator: StubFacilitator,
    buyer: Buyer,
) -> None:
    await record_open_payment(stubbed, buyer, ago=1300, seconds=700)
    cancel_authorization(devchain, Buyer(8), "0x" + secrets.token_hex(32))
    behind = {**read_newest_block(devchain), "timestamp": "0x5f5e100"}

    resolution = await reconcile_one(intercept_node(answer_method("eth_getBlockByNumber", behind)))

    assert resolution.state_after == "settling"
    assert facilitator.settle_calls == 1


@pytest.mark.extended
@pytest.mark.parametrize("first", ["unreachable", "of another chain", "contradicting itself"])
async def test_next_node_is_asked_after_failure(
    devchain: DevChain, stubbed: Settings, upstreams: FakeUpstreams, buyer: Buyer, first: str
) -> None:
    await record_paid(devchain, stubbed, buyer)
    wrong = (
        answer_method("eth_chainId", "0x1")
        if first == "of another chain"
        else answer_method("eth_getLogs", [])
    )
    url = start_proxy(upstreams, "node", devchain.rpc_url, wrong) + "/"
    nodes = set_nodes(stubbed, "http://127.0.0.1:9" if first == "unreachable" else url, devchain.rpc_url)

    resolution = await reconcile_one(nodes)

    assert resolution.state_after == "settled"


DEEP = b"[" * 1000 + b"]" * 1000
NESTED: dict[str, bytes] = {
    "error": b'{"id": 0, "error": %b}' % DEEP,
    "error beside a result": b'{"id": 0, "result": "0x14a34", "error": {"message": %b}}' % DEEP,
    "result": b'{"id": 0, "result": %b}' % DEEP,
}


@pytest.fixture
def default_recursion_limit() -> Generator[None]:
    """The recursion limit of servers; packages that only tests import raise it."""
    raised = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(raised)


@pytest.mark.extended
@pytest.mark.usefixtures("default_recursion_limit")
@pytest.mark.parametrize("method", ["eth_chainId", "eth_getBlockByNumber"])
@pytest.mark.parametrize("body", NESTED.values(), ids=NESTED.keys())
async def test_deeply_nested_response_is_error(
    devchain: DevChain, stubbed: Settings, upstreams: FakeUpstreams, buyer: Buyer, body: bytes, method: str
) -> None:
    payload = await record_paid(devchain, stubbed, buyer)

    def nest_response(request: dict[str, Any]) -> tuple[int, Any] | None:
        return (200, body) if request["method"] == method else None

    url = start_proxy(upstreams, "node", devchain.rpc_url, nest_response) + "/"

    resolution = await reconcile_one(set_nodes(stubbed, url, devchain.rpc_url))

    assert resolution.state_after == "settled"
    assert (await read_row(stubbed, payload))["state"] == "settled"


async def test_old_payment_is_found_with_limited_log_span(
    intercept_node: Callable[[Interceptor], Settings], devchain: DevChain, stubbed: Settings, buyer: Buyer
) -> None:
    """The chain seems to be 50,000 blocks longer, one second each."""
    await record_paid(devchain, stubbed, buyer)
    last = read_newest_block(devchain)
    length, time = int(last["number"], 16), int(last["timestamp"], 16)
    spans: list[int] = []

    def add_blocks(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_getBlockByNumber":
            wanted = request["params"][0]
            number = length + 50_000 if wanted in ("latest", "safe") else int(wanted, 16)
            block = {**last, "number": hex(number), "timestamp": hex(time + number - length)}
            return 200, {"jsonrpc": "2.0", "id": request["id"], "result": block}
        if request["method"] == "eth_getLogs":
            query = request["params"][0]
            spans.append(int(query["toBlock"], 16) - int(query["fromBlock"], 16) + 1)
        return None

    resolution = await reconcile_one(intercept_node(add_blocks))

    assert resolution.state_after == "settled"
    assert len(spans) <= 3
    assert max(spans) <= 2000
