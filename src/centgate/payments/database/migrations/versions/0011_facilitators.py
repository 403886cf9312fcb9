"""Add the facilitator that may have a payment, and why an open payment is still open."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    # null in existing rows: the one facilitator that there was
    for column in ("facilitator", "open_cause"):
        op.add_column("payments", sa.Column(column, sa.String))


def downgrade() -> None:
    for column in ("open_cause", "facilitator"):
        op.drop_column("payments", column)
