"""JSON-RPC of the in-process chain, called by curl-like requests and by web3.py."""

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from eth_account import Account as Wallet
from eth_typing import Address
from eth_utils.address import to_canonical_address
from web3 import Web3
from web3.contract import Contract

from centgate.devchain.accounts import FACILITATOR_ACCOUNT, Account
from centgate.devchain.chain import EvmCall, EvmChain, GenesisAccount
from centgate.devchain.devnet import DevChain
from centgate.devchain.token import CHAIN_ID, TOKEN_ADDRESS

Rpc = Callable[..., Any]
Someone = Callable[[], Account]

WITH_TRANSACTIONS, WITH_HASHES = True, False


@pytest.fixture
def rpc(devchain: DevChain, http: httpx.Client) -> Rpc:
    def rpc(method: str, *params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        return http.post(devchain.rpc_url, json=message).json()

    return rpc


def sign_transfer(account: Account, nonce: int, amount: int = 1) -> str:
    """Return a signed raw transfer of tokens to the facilitator."""
    to_and_amount = FACILITATOR_ACCOUNT.address[2:].rjust(64, "0") + f"{amount:064x}"
    call: dict[str, Any] = {"to": TOKEN_ADDRESS, "data": "0xa9059cbb" + to_and_amount, "value": 0}
    fees = {"gas": 100_000, "maxFeePerGas": 10**9, "maxPriorityFeePerGas": 1, "chainId": CHAIN_ID}
    signed = Wallet.from_key(account.private_key).sign_transaction(call | fees | {"nonce": nonce})
    return "0x" + signed.raw_transaction.hex()


def read_next_nonce(rpc: Rpc, account: Account) -> int:
    return int(rpc("eth_getTransactionCount", account.address, "pending")["result"], 16)


def test_chain_id_is_base_sepolia(rpc: Rpc):
    assert rpc("eth_chainId") == {"jsonrpc": "2.0", "id": 7, "result": hex(CHAIN_ID)}
    assert rpc("net_version")["result"] == str(CHAIN_ID)


def test_batch_is_answered_in_order(devchain: DevChain, http: httpx.Client):
    batch = [{"jsonrpc": "2.0", "id": n, "method": "eth_chainId"} for n in (3, 1, 2)]

    answers = http.post(devchain.rpc_url, json=batch).json()

    assert [answer["id"] for answer in answers] == [3, 1, 2]


def test_notification_has_no_answer(devchain: DevChain, http: httpx.Client):
    response = http.post(devchain.rpc_url, json={"jsonrpc": "2.0", "method": "eth_chainId"})

    assert (response.status_code, response.content) == (204, b"")


@pytest.mark.parametrize(
    ("body", "code"), [("{", -32700), ("[]", -32600), ("3", -32600), ('{"id": 1}', -32600)]
)
def test_invalid_request_is_error(devchain: DevChain, http: httpx.Client, body: str, code: int):
    assert http.post(devchain.rpc_url, content=body).json()["error"]["code"] == code


def test_unknown_method_is_error(rpc: Rpc):
    assert rpc("eth_mineGold")["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("eth_getBalance", []),
        ("eth_getBalance", ["0x12", "latest"]),
        ("eth_getBalance", ["not hex", "latest"]),
        ("eth_getBlockByNumber", ["soon", False]),
        ("eth_call", [{"to": TOKEN_ADDRESS, "data": "0x7"}, "latest"]),
    ],
)
def test_invalid_parameters_are_error(rpc: Rpc, method: str, params: list[Any]):
    assert rpc(method, *params)["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["eth_call", "eth_estimateGas"])
def test_revert_has_reason_and_data(rpc: Rpc, method: str):
    overdraft = "0xa9059cbb" + FACILITATOR_ACCOUNT.address[2:].rjust(64, "0") + "1".rjust(64, "0")

    error = rpc(
        method, {"from": FACILITATOR_ACCOUNT.address, "to": TOKEN_ADDRESS, "data": overdraft, "value": "0x0"}
    )["error"]
    error_of_the_poor = rpc(method, {"to": TOKEN_ADDRESS, "data": overdraft})["error"]

    assert error["code"] == error_of_the_poor["code"] == 3
    assert error["data"].startswith("0x08c379a0")
    assert error_of_the_poor["message"] == "execution reverted: ERC20: transfer from the zero address"


def test_transaction_is_mined_at_once_and_found(rpc: Rpc, take_account: Someone):
    account = take_account()

    sent = rpc("eth_sendRawTransaction", sign_transfer(account, read_next_nonce(rpc, account)))["result"]

    mined = rpc("eth_getTransactionByHash", sent)["result"]
    receipt = rpc("eth_getTransactionReceipt", sent)["result"]
    block = rpc("eth_getBlockByHash", receipt["blockHash"], WITH_TRANSACTIONS)["result"]
    by_number = rpc("eth_getBlockByNumber", receipt["blockNumber"], WITH_HASHES)["result"]
    assert receipt["status"] == "0x1"
    assert (mined["from"], mined["type"]) == (account.address.lower(), "0x2")
    assert block["transactions"] == [mined]
    assert by_number["transactions"] == [sent]


def test_transaction_with_later_nonce_waits(rpc: Rpc, take_account: Someone):
    account = take_account()
    nonce = read_next_nonce(rpc, account)

    early = rpc("eth_sendRawTransaction", sign_transfer(account, nonce + 1))["result"]
    waiting = rpc("eth_getTransactionByHash", early)["result"]
    assert waiting["blockNumber"] is None
    assert rpc("eth_getTransactionReceipt", early)["result"] is None
    rpc("eth_sendRawTransaction", sign_transfer(account, nonce))

    assert rpc("eth_getTransactionReceipt", early)["result"]["status"] == "0x1"
    assert read_next_nonce(rpc, account) == nonce + 2


def test_transaction_is_mined_once(rpc: Rpc, take_account: Someone):
    account = take_account()
    raw = sign_transfer(account, read_next_nonce(rpc, account))
    rpc("eth_sendRawTransaction", raw)

    assert "nonce too low" in rpc("eth_sendRawTransaction", raw)["error"]["message"]


def test_transaction_for_another_chain_is_refused(rpc: Rpc, take_account: Someone):
    account = take_account()
    elsewhere = {"to": TOKEN_ADDRESS, "value": 0, "gas": 21_000, "gasPrice": 10**9, "nonce": 0, "chainId": 1}
    raw = Wallet.from_key(account.private_key).sign_transaction(elsewhere).raw_transaction

    assert "is for chain 1" in rpc("eth_sendRawTransaction", "0x" + raw.hex())["error"]["message"]


def test_logs_are_found_by_address_event_and_block(rpc: Rpc, take_account: Someone):
    account = take_account()
    sent = rpc("eth_sendRawTransaction", sign_transfer(account, read_next_nonce(rpc, account)))["result"]
    receipt = rpc("eth_getTransactionReceipt", sent)["result"]
    event, sender, _ = receipt["logs"][0]["topics"]
    block = {"fromBlock": receipt["blockNumber"], "toBlock": receipt["blockNumber"]}

    assert (
        rpc("eth_getLogs", {"address": TOKEN_ADDRESS, "topics": [event, [sender]], **block})["result"]
        == receipt["logs"]
    )
    assert rpc("eth_getLogs", {"blockHash": receipt["blockHash"]})["result"] == receipt["logs"]
    assert rpc("eth_getLogs", {"topics": [None, event], **block})["result"] == []


@pytest.mark.extended
def test_past_states_can_be_read(rpc: Rpc, take_account: Someone):
    account = take_account()
    call = {"to": TOKEN_ADDRESS, "data": "0x70a08231" + account.address[2:].rjust(64, "0")}
    before = rpc("eth_blockNumber")["result"]
    held = int(rpc("eth_call", call, before)["result"], 16)

    rpc("eth_sendRawTransaction", sign_transfer(account, read_next_nonce(rpc, account), 25))

    assert int(rpc("eth_call", call, before)["result"], 16) == held
    assert int(rpc("eth_call", call, "latest")["result"], 16) == held - 25


def test_gas_price_stays_low(rpc: Rpc):
    history = rpc("eth_feeHistory", "0x4", "latest", [50])["result"]

    assert set(history["baseFeePerGas"]) == {"0x7"}
    assert int(rpc("eth_gasPrice")["result"], 16) < 10**9


@pytest.mark.extended
def test_web3_needs_no_fee_or_gas_arguments(
    w3: Web3, token: Contract, send: Callable[..., Any], take_account: Someone
):
    account = take_account()

    receipt = send(account, token.functions.transfer(FACILITATOR_ACCOUNT.address, 1))

    assert receipt["status"] == 1
    assert w3.eth.get_transaction(receipt["transactionHash"]).get("type") == 2


@pytest.mark.extended
def test_clock_keeps_wall_time_over_150_transactions(rpc: Rpc, take_account: Someone):
    account = take_account()
    first = read_next_nonce(rpc, account)

    for nonce in range(first, first + 150):
        rpc("eth_sendRawTransaction", sign_transfer(account, nonce))

    latest = rpc("eth_getBlockByNumber", "latest", WITH_HASHES)["result"]
    assert abs(int(latest["timestamp"], 16) - time.time()) < 3


def test_call_on_idle_chain_uses_current_time():
    now = 1_000_000_000.0
    tells_the_time = GenesisAccount(code=bytes.fromhex("4260005260206000f3"))
    chain = EvmChain(CHAIN_ID, {TOKEN_ADDRESS: tells_the_time}, clock=lambda: now)
    call = EvmCall(Address(bytes(20)), to_canonical_address(TOKEN_ADDRESS))

    now += 3600

    assert int.from_bytes(chain.run_call(call), "big") == now
    assert int.from_bytes(chain.run_call(call, 0), "big") == now - 3600
