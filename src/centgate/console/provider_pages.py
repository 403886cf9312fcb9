"""Providers in the console: which are used, their key, terms and limits, and how they do now."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from centgate.catalog import all_providers, all_services
from centgate.console.console import Console
from centgate.console.pages import render
from centgate.console.provider_metrics import ProviderActivity
from centgate.console.sessions import ConsoleSession
from centgate.provider import Provider, Resale
from centgate.rate_limiter import RateLimit

HOUR, MINUTE = 3600.0, 60.0
FAILING_SHARE = 0.5
"""Share of failed calls in the last hour from which a provider is called failing."""

KeyPresence = Literal["present", "missing", "none set", "not needed"]
ProviderState = Literal["working", "degraded", "failing", "not called", "not known", "not in use"]


class ProviderRow(Struct, frozen=True):
    """A provider on the page."""

    name: str
    label: str
    docs_url: str
    state: ProviderState
    reason: str | None
    """Reason why it is not in use; None if it is."""
    services: tuple[str, ...]
    key: KeyPresence
    terms: str
    resale: Resale
    limit: str | None
    hour: ProviderActivity | None
    """Figures of the last hour, or since the console's start; None if not known."""
    minute_calls: int | None
    """Calls in the last minute; None if not known or not yet."""
    calls_left: int | None
    """Calls that its limit leaves for this minute, counting calls of providers; None without a limit."""


async def show_providers(console: Console, request: Request, session: ConsoleSession) -> Response:
    """Show all providers, those in use first."""
    rows = [build_provider_row(console, kind) for kind in all_providers(all_services()).values()]
    rows.sort(key=lambda each: (each.reason is not None, each.label.lower()))
    return render(
        console,
        request,
        session,
        "providers.html.j2",
        refreshes=True,
        rows=rows,
        problem=console.metrics.problem,
    )


def build_provider_row(console: Console, kind: type[Provider]) -> ProviderRow:
    """Return the row of a provider, created from the settings without any connection."""
    provider, info = kind(console.settings), kind.info
    hour = console.metrics.find_activity(info.name, HOUR)
    minute = console.metrics.find_activity(info.name, MINUTE)
    minute_calls = minute.calls if minute and minute.seconds else None
    reason = _find_reason(provider)
    return ProviderRow(
        name=info.name,
        label=info.label,
        docs_url=info.docs_url,
        state="not in use" if reason else _judge_activity(hour),
        reason=reason,
        services=tuple(
            service.slug
            for service in all_services()
            if info.name in {source.info.name for source in service.sources}
        ),
        key=_find_key_presence(provider),
        terms=info.terms,
        resale=provider.resale,
        limit=_describe_limit(provider.rate_limit),
        hour=hour,
        minute_calls=minute_calls,
        calls_left=_count_left(provider.rate_limit, minute_calls),
    )


def _find_reason(provider: Provider) -> str | None:
    """Return why a provider is not in use; None if it is."""
    if provider.is_withheld:
        return "its terms do not permit resale"
    if not provider.settings.enabled:
        return "disabled"
    if not provider.is_configured:
        return "needs a key" if provider.info.key == "required" else "not configured"
    return None


def _find_key_presence(provider: Provider) -> KeyPresence:
    if provider.info.key == "none":
        return "not needed"
    if provider.key:
        return "present"
    return "missing" if provider.info.key == "required" else "none set"


def _judge_activity(hour: ProviderActivity | None) -> ProviderState:
    if hour is None:
        return "not known"
    if hour.open_breakers:
        return "failing"
    if not hour.calls:
        return "not called"
    share = hour.failures / hour.calls
    return "failing" if share >= FAILING_SHARE else "degraded" if hour.failures else "working"


def _describe_limit(rate: RateLimit | None) -> str | None:
    return f"{rate.calls} in {rate.seconds:g} s" if rate else None


def _count_left(rate: RateLimit | None, minute_calls: int | None) -> int | None:
    if rate is None or minute_calls is None or rate.seconds > MINUTE:
        return None
    return max(0, int(rate.calls * MINUTE / rate.seconds) - minute_calls)
