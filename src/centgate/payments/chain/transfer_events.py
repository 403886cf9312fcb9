"""Token events of payments by authorization (EIP-3009), read from one node.

The proof of a payment is a successful transaction in which the token's next event after
`AuthorizationUsed(payer, nonce)` is the `Transfer` of its amount from the payer to the recipient. EIP-3009's
reference implementation and Circle's tokens emit the two events one after the other.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal, cast

from msgspec import Struct

from centgate.payments.chain.payment_node import SPAN, ChainUnreachable, PaymentNode, parse_quantity
from centgate.payments.payment_key import PaymentKey
from centgate.signing.evm import encode_word, keccak

AUTHORIZATION_USED = "0x" + keccak(b"AuthorizationUsed(address,bytes32)").hex()
_AUTHORIZATION_CANCELED = "0x" + keccak(b"AuthorizationCanceled(address,bytes32)").hex()
_TRANSFER = "0x" + keccak(b"Transfer(address,address,uint256)").hex()
MAX_SPANS = 60
"""Maximum number of spans to search, from the claim on."""


class AuthorizedTransfer(Struct, frozen=True):
    """A token transfer by authorization (EIP-3009); addresses are in lower case."""

    payer: str
    nonce: str
    pay_to: str
    amount: int


def parse_authorized_transfers(receipt: dict[str, Any], asset: str) -> tuple[AuthorizedTransfer, ...]:
    """Parse the transfers of a token by authorization from a transaction receipt, in order.

    The token's next event after `AuthorizationUsed(payer, nonce)` must be a `Transfer` from that payer.
    """
    events = [log for log in receipt["logs"] if log["address"].lower() == asset]
    return tuple(
        AuthorizedTransfer(
            _decode_address(used_topics[1]),
            used_topics[2],
            _decode_address(moved_topics[2]),
            parse_quantity(transfer["data"]),
        )
        for event, transfer in pairwise(events)
        if (used_topics := _topics(event))[:1] == [AUTHORIZATION_USED]
        and (moved_topics := _topics(transfer))[:2] == [_TRANSFER, used_topics[1]]
    )


async def read_authorized_transfers(
    node: PaymentNode, transaction: str, asset: str
) -> tuple[AuthorizedTransfer, ...]:
    """Return the transfers of a token by authorization in a successful transaction, in order."""
    return parse_authorized_transfers(await read_successful_receipt(node, transaction), asset)


async def find_transactions_to(
    node: PaymentNode, asset: str, pay_to: str, first: int, last: int
) -> tuple[tuple[int, str], ...]:
    """Return block and hash of each transaction that moved a token to an address, in order."""
    topic = "0x" + encode_word(pay_to)
    logs_filter = {
        "address": asset,
        "fromBlock": hex(first),
        "toBlock": hex(last),
        "topics": [_TRANSFER, None, topic],
    }
    logs = cast(list[dict[str, Any]], await node.call("eth_getLogs", logs_filter))
    found = {
        (number, str(log["transactionHash"]).lower())
        for log in logs
        if first <= (number := parse_quantity(log["blockNumber"])) <= last
        and log["address"].lower() == asset
        and (topics := _topics(log))[:1] == [_TRANSFER]
        and topics[2:] == [topic]
        and not log.get("removed")
    }
    return tuple(sorted(found))


async def read_received_amount(
    node: PaymentNode, transaction: str, asset: str, recipient: str
) -> int | Literal["reverted", "unknown"]:
    """Return the amount of a token that a transaction moved to an address; `unknown` without a receipt."""
    receipt = await node.call("eth_getTransactionReceipt", transaction)
    if receipt is None:
        return "unknown"
    if parse_quantity(receipt["status"]) != 1:
        return "reverted"
    topic = "0x" + encode_word(recipient)
    events = [log for log in receipt["logs"] if log["address"].lower() == asset]
    return sum(
        parse_quantity(log["data"])
        for log in events
        if (topics := _topics(log))[:1] == [_TRANSFER] and topics[1] != topic == topics[2]
    )


async def find_end_of_authorization(
    node: PaymentNode, key: PaymentKey, first: int, latest: int
) -> dict[str, Any] | None:
    """Return the event that used or cancelled the nonce, None if there is no event since `first`.

    Raises ChainUnreachable if there are more blocks than `MAX_SPANS` spans.
    """
    for start in range(first, latest + 1, SPAN):
        if start >= first + MAX_SPANS * SPAN:
            raise ChainUnreachable("too many blocks since the payment was submitted")
        logs_filter = {
            "address": key.asset,
            "fromBlock": hex(start),
            "toBlock": hex(min(latest, start + SPAN - 1)),
            "topics": [
                [AUTHORIZATION_USED, _AUTHORIZATION_CANCELED],
                "0x" + encode_word(key.payer),
                key.nonce,
            ],
        }
        logs = cast(list[dict[str, Any]], await node.call("eth_getLogs", logs_filter))
        for log in logs:
            in_range = first <= parse_quantity(log["blockNumber"]) <= latest
            if in_range and is_end_of_authorization(log, key) and not log.get("removed"):
                return log
    return None


def is_end_of_authorization(log: dict[str, Any], key: PaymentKey) -> bool:
    """Return True for the use or the cancellation of this authorization."""
    topics = _topics(log)
    return (
        log["address"].lower() == key.asset
        and topics[:1] in ([AUTHORIZATION_USED], [_AUTHORIZATION_CANCELED])
        and topics[1:] == ["0x" + encode_word(key.payer), key.nonce]
    )


async def read_successful_receipt(node: PaymentNode, transaction: str) -> dict[str, Any]:
    """Return the receipt of a transaction from a node with its event. Raises ChainUnreachable without one."""
    receipt = cast(dict[str, Any] | None, await node.call("eth_getTransactionReceipt", transaction))
    if receipt is None or parse_quantity(receipt["status"]) != 1:
        raise ChainUnreachable("the node has an event without its transaction")
    return receipt


def _topics(log: dict[str, Any]) -> list[str]:
    return [topic.lower() for topic in log["topics"]]


def _decode_address(topic: str) -> str:
    return "0x" + topic[-40:]
