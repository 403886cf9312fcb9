"""On-chain status of payments on one node, which decides where a facilitator left the outcome open.

A used nonce does not prove a payment to this seller. Its owner can cancel the authorization or use the nonce
for another recipient, and the payment may have bought an answer elsewhere before it was submitted here. Proof
is a transfer by this authorization (`transfer_events`), in a block after the claim.

"Paid" is accepted from the newest block, as facilitators do. "Never will be paid" ends a payment whose money
may still move in a newer block, so it needs a block that the network calls `safe`.
"""

from __future__ import annotations

from typing import Any, Literal, cast

from msgspec import Struct

from centgate.payments.chain.payment_node import SPAN, ChainUnreachable, PaymentNode, parse_quantity
from centgate.payments.chain.transfer_events import (
    AuthorizedTransfer,
    find_end_of_authorization,
    is_end_of_authorization,
    parse_authorized_transfers,
    read_successful_receipt,
)
from centgate.payments.payment_key import PaymentKey
from centgate.signing.evm import encode_word, keccak

_AUTHORIZATION_STATE = keccak(b"authorizationState(address,bytes32)")[:4].hex()
CLOCK_ALLOWANCE = 600
"""Allowed clock error in seconds, used if no block number was known when a payment was claimed."""


class PaymentQuery(Struct, frozen=True):
    """A payment to look up on the chain, and since when it counts."""

    key: PaymentKey
    pay_to: str
    amount: int
    valid_before: int
    """Seconds since 1970."""
    presented_at: float
    """Seconds since 1970; counts only where `claim_block` is None."""
    claim_block: int | None
    """Newest block number known at the first submission: the transfer must be in a later block."""


class OnchainPayment(Struct, frozen=True):
    """The payment reached `pay_to` in `transaction`, after the claim."""

    transaction: str


OnchainStatus = OnchainPayment | Literal["unspent", "expired_unsafe", "expired", "spent_unsafe", "spent"]
"""`unspent`: the nonce can still be used; `expired`: it never was, and cannot be any more; `spent`: it was
used for anything but this payment after the claim.

`_unsafe`: provisional, from blocks that may still be reorganised.
"""


TransactionStatus = Literal["succeeded", "reverted", "unknown"]
"""`reverted`: and the nonce was unspent after its block. `unknown`: no evidence for this payment."""


async def read_payment_status(
    node: PaymentNode, query: PaymentQuery, used: list[OnchainStatus]
) -> OnchainStatus:
    """Return the status of a payment on one node; appends to `used` if the nonce is used there."""
    latest = await node.read_block("latest")
    number = parse_quantity(latest["number"])
    if not await _is_used(node, query.key, "latest"):
        if query.claim_block is not None and number < query.claim_block:
            raise ChainUnreachable("the node has not reached the block of the claim")
        if parse_quantity(latest["timestamp"]) < query.valid_before:
            return "unspent"
        return await _expiry_status(node, query, number)
    used.append("spent_unsafe")
    first = await _first_block(node, query, number)
    # an event from before the claim is better evidence than the state of its block, which nodes soon prune
    log = await find_end_of_authorization(node, query.key, max(0, first - SPAN), number)
    if log is None:
        return await _status_of_earlier_use(node, query, first - 1, number)
    transaction = str(log["transactionHash"]).lower()
    if parse_quantity(log["blockNumber"]) >= first and await _is_payment(node, query, transaction):
        return OnchainPayment(transaction)
    safe = await node.read_safe_block(number)
    return "spent" if parse_quantity(log["blockNumber"]) <= parse_quantity(safe["number"]) else "spent_unsafe"


async def read_transaction_status(node: PaymentNode, transaction: str, key: PaymentKey) -> TransactionStatus:
    """Return the status of a transaction of a payment on one node."""
    receipt = await node.call("eth_getTransactionReceipt", transaction)
    if receipt is None:
        return "unknown"
    if parse_quantity(receipt["status"]) == 1:
        return "succeeded"
    if not await _holds_nonce(node, transaction, key):
        return "unknown"
    # it may have been reverted because another transaction used the nonce after the nonce was checked
    return "unknown" if await _is_used(node, key, receipt["blockNumber"]) else "reverted"


async def find_payment(node: PaymentNode, query: PaymentQuery, last: int) -> OnchainPayment | None:
    """Search for the payment from the claim to the end of its authorization."""
    first = await _first_block(node, query, last)
    end = min(last, await node.find_first_block_since(query.valid_before, last))
    log = await find_end_of_authorization(node, query.key, first, end)
    if log is None:
        return None
    transaction = str(log["transactionHash"]).lower()
    return OnchainPayment(transaction) if await _is_payment(node, query, transaction) else None


async def _expiry_status(node: PaymentNode, query: PaymentQuery, latest: int) -> OnchainStatus:
    """Return `expired` if the nonce is unspent in a safe block past the end of the authorization."""
    safe = await node.read_safe_block(latest)
    if parse_quantity(safe["timestamp"]) < query.valid_before or await _is_used(
        node, query.key, safe["number"]
    ):
        return "expired_unsafe"
    return "expired"


async def _status_of_earlier_use(
    node: PaymentNode, query: PaymentQuery, before: int, latest: int
) -> OnchainStatus:
    """Return the status of a used nonce that has no event since the claim.

    A node may lack events, so the state of block `before` must show the nonce as used. Raises
    ChainUnreachable if it does not, or if the node has pruned that state.
    """
    if before < 0 or not await _is_used(node, query.key, hex(before)):
        raise ChainUnreachable("the node has no event for a used nonce")
    safe = parse_quantity((await node.read_safe_block(latest))["number"])
    return "spent" if before <= safe or await _is_used(node, query.key, hex(safe)) else "spent_unsafe"


async def _first_block(node: PaymentNode, query: PaymentQuery, latest: int) -> int:
    """Return the first block in which a transfer counts: the one after the claim.

    If no block number was known then, time decides: the first block that is at most `CLOCK_ALLOWANCE` older
    than the claim.
    """
    if query.claim_block is not None:
        return query.claim_block + 1
    return await node.find_first_block_since(query.presented_at - CLOCK_ALLOWANCE, latest)


async def _is_payment(node: PaymentNode, query: PaymentQuery, transaction: str) -> bool:
    receipt = await read_successful_receipt(node, transaction)
    if not any(is_end_of_authorization(log, query.key) for log in receipt["logs"]):
        raise ChainUnreachable("the node has an event that is missing in its transaction")
    expected = AuthorizedTransfer(query.key.payer, query.key.nonce, query.pay_to.lower(), query.amount)
    return expected in parse_authorized_transfers(receipt, query.key.asset)


async def _is_used(node: PaymentNode, key: PaymentKey, block: str) -> bool:
    data = f"0x{_AUTHORIZATION_STATE}{encode_word(key.payer)}{key.nonce[2:]}"
    return parse_quantity(await node.call("eth_call", {"to": key.asset, "data": data}, block)) != 0


async def _holds_nonce(node: PaymentNode, transaction: str, key: PaymentKey) -> bool:
    """Return True if a payment's nonce is in a transaction's data: facilitators may name a wrong hash."""
    data = cast(dict[str, Any] | None, await node.call("eth_getTransactionByHash", transaction))
    return data is not None and key.nonce[2:] in str(data["input"]).lower()
