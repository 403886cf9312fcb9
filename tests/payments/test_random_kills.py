"""Servers killed at random while buyers pay: afterwards journal and money agree, to the cent.

The same with 500 payments and 20 deaths, on a chain alone, is `make test-crash`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from crash_test import PRICE, audit_journal, count_failed_transactions, open_crash_test, read_block_number
from facilitators import StubFacilitator, build_settings, reply_with
from starlette.responses import Response

from centgate.devchain.devnet import DevChain
from centgate.signing.evm import to_checksum_address

pytestmark = pytest.mark.extended

REPLICAS = {"sqlite": 1, "postgresql": 2}
PAYMENTS, DEATHS = 60, 2


def count_replicas(database_url: str) -> int:
    """Return the number of servers that share a journal of this kind."""
    return REPLICAS[database_url.partition(":")[0]]


async def test_payments_survive_random_deaths(
    database_url: str, tmp_path: Path, facilitator: StubFacilitator
) -> None:
    facilitator.usually = facilitator.reply_erratically(seed=6, seconds=0.4)
    settings = build_settings(tmp_path, facilitator.url, database_url=database_url)

    async with open_crash_test(
        settings, tmp_path / "log", replicas=count_replicas(database_url), seed=6
    ) as crash_test:
        await crash_test.run(PAYMENTS, deaths=DEATHS)
        left = await audit_journal(crash_test, lambda payer, nonce: facilitator.moved[payer, nonce] == 1)
        await crash_test.recover()
        found = await audit_journal(crash_test, lambda payer, nonce: facilitator.moved[payer, nonce] == 1)
        await crash_test.replay_all()

    assert left.charged == left.states["settled"] + left.states["delivered"] + left.open
    assert found.states == {"delivered": PAYMENTS}
    assert facilitator.moved.total() == PAYMENTS
    assert crash_test.deaths.total() == DEATHS
    assert crash_test.broken


@pytest.mark.crash
async def test_payments_survive_random_deaths_with_two_facilitators(
    database_url: str, tmp_path: Path, facilitators: Callable[[], StubFacilitator]
) -> None:
    first, second = facilitators(), facilitators()
    random, settle = Random(8), first.reply_erratically(seed=8, seconds=0.4)

    async def limit_or_settle(body: dict[str, Any]) -> Response:
        return await (reply_with(429, {}) if random.random() < 0.5 else settle)(body)

    first.usually, second.usually = limit_or_settle, second.reply_erratically(seed=9, seconds=0.4)
    settings = build_settings(tmp_path, first.url, database_url=database_url)

    def has_moved(payer: str, nonce: str) -> bool:
        return first.moved[payer, nonce] + second.moved[payer, nonce] == 1

    async with open_crash_test(
        settings,
        tmp_path / "log",
        replicas=count_replicas(database_url),
        seed=8,
        FACILITATOR_FALLBACK_URL=second.url,
    ) as crash_test:
        await crash_test.run(PAYMENTS, deaths=DEATHS)
        left = await audit_journal(crash_test, has_moved)
        await crash_test.recover()
        found = await audit_journal(crash_test, has_moved)
        await crash_test.replay_all()

    assert left.charged == left.states["settled"] + left.states["delivered"] + left.open
    assert found.states == {"delivered": PAYMENTS}
    assert first.moved.total() + second.moved.total() == PAYMENTS
    assert min(first.moved.total(), second.moved.total()) > PAYMENTS / 10


@pytest.mark.crash
async def test_chain_and_journal_agree_after_random_deaths(
    postgres_url: str, tmp_path: Path, devchain: DevChain
) -> None:
    shop, since = to_checksum_address("0x" + secrets.token_hex(20)), read_block_number(devchain)
    settings = build_settings(tmp_path, devchain.facilitator_url, database_url=postgres_url, pay_to=shop)
    node = devchain.rpc_url

    async with open_crash_test(
        settings, tmp_path / "log", replicas=count_replicas(postgres_url), seed=7, RPC_84532_URL=node
    ) as crash_test:
        await crash_test.run(60, deaths=3)
        left, held = (
            await audit_journal(crash_test, devchain.is_authorization_used),
            devchain.token_balance(shop),
        )
        await crash_test.recover()
        found = await audit_journal(crash_test, devchain.is_authorization_used)
        await crash_test.replay_all()

    assert held == left.charged * PRICE
    assert left.charged == left.states["settled"] + left.states["delivered"] + left.open
    assert found.states == {"delivered": 60}
    assert devchain.token_balance(shop) == 60 * PRICE
    assert count_failed_transactions(devchain, since) == 0
