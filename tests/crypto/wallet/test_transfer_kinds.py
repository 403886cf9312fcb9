"""Kinds of transfers: swaps, mints, burns and plain transfers."""

from __future__ import annotations

import pytest

from centgate.crypto.wallet.spam_rules import CounterpartyEvidence
from centgate.crypto.wallet.transfer_kinds import classify_transfer, find_swaps
from centgate.crypto.wallet.wallets import Token, Transfer

WALLET, OTHER, ZERO = "0x" + "11" * 20, "0x" + "22" * 20, "0x" + "0" * 40
USDC, DAI = Token("0x" + "a0" * 20), Token("0x" + "da" * 20)


def build_transfer(
    sender: str,
    recipient: str | None,
    token: Token | None = USDC,
    amount: int = 5,
    *,
    transaction: str = "0x1",
) -> Transfer:
    """Return a transfer in block 7."""
    return Transfer(transaction, sender, recipient, token, amount, 7, None)


def strong_evidence(_transfer: Transfer) -> CounterpartyEvidence:
    """Rate every counterparty as strong evidence."""
    return CounterpartyEvidence.STRONG


def test_crossing_assets_in_one_transaction_are_a_swap() -> None:
    paid, got = build_transfer(WALLET, OTHER, None), build_transfer(OTHER, WALLET, DAI)

    swaps = find_swaps([paid, got], WALLET, strong_evidence)

    assert [classify_transfer(each, WALLET, swaps) for each in (paid, got)] == ["swap", "swap"]


def test_refund_of_exchange_leaves_a_swap() -> None:
    paid, refund = build_transfer(WALLET, OTHER, None, 900), build_transfer(OTHER, WALLET, None, 1)

    assert find_swaps([paid, build_transfer(OTHER, WALLET, DAI), refund], WALLET, strong_evidence) == {"0x1"}


def test_returned_asset_is_no_swap() -> None:
    assert (
        find_swaps([build_transfer(WALLET, OTHER), build_transfer(OTHER, WALLET)], WALLET, strong_evidence)
        == frozenset()
    )


def test_worthless_token_makes_no_swap() -> None:
    assert (
        find_swaps(
            [build_transfer(WALLET, OTHER, None), build_transfer(OTHER, WALLET, DAI, 0)],
            WALLET,
            strong_evidence,
        )
        == frozenset()
    )


def test_crossing_assets_in_two_transactions_are_no_swap() -> None:
    assert (
        find_swaps(
            [build_transfer(WALLET, OTHER), build_transfer(OTHER, WALLET, DAI, transaction="0x2")],
            WALLET,
            strong_evidence,
        )
        == frozenset()
    )


@pytest.mark.parametrize("proved", [CounterpartyEvidence.NONE, CounterpartyEvidence.WEAK])
def test_swap_without_evidence_is_none(proved: CounterpartyEvidence) -> None:
    made_up, dust = build_transfer(WALLET, OTHER, DAI), build_transfer(OTHER, WALLET)

    swaps = find_swaps([made_up, dust], WALLET, lambda _transfer: proved)

    assert classify_transfer(made_up, WALLET, swaps) == "send"
    assert classify_transfer(dust, WALLET, swaps) == "receive"


def test_evidence_for_one_side_is_enough_for_swap() -> None:
    sold, got = build_transfer(WALLET, OTHER, DAI), build_transfer(OTHER, WALLET)

    def weigh(transfer: Transfer) -> CounterpartyEvidence:
        return CounterpartyEvidence.STRONG if transfer == got else CounterpartyEvidence.WEAK

    assert find_swaps([sold, got], WALLET, weigh) == {"0x1"}


def test_other_transfers_are_classified_by_their_ends() -> None:
    cases = {
        "mint": build_transfer(ZERO, WALLET),
        "burn": build_transfer(WALLET, ZERO),
        "receive": build_transfer(OTHER, WALLET),
        "send": build_transfer(WALLET, OTHER),
        "self": build_transfer(WALLET, WALLET),
        "call": build_transfer(WALLET, OTHER, None, 0),
        "creation": build_transfer(WALLET, None, None, 0),
    }

    assert {kind: classify_transfer(each, WALLET, ()) for kind, each in cases.items()} == {
        kind: kind for kind in cases
    }
