"""HTTP endpoint `/metrics` on its own port and in its own thread, so that a scrape hardly delays payments.

A single server process counts in memory. Several processes count in shared files, which the supervisor
process adds up: a killed process loses no counts, and its requests in flight are no longer included.
"""

# prometheus_client is typed in parts
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
import platform
import socket
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import structlog
import uvicorn
from prometheus_client import CollectorRegistry, ProcessCollector, make_asgi_app
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from centgate import __version__
from centgate.catalog import all_services
from centgate.connection_limits import ConnectionLimits, LimitedConfig
from centgate.environment import PREFIX
from centgate.metrics import definitions
from centgate.metrics.families import create_gauge
from centgate.metrics.prometheus import PrometheusMeter
from centgate.metrics.unfinished_payments import UnfinishedPaymentsCollector
from centgate.payments.database.store_factory import open_store
from centgate.settings import Settings

PATH = "/metrics"
MULTIPROCESS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable that prometheus_client reads at import: the folder of the shared files."""
ProcessIds = Callable[[], Sequence[int]]
"""Returns the current process ids of the server; each worker keeps its index."""


def open_listener(settings: Settings) -> socket.socket:
    """Open a socket on the metrics port. Raises OSError with a message if it is not available."""
    host, port = settings.metrics_host, settings.metrics_port or 0
    if port == settings.port:
        raise OSError(f"{PREFIX}METRICS_PORT is the port of the API, {port}; {PATH} needs one of its own")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        message = f"cannot listen on {host}:{port} for {PATH}: {error.strerror}"
        raise OSError(f"{message}; set {PREFIX}METRICS_HOST and {PREFIX}METRICS_PORT") from error


def create_meter(registry: CollectorRegistry, settings: Settings) -> PrometheusMeter:
    """Create a meter for this deployment's services."""
    services = [service.slug for service in all_services()]
    return PrometheusMeter(registry, services=services, networks=settings.payment_networks)


@contextmanager
def publish_process(settings: Settings, listener: socket.socket) -> Generator[PrometheusMeter]:
    """Publish the metrics of this process; yields its meter."""
    registry = CollectorRegistry()
    meter = create_meter(registry, settings)
    with _serve_registry(registry, settings, listener, lambda: [os.getpid()]):
        yield meter


@contextmanager
def publish_workers(
    settings: Settings, listener: socket.socket, start: Callable[[], None], pids: ProcessIds
) -> Generator[None]:
    """Call `start`, and publish the metrics of all processes that are started by it or within the context."""
    with tempfile.TemporaryDirectory(prefix="centgate-metrics-") as folder:
        os.environ[MULTIPROCESS_VARIABLE] = folder
        start()
        registry = CollectorRegistry()
        registry.register(_MultiProcessMetrics(folder, pids))
        with _serve_registry(registry, settings, listener, pids):
            yield


class _MultiProcessMetrics(Collector):
    """Collector of the sums over all processes, and of the gauges of live processes."""

    def __init__(self, folder: str, pids: ProcessIds) -> None:
        self._folder = folder
        self._pids = pids
        self._files = MultiProcessCollector(None, folder)

    def collect(self) -> Iterable[Metric]:
        living = {str(pid) for pid in self._pids()}
        for file in Path(self._folder).glob("gauge_live*.db"):
            pid = file.stem.rpartition("_")[2]
            if pid not in living and not _is_running(int(pid)):
                mark_process_dead(pid, self._folder)
        return self._files.collect()


def _is_running(pid: int) -> bool:
    """Return True for a process of this user: at SIGHUP a new one serves before the supervisor lists it."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


@contextmanager
def _serve_registry(
    registry: CollectorRegistry, settings: Settings, listener: socket.socket, pids: ProcessIds
) -> Generator[None]:
    """Serve a registry, with the collectors that are read at each scrape, until the context ends."""
    store = open_store(settings.database_url, connections=1)  # separate from the connections of payments
    journal = UnfinishedPaymentsCollector(store, keep_seconds=settings.redeem_hours * 3600)
    for collector in (journal, ServerProcessCollector(pids), BuildCollector()):
        registry.register(collector)

    @asynccontextmanager
    async def until_closed(_app: Starlette) -> AsyncGenerator[None]:
        yield
        await store.close()

    app = Starlette(
        routes=[Route(PATH, _MetricsEndpoint(registry, journal), methods=["GET"])], lifespan=until_closed
    )
    app.router.redirect_slashes = False
    host, port = listener.getsockname()[:2]
    config = LimitedConfig(app, ConnectionLimits(), ws="none", loop="asyncio", log_config=None)
    with _run_in_thread(uvicorn.Server(config), listener):
        structlog.get_logger().info("metrics are served", host=host, port=port)
        yield


class _MetricsEndpoint:
    """ASGI app that queries the database and then returns the metrics in prometheus_client's format."""

    def __init__(self, registry: CollectorRegistry, journal: UnfinishedPaymentsCollector) -> None:
        self._journal = journal
        self._write: ASGIApp = make_asgi_app(registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._journal.refresh()
        await self._write(scope, receive, send)


@contextmanager
def _run_in_thread(server: uvicorn.Server, listener: socket.socket) -> Generator[None]:
    """Run a server in a thread until the context ends."""
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        yield
    finally:
        server.should_exit = True
        thread.join()


class BuildCollector(Collector):
    """Collector of the running version."""

    def collect(self) -> Iterable[Metric]:
        info = create_gauge(definitions.BUILD)
        info.add_metric([__version__, platform.python_version()], 1)
        yield info


class ServerProcessCollector(Collector):
    """prometheus_client's process metrics for each server process, labelled with its index."""

    def __init__(self, pids: ProcessIds) -> None:
        self._pids = pids

    def collect(self) -> Iterable[Metric]:
        metrics: dict[str, Metric] = {}
        for index, pid in enumerate(self._pids()):
            for metric in ProcessCollector(pid=lambda pid=pid: pid, registry=None).collect():
                empty = Metric(metric.name, metric.documentation, metric.type)
                combined = metrics.setdefault(metric.name, empty)
                for sample in metric.samples:
                    combined.add_sample(sample.name, {"worker": str(index)}, sample.value)
        return metrics.values()
