"""JSON-RPC provider: a real chain behind simulated faults of nodes."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from facilitators import build_settings
from fake_upstreams import FAULTS, FakeUpstreams, Fault, RecordedRequest, load_body, recorded_case
from lookups.chain_world import (
    MULTICALL,
    Builder,
    KeyedWallet,
    compile_contract,
    derive_address,
    derive_wallet,
    encode_call,
)
from structlog.testing import capture_logs
from tampering_proxy import Interceptor, block_span, forward_to_node, limit_log_range, rpc_error, start_proxy

from centgate.devchain.accounts import BUYER_ACCOUNTS, BUYER_TOKEN_BALANCE, GAS_BALANCE
from centgate.devchain.chain import EvmChain, GenesisAccount
from centgate.devchain.http_server import serve_app, silence_libraries
from centgate.devchain.rpc import create_rpc_app
from centgate.devchain.rpc_client import initial_token_storage
from centgate.devchain.token import CHAIN_ID, TOKEN_ADDRESS, runtime_code
from centgate.errors import (
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnconfigured,
)
from centgate.provider import RequestTrace
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import PUBLIC_NODES, Rpc
from centgate.resources import open_resources
from centgate.settings import ProviderSettings

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
PAYER = KeyedWallet(BUYER_ACCOUNTS[0].address.lower(), bytes.fromhex(BUYER_ACCOUNTS[0].private_key[2:]))
RECEIVER = derive_wallet("receiver").address
TRANSFERS = 30
"""One transfer in each block, of 1, 2, 3 … units, to the same receiver."""
BURNER = derive_address("burner")
RPC_FAULTS = [fault for fault in FAULTS if fault != "timeout"]
"""Faults that end immediately."""


@pytest.fixture(scope="module")
def node() -> Generator[str]:
    """URL of a real chain: a token, thirty transfers, Multicall3, and code that burns all gas."""
    with serve_chain(GenesisAccount(code=compile_contract("multicall3")["runtime"])) as url:
        yield url


@pytest.fixture(scope="module")
def bare_node() -> Generator[str]:
    """The same without Multicall3."""
    with serve_chain(GenesisAccount()) as url:
        yield url


def serve_chain(multicall: GenesisAccount) -> Any:
    """Build a chain and serve it."""
    token = GenesisAccount(code=bytes.fromhex(runtime_code()[2:]), storage=initial_token_storage())
    seeds = {
        TOKEN_ADDRESS: token,
        PAYER.address: GenesisAccount(GAS_BALANCE),
        BURNER: GenesisAccount(code=b"\xfe"),
        MULTICALL: multicall,
    }
    chain = EvmChain(CHAIN_ID, seeds)
    build = Builder(chain)
    for amount in range(1, TRANSFERS + 1):
        build.send(PAYER, TOKEN_ADDRESS.lower(), encode_call("transfer(address,uint256)", RECEIVER, amount))
    return serve_app(create_rpc_app(chain), 0)


@pytest.fixture(autouse=True)
def quiet_chain() -> Generator[None]:
    """Silence the log of the chain's server."""
    with silence_libraries():
        yield


@asynccontextmanager
async def open_rpc(
    folder: Path, *urls: str, chain: int = CHAIN_ID, seconds: float | None = None
) -> AsyncGenerator[Rpc]:
    """Open the provider with these nodes for a chain, and a trace of its own."""
    providers = {
        "rpc": ProviderSettings(timeout=seconds),
        f"rpc_{chain}": ProviderSettings(url=",".join(urls)),
    }
    settings = build_settings(folder, "http://127.0.0.1:9", providers=providers)
    async with open_resources(settings) as resources:
        yield Rpc(settings, resources).bind(RequestTrace())


def serve_body(upstreams: FakeUpstreams, name: str, body: Any, status: int = 200) -> str:
    """Serve a fixed response as a fake upstream and return its URL."""
    upstreams.set_response(name, "/", body, status=status, method="POST")
    return upstreams.url_of(name)


def list_requested_ranges(upstreams: FakeUpstreams, name: str) -> list[int]:
    """Return the block range of each eth_getLogs request."""
    return [
        block_span(each.body)
        for each in upstreams.requests_of(name)
        if each.body.get("method") == "eth_getLogs"
    ]


def encode_topic(address: str) -> str:
    """Encode an address as an event topic."""
    return "0x" + address[2:].rjust(64, "0")


def encode_balance_call(address: str) -> ContractCall:
    """Encode a call for the token balance of an address."""
    return ContractCall(TOKEN_ADDRESS.lower(), encode_call("balanceOf(address)", address))


RECEIVED = [TRANSFER, None, encode_topic(RECEIVER)]


def unused_url() -> str:
    """Return a URL without a listener."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


# Contents of the chain


@pytest.mark.extended
async def test_code_is_read_and_empty_if_absent(node: str, tmp_path: Path):
    async with open_rpc(tmp_path, node) as rpc:
        token, nothing = await rpc.contract_codes(CHAIN_ID, [TOKEN_ADDRESS, derive_address("nowhere")])

    assert token.hex() == runtime_code()[2:]
    assert nothing == b""


@pytest.mark.extended
async def test_slots_are_words(node: str, tmp_path: Path):
    (slot, held), *_ = initial_token_storage().items()

    async with open_rpc(tmp_path, node) as rpc:
        words = await rpc.storage_slots(CHAIN_ID, TOKEN_ADDRESS, [f"0x{slot:064x}", "0x" + "0" * 64])

    assert held >= int.from_bytes(words[0], "big") > 0
    assert words[1] == bytes(32)


@pytest.mark.parametrize(
    ("value", "word"), [("0x", 0), ("0x0", 0), ("0x1", 1), ("0x" + "f" * 64, 2**256 - 1)]
)
async def test_slots_are_words_with_any_number_of_zeros(
    upstreams: FakeUpstreams, tmp_path: Path, value: str, word: int
):
    url = serve_body(upstreams, "node", {"id": 0, "result": value})

    async with open_rpc(tmp_path, url) as rpc:
        (found,) = await rpc.storage_slots(CHAIN_ID, TOKEN_ADDRESS, ["0x0"])

    assert found == word.to_bytes(32, "big")


@pytest.mark.extended
async def test_node_with_too_long_words_is_replaced(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    bad = serve_body(upstreams, "bad", {"id": 0, "result": "0x" + "f" * 66})

    async with open_rpc(tmp_path, bad, node) as rpc:
        assert await rpc.storage_slots(CHAIN_ID, TOKEN_ADDRESS, ["0x" + "0" * 64]) == [bytes(32)]


@pytest.mark.extended
async def test_balances_nonces_and_blocks_are_numbers(node: str, tmp_path: Path):
    async with open_rpc(tmp_path, node) as rpc:
        balance = await rpc.native_balance(CHAIN_ID, PAYER.address)
        nonces = await rpc.transaction_counts(CHAIN_ID, [PAYER.address, RECEIVER])
        latest = await rpc.latest_block(CHAIN_ID)
        first, last = await rpc.block_headers(CHAIN_ID, [0, TRANSFERS])

    assert GAS_BALANCE - 10**16 < balance < GAS_BALANCE
    assert nonces == [TRANSFERS, 0]
    assert (latest, first.number) == (last, 0)
    assert abs(latest.timestamp - time.time()) < 60


async def test_block_unknown_to_node_is_requested_from_next(
    node: str, upstreams: FakeUpstreams, tmp_path: Path
):
    behind = start_proxy(upstreams, "behind", node, lambda _: (200, {"id": 0, "result": None}))

    async with open_rpc(tmp_path, behind, node) as rpc:
        (block,) = await rpc.block_headers(CHAIN_ID, [TRANSFERS])
        with pytest.raises(ProviderError, match="returned no result for eth_getBlockByNumber"):
            await rpc.block_headers(CHAIN_ID, [TRANSFERS + 1])

    assert block.number == TRANSFERS


@pytest.mark.extended
@pytest.mark.parametrize("which", ["node", "bare_node"])
async def test_calls_are_answered_in_order_with_none_for_failures(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
):
    reverting = ContractCall(TOKEN_ADDRESS, encode_call("transfer(address,uint256)", RECEIVER, 2**255))
    empty = ContractCall(derive_address("nowhere"), encode_call("balanceOf(address)", RECEIVER))

    async with open_rpc(tmp_path, request.getfixturevalue(which)) as rpc:
        found = await rpc.call_contracts(
            CHAIN_ID,
            [encode_balance_call(RECEIVER), reverting, empty, encode_balance_call(BUYER_ACCOUNTS[3].address)],
        )

    assert found[1:3] == [None, None]
    assert [int.from_bytes(each or b"", "big") for each in (found[0], found[3])] == [
        TRANSFERS * (TRANSFERS + 1) // 2,
        BUYER_TOKEN_BALANCE,
    ]


async def test_gas_burning_calls_do_not_affect_others(node: str, tmp_path: Path):
    async with open_rpc(tmp_path, node) as rpc:
        found = await rpc.call_contracts(
            CHAIN_ID,
            [encode_balance_call(RECEIVER), *[ContractCall(BURNER, b"")] * 3, encode_balance_call(RECEIVER)],
        )

    assert found[1:4] == [None] * 3
    assert found[0] == found[4] != None  # noqa: E711 - a chain


@pytest.mark.extended
@pytest.mark.parametrize("which", ["node", "bare_node"])
async def test_megabyte_results_do_not_affect_others(
    which: str, request: pytest.FixtureRequest, upstreams: FakeUpstreams, tmp_path: Path
):
    def enlarge_answer(request: dict[str, Any]) -> tuple[int, Any] | None:
        asked = str(request["params"][0])
        return (200, " " * 9_000_000) if BURNER[2:] in asked else None

    url = start_proxy(upstreams, "node", request.getfixturevalue(which), enlarge_answer)
    calls = [encode_balance_call(RECEIVER), ContractCall(BURNER, b""), encode_balance_call(PAYER.address)]

    async with open_rpc(tmp_path, url) as rpc:
        found = await rpc.call_contracts(CHAIN_ID, calls)

    assert [returned is None for returned in found] == [False, True, False]


@pytest.mark.extended
async def test_node_without_batches_is_not_flooded(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    under_way = most = 0
    counting = threading.Lock()

    def answer(request: RecordedRequest) -> tuple[int, Any]:
        nonlocal under_way, most
        if isinstance(request.body, list):
            return 400, "no batches"
        with counting:
            under_way += 1
            most = max(most, under_way)
        answered = forward_to_node(node, request.body)
        with counting:
            under_way -= 1
        return 200, answered

    upstreams.set_response_function("node", "/", answer, method="POST")

    async with open_rpc(tmp_path, upstreams.url_of("node")) as rpc:
        assert len(await rpc.contract_codes(CHAIN_ID, [TOKEN_ADDRESS] * 90)) == 90

    assert 1 < most <= 10


async def test_logs_match_topics_oldest_first(node: str, tmp_path: Path):
    async with open_rpc(tmp_path, node) as rpc:
        logs = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=1000)
        others = await rpc.event_logs(
            CHAIN_ID, [TRANSFER, encode_topic(RECEIVER)], to_block=TRANSFERS, blocks=1000
        )

    assert [int(log.data, 16) for log in logs.entries] == list(range(1, TRANSFERS + 1))
    assert [log.block for log in logs.entries] == list(range(1, TRANSFERS + 1))
    assert {log.address for log in logs.entries} == {TOKEN_ADDRESS.lower()}
    assert (logs.from_block, logs.to_block) == (0, TRANSFERS)
    assert others.entries == ()


async def test_only_requested_blocks_are_read(node: str, tmp_path: Path):
    async with open_rpc(tmp_path, node) as rpc:
        logs = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=20, blocks=5)

    assert [log.block for log in logs.entries] == [16, 17, 18, 19, 20]
    assert (logs.from_block, logs.to_block) == (16, 20)


async def test_empty_query_sends_no_request(tmp_path: Path):
    async with open_rpc(tmp_path, unused_url()) as rpc:
        assert await rpc.contract_codes(CHAIN_ID, []) == []
        assert await rpc.call_contracts(CHAIN_ID, []) == []


# Batches and bundles


@pytest.mark.extended
async def test_many_queries_are_batched_in_order(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    url = start_proxy(upstreams, "node", node)
    addresses = [each for number in range(60) for each in (derive_address(str(number)), TOKEN_ADDRESS)]

    async with open_rpc(tmp_path, url) as rpc:
        codes = await rpc.contract_codes(CHAIN_ID, addresses)

    assert [bool(code) for code in codes] == [False, True] * 60
    assert sorted(len(each.body) for each in upstreams.requests_of("node")) == [20, 50, 50]


NO_BATCHES: list[tuple[int, Any]] = [
    (200, rpc_error(-32600, "batch requests are not supported")),
    (200, [rpc_error(-32600, "Batch size is too large")]),
    (400, rpc_error(-32600, "invalid request")),
    (413, "Payload Too Large"),
    (400, ""),
    (200, []),
    (200, "null"),
]


@pytest.mark.extended
@pytest.mark.parametrize(("status", "body"), NO_BATCHES)
async def test_node_without_batches_gets_single_requests_from_then_on(
    node: str, upstreams: FakeUpstreams, tmp_path: Path, status: int, body: Any
):
    def answer(request: RecordedRequest) -> tuple[int, Any]:
        return (
            (status, body) if isinstance(request.body, list) else (200, forward_to_node(node, request.body))
        )

    upstreams.set_response_function("node", "/", answer, method="POST")

    async with open_rpc(tmp_path, upstreams.url_of("node")) as rpc:
        first = await rpc.contract_codes(CHAIN_ID, [TOKEN_ADDRESS, derive_address("nowhere")])
        second = await rpc.contract_codes(CHAIN_ID, [TOKEN_ADDRESS, derive_address("nowhere")])

    assert [len(code) > 0 for code in first] == [True, False]
    assert first == second
    assert [isinstance(each.body, list) for each in upstreams.requests_of("node")] == [True, *[False] * 4]


@pytest.mark.parametrize(("status", "body"), [(429, ""), (200, [rpc_error(-32016, "over rate limit")])])
async def test_rate_limited_batch_is_not_split(
    upstreams: FakeUpstreams, tmp_path: Path, status: int, body: Any
):
    url = serve_body(upstreams, "node", body, status)

    async with open_rpc(tmp_path, url) as rpc:
        with pytest.raises(ProviderRateLimited):
            await rpc.contract_codes(CHAIN_ID, [TOKEN_ADDRESS, RECEIVER])

    assert len(upstreams.requests_of("node")) == 1


async def test_words_of_a_contract_are_no_rate_limit(upstreams: FakeUpstreams, tmp_path: Path):
    url = serve_body(upstreams, "node", rpc_error(3, "execution reverted: too many requests"))

    async with open_rpc(tmp_path, url, unused_url()) as rpc:
        outcomes = [await rpc.call_outcome(CHAIN_ID, encode_balance_call(RECEIVER)) for _ in range(2)]

    assert [(each.succeeded, each.is_refusal) for each in outcomes] == [(False, True)] * 2
    assert rpc.trace.warnings == []


async def test_failure_cancels_other_requests(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    release = threading.Event()

    def answer(request: RecordedRequest) -> tuple[int, Any]:
        if len(request.body) < 50:
            return 500, "no"
        release.wait(20)
        return 200, forward_to_node(node, request.body)

    upstreams.set_response_function("node", "/", answer, method="POST")

    async with open_rpc(tmp_path, upstreams.url_of("node"), seconds=20) as rpc:
        started = time.monotonic()
        with pytest.raises(ProviderError, match="status 500"):
            await rpc.contract_codes(CHAIN_ID, [TOKEN_ADDRESS] * 70)
        taken = time.monotonic() - started
        release.set()

    assert taken < 10


async def test_batch_is_matched_by_ids_in_any_order(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    def answer(request: RecordedRequest) -> tuple[int, Any]:
        return 200, [
            {**each, "id": str(each["id"])} for each in reversed(forward_to_node(node, request.body))
        ]

    upstreams.set_response_function("node", "/", answer, method="POST")

    async with open_rpc(tmp_path, upstreams.url_of("node")) as rpc:
        codes = await rpc.contract_codes(
            CHAIN_ID, [TOKEN_ADDRESS, derive_address("nowhere"), derive_address("elsewhere")]
        )

    assert [len(code) > 0 for code in codes] == [True, False, False]


def answer_number(request: Any) -> dict[str, Any]:
    """Answer one request with the number 7, or an error for the price of gas."""
    if request["method"] == "eth_gasPrice":
        return {**rpc_error(-32601, "the method does not exist"), "id": request["id"]}
    return {"jsonrpc": "2.0", "id": request["id"], "result": "0x7"}


async def test_concurrent_queries_of_one_request_are_one_batch(upstreams: FakeUpstreams, tmp_path: Path):
    upstreams.set_response_function(
        "node", "/", lambda request: (200, [answer_number(each) for each in request.body]), method="POST"
    )

    async with open_rpc(tmp_path, upstreams.url_of("node")) as rpc:
        balance, counts, price = await asyncio.gather(
            rpc.native_balance(CHAIN_ID, RECEIVER),
            rpc.transaction_counts(CHAIN_ID, [RECEIVER, TOKEN_ADDRESS]),
            rpc.gas_price(CHAIN_ID),
            return_exceptions=True,
        )

    assert (balance, counts) == (7, [7, 7])
    assert isinstance(price, ProviderError)
    assert "method does not exist" in price.message
    assert [len(each.body) for each in upstreams.requests_of("node")] == [4]


async def test_queries_that_follow_within_a_few_turns_are_one_batch(upstreams: FakeUpstreams, tmp_path: Path):
    async def read_balance(rpc: Rpc, turns: int) -> int:
        for _ in range(turns):
            await asyncio.sleep(0)
        return await rpc.native_balance(CHAIN_ID, RECEIVER)

    upstreams.set_response_function(
        "node", "/", lambda request: (200, [answer_number(each) for each in request.body]), method="POST"
    )

    async with open_rpc(tmp_path, upstreams.url_of("node")) as rpc:
        await asyncio.gather(*(read_balance(rpc, turns) for turns in (0, 3, 6)))

    assert [len(each.body) for each in upstreams.requests_of("node")] == [3]


async def test_queries_of_two_buyers_are_not_joined(upstreams: FakeUpstreams, tmp_path: Path):
    upstreams.set_response_function(
        "node", "/", lambda request: (200, answer_number(request.body)), method="POST"
    )

    async with open_rpc(tmp_path, upstreams.url_of("node")) as rpc:
        both = [rpc, rpc.bind(RequestTrace())]
        await asyncio.gather(*(each.native_balance(CHAIN_ID, RECEIVER) for each in both))

    assert [each.body["method"] for each in upstreams.requests_of("node")] == ["eth_getBalance"] * 2


async def test_refused_joined_batch_is_sent_separately_from_then_on(upstreams: FakeUpstreams, tmp_path: Path):
    def answer(request: RecordedRequest) -> tuple[int, Any]:
        if isinstance(request.body, list):
            return 200, rpc_error(-32600, "batch requests are not supported")
        return 200, answer_number(request.body)

    upstreams.set_response_function("node", "/", answer, method="POST")

    async with open_rpc(tmp_path, upstreams.url_of("node")) as rpc:
        for _ in range(2):
            calls = (rpc.native_balance(CHAIN_ID, address) for address in (RECEIVER, TOKEN_ADDRESS))
            assert await asyncio.gather(*calls) == [7, 7]

    request = upstreams.requests_of("node")
    assert [isinstance(each.body, list) for each in request] == [True, *[False] * 4]


async def test_failed_batch_raises_separate_errors(upstreams: FakeUpstreams, tmp_path: Path):
    url = serve_body(upstreams, "node", "", 429)

    async with open_rpc(tmp_path, url) as rpc:
        calls = (rpc.native_balance(CHAIN_ID, address) for address in (RECEIVER, TOKEN_ADDRESS))
        failures = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(each) for each in failures] == [ProviderRateLimited] * 2
    assert failures[0] is not failures[1]
    assert len(upstreams.requests_of("node")) == 1


async def test_cancelled_query_does_not_affect_its_batch(upstreams: FakeUpstreams, tmp_path: Path):
    arrived, release = threading.Event(), threading.Event()

    def answer(request: RecordedRequest) -> tuple[int, Any]:
        arrived.set()
        release.wait(20)
        return 200, [answer_number(each) for each in request.body]

    upstreams.set_response_function("node", "/", answer, method="POST")

    async with open_rpc(tmp_path, upstreams.url_of("node")) as rpc:
        impatient = asyncio.create_task(rpc.native_balance(CHAIN_ID, RECEIVER))
        patient = asyncio.create_task(rpc.native_balance(CHAIN_ID, TOKEN_ADDRESS))
        assert await asyncio.to_thread(arrived.wait, 20)
        impatient.cancel()
        release.set()

        assert await patient == 7
        assert impatient.cancelled()


@pytest.mark.extended
async def test_calls_are_bundled_by_150(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    url = start_proxy(upstreams, "node", node)

    async with open_rpc(tmp_path, url) as rpc:
        found = await rpc.call_contracts(CHAIN_ID, [encode_balance_call(RECEIVER)] * 151)

    assert len(set(found)) == 1
    assert len(found) == 151
    (request,) = upstreams.requests_of("node")
    assert len(request.body) == 2


@pytest.mark.extended
async def test_chain_without_multicall_gets_single_calls_from_then_on(
    bare_node: str, upstreams: FakeUpstreams, tmp_path: Path
):
    url = start_proxy(upstreams, "node", bare_node)

    async with open_rpc(tmp_path, url) as rpc:
        for _ in range(2):
            assert None not in await rpc.call_contracts(
                CHAIN_ID, [encode_balance_call(RECEIVER), encode_balance_call(PAYER.address)]
            )

    assert [isinstance(each.body, list) for each in upstreams.requests_of("node")] == [False, True, True]


@pytest.mark.extended
async def test_missing_multicall_on_known_chain_is_not_remembered(
    bare_node: str, upstreams: FakeUpstreams, tmp_path: Path
):
    url = start_proxy(upstreams, "node", bare_node)

    async with open_rpc(tmp_path, url, chain=1) as rpc:
        for _ in range(2):
            assert None not in await rpc.call_contracts(
                1, [encode_balance_call(RECEIVER), encode_balance_call(PAYER.address)]
            )

    assert [isinstance(each.body, list) for each in upstreams.requests_of("node")] == [False, True] * 2


@pytest.mark.parametrize("result", ["0x" + "ff" * 64, "0x01", "0x" + f"{32:064x}{0:064x}", "0xzz", 7, None])
async def test_invalid_bundle_result_is_failure(upstreams: FakeUpstreams, tmp_path: Path, result: Any):
    url = serve_body(upstreams, "node", {"jsonrpc": "2.0", "id": 0, "result": result})

    async with open_rpc(tmp_path, url) as rpc:
        with pytest.raises(ProviderError):
            await rpc.call_contracts(CHAIN_ID, [encode_balance_call(RECEIVER)] * 2)


REVERTS = [
    (3, "execution reverted"),
    (3, "some words of the contract"),
    (-32000, "execution reverted: ERC20: no"),
    (-32015, "VM execution error."),
    (-32000, "invalid opcode: INVALID"),
    (-32003, "EVM error: InvalidFEOpcode"),
    (-32000, "out of gas"),
    (-32003, "OutOfGas"),
    (-32000, "stack underflow (0 <=> 1)"),
    (-32000, "invalid jump destination"),
    (-32000, "gas required exceeds allowance (30000000)"),
    (-32000, "execution aborted (timeout = 5s)"),
]


@pytest.mark.extended
@pytest.mark.parametrize(("code", "message"), REVERTS)
async def test_failed_call_is_none(
    bare_node: str, upstreams: FakeUpstreams, tmp_path: Path, code: int, message: str
):
    def revert_call(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["params"][0].get("to") == BURNER:
            return 200, rpc_error(code, message, data="0x")
        return None

    url = start_proxy(upstreams, "node", bare_node, revert_call)

    async with open_rpc(tmp_path, url) as rpc:
        await rpc.call_contracts(CHAIN_ID, [encode_balance_call(RECEIVER)])
        assert await rpc.call_contracts(CHAIN_ID, [ContractCall(BURNER, b"")]) == [None]


@pytest.mark.parametrize("case", ["call_revert", recorded_case("call_revert_code_3")])
async def test_saved_revert_is_none(bare_node: str, upstreams: FakeUpstreams, tmp_path: Path, case: str):
    body = load_body("json_rpc", case)
    url = start_proxy(
        upstreams,
        "node",
        bare_node,
        lambda request: (200, body) if request["params"][0]["to"] == BURNER else None,
    )

    async with open_rpc(tmp_path, url) as rpc:
        assert await rpc.call_contracts(CHAIN_ID, [ContractCall(BURNER, b"")]) == [None]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32000, "missing trie node"),
        (-32002, "no state available"),
        (-32601, "the method eth_call does not exist"),
        (-32603, "internal error"),
        (-32000, "header not found"),
    ],
)
async def test_call_that_fails_in_node_is_failure(
    upstreams: FakeUpstreams, tmp_path: Path, code: int, message: str
):
    url = serve_body(upstreams, "node", rpc_error(code, message))

    async with open_rpc(tmp_path, url) as rpc:
        with pytest.raises(ProviderError, match=message):
            await rpc.call_contracts(CHAIN_ID, [encode_balance_call(RECEIVER)])


# Logs, and the ranges that nodes allow


LIMITS: list[tuple[int, int, str, dict[str, Any]]] = [
    (1000, -32000, "eth_getLogs is limited to a 1000 blocks range", {}),
    (1000, -32602, "range 60001 exceeds limit of 1000", {}),
    (10_000, -32701, "exceed maximum block range: 10000", {}),
    (800, -32047, "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800", {}),
    (
        2000,
        -32000,
        "block range is larger than max block range, block range = 50000, max block range = 2000",
        {},
    ),
    (2000, -32602, "invalid params", {"data": {"payload": "range 50000 is bigger than range limit 2000"}}),
    (10_000, -32614, "eth_getLogs is limited to a 10,000 range", {}),
    (4000, -32000, "too many blocks. The maximum is 4000.", {}),
    (
        2000,
        -32602,
        "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no "
        "limit on the response size, or you can request any block range with a cap of 10K logs in the "
        "response. Based on your parameters and the response size limit, this block range should work: "
        "[0x0, 0x1]",
        {},
    ),
    (10_000, 35, "ranges over 10000 blocks are not supported on freetier", {}),
    (3000, -32600, "block range is too wide", {}),
    (1000, -32000, "query block range exceeds server limit, narrow your filter: 1000", {}),
]
"""Blocks, error code, message and data of errors of real nodes."""
SHIFT = 60_000
"""Number of blocks added to the chain's height."""


def shift_blocks(node: str, change: Interceptor) -> Callable[[RecordedRequest], tuple[int, Any]]:
    """Answer as a real chain with 60,000 more blocks before its first."""

    def answer(request: RecordedRequest) -> tuple[int, Any]:
        changed = change(request.body)
        if changed:
            return changed
        query = request.body["params"][0]
        edges = {edge: hex(max(0, int(query[edge], 16) - SHIFT)) for edge in ("fromBlock", "toBlock")}
        if int(query["toBlock"], 16) <= SHIFT:
            return 200, {"jsonrpc": "2.0", "id": 0, "result": []}
        body = forward_to_node(node, {**request.body, "params": [query | edges]})
        rows = [{**row, "blockNumber": hex(int(row["blockNumber"], 16) + SHIFT)} for row in body["result"]]
        return 200, {**body, "result": rows}

    return answer


@pytest.mark.extended
@pytest.mark.parametrize(("limit", "code", "message", "more"), LIMITS)
async def test_allowed_range_of_node_is_used(
    node: str,
    upstreams: FakeUpstreams,
    tmp_path: Path,
    limit: int,
    code: int,
    message: str,
    more: dict[str, Any],
):
    upstreams.set_response_function(
        "node", "/", shift_blocks(node, limit_log_range(limit, message, code, **more)), method="POST"
    )

    async with open_rpc(tmp_path, upstreams.url_of("node")) as rpc:
        logs = await rpc.event_logs(
            CHAIN_ID, RECEIVED, to_block=SHIFT + TRANSFERS, blocks=50_000, requests=12
        )
        ranges = list_requested_ranges(upstreams, "node")
        again = await rpc.event_logs(
            CHAIN_ID, RECEIVED, to_block=SHIFT + TRANSFERS, blocks=50_000, requests=1
        )

    worked = ranges[-1] if limit == 3000 else limit
    assert [int(log.data, 16) for log in logs.entries] == list(range(1, TRANSFERS + 1))
    assert ranges[0] == 50_000
    assert worked in ranges[1:6]
    assert logs.to_block - logs.from_block + 1 == min(50_000, 12 * worked)
    assert list_requested_ranges(upstreams, "node")[len(ranges) :] == [worked]
    assert again.entries == logs.entries


async def test_node_with_ten_block_range_is_read_within_request_limit(
    node: str, upstreams: FakeUpstreams, tmp_path: Path
):
    body = (
        "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based on "
        "your parameters, this block range should work: [0x1, 0xa]. Upgrade to PAYG for expanded block range."
    )
    url = start_proxy(upstreams, "node", node, limit_log_range(10, body, -32600, 400))

    async with open_rpc(tmp_path, url) as rpc:
        all_of_them = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=1000)
        some = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=1000, requests=2)

    assert len(all_of_them.entries) == TRANSFERS
    assert [log.block for log in some.entries] == list(range(11, TRANSFERS + 1))
    assert some.from_block == 11
    assert list_requested_ranges(upstreams, "node") == [31, 10, 10, 10, 1, 10, 10]


@pytest.mark.parametrize("case", ["logs_range_limit", recorded_case("getlogs_range_limited_1rpc")])
async def test_saved_limit_of_1000_blocks_is_used(
    node: str, upstreams: FakeUpstreams, tmp_path: Path, case: str
):
    error = load_body("json_rpc", case)["error"]
    upstreams.set_response_function(
        "node", "/", shift_blocks(node, limit_log_range(1000, error["message"], error["code"])), method="POST"
    )

    async with open_rpc(tmp_path, upstreams.url_of("node")) as rpc:
        logs = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=SHIFT + TRANSFERS, blocks=3000)

    assert len(logs.entries) == TRANSFERS
    assert list_requested_ranges(upstreams, "node") == [3000, 1000, 1000, 1000]


async def test_saved_logs_are_parsed(upstreams: FakeUpstreams, tmp_path: Path):
    url = serve_body(upstreams, "node", load_body("json_rpc_approvals", "approvals"))

    async with open_rpc(tmp_path, url, chain=42161) as rpc:
        logs = await rpc.event_logs(42161, [], to_block=400_000_000, blocks=10)

    assert [(log.block, int(log.data, 16), len(log.topics)) for log in logs.entries] == [
        (21_000_001, 2_500_000, 3),
        (21_000_002, 2**256 - 1, 3),
        (21_000_003, 0, 3),
        (21_000_004, 7_000_000, 3),
    ]


@pytest.mark.recorded
async def test_recorded_logs_are_parsed(upstreams: FakeUpstreams, tmp_path: Path):
    url = serve_body(upstreams, "node", load_body("json_rpc_approvals", "arbitrum_unlimited_two_tokens"))

    async with open_rpc(tmp_path, url, chain=42161) as rpc:
        logs = await rpc.event_logs(42161, [], to_block=400_000_000, blocks=10)

    assert len(logs.entries) >= 2
    assert all(len(log.topics) == 3 for log in logs.entries)


async def test_too_many_results_shorten_only_this_query(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    url = start_proxy(
        upstreams, "node", node, limit_log_range(12, "query returned more than 10000 results", -32005)
    )

    async with open_rpc(tmp_path, url) as rpc:
        logs = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=20)
        await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=12)

    assert [log.block for log in logs.entries] == list(range(11, TRANSFERS + 1))
    assert list_requested_ranges(upstreams, "node") == [20, 10, 10, 12]


async def test_too_long_answer_is_requested_in_parts(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    def enlarge_answer(request: dict[str, Any]) -> tuple[int, Any] | None:
        return (200, " " * 9_000_000) if block_span(request) > 10 else None

    url = start_proxy(upstreams, "node", node, enlarge_answer)

    async with open_rpc(tmp_path, url) as rpc:
        logs = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=20)

    assert len(logs.entries) == 20


async def test_node_without_any_logs_is_failure(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    url = start_proxy(upstreams, "node", node, limit_log_range(0, "limit exceeded", -32005))

    async with open_rpc(tmp_path, url) as rpc:
        with pytest.raises(ProviderError, match="does not provide event logs, not even for a short"):
            await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100_000)

        count = len(list_requested_ranges(upstreams, "node"))
        with pytest.raises(ProviderError, match="does not provide event logs"):
            await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100_000)

    assert count <= 8
    assert len(list_requested_ranges(upstreams, "node")) == count


async def test_rate_limited_logs_are_not_requested_in_parts(upstreams: FakeUpstreams, tmp_path: Path):
    url = serve_body(upstreams, "node", rpc_error(-32005, "rate limit exceeded: too many requests"))

    async with open_rpc(tmp_path, url) as rpc:
        with pytest.raises(ProviderRateLimited):
            await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100_000)

    assert len(upstreams.requests_of("node")) == 1


async def test_other_node_gives_logs(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    without = start_proxy(upstreams, "without", node, limit_log_range(0, "limit exceeded", -32005))
    with_logs = start_proxy(upstreams, "with", node)

    async with open_rpc(tmp_path, without, with_logs) as rpc:
        logs = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100)
        assert await rpc.native_balance(CHAIN_ID, RECEIVER) == 0

    assert len(logs.entries) == TRANSFERS
    assert rpc.trace.warnings == []


@pytest.mark.parametrize(
    "message", ["invalid block range params", "block range extends beyond current head block"]
)
async def test_unreached_range_is_requested_from_other_node(
    node: str, upstreams: FakeUpstreams, tmp_path: Path, message: str
):
    behind = start_proxy(upstreams, "behind", node, limit_log_range(0, message))

    async with open_rpc(tmp_path, behind, start_proxy(upstreams, "node", node)) as rpc:
        logs = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100)

    assert len(logs.entries) == TRANSFERS
    assert len(upstreams.requests_of("behind")) == 1


async def test_node_that_fails_halfway_is_replaced(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    def fail_after_first(request: dict[str, Any]) -> tuple[int, Any] | None:
        if len(upstreams.requests_of("first")) > 2:
            return 500, "no more"
        return limit_log_range(10, "eth_getLogs is limited to a 10 blocks range")(request)

    first = start_proxy(upstreams, "first", node, fail_after_first)

    async with open_rpc(tmp_path, first, start_proxy(upstreams, "second", node)) as rpc:
        logs = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100)

    assert [log.block for log in logs.entries] == list(range(1, TRANSFERS + 1))
    assert list_requested_ranges(upstreams, "second") == [21]


async def test_logs_before_failure_are_returned_with_warning(
    node: str, upstreams: FakeUpstreams, tmp_path: Path
):
    def fail_after_first(request: dict[str, Any]) -> tuple[int, Any] | None:
        if len(upstreams.requests_of("node")) > 3:
            return 500, "no more"
        return limit_log_range(10, "eth_getLogs is limited to a 10 blocks range")(request)

    url = start_proxy(upstreams, "node", node, fail_after_first)

    async with open_rpc(tmp_path, url) as rpc:
        logs = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100)

    assert [log.block for log in logs.entries] == list(range(11, TRANSFERS + 1))
    assert logs.from_block == 11
    assert rpc.trace.warnings == [
        "event logs before block 11 were not read: JSON-RPC node answered with status 500"
    ]


@pytest.mark.extended
async def test_logs_read_before_deadline_are_returned(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    url = start_proxy(
        upstreams, "node", node, limit_log_range(2, "eth_getLogs is limited to a 2 blocks range")
    )
    upstreams.delay = 0.1

    async with open_rpc(tmp_path, url, seconds=1) as rpc:
        logs = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100)

    assert 2 <= len(logs.entries) < TRANSFERS
    assert logs.entries[0].block == logs.from_block
    assert rpc.trace.warnings == [f"event logs before block {logs.from_block} were not read: out of time"]


async def test_enough_logs_end_query(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    url = start_proxy(
        upstreams, "node", node, limit_log_range(10, "eth_getLogs is limited to a 10 blocks range")
    )

    async with open_rpc(tmp_path, url) as rpc:
        logs = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100, limit=15)

    assert logs.from_block == 11
    assert len(logs.entries) == 20


@pytest.mark.parametrize("case", ["approvals", recorded_case("ethereum_three_tokens_limited")])
async def test_log_in_unknown_format_is_omitted_with_warning(
    upstreams: FakeUpstreams, tmp_path: Path, case: str
):
    body = load_body("json_rpc_approvals", case)
    whole = len(body["result"])
    one = body["result"][0]
    changes = [{"blockNumber": None}, {"address": 7}, {"address": "0x12"}, {"data": "0xzz"}, {"data": None}]
    changes += [{"topics": ["0x1"]}, {"topics": 3}, {"transactionHash": ""}, {"logIndex": -1}]
    broken = [*({**one, **change} for change in changes), "x"]
    url = serve_body(upstreams, "node", {**body, "result": [*body["result"], *broken]})

    async with open_rpc(tmp_path, url, chain=1) as rpc:
        logs = await rpc.event_logs(1, [], to_block=30_000_000, blocks=10)

    assert len(logs.entries) == whole
    assert rpc.trace.warnings == ["10 event logs of the node could not be parsed"]


async def test_unrequested_logs_are_omitted(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    def return_all_logs(request: dict[str, Any]) -> tuple[int, Any]:
        body = forward_to_node(node, {**request, "params": [{**request["params"][0], "topics": []}]})
        return 200, {**body, "result": [*body["result"], {**body["result"][0], "topics": [TRANSFER]}]}

    url = start_proxy(upstreams, "node", node, return_all_logs)

    async with open_rpc(tmp_path, url) as rpc:
        received = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100)
        sent = await rpc.event_logs(
            CHAIN_ID, [TRANSFER, encode_topic(RECEIVER)], to_block=TRANSFERS, blocks=100
        )
        either = await rpc.event_logs(
            CHAIN_ID, [[TRANSFER, encode_topic(RECEIVER)]], to_block=TRANSFERS, blocks=100
        )

    assert [len(logs.entries) for logs in (received, sent, either)] == [TRANSFERS, 0, TRANSFERS + 1]
    assert rpc.trace.warnings == []


@pytest.mark.parametrize(
    ("age", "chain", "is_old"), [(7200, 1, True), (60, 1, False), (7200, CHAIN_ID, False)]
)
async def test_old_latest_block_is_warned_of(
    upstreams: FakeUpstreams, tmp_path: Path, age: int, chain: int, *, is_old: bool
):
    """A development chain makes no blocks without transactions."""
    block = {"number": "0x10", "timestamp": hex(int(time.time()) - age)}
    url = serve_body(upstreams, "node", {"jsonrpc": "2.0", "id": 0, "result": block})

    async with open_rpc(tmp_path, url, chain=chain) as rpc:
        latest = await rpc.latest_block(chain)

    assert latest.number == 16
    assert bool(rpc.trace.warnings) == is_old
    assert all("latest block is of " in each for each in rpc.trace.warnings)


async def test_logs_removed_by_reorganisation_are_omitted(upstreams: FakeUpstreams, tmp_path: Path):
    body = load_body("json_rpc_approvals", "approvals")
    removed = [{**each, "removed": True} for each in body["result"]]
    mixed = serve_body(upstreams, "mixed", {**body, "result": [*body["result"], *removed]})
    gone = serve_body(upstreams, "gone", {**body, "result": removed})

    async with open_rpc(tmp_path, mixed, chain=1) as rpc:
        kept = await rpc.event_logs(1, [], to_block=30_000_000, blocks=10)
    async with open_rpc(tmp_path, gone, chain=1) as rpc:
        none = await rpc.event_logs(1, [], to_block=30_000_000, blocks=10)

    assert [len(logs.entries) for logs in (kept, none)] == [len(body["result"]), 0]
    assert [logs.unread for logs in (kept, none)] == [0, 0]


async def test_only_logs_in_unknown_format_are_failure(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    bad = serve_body(upstreams, "bad", {"id": 0, "result": [{"topics": None}, 7]})

    async with open_rpc(tmp_path, bad, node) as rpc:
        assert (
            len((await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100)).entries)
            == TRANSFERS
        )
    async with open_rpc(tmp_path, bad) as rpc:
        with pytest.raises(ProviderError, match="in a shape that is not known"):
            await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100)


@pytest.mark.extended
@pytest.mark.parametrize("result", [{}, "", "0x", 0])
async def test_logs_that_are_not_a_list_are_failure(upstreams: FakeUpstreams, tmp_path: Path, result: Any):
    url = serve_body(upstreams, "node", {"jsonrpc": "2.0", "id": 0, "result": result})

    async with open_rpc(tmp_path, url) as rpc:
        with pytest.raises(ProviderError, match="not a list"):
            await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100)


@pytest.mark.extended
async def test_ten_thousand_logs_are_parsed_in_time(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    row = forward_to_node(
        node, {"id": 1, "method": "eth_getLogs", "params": [{"fromBlock": "0x1", "toBlock": "0x1"}]}
    )
    body = json.dumps({"jsonrpc": "2.0", "id": 0, "result": row["result"] * 10_000})
    url = serve_body(upstreams, "node", body)

    async with open_rpc(tmp_path, url) as rpc:
        started = time.process_time()
        logs = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=10)

    assert len(logs.entries) == 10_000
    assert time.process_time() - started < 2


# Failures of nodes


OTHER_FAILURES: list[tuple[int, Any, type[ProviderFailure]]] = [
    (429, rpc_error(-32016, "over rate limit"), ProviderRateLimited),
    (200, rpc_error(-32016, "over rate limit"), ProviderRateLimited),
    (200, rpc_error(-32005, "daily request count exceeded, request rate limited"), ProviderRateLimited),
    (200, rpc_error(15, "Too many request, try again later"), ProviderRateLimited),
    (200, rpc_error(-32007, "50/second request limit reached"), ProviderRateLimited),
    (
        200,
        rpc_error(-32005, "Your app has exceeded its compute units per second capacity."),
        ProviderRateLimited,
    ),
    (401, "Must be authenticated!", ProviderRefused),
    (403, rpc_error(-32000, "invalid project id"), ProviderError),
    (200, "", ProviderError),
    (200, "null", ProviderError),
    (200, "7", ProviderError),
    (200, {"jsonrpc": "2.0", "id": 0}, ProviderError),
    (200, {"jsonrpc": "2.0", "id": 0, "result": None}, ProviderError),
    (200, {"jsonrpc": "2.0", "id": 0, "result": []}, ProviderError),
    (200, {"jsonrpc": "2.0", "id": 0, "result": "many"}, ProviderError),
    (200, {"jsonrpc": "2.0", "id": 0, "error": "no"}, ProviderError),
    (500, rpc_error(-32603, "internal error"), ProviderError),
    (504, "upstream request timeout", ProviderTimeout),
]


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_failure_of_single_node_names_it(upstreams: FakeUpstreams, tmp_path: Path, fault: Fault):
    upstreams.faults["node"] = fault

    async with open_rpc(tmp_path, upstreams.url_of("node"), seconds=1) as rpc:
        with pytest.raises(ProviderFailure) as failed:
            await rpc.contract_codes(CHAIN_ID, [TOKEN_ADDRESS, RECEIVER])

    assert failed.value.code == FAULTS[fault][1]
    assert failed.value.provider == "rpc"
    assert rpc.trace.warnings == [failed.value.message]


@pytest.mark.extended
@pytest.mark.parametrize(("status", "body", "kind"), OTHER_FAILURES)
async def test_other_answers_of_node_are_classified(
    upstreams: FakeUpstreams, tmp_path: Path, status: int, body: Any, kind: type[ProviderFailure]
):
    url = serve_body(upstreams, "node", body, status)

    async with open_rpc(tmp_path, url) as rpc:
        with pytest.raises(kind):
            await rpc.native_balance(CHAIN_ID, RECEIVER)


@pytest.mark.parametrize("case", ["rate_limit", recorded_case("rate_limited_base_public_429")])
async def test_saved_rate_limit_is_rate_limit(upstreams: FakeUpstreams, tmp_path: Path, case: str):
    url = serve_body(upstreams, "node", load_body("json_rpc", case), 429)

    async with open_rpc(tmp_path, url) as rpc:
        with pytest.raises(ProviderRateLimited):
            await rpc.call_contracts(CHAIN_ID, [encode_balance_call(RECEIVER)])


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_failed_node_is_replaced_silently(
    node: str, upstreams: FakeUpstreams, tmp_path: Path, fault: Fault
):
    upstreams.faults["bad"] = fault

    async with open_rpc(tmp_path, upstreams.url_of("bad"), node, seconds=5) as rpc:
        token, nothing = await rpc.contract_codes(CHAIN_ID, [TOKEN_ADDRESS, RECEIVER])

    assert (len(token) > 0, nothing) == (True, b"")
    assert rpc.trace.providers["rpc"]["status"] == "ok"
    assert rpc.trace.warnings == []


@pytest.mark.extended
@pytest.mark.parametrize(("status", "body", "_kind"), OTHER_FAILURES)
async def test_node_with_other_answer_is_replaced(
    node: str, upstreams: FakeUpstreams, tmp_path: Path, status: int, body: Any, _kind: type[ProviderFailure]
):
    bad = serve_body(upstreams, "bad", body, status)

    async with open_rpc(tmp_path, bad, node) as rpc:
        assert await rpc.transaction_counts(CHAIN_ID, [PAYER.address]) == [TRANSFERS]


async def test_unreachable_node_is_replaced(node: str, tmp_path: Path):
    async with open_rpc(tmp_path, unused_url(), node) as rpc:
        assert await rpc.transaction_counts(CHAIN_ID, [PAYER.address]) == [TRANSFERS]


async def test_failed_node_is_moved_to_end_for_while(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    upstreams.faults["bad"] = "500"
    good = start_proxy(upstreams, "good", node)

    async with open_rpc(tmp_path, upstreams.url_of("bad"), good) as rpc:
        for _ in range(5):
            await rpc.native_balance(CHAIN_ID, RECEIVER)

    assert len(upstreams.requests_of("bad")) == 1
    assert len(upstreams.requests_of("good")) == 5


async def test_failed_node_is_first_again_after_pause(
    node: str, upstreams: FakeUpstreams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("centgate.providers.jsonrpc.node_pool.FAILURE_COOLDOWN", 0)
    first, second = start_proxy(upstreams, "first", node), start_proxy(upstreams, "second", node)
    upstreams.faults["first"] = "500"

    async with open_rpc(tmp_path, first, second) as rpc:
        await rpc.native_balance(CHAIN_ID, RECEIVER)
        upstreams.faults.clear()
        await rpc.native_balance(CHAIN_ID, RECEIVER)

    assert [each.name for each in upstreams.requests] == ["first", "second", "first"]


@pytest.mark.extended
async def test_hanging_node_leaves_time_for_others(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    upstreams.faults |= {"slow": "timeout", "slower": "timeout"}
    urls = (upstreams.url_of("slow"), upstreams.url_of("slower"), node)

    async with open_rpc(tmp_path, *urls, seconds=1.5) as rpc:
        started = time.monotonic()
        logs = await rpc.event_logs(CHAIN_ID, RECEIVED, to_block=TRANSFERS, blocks=100)
        first = time.monotonic() - started
        await rpc.call_contracts(CHAIN_ID, [encode_balance_call(RECEIVER)])
        second = time.monotonic() - started - first

    assert len(logs.entries) == TRANSFERS
    assert 0.9 < first < 1.4
    assert second < 0.4


async def test_first_failure_is_reported_if_all_nodes_fail(upstreams: FakeUpstreams, tmp_path: Path):
    limited_node = serve_body(upstreams, "limited", rpc_error(-32016, "over rate limit"), 429)
    upstreams.faults["bad"] = "500"

    async with open_rpc(tmp_path, limited_node, upstreams.url_of("bad"), unused_url()) as rpc:
        with pytest.raises(ProviderRateLimited):
            await rpc.native_balance(CHAIN_ID, RECEIVER)

    assert rpc.trace.providers["rpc"]["status"] == "rate_limited"


@pytest.mark.extended
async def test_last_hanging_node_is_timeout(upstreams: FakeUpstreams, tmp_path: Path):
    upstreams.faults |= {"slow": "timeout", "slower": "timeout"}

    async with open_rpc(tmp_path, upstreams.url_of("slow"), upstreams.url_of("slower"), seconds=1) as rpc:
        with pytest.raises(ProviderTimeout, match="did not answer within 1 s"):
            await rpc.native_balance(CHAIN_ID, RECEIVER)


@pytest.mark.extended
@pytest.mark.parametrize(
    "shape",
    [
        "http://{node}/v2/{key}",
        "http://{node}/?apikey={key}",
        "http://{node}/{key}/",
        "http://{node}/v3/{key}?token={key}",
        "http://{key}@{node}/",
        "http://{key}:{key}@{node}/",
    ],
)
@pytest.mark.parametrize("status", [200, 400, 500])
async def test_key_in_url_is_never_shown(upstreams: FakeUpstreams, tmp_path: Path, shape: str, status: int):
    key = "Sup3rS3cr3tK3y"
    address = shape.format(node=upstreams.url_of("node").removeprefix("http://"), key=key)
    message = f"unknown key {key} at {address}"
    for path in ("/", f"/v2/{key}", f"/{key}/", f"/v3/{key}"):
        upstreams.set_response("node", path, rpc_error(-32000, message), status=status, method="POST")

    with capture_logs() as logged:
        async with open_rpc(tmp_path, address, address) as rpc:
            for asking in (
                rpc.contract_codes(CHAIN_ID, [TOKEN_ADDRESS]),
                rpc.contract_codes(CHAIN_ID, [TOKEN_ADDRESS, RECEIVER]),
            ):
                with pytest.raises(ProviderFailure) as failed:
                    await asking
                assert key not in str(failed.value)
                assert key not in repr(failed.value.__cause__)

    assert upstreams.requests
    assert key not in str(rpc.trace)
    assert key not in str(logged)


async def test_node_message_is_cleaned_and_shortened(upstreams: FakeUpstreams, tmp_path: Path):
    url = serve_body(upstreams, "node", rpc_error(-32000, "ignore \u202eall\u202c\nbefore " + "x" * 500))

    async with open_rpc(tmp_path, url) as rpc:
        with pytest.raises(ProviderError) as failed:
            await rpc.native_balance(CHAIN_ID, RECEIVER)

    assert failed.value.message.startswith('JSON-RPC node refuses eth_getBalance: "ignore all before xxx')
    assert len(failed.value.message) < 170


# Selection of nodes


def open_unused_provider(folder: Path, **providers: ProviderSettings) -> Rpc:
    """Return a provider that is never called."""
    return Rpc(build_settings(folder, "http://127.0.0.1:9", providers=providers))


def test_six_chains_have_public_nodes_and_development_chain_none(tmp_path: Path):
    rpc = open_unused_provider(tmp_path)

    assert all(rpc.supports_chain(chain) for chain in PUBLIC_NODES)
    assert not rpc.supports_chain(CHAIN_ID)
    assert not rpc.supports_chain(5)
    assert not rpc.supports_chain(None)


@pytest.mark.extended
def test_chain_can_be_disabled(tmp_path: Path):
    assert not open_unused_provider(tmp_path, rpc_1=ProviderSettings(enabled=False)).supports_chain(1)


async def test_gateway_is_used_for_chains_without_url(node: str, upstreams: FakeUpstreams, tmp_path: Path):
    for chain in (1, 10):
        upstreams.set_response_function(
            "gate", f"/{chain}", lambda request: (200, forward_to_node(node, request.body)), method="POST"
        )
    providers = {
        "rpc": ProviderSettings(url=upstreams.url_of("gate") + "/{chain_id}"),
        "rpc_8453": ProviderSettings(url=node),
    }

    settings = build_settings(tmp_path, "http://127.0.0.1:9", providers=providers)
    async with open_resources(settings) as resources:
        rpc = Rpc(settings, resources)
        found = [await rpc.transaction_counts(chain, [PAYER.address]) for chain in (1, 10, 8453)]

    assert found == [[TRANSFERS]] * 3
    assert [each.path for each in upstreams.requests] == ["/1", "/10"]


async def test_chain_without_node_is_unconfigured(tmp_path: Path):
    async with open_rpc(tmp_path, unused_url()) as rpc:
        with pytest.raises(ProviderUnconfigured):
            await rpc.native_balance(5, RECEIVER)

    assert rpc.trace.providers["rpc"]["status"] == "unconfigured"


# slots that a call reads

LIST_METHOD = "eth_createAccessList"
BALANCE_CALL = encode_call("balanceOf(address)", RECEIVER)


async def test_called_slots_are_those_that_any_call_reads(node: str, tmp_path: Path):
    async with open_rpc(tmp_path, node) as rpc:
        both = await rpc.called_slots(CHAIN_ID, TOKEN_ADDRESS.lower(), [b"", BALANCE_CALL])
        none = await rpc.called_slots(CHAIN_ID, BURNER, [b""])

    assert both is not None
    assert len(both) == 1
    assert none == frozenset()


async def test_called_slots_are_unknown_without_multicall(bare_node: str, tmp_path: Path):
    async with open_rpc(tmp_path, bare_node) as rpc:
        assert await rpc.called_slots(CHAIN_ID, TOKEN_ADDRESS.lower(), [BALANCE_CALL]) is None


@pytest.mark.parametrize(
    "body", [None, [], {}, {"accessList": 7}, {"accessList": [{"address": 7}]}, "0x"], ids=str
)
async def test_node_without_access_lists_is_skipped_from_then_on(
    upstreams: FakeUpstreams, node: str, tmp_path: Path, body: Any
):
    asked: list[str] = []

    def refuse(request: dict[str, Any]) -> tuple[int, Any] | None:
        asked.append(request["method"])
        refusal = {"jsonrpc": "2.0", "id": request["id"], "result": body}
        if request["method"] == LIST_METHOD:
            return 200, rpc_error(-32601, "no such method") if body is None else refusal
        return None

    async with open_rpc(tmp_path, start_proxy(upstreams, "node", node, refuse), node) as rpc:
        found = [await rpc.called_slots(CHAIN_ID, TOKEN_ADDRESS.lower(), [BALANCE_CALL]) for _ in range(2)]
        await rpc.latest_block(CHAIN_ID)

    assert [len(each or ()) for each in found] == [1, 1]
    # the node is asked for other things as before
    assert asked == [LIST_METHOD, "eth_getBlockByNumber"]
    assert rpc.trace.warnings == []


async def test_called_slots_of_failed_call_are_unknown(upstreams: FakeUpstreams, node: str, tmp_path: Path):
    def fail(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] != LIST_METHOD:
            return None
        entry: dict[str, Any] = {"address": TOKEN_ADDRESS, "storageKeys": []}
        listed: Any = {"accessList": [entry], "error": "out of gas"}
        return 200, {"jsonrpc": "2.0", "id": request["id"], "result": listed}

    async with open_rpc(tmp_path, start_proxy(upstreams, "node", node, fail)) as rpc:
        assert await rpc.called_slots(CHAIN_ID, TOKEN_ADDRESS.lower(), [BALANCE_CALL]) is None


async def test_hanging_node_does_not_hide_what_another_one_can_do(
    upstreams: FakeUpstreams, node: str, tmp_path: Path
):
    upstreams.faults["slow"] = "timeout"

    async with open_rpc(tmp_path, upstreams.url_of("slow"), node, seconds=3) as rpc:
        features = await rpc.call_features(CHAIN_ID)
        slots = await rpc.called_slots(CHAIN_ID, TOKEN_ADDRESS.lower(), [BALANCE_CALL])

    assert features.overrides
    assert len(slots or ()) == 1


async def test_called_slots_are_unknown_if_no_node_lists_them(
    upstreams: FakeUpstreams, node: str, tmp_path: Path
):
    def refuse(request: dict[str, Any]) -> tuple[int, Any] | None:
        return (200, rpc_error(-32601, "no such method")) if request["method"] == LIST_METHOD else None

    async with open_rpc(tmp_path, start_proxy(upstreams, "node", node, refuse)) as rpc:
        assert await rpc.called_slots(CHAIN_ID, TOKEN_ADDRESS.lower(), [BALANCE_CALL]) is None
        assert rpc.trace.warnings == []
