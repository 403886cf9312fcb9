"""Add columns for operators and for reconciliation, and the table of elected background jobs."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_OPEN = sa.text("state IN ('settling', 'settled')")


def _columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("signed", sa.String),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("retry_at", sa.Float),
        sa.Column("settled_at", sa.Float),
        sa.Column("request_id", sa.String),
        sa.Column("status", sa.Integer),
    ]


def upgrade() -> None:
    for column in _columns():
        op.add_column("payments", column)
    if op.get_bind().dialect.name == "postgresql":  # the end of an authorization may be any large number
        op.alter_column("payments", "valid_before", type_=sa.BigInteger)
    op.execute("UPDATE payments SET settled_at = updated_at WHERE state IN ('settled', 'delivered')")
    op.create_index(
        "payments_open", "payments", ["state", "updated_at"], sqlite_where=_OPEN, postgresql_where=_OPEN
    )
    op.create_index("payments_created", "payments", ["created_at"])
    op.create_table(
        "duties",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("worker", sa.String, nullable=False),
        sa.Column("until", sa.Float, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("duties")
    op.drop_index("payments_created", "payments")
    op.drop_index("payments_open", "payments")
    for column in _columns():
        op.drop_column("payments", column.name)
