"""Running the API: one process or several behind one port, and the `ready` line once it answers."""

from __future__ import annotations

import os
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from uvicorn.supervisors import Multiprocess

from centgate.connection_limits import ConnectionLimits, LimitedConfig
from centgate.meter import SILENT, Meter
from centgate.metrics.starting import metered, metered_together
from centgate.settings import PREFIX, Settings

FACTORY = "centgate.faces.api:app_from_environment"
IDLE = 75
"""Seconds that a connection is kept between two requests: longer than proxies and clients keep theirs, or a
request would now and then be sent on one that is just being closed.
"""
STOP_WITHIN = 8
"""Seconds that open connections get to finish after SIGTERM; payments without one get those of `DRAIN` then.

Together, and with a database that does not answer, less than 20: what is cut off by SIGKILL is found later.
"""


class PortTaken(OSError):
    """The address cannot be listened on."""


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    listener, settings = listen(settings)
    with listener:
        if settings.workers == 1:
            with metered(settings) as meter:
                Announced(config(settings, meter), settings).run(sockets=[listener])
        else:
            _run_several(settings, listener)


def listen(settings: Settings) -> tuple[socket.socket, Settings]:
    """A listening socket, and the settings with the port it got; PortTaken when it cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise PortTaken(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from error
    listener.set_inheritable(True)
    return listener, settings.model_copy(update={"port": listener.getsockname()[1]})


def config(
    settings: Settings, meter: Meter = SILENT, limits: ConnectionLimits | None = None
) -> uvicorn.Config:
    """How uvicorn runs the API."""
    from centgate.faces.api import app

    return LimitedConfig(
        FACTORY if settings.workers > 1 else app(settings, meter),
        limits or connection_limits(settings),
        factory=settings.workers > 1,
        workers=settings.workers,
        ws="none",
        loop="uvloop",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE,
        proxy_headers=False,  # the public URL is a setting, and who calls is read in `client_address`
        timeout_graceful_shutdown=STOP_WITHIN,
    )


def connection_limits(settings: Settings) -> ConnectionLimits:
    """Return the limits on connections of this deployment."""
    return ConnectionLimits(
        connections=settings.connections,
        connections_per_address=settings.connections_per_address,
        trusted_proxies=settings.trusted_proxies,
    )


class Announced(uvicorn.Server):
    """A server that says `ready` on a line of its own once it answers."""

    def __init__(self, config: uvicorn.Config, settings: Settings) -> None:
        super().__init__(config)
        self._settings = settings

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            announce(self._settings)


@contextmanager
def serving(settings: Settings, limits: ConnectionLimits | None = None) -> Generator[str]:
    """The API in a thread of this process, for a demonstration or a test; gives the address it answers at."""
    listener, settings = listen(settings)
    running = uvicorn.Server(config(settings, limits=limits))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not running.started:
            if not thread.is_alive():
                raise RuntimeError("the API did not start")
            time.sleep(0.01)
        yield reachable(settings)
    finally:
        running.should_exit = True
        thread.join()
        listener.close()


def announce(settings: Settings) -> None:
    """Print the `ready` line."""
    print(f"ready {reachable(settings)}", flush=True)  # noqa: T201 - it is what the command says


def reachable(settings: Settings) -> str:
    """Where the server answers from this machine."""
    return settings.model_copy(update={"public_url": None}).address


def _run_several(settings: Settings, listener: socket.socket) -> None:
    os.environ[f"{PREFIX}HOST"], os.environ[f"{PREFIX}PORT"] = settings.host, str(settings.port)
    supervised = config(settings)
    threading.Thread(target=_announce_when_up, args=(settings,), daemon=True).start()
    supervisor = _Workers(supervised, sockets=[listener])
    with metered_together(settings, lambda: [process.pid or 0 for process in supervisor.processes]):
        supervisor.run()


class _Workers(Multiprocess):
    """Several processes behind one port, which refuses what comes when they are ending."""

    def terminate_all(self) -> None:
        """Ask them to end; as long as this process listened too, new connections would wait for nobody."""
        for listening in self.sockets:
            listening.close()
        super().terminate_all()


def _announce_when_up(settings: Settings) -> None:
    while True:
        try:
            with urllib.request.urlopen(f"{reachable(settings)}/livez", timeout=1):
                announce(settings)
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)
