"""Transaction pooler for PostgreSQL that gives each transaction the connection that was idle longest.

It is as strict as a pooler may be: session state of a client is absent in its next transaction.
"""

from __future__ import annotations

import queue
import select
import socket
import struct
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

PROTOCOL, TLS_REQUEST = 196608, 80877103
"""Codes of a client's first message."""
NO_KEY = struct.pack("!cIII", b"K", 12, 7, 0)
"""Server process and key given to clients for cancel requests, which are ignored."""
_IDLE = b"Z\0\0\0\5I"
"""The server is ready, outside of a transaction."""


class TransactionPooler:
    """Pool of connections to one database, as one user without a password."""

    def __init__(self, server_port: int, database: str, size: int) -> None:
        self._server_port = server_port
        self._database = database
        self._greeting = b""
        self._is_closed = False
        self._idle: queue.Queue[socket.socket] = queue.Queue()
        for _ in range(size):
            self._idle.put(self._open_link())
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more clients, and close the connections that are not in use; others close when free."""
        self._is_closed = True
        self._listener.close()
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()

    def _open_link(self) -> socket.socket:
        """Open a connection to the server."""
        link = socket.create_connection(("127.0.0.1", self._server_port))
        parameters = f"user\0postgres\0database\0{self._database}\0\0".encode()
        link.sendall(struct.pack("!II", len(parameters) + 8, PROTOCOL) + parameters)
        greeting = b""
        while (message := _read_message(link)) != _IDLE:
            greeting += b"" if message[:1] == b"K" else message
        self._greeting = greeting
        return link

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve_client, args=(client,), daemon=True).start()

    def _serve_client(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            while (code := _read_startup(client)) == TLS_REQUEST:
                client.sendall(b"N")
            if code != PROTOCOL:
                return  # a request to cancel
            client.sendall(self._greeting + NO_KEY + _IDLE)
            while True:
                self._relay_transaction(client, _read_message(client))

    def _relay_transaction(self, client: socket.socket, message: bytes) -> None:
        """Relay messages from the first one until the server is outside of a transaction."""
        if message[:1] == b"X" or self._is_closed:
            raise ConnectionError("the client has gone, or the pooler is closed")
        link = self._idle.get()
        try:
            link.sendall(message)
            while True:
                readable, _, _ = select.select([link, client], [], [])
                if link in readable:
                    client.sendall(answer := _read_message(link))
                    if answer == _IDLE:
                        break
                elif client in readable:
                    link.sendall(_read_message(client))
        except OSError:  # the client has left a transaction
            link.close()
            if not self._is_closed:
                link = self._open_link()
            raise
        finally:
            self._idle.put(link)
            if self._is_closed:
                self.close()


def _read_message(source: socket.socket) -> bytes:
    """Read one message with its type and length."""
    head = _read_bytes(source, 5)
    return head + _read_bytes(source, int.from_bytes(head[1:], "big") - 4)


def _read_startup(client: socket.socket) -> int:
    """Read a client's first message and return its code."""
    length = int.from_bytes(_read_bytes(client, 4), "big")
    return int.from_bytes(_read_bytes(client, length - 4)[:4], "big")


def _read_bytes(source: socket.socket, size: int) -> bytes:
    """Read so many bytes. Raises ConnectionError at the end of a connection."""
    received = b""
    while len(received) < size:
        part = source.recv(size - len(received))
        if not part:
            raise ConnectionError("closed")
        received += part
    return received


@contextmanager
def open_transaction_pooler(url: str, size: int = 3) -> Generator[str]:
    """Run a pooler for the database of a URL, with `size` connections; yields the URL through it."""
    address, _, database = url.rpartition("/")
    pooler = TransactionPooler(int(address.rpartition(":")[2]), database, size)
    try:
        yield f"postgresql://postgres@127.0.0.1:{pooler.port}/{database}"
    finally:
        pooler.close()
