"""The settings that the guides show: their names, defaults and meanings, from the settings classes."""

from __future__ import annotations

from typing import cast

from pydantic_settings import BaseSettings

from centgate.client.settings import BuyerSettings
from centgate.settings import PREFIX, Settings

OPERATING = (
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
"""The settings that an operator thinks about first."""
BUYING = ("wallet", "wallet_key", "cap_per_call", "cap_total", "networks", "payee", "ledger")
"""The settings that a buyer thinks about first."""

Row = dict[str, str]


def operating() -> list[Row]:
    """What an operator sets, as `name`, `default` and `meaning`."""
    return [_row(Settings, name) for name in OPERATING]


def buying() -> list[Row]:
    """What a buyer sets."""
    return [_row(BuyerSettings, name) for name in BUYING]


def _row(settings: type[BaseSettings], name: str) -> Row:
    field = settings.model_fields[name]
    shown = _shown(field.default)
    if field.default_factory:
        shown = "in your own folder"  # a path of this machine, which says nothing to who reads the page
    return {"name": PREFIX + name.upper(), "default": shown, "meaning": field.description or ""}


def _shown(default: object) -> str:
    """A default as Markdown; empty where there is none."""
    if isinstance(default, tuple):
        default = ",".join(map(str, cast(tuple[object, ...], default)))
    return "" if default in (None, "") else f"`{default}`"
