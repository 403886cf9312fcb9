"""Paying client: buys answers of a Centgate API under spending caps, and never pays twice for a request."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from centgate.client.async_client import AsyncCentgate
    from centgate.client.caps import Caps
    from centgate.client.errors import BuyerError
    from centgate.client.free_requests import Patience
    from centgate.client.ledger import Ledger
    from centgate.client.quote import Allowed, Quote
    from centgate.client.responses import Answer, Receipt
    from centgate.client.settings import BuyerSettings
    from centgate.client.sync_client import Centgate
    from centgate.client.transport import Proxies
    from centgate.client.wallet import Wallet

__all__ = [
    "Allowed",
    "Answer",
    "AsyncCentgate",
    "BuyerError",
    "BuyerSettings",
    "Caps",
    "Centgate",
    "Ledger",
    "Patience",
    "Proxies",
    "Quote",
    "Receipt",
    "Wallet",
]

_MODULE_OF = {
    "Answer": "responses",
    "Receipt": "responses",
    "AsyncCentgate": "async_client",
    "Caps": "caps",
    "BuyerError": "errors",
    "Proxies": "transport",
    "Ledger": "ledger",
    "Patience": "free_requests",
    "BuyerSettings": "settings",
    "Centgate": "sync_client",
    "Allowed": "quote",
    "Quote": "quote",
    "Wallet": "wallet",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first access, so that `centgate call --help` starts without these modules."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
