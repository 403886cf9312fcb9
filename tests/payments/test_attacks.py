"""Attacks that once worked: answers without payment, payments without answer, and load without payment.

Each test is named for the effect that the attack had, and asserts that it no longer has it.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from buyer import ApiFactory, Buyer, encode_header, pay, payment_note, sign_payload, sign_payment
from chain_actions import cancel_authorization, settle_elsewhere, settle_then_reply, transfer_tokens
from facilitators import StubFacilitator, refuse_with, reply_with
from fake_upstreams import FakeUpstreams
from sdk_facilitators import open_typescript_facilitator
from seeded_journals import read_row
from tampering_proxy import Interceptor, forward_to_node, rpc_error, start_proxy

from centgate.devchain.devnet import DevChain
from centgate.devchain.rpc_client import call_rpc
from centgate.devchain.token import TOKEN_ADDRESS
from centgate.payments import settlement
from centgate.payments.chain import chain_client
from centgate.payments.database.migrations import build_alembic_config
from centgate.payments.database.sqlite import create_sqlite_engine
from centgate.payments.journal import journal
from centgate.payments.reconciler import reconcile_all
from centgate.settings import ProviderSettings, Settings

NONCE_USED = "invalid_exact_evm_nonce_already_used"
SIMULATION_FAILED = "invalid_exact_evm_transaction_simulation_failed"


def set_nodes(settings: Settings, *urls: str) -> Settings:
    return settings.model_copy(update={"providers": {"rpc_84532": ProviderSettings(url=",".join(urls))}})


def reply_with_result(request: dict[str, Any], value: Any) -> tuple[int, Any]:
    return 200, {"jsonrpc": "2.0", "id": request["id"], "result": value}


def answer_method(method: str, value: Any) -> Interceptor:
    return lambda request: reply_with_result(request, value) if request["method"] == method else None


def delay_logs(request: dict[str, Any]) -> tuple[int, Any] | None:
    if request["method"] == "eth_getLogs":
        time.sleep(6)
    return None


BEHIND: dict[str, Interceptor] = {
    "no event yet": answer_method("eth_getLogs", []),
    "no receipt yet": answer_method("eth_getTransactionReceipt", None),
    "slow logs": delay_logs,
    "logs refused": lambda request: (429, {}) if request["method"] == "eth_getLogs" else None,
}


@pytest.mark.extended
@pytest.mark.parametrize("behind", BEHIND.values(), ids=BEHIND.keys())
def test_attack_refusal_believed_despite_used_nonce(
    api: ApiFactory,
    stubbed: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    buyer: Buyer,
    behind: Interceptor,
) -> None:
    """The facilitator reports a failed simulation after sending; the node's log index lags behind."""
    node = start_proxy(upstreams, "node", devchain.rpc_url, behind) + "/"
    client = api(set_nodes(stubbed, node))
    payload = sign_payload(client, buyer)
    facilitator.next.append(settle_then_reply(devchain, refuse_with(SIMULATION_FAILED)))

    response = pay(client, encode_header(payload))

    assert response.status_code == 502, response.text
    assert payment_note(response)["retry"] == "same_payment"


@pytest.mark.extended
def test_attack_refusal_believed_of_lagging_node(
    api: ApiFactory,
    stubbed: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    buyer: Buyer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first of two nodes stays at a block from before the claim."""
    monkeypatch.setattr(chain_client, "BLOCK_WAIT", 10)  # the other one may be slow on a busy machine
    monkeypatch.setattr(settlement, "TIMEOUT", 30)
    for _ in range(3):  # a young chain has no earlier block to stay at
        transfer_tokens(devchain, buyer, buyer.address, 1)
    stuck = forward_to_node(
        devchain.rpc_url, {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
    )["result"]

    def freeze_block(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_blockNumber":
            return reply_with_result(request, hex(int(stuck, 16) - 3))
        if request["method"] == "eth_getBlockByNumber" and request["params"][0] == "latest":
            past = request | {"params": [hex(int(stuck, 16) - 3), False]}
            return 200, forward_to_node(devchain.rpc_url, past)
        if request["method"] == "eth_call" and request["params"][1] == "latest":
            return reply_with_result(request, "0x" + "0" * 64)
        return None

    node = start_proxy(upstreams, "node", devchain.rpc_url, freeze_block) + "/"
    client = api(set_nodes(stubbed, node, devchain.rpc_url))
    payload = sign_payload(client, buyer)
    facilitator.next.append(settle_then_reply(devchain, refuse_with(SIMULATION_FAILED)))

    response = pay(client, encode_header(payload))

    assert response.status_code == 200, response.text


@pytest.mark.extended
def test_attack_stranger_fills_open_payments(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The facilitator refuses payments without funds unread (429), and works again later."""
    monkeypatch.setattr(journal, "MAX_UNRESOLVED", 20)
    client = api(settings)
    facilitator.usually = reply_with(429, {})
    for _ in range(20):
        pay(client, sign_payment(client, Buyer(9)))
    time.sleep(3)
    facilitator.usually = facilitator.settle

    response = pay(client, sign_payment(client, Buyer(0)))

    assert response.status_code == 200, response.text


@contextmanager
def open_silent_node() -> Generator[str]:
    """Accept connections and never answer."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.extended
async def test_attack_silent_node_accepts_older_transfers(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    """The first node answers, and its answer is enough; the second never answers."""
    with open_silent_node() as silent:
        settings = set_nodes(stubbed, devchain.rpc_url, silent)
        client = api(settings)
        payload = sign_payload(client, buyer)
        settle_elsewhere(devchain, payload)
        facilitator.usually = refuse_with(NONCE_USED)

        response = pay(client, encode_header(payload))

        assert response.status_code != 200
        assert (await read_row(settings, payload))["claim_block"] is not None


def test_attack_oversized_block_number_breaks_response(
    api: ApiFactory,
    stubbed: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
) -> None:
    node = (
        start_proxy(upstreams, "node", devchain.rpc_url, answer_method("eth_blockNumber", "0x" + "f" * 20))
        + "/"
    )
    client = api(set_nodes(stubbed, node))

    response = pay(client, sign_payment(client, Buyer()))

    assert response.status_code == 200, response.text


class DuplicatingProxy:
    """A broken proxy: it answers each request, and the same again a moment later."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.again = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listening.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        first: bytes | None = None
        while (data := self._request(connection)) is not None:
            self.bodies.append(data)
            if first is None:
                content = b'{"success":true,"transaction":"0x' + b"5a" * 32 + b'","network":"eip155:84532"}'
                first = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content)
                connection.sendall(first)
            else:
                connection.sendall(first)  # late, for the previous request

    def _request(self, connection: socket.socket) -> bytes | None:
        data = b""
        while b"\r\n\r\n" not in data:
            if not (more := connection.recv(65536)):
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        while len(body) < length:
            body += connection.recv(65536)
        return body


COUNTERFACTUAL = "6492" * 16
MALFORMED = {
    "no words": "0x" + COUNTERFACTUAL,
    "noise": "0x" + "5a" * 100 + COUNTERFACTUAL,
    "offsets out of range": "0x" + f"{1:064x}{2**255:064x}{2**255:064x}" + COUNTERFACTUAL,
}


@pytest.mark.extended
@pytest.mark.parametrize("signature", MALFORMED.values(), ids=MALFORMED.keys())
def test_attack_malformed_wrapper_leaves_payment_open(
    api: ApiFactory,
    chain_settings: Settings,
    devchain: DevChain,
    typescript_sdk: Path,
    buyer: Buyer,
    signature: str,
) -> None:
    """The TypeScript SDK's facilitator raises an error and answers 500; the attack needs no funds or key."""
    with open_typescript_facilitator(typescript_sdk, devchain) as url:
        client = api(chain_settings.model_copy(update={"facilitator_url": url}))
        payload = sign_payload(client, buyer)
        payload["payload"]["signature"] = signature

        response = pay(client, encode_header(payload))

    assert response.status_code == 402, response.text


def test_attack_open_payments_bypass_limits(
    api: ApiFactory, chain_settings: Settings, facilitator: StubFacilitator
) -> None:
    """A junk signature for a contract, over which a facilitator fails."""
    changes = {"facilitator_url": facilitator.url, "free_burst": 5, "free_per_minute": 1}
    client = api(chain_settings.model_copy(update=changes))
    facilitator.usually = reply_with(500, "")
    payload = sign_payload(client, Buyer(), **{"from": TOKEN_ADDRESS})
    payload["payload"]["signature"] = "0x" + "5a" * 66
    statuses: list[int] = []

    for number in range(20):
        payload["payload"]["authorization"]["nonce"] = f"0x{number:064x}"
        statuses.append(pay(client, encode_header(payload)).status_code)

    assert 429 in statuses


async def test_attack_old_claim_of_used_nonce_stays_open(
    api: ApiFactory,
    stubbed: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    buyer: Buyer,
) -> None:
    """130,000 blocks are nine hours on Arbitrum and three days on Base: a weekend without a server."""
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    cancel_authorization(devchain, buyer, payload["payload"]["authorization"]["nonce"])
    facilitator.usually = reply_with(500, "")
    pay(client, encode_header(payload))
    newest = call_rpc(devchain.rpc_url, "eth_getBlockByNumber", "latest", *[False])

    def shift_blocks(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_getBlockByNumber":
            return reply_with_result(request, {**newest, "number": hex(int(newest["number"], 16) + 130_000)})
        if request["method"] == "eth_call":
            return 200, forward_to_node(
                devchain.rpc_url, request | {"params": [request["params"][0], "latest"]}
            )
        if request["method"] == "eth_getLogs":
            last = int(newest["number"], 16)
            call = request["params"][0]
            if int(call["fromBlock"], 16) > last:
                return reply_with_result(request, [])
            return 200, forward_to_node(
                devchain.rpc_url, request | {"params": [call | {"toBlock": hex(last)}]}
            )
        return None

    old = set_nodes(stubbed, start_proxy(upstreams, "node", devchain.rpc_url, shift_blocks) + "/")
    (resolution,) = await reconcile_all(old)

    assert resolution.state_after == "refused", resolution.reason


def test_attack_upgrade_forgets_second_submission(tmp_path: Path) -> None:
    """After one submission, the revert of a named transaction is a refusal; after two, the other may land."""
    engine = create_sqlite_engine(tmp_path / "journal.db")
    with engine.connect() as connection:
        with connection.begin():
            command.upgrade(build_alembic_config(connection), "0004")
        with connection.begin():
            connection.exec_driver_sql(
                "INSERT INTO payments (network, asset, payer, nonce, state, binding, service, proof,"
                " signer_known, amount, pay_to, valid_before, created_at, updated_at, attempts)"
                " VALUES ('n', 'a', 'p', 'o', 'settling', 'b', 's', 'p', 1, '1', 'd', 2, 1, 1, 3)"
            )
        with connection.begin():
            command.upgrade(build_alembic_config(connection), "0005")
        with connection.begin():
            (presentations,) = connection.exec_driver_sql("SELECT presentations FROM payments").one()
    engine.dispose()

    assert presentations > 1


@pytest.mark.extended
async def test_attack_used_nonce_stays_open_at_pruning_node(
    api: ApiFactory,
    stubbed: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    buyer: Buyer,
) -> None:
    """A node without archive keeps states of 128 blocks, four minutes on Base; safe blocks take as long."""
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    cancel_authorization(devchain, buyer, payload["payload"]["authorization"]["nonce"])
    facilitator.usually = reply_with(500, "")
    pay(client, encode_header(payload))

    def prune_states(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_call" and request["params"][1] != "latest":
            return 200, rpc_error(-32000, "missing trie node")
        return None

    node = set_nodes(stubbed, start_proxy(upstreams, "node", devchain.rpc_url, prune_states) + "/")
    (resolution,) = await reconcile_all(node)

    assert resolution.state_after == "refused", resolution.reason
