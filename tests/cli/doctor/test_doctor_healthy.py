"""`centgate doctor` on a healthy deployment, all of it real: every check passes, or is not needed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from buyer import PHISHING, QUESTION, ApiFactory
from centgate_process import run_centgate
from databases import Redis, reserve_port
from doctor_fixtures import (
    UNREACHABLE_URL,
    healthy_providers,
    run_named_checks,
    today,
    with_changes,
    with_provider,
    write_phishing_list,
)
from fake_upstreams import FakeUpstreams, send_paid
from pydantic import SecretStr

from centgate.cli.doctor.registry import CHECKS, all_checks
from centgate.cli.doctor.storage import EPHEMERAL_FILESYSTEMS, find_filesystem_type
from centgate.settings import ProviderSettings, Settings

pytestmark = pytest.mark.extended

KEY = "0x" + "11" * 32


@pytest.fixture
def ports() -> Generator[tuple[int, int]]:
    """Ports of the API and of its metrics."""
    with reserve_port() as port, reserve_port() as metrics_port:
        yield port, metrics_port


async def test_healthy_deployment_passes(
    api: ApiFactory,
    chain_settings: Settings,
    postgres_url: str,
    redis: Redis,
    upstreams: FakeUpstreams,
    tmp_path: Path,
    ports: tuple[int, int],
) -> None:
    port, metrics_port = ports
    settings = with_changes(
        chain_settings,
        port=port,
        public_url=f"http://127.0.0.1:{port}",
        database_url=postgres_url,
        cache_url=redis.url,
        receipt_key=SecretStr(KEY),
        mpp_enabled=True,
        mpp_secret=SecretStr(KEY),
        metrics_port=metrics_port,
        phishing_list=write_phishing_list(tmp_path, today()),
        providers={**healthy_providers(upstreams), **chain_settings.providers},
    )
    client = api(settings)
    # a development chain makes a block for each payment, and none in between
    assert send_paid(client, PHISHING, QUESTION).status_code == 200

    checks = await run_named_checks(settings)

    assert {name: each for name, each in checks.items() if each.status not in ("ok", "skipped")} == {}
    asked = {name for name, each in checks.items() if each.status == "ok"}
    unset = {"alert-webhook", "facilitator-fallback", "mpp", "webhooks"}
    idle = {*unset, "audit", "browser", "directories", "services"}
    assert asked >= {check.name for check in CHECKS} - idle


async def test_without_network_each_check_fails_alone(settings: Settings) -> None:
    lost = with_changes(
        settings,
        facilitator_url=UNREACHABLE_URL,
        public_url=UNREACHABLE_URL,
        database_url="postgresql://nobody@127.0.0.1:9/none",
        cache_url="redis://127.0.0.1:9/0",
    )
    lost = with_provider(lost, "rpc_84532", url=UNREACHABLE_URL)
    every = {check.name.removeprefix("provider-") for check in all_checks()}
    lost = with_changes(
        lost, providers={**lost.providers, **dict.fromkeys(every, ProviderSettings(url=UNREACHABLE_URL))}
    )

    checks = await run_named_checks(lost)

    broken = {name for name, each in checks.items() if each.status == "failed"}
    assert broken >= {
        "facilitator",
        "node",
        "public-url",
        "proxy",
        "database",
        "cache",
        "provider-rpc",
    }
    assert not [each for each in checks.values() if "check itself" in each.what]
    assert all(checks[name].mend for name in broken)


async def test_nothing_secret_is_shown(settings: Settings, upstreams: FakeUpstreams) -> None:
    secrets = [f"s3cret{number:026x}" for number in range(7)]
    echo = upstreams.url_of("echo") + f"/{secrets[0]}"
    for method in ("GET", "POST"):
        for path in (f"/{secrets[0]}", f"/{secrets[0]}/api"):
            upstreams.set_response(
                "echo", path, {"error": {"code": 1, "message": " ".join(secrets)}}, method=method
            )
    given: dict[str, Any] = {
        "facilitator_token": secrets[1],
        "database_url": f"postgresql://u:{secrets[2]}@127.0.0.1:{secrets[2]}/x",
        "cache_url": f"redis://u:{secrets[3]}@127.0.0.1:9/0",
        "alert_webhook": f"{UNREACHABLE_URL}/hooks/{secrets[4]}",
        "receipt_key": KEY,
        "facilitator_url": upstreams.url_of("echo"),
    }
    telling = Settings(**{**settings.model_dump(), **given})
    for name in ("exa", "brave", "etherscan", "firecrawl", "goplus", "searxng", "blockscout", "dexscreener"):
        telling = with_provider(telling, name, url=echo, key=secrets[6])
    telling = with_provider(telling, "rpc_84532", url=echo)

    checks = await run_named_checks(telling, send_test_alert=True)

    assert not [secret for secret in secrets if secret in repr(checks)]
    assert KEY not in repr(checks)
    assert checks["proxy"].status == "skipped"
    assert checks["database"].status == checks["node"].status == "failed"


def run_doctor(*arguments: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    environment = {**os.environ, "COLUMNS": "110", **settings}
    return run_centgate(["doctor", *arguments], env=environment, cwd=folder)


def test_failed_checks_set_exit_code_and_are_in_json(tmp_path: Path) -> None:
    done = run_doctor("--json", "--only", "pay-to", "--only", "database", folder=tmp_path)

    report = json.loads(done.stdout)
    is_ephemeral = find_filesystem_type(tmp_path) in EPHEMERAL_FILESYSTEMS  # as in most containers
    assert done.returncode == 1
    assert report["status"] == "failed"
    assert [(check["name"], check["status"]) for check in report["checks"]] == [
        ("pay-to", "failed"),
        ("database", "warning" if is_ephemeral else "ok"),
    ]
    assert set(report["checks"][0]) == {"name", "status", "what", "mend", "seconds"}


def test_warning_is_no_failure_and_has_advice(tmp_path: Path) -> None:
    done = run_doctor("--only", "settings", folder=tmp_path, CENTGATE_PAYTO="0x" + "1" * 40)

    assert done.returncode == 0
    assert "CENTGATE_PAYTO: unknown setting" in done.stdout
    assert "-> `centgate settings`" in done.stdout
    assert "1 warning" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((), {"CENTGATE_PAY_TO": "0x12"}, "CENTGATE_PAY_TO"),
        (("--only", "everything"), {}, "unknown check 'everything'"),
    ],
    ids=["settings", "name"],
)
def test_unreadable_settings_have_own_exit_code(
    tmp_path: Path, arguments: tuple[str, ...], settings: dict[str, str], message: str
) -> None:
    done = run_doctor(*arguments, folder=tmp_path, **settings)

    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_list_describes_each_check(tmp_path: Path) -> None:
    done = run_doctor("--list", folder=tmp_path)

    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert all(any(line.startswith(check.name) for line in lines) for check in all_checks())
    assert all(check.description.endswith(".") for check in all_checks())
