"""Create the tables of payments, answers and workers."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _key() -> list[sa.Column[str]]:
    return [sa.Column(name, sa.String, primary_key=True) for name in ("network", "asset", "payer", "nonce")]


def upgrade() -> None:
    op.create_table(
        "payments",
        *_key(),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("owner", sa.String),
        sa.Column("binding", sa.String, nullable=False),
        sa.Column("service", sa.String, nullable=False),
        sa.Column("identifier", sa.String),
        sa.Column("proof", sa.String, nullable=False),
        sa.Column("signer_known", sa.Integer, nullable=False),
        sa.Column("amount", sa.String, nullable=False),
        sa.Column("pay_to", sa.String, nullable=False),
        sa.Column("valid_before", sa.Integer, nullable=False),
        sa.Column("transaction", sa.String),
        sa.Column("reason", sa.String),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "payments_identifier",
        "payments",
        ["payer", "identifier"],
        unique=True,
        sqlite_where=sa.text("identifier IS NOT NULL"),
        postgresql_where=sa.text("identifier IS NOT NULL"),
    )
    op.create_table(
        "answers",
        *_key(),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("request_id", sa.String, nullable=False),
        sa.Column("receipt", sa.String, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("stored_at", sa.Float, nullable=False),
    )
    op.create_index("ix_answers_stored_at", "answers", ["stored_at"])
    op.create_table(
        "workers",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("seen_at", sa.Float, nullable=False),
    )


def downgrade() -> None:
    for table in ("workers", "answers", "payments"):
        op.drop_table(table)
