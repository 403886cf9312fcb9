"""A facilitator that agrees to everything at once: the same, and as little, cost for every server under test.

    python bench/facilitator_stub.py [MILLISECONDS]

It answers at once, or after so many milliseconds.
Listens on a free loopback port and says `ready http://...` on a line of its own.
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


class Stub(asyncio.Protocol):
    """HTTP/1.1 with kept-alive connections, as far as two HTTP clients need it."""

    def __init__(self, delay: float) -> None:
        self._received = b""
        self._delay = delay

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end]
            size = end + 4 + content_length(head)
            if len(self._received) < size:
                return
            body, self._received = self._received[end + 4 : size], self._received[size:]
            content = orjson.dumps(answer(head.split(b" ", 2)[1], body))
            self._send(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
                % (len(content), content)
            )

    def _send(self, response: bytes) -> None:
        if self._delay:
            asyncio.get_running_loop().call_later(self._delay, self._transport.write, response)
        else:
            self._transport.write(response)


def content_length(head: bytes) -> int:
    """The size of the body that follows a head; the clients here always say it."""
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    return int(rest.partition(b"\r\n")[0]) if found else 0


def answer(path: bytes, body: bytes) -> dict[str, Any]:
    """Return the response of x402's facilitator interface to a valid payment."""
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
    """Listen until ended."""
    delay = float(sys.argv[1]) / 1000 if sys.argv[1:] else 0.0
    server = await asyncio.get_running_loop().create_server(lambda: Stub(delay), "127.0.0.1", 0, backlog=256)
    print(f"ready http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)  # noqa: T201
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
