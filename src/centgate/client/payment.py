"""A payment for one request, the request that it is bound to, and its receipt."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True, slots=True)
class PurchaseOrder:
    """Request that a payment is bound to: the API's origin, the path, and the canonical body."""

    api: str
    path: str
    body: bytes
    service: str = ""
    """Slug of the service, whose path the API may change."""

    @property
    def digest(self) -> str:
        """SHA-256 of the body, in hex."""
        return sha256(self.body).hexdigest()


class Payment(BaseModel):
    """Signed payment, as sent and as stored in the ledger."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    api: str
    path: str
    service: str = ""
    """Slug of the service; empty in the records of older clients."""
    body: str
    """SHA-256 of the request's body."""
    network: str
    asset: str
    payer: str
    payee: str
    usd: Decimal
    nonce: str
    valid_before: int
    """End of its authorization, in seconds since 1970."""
    header: str
    """`PAYMENT-SIGNATURE`, identical each time it is sent."""

    def __repr__(self) -> str:
        return f"Payment({self.usd} USD from {self.payer} to {self.payee}, nonce {self.nonce})"

    __str__ = __repr__

    def is_for(self, order: PurchaseOrder) -> bool:
        """Return True if the payment was signed for this request, at whatever path the service was then."""
        is_same_service = self.path == order.path or (self.service != "" and self.service == order.service)
        return is_same_service and (self.api, self.body) == (order.api, order.digest)


@dataclass(frozen=True, slots=True)
class Receipt:
    """Receipt of a payment: the on-chain transaction, the payer and the amount."""

    transaction: str
    payer: str
    network: str
    amount: Decimal
    """US dollars."""
    replayed: bool
    """True if the API sent a stored answer again, without charging."""
    signer: str | None = None
    """Address that signed the receipt (x402's `offer-receipt`); None unless every signed field matches."""
    header: str = field(default="", repr=False)
    """PAYMENT-RESPONSE, unchanged: store it for `centgate receipt verify`."""
