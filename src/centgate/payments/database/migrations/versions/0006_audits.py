"""Create the table of audit positions and findings."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "audits",
        sa.Column("network", sa.String, primary_key=True),
        sa.Column("asset", sa.String, primary_key=True),
        sa.Column("pay_to", sa.String, primary_key=True),
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer, "sqlite")),
        sa.Column("position_at", sa.Float),
        sa.Column("completed_at", sa.Float),
        sa.Column("findings", sa.String),
    )


def downgrade() -> None:
    op.drop_table("audits")
