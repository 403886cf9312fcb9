"""A model of x402 facilitators on the simulated chain: one answer to `/settle` for each plan.

A success is always true. A refusal from the table's certain reasons, a 429 and a connection that is refused
always mean that the presentation sent nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from simulated_chain import NETWORK, Authorization, Chain, Nonce

from centgate.payments.facilitator.settle_reasons import SETTLE_REASONS

NONCE_USED = "invalid_exact_evm_nonce_already_used"
UNKNOWN_HASH = "0x" + "ab" * 32

Sent = Literal["no", "mempool", "mined", "reverted", "late"]
"""Fate of the transfer before the answer: a `late` one is broadcast after the answer, or never."""
Named = Literal["nothing", "right", "unknown", "other succeeded", "other reverted"]
"""Transaction that an answer names."""
Reply = tuple[int, Any]
"""Status and JSON; status 0 hangs up."""


@dataclass(frozen=True)
class Plan:
    """Behaviour of a facilitator for one submission."""

    answer: str = "honest"
    """`honest`, `hang up`, `timeout`, `unreachable`, a status, a reason, or a broken success."""
    sent: Sent = "no"
    named: Named = "nothing"
    repeated: Literal["no", "mempool", "mined"] = "no"
    """Fate of the first POST if a proxy repeats it; the answer is that of the second one."""


HONEST = Plan()
UNSENT = ("unreachable", "429", "401")
CERTAIN = (
    "insufficient_funds",
    "invalid_exact_evm_transaction_simulation_failed",
    "invalid_exact_evm_payload_authorization_valid_before",
    "kyt_risk_detected",
    "invalid_payload",
)
IN_DOUBT = (
    "settlement_pending",
    "transaction_failed",
    "invalid_transaction_state",
    "invalid_exact_evm_payload",
    "invalid_exact_evm_failed_to_get_receipt",
    "invalid_a_reason_nobody_knows",
    NONCE_USED,
)
BROKEN = ("200", "400", "500", "502", "success under 500", "success of another", "success without hash")
SENT: tuple[Sent, ...] = ("no", "mempool", "mined", "late")


def certain_plans() -> Iterator[Plan]:
    """Return the plans whose answers are certain."""
    yield from (Plan(answer) for answer in (*UNSENT, *CERTAIN))


def failing_plans() -> Iterator[Plan]:
    """Return the plans whose answers report no settlement although the money may have moved."""
    for answer, sent in product((*BROKEN, "hang up"), SENT):
        yield Plan(answer, sent)
    yield Plan("timeout", "mined")


def doubtful_plans() -> Iterator[Plan]:
    """Return the plans that refuse although the money may have moved."""
    names: tuple[Named, ...] = ("nothing", "unknown", "other succeeded", "other reverted")
    for answer, sent, named in product(IN_DOUBT, ("no", "mempool", "mined"), names):
        yield Plan(answer, sent, named)
    for answer, sent in product(IN_DOUBT, ("mempool", "mined", "reverted")):
        yield Plan(answer, sent, "right")
    yield from (Plan(answer, "mempool", "right") for answer in CERTAIN)


def repeated_plans() -> Iterator[Plan]:
    """Return the plans for the second of two POSTs that a proxy made of one."""
    for answer in (NONCE_USED, "transaction_failed", "settlement_pending", "500", "hang up"):
        yield Plan(answer, repeated="mined")
        yield Plan(answer, repeated="mempool")
    # both transactions were broadcast; the second reverts
    yield Plan("transaction_failed", "mempool", "right", repeated="mempool")
    yield Plan("transaction_failed", "mined", "right", repeated="mempool")
    yield Plan("honest", repeated="mined")
    yield Plan("insufficient_funds", repeated="mined")
    yield Plan("invalid_exact_evm_transaction_simulation_failed", repeated="mined")


PLANS = (
    (HONEST,),
    tuple(certain_plans()),
    tuple(failing_plans()),
    tuple(doubtful_plans()),
    tuple(repeated_plans()),
)
"""Plans by kind; each kind has the same probability."""
CERTAIN_REASONS = frozenset(name for name, reason in SETTLE_REASONS.items() if reason.certainty != "in_doubt")
assert frozenset(CERTAIN) <= CERTAIN_REASONS
assert not CERTAIN_REASONS & frozenset(IN_DOUBT)


class SimulatedFacilitator:
    """Facilitator that answers `POST /settle` by its plans, and honestly when they are used up."""

    def __init__(self, chain: Chain, *, repeats_success: bool) -> None:
        self.chain = chain
        self.plans: list[Plan] = []
        self.late: list[Authorization] = []
        """Transfers to be broadcast after their answer."""
        self.settle_requests: list[Nonce] = []
        """Payments of all submissions."""
        self.different_bytes: list[Nonce] = []
        """Payments that were resubmitted with other bytes while their outcome was open."""
        self._repeats_success = repeats_success
        self._settled: dict[Nonce, str] = {}
        self._presented: dict[tuple[int, Nonce], bytes] = {}
        """First submission, by journal and payment."""

    def next_plan(self) -> Plan:
        """Return the plan of the next submission."""
        return self.plans[0] if self.plans else HONEST

    def take_plan(self) -> Plan:
        """Remove and return the plan of the current submission."""
        return self.plans.pop(0) if self.plans else HONEST

    def settle(self, authorization: Authorization) -> Reply:
        """Answer one submission."""
        plan = self.take_plan()
        self.settle_requests.append(authorization.key)
        if plan.repeated != "no" and self.chain.can_execute(authorization):
            name = self.chain.send([authorization])
            if plan.repeated == "mined":
                self.chain.mine()
                self._keep(authorization.key, name)
        return self._settle(plan, authorization)

    def compare_bytes(self, journal: int, key: Nonce, content: bytes, *, number: int) -> bool:
        """Compare the bytes of a submission with the first one here, and return True if it is the first.

        `number` is the journal's count. It is above one at the first here if another facilitator may have
        sent the payment.
        """
        if number == 1:
            self._presented.pop((journal, key), None)
        is_first = (journal, key) not in self._presented
        if self._presented.setdefault((journal, key), content) != content:
            self.different_bytes.append(key)
        return is_first

    def forget_bytes(self, journal: int, key: Nonce) -> None:
        """Forget the only submission of a payment here, after an answer that leaves it unused."""
        del self._presented[journal, key]

    def broadcast_late(self) -> None:
        """Broadcast transfers that were not announced in any answer."""
        for authorization in self.late:
            self.chain.send([authorization])
        self.late = []

    def _settle(self, plan: Plan, authorization: Authorization) -> Reply:
        if plan.answer == "honest":
            return self._settle_honestly(authorization)
        name = self._send(plan.sent, authorization)
        hash_named = self._hash(plan.named, name)
        match plan.answer:
            case "hang up" | "timeout":
                return 0, plan.answer
            case "success under 500":
                return 500, success(authorization, UNKNOWN_HASH)
            case "success of another":
                return 200, success(authorization, UNKNOWN_HASH) | {"payer": "0x" + "11" * 20}
            case "success without hash":
                return 200, success(authorization, "")
            case status if status.isdigit():
                return int(status), {"message": "no settlement"}
            case reason:
                return 200, refusal(reason, hash_named)

    def _settle_honestly(self, authorization: Authorization) -> Reply:
        chain, key = self.chain, authorization.key
        if not chain.is_signed(authorization):
            return 200, refusal("invalid_exact_evm_signature")
        if key in self._settled and self._repeats_success:
            return 200, success(authorization, self._settled[key])
        if key in chain.used_at:
            return 200, refusal(NONCE_USED)
        if not chain.can_execute(authorization):
            return 200, refusal("invalid_exact_evm_payload_authorization_valid_before")
        name = self.chain.send([authorization])
        self.chain.mine()
        if not self._keep(key, name):
            return 200, refusal("transaction_failed", name)
        return 200, success(authorization, name)

    def _keep(self, key: Nonce, name: str) -> bool:
        """Record a settlement, to repeat its success; return False if that transaction did not contain it."""
        payment = self.chain.payments.get(key)
        if payment is None or payment.transaction != name:
            return False
        self._settled[key] = name
        return True

    def _send(self, sent: Sent, authorization: Authorization) -> str | None:
        if sent == "no":
            return None
        if sent == "late":
            self.late.append(authorization)
            return None
        name = self.chain.send([authorization], out_of_gas=sent == "reverted")
        if sent != "mempool":
            self.chain.mine()
        return name

    def _hash(self, named: Named, own: str | None) -> str:
        mined = [each for each in self.chain.transactions.values() if each.block is not None]
        match named:
            case "nothing":
                return ""
            case "right":
                return own or ""
            case "unknown":
                return UNKNOWN_HASH
            case "other succeeded" | "other reverted":
                wanted = named == "other succeeded"
                others = (each.hash for each in mined if each.succeeded == wanted and each.hash != own)
                return next(others, UNKNOWN_HASH)


def read_authorization(body: dict[str, Any]) -> Authorization:
    """Return the authorization of a submission."""
    payload = body["paymentPayload"]["payload"]
    fields = payload["authorization"]
    return Authorization(
        fields["from"].lower(),
        fields["to"].lower(),
        int(fields["value"]),
        int(fields["validBefore"]),
        fields["nonce"].lower(),
        payload["signature"],
    )


def success(authorization: Authorization, transaction: str) -> dict[str, Any]:
    return {
        "success": True,
        "payer": authorization.payer,
        "transaction": transaction,
        "network": NETWORK,
    }


def refusal(reason: str, transaction: str = "") -> dict[str, Any]:
    return {"success": False, "errorReason": reason, "transaction": transaction, "network": NETWORK}
