"""Run the API in one or several processes behind one port, and print `ready` once it responds."""

from __future__ import annotations

import os
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from centgate.connection_limits import ConnectionLimits, LimitedConfig
from centgate.environment import PREFIX
from centgate.garbage_collection import resume_garbage_collection
from centgate.instrumentation import NULL_METER, Meter
from centgate.metrics.setup import open_meter, publish_worker_metrics
from centgate.settings import Settings

FACTORY = "centgate.api.app:app_from_environment"
KEEP_ALIVE_SECONDS = 75
"""Keep-alive timeout in seconds: longer than that of proxies and clients, otherwise a request would sometimes
be sent on a connection that is just being closed.
"""
SHUTDOWN_SECONDS = 5
"""Seconds for open connections to finish, after `STOP_DELAY_SECONDS` at most; payments without one then get
`DRAIN_SECONDS`.

Together, even if the database does not respond, less than 20 s. Payments interrupted by SIGKILL are
reconciled later.
"""


class PortUnavailable(OSError):
    """The address or port is not available."""


def run_server(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises SystemExit if the API cannot start."""
    listener, settings = open_listener(settings)
    with listener:
        serve_listener(listener, settings)


def serve_listener(listener: socket.socket, settings: Settings) -> None:
    """Serve on an open socket, as `run_server` does; the settings have its port."""
    if settings.workers == 1:
        with open_meter(settings) as meter:
            ReadyServer(create_config(settings, meter), settings).run(sockets=[listener])
    else:
        _run_several(settings, listener)


def open_listener(
    settings: Settings, address_options: str = f"{PREFIX}HOST and {PREFIX}PORT"
) -> tuple[socket.socket, Settings]:
    """Open a listening socket; return it and the settings with its port. Raises PortUnavailable.

    `address_options` are the names by which an operator sets the address.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise PortUnavailable(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror} "
            f"(set {address_options}, or end the program that listens there)"
        ) from error
    listener.set_inheritable(True)
    return listener, settings.model_copy(update={"port": listener.getsockname()[1]})


def create_config(
    settings: Settings, meter: Meter = NULL_METER, limits: ConnectionLimits | None = None
) -> uvicorn.Config:
    """Return the uvicorn configuration of the API."""
    from centgate.api.app import create_app

    return LimitedConfig(
        FACTORY if settings.workers > 1 else create_app(settings, meter),
        limits or connection_limits(settings),
        factory=settings.workers > 1,
        workers=settings.workers,
        ws="none",
        loop="uvloop",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        proxy_headers=False,  # the public URL is a setting, and `client_address` parses proxy headers
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


def connection_limits(settings: Settings) -> ConnectionLimits:
    """Return the limits on connections of this deployment."""
    return ConnectionLimits(
        connections=settings.connections,
        connections_per_address=settings.connections_per_address,
        trusted_proxies=settings.trusted_proxies,
    )


class ReadyServer(uvicorn.Server):
    """Server that prints the `ready` line once it responds."""

    def __init__(self, config: uvicorn.Config, settings: Settings) -> None:
        super().__init__(config)
        self._settings = settings

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            resume_garbage_collection()
            print_ready(self._settings)


@contextmanager
def run_in_thread(settings: Settings, limits: ConnectionLimits | None = None) -> Generator[str]:
    """Run the API in a thread of this process, for a demonstration or a test; yields its URL."""
    listener, settings = open_listener(settings)
    running = uvicorn.Server(create_config(settings, limits=limits))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not running.started:
            if not thread.is_alive():
                raise RuntimeError("the API did not start")
            time.sleep(0.01)
        yield local_url(settings)
    finally:
        running.should_exit = True
        thread.join()
        listener.close()


def print_ready(settings: Settings) -> None:
    """Print the `ready` line."""
    print(f"ready {local_url(settings)}", flush=True)  # noqa: T201 - output of the command


def local_url(settings: Settings) -> str:
    """Return the server's URL on this machine."""
    return settings.model_copy(update={"public_url": None}).base_url


def _run_several(settings: Settings, listener: socket.socket) -> None:
    os.environ[f"{PREFIX}HOST"], os.environ[f"{PREFIX}PORT"] = settings.host, str(settings.port)
    if settings.phishing_list_url is not None:
        os.environ[f"{PREFIX}PHISHING_LIST_URL"] = ",".join(settings.phishing_list_url)
    from centgate.runtime import LATE_MODULES
    from centgate.worker_processes import WorkerSupervisor

    supervisor = WorkerSupervisor(create_config(settings), sockets=[listener])
    start = partial(supervisor.start_processes, LATE_MODULES)
    try:
        with publish_worker_metrics(settings, start, supervisor.process_ids):
            threading.Thread(target=_announce_when_ready, args=(settings,), daemon=True).start()
            supervisor.run()
    except BaseException:
        supervisor.stop()
        raise
    if supervisor.has_failed:
        raise SystemExit(STARTUP_FAILURE)


def _announce_when_ready(settings: Settings) -> None:
    while True:
        try:
            with urllib.request.urlopen(f"{local_url(settings)}/livez", timeout=1):
                print_ready(settings)
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)
