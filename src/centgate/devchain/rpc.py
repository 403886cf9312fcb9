"""JSON-RPC server of the chain over HTTP, with the methods that wallets, web3.py, viem and curl use."""

import json
from collections.abc import Callable
from typing import Any, cast

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from centgate.devchain.chain import (
    BASE_FEE,
    CALL_GAS_CAP,
    GAS_LIMIT,
    TIP,
    BlockTag,
    CallReverted,
    EvmCall,
    EvmChain,
    MinedTransaction,
    TransactionRejected,
)
from centgate.devchain.overrides import parse_account_overrides, parse_block_override
from centgate.devchain.serializers import (
    Json,
    encode_bytes,
    encode_quantity,
    encode_word,
    serialize_block,
    serialize_logs,
    serialize_receipt,
    serialize_transaction,
)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
REFUSED = -32000
REVERTED = 3
# the selectors of Solidity's Error(string) and Panic(uint256)
ERROR, PANIC = bytes.fromhex("08c379a0"), bytes.fromhex("4e487b71")
LATEST = {None, "latest", "pending", "safe", "finalized"}


class BadParams(Exception):
    """Invalid parameters of a method; the message names them."""


def create_rpc_app(chain: EvmChain) -> Starlette:
    """Create the web application of a chain. Run it in one event loop: the chain is not thread-safe."""

    async def endpoint(request: Request) -> Response:
        answer = _handle_body(chain, await request.body())
        if answer is None:
            return Response(status_code=204)
        return Response(json.dumps(answer), media_type="application/json")

    # allow web pages as clients
    cors = Middleware(CORSMiddleware, allow_origins=["*"], allow_headers=["*"])
    return Starlette(routes=[Route("/", endpoint, methods=["POST"])], middleware=[cors])


def _handle_body(chain: EvmChain, body: bytes) -> Json | list[Json] | None:
    try:
        message: Any = json.loads(body)
    except ValueError:
        return _error_response(None, PARSE_ERROR, "parse error")
    if not isinstance(message, list):
        return _handle_request(chain, message)
    if not message:
        return _error_response(None, INVALID_REQUEST, "an empty batch")
    batch = cast("list[Any]", message)
    return [answer for one in batch if (answer := _handle_request(chain, one)) is not None] or None


def _handle_request(chain: EvmChain, message: Any) -> Json | None:
    match message:
        case {"method": str(method)}:
            request: Json = message
        case _:
            return _error_response(None, INVALID_REQUEST, "not a request")
    answer = _call_method(chain, method, request.get("params") or [])
    # a request without an id is a notification, and has no answer
    return {"jsonrpc": "2.0", "id": request["id"], **answer} if "id" in request else None


def _call_method(chain: EvmChain, method: str, params: Any) -> Json:
    function = METHODS.get(method)
    if function is None:
        return _error_member(UNKNOWN_METHOD, f"the method {method} does not exist or is not available")
    if not isinstance(params, list):
        return _error_member(INVALID_PARAMS, "params must be a list")
    try:
        return {"result": function(chain, *params)}
    except CallReverted as revert:
        return _error_member(REVERTED, _revert_message(revert.data), encode_bytes(revert.data))
    except TransactionRejected as refusal:
        return _error_member(REFUSED, str(refusal))
    except (BadParams, TypeError, ValueError, LookupError, AttributeError) as error:
        return _error_member(INVALID_PARAMS, f"invalid params: {error}")


def _error_response(request_id: Any, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, **_error_member(code, message)}


def _error_member(code: int, message: str, revert: str | None = None) -> Json:
    return {"error": {"code": code, "message": message} | ({} if revert is None else {"data": revert})}


def _revert_message(reason: bytes) -> str:
    if reason[:4] == ERROR and len(reason) >= 68:
        length = int.from_bytes(reason[36:68], "big")
        return f"execution reverted: {reason[68 : 68 + length].decode(errors='replace')}"
    if reason[:4] == PANIC:
        return f"execution reverted: panic {int.from_bytes(reason[4:36], 'big'):#04x}"
    return "execution reverted"


def _get_chain_id(chain: EvmChain) -> str:
    return encode_quantity(chain.chain_id)


def _get_net_version(chain: EvmChain) -> str:
    return str(chain.chain_id)


def _get_client_version(_chain: EvmChain) -> str:
    return "centgate-devchain/py-evm"


def _get_accounts(_chain: EvmChain) -> list[str]:
    return []


def _get_syncing(_chain: EvmChain) -> bool:
    return False


def _get_block_number(chain: EvmChain) -> str:
    return encode_quantity(chain.height)


def _get_gas_price(_chain: EvmChain) -> str:
    return encode_quantity(BASE_FEE + TIP)


def _get_tip(_chain: EvmChain) -> str:
    return encode_quantity(TIP)


def _get_fee_history(
    chain: EvmChain, count: str | int, newest: Any, percentiles: list[float] | None = None
) -> Json:
    last = _block_height(chain, newest)
    block_count = count if isinstance(count, int) else int(count, 16)
    blocks = chain.blocks[max(0, last - block_count + 1) : last + 1]
    history: Json = {
        "oldestBlock": encode_quantity(blocks[0].number),
        "baseFeePerGas": [encode_quantity(BASE_FEE)] * (len(blocks) + 1),
        "gasUsedRatio": [block.header.gas_used / block.header.gas_limit for block in blocks],
    }
    if percentiles:
        history["reward"] = [[encode_quantity(TIP)] * len(percentiles) for _ in blocks]
    return history


def _get_balance(chain: EvmChain, address: str, block: Any = None) -> str:
    return encode_quantity(
        chain.state_at(_parse_block_tag(chain, block)).get_balance(_parse_address(address))
    )


def _get_code(chain: EvmChain, address: str, block: Any = None) -> str:
    return encode_bytes(chain.state_at(_parse_block_tag(chain, block)).get_code(_parse_address(address)))


def _get_storage(chain: EvmChain, address: str, slot: str, block: Any = None) -> str:
    return encode_word(
        chain.state_at(_parse_block_tag(chain, block)).get_storage(_parse_address(address), int(slot, 16))
    )


def _get_transaction_count(chain: EvmChain, address: str, block: Any = None) -> str:
    return encode_quantity(chain.state_at(_parse_block_tag(chain, block)).get_nonce(_parse_address(address)))


def _eth_call(
    chain: EvmChain, call: Json, block: Any = None, overrides: Any = None, block_overrides: Any = None
) -> str:
    request = _read_call(call, CALL_GAS_CAP, overrides, block_overrides)
    return encode_bytes(chain.run_call(request, _parse_block_tag(chain, block)))


def _estimate_gas(
    chain: EvmChain, call: Json, block: Any = None, overrides: Any = None, block_overrides: Any = None
) -> str:
    request = _read_call(call, GAS_LIMIT, overrides, block_overrides)
    return encode_quantity(chain.estimate_gas(request, _parse_block_tag(chain, block)))


def _create_access_list(chain: EvmChain, call: Json, block: Any = None, overrides: Any = None) -> Json:
    request = _read_call(call, CALL_GAS_CAP, overrides)
    created = chain.create_access_list(request, _parse_block_tag(chain, block))
    access_list = [
        {"address": encode_bytes(address), "storageKeys": [encode_word(slot) for slot in sorted(slots)]}
        for address, slots in created.slots.items()
    ]
    error = {} if created.error is None else {"error": created.error}
    return {"accessList": access_list, "gasUsed": encode_quantity(created.gas_used)} | error


def _send_raw_transaction(chain: EvmChain, raw: str) -> str:
    return encode_bytes(chain.send_transaction(_parse_bytes(raw)))


def _get_transaction(chain: EvmChain, transaction_hash: str) -> Json | None:
    target_hash = _parse_bytes(transaction_hash)
    if mined := chain.mined_transactions.get(target_hash):
        return serialize_transaction(mined.transaction, mined.block)
    queued = (one for one in chain.queued_transactions.values() if one.hash == target_hash)
    return next((serialize_transaction(one, None) for one in queued), None)


def _get_receipt(chain: EvmChain, transaction_hash: str) -> Json | None:
    mined = chain.mined_transactions.get(_parse_bytes(transaction_hash))
    return serialize_receipt(mined) if mined else None


def _get_block_by_number(chain: EvmChain, block: Any, full: Any = None) -> Json | None:
    number = _block_height(chain, block)
    return _render_block(chain, number, full) if number <= chain.height else None


def _get_block_by_hash(chain: EvmChain, block_hash: str, full: Any = None) -> Json | None:
    number = _height_of_hash(chain, block_hash)
    return None if number is None else _render_block(chain, number, full)


def _render_block(chain: EvmChain, number: int, full: Any) -> Json:
    block = chain.blocks[number]
    if full:
        return serialize_block(block, [serialize_transaction(one, block) for one in block.transactions])
    return serialize_block(block, [encode_bytes(one.hash) for one in block.transactions])


def _get_logs(chain: EvmChain, log_filter: Json) -> list[Json]:
    addresses = _to_lower_set(log_filter.get("address"))
    topic_filters: list[Any] = log_filter.get("topics") or []
    topics = [_to_lower_set(topic) for topic in topic_filters]
    return [
        log
        for mined in _find_mined(chain, log_filter)
        for log in serialize_logs(mined)
        if (addresses is None or log["address"] in addresses) and _topics_match(topics, log["topics"])
    ]


def _find_mined(chain: EvmChain, log_filter: Json) -> list[MinedTransaction]:
    if block_hash := log_filter.get("blockHash"):
        first = last = _height_of_hash(chain, block_hash)
        if first is None or last is None:
            raise TransactionRejected(f"no block {block_hash}")
    else:
        first, last = (
            _block_height(chain, log_filter.get("fromBlock")),
            _block_height(chain, log_filter.get("toBlock")),
        )
    blocks = chain.blocks[first : last + 1]
    return [
        chain.mined_transactions[transaction.hash] for block in blocks for transaction in block.transactions
    ]


def _topics_match(topic_filters: list[set[str] | None], topics: list[str]) -> bool:
    return len(topic_filters) <= len(topics) and all(
        choice is None or topic in choice for choice, topic in zip(topic_filters, topics, strict=False)
    )


def _to_lower_set(value: str | list[str] | None) -> set[str] | None:
    if not value:
        return None
    return {one.lower() for one in ([value] if isinstance(value, str) else value)}


def _read_call(call: Json, default_gas: int, overrides: Any, block_overrides: Any = None) -> EvmCall:
    payload = call.get("input") or call.get("data") or "0x"
    return EvmCall(
        sender=_parse_address(call.get("from") or "0x" + "00" * 20),
        to=_parse_address(call["to"]) if call.get("to") else _empty_address(),
        data=_parse_bytes(payload),
        value=int(call.get("value") or "0x0", 16),
        gas=min(int(call.get("gas") or hex(default_gas), 16), CALL_GAS_CAP),
        gas_price=int(call.get("gasPrice") or call.get("maxFeePerGas") or "0x0", 16),
        overrides=parse_account_overrides(overrides),
        block_override=parse_block_override(block_overrides),
    )


def _parse_block_tag(chain: EvmChain, block: Any) -> BlockTag:
    if isinstance(block, dict):
        reference = cast("Json", block)
        if "blockHash" in reference:
            number = _height_of_hash(chain, reference["blockHash"])
            if number is None:
                raise TransactionRejected(f"no block {reference['blockHash']}")
            return number
        block = reference.get("blockNumber")
    if block in LATEST:
        return "latest"
    number = _block_height(chain, block)
    if number > chain.height:
        raise TransactionRejected(f"no block {number}, the latest is {chain.height}")
    return number


def _block_height(chain: EvmChain, block: Any) -> int:
    if block in LATEST:
        return chain.height
    return 0 if block == "earliest" else int(block, 16)


def _height_of_hash(chain: EvmChain, block_hash: str) -> int | None:
    target_hash = _parse_bytes(block_hash)
    return next((block.number for block in reversed(chain.blocks) if block.hash == target_hash), None)


def _parse_address(value: str) -> Any:
    address = _parse_bytes(value)
    if len(address) != 20:
        raise BadParams(f"{value!r} is not an address")
    return address


def _empty_address() -> Any:
    return b""


def _parse_bytes(value: str) -> bytes:
    if not value.startswith("0x"):
        raise BadParams(f"{value!r} has no 0x in front")
    return bytes.fromhex(value[2:])


METHODS: dict[str, Callable[..., Any]] = {
    "web3_clientVersion": _get_client_version,
    "net_version": _get_net_version,
    "eth_chainId": _get_chain_id,
    "eth_accounts": _get_accounts,
    "eth_syncing": _get_syncing,
    "eth_blockNumber": _get_block_number,
    "eth_gasPrice": _get_gas_price,
    "eth_maxPriorityFeePerGas": _get_tip,
    "eth_feeHistory": _get_fee_history,
    "eth_getBalance": _get_balance,
    "eth_getCode": _get_code,
    "eth_getStorageAt": _get_storage,
    "eth_getTransactionCount": _get_transaction_count,
    "eth_call": _eth_call,
    "eth_estimateGas": _estimate_gas,
    "eth_createAccessList": _create_access_list,
    "eth_sendRawTransaction": _send_raw_transaction,
    "eth_getTransactionByHash": _get_transaction,
    "eth_getTransactionReceipt": _get_receipt,
    "eth_getBlockByNumber": _get_block_by_number,
    "eth_getBlockByHash": _get_block_by_hash,
    "eth_getLogs": _get_logs,
}
