"""What a start reads, and what the operator hears by: settings, clock, receipts, alerts, metrics, files."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import time
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import orjson

from centgate.catalog import all_providers, all_services
from centgate.doctor.check import Finding, failed, ok, skipped, warning
from centgate.doctor.deployment import Deployment, Reply, Unreached, host, in_the_clear
from centgate.doctor.facilitator import ask_facilitator
from centgate.doctor.stores import clock_of_database
from centgate.eip3009 import address_of
from centgate.errors import ProviderFailure
from centgate.phishing.rules import UnreadableList
from centgate.phishing.snapshot import load, shipped
from centgate.providers.phishinglist import STALE_DAYS
from centgate.settings import Settings, misspelt
from centgate.text import timestamp

SKEWED, DRIFTING = 5.0, 2.0
"""Seconds between two clocks: payments are good for a window of time, which both must agree on."""


async def settings(_deployment: Deployment) -> Finding:
    """Every CENTGATE_ variable is the name of a setting."""
    providers = all_providers(all_services()).values()
    unknown = misspelt([name for provider in providers for name in provider.about.settings])
    if unknown:
        return warning(f"{', '.join(unknown)}: no such setting", "see `centgate settings` for their names")
    return ok("every CENTGATE_ variable is a setting")


async def start(deployment: Deployment) -> Finding:
    """All that a start reads can be read: pins, keys, files to serve, providers' settings."""
    try:
        await asyncio.to_thread(_rehearse, deployment)
    except (ValueError, OSError, UnreadableList) as error:
        return failed(f"the server would not start: {error}", "change the setting that is named")
    return ok("a start finds all it reads")


def _rehearse(deployment: Deployment) -> None:
    from centgate.faces import verification
    from centgate.runtime import rehearse

    rehearse(deployment.settings)
    verification.files(deployment.settings.well_known)


async def clock(deployment: Deployment) -> Finding:
    """This machine's clock agrees with those of the facilitator, the node and the database."""
    asked = await asyncio.gather(_facilitators(deployment), _nodes(deployment), _databases(deployment))
    skews = {name: skew for found in asked for name, skew in found.items()}
    if not skews:
        return skipped("there is no other clock to compare with")
    name = max(skews, key=lambda name: abs(skews[name]))
    skew = skews[name]
    what = f"this clock is {abs(skew):.1f} s {'behind' if skew > 0 else 'ahead of'} {name}"
    if abs(skew) > SKEWED:
        return failed(what, "keep the clock by NTP: payments are good for a window of time")
    if abs(skew) > DRIFTING:
        return warning(what, "keep the clock by NTP")
    return ok(f"within {abs(skew):.1f} s of {' and '.join(skews)}")


async def _facilitators(deployment: Deployment) -> dict[str, float]:
    try:
        skew = _skew(await ask_facilitator(deployment))
    except (Unreached, ValueError):
        return {}
    return {} if skew is None else {"the facilitator's": skew}


def _skew(reply: Reply) -> float | None:
    """Seconds that the clock of who answered is ahead; it tells whole ones."""
    try:
        at = parsedate_to_datetime(reply.headers["Date"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return None
    return 0.0 if at <= reply.at <= at + 1 else at - reply.at + (1 if reply.at > at else 0)


async def _nodes(deployment: Deployment) -> dict[str, float]:
    """A block is never of the future; how far the chain is behind says nothing of the clock."""
    if deployment.node is None:
        return {}
    try:
        (block,) = await deployment.node.ask([("eth_getBlockByNumber", ["latest", False])], tolerant=False)
        ahead = int(block["timestamp"], 16) - time.time()
    except (ProviderFailure, ValueError, LookupError, TypeError):
        return {}
    return {"the newest block's": ahead} if ahead > 0 else {}


async def _databases(deployment: Deployment) -> dict[str, float]:
    import asyncpg

    try:
        skew = await clock_of_database(deployment)
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return {}
    return {} if skew is None else {"the database's": skew}


async def receipt_key(deployment: Deployment) -> Finding:
    """CENTGATE_RECEIPT_KEY is not the key of CENTGATE_PAY_TO."""
    key = deployment.settings.receipt_key
    if key is None:
        return skipped("CENTGATE_RECEIPT_KEY is not set: no offer and no receipt is signed")
    signer = address_of(bytes.fromhex(key.get_secret_value().removeprefix("0x")))
    if signer == (deployment.settings.pay_to or "").lower():
        return warning(
            "CENTGATE_RECEIPT_KEY is the key of CENTGATE_PAY_TO: whoever reads it has the money",
            "use a key of its own, which holds no money",
        )
    return ok(f"receipts are signed by {signer}")


async def alert_webhook(deployment: Deployment) -> Finding:
    """CENTGATE_ALERT_WEBHOOK takes an alert; asked only with --send-test-alert."""
    url = deployment.settings.alert_webhook
    if url is None:
        return skipped("CENTGATE_ALERT_WEBHOOK is not set: nobody is told when settlements fail")
    if not deployment.send_test_alert:
        return skipped(f"{host(url)} was not asked", "send it an alert with --send-test-alert")
    body = orjson.dumps(_test_alert(deployment.settings))
    try:
        headers = {"Content-Type": "application/json"}
        reply = await deployment.ask(url, method="POST", headers=headers, body=body)
    except Unreached as why:
        return failed(f"{host(url)} gives no answer: {why}", "see CENTGATE_ALERT_WEBHOOK")
    if not 200 <= reply.status < 300:
        return failed(f"{host(url)} answers with status {reply.status}", "see CENTGATE_ALERT_WEBHOOK")
    if in_the_clear(url):
        return warning(f"{host(url)} took an alert over http, in the clear", "reach it over https")
    return ok(f"{host(url)} took a test alert")


def _test_alert(settings: Settings) -> dict[str, Any]:
    """An alert with the members that all have (`payments/alerts.py`); its kind says that nothing is wrong."""
    sentence = "a test alert of `centgate doctor`, nothing is wrong"
    return {
        "kind": "test",
        "state": "raised",
        "message": sentence,
        "text": f"Centgate on {settings.network}: {sentence}",
        "count": 0,
        "oldestSeconds": None,
        "network": settings.network,
        "server": settings.address,
        "time": timestamp(),
    }


async def metrics(deployment: Deployment) -> Finding:
    """CENTGATE_METRICS_PORT is free, or this deployment's metrics are read there."""
    port, address = deployment.settings.metrics_port, deployment.settings.metrics_host
    if port is None:
        return skipped("CENTGATE_METRICS_PORT is not set: there are no metrics")
    if port == 0:
        return ok("a free port is taken at the start")
    reachable = "127.0.0.1" if address in ("0.0.0.0", "::") else address
    try:
        shown = f"[{reachable}]" if ":" in reachable else reachable
        reply = await deployment.ask(f"http://{shown}:{port}/metrics")
    except Unreached:
        return _bindable(address, port)
    if reply.status == 200 and re.search(rb"^# TYPE centgate_", reply.body, re.MULTILINE):
        return ok(f"metrics are read on {address}:{port}")
    return _taken(address, port)


def _bindable(address: str, port: int) -> Finding:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return _taken(address, port, f" ({error.strerror})")
    return ok(f"{address}:{port} is free")


def _taken(address: str, port: int, why: str = "") -> Finding:
    return failed(
        f"something else is on {address}:{port}{why}", "set CENTGATE_METRICS_PORT to a port that is free"
    )


async def phishing_list(deployment: Deployment) -> Finding:
    """The phishing list can be read, and is not old."""
    path = deployment.settings.phishing_list
    try:
        header = (await asyncio.to_thread(load, path) if path else await asyncio.to_thread(shipped)).header
    except (OSError, UnreadableList) as error:
        return failed(
            f"CENTGATE_PHISHING_LIST cannot be read: {error}", "make it with `centgate phishing-list update`"
        )
    age = (datetime.now(UTC).date() - date.fromisoformat(header.date[:10])).days if header.date else None
    if age is None or age > STALE_DAYS:
        of = f"of {header.date}, {age} days old" if header.date else "without a date"
        return warning(
            f"the phishing list is {of}",
            "make one of today with `centgate phishing-list update`, and set CENTGATE_PHISHING_LIST",
        )
    return ok(f"{header.source}, {header.blocklist:,} sites, {age} days old")


async def documentation_folder(deployment: Deployment) -> Finding:
    """The folder for documentation indexes can be written."""
    settings = deployment.settings
    if not settings.provider("packagedocs").enabled:
        return skipped("the built-in documentation is switched off")
    folder = settings.packagedocs_folder.absolute()
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        return failed(
            f"{folder} cannot be written", "set CENTGATE_PACKAGEDOCS_FOLDER to a folder that can, on a disk"
        )
    return ok(str(folder))


async def browser(deployment: Deployment) -> Finding:
    """Where pages are to be read with a browser, there is one."""
    settings = deployment.settings
    if not settings.pagereader_render:
        return skipped("CENTGATE_PAGEREADER_RENDER is not set: pages are read without a browser")
    from centgate.browser.program import RenderFailed, find_program

    try:
        program: Path = find_program(settings.pagereader_chromium)
    except RenderFailed as error:
        return failed(str(error), "install it, or set CENTGATE_PAGEREADER_CHROMIUM, or _RENDER to false")
    return ok(str(program))
