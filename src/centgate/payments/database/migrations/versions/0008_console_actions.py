"""Create the table of what operators did in the console."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "console_actions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), sa.Identity(), primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("client", sa.String, nullable=False),
        sa.Column("subject", sa.String),
        sa.Column("result", sa.String, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("console_actions")
