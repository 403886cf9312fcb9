"""Run the console until it is stopped: beside a server, or by itself."""

from __future__ import annotations

import socket

import uvicorn

from centgate.connection_limits import ConnectionLimits, LimitedConfig
from centgate.console.app import create_console_app
from centgate.console.console import Console, RunChecks
from centgate.console.provider_metrics import MetricsHistory
from centgate.environment import PREFIX
from centgate.payments.database.store_factory import open_store
from centgate.server import local_url, open_listener
from centgate.settings import Settings, is_loopback_host

DEFAULT_PORT = 8404
SHUTDOWN_SECONDS = 2
MAX_CONNECTIONS = 64


def open_console_listener(settings: Settings) -> socket.socket:
    """Open the console's socket. Raises OSError with a message if it is not available or not allowed."""
    host = settings.console_host
    if settings.console_url is None and not is_loopback_host(host):
        raise OSError(
            f"{PREFIX}CONSOLE_HOST is {host}, not loopback: set {PREFIX}CONSOLE_URL to the address that you "
            "open in the browser, behind a proxy with TLS"
        )
    port = DEFAULT_PORT if settings.console_port is None else settings.console_port
    if port and port in (settings.port, settings.metrics_port):
        raise OSError(f"{PREFIX}CONSOLE_PORT {port} is a port of the API; the console needs one of its own")
    listener, _ = open_listener(
        settings.model_copy(update={"host": host, "port": port}),
        f"{PREFIX}CONSOLE_HOST and {PREFIX}CONSOLE_PORT",
    )
    return listener


def run_console(settings: Settings, listener: socket.socket, run_checks: RunChecks) -> None:
    """Serve the console on a socket until SIGTERM or SIGINT."""
    console = create_console(settings, listener, run_checks)
    config = LimitedConfig(
        create_console_app(console),
        ConnectionLimits(connections=MAX_CONNECTIONS, trusted_proxies=settings.trusted_proxies),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    _ConsoleServer(config, console).run(sockets=[listener])


class _ConsoleServer(uvicorn.Server):
    """Server that prints the console's address once it responds."""

    def __init__(self, config: uvicorn.Config, console: Console) -> None:
        super().__init__(config)
        self._console = console

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        if self._console.password_hash is None:
            self._console.print_link()
        else:
            self._console.print_line(f"console {self._console.base_url}")


def create_console(settings: Settings, listener: socket.socket, run_checks: RunChecks) -> Console:
    """Create the console's state for a socket."""
    port = listener.getsockname()[1]
    here = settings.model_copy(update={"host": settings.console_host, "port": port})
    return Console(
        settings=settings,
        store=open_store(settings.database_url, connections=2),
        run_checks=run_checks,
        print_line=_print_line,
        base_url=settings.console_url or local_url(here),
        metrics=MetricsHistory(settings.metrics_url),
    )


def _print_line(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - output of the command
