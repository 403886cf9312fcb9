"""Create the table of call outcomes that the public status is made from."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "service_health",
        sa.Column("service", sa.String, primary_key=True),
        sa.Column("period", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column(
            "start",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("process", sa.String, primary_key=True),
        sa.Column("answered", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("refused", sa.Integer, nullable=False),
        sa.Column("answered_at", sa.Float),
        sa.Column("failed_at", sa.Float),
        sa.Column("refused_at", sa.Float),
        sa.Column("outage_seconds", sa.Float, nullable=False),
        sa.Column("outage_at", sa.Float),
        sa.Column("latency", sa.String, nullable=False),
    )
    op.create_index("service_health_start", "service_health", ["period", "start"])


def downgrade() -> None:
    op.drop_table("service_health")
