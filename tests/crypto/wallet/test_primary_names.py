"""Hashes of names and rules for the text of primary names."""

from __future__ import annotations

from eth_abi.abi import encode

from centgate.crypto.wallet.primary_names import (
    hash_name,
    hash_reverse_basename,
    is_plain_basename,
    parse_base_address,
    parse_ens_name,
)

ZERO = "0x" + "0" * 40


def test_names_are_hashed_by_labels() -> None:
    # the values are those of `namehash` of npm's viem 2.57
    assert hash_name("80002105.reverse").hex() == (
        "08d9b0993eb8c4da57c37a4b84a6e384c2623114ff4e9370ed51c9b8935109ba"
    )
    assert hash_name("alice.base.eth").hex() == (
        "b200d2bfac166c814e32bfb9f34bde9c866514a1501c47af54d0fffa03a6bfee"
    )


def test_reverse_node_is_that_of_onchainkit() -> None:
    # address and node are from the tests of `convertReverseNodeToBytes` in npm's @coinbase/onchainkit 1.1
    node = hash_reverse_basename("0x8c8f1a1e1bfdb15e7ed562efc84e5a588e68ad73")

    assert node.hex() == "cd18b9f82b690bdf732816fe0b9796635191f97e59bcebbef4eba6e05a39da05"


def test_address_on_base_is_one_of_twenty_bytes() -> None:
    account = bytes.fromhex("8c8f1a1e1bfdb15e7ed562efc84e5a588e68ad73")

    assert parse_base_address(encode(["bytes"], [account])) == "0x" + account.hex()
    assert [parse_base_address(encode(["bytes"], [each])) for each in (b"", account + b"1", bytes(20))] == [
        None
    ] * 3
    assert (parse_base_address(b""), parse_base_address(None)) == (None, None)


def test_ens_names_with_lookalike_letters_are_omitted() -> None:
    def parse(name: bytes) -> str | None:
        return parse_ens_name(encode(["bytes", "address", "address"], [name, ZERO, ZERO]))

    assert [parse(name) for name in (b"alice.eth", b"pay.alice.eth", b"my-name.cb.id")] == [
        "alice.eth",
        "pay.alice.eth",
        "my-name.cb.id",
    ]
    hostile = [
        "\u0430lice.eth".encode(),
        b"Alice.eth",
        b"a\nb.eth",
        b"x" * 300 + b".eth",
        b"",
        b"eth",
        b"\xff.eth",
        b"xn--80ak6aa92e.eth",
        b"pay.ab--c.eth",
    ]
    assert [parse(name) for name in hostile] == [None] * len(hostile)
    assert parse_ens_name(b"\xff" * 96) is None


def test_basenames_are_plain_and_under_base_eth() -> None:
    assert all(is_plain_basename(name) for name in ("alice.base.eth", "pay.my-name.base.eth"))
    hostile = [
        "base.eth",
        "alice.eth",
        "alicebase.eth",
        "\u0430lice.base.eth",
        "Alice.base.eth",
        "a\nb.base.eth",
    ]
    assert [name for name in hostile if is_plain_basename(name)] == []
