"""Start `centgate` as a process that is forked from one which has imported it.

Imports take most of the time of a start, and tests start hundreds of processes. A forked process has its
own environment, folder, files and signals, and runs the code of `python -m centgate`. It ends without freeing
its objects, which takes longer than most commands. A test of imports, of variables and options of the
interpreter, or of what objects do when the interpreter frees them, needs an interpreter of its own.
"""

from __future__ import annotations

import atexit
import gc
import os
import pickle
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from types import FrameType
from typing import IO, Self

IMPORTED = (
    "anyio._backends._asyncio",
    "centgate.api.app",
    "centgate.catalog",
    "centgate.cli.buyer.call",
    "centgate.cli.buyer.services",
    "centgate.cli.main",
    "centgate.cli.migrate",
    "centgate.client.event_loop_thread",
    "centgate.client.purchase",
    "centgate.payments.database.sqlite",
    "centgate.payments.chain.token_decimals",
    "centgate.resources",
    "centgate.runtime",
    "centgate.server",
    "eth_abi",
    "httpx2",
    "multiprocessing.forkserver",
    "rapidfuzz.process",
    "uvloop",
)
DEVCHAIN = ("centgate.devchain.chain", "centgate.devchain.facilitator")
IMPORTED_FOR_COMMAND = {
    "console": ("centgate.console.server",),
    "demo": DEVCHAIN,
    "dev": DEVCHAIN,
    "mcp": ("centgate.cli.mcp_stdio",),
    "site": ("centgate.website.server",),
}
"""What only some commands need: it is imported before their first process is forked."""
MAX_MESSAGE = 1 << 17
"""Bytes of a command with its environment."""


class CentgateProcess:
    """A running `centgate` command; the methods are those of `subprocess.Popen`."""

    def __init__(
        self,
        arguments: list[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.PIPE,
        stderr: int | IO[bytes] = subprocess.DEVNULL,
    ) -> None:
        self.returncode: int | None = None
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = None
        self._status_lock = threading.Lock()
        with ExitStack() as copies:
            if stdin == subprocess.PIPE:
                stdin, write_end = os.pipe()
                self.stdin = os.fdopen(write_end, "w")
                copies.callback(os.close, stdin)
            if stdout == subprocess.PIPE:
                read_end, stdout = os.pipe()
                self.stdout = os.fdopen(read_end)
                copies.callback(os.close, stdout)
            unused = copies.enter_context(Path(os.devnull).open("r+b", buffering=0))
            self._status, status = os.pipe()
            copies.callback(os.close, status)
            files = [unused if file == subprocess.DEVNULL else file for file in (stdin, stdout, stderr)]
            message = pickle.dumps((arguments, dict(env), str(cwd or Path.cwd())))
            self.pid = get_fork_server().fork(message, [*map(get_descriptor, files), status])

    def poll(self) -> int | None:
        """Return the exit status if the process has ended."""
        return self._read_status(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process and return its exit status."""
        status = self._read_status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("centgate", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal if the process runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process at once."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_pipes()
        self.wait()

    def close_pipes(self) -> None:
        """Close this side of the pipes."""
        for pipe in (self.stdin, self.stdout):
            if pipe:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _read_status(self, timeout: float | None) -> int | None:
        """Return the exit status, or None if the process runs for longer than the timeout."""
        with self._status_lock:
            if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
                self.returncode = os.waitstatus_to_exitcode(int(os.read(self._status, 16)))
                os.close(self._status)
            return self.returncode


def run_centgate(
    arguments: list[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    input: str = "",  # noqa: A002 - as in `subprocess.run`
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a command to completion; the result is that of `subprocess.run`."""
    with TemporaryFile() as stdin, TemporaryFile() as stdout, TemporaryFile() as stderr:
        stdin.write(input.encode())
        stdin.seek(0)
        process = CentgateProcess(arguments, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr)
        try:
            status = process.wait(timeout)
        finally:
            process.kill()
        return subprocess.CompletedProcess(arguments, status, read_text(stdout), read_text(stderr))


def read_text(file: IO[bytes]) -> str:
    """Return the content of a file that another process has written."""
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


def get_descriptor(file: int | IO[bytes]) -> int:
    """Return the number of a file."""
    return file if isinstance(file, int) else file.fileno()


class ForkServer:
    """A Python process that has imported `centgate`, and forks a process for each command."""

    def __init__(self) -> None:
        self._connection, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            command = [sys.executable, __file__, str(other.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[other.fileno()], stdin=subprocess.DEVNULL)
        self._lock = threading.Lock()
        atexit.register(self.close)

    def close(self) -> None:
        """End the server; processes that it has forked go on."""
        self._connection.close()
        self._process.wait()

    def fork(self, message: bytes, files: list[int]) -> int:
        """Start a command and return the number of its process."""
        with self._lock:
            socket.send_fds(self._connection, [message], files)
            return int(self._connection.recv(16))


@cache
def _start_fork_server() -> ForkServer:
    return ForkServer()


_start_lock = threading.Lock()


def get_fork_server() -> ForkServer:
    """Return the server of this process, which starts with the first command; threads share it."""
    with _start_lock:
        return _start_fork_server()


def serve_forks(connection: socket.socket) -> None:
    """Fork a process for each message, and write its exit status when it ends.

    Returns in the forked processes; the server itself exits when the other end of the connection closes.
    """
    ended, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGCHLD, ignore_signal)  # a handler, since only a handled signal wakes up
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    statuses: dict[int, int] = {}
    while True:
        readable, _, _ = select.select([connection, ended], [], [])
        if ended in readable:
            os.read(ended, 4096)
            report_ended(statuses)
        if connection not in readable:
            continue
        message, files, _, _ = socket.recv_fds(connection, MAX_MESSAGE, 4)
        if not message:
            os._exit(0)
        import_for_command(message)
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            become_command(message, files)
            return
        *given, statuses[pid] = files
        for file in given:
            os.close(file)
        connection.send(str(pid).encode())


def import_for_command(message: bytes) -> None:
    """Import what a command needs besides, for all its processes that follow."""
    arguments, _, _ = pickle.loads(message)
    names = IMPORTED_FOR_COMMAND.get(arguments[0], ()) if arguments else ()
    if not sys.modules.keys() >= {*names}:
        for name in names:
            import_module(name)
        gc.freeze()


def ignore_signal(number: int, frame: FrameType | None) -> None:
    """Handle a signal by doing nothing."""


def report_ended(statuses: dict[int, int]) -> None:
    """Write the exit status of each ended process to its file."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            file = statuses.pop(pid)
            with suppress(BrokenPipeError):
                os.write(file, str(status).encode())
            os.close(file)


def become_command(message: bytes, files: list[int]) -> None:
    """Take over files, environment, folder and arguments of a command."""
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    # the former ones remember whether their files could seek
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    arguments, environment, folder = pickle.loads(message)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    # as at a terminal: processes that a shell starts in the background ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[1:] = arguments


def run_command() -> None:
    """Run the command as `python -m centgate`, and end as that does."""
    try:
        runpy.run_module("centgate", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int | None):
            known_status.append(end.code or 0)
        raise
    known_status.append(0)


known_status: list[int] = []
"""The exit status of this process, once its command has ended with a number."""


def end_at_once() -> None:
    """End the process without freeing its objects, unless there is something to report."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        for status in known_status:
            os._exit(status)


if __name__ == "__main__":
    atexit.register(end_at_once)  # before any other callback, so that it is the last to be called
    sys.path[0] = ""  # as in `python -m`
    for name in IMPORTED:
        import_module(name)
    sys.modules["centgate.catalog"].all_services()  # imports the services and their providers
    gc.freeze()
    serve_forks(socket.socket(fileno=int(sys.argv[1])))
    gc.unfreeze()
    run_command()
