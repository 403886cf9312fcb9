"""Servers of the benchmarks: Centgate in several configurations, the official middleware, and the floor."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from load_generator import Slice, Target
from payment_signer import fetch_challenge
from server_process import ServerProcess, build_script_command, run_server

PATH = "/services/phishing-check"
BODY = b'{"url":"https://wallet-ethereum.net/unlock"}'
PAY_TO = "0x" + "22" * 20
NETWORK = "eip155:84532"


@dataclass
class BenchmarkServer:
    """Server in the comparison, its slices by the name of their load, and its memory readings in MB."""

    name: str
    process: ServerProcess
    slices: dict[str, list[Slice]] = field(default_factory=dict[str, list[Slice]])
    memory_mb: list[float] = field(default_factory=list[float])

    def calculate_median(self, load: str, get_figure: Callable[[Slice], float]) -> float:
        """Return the median of a figure over the slices of one load."""
        return median(map(get_figure, self.slices[load]))

    def fetch_target(self) -> Target:
        """Return the server as a load target, with the challenge that it sends for an unpaid request."""
        challenge = fetch_challenge(self.process.url + PATH, BODY)
        return Target(self.process.pid, self.process.port, PATH, BODY, challenge)


@contextmanager
def run_centgate(
    folder: Path, facilitator: ServerProcess, database_url: str, *, workers: int = 1
) -> Generator[ServerProcess]:
    """Run `centgate serve` with its journal in a database."""
    folder.mkdir(exist_ok=True)
    environment: Mapping[str, str] = {
        "CENTGATE_PAY_TO": PAY_TO,
        "CENTGATE_NETWORK": NETWORK,
        "CENTGATE_FACILITATOR_URL": facilitator.url,
        "CENTGATE_DATABASE_URL": database_url,
        "CENTGATE_WORKERS": str(workers),
        "CENTGATE_PHISHING_LIST_URL": "off",
    }
    command = [sys.executable, "-m", "centgate", "serve", "--port", "0"]
    with run_server(command, folder, environment) as server:
        yield server


def create_journal_url(folder: Path) -> str:
    """Create the folder of a SQLite journal, and return the journal's URL."""
    folder.mkdir(exist_ok=True)
    return f"sqlite:///{folder / 'journal.db'}"


@contextmanager
def run_fastapi_middleware(folder: Path, facilitator: ServerProcess, flow: str) -> Generator[ServerProcess]:
    """Run the official middleware for FastAPI around an empty handler; it keeps no journal."""
    with run_server(build_script_command("middleware_server.py", flow, facilitator.url), folder) as server:
        yield server


@contextmanager
def run_express_middleware(
    modules: Path, folder: Path, facilitator: ServerProcess, flow: str
) -> Generator[ServerProcess]:
    """Run the official middleware for Express around an empty handler; it keeps no journal."""
    with run_server(["node", str(modules / "server.mjs"), flow, facilitator.url], folder) as server:
        yield server


def install_express(folder: Path) -> Path | None:
    """Install the Express reference; return its folder, None if npm or Node is missing."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return None
    modules = folder / "express"
    shutil.copytree(Path(__file__).parent / "express", modules)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run(command, cwd=modules, check=True, capture_output=True, timeout=300)
    return modules


@contextmanager
def run_floor(folder: Path, database_url: str) -> Generator[ServerProcess]:
    """Run the floor: the minimum of a durable paid call."""
    with run_server(build_script_command("floor_server.py", database_url), folder) as server:
        yield server
