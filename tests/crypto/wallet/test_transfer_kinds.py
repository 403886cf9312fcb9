"""What a transfer was part of."""

from __future__ import annotations

import pytest

from centgate.crypto.wallet.spam_rules import CounterpartyEvidence
from centgate.crypto.wallet.transfer_kinds import classify_transfer, find_swaps
from centgate.crypto.wallet.wallets import Token, Transfer

WALLET, OTHER, ZERO = "0x" + "11" * 20, "0x" + "22" * 20, "0x" + "0" * 40
USDC, DAI = Token("0x" + "a0" * 20), Token("0x" + "da" * 20)


def moved(
    sender: str,
    recipient: str | None,
    token: Token | None = USDC,
    amount: int = 5,
    *,
    transaction: str = "0x1",
) -> Transfer:
    """A transfer in block 7."""
    return Transfer(transaction, sender, recipient, token, amount, 7, None)


def strong(_transfer: Transfer) -> CounterpartyEvidence:
    """Take every transfer for one that the wallet made, or that a stranger would not give away."""
    return CounterpartyEvidence.STRONG


def test_two_assets_that_cross_in_one_transaction_are_a_swap() -> None:
    paid, got = moved(WALLET, OTHER, None), moved(OTHER, WALLET, DAI)

    swaps = find_swaps([paid, got], WALLET, strong)

    assert [classify_transfer(each, WALLET, swaps) for each in (paid, got)] == ["swap", "swap"]


def test_the_same_asset_back_is_no_swap() -> None:
    assert find_swaps([moved(WALLET, OTHER), moved(OTHER, WALLET)], WALLET, strong) == frozenset()


def test_a_token_of_no_value_does_not_make_a_swap() -> None:
    assert (
        find_swaps([moved(WALLET, OTHER, None), moved(OTHER, WALLET, DAI, 0)], WALLET, strong) == frozenset()
    )


def test_assets_that_cross_in_two_transactions_are_no_swap() -> None:
    assert (
        find_swaps([moved(WALLET, OTHER), moved(OTHER, WALLET, DAI, transaction="0x2")], WALLET, strong)
        == frozenset()
    )


@pytest.mark.parametrize("proved", [CounterpartyEvidence.NONE, CounterpartyEvidence.WEAK])
def test_a_swap_that_anyone_can_make_up_is_none(proved: CounterpartyEvidence) -> None:
    made_up, dust = moved(WALLET, OTHER, DAI), moved(OTHER, WALLET)

    swaps = find_swaps([made_up, dust], WALLET, lambda _transfer: proved)

    assert classify_transfer(made_up, WALLET, swaps) == "send"
    assert classify_transfer(dust, WALLET, swaps) == "receive"


def test_one_side_that_is_proved_is_enough_for_a_swap() -> None:
    sold, got = moved(WALLET, OTHER, DAI), moved(OTHER, WALLET)

    def weigh(transfer: Transfer) -> CounterpartyEvidence:
        return CounterpartyEvidence.STRONG if transfer == got else CounterpartyEvidence.WEAK

    assert find_swaps([sold, got], WALLET, weigh) == {"0x1"}


def test_other_transfers_are_told_by_their_ends() -> None:
    cases = {
        "mint": moved(ZERO, WALLET),
        "burn": moved(WALLET, ZERO),
        "receive": moved(OTHER, WALLET),
        "send": moved(WALLET, OTHER),
        "self": moved(WALLET, WALLET),
        "call": moved(WALLET, OTHER, None, 0),
        "creation": moved(WALLET, None, None, 0),
    }

    assert {kind: classify_transfer(each, WALLET, ()) for kind, each in cases.items()} == {
        kind: kind for kind in cases
    }
