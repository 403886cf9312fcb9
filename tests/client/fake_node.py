"""Ethereum node of a wallet's owner with scripted answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from hostile import NETWORK

Rpc = Callable[[str, list[Any]], Any]


@contextmanager
def serve_node(answer: Rpc) -> Generator[str]:
    """Serve an Ethereum node with scripted answers, and return its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            result = answer(asked["method"], asked["params"])
            body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def answer_at(seconds: float, *, used: bool, chain: str = NETWORK) -> Rpc:
    """Return the answers of a node whose latest block is `seconds` from now, about any nonce."""

    def answer(method: str, _params: list[Any]) -> Any:
        return {
            "eth_chainId": hex(int(chain.removeprefix("eip155:"))),
            "eth_getBlockByNumber": {"number": "0x10", "timestamp": hex(int(time.time() + seconds))},
            "eth_call": "0x" + f"{int(used):064x}",
        }[method]

    return answer
