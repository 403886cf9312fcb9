"""Servers killed at random while many pay on the development chain; afterwards the books are audited.

    PYTHONPATH=tests:tests/payments .venv/bin/python bench/random_kills.py [--payments 500] [--deaths 20]

Once on SQLite with one server, once on PostgreSQL with two. Ends with 1 where the books do not balance.
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
    BrokenPromise,
    CrashTest,
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


async def run_on_database(
    chain: DevChain, database_url: str, folder: Path, *, payments: int, deaths: int, seed: int
) -> None:
    """Run one crash test, then audit the journal."""
    kind = database_url.partition(":")[0]
    shop, since = to_checksum_address("0x" + secrets.token_hex(20)), read_block_number(chain)
    settings = build_settings(folder, chain.facilitator_url, database_url=database_url, pay_to=shop)
    async with open_crash_test(
        settings, folder / f"{kind}.log", replicas=REPLICAS[kind], seed=seed, RPC_84532_URL=chain.rpc_url
    ) as crash_test:
        await crash_test.run(payments, deaths)
        left = await audit_journal(crash_test, chain.is_authorization_used)
        held = chain.token_balance(shop)
        await crash_test.recover()
        found = await audit_journal(crash_test, chain.is_authorization_used)
        await crash_test.replay_all()
    failed = count_failed_transactions(chain, since)
    print_line(f"{kind}, seed {seed}: {describe_run(crash_test)}")
    print_line(f"  then: {dict(left.states)}, {left.charged} charged, {left.open} of them not known yet")
    print_line(
        f"  at last: {dict(found.states)}, {chain.token_balance(shop) // PRICE} paid on the chain,"
        f" {failed} failed"
    )
    balanced = held == left.charged * PRICE and chain.token_balance(shop) == payments * PRICE and not failed
    if not balanced or found.states != {"delivered": payments}:
        raise BrokenPromise("the books do not balance")


def describe_run(crash_test: CrashTest) -> str:
    """Describe the payments, requests and deaths of a run."""
    tries = sum(purchase.tries for purchase in crash_test.purchases)
    return (
        f"{len(crash_test.purchases)} payments, {tries} requests, {crash_test.broken} broken off, "
        f"{crash_test.deaths.total()} deaths {dict(crash_test.deaths)}, {crash_test.seconds:.0f} s"
    )


def print_line(line: str) -> None:
    """Print a line without wrapping."""
    Console(soft_wrap=True).print(line, highlight=False, markup=False)


if __name__ == "__main__":
    try:
        main()
    except BrokenPromise as error:
        sys.exit(f"broken: {error}")
