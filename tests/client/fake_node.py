"""Ethereum node of a wallet's owner that answers as a test says."""

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
def node(answer: Rpc) -> Generator[str]:
    """An Ethereum node that answers as a test says."""

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


def node_at(seconds: float, *, used: bool, chain: str = NETWORK) -> Rpc:
    """Answers of a node whose latest block is `seconds` from now, about any nonce."""

    def answer(method: str, _params: list[Any]) -> Any:
        return {
            "eth_chainId": hex(int(chain.removeprefix("eip155:"))),
            "eth_getBlockByNumber": {"number": "0x10", "timestamp": hex(int(time.time() + seconds))},
            "eth_call": "0x" + f"{int(used):064x}",
        }[method]

    return answer
