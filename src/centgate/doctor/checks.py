"""Every check there is, in the order they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from centgate.catalog import all_providers, all_services
from centgate.doctor import audit, facilitator, money, node, operating, providers, public, stores
from centgate.doctor.check import Check

PROVIDER = "provider-"
LONG = 12.0
"""Seconds for a check that asks two things in turn."""

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
"""Those of the deployment; each provider has one beside them."""


def all_checks() -> tuple[Check, ...]:
    """Those of the deployment, then one for each provider: `provider-<name>`."""
    named = sorted(all_providers(all_services()).items())
    return (
        *CHECKS,
        *(
            Check(
                PROVIDER + name, partial(providers.provider, name), LONG, f"{kind.about.label} can be asked."
            )
            for name, kind in named
        ),
    )


def chosen(names: Sequence[str]) -> tuple[Check, ...]:
    """The checks of these names, `provider` for all providers; ValueError for a name that there is not."""
    checks = all_checks()
    known = {check.name for check in checks} | {PROVIDER.rstrip("-")}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"there is no check {unknown[0]!r}; `centgate doctor --list` names them")
    return tuple(check for check in checks if _wanted(check.name, names))


def _wanted(name: str, names: Sequence[str]) -> bool:
    return not names or name in names or ("provider" in names and name.startswith(PROVIDER))
