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
    """Lay a siege to each database, and say what it did."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    reader.add_argument("--payments", type=int, default=500)
    reader.add_argument("--deaths", type=int, default=20)
    reader.add_argument("--seed", type=int, default=int(time.time()))
    asked = reader.parse_args()
    configure_logging("error")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="centgate-siege-")))
        postgres, chain = stack.enter_context(postgres_server()), stack.enter_context(open_devchain())
        for url in (f"sqlite:///{folder / 'journal.db'}", postgres.new_database()):
            asyncio.run(
                withstand(chain, url, folder, payments=asked.payments, deaths=asked.deaths, seed=asked.seed)
            )


async def withstand(
    chain: DevChain, database_url: str, folder: Path, *, payments: int, deaths: int, seed: int
) -> None:
    """One siege, and the audits after it."""
    kind = database_url.partition(":")[0]
    shop, since = to_checksum_address("0x" + secrets.token_hex(20)), read_block_number(chain)
    settings = build_settings(folder, chain.facilitator_url, database_url=database_url, pay_to=shop)
    async with open_crash_test(
        settings, folder / f"{kind}.log", replicas=REPLICAS[kind], seed=seed, RPC_84532_URL=chain.rpc_url
    ) as siege:
        await siege.run(payments, deaths)
        left = await audit_journal(siege, chain.is_authorization_used)
        held = chain.token_balance(shop)
        await siege.recover()
        found = await audit_journal(siege, chain.is_authorization_used)
        await siege.replay_all()
    failed = count_failed_transactions(chain, since)
    say(f"{kind}, seed {seed}: {story(siege)}")
    say(f"  then: {dict(left.states)}, {left.charged} charged, {left.open} of them not known yet")
    say(
        f"  at last: {dict(found.states)}, {chain.token_balance(shop) // PRICE} paid on the chain,"
        f" {failed} failed"
    )
    balanced = held == left.charged * PRICE and chain.token_balance(shop) == payments * PRICE and not failed
    if not balanced or found.states != {"delivered": payments}:
        raise BrokenPromise("the books do not balance")


def story(siege: CrashTest) -> str:
    """What happened."""
    tries = sum(purchase.tries for purchase in siege.purchases)
    return (
        f"{len(siege.purchases)} payments, {tries} requests, {siege.broken} broken off, "
        f"{siege.deaths.total()} deaths {dict(siege.deaths)}, {siege.seconds:.0f} s"
    )


def say(line: str) -> None:
    """Print a line at once."""
    Console(soft_wrap=True).print(line, highlight=False, markup=False)


if __name__ == "__main__":
    try:
        main()
    except BrokenPromise as error:
        sys.exit(f"broken: {error}")
