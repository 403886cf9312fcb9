"""The audit of journal against chain finds differences in both directions."""

from __future__ import annotations

import time
from typing import Any

import pytest
from audits import (
    ANSWER,
    FALSE_HASH,
    findings_by_nonce,
    get_nonce,
    mine_block,
    newer_block,
    open_chain_client,
    read_block_number,
    record_false_delivery,
    reply_to_method,
    run_audit,
    settle_on_chain,
    sign_unsubmitted,
)
from buyer import ApiFactory, Buyer, encode_header, pay, sign_payload
from chain_actions import cancel_authorization, pay_other_recipient, transfer_tokens
from facilitators import StubFacilitator, refuse_with, reply_with
from fake_upstreams import FakeUpstreams
from seeded_journals import encode_terms, record_open_payment, record_payment
from tampering_proxy import limit_log_range, start_proxy

from centgate.devchain.devnet import DevChain
from centgate.payments.audit.audit import configured_recipients
from centgate.payments.audit.transfer_reader import TransferReader
from centgate.payments.chain.payment_node import ChainUnreachable
from centgate.settings import ProviderSettings, Settings
from centgate.signing.evm import to_checksum_address


@pytest.fixture
def stubbed(chain_settings: Settings, facilitator: StubFacilitator, database_url: str) -> Settings:
    """A deployment on the development chain with a scripted facilitator.

    Its recipient is its own, so that its audits do not see the payments of other tests.
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
    """The same deployment without a node, which believes its facilitator."""
    return stubbed.model_copy(update={"providers": {"rpc_84532": ProviderSettings(enabled=False)}})


@pytest.mark.extended
async def test_clean_journal_has_no_findings(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    client = api(stubbed.model_copy(update={"facilitator_url": devchain.facilitator_url}))
    assert pay(client, encode_header(sign_payload(client, buyer))).status_code == 200

    result = await run_audit(stubbed)

    assert (findings_by_nonce(result), result.transfers, result.problem) == ({}, 1, None)


@pytest.mark.extended
async def test_payment_refused_here_but_paid_on_chain_is_found(
    api: ApiFactory,
    stubbed: Settings,
    without_node: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    buyer: Buyer,
) -> None:
    client = api(without_node)
    payload = sign_payload(client, buyer)
    facilitator.next.append(refuse_with("insufficient_funds"))
    assert pay(client, encode_header(payload)).status_code == 402
    settle_on_chain(devchain, payload)

    result = await run_audit(stubbed)

    (finding,) = result.findings
    assert (finding.kind, finding.key.nonce, finding.state) == ("refused", get_nonce(payload), "refused")
    assert (finding.amount, finding.service) == (10_000, "phishing-check")


@pytest.mark.extended
async def test_unsent_payment_paid_on_chain_is_found(
    api: ApiFactory,
    stubbed: Settings,
    without_node: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    buyer: Buyer,
) -> None:
    client = api(without_node)
    payload = sign_payload(client, buyer)
    facilitator.next.append(reply_with(429, ""))
    pay(client, encode_header(payload))
    settle_on_chain(devchain, payload)

    result = await run_audit(stubbed)

    assert findings_by_nonce(result) == {get_nonce(payload): "refused"}
    assert result.findings[0].state == "unused"


async def test_unknown_transfer_is_found(stubbed: Settings, devchain: DevChain, buyer: Buyer) -> None:
    payload = sign_unsubmitted(stubbed, buyer)
    transaction = settle_on_chain(devchain, payload)

    result = await run_audit(stubbed)

    (finding,) = result.findings
    assert (finding.kind, finding.transaction, finding.state) == ("unknown", transaction, None)


@pytest.mark.extended
async def test_payment_made_before_its_claim_is_unknown(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    """It has bought something elsewhere, so no refund is due."""
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    settle_on_chain(devchain, payload)
    facilitator.next.append(refuse_with("invalid_exact_evm_nonce_already_used"))
    assert pay(client, encode_header(payload)).status_code == 402

    result = await run_audit(stubbed)

    assert findings_by_nonce(result) == {get_nonce(payload): "unknown"}


async def test_open_payment_paid_on_chain_is_found(
    stubbed: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    payload = await record_open_payment(stubbed, buyer, ago=20)
    settle_on_chain(devchain, payload)

    result = await run_audit(stubbed)

    assert findings_by_nonce(result) == {get_nonce(payload): "open"}


async def test_false_success_of_facilitator_is_found(
    stubbed: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    payload = await record_false_delivery(stubbed, buyer)
    mine_block(devchain)

    result = await run_audit(stubbed)

    (finding,) = result.findings
    assert (finding.kind, finding.key.nonce) == ("not_on_chain", get_nonce(payload))
    assert (finding.transaction, finding.state, finding.block) == (FALSE_HASH, "delivered", None)


async def test_delivered_payment_spent_on_other_recipient_is_found(
    stubbed: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    payload = await record_false_delivery(stubbed, buyer)
    pay_other_recipient(devchain, encode_terms(stubbed), buyer, get_nonce(payload))

    result = await run_audit(stubbed)

    assert findings_by_nonce(result) == {get_nonce(payload): "not_on_chain"}


async def test_recent_payment_is_not_audited_yet(stubbed: Settings, devchain: DevChain, buyer: Buyer) -> None:
    await record_false_delivery(stubbed, buyer, ago=60)
    mine_block(devchain)

    result = await run_audit(stubbed)

    assert findings_by_nonce(result) == {}


@pytest.mark.extended
async def test_plain_transfer_and_cancellation_are_no_findings(
    stubbed: Settings, devchain: DevChain, buyer: Buyer
) -> None:
    transfer_tokens(devchain, buyer, stubbed.pay_to or "", 10_000)
    cancel_authorization(devchain, buyer, "0x" + f"{time.time_ns():064x}")

    result = await run_audit(stubbed)

    assert (findings_by_nonce(result), result.transfers) == ({}, 0)


@pytest.mark.extended
async def test_payment_before_audited_blocks_is_looked_up(
    stubbed: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    then = int(time.time())
    payload = sign_unsubmitted(stubbed, buyer)
    settle_on_chain(devchain, payload)
    await record_payment(stubbed, encode_header(payload), then + 5, transaction=FALSE_HASH, answer=ANSWER)
    mine_block(devchain)
    front = start_proxy(upstreams, "node", devchain.rpc_url, newer_block(devchain)) + "/"

    result = await run_audit(stubbed, front, since=then + 4)

    assert (findings_by_nonce(result), result.transfers, result.payments) == ({}, 0, 1)


LIES: dict[str, tuple[str, Any]] = {
    "no transfers": ("eth_getLogs", []),
    "no receipts": ("eth_getTransactionReceipt", None),
    "an old safe block": ("eth_blockNumber", "0x0"),
}


@pytest.mark.extended
@pytest.mark.parametrize(("method", "result"), LIES.values(), ids=LIES.keys())
@pytest.mark.parametrize("place", [0, 2])
async def test_two_honest_nodes_outvote_lying_one(
    stubbed: Settings,
    devchain: DevChain,
    upstreams: FakeUpstreams,
    buyer: Buyer,
    method: str,
    result: Any,
    place: int,
) -> None:
    payload = sign_unsubmitted(stubbed, buyer)
    settle_on_chain(devchain, payload)
    nodes = [devchain.rpc_url, devchain.rpc_url]
    nodes.insert(
        place, start_proxy(upstreams, "node", devchain.rpc_url, reply_to_method(method, result)) + "/"
    )

    audit = await run_audit(stubbed, *nodes, quorum=2)

    assert findings_by_nonce(audit) == {get_nonce(payload): "unknown"}


async def test_disagreeing_nodes_end_audit(
    stubbed: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    settle_on_chain(devchain, sign_unsubmitted(stubbed, buyer))
    liar = start_proxy(upstreams, "node", devchain.rpc_url, reply_to_method("eth_getLogs", [])) + "/"

    with pytest.raises(ChainUnreachable):
        await run_audit(stubbed, devchain.rpc_url, liar, quorum=2)


async def test_refused_span_is_read_in_parts(
    stubbed: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    payload = sign_unsubmitted(stubbed, buyer)
    settle_on_chain(devchain, payload)
    last = read_block_number(devchain) + 600
    front = start_proxy(upstreams, "node", devchain.rpc_url, limit_log_range(200, "too many blocks")) + "/"
    (recipient,) = configured_recipients(stubbed)
    assert recipient is not None
    async with open_chain_client([front]) as chain:
        transfers = await TransferReader().read_span(chain, recipient, 0, last, final=0)

    assert [each.key.nonce for each in transfers] == [get_nonce(payload)]


async def test_later_audit_reads_old_spans_once(
    stubbed: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    settle_on_chain(devchain, sign_unsubmitted(stubbed, buyer))
    mine_block(devchain)
    front = start_proxy(upstreams, "node", devchain.rpc_url, newer_block(devchain)) + "/"
    (recipient,) = configured_recipients(stubbed)
    assert recipient is not None
    reader = TransferReader(span=1)
    async with open_chain_client([front]) as chain:
        number = read_block_number(devchain) - 1

        first, again = [
            await reader.read_span(chain, recipient, number, number, final=number) for _ in range(2)
        ]

    methods = [call.body["method"] for call in upstreams.requests_of("node")]
    assert (len(first), again) == (1, first)
    assert methods.count("eth_getLogs") == 1
