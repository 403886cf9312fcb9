"""Scripted stub of a facilitator over real HTTP, which counts the transfers."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import uvicorn
from databases import create_sqlite
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.settings import Settings

Reply = Callable[[dict[str, Any]], Awaitable[Response]]


def reply_with(status: int, content: Any, **headers: str) -> Reply:
    """Return a reply that moves no money: JSON, or plain text."""

    async def reply(_body: dict[str, Any]) -> Response:
        if isinstance(content, str):
            return Response(content, status, headers, media_type="text/html")
        return JSONResponse(content, status, headers)

    return reply


def refuse_with(reason: str) -> Reply:
    """Return an x402 refusal."""
    answer = {"success": False, "errorReason": reason, "transaction": "", "network": "eip155:84532"}
    return reply_with(200, answer)


class StubFacilitator:
    """Settles once per payer and nonce and repeats its answer, unless `next` holds other replies."""

    def __init__(self) -> None:
        self.url = ""
        self.next: list[Reply] = []
        """Replies to the next settle calls, first to last."""
        self.usually: Reply = self.settle
        """Reply to all other calls."""
        self.moved: Counter[tuple[str, str]] = Counter()
        """Number of transfers, by payer and nonce."""
        self.settle_calls = 0
        """Number of settle calls."""
        self.headers: Mapping[str, str] = {}
        self.body: dict[str, Any] = {}
        """Body of the last settle call."""
        self.contents: list[bytes] = []
        """Bodies of all settle calls, as received."""
        self._lock = threading.Lock()

    async def settle(self, body: dict[str, Any]) -> Response:
        """Move the money once, and always confirm it."""
        return JSONResponse(self.move(body))

    def move(self, body: dict[str, Any]) -> dict[str, Any]:
        """Act and answer like a working facilitator."""
        authorization = body["paymentPayload"]["payload"]["authorization"]
        key = (authorization["from"].lower(), authorization["nonce"].lower())
        with self._lock:
            if not self.moved[key]:
                self.moved[key] += 1
        return {
            "success": True,
            "payer": authorization["from"],
            "transaction": "0x" + key[1][2:],
            "network": body["paymentRequirements"]["network"],
        }

    def move_then_reply(self, reply: Reply) -> Reply:
        """Return a reply that moves the money, then answers with `reply`."""

        async def move_money(body: dict[str, Any]) -> Response:
            self.move(body)
            return await reply(body)

        return move_money

    def reply_slowly(self, seconds: float, reply: Reply | None = None) -> Reply:
        """Return a reply that answers late."""

        async def late(body: dict[str, Any]) -> Response:
            await asyncio.sleep(seconds)
            return await (reply or self.settle)(body)

        return late

    def reply_when_released(
        self, arrived: threading.Event, release: threading.Event, reply: Reply | None = None
    ) -> Reply:
        """Return a reply that signals its arrival, and answers when released."""

        async def reply_late(body: dict[str, Any]) -> Response:
            arrived.set()
            await _wait_for_event(release, 60)
            return await (reply or self.settle)(body)

        return reply_late

    def reply_erratically(self, seed: int, seconds: float) -> Reply:
        """Return a reply with random delays before and after the transfer, and random answers to repetitions.

        Some facilitators answer a payment they settled before with the same success, others with a refusal.
        """
        random = Random(seed)

        async def settle_erratically(body: dict[str, Any]) -> Response:
            before, after, strict = (
                random.random() * seconds,
                random.random() * seconds,
                random.random() < 0.5,
            )
            await asyncio.sleep(before)
            if strict and self.has_moved(body):
                return await refuse_with("invalid_exact_evm_nonce_already_used")(body)
            answer = self.move(body)
            await asyncio.sleep(after)
            return JSONResponse(answer)

        return settle_erratically

    def has_moved(self, body: dict[str, Any]) -> bool:
        """Return True if the money of this settle call has moved before."""
        authorization = body["paymentPayload"]["payload"]["authorization"]
        return self.moved[authorization["from"].lower(), authorization["nonce"].lower()] > 0

    async def answer(self, request: Request) -> Response:
        """Handle `POST /settle`."""
        self.settle_calls += 1
        self.headers = request.headers
        self.contents.append(await request.body())
        self.body = body = json.loads(self.contents[-1])
        reply = self.next.pop(0) if self.next else self.usually
        return await reply(body)


async def _wait_for_event(event: threading.Event, seconds: float) -> None:
    """Wait for an event of another thread, without a thread per waiter."""
    for _ in range(int(seconds / 0.005)):
        if event.is_set():
            return
        await asyncio.sleep(0.005)


@contextmanager
def open_stub_facilitators() -> Generator[Callable[[], StubFacilitator]]:
    """Yield a factory of stub facilitators, which share a loopback port."""
    stubs: list[StubFacilitator] = []

    async def answer(request: Request) -> Response:
        number: int = request.path_params["number"]
        return await stubs[number].answer(request)

    app = Starlette(routes=[Route("/{number:int}/settle", answer, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]

    def another() -> StubFacilitator:
        stub = StubFacilitator()
        stub.url = f"http://127.0.0.1:{port}/{len(stubs)}"
        stubs.append(stub)
        return stub

    yield another
    server.should_exit = server.force_exit = True
    thread.join()


@contextmanager
def open_stub_facilitator() -> Generator[StubFacilitator]:
    """Serve a stub facilitator on its own loopback port."""
    with open_stub_facilitators() as another:
        yield another()


def build_settings(folder: Path, facilitator_url: str, **changes: Any) -> Settings:
    """Return settings of a deployment on the test network, with its journal in a folder."""
    given: dict[str, Any] = {
        "pay_to": DEFAULT_PAYEE,
        "network": "eip155:84532",
        "facilitator_url": facilitator_url,
        "database_url": changes.get("database_url") or create_sqlite(folder),
        "port": 0,
        "free_per_minute": 0,  # all tests come from one IP address
        "refused_per_minute": 0,
        "pagereader_render": False,  # the same with and without a browser on the machine
    }
    return Settings(**{**given, **changes})
