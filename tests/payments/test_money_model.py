"""Random sequences of actions of buyers, thieves, facilitators and nodes on a simulated chain.

After every step no recipient has served more than it was paid for, and no client that follows the advice has
been charged twice. At the end of each sequence every payment is resolved: a client that was charged has its
answer.

Outside the model: facilitators that report a false success, reorganisations, processes that are killed, and a
proxy that repeats a POST so that the second is refused with a certain reason while no node shows the transfer
of the first.

`MONEY_MODEL_STEPS` steps are made (500 unless set), in sequences of 50.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from money_model import (
    WINDOW,
    Client,
    Configuration,
    ModelUpstream,
    Purchase,
    Stage,
    World,
    open_stage,
)
from simulated_chain import PRICE, Authorization, Lie
from simulated_facilitator import HONEST, PLANS, Plan

from centgate.payments.claim_values import StoredAnswer

SHORT = 500
STEPS = int(os.environ.get("MONEY_MODEL_STEPS", SHORT))
STEPS_IN_SEQUENCE = 50
MEMORY = Path("/dev/shm")

plans = st.one_of(*(st.sampled_from(kind) for kind in PLANS))
numbers = st.integers(0, 1_000)
deployments = st.integers(0, 1)
questions = st.sampled_from(["first.example", "second.example"])
LIES: tuple[Lie | None, ...] = (
    None,
    "unused",
    "paid",
    "spent",
    "expired",
    "reverted",
    "high",
    "low",
    "code",
    "no code",
)
JUNK = {"contract": "0x" + "5a" * 66, "counterfactual": "0x" + "5a" * 100 + "6492" * 16}


class MoneyModel(RuleBasedStateMachine):
    """One sequence of steps."""

    stage: Stage
    world: World

    @initialize(
        configuration=st.sampled_from(["shared journal", "own recipients", "shared recipient"]),
        nodes=st.sampled_from([1, 3]),
        repeats=st.booleans(),
        has_second=st.booleans(),
        safe_lag=st.sampled_from([0, 2, 8]),
    )
    def begin(
        self, configuration: Configuration, nodes: int, safe_lag: int, *, repeats: bool, has_second: bool
    ) -> None:
        """Open two deployments."""
        self.world = World(self.stage, configuration, nodes=nodes, repeats=repeats, has_second=has_second)
        for node in self.world.nodes:
            node.safe_lag = safe_lag

    # -- clients -------------------------------------------------------------------------------------------

    @rule(client=st.integers(0, 2), deployment=deployments)
    def client_sends_without_faults(self, client: int, deployment: int) -> None:
        """A client sends its request to an honest facilitator."""
        self.client_sends(client, deployment, HONEST, 1)

    @rule(client=st.integers(0, 2), deployment=deployments, plans=st.lists(plans, min_size=2, max_size=4))
    def client_persists(self, client: int, deployment: int, plans: list[Plan]) -> None:
        """A client repeats its request."""
        for plan in plans:
            self.client_sends(client, deployment, plan, 1)

    @rule(
        client=st.integers(0, 2),
        deployment=deployments,
        plan=plans,
        fails=st.integers(0, 5),
        questions=st.sampled_from([0, 0, 0, 0, *range(1, 13)]),
    )
    def client_sends(self, client: int, deployment: int, plan: Plan, fails: int, questions: int = 0) -> None:
        """A client sends a new request, or its current one again.

        A block is mined meanwhile, after so many questions to nodes, unless that is 0.
        """
        if questions:
            self.world.mine_after(questions)
        self._shop(self.world.clients[client], deployment)
        ModelUpstream.fails = fails == 0
        self._plan(deployment, plan)
        self.stage.run(self.world.send(self.world.clients[client]))
        ModelUpstream.fails = False

    @rule(
        client=st.integers(0, 2),
        deployment=deployments,
        first=st.sampled_from([Plan("unreachable"), Plan("429")]),
        second=plans,
        fails=st.integers(0, 5),
    )
    def client_sends_while_first_is_down(
        self, client: int, deployment: int, first: Plan, second: Plan, fails: int
    ) -> None:
        """A client sends its request to the second facilitator, if there is one."""
        self._shop(self.world.clients[client], deployment)
        ModelUpstream.fails = fails == 0
        self._plan(deployment, first, second)
        self.stage.run(self.world.send(self.world.clients[client]))
        ModelUpstream.fails = False

    @rule(
        client=st.integers(0, 2),
        deployment=deployments,
        answer=st.sampled_from(["transaction_failed", "settlement_pending", "hang up"]),
        questions=st.integers(1, 12),
    )
    def client_sends_through_repeating_proxy(
        self, client: int, deployment: int, answer: str, questions: int
    ) -> None:
        """A client sends through a proxy that repeats POSTs; both transactions are mined meanwhile."""
        plan = Plan(answer, "mempool", "right", repeated="mempool")
        self.client_sends(client, deployment, plan, 1, questions)

    @rule(client=st.integers(0, 2), number=numbers, deployment=deployments)
    def client_sends_answered_request(self, client: int, number: int, deployment: int) -> None:
        """A client repeats an answered request."""
        answered = [each for each in self.world.clients[client].purchases if each.answer]
        if answered:
            purchase = answered[number % len(answered)]
            self._choose(purchase, deployment)
            self.stage.run(self.world.send_again(purchase))

    @rule(
        client=st.integers(0, 2), deployment=deployments, first=plans, second=plans, blocks=st.integers(0, 12)
    )
    def client_sends_twice_at_once(
        self, client: int, deployment: int, first: Plan, second: Plan, blocks: int
    ) -> None:
        """A client sends its request twice at once, to both deployments if they share a journal."""
        world, buyer = self.world, self.world.clients[client]
        purchase = self._shop(buyer, deployment)
        if purchase.payment is None:
            return
        other = world.deployments[1 - deployment if self._is_shared else purchase.deployment]
        payment = purchase.payment
        self._plan(deployment, first, second)
        if blocks:
            world.mine_after(blocks)

        async def send_both() -> None:
            await asyncio.gather(*(each.journal.heartbeat() for each in world.deployments))
            _, result = await asyncio.gather(
                world.send(buyer),
                world.present(other, payment, purchase.question, identifier=purchase.identifier),
            )
            # a refusal does not allow another payment while the other request has the answer
            if isinstance(result, StoredAnswer) and purchase.answer is None:
                purchase.payment, purchase.answer = payment, result

        self.stage.run(send_both())

    # -- thief ---------------------------------------------------------------------------------------------

    @rule(
        thief=st.integers(0, 1),
        recipient=st.integers(0, 1),
        seconds=st.sampled_from([20, WINDOW, WINDOW + 500]),
    )
    def thief_signs(self, thief: int, recipient: int, seconds: int) -> None:
        """The thief signs a payment."""
        world = self.world
        end = int(world.clock.now()) + seconds
        to = world.deployments[recipient].pay_to
        world.own.append(world.thieves[thief].authorize(to, world.next_nonce(), end))

    @rule(
        thief=st.integers(0, 1),
        deployment=deployments,
        plan=plans,
        cancels=st.sampled_from([False, False, True]),
    )
    def thief_presents_what_it_spent(self, thief: int, deployment: int, plan: Plan, *, cancels: bool) -> None:
        """The thief spends a payment at another seller, or cancels it, and then presents it here."""
        self.thief_signs(thief, deployment, WINDOW)
        last = len(self.world.own) - 1
        self.thief_acts_on_chain(last, last, "cancel" if cancels else "spend elsewhere", mined=True)
        self.thief_presents(last, deployment, "first.example", plan, "own", None, redirected=False)

    @rule(number=numbers, deployment=deployments, plan=plans)
    def thief_presents_while_nodes_are_down(self, number: int, deployment: int, plan: Plan) -> None:
        """The thief presents an authorization while no node answers."""
        nodes = self.world.nodes
        before = [node.down for node in nodes]
        for node in nodes:
            node.down = True
        self.thief_presents(number, deployment, "first.example", plan, "own", None, redirected=False)
        for node, was_down in zip(nodes, before, strict=True):
            node.down = was_down

    @rule(number=numbers, recipient=st.integers(0, 2), value=st.sampled_from([PRICE, 1]))
    def thief_signs_same_nonce(self, number: int, recipient: int, value: int) -> None:
        """The thief signs another authorization under a nonce of its own."""
        world = self.world
        if world.own:
            known = world.own[number % len(world.own)]
            account = next(each for each in world.thieves if each.address == known.payer)
            to = world.recipients[recipient]
            world.own.append(account.authorize(to, known.nonce, known.valid_before, value))

    @rule(
        number=numbers,
        deployment=deployments,
        question=questions,
        plan=plans,
        signature=st.sampled_from(["own", "own", "own", "contract", "counterfactual"]),
        redirected=st.booleans(),
        identifier=st.sampled_from([None, None, "identifier-of-the-thief"]),
    )
    def thief_presents(
        self,
        number: int,
        deployment: int,
        question: str,
        plan: Plan,
        signature: str,
        identifier: str | None,
        *,
        redirected: bool,
    ) -> None:
        """The thief presents its own authorization, or one that it saw on the chain."""
        authorization = self._choose_known(number)
        if authorization is None:
            return
        seller = self.world.deployments[deployment]
        if signature != "own":
            authorization = replace(authorization, signature=JUNK[signature])
        if redirected:
            authorization = replace(authorization, to=seller.pay_to)
        self._plan(deployment, plan)
        self.stage.run(
            self.world.present(
                seller, authorization, question, identifier=identifier, pay_to=authorization.to
            )
        )

    @rule(
        number=numbers,
        other=numbers,
        deed=st.sampled_from(["spend", "spend elsewhere", "spend two", "cancel"]),
        mined=st.booleans(),
    )
    def thief_acts_on_chain(self, number: int, other: int, deed: str, *, mined: bool) -> None:
        """The thief spends one of its nonces, alone or with another, or cancels it.

        With the deed "elsewhere" the other seller has the same recipient.
        """
        world = self.world
        if not world.own:
            return
        first, second = (world.own[each % len(world.own)] for each in (number, other))
        cancels = [first.key] if deed == "cancel" else []
        transfers = {"cancel": [], "spend two": [first, second]}.get(deed, [first])
        name = world.chain.send(transfers, cancels)
        if mined or deed == "spend elsewhere":
            world.chain.mine()
        if deed == "spend elsewhere" and world.chain.transactions[name].succeeded:
            world.spent_elsewhere[first.key] = world.chain.height

    @rule(number=numbers, deployment=deployments, first=plans, second=plans, blocks=st.integers(0, 12))
    def thief_presents_twice_at_once(
        self, number: int, deployment: int, first: Plan, second: Plan, blocks: int
    ) -> None:
        """The thief presents a payment for two requests at once."""
        world = self.world
        authorization = self._choose_known(number)
        if authorization is None:
            return
        sellers = world.deployments
        self._plan(deployment, first, second)
        if blocks:
            world.mine_after(blocks)

        async def present_both() -> None:
            await asyncio.gather(*(each.journal.heartbeat() for each in sellers))
            await asyncio.gather(
                world.present(sellers[deployment], authorization, "first.example"),
                world.present(sellers[1 - deployment], authorization, "second.example"),
            )

        self.stage.run(present_both())

    # -- chain, nodes, facilitators ------------------------------------------------------------------------

    @rule(
        blocks=st.sampled_from([1, 1, 2, 10]),
        questions=st.sampled_from([0, 0, *range(1, 13)]),
        late=st.booleans(),
    )
    def blocks_are_mined(self, blocks: int, questions: int, *, late: bool) -> None:
        """Blocks are mined, and one more while nodes are asked `questions` times.

        Facilitators broadcast `late` transactions of earlier submissions.
        """
        if late:
            for facilitator in (*self.world.facilitators, *self.world.seconds):
                facilitator.broadcast_late()
        for _ in range(blocks):
            self.world.chain.mine()
        if questions:
            self.world.mine_after(questions)

    @rule(seconds=st.sampled_from([10, 60, WINDOW, WINDOW + 600]))
    def time_passes(self, seconds: int) -> None:
        """Time passes without a block."""
        self.world.clock.advance(seconds)

    @rule(
        lags=st.lists(st.sampled_from([0, 0, 0, 1, 3]), min_size=3, max_size=3),
        down=st.lists(st.sampled_from([False, False, False, True]), min_size=3, max_size=3),
        liar=st.integers(0, 2),
        lie=st.sampled_from(LIES),
        recipient=st.integers(0, 1),
    )
    def nodes_change(
        self, lags: list[int], down: list[bool], liar: int, lie: Lie | None, recipient: int
    ) -> None:
        """Nodes lag, fail, or one of three lies."""
        nodes = self.world.nodes
        for number, node in enumerate(nodes):
            node.lag, node.down = lags[number], down[number]
            node.lie = lie if len(nodes) > 1 and number == liar else None
            node.lie_to = self.world.recipients[recipient]
        self.world.limit_plans()

    @rule(deployment=deployments, first=plans, second=plans)
    def open_payments_are_resolved(self, deployment: int, first: Plan, second: Plan) -> None:
        """The server reconciles open payments."""
        self._plan(deployment, first, second)
        self.stage.run(self.world.deployments[deployment].resolver.reconcile_open())

    # -- checks --------------------------------------------------------------------------------------------

    @invariant()
    def money_and_answers_agree(self) -> None:
        self.stage.statistics.steps += 1
        self.world.check()

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            if not self.world.is_violated:
                self.stage.run(self.world.finish())
        finally:
            self.stage.run(self.world.close())

    # -- helpers -------------------------------------------------------------------------------------------

    @property
    def _is_shared(self) -> bool:
        return self.world.configuration == "shared journal"

    def _plan(self, deployment: int, *chosen: Plan) -> None:
        self.world.plan(self.world.deployments[deployment], *chosen)

    def _shop(self, client: Client, deployment: int) -> Purchase:
        """Return the current purchase of a client, or a new one."""
        if client.current is None:
            number = len(client.purchases)
            name = f"{client.account.number}-{number}"
            identifier = f"identifier-of-client-{name}" if number % 2 else None
            client.purchases.append(Purchase(f"{name}.example", deployment, identifier))
        assert client.current
        self._choose(client.current, deployment)
        return client.current

    def _choose(self, purchase: Purchase, deployment: int) -> None:
        if self._is_shared:
            purchase.deployment = deployment

    def _choose_known(self, number: int) -> Authorization | None:
        """Return one of the authorizations that the thief knows."""
        mined = [payment.authorization for payment in self.world.chain.payments.values()]
        known = self.world.own + mined
        return known[number % len(known)] if known else None


@pytest.fixture
def stage() -> Generator[Stage]:
    """Resources that all sequences share; the journals are in shared memory if the system has it."""
    parent = MEMORY if MEMORY.exists() else None
    with tempfile.TemporaryDirectory(dir=parent) as folder, open_stage(Path(folder)) as stage:
        yield stage


def run_model(
    stage: Stage,
    steps: int,
    *,
    derandomize: bool,
    phases: Sequence[Phase] = (Phase.generate, Phase.shrink),
) -> None:
    """Run a number of steps."""
    model = cast(type[MoneyModel], type("MoneyModel", (MoneyModel,), {"stage": stage}))
    run_state_machine_as_test(
        model,
        settings=settings(
            max_examples=max(1, steps // STEPS_IN_SEQUENCE),
            stateful_step_count=STEPS_IN_SEQUENCE,
            derandomize=derandomize,
            database=None,
            deadline=None,
            print_blob=False,
            report_multiple_bugs=False,
            phases=phases,
            suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
        ),
    )


def test_money_and_answers_agree_in_random_sequences(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    run_model(stage, STEPS, derandomize=STEPS <= SHORT)

    if STEPS > SHORT:
        with capsys.disabled():
            print(f"\n{stage.statistics.describe()}")  # noqa: T201 - what remains is only counted
