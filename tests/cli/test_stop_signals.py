"""SIGTERM and SIGINT: long-running commands end with their cleanup and exit code 0."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from databases import create_sqlite

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
CENTGATE = "-m", "centgate"
HOLDER = """
import sys, tempfile, time
from centgate.cli.stop_signals import exit_on_stop_signals
with exit_on_stop_signals(), tempfile.TemporaryDirectory():
    print("ready", flush=True)
    time.sleep(60)
"""
INTERRUPTED_CALLBACK = """
import os, signal
from centgate.cli.stop_signals import end_on_interrupt
end_on_interrupt()
class Held:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass
held = Held()
del held
print("not ended")
"""
READY = ("ready ", "console http", "ready\n")
PATIENCE = 60


@contextmanager
def run_python(folder: Path, *arguments: str, **environment: str) -> Generator[subprocess.Popen[str]]:
    """Run Python with arguments and an empty folder for temporary files, with signals as at a terminal."""
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, **environment, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=restore_signals,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def restore_signals() -> None:
    for each in STOP_SIGNALS:
        signal.signal(each, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def wait_for_line(process: subprocess.Popen[str], starts: tuple[str, ...] = READY) -> str:
    assert process.stdout
    for line in process.stdout:
        if line.startswith(starts):
            return line
    _, errors = process.communicate()
    raise AssertionError(f"it ended: {errors}")


def stop_process(process: subprocess.Popen[str], signal_number: int) -> tuple[int, str]:
    """Send a signal; return exit code and standard error. Standard input stays open until the end."""
    process.send_signal(signal_number)
    process.wait(timeout=PATIENCE)
    _, errors = process.communicate()
    return process.returncode, errors


@pytest.mark.parametrize("signal_number", STOP_SIGNALS)
def test_stopped_block_cleans_up(tmp_path: Path, signal_number: int) -> None:
    folder = tmp_path / "temporary"
    with run_python(folder, "-c", HOLDER) as process:
        wait_for_line(process)

        assert stop_process(process, signal_number) == (0, "")

    assert list(folder.iterdir()) == []


@pytest.mark.extended
def test_interrupt_in_start_callback_is_not_lost(tmp_path: Path) -> None:
    with run_python(tmp_path / "temporary", "-c", INTERRUPTED_CALLBACK) as process:
        output, _ = process.communicate(timeout=PATIENCE)

    assert (process.returncode, output) == (-signal.SIGINT, "")


@pytest.mark.parametrize(
    "signal_number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.extended)]
)
@pytest.mark.parametrize(
    ("command", "settings"),
    [
        pytest.param(["dev", "--port", "0"], {}, marks=pytest.mark.extended),
        (["serve", "--port", "0"], {"CENTGATE_PAY_TO": "0x" + "ce" * 20}),
        (["serve", "--port", "0", "--workers", "2"], {"CENTGATE_METRICS_PORT": "0"}),
        pytest.param(["serve", "--port", "0"], {"CENTGATE_CONSOLE_PORT": "0"}, marks=pytest.mark.extended),
        pytest.param(["console", "--port", "0"], {}, marks=pytest.mark.extended),
    ],
    ids=["dev", "serve", "workers", "console beside", "console"],
)
def test_servers_leave_nothing(
    tmp_path: Path, command: list[str], settings: Mapping[str, str], signal_number: int
) -> None:
    folder = tmp_path / "temporary"
    offline = {"CENTGATE_RPC_8453_ENABLED": "false", "CENTGATE_PHISHING_LIST_URL": "off"}
    journal = {"CENTGATE_DATABASE_URL": create_sqlite(tmp_path)}
    with run_python(folder, *CENTGATE, *command, **offline, **journal, **settings) as process:
        wait_for_line(process, ("console ",) if command[0] == "console" else ("ready ",))
        code, errors = stop_process(process, signal_number)

    assert (code, list(folder.iterdir())) == (0, []), errors
    assert "Traceback" not in errors


@pytest.mark.extended
def test_workers_and_console_end_with_killed_supervisor(tmp_path: Path) -> None:
    settings = {"CENTGATE_CONSOLE_PORT": "0", "CENTGATE_DATABASE_URL": create_sqlite(tmp_path)}
    offline = {"CENTGATE_RPC_8453_ENABLED": "false", "CENTGATE_PHISHING_LIST_URL": "off"}
    serve = ("serve", "--port", "0", "--workers", "2")
    with run_python(tmp_path / "temporary", *CENTGATE, *serve, **settings, **offline) as process:
        wait_for_line(process, ("ready ",))
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()
        process.wait()
        deadline = time.monotonic() + PATIENCE
        while (left := [child for child in children if Path("/proc", child).exists()]) and (
            time.monotonic() < deadline
        ):
            time.sleep(0.1)
        for child in left:
            os.kill(int(child), signal.SIGKILL)

    assert len(children) > 2
    assert left == []


@pytest.mark.extended
def test_failed_workers_set_exit_code(tmp_path: Path) -> None:
    program = """
import sys
from centgate.api import app
from centgate.cli.main import main
app.open_runtime = None
sys.argv = ["centgate", "serve", "--port", "0", "--workers", "2"]
main()
"""
    settings = {"CENTGATE_DATABASE_URL": create_sqlite(tmp_path), "CENTGATE_PHISHING_LIST_URL": "off"}
    offline = {"CENTGATE_RPC_8453_ENABLED": "false"}
    with run_python(tmp_path / "temporary", "-c", program, **settings, **offline) as process:
        process.communicate(timeout=PATIENCE)

        assert process.returncode == 3


@pytest.mark.extended
@pytest.mark.parametrize("signal_number", STOP_SIGNALS)
def test_demo_leaves_nothing(tmp_path: Path, signal_number: int) -> None:
    folder = tmp_path / "temporary"
    with run_python(folder, *CENTGATE, "demo") as process:
        wait_for_line(process, ("chain ",))
        code, errors = stop_process(process, signal_number)

    assert (code, list(folder.iterdir())) == (0, []), errors
    assert "Traceback" not in errors


@pytest.mark.extended
@pytest.mark.parametrize("signal_number", STOP_SIGNALS)
def test_website_and_mcp_leave_nothing(tmp_path: Path, signal_number: int) -> None:
    with run_python(tmp_path / "api", *CENTGATE, "dev", "--port", "0") as api:
        url = wait_for_line(api).removeprefix("ready ").strip()
        site = ["site", "--api", url, "--port", "0"]
        with run_python(tmp_path / "site", *CENTGATE, *site) as process:
            wait_for_line(process)
            site_end = stop_process(process, signal_number)
        with run_python(tmp_path / "mcp", *CENTGATE, "mcp", "--api", url) as process:
            wait_for_tools(process)
            mcp_code, mcp_errors = stop_process(process, signal_number)

    assert site_end[0] == 0, site_end
    assert mcp_code == 0, mcp_errors
    assert "Traceback" not in site_end[1] + mcp_errors
    assert not [*(tmp_path / "site").iterdir(), *(tmp_path / "mcp").iterdir()]


def wait_for_tools(process: subprocess.Popen[str]) -> None:
    """Initialize a session and wait for its answer; standard input stays open."""
    assert process.stdin
    process.stdin.write(
        '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",'
        ' "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}\n'
    )
    process.stdin.flush()
    wait_for_line(process, ("{",))
