"""The facilitator: who broadcasts a payment, spoken to over HTTP; and what each of its answers means.

Only two answers end a settlement: `success: true` for the payment that was asked about, and a refusal whose
reason says that nothing can have moved. Whatever else comes, a timeout, another status, HTML, a cut body,
`settlement_pending`, leaves the outcome open: the money may have moved.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import orjson
from x402.schemas import SettleResponse

from centgate.payments.authorization import Payment, PaymentKey
from centgate.payments.terms import X402_VERSION
from centgate.payments.wire import NoResponse, Wire
from centgate.settings import Settings

NAME = "facilitator"
MAX_ANSWER = 64 * 1024
"""Bytes of an answer that are read."""

_CERTAIN = re.compile(
    r"(invalid_(?!transaction_state)\w{1,80}|insufficient_\w{1,80}|unsupported_\w{1,80}|missing_eip712_domain"
    r"|network_mismatch|asset_not_deployed_contract|eip6492_factory_not_allowed|smart_wallet_deployment_failed)",
    re.ASCII,
)
"""Reasons after which nothing can have moved: x402's vocabulary and the official facilitator's."""

_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
_NAME = re.compile(r"[!-~]{1,200}")
"""What a transaction may be called in a success: some facilitators answer with a name of their own for it."""

_ABSENT: dict[str, Any] = {"transaction": "", "network": ""}
"""Required by the schema, left out by facilitators that have nothing to say there."""

NONCE_USED = "invalid_exact_evm_nonce_already_used"
REVERTED = "transaction_failed"
"""The facilitator's own transaction failed; the same authorization may have landed in another."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The money moved; `receipt` is x402's SettleResponse for `PAYMENT-RESPONSE`."""

    receipt: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NotSettled:
    """Nothing moved and nothing will; `reason` in x402's vocabulary."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unresolved:
    """The money may or may not have moved."""

    kind: Literal["timeout", "error"]
    message: str
    transaction: str | None = None


Outcome = Settled | NotSettled | Unresolved


class Facilitator:
    """A facilitator's HTTP interface (x402 version 2, section 7)."""

    def __init__(self, settings: Settings, *, notice: Callable[[Outcome], None] = lambda _: None) -> None:
        self._settings = settings
        self._notice = notice
        """Told what comes of each settlement."""
        self._settle_url = settings.facilitator + "/settle"
        self._wire = Wire(self._settle_url, MAX_ANSWER)

    def close(self) -> None:
        """Let go of its connections."""
        self._wire.close()

    async def settle(self, payment: Payment) -> Outcome:
        """Have the payment broadcast; never raises for anything the facilitator does."""
        result = await self._settle(payment)
        self._notice(result)
        return result

    async def _settle(self, payment: Payment) -> Outcome:
        body = orjson.dumps(
            {
                "x402Version": X402_VERSION,
                "paymentPayload": payment.payload,
                "paymentRequirements": payment.terms.requirements,
            }
        )
        try:
            async with asyncio.timeout(self._settings.facilitator_timeout):
                response = await self._wire.post(body, authorize(self._settings, self._settle_url))
        except TimeoutError:
            return Unresolved("timeout", "the facilitator did not answer in time")
        except NoResponse as error:
            return Unresolved("error", f"the facilitator {error}")
        except OSError as error:
            return Unresolved("error", f"the facilitator could not be reached: {type(error).__name__}")
        return meaning(payment, response.status, response.content)


def authorize(settings: Settings, url: str, *, method: str = "POST") -> dict[str, str]:
    """The header that lets us in at the facilitator, if any; ValueError for a key that cannot sign."""
    if settings.cdp_api_key_id and settings.cdp_api_key_secret:
        from centgate.payments.cdp import cdp_token  # loads a cryptography library that few need

        secret = settings.cdp_api_key_secret.get_secret_value()
        return {"Authorization": f"Bearer {cdp_token(settings.cdp_api_key_id, secret, method, url)}"}
    if settings.facilitator_token:
        return {"Authorization": f"Bearer {settings.facilitator_token.get_secret_value()}"}
    return {}


def meaning(payment: Payment, status: int, content: bytes) -> Outcome:
    """What an answer to `/settle` says of the money."""
    if status != 200:
        return Unresolved("error", f"the facilitator answered with status {status}")
    try:
        answer = SettleResponse.model_validate({**_ABSENT, **_present(orjson.loads(content))}, strict=True)
    except (ValueError, TypeError):
        return Unresolved("error", "the facilitator's answer is not an x402 settlement")
    if answer.success:
        return _success(payment, answer)
    # a transaction that failed has a hash; without one its broadcast failed, and it may still arrive
    transaction = answer.transaction if _HASH.fullmatch(answer.transaction) else None
    reverted = answer.error_reason == REVERTED and transaction
    if reverted or _CERTAIN.fullmatch(answer.error_reason or ""):
        return NotSettled(answer.error_reason or "")
    reason = (answer.error_reason or "no reason given")[:64]
    return Unresolved("error", f"the facilitator left the settlement open: {reason}", transaction)


def _present(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise TypeError("not an object")
    return {name: value for name, value in cast(dict[str, Any], answer).items() if value is not None}


def _success(payment: Payment, answer: SettleResponse) -> Outcome:
    """A success counts when it names a transaction and is about this payment."""
    ours = (
        answer.network == payment.terms.network
        and (answer.payer or payment.key.payer).lower() == payment.key.payer
        and (answer.amount or str(payment.terms.amount)) == str(payment.terms.amount)
    )
    if not ours:
        return Unresolved("error", "the facilitator answered about another payment")
    if not _NAME.fullmatch(answer.transaction):
        return Unresolved("error", "the facilitator named no transaction")
    return Settled(receipt(payment.key, payment.terms.amount, answer.transaction))


def receipt(key: PaymentKey, amount: int, transaction: str) -> dict[str, Any]:
    """x402's SettleResponse for a payment that was settled."""
    return {
        "success": True,
        "payer": key.payer,
        "transaction": transaction,
        "network": key.network,
        "amount": str(amount),
    }


def refusal(key: PaymentKey, reason: str) -> dict[str, Any]:
    """x402's SettleResponse for a payment that was refused."""
    return {
        "success": False,
        "errorReason": reason,
        "payer": key.payer,
        "transaction": "",
        "network": key.network,
    }
