"""Paying client: buys answers of a Centgate API under spending caps, and never pays twice for a request."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from centgate.client.async_client import AsyncCentgate
    from centgate.client.caps import Caps, Spent
    from centgate.client.errors import (
        AddressRefused,
        BuyerError,
        CapExceeded,
        Drift,
        InputIssue,
        InsufficientBalance,
        InvalidInput,
        LedgerUnwritable,
        Money,
        NoData,
        NoNode,
        NotFound,
        NoWallet,
        PaymentRefused,
        ServiceFailed,
        TermsRefused,
        Unavailable,
        Unreachable,
        Unresolved,
        UnsupportedOptions,
        WalletUnreadable,
    )
    from centgate.client.ledger import Ledger
    from centgate.client.node import Balance, NonceStates
    from centgate.client.payment import Payment, Receipt
    from centgate.client.policy import Allowed, OptionNames, Patience
    from centgate.client.quote import Quote
    from centgate.client.responses import Answer
    from centgate.client.settings import BuyerSettings
    from centgate.client.sync_client import Centgate
    from centgate.client.tools import ToolFlavour
    from centgate.client.transport import Proxies
    from centgate.client.typed import AnswerDrift, TypedAnswer
    from centgate.client.wallet import Wallet
    from centgate.client.wallet_payments import AnsweredPayment, WalletPayment, WalletPaymentPage
    from centgate.signing.assets import Asset

__all__ = [
    "AddressRefused",
    "Allowed",
    "Answer",
    "AnswerDrift",
    "AnsweredPayment",
    "Asset",
    "AsyncCentgate",
    "Balance",
    "BuyerError",
    "BuyerSettings",
    "CapExceeded",
    "Caps",
    "Centgate",
    "Drift",
    "InputIssue",
    "InsufficientBalance",
    "InvalidInput",
    "Ledger",
    "LedgerUnwritable",
    "Money",
    "NoData",
    "NoNode",
    "NoWallet",
    "NonceStates",
    "NotFound",
    "OptionNames",
    "Patience",
    "Payment",
    "PaymentRefused",
    "Proxies",
    "Quote",
    "Receipt",
    "ServiceFailed",
    "Spent",
    "TermsRefused",
    "ToolFlavour",
    "TypedAnswer",
    "Unavailable",
    "Unreachable",
    "Unresolved",
    "UnsupportedOptions",
    "Wallet",
    "WalletPayment",
    "WalletPaymentPage",
    "WalletUnreadable",
    "__version__",
]

_MODULE_OF = {
    "AddressRefused": "errors",
    "Allowed": "policy",
    "Answer": "responses",
    "AnswerDrift": "typed",
    "AnsweredPayment": "wallet_payments",
    "Asset": "policy",
    "AsyncCentgate": "async_client",
    "Balance": "node",
    "BuyerError": "errors",
    "BuyerSettings": "settings",
    "CapExceeded": "errors",
    "Caps": "caps",
    "Centgate": "sync_client",
    "Drift": "errors",
    "InputIssue": "errors",
    "InsufficientBalance": "errors",
    "InvalidInput": "errors",
    "Ledger": "ledger",
    "LedgerUnwritable": "errors",
    "Money": "errors",
    "NoData": "errors",
    "NoNode": "errors",
    "NoWallet": "errors",
    "NonceStates": "node",
    "NotFound": "errors",
    "OptionNames": "policy",
    "Patience": "policy",
    "Payment": "payment",
    "PaymentRefused": "errors",
    "Proxies": "transport",
    "Quote": "quote",
    "Receipt": "payment",
    "ServiceFailed": "errors",
    "Spent": "caps",
    "TermsRefused": "errors",
    "ToolFlavour": "tools",
    "TypedAnswer": "typed",
    "Unavailable": "errors",
    "Unreachable": "errors",
    "Unresolved": "errors",
    "UnsupportedOptions": "errors",
    "Wallet": "wallet",
    "WalletPayment": "wallet_payments",
    "WalletPaymentPage": "wallet_payments",
    "WalletUnreadable": "errors",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first access, so that a client and its commands start fast."""
    if name == "__version__":
        return import_module("centgate").__version__
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
