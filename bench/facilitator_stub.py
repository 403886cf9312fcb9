"""Facilitator stub that accepts every payment: the same small cost for every server under test.

    python bench/facilitator_stub.py [MILLISECONDS]

Responds immediately, or after a delay in milliseconds. Listens on a free loopback port and prints
`ready http://...` on a line of its own.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, cast

import orjson
import uvloop

NETWORK = "eip155:84532"
SUPPORTED: Any = {
    "kinds": [{"x402Version": 2, "scheme": "exact", "network": NETWORK}],
    "extensions": [],
    "signers": {"eip155:*": ["0x" + "22" * 20]},
}


class FacilitatorConnection(asyncio.Protocol):
    """HTTP/1.1 connection with keep-alive: the part of the protocol that the clients use."""

    def __init__(self, delay: float) -> None:
        self._buffer = b""
        self._delay = delay

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            size = end + 4 + parse_content_length(head)
            if len(self._buffer) < size:
                return
            body, self._buffer = self._buffer[end + 4 : size], self._buffer[size:]
            content = orjson.dumps(build_response(head.split(b" ", 2)[1], body))
            self._send_response(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
                % (len(content), content)
            )

    def _send_response(self, response: bytes) -> None:
        if self._delay:
            asyncio.get_running_loop().call_later(self._delay, self._transport.write, response)
        else:
            self._transport.write(response)


def parse_content_length(head: bytes) -> int:
    """Return the length in bytes of the body after a head, 0 without a `Content-Length`."""
    _, length_header, rest = head.lower().partition(b"\r\ncontent-length:")
    return int(rest.partition(b"\r\n")[0]) if length_header else 0


def build_response(path: bytes, body: bytes) -> dict[str, Any]:
    """Return the JSON body with which x402's facilitator interface accepts a payment."""
    if path.endswith(b"/supported"):
        return SUPPORTED
    authorization = orjson.loads(body)["paymentPayload"]["payload"]["authorization"]
    if path.endswith(b"/verify"):
        return {"isValid": True, "payer": authorization["from"]}
    return {
        "success": True,
        "payer": authorization["from"],
        "transaction": authorization["nonce"],
        "network": NETWORK,
    }


async def main() -> None:
    """Serve until terminated."""
    delay = float(sys.argv[1]) / 1000 if sys.argv[1:] else 0.0
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: FacilitatorConnection(delay), "127.0.0.1", 0, backlog=256)
    print(f"ready http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)  # noqa: T201
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
