"""The chain's JSON-RPC over HTTP: as much of it as wallets, web3.py, viem and curl use."""

import json
from collections.abc import Callable
from typing import Any, cast

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from centgate.devchain.chain import BASE_FEE, GAS_LIMIT, TIP, Call, Chain, Mined, Moment, Refused, Reverted
from centgate.devchain.shapes import (
    Json,
    block_shape,
    data,
    log_shapes,
    quantity,
    receipt_shape,
    transaction_shape,
    word,
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
    """The parameters do not fit the method; the message says which."""


def rpc_app(chain: Chain) -> Starlette:
    """The chain as a web application. It must run in one event loop, which is the chain's one thread."""

    async def endpoint(request: Request) -> Response:
        answer = _answer_body(chain, await request.body())
        if answer is None:
            return Response(status_code=204)
        return Response(json.dumps(answer), media_type="application/json")

    # a page in a browser may be the client
    cors = Middleware(CORSMiddleware, allow_origins=["*"], allow_headers=["*"])
    return Starlette(routes=[Route("/", endpoint, methods=["POST"])], middleware=[cors])


def _answer_body(chain: Chain, body: bytes) -> Json | list[Json] | None:
    try:
        asked: Any = json.loads(body)
    except ValueError:
        return _failure(None, PARSE_ERROR, "parse error")
    if not isinstance(asked, list):
        return _answer(chain, asked)
    if not asked:
        return _failure(None, INVALID_REQUEST, "an empty batch")
    batch = cast("list[Any]", asked)
    return [answer for one in batch if (answer := _answer(chain, one)) is not None] or None


def _answer(chain: Chain, asked: Any) -> Json | None:
    match asked:
        case {"method": str(method)}:
            request: Json = asked
        case _:
            return _failure(None, INVALID_REQUEST, "not a request")
    answer = _result(chain, method, request.get("params") or [])
    # a request without an id is a notification, and has no answer
    return {"jsonrpc": "2.0", "id": request["id"], **answer} if "id" in request else None


def _result(chain: Chain, method: str, params: Any) -> Json:
    function = METHODS.get(method)
    if function is None:
        return _error(UNKNOWN_METHOD, f"the method {method} does not exist or is not available")
    if not isinstance(params, list):
        return _error(INVALID_PARAMS, "params must be a list")
    try:
        return {"result": function(chain, *params)}
    except Reverted as revert:
        return _error(REVERTED, _revert_message(revert.data), data(revert.data))
    except Refused as refusal:
        return _error(REFUSED, str(refusal))
    except (BadParams, TypeError, ValueError, LookupError, AttributeError) as error:
        return _error(INVALID_PARAMS, f"invalid params: {error}")


def _failure(request_id: Any, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, **_error(code, message)}


def _error(code: int, message: str, revert: str | None = None) -> Json:
    return {"error": {"code": code, "message": message} | ({} if revert is None else {"data": revert})}


def _revert_message(reason: bytes) -> str:
    if reason[:4] == ERROR and len(reason) >= 68:
        length = int.from_bytes(reason[36:68], "big")
        return f"execution reverted: {reason[68 : 68 + length].decode(errors='replace')}"
    if reason[:4] == PANIC:
        return f"execution reverted: panic {int.from_bytes(reason[4:36], 'big'):#04x}"
    return "execution reverted"


def _chain_id(chain: Chain) -> str:
    return quantity(chain.chain_id)


def _net_version(chain: Chain) -> str:
    return str(chain.chain_id)


def _client_version(_chain: Chain) -> str:
    return "centgate-devchain/py-evm"


def _accounts(_chain: Chain) -> list[str]:
    return []


def _syncing(_chain: Chain) -> bool:
    return False


def _block_number(chain: Chain) -> str:
    return quantity(chain.height)


def _gas_price(_chain: Chain) -> str:
    return quantity(BASE_FEE + TIP)


def _tip(_chain: Chain) -> str:
    return quantity(TIP)


def _fee_history(chain: Chain, count: str | int, newest: Any, percentiles: list[float] | None = None) -> Json:
    last = _number(chain, newest)
    wanted = count if isinstance(count, int) else int(count, 16)
    blocks = chain.blocks[max(0, last - wanted + 1) : last + 1]
    history: Json = {
        "oldestBlock": quantity(blocks[0].number),
        "baseFeePerGas": [quantity(BASE_FEE)] * (len(blocks) + 1),
        "gasUsedRatio": [block.header.gas_used / block.header.gas_limit for block in blocks],
    }
    if percentiles:
        history["reward"] = [[quantity(TIP)] * len(percentiles) for _ in blocks]
    return history


def _balance(chain: Chain, address: str, block: Any = None) -> str:
    return quantity(chain.state(_moment(chain, block)).get_balance(_address(address)))


def _code(chain: Chain, address: str, block: Any = None) -> str:
    return data(chain.state(_moment(chain, block)).get_code(_address(address)))


def _storage(chain: Chain, address: str, slot: str, block: Any = None) -> str:
    return word(chain.state(_moment(chain, block)).get_storage(_address(address), int(slot, 16)))


def _transaction_count(chain: Chain, address: str, block: Any = None) -> str:
    return quantity(chain.state(_moment(chain, block)).get_nonce(_address(address)))


def _call(chain: Chain, call: Json, block: Any = None, overrides: Any = None) -> str:
    if overrides:
        raise BadParams("state overrides are not known here")
    return data(chain.call(_read_call(call), _moment(chain, block)))


def _estimate(chain: Chain, call: Json, block: Any = None) -> str:
    return quantity(chain.estimate(_read_call(call), _moment(chain, block)))


def _send(chain: Chain, raw: str) -> str:
    return data(chain.send(_bytes(raw)))


def _transaction(chain: Chain, transaction_hash: str) -> Json | None:
    wanted = _bytes(transaction_hash)
    if mined := chain.mined.get(wanted):
        return transaction_shape(mined.transaction, mined.block)
    waiting = (one for one in chain.waiting.values() if one.hash == wanted)
    return next((transaction_shape(one, None) for one in waiting), None)


def _receipt(chain: Chain, transaction_hash: str) -> Json | None:
    mined = chain.mined.get(_bytes(transaction_hash))
    return receipt_shape(mined) if mined else None


def _block_by_number(chain: Chain, block: Any, full: Any = None) -> Json | None:
    number = _number(chain, block)
    return _block(chain, number, full) if number <= chain.height else None


def _block_by_hash(chain: Chain, block_hash: str, full: Any = None) -> Json | None:
    number = _number_of_hash(chain, block_hash)
    return None if number is None else _block(chain, number, full)


def _block(chain: Chain, number: int, full: Any) -> Json:
    block = chain.blocks[number]
    if full:
        return block_shape(block, [transaction_shape(one, block) for one in block.transactions])
    return block_shape(block, [data(one.hash) for one in block.transactions])


def _logs(chain: Chain, wanted: Json) -> list[Json]:
    addresses = _one_or_many(wanted.get("address"))
    by_place: list[Any] = wanted.get("topics") or []
    topics = [_one_or_many(topic) for topic in by_place]
    return [
        log
        for mined in _mined_within(chain, wanted)
        for log in log_shapes(mined)
        if (addresses is None or log["address"] in addresses) and _topics_match(topics, log["topics"])
    ]


def _mined_within(chain: Chain, wanted: Json) -> list[Mined]:
    if block_hash := wanted.get("blockHash"):
        first = last = _number_of_hash(chain, block_hash)
        if first is None or last is None:
            raise Refused(f"no block {block_hash}")
    else:
        first, last = _number(chain, wanted.get("fromBlock")), _number(chain, wanted.get("toBlock"))
    within = chain.blocks[first : last + 1]
    return [chain.mined[transaction.hash] for block in within for transaction in block.transactions]


def _topics_match(wanted: list[set[str] | None], topics: list[str]) -> bool:
    return len(wanted) <= len(topics) and all(
        choice is None or topic in choice for choice, topic in zip(wanted, topics, strict=False)
    )


def _one_or_many(value: str | list[str] | None) -> set[str] | None:
    if not value:
        return None
    return {one.lower() for one in ([value] if isinstance(value, str) else value)}


def _read_call(call: Json) -> Call:
    payload = call.get("input") or call.get("data") or "0x"
    return Call(
        sender=_address(call.get("from") or "0x" + "00" * 20),
        to=_address(call["to"]) if call.get("to") else _no_address(),
        data=_bytes(payload),
        value=int(call.get("value") or "0x0", 16),
        gas=min(int(call.get("gas") or hex(GAS_LIMIT), 16), GAS_LIMIT),
    )


def _moment(chain: Chain, block: Any) -> Moment:
    if isinstance(block, dict):
        named = cast("Json", block)
        if "blockHash" in named:
            number = _number_of_hash(chain, named["blockHash"])
            if number is None:
                raise Refused(f"no block {named['blockHash']}")
            return number
        block = named.get("blockNumber")
    if block in LATEST:
        return "latest"
    number = _number(chain, block)
    if number > chain.height:
        raise Refused(f"no block {number}, the latest is {chain.height}")
    return number


def _number(chain: Chain, block: Any) -> int:
    if block in LATEST:
        return chain.height
    return 0 if block == "earliest" else int(block, 16)


def _number_of_hash(chain: Chain, block_hash: str) -> int | None:
    wanted = _bytes(block_hash)
    return next((block.number for block in reversed(chain.blocks) if block.hash == wanted), None)


def _address(value: str) -> Any:
    address = _bytes(value)
    if len(address) != 20:
        raise BadParams(f"{value!r} is not an address")
    return address


def _no_address() -> Any:
    return b""


def _bytes(value: str) -> bytes:
    if not value.startswith("0x"):
        raise BadParams(f"{value!r} has no 0x in front")
    return bytes.fromhex(value[2:])


METHODS: dict[str, Callable[..., Any]] = {
    "web3_clientVersion": _client_version,
    "net_version": _net_version,
    "eth_chainId": _chain_id,
    "eth_accounts": _accounts,
    "eth_syncing": _syncing,
    "eth_blockNumber": _block_number,
    "eth_gasPrice": _gas_price,
    "eth_maxPriorityFeePerGas": _tip,
    "eth_feeHistory": _fee_history,
    "eth_getBalance": _balance,
    "eth_getCode": _code,
    "eth_getStorageAt": _storage,
    "eth_getTransactionCount": _transaction_count,
    "eth_call": _call,
    "eth_estimateGas": _estimate,
    "eth_sendRawTransaction": _send,
    "eth_getTransactionByHash": _transaction,
    "eth_getTransactionReceipt": _receipt,
    "eth_getBlockByNumber": _block_by_number,
    "eth_getBlockByHash": _block_by_hash,
    "eth_getLogs": _logs,
}
