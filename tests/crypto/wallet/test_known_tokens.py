"""Table of well-known tokens."""

from __future__ import annotations

import re

import pytest

from centgate.chains import CHAINS
from centgate.crypto.wallet.known_tokens import KNOWN_TOKENS, NATIVE_COIN_ADDRESSES, find_known_token
from centgate.signing.assets import USDC


def test_every_chain_has_known_tokens() -> None:
    assert {*KNOWN_TOKENS} == {chain.id for chain in CHAINS} | {31337, 84532}
    assert all(len(KNOWN_TOKENS[chain.id]) >= 25 for chain in CHAINS)


@pytest.mark.parametrize("chain", KNOWN_TOKENS)
def test_tokens_have_valid_addresses(chain: int) -> None:
    for address, token in KNOWN_TOKENS[chain].items():
        assert re.fullmatch("0x[0-9a-f]{40}", address)
        assert token.address == address
        assert address not in NATIVE_COIN_ADDRESSES
        assert 2 <= token.decimals <= 18
        assert find_known_token(chain, address) is token


@pytest.mark.parametrize("network", [name for name in USDC if int(name[7:]) in KNOWN_TOKENS])
def test_payment_tokens_are_known(network: str) -> None:
    token = find_known_token(int(network[7:]), USDC[network].address.lower())

    assert token
    assert (token.symbol, token.decimals) == ("USDC", 6)


def test_unknown_chain_has_no_known_tokens() -> None:
    assert find_known_token(7, "0x" + "00" * 20) is None
