"""Servers that are compared: the API in its settings, the official middleware, and the floor."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from load import Slice, Target
from payment_signer import offer_of
from processes import Running, python, running

PATH = "/services/phishing-check"
BODY = b'{"url":"https://wallet-ethereum.net/unlock"}'
PAY_TO = "0x" + "22" * 20
NETWORK = "eip155:84532"


@dataclass
class Contender:
    """A server in the comparison, its slices by what was done to it, and its memory in MB."""

    name: str
    server: Running
    slices: dict[str, list[Slice]] = field(default_factory=dict[str, list[Slice]])
    memory: list[float] = field(default_factory=list[float])

    def median(self, load: str, value: Callable[[Slice], float]) -> float:
        """Over the slices under one load."""
        return median(map(value, self.slices[load]))

    def target(self) -> Target:
        """The server with the terms it asks for."""
        return Target(self.server.pid, self.server.port, PATH, BODY, offer_of(self.server.url + PATH, BODY))


@contextmanager
def ours(folder: Path, facilitator: Running, database: str, *, workers: int = 1) -> Generator[Running]:
    """`centgate serve`, its journal in a database."""
    folder.mkdir(exist_ok=True)
    environment: Mapping[str, str] = {
        "CENTGATE_PAY_TO": PAY_TO,
        "CENTGATE_NETWORK": NETWORK,
        "CENTGATE_FACILITATOR_URL": facilitator.url,
        "CENTGATE_DATABASE_URL": database,
        "CENTGATE_WORKERS": str(workers),
        "CENTGATE_PHISHING_LIST_URL": "off",
    }
    with running([sys.executable, "-m", "centgate", "serve", "--port", "0"], folder, environment) as server:
        yield server


def file_in(folder: Path) -> str:
    """The address of a journal in a file of its own."""
    folder.mkdir(exist_ok=True)
    return f"sqlite:///{folder / 'journal.db'}"


@contextmanager
def middleware(folder: Path, facilitator: Running, flow: str) -> Generator[Running]:
    """The official middleware for FastAPI around a handler that does nothing; it keeps no journal."""
    with running(python("middleware_server.py", flow, facilitator.url), folder) as server:
        yield server


@contextmanager
def express(modules: Path, folder: Path, facilitator: Running, flow: str) -> Generator[Running]:
    """The official middleware for Express; it keeps no journal."""
    with running(["node", str(modules / "server.mjs"), flow, facilitator.url], folder) as server:
        yield server


def express_in(folder: Path) -> Path | None:
    """A folder with the Express reference and its packages; None where there is no npm."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return None
    modules = folder / "express"
    shutil.copytree(Path(__file__).parent / "express", modules)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run(command, cwd=modules, check=True, capture_output=True, timeout=300)
    return modules


@contextmanager
def floor(folder: Path, database: str) -> Generator[Running]:
    """The least that a durable paid call can be."""
    with running(python("floor_server.py", database), folder) as server:
        yield server
