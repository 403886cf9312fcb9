"""Settings shown in the guides: names, defaults and meanings, from the settings classes."""

from __future__ import annotations

from typing import cast

from pydantic_settings import BaseSettings

from centgate.client.settings import BuyerSettings
from centgate.settings import PREFIX, Settings

OPERATOR_SETTINGS = (
    "pay_to",
    "network",
    "facilitator_url",
    "cdp_api_key_id",
    "cdp_api_key_secret",
    "public_url",
    "site_url",
    "operator",
    "ownership_proofs",
    "well_known",
    "receipt_key",
    "database_url",
    "cache_url",
    "redeem_hours",
    "payment_window",
    "allowed_origins",
    "port",
    "workers",
    "metrics_port",
    "alert_webhook",
)
"""The most important settings of an operator."""
BUYER_SETTINGS = ("wallet", "wallet_key", "cap_per_call", "cap_total", "networks", "payee", "ledger")
"""The most important settings of a buyer."""

SettingsRow = dict[str, str]


def operator_settings() -> list[SettingsRow]:
    """Return the operator's settings, as `name`, `default` and `meaning`."""
    return [_settings_row(Settings, name) for name in OPERATOR_SETTINGS]


def buyer_settings() -> list[SettingsRow]:
    """Return the buyer's settings, in the same form."""
    return [_settings_row(BuyerSettings, name) for name in BUYER_SETTINGS]


def _settings_row(settings: type[BaseSettings], name: str) -> SettingsRow:
    field = settings.model_fields[name]
    default = _format_default(field.default)
    if field.default_factory:
        default = "in your home folder"  # the actual path on this machine is of no use to readers
    return {"name": PREFIX + name.upper(), "default": default, "meaning": field.description or ""}


def _format_default(default: object) -> str:
    """Format a default as Markdown, or "" if there is none."""
    if isinstance(default, tuple):
        default = ",".join(map(str, cast(tuple[object, ...], default)))
    return "" if default in (None, "") else f"`{default}`"
