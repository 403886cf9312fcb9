"""Identity of a payment, apart from what decodes one: readers of the journal need nothing else of it.

The values that every paid call creates are structs of msgspec: a frozen dataclass takes ten times as long to
create, and its hash is computed in Python.
"""

from __future__ import annotations

import msgspec


class PaymentKey(msgspec.Struct, frozen=True):
    """Identity of a payment. Not the header's text, which can be encoded in many ways."""

    network: str
    asset: str
    payer: str
    nonce: str
