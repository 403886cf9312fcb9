"""Two servers on one PostgreSQL, paid on the development chain by its real facilitator."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest
from buyer import PHISHING, SHARED, Buyer, decode_header, pay, sign_payment
from databases import Postgres
from facilitators import StubFacilitator, build_settings, open_stub_facilitator
from served_api import ApiProcess, run_api_processes
from starlette.responses import JSONResponse, Response

from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.devchain.rpc_client import call_rpc

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def facilitator(devchain: DevChain) -> Generator[StubFacilitator]:
    """A stub that counts calls and forwards them to the chain's facilitator."""

    async def forward_settle(body: dict[str, Any]) -> Response:
        async with httpx.AsyncClient(timeout=30) as client:
            response = await client.post(devchain.facilitator_url + "/settle", json=body)
        return JSONResponse(response.json(), response.status_code)

    with open_stub_facilitator() as counting:
        counting.usually = forward_settle
        yield counting


@pytest.fixture(scope="module")
def replicas(
    postgres: Postgres,
    facilitator: StubFacilitator,
    devchain: DevChain,
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[tuple[ApiProcess, ApiProcess]]:
    """Two servers with a node."""
    settings = build_settings(tmp_path_factory.mktemp("replicas"), facilitator.url)
    node = {f"RPC_{devchain.chain_id}_URL": devchain.rpc_url}
    with run_api_processes(settings, DATABASE_URL=postgres.new_database(), **node) as processes:
        yield processes


@pytest.fixture
def client() -> Generator[httpx.Client]:
    """A client of both."""
    with httpx.Client(timeout=30, limits=SHARED) as client:
        yield client


def read_block_number(devchain: DevChain) -> int:
    """Return the number of the newest block."""
    return int(call_rpc(devchain.rpc_url, "eth_blockNumber"), 16)


def read_transactions(devchain: DevChain, block: int) -> list[Any]:
    """Return the receipts of all transactions after a block."""
    later = range(block + 1, read_block_number(devchain) + 1)
    hashes = [
        mined
        for number in later
        for mined in call_rpc(devchain.rpc_url, "eth_getBlockByNumber", hex(number), False)["transactions"]  # noqa: FBT003
    ]
    return [call_rpc(devchain.rpc_url, "eth_getTransactionReceipt", mined) for mined in hashes]


def test_burst_is_settled_by_one_transaction(
    replicas: tuple[ApiProcess, ApiProcess],
    client: httpx.Client,
    facilitator: StubFacilitator,
    devchain: DevChain,
    buyer: Buyer,
) -> None:
    addresses = [replica.url + PHISHING for replica in replicas]
    payment = sign_payment(client, buyer, addresses[0])
    calls, block, before = (
        facilitator.settle_calls,
        read_block_number(devchain),
        devchain.token_balance(DEFAULT_PAYEE),
    )

    with ThreadPoolExecutor(50) as pool:
        burst = list(pool.map(partial(pay, client, payment), addresses * 50))
    later = [pay(client, payment, address) for address in addresses]

    assert {(response.status_code, response.content) for response in burst} == {(200, burst[0].content)}
    assert {response.content for response in later} == {burst[0].content}
    assert facilitator.settle_calls == calls + 1
    assert [mined["status"] for mined in read_transactions(devchain, block)] == ["0x1"]
    assert devchain.token_balance(DEFAULT_PAYEE) == before + 10_000
    assert decode_header(burst[0].headers["PAYMENT-RESPONSE"])["success"] is True


def test_payments_of_several_buyers_are_settled_once_each(
    replicas: tuple[ApiProcess, ApiProcess],
    client: httpx.Client,
    facilitator: StubFacilitator,
    devchain: DevChain,
) -> None:
    addresses = [replica.url + PHISHING for replica in replicas]
    payments = [sign_payment(client, Buyer(number), addresses[0]) for number in range(5)]
    calls, block, before = (
        facilitator.settle_calls,
        read_block_number(devchain),
        devchain.token_balance(DEFAULT_PAYEE),
    )
    sent = [payment for payment in payments for _ in range(8)]

    with ThreadPoolExecutor(20) as pool:
        responses = list(pool.map(partial(pay, client), sent, addresses * 20))

    assert {response.status_code for response in responses} == {200}
    assert len({response.content for response in responses}) == len(payments)
    assert facilitator.settle_calls == calls + len(payments)
    assert [mined["status"] for mined in read_transactions(devchain, block)] == ["0x1"] * len(payments)
    assert devchain.token_balance(DEFAULT_PAYEE) == before + len(payments) * 10_000
