"""Load generator: paid requests over persistent connections.

All requests are signed and serialized before the clock starts, so that sending them takes little time.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import uvloop
from payment_signer import sign_payments
from server_process import read_cpu_seconds


class BadResponse(Exception):
    """A paid request got a response other than 200 with a receipt."""


@dataclass(frozen=True)
class Target:
    """Server under load: its process, its route, the request body, and the challenge to pay."""

    pid: int
    port: int
    path: str
    body: bytes
    challenge: dict[str, Any]


@dataclass(frozen=True)
class Slice:
    """Result of a run of paid requests."""

    seconds: float
    latencies: list[float]
    """Seconds per request, in ascending order."""
    server_cpu: float
    """Processor time of the server in seconds."""
    load_cpu: float
    """Processor time of the load generator in seconds."""

    @property
    def count(self) -> int:
        return len(self.latencies)

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.count / self.seconds

    @property
    def cpu_us(self) -> float:
        """Processor time of the server in microseconds per request."""
        return self.server_cpu / self.count * 1e6

    def percentile(self, percent: float) -> float:
        """Return a percentile of the latencies in milliseconds."""
        return self.latencies[min(self.count - 1, int(self.count * percent / 100))] * 1e3


def run_slice(target: Target, connections: int, count: int) -> Slice:
    """Pay for `count` equal requests over a number of connections."""
    return run_requests(target, connections, [target.body] * count)


def run_paced_slice(target: Target, connections: int, count: int, rate: float) -> Slice:
    """Pay for `count` equal requests at a constant rate per second, independent of the responses."""
    return _run(target, connections, [target.body] * count, rate)


def run_requests(target: Target, connections: int, bodies: Sequence[bytes]) -> Slice:
    """Pay for a request with each body over a number of connections."""
    return _run(target, connections, bodies, None)


def _run(target: Target, connections: int, bodies: Sequence[bytes], rate: float | None) -> Slice:
    requests = [
        b"POST %b HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
        b"payment-signature: %b\r\n\r\n%b" % (target.path.encode(), target.port, len(body), payment, body)
        for payment, body in zip(sign_payments(target.challenge, len(bodies)), bodies, strict=True)
    ]
    gc.collect()
    gc.disable()
    try:
        return uvloop.run(_send_requests(target, connections, requests, rate))
    finally:
        gc.enable()


async def _send_requests(
    target: Target, connections: int, requests: list[bytes], rate: float | None
) -> Slice:
    loop = asyncio.get_running_loop()
    schedule = _RequestSchedule(requests, rate)
    open_connections = [
        (await loop.create_connection(lambda: _Connection(schedule), "127.0.0.1", target.port))[1]
        for _ in range(connections)
    ]
    server_before, load_before = read_cpu_seconds(target.pid), read_cpu_seconds(os.getpid())
    start = schedule.start_clock()
    for connection in open_connections:
        connection.send_next()
    latencies = await asyncio.gather(*(connection.result for connection in open_connections))
    seconds = time.perf_counter() - start
    return Slice(
        seconds,
        sorted(latency for each in latencies for latency in each),
        read_cpu_seconds(target.pid) - server_before,
        read_cpu_seconds(os.getpid()) - load_before,
    )


class _RequestSchedule:
    """Requests in order with their due times: immediately, or at a constant rate per second."""

    def __init__(self, requests: list[bytes], rate: float | None) -> None:
        self._requests = enumerate(requests)
        self._interval = 1 / rate if rate else 0.0
        self._start = 0.0

    def start_clock(self) -> float:
        """Start the clock; return its start on `time.perf_counter`."""
        self._start = time.perf_counter()
        return self._start

    def next_request(self) -> tuple[float, bytes] | None:
        """Return the next request with its due time, None after the last one."""
        number, request = next(self._requests, (0, None))
        if request is None:
            return None
        due = self._start + number * self._interval if self._interval else time.perf_counter()
        return due, request


class _Connection(asyncio.Protocol):
    """Connection that sends the next request when it is due and the previous response is complete."""

    def __init__(self, schedule: _RequestSchedule) -> None:
        self._schedule = schedule
        self._buffer = b""
        self._latencies: list[float] = []
        self.result: asyncio.Future[list[float]] = asyncio.get_running_loop().create_future()
        """Latencies in seconds of all requests of this connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send_next(self) -> None:
        """Send the next request; after the last one, close the connection and set the result."""
        scheduled = self._schedule.next_request()
        if scheduled is None:
            self._transport.close()
            self.result.set_result(self._latencies)
            return
        # the latency starts at the due time: a request that is sent late was delayed by the server
        self._due, request = scheduled
        delay = self._due - time.perf_counter()
        if delay > 0:
            asyncio.get_running_loop().call_later(delay, self._transport.write, request)
        else:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].lower()
        _, length_header, rest = head.partition(b"\r\ncontent-length:")
        has_receipt = head.startswith(b"http/1.1 200") and b"\r\npayment-response:" in head
        if not length_header or not has_receipt:
            self._fail(BadResponse(self._buffer.decode(errors="replace")[:2000]))
        elif len(self._buffer) >= end + 4 + int(rest.partition(b"\r\n")[0]):
            self._latencies.append(time.perf_counter() - self._due)
            self._buffer = b""
            self.send_next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(BadResponse(f"the server closed a connection: {exc}"))

    def _fail(self, error: BadResponse) -> None:
        if not self.result.done():
            self.result.set_exception(error)
            self._transport.abort()
