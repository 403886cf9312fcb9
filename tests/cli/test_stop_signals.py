"""SIGTERM and SIGINT: long-running commands end with their cleanup and exit code 0.

SIGINT is sent to interpreters of their own, since Python begins with a handler of it; SIGTERM also to forked
processes, which cost less.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pytest
from centgate_process import CentgateProcess, read_text
from databases import create_sqlite

pytestmark = pytest.mark.extended

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
HOLDER = """
import sys, tempfile, time
from centgate.cli.stop_signals import exit_on_stop_signals
with exit_on_stop_signals(), tempfile.TemporaryDirectory():
    print("ready", flush=True)
    while True:
        time.sleep(0.1)  # a signal just before a sleep begins does not end it
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


@dataclass(frozen=True)
class Running:
    """A process that runs until it is stopped, and the file of its standard error."""

    process: subprocess.Popen[str] | CentgateProcess
    errors: IO[bytes]

    def wait_for_line(self, starts: tuple[str, ...] = READY) -> str:
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith(starts):
                return line
        raise AssertionError(f"it ended: {read_text(self.errors)}")

    def stop(self, signal_number: int) -> tuple[int, str]:
        """Send a signal; return exit code and standard error. Standard input stays open until the end."""
        self.process.send_signal(signal_number)
        code = self.process.wait(timeout=PATIENCE)
        return code, read_text(self.errors)


@contextmanager
def run_python(folder: Path, *arguments: str, **environment: str) -> Generator[Running]:
    """Run Python with arguments and an empty folder for temporary files, with signals as at a terminal."""
    folder.mkdir()
    with TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, **environment, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            preexec_fn=restore_signals,
        )
        try:
            yield Running(process, errors)
        finally:
            process.kill()
            process.communicate()


def restore_signals() -> None:
    for each in STOP_SIGNALS:
        signal.signal(each, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def run_forked(folder: Path, *arguments: str, **environment: str) -> Generator[Running]:
    """Run a command, forked, with an empty folder for temporary files."""
    folder.mkdir()
    with TemporaryFile() as errors:
        process = CentgateProcess(
            [*arguments],
            env={**os.environ, **environment, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stderr=errors,
        )
        try:
            yield Running(process, errors)
        finally:
            process.kill()
            process.wait()
            process.close_pipes()


def run_interpreter(folder: Path, *arguments: str, **environment: str) -> AbstractContextManager[Running]:
    """Run a command in an interpreter of its own, with an empty folder for temporary files."""
    return run_python(folder, "-m", "centgate", *arguments, **environment)


RUNNERS = {signal.SIGTERM: run_forked, signal.SIGINT: run_interpreter}
"""How a command is run to get a signal."""


@pytest.mark.parametrize("signal_number", STOP_SIGNALS)
def test_stopped_block_cleans_up(tmp_path: Path, signal_number: int) -> None:
    folder = tmp_path / "temporary"
    with run_python(folder, "-c", HOLDER) as running:
        running.wait_for_line()

        assert running.stop(signal_number) == (0, "")

    assert list(folder.iterdir()) == []


def test_interrupt_in_start_callback_is_not_lost(tmp_path: Path) -> None:
    with run_python(tmp_path / "temporary", "-c", INTERRUPTED_CALLBACK) as running:
        code = running.process.wait(PATIENCE)

        assert running.process.stdout
        assert (code, running.process.stdout.read()) == (-signal.SIGINT, "")


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
    tmp_path: Path, command: list[str], settings: Mapping[str, str], signal_number: signal.Signals
) -> None:
    folder = tmp_path / "temporary"
    offline = {"CENTGATE_RPC_8453_ENABLED": "false", "CENTGATE_PHISHING_LIST_URL": "off"}
    journal = {"CENTGATE_DATABASE_URL": create_sqlite(tmp_path)}
    run = RUNNERS[signal_number]
    with run(folder, *command, **offline, **journal, **settings) as running:
        running.wait_for_line(("console ",) if command[0] == "console" else ("ready ",))
        code, errors = running.stop(signal_number)

    assert (code, list(folder.iterdir())) == (0, []), errors
    assert "Traceback" not in errors


def test_workers_and_console_end_with_killed_supervisor(tmp_path: Path) -> None:
    settings = {"CENTGATE_CONSOLE_PORT": "0", "CENTGATE_DATABASE_URL": create_sqlite(tmp_path)}
    offline = {"CENTGATE_RPC_8453_ENABLED": "false", "CENTGATE_PHISHING_LIST_URL": "off"}
    serve = ("serve", "--port", "0", "--workers", "2")
    with run_forked(tmp_path / "temporary", *serve, **settings, **offline) as running:
        running.wait_for_line(("ready ",))
        process = running.process
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
    with run_python(tmp_path / "temporary", "-c", program, **settings, **offline) as running:
        assert running.process.wait(PATIENCE) == 3


@pytest.mark.parametrize("signal_number", STOP_SIGNALS)
def test_demo_leaves_nothing(tmp_path: Path, signal_number: signal.Signals) -> None:
    folder = tmp_path / "temporary"
    with RUNNERS[signal_number](folder, "demo") as running:
        running.wait_for_line(("chain ",))
        code, errors = running.stop(signal_number)

    assert (code, list(folder.iterdir())) == (0, []), errors
    assert "Traceback" not in errors


@pytest.fixture(scope="module")
def api_url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """URL of a development deployment."""
    with run_forked(tmp_path_factory.mktemp("api") / "temporary", "dev", "--port", "0") as running:
        yield running.wait_for_line().removeprefix("ready ").strip()


@pytest.mark.parametrize("signal_number", STOP_SIGNALS)
def test_website_and_mcp_leave_nothing(tmp_path: Path, api_url: str, signal_number: signal.Signals) -> None:
    run = RUNNERS[signal_number]
    with run(tmp_path / "site", "site", "--api", api_url, "--port", "0") as site:
        site.wait_for_line()
        site_end = site.stop(signal_number)
    with run(tmp_path / "mcp", "mcp", "--api", api_url) as mcp:
        wait_for_tools(mcp)
        mcp_code, mcp_errors = mcp.stop(signal_number)

    assert site_end[0] == 0, site_end
    assert mcp_code == 0, mcp_errors
    assert "Traceback" not in site_end[1] + mcp_errors
    assert not [*(tmp_path / "site").iterdir(), *(tmp_path / "mcp").iterdir()]


def wait_for_tools(running: Running) -> None:
    """Initialize a session and wait for its answer; standard input stays open."""
    assert running.process.stdin
    running.process.stdin.write(
        '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",'
        ' "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}\n'
    )
    running.process.stdin.flush()
    running.wait_for_line(("{",))
