"""Checks of operations: settings, start-up, clock, receipts, alerts, metrics and files."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import time
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import get_args

import orjson

from centgate.catalog import all_providers, all_services
from centgate.cli.doctor.check import fail, ok, skip, warn
from centgate.cli.doctor.context import (
    DoctorContext,
    HostUnreachable,
    TimedReply,
    display_origin,
    is_unencrypted,
)
from centgate.cli.doctor.facilitator import request_supported
from centgate.cli.doctor.storage import read_database_skew
from centgate.errors import ProviderFailure
from centgate.findings import Finding
from centgate.instrumentation import ListingStatus
from centgate.metrics.definitions import DIRECTORY_RESPONSES
from centgate.payments.notifications.alerts import AlertCondition, build_alert
from centgate.payments.time_format import format_age
from centgate.phishing.collection import LoadedList
from centgate.phishing.rules import InvalidPhishingList
from centgate.phishing.store import ListFolder, ListStore
from centgate.providers.phishinglist import STALE_DAYS
from centgate.settings import find_unknown_variables
from centgate.signing.eip3009 import derive_address

SKEWED, DRIFTING = 5.0, 2.0
"""Clock difference limits in seconds: a payment's validity window needs synchronized clocks."""


async def check_settings(_deployment: DoctorContext) -> Finding:
    """Every CENTGATE_ variable is a known setting."""
    providers = all_providers(all_services()).values()
    unknown = find_unknown_variables([name for provider in providers for name in provider.info.settings])
    if unknown:
        return warn(f"{', '.join(unknown)}: unknown setting", "`centgate settings` lists all names")
    return ok("every CENTGATE_ variable is a known setting")


async def check_start(deployment: DoctorContext) -> Finding:
    """Everything that the server reads at start is valid: pins, keys, files to serve, providers' settings."""
    try:
        await asyncio.to_thread(_validate_startup, deployment)
    except (ValueError, OSError, InvalidPhishingList) as error:
        return fail(f"the server would not start: {error}", "change the named setting")
    return ok("everything that the server reads at start is valid")


def _validate_startup(deployment: DoctorContext) -> None:
    from centgate.api import wellknown_files
    from centgate.runtime import validate_startup

    validate_startup(deployment.settings)
    wellknown_files.read_wellknown_files(deployment.settings.well_known)


async def check_clock(deployment: DoctorContext) -> Finding:
    """This machine's clock agrees with those of the facilitator, the node and the database."""
    sources = await asyncio.gather(
        _facilitator_skew(deployment), _node_skew(deployment), _database_skew(deployment)
    )
    skews = {name: skew for source in sources for name, skew in source.items()}
    if not skews:
        return skip("no other clock is available for comparison")
    name = max(skews, key=lambda name: abs(skews[name]))
    skew = skews[name]
    what = f"this clock is {abs(skew):.1f} s {'behind' if skew > 0 else 'ahead of'} {name}"
    if abs(skew) > SKEWED:
        return fail(what, "synchronize the clock with NTP: payments have a validity window")
    if abs(skew) > DRIFTING:
        return warn(what, "synchronize the clock with NTP")
    return ok(f"within {abs(skew):.1f} s of {' and '.join(skews)}")


async def _facilitator_skew(deployment: DoctorContext) -> dict[str, float]:
    try:
        skew = _skew_of_response(await request_supported(deployment, deployment.settings.facilitators[0]))
    except (HostUnreachable, ValueError):
        return {}
    return {} if skew is None else {"the facilitator's": skew}


def _skew_of_response(reply: TimedReply) -> float | None:
    """Return the seconds that the server's clock is ahead; its Date header has whole seconds."""
    try:
        at = parsedate_to_datetime(reply.headers["Date"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return None
    return (
        0.0
        if at <= reply.estimated_time <= at + 1
        else at - reply.estimated_time + (1 if reply.estimated_time > at else 0)
    )


async def _node_skew(deployment: DoctorContext) -> dict[str, float]:
    """Return the skew if the latest block is in the future; an older block does not indicate a skew."""
    if deployment.node is None:
        return {}
    try:
        (block,) = await deployment.node.send_requests(
            [("eth_getBlockByNumber", ["latest", False])], tolerant=False
        )
        ahead = int(block["timestamp"], 16) - time.time()
    except (ProviderFailure, ValueError, LookupError, TypeError):
        return {}
    return {"the newest block's": ahead} if ahead > 0 else {}


async def _database_skew(deployment: DoctorContext) -> dict[str, float]:
    import asyncpg

    try:
        skew = await read_database_skew(deployment)
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return {}
    return {} if skew is None else {"the database's": skew}


async def check_receipt_key(deployment: DoctorContext) -> Finding:
    """CENTGATE_RECEIPT_KEY differs from the key of CENTGATE_PAY_TO."""
    key = deployment.settings.receipt_key
    if key is None:
        return skip("CENTGATE_RECEIPT_KEY is not set: offers and receipts are not signed")
    signer = derive_address(bytes.fromhex(key.get_secret_value().removeprefix("0x")))
    if signer in {each.pay_to.lower() for each in deployment.settings.accepted_tokens}:
        return warn(
            "CENTGATE_RECEIPT_KEY is the key of CENTGATE_PAY_TO: anyone who reads it can take the money",
            "use a separate key that holds no money",
        )
    return ok(f"receipts are signed by {signer}")


async def check_alert_webhook(deployment: DoctorContext) -> Finding:
    """CENTGATE_ALERT_WEBHOOK accepts an alert; tested only with --send-test-alert."""
    url = deployment.settings.alert_webhook
    if url is None:
        return skip("CENTGATE_ALERT_WEBHOOK is not set: no alert is sent when settlements fail")
    if not deployment.send_test_alert:
        return skip(f"{display_origin(url)} was not tested", "send a test alert with --send-test-alert")
    condition = AlertCondition(trouble=True, message="a test alert of `centgate doctor`, nothing is wrong")
    body = orjson.dumps(build_alert(deployment.settings, "test", "raised", condition))
    try:
        headers = {"Content-Type": "application/json"}
        reply = await deployment.request(url, method="POST", headers=headers, body=body)
    except HostUnreachable as why:
        return fail(f"{display_origin(url)} does not respond: {why}", "check CENTGATE_ALERT_WEBHOOK")
    if not 200 <= reply.status < 300:
        return fail(f"{display_origin(url)} returns status {reply.status}", "check CENTGATE_ALERT_WEBHOOK")
    if is_unencrypted(url):
        return warn(f"{display_origin(url)} accepted an alert over http, unencrypted", "use https")
    return ok(f"{display_origin(url)} accepted a test alert")


async def check_metrics(deployment: DoctorContext) -> Finding:
    """CENTGATE_METRICS_PORT is free, or serves this deployment's metrics."""
    port, address, url = (
        deployment.settings.metrics_port,
        deployment.settings.metrics_host,
        deployment.settings.metrics_url,
    )
    if port is None:
        return skip("CENTGATE_METRICS_PORT is not set: metrics are off")
    if url is None:
        return ok("a free port is chosen at start")
    try:
        reply = await deployment.request(url)
    except HostUnreachable:
        return _check_bindable(address, port)
    if reply.status == 200 and re.search(rb"^# TYPE centgate_", reply.body, re.MULTILINE):
        return ok(f"metrics are served on {address}:{port}")
    return _port_in_use(address, port)


async def check_directories(deployment: DoctorContext) -> Finding:
    """The facilitator's directory accepts the services that were paid for since the server started."""
    url = deployment.settings.metrics_url
    if url is None:
        return skip("needs CENTGATE_METRICS_PORT; the log has `directory response`, with the reason")
    try:
        reply = await deployment.request(url)
    except HostUnreachable:
        return skip("no server publishes its metrics here")
    found = {status: sorted(_services_with_status(reply.body, status)) for status in get_args(ListingStatus)}
    if found["rejected"]:
        return warn(
            f"the facilitator's directory rejected {', '.join(found['rejected'])}",
            "the log has the reason: search for `directory response`",
        )
    if not any(found.values()):
        return skip("the facilitator has sent no word of its directory since the server started")
    counts = ", ".join(f"{status}: {len(slugs)}" for status, slugs in found.items() if slugs)
    return ok(f"the facilitator's directory rejected no service ({counts})")


def _services_with_status(metrics: bytes, status: str) -> set[str]:
    """Return the services for which the directory sent a status, as counted by the server."""
    line = rb'^%s{service="([a-z0-9-]+)",status="%s"} [0-9.]*[1-9]'
    name = DIRECTORY_RESPONSES.name.encode()
    return {slug.decode() for slug in re.findall(line % (name, status.encode()), metrics, re.MULTILINE)}


def _check_bindable(address: str, port: int) -> Finding:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return _port_in_use(address, port, f" ({error.strerror})")
    return ok(f"{address}:{port} is free")


def _port_in_use(address: str, port: int, why: str = "") -> Finding:
    return fail(
        f"{address}:{port} is in use by another program{why}", "set CENTGATE_METRICS_PORT to a free port"
    )


async def check_phishing_list(deployment: DoctorContext) -> Finding:
    """The phishing lists are readable and recent."""
    settings = deployment.settings.with_fetched_lists()
    folder = ListFolder(settings.phishing_folder)
    try:
        store = await asyncio.to_thread(ListStore, folder, settings.phishing_list)
        await asyncio.to_thread(store.reload)
    except (OSError, InvalidPhishingList) as error:
        return fail(
            f"CENTGATE_PHISHING_LIST cannot be read: {error}",
            "create it with `centgate phishing-list update FILE`",
        )
    lists = store.collection.lists
    problems = [
        problem for problem in map(partial(_describe_fetch, folder), settings.phishing_urls) if problem
    ]
    what = "; ".join([*map(_describe_list, lists), *problems])
    if problems or any((age := each.age_days()) is None or age > STALE_DAYS for each in lists):
        return warn(what, "fetch current lists with `centgate phishing-list update`")
    return ok(what)


def _describe_list(loaded: LoadedList) -> str:
    """Describe a list by its source, size, age and origin."""
    header, age = loaded.header, loaded.age_days()
    old = f"of {header.date}, {age:,} days old" if age is not None else "without a date"
    if header.fetched_at:
        origin = f"fetched {header.fetched_at} from {display_origin(header.url or '')}"
    else:
        origin = "from the package" if loaded.is_shipped else "from CENTGATE_PHISHING_LIST"
    return f"{loaded.name} ({header.source}): {header.blocklist:,} sites, {old}, {origin}"


def _describe_fetch(folder: ListFolder, key: str) -> str | None:
    """Describe why a list could not be fetched; None if nothing failed."""
    state = folder.read_state(key)
    if state is None or state.error is None:
        return None
    age = format_age(max(0.0, time.time() - state.attempted_at))
    return f"{key} was not replaced {age} ago, after {state.failures} failures in a row: {state.error}"


async def check_documentation_folder(deployment: DoctorContext) -> Finding:
    """The folder for documentation indexes is writable."""
    settings = deployment.settings
    if not settings.provider_settings("packagedocs").enabled:
        return skip("the built-in documentation is disabled")
    folder = settings.packagedocs_folder.absolute()
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        return fail(
            f"{folder} is not writable", "set CENTGATE_PACKAGEDOCS_FOLDER to a writable folder on a disk"
        )
    return ok(str(folder))


async def check_browser(deployment: DoctorContext) -> Finding:
    """A browser is installed, if page rendering is enabled."""
    settings = deployment.settings
    if settings.pagereader_render is False:
        return skip("CENTGATE_PAGEREADER_RENDER is false: pages are read without a browser")
    from centgate.web.browser.executable import RenderFailed, find_executable

    try:
        program: Path = find_executable(settings.pagereader_chromium)
    except RenderFailed as error:
        if settings.pagereader_render is None and settings.pagereader_chromium is None:
            return skip(f"pages are read without a browser: {error}")
        return fail(str(error), "install it, or set CENTGATE_PAGEREADER_CHROMIUM, or _RENDER to false")
    return ok(str(program))
