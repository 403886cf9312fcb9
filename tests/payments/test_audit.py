"""The audit finds where journal and chain disagree, in both directions."""

from __future__ import annotations

import time
from typing import Any

import pytest
from audits import (
    ANSWER,
    FALSE_HASH,
    answering,
    audited,
    chain_of,
    delivered_for_nothing,
    found,
    fresh,
    height,
    later,
    mine,
    nonce_of,
    settle,
)
from buyer import Api, Buyer, encoded, pay, payload_for
from deeds import cancel, spend_elsewhere, transfer
from facilitators import StubFacilitator, refused, said
from fronts import limit_log_range, start_proxy
from pasts import left_open, presented, terms_in
from standins import FakeUpstreams

from centgate.devchain.house import DevChain
from centgate.evm import to_checksum_address
from centgate.payments.audit import own_recipient
from centgate.payments.onchain import ChainUnreachable
from centgate.payments.transfer_reader import TransferReader
from centgate.settings import ProviderSettings, Settings


@pytest.fixture
def stubbed(chain_settings: Settings, facilitator: StubFacilitator, database_url: str) -> Settings:
    """A deployment on the development chain whose facilitator does what the test says.

    Its recipient is its own, so that the payments of other tests are not among those it audits.
    """
    return chain_settings.model_copy(
        update={
            "facilitator_url": facilitator.url,
            "database_url": database_url,
            "pay_to": to_checksum_address(f"0x{time.time_ns():040x}"),
        }
    )


@pytest.fixture
def without_node(stubbed: Settings) -> Settings:
    """The same without a node: it believes its facilitator."""
    return stubbed.model_copy(update={"providers": {"rpc_84532": ProviderSettings(enabled=False)}})


async def test_audit_of_a_clean_journal_finds_nothing(
    api: Api, stubbed: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    client = api(stubbed.model_copy(update={"facilitator_url": devchain.facilitator_url}))
    assert pay(client, encoded(payload_for(client, buyer))).status_code == 200

    result = await audited(stubbed)

    assert (found(result), result.transfers, result.problem) == ({}, 1, None)


async def test_payment_refused_here_and_paid_on_chain_is_found(
    api: Api,
    stubbed: Settings,
    without_node: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    buyer: Buyer,
) -> None:
    client = api(without_node)
    payload = payload_for(client, buyer)
    facilitator.next.append(refused("insufficient_funds"))
    assert pay(client, encoded(payload)).status_code == 402
    settle(devchain, payload)

    result = await audited(stubbed)

    (finding,) = result.findings
    assert (finding.kind, finding.key.nonce, finding.state) == ("refused", nonce_of(payload), "refused")
    assert (finding.amount, finding.service) == (10_000, "phishing-check")


async def test_payment_never_sent_from_here_and_paid_on_chain_is_found(
    api: Api,
    stubbed: Settings,
    without_node: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    buyer: Buyer,
) -> None:
    client = api(without_node)
    payload = payload_for(client, buyer)
    facilitator.next.append(said(429, ""))
    pay(client, encoded(payload))
    settle(devchain, payload)

    result = await audited(stubbed)

    assert found(result) == {nonce_of(payload): "refused"}
    assert result.findings[0].state == "unused"


async def test_unknown_transfer_is_found(stubbed: Settings, devchain: DevChain, buyer: Buyer) -> None:
    payload = fresh(stubbed, buyer)
    transaction = settle(devchain, payload)

    result = await audited(stubbed)

    (finding,) = result.findings
    assert (finding.kind, finding.transaction, finding.state) == ("unknown", transaction, None)


async def test_payment_made_before_it_was_presented_here_counts_as_unknown(
    api: Api, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    """It has bought something elsewhere, so it is not to be paid back."""
    client = api(stubbed)
    payload = payload_for(client, buyer)
    settle(devchain, payload)
    facilitator.next.append(refused("invalid_exact_evm_nonce_already_used"))
    assert pay(client, encoded(payload)).status_code == 402

    result = await audited(stubbed)

    assert found(result) == {nonce_of(payload): "unknown"}


async def test_open_payment_paid_on_chain_is_found(
    stubbed: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    payload = await left_open(stubbed, buyer, ago=20)
    settle(devchain, payload)

    result = await audited(stubbed)

    assert found(result) == {nonce_of(payload): "open"}


async def test_false_success_of_facilitator_is_found(
    stubbed: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    payload = await delivered_for_nothing(stubbed, buyer)
    mine(devchain)

    result = await audited(stubbed)

    (finding,) = result.findings
    assert (finding.kind, finding.key.nonce) == ("not_on_chain", nonce_of(payload))
    assert (finding.transaction, finding.state, finding.block) == (FALSE_HASH, "delivered", None)


async def test_delivered_payment_spent_on_somebody_else_is_found(
    stubbed: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    payload = await delivered_for_nothing(stubbed, buyer)
    spend_elsewhere(devchain, terms_in(stubbed), buyer, nonce_of(payload))

    result = await audited(stubbed)

    assert found(result) == {nonce_of(payload): "not_on_chain"}


async def test_payment_of_the_last_minutes_may_yet_come(
    stubbed: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    await delivered_for_nothing(stubbed, buyer, ago=60)
    mine(devchain)

    result = await audited(stubbed)

    assert found(result) == {}


async def test_plain_transfer_and_cancellation_are_no_findings(
    stubbed: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    transfer(devchain, buyer, stubbed.pay_to or "", 10_000)
    cancel(devchain, buyer, "0x" + f"{time.time_ns():064x}")

    result = await audited(stubbed)

    assert (found(result), result.transfers) == ({}, 0)


async def test_payment_paid_before_the_blocks_of_the_audit_is_found_by_itself(
    stubbed: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    then = int(time.time())
    payload = fresh(stubbed, buyer)
    settle(devchain, payload)
    await presented(stubbed, encoded(payload), then + 5, transaction=FALSE_HASH, answer=ANSWER)
    mine(devchain)
    front = start_proxy(upstreams, "node", devchain.rpc_url, later(devchain)) + "/"

    result = await audited(stubbed, front, since=then + 4)

    assert (found(result), result.transfers, result.payments) == ({}, 0, 1)


LIES: dict[str, tuple[str, Any]] = {
    "no transfers": ("eth_getLogs", []),
    "no receipts": ("eth_getTransactionReceipt", None),
    "an old safe block": ("eth_blockNumber", "0x0"),
}


@pytest.mark.parametrize(("method", "result"), LIES.values(), ids=LIES.keys())
@pytest.mark.parametrize("place", [0, 2])
async def test_two_of_three_nodes_outvote_one_that_lies(
    stubbed: Settings,
    devchain: DevChain,
    upstreams: FakeUpstreams,
    buyer: Buyer,
    method: str,
    result: Any,
    place: int,
) -> None:
    payload = fresh(stubbed, buyer)
    settle(devchain, payload)
    nodes = [devchain.rpc_url, devchain.rpc_url]
    nodes.insert(place, start_proxy(upstreams, "node", devchain.rpc_url, answering(method, result)) + "/")

    audit = await audited(stubbed, *nodes, quorum=2)

    assert found(audit) == {nonce_of(payload): "unknown"}


async def test_nodes_that_do_not_agree_end_the_audit(
    stubbed: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    settle(devchain, fresh(stubbed, buyer))
    liar = start_proxy(upstreams, "node", devchain.rpc_url, answering("eth_getLogs", [])) + "/"

    with pytest.raises(ChainUnreachable):
        await audited(stubbed, devchain.rpc_url, liar, quorum=2)


async def test_span_that_a_node_refuses_is_read_in_parts(
    stubbed: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    payload = fresh(stubbed, buyer)
    settle(devchain, payload)
    last = height(devchain) + 600
    front = start_proxy(upstreams, "node", devchain.rpc_url, limit_log_range(200, "too many blocks")) + "/"
    recipient = own_recipient(stubbed)
    assert recipient is not None
    async with chain_of([front]) as chain:
        transfers = await TransferReader().read(chain, recipient, 0, last, final=0)

    assert [each.key.nonce for each in transfers] == [nonce_of(payload)]


async def test_later_audit_reads_old_spans_once(
    stubbed: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    settle(devchain, fresh(stubbed, buyer))
    mine(devchain)
    front = start_proxy(upstreams, "node", devchain.rpc_url, later(devchain)) + "/"
    recipient = own_recipient(stubbed)
    assert recipient is not None
    reader = TransferReader(span=1)
    async with chain_of([front]) as chain:
        number = height(devchain) - 1

        first, again = [await reader.read(chain, recipient, number, number, final=number) for _ in range(2)]

    asked = [call.body["method"] for call in upstreams.requests_of("node")]
    assert (len(first), again) == (1, first)
    assert asked.count("eth_getLogs") == 1
