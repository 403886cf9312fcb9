"""The page of settlement outcomes matches the code, and no request is served without success or proof."""

from __future__ import annotations

from pathlib import Path

import pytest
from settlement_outcomes_docs import CHAIN_STATES, REPLIES, find_outcomes, render_page

from centgate.payments.chain.onchain_status import OnchainPayment

PAGE = Path(__file__).parents[2] / "docs" / "settlement-outcomes.md"


@pytest.mark.extended
def test_page_is_rendered_from_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page()


async def test_only_success_or_proof_serves() -> None:
    first, again = await find_outcomes()

    for rows, repeated in ((first, False), (again, True)):
        for reply, row in zip(REPLIES, rows, strict=True):
            for state, cell in zip(CHAIN_STATES, row, strict=True):
                success = reply is REPLIES[0] and (not repeated or state.status in ("no node", "unspent"))
                assert cell.word != "served" or success or isinstance(state.status, OnchainPayment)


async def test_only_certain_refusals_allow_new_payment_without_node() -> None:
    first, again = await find_outcomes()

    refused = [reply.label for reply, row in zip(REPLIES, first, strict=True) if row[0].word == "refused"]
    refused_again = [row[0].word for row in again if row[0].word == "refused"]

    assert [label.split("`")[1] for label in refused] == ["payload", "chain_state"]
    assert refused_again == []
