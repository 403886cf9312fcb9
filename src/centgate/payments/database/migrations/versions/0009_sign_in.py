"""Create the tables of sign-ins, and the index by which a wallet finds its payments.

The tables are the servers' shared key and the nonces that were used.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "server_keys",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )
    op.create_table(
        "sign_in_nonces",
        sa.Column("nonce", sa.String, primary_key=True),
        sa.Column("request_id", sa.String, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
    )
    op.create_index("sign_in_nonces_expiry", "sign_in_nonces", ["expires_at"])
    op.create_index("payments_payer", "payments", ["payer", "created_at"])


def downgrade() -> None:
    op.drop_index("payments_payer", "payments")
    op.drop_table("sign_in_nonces")
    op.drop_table("server_keys")
