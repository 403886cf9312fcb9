"""Add what proof of payment needs: block at the claim, number of submissions, and a table of events.

The index over open payments takes in all without an answer: those that never reached the facilitator, and
refused ones, are found by it when they can be pruned.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_LONG = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("payments", sa.Column("claim_block", _LONG))
    op.add_column(
        "payments", sa.Column("presentations", sa.Integer, nullable=False, server_default=sa.text("1"))
    )
    # the previous version submitted open payments again without counting
    op.execute("UPDATE payments SET presentations = 2 WHERE state = 'settling'")
    _index_open("state <> 'delivered'")
    op.create_table(
        "payment_events",
        sa.Column("id", _LONG, sa.Identity(), primary_key=True),
        sa.Column("payment", _LONG, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("event", sa.String, nullable=False),
        sa.Column("reason", sa.String),
        sa.Column("transaction", sa.String),
    )
    op.create_index("ix_payment_events_payment", "payment_events", ["payment"])


def downgrade() -> None:
    # the previous version has no such state: nothing was sent for these, as for refused ones
    op.execute("UPDATE payments SET state = 'refused' WHERE state = 'unused'")
    op.drop_table("payment_events")
    _index_open("state IN ('settling', 'settled')")
    for column in ("presentations", "claim_block"):
        op.drop_column("payments", column)


def _index_open(words: str) -> None:
    condition = sa.text(words)
    op.drop_index("payments_open", "payments")
    op.create_index(
        "payments_open",
        "payments",
        ["state", "updated_at"],
        sqlite_where=condition,
        postgresql_where=condition,
    )
