"""Create the table of refunds."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "refunds",
        sa.Column("network", sa.String, primary_key=True),
        sa.Column("asset", sa.String, primary_key=True),
        sa.Column("payer", sa.String, primary_key=True),
        sa.Column("nonce", sa.String, primary_key=True),
        sa.Column("transaction", sa.String, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("refunds")
