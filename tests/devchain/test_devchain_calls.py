"""`eth_call` as on real nodes: without a recipient, with overrides, and with access lists."""

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from eth_utils.address import to_canonical_address
from eth_utils.crypto import keccak

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.deployer import CONTRACTS
from centgate.devchain.devnet import DevChain
from centgate.devchain.token import CHAIN_ID, TOKEN_ADDRESS, build_storage, encode_balance_call
from centgate.providers.jsonrpc.contract_calls import MULTICALL_BATCH
from centgate.providers.jsonrpc.multicall import MULTICALL, encode_aggregate, parse_aggregate
from centgate.solidity import load_contract

Rpc = Callable[..., Any]

WALLET = BUYER_ACCOUNTS[7].address
EMPTY = "0x00000000000000000000000000000000000e3391"
# return(0, 32) after storing the named value at 0
RETURN_42 = "0x602a60005260206000f3"
RETURN_CALLER_ORIGIN_SELF = "0x33600052326020523060405260606000f3"
RETURN_BALANCE = "0x4760005260206000f3"
RETURN_NUMBER_TIME = "0x436000524260205260406000f3"
WRITE_SLOT_1 = "0x600760015500"
REVERT_WITH_42 = "0x602a60005260206000fd"
LOOP = "0x5b600056"


@pytest.fixture
def rpc(devchain: DevChain, http: httpx.Client) -> Rpc:
    def rpc(method: str, *params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        return http.post(devchain.rpc_url, json=message).json()

    return rpc


def to_word(number: int) -> str:
    return f"0x{number:064x}"


def split_words(result: str) -> list[int]:
    return [int(result[start : start + 64], 16) for start in range(2, len(result), 64)]


def test_constructor_call_returns_its_code(rpc: Rpc):
    chain_id = "0x4660005260206000f3"

    assert rpc("eth_call", {"data": chain_id}, "latest")["result"] == to_word(CHAIN_ID)


def test_contract_sends_value_to_constructor(rpc: Rpc):
    call = {"from": TOKEN_ADDRESS, "value": hex(5), "data": RETURN_BALANCE}

    poor = rpc("eth_call", call, "latest")["error"]
    rich = rpc("eth_call", call, "latest", {TOKEN_ADDRESS: {"balance": "0x5"}})["result"]

    assert (poor["code"], "does not have enough balance" in poor["message"]) == (-32000, True)
    assert split_words(rich) == [5]


def test_constructor_revert_gives_its_data(rpc: Rpc):
    error = rpc("eth_call", {"data": REVERT_WITH_42}, "latest")["error"]

    assert error == {"code": 3, "message": "execution reverted", "data": to_word(42)}


@pytest.mark.parametrize(
    "initcode", ["0x60ef60005360016000f3", "0x6160016000f3", "0x" + "00" * 49_153], ids=["ef", "long", "init"]
)
def test_constructor_obeys_code_rules(rpc: Rpc, initcode: str):
    assert rpc("eth_call", {"data": initcode}, "latest")["error"]["code"] == -32000


def test_overridden_code_runs_as_wallet(rpc: Rpc):
    call = {"from": WALLET, "to": WALLET, "data": "0x"}
    override = {WALLET: {"code": RETURN_CALLER_ORIGIN_SELF}}

    assert split_words(rpc("eth_call", call, "latest", override)["result"]) == [int(WALLET, 16)] * 3


def test_overridden_code_finds_wallet_tokens(rpc: Rpc):
    token, balance = TOKEN_ADDRESS[2:], encode_balance_call(WALLET)[2:]
    calldata = "".join(f"60{byte:02x}60{at:02x}53" for at, byte in enumerate(bytes.fromhex(balance)))
    ask = f"0x{calldata}6020600060246000" + f"73{token}5afa5060206000f3"

    result = rpc("eth_call", {"from": WALLET, "to": WALLET}, "latest", {WALLET: {"code": ask}})["result"]

    assert split_words(result) == [
        split_words(rpc("eth_call", {"to": TOKEN_ADDRESS, "data": "0x" + balance})["result"])[0]
    ]
    assert split_words(result)[0] > 0


def test_overrides_leave_nothing_behind(rpc: Rpc):
    override = {
        EMPTY: {
            "balance": "0x64",
            "nonce": "0x9",
            "code": WRITE_SLOT_1,
            "stateDiff": {to_word(1): to_word(3)},
        }
    }

    assert rpc("eth_call", {"to": EMPTY}, "latest", override)["result"] == "0x"

    assert rpc("eth_getCode", EMPTY, "latest")["result"] == "0x"
    assert rpc("eth_getBalance", EMPTY, "latest")["result"] == "0x0"
    assert rpc("eth_getTransactionCount", EMPTY, "latest")["result"] == "0x0"
    assert rpc("eth_getStorageAt", EMPTY, "0x1", "latest")["result"] == to_word(0)
    assert rpc("eth_call", {"to": EMPTY}, "latest")["result"] == "0x"


def test_replaced_storage_clears_other_slots(rpc: Rpc):
    ((slot, held),) = ((slot, held) for slot, held in build_storage({WALLET: 77}).items() if slot > 1000)
    call = {"to": TOKEN_ADDRESS, "data": encode_balance_call(BUYER_ACCOUNTS[8].address)}
    other = split_words(rpc("eth_call", call)["result"])
    changed = {TOKEN_ADDRESS: {"stateDiff": {to_word(slot): to_word(held)}}}
    replaced = {TOKEN_ADDRESS: {"state": {to_word(slot): to_word(held)}}}
    of_wallet = {"to": TOKEN_ADDRESS, "data": encode_balance_call(WALLET)}

    assert split_words(rpc("eth_call", of_wallet, "latest", changed)["result"]) == [77]
    assert split_words(rpc("eth_call", of_wallet, "latest", replaced)["result"]) == [77]
    assert split_words(rpc("eth_call", call, "latest", changed)["result"]) == other
    assert split_words(rpc("eth_call", call, "latest", replaced)["result"]) == [0]


def test_overridden_nonce_decides_created_address(rpc: Rpc):
    own_address = "0x3060005260206000f3"

    addresses = {
        rpc("eth_call", {"from": EMPTY, "data": own_address}, "latest", {EMPTY: {"nonce": nonce}})["result"]
        for nonce in ("0x1", "0x2", "0x80")
    }

    # hash of sender and nonce in RLP
    first = keccak(bytes.fromhex("d694") + to_canonical_address(EMPTY) + b"\x01")[12:]
    assert len(addresses) == 3
    assert to_word(int.from_bytes(first, "big")) in addresses


def test_block_override_sets_time_and_height(rpc: Rpc):
    call, code = {"to": EMPTY}, {EMPTY: {"code": RETURN_NUMBER_TIME}}
    block = {"number": "0x7a120", "time": "0x6b49d200"}

    assert split_words(rpc("eth_call", call, "latest", code, block)["result"]) == [500_000, 1_800_000_000]
    assert split_words(rpc("eth_call", call, "latest", code)["result"])[0] < 500_000


def test_gas_estimate_uses_overrides(rpc: Rpc):
    call, override = {"to": EMPTY}, {EMPTY: {"code": WRITE_SLOT_1}}

    assert rpc("eth_estimateGas", call, "latest")["result"] == hex(21_000)
    assert int(rpc("eth_estimateGas", call, "latest", override)["result"], 16) > 41_000
    assert int(rpc("eth_estimateGas", {"data": RETURN_42}, "latest")["result"], 16) > 53_000


def test_overridden_slot_costs_like_stored(rpc: Rpc):
    call, account = {"to": EMPTY}, {"code": WRITE_SLOT_1, "stateDiff": {to_word(1): to_word(3)}}

    # 21,000, two pushes, and 5,000 for the change of a slot that was not changed before
    assert rpc("eth_estimateGas", call, "latest", {EMPTY: account})["result"] == hex(26_006)


def test_gas_cap_is_fifty_million(rpc: Rpc):
    remaining = {EMPTY: {"code": "0x5a60005260206000f3"}}

    (most,) = split_words(rpc("eth_call", {"to": EMPTY, "gas": hex(10**12)}, "latest", remaining)["result"])
    (default,) = split_words(rpc("eth_call", {"to": EMPTY}, "latest", remaining)["result"])

    assert most == default == 50_000_000 - 21_000 - 2


def test_endless_loop_runs_out_of_gas(rpc: Rpc):
    start = time.monotonic()

    error = rpc("eth_call", {"to": EMPTY}, "latest", {EMPTY: {"code": LOOP}})["error"]

    assert (error["code"], "out of gas" in error["message"].lower()) == (-32000, True)
    assert time.monotonic() - start < 5, "all of its gas takes longer"


def test_endless_loop_leaves_gas_to_its_caller(rpc: Rpc):
    # calls the loop with a million gas, and returns what is left
    caller = f"0x6000600060006000600073{EMPTY[2:]}620f4240f1505a60005260206000f3"
    overrides = {EMPTY: {"code": LOOP}, WALLET: {"code": caller}}

    (left,) = split_words(rpc("eth_call", {"to": WALLET, "gas": "0x1e8480"}, "latest", overrides)["result"])

    assert 900_000 < left < 1_000_000


def test_call_ends_at_its_time(rpc: Rpc, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("centgate.devchain.call_limits.CALL_SECONDS", 0.02)
    # calls itself without end
    recursion = "0x5b60006000600060006000305af150600056"

    error = rpc("eth_call", {"to": EMPTY}, "latest", {EMPTY: {"code": recursion}})["error"]

    assert error == {"code": -32000, "message": "execution aborted (timeout = 0.02s)"}


def test_long_transaction_is_mined_in_full(rpc: Rpc):
    # counts down from 12,000
    call = {"to": EMPTY, "gas": hex(10**6)}
    override = {EMPTY: {"code": "0x612ee05b600190038060035700"}}

    assert "error" in rpc("eth_call", call, "latest", override)
    assert 150_000 < int(rpc("eth_estimateGas", call, "latest", override)["result"], 16) < 500_000


def test_call_ends_at_its_gas(rpc: Rpc):
    error = rpc("eth_call", {"to": EMPTY, "gas": "0x186a0"}, "latest", {EMPTY: {"code": LOOP}})["error"]

    assert (error["code"], error["message"].lower().startswith("execution failed: out of gas")) == (
        -32000,
        True,
    )


@pytest.mark.parametrize(
    "override",
    [
        [],
        {"0x12": {"balance": "0x1"}},
        {EMPTY: 3},
        {EMPTY: {"balances": "0x1"}},
        {EMPTY: {"balance": 1}},
        {EMPTY: {"balance": "0x01"}},
        {EMPTY: {"code": "0x6"}},
        {EMPTY: {"state": {"0x1": to_word(1)}}},
        {EMPTY: {"stateDiff": {to_word(1): "0x1"}}},
        {EMPTY: {"state": {}, "stateDiff": {}}},
    ],
)
@pytest.mark.parametrize("method", ["eth_call", "eth_estimateGas", "eth_createAccessList"])
def test_malformed_override_is_refused(rpc: Rpc, method: str, override: Any):
    assert rpc(method, {"to": EMPTY}, "latest", override)["error"]["code"] == -32602


def test_malformed_block_override_is_refused(rpc: Rpc):
    assert rpc("eth_call", {"to": EMPTY}, "latest", None, {"height": "0x1"})["error"]["code"] == -32602


def test_access_list_names_balance_slot(rpc: Rpc):
    balance = {"to": TOKEN_ADDRESS, "data": encode_balance_call(WALLET)}
    (slot,) = (slot for slot in build_storage({WALLET: 1}) if slot > 1000)

    created = rpc("eth_createAccessList", balance, "latest")["result"]

    assert created["accessList"] == [{"address": TOKEN_ADDRESS.lower(), "storageKeys": [to_word(slot)]}]
    assert int(created["gasUsed"], 16) > 21_000


def test_access_list_covers_failed_call(rpc: Rpc):
    read_then_revert = {EMPTY: {"code": "0x6001545060006000fd"}}

    created = rpc("eth_createAccessList", {"to": EMPTY}, "latest", read_then_revert)["result"]

    assert created["accessList"] == [{"address": EMPTY, "storageKeys": [to_word(1)]}]
    assert created["error"] == "execution reverted"


def test_access_list_omits_sender_and_recipient(rpc: Rpc):
    look_at_token = {EMPTY: {"code": f"0x73{TOKEN_ADDRESS[2:]}3b5032315000"}}

    created = rpc("eth_createAccessList", {"from": WALLET, "to": EMPTY}, "latest", look_at_token)["result"]

    assert created["accessList"] == [{"address": TOKEN_ADDRESS.lower(), "storageKeys": []}]


def test_debug_methods_do_not_exist(rpc: Rpc):
    for method in ("debug_traceCall", "debug_traceTransaction", "trace_call"):
        assert rpc(method, {"to": EMPTY}, "latest")["error"]["code"] == -32601


def test_bundle_of_the_greatest_size_is_called_in_full(rpc: Rpc):
    multicall = load_contract(CONTRACTS, "Infrastructure", "Multicall3").runtime_code
    content = encode_aggregate([(TOKEN_ADDRESS, bytes.fromhex("06fdde03"))] * MULTICALL_BATCH)  # name()
    call, code = {"to": MULTICALL, "data": "0x" + content.hex()}, {"code": "0x" + multicall.hex()}

    answer = rpc("eth_call", call, "latest", {MULTICALL: code})

    assert all(parse_aggregate(bytes.fromhex(answer["result"][2:]), MULTICALL_BATCH))
