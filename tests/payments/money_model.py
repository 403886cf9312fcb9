"""Deployments, honest clients and a thief on a simulated chain, and the invariants of their money.

The code under test is the product from `pipeline.serve` down: gate, journal on SQLite, facilitator client and
JSON-RPC over loopback HTTP. Chain, nodes and facilitators are simulated. All of it shares one event loop and
one clock.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Literal, TypeVar, cast

import aiohttp
import orjson
import structlog
import uvloop
from aiohttp import web
from simulated_chain import NETWORK, PRICE, Account, Authorization, Chain, Clock, Node, Nonce
from simulated_facilitator import CERTAIN, NONCE_USED, Plan, SimulatedFacilitator, read_authorization

from centgate import pipeline
from centgate.cache.response_cache import MemoryCache, ResponseCache
from centgate.client_limits import Admission, ClientLimits
from centgate.errors import CentgateError, PaymentRequired, ProviderError
from centgate.payments.authorization import Payment
from centgate.payments.chain import chain_client
from centgate.payments.chain.chain_client import ChainClient as ChainClient
from centgate.payments.chain.chain_client import ChainClients
from centgate.payments.chain.nodes import NodeSet
from centgate.payments.claim_values import StoredAnswer
from centgate.payments.database.sqlite import SqliteStore
from centgate.payments.facilitator.facilitator import (
    NOT_SENT_STATUSES,
    RATE_LIMITED,
    FacilitatorClient,
    SettlementOutcome,
)
from centgate.payments.facilitator.facilitators import Facilitators
from centgate.payments.gate import PaymentGate, PaymentHeaders
from centgate.payments.journal.journal import Journal
from centgate.payments.journal.sign_in_nonces import SignInNonces
from centgate.payments.payer_policy import PayerPolicy
from centgate.payments.reconciler import Reconciler
from centgate.payments.settlement import Settler
from centgate.payments.terms import build_terms
from centgate.payments.wallet.sign_in import SignInGate
from centgate.provider import Primary, Provider, ProviderInfo, instrumented
from centgate.request_body import RequestBody
from centgate.runtime import Runtime
from centgate.schema import Data, Request
from centgate.service import service
from centgate.service_status import StatusRecorder
from centgate.settings import FacilitatorAccount, Settings

T = TypeVar("T")
Configuration = Literal["shared journal", "own recipients", "shared recipient"]
"""Two deployments with one recipient and one journal; with one of each for each; or with one recipient and
two journals, where a copied authorization may buy two answers."""
CLOSED_PORT = "http://127.0.0.1:9"
TIMEOUT = 30.0
SHORT_TIMEOUT = 0.1
PATIENCE = 8
"""Maximum number of resubmissions at the end, when nothing fails."""
WINDOW = 300
"""Seconds that authorizations are valid for."""


class ModelUpstream(Provider):
    """An upstream that fails on demand."""

    info = ProviderInfo("model", "Model", docs_url="https://model.example/")
    fails = False

    @instrumented
    async def answer(self, url: str) -> str:
        if ModelUpstream.fails:
            raise ProviderError("model", "the model fails")
        return url


class ModelRequest(Request):
    """A question."""

    url: str


class ModelAnswer(Data):
    """An answer."""

    url: str


@service(
    order=1,
    title="Model",
    category="crypto-context",
    tags=(),
    guardrails=(),
    input_example=ModelRequest(url="example.com"),
    output_example=ModelAnswer(url="example.com"),
)
async def model_service(request: ModelRequest, upstream: Primary[ModelUpstream]) -> ModelAnswer:
    """Answer a question."""
    return ModelAnswer(url=await upstream.answer(request.url))


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass(frozen=True)
class Delivery:
    """An answer that was served for a payment."""

    payment: Nonce
    request_id: str


@dataclass
class Statistics:
    """Counts over all examples."""

    steps: int = 0
    examples: int = 0
    requests: int = 0
    answers: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    copied: Counter[str] = field(default_factory=Counter[str])
    """Authorizations that were presented although another seller used them, by configuration."""
    beyond: Counter[str] = field(default_factory=Counter[str])
    """Unpaid answers for such authorizations, by configuration."""

    def describe(self) -> str:
        """Return the counts in lines."""
        done = (
            f"{self.steps} steps in {self.examples} sequences,"
            f" {self.requests} requests, {self.answers} answers"
        )
        outcomes = ", ".join(f"{number} {name}" for name, number in sorted(self.outcomes.items()))
        beyond = [
            f"{name}: {self.beyond[name]} answers beyond payments for {number} authorizations"
            for name, number in sorted(self.copied.items())
        ]
        return "\n".join([done, outcomes, *beyond])


class Stage:
    """Resources that all examples share: the event loop, the HTTP server, and two journals."""

    def __init__(self, folder: Path) -> None:
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.statistics = Statistics()
        self.paths = [folder / f"journal-{number}.db" for number in range(2)]
        self.url = ""
        self.world: World | None = None
        self.stores: list[SqliteStore] = []
        self.observers: list[sqlite3.Connection] = []

    def run(self, work: Awaitable[T]) -> T:
        async def wait() -> T:
            return await work

        return self.runner.run(wait())

    async def open(self) -> None:
        """Start the server, and create the journals."""
        app = web.Application()
        app.router.add_post("/node/{number}", self._answer_node)
        app.router.add_post("/{rank:first|second}/{number}/settle", self._answer_facilitator)
        self._server = web.AppRunner(app, access_log=None)
        await self._server.setup()
        site = web.TCPSite(self._server, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._server.addresses[0][1]}"
        self.session = aiohttp.ClientSession(trust_env=False)
        for path in self.paths:
            await SqliteStore(f"sqlite:///{path}").migrate()
        # two stores on the first file, for two deployments which share a journal
        self.stores = [
            SqliteStore(f"sqlite:///{path}") for path in (self.paths[0], self.paths[0], self.paths[1])
        ]
        self.observers = [sqlite3.connect(path, isolation_level=None) for path in self.paths]

    async def close(self) -> None:
        """Stop the server, and close the journals."""
        for observer in self.observers:
            observer.close()
        for store in self.stores:
            await store.close()
        await self.session.close()
        await self._server.cleanup()

    def clear_journals(self) -> None:
        """Delete all rows of an example."""
        for observer in self.observers:
            for table in ("payments", "answers", "payment_events", "workers", "duties"):
                observer.execute(f"DELETE FROM {table}")

    async def _answer_node(self, request: web.Request) -> web.Response:
        assert self.world
        node = self.world.nodes[int(request.match_info["number"])]
        content = await request.read()
        if node.down:
            return web.Response(status=503)
        return web.json_response(body=orjson.dumps(node.answer(orjson.loads(content))))

    async def _answer_facilitator(self, request: web.Request) -> web.Response:
        assert self.world
        rank, number = request.match_info["rank"], int(request.match_info["number"])
        facilitator = (self.world.facilitators if rank == "first" else self.world.seconds)[number]
        deployment = self.world.deployments[number]
        journal = deployment.journal_number
        content = await request.read()
        authorization = read_authorization(orjson.loads(content))
        presentations, name = (
            self.observers[journal]
            .execute(
                "SELECT presentations, facilitator FROM payments WHERE payer = ? AND nonce = ?",
                authorization.key,
            )
            .fetchone()
        )
        account = deployment.settings.facilitators[rank == "second"]
        self.world.compare_facilitator(journal, authorization.key, account.name, name)
        is_first = facilitator.compare_bytes(journal, authorization.key, content, number=presentations)
        status, body = facilitator.settle(authorization)
        if status != RATE_LIMITED:
            self.world.holders[journal, authorization.key] = account.name
        if status in NOT_SENT_STATUSES and is_first:
            # nobody has it: its buyer may send it again, to the other deployment with that one's address
            facilitator.forget_bytes(journal, authorization.key)
        if status:
            return web.Response(
                body=orjson.dumps(body), status=status, headers={"Content-Type": "application/json"}
            )
        if body == "timeout":
            await asyncio.sleep(2 * SHORT_TIMEOUT)
        if request.transport:
            request.transport.abort()
        return web.Response(status=500)


@contextmanager
def open_stage(folder: Path) -> Generator[Stage]:
    """Open what all examples share."""
    stage = Stage(folder)
    configured = structlog.get_config()
    ages = chain_client.BLOCK_REFRESH, chain_client.BLOCK_RETRY
    with stage.runner:
        stage.run(stage.open())
        try:
            structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
            # simulated blocks pass much faster than real seconds
            chain_client.BLOCK_REFRESH = 0.0  # pyright: ignore[reportConstantRedefinition]
            chain_client.BLOCK_RETRY = 0.0  # pyright: ignore[reportConstantRedefinition]
            yield stage
        finally:
            structlog.configure(**configured)
            chain_client.BLOCK_REFRESH, chain_client.BLOCK_RETRY = ages  # pyright: ignore[reportConstantRedefinition]
            stage.run(stage.close())


class PlannedFacilitator(FacilitatorClient):
    """The product's client in three settings; the facilitator's plan decides which one is used."""

    def __init__(self, account: FacilitatorAccount, simulated: SimulatedFacilitator) -> None:
        super().__init__(account, timeout=TIMEOUT)
        self._simulated = simulated
        self._unreachable = FacilitatorClient(replace(account, url=CLOSED_PORT), timeout=TIMEOUT)
        self._hasty = FacilitatorClient(account, timeout=SHORT_TIMEOUT)

    async def settle(self, payment: Payment, *, connect_timeout: float | None = None) -> SettlementOutcome:
        match self._simulated.next_plan().answer:
            case "unreachable":
                self._simulated.take_plan()
                return await self._unreachable.settle(payment, connect_timeout=connect_timeout)
            case "timeout":
                return await self._hasty.settle(payment, connect_timeout=connect_timeout)
            case _:
                return await super().settle(payment, connect_timeout=connect_timeout)

    def close(self) -> None:
        for each in (self._unreachable, self._hasty):
            each.close()
        super().close()


class OneChain(ChainClients):
    """The product's chain client, connected to the nodes of the model."""

    def __init__(self, session: aiohttp.ClientSession, settings: Settings, nodes: NodeSet) -> None:
        super().__init__(session, settings)
        self._chain = ChainClient(session, nodes)

    def for_network(self, network: str) -> ChainClient | None:
        return self._chain if network == NETWORK else None


class Deployment:
    """A seller: the product from `pipeline.serve` down."""

    def __init__(self, world: World, number: int, pay_to: str, journal: int, store: SqliteStore) -> None:
        self.world = world
        self.number = number
        self.pay_to = pay_to
        self.journal_number = journal
        self.simulated = world.facilitators[number]
        # replicas on one journal have the same facilitators
        address = 0 if world.configuration == "shared journal" else number
        self.settings = settings = Settings(
            pay_to=pay_to,
            network=NETWORK,
            facilitator_url=f"{world.stage.url}/first/{address}",
            facilitator_fallback_url=f"{world.stage.url}/second/{address}" if world.has_second else None,
            public_url=f"https://seller{number}.example",
            payment_window=WINDOW,
            free_per_minute=0,
            refused_per_minute=0,
        )
        self._limits = ClientLimits(settings)
        self.terms = build_terms(model_service, settings)
        self.journal = Journal(store, keep_seconds=86_400, clock=world.clock.now)
        simulated = (self.simulated, world.seconds[number])
        self.facilitators = Facilitators(
            [PlannedFacilitator(*each) for each in zip(settings.facilitators, simulated, strict=False)]
        )
        chains = OneChain(world.stage.session, settings, world.node_set)
        providers = {model_service.slug: {"model": ModelUpstream(settings)}}
        self.runtime = Runtime(
            settings=settings,
            catalog=(model_service,),
            providers=providers,
            journal=self.journal,
            reader=store,
            gate=PaymentGate(self._settler(self.journal, chains), PayerPolicy(Settings())),
            sign_in=SignInGate(settings, self.journal, chains, SignInNonces(store)),
            response_cache=ResponseCache(MemoryCache()),
            shared=None,
            status=StatusRecorder((model_service,), providers, self.journal, store),
        )
        part = self.journal.for_component("upkeep")
        self.resolver = Reconciler(part, self._settler(part, chains))

    def _settler(self, journal: Journal, chains: ChainClients) -> Settler:
        return Settler({model_service.slug: self.terms}, journal, self.facilitators, chains)

    def header(self, authorization: Authorization, *, pay_to: str | None = None) -> str:
        """Return `PAYMENT-SIGNATURE`; `pay_to` is another recipient in the accepted terms."""
        accepted = {**self.terms.first.requirements, "payTo": pay_to or self.terms.first.pay_to}
        fields = {
            "from": authorization.payer,
            "to": authorization.to,
            "value": str(authorization.value),
            "validAfter": "0",
            "validBefore": str(authorization.valid_before),
            "nonce": authorization.nonce,
        }
        payload = {
            "x402Version": 2,
            "resource": {"url": self.terms.route.url},
            "accepted": accepted,
            "payload": {"signature": authorization.signature, "authorization": fields},
        }
        return b64encode(json.dumps(payload).encode()).decode()

    async def serve(self, header: str, question: str, identifier: str | None) -> StoredAnswer | CentgateError:
        """Present a payment as a buyer's request does."""
        body = orjson.dumps({"url": question})
        call = pipeline.PaidCall(
            self.world.next_request_id(),
            RequestBody(body),
            PaymentHeaders(header, idempotency_key=identifier),
            Admission(self._limits, "client"),
        )
        try:
            return await pipeline.serve(self.runtime, model_service, call)
        except CentgateError as error:
            return error


@dataclass
class Purchase:
    """One answer that a client wants, and its requests so far."""

    question: str
    deployment: int
    identifier: str | None
    payment: Authorization | None = None
    payments: list[Authorization] = field(default_factory=list[Authorization])
    answer: StoredAnswer | None = None


@dataclass
class Client:
    """A client that follows the `retry` advice: resend the same payment, or sign a new one."""

    account: Account
    purchases: list[Purchase] = field(default_factory=list[Purchase])

    @property
    def current(self) -> Purchase | None:
        """Return the current purchase."""
        return self.purchases[-1] if self.purchases and self.purchases[-1].answer is None else None


class World:
    """One example: its chain, deployments, clients and thief."""

    def __init__(
        self,
        stage: Stage,
        configuration: Configuration,
        *,
        nodes: int,
        repeats: bool,
        has_second: bool = False,
    ) -> None:
        self.stage = stage
        self.has_second = has_second
        """True if each deployment has a second facilitator."""
        self.configuration = configuration
        self.clock = Clock()
        self.clients = [Client(Account(1)), Client(Account(2)), Client(Account(3, is_contract=True))]
        self.thieves = [Account(11), Account(12, is_contract=True)]
        contracts = frozenset(account.address for account in (self.clients[2].account, self.thieves[1]))
        self.chain = Chain(self.clock, contracts)
        self.nodes = [Node(self.chain) for _ in range(nodes)]
        urls = tuple(f"{stage.url}/node/{number}" for number in range(nodes))
        self.node_set = NodeSet(NETWORK, urls, 2 if nodes > 1 else 1, "public" if nodes > 1 else "own")
        self.facilitators = [SimulatedFacilitator(self.chain, repeats_success=repeats) for _ in range(2)]
        self.seconds = [SimulatedFacilitator(self.chain, repeats_success=repeats) for _ in range(2)]
        if configuration != "own recipients":
            self.facilitators[1], self.seconds[1] = self.facilitators[0], self.seconds[0]
        self.misplaced: list[str] = []
        """Submissions to another facilitator than the one that has the payment."""
        self.holders: dict[tuple[int, Nonce], str] = {}
        """The only facilitator that may have a payment, by journal and payment."""
        self.recipients = ["0x" + f"{number:040x}" for number in (0xA1, 0xA2, 0xEE)]
        """Recipients of the two deployments, and one that sells nothing."""
        self._names = count(1)
        self._mine_after: int | None = None
        for node in self.nodes:
            node.on_call = self._count_question
        stage.world = self
        stage.clear_journals()
        stage.statistics.examples += 1
        shared = configuration == "shared journal"
        second = 1 if configuration == "own recipients" else 0
        self.deployments = [
            Deployment(self, 0, self.recipients[0], 0, stage.stores[0]),
            Deployment(
                self, 1, self.recipients[second], 0 if shared else 1, stage.stores[1 if shared else 2]
            ),
        ]
        self.deliveries: dict[tuple[int, Nonce], Delivery] = {}
        """Deliveries by journal and payment."""
        self.spent_elsewhere: dict[Nonce, int] = {}
        """Payments to another seller with the same recipient, and their blocks."""
        self.known_block: dict[tuple[int, Nonce], int | None] = {}
        """Newest block of the nodes at the first submission, by journal and payment."""
        self.is_violated = False
        self.own: list[Authorization] = []
        """Authorizations that the thief has signed."""

    def _violation(self, message: str) -> Violation:
        """Return the error for a violated invariant, and end all further checks."""
        self.is_violated = True
        return Violation(message)

    def next_request_id(self) -> str:
        return f"request-{next(self._names)}"

    def next_nonce(self) -> str:
        return "0x" + sha256(f"nonce {next(self._names)}".encode()).hexdigest()

    # -- chain ---------------------------------------------------------------------------------------------

    def mine_after(self, questions: int) -> None:
        """Mine a block after so many questions to nodes."""
        self._mine_after = questions

    def _count_question(self) -> None:
        if self._mine_after is not None:
            self._mine_after -= 1
            if self._mine_after <= 0:
                self._mine_after = None
                self.chain.mine()

    def _newest_shown_block(self) -> int | None:
        """Return the newest block that every node shows, None if one of them fails or lies."""
        if not all(node.is_honest for node in self.nodes):
            return None
        return min(node.height for node in self.nodes)

    # -- requests ------------------------------------------------------------------------------------------

    async def present(
        self,
        deployment: Deployment,
        authorization: Authorization,
        question: str,
        *,
        identifier: str | None = None,
        pay_to: str | None = None,
    ) -> StoredAnswer | CentgateError:
        """Submit a payment, and check the served answer."""
        key = authorization.key
        self.known_block.setdefault((deployment.journal_number, key), self._newest_shown_block())
        header = deployment.header(authorization, pay_to=pay_to)
        result = await deployment.serve(header, question, identifier)
        self.stage.statistics.requests += 1
        if isinstance(result, StoredAnswer):
            self.stage.statistics.answers += 1
            self._enter_delivery(deployment, result)
            self.stage.statistics.outcomes["answer, replayed" if result.replayed else "answer"] += 1
        else:
            note = result.payment
            self.stage.statistics.outcomes[f"{result.code} {note.state if note else '-'}"] += 1
        return result

    def plan(self, deployment: Deployment, *plans: Plan) -> None:
        """Set the behaviour of a deployment's facilitator for the next submissions."""
        chosen = [self._possible(plan) for plan in plans]
        # one list: a plan that the first does not use is for the second
        deployment.simulated.plans = self.seconds[deployment.number].plans = chosen

    def limit_plans(self) -> None:
        """Plan what is not used yet again, since nodes have changed."""
        for deployment in self.deployments:
            self.plan(deployment, *deployment.simulated.plans)

    def compare_facilitator(self, journal: int, key: Nonce, name: str, in_journal: str) -> None:
        """Compare the facilitator that a payment is presented to with the journal and an earlier one."""
        if in_journal != name:
            self.misplaced.append(f"{key} was presented to {name}, and the journal says {in_journal}")
        holder = self.holders.get((journal, key), name)
        if holder != name:
            self.misplaced.append(f"{key} was presented to {name}, and may be at {holder}")

    def _possible(self, plan: Plan) -> Plan:
        """Return the plan without refusals that lagging nodes could not disprove.

        Known remaining risk: a proxy repeats a POST, the second one is refused because of the chain's state,
        and the nodes do not show the transfer of the first one yet.
        """
        if plan.repeated == "no" or plan.answer not in CERTAIN:
            return plan
        current = [node for node in self.nodes if node.is_honest and node.lag == 0]
        return plan if len(current) >= self.node_set.quorum else replace(plan, answer=NONCE_USED)

    def _enter_delivery(self, deployment: Deployment, answer: StoredAnswer) -> None:
        journal = deployment.journal_number
        row = (
            self.stage.observers[journal]
            .execute("SELECT payer, nonce, pay_to FROM payments WHERE request_id = ?", (answer.request_id,))
            .fetchone()
        )
        if row is None:
            raise self._violation(f"no payment stands for the answer {answer.request_id}")
        payer, nonce, pay_to = cast(tuple[str, str, str], row)
        delivery = Delivery((payer, nonce), answer.request_id)
        if self.deliveries.setdefault((journal, delivery.payment), delivery) != delivery:
            raise self._violation(f"two answers were served for {delivery.payment}")
        self._check_payment(deployment, delivery, pay_to, answer)

    def _check_payment(
        self, deployment: Deployment, delivery: Delivery, pay_to: str, answer: StoredAnswer
    ) -> None:
        """Check that the payment of an answer reached the recipient of the deployment."""
        payment = self.chain.payments.get(delivery.payment)
        if payment is None:
            raise self._violation(f"an answer was served for {delivery.payment}, which moved nothing")
        authorization = payment.authorization
        if (authorization.to, authorization.value, pay_to) != (deployment.pay_to, PRICE, deployment.pay_to):
            raise self._violation(
                f"an answer was served for {delivery.payment}, which paid another recipient"
            )
        named = json.loads(b64decode(answer.receipt))["transaction"]
        if named != payment.transaction:
            raise self._violation(
                f"the receipt of {delivery.payment} names {named}, not {payment.transaction}"
            )
        spent_at = self.spent_elsewhere.get(delivery.payment)
        known = self.known_block.get((deployment.journal_number, delivery.payment))
        if spent_at is not None and known is not None and spent_at <= known:
            raise self._violation(
                f"an answer was served for {delivery.payment}, which was spent elsewhere before"
            )

    # -- clients -------------------------------------------------------------------------------------------

    async def send(self, client: Client) -> None:
        """Send the request of a client with the payment that is next."""
        purchase = client.current
        if purchase is None:
            return
        deployment = self.deployments[purchase.deployment]
        if purchase.payment is None:
            purchase.payment = client.account.authorize(
                deployment.pay_to, self.next_nonce(), int(self.clock.now()) + WINDOW
            )
            purchase.payments.append(purchase.payment)
        result = await self.present(
            deployment, purchase.payment, purchase.question, identifier=purchase.identifier
        )
        self._follow(purchase, result)

    def _follow(self, purchase: Purchase, result: StoredAnswer | CentgateError) -> None:
        """Follow the `retry` advice of an answer."""
        if isinstance(result, StoredAnswer):
            purchase.answer = result
        elif note := result.payment:
            if note.retry == "none":
                raise self._violation(f"a client is told to give up: {result.message}")
            if note.retry == "new_payment":
                purchase.payment = None
        elif isinstance(result, PaymentRequired):
            purchase.payment = None

    async def send_again(self, purchase: Purchase) -> None:
        """Repeat a client's answered request; check that the bytes are the same."""
        assert purchase.payment
        assert purchase.answer
        result = await self.present(
            self.deployments[purchase.deployment],
            purchase.payment,
            purchase.question,
            identifier=purchase.identifier,
        )
        if not isinstance(result, StoredAnswer) or result.body != purchase.answer.body:
            raise self._violation(f"a client that sent its request again got {result}")

    def count_charges(self, purchase: Purchase) -> int:
        """Return the number of payments for a purchase that have moved money."""
        return sum(payment.key in self.chain.payments for payment in purchase.payments)

    # -- invariants ----------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check the invariants that hold after every step."""
        if self.misplaced:
            raise self._violation(self.misplaced[0])
        for facilitator in (*self.facilitators, *self.seconds):
            if facilitator.different_bytes:
                raise self._violation(f"other bytes were presented for {facilitator.different_bytes}")
        for client in self.clients:
            for purchase in client.purchases:
                if (charged := self.count_charges(purchase)) > 1:
                    raise self._violation(f"{charged} payments were charged for {purchase.question}")
        self._check_recipients()

    def _check_recipients(self) -> None:
        """Check that no recipient has served more answers than it was paid for."""
        for recipient in {deployment.pay_to for deployment in self.deployments}:
            served = [
                delivery.payment
                for (journal, _), delivery in self.deliveries.items()
                if any(
                    each.journal_number == journal and each.pay_to == recipient for each in self.deployments
                )
            ]
            paid = sum(
                payment.authorization.to == recipient and payment.authorization.value == PRICE
                for payment in self.chain.payments.values()
            )
            copies = len(served) - len(set(served)) if self.configuration == "shared recipient" else 0
            if len(served) > paid + copies:
                raise self._violation(f"{len(served)} answers were served for {paid} payments")

    async def finish(self) -> None:
        """Resolve everything that is open, and check the final invariants."""
        self._stop_failures()
        for facilitator in (*self.facilitators, *self.seconds):
            facilitator.broadcast_late()
        self.chain.mine()
        self.check()
        self.clock.advance(WINDOW + 700)
        for _ in range(12):
            self.chain.mine()
        for deployment in self.deployments:
            await deployment.resolver.reconcile_open()
        for client in self.clients:
            await self._finish_purchases(client)
        self.check()
        self._check_journals()
        self._count_copies()

    async def close(self) -> None:
        for deployment in self.deployments:
            deployment.facilitators.close()
        self.stage.world = None

    def _stop_failures(self) -> None:
        ModelUpstream.fails = False
        self._mine_after = None
        for facilitator in (*self.facilitators, *self.seconds):
            facilitator.plans = []
        for node in self.nodes:
            node.down, node.lie, node.lag = False, None, 0

    async def _finish_purchases(self, client: Client) -> None:
        for _ in range(PATIENCE):
            await self.send(client)
        for purchase in client.purchases:
            if purchase.answer is None:
                raise self._violation(f"{purchase.question} was never answered")
            if (charged := self.count_charges(purchase)) != 1:
                raise self._violation(f"{charged} payments were charged for {purchase.question}")

    def _check_journals(self) -> None:
        """Check that every payment is resolved, and that every charged payment has an answer."""
        for observer in self.stage.observers:
            for payer, nonce, state in observer.execute("SELECT payer, nonce, state FROM payments"):
                paid = (payer, nonce) in self.chain.payments
                if state == "settling" or (state in ("settled", "delivered") and not paid):
                    raise self._violation(f"{payer} {nonce} is {state}, and moved money: {paid}")

    def _count_copies(self) -> None:
        statistics, name = self.stage.statistics, self.configuration
        both = Counter(payment for _, payment in self.deliveries)
        statistics.beyond[f"{name}: two answers"] += sum(number - 1 for number in both.values())
        served = both.keys() & self.spent_elsewhere.keys()
        statistics.beyond[f"{name}: spent elsewhere"] += len(served)
        presented = Counter(payment for _, payment in self.known_block)
        statistics.copied[f"{name}: two answers"] += sum(number > 1 for number in presented.values())
        statistics.copied[f"{name}: spent elsewhere"] += len(presented.keys() & self.spent_elsewhere.keys())
