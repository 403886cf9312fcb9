"""Registry of all checks, in display order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from centgate.catalog import all_providers, all_services
from centgate.doctor import audit, facilitator, money, node, operating, providers, public, stores
from centgate.doctor.check import Check

PROVIDER = "provider-"
LONG = 12.0
"""Timeout in seconds of a check that makes two requests in sequence."""

CHECKS: tuple[Check, ...] = (
    Check("settings", operating.settings),
    Check("start", operating.start),
    Check("pay-to", money.pay_to),
    Check("pay-to-account", money.pay_to_account),
    Check("token", money.token),
    Check("facilitator", facilitator.facilitator, LONG),
    Check("node", node.node),
    Check("audit", audit.audit),
    Check("clock", operating.clock),
    Check("public-url", public.public_url, LONG),
    Check("proxy", public.proxy, LONG),
    Check("header-size", public.header_size),
    Check("database", stores.database),
    Check("cache", stores.cache),
    Check("receipt-key", operating.receipt_key),
    Check("alert-webhook", operating.alert_webhook),
    Check("metrics", operating.metrics),
    Check("services", providers.services),
    Check("phishing-list", operating.phishing_list),
    Check("documentation", operating.documentation_folder),
    Check("browser", operating.browser),
)
"""Checks of the deployment; all_checks() adds one per provider."""


def all_checks() -> tuple[Check, ...]:
    """Return the deployment's checks, then one per provider: `provider-<name>`."""
    providers_by_name = sorted(all_providers(all_services()).items())
    return (
        *CHECKS,
        *(
            Check(
                PROVIDER + name, partial(providers.provider, name), LONG, f"{kind.info.label} can be asked."
            )
            for name, kind in providers_by_name
        ),
    )


def chosen(names: Sequence[str]) -> tuple[Check, ...]:
    """Return the checks with these names; `provider` selects all providers. Raises ValueError if unknown."""
    checks = all_checks()
    known = {check.name for check in checks} | {PROVIDER.rstrip("-")}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"unknown check {unknown[0]!r}; `centgate doctor --list` lists all checks")
    return tuple(check for check in checks if _is_selected(check.name, names))


def _is_selected(name: str, names: Sequence[str]) -> bool:
    return not names or name in names or ("provider" in names and name.startswith(PROVIDER))
