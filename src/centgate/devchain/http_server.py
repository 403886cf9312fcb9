"""Run a web application on a loopback port, in its own thread and event loop, without log output."""

import logging
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.applications import Starlette

HOST = "127.0.0.1"
THREAD_PREFIX = "devchain"  # name prefix of all threads of this package, used to filter their log lines

_LIBRARY_LOGGERS = (
    "uvicorn.error",
    "uvicorn.access",
    "x402.mechanisms.evm.exact.facilitator",
    "x402.mechanisms.evm.signers",
)


@contextmanager
def serve_app(app: "Starlette", port: int) -> Generator[str]:
    """Serve `app` and yield its URL; port 0 picks a free port. Raises OSError for a port in use."""
    import uvicorn

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen()  # from here on clients can connect, and wait until the loop below runs
        # no log level and no access_log=False: uvicorn would apply them to every server of this process
        config = uvicorn.Config(
            app,
            log_config=None,
            lifespan="off",
            ws="none",
            timeout_keep_alive=3600,  # otherwise a connection may close just as the next request is sent
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        thread = threading.Thread(
            target=server.run, args=([listener],), name=f"{THREAD_PREFIX} {url}", daemon=True
        )
        thread.start()
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def silence_libraries() -> Generator[None]:
    """Drop the libraries' log records from threads of this package; other threads log as usual."""

    def is_other_thread(record: logging.LogRecord) -> bool:
        return not (record.threadName or "").startswith(THREAD_PREFIX)

    for logger_name in _LIBRARY_LOGGERS:
        logging.getLogger(logger_name).addFilter(is_other_thread)
    try:
        yield
    finally:
        for logger_name in _LIBRARY_LOGGERS:
            logging.getLogger(logger_name).removeFilter(is_other_thread)
