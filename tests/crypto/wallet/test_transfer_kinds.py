"""What a transfer was part of."""

from __future__ import annotations

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


def test_two_assets_that_cross_in_one_transaction_are_a_swap() -> None:
    paid, got = moved(WALLET, OTHER, None), moved(OTHER, WALLET, DAI)

    swaps = find_swaps([paid, got], WALLET)

    assert [classify_transfer(each, WALLET, swaps) for each in (paid, got)] == ["swap", "swap"]


def test_the_same_asset_back_is_no_swap() -> None:
    assert find_swaps([moved(WALLET, OTHER), moved(OTHER, WALLET)], WALLET) == frozenset()


def test_a_token_of_no_value_does_not_make_a_swap() -> None:
    assert find_swaps([moved(WALLET, OTHER, None), moved(OTHER, WALLET, DAI, 0)], WALLET) == frozenset()


def test_assets_that_cross_in_two_transactions_are_no_swap() -> None:
    assert (
        find_swaps([moved(WALLET, OTHER), moved(OTHER, WALLET, DAI, transaction="0x2")], WALLET)
        == frozenset()
    )


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
