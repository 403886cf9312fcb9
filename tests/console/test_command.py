"""`centgate console`, and the console that `centgate serve` opens beside the API."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from centgate_process import CentgateProcess, run_centgate
from console_session import PASSWORD, find_token
from databases import create_sqlite
from typer.testing import CliRunner

from centgate.cli.main import app
from centgate.console.passwords import is_password_correct

pytestmark = pytest.mark.extended

PATIENCE = 60.0


@contextmanager
def run_command(*arguments: str, **environment: str) -> Generator[CentgateProcess]:
    """Run a command in a process of its own; it is stopped at the end."""
    process = CentgateProcess([*arguments], env={**os.environ, **environment})
    assert process.stdout is not None
    with process, process.stdout:
        try:
            yield process
        finally:
            process.kill()


def read_lines(process: CentgateProcess, *starts: str) -> dict[str, str]:
    """Read standard output until a line of each kind was printed; return their ends."""
    found: dict[str, str] = {}
    assert process.stdout is not None
    while set(starts) - set(found):
        line = process.stdout.readline()
        assert line, "the command ended"
        found |= {start: line.split()[1] for start in starts if line.startswith(f"{start} ")}
    return found


def log_in(link: str) -> httpx.Client:
    """Return a browser that logged in by a link."""
    url, _, token = link.partition("/login?token=")
    client = httpx.Client(base_url=url, timeout=30)
    form = find_token(client.get(f"/login?token={token}").text)
    assert client.post("/login", data={"token": form, "link": token}).status_code == 303
    return client


def wait_until_gone(url: str) -> None:
    """Wait until a URL does not respond."""
    deadline = time.monotonic() + PATIENCE
    with suppress(httpx.TransportError):
        while True:
            httpx.get(url, timeout=5)
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_hash_is_printed_as_setting() -> None:
    result = CliRunner().invoke(app, ["console", "hash"], input=f"{PASSWORD}\n")
    short = CliRunner().invoke(app, ["console", "hash"], input="short\n")

    assert result.exit_code == 0
    name, _, value = result.stdout.strip().partition("=")
    assert name == "CENTGATE_CONSOLE_PASSWORD_HASH"
    assert is_password_correct(PASSWORD, value)
    assert short.exit_code == 2


@pytest.mark.parametrize("workers", ["1", "2"])
def test_serve_opens_console_and_stops_it(tmp_path: Path, workers: str) -> None:
    environment = {
        "CENTGATE_CONSOLE_PORT": "0",
        "CENTGATE_PAY_TO": "0x" + "ce" * 20,
        "CENTGATE_DATABASE_URL": create_sqlite(tmp_path),
        "CENTGATE_RPC_8453_ENABLED": "false",
    }
    with run_command("serve", "--port", "0", "--workers", workers, **environment) as process:
        lines = read_lines(process, "ready", "console")
        api_answer = httpx.get(f"{lines['ready']}/livez", timeout=30)
        with closing(log_in(lines["console"])) as browser:
            deadline = time.monotonic() + PATIENCE
            while "not called" not in browser.get("/providers").text:
                assert time.monotonic() < deadline
                time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        wait_until_gone(lines["console"])

    assert api_answer.status_code == 200


def test_console_ends_with_killed_server(tmp_path: Path) -> None:
    environment = {"CENTGATE_CONSOLE_PORT": "0", "CENTGATE_DATABASE_URL": create_sqlite(tmp_path)}
    with run_command("serve", "--port", "0", **environment) as process:
        console = read_lines(process, "ready", "console")["console"]
        process.kill()
        process.wait(30)
        wait_until_gone(console)


def test_console_runs_alone(tmp_path: Path) -> None:
    url = create_sqlite(tmp_path)
    with run_command("console", "--port", "0", CENTGATE_DATABASE_URL=url) as process:
        with closing(log_in(read_lines(process, "console")["console"])) as browser:
            html = browser.get("/").text
        process.send_signal(signal.SIGTERM)
        process.wait(30)

    assert re.search(r"<dt>Revenue today</dt><dd>\$0.00</dd>", html)


def test_port_in_use_is_reported(tmp_path: Path) -> None:
    url = create_sqlite(tmp_path)
    settings = {"CENTGATE_CONSOLE_PORT": "18402", "CENTGATE_DATABASE_URL": url}

    done = run_centgate(["serve", "--port", "18402"], env={**os.environ, **settings}, timeout=PATIENCE)

    assert done.returncode == 1
    assert "CENTGATE_CONSOLE_PORT 18402 is a port of the API" in done.stderr
