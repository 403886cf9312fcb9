"""Refund check: a refund is looked up on the chain before it is entered."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from audits import get_nonce, settle_on_chain, sign_unsubmitted
from buyer import Buyer, encode_header
from chain_actions import send_reverted_transfer, transfer_tokens
from journal_rows import Row, insert_rows, payment_row
from payments_shell import run_payments_command
from seeded_journals import open_journal_store, record_payment
from typer.testing import Result

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.devnet import DevChain
from centgate.payments.audit.refunds import Refund, record_refund
from centgate.payments.journal.queries import key_of
from centgate.settings import Settings

DAY = 86_400
PAYER = BUYER_ACCOUNTS[3].address.lower()
UNKNOWN = "0x" + "ab" * 32


def refundable_row(devchain: DevChain, number: int, **changes: Any) -> Row:
    """Return the row of a payment that was settled three days ago and never delivered."""
    at = time.time() - 3 * DAY
    token = devchain.token.lower()
    return payment_row(
        number, "settled", network="eip155:84532", asset=token, payer=PAYER, created_at=at, **changes
    )


def create_journal(folder: Path, *rows: Row) -> str:
    """Create a journal with payments, and return its URL."""
    url = f"sqlite:///{folder / 'journal.db'}"
    asyncio.run(insert_rows(url, payments=rows))
    return url


def enter_refund(url: str, paid: Row, transaction: str, *more: str, node: str) -> Result:
    """Enter a refund by command."""
    environment = {"CENTGATE_RPC_84532_URL": node, "CENTGATE_RPC_84532_ENABLED": "true"}
    name = f"{paid['payer']}:{paid['nonce']}"
    return run_payments_command("refunded", name, "--in", transaction, *more, url=url, settings=environment)


def list_events(url: str, nonce: str) -> list[str]:
    result = run_payments_command("show", nonce, "--json", url=url)
    return [each["what"] for each in json.loads(result.stdout)["payments"][0]["events"]]


@pytest.mark.extended
def test_refund_found_on_chain_is_entered(tmp_path: Path, devchain: DevChain) -> None:
    paid = refundable_row(devchain, 1)
    url = create_journal(tmp_path, paid)
    transaction = transfer_tokens(devchain, Buyer(2), PAYER, 10_000)

    result = enter_refund(url, paid, transaction, node=devchain.rpc_url)

    assert result.exit_code == 0, result.output
    assert list_events(url, paid["nonce"])[-1] == f"Its refund in {transaction} was recorded."


def test_one_transaction_refunds_as_much_as_it_paid(tmp_path: Path, devchain: DevChain) -> None:
    payments = [refundable_row(devchain, number) for number in range(3)]
    url = create_journal(tmp_path, *payments)
    transaction = transfer_tokens(devchain, Buyer(2), PAYER, 29_999)

    shown = [enter_refund(url, each, transaction, node=devchain.rpc_url) for each in payments]

    assert [each.exit_code for each in shown] == [0, 0, 1]
    assert "0.020000 of it for refunds that are recorded already" in shown[2].stderr


async def test_transaction_refunds_one_of_two_payments_entered_at_once(
    database_url: str, devchain: DevChain
) -> None:
    """Both are found covered by the transaction before either is recorded; the servers are two."""
    payments = [refundable_row(devchain, number) for number in range(8)]
    await insert_rows(database_url, payments=payments)
    settings = Settings(database_url=database_url)

    async with open_journal_store(settings) as one, open_journal_store(settings) as other:
        for number, pair in enumerate(zip(payments[::2], payments[1::2], strict=True)):
            refund = Refund(f"0x{number + 1:064x}", time.time(), moved_amount=19_999)
            entered = await asyncio.gather(
                *(
                    record_refund(store, key_of(row), refund, redeem_cutoff=refund.at)
                    for store, row in zip((one, other), pair, strict=True)
                )
            )
            assert sorted(entered) == [False, True]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("to", "amount", "reason"),
    [
        (PAYER, 9_999, "moved 0.009999 test dollars"),
        (BUYER_ACCOUNTS[4].address, 10_000, "moved 0.000000 test dollars"),
    ],
    ids=["too little", "to another recipient"],
)
def test_transaction_without_refund_is_refused(
    tmp_path: Path, devchain: DevChain, to: str, amount: int, reason: str
) -> None:
    paid = refundable_row(devchain, 1)
    url = create_journal(tmp_path, paid)

    result = enter_refund(url, paid, transfer_tokens(devchain, Buyer(2), to, amount), node=devchain.rpc_url)

    assert (result.exit_code, reason in result.stderr) == (1, True), result.output


def test_payers_transfer_to_itself_is_no_refund(tmp_path: Path, devchain: DevChain) -> None:
    paid = refundable_row(devchain, 1)
    url = create_journal(tmp_path, paid)

    result = enter_refund(
        url, paid, transfer_tokens(devchain, Buyer(3), PAYER, 10_000), node=devchain.rpc_url
    )

    assert (result.exit_code, "moved 0.000000 test dollars" in result.stderr) == (1, True), result.output


def test_missing_or_failed_transaction_is_refused(tmp_path: Path, devchain: DevChain) -> None:
    paid = refundable_row(devchain, 1)
    url = create_journal(tmp_path, paid)

    missing = enter_refund(url, paid, UNKNOWN, node=devchain.rpc_url)
    failed = enter_refund(url, paid, send_reverted_transfer(devchain, paid["nonce"]), node=devchain.rpc_url)

    assert (missing.exit_code, "there is no transaction" in missing.stderr) == (1, True)
    assert (failed.exit_code, "was reverted" in failed.stderr) == (1, True)


def test_without_node_only_unchecked_refund_is_entered(tmp_path: Path, devchain: DevChain) -> None:
    paid = refundable_row(devchain, 1)
    url = create_journal(tmp_path, paid)

    unreachable = enter_refund(url, paid, UNKNOWN, node="http://127.0.0.1:9")
    nowhere = run_payments_command("refunded", paid["nonce"], "--in", UNKNOWN, url=url)
    unchecked = run_payments_command("refunded", paid["nonce"], "--in", UNKNOWN, "--unchecked", url=url)

    assert [each.exit_code for each in (unreachable, nowhere, unchecked)] == [1, 1, 0]
    assert "could not be checked" in unreachable.stderr
    assert "CENTGATE_RPC_84532_URL" in nowhere.stderr
    assert all("--unchecked" in each.stderr for each in (unreachable, nowhere))
    assert list_events(url, paid["nonce"])[-1].endswith("It was not checked on the chain.")


def test_refused_but_charged_payment_can_be_refunded(
    tmp_path: Path, devchain: DevChain, chain_settings: Settings
) -> None:
    buyer = Buyer(3)
    payload = sign_unsubmitted(chain_settings, buyer)
    asyncio.run(record_payment(chain_settings, encode_header(payload), int(time.time())))
    url = chain_settings.database_url
    mark_refused(tmp_path / "journal.db")
    paid = {"payer": PAYER, "nonce": get_nonce(payload)}
    back = transfer_tokens(devchain, Buyer(2), PAYER, 10_000)

    before = enter_refund(url, paid, back, node=devchain.rpc_url)
    settle_on_chain(devchain, payload)
    unasked = enter_refund(url, paid, back, node="http://127.0.0.1:9")
    after = enter_refund(url, paid, back, node=devchain.rpc_url)

    assert (before.exit_code, "the payment is refused" in before.stderr) == (1, True)
    assert (unasked.exit_code, "could not be checked if its money arrived" in unasked.stderr) == (1, True)
    assert after.exit_code == 0, after.output


def mark_refused(path: Path) -> None:
    """Mark every payment of a journal as refused."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE payments SET state = 'refused', reason = 'insufficient_funds', owner = NULL"
        )
