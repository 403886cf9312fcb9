"""A siege: buyers pay, and the servers they pay are killed at random; afterwards the books are audited."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx
from buyer import PHISHING, Buyer, encoded
from houses import Process
from sqlalchemy import select

from centgate.devchain.house import DevChain
from centgate.devchain.node import ask
from centgate.payments.statements import Ask, Asking, Row, statement
from centgate.payments.store import open_store
from centgate.payments.tables import payments
from centgate.settings import Settings

STEPS = ("claimed", "settled", "produced", "delivered")
BUYERS = 24
"""Buyers who ask at the same time."""
IMPATIENT = 0.15
"""The part of them who go away when they are not answered, and come back when it is quiet."""
PRICE = 10_000
PATIENCE = 900.0

ANY_MOMENT = "any moment"

Moved = Callable[[str, str], bool]
"""Whether the money of a payer's nonce has moved, says who must know."""


class Broken(AssertionError):
    """A promise that was not kept."""


@dataclass
class Purchase:
    """One payment, and what came of it."""

    payment: str
    body: dict[str, str]
    payer: str
    nonce: str
    answer: bytes | None = None
    tries: int = 0


@dataclass(frozen=True)
class Books:
    """What an audit found."""

    states: Counter[str]
    """Payments by what the journal says of them."""
    charged: int
    """Payments whose money has moved."""
    open: int
    """Those of them of which the journal does not know it yet."""


@dataclass
class Replica:
    """A server that is killed and started again."""

    settings: Settings
    more: dict[str, str]
    log: Path
    process: Process | None = None
    fault: str | None = None

    @property
    def url(self) -> str | None:
        """Where it answers; None while it does not."""
        return self.process.url if self.process else None

    @property
    def dead(self) -> bool:
        """Whether it has died by itself."""
        return self.process is not None and self.process.popen.poll() is not None

    async def start(self, fault: str | None = None) -> None:
        """Start it; `fault` is the step of a payment at which it dies by itself."""
        more = {"PAYMENT_WINDOW": "3600"} | self.more | ({"FAULT": fault} if fault else {})
        self.fault = fault
        self.process = await asyncio.to_thread(partial(Process, self.settings, log=self.log, **more))

    async def kill(self) -> None:
        """End it at once."""
        process, self.process = self.process, None
        if process:
            await asyncio.to_thread(process.kill)


@dataclass
class Siege:
    """Servers under attack, and the buyers who ask them."""

    replicas: Sequence[Replica]
    random: Random
    purchases: list[Purchase] = field(default_factory=list[Purchase])
    deaths: Counter[str] = field(default_factory=Counter[str])
    """How often a server died, by the step it was told to die at."""
    broken: int = 0
    """Requests whose server died over them."""
    allowed: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, 0))
    """Purchases that may begin."""
    left: int = 0
    """Purchases whose buyer was answered, or went away."""
    seconds: float = 0

    async def lay(self, count: int, deaths: int) -> None:
        """Buy so much, and meanwhile kill servers, so often."""
        self.purchases = await asyncio.to_thread(signed, self.replicas[0].url or "", count)
        started = time.monotonic()
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            group.create_task(self._rage(count, deaths))
            async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
                queue = iter(self.purchases)
                await asyncio.gather(*(self._shop(client, queue) for _ in range(BUYERS)))
            self.seconds = time.monotonic() - started

    async def relieve(self) -> None:
        """Let one server work in peace, and every buyer without an answer come back for it."""
        for replica in self.replicas:
            await replica.kill()
        await self.replicas[0].start()
        async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
            queue = (purchase for purchase in self.purchases if purchase.answer is None)
            await asyncio.gather(*(self._insist(client, queue) for _ in range(BUYERS)))

    async def repeat(self) -> None:
        """Send every payment once more: Broken unless the same bytes come back."""
        async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
            for purchase in self.purchases:
                response = await _post(client, self.replicas[0].url or "", purchase)
                if response.content != purchase.answer or "Idempotent-Replayed" not in response.headers:
                    raise Broken(f"repeated, {purchase.nonce} got {response.status_code} {response.text}")

    async def _shop(self, client: httpx.AsyncClient, queue: Iterator[Purchase]) -> None:
        for purchase in queue:
            await self.allowed.acquire()
            patient = self.random.random() > IMPATIENT
            await self._ask(client, purchase)
            while purchase.answer is None and patient:
                await asyncio.sleep(0.02)
                await self._ask(client, purchase)
            self.left += 1

    async def _insist(self, client: httpx.AsyncClient, queue: Iterator[Purchase]) -> None:
        for purchase in queue:
            while purchase.answer is None:
                await asyncio.sleep(0.02)
                await self._ask(client, purchase)

    async def _ask(self, client: httpx.AsyncClient, purchase: Purchase) -> None:
        """Send a payment to one of the servers; Broken for an answer that a buyer cannot live with."""
        url = self.random.choice(self.replicas).url
        if url is None:
            return
        purchase.tries += 1
        try:
            response = await _post(client, url, purchase)
        except httpx.ConnectError:
            return
        except httpx.TransportError:
            self.broken += 1
            return
        if response.status_code == 200:
            purchase.answer = response.content
        elif response.status_code not in (500, 502, 504) or _retry(response) != "same_payment":
            raise Broken(f"{purchase.nonce} got {response.status_code} {response.text}")

    async def _rage(self, count: int, deaths: int) -> None:
        """Kill a server at any moment, or have it die at a step; start it again, and go on.

        Before each death a portion of the purchases may begin, so that a server is paid while it dies
        however quick the machine is.
        """
        faults: list[str | None] = []
        portion = count // (deaths + 1)
        for number in range(deaths):
            self._allow(portion)
            dead = [replica for replica in self.replicas if replica.dead]
            replica = self.random.choice(dead or self.replicas)
            moment = portion * number + self.random.randrange(portion)
            while not replica.dead and self.left < moment:  # noqa: ASYNC110 - a death has no event
                await asyncio.sleep(0.005)
            self.deaths[(replica.fault if replica.dead else None) or ANY_MOMENT] += 1
            await replica.kill()
            faults = faults or self._shuffled()
            await replica.start(faults.pop())
        for replica in self.replicas:
            if replica.fault:
                await replica.kill()
                await replica.start()
        self._allow(count - portion * deaths)

    def _allow(self, purchases: int) -> None:
        for _ in range(purchases):
            self.allowed.release()

    def _shuffled(self) -> list[str | None]:
        faults = [*STEPS, *[None] * 4]
        self.random.shuffle(faults)
        return faults


@asynccontextmanager
async def besieged(
    settings: Settings, log: Path, *, replicas: int, seed: int, **more: str
) -> AsyncGenerator[Siege]:
    """Servers on one journal, which write one log; `more` are settings as the environment spells them."""
    servers = [Replica(settings, more, log) for _ in range(replicas)]
    try:
        for server in servers:
            await server.start()
        yield Siege(servers, Random(seed))
    finally:
        for server in servers:
            await server.kill()


async def audit(siege: Siege, moved: Moved) -> Books:
    """Hold the journal against the money, payment by payment; Broken where they disagree."""
    states = {row["nonce"]: row["state"] for row in await rows(siege.replicas[0].settings.database_url)}
    charged = Counter[str]()
    for purchase in siege.purchases:
        state = states.get(purchase.nonce, "nothing")
        if await asyncio.to_thread(moved, purchase.payer, purchase.nonce):
            charged[state] += 1
        elif state in ("settled", "delivered"):
            raise Broken(f"{purchase.nonce} was not charged, and the journal says {state}")
        if purchase.answer and state != "delivered":
            raise Broken(f"{purchase.nonce} was answered, and the journal says {state}")
    if strange := charged.keys() - {"settling", "settled", "delivered"}:
        raise Broken(f"payments were charged of which the journal says {strange}")
    return Books(Counter(states.values()), charged.total(), charged["settling"])


def failed_on(chain: DevChain, since: int) -> int:
    """How many transactions after a block were mined for nothing."""
    blocks = [block(chain, number) for number in range(since + 1, height(chain) + 1)]
    mined = (transaction for found in blocks for transaction in found["transactions"])
    receipts = (ask(chain.rpc_url, "eth_getTransactionReceipt", transaction) for transaction in mined)
    return sum(receipt["status"] == "0x0" for receipt in receipts)


def block(chain: DevChain, number: int) -> dict[str, Any]:
    """A block, with the hashes of its transactions."""
    whole_transactions = False
    return ask(chain.rpc_url, "eth_getBlockByNumber", hex(number), whole_transactions)


def height(chain: DevChain) -> int:
    """The number of the newest block."""
    return int(ask(chain.rpc_url, "eth_blockNumber"), 16)


async def rows(database_url: str) -> list[Row]:
    """Every payment in the journal."""
    store = open_store(database_url)
    try:
        return await store.read(_all)
    finally:
        await store.close()


def _all() -> Asking[list[Row]]:
    return (yield Ask(_ALL, {}))


_ALL = statement(select(payments))


def signed(url: str, count: int) -> list[Purchase]:
    """So many payments of ten payers, each for a request of its own."""
    with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
        terms = client.post(PHISHING).headers["PAYMENT-REQUIRED"]
    return [_signed(terms, number) for number in range(count)]


def _signed(terms: str, number: int) -> Purchase:
    buyer = Buyer(number % 10)
    nonce = "0x" + secrets.token_hex(32)  # not of the seed: a chain may have seen those
    payload = buyer.payload(terms, now=int(time.time()), seconds=3600, nonce=nonce)
    body = {"url": f"https://example.com/{number}"}
    return Purchase(encoded(payload), body, buyer.address.lower(), nonce)


async def _post(client: httpx.AsyncClient, url: str, purchase: Purchase) -> httpx.Response:
    headers = {"PAYMENT-SIGNATURE": purchase.payment}
    return await client.post(url + PHISHING, json=purchase.body, headers=headers)


def _retry(response: httpx.Response) -> str | None:
    """What an error asks the buyer to do, if it says so."""
    details: dict[str, Any] = response.json()["error"].get("details", {})
    return details.get("payment", {}).get("retry")
