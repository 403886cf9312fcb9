"""What became of a settlement whose outcome is unknown: the chain knows.

A used nonce alone does not prove that we were paid: its owner can cancel an authorization, or spend the nonce
on somebody else. So the transaction is looked up by its `AuthorizationUsed` or `AuthorizationCanceled` event,
and must hold a `Transfer` of our amount to our address (EIP-3009, ERC-20).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import aiohttp
import orjson

from centgate.evm import keccak
from centgate.payments.authorization import Payment

_AUTHORIZATION_STATE = keccak(b"authorizationState(address,bytes32)")[:4].hex()
_AUTHORIZATION_USED = "0x" + keccak(b"AuthorizationUsed(address,bytes32)").hex()
_AUTHORIZATION_CANCELED = "0x" + keccak(b"AuthorizationCanceled(address,bytes32)").hex()
_TRANSFER = "0x" + keccak(b"Transfer(address,address,uint256)").hex()

SPAN = 2000
"""Blocks asked for at a time: public nodes refuse longer ranges."""
WITHOUT_TRANSACTIONS = False
MAX_ANSWER = 4 << 20
"""Bytes of an answer that are read."""
WINDOWS = 60
"""At most this many spans are searched, back from the newest block."""


class ChainUnreachable(Exception):
    """The node did not say what we asked."""


@dataclass(frozen=True, slots=True)
class Paid:
    """The payment reached us in `transaction`."""

    transaction: str


Fate = Paid | Literal["unused", "expired", "lost"]
"""`unused`: it can still be settled; `expired`: it never can; `lost`: its nonce went to something else."""


class Chain:
    """A JSON-RPC node of the payment network, asked about authorizations."""

    def __init__(self, session: aiohttp.ClientSession, url: str, timeout: float = 10) -> None:
        self._session = session
        self._url = url
        self._timeout = aiohttp.ClientTimeout(total=timeout)

    async def has_code(self, address: str) -> bool:
        """Whether a contract, or an account that delegates to one, stands at the address."""
        return (await self._ask("eth_getCode", address, "latest")) not in (None, "", "0x")

    async def fate(self, payment: Payment, since: float) -> Fate:
        """What became of a payment first presented at `since` (seconds since 1970); ChainUnreachable."""
        try:
            return await self._fate(payment, since)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            # a light or pruned node answers null where another has a block
            raise ChainUnreachable("the node answered in a shape that is not known") from error

    async def _fate(self, payment: Payment, since: float) -> Fate:
        latest = await self._block("latest")
        if not await self._used(payment):
            # the state is that of a block at least as new, so an authorization past its end stays unused
            return "expired" if _number(latest["timestamp"]) >= payment.valid_before else "unused"
        transaction = await self._spent_in(payment, latest, since)
        if transaction is None:
            raise ChainUnreachable("the node has no event for a nonce that is used")
        return Paid(transaction) if await self._pays_us(payment, transaction) else "lost"

    async def _used(self, payment: Payment) -> bool:
        data = f"0x{_AUTHORIZATION_STATE}{_word(payment.key.payer)}{payment.key.nonce[2:]}"
        state = await self._ask("eth_call", {"to": payment.key.asset, "data": data}, "latest")
        return _number(state) != 0

    async def _spent_in(self, payment: Payment, latest: dict[str, Any], since: float) -> str | None:
        """The transaction that used or cancelled it: from the newest block back to when the payment came."""
        to = _number(latest["number"])
        for _ in range(WINDOWS):
            start = max(0, to - SPAN + 1)
            logs = await self._ask(
                "eth_getLogs",
                {
                    "address": payment.key.asset,
                    "fromBlock": hex(start),
                    "toBlock": hex(to),
                    "topics": [
                        [_AUTHORIZATION_USED, _AUTHORIZATION_CANCELED],
                        "0x" + _word(payment.key.payer),
                        payment.key.nonce,
                    ],
                },
            )
            if logs:
                return str(cast(list[dict[str, Any]], logs)[0]["transactionHash"])
            if start == 0 or _number((await self._block(hex(start)))["timestamp"]) < since - 600:
                return None
            to = start - 1
        return None

    async def _pays_us(self, payment: Payment, transaction: str) -> bool:
        receipt = cast(dict[str, Any], await self._ask("eth_getTransactionReceipt", transaction) or {})
        ours = [_TRANSFER, "0x" + _word(payment.key.payer), "0x" + _word(payment.terms.pay_to.lower())]
        return _number(receipt.get("status", "0x0")) == 1 and any(
            log["address"].lower() == payment.key.asset
            and [topic.lower() for topic in log["topics"]] == ours
            and _number(log["data"]) == payment.terms.amount
            for log in receipt.get("logs", [])
        )

    async def _block(self, number: str) -> dict[str, Any]:
        return cast(dict[str, Any], await self._ask("eth_getBlockByNumber", number, WITHOUT_TRANSACTIONS))

    async def _ask(self, method: str, *params: Any) -> Any:
        body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        try:
            async with self._session.post(
                self._url,
                data=body,
                headers={"Content-Type": "application/json"},
                timeout=self._timeout,
                allow_redirects=False,
            ) as response:
                answer = orjson.loads(await _read(response))
            return answer["result"]
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise ChainUnreachable(f"{method} failed") from error


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER:
            raise ValueError("the node's answer is too long")
    return bytes(body)


def _word(address: str) -> str:
    return address.lower().removeprefix("0x").rjust(64, "0")


def _number(quantity: Any) -> int:
    try:
        return int(quantity, 16)
    except (TypeError, ValueError) as error:
        raise ChainUnreachable(f"not a number: {str(quantity)[:80]}") from error
