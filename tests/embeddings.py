"""Embeddings endpoint on loopback in OpenAI's format, with two dimensions: citrus and everything else."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


def embed_text(text: str) -> list[float]:
    """Return a vector: the first dimension for citrus, the second for everything else."""
    return [1.0, 0.1] if any(word in text.lower() for word in ("kumquat", "citrus")) else [0.1, 1.0]


@contextmanager
def serve_embeddings() -> Generator[tuple[str, list[Any]]]:
    """Yield the endpoint's URL, and the list of received request bodies."""
    requests: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append({**body, "path": self.path, "authorization": self.headers["Authorization"]})
            rows = [
                {"object": "embedding", "index": number, "embedding": embed_text(text)}
                for number, text in enumerate(body["input"])
            ]
            answer = json.dumps({"object": "list", "data": rows[::-1], "model": body["model"]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()
