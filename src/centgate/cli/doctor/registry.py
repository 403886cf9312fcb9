"""Registry of all checks, in display order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from centgate.catalog import all_providers, all_services
from centgate.cli.doctor import (
    facilitator,
    journal,
    mpp,
    node,
    operations,
    payee,
    providers,
    public_endpoint,
    storage,
)
from centgate.cli.doctor.check import Check

PROVIDER_PREFIX = "provider-"
LONG_TIMEOUT = 12.0
"""Timeout in seconds of a check that makes two requests in sequence."""

CHECKS: tuple[Check, ...] = (
    Check("settings", operations.check_settings),
    Check("start", operations.check_start),
    Check("pay-to", payee.check_pay_to),
    Check("pay-to-account", payee.check_pay_to_account),
    Check("token", payee.check_token),
    Check("facilitator", facilitator.check_facilitator, LONG_TIMEOUT),
    Check("facilitator-fallback", facilitator.check_fallback, LONG_TIMEOUT),
    Check("node", node.check_node),
    Check("open-payments", journal.check_open_payments),
    Check("audit", journal.check_audit),
    Check("clock", operations.check_clock),
    Check("public-url", public_endpoint.check_public_url, LONG_TIMEOUT),
    Check("proxy", public_endpoint.check_proxy, LONG_TIMEOUT),
    Check("header-size", public_endpoint.check_header_size),
    Check("mpp", mpp.check_mpp, LONG_TIMEOUT),
    Check("database", storage.check_database),
    Check("cache", storage.check_cache),
    Check("receipt-key", operations.check_receipt_key),
    Check("alert-webhook", operations.check_alert_webhook),
    Check("webhooks", journal.check_webhooks, LONG_TIMEOUT),
    Check("metrics", operations.check_metrics),
    Check("directories", operations.check_directories),
    Check("services", providers.check_services),
    Check("terms", providers.check_terms),
    Check("simulation", providers.check_simulation, LONG_TIMEOUT),
    Check("phishing-list", operations.check_phishing_list),
    Check("documentation", operations.check_documentation_folder),
    Check("browser", operations.check_browser),
)
"""Checks of the deployment; all_checks() adds one per provider."""


def all_checks() -> tuple[Check, ...]:
    """Return the deployment's checks, then one per provider: `provider-<name>`."""
    providers_by_name = sorted(all_providers(all_services()).items())
    return (
        *CHECKS,
        *(
            Check(
                PROVIDER_PREFIX + name,
                partial(providers.check_provider, name),
                LONG_TIMEOUT,
                f"{kind.info.label} can be asked.",
            )
            for name, kind in providers_by_name
        ),
    )


def select_checks(names: Sequence[str]) -> tuple[Check, ...]:
    """Return the checks with these names; `provider` selects all providers. Raises ValueError if unknown."""
    checks = all_checks()
    known = {check.name for check in checks} | {PROVIDER_PREFIX.rstrip("-")}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"unknown check {unknown[0]!r}; `centgate doctor --list` lists all checks")
    return tuple(check for check in checks if _is_selected(check.name, names))


def _is_selected(name: str, names: Sequence[str]) -> bool:
    return not names or name in names or ("provider" in names and name.startswith(PROVIDER_PREFIX))
