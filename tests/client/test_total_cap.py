"""The total cap: counted in the ledger over processes, until a node shows a payment unused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from buyers_shell import Shell, private_key_of
from fake_node import Rpc, answer_at, serve_node
from hostile import SLUG, HostileApi, PlannedResponse, error_response
from shopping import NO_AUTHORITIES, SHORT_TIMEOUTS, OpenClient

from centgate.client.caps import Caps
from centgate.client.errors import BuyerError, CapExceeded, Unresolved
from centgate.client.ledger import Ledger, LedgerRecord
from centgate.client.sync_client import Centgate
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.token import encode_authorization_state_call

pytestmark = pytest.mark.extended

CENT = Caps(total=Decimal("0.01"))
REFUSED = {"state": "refused", "charged": False, "retry": "new_payment"}
PROGRAM = """
import os, signal, sys
from decimal import Decimal
from centgate.client import Caps, Centgate, Ledger, Wallet
from centgate.client.errors import CapExceeded

url, key, path, number, die = sys.argv[1:]

def watch(sentence):
    if die and sentence.startswith("signed"):
        os.kill(os.getpid(), signal.SIGKILL)

caps = Caps(total=Decimal("0.02"))
with Centgate(url, Wallet.from_key(key), caps=caps, ledger=Ledger(path), watch=watch) as client:
    sys.stdin.readline()
    for each in range(3):
        try:
            client.call("some-facts", {"process": number, "n": each})
        except CapExceeded:
            sys.exit(4)
"""


def start_buyer(url: str, path: Path, number: int = 0, die: str = "") -> subprocess.Popen[bytes]:
    """Start a process that buys three answers under a cap of two, once its standard input has a line."""
    arguments = [url, BUYER_ACCOUNTS[0].private_key, str(path), str(number), die]
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stdin=subprocess.PIPE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def read_last_state(path: Path) -> LedgerRecord:
    return Ledger(path).records()[-1]


async def test_second_client_finds_cap_spent(shop: OpenClient, hostile: HostileApi, path: Path) -> None:
    await shop(hostile.url, caps=CENT, ledger=Ledger(path)).call(SLUG, {"n": 1})

    with pytest.raises(CapExceeded, match=r"\$0.01 of \$0.01 is already committed"):
        await shop(hostile.url, caps=CENT, ledger=Ledger(path)).call(SLUG, {"n": 2})

    assert len(set(hostile.payments)) == 1


def test_concurrent_processes_keep_one_cap(hostile: HostileApi, path: Path) -> None:
    processes = [start_buyer(hostile.url, path, number) for number in range(3)]

    for process in processes:
        assert process.stdin
        process.stdin.write(b"\n")
        process.stdin.close()

    assert [process.wait(60) for process in processes] == [4, 4, 4]
    assert len(set(hostile.payments)) == 2


async def test_payment_of_dead_process_counts(shop: OpenClient, hostile: HostileApi, path: Path) -> None:
    process = start_buyer(hostile.url, path, die="signed")
    process.communicate(b"\n", timeout=60)

    with pytest.raises(CapExceeded):
        await shop(hostile.url, caps=CENT, ledger=Ledger(path)).call(SLUG, {"other": 1})

    assert process.returncode == -signal.SIGKILL
    assert hostile.payments == []


async def test_refused_payment_counts_in_next_process(
    shop: OpenClient, hostile: HostileApi, path: Path
) -> None:
    hostile.paid = [error_response(402, "payment_required", note=REFUSED)]
    with pytest.raises(BuyerError):
        await shop(hostile.url, caps=CENT, ledger=Ledger(path)).call(SLUG, {})

    with pytest.raises(CapExceeded):
        await shop(hostile.url, caps=CENT, ledger=Ledger(path)).call(SLUG, {})

    assert len(set(hostile.payments)) == 1


async def test_each_wallet_has_own_count(shop: OpenClient, hostile: HostileApi, path: Path) -> None:
    other = Wallet.from_key(BUYER_ACCOUNTS[1].private_key)
    await shop(hostile.url, caps=CENT, ledger=Ledger(path)).call(SLUG, {})

    answer = await shop(hostile.url, caps=CENT, ledger=Ledger(path), wallet=other).call(SLUG, {})

    assert answer.money == "moved"


async def test_open_payment_is_resent_with_cap_spent(
    shop: OpenClient, hostile: HostileApi, path: Path
) -> None:
    hostile.paid = [PlannedResponse(500, b"")] * 4
    with pytest.raises(Unresolved):
        await shop(hostile.url, caps=CENT, ledger=Ledger(path)).call(SLUG, {})

    answer = await shop(hostile.url, caps=CENT, ledger=Ledger(path)).call(SLUG, {})

    assert (answer.money, len(set(hostile.payments))) == ("moved", 1)


def test_removed_ledger_does_not_reset_running_client(hostile: HostileApi, path: Path) -> None:
    wallet = Wallet.from_key(BUYER_ACCOUNTS[0].private_key)
    with Centgate(hostile.url, wallet, caps=CENT, ledger=Ledger(path), tls=NO_AUTHORITIES) as client:
        client.call(SLUG, {"n": 1})
        path.unlink()

        with pytest.raises(CapExceeded):
            client.call(SLUG, {"n": 2})


async def test_dry_run_says_cap_is_spent(shop: OpenClient, hostile: HostileApi, path: Path) -> None:
    await shop(hostile.url, caps=CENT, ledger=Ledger(path)).call(SLUG, {"n": 1})

    quote = await shop(hostile.url, caps=CENT, ledger=Ledger(path), wallet=None).terms(SLUG, {"n": 2})

    assert "CENTGATE_CAP_TOTAL" in quote.objections[0]


def test_new_count_applies_to_running_client(hostile: HostileApi, path: Path) -> None:
    wallet = Wallet.from_key(BUYER_ACCOUNTS[0].private_key)
    with Centgate(
        hostile.url, wallet, caps=CENT, ledger=Ledger(path), patience=SHORT_TIMEOUTS, tls=NO_AUTHORITIES
    ) as client:
        client.call(SLUG, {"n": 1})
        with Ledger(path).entry() as entry:
            entry.reset_cap(wallet.address)

        answer = client.call(SLUG, {"n": 2})

    assert answer.money == "moved"
    assert [record.event for record in Ledger(path).records()] == ["signed", "delivered"] * 2


# the command


@pytest.fixture
def shell(hostile: HostileApi, tmp_path: Path, path: Path) -> Shell:
    """A buyer of one cent in all, with a key and a ledger."""
    settings = {
        "CENTGATE_API_URL": hostile.url,
        "CENTGATE_WALLET_KEY": private_key_of(),
        "CENTGATE_CAP_TOTAL": "0.01",
        "CENTGATE_LEDGER": str(path),
    }
    return Shell(tmp_path, settings)


def read_cap(shell: Shell, *more: str) -> dict[str, Any]:
    done = shell("wallet", "cap", "--json", *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_two_commands_spend_one_cap(shell: Shell, hostile: HostileApi) -> None:
    first, second = (shell("call", SLUG, "--body", f'{{"n": {number}}}') for number in range(2))

    assert (first.returncode, second.returncode) == (0, 4)
    assert "`centgate wallet cap`" in second.stderr
    assert len(set(hostile.payments)) == 1


def test_command_shows_counted_amount(shell: Shell) -> None:
    shell("call", SLUG, "--body", "{}")

    cap = read_cap(shell)

    assert (cap["signedUsd"], cap["capUsd"], cap["leftUsd"]) == ("0.01", "0.01", "0.00")
    assert cap["payer"] == BUYER_ACCOUNTS[0].address
    assert "$0.01" in shell("wallet", "cap").stdout


def test_command_starts_new_count(shell: Shell) -> None:
    shell("call", SLUG, "--body", '{"n": 1}')

    cap = read_cap(shell, "--reset")
    after = shell("call", SLUG, "--body", '{"n": 2}')

    assert cap["signedUsd"] == "0"
    assert after.returncode == 0, after.stderr


@pytest.fixture
def expired_nonce(hostile: HostileApi, path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The nonce of a refused payment whose window ended an hour ago."""
    hostile.paid = [error_response(402, "payment_required", note=REFUSED)]
    now = time.time()
    wallet = Wallet.from_key(private_key_of())
    with (
        monkeypatch.context() as patch,
        Centgate(hostile.url, wallet, ledger=Ledger(path), tls=NO_AUTHORITIES) as client,
    ):
        patch.setattr(time, "time", lambda: now - 3700)
        with pytest.raises(BuyerError):
            client.call(SLUG, {})
    return read_last_state(path).payment.nonce


def test_unused_payment_returns_to_cap_after_window(shell: Shell, expired_nonce: str, path: Path) -> None:
    with serve_node(answer_at(0, used=False)) as url:
        cap = read_cap(shell, "--rpc", url)

    assert (Decimal(cap["signedUsd"]), cap["unused"]) == (0, [expired_nonce])
    assert (read_last_state(path).event, read_last_state(path).money) == ("unused", "not_moved")
    assert shell("call", SLUG, "--body", '{"n": 2}').returncode == 0


def test_node_is_asked_for_nonce_at_its_block(shell: Shell, expired_nonce: str) -> None:
    asked: list[Any] = []

    def answer(method: str, params: list[Any]) -> Any:
        asked.append((method, params))
        return answer_at(0, used=False)(method, params)

    with serve_node(answer) as url:
        read_cap(shell, "--rpc", url)

    blocks = [params for method, params in asked if method == "eth_getBlockByNumber"]
    assert blocks == [["safe", False]]
    (call,) = (params for method, params in asked if method == "eth_call")
    assert call[0]["data"] == encode_authorization_state_call(BUYER_ACCOUNTS[0].address, expired_nonce)
    assert call[1] == "0x10"


def test_used_payment_still_counts_and_is_reported(shell: Shell, expired_nonce: str) -> None:
    with serve_node(answer_at(0, used=True)) as url:
        cap = read_cap(shell, "--rpc", url)

    assert (cap["signedUsd"], cap["used"], cap["unused"]) == ("0.01", [expired_nonce], [])


@pytest.mark.parametrize(
    "answer",
    [answer_at(-3200, used=False), answer_at(0, used=False, chain="eip155:8453")],
    ids=["a node that lags behind the window", "a node of another network"],
)
def test_unknown_payment_still_counts(shell: Shell, expired_nonce: str, answer: Rpc) -> None:
    with serve_node(answer) as url:
        cap = read_cap(shell, "--rpc", url)

    assert expired_nonce
    assert (cap["signedUsd"], cap["unused"], cap["used"]) == ("0.01", [], [])


def test_payment_in_window_is_not_looked_up(shell: Shell, hostile: HostileApi, path: Path) -> None:
    hostile.paid = [error_response(402, "payment_required", note=REFUSED)]
    shell("call", SLUG, "--body", "{}")

    with serve_node(answer_at(7200, used=False)) as url:
        cap = read_cap(shell, "--rpc", url)

    assert cap["signedUsd"] == "0.01"
    assert read_last_state(path).event == "refused"
