"""Descriptions of payments for operators: money, state, history, what is owed and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from operator import itemgetter

from msgspec import Struct

from centgate.environment import node_variable
from centgate.payments.database.sql import ResultRow
from centgate.payments.database.tables import OpenCause
from centgate.payments.journal.read_model import PaymentRecord
from centgate.payments.time_format import format_iso
from centgate.settings import Settings
from centgate.signing.assets import TOKEN_DECIMALS, is_test_network

OPEN_CAUSES: Mapping[OpenCause, str] = {
    "no_node": "No node of its network is configured",
    "no_answer": "The nodes gave no usable answer",
    "not_final": "The nodes answered, and nothing is decided yet",
}
"""Why an open payment was still open at the last attempt."""


class ViewSettings(Struct, frozen=True):
    """Current settings and time that decide how payments are displayed."""

    now: float
    redeem_seconds: float
    """Seconds after the settlement in which a payment can be redeemed."""
    routes: Mapping[str, str]
    """Paths by service slug."""
    uses_test_network: bool | None = None
    """True if the deployment's payments are on a test network; None if that is not known."""
    facilitators: Sequence[str] = ()
    """Names of the configured facilitators; empty if they are not known."""

    @property
    def redemption_cutoff(self) -> float:
        """Time before which settled payments can no longer be redeemed."""
        return self.now - self.redeem_seconds

    def accepts_network(self, network: str) -> bool:
        """True if payments of a network can be redeemed here: test money does not pay for real services."""
        return self.uses_test_network in (None, is_test_network(network))


def create_view(settings: Settings, now: float, routes: Mapping[str, str]) -> ViewSettings:
    """Return how a deployment's payments are described at a time."""
    return ViewSettings(
        now,
        settings.redeem_hours * 3600,
        routes,
        uses_test_network=is_test_network(settings.network),
        facilitators=[account.name for account in settings.facilitators],
    )


def format_dollars(amount: int) -> str:
    """Format base units as dollars, with all decimals."""
    return f"{Decimal(amount).scaleb(-TOKEN_DECIMALS):.{TOKEN_DECIMALS}f}"


def format_money(amount: int, network: str) -> str:
    """Format base units with their unit: dollars, or test dollars, which have no value."""
    return f"{format_dollars(amount)} {'test dollars' if is_test_network(network) else 'dollars'}"


def status_label(record: PaymentRecord, view: ViewSettings) -> str:
    """Return the status of a payment as one word."""
    return record.follow_up_status(view.redemption_cutoff) or record.state


def payment_reference(record: PaymentRecord) -> str:
    """Return the reference of a payment, unique unless its payer uses a nonce on several networks."""
    return f"{record.key.payer}:{record.key.nonce}"


def describe_matches(name: str, records: Sequence[PaymentRecord]) -> str:
    """Describe that several payments match a name, with a reference of each that matches it alone."""
    short = [payment_reference(each) for each in records]
    if len(set(short)) == len(short):
        return f"{name!r} matches several payments; use payer:nonce: {', '.join(short)}"
    full = [f"{each.key.network}:{reference}" for each, reference in zip(records, short, strict=True)]
    return f"{name!r} matches several payments; use network:payer:nonce: {', '.join(full)}"


def list_events(record: PaymentRecord, history: Sequence[ResultRow] = ()) -> list[tuple[float, str]]:
    """Return the events of a payment in order: a time in seconds since 1970, and a sentence.

    `history` are rows of `payment_events`, which hold what the payment's own row does not.
    """
    money = format_money(record.amount, record.key.network)
    price = f"{money} ({record.amount} base units of {record.key.asset})"
    result = [
        (
            record.created_at,
            f"{record.key.payer} presented it for {record.service}: {price} on {record.key.network} "
            f"to {record.pay_to}",
        )
    ]
    if record.settled_at is not None:
        result.append((record.settled_at, f"It settled in {record.transaction}: the buyer was charged."))
    in_history = {(row["event"], row["at"]) for row in history}
    if record.state == "refused" and ("refused", record.updated_at) not in in_history:
        result.append((record.updated_at, f"It was refused ({record.reason}): no money moved."))
    if record.state == "unused":
        result.append((record.updated_at, f"It was not sent to the facilitator ({record.reason})."))
    if record.state == "delivered":
        result.append(
            (
                record.updated_at,
                f"Its answer was delivered: HTTP {record.status}, request {record.request_id}.",
            )
        )
    if record.refunded_at is not None and ("refunded", record.refunded_at) not in in_history:
        result.append((record.refunded_at, f"Its refund in {record.refund} was recorded."))
    return sorted([*result, *((row["at"], _describe_event(row)) for row in history)], key=itemgetter(0))


def _describe_event(row: ResultRow) -> str:
    """Describe an event of a payment."""
    reason, transaction = row["reason"], row["transaction"]
    because = f" ({reason})" if reason else ""
    match row["event"]:
        case "refused":
            named = (
                f", and {transaction}, which the facilitator had reported, did not pay" if transaction else ""
            )
            return f"It was refused{because}: no money moved{named}."
        case "in_doubt":
            named = f": the facilitator reported {transaction}" if transaction else ""
            return f"Its outcome was unknown{because}{named}."
        case "fallback":
            return f"It went to the second facilitator{because}."
        case "refunded":
            unchecked = " It was not checked on the chain." if reason == "unchecked" else ""
            return f"Its refund in {transaction} was recorded.{unchecked}"
        case event:
            named = f" in {transaction}" if transaction else ""
            return f"It was {event.replace('_', ' ')}{named}{because}."


def describe_owed(record: PaymentRecord, view: ViewSettings) -> str:
    """Describe what is owed to the buyer."""
    match status_label(record, view):
        case "settling":
            return "Not known yet: a server is settling it now."
        case "open":
            return f"Not known: the settlement's outcome is unknown. {_describe_attempts(record, view)}"
        case "redeemable":
            until = format_iso(record.updated_at + view.redeem_seconds)
            if not view.accepts_network(record.key.network):
                return (
                    f"An answer, until {until}, from a deployment with payments on {record.key.network}: "
                    "test money is not accepted for real money, nor the reverse."
                )
            return f"An answer, until {until}: the buyer gets it with the same payment and the same request."
        case "refundable":
            return f"{format_money(record.amount, record.key.network)}: the answer can no longer be fetched."
        case _:
            return "Nothing."


def describe_next_step(record: PaymentRecord, view: ViewSettings) -> str:
    """Describe what the operator can do."""
    match status_label(record, view):
        case "settling":
            return "Check again in a minute."
        case "open":
            return (
                "Servers keep checking; `centgate payments reconcile` checks now. A node of the "
                f"network ({node_variable(record.key.network)}, or --rpc) has what a facilitator does not "
                "report."
                f"{_describe_holder(record, view)}"
            )
        case "redeemable":
            return "Nothing: the buyer can fetch the answer. Check the log if the service fails for all."
        case "refundable":
            return describe_refund(record)
        case "unused":
            return f"Nothing: the buyer can send it again until {_format_end(record)}; then it is removed."
        case _:
            return "Nothing."


def describe_refund(record: PaymentRecord | None = None) -> str:
    """Describe how to refund a payment; this program cannot do it, since it holds no key.

    Without a record it describes this for the payments in the table of `refund-list`.
    """
    name = payment_reference(record) if record else "TRANSACTION"
    amount = (
        f"{format_money(record.amount, record.key.network)} of {record.key.asset}"
        if record
        else "the amount in the same token"
    )
    recipient = f"{record.key.payer} on {record.key.network}" if record else "the payer on the same network"
    end = "" if record else ". TRANSACTION is the payment's, as in the table; HASH is the refund's"
    return (
        f"Centgate moves no money. To refund, send {amount} to {recipient} by a plain transfer from your own "
        f"wallet, then record it: centgate payments refunded {name} --in HASH{end}"
    )


def _describe_attempts(record: PaymentRecord, view: ViewSettings) -> str:
    verb = "expired" if record.valid_before < view.now else "expires"
    ends = f"its authorization {verb} {_format_end(record)}"
    if not record.attempts:
        return f"Not checked since; {ends}."
    next_check = f", next {format_iso(record.retry_at)}" if record.retry_at else ""
    why = f" {OPEN_CAUSES[record.open_cause]}." if record.open_cause else ""
    return f"Checked {record.attempts} times{next_check}; {ends}.{why}"


def _describe_holder(record: PaymentRecord, view: ViewSettings) -> str:
    """Say that the facilitator of an open payment is not configured any more, if it is not."""
    if record.facilitator is None or not view.facilitators or record.facilitator in view.facilitators:
        return ""
    return (
        f" Its facilitator, {record.facilitator}, is not configured here any more, so it is not presented "
        "again: CENTGATE_FACILITATOR_FALLBACK_URL can name it for that."
    )


def _format_end(record: PaymentRecord) -> str:
    """Format the end of the authorization; a buyer can set any number there."""
    return format_iso(record.valid_before) if record.valid_before < 253_402_300_800 else "never"
