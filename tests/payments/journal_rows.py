"""Generated journal rows, inserted directly into the tables."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from sqlalchemy import insert

from centgate.payments.database.sql import BoundStatement, UnitOfWork, compile_statement
from centgate.payments.database.store_factory import open_store
from centgate.payments.database.tables import metadata

NOW = 1_795_000_000.0
RETENTION = 86_400.0
LIVE_PROCESS = "host/1/alive"
REDEEM_CUTOFF = NOW - RETENTION
FIRST = 1_000_000
"""Id of the first payment: far from those that a database assigns."""
TOKENS = (
    ("eip155:8453", "0x" + "83" * 20),
    ("eip155:8453", "0x" + "84" * 20),
    ("eip155:84532", "0x" + "03" * 20),
)

Row = dict[str, Any]
_INSERTS = {table.name: compile_statement(insert(table)) for table in metadata.sorted_tables}


def payment_row(number: int, state: str = "delivered", **changes: Any) -> Row:
    """Return a payment's row, unique by its number; submitted a minute before NOW."""
    at = changes.get("created_at", NOW - 60)
    is_settled = state in ("settled", "delivered")
    defaults: Row = {
        "id": FIRST + number,
        "network": TOKENS[0][0],
        "asset": TOKENS[0][1],
        "payer": f"0x{number % 5:040x}",
        "nonce": f"0x{number:064x}",
        "state": state,
        "owner": None,
        "binding": "b",
        "service": "phishing-check",
        "identifier": None,
        "proof": "the proof",
        "signer_known": 1,
        "amount": "10000",
        "pay_to": "0x" + "ce" * 20,
        "valid_before": int(at) + 120,
        "transaction": f"0x{number + (1 << 200):064x}" if is_settled else None,
        "reason": {"refused": "insufficient_funds", "unused": "status 429"}.get(state),
        "created_at": at,
        "updated_at": at + 1,
        "signed": '{"signature": "0xsecret"}' if state == "settling" else None,
        "attempts": 0,
        "claim_block": None,
        "presentations": 1,
        "facilitator": None,
        "open_cause": None,
        "retry_at": None,
        "settled_at": at + 1 if is_settled else None,
        "request_id": f"req_{number:024x}" if state == "delivered" else None,
        "status": 200 if state == "delivered" else None,
    }
    return defaults | changes


def make_random_rows(seed: int, count: int) -> tuple[list[Row], list[Row], list[Row]]:
    """Return random payments of a week, many at the same time; refunds of some of them; workers.

    LIVE_PROCESS is alive while a test sends its heartbeats.
    """
    dice = random.Random(seed)
    rows: list[Row] = []
    for number in range(count):
        network, asset = dice.choice(TOKENS)
        at = NOW - dice.choice([dice.randrange(7 * 86_400), 86_400 * dice.randrange(7), 5000])
        settled = at + dice.choice([0.25, 1.5, 700])
        state = dice.choice(["settling", "settled", "delivered", "delivered", "refused", "unused"])
        changes: Row = {"settled_at": settled} if state in ("settled", "delivered") else {}
        rows.append(
            payment_row(
                number,
                state,
                network=network,
                asset=asset,
                created_at=at,
                updated_at=settled + (dice.choice([0.5, 59, 60, 4000]) if state == "delivered" else 0),
                amount=str(dice.choice([10_000, 1, 20_000_001])),
                service=dice.choice(["phishing-check", "neuralweb-search"]),
                owner=dice.choice([None, LIVE_PROCESS, f"{LIVE_PROCESS}/upkeep", "host/2/dead"]),
                attempts=dice.choice([0, 0, 3]),
                **changes,
            )
        )
    late = [each for each in rows if each["state"] == "settled" and each["updated_at"] < REDEEM_CUTOFF]
    refunds = [refund_row(each) for each in late if dice.random() < 0.5]
    return rows, refunds, [{"id": LIVE_PROCESS, "seen_at": NOW}, {"id": "host/2/dead", "seen_at": NOW}]


def refund_row(paid: Row) -> Row:
    """Return the refund row of a payment."""
    return {"payment": paid["id"], "transaction": "0x" + "f0" * 32, "at": NOW - 10}


def answer_row(paid: Row, body: bytes) -> Row:
    """Return the answer row of a payment."""
    values = {
        "status": 200,
        "request_id": paid["request_id"],
        "receipt": "cmVjZWlwdA==",
        "stored_at": NOW - 50,
    }
    return {"payment": paid["id"], **values, "body": body}


async def insert_rows(url: str, **tables: Iterable[Row]) -> None:
    """Insert rows into a journal's tables, creating them if needed."""

    def insert_all() -> UnitOfWork[None]:
        for name, rows in tables.items():
            for each in rows:
                yield BoundStatement(_INSERTS[name], each)

    store = open_store(url)
    await store.migrate()
    await store.run(insert_all)
    await store.close()
