"""Pages about the deployment: the doctor's findings, settings with their sources, and the log of actions."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import cast

from msgspec import Struct
from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import Response

from centgate.catalog import all_providers, all_services
from centgate.console.console import Console, DoctorReport
from centgate.console.formats import HIDDEN, show_origin
from centgate.console.pages import read_last_id, redirect, render
from centgate.console.sessions import ConsoleSession
from centgate.environment import PREFIX
from centgate.payments.reports.console_actions import list_console_actions
from centgate.provider_settings import PROVIDER_FIELDS
from centgate.settings import GROUPED_FIELDS, Settings, SettingSource, find_setting_source, price_variable

ACTION_ROWS = 100
"""Actions per page of the log."""
_OWN_URLS = frozenset({"public_url", "site_url", "console_url"})
"""Settings with public URLs; of others only scheme and host are shown, since the rest may contain keys."""
_NOT_SHOWN = GROUPED_FIELDS | {"fault", "dev_rpc"}


class SettingRow(Struct, frozen=True):
    """A setting with its value and where the value comes from."""

    name: str
    value: str
    """Empty if it has none."""
    source: SettingSource
    meaning: str


async def show_doctor(console: Console, request: Request, session: ConsoleSession) -> Response:
    """Show the last findings of the doctor's checks."""
    report = console.report
    counts = Counter(each.finding.status for each in report.results) if report else Counter[str]()
    return render(console, request, session, "doctor.html.j2", report=report, counts=counts)


async def run_doctor(
    console: Console, request: Request, session: ConsoleSession, _form: Mapping[str, str]
) -> Response:
    """Run the doctor's checks, which call the facilitator, nodes and providers, and move no money."""
    async with console.checks_lock:
        results = await console.run_checks()
        console.report = DoctorReport(time.time(), results)
    failed = sum(each.finding.status == "failed" for each in results)
    await console.record_action("checks", request, f"{len(results)} checks, {failed} failed")
    session.notice = f"{len(results)} checks were run."
    return redirect("/doctor")


async def show_settings(console: Console, request: Request, session: ConsoleSession) -> Response:
    """Show all settings with their sources, without secrets."""
    return render(
        console,
        request,
        session,
        "settings.html.j2",
        rows=list(iterate_settings(console.settings)),
        provider_rows=list(iterate_provider_settings(console.settings)),
    )


async def show_actions(console: Console, request: Request, session: ConsoleSession) -> Response:
    """Show the log of what was done in the console, newest first."""
    rows = await console.read(partial(list_console_actions, ACTION_ROWS + 1, read_last_id(request)))
    last = rows[ACTION_ROWS - 1].id if len(rows) > ACTION_ROWS else None
    return render(console, request, session, "actions.html.j2", rows=rows[:ACTION_ROWS], last=last)


async def switch_refresh(
    _console: Console, _request: Request, session: ConsoleSession, form: Mapping[str, str]
) -> Response:
    """Switch on or off that pages refresh themselves."""
    session.refreshes = form.get("refreshes") == "yes"
    path = form.get("path", "/")
    return redirect(path if re.fullmatch(r"/([a-z]+(/[0-9a-zA-Z:]+)?)?", path) else "/")


def iterate_settings(settings: Settings) -> Iterator[SettingRow]:
    """Yield the server's settings in their order; secrets are never part of a row."""
    for name, field in Settings.model_fields.items():
        if name in _NOT_SHOWN:
            continue
        source = find_setting_source(settings, name)
        value: object = getattr(settings, name)
        shown = HIDDEN if value and (not field.repr or isinstance(value, SecretStr)) else _format(name, value)
        yield SettingRow(PREFIX + name.upper(), shown, source, field.description or "")
        if name == "price":
            yield from _iterate_prices(settings)


def _iterate_prices(settings: Settings) -> Iterator[SettingRow]:
    """Yield the prices of single services that are set."""
    for slug, price in sorted(settings.service_prices.items()):
        variable = price_variable(slug)
        source = find_setting_source(settings, variable.removeprefix(PREFIX).lower())
        yield SettingRow(variable, f"{price:f}", source, f"The price of {slug}.")


def iterate_provider_settings(settings: Settings) -> Iterator[SettingRow]:
    """Yield the settings of providers that are set."""
    labels = {name: kind.info.label for name, kind in all_providers(all_services()).items()}
    for name, values in sorted(settings.providers.items()):
        label = labels.get(name, name)
        for end, field in PROVIDER_FIELDS.items():
            value = getattr(values, field.name)
            if value != field.default:
                variable = f"{name}_{end}".lower()
                source = find_setting_source(settings, variable)
                yield SettingRow(PREFIX + variable.upper(), _format_provider_value(value), source, label)


def _format_provider_value(value: object) -> str:
    """Format a provider's setting; of each of its URLs only the origin."""
    if isinstance(value, SecretStr):
        return HIDDEN
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value)
    return ", ".join(map(show_origin, text.split(","))) if "://" in text else text


def _format(name: str, value: object) -> str:
    if isinstance(value, tuple):
        parts = map(str, cast(tuple[object, ...], value))
        return ", ".join(re.sub(r"https?://\S+", lambda found: show_origin(found[0]), each) for each in parts)
    if isinstance(value, bool):
        return str(value).lower()
    text = "" if value is None else str(value)
    return show_origin(text) if "://" in text and name not in _OWN_URLS else text
