"""Run a web application on a loopback port, in a thread and an event loop of its own, without a word."""

import logging
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.applications import Starlette

HOST = "127.0.0.1"
THREADS = "devchain"  # every thread of this package is named so, which is how its log lines are known

_TALKERS = (
    "uvicorn.error",
    "uvicorn.access",
    "x402.mechanisms.evm.exact.facilitator",
    "x402.mechanisms.evm.signers",
)


@contextmanager
def served(app: "Starlette", port: int) -> Generator[str]:
    """The URL of `app` while it is served; port 0 takes a free one. Raises OSError for a port in use."""
    import uvicorn

    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen()  # from here on clients connect, and wait until the loop below runs
        # no level and no access_log=False: uvicorn would set them for every server of this process
        config = uvicorn.Config(
            app,
            log_config=None,
            lifespan="off",
            ws="none",
            timeout_keep_alive=3600,  # else a connection may end just as the next request is sent on it
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)
        url = f"http://{HOST}:{listening.getsockname()[1]}"
        thread = threading.Thread(
            target=server.run, args=([listening],), name=f"{THREADS} {url}", daemon=True
        )
        thread.start()
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def quiet() -> Generator[None]:
    """Drop what the libraries log in the threads of this package; elsewhere they log as ever."""

    def is_not_ours(record: logging.LogRecord) -> bool:
        return not (record.threadName or "").startswith(THREADS)

    for talker in _TALKERS:
        logging.getLogger(talker).addFilter(is_not_ours)
    try:
        yield
    finally:
        for talker in _TALKERS:
            logging.getLogger(talker).removeFilter(is_not_ours)
