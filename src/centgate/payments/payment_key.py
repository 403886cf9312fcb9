"""Identity of a payment, apart from what decodes one: readers of the journal need nothing else of it."""

from __future__ import annotations

from msgspec import Struct


class PaymentKey(Struct, frozen=True):
    """Identity of a payment. Not the header's text, which can be encoded in many ways."""

    network: str
    asset: str
    payer: str
    nonce: str
