"""Serialize blocks, transactions and receipts for JSON-RPC (Ethereum's execution-apis)."""

# rlp has no type annotations
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from typing import Any

import rlp
from eth.abc import BlockAPI

from centgate.devchain.chain import Mined

Json = dict[str, Any]


def quantity(number: int) -> str:
    return hex(number)


def data(value: bytes) -> str:
    return "0x" + value.hex()


def word(number: int) -> str:
    return "0x" + number.to_bytes(32, "big").hex()


def block_shape(block: BlockAPI, transactions: list[Json] | list[str]) -> Json:
    header: Any = block.header  # each fork adds fields that the common type does not have
    return {
        "number": quantity(block.number),
        "hash": data(block.hash),
        "parentHash": data(header.parent_hash),
        "timestamp": quantity(header.timestamp),
        "nonce": data(header.nonce),
        "mixHash": data(header.mix_hash),
        "difficulty": quantity(header.difficulty),
        "totalDifficulty": "0x0",
        "extraData": data(header.extra_data),
        "miner": data(header.coinbase),
        "gasLimit": quantity(header.gas_limit),
        "gasUsed": quantity(header.gas_used),
        "baseFeePerGas": quantity(header.base_fee_per_gas),
        "blobGasUsed": quantity(header.blob_gas_used),
        "excessBlobGas": quantity(header.excess_blob_gas),
        "parentBeaconBlockRoot": data(header.parent_beacon_block_root),
        "requestsHash": data(header.requests_hash),
        "stateRoot": data(header.state_root),
        "transactionsRoot": data(header.transaction_root),
        "receiptsRoot": data(header.receipt_root),
        "withdrawalsRoot": data(header.withdrawals_root),
        "sha3Uncles": data(header.uncles_hash),
        "logsBloom": _encode_bloom(header.bloom),
        "size": quantity(len(rlp.encode(block))),
        "uncles": [],
        "withdrawals": [],
        "transactions": transactions,
    }


def transaction_shape(transaction: Any, block: BlockAPI | None) -> Json:
    """Serialize a transaction; `block` is None while it is queued."""
    kind: int = getattr(transaction, "type_id", None) or 0
    shape: Json = {
        "hash": data(transaction.hash),
        "type": quantity(kind),
        "nonce": quantity(transaction.nonce),
        "from": data(transaction.sender),
        "to": data(transaction.to) if transaction.to else None,
        "value": quantity(transaction.value),
        "gas": quantity(transaction.gas),
        "input": data(transaction.data),
        "r": quantity(transaction.r),
        "s": quantity(transaction.s),
        "v": quantity(transaction.y_parity if kind else transaction.v),
        "blockHash": data(block.hash) if block else None,
        "blockNumber": quantity(block.number) if block else None,
        "transactionIndex": "0x0" if block else None,
    }
    if transaction.chain_id is not None:
        shape["chainId"] = quantity(transaction.chain_id)
    if kind:
        shape["yParity"] = shape["v"]
        shape["accessList"] = [
            {"address": data(address), "storageKeys": [word(slot) for slot in slots]}
            for address, slots in transaction.access_list
        ]
    if kind >= 2:
        shape["maxFeePerGas"] = quantity(transaction.max_fee_per_gas)
        shape["maxPriorityFeePerGas"] = quantity(transaction.max_priority_fee_per_gas)
    if kind == 4:
        shape["authorizationList"] = [
            {
                "chainId": quantity(one.chain_id),
                "address": data(one.address),
                "nonce": quantity(one.nonce),
                "yParity": quantity(one.y_parity),
                "r": quantity(one.r),
                "s": quantity(one.s),
            }
            for one in transaction.authorization_list
        ]
    shape["gasPrice"] = quantity(_effective_gas_price(transaction, block))
    return shape


def receipt_shape(mined: Mined) -> Json:
    transaction, receipt, block = mined.transaction, mined.receipt, mined.block
    shape = transaction_shape(transaction, block)
    return {
        "transactionHash": shape["hash"],
        "transactionIndex": "0x0",
        "blockHash": shape["blockHash"],
        "blockNumber": shape["blockNumber"],
        "type": shape["type"],
        "from": shape["from"],
        "to": shape["to"],
        "status": quantity(int.from_bytes(receipt.state_root, "big")),
        "gasUsed": quantity(receipt.gas_used),
        "cumulativeGasUsed": quantity(receipt.gas_used),
        "effectiveGasPrice": shape["gasPrice"],
        "contractAddress": data(mined.created) if mined.created else None,
        "logs": log_shapes(mined),
        "logsBloom": _encode_bloom(receipt.bloom),
    }


def log_shapes(mined: Mined) -> list[Json]:
    return [
        {
            "address": data(log.address),
            "topics": [word(topic) for topic in log.topics],
            "data": data(log.data),
            "logIndex": quantity(index),
            "transactionHash": data(mined.transaction.hash),
            "transactionIndex": "0x0",
            "blockHash": data(mined.block.hash),
            "blockNumber": quantity(mined.block.number),
            "removed": False,
        }
        for index, log in enumerate(mined.receipt.logs)
    ]


def _effective_gas_price(transaction: Any, block: BlockAPI | None) -> int:
    base_fee = block.header.base_fee_per_gas if block else 0
    return min(transaction.max_fee_per_gas, base_fee + transaction.max_priority_fee_per_gas)


def _encode_bloom(bloom: int) -> str:
    return "0x" + bloom.to_bytes(256, "big").hex()
