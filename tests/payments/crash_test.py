"""Crash test: buyers pay while their servers are killed at random; afterwards the journal is audited."""

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
from buyer import PHISHING, Buyer, encode_header
from served_api import ApiProcess
from sqlalchemy import select

from centgate.devchain.devnet import DevChain
from centgate.devchain.rpc_client import call_rpc
from centgate.payments.database.sql import BoundStatement, ResultRow, UnitOfWork, compile_statement
from centgate.payments.database.store_factory import open_store
from centgate.payments.database.tables import payments
from centgate.settings import Settings

STEPS = ("claimed", "settled", "produced", "delivered")
BUYERS = 24
"""Number of concurrent buyers."""
GIVE_UP_SHARE = 0.15
"""Share of buyers that give up without an answer, and return after the crashes."""
PRICE = 10_000
PATIENCE = 900.0

ANY_MOMENT = "any moment"

HasMoved = Callable[[str, str], bool]
"""Returns True if the money of a payer's nonce has moved, according to the source of truth."""


class GuaranteeViolation(AssertionError):
    """A violated guarantee."""


@dataclass
class CrashTestPurchase:
    """One payment and its result."""

    payment: str
    body: dict[str, str]
    payer: str
    nonce: str
    answer: bytes | None = None
    tries: int = 0


@dataclass(frozen=True)
class JournalAudit:
    """Result of an audit of the journal."""

    states: Counter[str]
    """Number of payments by state in the journal."""
    charged: int
    """Number of payments whose money has moved."""
    open: int
    """Number of these payments that are still open in the journal."""


@dataclass
class Replica:
    """A server that is killed and restarted."""

    settings: Settings
    more: dict[str, str]
    log: Path
    process: ApiProcess | None = None
    fault: str | None = None

    @property
    def url(self) -> str | None:
        """URL of the server; None while it is down."""
        return self.process.url if self.process else None

    @property
    def has_died(self) -> bool:
        """True if the process has crashed by itself."""
        return self.process is not None and self.process.popen.poll() is not None

    async def start(self, fault: str | None = None) -> None:
        """Start the server; `fault` is the payment step at which it crashes by itself."""
        more = {"PAYMENT_WINDOW": "3600"} | self.more | ({"FAULT": fault} if fault else {})
        self.fault = fault
        self.process = await asyncio.to_thread(partial(ApiProcess, self.settings, log=self.log, **more))

    async def kill(self) -> None:
        """Kill the server."""
        process, self.process = self.process, None
        if process:
            await asyncio.to_thread(process.kill)


@dataclass
class CrashTest:
    """Servers that are killed, and the buyers that call them."""

    replicas: Sequence[Replica]
    random: Random
    purchases: list[CrashTestPurchase] = field(default_factory=list[CrashTestPurchase])
    deaths: Counter[str] = field(default_factory=Counter[str])
    """Number of crashes, by the step at which they were injected."""
    broken: int = 0
    """Requests that were interrupted by a crash."""
    unanswered: Counter[str] = field(default_factory=Counter[str])
    """Number of requests that wait for their response, by the server's URL."""
    allowed: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, 0))
    """Semaphore of purchases that may start."""
    left: int = 0
    """Purchases that were answered, or given up."""
    seconds: float = 0

    async def run(self, count: int, deaths: int) -> None:
        """Make purchases while servers are killed."""
        self.purchases = await asyncio.to_thread(sign_purchases, self.replicas[0].url or "", count)
        started = time.monotonic()
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            group.create_task(self._kill_servers(count, deaths))
            async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
                queue = iter(self.purchases)
                await asyncio.gather(*(self._buy_all(client, queue) for _ in range(BUYERS)))
            self.seconds = time.monotonic() - started

    async def recover(self) -> None:
        """Restart one server, and repeat every purchase without an answer."""
        for replica in self.replicas:
            await replica.kill()
        await self.replicas[0].start()
        async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
            queue = (purchase for purchase in self.purchases if purchase.answer is None)
            await asyncio.gather(*(self._retry_all(client, queue) for _ in range(BUYERS)))

    async def replay_all(self) -> None:
        """Send every payment once more. Raises an error unless the same bytes are returned."""
        async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
            for purchase in self.purchases:
                response = await _post(client, self.replicas[0].url or "", purchase)
                if response.content != purchase.answer or "Idempotent-Replayed" not in response.headers:
                    raise GuaranteeViolation(
                        f"repeated, {purchase.nonce} got {response.status_code} {response.text}"
                    )

    async def _buy_all(self, client: httpx.AsyncClient, queue: Iterator[CrashTestPurchase]) -> None:
        for purchase in queue:
            await self.allowed.acquire()
            patient = self.random.random() > GIVE_UP_SHARE
            await self._ask(client, purchase)
            while purchase.answer is None and patient:
                await asyncio.sleep(0.02)
                await self._ask(client, purchase)
            self.left += 1

    async def _retry_all(self, client: httpx.AsyncClient, queue: Iterator[CrashTestPurchase]) -> None:
        for purchase in queue:
            while purchase.answer is None:
                await asyncio.sleep(0.02)
                await self._ask(client, purchase)

    async def _ask(self, client: httpx.AsyncClient, purchase: CrashTestPurchase) -> None:
        """Send a payment to one of the servers; raise an error if the response violates a guarantee."""
        url = self.random.choice(self.replicas).url
        if url is None:
            return
        purchase.tries += 1
        self.unanswered[url] += 1
        try:
            response = await _post(client, url, purchase)
        except httpx.ConnectError:
            return
        except httpx.TransportError:
            self.broken += 1
            return
        finally:
            self.unanswered[url] -= 1
        if response.status_code == 200:
            purchase.answer = response.content
        elif response.status_code not in (500, 502, 504) or _retry_advice(response) != "same_payment":
            raise GuaranteeViolation(f"{purchase.nonce} got {response.status_code} {response.text}")

    async def _kill_servers(self, count: int, deaths: int) -> None:
        """Kill servers at random moments or at injected steps, and restart them.

        Before each crash a portion of the purchases may start, and the server waits for a request, so that
        it is paid while it crashes even on a fast machine.
        """
        faults: list[str | None] = []
        portion = count // (deaths + 1)
        for number in range(deaths):
            self._allow_purchases(portion)
            dead = [replica for replica in self.replicas if replica.has_died]
            replica = self.random.choice(dead or self.replicas)
            moment = portion * number + self.random.randrange(portion)
            while not replica.has_died and (  # noqa: ASYNC110 - a crash has no event
                self.left < moment
                or (self.left < portion * (number + 1) and not self.unanswered[replica.url or ""])
            ):
                await asyncio.sleep(0.005)
            self.deaths[(replica.fault if replica.has_died else None) or ANY_MOMENT] += 1
            await replica.kill()
            faults = faults or self._shuffle_faults()
            await replica.start(faults.pop())
        for replica in self.replicas:
            if replica.fault:
                await replica.kill()
                await replica.start()
        self._allow_purchases(count - portion * deaths)

    def _allow_purchases(self, purchases: int) -> None:
        for _ in range(purchases):
            self.allowed.release()

    def _shuffle_faults(self) -> list[str | None]:
        faults = [*STEPS, *[None] * 4]
        self.random.shuffle(faults)
        return faults


@asynccontextmanager
async def open_crash_test(
    settings: Settings, log: Path, *, replicas: int, seed: int, **more: str
) -> AsyncGenerator[CrashTest]:
    """Open servers on one journal and one log; `more` are settings by environment name without prefix."""
    servers = [Replica(settings, more, log) for _ in range(replicas)]
    try:
        for server in servers:
            await server.start()
        yield CrashTest(servers, Random(seed))
    finally:
        for server in servers:
            await server.kill()


async def audit_journal(crash_test: CrashTest, moved: HasMoved) -> JournalAudit:
    """Compare the journal with the money moved, payment by payment. Raises an error for a difference."""
    states = {
        row["nonce"]: row["state"]
        for row in await read_payment_rows(crash_test.replicas[0].settings.database_url)
    }
    charged = Counter[str]()
    for purchase in crash_test.purchases:
        state = states.get(purchase.nonce, "nothing")
        if await asyncio.to_thread(moved, purchase.payer, purchase.nonce):
            charged[state] += 1
        elif state in ("settled", "delivered"):
            raise GuaranteeViolation(f"{purchase.nonce} was not charged, and the journal says {state}")
        if purchase.answer and state != "delivered":
            raise GuaranteeViolation(f"{purchase.nonce} was answered, and the journal says {state}")
    if strange := charged.keys() - {"settling", "settled", "delivered"}:
        raise GuaranteeViolation(f"payments were charged of which the journal says {strange}")
    return JournalAudit(Counter(states.values()), charged.total(), charged["settling"])


def count_failed_transactions(chain: DevChain, since: int) -> int:
    """Count the transactions after a block that were mined but reverted."""
    blocks = [read_block(chain, number) for number in range(since + 1, read_block_number(chain) + 1)]
    mined = (transaction for found in blocks for transaction in found["transactions"])
    receipts = (call_rpc(chain.rpc_url, "eth_getTransactionReceipt", transaction) for transaction in mined)
    return sum(receipt["status"] == "0x0" for receipt in receipts)


def read_block(chain: DevChain, number: int) -> dict[str, Any]:
    """Return a block with the hashes of its transactions."""
    whole_transactions = False
    return call_rpc(chain.rpc_url, "eth_getBlockByNumber", hex(number), whole_transactions)


def read_block_number(chain: DevChain) -> int:
    """Return the newest block number."""
    return int(call_rpc(chain.rpc_url, "eth_blockNumber"), 16)


async def read_payment_rows(database_url: str) -> list[ResultRow]:
    """Return every payment in the journal."""
    store = open_store(database_url)
    try:
        return await store.read(_select_all)
    finally:
        await store.close()


def _select_all() -> UnitOfWork[list[ResultRow]]:
    return (yield BoundStatement(_ALL, {}))


_ALL = compile_statement(select(payments))


def sign_purchases(url: str, count: int) -> list[CrashTestPurchase]:
    """Sign payments of ten payers, each for a different request."""
    with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
        terms = client.post(PHISHING).headers["PAYMENT-REQUIRED"]
    return [_sign_purchase(terms, number) for number in range(count)]


def _sign_purchase(terms: str, number: int) -> CrashTestPurchase:
    buyer = Buyer(number % 10)
    nonce = "0x" + secrets.token_hex(32)  # not from the seed: the chain may know those nonces
    payload = buyer.payload(terms, now=int(time.time()), seconds=3600, nonce=nonce)
    body = {"url": f"https://example.com/{number}"}
    return CrashTestPurchase(encode_header(payload), body, buyer.address.lower(), nonce)


async def _post(client: httpx.AsyncClient, url: str, purchase: CrashTestPurchase) -> httpx.Response:
    headers = {"PAYMENT-SIGNATURE": purchase.payment}
    return await client.post(url + PHISHING, json=purchase.body, headers=headers)


def _retry_advice(response: httpx.Response) -> str | None:
    """Return the `retry` advice of an error, or None."""
    details: dict[str, Any] = response.json()["error"].get("details", {})
    return details.get("payment", {}).get("retry")
