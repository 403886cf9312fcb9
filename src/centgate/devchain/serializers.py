"""Serialize blocks, transactions and receipts for JSON-RPC (Ethereum's execution-apis)."""

# rlp has no type annotations
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from typing import Any

import rlp
from eth.abc import BlockAPI

from centgate.devchain.chain import MinedTransaction

Json = dict[str, Any]


def encode_quantity(number: int) -> str:
    return hex(number)


def encode_bytes(value: bytes) -> str:
    return "0x" + value.hex()


def encode_word(number: int) -> str:
    return "0x" + number.to_bytes(32, "big").hex()


def serialize_block(block: BlockAPI, transactions: list[Json] | list[str]) -> Json:
    header: Any = block.header  # each fork adds fields that the common type does not have
    return {
        "number": encode_quantity(block.number),
        "hash": encode_bytes(block.hash),
        "parentHash": encode_bytes(header.parent_hash),
        "timestamp": encode_quantity(header.timestamp),
        "nonce": encode_bytes(header.nonce),
        "mixHash": encode_bytes(header.mix_hash),
        "difficulty": encode_quantity(header.difficulty),
        "totalDifficulty": "0x0",
        "extraData": encode_bytes(header.extra_data),
        "miner": encode_bytes(header.coinbase),
        "gasLimit": encode_quantity(header.gas_limit),
        "gasUsed": encode_quantity(header.gas_used),
        "baseFeePerGas": encode_quantity(header.base_fee_per_gas),
        "blobGasUsed": encode_quantity(header.blob_gas_used),
        "excessBlobGas": encode_quantity(header.excess_blob_gas),
        "parentBeaconBlockRoot": encode_bytes(header.parent_beacon_block_root),
        "requestsHash": encode_bytes(header.requests_hash),
        "stateRoot": encode_bytes(header.state_root),
        "transactionsRoot": encode_bytes(header.transaction_root),
        "receiptsRoot": encode_bytes(header.receipt_root),
        "withdrawalsRoot": encode_bytes(header.withdrawals_root),
        "sha3Uncles": encode_bytes(header.uncles_hash),
        "logsBloom": _encode_bloom(header.bloom),
        "size": encode_quantity(len(rlp.encode(block))),
        "uncles": [],
        "withdrawals": [],
        "transactions": transactions,
    }


def serialize_transaction(transaction: Any, block: BlockAPI | None) -> Json:
    """Serialize a transaction; `block` is None while it is queued."""
    kind: int = getattr(transaction, "type_id", None) or 0
    shape: Json = {
        "hash": encode_bytes(transaction.hash),
        "type": encode_quantity(kind),
        "nonce": encode_quantity(transaction.nonce),
        "from": encode_bytes(transaction.sender),
        "to": encode_bytes(transaction.to) if transaction.to else None,
        "value": encode_quantity(transaction.value),
        "gas": encode_quantity(transaction.gas),
        "input": encode_bytes(transaction.data),
        "r": encode_quantity(transaction.r),
        "s": encode_quantity(transaction.s),
        "v": encode_quantity(transaction.y_parity if kind else transaction.v),
        "blockHash": encode_bytes(block.hash) if block else None,
        "blockNumber": encode_quantity(block.number) if block else None,
        "transactionIndex": "0x0" if block else None,
    }
    if transaction.chain_id is not None:
        shape["chainId"] = encode_quantity(transaction.chain_id)
    if kind:
        shape["yParity"] = shape["v"]
        shape["accessList"] = [
            {"address": encode_bytes(address), "storageKeys": [encode_word(slot) for slot in slots]}
            for address, slots in transaction.access_list
        ]
    if kind >= 2:
        shape["maxFeePerGas"] = encode_quantity(transaction.max_fee_per_gas)
        shape["maxPriorityFeePerGas"] = encode_quantity(transaction.max_priority_fee_per_gas)
    if kind == 4:
        shape["authorizationList"] = [
            {
                "chainId": encode_quantity(one.chain_id),
                "address": encode_bytes(one.address),
                "nonce": encode_quantity(one.nonce),
                "yParity": encode_quantity(one.y_parity),
                "r": encode_quantity(one.r),
                "s": encode_quantity(one.s),
            }
            for one in transaction.authorization_list
        ]
    shape["gasPrice"] = encode_quantity(_effective_gas_price(transaction, block))
    return shape


def serialize_receipt(mined: MinedTransaction) -> Json:
    transaction, receipt, block = mined.transaction, mined.receipt, mined.block
    shape = serialize_transaction(transaction, block)
    return {
        "transactionHash": shape["hash"],
        "transactionIndex": "0x0",
        "blockHash": shape["blockHash"],
        "blockNumber": shape["blockNumber"],
        "type": shape["type"],
        "from": shape["from"],
        "to": shape["to"],
        "status": encode_quantity(int.from_bytes(receipt.state_root, "big")),
        "gasUsed": encode_quantity(receipt.gas_used),
        "cumulativeGasUsed": encode_quantity(receipt.gas_used),
        "effectiveGasPrice": shape["gasPrice"],
        "contractAddress": encode_bytes(mined.created) if mined.created else None,
        "logs": serialize_logs(mined),
        "logsBloom": _encode_bloom(receipt.bloom),
    }


def serialize_logs(mined: MinedTransaction) -> list[Json]:
    return [
        {
            "address": encode_bytes(log.address),
            "topics": [encode_word(topic) for topic in log.topics],
            "data": encode_bytes(log.data),
            "logIndex": encode_quantity(index),
            "transactionHash": encode_bytes(mined.transaction.hash),
            "transactionIndex": "0x0",
            "blockHash": encode_bytes(mined.block.hash),
            "blockNumber": encode_quantity(mined.block.number),
            "removed": False,
        }
        for index, log in enumerate(mined.receipt.logs)
    ]


def _effective_gas_price(transaction: Any, block: BlockAPI | None) -> int:
    base_fee = block.header.base_fee_per_gas if block else 0
    return min(transaction.max_fee_per_gas, base_fee + transaction.max_priority_fee_per_gas)


def _encode_bloom(bloom: int) -> str:
    return "0x" + bloom.to_bytes(256, "big").hex()
