"""Tables of the guides: settings, from the settings classes, and the sources of all services."""

from __future__ import annotations

from typing import cast

from msgspec import Struct
from pydantic_settings import BaseSettings

from centgate.client.settings import BuyerSettings
from centgate.environment import PREFIX
from centgate.settings import Settings
from centgate.website.api_snapshot import ApiSnapshot

OPERATOR_SETTINGS = (
    "pay_to",
    "network",
    "facilitator_url",
    "cdp_api_key_id",
    "cdp_api_key_secret",
    "facilitator_fallback_url",
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


class SourceEntry(Struct, frozen=True):
    """A source and the services that use it."""

    name: str
    label: str
    docs_url: str
    configured: bool
    terms: str
    services: tuple[str, ...]
    """Slugs of the services."""


def list_sources(deployment: ApiSnapshot) -> tuple[SourceEntry, ...]:
    """Return all sources of the catalogue, sorted by label."""
    services_by_source: dict[str, list[str]] = {}
    sources = {source.name: source for service in deployment.services for source in service.sources}
    providers = {each.name: each for service in deployment.services for each in service.providers}
    for service in deployment.services:
        for provider in service.providers:
            services_by_source.setdefault(provider.name, []).append(service.slug)
    return tuple(
        SourceEntry(
            name,
            provider.label,
            provider.docs_url,
            configured=name in sources and sources[name].configured,
            terms=sources[name].terms if name in sources else "",
            services=tuple(services_by_source[name]),
        )
        for name, provider in sorted(providers.items(), key=lambda each: each[1].label.lower())
    )
