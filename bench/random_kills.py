"""Crash test: kill servers at random while buyers pay on the development chain, then audit the journal.

    PYTHONPATH=tests:tests/payments .venv/bin/python bench/random_kills.py [--payments 500] [--deaths 20]

Runs on SQLite with one server and on PostgreSQL with two. Exits with 1 if journal and chain disagree.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from crash_test import (
    PRICE,
    CrashTest,
    GuaranteeViolation,
    JournalAudit,
    audit_journal,
    count_failed_transactions,
    open_crash_test,
    read_block_number,
)
from databases import postgres_server
from facilitators import build_settings
from rich.console import Console

from centgate.devchain.devnet import DevChain, open_devchain
from centgate.log import configure_logging
from centgate.signing.evm import to_checksum_address

REPLICAS = {"sqlite": 1, "postgresql": 2}


def main() -> None:
    """Run the crash test on each database and print its report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--payments", type=int, default=500)
    parser.add_argument("--deaths", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    configure_logging("error")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="centgate-crash-")))
        postgres, chain = stack.enter_context(postgres_server()), stack.enter_context(open_devchain())
        for url in (f"sqlite:///{folder / 'journal.db'}", postgres.new_database()):
            asyncio.run(
                run_on_database(
                    chain, url, folder, payments=options.payments, deaths=options.deaths, seed=options.seed
                )
            )


async def audit_at_rest(crash_test: CrashTest, chain: DevChain, seller: str) -> tuple[int, JournalAudit]:
    """Audit the journal, again while the balance changes; return the balance and the audit.

    The facilitator may still be settling a payment of a server that was killed.
    """
    while True:
        balance = chain.token_balance(seller)
        audit = await audit_journal(crash_test, chain.is_authorization_used)
        if chain.token_balance(seller) == balance:
            return balance, audit


async def run_on_database(
    chain: DevChain, database_url: str, folder: Path, *, payments: int, deaths: int, seed: int
) -> None:
    """Run one crash test, audit the journal, and print a report.

    Raises GuaranteeViolation if the journal and the chain disagree.
    """
    kind = database_url.partition(":")[0]
    seller, first_block = to_checksum_address("0x" + secrets.token_hex(20)), read_block_number(chain)
    settings = build_settings(folder, chain.facilitator_url, database_url=database_url, pay_to=seller)
    async with open_crash_test(
        settings, folder / f"{kind}.log", replicas=REPLICAS[kind], seed=seed, RPC_84532_URL=chain.rpc_url
    ) as crash_test:
        await crash_test.run(payments, deaths)
        balance, audit = await audit_at_rest(crash_test, chain, seller)
        await crash_test.recover()
        final_audit = await audit_journal(crash_test, chain.is_authorization_used)
        await crash_test.replay_all()
    final_balance = chain.token_balance(seller)
    failed = count_failed_transactions(chain, first_block)
    print_line(f"{kind}, seed {seed}: {describe_run(crash_test)}")
    print_line(
        f"  after the crashes: {dict(audit.states)}, {audit.charged} charged, {audit.open} of them unknown"
    )
    print_line(
        f"  after recovery: {dict(final_audit.states)}, {final_balance // PRICE} paid on the chain,"
        f" {failed} failed transactions"
    )
    balanced = balance == audit.charged * PRICE and final_balance == payments * PRICE and not failed
    if not balanced or final_audit.states != {"delivered": payments}:
        raise GuaranteeViolation("the journal and the chain disagree")


def describe_run(crash_test: CrashTest) -> str:
    """Return the numbers of payments, requests and crashes of a run as text."""
    tries = sum(purchase.tries for purchase in crash_test.purchases)
    return (
        f"{len(crash_test.purchases)} payments, {tries} requests, {crash_test.broken} aborted, "
        f"{crash_test.deaths.total()} crashes {dict(crash_test.deaths)}, {crash_test.seconds:.0f} s"
    )


def print_line(line: str) -> None:
    """Print a line without wrapping."""
    Console(soft_wrap=True).print(line, highlight=False, markup=False)


if __name__ == "__main__":
    try:
        main()
    except GuaranteeViolation as error:
        sys.exit(f"failed: {error}")
