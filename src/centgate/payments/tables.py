"""The journal's tables: payments presented, the answers they bought, the processes at work."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, text

metadata = MetaData()

payments = Table(
    "payments",
    metadata,
    Column("network", String, primary_key=True),
    Column("asset", String, primary_key=True),
    Column("payer", String, primary_key=True),
    Column("nonce", String, primary_key=True),
    Column("state", String, nullable=False),  # settling, settled, delivered, refused
    Column("owner", String),  # the process that works on it, if one does
    Column("binding", String, nullable=False),  # digest of method, path and canonical body
    Column("service", String, nullable=False),
    Column("identifier", String),  # the buyer's idempotency key
    Column("proof", String, nullable=False),  # digest of the signature
    Column("signer_known", Integer, nullable=False),
    Column("amount", String, nullable=False),  # base units
    Column("pay_to", String, nullable=False),
    Column("valid_before", Integer, nullable=False),  # seconds since 1970
    Column("transaction", String),
    Column("reason", String),  # why it was refused
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Index(
        "payments_identifier",
        "payer",
        "identifier",
        unique=True,
        sqlite_where=text("identifier IS NOT NULL"),
        postgresql_where=text("identifier IS NOT NULL"),
    ),
    sqlite_with_rowid=False,
)
"""One row a payment; `settling` is written before the facilitator is asked, so a crash hides nothing."""

answers = Table(
    "answers",
    metadata,
    Column("network", String, primary_key=True),
    Column("asset", String, primary_key=True),
    Column("payer", String, primary_key=True),
    Column("nonce", String, primary_key=True),
    Column("status", Integer, nullable=False),
    Column("request_id", String, nullable=False),
    Column("receipt", String, nullable=False),  # PAYMENT-RESPONSE as sent
    Column("body", LargeBinary, nullable=False),
    Column("stored_at", Float, nullable=False, index=True),
)
"""What was delivered, byte for byte, for as long as it is kept."""

workers = Table(
    "workers",
    metadata,
    Column("id", String, primary_key=True),
    Column("seen_at", Float, nullable=False),
)
"""The processes at work; one that has not been seen for a while has died, and what it held is free."""
