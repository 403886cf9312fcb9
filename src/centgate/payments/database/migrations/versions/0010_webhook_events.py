"""Create the outbox of webhooks, and the state of their receiver."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_LONG = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "webhook_events",
        sa.Column("id", _LONG, sa.Identity(), primary_key=True),
        sa.Column("event", sa.String, nullable=False, unique=True),
        sa.Column("type", sa.String, nullable=False),
        sa.Column("payment", _LONG, nullable=False),
        sa.Column("presented_at", sa.Float, nullable=False),
        sa.Column("payload", sa.String, nullable=False),
        sa.Column("occurred_at", sa.Float, nullable=False),
        sa.Column("state", sa.String, nullable=False, server_default="pending"),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("next_at", sa.Float),
        sa.Column("error", sa.String),
        sa.Column("sent_at", sa.Float),
    )
    unsent, stuck = sa.text("state <> 'sent'"), sa.text("type = 'payment.stuck'")
    op.create_index(
        "webhook_events_unsent",
        "webhook_events",
        ["state", "next_at"],
        sqlite_where=unsent,
        postgresql_where=unsent,
    )
    op.create_index(
        "webhook_events_stuck", "webhook_events", ["payment"], sqlite_where=stuck, postgresql_where=stuck
    )
    op.create_table(
        "webhook_receivers",
        sa.Column("digest", sa.String, primary_key=True),
        sa.Column("succeeded_at", sa.Float),
        sa.Column("failing_since", sa.Float),
        sa.Column("disabled_at", sa.Float),
    )


def downgrade() -> None:
    op.drop_table("webhook_receivers")
    op.drop_table("webhook_events")
