"""The load: paid requests over kept-alive connections, written in advance, so that sending them is cheap."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import uvloop
from payment_signer import signed_payments
from processes import cpu_seconds


class BadAnswer(Exception):
    """A paid request was not answered with 200 and a receipt."""


@dataclass(frozen=True)
class Target:
    """A server that sells one thing: where, on what terms, and what it is asked."""

    pid: int
    port: int
    path: str
    body: bytes
    offer: dict[str, Any]


@dataclass(frozen=True)
class Slice:
    """Result of a run of paid requests."""

    seconds: float
    latencies: list[float]
    """Seconds a request took, in ascending order."""
    server_cpu: float
    """Processor seconds of the server, and below of the load itself."""
    load_cpu: float

    @property
    def count(self) -> int:
        return len(self.latencies)

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.count / self.seconds

    @property
    def cpu_us(self) -> float:
        """Microseconds of server processor time a request."""
        return self.server_cpu / self.count * 1e6

    def percentile(self, percent: float) -> float:
        """Milliseconds that so many percent of the requests stayed within."""
        return self.latencies[min(self.count - 1, int(self.count * percent / 100))] * 1e3


def run_slice(target: Target, connections: int, count: int) -> Slice:
    """Pay for `count` equal requests over so many connections."""
    return run_requests(target, connections, [target.body] * count)


def run_paced(target: Target, connections: int, count: int, rate: float) -> Slice:
    """Pay for `count` equal requests that come at a steady rate, so many a second, whatever is answered."""
    return _run(target, connections, [target.body] * count, rate)


def run_requests(target: Target, connections: int, bodies: Sequence[bytes]) -> Slice:
    """Pay for a request with each body, signed before the clock starts, over so many connections."""
    return _run(target, connections, bodies, None)


def _run(target: Target, connections: int, bodies: Sequence[bytes], rate: float | None) -> Slice:
    requests = [
        b"POST %b HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
        b"payment-signature: %b\r\n\r\n%b" % (target.path.encode(), target.port, len(body), payment, body)
        for payment, body in zip(signed_payments(target.offer, len(bodies)), bodies, strict=True)
    ]
    gc.collect()
    gc.disable()
    try:
        return uvloop.run(_sent(target, connections, requests, rate))
    finally:
        gc.enable()


async def _sent(target: Target, connections: int, requests: list[bytes], rate: float | None) -> Slice:
    loop = asyncio.get_running_loop()
    turns = _Turns(requests, rate)
    open_connections = [
        (await loop.create_connection(lambda: _Connection(turns), "127.0.0.1", target.port))[1]
        for _ in range(connections)
    ]
    server_before, load_before = cpu_seconds(target.pid), cpu_seconds(os.getpid())
    start = turns.begin()
    for connection in open_connections:
        connection.send()
    latencies = await asyncio.gather(*(connection.done for connection in open_connections))
    seconds = time.perf_counter() - start
    return Slice(
        seconds,
        sorted(latency for each in latencies for latency in each),
        cpu_seconds(target.pid) - server_before,
        cpu_seconds(os.getpid()) - load_before,
    )


class _Turns:
    """The requests in order, and when each is due: at once, or at a steady rate."""

    def __init__(self, requests: list[bytes], rate: float | None) -> None:
        self._requests = enumerate(requests)
        self._gap = 1 / rate if rate else 0.0
        self._start = 0.0

    def begin(self) -> float:
        """Start the clock."""
        self._start = time.perf_counter()
        return self._start

    def next(self) -> tuple[float, bytes] | None:
        """The next request, and when it is due."""
        number, request = next(self._requests, (0, None))
        if request is None:
            return None
        return (self._start + number * self._gap if self._gap else time.perf_counter()), request


class _Connection(asyncio.Protocol):
    """Sends the next request when it is due, or as soon after as the last is answered."""

    def __init__(self, turns: _Turns) -> None:
        self._turns = turns
        self._received = b""
        self._latencies: list[float] = []
        self.done: asyncio.Future[list[float]] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send(self) -> None:
        """Send one request, or say that there are no more."""
        turn = self._turns.next()
        if turn is None:
            self._transport.close()
            self.done.set_result(self._latencies)
            return
        # a request that was due and had to wait has waited for the server
        self._sent_at, request = turn
        wait = self._sent_at - time.perf_counter()
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._transport.write, request)
        else:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._received[:end].lower()
        _, told, rest = head.partition(b"\r\ncontent-length:")
        paid = head.startswith(b"http/1.1 200") and b"\r\npayment-response:" in head
        if not told or not paid:
            self._fail(BadAnswer(self._received.decode(errors="replace")[:2000]))
        elif len(self._received) >= end + 4 + int(rest.partition(b"\r\n")[0]):
            self._latencies.append(time.perf_counter() - self._sent_at)
            self._received = b""
            self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(BadAnswer(f"the server closed a connection: {exc}"))

    def _fail(self, error: BadAnswer) -> None:
        if not self.done.done():
            self.done.set_exception(error)
            self._transport.abort()
