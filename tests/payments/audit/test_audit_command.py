"""The command `centgate payments audit`: exit codes, JSON, table, resumption."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from audits import (
    get_nonce,
    mine_block,
    newer_block,
    read_block_number,
    record_false_delivery,
    settle_on_chain,
    sign_unsubmitted,
)
from buyer import Buyer
from fake_upstreams import FakeUpstreams
from journal_rows import insert_rows, payment_row
from payments_shell import run_payments_command
from tampering_proxy import start_proxy
from typer.testing import Result

from centgate.devchain.devnet import DevChain
from centgate.settings import Settings
from centgate.signing.evm import to_checksum_address


@pytest.fixture
def audited_settings(chain_settings: Settings, database_url: str) -> Settings:
    """A deployment on the development chain with its own recipient, and an empty journal."""
    pay_to = to_checksum_address(f"0x{time.time_ns():040x}")
    asyncio.run(insert_rows(database_url))
    return chain_settings.model_copy(update={"database_url": database_url, "pay_to": pay_to})


def run_audit_command(
    settings: Settings, *arguments: str, node: str | None = None, width: int = 120
) -> Result:
    """Run the command."""
    environment = {
        "CENTGATE_PAY_TO": str(settings.pay_to),
        "CENTGATE_NETWORK": settings.network,
        "CENTGATE_FACILITATOR_URL": "http://127.0.0.1:9",
        "CENTGATE_RPC_84532_URL": node or str(settings.rpc_url),
        "CENTGATE_RPC_84532_ENABLED": "true",
    }
    return run_payments_command(
        "audit", *arguments, url=settings.database_url, width=width, settings=environment
    )


def read_report(settings: Settings, *arguments: str, node: str | None = None) -> tuple[int, Any]:
    """Return the exit code and the JSON output."""
    result = run_audit_command(settings, "--json", *arguments, node=node)
    assert result.stdout, result.output
    return result.exit_code, json.loads(result.stdout)


def test_clean_journal_exits_0(audited_settings: Settings, devchain: DevChain) -> None:
    mine_block(devchain)

    code, report = read_report(audited_settings)

    assert (code, report["findings"]) == (0, [])
    assert report["audited"][0]["payTo"] == str(audited_settings.pay_to).lower()
    assert report["audited"][0]["toBlock"] == read_block_number(devchain)


@pytest.mark.extended
def test_findings_are_shown_and_exit_1(audited_settings: Settings, devchain: DevChain, buyer: Buyer) -> None:
    unknown = sign_unsubmitted(audited_settings, buyer)
    transaction = settle_on_chain(devchain, unknown)
    false = asyncio.run(record_false_delivery(audited_settings, buyer))
    mine_block(devchain)

    code, report = read_report(audited_settings)
    table = run_audit_command(audited_settings)

    found = {each["finding"]: each for each in report["findings"]}
    assert (code, table.exit_code, set(found)) == (1, 1, {"unknown", "not_on_chain"})
    assert found["unknown"]["transaction"] == transaction
    assert found["not_on_chain"]["nonce"] == get_nonce(false)
    assert found["not_on_chain"]["state"] == "delivered"
    assert "deployments that share a payTo must share a journal" in " ".join(table.stdout.split())


@pytest.mark.extended
@pytest.mark.parametrize("width", [40, 60, 80, 220])
def test_table_fits_terminal(
    audited_settings: Settings, devchain: DevChain, buyer: Buyer, width: int
) -> None:
    settle_on_chain(devchain, sign_unsubmitted(audited_settings, buyer))

    table = run_audit_command(audited_settings, width=width).stdout.split("\n\n")[0]

    assert max(map(len, table.splitlines())) <= width
    assert "…" in table or width > 200


@pytest.mark.extended
def test_blocks_can_be_given(audited_settings: Settings, devchain: DevChain, buyer: Buyer) -> None:
    settle_on_chain(devchain, sign_unsubmitted(audited_settings, buyer))
    number = str(read_block_number(devchain))
    mine_block(devchain)

    exact = read_report(audited_settings, "--from-block", number, "--to-block", number)[1]
    after = read_report(audited_settings, "--from-block", str(int(number) + 1))[1]

    assert [each["finding"] for each in exact["findings"]] == ["unknown"]
    assert (after["findings"], after["audited"][0]["fromBlock"]) == ([], int(number) + 1)


@pytest.mark.extended
def test_resumed_audit_starts_at_last_end(
    audited_settings: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    settle_on_chain(devchain, sign_unsubmitted(audited_settings, buyer))
    mine_block(devchain)
    node = start_proxy(upstreams, "node", devchain.rpc_url, newer_block(devchain)) + "/"
    first = read_report(audited_settings, node=node)[1]
    payload = sign_unsubmitted(audited_settings, buyer)
    settle_on_chain(devchain, payload)
    mine_block(devchain)

    again = read_report(audited_settings, "--resume", node=node)[1]

    # the newest block was too young to be compared in both directions
    assert again["audited"][0]["fromBlock"] == first["audited"][0]["toBlock"]
    assert [each["nonce"] for each in again["findings"]] == [get_nonce(payload)]


def test_interrupted_audit_resumes_without_gap(
    audited_settings: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    payload = sign_unsubmitted(audited_settings, buyer)
    settle_on_chain(devchain, payload)
    mine_block(devchain)
    node = start_proxy(upstreams, "node", devchain.rpc_url, newer_block(devchain)) + "/"

    code, report = read_report(audited_settings, "--resume", node="http://127.0.0.1:9")
    later_code, later_told = read_report(audited_settings, "--resume", node=node)

    assert (code, report["audited"][0]["problem"] is None) == (1, False)
    assert (later_code, [each["nonce"] for each in later_told["findings"]]) == (1, [get_nonce(payload)])


@pytest.mark.extended
def test_recipients_of_earlier_terms_are_audited(audited_settings: Settings, devchain: DevChain) -> None:
    earlier = "0x" + "ab" * 20
    token = devchain.token.lower()
    paid = payment_row(1, network="eip155:84532", asset=token, pay_to=earlier, created_at=time.time() - 3600)
    asyncio.run(insert_rows(audited_settings.database_url, payments=[paid]))
    mine_block(devchain)

    report = read_report(audited_settings)[1]

    assert {each["payTo"] for each in report["audited"]} == {earlier, str(audited_settings.pay_to).lower()}
    assert [(each["finding"], each["payTo"]) for each in report["findings"]] == [("not_on_chain", earlier)]


def test_network_without_node_is_reported_as_unaudited(audited_settings: Settings) -> None:
    asyncio.run(
        insert_rows(
            audited_settings.database_url,
            payments=[payment_row(1, network="eip155:99", created_at=time.time())],
        )
    )

    code, report = read_report(audited_settings)

    problems = {each["network"]: each["problem"] for each in report["audited"]}
    assert (code, problems) == (1, {"eip155:99": "no node of eip155:99", "eip155:84532": None})


@pytest.mark.extended
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--since", "soon"], "is not a time"),
        (["--since", "1h", "--until", "2h"], "--since must be before --until"),
        (["--since", "1h", "--from-block", "1"], "not by both"),
        (["--from-block", "2", "--to-block", "1"], "--from-block must not be after"),
        (["--to-block", "1"], "needs --from-block"),
        (["--resume", "--since", "1h"], "omit the period"),
    ],
)
def test_invalid_options_exit_2(audited_settings: Settings, arguments: list[str], sentence: str) -> None:
    result = run_audit_command(audited_settings, *arguments)

    assert (result.exit_code, sentence in result.stderr) == (2, True), result.output


def test_missing_journal_cannot_be_audited(tmp_path: Path) -> None:
    result = run_payments_command("audit", url=f"sqlite:///{tmp_path / 'none.db'}")

    assert (result.exit_code, "there is no journal yet" in result.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []
