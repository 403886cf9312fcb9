"""Webhooks for operators: settings, commands, doctor check, alerts, and the documented receivers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
from buyer import Buyer
from cli.doctor.doctor_fixtures import run_check
from payments_shell import run_payments_command
from pydantic import SecretStr, ValidationError
from typer.testing import Result
from webhook_outboxes import HOUR, open_outbox
from webhook_receiver import SECRET, WebhookReceiver, open_receiver

from centgate.payments.notifications.alerts import Alerts
from centgate.payments.notifications.webhook_actions import send_ping
from centgate.settings import Settings

PAGE = (Path(__file__).parents[3] / "docs" / "webhooks.md").read_text(encoding="utf-8")
PATIENCE = 30.0


@pytest.fixture
def receiver() -> Generator[WebhookReceiver]:
    with open_receiver() as opened:
        yield opened


@pytest.fixture
def webhook_settings(settings: Settings, receiver: WebhookReceiver) -> Settings:
    return receiver.configure(settings)


def run_webhooks(settings: Settings, *arguments: str) -> Result:
    """Run `centgate payments webhooks …` with the settings of a deployment."""
    variables = {
        "CENTGATE_NETWORK": settings.network,
        "CENTGATE_WEBHOOK_URL": settings.webhook_url or "",
        "CENTGATE_WEBHOOK_SECRET": SECRET if settings.webhook_url else "",
    }
    return run_payments_command("webhooks", *arguments, url=settings.database_url, settings=variables)


def deliver(settings: Settings, number: int = 1, *, send: bool = False) -> None:
    """Record deliveries, and send their events if wanted."""

    async def record() -> None:
        async with open_outbox(settings) as outbox:
            for each in range(number):
                await outbox.deliver(Buyer(each))
            if send:
                await outbox.send()

    asyncio.run(record())


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com/centgate?key=1",
        "http://127.0.0.1:9000/hook",
        "http://[::1]:9000/",
        "http://10.1.2.3/",
        "http://192.168.0.9:80/",
        "http://[fd00::1]/",
        "http://receiver:8080/",
        "http://localhost/",
        "http://hooks.internal/",
        "http://receiver.default.svc.cluster.local/",
    ],
)
def test_https_or_private_receiver_is_accepted(url: str) -> None:
    assert Settings(webhook_url=url, webhook_secret=SecretStr(SECRET)).webhook_url == url


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://hooks.example.com/secret-1", "needs https"),
        ("http://8.8.8.8/secret-1", "needs https"),
        ("http://0.0.0.0/secret-1", "needs https"),
        ("http://internal.example.com/secret-1", "needs https"),
        ("ftp://127.0.0.1/secret-1", "needs an http"),
        ("https:///secret-1", "needs an http"),
        ("https://host:99999/secret-1", "needs an http"),
        ("https://host/secret-1 x", "needs an http"),
        ("secret-1", "needs an http"),
    ],
)
def test_invalid_receiver_is_refused(url: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message) as refused:
        Settings(webhook_url=url, webhook_secret=SecretStr(SECRET))
    assert "secret-1" not in refused.value.errors()[0]["msg"]


@pytest.mark.parametrize("given", [{"webhook_url": "https://hooks.example.com/"}, {"webhook_secret": SECRET}])
def test_url_and_secret_are_set_together(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="must be set together"):
        Settings.model_validate(given)


def test_status_and_list(webhook_settings: Settings, receiver: WebhookReceiver) -> None:
    receiver.answer(500)
    deliver(webhook_settings, 2, send=True)

    status = json.loads(run_webhooks(webhook_settings, "status", "--json").stdout)
    result = run_webhooks(webhook_settings, "status")
    events = json.loads(run_webhooks(webhook_settings, "list", "--state", "pending", "--json").stdout)[
        "events"
    ]
    listed = run_webhooks(webhook_settings, "list")

    assert (status["pending"], status["failed"], status["lastSuccess"]) == (2, 0, None)
    assert status["failingSince"]
    assert (result.exit_code, "failing since" in result.stdout) == (0, True)
    assert [each["error"] for each in events] == ["status 500"] * 2
    assert events[0]["body"]["type"] == "payment.delivered"
    assert events[0]["id"] in listed.stdout
    assert "a-secret-of-the-operator" not in result.stdout + listed.stdout + json.dumps(status)


def test_event_is_resent_by_id(webhook_settings: Settings, receiver: WebhookReceiver) -> None:
    deliver(webhook_settings, send=True)
    (event,) = json.loads(run_webhooks(webhook_settings, "list", "--json").stdout)["events"]

    answer = run_webhooks(webhook_settings, "resend", event["id"])
    unknown = run_webhooks(webhook_settings, "resend", "evt_0")
    neither = run_webhooks(webhook_settings, "resend")
    deliver(webhook_settings, 0, send=True)

    assert (answer.exit_code, unknown.exit_code, neither.exit_code) == (0, 1, 2)
    assert receiver.ids == [event["id"]] * 2


def test_everything_unsent_is_resent(webhook_settings: Settings, receiver: WebhookReceiver) -> None:
    receiver.answer(500)
    deliver(webhook_settings, 3, send=True)
    receiver.answer(200)

    answer = run_webhooks(webhook_settings, "resend", "--unsent")
    deliver(webhook_settings, 0, send=True)
    deliver(webhook_settings, 0, send=True)

    assert "3 events" in answer.stdout
    assert json.loads(run_webhooks(webhook_settings, "status", "--json").stdout)["pending"] == 0


def test_ping_is_signed_and_not_stored(webhook_settings: Settings, receiver: WebhookReceiver) -> None:
    deliver(webhook_settings)
    accepted = run_webhooks(webhook_settings, "test")
    receiver.answer(404)
    refused = run_webhooks(webhook_settings, "test")

    assert (accepted.exit_code, refused.exit_code) == (0, 1)
    assert "status 404" in refused.stderr
    assert [each.body["type"] for each in receiver.received] == ["ping", "ping"]
    assert len(set(receiver.ids)) == 2
    assert len(json.loads(run_webhooks(webhook_settings, "list", "--json").stdout)["events"]) == 1


def test_disabled_receiver_is_enabled(webhook_settings: Settings, receiver: WebhookReceiver) -> None:
    receiver.answer(410)
    deliver(webhook_settings, send=True)
    disabled = run_webhooks(webhook_settings, "status")
    enabled = run_webhooks(webhook_settings, "enable")
    again = run_webhooks(webhook_settings, "enable")

    assert "it answered 410" in disabled.stdout
    assert "events are sent again" in enabled.stdout
    assert "was not disabled" in again.stdout
    assert "disabled" not in run_webhooks(webhook_settings, "status").stdout


def test_commands_without_receiver_say_so(settings: Settings) -> None:
    deliver(settings)
    assert "not set" in run_webhooks(settings, "status").stdout
    assert [run_webhooks(settings, name).exit_code for name in ("test", "enable")] == [2, 2]


async def test_doctor_shows_receiver(webhook_settings: Settings, receiver: WebhookReceiver) -> None:
    receiver.answer(200)
    async with open_outbox(webhook_settings) as outbox:
        await outbox.deliver(Buyer(0))
        await outbox.send()
        good = await run_check(webhook_settings, "webhooks")
        pinged = await run_check(webhook_settings, "webhooks", send_test_alert=True)
        receiver.answer(500)
        await outbox.deliver(Buyer(1))
        await outbox.send()
        failing = await run_check(webhook_settings, "webhooks")
        unreachable = await run_check(webhook_settings, "webhooks", send_test_alert=True)
        receiver.answer(410)
        outbox.clock.now += HOUR
        await outbox.send()
        gone = await run_check(webhook_settings, "webhooks")

    statuses = [each.status for each in (good, pinged, failing, unreachable, gone)]
    assert statuses == ["ok", "ok", "warning", "failed", "failed"]
    assert "1 pending" in failing.what
    assert gone.mend is not None
    assert "webhooks enable" in gone.mend


async def test_doctor_without_receiver(settings: Settings) -> None:
    assert (await run_check(settings, "webhooks")).status == "skipped"


async def test_failing_receiver_raises_alert(webhook_settings: Settings, receiver: WebhookReceiver) -> None:
    receiver.answer(410)
    alerted = webhook_settings.model_copy(update={"alert_webhook": receiver.url})
    async with open_outbox(alerted) as outbox:
        await outbox.deliver(Buyer(0))
        await outbox.send()
        (sender,) = outbox.senders
        async with aiohttp.ClientSession() as session:
            alerts = Alerts(alerted, outbox.journal, session)
            alerts.record_webhooks(await sender.find_trouble())
            await alerts.report_webhooks()

    assert receiver.unsigned == 1  # an alert has no signature


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def run_example(command: Sequence[str], folder: Path) -> Generator[tuple[Settings, subprocess.Popen[str]]]:
    """Run a receiver of the documentation; yields the settings of a deployment that sends to it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "WEBHOOK_SECRET": SECRET, "PORT": str(port)}
    with subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            deadline = time.monotonic() + PATIENCE
            while not is_listening(port):
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.05)
            yield Settings(webhook_url=f"http://127.0.0.1:{port}/", webhook_secret=SecretStr(SECRET)), process
        finally:
            process.kill()


def check_example(command: Sequence[str], folder: Path) -> None:
    """Send a ping with the right secret, and one with another secret, to an example."""
    wrong = SecretStr("whsec_" + "AAAA" * 8)
    with run_example(command, folder) as (settings, process):
        accepted = asyncio.run(send_ping(settings))
        refused = asyncio.run(send_ping(settings.model_copy(update={"webhook_secret": wrong})))
        assert process.stdout is not None
        line = process.stdout.readline()

    assert (accepted.outcome, refused.error) == ("accepted", "status 401")
    assert line.startswith("ping ")


def read_example(language: str) -> str:
    """Return the code of the page in a language."""
    (code,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return code


def test_python_example_receives(tmp_path: Path) -> None:
    (tmp_path / "receiver.py").write_text(read_example("python"))
    check_example([sys.executable, "receiver.py"], tmp_path)


def test_node_example_receives(npm_tools: Path) -> None:
    (npm_tools / "receiver.mjs").write_text(read_example("js"))
    check_example(["node", "receiver.mjs"], npm_tools)
