"""Add a numeric id to payments: other tables refer to it, and rows are stored in order of arrival.

What changes a payment after its claim then touches the pages of the payments beside it, not one of its own;
and what identifies a payment to the world is in one index instead of three.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_LONG = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_KEY = ("network", "asset", "payer", "nonce")
_OTHERS = ("answers", "refunds")


def _columns(table: str) -> list[sa.Column[Any]]:
    """Return the columns of a table besides its key."""
    match table:
        case "answers":
            return [
                sa.Column("status", sa.Integer, nullable=False),
                sa.Column("request_id", sa.String, nullable=False),
                sa.Column("receipt", sa.String, nullable=False),
                sa.Column("body", sa.LargeBinary, nullable=False),
                sa.Column("stored_at", sa.Float, nullable=False),
            ]
        case "refunds":
            return [
                sa.Column("transaction", sa.String, nullable=False),
                sa.Column("at", sa.Float, nullable=False),
            ]
        case _:
            return [
                sa.Column("state", sa.String, nullable=False),
                sa.Column("owner", sa.String),
                sa.Column("binding", sa.String, nullable=False),
                sa.Column("service", sa.String, nullable=False),
                sa.Column("identifier", sa.String),
                sa.Column("proof", sa.String, nullable=False),
                sa.Column("signer_known", sa.Integer, nullable=False),
                sa.Column("amount", sa.String, nullable=False),
                sa.Column("pay_to", sa.String, nullable=False),
                sa.Column("valid_before", _LONG, nullable=False),
                sa.Column("transaction", sa.String),
                sa.Column("reason", sa.String),
                sa.Column("created_at", sa.Float, nullable=False),
                sa.Column("updated_at", sa.Float, nullable=False),
                sa.Column("signed", sa.String),
                sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
                sa.Column("retry_at", sa.Float),
                sa.Column("settled_at", sa.Float),
                sa.Column("request_id", sa.String),
                sa.Column("status", sa.Integer),
            ]


def upgrade() -> None:
    _set_aside()
    op.create_table(
        "payments",
        sa.Column("id", _LONG, sa.Identity(), primary_key=True),
        *(sa.Column(name, sa.String, nullable=False) for name in _KEY),
        *_columns("payments"),
        sa.UniqueConstraint(*_KEY, name="payments_key"),
    )
    columns = _names("payments", *_KEY)
    op.execute(f"INSERT INTO payments ({columns}) SELECT {columns} FROM old_payments ORDER BY created_at")
    for table in _OTHERS:
        op.create_table(
            table, sa.Column("payment", _LONG, primary_key=True, autoincrement=False), *_columns(table)
        )
        op.execute(
            f"INSERT INTO {table} ({_names(table, 'payment')}) SELECT {_names(table, 'id', of='payments')} "
            f"FROM old_{table} AS old JOIN payments ON {_the_same('old')}"
        )
    _finish()


def downgrade() -> None:
    _set_aside()
    op.create_table("payments", *_key(), *_columns("payments"), sqlite_with_rowid=False)
    columns = _names("payments", *_KEY)
    op.execute(f"INSERT INTO payments ({columns}) SELECT {columns} FROM old_payments")
    for table in _OTHERS:
        op.create_table(table, *_key(), *_columns(table))
        op.execute(
            f"INSERT INTO {table} ({_names(table, *_KEY)}) SELECT {_names(table, *_KEY, of='payments')} "
            f"FROM old_{table} AS old JOIN old_payments AS payments ON old.payment = payments.id"
        )
    _finish()


def _key() -> list[sa.Column[str]]:
    return [sa.Column(name, sa.String, primary_key=True) for name in _KEY]


def _names(table: str, *key: str, of: str | None = None) -> str:
    """Return the columns of a table after its key columns; `of` is the table that they are copied from."""
    rest = [f'"{column.name}"' for column in _columns(table)]
    if of is None:
        return ", ".join([*key, *rest])
    return ", ".join([*(f"{of}.{name}" for name in key), *(f"old.{name}" for name in rest)])


def _the_same(old: str) -> str:
    return " AND ".join(f"{old}.{name} = payments.{name}" for name in _KEY)


def _set_aside() -> None:
    """Rename the tables and drop their indexes."""
    for index in ("payments_identifier", "payments_open", "payments_created", "ix_answers_stored_at"):
        op.drop_index(index)
    for table in ("payments", *_OTHERS):
        op.rename_table(table, f"old_{table}")
        if op.get_bind().dialect.name == "postgresql":
            constraints = sa.inspect(op.get_bind())
            for unique in constraints.get_unique_constraints(f"old_{table}"):
                op.drop_constraint(str(unique["name"]), f"old_{table}")
            op.drop_constraint(f"{table}_pkey", f"old_{table}")


def _finish() -> None:
    """Drop the renamed tables and create the indexes."""
    for table in ("payments", *_OTHERS):
        op.drop_table(f"old_{table}")
    named, is_open = sa.text("identifier IS NOT NULL"), sa.text("state IN ('settling', 'settled')")
    op.create_index(
        "payments_identifier",
        "payments",
        ["payer", "identifier"],
        unique=True,
        sqlite_where=named,
        postgresql_where=named,
    )
    op.create_index(
        "payments_open", "payments", ["state", "updated_at"], sqlite_where=is_open, postgresql_where=is_open
    )
    op.create_index("payments_created", "payments", ["created_at"])
    op.create_index("ix_answers_stored_at", "answers", ["stored_at"])
