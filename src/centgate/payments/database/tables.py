"""Tables of the journal: payments, their answers, refunds, audits and the processes that work on them."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    literal_column,
    text,
)
from sqlalchemy.sql.elements import ColumnElement

metadata = MetaData()

RowState = Literal["settling", "settled", "delivered", "refused", "unused"]
"""State of a row.

`unused`: no facilitator took it, so that it may be submitted again, for any request, until it expires.
`refused`: a facilitator or the chain shows that it moved no money; an expired authorization is one.
"""

OpenCause = Literal["no_node", "no_answer", "not_final"]
"""Why a payment is still open: no node of its network is configured; no usable answer of the nodes (silent,
behind the claim's block, or of different opinions); or the nodes answered, and nothing is decided yet.
"""

_Long = BigInteger().with_variant(Integer, "sqlite")
UNDELIVERED = text("state <> 'delivered'")
"""Condition of the partial index over payments without an answer, in the exact text of the index.

A single cheap condition: it is evaluated at each write of each payment.
"""


def _of_payment() -> Column[int]:
    """Return the primary key column of a table with at most one row per payment: the payment's `id`."""
    return Column("payment", _Long, primary_key=True, autoincrement=False)


payments = Table(
    "payments",
    metadata,
    Column("id", _Long, Identity(), primary_key=True),  # in order of arrival
    Column("network", String, nullable=False),
    Column("asset", String, nullable=False),
    Column("payer", String, nullable=False),
    Column("nonce", String, nullable=False),
    Column("state", String, nullable=False),  # `RowState`
    Column("owner", String),  # name of the worker that has claimed it, if any
    Column("binding", String, nullable=False),  # digest of method, path and canonical body
    Column("service", String, nullable=False),
    Column("identifier", String),  # the buyer's idempotency key
    Column("proof", String, nullable=False),  # digest of the signature
    Column("signer_known", Integer, nullable=False),
    Column("amount", String, nullable=False),  # base units
    Column("pay_to", String, nullable=False),
    Column("valid_before", _Long, nullable=False),  # since 1970
    Column("transaction", String),
    Column("reason", String),  # why it was refused
    Column("created_at", Float, nullable=False),  # seconds since 1970, as are all times here
    Column("updated_at", Float, nullable=False),
    Column("signed", String),  # `authorization.Payment.resubmission_json`, while it is settling
    Column("attempts", Integer, nullable=False, server_default="0"),  # number of attempts to reconcile it
    Column("retry_at", Float),  # time of the next such attempt
    Column("settled_at", Float),
    Column("request_id", String),  # of the answer that was delivered
    Column("status", Integer),  # HTTP status of that answer
    Column("claim_block", _Long),  # newest block number known at its first submission
    Column("presentations", Integer, nullable=False, server_default=text("1")),  # to the facilitator
    Column("facilitator", String),  # name of the one that may have it; null: none, or the first
    Column("open_cause", String),  # `OpenCause` of the last attempt to reconcile it
    UniqueConstraint("network", "asset", "payer", "nonce", name="payments_key"),
    Index(
        "payments_identifier",
        "payer",
        "identifier",
        unique=True,
        sqlite_where=text("identifier IS NOT NULL"),
        postgresql_where=text("identifier IS NOT NULL"),
    ),
    Index("payments_open", "state", "updated_at", sqlite_where=UNDELIVERED, postgresql_where=UNDELIVERED),
    Index("payments_created", "created_at"),
    Index("payments_payer", "payer", "created_at"),
)
"""One row per payment; `settling` is written before the facilitator is called, so a crash loses nothing.

`facilitator` is written before that facilitator is called. Null means the first in state `settling` or
`refused`, since the row is older than the column; none in state `unused`.
"""


def is_state(state: RowState) -> ColumnElement[bool]:
    """Return the condition that a payment is in a state, in the form that matches the partial indexes."""
    return payments.c.state == literal_column(f"'{state}'")


KEY = (payments.c.network, payments.c.asset, payments.c.payer, payments.c.nonce)
"""Columns that identify a payment outside of the database."""

answers = Table(
    "answers",
    metadata,
    _of_payment(),
    Column("status", Integer, nullable=False),
    Column("request_id", String, nullable=False),
    Column("receipt", String, nullable=False),  # PAYMENT-RESPONSE as sent
    Column("body", LargeBinary, nullable=False),
    Column("stored_at", Float, nullable=False, index=True),
)
"""Delivered answers, byte for byte, until they are pruned."""

refunds = Table(
    "refunds",
    metadata,
    _of_payment(),
    Column("transaction", String, nullable=False),  # of the transfer that paid it back
    Column("at", Float, nullable=False),  # time at which the operator recorded it
)
"""Payments that were settled, never delivered, and refunded by their operator."""

payment_events = Table(
    "payment_events",
    metadata,
    Column("id", _Long, Identity(), primary_key=True),
    Column("payment", _Long, nullable=False, index=True),  # `payments.id`
    Column("at", Float, nullable=False),
    Column("event", String, nullable=False),  # refused, in_doubt, refunded, noted, fallback
    Column("reason", String),
    Column("transaction", String),
)
"""Append-only events that a payment's row would overwrite: refusals, named transactions, refunds."""

audits = Table(
    "audits",
    metadata,
    Column("network", String, primary_key=True),
    Column("asset", String, primary_key=True),
    Column("pay_to", String, primary_key=True),
    Column("position", _Long),  # the block up to which the chain was audited without interruption
    Column("position_at", Float),  # that block's time
    Column("completed_at", Float),  # when the last audit of a whole day ended
    Column("findings", String),  # its findings: JSON, count by kind
)
"""Progress of the audit for each token and recipient; addresses are in lower case."""

workers = Table(
    "workers",
    metadata,
    Column("id", String, primary_key=True),
    Column("seen_at", Float, nullable=False),
)
"""Live processes; one without a recent heartbeat counts as dead, and its claims are free."""

duties = Table(
    "duties",
    metadata,
    Column("name", String, primary_key=True),
    Column("worker", String, nullable=False),
    Column("until", Float, nullable=False),
)
"""Background jobs with a leader: the process that runs each job, and the end of its lease."""

service_health = Table(
    "service_health",
    metadata,
    Column("service", String, primary_key=True),
    Column("period", Integer, primary_key=True),  # length in seconds: 300, 3600 or 86400
    Column("start", _Long, primary_key=True),  # of the period, a multiple of its length
    Column("process", String, primary_key=True),  # the server process that counted
    Column("answered", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("refused", Integer, nullable=False),  # before payment, because no source could answer
    Column("answered_at", Float),  # the last of each
    Column("failed_at", Float),
    Column("refused_at", Float),
    Column("outage_seconds", Float, nullable=False),  # with the circuit breakers of all sources open
    Column("outage_at", Float),  # when that was last seen
    Column("latency", String, nullable=False),  # histogram of answers: JSON, count by bucket number
    Index("service_health_start", "period", "start"),
)
"""Outcomes of calls that reached a source, per service, period and process; merged when they are read."""

console_actions = Table(
    "console_actions",
    metadata,
    Column("id", _Long, Identity(), primary_key=True),
    Column("at", Float, nullable=False),
    Column("action", String, nullable=False),
    Column("client", String, nullable=False),  # address that it came from
    Column("subject", String),  # for example the reference of a payment
    Column("result", String, nullable=False),
)
"""Append-only log of what operators did in the console and by commands."""

server_keys = Table(
    "server_keys",
    metadata,
    Column("name", String, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("created_at", Float, nullable=False),
)
"""Random keys that the servers of a deployment share; the first server that needs one creates it."""

sign_in_nonces = Table(
    "sign_in_nonces",
    metadata,
    Column("nonce", String, primary_key=True),
    Column("request_id", String, nullable=False),  # of the request that used it
    Column("expires_at", Float, nullable=False),
    Index("sign_in_nonces_expiry", "expires_at"),
)
"""Nonces of sign-ins that were used, until they have expired: each is good for one request."""
UNSENT = text("state <> 'sent'")
"""Condition of the partial index over webhooks that are not sent, in the exact text of the index."""
_STUCK = text("type = 'payment.stuck'")

webhook_events = Table(
    "webhook_events",
    metadata,
    Column("id", _Long, Identity(), primary_key=True),
    Column("event", String, nullable=False, unique=True),  # the id that receivers see
    Column("type", String, nullable=False),  # payment.delivered, payment.refunded, payment.stuck
    Column("payment", _Long, nullable=False),  # `payments.id` when it was written
    Column("presented_at", Float, nullable=False),  # `payments.created_at` then
    Column("payload", String, nullable=False),  # the body, byte for byte as it is sent
    Column("occurred_at", Float, nullable=False),
    Column("state", String, nullable=False, server_default="pending"),  # pending, sent, failed
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("next_at", Float),  # time of the next attempt, and the end of a lease while one is made
    Column("error", String),  # of the last attempt
    Column("sent_at", Float),
    Index("webhook_events_unsent", "state", "next_at", sqlite_where=UNSENT, postgresql_where=UNSENT),
    Index("webhook_events_stuck", "payment", sqlite_where=_STUCK, postgresql_where=_STUCK),
)
"""Outbox of webhooks: written with the change of the payment, sent afterwards, pruned after some weeks."""
NEW_EVENT_COLUMNS = ("event", "type", "payload", "presented_at", "occurred_at", "next_at")
"""Columns of a new event besides `payment`; the others have defaults."""

webhook_receivers = Table(
    "webhook_receivers",
    metadata,
    Column("digest", String, primary_key=True),  # SHA-256 of its URL, which may contain a secret
    Column("succeeded_at", Float),  # the last time, to the minute
    Column("failing_since", Float),  # null while it accepts webhooks
    Column("disabled_at", Float),  # when it answered 410; null while webhooks are sent to it
)
"""State of each receiver of webhooks."""
